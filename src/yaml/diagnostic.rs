//! [`Diagnostic`]: one mistake or warning, with its place and what to do. It is shown as rustc
//! shows its own, or in one line for logs.

use super::{Source, Span};
use crate::printable::{is_hidden, printable};
use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use std::ops::Range;

/// The severity of a finding.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, strum::IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; nothing need be done.
    Note,
    /// Worth saying; the file is used.
    Warning,
    /// The file is refused.
    Error,
}

named!(Severity);

/// Another place that matters, with a word about it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[allow(missing_docs)]
#[non_exhaustive]
pub struct Related {
    #[serde(flatten)]
    pub span: Span,
    pub label: String,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Diagnostic {
    /// The severity.
    pub severity: Severity,
    /// A stable name, in kebab-case: `unknown-field`, `site-disallowed`, ...
    pub id: &'static str,
    /// One sentence without a full stop, naming what is wrong.
    pub message: String,
    /// Where; the whole file when absent.
    #[serde(flatten)]
    pub span: Option<Span>,
    /// A few words under the marked place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Other places that matter.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<Related>,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// How many more findings of this kind the file has that are not listed.
    #[serde(skip_serializing_if = "is_zero")]
    pub more: usize,
}

// Serde asks for a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl Diagnostic {
    /// An error at a place.
    pub(crate) fn error(id: &'static str, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            id,
            message: message.into(),
            span: Some(span),
            label: None,
            related: Vec::new(),
            help: None,
            more: 0,
        }
    }

    /// A warning at a place.
    pub(crate) fn warning(id: &'static str, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Warning,
            ..Diagnostic::error(id, span, message)
        }
    }

    /// An error about the file as a whole.
    pub(crate) fn whole_file(id: &'static str, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            span: None,
            ..Diagnostic::error(id, Span::default(), message)
        }
    }

    /// Says something under the marked place.
    pub(crate) fn label(mut self, label: impl Into<String>) -> Diagnostic {
        self.label = Some(label.into());
        self
    }

    /// Says what to do.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }

    /// Points at another place.
    pub(crate) fn related(mut self, span: Span, label: impl Into<String>) -> Diagnostic {
        self.related.push(Related {
            span,
            label: label.into(),
        });
        self
    }

    /// Shows it as rustc would, with the lines of the file; with colours when `colour`. Characters
    /// that a terminal might obey are replaced. A place over several lines is marked in the first.
    pub fn render(&self, source: &Source, colour: bool) -> String {
        let text = shown(&source.text);
        let name = printable(source.name.as_bytes());
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
            Severity::Note => Level::NOTE,
        };
        let title = level.primary_title(shown(&self.message)).id(self.id);
        let mut group = match self.span {
            Some(span) => {
                let label = self.label.as_deref().map(shown).unwrap_or_default();
                let primary = AnnotationKind::Primary
                    .span(marked(&text, span))
                    .label(label);
                let related = self.related.iter().map(|related| {
                    AnnotationKind::Context
                        .span(marked(&text, related.span))
                        .label(shown(&related.label))
                });
                title.element(
                    Snippet::source(&text)
                        .path(&name)
                        .annotation(primary)
                        .annotations(related),
                )
            }
            None => title.element(annotate_snippets::Origin::path(&name)),
        };
        if let Some(help) = self.help_and_more() {
            group = group.element(Level::HELP.message(shown(&help)));
        }
        let renderer = if colour {
            Renderer::styled()
        } else {
            Renderer::plain()
        };
        renderer
            .decor_style(DecorStyle::Ascii)
            .render(&[group])
            .to_string()
    }

    /// What to do, and how many more findings there are.
    fn help_and_more(&self) -> Option<String> {
        let more =
            (self.more > 0).then(|| format!("and {} more of this kind in the file", self.more));
        match (&self.help, more) {
            (Some(help), Some(more)) => Some(format!("{help}; {more}")),
            (help, more) => more.or_else(|| help.clone()),
        }
    }

    /// `file:line:column: error[id]: message`, for logs and `status`.
    pub fn one_line(&self, source: &Source) -> String {
        let message = on_one_line(&self.message);
        let name = printable(source.name.as_bytes());
        let severity = self.severity.name();
        let id = self.id;
        match self.span {
            Some(span) => format!(
                "{name}:{}:{}: {severity}[{id}]: {message}",
                span.line, span.column
            ),
            None => format!("{name}: {severity}[{id}]: {message}"),
        }
    }

    /// [`one_line`](Diagnostic::one_line), with the labels and what to do in parentheses, each
    /// shortened if it is very long.
    pub(crate) fn with_help(&self, source: &Source) -> String {
        let labels = self.related.iter().map(|related| &related.label);
        let beside: Vec<String> = labels
            .chain(&self.label)
            .cloned()
            .chain(self.help_and_more())
            .map(|text| shortened(on_one_line(&text)))
            .collect();
        let line = self.one_line(source);
        if beside.is_empty() {
            line
        } else {
            format!("{line} ({})", beside.join("; "))
        }
    }
}

/// The text with a blank for each character that could end a line or move a cursor.
fn on_one_line(text: &str) -> String {
    text.chars()
        .map(|sign| if is_hidden(sign) { ' ' } else { sign })
        .collect()
}

fn shown(text: &str) -> String {
    text.chars().map(harmless).collect()
}

/// The range to mark in a shown text. A mark over many lines hides what it is about, so it ends
/// with the first.
fn marked(text: &str, span: Span) -> Range<usize> {
    let start = floor(text, span.start);
    let end = floor(text, span.end.max(start));
    let newline = text[start..end].find('\n');
    start..newline.map_or(end, |newline| start + newline)
}

/// A text of more than 500 characters with only its first and its last 250: a pattern mostly stands
/// in the middle. Other texts stay.
fn shortened(text: String) -> String {
    const END: usize = 250;
    let length = text.chars().count();
    if length <= 2 * END {
        return text;
    }
    let first: String = text.chars().take(END).collect();
    let last: String = text.chars().skip(length - END).collect();
    format!("{first} [...] {last}")
}

/// The character, or in place of one that a terminal might obey another of as many bytes, so that
/// offsets stay right. Line breaks and tabs stay.
fn harmless(sign: char) -> char {
    match (sign, sign.len_utf8()) {
        ('\n' | '\t' | '\r', _) => sign,
        _ if !is_hidden(sign) => sign,
        (_, 1) => '?',
        (_, 2) => '§',
        _ => '\u{fffd}',
    }
}

/// The offset, or the nearest before it, at which a character begins; at most the length of the
/// text.
fn floor(text: &str, offset: usize) -> usize {
    (0..=offset.min(text.len()))
        .rev()
        .find(|&offset| text.is_char_boundary(offset))
        .unwrap_or_default()
}

/// All findings about one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics {
    /// In the order they were found; `sort` puts them in the order of the file.
    pub items: Vec<Diagnostic>,
}

impl Diagnostics {
    /// Adds a finding.
    pub(crate) fn push(&mut self, diagnostic: Diagnostic) {
        self.items.push(diagnostic);
    }

    /// Whether the file is refused.
    pub fn has_errors(&self) -> bool {
        self.items
            .iter()
            .any(|item| item.severity == Severity::Error)
    }

    /// Puts the findings in the order of the file, those about the whole file first. Findings at
    /// one place keep their order.
    pub(crate) fn sort(&mut self) {
        self.items
            .sort_by_key(|item| item.span.map(|span| span.start));
    }
}
