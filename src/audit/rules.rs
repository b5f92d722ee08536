//! [`Rules`]: what the requests of a log are judged by. They are robots.txt files with the times at
//! which each was published, or policies. An audit judges by policies as if they had been in force
//! all the time.

use crate::crawlers::Registry;
use crate::policy::origin::{Origin, OriginFile};
use crate::policy::{IncludedFiles, ParsedVersion, SiteEntry, Snapshot, SupersededVersion};
use crate::sites::DefaultSite;
use crate::time::Timestamp;
use crate::verdict::{CachedVersions, HistoryBasis, Surroundings, load_with};
use std::sync::Arc;
use std::time::Duration;

/// A robots.txt and since when it was in force.
#[derive(Debug)]
pub struct PublishedFile {
    /// What messages call it.
    pub name: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// `None`: since ever.
    pub since: Option<Timestamp>,
}

/// What requests are judged by.
#[derive(Debug)]
pub struct Rules {
    entries: Vec<InForce>,
    /// Which entry is for which host, where policies say so.
    snapshot: Option<Snapshot>,
    grace: Duration,
}

#[derive(Debug)]
struct InForce {
    since: Option<Timestamp>,
    entry: SiteEntry,
    /// The files before it, the latest first.
    superseded: Vec<SupersededVersion>,
}

/// Why there are no rules.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// Two files begin together.
    #[error("{0} and {1} are in force since the same moment; write `FILE@TIME` for the later one")]
    SameTime(String, String),
    /// A file that crawlgate cannot use.
    #[error("{name}: {message}")]
    Unusable {
        /// The file.
        name: String,
        /// What is wrong.
        message: String,
    },
}

/// What was in force for a request.
#[derive(Debug)]
pub struct Found<'a> {
    /// Index of the entry.
    pub index: usize,
    /// The site.
    pub entry: &'a SiteEntry,
}

impl Rules {
    /// Rules from published files, in any order. A crawler may use a copy for `grace`.
    ///
    /// # Errors
    /// Two files begin together, or one cannot be used.
    pub fn published(
        mut files: Vec<PublishedFile>,
        grace: Duration,
        registry: &'static Registry,
    ) -> Result<Rules, RulesError> {
        files.sort_by_key(|file| file.since);
        for pair in files.windows(2) {
            if pair[0].since == pair[1].since {
                return Err(RulesError::SameTime(
                    pair[0].name.clone(),
                    pair[1].name.clone(),
                ));
            }
        }
        let mut entries: Vec<InForce> = Vec::with_capacity(files.len());
        let mut superseded: Vec<SupersededVersion> = Vec::new();
        for (place, file) in files.iter().enumerate() {
            let since = file.since.unwrap_or(Timestamp(i64::MIN));
            let entry = entry(file, since, registry)?;
            entries.push(InForce {
                since: file.since,
                entry,
                superseded: superseded.clone(),
            });
            if let Some(superseded_at) = files.get(place + 1).and_then(|next| next.since) {
                let parsed = Arc::new(ParsedVersion::read(file.bytes.clone().into(), registry));
                superseded.insert(
                    0,
                    SupersededVersion {
                        parsed,
                        since,
                        superseded_at,
                    },
                );
                superseded.truncate(SUPERSEDED);
            }
        }
        Ok(Rules {
            entries,
            snapshot: None,
            grace,
        })
    }

    /// Rules from policies.
    pub fn policies(snapshot: Snapshot) -> Rules {
        Rules {
            entries: snapshot
                .sites()
                .iter()
                .map(|entry| InForce {
                    since: None,
                    entry: entry.clone(),
                    superseded: Vec::new(),
                })
                .collect(),
            snapshot: Some(snapshot),
            grace: Duration::ZERO,
        }
    }

    /// Whether these are policies, which need not have been published at the time of the log.
    pub fn are_policies(&self) -> bool {
        self.snapshot.is_some()
    }

