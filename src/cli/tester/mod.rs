//! `tester`: shows for any robots.txt whether a crawler may fetch a URL, and the line that decides.

mod asked;
mod batch;
mod url_verdict;

use super::{Failure, Result, cannot, fine, show};
use crate::crawlers::{Registry, SiteMarkers};
use crate::files::{MAX_BYTES, read_argument, read_up_to};
use crate::origin::{Fetched, fetch};
use crate::policy::ParsedVersion;
use crate::policy::lint::meant_tokens;
use crate::printable::{printable, printable_path};
use crate::robots::{Dialect, File, Reading, Shape};
use crate::sites::policy_directory::{Unread, leads_out};
use asked::Asked;
use std::io::Write;
use std::path::Path;
use url_verdict::UrlVerdict;

/// Test URLs against any robots.txt: the verdict and the deciding line for each crawler
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// A file, `-` for standard input, or the http(s) URL of a file or of a site
    #[arg(value_name = "FILE", required_unless_present = "batch")]
    file: Option<String>,
    /// URLs, or paths with their query
    #[arg(value_name = "URL", required_unless_present = "batch")]
    urls: Vec<String>,
    /// A crawler: its product token, like Googlebot, or its user agent; may be repeated
    #[arg(
        long = "agent",
        value_name = "TOKEN|UA",
        required_unless_present = "batch"
    )]
    agents: Vec<String>,
    /// Look for the token alone, also where its crawler follows another group or ignores `*`
    #[arg(long)]
    literal: bool,
    /// How to read the file: as RFC 9309 says, or as Google's library does [default: as each
    /// crawler itself does]
    #[arg(long, value_name = "rfc9309|google")]
    dialect: Option<Dialect>,
    /// Read lines of `file TAB token TAB url` from standard input, write `allow|deny TAB line` for
    /// each; always exit 0. Tokens are literal
    #[arg(long, conflicts_with_all = ["file", "urls", "agents", "json"])]
    batch: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  crawlgate tester robots.txt --agent Googlebot --agent GPTBot /cart/ '/search?q=a'
  crawlgate tester robots.txt --agent Googlebot-Image --literal /images/
  crawlgate tester https://shop.example --agent Bingbot https://shop.example/cart/
  crawlgate tester --batch --dialect google < questions.tsv

Exit codes: 0 all allowed, 1 a URL is denied, 2 wrong usage, 3 the file could not be read.";

impl Arguments {
    /// The dialect of the answers about a crawler: that of the flag, else that of the known
    /// crawler, else the default.
    fn dialect_for(&self, asked: &Asked<'_>) -> Dialect {
        let own = asked.crawler.map(|crawler| crawler.reading);
        self.dialect.or(own).unwrap_or_default()
    }
}

/// Answers each URL for each crawler and prints the answers, or runs `--batch`. Where a URL gives
/// no file, its status decides. Fails (exit code 1) if a URL is denied.
pub fn run(arguments: &Arguments) -> Result {
    if arguments.batch {
        return batch::run(arguments.dialect.unwrap_or_default());
    }
    let Some(source) = &arguments.file else {
        return Err(Failure::Usage("a FILE is missing".into()));
    };
    if let Some(agent) = arguments
        .agents
        .iter()
        .find(|agent| agent.trim().is_empty() || agent.as_str() == "*")
    {
        return Err(Failure::Usage(format!(
            "`{agent}` is not a product token; give one like Googlebot"
        )));
    }
    arguments.urls.iter().try_for_each(|url| check_url(url))?;
    let registry = Registry::builtin();
    warn_of_other_hosts(source, &arguments.urls);
    let (name, file) = match read(source)? {
        Fetched::File { bytes, location } => {
            let file = File::parse(bytes);
            warn_unless_robots_txt(&location, &file);
            (location, file)
        }
        none => {
            let markers = SiteMarkers::default();
            let asked = asked(arguments, registry, &markers)?;
            return answer_by_status(arguments, &asked, source, &none);
        }
    };
    let named = ParsedVersion::read(file.bytes().clone(), registry).tokens;
    let asked = asked(arguments, registry, &named)?;
    for agent in asked
        .iter()
        .filter(|asked| asked.crawler.is_none() && !asked.is_user_agent)
    {
        if let Some(meant) = meant_tokens(agent.written, registry) {
            super::say(&format!(
                "note: no crawler looks for `{}`; {meant}",
                agent.written
            ));
        }
    }
    let spaced = registry.tokens_with_blanks();
    let readings = Dialect::ALL.map(|dialect| (dialect, Reading::new(&file, dialect, &spaced)));
    let mut answers = Vec::new();
    for asked in &asked {
        let dialect = arguments.dialect_for(asked);
        for url in &arguments.urls {
            answers.push(UrlVerdict::new(&file, &readings, dialect, asked, url));
        }
    }
    if arguments.json {
        super::print_json(&answers)?;
    } else {
        let colour = super::colour(&std::io::stdout());
        let mut out = super::out(colour);
        for (place, answer) in answers.iter().enumerate() {
            out.write_all(if place > 0 { b"\n" } else { b"" })?;
            answer.write(&mut out, &name, &file, colour)?;
        }
        out.flush()?;
    }
    fine(answers.iter().all(|answer| answer.allowed))
}

