//! The page of a site: what crawlers did there, its robots.txt as served with the source of each line, its tags, its
//! findings and tests, and its policy with numbered lines, to which every verdict leads.

use super::format::minute;
use super::layout::{Layout, crawler_link};
use super::overview::name;
use super::period::{Choice, Period};
use super::rows::Row;
use super::{Dashboard, PageError};
use crate::admin::query::Query;
use crate::crawlers::Registry;
use crate::policy::Site;
use crate::policy::model::{Conditions, IndexingRule, PolicyTest, StatusCondition};
use crate::policy::site::RuleSource;
use crate::sites::SiteStatus;
use crate::state::history::{ByIdentity, Counts};
use crate::time::Timestamp;
use crate::verdict::rule_line;
use crate::yaml::{Located, Span};
use askama::Template;
use std::collections::BTreeMap;

#[derive(Template)]
#[template(path = "site.html")]
struct SitePage {
    layout: Layout,
    facts: Vec<(&'static str, String)>,
    choices: Vec<Choice>,
    crawlers: Vec<Row>,
    findings: Vec<String>,
    robots_txt: Vec<ServedLine>,
    tags: Vec<TagRow>,
    tests: Vec<TestRow>,
    policy: Vec<(usize, String)>,
    policy_name: String,
    pause: Vec<String>,
}

struct ServedLine {
    text: String,
    source: String,
    /// The line of the policy.
    line: Option<usize>,
}

struct TagRow {
    conditions: String,
    tags: Vec<String>,
    line: usize,
}

struct TestRow {
    agent: String,
    path: String,
    line: usize,
}

impl Dashboard {
    pub(super) fn site(&self, query: &str) -> Result<String, PageError> {
        let query = Query::read(query, &["name", "days"])?;
        let name = query.get("name").unwrap_or_default();
        let period = Period::of(&query, self.now())?;
        let mut counts: BTreeMap<String, ByIdentity> = BTreeMap::new();
        let times = (period.from, Timestamp(i64::MAX));
        let (history, counted) = self.counts(&period)?;
        history.each(name, times, period.step, |_, (crawler, identity), of_period| {
            if !matches!(crawler, "" | "none") {
                counts.entry(crawler.to_owned()).or_default().add(identity, of_period);
            }
        })?;
        let snapshot = self.operations.instance.sites.snapshot();
        let entry = snapshot.site_named(name).map(|place| &snapshot.sites()[place]);
        let status = self.operations.status().policies.sites.into_iter().find(|site| site.site == name);
        if name.is_empty() || (entry.is_none() && status.is_none() && counts.is_empty()) {
            return Err(PageError::Unknown(format!(
                "there is no site `{name}`, and the history has none in this time"
            )));
        }
        let site = entry.map(|entry| &*entry.site);
        let status = status.unwrap_or_default();
        let page = SitePage {
            layout: self.layout(name, "/site").counted(counted),
            facts: facts(&status, site),
            choices: period.choices(&super::layout::site_link(name)),
            crawlers: self.on_site(name, counts),
            robots_txt: site.map(served).unwrap_or_default(),
            tags: site.map(|site| site.policy.indexing.iter().map(tag_row).collect()).unwrap_or_default(),
            tests: site.map(|site| site.policy.tests.iter().map(test_row).collect()).unwrap_or_default(),
            policy: site.map(policy).unwrap_or_default(),
            policy_name: site.map(|site| site.policy.source.name.to_string()).unwrap_or_default(),
            pause: self.pause_commands(name, status.paused_until.is_some()),
            findings: status.findings,
        };
        Ok(page.render()?)
    }