    /// The entries, by index.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = &SiteEntry> {
        self.entries.iter().map(|in_force| &in_force.entry)
    }

    /// What was in force for a host at a moment. With published files, that of the moment for every
    /// host. With policies, the site of the host at any moment; where the log names no host, the
    /// only policy is meant. `None` if no policy has the host, or several might be meant.
    pub(super) fn find(&self, host: Option<&[u8]>, time: Timestamp) -> Option<Found<'_>> {
        match (&self.snapshot, host) {
            (None, _) => self.at(time),
            (Some(_), None) if self.entries.len() == 1 => self.entry(0),
            (Some(_), None) => None,
            (Some(snapshot), Some(host)) => self.entry(snapshot.site_for_host(host)?),
        }
    }

    /// The entry at an index; `None` beyond the last.
    fn entry(&self, index: usize) -> Option<Found<'_>> {
        Some(Found {
            index,
            entry: &self.entries.get(index)?.entry,
        })
    }

    /// The published file that was in force at a moment. Before the first known file it is that
    /// one; [`Rules::cached`] then says that the history is unknown, so that such requests prove
    /// nothing.
    fn at(&self, time: Timestamp) -> Option<Found<'_>> {
        let after = self
            .entries
            .partition_point(|in_force| in_force.since.is_none_or(|since| since <= time));
        self.entry(after.saturating_sub(1))
    }

    /// Until when a crawler that keeps a robots.txt for `kept` may use one from before the first
    /// known file.
    pub(super) fn unknown_until(&self, kept: Duration) -> Option<Timestamp> {
        let begins = self.entries.first()?.since?;
        Some(begins.plus(self.grace.max(kept)))
    }

    /// Which files before entry `index` a crawler may have used at `time`: those in force within
    /// the grace before it, or within `kept` if that is longer (how long the crawler is documented
    /// to keep a robots.txt). The basis is `Unknown` if that time reaches back to the first known
    /// file, or has 64 files in it. That ends when nobody may use a file from before the entry.
    /// Nothing for an index beyond the last.
    pub(super) fn cached(
        &self,
        index: usize,
        time: Timestamp,
        kept: Duration,
    ) -> CachedVersions<'_> {
        let Some(in_force) = self.entries.get(index) else {
            return CachedVersions::default();
        };
        let window = self.grace.max(kept);
        let cached_since = Timestamp(time.0.saturating_sub_unsigned(window.as_secs()));
        let older_until = in_force.since.map(|since| since.plus(window));
        let mut cached = 0;
        for (place, version) in in_force.superseded.iter().enumerate() {
            cached |= u64::from(version.superseded_at >= cached_since) << place;
        }
        let begins = self.entries.first().and_then(|first| first.since);
        // With as many files within the grace as there are bits, earlier ones may be missing.
        let is_whole =
            begins.is_none_or(|begins| begins < cached_since) && cached.count_ones() < u64::BITS;
        let basis = if is_whole {
            HistoryBasis::Declared
        } else {
            HistoryBasis::Unknown
        };
        let versions = in_force.superseded.as_slice();
        CachedVersions {
            versions,
            cached,
            basis,
            was_served: true,
            older_until: older_until.filter(|until| time <= *until),
            ..CachedVersions::default()
        }
    }
}

/// As many as `CachedVersions` has bits for.
const SUPERSEDED: usize = u64::BITS as usize;

/// The entry of a site that serves this very file for every host since this moment. `since` before
/// 1970 counts as 1970.
fn entry(
    file: &PublishedFile,
    since: Timestamp,
    registry: &'static Registry,
) -> Result<SiteEntry, RulesError> {
    let source = DefaultSite::for_every_host().source();
    let origin = Origin::Read(Arc::new(OriginFile::new(
        file.name.clone(),
        file.bytes.clone(),
    )));
    let surroundings = Surroundings {
        origin: &origin,
        files: &IncludedFiles::default(),
    };
    let at = since.max(Timestamp(0));
    match load_with("robots.txt", &source, surroundings, registry, at) {
        (Some(site), _) => Ok(SiteEntry::new(site, at)),
        (None, diagnostics) => Err(RulesError::Unusable {
            name: file.name.clone(),
            message: diagnostics
                .items
                .first()
                .map(|found| found.message.clone())
                .unwrap_or_default(),
        }),
    }
}
