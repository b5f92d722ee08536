//! `check --format sarif`: the findings as SARIF 2.1.0, which code hosts and editors read
//! (<https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html>).

use super::{Checked, Repository, end_column, explanation};
use crate::yaml::{Diagnostic, Severity, Source, Span};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

const SCHEMA: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";
/// The id of problems of certificates, for which there is no lint.
const CERTIFICATE: &str = "certificate";

/// The octets that are escaped in a path.
const NO_PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The log of one run.
pub(super) fn log(checked: &Checked, notes: bool) -> Value {
    let mut log = Log { repository: Repository::here(), rules: Vec::new(), results: Vec::new() };
    checked.listed(notes).for_each(|(source, finding)| log.finding(source, finding));
    for problem in &checked.certificates {
        let severity = if problem.is_error { Severity::Error } else { Severity::Warning };
        let settings = checked.settings.iter().map(|(source, _)| log.location(source, None)).collect();
        log.add((CERTIFICATE, severity), problem.text.clone(), settings, Vec::new());
    }
    let rules: Vec<Value> = log.rules.iter().map(|(id, severity)| rule(id, *severity)).collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "crawlgate", "semanticVersion": env!("CARGO_PKG_VERSION"), "rules": rules } },
            "columnKind": "unicodeCodePoints",
            "results": log.results,
        }],
    })
}

struct Log {
    repository: Repository,
    rules: Vec<(&'static str, Severity)>,
    results: Vec<Value>,
}

impl Log {
    fn finding(&mut self, source: &Source, finding: &Diagnostic) {
        let mut text = vec![finding.message.clone()];
        text.extend(explanation(finding));
        let related = finding.related.iter().zip(0..).map(|(related, id)| {
            let mut location = self.location(source, Some(related.span));
            location["id"] = json!(id);
            location["message"] = json!({ "text": related.label });
            location
        });
        let related = related.collect();
        let location = self.location(source, finding.span);
        self.add((finding.id, finding.severity), text.join("\n"), vec![location], related);
    }

    fn add(&mut self, (id, severity): (&'static str, Severity), text: String, at: Vec<Value>, related: Vec<Value>) {
        let known = self.rules.iter().position(|(known, _)| *known == id);
        let rule = known.unwrap_or_else(|| {
            self.rules.push((id, severity));
            self.rules.len() - 1
        });
        let mut result = json!({
            "ruleId": id,
            "ruleIndex": rule,
            "level": severity.name(),
            "message": { "text": text },
            "locations": at,
        });
        if !related.is_empty() {
            result["relatedLocations"] = related.into();
        }
        self.results.push(result);
    }

    fn location(&self, source: &Source, span: Option<Span>) -> Value {
        let mut place = json!({ "artifactLocation": { "uri": uri(&self.repository.name(&source.name)) } });
        if let Some(span) = span {
            place["region"] = json!({
                "startLine": span.line,
                "startColumn": span.column,
                "endLine": span.line,
                "endColumn": end_column(source, span),
            });
        }
        json!({ "physicalLocation": place })
    }
}

/// What a rule is about. GitHub shows nothing of a rule without these texts.
fn rule(id: &str, severity: Severity) -> Value {
    let (about, help) = match crate::policy::lint::LINTS.iter().find(|lint| lint.id == id) {
        Some(lint) => (lint.about.to_owned(), format!("explains `{id}` in docs/lints.md.")),
        None => (id.replace('-', " "), "explains the language of policies in docs/policy.md.".to_owned()),
    };
    let help = format!("The documentation of crawlgate {help}");
    json!({
        "id": id,
        "shortDescription": { "text": about },
        "fullDescription": { "text": about },
        "help": { "text": help },
        "defaultConfiguration": { "level": severity.name() },
    })
}

/// A path as a URI reference (RFC 3986); a URL stays as it is.
fn uri(name: &str) -> String {
    if name.contains("://") {
        return name.to_owned();
    }
    utf8_percent_encode(name, NO_PATH).to_string()
}
