//! [`EvidenceRecorder::subscribe_to_publications`] watches the robots.txt that each site publishes,
//! and its other statements about the use of its content. It writes them to the evidence log: once at
//! the start, and at each change.

use super::{EvidenceRecorder, Hash, NewEntry, format_time};
use crate::locks::lock;
use crate::policy::site::{CompiledSignals, SignalField};
use crate::policy::{RobotsVersionId, SiteEntry};
use crate::publications::PublicationLog;
use crate::sites::{PublicationSubscriber, SiteManager};
use crate::telemetry::Metrics;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

/// What a site publishes, as far as a change is recorded.
#[derive(PartialEq)]
struct SitePublication {
    version: RobotsVersionId,
    hosts: Vec<String>,
    /// Whether robots.txt is answered with 503.
    is_unavailable: bool,
    signals: Vec<String>,
}

impl SitePublication {
    fn new(entry: &SiteEntry) -> SitePublication {
        let hosts = &entry.site.policy.hosts;
        SitePublication {
            version: entry.site.robots_txt.version,
            hosts: hosts.iter().map(|host| host.value.to_string()).collect(),
            is_unavailable: entry.robots_txt.is_unavailable(),
            signals: signal_texts(&entry.site.signals),
        }
    }

    /// The entry for the evidence log. `answer` is 503 while robots.txt is paused or awaited.
    fn to_entry(&self, entry: &SiteEntry) -> NewEntry {
        let body = &entry.site.robots_txt.body;
        let since = SystemTime::UNIX_EPOCH + Duration::from_secs(entry.since.0.unsigned_abs());
        let data = json!({
            "version": self.version.to_string(),
            "sha256": Hash::digest(&[body]),
            "hosts": self.hosts,
            "since": format_time(since),
            "answer": if self.is_unavailable { 503 } else { 200 },
            "signals": self.signals,
        });
        NewEntry {
            documents: vec![body.clone()],
            ..NewEntry::new("published", data)
        }
    }
}

/// The header lines about the use of the content, each with its paths, and `tdmrep.json`.
fn signal_texts(signals: &CompiledSignals) -> Vec<String> {
    let mut texts = Vec::new();
    for SignalField { name, values } in signals.fields_by_path() {
        for (path, value) in values {
            // An empty value stands for paths without the field.
            if value.is_empty() {
                continue;
            }
            let path = path.map_or("/*", |path| path.as_str());
            texts.push(format!("{name}: {value} ({path})"));
        }
    }
    let file = signals.tdmrep.iter();
    texts.extend(file.map(|file| format!("tdmrep.json: {}", String::from_utf8_lossy(&file.body))));
    texts
}

struct PublicationRecorder {
    evidence: EvidenceRecorder,
    /// The last recorded publication of each site.
    recorded: Mutex<BTreeMap<String, SitePublication>>,
}

impl EvidenceRecorder {
    /// Records what these sites publish from now on, beginning with the present publications, if
    /// evidence is enabled. Exports the counters of the log. Call it once.
    pub fn subscribe_to_publications(&self, sites: &SiteManager, metrics: &Metrics) {
        for counter in self.counters() {
            metrics.register_counter(counter);
        }
        if self.is_enabled() {
            sites.subscribe(Box::new(PublicationRecorder {
                evidence: self.clone(),
                recorded: Mutex::default(),
            }));
        }
    }
}

impl PublicationSubscriber for PublicationRecorder {
    /// Records changed publications (`published`) and removed sites (`withdrawn`).
    fn published(&self, _log: &PublicationLog, sites: &[SiteEntry]) {
        let mut recorded = lock(&self.recorded);
        let mut before = std::mem::take(&mut *recorded);
        for entry in sites {
            let name = &entry.site.name;
            let publication = SitePublication::new(entry);
            if before.remove(name).as_ref() != Some(&publication) {
                self.evidence
                    .record_publication(name, publication.to_entry(entry));
            }
            recorded.insert(name.clone(), publication);
        }
        for name in before.into_keys() {
            self.evidence
                .record_publication(&name, NewEntry::new("withdrawn", json!({})));
        }
    }
}
