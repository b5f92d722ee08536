//! The command `crawlers`: shows the registry (the table of known crawlers), one crawler of the
//! registry, or the crawler that a `User-Agent` claims to be. [`identify_lines`] does the latter
//! for each line of standard input. `--verify` and `--update` are in `crawler_proof`.

use super::{Failure, Result, control, crawler_proof, print_result, read_line};
use crate::crawlers::{
    Claim, Crawler, CrawlerIndex, Purpose, Registry, RobotsObedience, self_given_name,
};
use crate::printable::{OutputStyle, SanitizingWriter, join, printable};
use crate::robots::Dialect;
use askama::Template;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::Serialize;
use std::io::{self, BufWriter, Write};
use std::net::IpAddr;

/// Longer lines of standard input are cut. Only 4,096 bytes of a user agent count.
const MAX_LINE: u64 = 16 * 1024;

/// List the known crawlers, show one, or identify a user agent or address
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  crawlgate crawlers --purpose training
  crawlgate crawlers GPTBot
  crawlgate crawlers --identify 'Mozilla/5.0 (compatible; GPTBot/1.2)'
  crawlgate crawlers --verify 66.249.66.1 --as Googlebot

--verify uses the published networks and reverse DNS, or what identity allows in the settings file of --config.

Exit codes: 0 fine, 1 not verified, no such crawler, or a list could not be fetched, 2 wrong usage, 3 failed.")]
pub struct Arguments {
    /// The id, name or token of a crawler
    #[arg(conflicts_with_all = ["identify", "purpose"])]
    name: Option<String>,
    /// Show which crawler a user agent claims to be; - reads user agents from standard input
    #[arg(
        long,
        value_name = "UA",
        conflicts_with = "purpose",
        allow_hyphen_values = true
    )]
    identify: Option<String>,
    /// Only crawlers of this purpose
    #[arg(long, value_parser = purpose_parser())]
    purpose: Option<Purpose>,
    /// Check whether this address belongs to the crawler in --as, and show each step
    #[arg(long, value_name = "ADDRESS", requires = "as_crawler", conflicts_with_all = ["name", "identify", "purpose"])]
    verify: Option<IpAddr>,
    /// The crawler for --verify, by id, name or token
    #[arg(
        long = "as",
        id = "as_crawler",
        value_name = "TOKEN",
        requires = "verify"
    )]
    claimed: Option<String>,
    /// Make the running crawlgate fetch the published networks of crawlers now
    #[arg(long, conflicts_with_all = ["name", "identify", "purpose", "verify"])]
    update: bool,
    #[command(flatten)]
    control: control::ControlFlag,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Parses a purpose by name. Help and shell completions list the names.
fn purpose_parser() -> impl TypedValueParser<Value = Purpose> {
    PossibleValuesParser::new(Purpose::ALL.map(Purpose::name))
        .try_map(|name| Purpose::from_name(&name).ok_or("there is no such purpose"))
}

/// Updates the lists, verifies an address, identifies user agents, shows one crawler, or lists the
/// crawlers, depending on the flags.
pub fn run(arguments: &Arguments) -> Result {
    let registry = Registry::builtin();
    if arguments.update {
        return crawler_proof::update_lists(&arguments.control, arguments.json);
    }
    if let (Some(address), Some(name)) = (arguments.verify, &arguments.claimed) {
        let crawler = find_crawler(registry, name)?;
        let identity = crawler_proof::identity_settings(&arguments.control.config)?;
        return crawler_proof::verify_address(
            registry,
            crawler,
            address.to_canonical(),
            &identity,
            arguments.json,
        );
    }
    if arguments.identify.as_deref() == Some("-") {
        return identify_lines(registry, arguments.json);
    }
    if let Some(user_agent) = &arguments.identify {
        return identify(registry, user_agent, arguments.json);
    }
    if let Some(name) = &arguments.name {
        let crawler = registry.get(find_crawler(registry, name)?);
        return print_result(arguments.json, crawler, CrawlerText { crawler });
    }
    let listed: Vec<&Crawler> = registry
        .crawlers()
        .iter()
        .filter(|crawler| {
            arguments
                .purpose
                .is_none_or(|purpose| crawler.purpose == purpose)
        })
        .collect();
    print_result(arguments.json, &listed, crawler_table(&listed))
}

/// The crawler with this id, name or token. Fails with the nearest known name.
fn find_crawler(registry: &Registry, name: &str) -> Result<CrawlerIndex> {
    registry.find(name).ok_or_else(|| {
        let known = registry
            .crawlers()
            .iter()
            .flat_map(|crawler| [crawler.id.as_str(), crawler.name.as_str()]);
        let near = crate::yaml::nearest_word(name, known);
        let hint = near
            .map(|near| format!("; did you mean {near}?"))
            .unwrap_or_default();
        Failure::FindingsMessage(format!("no known crawler is called \"{name}\"{hint}"))
    })
}

/// The claim in a word, and the kind of client for a claim without a crawler of the registry: `bot`,
/// `tool` or `person`.
fn claim_name_and_kind(claim: Claim) -> (&'static str, &'static str) {
    match claim {
        Claim::Known(_) => ("known", "bot"),
        Claim::UnknownBot | Claim::PolicyToken(_) => ("other", "bot"),
        Claim::Tool => ("tool", "tool"),
        Claim::Visitor => ("visitor", "person"),
    }
}

/// The crawler of the registry that is claimed.
fn claimed_crawler(registry: &Registry, claim: Claim) -> Option<&Crawler> {
    match claim {
        Claim::Known(index) => Some(registry.get(index)),
        _ => None,
    }
}

