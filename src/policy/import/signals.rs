//! What the lines of a group say about the use of content, as a policy says it: `Content-Signal` (contentsignals.org)
//! and `Content-Usage` (draft-ietf-aipref-attach-05). Part by part: what a policy cannot name is handed back.

use super::left_out::SignalLimit;
use super::yaml::{line, scalar};
use crate::policy::decode::{MAX_PATTERN, is_category};
use crate::policy::model::{SignalCategory, USAGE_CATEGORIES, USES};
use crate::robots::Pattern;
use std::collections::BTreeMap;

/// A policy takes as many rules in a group.
const MAX_USAGE: usize = 1_000;

/// A part of a line that a policy cannot say, and why.
type LeftOutPart = (String, SignalLimit);

/// How much of a line the policy has.
#[derive(Debug, Default)]
pub struct AddedLine {
    /// Whether the policy has any part of the line.
    pub is_carried: bool,
    /// The other parts.
    pub left_out: Vec<LeftOutPart>,
}

/// What a group says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Signals {
    signal: BTreeMap<SignalCategory, bool>,
    extent: Option<&'static str>,
    usage: Vec<Usage>,
}

#[derive(Clone, Debug, PartialEq)]
struct Usage {
    /// As it was written; none for the whole site.
    path: Option<String>,
    /// As it is compared.
    pattern: Pattern,
    said: BTreeMap<String, bool>,
}

/// The categories that a policy can name, of the members of a dictionary.
fn categories(members: &[&str], added: &mut AddedLine) -> BTreeMap<String, bool> {
    let mut said = BTreeMap::new();
    for member in members {
        let (assignment, parameters) = member.split_once(';').unwrap_or((member, ""));
        let (category, word) = assignment.split_once('=').unwrap_or((assignment, ""));
        let word = ["n", "y"].into_iter().position(|known| known == word);
        match word.filter(|_| is_category(category)) {
            Some(word) => drop(said.insert(category.to_owned(), word == 1)),
            None => {
                added.left_out.push(((*member).to_owned(), SignalLimit::UnknownCategory));
                continue;
            }
        }
        if !parameters.is_empty() {
            added.left_out.push((format!(";{parameters}"), SignalLimit::Parameters));
        }
    }
    said
}

