//! All lints ([`LINTS`]), each with its id, its severity and its explanation ([`Lint`]). The
//! comment on a lint is the explanation that users read in `docs/lints.md` and in SARIF.

mod file;
mod policy;
mod rules;

pub use file::*;
pub use policy::*;
pub use rules::*;

use crate::yaml::{Diagnostic, Diagnostics, Severity, SourceSpan};

/// One lint.
pub struct Lint {
    /// A stable name in kebab-case, which people can search for.
    pub id: &'static str,
    /// An error keeps a policy from being used.
    pub severity: Severity,
    /// The lines of [`Lint::explanation`], each with a blank before it.
    pub about: &'static str,
}

impl Lint {
    /// What it means, how to fix it, an example and details: paragraphs in Markdown. Links are
    /// relative to `docs/`.
    pub fn explanation(&self) -> String {
        let lines = self.about.lines();
        let lines: Vec<&str> = lines
            .map(|line| line.strip_prefix(' ').unwrap_or(line))
            .collect();
        lines.join("\n")
    }

    /// A finding at a place, or about the whole file.
    pub fn finding(
        &self,
        span: impl Into<Option<SourceSpan>>,
        message: impl Into<String>,
    ) -> Diagnostic {
        Diagnostic {
            severity: self.severity,
            span: span.into(),
            ..Diagnostic::whole_file(self.id, message)
        }
    }

    /// The lint with another severity.
    pub fn with_severity(self, severity: Severity) -> Lint {
        Lint { severity, ..self }
    }

    /// Adds a finding with a help.
    pub fn report(
        &self,
        diagnostics: &mut Diagnostics,
        span: impl Into<Option<SourceSpan>>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        diagnostics.push(self.finding(span, message).help(help));
    }
}

/// Defines lints, and `LINTS` with all of them in their order.
macro_rules! lints {
    ($($(#[doc = $about:literal])+ $name:ident: $severity:ident $id:literal;)*) => {
        $(
            $(#[doc = $about])+
            pub const $name: Lint = Lint {
                id: $id,
                severity: $crate::yaml::Severity::$severity,
                about: concat!($($about, "\n"),+),
            };
        )*
        /// The lints of this module, in the order of `docs/lints.md`.
        pub const LINTS: &[Lint] = &[$($name),*];
    };
}
pub(crate) use lints;

/// All lints of policies and robots.txt files, in the order of `docs/lints.md`.
pub const LINTS: [&[Lint]; 3] = [policy::LINTS, rules::LINTS, file::LINTS];
