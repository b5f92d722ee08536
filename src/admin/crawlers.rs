//! [`Crawlers`]: the answer of the read API to `/api/crawlers`, with the counts of each crawler on each site.
//! [`Violations`]: the answer to `/api/violations`, with the latest requests against the rules.
//! [`check_names`] refuses unknown names of sites and crawlers in a query: an empty answer would look like good news.

use super::Operations;
use super::query::{Mistake, Query, QueryError};
use crate::clock::Moment;
use crate::crawlers::{Claim, Registry};
use crate::ledger::{CrawlerCopies, EVERY_SITE, Ledger, ListHealth};
use crate::policy::Snapshot;
use crate::telemetry::{CrawlerCounts, Event, Events, IdentityCounts, UNCLAIMED};
use crate::time::{Timestamp, rfc3339};
use crate::verdict::{Claimant, claim_label, claim_of};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The most hosts that are listed of one crawler: those where it was served last.
const MAX_HOSTS: usize = 50;
/// Events that are listed where the query has no `limit`.
const LISTED: usize = 100;
/// What `identity` of the violations may select.
const IDENTITIES: [&str; 3] = ["verified", "unverified", "impostor"];
/// What `kind` of the violations may select; `never_fetched` are violations of crawlers that were served no robots.txt within
/// the time that they may use a copy.
const KINDS: [&str; 9] =
    ["violation", NEVER_FETCHED, "unproven", "ambiguous", "not_bound", "impostor", "trapped", "too_fast", "unverified"];
const NEVER_FETCHED: &str = "never_fetched";
/// The crawler label of requests that claim to be no crawler. It is never proposed for a mistyped name.
const NO_CRAWLER: &str = "none";
/// The crawler label of bots that neither the registry nor a policy knows.
const OTHER: &str = "other";
/// A longer name is not compared with the known ones: it is no mistyped one, and comparing takes time.
const LONGEST: usize = 128;

/// The answer to `/api/violations`.
#[derive(Serialize)]
pub struct Violations {
    violations: Vec<Event>,
    /// Events since the start that were not recorded, because there were too many.
    left_out: u64,
}

/// The answer to `/api/crawlers`.
#[derive(Serialize)]
pub struct Crawlers {
    crawlers: Vec<CrawlerOnSite>,
    /// What was proven of the names of crawlers, over all sites.
    identities: Vec<CrawlerIdentity>,
}

/// What was proven of the requests under a crawler's name since the start, over all sites.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CrawlerIdentity {
    /// The registry's id, or `other`.
    pub crawler: String,
    /// Requests by `verified`, `unverified`, `suspected`, `impostor` and `suspended`.
    pub requests: BTreeMap<String, u64>,
    /// Whether the lists and host names of its operator verify visits; `None` before they verified or accused a client.
    pub published: Option<ProofHealth>,
}

/// Whether the networks of a policy, or the lists and host names of an operator, verify visits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProofHealth {
    /// When a request was last verified by it.
    #[serde(serialize_with = "rfc3339")]
    pub last_verified: Option<Timestamp>,
    /// When a request under the crawler's name last came from elsewhere.
    #[serde(serialize_with = "rfc3339")]
    pub last_impostor: Option<Timestamp>,
    /// Whether it calls no client an impostor, because it verified none for seven days.
    pub suspended: bool,
}

/// What a crawler did on a site since the start, and what it is held to.
#[derive(Serialize)]
struct CrawlerOnSite {
    site: String,
    crawler: String,
    requests: u64,
    robots_txt_requests: u64,
    /// When it was last served robots.txt, by this process or as the ledger remembers.
    #[serde(serialize_with = "rfc3339")]
    last_fetch: Option<Timestamp>,
    /// What the crawler, or one that shares its cache, was served, by host.
    holds: Vec<HeldOnHost>,
    kinds: BTreeMap<String, u64>,
    actions: BTreeMap<String, u64>,
    violations: BTreeMap<String, u64>,
    /// `kinds` and `violations` apart for `verified`, `unverified` and `impostor`: only verified requests are certainly the
    /// crawler's.
    by_identity: BTreeMap<String, IdentityCounts>,
    /// The answer to its requests against the rules: `off`, `observe` or `enforce`.
    mode: Option<&'static str>,
    exempt: bool,
    #[serde(rename = "pace")]
    crawl_rate: Option<CrawlRateOfCrawler>,
    /// Whether the networks in the policy verify visits; `None` before they verified or accused a client.
    networks: Option<ProofHealth>,
    /// Addresses under this name that are marked for a trap.
    trapped: usize,
}

