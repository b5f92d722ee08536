//! One mistake or warning: what is wrong, where, and what to do.

use super::{Source, Span};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth saying; the file is used.
    Warning,
    /// The file is refused.
    Error,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// A stable name, in kebab-case: `unknown-field`, `site-disallowed`, ...
    pub id: &'static str,
    /// One sentence without a full stop, naming what is wrong.
    pub message: String,
    /// Where; the whole file when absent.
    pub span: Option<Span>,
    /// A few words under the marked place.
    pub label: Option<String>,
    /// Other places that matter, with a word each.
    pub related: Vec<(Span, String)>,
    /// What to do.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error at a place.
    pub fn error(id: &'static str, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            id,
            message: message.into(),
            span: Some(span),
            label: None,
            related: Vec::new(),
            help: None,
        }
    }

    /// A warning at a place.
    pub fn warning(id: &'static str, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(id, span, message) }
    }

    /// Says something under the marked place.
    pub fn label(mut self, label: impl Into<String>) -> Diagnostic {
        self.label = Some(label.into());
        self
    }

    /// Says what to do.
    pub fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }

    /// Points at another place.
    pub fn related(mut self, span: Span, label: impl Into<String>) -> Diagnostic {
        self.related.push((span, label.into()));
        self
    }

    /// Shows it as rustc would, with the lines of the file; with colours when `colour`.
    pub fn render(&self, source: &Source, colour: bool) -> String {
        let _ = (source, colour);
        todo!()
    }

    /// `file:line:column: error[id]: message`, for logs and `status`.
    pub fn one_line(&self, source: &Source) -> String {
        let _ = source;
        todo!()
    }
}

/// All findings about one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics {
    /// In the order they were found; `sort` puts them in the order of the file.
    pub items: Vec<Diagnostic>,
}

impl Diagnostics {
    /// Adds one.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.items.push(diagnostic);
    }

    /// Whether the file is refused.
    pub fn has_errors(&self) -> bool {
        self.items.iter().any(|item| item.severity == Severity::Error)
    }

    /// In the order of the file.
    pub fn sort(&mut self) {
        self.items.sort_by_key(|item| item.span.map(|span| span.start));
    }
}
