//! [`UrlVerdict`]: one answer of the tester, that is whether a crawler may fetch a URL, by which
//! group of rules, and the deciding line with the lines around it. Where crawlgate and Google's
//! library read the file differently, the answer also has the other verdict.

use super::asked::Asked;
use crate::crawlers::Purpose;
use crate::robots::{Bound, Dialect, File, Reading};
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
    /// The verdict by both readings of a file.
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

    /// The verdict by a status, where there is no file.
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
        let (word, paint) = if self.allowed {
            ("allow", "32")
        } else {
            ("deny", "31")
        };
        let (on, off) = if colour {
            (format!("\x1b[1;{paint}m"), "\x1b[0m")
        } else {
            (String::new(), "")
        };
        let agent = printable(self.asked.name());
        writeln!(out, "{on}{word}{off} {agent} {}", printable(self.url))?;
        if self.asked.is_person {
            return writeln!(
                out,
                "  this is the user agent of a person's browser or app: no rule is for people"
            );
        }
        if self.asked.is_user_agent {
            let taken_for = match self.asked.crawler {
                // Anybody may run a tool.
                Some(crawler) if crawler.purpose == Purpose::Tool => crawler.name.clone(),
                Some(crawler) => format!("{} of {}", crawler.name, crawler.operator),
                None => format!("a crawler that no list knows, with the token {agent}"),
            };
            writeln!(out, "  the user agent is taken for {taken_for}")?;
        }
        writeln!(out, "  {}", self.group_sentence(name, &agent))?;
        if self.asked.ignores_robots_txt() && self.group == "named" {
            writeln!(out, "  but its operator says that it ignores robots.txt")?;
        }
        match self.line {
            Some(line) => context(out, file, &self.group_lines, line)?,
            None if matches!(self.group, "nothing" | "not_bound") => {}
            None => writeln!(out, "  no rule of the group matches")?,
        }
        if let Some(other) = &self.differs {
            let verdict = if other.allowed { "allow" } else { "deny" };
            let place = other
                .line
                .map_or("no rule matches".to_owned(), |line| format!("line {line}"));
            writeln!(
                out,
                "  {} reads this differently: {verdict} ({place})",
                spoken(other.dialect)
            )?;
        }
        Ok(())
    }

    /// Which group decides, and why that one.
    fn group_sentence(&self, name: &str, agent: &str) -> String {
        let lines = places(name, &self.group_lines);
        match (self.group, self.token) {
            ("named", Some(token)) if !self.asked.is_own(token) => {
                format!(
                    "{agent} has no group of its own and follows {}'s ({lines})",
                    printable(token)
                )
            }
            ("named", token) => format!(
                "the group for {} decides ({lines})",
                printable(token.unwrap_or(agent))
            ),
            ("star", _) => format!("no group names {agent}; the group for * decides ({lines})"),
            ("not_bound", _) if self.asked.ignores_robots_txt() => {
                format!("{agent} ignores robots.txt, as its operator says")
            }
            ("not_bound", _) => {
                format!(
                    "no group names {agent}, and its operator says that it does not obey the group for *"
                )
            }
            _ => format!("{name} has no group for {agent}, nor for *"),
        }
    }
}

/// The User-agent lines of the group.
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

fn spoken(dialect: &str) -> &'static str {
    if dialect == Dialect::Google.name() {
        "Google's library"
    } else {
        "RFC 9309"
    }
}

fn places(name: &str, lines: &[usize]) -> String {
    crate::printable::join(lines.iter().map(|line| format!("{name}:{line}")), ", ")
}

/// Writes the line with its neighbours, and the User-agent line of its group.
fn context(out: &mut impl Write, file: &File, agents: &[usize], line: usize) -> io::Result<()> {
    let near = line.saturating_sub(CONTEXT).max(1)..=line + CONTEXT;
    // The nearest list of agents above: a token may have several groups.
    let agent = agents.iter().copied().filter(|agent| *agent < line).max();
    let numbers: Vec<usize> = agent
        .into_iter()
        .filter(|agent| !near.contains(agent))
        .chain(near.clone())
        .collect();
    let width = numbers.last().map_or(1, |last| last.to_string().len());
    let mut before = None;
    for number in numbers {
        let Some(shown_line) = file.line(number) else {
            continue;
        };
        if before.is_some_and(|before: usize| before + 1 < number) {
            writeln!(out, "  {:>width$} ...", "")?;
        }
        let mark = if number == line { '>' } else { ' ' };
        writeln!(out, "{mark} {number:>width$} | {}", shown(file, shown_line))?;
        before = Some(number);
    }
    Ok(())
}

fn shown(file: &File, line: &crate::robots::Line) -> String {
    printable(&file.text(&line.text))
}

/// What a terminal can be shown, cut to a length that fits it.
fn printable(text: &str) -> String {
    let mut out: String =
        crate::printable::printable(text.chars().take(SHOWN).collect::<String>().as_bytes());
    if text.chars().nth(SHOWN).is_some() {
        out.push_str("...");
    }
    out
}