/// What a crawler may have cached of one host.
#[derive(Serialize)]
struct HeldOnHost {
    host: String,
    #[serde(serialize_with = "rfc3339")]
    observed_since: Timestamp,
    /// Whether the host was observed for long enough to call a crawler a violator.
    observed: bool,
    #[serde(serialize_with = "rfc3339")]
    last_fetch: Option<Timestamp>,
    /// Whether it may have cached the version in force.
    in_force: bool,
    /// The superseded versions that it may have cached.
    versions: Vec<String>,
}

#[derive(Serialize)]
struct CrawlRateOfCrawler {
    /// The delay that the rules ask for, in seconds.
    crawl_delay: f64,
    /// Requests that came sooner.
    too_fast: u64,
}

/// The latest requests against the rules, the last one first. `site`, `crawler`, `kind`, `identity` and `limit` select
/// among them.
///
/// # Errors
/// The query has mistakes.
pub fn violations(operations: &Operations, query: &str) -> Result<Violations, QueryError> {
    let query = Query::read(query, &["site", "crawler", "kind", "identity", "limit"])?;
    let (kind, identity) = (query.one_of("kind", &KINDS)?, query.one_of("identity", &IDENTITIES)?);
    let limit = query.number("limit", 1..=Events::KEPT)?.unwrap_or(LISTED);
    let is_selected = |event: &Arc<Event>| {
        query.selects("site", &event.site)
            && query.selects("crawler", &event.crawler)
            && identity.is_none_or(|identity| event.identity == identity)
            && kind.is_none_or(|kind| event.kind == kind || (kind == NEVER_FETCHED && event.never_fetched))
    };
    let events = operations.instance.events.recent();
    check_names(&query, operations, &events, &operations.instance.metrics.by_crawler())?;
    let events = events.into_iter().filter(is_selected).take(limit).map(Arc::unwrap_or_clone);
    Ok(Violations { violations: events.collect(), left_out: operations.instance.events.left_out() })
}

/// The counts by site and crawler. `site` and `crawler` select among them.
///
/// # Errors
/// The query has mistakes.
pub fn crawlers(operations: &Operations, query: &str) -> Result<Crawlers, QueryError> {
    let query = Query::read(query, &["site", "crawler"])?;
    let mut counts = operations.instance.metrics.by_crawler();
    check_names(&query, operations, &operations.instance.events.recent(), &counts)?;
    let (snapshot, registry) = (operations.instance.sites.snapshot(), Registry::builtin());
    let marks = marks(operations, &snapshot, registry);
    let visits: BTreeMap<&str, Vec<CrawlerCopies>> = snapshot
        .sites()
        .iter()
        .map(|entry| entry.site.name.as_str())
        .filter(|site| query.selects("site", site))
        .map(|site| (site, operations.instance.ledger.copies(site)))
        .collect();
    add_seen_before(&mut counts, &visits, &snapshot, registry);
    counts.sort_by(|one, other| (&one.site, &one.crawler).cmp(&(&other.site, &other.crawler)));
    let (moment, list_health) = (operations.moment(), operations.upkeep.list_health());
    let wanted =
        |counts: &CrawlerCounts| query.selects("site", &counts.site) && query.selects("crawler", &counts.crawler);
    let crawlers = counts.into_iter().filter(wanted).map(|counts| {
        let site = snapshot.site_named(&counts.site);
        let entry = site.map(|site| &snapshot.sites()[site]);
        let claim = claim_of(&counts.crawler, registry, entry.map(|entry| &*entry.site));
        let visits = visits.get(counts.site.as_str()).map_or(&[][..], Vec::as_slice);
        let asked = (&*operations.instance.ledger, &*snapshot, registry);
        let holds = site.map(|site| held(asked, site, claim, visits, moment)).unwrap_or_default();
        let rules = entry.map(|entry| entry.site.crawler_rules(claim));
        let is_its = |list: &&ListHealth| (&list.site, &list.crawler) == (&counts.site, &counts.crawler);
        let did = |action: &str| counts.actions.get(action).copied().unwrap_or_default();
        let too_fast = did("slow") + did("would_slow");
        let delay = rules.and_then(|rules| rules.crawl_delay);
        let last_fetch = holds.iter().filter_map(|host| host.last_fetch).max();
        CrawlerOnSite {
            networks: list_health.iter().find(is_its).map(ProofHealth::of),
            trapped: marks.get(&(counts.site.clone(), counts.crawler.clone())).copied().unwrap_or_default(),
            crawl_rate: delay.map(|delay| CrawlRateOfCrawler { crawl_delay: delay.as_secs_f64(), too_fast }),
            mode: rules.map(|rules| rules.mode.name()),
            exempt: rules.is_some_and(|rules| rules.exempt),
            site: counts.site,
            crawler: counts.crawler,
            requests: counts.all.requests,
            robots_txt_requests: counts.robots_txt,
            last_fetch: counts.last_fetch.map(Timestamp).max(last_fetch),
            holds,
            kinds: counts.all.kinds,
            actions: counts.actions,
            violations: counts.all.violations,
            by_identity: counts.by_identity,
        }
    });
    let identities = operations.identities().into_iter().filter(|found| query.selects("crawler", &found.crawler));
    Ok(Crawlers { crawlers: crawlers.collect(), identities: identities.collect() })
}

