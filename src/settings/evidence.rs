//! [`EvidenceSettings`]: `evidence` of `crawlgate.yaml`, for the log of publications and violations
//! that third parties can check: how long it is kept, how large it may be, and who signs
//! timestamps.

use super::values::DAY;
use crate::yaml::Reader;
use std::time::Duration;

const MIB: u64 = 1024 * 1024;

/// The log that third parties can check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvidenceSettings {
    /// For how long entries are kept.
    pub keep: Duration,
    /// Authorities that checkpoints get a timestamp of (RFC 3161): their URLs.
    pub timestamps: Vec<String>,
    /// How many bytes the log may have; beyond them nothing is added.
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

/// `off`, `on`, or `{ keep: 400d, megabytes: 4096, timestamps: [https://tsa.example/tsr] }`; what
/// is left out has its default. `None` for `off`.
pub(super) fn evidence(node: Reader<'_>) -> Option<EvidenceSettings> {
    let mut settings = EvidenceSettings::default();
    if !node.is_map() {
        return node.boolean()?.then_some(settings);
    }
    node.map("a map: keep, megabytes, timestamps", |fields| {
        fields.set("keep", &mut settings.keep, |node| {
            node.duration_within(
                DAY..=3_650 * DAY,
                "this duration is out of bounds",
                Some("from one day to ten years: `400d`"),
            )
        });
        fields.set("megabytes", &mut settings.size, |node| {
            let megabytes: u64 = node.integer(16..=1_048_576, "a number of megabytes")?;
            Some(megabytes * MIB)
        });
        settings.timestamps = fields.get_or_default("timestamps", |node| {
            node.all_parsed(
                "a list of URLs",
                authority,
                (
                    "bad-value",
                    "is not the URL of an authority",
                    "write `https://tsa.example/tsr`",
                ),
            )
        });
        settings
    })
}

fn authority(url: &str) -> Option<String> {
    let rest = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"))?;
    (!rest.is_empty() && !rest.contains(char::is_whitespace)).then(|| url.to_owned())
}
