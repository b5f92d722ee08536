//! [`UrlVerdict`]: the result of the command `tester` for one URL: whether the crawler may fetch
//! it, the group of robots.txt that applies, and the deciding line. If RFC
//! 9309 and Google's parser disagree about the URL, the result has the verdict of each.

use super::tested_agent::TestedAgent;
use crate::crawlers::Purpose;
use crate::numbers::{plural_thousands, thousands};
use crate::printable::{clip, printable};
use crate::robots::{Dialect, DialectRules, GroupMatch, RobotsFile, RobotsLine, escape_url};
use GroupMatch::*;
use askama::Template;
use serde::Serialize;
use std::io::{self, Write};

/// Characters of a line that are shown.
const MAX_SHOWN_CHARS: usize = 160;

/// The verdict on one URL for one crawler.
#[derive(Serialize)]
pub struct UrlVerdict<'a> {
    pub agent: &'a str,
    /// The id of the crawler in the registry.
    crawler: Option<&'a str>,
    url: &'a str,
    dialect: &'static str,
    /// Whether it may be fetched.
    pub allowed: bool,
    /// The number of the line that decides; null when none does.
    line: Option<usize>,
    /// The line itself.
    rule: Option<String>,
    /// The misspelt line on which the verdict rests: a User-agent line, or the one that decides. Google
    /// reads it, other crawlers may ignore it.
    misspelt_line: Option<usize>,
    /// `named`, `star`, `nothing` when no group is for the crawler, `not_bound` when its operator
    /// says that `*` does not bind it, or `person`.
    group: &'static str,
    /// The token of the group; null if no group names the crawler.
    token: Option<&'a str>,
    /// The User-agent lines that bind the crawler.
    group_lines: Vec<usize>,
    /// The verdict of the other dialect, if it differs.
    differs: Option<OtherVerdict>,
    #[serde(skip)]
    tested_agent: &'a TestedAgent<'a>,
}

/// The verdict of the other dialect.
#[derive(Serialize)]
struct OtherVerdict {
    dialect: &'static str,
    allowed: bool,
    line: Option<usize>,
}

impl<'a> UrlVerdict<'a> {
    /// The verdict of a file in `dialect`. `readings` has the file in both dialects. `differs` is set
    /// only for another verdict, not for another line. The URL is judged as the crawler would send it.
    pub fn from_file(
        file: &RobotsFile,
        readings: &[(Dialect, DialectRules); 2],
        dialect: Dialect,
        tested_agent: &'a TestedAgent<'a>,
        url: &'a str,
    ) -> UrlVerdict<'a> {
        let mut verdict = UrlVerdict::from_status(tested_agent, url, dialect, true);
        let sent = escape_url(url);
        for (other, reading) in readings {
            let followed = tested_agent.followed_token(reading);
            let (allowed, line) = followed.map_or((true, None), |(token, _)| {
                let found = reading.verdict(token.as_bytes(), sent.as_bytes());
                (found.allowed, found.line)
            });
            if *other != dialect {
                verdict.differs = Some(OtherVerdict {
                    dialect: other.name(),
                    allowed,
                    line,
                });
                continue;
            }
            verdict.allowed = allowed;
            verdict.line = line;
            verdict.rule = line
                .and_then(|line| file.line(line))
                .map(|line| printable_line(file, line));
            (verdict.group, verdict.token) = match followed {
                Some((token, Named)) => ("named", Some(token)),
                Some((_, Star)) => ("star", None),
                Some((_, Nothing)) => ("nothing", None),
                None if tested_agent.is_person => ("person", None),
                None => ("not_bound", None),
            };
            verdict.group_lines = followed
                .map(|(token, bound)| group_lines(reading, token, bound))
                .unwrap_or_default();
            let mut lines = verdict.group_lines.iter().copied().chain(line);
            verdict.misspelt_line =
                lines.find(|line| file.line(*line).is_some_and(RobotsLine::is_misspelt));
        }
        verdict.differs = verdict
            .differs
            .filter(|other| other.allowed != verdict.allowed);
        verdict
    }

    /// The verdict for a status in place of a file. Visitors are always allowed.
    pub fn from_status(
        tested_agent: &'a TestedAgent<'a>,
        url: &'a str,
        dialect: Dialect,
        allowed: bool,
    ) -> UrlVerdict<'a> {
        UrlVerdict {
            agent: tested_agent.written,
            crawler: tested_agent.crawler.map(|crawler| crawler.id.as_str()),
            url,
            dialect: dialect.name(),
            allowed: allowed || tested_agent.is_person,
            line: None,
            rule: None,
            misspelt_line: None,
            group: if tested_agent.is_person {
                "person"
            } else {
                "nothing"
            },
            token: None,
            group_lines: Vec::new(),
            differs: None,
            tested_agent,
        }
    }

    /// Writes the verdict as text.
    pub fn write(
        &self,
        out: &mut impl Write,
        name: &str,
        file: &RobotsFile,
        colour: bool,
    ) -> io::Result<()> {
        let text = VerdictText {
            verdict: self,
            name,
            file,
            colour,
        };
        writeln!(out, "{text}")
    }
}

