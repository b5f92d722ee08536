//! [`Status`] and [`SiteStatus`]: the state of the sites in force and of their policy files, for
//! the command `status`, the read API and the metrics. [`status`] makes them from the outcome of
//! the last reload and the compiled sites.

use super::origins::{OriginRobotsStatus, Served};
use crate::crawlers::{Claim, Registry};
use crate::finding::Finding;
use crate::policy::Policy;
use crate::policy::model::{Acknowledgement, Environment};
use crate::policy::retire::RetireStage;
use crate::policy::site::{Binding, CrawlerRules, SEARCH_ENGINES, SiteEntry};
use crate::policy::{Site, Snapshot, Version};
use crate::robots::{GoogleRules, TargetScratch};
use crate::time::{Timestamp, rfc3339};
use crate::verdict::UnprovenHost;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// The state of all sites.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Counts replacements of the snapshot.
    pub generation: u64,
    /// When the policies were last reloaded.
    #[serde(serialize_with = "rfc3339")]
    pub last_reload: Timestamp,
    /// Sites in the order of their names.
    pub sites: Vec<SiteStatus>,
    /// Warnings about the state directory and the like.
    pub warnings: Vec<Finding>,
}

/// One site.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SiteStatus {
    /// Its name.
    pub site: String,
    /// Whether a policy of it is in force at all.
    pub in_force: bool,
    /// Its hosts as patterns; empty for all others.
    pub hosts: Vec<String>,
    /// The version of its robots.txt.
    pub version: String,
    /// Since when that is in force.
    #[serde(serialize_with = "rfc3339")]
    pub since: Timestamp,
    /// `off`, `observe` or `enforce`.
    pub mode: String,
    /// The purposes and crawlers with another mode than the site, as the policy has them, and
    /// `other` for bots that no list knows.
    pub modes: Vec<ModeFor>,
    /// The crawlers that are never refused.
    pub exempt: Vec<String>,
    /// Whether the last reload of its file succeeded.
    pub reload_ok: bool,
    /// Whether its file is gone; its last good policy stays in force.
    pub removed: bool,
    /// Whether it runs on a last good copy from the state directory.
    pub last_good_copy: bool,
    /// Errors and warnings of its file; the messages are `file:line:column: ...`.
    pub findings: Vec<Finding>,
    /// The site that has a host of this site's file, so that the file is not in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conflicts_with: Option<String>,
    /// When the pause in force ends.
    #[serde(serialize_with = "rfc3339")]
    pub paused_until: Option<Timestamp>,
    /// For whom it is paused, while it is: `crawlers` or `everyone`.
    pub paused_for: Option<String>,
    /// How many superseded versions crawlers may have cached.
    pub held_versions: usize,
    /// Until when, at the latest. A few crawlers are documented to keep copies for longer; `None`
    /// where only these may.
    #[serde(serialize_with = "rfc3339")]
    pub held_until: Option<Timestamp>,
    /// Whether Googlebot may fetch `/` and index it, by the robots.txt that is served and the tags
    /// that were last sent with `/`. Until `/` is sent, the tags of the policy count. While
    /// robots.txt is 503 because the origin's is awaited, the answer is no.
    pub indexable: bool,
    /// When `/` was last sent, by which `indexable` goes; `None` while it goes by the policy alone.
    #[serde(serialize_with = "rfc3339")]
    pub front_page_seen: Option<Timestamp>,
    /// The search engines that the front page of a production site was last sent to with noindex,
    /// unless the policy acknowledges it.
    pub front_page_kept_from: Vec<String>,
    /// Crawlers whose networks, as the policy lists them, verified no visit within seven days,
    /// while visits from elsewhere came under their names: these lists prove no impostor.
    pub suspended: Vec<String>,
    /// Hosts on which no violation counts at present.
    pub unproven: Vec<UnprovenHost>,
    /// The paths that are being retired.
    pub retire: Vec<RetireStatus>,
    /// Crawlers are to be asked for a licence, and neither the policy nor the origin names one: no
    /// crawler is asked.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub asks_for_no_license: bool,
    /// The origin's own robots.txt, where the policy asks for it.
    pub origin_robots: Option<OriginRobotsStatus>,
}