impl ProofHealth {
    fn of(list: &ListHealth) -> ProofHealth {
        ProofHealth { last_verified: list.verified, last_impostor: list.accused, suspended: list.suspended }
    }
}

impl Operations {
    /// What was proven of the requests under each crawler's name.
    pub fn identities(&self) -> Vec<CrawlerIdentity> {
        let mut requests = self.instance.metrics.identities();
        let published = self.upkeep.list_health().into_iter().filter(|list| list.site == EVERY_SITE);
        let published: BTreeMap<String, ProofHealth> =
            published.map(|list| (list.crawler.clone(), ProofHealth::of(&list))).collect();
        for crawler in published.keys() {
            requests.entry(crawler.clone()).or_default();
        }
        let identity = |(crawler, requests)| {
            let published = published.get(&crawler).cloned();
            CrawlerIdentity { crawler, requests, published }
        };
        requests.into_iter().map(identity).collect()
    }
}

/// How many addresses are marked for a trap, by site and crawler. Bots that no list knows are marked under the names
/// they give, and counted as one.
fn marks(operations: &Operations, snapshot: &Snapshot, registry: &Registry) -> BTreeMap<(String, String), usize> {
    let mut marks = BTreeMap::new();
    for mark in operations.marks() {
        let site = snapshot.entry_named(&mark.site).map(|entry| &*entry.site);
        let label = claim_label(claim_of(&mark.crawler, registry, site), registry, site);
        let crawler = if label == Some(&mark.crawler) { mark.crawler } else { OTHER.to_owned() };
        *marks.entry((mark.site, crawler)).or_default() += 1;
    }
    marks
}

/// Adds crawlers that came before a restart, and not since.
fn add_seen_before(
    counts: &mut Vec<CrawlerCounts>,
    visits: &BTreeMap<&str, Vec<CrawlerCopies>>,
    snapshot: &Snapshot,
    registry: &Registry,
) {
    for (site, visits) in visits {
        let Some(entry) = snapshot.entry_named(site) else { continue };
        for name in visits.iter().map(|visits| visits.crawler.as_str()) {
            let claim = claim_of(name, registry, Some(&entry.site));
            let is_its_own = claim_label(claim, registry, Some(&entry.site)) == Some(name);
            if is_its_own && !counts.iter().any(|counts| counts.site == *site && counts.crawler == name) {
                let (site, crawler) = (site.to_string(), name.to_owned());
                counts.push(CrawlerCounts { site, crawler, ..CrawlerCounts::default() });
            }
        }
    }
}

