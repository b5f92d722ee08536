//! [`EvidenceSettings`]: the section `evidence` of `crawlgate.yaml`. It configures the evidence
//! log, a log of publications and violations that third parties can check.

use super::values::DAY;
use crate::yaml::{NodeReader, strip_http_scheme};
use std::time::Duration;

const MIB: u64 = 1024 * 1024;

/// The retention, size and timestamps of the evidence log.
#[derive(Clone, Debug, PartialEq)]
pub struct EvidenceSettings {
    /// For how long entries are kept.
    pub keep: Duration,
    /// The URLs of the authorities that timestamp checkpoints (RFC 3161).
    pub timestamps: Vec<String>,
    /// The most bytes of the log. A full log gets no entries.
    pub size: u64,
}

impl Default for EvidenceSettings {
    fn default() -> EvidenceSettings {
        EvidenceSettings {
            keep: 400 * DAY,
            timestamps: Vec::new(),
            size: 4096 * MIB,
        }
    }
}

/// `off`, `on`, or `{ keep: 400d, megabytes: 4096, timestamps: [https://tsa.example/tsr] }` with
/// defaults for missing fields. `None` for `off`.
pub fn decode_evidence(node: NodeReader<'_>) -> Option<EvidenceSettings> {
    let mut settings = EvidenceSettings::default();
    if !node.is_map() {
        return node.boolean()?.then_some(settings);
    }
    node.decode_map("a map: keep, megabytes, timestamps", |fields| {
        fields.get_into("keep", &mut settings.keep, |node| {
            node.duration_within(
                DAY..=3_650 * DAY,
                "this duration is too short or too long",
                Some("write one day to ten years, like \"400d\""),
            )
        });
        fields.get_into("megabytes", &mut settings.size, |node| {
            let megabytes: u64 = node.integer(16..=1_048_576, "a number of megabytes")?;
            Some(megabytes * MIB)
        });
        settings.timestamps = fields.get_or_default("timestamps", |node| {
            node.parse_all_with(
                "a list of URLs",
                |url| {
                    let rest = strip_http_scheme(url)?;
                    (!rest.is_empty() && !rest.contains(char::is_whitespace))
                        .then(|| url.to_owned())
                },
                (
                    "bad-value",
                    "is not the URL of a timestamp authority",
                    "write a URL, like \"https://tsa.example/tsr\"",
                ),
            )
        });
        settings
    })
}
