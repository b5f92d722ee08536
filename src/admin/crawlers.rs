//! What the read API says of crawlers: who came, what they did, and the latest requests against the rules.

use super::Operations;
use crate::crawlers::Registry;
use crate::telemetry::Event;
use crate::time::Timestamp;
use crate::verdict::claim_of;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The answer to `/api/violations`.
#[derive(Serialize)]
pub struct Violations {
    #[serde(serialize_with = "each")]
    violations: Vec<Arc<Event>>,
    /// Events since the start that were not recorded, because there were too many.
    left_out: u64,
}

fn each<S: Serializer>(events: &[Arc<Event>], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(events.iter().map(|event| &**event))
}

/// The answer to `/api/crawlers`.
#[derive(Serialize)]
pub struct Crawlers {
    crawlers: Vec<CrawlerOnSite>,
}

/// What a crawler did on a site since the start, and what it is held to.
#[derive(Serialize)]
struct CrawlerOnSite {
    site: String,
    crawler: String,
    requests: u64,
    robots_txt_requests: u64,
    /// When it was last served robots.txt.
    last_fetch: Option<Timestamp>,
    kinds: BTreeMap<String, u64>,
    actions: BTreeMap<String, u64>,
    violations: BTreeMap<String, u64>,
    /// The answer to its requests against the rules: `off`, `observe` or `enforce`.
    mode: Option<&'static str>,
    exempt: bool,
    pace: Option<PaceOfCrawler>,
    /// Addresses under this name that are marked for a trap.
    trapped: usize,
}

#[derive(Serialize)]
struct PaceOfCrawler {
    /// In seconds.
    crawl_delay: f64,
    /// Requests that came sooner.
    too_fast: u64,
}

/// The latest first; `site`, `crawler`, `kind` and `limit` choose among them.
pub fn violations(operations: &Operations, query: &str) -> Violations {
    let limit = parameter(query, "limit").and_then(|limit| limit.parse().ok()).unwrap_or(100);
    let is = |name: &str, value: &str| parameter(query, name).is_none_or(|wanted| wanted == value);
    let events = operations.events.recent().into_iter();
    let events = events
        .filter(|event| is("site", &event.site) && is("crawler", &event.crawler) && is("kind", event.kind))
        .take(limit);
    Violations { violations: events.collect(), left_out: operations.events.left_out() }
}

/// By site and crawler; `site` and `crawler` choose among them.
pub fn crawlers(operations: &Operations, query: &str) -> Crawlers {
    let (snapshot, registry) = (operations.live.snapshot(), Registry::builtin());
    let mut marks: BTreeMap<(String, String), usize> = BTreeMap::new();
    for mark in operations.marks() {
        *marks.entry((mark.site, mark.crawler)).or_default() += 1;
    }
    let is = |name: &str, value: &str| parameter(query, name).is_none_or(|wanted| wanted == value);
    let counts = operations.metrics.by_crawler().into_iter();
    let counts = counts.filter(|counts| is("site", &counts.site) && is("crawler", &counts.crawler));
    let crawlers = counts.map(|counts| {
        let site = snapshot.site_named(&counts.site).map(|index| &*snapshot.sites()[index].site);
        let standing = site.map(|site| site.standing(claim_of(&counts.crawler, registry, Some(site))));
        let too_fast = counts.kinds.get("too_fast").copied().unwrap_or_default();
        let pace = standing.and_then(|standing| standing.pace);
        CrawlerOnSite {
            pace: pace.map(|delay| PaceOfCrawler { crawl_delay: delay.as_secs_f64(), too_fast }),
            trapped: marks.get(&(counts.site.clone(), counts.crawler.clone())).copied().unwrap_or_default(),
            mode: standing.map(|standing| standing.mode.name()),
            exempt: standing.is_some_and(|standing| standing.exempt),
            site: counts.site,
            crawler: counts.crawler,
            requests: counts.requests,
            robots_txt_requests: counts.robots_txt,
            last_fetch: counts.last_fetch.map(Timestamp),
            kinds: counts.kinds,
            actions: counts.actions,
            violations: counts.violations,
        }
    });
    Crawlers { crawlers: crawlers.collect() }
}

/// A value of a query. Names of sites, crawlers and kinds need no escapes.
fn parameter<'q>(query: &'q str, name: &str) -> Option<&'q str> {
    query.split('&').find_map(|pair| pair.split_once('=').filter(|(key, _)| *key == name)).map(|(_, value)| value)
}
