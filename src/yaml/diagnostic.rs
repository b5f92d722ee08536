//! [`Diagnostic`]: a mistake or a warning about a file such as a policy, with its position in the
//! file and what to do. It is rendered as rustc renders its errors, or in one line for logs.

use super::{DEFAULTS, SourceFile, SourceSpan};
use crate::printable::{clip, is_hidden, printable};
use Severity::*;
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
    /// Information; there is nothing to do.
    Note,
    /// Probably a mistake; the file is used.
    Warning,
    /// The file is rejected.
    Error,
}

named!(Severity);

/// Another span that matters, with a label.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[allow(missing_docs)]
#[non_exhaustive]
pub struct RelatedSpan {
    #[serde(flatten)]
    pub span: SourceSpan,
    pub label: String,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct Diagnostic {
    /// The severity.
    pub severity: Severity,
    /// A stable name, in kebab-case: `unknown-field`, `site-disallowed`, ...
    pub id: &'static str,
    /// One sentence without a full stop, naming what is wrong.
    pub message: String,
    /// The span; absent if it is about the whole file.
    #[serde(flatten)]
    pub span: Option<SourceSpan>,
    /// A few words under the marked span.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Other spans that matter.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<RelatedSpan>,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// The number of further findings of this kind, which are not listed.
    #[serde(skip_serializing_if = "is_zero")]
    pub more: usize,
}

// Serde asks for a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl Diagnostic {
    /// An error at a span.
    pub(crate) fn error(
        id: &'static str,
        span: SourceSpan,
        message: impl Into<String>,
    ) -> Diagnostic {
        Diagnostic {
            severity: Error,
            id,
            message: message.into(),
            span: Some(span),
            label: None,
            related: Vec::new(),
            help: None,
            more: 0,
        }
    }

    /// A warning at a span.
    pub(crate) fn warning(
        id: &'static str,
        span: SourceSpan,
        message: impl Into<String>,
    ) -> Diagnostic {
        Diagnostic {
            severity: Warning,
            ..Diagnostic::error(id, span, message)
        }
    }

