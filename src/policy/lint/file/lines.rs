//! Lints of single lines of a robots.txt: bytes and signs that spoil a line, misspelt and retired
//! keys, and `#` in a path.

use super::{signal_lines, span_of_line, span_of_range};
use crate::policy::lint::agents::{is_invisible_character, report_invisible_character};
use crate::policy::lint::catalogue as lints;
use crate::robots::{KeySpelling, LineIssue, RobotsFile, RobotsKey, RobotsLine};
use crate::yaml::{Diagnostics, Severity, SourceSpan};

/// Checks one line. A misspelt key (`Typo`) is reported by [`lint_key`].
pub fn lint_line(file: &RobotsFile, line: &RobotsLine, found: &mut Diagnostics) {
    use LineIssue::*;

    for issue in &line.issues {
        let (lint, message, help) = match issue {
            TooLong => {
                let length = line.text.len();
                (
                    lints::LINE_TOO_LONG,
                    format!("this line has {length} bytes; crawlers read only the first 16,663"),
                    "write one rule per line",
                )
            }
            Nul => (
                lints::UNREADABLE_BYTES,
                "a NUL byte: crawlers do not read the rest of the line".into(),
                "remove it",
            ),
            NotUtf8 => (
                lints::UNREADABLE_BYTES,
                "this line is not UTF-8".into(),
                "save the file as UTF-8, or percent-encode every character outside ASCII",
            ),
            StrayBom => (
                lints::UNREADABLE_BYTES,
                "a byte order mark inside the file: crawlers do not understand its line".into(),
                "remove it; probably two files were joined",
            ),
            NotKeyValue => (
                lints::NO_RECORD,
                "this line is neither \"key: value\" nor a comment".into(),
                "if it is a comment, begin it with \"#\"",
            ),
            MissingColon => (
                lints::MISSING_COLON,
                "the colon is missing; Google adds it, other crawlers may not".into(),
                "write \"key: value\"",
            ),
            Typo => continue,
        };
        found.push(
            lint.finding(span_of_line(file, line.number), message)
                .help(help),
        );
    }
    lint_invisible_ends(file, line, found);
    lint_hash_in_path(file, line, found);
    signal_lines::lint(file, line, found);
    lint_key(file, line, found);
}

/// Reports a key, or the path of a rule, that begins or ends with an invisible character. Inside of
/// a path it may be meant.
fn lint_invisible_ends(file: &RobotsFile, line: &RobotsLine, found: &mut Diagnostics) {
    let Some(record) = line.key_value.as_ref().filter(|_| line.issues.is_empty()) else {
        return;
    };
    let is_rule = matches!(record.key, RobotsKey::Allow | RobotsKey::Disallow);
    for (what, part) in [
        ("key", Some(&record.name)),
        ("path", Some(&record.value).filter(|_| is_rule)),
    ] {
        let text = part.map(|part| file.text(part)).unwrap_or_default();
        let mut ends = [text.chars().next(), text.chars().next_back()]
            .into_iter()
            .flatten();
        if let Some(sign) = ends.find(|sign| is_invisible_character(*sign)) {
            report_invisible_character(
                lints::UNREADABLE_BYTES,
                what,
                sign,
                span_of_line(file, line.number),
                found,
            );
        }
    }
}

/// Reports a path with a `#` in it: crawlers take the rest for a comment. A real comment has a
/// blank on one of its sides.
fn lint_hash_in_path(file: &RobotsFile, line: &RobotsLine, found: &mut Diagnostics) {
    let Some((record, comment)) = line.key_value.as_ref().zip(line.comment.as_ref()) else {
        return;
    };
    let path = file.text(&record.value);
    let rest = file
        .slice(comment)
        .first()
        .is_some_and(|byte| byte.is_ascii_graphic() && *byte != b'#');
    let is_path = matches!(record.key, RobotsKey::Allow | RobotsKey::Disallow)
        && path.starts_with(['/', '*']);
    if is_path && rest && record.value.end + 1 == comment.start {
        let whole = file.text(&(record.value.start..comment.end));
        lints::HASH_IN_PATH.report(
            found,
            span_of_line(file, line.number),
            format!("crawlers read \"{}\" as \"{path}\"", whole.trim_end()),
            "\"#\" begins a comment, and requests never contain what follows \"#\" in a URL: \
             write the path without it",
        );
    }
}

/// Reports a misspelt key, or a missing colon, of User-agent, Allow, Disallow and Sitemap lines.
fn lint_key(file: &RobotsFile, line: &RobotsLine, found: &mut Diagnostics) {
    let Some(record) = &line.key_value else {
        return;
    };
    let name = file.text(&record.name);
    let key = span_of_range(file, line, &record.name);
    let proper = match record.key {
        RobotsKey::UserAgent => "User-agent",
        RobotsKey::Allow => "Allow",
        RobotsKey::Disallow => "Disallow",
        RobotsKey::Sitemap => "Sitemap",
        _ => return lint_other_key(line, &name, record.key, key, found),
    };
    match record.spelling {
        KeySpelling::Exact => {}
        // `sitemap https://...`: the first colon is that of the URL.
        KeySpelling::Longer
            if name
                .split_once(' ')
                .is_some_and(|(word, _)| word.eq_ignore_ascii_case(proper)) =>
        {
            lints::MISSING_COLON.report(
                found,
                key,
                format!(
                    "the colon after \"{proper}\" is missing; Google adds it, other crawlers may \
                     not"
                ),
                "write \"key: value\"",
            )
        }
        KeySpelling::Typo | KeySpelling::Longer => lints::MISSPELT_KEY.report(
            found,
            key,
            format!(
                "\"{name}\" is misspelt: Google's library reads it as \"{proper}\", other \
                 crawlers may ignore the line"
            ),
            format!("write \"{proper}\""),
        ),
    }
}

/// Reports retired and unknown keys.
fn lint_other_key(
    line: &RobotsLine,
    name: &str,
    key: RobotsKey,
    span: SourceSpan,
    found: &mut Diagnostics,
) {
    let (lint, message, help) = match key {
        RobotsKey::Noindex => {
            let directive = name.to_ascii_lowercase();
            // Google named noindex, nofollow and crawl-delay when it retired them (Search Central
            // blog, 2019-07-02, "A note on unsupported rules in robots.txt").
            (
                lints::RETIRED_DIRECTIVE,
                format!("no crawler reads \"{name}\" in robots.txt"),
                format!(
                    "send \"X-Robots-Tag: {directive}\" instead, and let crawlers fetch the page: \
                     otherwise they will not see it"
                ),
            )
        }
        RobotsKey::Host => {
            let lint = lints::RETIRED_DIRECTIVE.with_severity(Severity::Note);
            (
                lint,
                "\"Host\": Yandex stopped reading it in 2018".into(),
                "redirect to the main host instead".into(),
            )
        }
        RobotsKey::Unknown if line.issues.is_empty() => (
            lints::UNKNOWN_DIRECTIVE,
            format!("no crawler documents \"{name}\""),
            "crawlers ignore the line".to_owned(),
        ),
        _ => return,
    };
    found.push(lint.finding(span, message).help(help));
}