/// What a crawler may have cached, by host. The host where it was served last comes first.
fn held(
    (ledger, snapshot, registry): (&Ledger, &Snapshot, &Registry),
    site: usize,
    claim: Claim,
    visits: &[CrawlerCopies],
    moment: Moment,
) -> Vec<HeldOnHost> {
    let entry = &snapshot.sites()[site];
    let name = Ledger::name(registry, entry, claim);
    let last = |visits: &CrawlerCopies| visits.versions.iter().map(|visit| visit.at).max();
    let mut hosts: Vec<&CrawlerCopies> = visits.iter().filter(|visits| visits.crawler == name).collect();
    hosts.sort_by_key(|visits| std::cmp::Reverse(last(visits)));
    let host = |visits: &CrawlerCopies| {
        let host = visits.host.as_bytes();
        let claimant = Claimant { site, entry, history: snapshot.history(host), claim };
        let cached_versions = ledger.look(registry, claimant, host, moment).0;
        let current = entry.site.robots_txt.version;
        HeldOnHost {
            host: visits.host.clone(),
            observed_since: visits.observed_since,
            observed: cached_versions.is_whole(),
            last_fetch: last(visits),
            in_force: cached_versions.was_served && visits.versions.iter().any(|visit| visit.version == current),
            versions: cached_versions.superseded().map(|held| held.parsed.version.to_string()).collect(),
        }
    };
    hosts.into_iter().take(MAX_HOSTS).map(host).collect()
}

/// Refuses a `site` or a `crawler` with an unknown name. The names of listed events and counts are known, even where
/// their site is gone.
///
/// # Errors
/// The unknown names, each with the known name that is nearest.
fn check_names(
    query: &Query<'_>,
    operations: &Operations,
    events: &[Arc<Event>],
    counts: &[CrawlerCounts],
) -> Result<(), QueryError> {
    let (snapshot, registry) = (operations.instance.sites.snapshot(), Registry::builtin());
    let mut mistakes = Vec::new();
    if let Some(site) = query.get("site") {
        let listed = events.iter().map(|event| event.site.as_str()).chain(counts.iter().map(|counts| &*counts.site));
        // Those in force, and those whose policies were refused at the start.
        let status = operations.instance.sites.status(operations.moment().now);
        let sites: BTreeSet<&str> = status.sites.iter().map(|site| site.site.as_str()).chain(listed).collect();
        if site != UNCLAIMED && !sites.contains(site) {
            mistakes.push(unknown("site", site, near(site, &sites)));
        }
    }
    if let Some(crawler) = query.get("crawler") {
        let known = registry.crawlers().iter().map(|crawler| crawler.id.as_str());
        let tokens = snapshot.sites().iter().flat_map(|entry| entry.site.tokens.tokens()).map(String::as_str);
        let listed = events.iter().map(|event| &*event.crawler).chain(counts.iter().map(|counts| &*counts.crawler));
        let crawlers: BTreeSet<&str> = known.chain(tokens).chain(listed).chain([OTHER]).collect();
        if crawler != NO_CRAWLER && !crawlers.contains(crawler) {
            let other_case = crawlers.iter().copied().find(|known| known.eq_ignore_ascii_case(crawler));
            let by_name = || registry.find(crawler).map(|index| registry.get(index).id.as_str());
            let mistyped = || near(crawler, &crawlers);
            // An unlisted bot is counted as `other`.
            let meant =
                other_case.or_else(by_name).or_else(|| match registry.identify(format!("{crawler}/1.0").as_bytes()) {
                    Claim::Other => mistyped().filter(|meant| is_slip(crawler, meant)).or(Some(OTHER)),
                    Claim::Nobody | Claim::Tool | Claim::Known(_) | Claim::Token(_) => mistyped(),
                });
            mistakes.push(unknown("crawler", crawler, meant));
        }
    }
    QueryError::unless_none(mistakes)
}

fn near<'a>(name: &str, known: &BTreeSet<&'a str>) -> Option<&'a str> {
    if name.len() > LONGEST { None } else { crate::yaml::nearest(name, known.iter().copied()) }
}

/// Whether two names differ by a typing mistake, and are not the names of two bots.
fn is_slip(name: &str, meant: &str) -> bool {
    strsim::damerau_levenshtein(&name.to_ascii_lowercase(), &meant.to_ascii_lowercase()) <= 2
}

fn unknown(name: &'static str, value: &str, meant: Option<&str>) -> Mistake {
    Mistake::UnknownName { name, value: value.to_owned(), meant: meant.map(str::to_owned) }
}