    fn on_site(&self, site: &str, counts: BTreeMap<String, ByIdentity>) -> Vec<Row> {
        let mut counts: Vec<(String, ByIdentity, Counts)> =
            counts.into_iter().map(|(id, counts)| (id, counts, counts.all())).collect();
        counts.sort_by_key(|(.., all)| std::cmp::Reverse((all.broke(), all.requests())));
        let rows = |(id, counts, _): (String, ByIdentity, Counts)| {
            let name = name(&id, Registry::builtin());
            let mut rows = Row::each(site, (&id, &name), &counts);
            rows.iter_mut().for_each(|row| (row.href, row.name) = (crawler_link(&id), name.clone()));
            rows
        };
        counts.into_iter().flat_map(rows).collect()
    }
}

fn facts(status: &SiteStatus, site: Option<&Site>) -> Vec<(&'static str, String)> {
    let Some(site) = site else { return vec![("State", "no policy of this site is in force".to_owned())] };
    let hosts = if status.hosts.is_empty() { "every other host".to_owned() } else { status.hosts.join(", ") };
    let modes: Vec<String> = status.modes.iter().map(|other| format!("{}: {}", other.name, other.mode)).collect();
    let modes = if modes.is_empty() { String::new() } else { format!(" ({})", modes.join(", ")) };
    let mut facts = vec![
        ("Hosts", hosts),
        ("Mode", format!("{}{modes}", status.mode)),
        ("robots.txt", format!("version {} since {} UTC", status.version, minute(status.since))),
        ("Search engines may index /", if status.indexable { "yes" } else { "no" }.to_owned()),
        ("Policy", site.policy.source.name.to_string()),
    ];
    if let Some(until) = status.paused_until {
        let audience = status.paused_for.as_deref().unwrap_or("crawlers");
        facts.push(("Pause", format!("for {audience} until {} UTC", minute(until))));
    }
    if !status.reload_ok {
        facts.push(("Reload", "the policy file was rejected; the last good policy stays in force".to_owned()));
    }
    if let Some(origin) = &site.origin {
        facts.push(("The origin's own robots.txt", origin.location.clone()));
    }
    facts
}

/// The lines of the file as served. Rules are found again by their order.
fn served(site: &Site) -> Vec<ServedLine> {
    let text = String::from_utf8_lossy(&site.robots_txt.body).into_owned();
    let (mut group, mut rule, mut is_in_agents) = (None::<usize>, 0, false);
    let mut lines = Vec::new();
    for line in text.lines() {
        let mut source = None;
        if line.starts_with("User-agent:") {
            if !is_in_agents {
                (group, rule) = (Some(group.map_or(0, |group| group + 1)), 0);
                source = group.and_then(|group| site.group_sources.get(group));
            }
            is_in_agents = true;
        } else if let Some(group) = group {
            is_in_agents = false;
            let expected = site.document.groups.get(group).and_then(|group| group.rules.get(rule));
            if expected.is_some_and(|expected| rule_line(expected).trim_end() == line.trim_end()) {
                source = site.rule_sources.get(group).and_then(|sources| sources.get(rule));
                rule += 1;
            }
        }
        let (source, line_of_policy) = source.map(|source| place(source, site)).unwrap_or_default();
        lines.push(ServedLine { text: line.to_owned(), source, line: line_of_policy });
    }
    lines
}

fn place(source: &RuleSource, site: &Site) -> (String, Option<usize>) {
    let of_span = |what: &str, span: &Span| (format!("{what}, line {}", span.line), Some(number(span)));
    match source {
        RuleSource::Policy(span) => of_span("policy", span),
        RuleSource::Purpose(span) => of_span("policy: purposes", span),
        RuleSource::Staging => ("environment: staging".to_owned(), None),
        RuleSource::Origin(line) => {
            (site.origin.as_ref().map_or_else(|| "the origin".to_owned(), |origin| origin.place(*line)), None)
        }
    }
}

fn number(span: &Span) -> usize {
    usize::try_from(span.line).unwrap_or_default()
}

fn tag_row(rule: &IndexingRule) -> TagRow {
    let mut conditions = said(&rule.when);
    if let Some(unless) = &rule.unless {
        conditions.push(format!("not ({})", said(unless).join(", ")));
    }
    let conditions = if conditions.is_empty() { "every response".to_owned() } else { conditions.join(", ") };
    TagRow { conditions, tags: rule.tags.lines(), line: number(&rule.span) }
}

fn said(conditions: &Conditions) -> Vec<String> {
    let values =
        |list: &[Located<String>]| list.iter().map(|located| located.value.as_str()).collect::<Vec<_>>().join(" ");
    let status = |condition: &Located<StatusCondition>| match condition.value {
        StatusCondition::Code(code) => code.to_string(),
        StatusCondition::Class(class) => format!("{class}xx"),
    };
    let statuses: Vec<String> = conditions.status.iter().map(status).collect();
    [
        ("paths", values(&conditions.paths)),
        ("path_regex", conditions.path_regex.as_ref().map(|regex| regex.value.clone()).unwrap_or_default()),
        ("types", values(&conditions.types)),
        ("status", statuses.join(" ")),
    ]
    .into_iter()
    .filter(|(_, value)| !value.is_empty())
    .map(|(name, value)| format!("{name} {value}"))
    .collect()
}

fn test_row(test: &PolicyTest) -> TestRow {
    TestRow { agent: test.agent.value.clone(), path: test.path.value.clone(), line: number(&test.span) }
}

fn policy(site: &Site) -> Vec<(usize, String)> {
    site.policy.source.text.lines().enumerate().map(|(place, line)| (place + 1, line.to_owned())).collect()
}
