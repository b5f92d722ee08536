//! The page of a site: what crawlers did there, its robots.txt with the policy line behind each
//! line, its X-Robots-Tag rules, findings and tests, and the commands that pause it. It shows the
//! policy with numbered lines, to which other pages link.

use super::layout::{Layout, Link, site_link};
use super::overview::live_report;
use super::{Dashboard, Page, PageError};
use crate::admin::query::Query;
use crate::policy::Site;
use crate::policy::model::{Conditions, IndexingRule, StatusCondition};
use crate::policy::site::RuleSource;
use crate::printable::join;
use crate::report::Content;
use crate::sites::SiteStatus;
use crate::verdict::source_place;
use crate::yaml::values;
use askama::Template;

#[derive(Template)]
#[template(path = "site.html")]
struct SitePage<'a> {
    layout: Layout,
    status: SiteStatus,
    choices: Vec<Link>,
    content: Content<'a>,
    robots_txt: Vec<ServedLine>,
    /// The site, where it is in force.
    site: Option<&'a Site>,
}

struct ServedLine {
    text: String,
    source: String,
    /// The line of the policy.
    line: Option<u32>,
}

impl Dashboard {
    /// The page of the site that `name` of the query names, about the last `days` (30 without it).
    /// Unknown if no such site is in force, no policy file has the name, and the history has no
    /// requests of it in this time.
    pub(super) fn site(&self, query: &str) -> Page {
        let query = Query::read(query, &["name", "days"])?;
        let name = query.get("name").unwrap_or_default();
        let period = super::period(&query, self.now())?;
        let report = live_report(&self.operations, Some(period), name)?;
        let snapshot = self.operations.instance.sites.snapshot();
        let entry = snapshot.entry_named(name);
        let status = self
            .operations
            .status()
            .policies
            .sites
            .into_iter()
            .find(|site| site.site == name);
        if name.is_empty() || (entry.is_none() && status.is_none() && report.crawlers.is_empty()) {
            return Err(PageError::Unknown(format!(
                "there is no site {name}, and the history has none in this period"
            )));
        }
        let site = entry.map(|entry| &*entry.site);
        let status = status.unwrap_or_default();
        let page = SitePage {
            layout: self.layout(name, "/site").counted(report.instances.clone()),
            choices: super::choices(&period, &site_link(name)),
            content: Content::new(&report, true).below_title(),
            robots_txt: site.map(served).unwrap_or_default(),
            site,
            status,
        };
        Ok(page.render()?)
    }
}

/// The lines of robots.txt as served, each with the place in the policy that it comes from. Places
/// are known of the first `User-agent` line of a group and of rules. The n-th group and rule of the
/// text are those of the compiled document; a line that is not the expected rule has no place.
fn served(site: &Site) -> Vec<ServedLine> {
    let text = String::from_utf8_lossy(&site.robots_txt.body).into_owned();
    let mut group = None::<usize>;
    let mut rule = 0;
    let mut is_in_agents = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        let mut source = None;
        if line.starts_with("User-agent:") {
            if !is_in_agents {
                group = Some(group.map_or(0, |group| group + 1));
                rule = 0;
                source = group.and_then(|group| site.group_sources.get(group));
            }
            is_in_agents = true;
        } else if let Some(group) = group {
            is_in_agents = false;
            let expected = site
                .document
                .groups
                .get(group)
                .and_then(|group| group.rules.get(rule));
            if expected.is_some_and(|expected| expected.to_string().trim_end() == line.trim_end()) {
                source = site
                    .rule_sources
                    .get(group)
                    .and_then(|sources| sources.get(rule));
                rule += 1;
            }
        }
        let (source, line_of_policy) = source.map(|source| place(source, site)).unwrap_or_default();
        lines.push(ServedLine {
            text: line.to_owned(),
            source,
            line: line_of_policy,
        });
    }
    lines
}

/// The place that a rule comes from, in words, and its line if it is in the policy file.
fn place(source: &RuleSource, site: &Site) -> (String, Option<u32>) {
    let (what, line) = match source {
        RuleSource::Policy(span) => ("policy", span.line),
        RuleSource::Purpose(span) => ("policy: purposes", span.line),
        RuleSource::Staging => return ("environment: staging".to_owned(), None),
        RuleSource::Origin(_) => return (source_place(source, site).0, None),
    };
    (format!("{what}, line {line}"), Some(line))
}

/// In words, the responses that a rule for tags is about: its conditions, and those of `unless`
/// with "not". Without conditions `every response`.
fn responses(rule: &IndexingRule) -> String {
    let mut conditions = said(&rule.when);
    if let Some(unless) = &rule.unless {
        conditions.push(format!("not ({})", said(unless).join(", ")));
    }
    if conditions.is_empty() {
        "every response".to_owned()
    } else {
        conditions.join(", ")
    }
}

/// The conditions that are set, each as its name and its values.
fn said(conditions: &Conditions) -> Vec<String> {
    let status = conditions
        .status
        .iter()
        .map(|condition| match condition.value {
            StatusCondition::Code(code) => code.to_string(),
            StatusCondition::Class(class) => format!("{class}xx"),
        });
    [
        ("paths", values(&conditions.paths).join(" ")),
        (
            "path_regex",
            conditions
                .path_regex
                .as_ref()
                .map(|regex| regex.value.clone())
                .unwrap_or_default(),
        ),
        ("types", values(&conditions.types).join(" ")),
        ("status", join(status, " ")),
    ]
    .into_iter()
    .filter(|(_, value)| !value.is_empty())
    .map(|(name, value)| format!("{name} {value}"))
    .collect()
}
