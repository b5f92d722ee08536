//! The dashboard's page of violations. For each crawler it shows how many requests broke a rule, by
//! kind of violation. It also shows examples of these requests, each with the policy line of the
//! broken rule. Clients that pretend to be a crawler have a section of their own. If the query of
//! the URL names a kind, the page shows only that kind.

use super::counts::{counts_by_crawler, period_history};
use super::crawler::kind_counts;
use super::layout::{PageLayout, PageLink, violations_link};
use super::{Dashboard, PageResult};
use crate::admin::query::QueryParameters;
use crate::record::{CountsByIdentity, RULE_BREAKING_KINDS, RecordField, RecordRow, RecordedKind};
use crate::state::history::{SampleFilter, SampleGroup};
use crate::verdict::{IdentityStatus, Kind};
use askama::Template;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::slice;
use strum::VariantArray;

/// Rows of each table.
const MAX_GROUPS: usize = 200;
const MAX_SAMPLES: usize = 100;
/// The parameters that filter.
const FILTER_NAMES: [&str; 5] = ["site", "crawler", "kind", "rule", "identity"];

#[derive(Template)]
#[template(path = "violations.html")]
struct ViolationsPage {
    layout: PageLayout,
    choices: Vec<PageLink>,
    /// The filters, each with a link that removes it.
    selected: Vec<(String, String)>,
    site: String,
    /// The sections that are not empty.
    sections: Vec<ViolationSection>,
}

/// The requests of some kinds.
struct ViolationSection {
    kinds: &'static [Kind],
    /// The most frequent first.
    requests: Vec<RequestCount>,
    /// One more than is shown, so that the page can say that there are more.
    groups: Vec<SampleGroup>,
    samples: Vec<RecordRow>,
}

/// The number of requests of a kind by a crawler and identity.
struct RequestCount {
    crawler: String,
    identity: IdentityStatus,
    kind: RecordedKind,
    count: u64,
}

/// The text of a field, without control characters.
pub fn printable_field(sample: &RecordRow, field: RecordField) -> String {
    crate::printable::printable(sample.text(field).as_bytes())
}

impl Dashboard {
    /// The page of violations, filtered by site, crawler, kind, rule and identity.
    pub(super) fn violations_page(&self, query: &str) -> PageResult {
        let query = QueryParameters::parse(
            query,
            &["site", "crawler", "kind", "rule", "identity", "days"],
        )?;
        let period = super::query_period(&query, self.now())?;
        let mut filter = SampleFilter {
            site: query.get("site"),
            crawler: query.get("crawler"),
            rule: query.get("rule"),
            identity: query
                .get_one_of("identity", IdentityStatus::VARIANTS)?
                .copied(),
            ..SampleFilter::default()
        };
        let (history, counts_note) = period_history(&self.operations, &period)?;
        let site = filter.site.unwrap_or_default();
        // The history has no counts by rule.
        let counts = match filter.rule {
            Some(_) => BTreeMap::new(),
            None => counts_by_crawler(&history, site, &period)?,
        };
        let kinds = match query.get_one_of("kind", Kind::VARIANTS)? {
            Some(kind) => vec![slice::from_ref(kind)],
            None => vec![&RULE_BREAKING_KINDS[..], &[Kind::Impostor]],
        };
        let mut sections = Vec::new();
        for kinds in kinds {
            filter.kinds = kinds;
            sections.push(ViolationSection {
                kinds,
                requests: request_counts(&filter, &counts),
                groups: self.operations.upkeep.history().sample_groups(
                    &filter,
                    period.from,
                    MAX_GROUPS + 1,
                )?,
                samples: self.operations.upkeep.history().samples(
                    &filter,
                    period.from,
                    MAX_SAMPLES,
                )?,
            });
        }
        sections.retain(|section| !section.requests.is_empty() || !section.samples.is_empty());
        let chosen: Vec<(&str, &str)> = FILTER_NAMES
            .iter()
            .filter_map(|name| query.get(name).map(|value| (*name, value)))
            .collect();
        let mut selected = Vec::new();
        for (name, value) in &chosen {
            let mut others = chosen.clone();
            others.retain(|(other, _)| other != name);
            let shown = crate::printable::printable(value.as_bytes());
            selected.push((shown, violations_link(&others)));
        }
        let page = ViolationsPage {
            layout: self.page_layout("Violations", "/violations", counts_note),
            choices: super::period_links(&period, &violations_link(&chosen)),
            selected,
            site: site.to_owned(),
            sections,
        };
        Ok(page.render()?)
    }
}

/// The counts that the filter selects, the most frequent first.
fn request_counts(
    filter: &SampleFilter<'_>,
    counts: &BTreeMap<String, CountsByIdentity>,
) -> Vec<RequestCount> {
    let mut requests = Vec::new();
    for (crawler, by_identity) in counts {
        for (identity, kind, count) in kind_counts(by_identity) {
            requests.push(RequestCount {
                crawler: crawler.clone(),
                identity,
                kind,
                count,
            });
        }
    }
    requests.retain(|found| {
        matches!(found.kind, RecordedKind::Of(kind) if filter.kinds.contains(&kind))
            && filter
                .crawler
                .is_none_or(|crawler| crawler == found.crawler)
            && filter
                .identity
                .is_none_or(|identity| identity == found.identity)
    });
    requests.sort_by_key(|found| Reverse(found.count));
    requests
}
