//! The page of violations: samples of requests that crawlgate refused, or would refuse under
//! enforcement. One table groups them by crawler and rule, with the first and the last time. A list
//! shows the latest samples with the policy line that decided.

use super::layout::{Layout, Link, samples_link};
use super::period::Period;
use super::{Dashboard, Page};
use crate::admin::query::Query;
use crate::record::{Field, Row};
use crate::state::history::{SampleFilter, SampleGroup};
use crate::verdict::{Kind, KnownIdentity};
use askama::Template;
use strum::VariantArray;

/// Rows of each table.
const GROUPS: usize = 200;
const SAMPLES: usize = 100;
/// What a query may select.
const SELECTED: [&str; 5] = ["site", "crawler", "kind", "rule", "identity"];

#[derive(Template)]
#[template(path = "violations.html")]
struct ViolationsPage {
    layout: Layout,
    choices: Vec<Link>,
    /// The selected values, each with a link that drops it.
    selected: Vec<(String, String)>,
    groups: Vec<SampleGroup>,
    samples: Vec<Row>,
}

/// What was done with a sample, and under observation what would have been.
pub(super) fn action(sample: &Row) -> String {
    let would = sample.text(Field::Would);
    if would.is_empty() {
        sample.text(Field::Action).into_owned()
    } else {
        format!("would_{would}")
    }
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
        let period = Period::of(&query, self.now())?;
        let filter = SampleFilter {
            site: query.get("site"),
            crawler: query.get("crawler"),
            kind: query.one_of("kind", Kind::VARIANTS)?.copied(),
            rule: query.get("rule"),
            identity: query.one_of("identity", KnownIdentity::VARIANTS)?.copied(),
        };
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
        self.operations.flush_history();
        let page = ViolationsPage {
            layout: self
                .layout("Violations", "/violations")
                .counted(self.whose_samples()),
            choices: period.choices(&samples_link(&chosen)),
            selected,
            // One more than is shown, so that the page knows whether there are more.
            groups: self
                .history
                .sample_groups(&filter, period.from, GROUPS + 1)?,
            samples: self.history.samples(&filter, period.from, SAMPLES)?,
        };
        Ok(page.render()?)
    }
}
