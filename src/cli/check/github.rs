//! `check --format github`: prints each finding about a policy as a workflow command of GitHub
//! Actions
//! (<https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands>). GitHub
//! then shows the finding beside the line of the pull request. GitHub obeys a workflow command
//! anywhere in a job's log, so a policy in a pull request could contain one. Therefore text of a
//! policy is escaped, and printed only inside crawlgate's own workflow commands.

use super::{CheckResults, Repository, end_column, explanation_lines};
use crate::yaml::{Diagnostic, SourceFile, SourceSpan};
use std::io::{self, Write};

/// Prints the findings, and then the problems of certificates, which have no place in a file. Notes
/// are printed only with `notes`.
pub fn print_annotations(
    out: &mut impl Write,
    checked: &CheckResults,
    notes: bool,
) -> io::Result<()> {
    let repository = Repository::from_environment();
    for found in checked.findings(notes) {
        let command = workflow_command(found.source, &found.finding, &repository);
        writeln!(out, "{command}")?;
    }
    for problem in &checked.certificates {
        let command = problem.id.severity().name();
        writeln!(
            out,
            "::{command} title=crawlgate certificate::{}",
            escape_data(&problem.message)
        )?;
    }
    Ok(())
}

/// A finding as a workflow command `error`, `warning` or `notice`. Only the first line of its place
/// is marked.
fn workflow_command(source: &SourceFile, finding: &Diagnostic, repository: &Repository) -> String {
    let command = finding.severity.name().replace("note", "notice");
    let file = escape_data(&repository.relative_name(&source.name))
        .replace(':', "%3A")
        .replace(',', "%2C");
    let place = finding.span.map_or_else(String::new, |span| {
        let SourceSpan { line, column, .. } = span;
        let end = end_column(source, span);
        format!(",line={line},endLine={line},col={column},endColumn={end}")
    });
    let text = format!(
        "{}\n{}",
        finding.one_line(source),
        explanation_lines(finding).join("\n")
    );
    format!(
        "::{command} title=crawlgate {},file={file}{place}::{}",
        finding.id,
        escape_data(text.trim_end())
    )
}

/// Escapes the text after a command.
fn escape_data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}