    /// An error about the file as a whole.
    pub(crate) fn whole_file(id: &'static str, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            span: None,
            ..Diagnostic::error(id, SourceSpan::default(), message)
        }
    }

    /// Sets the label under the marked span.
    pub(crate) fn label(mut self, label: impl Into<String>) -> Diagnostic {
        self.label = Some(label.into());
        self
    }

    /// Sets what to do.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }

    /// Adds another span with a label.
    pub(crate) fn related(mut self, span: SourceSpan, label: impl Into<String>) -> Diagnostic {
        self.related.push(RelatedSpan {
            span,
            label: label.into(),
        });
        self
    }

    /// Renders it as rustc would, with the lines of the file. Control characters are replaced. A span
    /// over several lines is marked in the first.
    pub fn render(&self, source: &SourceFile, colour: bool) -> String {
        let text = without_controls(&source.text);
        let name = printable(source.name.as_bytes());
        let level = match self.severity {
            Error => Level::ERROR,
            Warning => Level::WARNING,
            Note => Level::NOTE,
        };
        let title = level
            .primary_title(without_controls(&self.message))
            .id(self.id);
        let mut group = match self.span {
            // The text is not kept.
            Some(span) if span.end > text.len() => {
                let place = annotate_snippets::Origin::path(&name)
                    .line(usize::try_from(span.line).unwrap_or(usize::MAX))
                    .char_column(usize::try_from(span.column).unwrap_or(usize::MAX));
                let label = self.label.as_deref().map(without_controls);
                title
                    .element(place)
                    .elements(label.map(|label| Level::NOTE.message(label)))
            }
            Some(span) => {
                let label = self.label.as_deref().unwrap_or_default();
                let primary = AnnotationKind::Primary
                    .span(first_line_range(&text, span))
                    .label(without_controls(label));
                let related = self.related.iter().map(|related| {
                    AnnotationKind::Context
                        .span(first_line_range(&text, related.span))
                        .label(without_controls(&related.label))
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
            group = group.element(Level::HELP.message(without_controls(&help)));
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

    /// What to do, and the number of further findings.
    pub(crate) fn help_and_more(&self) -> Option<String> {
        let more =
            (self.more > 0).then(|| format!("and {} more of this kind in the file", self.more));
        match (&self.help, more) {
            (Some(help), Some(more)) => Some(format!("{help}; {more}")),
            (help, more) => more.or_else(|| help.clone()),
        }
    }

    /// Whether it is about the defaults of the directory, whose place is in the message.
    pub(crate) fn is_about_defaults(&self) -> bool {
        self.span.is_none() && self.message.contains(DEFAULTS)
    }

    /// `file:line:column: error[id]: message`, for logs and `status`. The file is left out if the
    /// finding is about the defaults, so that every policy has the same line.
    pub fn one_line(&self, source: &SourceFile) -> String {
        let message = on_one_line(&self.message);
        let name = printable(source.name.as_bytes());
        let severity = self.severity.name();
        let id = self.id;
        match self.span {
            Some(span) => format!(
                "{name}:{}:{}: {severity}[{id}]: {message}",
                span.line, span.column
            ),
            None if self.is_about_defaults() => format!("{severity}[{id}]: {message}"),
            None => format!("{name}: {severity}[{id}]: {message}"),
        }
    }

    /// [`one_line`](Diagnostic::one_line), with the labels and what to do in parentheses, each
    /// shortened if it is very long.
    pub(crate) fn one_line_with_help(&self, source: &SourceFile) -> String {
        let beside: Vec<String> = self
            .related
            .iter()
            .map(|related| &related.label)
            .chain(&self.label)
            .cloned()
            .chain(self.help_and_more())
            .map(|text| clip(&on_one_line(&text), 500))
            .collect();
        let line = self.one_line(source);
        if beside.is_empty() {
            line
        } else {
            format!("{line} ({})", beside.join("; "))
        }
    }
}

/// The text with a blank for each control character, line breaks included.
fn on_one_line(text: &str) -> String {
    text.chars()
        .map(|c| if is_hidden(c) { ' ' } else { c })
        .collect()
}

fn without_controls(text: &str) -> String {
    text.chars().map(replace_hidden).collect()
}

/// The bytes of a span up to the end of its first line, at character boundaries.
fn first_line_range(text: &str, span: SourceSpan) -> Range<usize> {
    let start = floor_char_boundary(text, span.start);
    let end = floor_char_boundary(text, span.end.max(start));
    let newline = text[start..end].find('\n');
    start..newline.map_or(end, |newline| start + newline)
}

/// Replaces a control character by another of as many bytes, so that offsets stay right. Line breaks
/// and tabs stay.
fn replace_hidden(c: char) -> char {
    match (c, c.len_utf8()) {
        ('\n' | '\t' | '\r', _) => c,
        _ if !is_hidden(c) => c,
        (_, 1) => '?',
        (_, 2) => '§',
        _ => '\u{fffd}',
    }
}

/// The nearest character boundary at or before an offset.
fn floor_char_boundary(text: &str, offset: usize) -> usize {
    (0..=offset.min(text.len()))
        .rev()
        .find(|&offset| text.is_char_boundary(offset))
        .unwrap_or_default()
}

/// The findings about one file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Diagnostics {
    /// The findings, in the order they were added until they are sorted.
    pub items: Vec<Diagnostic>,
}

impl Diagnostics {
    /// Adds a finding.
    pub(crate) fn push(&mut self, diagnostic: Diagnostic) {
        self.items.push(diagnostic);
    }

    /// Whether there is an error, so that the file is rejected.
    pub fn has_errors(&self) -> bool {
        self.items.iter().any(|item| item.severity == Error)
    }

    /// Puts the place of a finding about the defaults of the directory into its message, because
    /// that is another file.
    pub(crate) fn name_defaults(&mut self, source: &SourceFile) {
        let Some(defaults) = source.defaults() else {
            return;
        };
        for item in &mut self.items {
            item.related
                .retain(|related| defaults.place(related.span.line).is_none());
            let Some(span) = item.span else {
                continue;
            };
            if let Some(place) = defaults.place(span.line) {
                item.message = format!("{place}:{}: {}", span.column, item.message);
                item.span = None;
            }
        }
    }

    /// Sorts the findings by their start in the file, those about the whole file first. Stable.
    pub(crate) fn sort(&mut self) {
        self.items
            .sort_by_key(|item| item.span.map(|span| span.start));
    }
}
