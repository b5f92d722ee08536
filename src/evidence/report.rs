//! [`page`] makes the report of a case (an excerpt of the evidence log, as one file): one HTML page
//! that needs no other file, for people who are not engineers. Requests of clients whose name is
//! not proven, and of impostors, have headings of their own that say so. The template is
//! `templates/case.html`.

use super::{CaseFindings, Findings, ProofFinding, RequestFinding};
use crate::record::Field;
use askama::Template;
use askama::filters::Escaper;
use std::fmt::{self, Display, Write};

/// Octets of a word that no column is as wide as.
const LONG_WORD: usize = 24;

/// Writes text into HTML.
#[derive(Clone, Copy)]
pub struct Escaped;

impl Escaper for Escaped {
    /// Writes a text with the signs of HTML escaped. Control characters, and those that hide or
    /// turn other text (zero width, direction), are written as `\u{...}`.
    fn write_escaped_str<W: Write>(&self, mut page: W, text: &str) -> fmt::Result {
        text.chars().try_for_each(|letter| match letter {
            '&' => page.write_str("&amp;"),
            '<' => page.write_str("&lt;"),
            '>' => page.write_str("&gt;"),
            '"' => page.write_str("&quot;"),
            // What would hide or turn other text stands as its number.
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

/// The page of a case.
#[derive(Template)]
#[template(path = "case.html", escape = "case")]
struct Page<'c> {
    case: &'c CaseFindings,
    first: &'c Findings,
}

/// The page of a case.
pub fn page(case: &CaseFindings) -> String {
    let first = &case.logs.first().cloned().unwrap_or_default();
    // Into memory: this cannot fail.
    Page { case, first }.render().unwrap_or_default()
}

/// What the case says of the client of a request.
#[derive(Debug, PartialEq)]
enum Basis {
    /// It was the crawler, and a proof is in the case.
    Proven,
    /// It was the crawler, by the word of the operator: by networks of the policy, or a proof that
    /// the log no longer has.
    Asserted,
    /// It is open who it was.
    Claimed,
    /// It was not the crawler.
    Impostor,
}

impl Basis {
    fn of(request: &RequestFinding, findings: &Findings) -> Basis {
        let mut proofs = findings.proofs.iter();
        let has_proof = proofs.any(|proof| Some(proof.number) == request.proof_entry);
        let identity = request.shown(Field::Identity);
        match (&*identity, has_proof) {
            ("verified", true) => Basis::Proven,
            ("verified", false) => Basis::Asserted,
            ("impostor", _) => Basis::Impostor,
            _ => Basis::Claimed,
        }
    }
}

impl Page<'_> {
    /// A time of an entry as people write it: `2026-11-28 10:00:00 UTC`. A text of another form is
    /// returned as it is.
    fn shown(&self, time: &str) -> String {
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

    /// Whether a text has a word of more than 24 bytes (a hash, a URL): then the page may break it
    /// within the word.
    fn is_long(&self, text: impl Display) -> bool {
        text.to_string()
            .split_whitespace()
            .any(|word| word.len() > LONG_WORD)
    }

    /// The method, host and target of a request; the target may be withdrawn.
    fn line(&self, request: &RequestFinding) -> String {
        format!(
            "{} {}{}",
            request.shown(Field::Method),
            request.shown(Field::Host),
            request.text(Field::Target).unwrap_or("(withdrawn)".into())
        )
    }

    /// The address and the user agent of the client, or that there is none.
    fn client(&self, request: &RequestFinding) -> String {
        format!(
            "{} {}",
            request.text(Field::Client).unwrap_or("(no address)".into()),
            request
                .text(Field::UserAgent)
                .unwrap_or("(no user agent)".into())
        )
    }

    /// The rule that decided and its place in the policy, as far as they were recorded.
    fn rule(&self, request: &RequestFinding) -> String {
        let parts = [Field::Rule, Field::RuleSource].map(|field| request.text(field));
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// What the files of the case say of the request, and a remark about it.
    fn judged(&self, request: &RequestFinding) -> String {
        let remark = request.remark.as_ref().map(|remark| format!("; {remark}"));
        request.rejudged.to_owned() + &remark.unwrap_or_default()
    }

    /// The requests whose client was the crawler on this basis. `verified` is proven if the proof
    /// is in the case, else asserted.
    fn requests<'f>(&self, findings: &'f Findings, basis: Basis) -> Vec<&'f RequestFinding> {
        let mut requests: Vec<&RequestFinding> = findings.requests.iter().collect();
        requests.retain(|request| Basis::of(request, findings) == basis);
        requests
    }

    fn proofs<'f>(&self, findings: &'f Findings, identity: &str) -> Vec<&'f ProofFinding> {
        findings
            .proofs
            .iter()
            .filter(|proof| proof.identity == identity)
            .collect()
    }

    /// How the name of the client was proven, with the number of the proof's entry.
    fn proof(&self, request: &RequestFinding) -> String {
        let entry = request
            .proof_entry
            .map(|number| format!(" (entry {number})"));
        request.shown(Field::Proof).into_owned() + &entry.unwrap_or_default()
    }

    /// When the crawler was last served the version in force before the request, and by which other
    /// instance; or that the case does not have it.
    fn served(&self, request: &RequestFinding) -> String {
        let served = request
            .served_at
            .as_deref()
            .map_or_else(|| "not in this case".to_owned(), |at| self.shown(at));
        let by = request
            .served_by
            .as_ref()
            .map(|log| format!(", by the instance with the log {log}"));
        served + &by.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Value;

    fn case(requests: Vec<RequestFinding>) -> CaseFindings {
        let proofs = vec![ProofFinding {
            number: 7,
            identity: "verified".into(),
            ..ProofFinding::default()
        }];
        CaseFindings::of(vec![Findings {
            crawler: "gptbot".into(),
            requests,
            proofs,
            ..Findings::default()
        }])
    }

    fn request(identity: &str, proof_entry: Option<u64>, target: &str) -> RequestFinding {
        let fields = [(Field::Identity, identity), (Field::Target, target)];
        let value = |text: &str| Value::text_of(text.to_owned());
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
    fn what_is_not_proven_never_stands_under_the_name_alone() {
        let page = page(&case(vec![
            request("impostor", None, "/<script>"),
            request("unverified", None, "/claimed"),
            request("something else", None, "/odd"),
            request("verified", Some(3), "/asserted"),
            request("verified", Some(7), "/proven"),
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
