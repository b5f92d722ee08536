//! The command `crawlers`: shows the registry (the table of known crawlers), one crawler of the
//! registry, or the crawler that a `User-Agent` claims to be. `--verify` and `--update` are in
//! `crawler_proof`.

use super::{Failure, Result, control, crawler_proof, print_result};
use crate::crawlers::{Claim, Crawler, CrawlerIndex, Purpose, Registry, RobotsObedience};
use crate::printable::join;
use crate::robots::Dialect;
use Claim::*;
use askama::Template;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::Serialize;
use std::net::IpAddr;

/// List the known crawlers, show one, or identify a user agent or address
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  crawlgate crawlers --purpose training
  crawlgate crawlers GPTBot
  crawlgate crawlers --identify 'Mozilla/5.0 (compatible; GPTBot/1.2)'
  crawlgate crawlers --verify 66.249.66.1 --as Googlebot

--verify uses the published networks and reverse DNS; with --config, only what identity allows there.

Exit codes: 0 fine, 1 not verified, no such crawler, or a list could not be fetched, 2 wrong usage, 3 failed.")]
pub struct Arguments {
    /// The id, name or token of a crawler
    #[arg(conflicts_with_all = ["identify", "purpose"])]
    name: Option<String>,
    /// Show which crawler a user agent claims to be
    #[arg(
        long,
        alias = "user-agent",
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
        .try_map(|name| name.parse::<Purpose>())
}

/// Updates the lists, verifies an address, identifies a user agent, shows one crawler, or lists the
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
            .flat_map(|crawler| [&*crawler.id, &crawler.name]);
        let hint = super::did_you_mean(name, known);
        Failure::FindingsMessage(format!("no known crawler is called \"{name}\"{hint}"))
    })
}

#[derive(Serialize)]
struct ClaimJson<'a> {
    claim: &'static str,
    crawler: Option<&'a Crawler>,
}

/// Prints the claim of one user agent: the facts about a known crawler, else a sentence.
fn identify(registry: &Registry, user_agent: &str, json: bool) -> Result {
    if user_agent == "-" {
        fail!(Usage, "--identify takes a user agent, not \"-\"");
    }
    let (claim, sentence) = match registry.identify(user_agent.as_bytes()) {
        Known(index) => {
            let crawler = registry.get(index);
            let claim = ClaimJson {
                claim: "known",
                crawler: Some(crawler),
            };
            return print_result(json, &claim, CrawlerText { crawler });
        }
        UnknownBot | PolicyToken(_) => ("other", "other: an unknown bot"),
        Tool => (
            "tool",
            "tool: a program that does not call itself a bot; judged only where a policy names it, or tools as a \
             purpose",
        ),
        Claim::Visitor => ("visitor", "visitor: a person's browser or app"),
    };
    let claim = ClaimJson {
        claim,
        crawler: None,
    };
    print_result(json, &claim, sentence)
}

/// Crawlers in columns: the id, the first token, the purpose and the operator.
fn crawler_table(crawlers: &[&Crawler]) -> String {
    let mut rows = vec![["ID", "TOKEN", "PURPOSE", "OPERATOR"].map(str::to_owned)];
    for crawler in crawlers {
        let token = crawler.tokens.first().map_or("-", String::as_str);
        let retired = crawler
            .retired
            .as_ref()
            .map(|since| format!(" (token retired {since})"))
            .unwrap_or_default();
        rows.push([
            crawler.id.clone(),
            token.to_owned(),
            crawler.purpose.name().to_owned(),
            crawler.operator.clone() + &retired,
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
