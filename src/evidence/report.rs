//! [`render_case_page`] makes the report of a case (an excerpt of the evidence log, as one file):
//! one HTML page for people who are not engineers. It begins with the result in a few paragraphs
//! (`summary`). Requests by impostors, and by clients that are not proven to be the crawler, are
//! listed under headings of their own. The template is `templates/case.html`.

use super::summary::{
    IdentityAssurance, RequestFact, case_summary, clients_text, count_requests, format_exact_time,
    format_time, hosts_text, license_names, requests_with, rule_names,
};
use super::{CaseFindings, LogFindings, ProofFinding, RequestFinding};
use crate::numbers::thousands;
use crate::printable::join;
use crate::record::RecordField;
use crate::report::crawler_name;
use askama::Template;
use askama::filters::Escaper;
use std::fmt::{self, Display, Write};
use strum::VariantArray;

use RecordField::*;

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

/// Whether a text has a word such as a hash or URL, which the page may break.
fn has_long_word(text: impl Display) -> bool {
    text.to_string()
        .split_whitespace()
        .any(|word| word.len() > LONG_WORD)
}

/// The text with only the first 12 digits of each SHA-256.
fn shorten_hashes(text: impl Display) -> String {
    text.to_string()
        .split_inclusive(|letter: char| !letter.is_ascii_hexdigit())
        .map(
            |word| match word.bytes().filter(u8::is_ascii_hexdigit).count() {
                64 => format!("{}…{}", &word[..12], &word[64..]),
                _ => word.to_owned(),
            },
        )
        .collect()
}

/// The verdict by the files of the case, with its remark.
fn rejudged_text(request: &RequestFinding) -> String {
    let remark = request.remark.as_ref().map(|remark| format!("; {remark}"));
    shorten_hashes(request.rejudged.to_owned() + &remark.unwrap_or_default())
}

fn proofs_of<'f>(findings: &'f LogFindings, identity: &str) -> Vec<&'f ProofFinding> {
    findings
        .proofs
        .iter()
        .filter(|proof| proof.identity == identity)
        .collect()
}

/// When a client with the same kind of identity was last served the version of the request, which
/// client, and by which other instance.
fn served_text(request: &RequestFinding) -> String {
    let Some(served) = &request.served_at else {
        return "never in this case".to_owned();
    };
    let mut text = format_exact_time(served);
    let served = request.served_to.as_deref().unwrap_or("(no address)");
    text += &format!(", to {served}");
    if request.field_text_or_empty(Client) != served {
        text += ", a client with the same kind of identity";
    }
    if let Some(log) = &request.served_by {
        text += &format!(", by the instance with the log {log}");
    }
    if request.field_text(NeverFetched).is_some() {
        text += "; that copy is too old for the crawler to use";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::FieldValue;

    fn case_with_requests(requests: Vec<RequestFinding>) -> CaseFindings {
        let proofs = vec![ProofFinding {
            number: 7,
            identity: "verified".into(),
            is_complete: true,
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
    fn only_whole_hashes_are_shortened() {
        let hash = "0123456789ab".repeat(6);
        for (text, short) in [
            (
                format!("robots/{}.txt", &hash[..64]),
                "robots/0123456789ab….txt",
            ),
            (format!("{}€", &hash[..62]), &format!("{}€", &hash[..62])),
            (hash.clone(), &hash),
        ] {
            assert_eq!(shorten_hashes(text), *short);
        }
    }

    #[test]
    fn unproven_requests_have_headings_that_say_so() {
        let page = render_case_page(&case_with_requests(vec![
            request_finding("impostor", None, "/<script>"),
            request_finding("impostor", Some(7), "/pretended"),
            request_finding("unverified", None, "/claimed"),
            request_finding("something else", None, "/odd"),
            request_finding("verified", Some(3), "/asserted"),
            request_finding("verified", Some(7), "/proven"),
        ]));
        let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text}"));
        let order = [
            place("class=\"proven\""),
            place("/proven"),
            place("class=\"asserted\""),
            place("/asserted"),
            place("class=\"claimed\""),
            place("/claimed"),
            place("/odd"),
            place("class=\"impostor\""),
            place("/pretended"),
            place("/&lt;script&gt;"),
        ];
        assert!(order.is_sorted(), "{order:?}");
        assert!(!page.contains("<script"));
    }
}
