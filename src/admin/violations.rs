//! [`list_violations`] answers `/api/violations` of the read API: the latest requests that broke
//! the rules. A name of an unknown site or crawler in the query is an error, because an empty
//! response would look like good news.

use super::Operations;
use super::query::{QueryError, QueryMistake, QueryParameters};
use crate::crawlers::{Claim, Registry};
use crate::record::{RecordField, RecordRow, ViolationKind};
use crate::telemetry::{EventLog, UNCLAIMED};
use crate::verdict::IdentityStatus;
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::Arc;
use strum::VariantArray;

const DEFAULT_LIMIT: usize = 100;
/// The label of requests that claim to be no crawler. It is never suggested for a mistyped name.
const NO_CRAWLER: &str = "none";
/// The label of bots that neither the registry nor a policy knows.
const UNKNOWN_BOTS: &str = "other";
/// No suggestion is searched for a longer name: comparing takes time.
const MAX_NAME: usize = 128;

/// The response to `/api/violations`.
#[derive(Serialize)]
pub struct ViolationsResponse {
    violations: Vec<RecordRow>,
    /// Events since the start that were dropped, because there were too many.
    left_out: u64,
}

/// The latest requests against the rules, the last one first, filtered by `site`, `crawler`, `kind`,
/// `identity` and `limit`. `kind=never_fetched` selects violations of crawlers that were served no
/// robots.txt lately.
///
/// # Errors
/// The query has mistakes.
pub fn list_violations(
    operations: &Operations,
    query: &str,
) -> Result<ViolationsResponse, QueryError> {
    let query = QueryParameters::parse(query, &["site", "crawler", "kind", "identity", "limit"])?;
    let kind = query.get_one_of("kind", ViolationKind::event_kinds())?;
    let identity = query.get_one_of("identity", IdentityStatus::VARIANTS)?;
    let limit = query
        .get_number("limit", 1..=EventLog::MAX_RECENT)?
        .unwrap_or(DEFAULT_LIMIT);
    let mut events = operations.instance.events.recent();
    check_names(&query, operations, &events)?;
    events.retain(|event| {
        query.has_or_omits("site", &event.text(RecordField::Site))
            && query.has_or_omits("crawler", &event.text(RecordField::Crawler))
            && identity.is_none_or(|identity| event.text(RecordField::Identity) == identity.name())
            && kind.is_none_or(|kind| match kind {
                ViolationKind::Of(kind) => event.text(RecordField::Kind) == kind.name(),
                ViolationKind::NeverFetched => event.get(RecordField::NeverFetched).is_some(),
            })
    });
    events.truncate(limit);
    Ok(ViolationsResponse {
        violations: events.into_iter().map(Arc::unwrap_or_clone).collect(),
        left_out: operations.instance.events.left_out(),
    })
}

/// Checks the names in `site` and `crawler`. The names in `events` are known, even if their site was
/// removed.
///
/// # Errors
/// The unknown names, each with a suggestion.
fn check_names(
    query: &QueryParameters<'_>,
    operations: &Operations,
    events: &[Arc<RecordRow>],
) -> Result<(), QueryError> {
    let snapshot = operations.instance.sites.snapshot();
    let registry = Registry::builtin();
    let mut mistakes = Vec::new();
    if let Some(site) = query.get("site") {
        let listed: Vec<_> = events
            .iter()
            .map(|event| event.text(RecordField::Site))
            .collect();
        // Those in force, and those whose policies were refused at the start.
        let status = operations.instance.sites.status(operations.moment().now);
        let sites: BTreeSet<&str> = status
            .sites
            .iter()
            .map(|site| site.site.as_str())
            .chain(listed.iter().map(AsRef::as_ref))
            .collect();
        if site != UNCLAIMED && !sites.contains(site) {
            mistakes.push(unknown_name("site", site, nearest_name(site, &sites)));
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
            .map(|event| event.text(RecordField::Crawler))
            .collect();
        let crawlers: BTreeSet<&str> = known
            .chain(tokens)
            .chain(listed.iter().map(AsRef::as_ref))
            .chain([UNKNOWN_BOTS])
            .collect();
        if crawler != NO_CRAWLER && !crawlers.contains(crawler) {
            mistakes.push(unknown_name(
                "crawler",
                crawler,
                suggest_crawler(crawler, &crawlers),
            ));
        }
    }
    QueryError::check_none(mistakes)
}

/// The known crawler that a mistyped name may mean.
fn suggest_crawler<'a>(name: &str, known: &BTreeSet<&'a str>) -> Option<&'a str> {
    let mut names = known.iter().copied();
    if let Some(other_case) = names.find(|known| known.eq_ignore_ascii_case(name)) {
        return Some(other_case);
    }
    let registry = Registry::builtin();
    if let Some(index) = registry.find(name) {
        return Some(&registry.get(index).id);
    }
    let mistyped = nearest_name(name, known);
    // An unlisted bot is counted as `other`.
    if registry.identify(format!("{name}/1.0").as_bytes()) == Claim::UnknownBot {
        // With more than two edits it would be another bot.
        let written = name.to_ascii_lowercase();
        return mistyped
            .filter(|meant| strsim::damerau_levenshtein(&written, &meant.to_ascii_lowercase()) <= 2)
            .or(Some(UNKNOWN_BOTS));
    }
    mistyped
}

/// The known name nearest to a mistyped one, if one is near.
fn nearest_name<'a>(name: &str, known: &BTreeSet<&'a str>) -> Option<&'a str> {
    if name.len() > MAX_NAME {
        None
    } else {
        crate::yaml::nearest_word(name, known.iter().copied())
    }
}

fn unknown_name(name: &'static str, value: &str, meant: Option<&str>) -> QueryMistake {
    QueryMistake::UnknownName {
        name,
        value: value.to_owned(),
        meant: meant.map(str::to_owned),
    }
}
