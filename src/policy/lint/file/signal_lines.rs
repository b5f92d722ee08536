//! The lint of the lines `Content-Signal` and `Content-Usage` of a robots.txt, which are about the
//! use of content. It reports parts of a line that programs reading the line ignore.

use super::span_of_range;
use crate::policy::lint::catalogue as lints;
use crate::policy::model::USAGE_CATEGORIES;
use crate::policy::signal_lines::{parse_content_signal, parse_content_usage, parse_usage_member};
use crate::robots::{RobotsFile, RobotsKey, RobotsLine};
use crate::yaml::{Diagnostics, SourceSpan};

/// The value of a line with this key. Another lint reports a value that is not UTF-8.
fn line_value<'f>(file: &'f RobotsFile, line: &RobotsLine, key: RobotsKey) -> Option<&'f str> {
    let record = line.key_value.as_ref().filter(|record| record.key == key)?;
    std::str::from_utf8(file.slice(&record.value)).ok()
}

/// The place of a part of a line's value. `part` must be a slice of `value`: its address gives its
/// place.
fn span_of_part(file: &RobotsFile, line: &RobotsLine, value: &str, part: &str) -> SourceSpan {
    let start = line
        .key_value
        .as_ref()
        .map_or(line.text.start, |record| record.value.start);
    let before = (part.as_ptr() as usize).saturating_sub(value.as_ptr() as usize);
    span_of_range(file, line, &(start + before..start + before + part.len()))
}

/// Reports the parts of a line that readers ignore. Of Content-Usage that may be the whole value,
/// if it is no dictionary.
pub fn lint(file: &RobotsFile, line: &RobotsLine, found: &mut Diagnostics) {
    if let Some(value) = line_value(file, line, RobotsKey::ContentSignal) {
        let help = "write \"ai-train\", \"ai-input\" or \"search\" with \"=yes\" or \"=no\"; or, \
                    for example, \"use=reference\"";
        for (part, _) in parse_content_signal(value).filter(|(_, meaning)| meaning.is_none()) {
            report_unreadable(part, span_of_part(file, line, value, part), help, found);
        }
    }
    if let Some(value) = line_value(file, line, RobotsKey::ContentUsage) {
        let help = "write \"train-ai\", \"ai-use\" or \"search\" with \"=n\" or \"=y\"";
        for member in parse_content_usage(value).1.unwrap_or_else(|| vec![value]) {
            let (parsed, _) = parse_usage_member(member);
            if parsed.is_none_or(|(category, _)| !USAGE_CATEGORIES.contains(&category)) {
                report_unreadable(member, span_of_part(file, line, value, member), help, found);
            }
        }
    }
}

fn report_unreadable(part: &str, span: SourceSpan, help: &str, found: &mut Diagnostics) {
    lints::UNREADABLE_SIGNAL.report(found, span, format!("readers ignore \"{part}\""), help);
}
