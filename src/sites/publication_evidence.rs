//! [`PublicationEvidence`] records in the evidence log what each site publishes: once at first, and at each change.

use crate::evidence::{Evidence, Hash, Record, time_text};
use crate::policy::{SiteEntry, Version};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

/// What a site published.
#[derive(Clone, PartialEq, Eq)]
struct Told {
    version: Version,
    hosts: Vec<String>,
    /// Whether robots.txt is answered 503.
    is_unavailable: bool,
}

/// Tells the evidence log what sites publish.
#[derive(Default)]
pub struct PublicationEvidence {
    evidence: Evidence,
    told: BTreeMap<String, Told>,
}

impl PublicationEvidence {
    /// Records in this log.
    pub fn new(evidence: Evidence) -> PublicationEvidence {
        PublicationEvidence { evidence, told: BTreeMap::new() }
    }

    /// Records what changed: these sites are in force from now on.
    pub fn tell(&mut self, entries: &[SiteEntry]) {
        if !self.evidence.is_on() {
            return;
        }
        let mut before = std::mem::take(&mut self.told);
        for entry in entries {
            let site = &entry.site;
            let told = Told {
                version: site.robots_txt.version,
                hosts: site.policy.hosts.iter().map(|host| host.value.to_string()).collect(),
                is_unavailable: entry.robots_txt.is_unavailable(),
            };
            if before.remove(&site.name).as_ref() != Some(&told) {
                self.evidence.published(&site.name, published(entry, &told));
            }
            self.told.insert(site.name.clone(), told);
        }
        for name in before.into_keys() {
            self.evidence.published(&name, Record { kind: "withdrawn", ..Record::default() });
        }
    }
}

fn published(entry: &SiteEntry, told: &Told) -> Record {
    let body = &entry.site.robots_txt.body;
    let since = SystemTime::UNIX_EPOCH + Duration::from_secs(entry.since.0.unsigned_abs());
    let data = json!({
        "version": told.version.to_string(),
        "sha256": Hash::of(&[body]),
        "hosts": told.hosts,
        "since": time_text(since),
        "answer": if told.is_unavailable { 503 } else { 200 },
    });
    Record { documents: vec![body.clone()], ..Record::of("published", data) }
}
