//! The names that the read API may be asked for: sites and crawlers that are there, or were a moment ago, and what the
//! metrics call those that have no name. The answer to a name that nobody has would look like good news.

use super::Operations;
use super::query::{Query, shown};
use crate::crawlers::{Claim, Registry};
use crate::telemetry::{CrawlerCounts, Event, UNCLAIMED};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What the metrics call who is no crawler. Nobody who mistypes a name means it.
const NOBODY: &str = "none";

/// Refuses a `site` or a `crawler` that is nobody's name. What is still listed can be asked for, though its site is
/// gone.
///
/// # Errors
/// Which name nobody has, and which one was perhaps meant.
pub fn check(
    query: &Query<'_>,
    operations: &Operations,
    events: &[Arc<Event>],
    counts: &[CrawlerCounts],
) -> Result<(), String> {
    let (snapshot, registry) = (operations.judge.sites.snapshot(), Registry::builtin());
    let mut wrong = String::new();
    if let Some(site) = query.get("site") {
        let listed = events.iter().map(|event| event.site.as_str()).chain(counts.iter().map(|counts| &*counts.site));
        let mut sites: BTreeSet<&str> =
            snapshot.sites().iter().map(|entry| entry.site.name.as_str()).chain(listed).collect();
        let status = operations.judge.sites.status(operations.moment().now);
        // Of a policy that was refused at the start too.
        sites.extend(status.sites.iter().map(|site| site.site.as_str()));
        if site != UNCLAIMED && !sites.contains(site) {
            wrong += &nobody("site", site, near(site, &sites));
        }
    }
    if let Some(crawler) = query.get("crawler") {
        let known = registry.crawlers().iter().map(|crawler| crawler.id.as_str());
        let tokens = snapshot.sites().iter().flat_map(|entry| entry.site.tokens.tokens()).map(String::as_str);
        let listed = events.iter().map(|event| &*event.crawler).chain(counts.iter().map(|counts| &*counts.crawler));
        let crawlers: BTreeSet<&str> = known.chain(tokens).chain(listed).chain(["other"]).collect();
        if crawler != NOBODY && !crawlers.contains(crawler) {
            let other_case = crawlers.iter().copied().find(|known| known.eq_ignore_ascii_case(crawler));
            let by_name = || registry.find(crawler).map(|index| registry.get(index).id.as_str());
            let mistyped = || near(crawler, &crawlers);
            // A bot that no list knows is counted under no name of its own.
            let meant =
                other_case.or_else(by_name).or_else(|| match registry.identify(format!("{crawler}/1.0").as_bytes()) {
                    Claim::Other => mistyped().filter(|meant| is_slip(crawler, meant)).or(Some("other")),
                    Claim::Nobody | Claim::Known(_) | Claim::Token(_) => mistyped(),
                });
            wrong += &nobody("crawler", crawler, meant);
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

/// Nobody mistypes a name of such a length, and comparing takes time.
const LONGEST: usize = 128;

fn near<'a>(name: &str, known: &BTreeSet<&'a str>) -> Option<&'a str> {
    if name.len() > LONGEST { None } else { crate::yaml::nearest(name, known.iter().copied()) }
}

/// Whether two names are a slip of the hand apart, and not two names of bots.
fn is_slip(name: &str, meant: &str) -> bool {
    strsim::damerau_levenshtein(&name.to_ascii_lowercase(), &meant.to_ascii_lowercase()) <= 2
}

fn nobody(parameter: &str, name: &str, meant: Option<&str>) -> String {
    let hint = meant.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
    format!("`{parameter}` is `{}`, which is not a known {parameter}{hint}\n", shown(name))
}
