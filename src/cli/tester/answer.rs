//! One answer of the tester: the verdict, the group, the line in its context, and what the other dialect says.

use crate::robots::{Bound, Dialect, File, Reading};
use serde::Serialize;
use std::io::{self, Write};

/// Lines shown before and after the one that decides.
const CONTEXT: usize = 1;
/// Characters of a line that are shown.
const SHOWN: usize = 160;

/// What is said about one URL and one token.
#[derive(Debug, Serialize)]
pub struct Answer<'a> {
    agent: &'a str,
    url: &'a str,
    dialect: &'static str,
    /// Whether it may be fetched.
    pub allowed: bool,
    /// The number of the line that decides; null when none does.
    line: Option<usize>,
    /// The line itself.
    rule: Option<String>,
    /// `named`, `star`, or `nothing` when no group is for the token.
    group: &'static str,
    /// The User-agent lines that bind the token.
    group_lines: Vec<usize>,
    /// What the other dialect says, where it says something else.
    differs: Option<Other>,
}

/// The verdict of the other dialect.
#[derive(Debug, Serialize)]
struct Other {
    dialect: &'static str,
    allowed: bool,
    line: Option<usize>,
}

impl<'a> Answer<'a> {
    /// Asks both readings.
    pub fn new(
        file: &File,
        readings: &[(Dialect, Reading); 2],
        dialect: Dialect,
        agent: &'a str,
        url: &'a str,
    ) -> Answer<'a> {
        let verdict_of = |reading: &Reading| reading.verdict(agent.as_bytes(), url.as_bytes());
        let (mut differs, mut own) = (None, None);
        for (other, reading) in readings {
            match *other == dialect {
                true => own = Some((verdict_of(reading), reading)),
                false => differs = Some((other.name(), verdict_of(reading))),
            }
        }
        let Some((verdict, reading)) = own else { return Answer::by_status(agent, url, dialect, true) };
        let (bound, groups) = reading.binding(agent.as_bytes());
        let binds = |star: bool, token: &str| match bound {
            Bound::Star => star,
            _ => !star && token.eq_ignore_ascii_case(agent),
        };
        let group_lines = groups
            .iter()
            .filter_map(|&group| reading.groups().get(group))
            .filter_map(|group| group.agents.iter().find(|agent| binds(agent.star, &agent.token)))
            .map(|agent| agent.line)
            .collect();
        Answer {
            agent,
            url,
            dialect: dialect.name(),
            allowed: verdict.allowed,
            line: verdict.line,
            rule: verdict.line.and_then(|line| file.line(line)).map(|line| shown(file, line)),
            group: match bound {
                Bound::Named => "named",
                Bound::Star => "star",
                Bound::Nothing => "nothing",
            },
            group_lines,
            differs: differs.filter(|(_, other)| other.allowed != verdict.allowed).map(|(dialect, other)| Other {
                dialect,
                allowed: other.allowed,
                line: other.line,
            }),
        }
    }

    /// Where there is no file.
    pub fn by_status(agent: &'a str, url: &'a str, dialect: Dialect, allowed: bool) -> Answer<'a> {
        let (line, rule, group_lines, differs) = (None, None, Vec::new(), None);
        Answer { agent, url, dialect: dialect.name(), allowed, line, rule, group: "nothing", group_lines, differs }
    }

    /// For a person.
    pub fn write(&self, out: &mut impl Write, name: &str, file: &File, colour: bool) -> io::Result<()> {
        let (word, paint) = if self.allowed { ("allow", "32") } else { ("deny", "31") };
        let (on, off) = if colour { (format!("\x1b[1;{paint}m"), "\x1b[0m") } else { (String::new(), "") };
        writeln!(out, "{on}{word}{off} {} {}", printable(self.agent), printable(self.url))?;
        match self.group {
            "named" => writeln!(
                out,
                "  the group for {} decides ({})",
                printable(self.agent),
                places(name, &self.group_lines)
            )?,
            "star" => writeln!(
                out,
                "  no group names {}; the group for * decides ({})",
                printable(self.agent),
                places(name, &self.group_lines)
            )?,
            _ => writeln!(out, "  {name} has no group for {}, nor for *", printable(self.agent))?,
        }
        match self.line {
            Some(line) => context(out, file, &self.group_lines, line)?,
            None if self.group == "nothing" => {}
            None => writeln!(out, "  no rule of the group matches")?,
        }
        if let Some(other) = &self.differs {
            let (verdict, line) = (if other.allowed { "allow" } else { "deny" }, other.line);
            let place = line.map_or("no rule matches".to_owned(), |line| format!("line {line}"));
            writeln!(out, "  {} reads this differently: {verdict} ({place})", spoken(other.dialect))?;
        }
        Ok(())
    }
}

fn spoken(dialect: &str) -> &'static str {
    if dialect == Dialect::Google.name() { "Google's library" } else { "RFC 9309" }
}

fn places(name: &str, lines: &[usize]) -> String {
    let lines: Vec<String> = lines.iter().map(|line| format!("{name}:{line}")).collect();
    lines.join(", ")
}

/// The line with its neighbours, and the agents it is for.
fn context(out: &mut impl Write, file: &File, agents: &[usize], line: usize) -> io::Result<()> {
    let near = line.saturating_sub(CONTEXT).max(1)..=line + CONTEXT;
    // The nearest list of agents above: a token may have several groups.
    let agent = agents.iter().copied().filter(|agent| *agent < line).max();
    let numbers: Vec<usize> = agent.into_iter().filter(|agent| !near.contains(agent)).chain(near.clone()).collect();
    let width = numbers.last().map_or(1, |last| last.to_string().len());
    let mut before = None;
    for number in numbers {
        let Some(shown_line) = file.line(number) else { continue };
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
        text.chars().take(SHOWN).map(|c| if c.is_control() || c == '\u{FEFF}' { '\u{FFFD}' } else { c }).collect();
    if text.chars().nth(SHOWN).is_some() {
        out.push_str("...");
    }
    out
}