impl Signals {
    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        self == &Signals::default()
    }

    /// Whether a group that says this and extends one that says `other` says nothing more for it.
    pub fn stand_beside(&self, other: &Signals) -> bool {
        let says = |signals: &Signals| !signals.signal.is_empty() || signals.extent.is_some();
        (says(self) || !says(other))
            && other.usage.iter().all(|theirs| self.usage.iter().any(|ours| ours.pattern == theirs.pattern))
    }

    /// The value of a `Content-Signal` line: `search=yes, ai-train=no, use=reference`.
    pub fn add_signal(&mut self, value: &str) -> AddedLine {
        let mut added = AddedLine::default();
        for part in value.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let left_out = match part.split_once('=').map(|(name, word)| (name.trim(), word.trim())) {
                Some((name, word)) if name.eq_ignore_ascii_case("use") => {
                    match USES.into_iter().find(|known| known.eq_ignore_ascii_case(word)) {
                        Some(word) => (*self.extent.get_or_insert(word) != word).then_some(SignalLimit::HasAnother),
                        None => Some(SignalLimit::UnknownSignal),
                    }
                }
                Some((name, word)) => {
                    let is = |category: &SignalCategory| category.name().eq_ignore_ascii_case(name);
                    let word = ["no", "yes"].into_iter().position(|known| known.eq_ignore_ascii_case(word));
                    match SignalCategory::ALL.into_iter().find(is).zip(word.map(|word| word == 1)) {
                        Some((category, said)) => {
                            (*self.signal.entry(category).or_insert(said) != said).then_some(SignalLimit::HasAnother)
                        }
                        None => Some(SignalLimit::UnknownSignal),
                    }
                }
                None => Some(SignalLimit::UnknownSignal),
            };
            match left_out {
                Some(why) => added.left_out.push((part.to_owned(), why)),
                None => added.is_carried = true,
            }
        }
        if !added.is_carried && added.left_out.is_empty() {
            added.left_out.push((value.to_owned(), SignalLimit::UnknownSignal));
        }
        added
    }

    /// The value of a `Content-Usage` line: a path or none, and a dictionary of RFC 9651, `/open/ train-ai=y`.
    pub fn add_usage(&mut self, value: &str) -> AddedLine {
        let whole = |why| AddedLine { is_carried: false, left_out: vec![(value.to_owned(), why)] };
        let (path, dictionary) = match value.starts_with('/') {
            true => value.split_once([' ', '\t']).map_or((Some(value), ""), |(path, rest)| (Some(path), rest)),
            false => (None, value),
        };
        let fits =
            |path: &str| path.len() <= MAX_PATTERN && !path.contains(|c: char| c.is_control() || c == '\u{FFFD}');
        if !path.is_none_or(fits) {
            return whole(SignalLimit::Path);
        }
        let members: Vec<&str> = dictionary.split(',').map(str::trim).collect();
        // One member that is none, and the whole field counts for nothing (RFC 9651 section 4.2).
        let is_member = |member: &&str| {
            let torn = member.contains([' ', '\t']) && !member.contains(['"', ';', '(']);
            !torn && is_key(member.split(['=', ';']).next().unwrap_or_default())
        };
        if !members.iter().all(is_member) {
            return whole(SignalLimit::NoDictionary);
        }
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
                        let member = format!("{category}={}", if word { "y" } else { "n" });
                        added.left_out.push((member, SignalLimit::HasAnother));
                    }
                }
            }
            None if full => return whole(SignalLimit::TooMany),
            None => {
                self.usage.push(Usage { path: path.map(str::to_owned), pattern, said });
                added.is_carried = true;
            }
        }
        added
    }

    /// Writes it as fields of a group.
    pub fn write(&self, out: &mut String) {
        let word = |said: &bool| if *said { "yes" } else { "no" };
        let signal = self.signal.iter().map(|(category, said)| format!("{}: {}", category.name(), word(said)));
        let signal: Vec<String> = signal.chain(self.extent.map(|extent| format!("use: {extent}"))).collect();
        if !signal.is_empty() {
            line(out, format_args!("      content_signal: {{ {} }}", signal.join(", ")));
        }
        match self.usage.as_slice() {
            [] => {}
            [usage] => line(out, format_args!("      content_usage: {}", usage.written())),
            rules => {
                line(out, format_args!("      content_usage:"));
                for usage in rules {
                    line(out, format_args!("        - {}", usage.written()));
                }
            }
        }
    }
}

impl Usage {
    fn written(&self) -> String {
        let word = |said: bool| if said { "yes" } else { "no" };
        let known = |category: &str| USAGE_CATEGORIES.contains(&category);
        let path = self.path.iter().map(|path| format!("paths: {}", scalar(path)));
        let said = USAGE_CATEGORIES.iter().filter_map(|category| Some((category, *self.said.get(*category)?)));
        let said = said.map(|(category, said)| format!("{category}: {}", word(said)));
        let other = self.said.iter().filter(|(category, _)| !known(category));
        let other: Vec<String> =
            other.map(|(category, said)| format!("{}: {}", scalar(category), word(*said))).collect();
        let other = (!other.is_empty()).then(|| format!("other: {{ {} }}", other.join(", ")));
        let fields: Vec<String> = path.chain(said).chain(other).collect();
        format!("{{ {} }}", fields.join(", "))
    }
}

/// A key of RFC 9651 section 3.1.2.
fn is_key(text: &str) -> bool {
    text.starts_with(|sign: char| sign.is_ascii_lowercase() || sign == '*')
        && text.chars().all(|sign| sign.is_ascii_lowercase() || sign.is_ascii_digit() || "_-.*".contains(sign))
}
