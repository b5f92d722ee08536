//! [`AuditRules`]: the rules by which an audit judges the requests of an access log. They come from
//! robots.txt files with publication times ([`DatedRobotsTxt`]), or from policies. Policies are
//! applied as if they had always been in force.

use crate::crawlers::Registry;
use crate::policy::origin::{OriginRobotsAvailability, OriginRobotsTxt};
use crate::policy::{IncludedFiles, ParsedRobotsVersion, SiteEntry, Snapshot, SupersededVersion};
use crate::printable::join_first;
use crate::sites::DefaultSite;
use crate::time::Timestamp;
use crate::verdict::{CachedVersions, CachedVersionsBasis, PolicyDependencies, load_site_at};
use std::sync::Arc;
use std::time::Duration;

/// A robots.txt and its publication time.
pub struct DatedRobotsTxt {
    /// The name for messages.
    pub name: String,
    /// The content.
    pub bytes: Vec<u8>,
    /// `None` if it was always in force.
    pub since: Option<Timestamp>,
}

/// The rules of an audit.
pub struct AuditRules {
    /// Files by publication time, or the sites of the policies.
    entries: Vec<RulesVersion>,
    /// Finds the entry of a host; `None` for files.
    snapshot: Option<Snapshot>,
    grace: Duration,
}

struct RulesVersion {
    since: Option<Timestamp>,
    entry: SiteEntry,
    /// The files before it, the latest first.
    superseded: Vec<SupersededVersion>,
}

/// Why files cannot be rules of an audit.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct RulesError(String);

/// The site that judges a request.
pub struct MatchedSite<'a> {
    /// Its position among [`AuditRules::site_entries`].
    pub index: usize,
    /// The site.
    pub entry: &'a SiteEntry,
}

impl AuditRules {
    /// Compiles files, given in any order. A crawler may use a copy for `grace`.
    ///
    /// # Errors
    /// Two files have the same publication time, or one cannot be used.
    pub fn from_files(
        mut files: Vec<DatedRobotsTxt>,
        grace: Duration,
        registry: &'static Registry,
    ) -> Result<AuditRules, RulesError> {
        files.sort_by_key(|file| file.since);
        for pair in files.windows(2) {
            if pair[0].since == pair[1].since {
                return Err(RulesError(format!(
                    "{} and {} begin at the same time; write \"FILE@TIME\" for the later one",
                    pair[0].name, pair[1].name
                )));
            }
        }
        let mut entries: Vec<RulesVersion> = Vec::with_capacity(files.len());
        let mut superseded: Vec<SupersededVersion> = Vec::new();
        for (place, file) in files.iter().enumerate() {
            let since = file.since.unwrap_or(Timestamp(i64::MIN));
            entries.push(RulesVersion {
                since: file.since,
                entry: compile_entry(file, since, registry)?,
                superseded: superseded.clone(),
            });
            if let Some(superseded_at) = files.get(place + 1).and_then(|next| next.since) {
                let parsed = Arc::new(ParsedRobotsVersion::parse(
                    file.bytes.clone().into(),
                    registry,
                ));
                superseded.insert(
                    0,
                    SupersededVersion {
                        parsed,
                        since,
                        superseded_at,
                    },
                );
                superseded.truncate(MAX_SUPERSEDED);
            }
        }
        Ok(AuditRules {
            entries,
            snapshot: None,
            grace,
        })
    }

    /// Takes the rules from policies.
    pub fn from_policies(snapshot: Snapshot) -> AuditRules {
        AuditRules {
            entries: snapshot
                .sites()
                .iter()
                .map(|entry| RulesVersion {
                    since: None,
                    entry: entry.clone(),
                    superseded: Vec::new(),
                })
                .collect(),
            snapshot: Some(snapshot),
            grace: Duration::ZERO,
        }
    }

    /// Whether the rules come from policies, which need not have been in force at the time of the
    /// log.
    pub fn is_from_policies(&self) -> bool {
        self.snapshot.is_some()
    }

    /// The sites, by index.
    pub fn site_entries(&self) -> impl ExactSizeIterator<Item = &SiteEntry> {
        self.entries.iter().map(|in_force| &in_force.entry)
    }

    /// The robots.txt files or policies.
    pub fn file_names(&self) -> Vec<String> {
        self.site_entries()
            .map(|entry| match &entry.site.origin {
                Some(file) if self.snapshot.is_none() => file.location.clone(),
                _ => entry.site.policy.source.name.to_string(),
            })
            .collect()
    }

    /// For each file with misspelt lines, what the reader must know about them.
    pub fn cautions(&self) -> Vec<String> {
        // A policy publishes its rules without mistakes.
        self.site_entries()
            .filter(|_| self.snapshot.is_none())
            .filter_map(|entry| {
                let origin = entry.site.origin.as_ref()?;
                origin.misspelt_lines_caution("some of these crawlers may have broken no rule")
            })
            .collect()
    }

