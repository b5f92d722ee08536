//! The command `tester`: shows for any robots.txt whether a crawler may fetch a URL, and the line
//! that decides. [`TestedAgent`] is a crawler to test for, and [`UrlVerdict`] the result for a URL.

mod tested_agent;
mod url_verdict;

use super::origin_copy::{MAX_COMPILED_BYTES, truncate_file};
use super::url_list::{for_each_url, is_path_or_url};
use super::{Failure, Result, file_failure, findings_failure_unless, url_host};
use crate::audit::DatedRobotsTxt;
use crate::crawlers::{Registry, SiteMarkers};
use crate::files::{MAX_FILE_BYTES, read_argument, read_up_to};
use crate::origin::RobotsFetchOutcome::{self, *};
use crate::origin::fetch_robots;
use crate::policy::ParsedRobotsVersion;
use crate::policy::lint::meant_tokens_help;
use crate::printable::printable_path;
use crate::robots::{Dialect, DialectRules, FileFormat, GroupMatch, MAX_ROBOTS_BYTES, RobotsFile};
use crate::yaml::{nearest_word, strip_http_scheme};
use askama::Template;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::PathBuf;
use tested_agent::TestedAgent;
use url_verdict::{UrlVerdict, VerdictsCsv};

/// Test which URLs a robots.txt allows for a crawler, and show the deciding lines
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  crawlgate tester robots.txt --agent Googlebot --agent GPTBot /cart/ '/search?q=a'
  crawlgate tester robots.txt --agent Googlebot-Image --literal /images/
  crawlgate tester https://shop.example --agent Bingbot https://shop.example/cart/
  crawlgate tester robots.txt --agent Googlebot --urls urls.txt --denied
  crawlgate tester robots.txt --agent Googlebot --agent GPTBot --urls sitemap.xml --csv > urls.csv

Exit codes: 0 all allowed, 1 a URL is denied, 2 wrong usage, 3 the file cannot be read.")]
pub struct Arguments {
    /// A file, the http(s) URL of a file or site, or - for standard input
    file: String,
    /// URLs, or paths with their query
    #[arg(value_name = "URL|--urls FILE", required_unless_present = "list")]
    urls: Vec<String>,
    /// Test the URLs or paths in this file too (- for standard input): one a line, those of a sitemap, or
    /// of CSV the first column with URLs or paths; may be repeated
    #[arg(long = "urls", alias = "sitemap", value_name = "FILE|URL")]
    list: Vec<PathBuf>,
    /// A crawler, by its token (like Googlebot) or its user agent; may be repeated
    #[arg(
        long = "agent",
        alias = "user-agent",
        value_name = "TOKEN|UA",
        required = true
    )]
    agents: Vec<String>,
    /// Look for exactly this token, and ignore what crawlgate knows about the crawler
    #[arg(long)]
    literal: bool,
    /// Read the file by RFC 9309, or as Google's library does; misspelt lines (Disalow) count in both
    /// [default: as each crawler does]
    #[arg(long, value_name = "rfc9309|google")]
    dialect: Option<Dialect>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print CSV: a row for each crawler and URL, with the line that decides
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Print only URLs that are denied
    #[arg(long)]
    denied: bool,
}

impl Arguments {
    /// The URLs and paths to test. Fails for an argument that is neither.
    fn read_urls(&self) -> Result<Vec<String>> {
        if let Some(url) = self.urls.iter().find(|url| !is_path_or_url(url)) {
            fail!(
                Usage,
                "\"{url}\" is neither a path nor a URL; write /{url} for a path, https://{url} for a URL, --urls {url} for a file, or %20 for a blank"
            );
        }
        let mut urls = self.urls.clone();
        for list in &self.list {
            if list.as_os_str() == "-" && self.file == "-" {
                fail!(
                    Usage,
                    "the robots.txt and --urls cannot both be standard input"
                );
            }
            for_each_url(list, |url| urls.push(url.to_owned()))?;
        }
        Ok(urls)
    }

    /// The dialect for a crawler: that of the flag, else that of the registry, else the default.
    fn dialect_for(&self, tested_agent: &TestedAgent<'_>) -> Dialect {
        let own = tested_agent.crawler.map(|crawler| crawler.reading);
        self.dialect.or(own).unwrap_or_default()
    }

