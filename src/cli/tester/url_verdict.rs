//! [`UrlVerdict`]: one answer of the tester, that is whether a crawler may fetch a URL, by which
//! group of rules, and the deciding line with the lines around it. Where crawlgate and Google's
//! library read the file differently, the answer also has the other verdict.

use super::asked::Asked;
use crate::crawlers::Purpose;
use crate::robots::{Bound, Dialect, File, Reading};
use askama::Template;
use serde::Serialize;
use std::io::{self, Write};

/// Lines shown before and after the one that decides.
const CONTEXT: usize = 1;
/// Characters of a line that are shown.
const SHOWN: usize = 160;

/// The verdict on one URL for one crawler.
#[derive(Serialize)]
pub struct UrlVerdict<'a> {
    agent: &'a str,
    /// The id of the known crawler that it was taken for.
    crawler: Option<&'a str>,
    url: &'a str,
    dialect: &'static str,
    /// Whether it may be fetched.
    pub allowed: bool,
    /// The number of the line that decides; null when none does.
    line: Option<usize>,
    /// The line itself.
    rule: Option<String>,
    /// `named`, `star`, `nothing` when no group is for the crawler, `not_bound` when its operator
    /// says that `*` does not bind it, or `person`.
    group: &'static str,
    /// The token that the group names; null where no group names the crawler.
    token: Option<&'a str>,
    /// The User-agent lines that bind the crawler.
    group_lines: Vec<usize>,
    /// What the other dialect says, where it says something else.
    differs: Option<Other>,
    #[serde(skip)]
    asked: &'a Asked<'a>,
}

/// The verdict of the other dialect.
#[derive(Serialize)]
struct Other {
    dialect: &'static str,
    allowed: bool,
    line: Option<usize>,
}

impl<'a> UrlVerdict<'a> {
    /// The verdict of a file, read in `dialect`, for a crawler and a URL. `readings` are both
    /// readings of the file. `differs` is set only if the other one gives another verdict, not only
    /// another line.
    pub fn new(
        file: &File,
        readings: &[(Dialect, Reading); 2],
        dialect: Dialect,
        asked: &'a Asked<'a>,
        url: &'a str,
    ) -> UrlVerdict<'a> {
        let mut verdict = UrlVerdict::by_status(asked, url, dialect, true);
        for (other, reading) in readings {
            let followed = asked.followed(reading);
            let (allowed, line) = followed.map_or((true, None), |(token, _)| {
                let found = reading.verdict(token.as_bytes(), url.as_bytes());
                (found.allowed, found.line)
            });
            if *other != dialect {
                verdict.differs = Some(Other {
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
                .map(|line| shown(file, line));
            (verdict.group, verdict.token) = match followed {
                Some((token, Bound::Named)) => ("named", Some(token)),
                Some((_, Bound::Star)) => ("star", None),
                Some((_, Bound::Nothing)) => ("nothing", None),
                None if asked.is_person => ("person", None),
                None => ("not_bound", None),
            };
            verdict.group_lines = followed
                .map(|(token, bound)| group_lines(reading, token, bound))
                .unwrap_or_default();
        }
        verdict.differs = verdict
            .differs
            .filter(|other| other.allowed != verdict.allowed);
        verdict
    }

    /// The verdict where a status stands in place of a file: the same for every URL. People are
    /// always allowed.
    pub fn by_status(
        asked: &'a Asked<'a>,
        url: &'a str,
        dialect: Dialect,
        allowed: bool,
    ) -> UrlVerdict<'a> {
        UrlVerdict {
            agent: asked.written,
            crawler: asked.crawler.map(|crawler| crawler.id.as_str()),
            url,
            dialect: dialect.name(),
            allowed: allowed || asked.is_person,
            line: None,
            rule: None,
            group: if asked.is_person { "person" } else { "nothing" },
            token: None,
            group_lines: Vec::new(),
            differs: None,
            asked,
        }
    }

    /// Writes the verdict for a person.
    pub fn write(
        &self,
        out: &mut impl Write,
        name: &str,
        file: &File,
        colour: bool,
    ) -> io::Result<()> {
        let mut text = VerdictText {
            verdict: self,
            asked: self.asked,
            agent: printable(self.asked.name()),
            name,
            file,
            colour: "",
            colour_end: "",
        };
        if colour {
            text.colour = if self.allowed {
                "\x1b[1;32m"
            } else {
                "\x1b[1;31m"
            };
            text.colour_end = "\x1b[0m";
        }
        writeln!(out, "{text}")
    }
}

/// A verdict for a person.
#[derive(Template)]
#[template(path = "url_verdict.txt")]
struct VerdictText<'a> {
    verdict: &'a UrlVerdict<'a>,
    asked: &'a Asked<'a>,
    agent: String,
    /// The name of the file.
    name: &'a str,
    file: &'a File,
    colour: &'a str,
    colour_end: &'a str,
}

impl VerdictText<'_> {
    /// The User-agent lines of the group, with the name of the file.
    fn places(&self) -> String {
        let lines = self.verdict.group_lines.iter();
        crate::printable::join(lines.map(|line| format!("{}:{line}", self.name)), ", ")
    }

    /// The line with its neighbours, and the User-agent line of its group.
    fn context(&self, line: usize) -> Vec<String> {
        let near = line.saturating_sub(CONTEXT).max(1)..=line + CONTEXT;
        // The nearest list of agents above: a token may have several groups.
        let agents = self.verdict.group_lines.iter().copied();
        let agent = agents.filter(|agent| *agent < line).max();
        let numbers: Vec<usize> = agent
            .into_iter()
            .filter(|agent| !near.contains(agent))
            .chain(near.clone())
            .collect();
        let width = numbers.last().map_or(1, |last| last.to_string().len());
        let mut text = Vec::new();
        let mut before = None;
        for number in numbers {
            let Some(shown_line) = self.file.line(number) else {
                continue;
            };
            if before.is_some_and(|before: usize| before + 1 < number) {
                text.push(format!("  {:>width$} ...", ""));
            }
            let mark = if number == line { '>' } else { ' ' };
            let shown = shown(self.file, shown_line);
            text.push(format!("{mark} {number:>width$} | {shown}"));
            before = Some(number);
        }
        text
    }
}

/// The verdict in a word.
fn word(allowed: bool) -> &'static str {
    if allowed { "allow" } else { "deny" }
}

/// The numbers of the User-agent lines that bind the crawler, one for each group that it obeys.
fn group_lines(reading: &Reading, token: &str, bound: Bound) -> Vec<usize> {
    let (_, groups) = reading.binding(token.as_bytes());
    let mut lines = Vec::new();
    for group in groups
        .iter()
        .filter_map(|&group| reading.groups().get(group))
    {
        let binding = group.agents.iter().find(|agent| match bound {
            Bound::Star => agent.star,
            _ => !agent.star && agent.token.eq_ignore_ascii_case(token),
        });
        lines.extend(binding.map(|agent| agent.line));
    }
    lines
}

/// The text of a line of the file, as a terminal can be shown it (`printable`).
fn shown(file: &File, line: &crate::robots::Line) -> String {
    printable(&file.text(&line.text))
}

/// A text that a terminal can be shown, cut after `SHOWN` characters.
fn printable(text: &str) -> String {
    let mut out: String =
        crate::printable::printable(text.chars().take(SHOWN).collect::<String>().as_bytes());
    if text.chars().nth(SHOWN).is_some() {
        out.push_str("...");
    }
    out
}
