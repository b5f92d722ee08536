//! `check --format sarif`: prints the findings about the policies as a SARIF 2.1.0 log
//! (<https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html>), which GitHub code scanning
//! and editors can show.

use super::{CheckResults, Repository, end_column, explanation_lines};
use crate::policy::lint::Lint;
use crate::yaml::{Diagnostic, SourceFile, SourceSpan};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// Bytes of a path that a URI reference cannot have.
const NOT_IN_A_PATH: AsciiSet = NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The log with all findings; notes only with `notes`. Problems of certificates have the settings
/// file as their place.
pub fn build_log(checked: &CheckResults, notes: bool) -> Value {
    let repository = Repository::from_environment();
    let mut rules: BTreeMap<&str, Value> = BTreeMap::new();
    let mut results = Vec::new();
    for found in checked.findings(notes) {
        rules
            .entry(found.finding.id)
            .or_insert_with_key(|id| rule(id));
        results.push(result(found.source, &found.finding, &repository));
    }
    for problem in &checked.certificates {
        rules.entry("certificate").or_insert_with_key(|id| rule(id));
        let settings = checked.settings.as_ref();
        let place = settings.map(|file| location(&file.source, None, &repository));
        results.push(json!({
            "ruleId": "certificate",
            "level": problem.id.severity().name(),
            "message": { "text": problem.message },
            "locations": Vec::from_iter(place),
        }));
    }
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {
                "driver": {
                    "name": "crawlgate",
                    "version": env!("CARGO_PKG_VERSION"),
                    "rules": rules.into_values().collect::<Vec<Value>>(),
                },
            },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

/// The description of a kind of finding.
fn rule(id: &str) -> Value {
    let name = id.replace('-', " ");
    let help = super::lints().find(|lint| lint.id == id).map_or_else(
        || {
            format!(
                "{}/blob/main/docs/lints.md lists all ids: search it for {id}.",
                env!("CARGO_PKG_REPOSITORY")
            )
        },
        Lint::explanation,
    );
    json!({
        "id": id,
        "shortDescription": { "text": name },
        "fullDescription": { "text": name },
        "help": { "text": help, "markdown": help },
    })
}

fn result(source: &SourceFile, finding: &Diagnostic, repository: &Repository) -> Value {
    let mut lines = explanation_lines(finding);
    lines.insert(0, finding.message.clone());
    json!({
        "ruleId": finding.id,
        "level": finding.severity.name(),
        "message": { "text": lines.join("\n") },
        "locations": [location(source, finding.span, repository)],
    })
}

/// A place in a file; the file alone without a span.
fn location(source: &SourceFile, span: Option<SourceSpan>, repository: &Repository) -> Value {
    let name = repository.relative_name(&source.name);
    let uri = if name.contains("://") {
        name
    } else {
        utf8_percent_encode(&name, &NOT_IN_A_PATH).to_string()
    };
    let mut place = json!({ "artifactLocation": { "uri": uri } });
    if let Some(span) = span {
        place["region"] = json!({
            "startLine": span.line.max(1),
            "startColumn": span.column.max(1),
            "endColumn": end_column(source, span).max(1),
        });
    }
    json!({ "physicalLocation": place })
}
