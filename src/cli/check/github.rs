//! `check --format github`: each finding as a workflow command, which GitHub shows beside the line
//! of a change
//! (<https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands>).
//!
//! GitHub obeys commands in the log of a job, and anybody may propose a policy. So text of a policy
//! is printed only inside of crawlgate's own commands, and escaped.

use super::{Checked, Repository, end_column, explanation};
use crate::yaml::{Diagnostic, Severity, Source, Span};
use std::io::{self, Write};

/// Prints the findings, notes only with `notes`, and then the problems of certificates as workflow
/// commands, which GitHub shows as annotations. Problems of certificates have no place in a file.
pub fn print(out: &mut impl Write, checked: &Checked, notes: bool) -> io::Result<()> {
    let repository = Repository::here();
    for (source, finding) in checked.listed(notes) {
        writeln!(out, "{}", command(source, finding, &repository))?;
    }
    for problem in &checked.certificates {
        let command = if problem.id.is_error() {
            "error"
        } else {
            "warning"
        };
        writeln!(
            out,
            "::{command} title=crawlgate certificate::{}",
            data(&problem.message)
        )?;
    }
    Ok(())
}

/// A finding as a workflow command: `error`, `warning` or `notice` with its id, file and place (the
/// first line of the place only), its message and explanation.
fn command(source: &Source, finding: &Diagnostic, repository: &Repository) -> String {
    let command = match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "notice",
    };
    let file = property(&repository.name(&source.name));
    let place = finding.span.map_or_else(String::new, |span| {
        let Span { line, column, .. } = span;
        let end = end_column(source, span);
        format!(",line={line},endLine={line},col={column},endColumn={end}")
    });
    let text = format!(
        "{}\n{}",
        finding.one_line(source),
        explanation(finding).join("\n")
    );
    format!(
        "::{command} title=crawlgate {},file={file}{place}::{}",
        finding.id,
        data(text.trim_end())
    )
}

/// Text after a command.
fn data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// Text as the value of a property.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