/// The mode of a purpose, of a crawler, or of `other`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModeFor {
    /// The purpose, the crawler or `other`.
    pub name: String,
    /// `off`, `observe` or `enforce`.
    pub mode: String,
}

impl ModeFor {
    /// The purposes and crawlers of a policy whose mode differs from the site's own, in the order
    /// of the policy. `other` comes last, with the mode that is in effect for unlisted bots.
    fn of(site: &Site) -> Vec<ModeFor> {
        let enforcement = &site.policy.enforcement;
        let purposes = enforcement
            .purposes
            .iter()
            .map(|(purpose, fields)| (purpose.name(), fields.mode));
        let agents = enforcement
            .agents
            .iter()
            .map(|(agent, fields)| (agent.value.as_str(), fields.mode));
        let other = ("other", Some(site.crawler_rules(Claim::Other).mode));
        let own = enforcement.site.mode.unwrap_or_default();
        let mut modes = Vec::new();
        let named = purposes.filter(|(name, _)| *name != "other").chain(agents);
        for (name, mode) in named.chain([other]) {
            if let Some(mode) = mode.filter(|mode| *mode != own) {
                modes.push(ModeFor {
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
#[allow(missing_docs)]
pub struct RetireStatus {
    pub path: String,
    pub stage: RetireStage,
    #[serde(serialize_with = "rfc3339")]
    pub noindex_from: Timestamp,
    #[serde(serialize_with = "rfc3339")]
    pub disallowed_from: Timestamp,
    /// It is a staging site's: nothing of it is retired, and the stage is that of a plan.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub staging: bool,
}

impl RetireStatus {
    /// The paths that a policy retires, in its order, each with its stage at this moment. On a
    /// staging site nothing is retired: there the stage is `Planned`.
    pub fn of(policy: &Policy, at: Timestamp) -> Vec<RetireStatus> {
        let staging = policy.retiring().is_empty();
        let mut paths = Vec::new();
        for retired in &policy.retire {
            let stage = if staging {
                RetireStage::Planned
            } else {
                retired.stage(at)
            };
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
                "{path}: not under environment: staging, where nothing is retired"
            ),
            RetireStage::Planned => write!(
                f,
                "{path}: noindex from {noindex_from}, disallowed from {disallowed_from}"
            ),
            RetireStage::Noindex => {
                write!(
                    f,
                    "{path}: noindex since {noindex_from}, crawlable until {disallowed_from}"
                )
            }
            RetireStage::Disallowed => write!(f, "{path}: disallowed since {disallowed_from}"),
        }
    }
}

/// What is said of the origins' own robots.txt files, by site.
pub type OriginReports = BTreeMap<String, OriginRobotsStatus>;

/// The whole status. `files` is the part of it that the last reload left: see `SiteCatalog::files`.
/// A file of which nothing is in force has the mode `none`. `reports` are the states of the
/// origins' robots.txt files.
pub fn status(
    files: &Status,
    snapshot: &Snapshot,
    reports: &OriginReports,
    now: Timestamp,
) -> Status {
    let entries: HashMap<&str, &SiteEntry> = snapshot
        .sites()
        .iter()
        .map(|entry| (entry.site.name.as_str(), entry))
        .collect();
    let superseded = superseded_versions(snapshot, now);
    let sites = files.sites.iter().map(|file| {
        let ends = superseded.get(file.site.as_str());
        let held_until = ends
            .and_then(|ends| ends.values().max())
            .copied()
            .filter(|until| *until >= now);
        let file = SiteStatus {
            held_versions: ends.map_or(0, BTreeMap::len),
            held_until,
            ..file.clone()
        };
        match entries.get(file.site.as_str()) {
            Some(entry) => with_entry(file, entry, reports, now),
            None => SiteStatus {
                mode: "none".to_owned(),
                indexable: true,
                ..file
            },
        }
    });
    let sites = sites.collect();
    Status {
        generation: snapshot.generation,
        last_reload: files.last_reload,
        sites,
        warnings: files.warnings.clone(),
    }
}

/// By site, the superseded versions that crawlers may have cached of its hosts, and until when at
/// the latest. The version that the site publishes now is not among them.
fn superseded_versions(
    snapshot: &Snapshot,
    now: Timestamp,
) -> HashMap<&str, BTreeMap<Version, Timestamp>> {
    let mut versions: HashMap<&str, BTreeMap<Version, Timestamp>> = HashMap::new();
    let mut counted = HashSet::new();
    for (pattern, history) in snapshot.histories() {
        let host = pattern.map(ToString::to_string).unwrap_or_default();
        let Some(index) = snapshot.site_for_host(host.as_bytes()) else {
            continue;
        };
        // Thousands of hosts may share a history.
        if !counted.insert((index, Arc::as_ptr(history))) {
            continue;
        }
        let site = &snapshot.sites()[index].site;
        let ends = versions.entry(&site.name).or_default();
        for held in history
            .superseded
            .iter()
            .filter(|held| held.parsed.version != site.robots_txt.version)
        {
            let until = history.cached_until(site.copy_time(), held.superseded_at, now);
            let end = ends.entry(held.parsed.version).or_insert(until);
            *end = until.max(*end);
        }
    }
    versions
}

/// Adds to the status of a file what the site in force says: hosts, version, modes, pause, front
/// page, retired paths, and what is served of the origin's robots.txt.
fn with_entry(
    file: SiteStatus,
    entry: &SiteEntry,
    reports: &OriginReports,
    now: Timestamp,
) -> SiteStatus {
    let site = &*entry.site;
    let pause = entry.pause(now);
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
        modes: ModeFor::of(site),
        exempt: policy
            .enforcement
            .exempt
            .iter()
            .map(|agent| agent.value.clone())
            .collect(),
        paused_until: pause.map(|pause| pause.until),
        paused_for: pause.map(|pause| pause.audience.name().to_owned()),
        indexable: indexable(site, now),
        front_page_seen: site.front_page.seen(),
        front_page_kept_from: kept_from(site, now),
        // By the compiled site, which is also what is served.
        asks_for_no_license: policy.reads_origin()
            && policy.asks_for_license().next().is_some()
            && !site.signals.names_license(),
        retire: RetireStatus::of(policy, site.at),
        origin_robots: reports.get(&site.name).map(|report| {
            let (served, unavailable_until) = Served::of(site, now);
            OriginRobotsStatus {
                served,
                unavailable_until,
                ..report.clone()
            }
        }),
        ..file
    }
}

/// See [`SiteStatus::front_page_kept_from`]: none if the site is not a production site, or if its
/// policy acknowledges `site_noindex`.
fn kept_from(site: &Site, now: Timestamp) -> Vec<String> {
    let is_meant = site.policy.environment != Environment::Production
        || site
            .policy
            .acknowledge
            .iter()
            .any(|item| item.value == Acknowledgement::SiteNoindex);
    let engines = site.front_page.kept_from(now).filter(|_| !is_meant);
    engines.map(str::to_owned).collect()
}

/// See [`SiteStatus::indexable`]: false while the origin's robots.txt is awaited, if the rules for
/// Googlebot disallow `/`, or if `/` has noindex for it. The tags that were last sent with `/`
/// decide, which include the origin's; until `/` is sent, those of the policy.
fn indexable(site: &Site, now: Timestamp) -> bool {
    // A crawler that gets 5xx for robots.txt takes everything for disallowed (RFC 9309 section
    // 2.3.1.4).
    if site.robots_txt.awaits_origin(now).is_some() {
        return false;
    }
    let Some(googlebot) = Registry::builtin().find("googlebot") else {
        return true;
    };
    let mut scratch = TargetScratch::default();
    let target = scratch.normalise(b"/");
    let CrawlerRules {
        binding,
        second_reading,
        ..
    } = site.crawler_rules(Claim::Known(googlebot));
    if let Binding::Group(group) = binding {
        let rules = site.matcher.rules(usize::from(group));
        // Googlebot goes by Google's own parser.
        let rules = site
            .own_rules(second_reading)
            .map_or(rules, GoogleRules::rules);
        if rules
            .find(target.sent)
            .is_some_and(|rule| !rules.rules()[rule].allow)
        {
            return false;
        }
    }
    if site.front_page.seen().is_some() {
        return !site
            .front_page
            .kept_from(now)
            .any(|engine| engine == SEARCH_ENGINES[0]);
    }
    let selected = site.tags.for_path(target, &mut Vec::new());
    !site
        .tags
        .tags(&selected, 200, Some(b"text/html"))
        .is_some_and(|lines| lines.tags.effective("googlebot").forbids_indexing_at(now))
}
