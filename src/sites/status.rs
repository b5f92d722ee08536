//! [`SitesStatus`] and [`SiteStatus`]: the state of the sites in force and of their policy files,
//! for the command `status`, the read API and the metrics. [`build_status`] makes them from the
//! outcome of the last reload and the compiled sites.

use super::origins::{OriginRobotsStatus, ServedRobotsKind};
use super::publisher::max_cache_time;
use crate::crawlers::{Claim, Registry};
use crate::finding::Finding;
use crate::policy::Policy;
use crate::policy::model::{Acknowledgement, Environment};
use crate::policy::retire::RetireStage;
use crate::policy::site::{CrawlerRules, GroupBinding, SEARCH_ENGINES, SiteEntry};
use crate::policy::{RobotsVersionId, Site, Snapshot};
use crate::robots::{GoogleRules, TargetScratch};
use crate::time::{Timestamp, rfc3339};
use crate::verdict::NonCountingHost;
use crate::yaml::located_values;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use RetireStage::*;

/// Many operators document that their crawlers keep copies for a day. `grace` may be shorter.
const DAY: Duration = Duration::from_secs(86_400);

/// The state of all sites.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SitesStatus {
    /// Counts replacements of the snapshot.
    pub generation: u64,
    /// When the policy directory was last read.
    #[serde(serialize_with = "rfc3339")]
    pub last_reload: Timestamp,
    /// Sites in the order of their names.
    pub sites: Vec<SiteStatus>,
    /// Warnings about the state directory and the like.
    pub warnings: Vec<Finding>,
}

/// The state of one site.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SiteStatus {
    /// Its name.
    pub site: String,
    /// The path of its policy file; empty without one.
    pub file: String,
    /// Whether any policy of it is in force.
    pub in_force: bool,
    /// Its hosts as patterns; empty for every other host.
    pub hosts: Vec<String>,
    /// The version of its robots.txt.
    pub version: String,
    /// Since when that is in force.
    #[serde(serialize_with = "rfc3339")]
    pub since: Timestamp,
    /// `off`, `observe` or `enforce`.
    pub mode: String,
    /// The purposes and crawlers with another mode than the site, and `other` for unknown bots.
    pub modes: Vec<ModeException>,
    /// The crawlers that are never blocked.
    pub exempt: Vec<String>,
    /// Whether the last reload of its file succeeded.
    pub reload_ok: bool,
    /// Whether its file is gone; its last good policy stays in force.
    pub removed: bool,
    /// Whether it runs on a last good copy from the state directory.
    pub last_good_copy: bool,
    /// Errors and warnings of its file; the messages are `file:line:column: ...`.
    pub findings: Vec<Finding>,
    /// The site that has a host of this file, so that the file is not in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conflicts_with: Option<String>,
    /// When the pause in force ends.
    #[serde(serialize_with = "rfc3339")]
    pub paused_until: Option<Timestamp>,
    /// Who is paused: `crawlers` or `everyone`.
    pub paused_for: Option<String>,
    /// How many superseded versions crawlers may have cached.
    pub cached_versions: usize,
    /// Until when most crawlers may have them cached, at most. With `cached_by_few`, until when the
    /// crawler that keeps copies for the longest time may. During a first day, `None` in
    /// `InstanceStatus` if it ends earlier, or with `cached_by_few`: the first day decides what counts.
    #[serde(serialize_with = "rfc3339")]
    pub cached_until: Option<Timestamp>,
    /// Whether only the few crawlers that are documented to keep copies for longer than a day and
    /// than grace may still have them cached.
    pub cached_by_few: bool,
    /// Whether Googlebot may fetch `/` and index it, by the present robots.txt and the tags that were
    /// last sent with `/`. Until `/` is sent, the tags of the policy count. False while robots.txt is
    /// 503 because the origin's file is awaited.
    pub indexable: bool,
    /// When `/` was last sent. `None` while `indexable` depends on the policy alone.
    #[serde(serialize_with = "rfc3339")]
    pub front_page_seen: Option<Timestamp>,
    /// The search engines that last got the front page of a production site with noindex, unless
    /// the policy acknowledges that.
    pub front_page_kept_from: Vec<String>,
    /// Crawlers whose networks in the policy verified no visit within seven days, while visits from
    /// other addresses used their names. These lists prove no impostor.
    pub suspended: Vec<String>,
    /// Hosts on which no violation counts at present.
    pub unproven: Vec<NonCountingHost>,
    /// The paths that are being retired.
    pub retire: Vec<RetireStatus>,
    /// Whether the policy demands a licence, and neither the policy nor the origin names one. Then no
    /// crawler is asked for a licence.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub asks_for_no_license: bool,
    /// Whether the policy demands a licence that the policy or the origin names.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asks_for_license: bool,
    /// The origin's own robots.txt, if the policy reads it.
    pub origin_robots: Option<OriginRobotsStatus>,
}

