//! Lints of the `Content-Signal` and `Content-Usage` lines of a robots.txt as it was found: parts that readers pass
//! over, and those lints of `signals.rs` that a file can have, too.

use super::{span, span_of_line};
use crate::policy::lint::catalogue as lints;
use crate::policy::lint::signals::{opposed_signals, said_of};
use crate::policy::lint::subject::Subject;
use crate::policy::model::{ContentSignal, ContentUsage, GroupSignals, SignalCategory, USAGE_CATEGORIES};
use crate::policy::signal_lines::{SignalPart, signal_parts, usage_line, usage_member};
use crate::robots::{File, Key, Line, Reading};
use crate::yaml::{Diagnostics, Located, Span};

pub(super) fn lint(file: &File, reading: &Reading, subject: &Subject, found: &mut Diagnostics) {
    for line in file.lines_read() {
        passed_over(file, line, found);
    }
    for group in &subject.groups {
        let Some((token, _)) = group.agents.first() else { continue };
        let (_, union) = reading.binding(token.as_bytes());
        let others = reading.united(union).flat_map(|group| &group.others);
        let signals = said(file, others.filter_map(|&number| file.line(number)));
        for category in SignalCategory::ALL {
            let usage = signals.content_usage.iter();
            opposed_signals(&said_of(category, signals.content_signal.iter(), usage), found);
        }
    }
}

/// The value of a line of this kind; `None` also where its octets are no text, of which another lint tells.
fn value<'f>(file: &'f File, line: &Line, key: Key) -> Option<&'f str> {
    let record = line.record.as_ref().filter(|record| record.key == key)?;
    std::str::from_utf8(file.octets(&record.value)).ok()
}

/// The place of a part of the value of a line.
fn span_of_part(file: &File, line: &Line, value: &str, part: &str) -> Span {
    let start = line.record.as_ref().map_or(line.text.start, |record| record.value.start);
    let before = (part.as_ptr() as usize).saturating_sub(value.as_ptr() as usize);
    span(file, line, &(start + before..start + before + part.len()))
}

/// The statements of the lines of a group, each part with its place.
fn said<'f>(file: &'f File, lines: impl Iterator<Item = &'f Line>) -> GroupSignals {
    let mut signals = GroupSignals::default();
    for line in lines {
        if let Some(value) = value(file, line, Key::ContentSignal) {
            let nothing = || ContentSignal { said: Vec::new(), extent: None, span: span_of_line(file, line.number) };
            let signal = signals.content_signal.get_or_insert_with(nothing);
            for (part, said) in signal_parts(value) {
                if let Some(SignalPart::Category(category, value_of)) = said {
                    let span = span_of_part(file, line, value, part);
                    signal.said.push((category, Located { value: value_of, span }));
                }
            }
        }
        if let Some(value) = value(file, line, Key::ContentUsage) {
            // A text with the place of the part that it stands in.
            let located =
                |text: &str, part| Located { value: text.to_owned(), span: span_of_part(file, line, value, part) };
            let (path, members) = usage_line(value);
            let said = members.into_iter().flatten().filter_map(|member| {
                let (category, said) = usage_member(member).said?;
                Some((located(category, member), said))
            });
            signals.content_usage.push(ContentUsage {
                paths: path.map(|path| located(path, path)).into_iter().collect(),
                said: said.collect(),
                span: span_of_line(file, line.number),
            });
        }
    }
    signals
}

/// Reports the parts of a line that readers pass over.
fn passed_over(file: &File, line: &Line, found: &mut Diagnostics) {
    let mut report = |value: &str, part: &str, help: &str| {
        let message = format!("`{part}` says nothing to readers");
        lints::UNREADABLE_SIGNAL.report(found, span_of_part(file, line, value, part), message, help);
    };
    if let Some(value) = value(file, line, Key::ContentSignal) {
        for (part, _) in signal_parts(value).filter(|(_, said)| said.is_none()) {
            report(
                value,
                part,
                "write `ai-train`, `ai-input` or `search` with `=yes` or `=no`; or `use=reference`, say",
            );
        }
    }
    if let Some(value) = value(file, line, Key::ContentUsage) {
        let members = usage_line(value).1.unwrap_or_else(|| vec![value]);
        let is_read =
            |member: &&str| usage_member(member).said.is_some_and(|(category, _)| USAGE_CATEGORIES.contains(&category));
        for member in members.into_iter().filter(|member| !is_read(member)) {
            report(value, member, "write `train-ai`, `ai-use` or `search` with `=n` or `=y`");
        }
    }
}