    /// The hosts of the policies; empty for files, whose rules are for every host.
    pub fn host_names(&self) -> String {
        let hosts = self
            .site_entries()
            .flat_map(|entry| &entry.site.policy.hosts);
        join_first(hosts.map(|host| &host.value), MAX_HOSTS)
    }

    /// The index of the policy with this name. `None` with files, whose rules are for every host.
    pub fn site_index(&self, name: &str) -> Option<usize> {
        self.snapshot.as_ref()?.site_index(name)
    }

    /// The site for a request. With files it depends on the time alone. With policies it depends on
    /// the host alone; a request without a host is for the only policy. `None` if no policy has the
    /// host, or there is no host and several policies.
    pub fn find_site(&self, host: Option<&[u8]>, time: Timestamp) -> Option<MatchedSite<'_>> {
        match (&self.snapshot, host) {
            (None, _) => self.version_at(time),
            (Some(_), None) if self.entries.len() == 1 => self.get_site(0),
            (Some(_), None) => None,
            (Some(snapshot), Some(host)) => self.get_site(snapshot.site_for_host(host)?),
        }
    }

    /// The site at an index; `None` beyond the last.
    pub fn get_site(&self, index: usize) -> Option<MatchedSite<'_>> {
        Some(MatchedSite {
            index,
            entry: &self.entries.get(index)?.entry,
        })
    }

    /// The file in force at a time. Before the first known file it is that one. Then
    /// [`AuditRules::cached_versions`] has the basis `Unknown`, so such requests prove nothing.
    fn version_at(&self, time: Timestamp) -> Option<MatchedSite<'_>> {
        let after = self
            .entries
            .partition_point(|in_force| in_force.since.is_none_or(|since| since <= time));
        self.get_site(after.saturating_sub(1))
    }

    /// Until when a crawler may use a file from before the first known one. `cache_time` is how
    /// long the crawler is documented to keep a robots.txt.
    pub fn history_unknown_until(&self, cache_time: Duration) -> Option<Timestamp> {
        Some(
            self.entries
                .first()?
                .since?
                .plus(self.grace.max(cache_time)),
        )
    }

    /// The files before entry `index` that a crawler may have used at `time`: those in force within
    /// the grace before it, or within `cache_time` if that is longer. The basis is `Unknown` if
    /// that span reaches back to the first known file, or has 64 files in it. Empty for an index
    /// beyond the last.
    pub fn cached_versions(
        &self,
        index: usize,
        time: Timestamp,
        cache_time: Duration,
    ) -> CachedVersions<'_> {
        let Some(version) = self.entries.get(index) else {
            return CachedVersions::default();
        };
        let window = self.grace.max(cache_time);
        let cached_since = Timestamp(time.0.saturating_sub_unsigned(window.as_secs()));
        let older_until = version.since.map(|since| since.plus(window));
        let mut cached = 0;
        for (bit, superseded) in version.superseded.iter().enumerate() {
            cached |= u64::from(superseded.superseded_at >= cached_since) << bit;
        }
        let begins = self.entries.first().and_then(|first| first.since);
        // With as many files within the grace as there are bits, earlier ones may be missing.
        let is_whole =
            begins.is_none_or(|begins| begins < cached_since) && cached.count_ones() < u64::BITS;
        let basis = if is_whole {
            CachedVersionsBasis::Declared
        } else {
            CachedVersionsBasis::Unknown
        };
        CachedVersions {
            versions: &version.superseded,
            cached,
            basis,
            was_served: true,
            older_until: older_until.filter(|until| time <= *until),
            ..CachedVersions::default()
        }
    }
}

/// The hosts that a report names.
const MAX_HOSTS: usize = 4;

/// As many as `CachedVersions` has bits for.
const MAX_SUPERSEDED: usize = u64::BITS as usize;

/// Compiles a site that serves this file for every host since this time. A time before 1970 counts
/// as 1970.
fn compile_entry(
    file: &DatedRobotsTxt,
    since: Timestamp,
    registry: &'static Registry,
) -> Result<SiteEntry, RulesError> {
    let source = DefaultSite::catch_all().policy_source();
    let origin = OriginRobotsAvailability::Available(Arc::new(OriginRobotsTxt::new(
        file.name.clone(),
        file.bytes.clone(),
    )));
    let surroundings = PolicyDependencies {
        origin: &origin,
        files: &IncludedFiles::default(),
    };
    let at = since.max(Timestamp(0));
    match load_site_at("robots.txt", &source, surroundings, registry, at) {
        (Some(site), _) => Ok(SiteEntry::new(site, at)),
        (None, diagnostics) => {
            let message = diagnostics.items.first().map_or("", |found| &found.message);
            Err(RulesError(format!("{}: {message}", file.name)))
        }
    }
}
