//! The lint of the `Content-Signal` and `Content-Usage` lines of a robots.txt as it was found:
//! parts that readers pass over.

use super::{span, span_of_line};
use crate::policy::lint::catalogue as lints;
use crate::policy::model::USAGE_CATEGORIES;
use crate::policy::signal_lines::{SignalPart, signal_parts, usage_line, usage_member};
use crate::robots::{File, Key, Line, Reading};
use crate::yaml::{Diagnostics, Span};
use std::collections::{BTreeMap, HashSet};

/// The value of a line with this key. `None` for a line with another key or without a record, and
/// where the bytes are not UTF-8, which another lint reports.
fn value<'f>(file: &'f File, line: &Line, key: Key) -> Option<&'f str> {
    let record = line.record.as_ref().filter(|record| record.key == key)?;
    std::str::from_utf8(file.octets(&record.value)).ok()
}

/// The place of a part of the value of a line. `part` must be a slice of `value`: its place is told
/// from its address.
fn span_of_part(file: &File, line: &Line, value: &str, part: &str) -> Span {
    let start = line
        .record
        .as_ref()
        .map_or(line.text.start, |record| record.value.start);
    let before = (part.as_ptr() as usize).saturating_sub(value.as_ptr() as usize);
    span(file, line, &(start + before..start + before + part.len()))
}

/// Reports the parts of a Content-Signal or Content-Usage line that readers pass over. Of
/// Content-Usage these are also categories that the vocabulary does not have, and the whole value
/// where it is no dictionary.
pub fn lint(file: &File, line: &Line, found: &mut Diagnostics) {
    if let Some(value) = value(file, line, Key::ContentSignal) {
        let help = "write `ai-train`, `ai-input` or `search` with `=yes` or `=no`; or `use=reference`, say";
        for (part, _) in signal_parts(value).filter(|(_, said)| said.is_none()) {
            unreadable(part, span_of_part(file, line, value, part), help, found);
        }
    }
    if let Some(value) = value(file, line, Key::ContentUsage) {
        let help = "write `train-ai`, `ai-use` or `search` with `=n` or `=y`";
        for member in usage_line(value).1.unwrap_or_else(|| vec![value]) {
            let said = usage_member(member).said;
            if said.is_none_or(|(category, _)| !USAGE_CATEGORIES.contains(&category)) {
                unreadable(member, span_of_part(file, line, value, member), help, found);
            }
        }
    }
}

fn unreadable(part: &str, span: Span, help: &str, found: &mut Diagnostics) {
    let message = format!("`{part}` says nothing to readers");
    lints::UNREADABLE_SIGNAL.report(found, span, message, help);
}

/// Reports lines of `Content-Signal` for one crawler that say the opposite of each other.
pub fn opposed(file: &File, reading: &Reading, found: &mut Diagnostics) {
    let mut seen = HashSet::new();
    for agent in reading.agents() {
        let (_, union) = reading.binding(agent.token.as_bytes());
        if !seen.insert(union) {
            continue;
        }
        let mut first = BTreeMap::new();
        let lines = reading
            .united(union)
            .flat_map(|group| &group.others)
            .filter_map(|number| file.line(*number));
        for line in lines {
            let parts = value(file, line, Key::ContentSignal)
                .into_iter()
                .flat_map(signal_parts);
            for (_, said) in parts {
                let Some(SignalPart::Category(category, said)) = said else {
                    continue;
                };
                let (before, at) = *first.entry(category).or_insert((said, line.number));
                if before != said {
                    let message = format!(
                        "`{}` is said to be the opposite in line {at}",
                        category.name()
                    );
                    let help = "readers take one of the two; say it once";
                    lints::SIGNALS_DISAGREE.report(
                        found,
                        span_of_line(file, line.number),
                        message,
                        help,
                    );
                }
            }
        }
    }
}
