//! Requests against the rules: which crawler, which rule, since when; and samples of the requests themselves, with the
//! line of the policy that decided.

use super::format::{minute, thousands};
use super::layout::{Layout, crawler_link, line_link, samples_link, site_link};
use super::overview::name;
use super::period::{Choice, Period};
use super::rows::in_words;
use super::{Dashboard, PageError};
use crate::admin::query::Query;
use crate::crawlers::Registry;
use crate::logs::printable;
use crate::state::history::{Sample, SampleFilter, SampleGroup};
use askama::Template;

/// Rows of each table.
const GROUPS: usize = 200;
const SAMPLES: usize = 100;
/// What a query may select.
const SELECTED: [&str; 5] = ["site", "crawler", "kind", "rule", "identity"];

#[derive(Template)]
#[template(path = "violations.html")]
struct ViolationsPage {
    layout: Layout,
    choices: Vec<Choice>,
    /// What is selected, with the link that drops it.
    selected: Vec<(String, String)>,
    groups: Vec<GroupRow>,
    groups_left_out: bool,
    samples: Vec<SampleRow>,
}

struct GroupRow {
    site: String,
    site_href: String,
    crawler: String,
    crawler_href: String,
    identity: String,
    kind: String,
    rule: String,
    line: Option<String>,
    source: String,
    first: String,
    last: String,
    samples: String,
    samples_href: String,
}

struct SampleRow {
    at: String,
    site: String,
    crawler: String,
    kind: String,
    /// What is proven of the crawler's name.
    says: String,
    client: String,
    method: String,
    url: String,
    user_agent: String,
    rule: String,
    line: Option<String>,
    source: String,
    action: String,
    status: u16,
    version: String,
}

impl GroupRow {
    fn new(group: SampleGroup, registry: &Registry) -> GroupRow {
        GroupRow {
            site_href: site_link(&group.site),
            crawler_href: crawler_link(&group.crawler),
            crawler: name(&group.crawler, registry),
            kind: group.kind.replace('_', " "),
            line: line_link(&group.site, &group.source),
            first: minute(group.first),
            last: minute(group.last),
            samples: thousands(group.samples),
            samples_href: samples_link(&[
                ("site", &group.site),
                ("crawler", &group.crawler),
                ("kind", &group.kind),
                ("rule", &group.rule),
                ("identity", &group.identity),
            ]),
            identity: group.identity,
            site: group.site,
            rule: printable(group.rule.as_bytes()),
            source: group.source,
        }
    }
}

impl SampleRow {
    fn new(sample: Sample, registry: &Registry) -> SampleRow {
        SampleRow {
            at: minute(sample.at),
            says: in_words(&sample.crawler, &name(&sample.crawler, registry), &sample.identity),
            crawler: name(&sample.crawler, registry),
            kind: sample.kind.replace('_', " "),
            line: line_link(&sample.site, &sample.source),
            url: printable(format!("{}{}", sample.host, sample.target).as_bytes()),
            user_agent: printable(sample.user_agent.as_bytes()),
            rule: printable(sample.rule.as_bytes()),
            method: printable(sample.method.as_bytes()),
            action: sample.action.replace('_', " "),
            site: sample.site,
            client: sample.client,
            source: sample.source,
            status: sample.status,
            version: sample.version,
        }
    }
}

impl Dashboard {
    pub(super) fn violations(&self, query: &str) -> Result<String, PageError> {
        let query = Query::read(query, &["site", "crawler", "kind", "rule", "identity", "days"])?;
        let period = Period::of(&query, self.now())?;
        let registry = Registry::builtin();
        let given = |name| query.get(name);
        let filter = SampleFilter {
            site: given("site"),
            crawler: given("crawler"),
            kind: given("kind"),
            rule: given("rule"),
            identity: given("identity"),
        };
        let chosen: Vec<(&str, &str)> =
            SELECTED.iter().filter_map(|name| given(name).map(|value| (*name, value))).collect();
        let without = |dropped: &str| {
            let others: Vec<(&str, &str)> = chosen.iter().filter(|(name, _)| *name != dropped).copied().collect();
            samples_link(&others)
        };
        let groups = self.history.sample_groups(&filter, period.from, GROUPS + 1)?;
        let samples = self.history.samples(&filter, period.from, SAMPLES)?;
        let page = ViolationsPage {
            layout: self.layout("Violations", "/violations").counted(self.whose_samples()),
            choices: period.choices(&samples_link(&chosen)),
            selected: chosen.iter().map(|(name, value)| (printable(value.as_bytes()), without(name))).collect(),
            groups_left_out: groups.len() > GROUPS,
            groups: groups.into_iter().take(GROUPS).map(|group| GroupRow::new(group, registry)).collect(),
            samples: samples.into_iter().map(|sample| SampleRow::new(sample, registry)).collect(),
        };
        Ok(page.render()?)
    }
}
