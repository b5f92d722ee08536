//! [`check`] refuses unknown names of sites and crawlers in a query to the read API: an empty answer would look like good
//! news. It knows the present sites and crawlers, those of recent events and counts, and the labels of requests without a
//! name.

use super::Operations;
use super::query::{Mistake, Query, QueryError};
use crate::crawlers::{Claim, Registry};
use crate::telemetry::{CrawlerCounts, Event, UNCLAIMED};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The crawler label of requests that claim to be no crawler. It is never proposed for a mistyped name.
const NO_CRAWLER: &str = "none";
/// The crawler label of bots that neither the registry nor a policy knows.
pub const OTHER: &str = "other";

/// Refuses a `site` or a `crawler` with an unknown name. The names of listed events and counts are known, even where
/// their site is gone.
///
/// # Errors
/// The unknown names, each with the known name that is nearest.
pub fn check(
    query: &Query<'_>,
    operations: &Operations,
    events: &[Arc<Event>],
    counts: &[CrawlerCounts],
) -> Result<(), QueryError> {
    let (snapshot, registry) = (operations.instance.sites.snapshot(), Registry::builtin());
    let mut mistakes = Vec::new();
    if let Some(site) = query.get("site") {
        let listed = events.iter().map(|event| event.site.as_str()).chain(counts.iter().map(|counts| &*counts.site));
        let mut sites: BTreeSet<&str> =
            snapshot.sites().iter().map(|entry| entry.site.name.as_str()).chain(listed).collect();
        let status = operations.instance.sites.status(operations.moment().now);
        // The status also has the policies that were refused at the start.
        sites.extend(status.sites.iter().map(|site| site.site.as_str()));
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

/// A longer name is not compared: it is no mistyped one, and comparing takes time.
const LONGEST: usize = 128;

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
