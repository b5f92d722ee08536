//! [`ImportedSignals`]: what an imported group of robots.txt says about the use of content. The
//! group's lines `Content-Signal` (contentsignals.org) and `Content-Usage`
//! (draft-ietf-aipref-attach-05) become fields of the policy. [`LineImportResult`] says which parts
//! of a line are left out, mostly because a policy cannot express them.

use super::yaml::yaml_scalar;
use crate::policy::decode::MAX_PATTERN;
use crate::policy::model::{SignalCategory, USAGE_CATEGORIES};
use crate::policy::signal_lines::{
    ContentSignalPart, parse_content_signal, parse_content_usage, parse_usage_member, yes_or_no,
};
use crate::printable::join;
use crate::robots::PathPattern;
use std::collections::BTreeMap;

/// The most rules of a group in a policy.
const MAX_USAGE: usize = 1_000;

/// The result of adding a line.
#[derive(Default)]
pub struct LineImportResult {
    /// Whether the policy has any part of the line.
    pub is_carried: bool,
    /// The parts that a policy cannot express, or that contradict an earlier line of the group.
    pub left_out: Vec<String>,
}

impl LineImportResult {
    /// The result for a line of which the policy has nothing.
    pub fn all_left_out(value: &str) -> LineImportResult {
        LineImportResult {
            is_carried: false,
            left_out: vec![value.to_owned()],
        }
    }
}

/// The statements of a group about the use of content.
#[derive(Default, PartialEq)]
pub struct ImportedSignals {
    signal: BTreeMap<SignalCategory, bool>,
    extent: Option<&'static str>,
    usage: Vec<UsageRule>,
}

#[derive(PartialEq)]
struct UsageRule {
    /// As it was written; `None` for the whole site.
    path: Option<String>,
    /// Its parsed form, by which rules are compared.
    pattern: PathPattern,
    values: BTreeMap<String, bool>,
}

/// Parses the members of a dictionary: each category, and whether it is granted. Other members, and
/// parameters, go into `added.left_out`. Of two members with the same category the last counts.
fn parse_categories(members: &[&str], added: &mut LineImportResult) -> BTreeMap<String, bool> {
    let mut values = BTreeMap::new();
    for member in members {
        let (Some((category, word)), parameters) = parse_usage_member(member) else {
            added.left_out.push((*member).to_owned());
            continue;
        };
        values.insert(category.to_owned(), word);
        if !parameters.is_empty() {
            added.left_out.push(format!(";{parameters}"));
        }
    }
    values
}

impl ImportedSignals {
    /// Adds the value of a `Content-Signal` line: `search=yes, ai-train=no, use=reference`.
    pub fn add_signal(&mut self, value: &str) -> LineImportResult {
        let mut added = LineImportResult::default();
        for (part, meaning) in parse_content_signal(value) {
            let is_carried = match meaning {
                Some(ContentSignalPart::Extent(word)) => *self.extent.get_or_insert(word) == word,
                Some(ContentSignalPart::Category(category, value)) => {
                    *self.signal.entry(category).or_insert(value) == value
                }
                None => false,
            };
            if is_carried {
                added.is_carried = true;
            } else {
                added.left_out.push(part.to_owned());
            }
        }
        if !added.is_carried && added.left_out.is_empty() {
            added.left_out.push(value.to_owned());
        }
        added
    }

    /// Adds the value of a `Content-Usage` line: an optional path, and a dictionary of RFC 9651, as
    /// in `/open/ train-ai=y`.
    pub fn add_usage(&mut self, value: &str) -> LineImportResult {
        let (path, members) = parse_content_usage(value);
        let is_path_valid = path.is_none_or(|path| {
            path.len() <= MAX_PATTERN && !path.contains(|c: char| c.is_control() || c == '\u{FFFD}')
        });
        let Some(members) = members.filter(|_| is_path_valid) else {
            return LineImportResult::all_left_out(value);
        };
        let mut added = LineImportResult::default();
        let values = parse_categories(&members, &mut added);
        if values.is_empty() {
            return added;
        }
        let pattern = PathPattern::new(path.unwrap_or("/"));
        let full = self.usage.len() == MAX_USAGE;
        match self.usage.iter_mut().find(|usage| usage.pattern == pattern) {
            Some(usage) => {
                for (category, word) in values {
                    if *usage.values.entry(category.clone()).or_insert(word) == word {
                        added.is_carried = true;
                    } else {
                        let word = if word { "y" } else { "n" };
                        added.left_out.push(format!("{category}={word}"));
                    }
                }
            }
            None if full => return LineImportResult::all_left_out(value),
            None => {
                self.usage.push(UsageRule {
                    path: path.map(str::to_owned),
                    pattern,
                    values,
                });
                added.is_carried = true;
            }
        }
        added
    }

    /// Writes the statements as fields of a group in the policy.
    pub fn write(&self, out: &mut String) {
        let signal = self
            .signal
            .iter()
            .map(|(category, value)| format!("{}: {}", category.name(), yes_or_no(*value)));
        let signal = join(
            signal.chain(self.extent.map(|extent| format!("use: {extent}"))),
            ", ",
        );
        if !signal.is_empty() {
            *out += &format!("      content_signal: {{ {signal} }}\n");
        }
        match self.usage.as_slice() {
            [] => {}
            [usage] => *out += &format!("      content_usage: {}\n", usage.to_yaml()),
            rules => {
                *out += "      content_usage:\n";
                for usage in rules {
                    *out += &format!("        - {}\n", usage.to_yaml());
                }
            }
        }
    }
}

impl UsageRule {
    /// The rule as a YAML map in one line. Categories that the vocabulary does not have are under
    /// `other`.
    fn to_yaml(&self) -> String {
        let path = self
            .path
            .iter()
            .map(|path| format!("paths: {}", yaml_scalar(path)));
        let values = USAGE_CATEGORIES.iter().filter_map(|category| {
            Some(format!(
                "{category}: {}",
                yes_or_no(*self.values.get(*category)?)
            ))
        });
        let other = self
            .values
            .iter()
            .filter(|(category, _)| !USAGE_CATEGORIES.contains(&category.as_str()));
        let other = join(
            other.map(|(category, value)| {
                format!("{}: {}", yaml_scalar(category), yes_or_no(*value))
            }),
            ", ",
        );
        let other = (!other.is_empty()).then(|| format!("other: {{ {other} }}"));
        format!("{{ {} }}", join(path.chain(values).chain(other), ", "))
    }
}