    /// Prints the verdicts: for programs, or else as `write_text` does. Fails (exit code 1) if a URL
    /// is denied.
    fn print<'a>(
        &self,
        mut verdicts: Vec<UrlVerdict<'a>>,
        write_text: impl FnOnce(&mut [UrlVerdict<'a>]) -> Result,
    ) -> Result {
        verdicts.retain(|verdict| !(self.denied && verdict.allowed));
        if self.csv {
            let csv = VerdictsCsv {
                verdicts: &verdicts,
            };
            super::print_bytes(csv.render()?.replace('\n', "\r\n").as_bytes())?;
        } else if self.json {
            super::print_json(&verdicts)?;
        } else {
            write_text(&mut verdicts)?;
        }
        findings_failure_unless(verdicts.iter().all(|verdict| verdict.allowed))
    }
}

/// Prints the verdict on each URL for each crawler. If the robots.txt is a URL that gives no
/// file, its status decides. Fails (exit code 1) if a URL is denied.
pub fn run(arguments: &Arguments) -> Result {
    let source = &arguments.file;
    if let Some(agent) = arguments.agents.iter().find(|agent| {
        let is_list = agent.contains(',') && !agent.contains('/');
        agent.trim().is_empty() || agent.as_str() == "*" || is_list
    }) {
        fail!(
            Usage,
            "\"{agent}\" is not the name of a crawler; give one like Googlebot, and repeat --agent for each"
        );
    }
    let urls = arguments.read_urls()?;
    let registry = Registry::builtin();
    warn_of_other_hosts(source, &urls);
    let (name, file) = match fetch_source(source)? {
        File {
            mut bytes,
            location,
        } => {
            truncate_file(&location, &mut bytes, MAX_ROBOTS_BYTES);
            let file = RobotsFile::parse(bytes);
            if let Some(problem) = wrong_kind(&location, &file) {
                print_message!("warning: {problem}. It allows everything");
            }
            (location, file)
        }
        Unavailable(status) => {
            return print_status_verdicts(arguments, &urls, status, true);
        }
        Unreachable(status) => {
            return print_status_verdicts(arguments, &urls, status, false);
        }
    };
    let named = ParsedRobotsVersion::parse(file.bytes().clone(), registry).tokens;
    let tested_agent = parse_agents(arguments, registry, &named)?;
    let spaced = registry.tokens_with_blanks();
    let readings =
        Dialect::ALL.map(|dialect| (dialect, DialectRules::new(&file, dialect, &spaced)));
    if !arguments.literal {
        check_tokens(&tested_agent, registry, &readings[0].1)?;
    }
    let mut answers = Vec::new();
    for tested_agent in &tested_agent {
        let dialect = arguments.dialect_for(tested_agent);
        for url in &urls {
            answers.push(UrlVerdict::from_file(
                &file,
                &readings,
                dialect,
                tested_agent,
                url,
            ));
        }
    }
    arguments.print(answers, |answers| {
        let colour = super::supports_colour(&io::stdout());
        let mut out = super::stdout_printer(colour);
        if !arguments.list.is_empty() {
            for agent in &tested_agent {
                url_verdict::write_short(agent, answers, &name, urls.len(), &mut out)?;
            }
        } else {
            for (place, answer) in answers.iter().enumerate() {
                out.write_all(if place > 0 { b"\n" } else { b"" })?;
                answer.write(&mut out, &name, &file, colour)?;
            }
        }
        Ok(out.flush()?)
    })
}

/// Fails for a token that no crawler looks for and no group names, if another one is probably meant.
fn check_tokens(agents: &[TestedAgent<'_>], registry: &Registry, rules: &DialectRules) -> Result {
    for agent in agents
        .iter()
        .filter(|agent| agent.crawler.is_none() && !agent.is_user_agent)
    {
        let written = agent.written;
        if !registry.has_token(written)
            && rules.groups_for(written.as_bytes()).0 != GroupMatch::Named
            && let Some(meant) = meant_tokens_help(written, registry).or_else(|| {
                nearest_word(written, registry.tokens()).map(|near| format!("did you mean {near}?"))
            })
        {
            fail!(
                Usage,
                "no known crawler is called \"{written}\" in robots.txt; {meant} (--literal tests this name as it is)"
            );
        }
    }
    Ok(())
}

/// Parses all `--agent` flags, the same crawler once. `named` are the tokens of the file that the registry does not know.
fn parse_agents<'a>(
    arguments: &'a Arguments,
    registry: &'a Registry,
    named: &'a SiteMarkers,
) -> Result<Vec<TestedAgent<'a>>> {
    let mut agents: Vec<TestedAgent<'a>> = Vec::new();
    for written in &arguments.agents {
        if agents.iter().any(|known| known.written == written) {
            continue;
        }
        agents.push(if arguments.literal {
            TestedAgent::from_token(written)
        } else {
            TestedAgent::from_flag(written, registry, named)?
        });
    }
    Ok(agents)
}

/// If the robots.txt comes from a URL, warns about test URLs of other hosts, for which it does not
/// apply (RFC 9309 section 2.3).
fn warn_of_other_hosts(source: &str, urls: &[String]) {
    let Some(own) = url_host(source) else { return };
    let mut others: BTreeSet<String> = urls.iter().filter_map(|url| url_host(url)).collect();
    others.remove(&own);
    for other in others {
        print_message!(
            "warning: this robots.txt is for {own}, not for {other}; the answer is for the same path on {own}. Test with the \
             robots.txt of {other}"
        );
    }
}