#[derive(Serialize)]
struct IdentifiedUserAgent<'a> {
    claim: &'static str,
    why: &'static str,
    crawler: Option<&'a Crawler>,
}

/// Prints the claim of one user agent: the facts about a known crawler, else a sentence with the
/// reason.
fn identify(registry: &Registry, user_agent: &str, json: bool) -> Result {
    let (claim, why) = registry.identify_with_reason(user_agent.as_bytes());
    let crawler = claimed_crawler(registry, claim);
    let identified = IdentifiedUserAgent {
        claim: claim_name_and_kind(claim).0,
        why: why.description(),
        crawler,
    };
    let why = identified.why;
    let text = match (claim, crawler) {
        (_, Some(crawler)) => CrawlerText { crawler }.to_string(),
        (Claim::Visitor, None) => format!("visitor: a person's browser or app; {why}"),
        (Claim::Tool, None) => format!(
            "tool: a program that does not call itself a bot; {why}; judged only where a policy names it, or tools as a \
             purpose"
        ),
        (_, None) => format!("other: an unknown bot; {why}"),
    };
    print_result(json, &identified, text)
}

/// Crawlers in columns: the id, the first token, the purpose and the operator.
fn crawler_table(crawlers: &[&Crawler]) -> String {
    let mut rows = vec![["ID", "TOKEN", "PURPOSE", "OPERATOR"]];
    for crawler in crawlers {
        let token = crawler.tokens.first().map_or("-", String::as_str);
        rows.push([
            &crawler.id,
            token,
            crawler.purpose.name(),
            &crawler.operator,
        ]);
    }
    let [a, b, c] = [0, 1, 2].map(|column| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    });
    let lines = rows.into_iter().map(|[id, token, purpose, operator]| {
        format!("{id:<a$}  {token:<b$}  {purpose:<c$}  {operator}")
    });
    join(lines, "\n")
}

/// The facts about a crawler, as text.
#[derive(Template)]
#[template(path = "crawler.txt")]
struct CrawlerText<'a> {
    crawler: &'a Crawler,
}

/// The result for one line.
#[derive(Serialize)]
struct IdentifiedLine<'a> {
    user_agent: &'a str,
    claim: &'static str,
    /// The id of a crawler of the registry.
    crawler: Option<&'a str>,
    /// The purpose of a crawler of the registry; or `bot`, `tool`, `person`.
    kind: &'static str,
    why: &'a str,
    calls_itself: Option<&'a str>,
}

/// Prints one line for each line of standard input: the crawler's id or the claim in a word, the
/// kind, the reason and the user agent, separated by tabs; or a JSON object.
fn identify_lines(registry: &Registry, json: bool) -> Result {
    let mut input = io::stdin().lock();
    let style = if json {
        OutputStyle::Json
    } else {
        OutputStyle::Text { colours: false }
    };
    let mut out = SanitizingWriter::new(
        BufWriter::with_capacity(1 << 16, io::stdout().lock()),
        style,
    );
    let mut line = Vec::new();
    while read_line(&mut input, &mut line, MAX_LINE)?.is_some() {
        let (claim, reason) = registry.identify_with_reason(&line);
        let crawler = claimed_crawler(registry, claim);
        let (claimed, kind) = claim_name_and_kind(claim);
        let (word, kind) = crawler.map_or((claimed, kind), |crawler| {
            (crawler.id.as_str(), crawler.purpose.name())
        });
        let named = crawler
            .and_then(|crawler| matching_marker(crawler, &line))
            .map(|marker| format!("it names {marker}"));
        let why = named.as_deref().unwrap_or(reason.description());
        if json {
            let named_by = matches!(claim, Claim::UnknownBot | Claim::Tool)
                .then(|| self_given_name(&line))
                .flatten();
            let identified = IdentifiedLine {
                user_agent: &String::from_utf8_lossy(&line),
                claim: claimed,
                crawler: crawler.map(|crawler| crawler.id.as_str()),
                kind,
                why,
                calls_itself: named_by,
            };
            serde_json::to_writer(&mut out, &identified)?;
            writeln!(out)?;
        } else {
            writeln!(out, "{word}\t{kind}\t{why}\t{}", printable(&line))?;
        }
    }
    Ok(out.flush()?)
}

/// The longest marker of a crawler that a user agent contains, in any case. The signs `=` and `^` in
/// front of markers are ignored.
fn matching_marker<'a>(crawler: &'a Crawler, user_agent: &[u8]) -> Option<&'a str> {
    crawler
        .markers
        .iter()
        .map(|marker| marker.trim_start_matches(['=', '^']))
        .filter(|marker| {
            let mut parts = user_agent.windows(marker.len());
            parts.any(|part| part.eq_ignore_ascii_case(marker.as_bytes()))
        })
        .max_by_key(|marker| marker.len())
}

#[cfg(test)]
mod tests {
    use super::{MAX_LINE, read_line};

    #[test]
    fn long_line_is_cut_and_next_is_whole() {
        let mut text = vec![b'x'; 3 * MAX_LINE as usize];
        text.extend_from_slice(b"\r\nnext\r\n\nlast");
        let (mut input, mut line, mut lines) = (text.as_slice(), Vec::new(), Vec::new());
        while read_line(&mut input, &mut line, MAX_LINE)
            .expect("memory can be read")
            .is_some()
        {
            lines.push((line.len(), line.first().copied()));
        }
        assert_eq!(
            lines,
            [
                (MAX_LINE as usize, Some(b'x')),
                (4, Some(b'n')),
                (0, None),
                (4, Some(b'l'))
            ]
        );
    }
}