/// The crawlers of all `--agent` flags, by their tokens alone with `--literal`. `named` are the
/// tokens of the file that the registry does not know.
fn asked<'a>(
    arguments: &'a Arguments,
    registry: &'a Registry,
    named: &'a SiteMarkers,
) -> Result<Vec<Asked<'a>>> {
    let agents = arguments.agents.iter().map(String::as_str);
    if arguments.literal {
        Ok(agents.map(Asked::literal).collect())
    } else {
        agents
            .map(|agent| Asked::new(agent, registry, named))
            .collect()
    }
}

/// Fails for what is neither a path nor a URL: it would be answered as another path than was meant.
fn check_url(url: &str) -> Result {
    if url.starts_with('/') || url.contains("://") {
        return Ok(());
    }
    let problem = format!("`{url}` is neither a path nor a URL");
    let looks_like_host = url
        .split(['/', '?'])
        .next()
        .is_some_and(|first| first.contains('.'));
    Err(Failure::Usage(if looks_like_host {
        format!("{problem}; write `https://{url}` for a URL, or `/{url}` for a path")
    } else {
        format!("{problem}; a path begins with `/`: write `/{url}`")
    }))
}

/// Warns of URLs of other hosts than that of the robots.txt, if it comes from a URL: its rules are
/// about its own host (RFC 9309 section 2.3).
fn warn_of_other_hosts(source: &str, urls: &[String]) {
    let Some(own) = host_of(source) else { return };
    for other in urls
        .iter()
        .filter_map(|url| host_of(url))
        .filter(|other| *other != own)
    {
        super::say(&format!(
            "warning: this robots.txt is that of {own}, and says nothing about {other}; the answer is for the same path on \
             {own}. Test with the file of {other}"
        ));
    }
}

