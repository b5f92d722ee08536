//! [`render_case_page`] makes the report of a case (an excerpt of the evidence log, as one file):
//! one HTML page for people who are not engineers. Requests by unproven clients and by impostors
//! have headings that say so. The template is `templates/case.html`.

use super::{CaseFindings, LogFindings, ProofFinding, RequestFinding};
use crate::record::RecordField;
use askama::Template;
use askama::filters::Escaper;
use std::fmt::{self, Display, Write};

/// Longer words, in bytes, may be broken in a column.
const LONG_WORD: usize = 24;

/// Escapes text in the HTML of a case.
#[derive(Clone, Copy)]
pub struct HtmlEscaper;

impl Escaper for HtmlEscaper {
    /// Escapes HTML, and writes characters that hide or turn other text (control, zero width,
    /// direction) as `\u{...}`.
    fn write_escaped_str<W: Write>(&self, mut page: W, text: &str) -> fmt::Result {
        text.chars().try_for_each(|letter| match letter {
            '&' => page.write_str("&amp;"),
            '<' => page.write_str("&lt;"),
            '>' => page.write_str("&gt;"),
            '"' => page.write_str("&quot;"),
            letter
                if letter.is_control()
                    || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') =>
            {
                write!(page, "\\u{{{:x}}}", u32::from(letter))
            }
            letter => page.write_char(letter),
        })
    }
}

/// The template of the page.
#[derive(Template)]
#[template(path = "case.html", escape = "case")]
struct CasePage<'c> {
    case: &'c CaseFindings,
    first: &'c LogFindings,
}

/// The HTML page of a case.
pub fn render_case_page(case: &CaseFindings) -> String {
    let first = &case.logs.first().cloned().unwrap_or_default();
    // Into memory: this cannot fail.
    CasePage { case, first }.render().unwrap_or_default()
}

/// How sure the case is that the client of a request was the crawler.
#[derive(Debug, PartialEq)]
enum ClientBasis {
    /// The case has a proof that it was.
    Proven,
    /// The operator says that it was: by networks of the policy, or a proof that was deleted.
    Asserted,
    /// It is not known.
    Claimed,
    /// It was not.
    Impostor,
}

impl ClientBasis {
    fn from_request(request: &RequestFinding, findings: &LogFindings) -> ClientBasis {
        let mut proofs = findings.proofs.iter();
        let has_proof = proofs.any(|proof| Some(proof.number) == request.proof_entry);
        let identity = request.field_text_or_empty(RecordField::Identity);
        match (&*identity, has_proof) {
            ("verified", true) => ClientBasis::Proven,
            ("verified", false) => ClientBasis::Asserted,
            ("impostor", _) => ClientBasis::Impostor,
            _ => ClientBasis::Claimed,
        }
    }
}

/// `2026-11-28 10:00:00 UTC`; a text of another form is returned as it is.
fn format_time(time: &str) -> String {
    match (
        time.get(..10),
        time.get(10..11),
        time.get(11..19),
        time.ends_with('Z'),
    ) {
        (Some(day), Some("T"), Some(clock), true) => format!("{day} {clock} UTC"),
        _ => time.to_owned(),
    }
}

/// Whether a text has a word such as a hash or URL, which the page may break.
fn has_long_word(text: impl Display) -> bool {
    text.to_string()
        .split_whitespace()
        .any(|word| word.len() > LONG_WORD)
}

fn request_line(request: &RequestFinding) -> String {
    format!(
        "{} {}{}",
        request.field_text_or_empty(RecordField::Method),
        request.field_text_or_empty(RecordField::Host),
        request
            .field_text(RecordField::Target)
            .unwrap_or("(withdrawn)".into())
    )
}

/// The address and the user agent of the client.
fn client_text(request: &RequestFinding) -> String {
    format!(
        "{} {}",
        request
            .field_text(RecordField::Client)
            .unwrap_or("(no address)".into()),
        request
            .field_text(RecordField::UserAgent)
            .unwrap_or("(no user agent)".into())
    )
}

/// The rule that decided, and its place in the policy.
fn rule_text(request: &RequestFinding) -> String {
    let parts = [RecordField::Rule, RecordField::RuleSource].map(|field| request.field_text(field));
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The verdict by the files of the case, with its remark.
fn rejudged_text(request: &RequestFinding) -> String {
    let remark = request.remark.as_ref().map(|remark| format!("; {remark}"));
    request.rejudged.to_owned() + &remark.unwrap_or_default()
}

fn requests_with(findings: &LogFindings, basis: ClientBasis) -> Vec<&RequestFinding> {
    let requests = findings.requests.iter();
    requests
        .filter(|request| ClientBasis::from_request(request, findings) == basis)
        .collect()
}

fn proofs_of<'f>(findings: &'f LogFindings, identity: &str) -> Vec<&'f ProofFinding> {
    findings
        .proofs
        .iter()
        .filter(|proof| proof.identity == identity)
        .collect()
}

/// The kind of proof, with the number of its entry.
fn proof_text(request: &RequestFinding) -> String {
    let entry = request
        .proof_entry
        .map(|number| format!(" (entry {number})"));
    request.field_text_or_empty(RecordField::Proof).into_owned() + &entry.unwrap_or_default()
}

/// When the crawler was last served the version of the request, and by which other instance.
fn served_text(request: &RequestFinding) -> String {
    let served = request
        .served_at
        .as_deref()
        .map_or_else(|| "not in this case".to_owned(), format_time);
    let by = request
        .served_by
        .as_ref()
        .map(|log| format!(", by the instance with the log {log}"));
    served + &by.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::FieldValue;

    fn case_with_requests(requests: Vec<RequestFinding>) -> CaseFindings {
        let proofs = vec![ProofFinding {
            number: 7,
            identity: "verified".into(),
            ..ProofFinding::default()
        }];
        CaseFindings::from_logs(vec![LogFindings {
            crawler: "gptbot".into(),
            requests,
            proofs,
            ..LogFindings::default()
        }])
    }

    fn request_finding(identity: &str, proof_entry: Option<u64>, target: &str) -> RequestFinding {
        let fields = [
            (RecordField::Identity, identity),
            (RecordField::Target, target),
        ];
        let value = |text: &str| FieldValue::from_string(text.to_owned());
        RequestFinding {
            request: fields
                .map(|(field, text)| (field, value(text)))
                .into_iter()
                .collect(),
            proof_entry,
            ..RequestFinding::default()
        }
    }

    #[test]
    fn unproven_requests_have_headings_that_say_so() {
        let page = render_case_page(&case_with_requests(vec![
            request_finding("impostor", None, "/<script>"),
            request_finding("unverified", None, "/claimed"),
            request_finding("something else", None, "/odd"),
            request_finding("verified", Some(3), "/asserted"),
            request_finding("verified", Some(7), "/proven"),
        ]));
        let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text}"));
        let order = [
            place("proven to be of"),
            place("/proven"),
            place("that the operator says are of"),
            place("/asserted"),
            place("it is not proven that they are"),
            place("/claimed"),
            place("/odd"),
            place("Requests by impostors"),
            place("/&lt;script&gt;"),
        ];
        assert!(order.is_sorted(), "{order:?}");
        assert!(!page.contains("<script"));
    }
}
