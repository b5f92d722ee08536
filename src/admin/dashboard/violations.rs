//! The page of violations: for each crawler how many requests broke a rule, by kind, then examples
//! of them with the policy line that decided. Impostors have a section of their own. A query for
//! another kind shows that kind alone.

use super::counted::{self, by_crawler};
use super::crawler::kinds;
use super::layout::{Layout, Link, samples_link};
use super::{Dashboard, Page};
use crate::admin::query::Query;
use crate::record::{ByIdentity, Field, RecordedKind, Row};
use crate::state::history::{SampleFilter, SampleGroup};
use crate::verdict::{Kind, KnownIdentity};
use askama::Template;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::slice;
use strum::VariantArray;

/// Rows of each table.
const GROUPS: usize = 200;
const SAMPLES: usize = 100;
/// What a query may select.
const SELECTED: [&str; 5] = ["site", "crawler", "kind", "rule", "identity"];
/// The kinds of requests that broke a rule.
const BROKE: [Kind; 3] = [Kind::Violation, Kind::TooFast, Kind::Trapped];

#[derive(Template)]
#[template(path = "violations.html")]
struct ViolationsPage {
    layout: Layout,
    choices: Vec<Link>,
    /// The selected values, each with a link that drops it.
    selected: Vec<(String, String)>,
    site: String,
    /// Those that have anything to show.
    sections: Vec<Section>,
}

/// Requests of some kinds.
struct Section {
    kinds: &'static [Kind],
    /// All requests, the most frequent first.
    requests: Vec<Requests>,
    /// One more than is shown, so that the page knows whether there are more.
    groups: Vec<SampleGroup>,
    samples: Vec<Row>,
}

/// How many requests of a kind came under a name.
struct Requests {
    crawler: String,
    identity: KnownIdentity,
    kind: RecordedKind,
    count: u64,
}

/// The text of a field, harmless for a page.
pub(super) fn printable(sample: &Row, field: Field) -> String {
    crate::printable::printable(sample.text(field).as_bytes())
}

impl Dashboard {
    /// The page of violations, of the period and the values (site, crawler, kind, rule, identity)
    /// that the query selects.
    pub(super) fn violations(&self, query: &str) -> Page {
        let query = Query::read(
            query,
            &["site", "crawler", "kind", "rule", "identity", "days"],
        )?;
        let period = super::period(&query, self.now())?;
        let mut filter = SampleFilter {
            site: query.get("site"),
            crawler: query.get("crawler"),
            rule: query.get("rule"),
            identity: query.one_of("identity", KnownIdentity::VARIANTS)?.copied(),
            ..SampleFilter::default()
        };
        let (history, whose) = counted::counts(&self.operations, &period)?;
        let site = filter.site.unwrap_or_default();
        // The history does not count by rule.
        let counts = match filter.rule {
            Some(_) => BTreeMap::new(),
            None => by_crawler(&history, site, &period)?,
        };
        let kinds = match query.one_of("kind", Kind::VARIANTS)? {
            Some(kind) => vec![slice::from_ref(kind)],
            None => vec![&BROKE[..], &[Kind::Impostor]],
        };
        let mut sections = Vec::new();
        for kinds in kinds {
            filter.kinds = kinds;
            sections.push(Section {
                kinds,
                requests: requests(&filter, &counts),
                groups: self.operations.upkeep.history().sample_groups(
                    &filter,
                    period.from,
                    GROUPS + 1,
                )?,
                samples: self
                    .operations
                    .upkeep
                    .history()
                    .samples(&filter, period.from, SAMPLES)?,
            });
        }
        sections.retain(|section| !section.requests.is_empty() || !section.samples.is_empty());
        let chosen: Vec<(&str, &str)> = SELECTED
            .iter()
            .filter_map(|name| query.get(name).map(|value| (*name, value)))
            .collect();
        let mut selected = Vec::new();
        for (name, value) in &chosen {
            let mut others = chosen.clone();
            others.retain(|(other, _)| other != name);
            let shown = crate::printable::printable(value.as_bytes());
            selected.push((shown, samples_link(&others)));
        }
        let page = ViolationsPage {
            layout: self.layout("Violations", "/violations").counted(whose),
            choices: super::choices(&period, &samples_link(&chosen)),
            selected,
            site: site.to_owned(),
            sections,
        };
        Ok(page.render()?)
    }
}

/// The requests of the counts that the filter selects, the most frequent first.
fn requests(filter: &SampleFilter<'_>, counts: &BTreeMap<String, ByIdentity>) -> Vec<Requests> {
    let mut requests = Vec::new();
    for (crawler, by_identity) in counts {
        for (identity, kind, count) in kinds(by_identity) {
            requests.push(Requests {
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