/// Prints the answers where `source` gave a status and no file: everything is allowed for
/// `Unavailable`, and denied for `Unreachable`, but never for a person. Says which agents are a
/// person's. Fails if a URL is denied. Does nothing if there is a file.
fn answer_by_status(
    arguments: &Arguments,
    asked: &[Asked<'_>],
    source: &str,
    fetched: &Fetched,
) -> Result {
    let (Fetched::Unavailable(status) | Fetched::Unreachable(status)) = fetched else {
        return Ok(());
    };
    let allowed = matches!(fetched, Fetched::Unavailable(_));
    let mut answers = Vec::new();
    for asked in asked {
        let dialect = arguments.dialect_for(asked);
        for url in &arguments.urls {
            answers.push(UrlVerdict::by_status(asked, url, dialect, allowed));
        }
    }
    let meaning = if allowed {
        "crawlers treat that as a site without rules: everything is allowed"
    } else {
        "crawlers treat that as a closed site: everything is denied"
    };
    // For the RFC 429 is one of the answers that mean no rules.
    let by = if *status == 429 {
        "Google, How Google interprets the robots.txt specification"
    } else {
        "RFC 9309 section 2.3.1"
    };
    let mut text = format!("{source} answered {status}; {meaning} ({by}).");
    for person in asked.iter().filter(|asked| asked.is_person) {
        text += &format!(
            "\n`{}` is a person's: no rule is for people.",
            person.written
        );
    }
    show(arguments.json, &answers, text)?;
    fine(answers.iter().all(|answer| answer.allowed))
}

/// A robots.txt as it was read.
pub struct RobotsTxt {
    /// What to call it in messages.
    pub name: String,
    pub bytes: Vec<u8>,
}

/// Fails for a robots.txt that is a link out of its directory, where it may be what somebody
/// proposes.
pub fn refuse_link_out(path: &Path) -> Result {
    if leads_out(path) {
        Err(Failure::CouldNot(format!(
            "{} {}",
            printable_path(path),
            Unread::LeadsOut
        )))
    } else {
        Ok(())
    }
}

/// Reads a robots.txt from a path, standard input (`-`) or a URL. Fails if the URL gives only a
/// status: there is no file to `purpose`, a verb for that message (`check`, `import`).
pub fn file(source: &str, purpose: &str) -> Result<RobotsTxt> {
    file_of(read(source)?, source, purpose)
}

/// The file that was fetched. Fails if `source` gave only a status: there is no file to `purpose`,
/// a verb for that message.
fn file_of(fetched: Fetched, source: &str, purpose: &str) -> Result<RobotsTxt> {
    match fetched {
        Fetched::File { bytes, location } => Ok(RobotsTxt {
            name: location,
            bytes,
        }),
        Fetched::Unavailable(status) | Fetched::Unreachable(status) => Err(Failure::CouldNot(
            format!("{source} answered {status}; there is no file to {purpose}"),
        )),
    }
}

/// The rules that an argument names. A site that answers that it has no file has no rules, and the
/// file is empty (RFC 9309 section 2.3.1.3). Warns of a file that is no robots.txt.
pub fn rules(source: &str, purpose: &str) -> Result<RobotsTxt> {
    let file = match read(source)? {
        Fetched::Unavailable(_) => RobotsTxt {
            name: source.to_owned(),
            bytes: Vec::new(),
        },
        fetched => file_of(fetched, source, purpose)?,
    };
    warn_unless_robots_txt(&file.name, &File::parse(&*file.bytes));
    Ok(file)
}

/// Warns of a file that cannot be meant: a log, a page, a list of something else. Crawlers find no
/// rules in it. An empty file, or one with comments alone, gives no warning.
fn warn_unless_robots_txt(name: &str, file: &File) {
    let Some(line) = file
        .lines()
        .iter()
        .find(|line| !line.text.is_empty() && line.comment.is_none())
    else {
        return;
    };
    if file.shape() == Shape::Text && !file.is_page(true) {
        return;
    }
    let text: String = file.text(&line.text).chars().take(60).collect();
    super::say(&format!(
        "warning: {name} has no line of a robots.txt, so it allows everything; it says `{text}`"
    ));
}

/// Reads a file, standard input (`-`), or an http(s) URL, which may have only a status.
fn read(source: &str) -> Result<Fetched> {
    if source.starts_with("http://") || source.starts_with("https://") {
        return Ok(fetch(source)?);
    }
    let (name, bytes) = if source == "-" {
        let bytes = read_up_to(std::io::stdin().lock(), MAX_BYTES);
        ("standard input", bytes)
    } else {
        (source, read_argument(source.as_ref(), MAX_BYTES))
    };
    Ok(Fetched::File {
        location: printable(name.as_bytes()),
        bytes: bytes.map_err(cannot("read", name.as_ref()))?,
    })
}

/// The host of an http(s) URL in lower case, with its port if it has one; `None` of anything else.
pub fn host_of(url: &str) -> Option<String> {
    let rest = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"))?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    (!host.is_empty()).then(|| host.to_ascii_lowercase())
}
