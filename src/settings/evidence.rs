//! `evidence` of `crawlgate.yaml`: the log that third parties can check. Must not know how it is kept.

use crate::yaml::{Decoder, Node, Value};
use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);
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
        EvidenceSettings { keep: 400 * DAY, timestamps: Vec::new(), size: 4096 * MIB }
    }
}

/// `off`, `on`, or `{ keep: 400d, megabytes: 4096, timestamps: [https://tsa.example/tsr] }`.
pub(super) fn evidence(node: &Node, decoder: &mut Decoder<'_>) -> Option<Option<EvidenceSettings>> {
    let mut settings = EvidenceSettings::default();
    if !matches!(node.value, Value::Mapping(_)) {
        return decoder.boolean(node).map(|is_on| is_on.then_some(settings));
    }
    let mut fields = decoder.fields(node, "a map: keep, megabytes, timestamps")?;
    if let Some(node) = fields.take("keep") {
        match decoder.duration(node) {
            Some(keep) if (DAY..=3_650 * DAY).contains(&keep) => settings.keep = keep,
            Some(_) => {
                decoder.error("bad-value", node.span, "this duration is out of bounds").help =
                    Some("from one day to ten years: `400d`".into());
            }
            None => {}
        }
    }
    let megabytes = fields.take("megabytes");
    let megabytes = megabytes.and_then(|node| decoder.integer(node, 16..=1_048_576, "a number of megabytes"));
    if let Some(megabytes) = megabytes {
        settings.size = megabytes * MIB;
    }
    let timestamps = fields.take("timestamps");
    for url in timestamps.map(|node| decoder.texts(node, "a list of URLs")).unwrap_or_default() {
        let rest = url.value.strip_prefix("https://").or_else(|| url.value.strip_prefix("http://"));
        if rest.is_some_and(|rest| !rest.is_empty() && !rest.contains(char::is_whitespace)) {
            settings.timestamps.push(url.value);
        } else {
            decoder.error("bad-value", url.span, format!("`{}` is not the URL of an authority", url.value)).help =
                Some("write `https://tsa.example/tsr`".into());
        }
    }
    fields.finish(decoder);
    Some(Some(settings))
}
