//! [`list_violations`] answers requests for `/api/violations` on the admin listener: it lists the
//! latest requests that broke the rules. If the query names an unknown site or crawler, the
//! response is an error, because an empty list would look like good news.

use super::Operations;
use super::query::{QueryError, QueryMistake, QueryParameters};
use crate::record::{NO_CRAWLER, RecordField, RecordRow, ViolationKind};
use crate::report::registry_crawler;
use crate::telemetry::UNCLAIMED;
use crate::verdict::IdentityStatus;
use serde::Serialize;
use std::sync::Arc;
use strum::VariantArray;

use RecordField::*;

/// The label of bots that neither the registry nor a policy knows.
const UNKNOWN_BOTS: &str = "other";

/// The response to `/api/violations`.
#[derive(Serialize)]
pub struct ViolationsResponse {
    violations: Vec<RecordRow>,
    /// Events since the start that were dropped, because there were too many.
    left_out: u64,
}

/// The latest requests against the rules, the last one first, filtered by `site`, `crawler`, `kind`
/// and `identity`. `kind=never_fetched` selects violations of crawlers that were served no
/// robots.txt lately.
///
/// # Errors
/// The query has mistakes.
pub fn list_violations(
    operations: &Operations,
    query: &str,
) -> Result<ViolationsResponse, QueryError> {
    let query = QueryParameters::parse(query, &["site", "crawler", "kind", "identity"])?;
    let kind = query.get_one_of("kind", ViolationKind::event_kinds())?;
    let identity = query.get_one_of("identity", IdentityStatus::VARIANTS)?;
    let mut events = operations.instance.events.recent();
    check_name(&query, "site", |site| {
        is_known_site(operations, &events, site)
    })?;
    check_name(&query, "crawler", |crawler| {
        is_known_crawler(operations, &events, crawler)
    })?;
    events.retain(|event| {
        query.is_absent_or_equals("site", &event.text(Site))
            && query.is_absent_or_equals("crawler", &event.text(Crawler))
            && identity.is_none_or(|identity| event.text(Identity) == identity.name())
            && kind.is_none_or(|kind| match kind {
                ViolationKind::Of(kind) => event.text(Kind) == kind.name(),
                ViolationKind::NeverFetched => event.get(RecordField::NeverFetched).is_some(),
            })
    });
    Ok(ViolationsResponse {
        violations: events.into_iter().map(Arc::unwrap_or_clone).collect(),
        left_out: operations.instance.events.left_out(),
    })
}

/// # Errors
/// The parameter has a name that is not known.
fn check_name(
    query: &QueryParameters<'_>,
    name: &'static str,
    is_known: impl Fn(&str) -> bool,
) -> Result<(), QueryError> {
    match query.get(name).filter(|value| !is_known(value)) {
        None => Ok(()),
        Some(value) => Err(QueryMistake::UnknownName {
            name,
            value: value.to_owned(),
        }
        .into()),
    }
}

/// Whether the site is in force, had a broken policy at the start, or has events: it may be removed.
fn is_known_site(operations: &Operations, events: &[Arc<RecordRow>], site: &str) -> bool {
    let status = operations.instance.sites.status(operations.moment().now);
    site == UNCLAIMED
        || status.sites.iter().any(|known| known.site == site)
        || has_event(events, Site, site)
}

/// Whether the registry or a policy knows the crawler, or it has events.
fn is_known_crawler(operations: &Operations, events: &[Arc<RecordRow>], crawler: &str) -> bool {
    let snapshot = operations.instance.sites.snapshot();
    let mut tokens = snapshot
        .sites()
        .iter()
        .flat_map(|entry| entry.site.tokens.tokens());
    [NO_CRAWLER, UNKNOWN_BOTS].contains(&crawler)
        || registry_crawler(crawler).is_some()
        || tokens.any(|token| token == crawler)
        || has_event(events, Crawler, crawler)
}

fn has_event(events: &[Arc<RecordRow>], field: RecordField, value: &str) -> bool {
    events.iter().any(|event| event.text(field) == value)
}
