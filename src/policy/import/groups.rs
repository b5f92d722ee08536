//! [`Draft`]: one group of the policy that an import makes of a robots.txt. User-agent tokens with
//! the same rules share a group. [`take_purposes`] takes out tokens where a whole purpose (such as
//! training) is shut out, so that the policy can name the purpose instead.

use super::Import;
use super::left_out::LeftOut;
use super::signals::{AddedLine, Signals};
use super::yaml::one_line;
use crate::crawlers::{Purpose, Registry};
use crate::policy::agent_names::names_on_one_line;
use crate::policy::decode::{MAX_PATTERN, is_token};
use crate::robots::{FileGroup, Key, Shape};
use std::collections::{BTreeMap, BTreeSet};

/// A group of the policy: tokens with the same rules.
#[derive(Default)]
pub struct Draft {
    pub agents: Vec<String>,
    pub rules: Vec<DraftRule>,
    pub crawl_delay: Option<String>,
    pub signals: Signals,
    /// The User-agent lines that the comments above it come from.
    pub agent_lines: Vec<usize>,
    /// Parts of its lines that a policy cannot say, with the numbers of the lines.
    pub left_out: Vec<(usize, String)>,
}

pub struct DraftRule {
    pub allow: bool,
    /// Its normal form.
    pub pattern: String,
    /// Its text in the policy: as it was written, or the normal form where that text cannot stand
    /// there.
    pub text: String,
    pub line: usize,
}

impl DraftRule {
    /// The key by which rules are compared.
    pub fn key(&self) -> (bool, &str) {
        (self.allow, &self.pattern)
    }
}

impl Draft {
    /// Whether two groups have the same Crawl-delay, signals and rules, whatever the order of the
    /// rules.
    fn same_rules(&self, other: &Draft) -> bool {
        self.crawl_delay == other.crawl_delay
            && self.signals == other.signals
            && self.keys() == other.keys()
    }

    fn keys(&self) -> BTreeSet<(bool, &str)> {
        self.rules.iter().map(DraftRule::key).collect()
    }

    /// Whether it has this rule.
    pub fn has(&self, rule: &DraftRule) -> bool {
        self.rules.iter().any(|other| other.key() == rule.key())
    }

    /// Whether `Disallow: /` is all that the group says.
    fn shuts_out(&self) -> bool {
        matches!(self.rules.as_slice(), [rule] if rule.key() == (false, "/"))
            && self.crawl_delay.is_none()
            && self.signals.is_empty()
    }
}

impl Import<'_> {
    /// The groups of a policy, in the order in which the file names their tokens; tokens with the
    /// same rules share one. Adds notes for a page or UTF-16, further names on a User-agent line,
    /// and tokens that a policy cannot have, whose groups are left out.
    pub fn drafts(&mut self, registry: &'static Registry) -> Vec<Draft> {
        match self.file.shape() {
            Shape::Text => {}
            Shape::Html => self.note(1, LeftOut::Html),
            Shape::Utf16 => self.note(1, LeftOut::Utf16),
        }
        self.other_agents(registry);
        let mut tokens: Vec<(String, usize)> = Vec::new();
        for agent in self.reading.agents() {
            if !tokens
                .iter()
                .any(|(token, _)| token.eq_ignore_ascii_case(&agent.token))
            {
                tokens.push((agent.token.clone(), agent.line));
            }
        }
        let mut drafts: Vec<Draft> = Vec::new();
        for (token, line) in tokens {
            if token != "*" && !is_token(&token) {
                self.note(line, LeftOut::Group(token));
                continue;
            }
            let draft = self.draft(&token);
            match drafts.iter_mut().find(|other| other.same_rules(&draft)) {
                Some(other) => {
                    other.agents.extend(draft.agents);
                    other.agent_lines.extend(draft.agent_lines);
                    let new = draft
                        .left_out
                        .into_iter()
                        .filter(|left| !other.left_out.contains(left));
                    other.left_out.extend(new.collect::<Vec<_>>());
                }
                None => drafts.push(draft),
            }
        }
        drafts
    }

    /// Adds a note for each User-agent line with several names: crawlers read only the first, and
    /// the policy has only that one.
    fn other_agents(&mut self, registry: &Registry) {
        for agent in self.reading.agents() {
            let Some(record) = self.file.record(agent.line) else {
                continue;
            };
            let value = self.file.text(&record.value);
            let Some(names) = names_on_one_line(&value, registry) else {
                continue;
            };
            let names = names.iter().skip(1).map(|name| one_line(name)).collect();
            let read = agent.token.clone();
            self.notes
                .push((agent.line, LeftOut::OtherAgents { read, names }));
        }
    }

    /// Makes the group of a token from all groups of the file that bind it: each rule once, and the
    /// other lines. Rules with an empty pattern are passed over; a rule that the policy cannot have
    /// is left out with a note.
    fn draft(&mut self, token: &str) -> Draft {
        let (_, groups) = self.reading.binding(token.as_bytes());
        let groups: Vec<FileGroup> = self.reading.united(groups).cloned().collect();
        let mut draft = Draft {
            agents: vec![token.to_owned()],
            ..Draft::default()
        };
        for group in &groups {
            let named = group
                .agents
                .iter()
                .filter(|agent| agent.token.eq_ignore_ascii_case(token));
            draft.agent_lines.extend(named.map(|agent| agent.line));
            for rule in &group.rules {
                let allow = rule.rule.allow;
                let pattern = rule.rule.pattern.as_str();
                let line = rule.line;
                if pattern.is_empty()
                    || draft
                        .rules
                        .iter()
                        .any(|known| known.key() == (allow, pattern))
                {
                    continue;
                }
                match self.written(line, pattern) {
                    Ok(text) => draft.rules.push(DraftRule {
                        allow,
                        pattern: pattern.to_owned(),
                        text,
                        line,
                    }),
                    Err(left_out) => self.note(line, left_out),
                }
            }
            for &line in &group.others {
                self.other(line, &mut draft);
            }
        }
        draft
    }

    /// The text of a rule in the policy: as in line `line` of the file, or its normal form
    /// `pattern` where the file's text cannot stand in a policy. An error where `pattern` begins
    /// with neither `/` nor `*`, or both are too long.
    fn written(&self, line: usize, pattern: &str) -> Result<String, LeftOut> {
        if !pattern.starts_with(['/', '*']) {
            return Err(LeftOut::MatchesNothing(pattern.to_owned()));
        }
        let written = self
            .file
            .record(line)
            .and_then(|record| std::str::from_utf8(self.file.octets(&record.value)).ok());
        let text = written
            .filter(|text| text.starts_with(['/', '*']) && !text.chars().any(char::is_control));
        let text = text
            .filter(|text| text.len() <= MAX_PATTERN)
            .unwrap_or(pattern);
        if text.len() > MAX_PATTERN {
            return Err(LeftOut::PathTooLong(text.len()));
        }
        Ok(text.to_owned())
    }

    /// Adds a line of a group that is no rule (`number` is the line's) to its draft: Crawl-delay,
    /// Content-Signal or Content-Usage. What cannot be added becomes a note and a comment of the
    /// group; a Crawl-delay only a note. Licences are for the whole file and are written elsewhere.
    fn other(&mut self, number: usize, draft: &mut Draft) {
        let Some(record) = self.file.record(number) else {
            return;
        };
        let value = self.file.text(&record.value);
        if record.key == Key::CrawlDelay {
            match crawl_delay(&value) {
                Some(delay) if *draft.crawl_delay.get_or_insert_with(|| delay.clone()) == delay => {
                }
                Some(_) => self.note(number, LeftOut::SecondCrawlDelay(value.into_owned())),
                None => self.note(number, LeftOut::CrawlDelayOutOfRange(value.into_owned())),
            }
            return;
        }
        if record.key == Key::License {
            return;
        }
        let said = one_line(&self.file.text(&record.whole()));
        let added = match record.key {
            Key::ContentSignal => draft.signals.add_signal(&value),
            Key::ContentUsage => draft.signals.add_usage(&value),
            _ => AddedLine::nothing_of(&value),
        };
        if added.left_out.is_empty() {
            return;
        }
        if !added.is_carried {
            self.note(number, LeftOut::UnknownLine(said.clone()));
            draft.left_out.push((number, said));
            return;
        }
        let parts: Vec<String> = added.left_out.iter().map(|part| one_line(part)).collect();
        let name = one_line(&self.file.text(&record.name));
        draft
            .left_out
            .push((number, format!("{name}: {}", parts.join(", "))));
        for part in parts {
            let line = said.clone();
            self.note(number, LeftOut::SignalPart { part, line });
        }
    }
}