/// Prints the verdicts if `source` gave a status and no file. Without `allowed`, everything is denied
/// except for visitors. Fails if a URL is denied.
fn print_status_verdicts(
    arguments: &Arguments,
    urls: &[String],
    status: u16,
    allowed: bool,
) -> Result {
    let markers = SiteMarkers::default();
    let tested_agents = parse_agents(arguments, Registry::builtin(), &markers)?;
    let mut answers = Vec::new();
    for tested_agent in &tested_agents {
        let dialect = arguments.dialect_for(tested_agent);
        let allowed = allowed || (status == 429 && dialect == Dialect::Rfc9309);
        for url in urls {
            answers.push(UrlVerdict::from_status(tested_agent, url, dialect, allowed));
        }
    }
    let meaning = match status {
        429 => {
            "Google's crawlers take that for a closed site (How Google interprets the robots.txt specification), others for a \
             site without rules"
        }
        _ if allowed => "crawlers take that for a site without rules, so everything is allowed",
        _ => "crawlers take that for a closed site, so everything is denied",
    };
    let source = printable_path(&arguments.file);
    let text = format!("{source} answered {status}; {meaning} (RFC 9309 section 2.3.1).");
    arguments.print(answers, |_| super::print_text(text))
}

/// Reads a robots.txt from a path, standard input (`-`) or a URL. Fails if the URL gives only a
/// status. `purpose` is a verb for that message (`check`, `import`).
pub fn read_robots_txt(source: &str, purpose: &str) -> Result<DatedRobotsTxt> {
    require_file(fetch_source(source)?, source, purpose)
}

/// Fails if `source` gave only a status. `purpose` is a verb for that message.
fn require_file(
    fetched: RobotsFetchOutcome,
    source: &str,
    purpose: &str,
) -> Result<DatedRobotsTxt> {
    match fetched {
        File { bytes, location } => Ok(DatedRobotsTxt {
            name: location,
            bytes,
            since: None,
        }),
        Unavailable(status) | Unreachable(status) => {
            fail!(
                Runtime,
                "{} answered {status}, so there is no file to {purpose}",
                printable_path(source)
            )
        }
    }
}

/// Like [`read_robots_txt`], but a site without the file gives an empty one (RFC 9309 section
/// 2.3.1.3). Fails if the site asks for a login by its status.
pub fn read_optional_robots_txt(source: &str, purpose: &str) -> Result<DatedRobotsTxt> {
    match fetch_source(source)? {
        Unavailable(status) if !matches!(status, 401 | 403) => Ok(DatedRobotsTxt {
            name: printable_path(source),
            bytes: Vec::new(),
            since: None,
        }),
        fetched => require_file(fetched, source, purpose),
    }
}

/// Like [`read_optional_robots_txt`], but fails for any file that is not a robots.txt, such as a page
/// that asks for a login.
pub fn read_rules(source: &str, purpose: &str) -> Result<DatedRobotsTxt> {
    let mut file = read_optional_robots_txt(source, purpose)?;
    truncate_file(&file.name, &mut file.bytes, MAX_COMPILED_BYTES);
    if let Some(problem) = wrong_kind(&file.name, &RobotsFile::parse(&*file.bytes)) {
        fail!(
            Runtime,
            "{problem}. If the site has no robots.txt, give an empty file"
        );
    }
    Ok(file)
}

/// What is wrong with a file without any line of a robots.txt, such as a log or a page, unless it is
/// empty or has only comments.
fn wrong_kind(name: &str, file: &RobotsFile) -> Option<String> {
    if file.shape() == FileFormat::Text && !file.is_html_page(true) {
        return None;
    }
    let line = file
        .lines()
        .iter()
        .find(|line| !line.text.is_empty() && line.comment.is_none())?;
    let text: String = file.text(&line.text).chars().take(60).collect();
    Some(format!(
        "{name} is not a robots.txt; it begins with \"{text}\""
    ))
}

/// Reads a file, standard input (`-`), or an http(s) URL, which may give only a status. Fails for a
/// policy.
fn fetch_source(source: &str) -> Result<RobotsFetchOutcome> {
    if strip_http_scheme(source).is_some() {
        return Ok(fetch_robots(source)?);
    }
    if source.ends_with(".yaml") || source.ends_with(".yml") {
        fail!(
            Usage,
            "{} is a policy, not a robots.txt; audit --policies, explain and diff read policies",
            printable_path(source)
        );
    }
    let (name, bytes) = if source == "-" {
        let bytes = read_up_to(io::stdin().lock(), MAX_FILE_BYTES);
        ("standard input", bytes)
    } else {
        (source, read_argument(source.as_ref(), MAX_FILE_BYTES))
    };
    Ok(File {
        location: printable_path(name),
        bytes: bytes.map_err(file_failure("read", name.as_ref()))?,
    })
}
