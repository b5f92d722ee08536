//! The overview: the [`Report`] of the running crawlgate as the first page, with the lines to write
//! so that a crawler is blocked. `crawlgate report` asks for the same report.

use super::counted::counts;
use super::layout::{Layout, Link};
use super::{Dashboard, Page, PageError, choices, period};
use crate::admin::Operations;
use crate::admin::problem::Problem;
use crate::admin::query::Query;
use crate::crawlers::{Claim, Registry};
use crate::policy::model::{Mode, Unverified};
use crate::policy::{SiteEntry, Snapshot};
use crate::report::{ClientIdentity, Content, CrawlerRow, Part, Period, Report, ToBlock};
use crate::state::history::HistoryError;
use crate::verdict::{claim_of, crawler_name};
use askama::Template;
use std::collections::BTreeMap;

#[derive(Template)]
#[template(path = "overview.html")]
struct OverviewPage<'a> {
    layout: Layout,
    content: Content<'a>,
    choices: Vec<Link>,
    sites: Vec<Link>,
    /// The mode of the site, where the page is about one.
    mode: Option<String>,
    problems: Vec<Problem>,
    /// What the page covers.
    covers: String,
}

impl Dashboard {
    /// The first page, about the last `days` and the `site` of the query; without them about as
    /// many days as there are, and all sites.
    pub(super) fn overview(&self, query: &str) -> Page {
        let query = Query::read(query, &["days", "site"])?;
        let site = query.get("site").unwrap_or_default();
        let period = match query.get("days") {
            Some(_) => Some(period(&query, self.now())?),
            None => None,
        };
        let report = live_report(&self.operations, period, site)?;
        let status = self.operations.status();
        let known = || status.policies.sites.iter().map(|site| site.site.as_str());
        if !site.is_empty() && !known().any(|name| name == site) {
            return Err(PageError::Unknown(format!("there is no site {site}")));
        }
        let mut sites = Vec::new();
        if known().count() > 1 {
            sites.push(site_choice("", "all sites", site));
            sites.extend(known().map(|name| site_choice(name, name, site)));
        }
        let one = match (site, &status.policies.sites[..]) {
            ("", [only]) => Some(only),
            (site, all) => all.iter().find(|known| known.site == site),
        };
        let mode = one.map(|site| site.mode.clone());
        let shown = period.unwrap_or(fitting_period(&self.operations)?);
        let base = match site {
            "" => "/".to_owned(),
            site => site_choice(site, site, site).href,
        };
        let covers = match (report.from, report.to) {
            (Some(from), Some(to)) => format!("{} to {}", from.for_people(), to.for_people()),
            _ => String::new(),
        };
        let page = OverviewPage {
            layout: Layout::new("Overview", "/", status.problems.len())
                .counted(report.instances.clone()),
            content: Content::new(&report, true),
            choices: choices(&shown, &base),
            sites,
            mode,
            problems: status.problems,
            covers,
        };
        Ok(page.render()?)
    }
}

/// The period that is shown, if none is asked for: about as many days as there are.
fn fitting_period(operations: &Operations) -> Result<Period, HistoryError> {
    let first_day = operations.upkeep.history().first_day()?;
    Ok(Period::fitting(first_day, operations.moment().now))
}

/// The report of a period and a site (empty: all), with everything that was requested until now.
/// Without a period it is about as many days as there are.
///
/// # Errors
/// The history cannot be read.
pub fn live_report(
    operations: &Operations,
    period: Option<Period>,
    site: &str,
) -> Result<Report, HistoryError> {
    let period = period.map_or_else(|| fitting_period(operations), Ok)?;
    let (history, instances) = counts(operations, &period)?;
    let mut report = Report::from_history(&history, period, site)?;
    report.instances = instances;
    let modes: BTreeMap<String, String> = operations
        .status()
        .policies
        .sites
        .into_iter()
        .map(|site| (site.site, site.mode))
        .collect();
    for row in &mut report.sites {
        row.mode = modes.get(&row.site).cloned();
    }
    let snapshot = operations.instance.sites.snapshot();
    for row in &mut report.crawlers {
        // The latest example may be older than the policy: a day keeps the first ones.
        if row.part == Part::BreaksRules && enforces(row, &snapshot) {
            row.is_blocked = Some(true);
        }
        row.to_block = to_block(row, &snapshot);
    }
    Ok(report)
}

/// A link to the overview of a site.
fn site_choice(site: &str, name: &str, current: &str) -> Link {
    let mut query = form_urlencoded::Serializer::new("/?".to_owned());
    let href = match site {
        "" => "/".to_owned(),
        site => query.append_pair("site", site).finish(),
    };
    Link {
        href,
        name: name.to_owned(),
        is_current: site == current,
    }
}

/// Whether the policy in force blocks requests against the rules of a row that has some.
fn enforces(row: &CrawlerRow, snapshot: &Snapshot) -> bool {
    let site = row.example.as_ref().map(|example| example.site.as_str());
    let Some(entry) = site.and_then(|site| snapshot.entry_named(site)) else {
        return false;
    };
    let claim = if row.is_unknown_bots() {
        Claim::Other
    } else {
        claim_of(&row.id, Registry::builtin(), Some(&entry.site))
    };
    let rules = entry.site.crawler_rules(claim);
    let is_verified = row.identity == Some(ClientIdentity::Verified);
    let may_be_blocked = is_verified || rules.unverified != Unverified::Observe;
    rules.mode == Mode::Enforce && !rules.unlisted && may_be_blocked
}

/// What to write so that a crawler which breaks the rules and passes is blocked. `None` if it is
/// blocked, if only its missing proof lets it pass, or if its site has no policy.
fn to_block(row: &CrawlerRow, snapshot: &Snapshot) -> Option<ToBlock> {
    if row.part != Part::BreaksRules || row.is_blocked != Some(false) {
        return None;
    }
    let entry = snapshot.entry_named(&row.example.as_ref()?.site)?;
    let site = &*entry.site;
    let policy = &site.policy;
    let enforcement = &policy.enforcement;
    let file = &policy.source.name;
    let section = enforcement_line(entry);
    let (name, list, line) = if row.is_unknown_bots() {
        let purposes = &enforcement.purposes;
        (
            "other".to_owned(),
            "purposes",
            (!purposes.is_empty()).then_some(section).flatten(),
        )
    } else {
        let registry = Registry::builtin();
        let claim = claim_of(&row.id, registry, Some(site));
        if site.crawler_rules(claim).mode == Mode::Enforce {
            return None;
        }
        let first = enforcement.agents.first();
        let line = first.map(|(agent, _)| agent.span.line);
        (crawler_name(registry, entry, claim), "agents", line)
    };
    let setting = format!("{name}: enforce");
    let (place, under, line) = match (line, section) {
        (Some(line), _) => (
            format!("{file}:{line}"),
            format!("enforcement.{list}"),
            setting,
        ),
        (None, Some(line)) => (
            format!("{file}:{line}"),
            "enforcement".to_owned(),
            format!("{list}: {{ {setting} }}"),
        ),
        (None, None) => (
            file.to_string(),
            String::new(),
            format!("enforcement: {{ {list}: {{ {setting} }} }}"),
        ),
    };
    Some(ToBlock { place, under, line })
}

/// The line of the policy on which its `enforcement` begins.
fn enforcement_line(entry: &SiteEntry) -> Option<u32> {
    let mut lines = entry.site.policy.source.text.lines();
    let place = lines.position(|line| line.starts_with("enforcement:"))?;
    u32::try_from(place + 1).ok()
}
