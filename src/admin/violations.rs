//! [`Violations`]: the answer of the read API to `/api/violations`, with the latest requests
//! against the rules. [`check_names`] refuses unknown names of sites and crawlers in a query: an
//! empty answer would look like good news.

use super::Operations;
use super::query::{Mistake, Query, QueryError};
use crate::crawlers::{Claim, Registry};
use crate::record::{Field, Row, ViolationKind};
use crate::telemetry::{Events, UNCLAIMED};
use crate::verdict::KnownIdentity;
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::Arc;
use strum::VariantArray;

/// Events that are listed where the query has no `limit`.
const LISTED: usize = 100;
/// The crawler label of requests that claim to be no crawler. It is never proposed for a mistyped
/// name.
const NO_CRAWLER: &str = "none";
/// The crawler label of bots that neither the registry nor a policy knows.
const OTHER: &str = "other";
/// A longer name is not compared with the known ones: it is no mistyped one, and comparing takes
/// time.
const MAX_NAME: usize = 128;

/// The answer to `/api/violations`.
#[derive(Serialize)]
pub struct Violations {
    violations: Vec<Row>,
    /// Events since the start that were not recorded, because there were too many.
    left_out: u64,
}

/// The latest requests against the rules, the last one first, 100 unless the query has a `limit`.
/// `site`, `crawler`, `kind` and `identity` select among them. `kind=never_fetched` selects
/// violations of crawlers that were served no robots.txt lately.
///
/// # Errors
/// The query has mistakes.
pub fn violations(operations: &Operations, query: &str) -> Result<Violations, QueryError> {
    let query = Query::read(query, &["site", "crawler", "kind", "identity", "limit"])?;
    let kind = query.one_of("kind", ViolationKind::of_events())?;
    let identity = query.one_of("identity", KnownIdentity::VARIANTS)?;
    let limit = query.number("limit", 1..=Events::KEPT)?.unwrap_or(LISTED);
    let mut events = operations.instance.events.recent();
    check_names(&query, operations, &events)?;
    events.retain(|event| {
        query.selects("site", &event.text(Field::Site))
            && query.selects("crawler", &event.text(Field::Crawler))
            && identity.is_none_or(|identity| event.text(Field::Identity) == identity.name())
            && kind.is_none_or(|kind| match kind {
                ViolationKind::Of(kind) => event.text(Field::Kind) == kind.name(),
                ViolationKind::NeverFetched => event.get(Field::NeverFetched).is_some(),
            })
    });
    events.truncate(limit);
    Ok(Violations {
        violations: events.into_iter().map(Arc::unwrap_or_clone).collect(),
        left_out: operations.instance.events.left_out(),
    })
}

/// Refuses a `site` or a `crawler` with an unknown name. The names of listed events are known, even
/// where their site is gone.
///
/// # Errors
/// The unknown names, each with the known name that is nearest.
fn check_names(
    query: &Query<'_>,
    operations: &Operations,
    events: &[Arc<Row>],
) -> Result<(), QueryError> {
    let snapshot = operations.instance.sites.snapshot();
    let registry = Registry::builtin();
    let mut mistakes = Vec::new();
    if let Some(site) = query.get("site") {
        let listed: Vec<_> = events.iter().map(|event| event.text(Field::Site)).collect();
        // Those in force, and those whose policies were refused at the start.
        let status = operations.instance.sites.status(operations.moment().now);
        let sites: BTreeSet<&str> = status
            .sites
            .iter()
            .map(|site| site.site.as_str())
            .chain(listed.iter().map(AsRef::as_ref))
            .collect();
        if site != UNCLAIMED && !sites.contains(site) {
            mistakes.push(unknown("site", site, near(site, &sites)));
        }
    }
    if let Some(crawler) = query.get("crawler") {
        let known = registry
            .crawlers()
            .iter()
            .map(|crawler| crawler.id.as_str());
        let tokens = snapshot
            .sites()
            .iter()
            .flat_map(|entry| entry.site.tokens.tokens())
            .map(String::as_str);
        let listed: Vec<_> = events
            .iter()
            .map(|event| event.text(Field::Crawler))
            .collect();
        let crawlers: BTreeSet<&str> = known
            .chain(tokens)
            .chain(listed.iter().map(AsRef::as_ref))
            .chain([OTHER])
            .collect();
        if crawler != NO_CRAWLER && !crawlers.contains(crawler) {
            let meant = meant_crawler(crawler, &crawlers);
            mistakes.push(unknown("crawler", crawler, meant));
        }
    }
    QueryError::unless_none(mistakes)
}

/// The known crawler that an unknown name may mean.
fn meant_crawler<'a>(name: &str, known: &BTreeSet<&'a str>) -> Option<&'a str> {
    let mut names = known.iter().copied();
    if let Some(other_case) = names.find(|known| known.eq_ignore_ascii_case(name)) {
        return Some(other_case);
    }
    let registry = Registry::builtin();
    if let Some(index) = registry.find(name) {
        return Some(&registry.get(index).id);
    }
    let mistyped = near(name, known);
    // An unlisted bot is counted as `other`.
    if registry.identify(format!("{name}/1.0").as_bytes()) == Claim::Other {
        return mistyped
            .filter(|meant| is_slip(name, meant))
            .or(Some(OTHER));
    }
    mistyped
}

/// The known name that is nearest to a mistyped one. `None` if none is near, or if the name is
/// longer than `LONGEST`.
fn near<'a>(name: &str, known: &BTreeSet<&'a str>) -> Option<&'a str> {
    if name.len() > MAX_NAME {
        None
    } else {
        crate::yaml::nearest(name, known.iter().copied())
    }
}

/// Whether two names differ by a typing mistake (an edit distance of 2 at most, without case), and
/// are not the names of two bots.
fn is_slip(name: &str, meant: &str) -> bool {
    strsim::damerau_levenshtein(&name.to_ascii_lowercase(), &meant.to_ascii_lowercase()) <= 2
}

fn unknown(name: &'static str, value: &str, meant: Option<&str>) -> Mistake {
    Mistake::UnknownName {
        name,
        value: value.to_owned(),
        meant: meant.map(str::to_owned),
    }
}