/// Whether a group may be written with `extends: "*"`: it has all rules of the `*` group and more,
/// and would inherit neither a delay nor signals. A single rule in common is taken for a
/// coincidence.
pub fn extends(draft: &Draft, star: &Draft) -> bool {
    !std::ptr::eq(draft, star)
        && star.rules.len() > 1
        && draft.rules.len() > star.rules.len()
        && (star.crawl_delay.is_none() || draft.crawl_delay.is_some())
        && draft.signals.stand_beside(&star.signals)
        && star.rules.iter().all(|rule| draft.has(rule))
}

/// Takes out of the drafts the tokens of each purpose of which the file closes the whole site to
/// every known crawler that is not retired; drafts without tokens are removed. Returns these
/// purposes, each with the User-agent lines of the drafts that it emptied, whose comments go with
/// it.
pub fn take_purposes(
    drafts: &mut Vec<Draft>,
    registry: &'static Registry,
) -> BTreeMap<Purpose, Vec<usize>> {
    let mut taken = BTreeMap::new();
    for purpose in Purpose::ALL {
        let crawlers = registry
            .crawlers()
            .iter()
            .filter(|crawler| crawler.purpose == purpose && crawler.retired.is_none());
        let tokens: Vec<&String> = crawlers
            .filter_map(|crawler| crawler.tokens.first())
            .collect();
        let are_all_shut_out = tokens.iter().all(|token| {
            let mut agents = drafts
                .iter()
                .filter(|draft| draft.shuts_out())
                .flat_map(|draft| &draft.agents);
            agents.any(|agent| agent.eq_ignore_ascii_case(token))
        });
        if tokens.is_empty() || !are_all_shut_out {
            continue;
        }
        let mut lines = Vec::new();
        for draft in drafts.iter_mut().filter(|draft| draft.shuts_out()) {
            let before = draft.agents.len();
            draft
                .agents
                .retain(|agent| !tokens.iter().any(|token| token.eq_ignore_ascii_case(agent)));
            if draft.agents.is_empty() && before > 0 {
                lines.append(&mut draft.agent_lines);
            }
        }
        drafts.retain(|draft| !draft.agents.is_empty());
        taken.insert(purpose, lines);
    }
    taken
}

/// A Crawl-delay as a duration of the policy: `10s` or `1500ms`. `None` for text that is not a
/// whole number of milliseconds, from one to a day.
fn crawl_delay(value: &str) -> Option<String> {
    let milliseconds = value.parse::<f64>().ok()? * 1_000.0;
    if !(1.0..=86_400_000.0).contains(&milliseconds) || milliseconds.fract() != 0.0 {
        return None;
    }
    let milliseconds = milliseconds as u64;
    Some(match milliseconds % 1_000 {
        0 => format!("{}s", milliseconds / 1_000),
        _ => format!("{milliseconds}ms"),
    })
}
