//! Lints of the `Content-Signal` and `Content-Usage` lines of a robots.txt as it was found: parts that readers pass
//! over, and those lints of `signals.rs` that a file can have, too.

use super::{span, span_of_line};
use crate::policy::lint::catalogue as lints;
use crate::policy::lint::signals::{
    disallowed_usage, grants_in_closed_group, meant_category, meant_word, opposed_signals, said_of, unknown_category,
};
use crate::policy::lint::subject::Subject;
use crate::policy::model::{ContentSignal, ContentUsage, GroupSignals, SignalCategory, USAGE_CATEGORIES};
use crate::policy::signal_lines::{SignalPart, signal_parts, usage_line, usage_member};
use crate::robots::{File, Key, Line, Reading};
use crate::yaml::{Diagnostic, Diagnostics, Located, Span};

pub(super) fn lint(file: &File, reading: &Reading, subject: &Subject, found: &mut Diagnostics) {
    for line in file.lines_read() {
        passed_over(file, line, found);
    }
    for group in &subject.groups {
        let Some((token, _)) = group.agents.first() else { continue };
        let (_, union) = reading.binding(token.as_bytes());
        let others = reading.united(union).flat_map(|group| &group.others);
        let signals = said(file, others.filter_map(|&number| file.line(number)));
        if let Some(rule) = group.closing() {
            grants_in_closed_group(&signals, rule.span, found);
        }
        for rule in &signals.content_usage {
            let disallowed = |target: &[u8]| group.deciding(target).filter(|rule| !rule.allow).map(|rule| rule.span);
            disallowed_usage(rule, disallowed, found);
        }
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
    if let Some(value) = value(file, line, Key::ContentSignal) {
        if value.is_empty() {
            nothing_said(file, line, "write `ai-train=no`, say; a category that is absent is left open", found);
        }
        for (part, _) in signal_parts(value).filter(|(_, said)| said.is_none()) {
            part_of_signal(part, span_of_part(file, line, value, part), found);
        }
    }
    let Some(value) = value(file, line, Key::ContentUsage) else { return };
    let (_, members) = usage_line(value);
    let Some(members) = members else {
        return nothing_said(
            file,
            line,
            "write `Content-Usage: train-ai=n`, or `Content-Usage: /path/ train-ai=n`",
            found,
        );
    };
    for member in members {
        let at = span_of_part(file, line, value, member);
        match usage_member(member).said {
            Some((category, _)) => {
                let unknown = unknown_category(&Located { value: category.to_owned(), span: at });
                found.items.extend(
                    unknown.map(|finding| Diagnostic { help: help_for_usage(member).or(finding.help), ..finding }),
                );
            }
            None => {
                let names = || format!("write one of {} with `=n` or `=y`", USAGE_CATEGORIES.join(", "));
                lints::UNREADABLE_SIGNAL.report(
                    found,
                    at,
                    format!("`{member}` says nothing to readers of Content-Usage"),
                    help_for_usage(member).unwrap_or_else(names),
                );
            }
        }
    }
}

/// The member to write in place of one that says nothing; `None` where its category cannot be told.
fn help_for_usage(member: &str) -> Option<String> {
    let (name, word) = assignment(member);
    let category = meant_category(name)?.usage();
    Some(match meant_word(word) {
        Some(said) => format!("write `{category}={}`", if said { "y" } else { "n" }),
        None => format!("write `{category}=n` or `{category}=y`"),
    })
}

/// A part of a line as a name and its value, whatever sign stands between them.
fn assignment(part: &str) -> (&str, &str) {
    let part = part.split(';').next().unwrap_or_default();
    let (name, word) = part.split_once(['=', ':', ' ', '\t']).unwrap_or((part, ""));
    (name.trim(), word.trim())
}

fn nothing_said(file: &File, line: &Line, help: &str, found: &mut Diagnostics) {
    lints::UNREADABLE_SIGNAL.report(
        found,
        span_of_line(file, line.number),
        "this line says nothing: readers find no category in it",
        help,
    );
}

/// A part of Content-Signal that readers pass over: an unknown category, or one without a word that is known.
fn part_of_signal(part: &str, span: Span, found: &mut Diagnostics) {
    let (name, word) = assignment(part);
    let name = name.to_ascii_lowercase();
    let names = SignalCategory::ALL.map(SignalCategory::name);
    if name == "use" {
        lints::UNREADABLE_SIGNAL.report(
            found,
            span,
            format!("`{part}` says nothing to readers"),
            "write `use=immediate`, `use=reference` or `use=full`",
        );
        return;
    }
    let help = match (meant_category(&name).map(SignalCategory::name), meant_word(word)) {
        (Some(category), Some(said)) => format!("write `{category}={}`", if said { "yes" } else { "no" }),
        (Some(category), None) => format!("write `{category}=yes` or `{category}=no`"),
        (None, _) => format!("the categories are: {}; readers pass over others", names.join(", ")),
    };
    if names.contains(&name.as_str()) {
        lints::UNREADABLE_SIGNAL.report(
            found,
            span,
            format!("`{part}` says nothing to readers: the category stays open"),
            help,
        );
    } else {
        lints::UNKNOWN_CATEGORY.report(found, span, format!("Content-Signal has no category `{name}`"), help);
    }
}
