//! [`ImportedGroup`]: one group of a policy that is imported from a robots.txt. User-agent tokens
//! with the same rules share a group.

use super::Importer;
use super::import_note::ImportNote;
use super::signals::{ImportedSignals, LineImportResult};
use super::yaml::one_line;
use crate::policy::decode::{MAX_PATTERN, is_token};
use crate::robots::RobotsKey;
use RobotsKey::*;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// A group of the policy: tokens with the same rules.
#[derive(Default)]
pub struct ImportedGroup {
    pub agents: Vec<String>,
    pub rules: Vec<ImportedRule>,
    pub crawl_delay: Option<String>,
    pub signals: ImportedSignals,
    /// Its User-agent lines, whose comments are written above it.
    pub agent_lines: Vec<usize>,
    /// Parts of its lines that a policy cannot express, with the numbers of the lines.
    pub left_out: Vec<(usize, String)>,
}

/// A rule of an imported group.
pub struct ImportedRule {
    pub allow: bool,
    /// Its normal form.
    pub pattern: String,
    /// Its text in the policy: as it was written, or the normal form where that is not valid there.
    pub text: String,
    pub line: usize,
}

impl Importer<'_> {
    /// Makes the groups of the policy, in the order in which the file names their tokens. Groups
    /// for invalid tokens are left out.
    pub fn groups(&self) -> Vec<ImportedGroup> {
        let mut drafts: Vec<ImportedGroup> = Vec::new();
        // A file of 500 KiB may have 17,000 groups: those with the same rules are found by the rules.
        let mut places: BTreeMap<BTreeSet<_>, Vec<usize>> = BTreeMap::new();
        for agent in self.reading.first_agent_lines() {
            let token = &agent.token;
            if token != "*" && !is_token(token) {
                self.add_note(agent.line, ImportNote::Group(token.clone()));
                continue;
            }
            let draft = self.group_for_token(token);
            let rules = draft
                .rules
                .iter()
                .map(|rule| (rule.allow, rule.pattern.clone()));
            let same_rules = places.entry(rules.collect()).or_default();
            let place = same_rules.iter().copied().find(|place| {
                let other = &drafts[*place];
                other.crawl_delay == draft.crawl_delay && other.signals == draft.signals
            });
            match place {
                Some(place) => {
                    let other = &mut drafts[place];
                    other.agents.extend(draft.agents);
                    other.agent_lines.extend(draft.agent_lines);
                    for left in draft.left_out {
                        if !other.left_out.contains(&left) {
                            other.left_out.push(left);
                        }
                    }
                }
                None => {
                    same_rules.push(drafts.len());
                    drafts.push(draft);
                }
            }
        }
        drafts
    }

    /// Makes the group of a token from all groups of the file that bind it.
    fn group_for_token(&self, token: &str) -> ImportedGroup {
        let (_, groups) = self.reading.groups_for(token.as_bytes());
        let mut draft = ImportedGroup {
            agents: vec![token.to_owned()],
            ..ImportedGroup::default()
        };
        let mut known = HashSet::new();
        for group in self.reading.groups_at(groups) {
            let named = group
                .agents
                .iter()
                .filter(|agent| agent.token.eq_ignore_ascii_case(token));
            draft.agent_lines.extend(named.map(|agent| agent.line));
            for rule in &group.rules {
                let allow = rule.rule.allow;
                let pattern = rule.rule.pattern.as_str();
                let line = rule.line;
                if !pattern.starts_with(['/', '*']) || !known.insert((allow, pattern)) {
                    continue;
                }
                match self.rule_text(line, pattern) {
                    Ok(text) => draft.rules.push(ImportedRule {
                        allow,
                        pattern: pattern.to_owned(),
                        text,
                        line,
                    }),
                    Err(left_out) => self.add_note(line, left_out),
                }
            }
            for &line in &group.other_lines {
                self.add_line(line, &mut draft);
            }
        }
        draft
    }

    /// The text of the rule of a line in the policy: as written, or the normal form `pattern` where
    /// that is not valid. An error if neither is valid.
    fn rule_text(&self, line: usize, pattern: &str) -> Result<String, ImportNote> {
        let text = self
            .file
            .key_value(line)
            .and_then(|record| std::str::from_utf8(self.file.slice(&record.value)).ok())
            .filter(|text| {
                text.starts_with(['/', '*'])
                    && !text.chars().any(char::is_control)
                    && text.len() <= MAX_PATTERN
            })
            .unwrap_or(pattern);
        if text.len() > MAX_PATTERN {
            return Err(ImportNote::PathTooLong(text.len()));
        }
        Ok(text.to_owned())
    }

    /// Adds a line that is no rule: Crawl-delay, Content-Signal or Content-Usage. What a policy
    /// cannot express becomes a note and a comment of the group. Licences are for the whole file,
    /// and written elsewhere.
    fn add_line(&self, number: usize, draft: &mut ImportedGroup) {
        let Some(record) = self.file.key_value(number) else {
            return;
        };
        let value = self.file.text(&record.value);
        if record.key == License {
            return;
        }
        let text = one_line(&self.file.text(&record.whole()));
        if record.key == CrawlDelay {
            match format_crawl_delay(&value) {
                Some(delay) if *draft.crawl_delay.get_or_insert_with(|| delay.clone()) == delay => {
                }
                _ => self.add_note(number, ImportNote::UnknownLine(text)),
            }
            return;
        }
        let added = match record.key {
            ContentSignal => draft.signals.add_signal(&value),
            ContentUsage => draft.signals.add_usage(&value),
            _ => LineImportResult::all_left_out(&value),
        };
        if added.left_out.is_empty() {
            return;
        }
        if !added.is_carried {
            self.add_note(number, ImportNote::UnknownLine(text.clone()));
            draft.left_out.push((number, text));
            return;
        }
        let parts: Vec<String> = added.left_out.iter().map(|part| one_line(part)).collect();
        let name = one_line(&self.file.text(&record.name));
        draft
            .left_out
            .push((number, format!("{name}: {}", parts.join(", "))));
        for part in parts {
            self.add_note(
                number,
                ImportNote::SignalPart {
                    part,
                    line: text.clone(),
                },
            );
        }
    }
}

/// A Crawl-delay as a duration of the policy: `10s` or `1500ms`. `None` if a policy cannot express
/// it.
fn format_crawl_delay(value: &str) -> Option<String> {
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