/// Verdicts as CSV, a row for each.
#[derive(Template)]
#[template(path = "url_verdicts.csv", escape = "none")]
pub struct VerdictsCsv<'a> {
    pub verdicts: &'a [UrlVerdict<'a>],
}

/// Writes those of the verdicts that are for a crawler: one line for each URL, the denied ones first,
/// and how many of all `urls` are denied.
pub fn write_short(
    tested_agent: &TestedAgent<'_>,
    verdicts: &mut [UrlVerdict<'_>],
    name: &str,
    urls: usize,
    out: &mut impl Write,
) -> io::Result<()> {
    let agent = printable_excerpt(tested_agent.display_name());
    let mut denied = 0_usize;
    verdicts.sort_by_key(|verdict| verdict.allowed);
    let verdicts = verdicts.iter();
    for verdict in verdicts.filter(|verdict| verdict.agent == tested_agent.written) {
        denied += usize::from(!verdict.allowed);
        let access = allow_or_deny(verdict.allowed);
        write!(out, "{access} {agent} {}", printable_excerpt(verdict.url))?;
        if let (Some(line), Some(rule)) = (verdict.line, &verdict.rule) {
            write!(out, "  by {name}:{line} {rule}")?;
        }
        if let Some(line) = verdict.misspelt_line {
            write!(out, "  (line {line} is misspelt; it may be ignored)")?;
        }
        writeln!(out)?;
    }
    let urls = plural_thousands(urls, "URL");
    writeln!(out, "Denied to {agent}: {} of {urls}", thousands(denied))
}

/// A verdict as text.
#[derive(Template)]
#[template(path = "url_verdict.txt")]
struct VerdictText<'a> {
    verdict: &'a UrlVerdict<'a>,
    /// The name of the file.
    name: &'a str,
    file: &'a RobotsFile,
    colour: bool,
}

impl VerdictText<'_> {
    /// The number of the User-agent line of the group, and that of the line that decides.
    fn context_lines(&self, line: usize) -> impl Iterator<Item = usize> {
        // The nearest User-agent line above: a token may have several groups.
        let agents = self.verdict.group_lines.iter().copied();
        let agent = agents.filter(|agent| *agent < line).max();
        agent.into_iter().chain([line])
    }
}

fn allow_or_deny(allowed: bool) -> &'static str {
    if allowed { "allow" } else { "deny" }
}

/// The numbers of the User-agent lines that bind the crawler, one for each group that it obeys.
fn group_lines(reading: &DialectRules, token: &str, bound: GroupMatch) -> Vec<usize> {
    let (_, groups) = reading.groups_for(token.as_bytes());
    reading
        .groups_at(groups)
        .filter_map(|group| {
            group.agents.iter().find(|agent| match bound {
                Star => agent.star,
                _ => !agent.star && agent.token.eq_ignore_ascii_case(token),
            })
        })
        .map(|agent| agent.line)
        .collect()
}

/// The text of a line, without control characters.
fn printable_line(file: &RobotsFile, line: &RobotsLine) -> String {
    printable_excerpt(&file.text(&line.text))
}

/// The beginning of a text, without control characters.
fn printable_excerpt(text: &str) -> String {
    clip(&printable(text.as_bytes()), MAX_SHOWN_CHARS)
}
