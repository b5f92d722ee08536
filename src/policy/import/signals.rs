//! [`Signals`]: what a group of an imported robots.txt says about the use of content, read from its
//! lines `Content-Signal` (contentsignals.org) and `Content-Usage` (draft-ietf-aipref-attach-05).
//! [`AddedLine`] is the result of reading one such line: whether the policy has any of it, and the
//! parts that a policy cannot say.

use super::yaml::scalar;
use crate::policy::decode::MAX_PATTERN;
use crate::policy::model::{SignalCategory, USAGE_CATEGORIES};
use crate::policy::signal_lines::{
    SignalPart, UsageMember, signal_parts, usage_line, usage_member, yes_or_no,
};
use crate::printable::join;
use crate::robots::Pattern;
use std::collections::BTreeMap;

/// The most rules that a policy takes in a group.
const MAX_USAGE: usize = 1_000;

/// The result of adding a line.
#[derive(Default)]
pub struct AddedLine {
    /// Whether the policy has any part of the line.
    pub is_carried: bool,
    /// The parts that a policy cannot say, or of which the group says the opposite already.
    pub left_out: Vec<String>,
}

impl AddedLine {
    /// The result for a line of which the policy has nothing.
    pub fn nothing_of(value: &str) -> AddedLine {
        AddedLine {
            is_carried: false,
            left_out: vec![value.to_owned()],
        }
    }
}

/// The statements of a group about the use of content.
#[derive(Default, PartialEq)]
pub struct Signals {
    signal: BTreeMap<SignalCategory, bool>,
    extent: Option<&'static str>,
    usage: Vec<Usage>,
}

#[derive(PartialEq)]
struct Usage {
    /// As it was written; none for the whole site.
    path: Option<String>,
    /// As it is compared.
    pattern: Pattern,
    said: BTreeMap<String, bool>,
}

/// The categories that a policy can name, of the members of a dictionary, with their values: `true`
/// for `y`. The other members, and parameters, go into `added.left_out`. Of two members with the
/// same category the last counts.
fn categories(members: &[&str], added: &mut AddedLine) -> BTreeMap<String, bool> {
    let mut said = BTreeMap::new();
    for member in members {
        let UsageMember {
            said: Some((category, word)),
            parameters,
        } = usage_member(member)
        else {
            added.left_out.push((*member).to_owned());
            continue;
        };
        said.insert(category.to_owned(), word);
        if !parameters.is_empty() {
            added.left_out.push(format!(";{parameters}"));
        }
    }
    said
}

impl Signals {
    /// Whether the group says nothing.
    pub fn is_empty(&self) -> bool {
        self == &Signals::default()
    }

    fn has_content_signal(&self) -> bool {
        !self.signal.is_empty() || self.extent.is_some()
    }

    /// Whether a group with these statements can extend one with `other` and inherit none of them.
    pub fn stand_beside(&self, other: &Signals) -> bool {
        (self.has_content_signal() || !other.has_content_signal())
            && other
                .usage
                .iter()
                .all(|theirs| self.usage.iter().any(|ours| ours.pattern == theirs.pattern))
    }

    /// Adds the value of a `Content-Signal` line: `search=yes, ai-train=no, use=reference`. A part
    /// that no policy can say, or of which the group says the opposite already, is left out; so is
    /// the whole value if it has no parts.
    pub fn add_signal(&mut self, value: &str) -> AddedLine {
        let mut added = AddedLine::default();
        for (part, said) in signal_parts(value) {
            let is_said = match said {
                Some(SignalPart::Extent(word)) => *self.extent.get_or_insert(word) == word,
                Some(SignalPart::Category(category, said)) => {
                    *self.signal.entry(category).or_insert(said) == said
                }
                None => false,
            };
            if is_said {
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

    /// Adds the value of a `Content-Usage` line: a path or none, and a dictionary of RFC 9651,
    /// `/open/ train-ai=y`. Categories of which the group says the opposite for this path already
    /// are left out. The whole value is left out where it is no dictionary, the path cannot stand
    /// in a policy, or the group has 1,000 paths.
    pub fn add_usage(&mut self, value: &str) -> AddedLine {
        let (path, members) = usage_line(value);
        let is_path_valid = path.is_none_or(|path| {
            path.len() <= MAX_PATTERN && !path.contains(|c: char| c.is_control() || c == '\u{FFFD}')
        });
        let Some(members) = members.filter(|_| is_path_valid) else {
            return AddedLine::nothing_of(value);
        };
        let mut added = AddedLine::default();
        let said = categories(&members, &mut added);
        if said.is_empty() {
            return added;
        }
        let pattern = Pattern::new(path.unwrap_or("/"));
        let full = self.usage.len() == MAX_USAGE;
        match self.usage.iter_mut().find(|usage| usage.pattern == pattern) {
            Some(usage) => {
                for (category, word) in said {
                    if *usage.said.entry(category.clone()).or_insert(word) == word {
                        added.is_carried = true;
                    } else {
                        let word = if word { "y" } else { "n" };
                        added.left_out.push(format!("{category}={word}"));
                    }
                }
            }
            None if full => return AddedLine::nothing_of(value),
            None => {
                self.usage.push(Usage {
                    path: path.map(str::to_owned),
                    pattern,
                    said,
                });
                added.is_carried = true;
            }
        }
        added
    }

    /// Writes the statements as fields of a group.
    pub fn write(&self, out: &mut String) {
        let signal = self
            .signal
            .iter()
            .map(|(category, said)| format!("{}: {}", category.name(), yes_or_no(*said)));
        let signal = join(
            signal.chain(self.extent.map(|extent| format!("use: {extent}"))),
            ", ",
        );
        if !signal.is_empty() {
            *out += &format!("      content_signal: {{ {signal} }}\n");
        }
        match self.usage.as_slice() {
            [] => {}
            [usage] => *out += &format!("      content_usage: {}\n", usage.written()),
            rules => {
                *out += "      content_usage:\n";
                for usage in rules {
                    *out += &format!("        - {}\n", usage.written());
                }
            }
        }
    }
}

impl Usage {
    /// The rule as a YAML map in one line: path, categories of the vocabulary, and the others under
    /// `other`.
    fn written(&self) -> String {
        let path = self
            .path
            .iter()
            .map(|path| format!("paths: {}", scalar(path)));
        let said = USAGE_CATEGORIES
            .iter()
            .filter_map(|category| Some((category, *self.said.get(*category)?)));
        let said = said.map(|(category, said)| format!("{category}: {}", yes_or_no(said)));
        let other = self
            .said
            .iter()
            .filter(|(category, _)| !USAGE_CATEGORIES.contains(&category.as_str()));
        let other = join(
            other.map(|(category, said)| format!("{}: {}", scalar(category), yes_or_no(*said))),
            ", ",
        );
        let other = (!other.is_empty()).then(|| format!("other: {{ {other} }}"));
        format!("{{ {} }}", join(path.chain(said).chain(other), ", "))
    }
}
