//! The groups of a file, each as a policy writes it: tokens with the same rules together.

use super::content;
use super::left_out::{LeftOut, UnfitToken};
use super::signals::Signals;
use super::yaml::one_line;
use crate::crawlers::{Purpose, Registry, stands_in_browsers};
use crate::policy::agent_names::names_on_one_line;
use crate::policy::decode::{MAX_PATTERN, is_token};
use crate::robots::{File, FileGroup, Key, Reading, Shape};
use std::collections::{BTreeMap, BTreeSet};

/// A group of the policy: tokens with the same rules.
pub struct Draft {
    pub agents: Vec<String>,
    pub rules: Vec<DraftRule>,
    pub crawl_delay: Option<String>,
    pub signals: Signals,
    /// The User-agent lines that the comments above it come from.
    pub agent_lines: Vec<usize>,
    /// What a policy cannot say of the lines of its groups, with their numbers.
    pub left_out: Vec<(usize, String)>,
}

pub struct DraftRule {
    pub allow: bool,
    /// As it is compared.
    pub pattern: String,
    /// As it was written, where that can be.
    pub text: String,
    pub line: usize,
}

impl Draft {
    fn same_rules(&self, other: &Draft) -> bool {
        let set = |draft: &Draft| -> BTreeSet<(bool, String)> {
            draft.rules.iter().map(|rule| (rule.allow, rule.pattern.clone())).collect()
        };
        self.crawl_delay == other.crawl_delay && self.signals == other.signals && set(self) == set(other)
    }

    fn shuts_out(&self) -> bool {
        matches!(self.rules.as_slice(), [rule] if !rule.allow && rule.pattern == "/")
            && self.crawl_delay.is_none()
            && self.signals.is_empty()
    }
}

/// A file on its way, and what is said about it.
pub struct Groups<'a> {
    pub file: &'a File,
    pub reading: &'a Reading,
    pub notes: &'a mut Vec<(usize, LeftOut)>,
}

impl Groups<'_> {
    fn note(&mut self, line: usize, what: LeftOut) {
        self.notes.push((line, what));
    }

    /// The groups of a policy, in the order in which the file names their tokens.
    pub fn drafts(&mut self, registry: &'static Registry) -> Vec<Draft> {
        match self.file.shape() {
            Shape::Text => {}
            Shape::Html => self.note(1, LeftOut::Html),
            Shape::Utf16 => self.note(1, LeftOut::Utf16),
        }
        self.other_agents(registry);
        let mut tokens: Vec<(String, usize)> = Vec::new();
        for agent in self.reading.groups().iter().flat_map(|group| &group.agents) {
            if !tokens.iter().any(|(token, _)| token.eq_ignore_ascii_case(&agent.token)) {
                tokens.push((agent.token.clone(), agent.line));
            }
        }
        let mut drafts: Vec<Draft> = Vec::new();
        for (token, line) in tokens {
            if let Some(why) = unfit(&token, registry) {
                self.note(line, LeftOut::Group { token, why });
                continue;
            }
            let draft = self.draft(&token);
            match drafts.iter_mut().find(|other| other.same_rules(&draft)) {
                Some(other) => {
                    other.agents.extend(draft.agents);
                    other.agent_lines.extend(draft.agent_lines);
                    let new = draft.left_out.into_iter().filter(|left| !other.left_out.contains(left));
                    other.left_out.extend(new.collect::<Vec<_>>());
                }
                None => drafts.push(draft),
            }
        }
        drafts
    }

    fn other_agents(&mut self, registry: &Registry) {
        for agent in self.reading.groups().iter().flat_map(|group| &group.agents) {
            let Some(record) = self.file.line(agent.line).and_then(|line| line.record.as_ref()) else { continue };
            let value = self.file.text(&record.value);
            let Some(names) = names_on_one_line(&value, registry) else { continue };
            let names = names.iter().skip(1).map(|name| one_line(name)).collect();
            self.notes.push((agent.line, LeftOut::OtherAgents { read: agent.token.clone(), names }));
        }
    }

    fn draft(&mut self, token: &str) -> Draft {
        let groups: Vec<FileGroup> = {
            let (_, groups) = self.reading.binding(token.as_bytes());
            groups.iter().filter_map(|&group| self.reading.groups().get(group)).cloned().collect()
        };
        let mut draft = Draft {
            agents: vec![token.to_owned()],
            rules: Vec::new(),
            crawl_delay: None,
            signals: Signals::default(),
            agent_lines: Vec::new(),
            left_out: Vec::new(),
        };
        for group in &groups {
            let named = group.agents.iter().filter(|agent| agent.token.eq_ignore_ascii_case(token));
            draft.agent_lines.extend(named.map(|agent| agent.line));
            for rule in &group.rules {
                let pattern = rule.rule.pattern.as_str();
                let known = |other: &DraftRule| other.allow == rule.rule.allow && other.pattern == pattern;
                if pattern.is_empty() || draft.rules.iter().any(known) {
                    continue;
                }
                match self.written(rule.line, pattern) {
                    Ok(text) => draft.rules.push(DraftRule {
                        allow: rule.rule.allow,
                        pattern: pattern.to_owned(),
                        text,
                        line: rule.line,
                    }),
                    Err(left_out) => self.note(rule.line, left_out),
                }
            }
            for &line in &group.others {
                self.other(line, &mut draft);
            }
        }
        draft
    }

    /// How a rule is written in a policy: as in the file where that says the same.
    fn written(&self, line: usize, pattern: &str) -> Result<String, LeftOut> {
        if !pattern.starts_with(['/', '*']) {
            return Err(LeftOut::MatchesNothing(pattern.to_owned()));
        }
        let record = self.file.line(line).and_then(|line| line.record.as_ref());
        let written = record.and_then(|record| std::str::from_utf8(self.file.octets(&record.value)).ok());
        let text = written.filter(|text| text.starts_with(['/', '*']) && !text.chars().any(char::is_control));
        let text = text.filter(|text| text.len() <= MAX_PATTERN).unwrap_or(pattern);
        if text.len() > MAX_PATTERN {
            return Err(LeftOut::PathTooLong(text.len()));
        }
        Ok(text.to_owned())
    }

    fn other(&mut self, number: usize, draft: &mut Draft) {
        let Some((line, record)) = self.file.line(number).and_then(|line| Some((line, line.record.as_ref()?))) else {
            return;
        };
        let value = self.file.text(&record.value);
        if record.key == Key::CrawlDelay {
            match crawl_delay(&value) {
                Some(delay) if draft.crawl_delay.as_ref().is_none_or(|first| *first == delay) => {
                    draft.crawl_delay = Some(delay);
                }
                Some(_) => self.note(number, LeftOut::SecondCrawlDelay(value.into_owned())),
                None => self.note(number, LeftOut::CrawlDelayOutOfRange(value.into_owned())),
            }
            return;
        }
        if record.key == Key::License {
            return;
        }
        let said = one_line(&self.file.text(&content(line)));
        let added = match record.key {
            Key::ContentSignal => draft.signals.add_signal(&value),
            Key::ContentUsage => draft.signals.add_usage(&value),
            _ => {
                self.note(number, LeftOut::UnknownLine(said.clone()));
                draft.left_out.push((number, said));
                return;
            }
        };
        if added.left_out.is_empty() {
            return;
        }
        let parts: Vec<String> = added.left_out.iter().map(|(part, _)| one_line(part)).collect();
        for (part, (_, why)) in parts.iter().zip(&added.left_out) {
            let (part, line, why) = (part.clone(), said.clone(), *why);
            self.note(
                number,
                match added.is_carried {
                    true => LeftOut::SignalPart { part, line, why },
                    false => LeftOut::SignalLine { line, why },
                },
            );
        }
        let name = one_line(&self.file.text(&record.name));
        draft.left_out.push((number, if added.is_carried { format!("{name}: {}", parts.join(", ")) } else { said }));
    }
}

