//! [`Evidence::follow`] records in the evidence log what each site publishes: once at first, and at
//! each change.

use super::{Evidence, Hash, Record, time_text};
use crate::locks::lock;
use crate::policy::{SiteEntry, Version};
use crate::publications::PublicationLog;
use crate::sites::{PublicationSubscriber, SiteManager};
use crate::telemetry::Metrics;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

/// What a site published.
#[derive(PartialEq)]
struct SitePublication {
    version: Version,
    hosts: Vec<String>,
    /// Whether robots.txt is answered 503.
    is_unavailable: bool,
}

impl SitePublication {
    fn new(entry: &SiteEntry) -> SitePublication {
        let hosts = &entry.site.policy.hosts;
        SitePublication {
            version: entry.site.robots_txt.version,
            hosts: hosts.iter().map(|host| host.value.to_string()).collect(),
            is_unavailable: entry.robots_txt.is_unavailable(),
        }
    }

    /// The entry for the evidence log that a site publishes this, with the bytes of its robots.txt
    /// as a document. The `answer` is 503 while robots.txt is paused or awaited.
    fn record(&self, entry: &SiteEntry) -> Record {
        let body = &entry.site.robots_txt.body;
        let since = SystemTime::UNIX_EPOCH + Duration::from_secs(entry.since.0.unsigned_abs());
        let data = json!({
            "version": self.version.to_string(),
            "sha256": Hash::of(&[body]),
            "hosts": self.hosts,
            "since": time_text(since),
            "answer": if self.is_unavailable { 503 } else { 200 },
        });
        Record {
            documents: vec![body.clone()],
            ..Record::of("published", data)
        }
    }
}

/// Records what sites publish.
struct PublicationEvidence {
    evidence: Evidence,
    /// What was last recorded of each site.
    recorded: Mutex<BTreeMap<String, SitePublication>>,
}

impl Evidence {
    /// From now on records what these sites publish, beginning with those in force, where evidence
    /// is on. Exports the counters of the log. To be called once.
    pub fn follow(&self, sites: &SiteManager, metrics: &Metrics) {
        for counter in self.counters() {
            metrics.export(counter);
        }
        if self.is_on() {
            sites.subscribe(Box::new(PublicationEvidence {
                evidence: self.clone(),
                recorded: Mutex::default(),
            }));
        }
    }
}

impl PublicationSubscriber for PublicationEvidence {
    /// Records which sites publish something else than before (`published`), and which are gone
    /// (`withdrawn`).
    fn published(&self, _log: &PublicationLog, sites: &[SiteEntry]) {
        let mut recorded = lock(&self.recorded);
        let mut before = std::mem::take(&mut *recorded);
        for entry in sites {
            let name = &entry.site.name;
            let publication = SitePublication::new(entry);
            if before.remove(name).as_ref() != Some(&publication) {
                self.evidence.published(name, publication.record(entry));
            }
            recorded.insert(name.clone(), publication);
        }
        for name in before.into_keys() {
            let withdrawn = Record::of("withdrawn", json!({}));
            self.evidence.published(&name, withdrawn);
        }
    }
}
