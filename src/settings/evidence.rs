//! [`EvidenceSettings`]: the section `evidence` of `crawlgate.yaml`. It configures the evidence
//! log, which records published robots.txt files and violations. Third parties can check this log.

use super::section::section;
use super::values::DAY;
use crate::yaml::{NodeReader, strip_http_scheme};
use std::time::Duration;

const MIB: u64 = 1024 * 1024;

section! {
    /// The retention, size and timestamps of the evidence log.
    #[derive(Clone, Debug, PartialEq)]
    EvidenceSettings {
        /// For how long entries are kept.
        "keep" => keep: Duration = 400 * DAY, decode_retention;
        /// The most bytes of the log. A full log gets no entries.
        "megabytes" => size: u64 = 4096 * MIB, decode_megabytes;
        /// The URLs of the authorities that timestamp checkpoints (RFC 3161).
        "timestamps" => timestamps: Vec<String> = Vec::new(), decode_authorities;
    }
}

/// `off`, `on`, or `{ keep: 400d, megabytes: 4096, timestamps: [https://tsa.example/tsr] }` with
/// defaults for missing fields. `None` for `off`.
pub fn decode_evidence(node: NodeReader<'_>) -> Option<EvidenceSettings> {
    if !node.is_map() {
        return node.boolean()?.then(EvidenceSettings::default);
    }
    node.decode_map(
        "a map: keep, megabytes, timestamps",
        EvidenceSettings::decode,
    )
}

fn decode_retention(node: NodeReader<'_>) -> Option<Duration> {
    node.duration_within(
        DAY..=3_650 * DAY,
        "this duration is too short or too long",
        Some("write one day to ten years, like \"400d\""),
    )
}

/// A number of megabytes, in bytes.
fn decode_megabytes(node: NodeReader<'_>) -> Option<u64> {
    let megabytes: u64 = node.integer(16..=1_048_576, "a number of megabytes")?;
    Some(megabytes * MIB)
}

/// The URLs of timestamp authorities. Leaves out mistakes.
fn decode_authorities(node: NodeReader<'_>) -> Option<Vec<String>> {
    Some(node.parse_all_with(
        "a list of URLs",
        |url| {
            let rest = strip_http_scheme(url)?;
            (!rest.is_empty() && !rest.contains(char::is_whitespace)).then(|| url.to_owned())
        },
        (
            "bad-value",
            "is not the URL of a timestamp authority",
            "write a URL, like \"https://tsa.example/tsr\"",
        ),
    ))
}
