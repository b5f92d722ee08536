//! The dashboard's first page: the [`Report`] of the running crawlgate about which crawlers break
//! the rules. It adds the policy lines that would block those crawlers. The command
//! `crawlgate report` shows the same report.

use super::counts::period_history;
use super::layout::{PageLayout, PageLink};
use super::{Dashboard, PageError, PageResult, period_links, query_period};
use crate::admin::Operations;
use crate::admin::problem::Problem;
use crate::admin::query::QueryParameters;
use crate::crawlers::{Claim, Purpose, Registry};
use crate::policy::model::{EnforcementMode, UnverifiedTreatment};
use crate::policy::{SiteEntry, Snapshot};
use crate::report::{
    BlockInstruction, ClientIdentity, CrawlerRow, Report, ReportContent, ReportPeriod,
    ReportSection,
};
use crate::state::history::HistoryError;
use crate::verdict::{claim_from_agent, crawler_name};
use askama::Template;
use std::collections::BTreeMap;

#[derive(Template)]
#[template(path = "overview.html")]
struct OverviewPage<'a> {
    layout: PageLayout,
    content: ReportContent<'a>,
    choices: Vec<PageLink>,
    sites: Vec<PageLink>,
    /// The mode of the site, where the page is about one.
    mode: Option<String>,
    problems: Vec<Problem>,
    /// The beginning and the end of the report, for people.
    covers: String,
}

impl Dashboard {
    /// The overview of the last `days` and of one `site`; by default of a fitting period and all
    /// sites.
    pub(super) fn overview_page(&self, query: &str) -> PageResult {
        let query = QueryParameters::parse(query, &["days", "site"])?;
        let site = query.get("site").unwrap_or_default();
        let period = match query.get("days") {
            Some(_) => Some(query_period(&query, self.now())?),
            None => None,
        };
        let report = live_report(&self.operations, period, site, "")?;
        let status = self.operations.status();
        let known = || status.policies.sites.iter().map(|site| site.site.as_str());
        if !site.is_empty() && !known().any(|name| name == site) {
            return Err(PageError::NotFound(format!("there is no site {site}")));
        }
        let mut sites = Vec::new();
        if known().count() > 1 {
            sites.push(site_overview_link("", "all sites", site));
            sites.extend(known().map(|name| site_overview_link(name, name, site)));
        }
        let one = match (site, &status.policies.sites[..]) {
            ("", [only]) => Some(only),
            (site, all) => all.iter().find(|known| known.site == site),
        };
        let mode = one.map(|site| site.mode.clone());
        let shown = period.unwrap_or(fitting_period(&self.operations)?);
        let base = match site {
            "" => "/".to_owned(),
            site => site_overview_link(site, site, site).href,
        };
        let covers = match (report.from, report.to) {
            (Some(from), Some(to)) => {
                format!("{} to {}", from.human_readable(), to.human_readable())
            }
            _ => String::new(),
        };
        let page = OverviewPage {
            layout: PageLayout::new("Overview", "/", status.problems.len())
                .with_counts_note(report.instances.clone()),
            content: ReportContent::new(&report, true),
            choices: period_links(&shown, &base),
            sites,
            mode,
            problems: status.problems,
            covers,
        };
        Ok(page.render()?)
    }
}

/// The shortest period that has the whole history, up to 30 days.
fn fitting_period(operations: &Operations) -> Result<ReportPeriod, HistoryError> {
    let first_day = operations.upkeep.history().first_day()?;
    Ok(ReportPeriod::since_first_day(
        first_day,
        operations.moment().now,
    ))
}

/// The report of a period, a site and a crawler (empty: all), up to now. Without a period it is a fitting one.
///
/// # Errors
/// The history cannot be read.
pub fn live_report(
    operations: &Operations,
    period: Option<ReportPeriod>,
    site: &str,
    crawler: &str,
) -> Result<Report, HistoryError> {
    let period = period.map_or_else(|| fitting_period(operations), Ok)?;
    let (history, instances) = period_history(operations, &period)?;
    let mut report = Report::from_history(&history, period, site, crawler)?;
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
    apply_policies(&mut report, &operations.instance.sites.snapshot());
    Ok(report)
}

/// Sets which crawlers that break the rules are blocked now, and how to block the others. The
/// example of a row may be older than the policy.
pub fn apply_policies(report: &mut Report, snapshot: &Snapshot) {
    let rows = report.crawlers.iter_mut();
    for row in rows.filter(|row| row.part == ReportSection::BreaksRules) {
        row.is_blocked = is_enforced(row, snapshot).or(row.is_blocked);
        row.to_block = block_instruction(row, snapshot);
    }
}

/// A link to the overview of a site.
fn site_overview_link(site: &str, name: &str, current: &str) -> PageLink {
    let mut query = form_urlencoded::Serializer::new("/?".to_owned());
    let href = match site {
        "" => "/".to_owned(),
        site => query.append_pair("site", site).finish(),
    };
    PageLink {
        href,
        name: name.to_owned(),
        is_current: site == current,
    }
}

/// Whether the policy in force blocks requests against the rules by the crawler of a row. `None` if
/// its site has no policy.
fn is_enforced(row: &CrawlerRow, snapshot: &Snapshot) -> Option<bool> {
    let entry = snapshot.entry_by_name(&row.example.as_ref()?.site)?;
    let claim = if row.is_unknown_bots() {
        Claim::UnknownBot
    } else {
        claim_from_agent(&row.id, Registry::builtin(), Some(&entry.site))
    };
    let rules = entry.site.crawler_rules(claim);
    let is_verified = row.identity == Some(ClientIdentity::Verified);
    let may_be_blocked = is_verified || rules.unverified != UnverifiedTreatment::Observe;
    let is_subject = !rules.unlisted && !rules.exempt;
    Some(rules.mode == EnforcementMode::Enforce && is_subject && may_be_blocked)
}

/// The policy line that would block a crawler which breaks the rules. `None` if it is blocked
/// already, if it is a search engine's or exempt, if it passes only because it is not verified, or if
/// its site has no policy.
fn block_instruction(row: &CrawlerRow, snapshot: &Snapshot) -> Option<BlockInstruction> {
    if row.is_blocked != Some(false) || row.purpose == Some(Purpose::Search) {
        return None;
    }
    let entry = snapshot.entry_by_name(&row.example.as_ref()?.site)?;
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
        let claim = claim_from_agent(&row.id, registry, Some(site));
        let rules = site.crawler_rules(claim);
        if rules.exempt || rules.mode == EnforcementMode::Enforce {
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
    Some(BlockInstruction { place, under, line })
}

/// The line of the policy on which its `enforcement` begins.
fn enforcement_line(entry: &SiteEntry) -> Option<u32> {
    let mut lines = entry.site.policy.source.text.lines();
    let place = lines.position(|line| line.starts_with("enforcement:"))?;
    u32::try_from(place + 1).ok()
}