/// A purpose or crawler with another mode than its site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModeException {
    /// The purpose, the crawler or `other`.
    pub name: String,
    /// `off`, `observe` or `enforce`.
    pub mode: String,
}

impl ModeException {
    /// Such as `enforce for training`.
    pub fn words(&self) -> String {
        let name = if self.name == "other" {
            "unknown bots"
        } else {
            &self.name
        };
        format!("{} for {name}", self.mode)
    }

    /// The purposes and crawlers whose mode differs from the site's own, in the order of the policy.
    /// `other` comes last, with the effective mode for unknown bots.
    fn for_site(site: &Site) -> Vec<ModeException> {
        let enforcement = &site.policy.enforcement;
        let purposes = enforcement
            .purposes
            .iter()
            .map(|(purpose, fields)| (purpose.name(), fields.mode));
        let agents = enforcement
            .agents
            .iter()
            .map(|(agent, fields)| (agent.value.as_str(), fields.mode));
        let other = ("other", Some(site.crawler_rules(Claim::UnknownBot).mode));
        let own = enforcement.site.mode.unwrap_or_default();
        let mut modes = Vec::new();
        let named = purposes.filter(|(name, _)| *name != "other").chain(agents);
        for (name, mode) in named.chain([other]) {
            if let Some(mode) = mode.filter(|mode| *mode != own) {
                modes.push(ModeException {
                    name: name.to_owned(),
                    mode: mode.name().to_owned(),
                });
            }
        }
        modes
    }
}

/// The stage of a path that is being retired.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RetireStatus {
    /// The path.
    pub path: String,
    /// The stage that it has reached.
    pub stage: RetireStage,
    /// When it gets noindex.
    #[serde(serialize_with = "rfc3339")]
    pub noindex_from: Timestamp,
    /// When crawling it is disallowed.
    #[serde(serialize_with = "rfc3339")]
    pub disallowed_from: Timestamp,
    /// Whether the site is a staging site, where nothing is retired.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub staging: bool,
}

impl RetireStatus {
    /// The paths that a policy retires, each with its stage at this moment. On a staging site nothing
    /// is retired, and the stage is `Planned`.
    pub fn for_policy(policy: &Policy, at: Timestamp) -> Vec<RetireStatus> {
        let staging = policy.retirements().is_empty();
        let mut paths = Vec::new();
        for retired in &policy.retire {
            let stage = if staging { Planned } else { retired.stage(at) };
            paths.extend(retired.paths.iter().map(|path| RetireStatus {
                path: path.value.clone(),
                stage,
                noindex_from: retired.noindex_from.value,
                disallowed_from: retired.disallowed_from(),
                staging,
            }));
        }
        paths
    }
}

impl std::fmt::Display for RetireStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let RetireStatus {
            path,
            noindex_from,
            disallowed_from,
            ..
        } = self;
        match self.stage {
            _ if self.staging => write!(
                f,
                "{path}: not retired, because a staging site retires nothing"
            ),
            Planned => write!(
                f,
                "{path}: noindex from {noindex_from}, disallowed from {disallowed_from}"
            ),
            Noindex => {
                write!(
                    f,
                    "{path}: noindex since {noindex_from}, crawlable until {disallowed_from}"
                )
            }
            Disallowed => write!(f, "{path}: disallowed since {disallowed_from}"),
        }
    }
}

/// The states of the origins' own robots.txt files, by site.
pub type OriginStatusBySite = BTreeMap<String, OriginRobotsStatus>;

/// The whole status. `files` is the part from the last reload (`SiteCatalog::file_status`). A file
/// without a policy in force has the mode `none`.
pub fn build_status(
    files: &SitesStatus,
    snapshot: &Snapshot,
    reports: &OriginStatusBySite,
    now: Timestamp,
) -> SitesStatus {
    let entries: HashMap<&str, &SiteEntry> = snapshot
        .sites()
        .iter()
        .map(|entry| (entry.site.name.as_str(), entry))
        .collect();
    let superseded = superseded_versions(snapshot, now);
    let sites = files.sites.iter().map(|file| {
        let ends = superseded.get(file.site.as_str());
        let last = ends.and_then(|ends| ends.values().max());
        let file = SiteStatus {
            cached_versions: ends.map_or(0, BTreeMap::len),
            cached_until: last.and_then(|ends| ends.iter().find(|end| **end >= now).copied()),
            cached_by_few: last.is_some_and(|ends| ends[0] < now),
            ..file.clone()
        };
        match entries.get(file.site.as_str()) {
            Some(entry) => fill_from_entry(file, entry, reports, now),
            None => SiteStatus {
                mode: "none".to_owned(),
                indexable: true,
                ..file
            },
        }
    });
    SitesStatus {
        generation: snapshot.generation,
        last_reload: files.last_reload,
        sites: sites.collect(),
        warnings: files.warnings.clone(),
    }
}