/// Why no policy can have a token of a file.
fn unfit(token: &str, registry: &'static Registry) -> Option<UnfitToken> {
    if token == "*" {
        None
    } else if !is_token(token) {
        Some(UnfitToken::NoToken)
    } else if stands_in_browsers(token, registry) {
        Some(UnfitToken::StandsInBrowsers)
    } else {
        None
    }
}

pub fn same(one: &DraftRule, other: &DraftRule) -> bool {
    one.allow == other.allow && one.pattern == other.pattern
}

/// Whether a group is that of `*` and more. One rule in common is a coincidence.
pub fn extends(draft: &Draft, star: &Draft) -> bool {
    !std::ptr::eq(draft, star)
        && star.rules.len() > 1
        && draft.rules.len() > star.rules.len()
        && (star.crawl_delay.is_none() || draft.crawl_delay.is_some())
        && draft.signals.stand_beside(&star.signals)
        && star.rules.iter().all(|rule| draft.rules.iter().any(|other| same(rule, other)))
}

/// Takes out the tokens of purposes of which every crawler is shut out whole.
pub fn take_purposes(drafts: &mut Vec<Draft>, registry: &'static Registry) -> BTreeMap<Purpose, Vec<usize>> {
    let mut taken = BTreeMap::new();
    for purpose in Purpose::ALL {
        let crawlers = registry.crawlers().iter().filter(|crawler| crawler.purpose == purpose);
        let tokens: Vec<&String> = crawlers.filter_map(|crawler| crawler.tokens.first()).collect();
        let shut_out = |token: &&String| {
            drafts
                .iter()
                .any(|draft| draft.shuts_out() && draft.agents.iter().any(|agent| agent.eq_ignore_ascii_case(token)))
        };
        if tokens.is_empty() || !tokens.iter().all(shut_out) {
            continue;
        }
        let mut lines = Vec::new();
        for draft in drafts.iter_mut().filter(|draft| draft.shuts_out()) {
            let before = draft.agents.len();
            draft.agents.retain(|agent| !tokens.iter().any(|token| token.eq_ignore_ascii_case(agent)));
            if draft.agents.is_empty() && before > 0 {
                lines.append(&mut draft.agent_lines);
            }
        }
        drafts.retain(|draft| !draft.agents.is_empty());
        taken.insert(purpose, lines);
    }
    taken
}

/// A duration of the policy, above nothing and up to a day.
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