/// By site, the superseded versions that crawlers may have cached. With each version stands until
/// when at most: first for most crawlers, then for those that keep copies for the longest time.
/// Without the version that the site publishes now.
fn superseded_versions(
    snapshot: &Snapshot,
    now: Timestamp,
) -> HashMap<&str, BTreeMap<RobotsVersionId, [Timestamp; 2]>> {
    let mut versions = HashMap::<&str, BTreeMap<_, _>>::new();
    let mut counted = HashSet::new();
    for (pattern, history) in snapshot.histories() {
        let host = pattern.map(ToString::to_string).unwrap_or_default();
        let Some(index) = snapshot.site_for_host(host.as_bytes()) else {
            continue;
        };
        // Thousands of hosts may share one history.
        if !counted.insert((index, Arc::as_ptr(history))) {
            continue;
        }
        let entry = &snapshot.sites()[index];
        let site = &entry.site;
        let longest = max_cache_time(std::slice::from_ref(entry));
        let ends = versions.entry(&site.name).or_default();
        for held in history
            .superseded
            .iter()
            .filter(|held| held.parsed.version != site.robots_txt.version)
        {
            let most = site.copy_lifetime() + DAY.saturating_sub(site.grace);
            let until = [most, longest]
                .map(|lifetime| history.cached_until(lifetime, held.superseded_at, now));
            let end = ends.entry(held.parsed.version).or_insert(until);
            *end = until.max(*end);
        }
    }
    versions
}

/// Fills in the fields that come from the site in force: hosts, version, modes, pause, front page,
/// retired paths, and the origin's robots.txt.
fn fill_from_entry(
    file: SiteStatus,
    entry: &SiteEntry,
    reports: &OriginStatusBySite,
    now: Timestamp,
) -> SiteStatus {
    let site = &*entry.site;
    let pause = entry.active_pause(now);
    let policy = &site.policy;
    SiteStatus {
        in_force: true,
        hosts: policy
            .hosts
            .iter()
            .map(|host| host.value.to_string())
            .collect(),
        version: site.robots_txt.version.to_string(),
        since: entry.since,
        mode: policy
            .enforcement
            .site
            .mode
            .unwrap_or_default()
            .name()
            .to_owned(),
        modes: ModeException::for_site(site),
        exempt: located_values(&policy.enforcement.exempt),
        paused_until: pause.map(|pause| pause.until),
        paused_for: pause.map(|pause| pause.audience.name().to_owned()),
        indexable: is_indexable(site, now),
        front_page_seen: site.front_page.last_seen(),
        front_page_kept_from: engines_kept_out(site, now),
        // From the compiled site, because the origin may name the licence.
        asks_for_no_license: policy.reads_origin()
            && policy.license_demands().next().is_some()
            && !site.signals.has_license(),
        asks_for_license: policy.license_demands().next().is_some() && site.signals.has_license(),
        retire: RetireStatus::for_policy(policy, site.at),
        origin_robots: reports.get(&site.name).map(|report| {
            let (served, unavailable_until) = ServedRobotsKind::at(site, now);
            OriginRobotsStatus {
                served,
                unavailable_until,
                ..report.clone()
            }
        }),
        ..file
    }
}

/// See [`SiteStatus::front_page_kept_from`].
fn engines_kept_out(site: &Site, now: Timestamp) -> Vec<String> {
    let is_intended = site.policy.environment != Environment::Production
        || site.policy.acknowledges(Acknowledgement::SiteNoindex);
    let engines = site
        .front_page
        .excluding_engines(now)
        .filter(|_| !is_intended);
    engines.map(str::to_owned).collect()
}

/// See [`SiteStatus::indexable`]. The tags that were last sent with `/` include the origin's.
fn is_indexable(site: &Site, now: Timestamp) -> bool {
    // A crawler that gets 5xx for robots.txt takes everything for disallowed (RFC 9309 section
    // 2.3.1.4).
    if site.robots_txt.origin_wait_seconds(now).is_some() {
        return false;
    }
    let Some(googlebot) = Registry::builtin().find("googlebot") else {
        return true;
    };
    let mut scratch = TargetScratch::default();
    let target = scratch.normalise(b"/");
    let CrawlerRules {
        binding,
        google_parsing,
        ..
    } = site.crawler_rules(Claim::Known(googlebot));
    if let GroupBinding::Group(group) = binding {
        let rules = site.matcher.rules(usize::from(group));
        // Googlebot uses Google's own parser.
        let rules = site
            .own_google_rules(google_parsing)
            .map_or(rules, GoogleRules::rules);
        if rules
            .find(target.sent)
            .is_some_and(|rule| !rules.rules()[rule].allow)
        {
            return false;
        }
    }
    if site.front_page.last_seen().is_some() {
        return !site
            .front_page
            .excluding_engines(now)
            .any(|engine| engine == SEARCH_ENGINES[0]);
    }
    let selected = site.tags.for_path(target, &mut Vec::new());
    !site
        .tags
        .tags(&selected, 200, Some(b"text/html"))
        .is_some_and(|lines| lines.tags.effective("googlebot").forbids_indexing_at(now))
}
