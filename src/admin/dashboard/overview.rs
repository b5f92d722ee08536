//! The dashboard's first page: the [`Report`] of the running crawlgate about which crawlers break
//! the rules. The command `crawlgate report` shows the same report. The page also shows policy
//! lines that would block these crawlers.

use super::counts::period_history;
use super::layout::{PageLayout, PageLink};
use super::{Dashboard, PageError, PageResult, period_links, query_period};
use crate::admin::Operations;
use crate::admin::problem::Problem;
use crate::admin::query::QueryParameters;
use crate::crawlers::{Claim, Purpose, Registry};
use crate::policy::model::{EnforcementMode, UnverifiedTreatment};
use crate::policy::site::CrawlerRules;
use crate::policy::{SiteEntry, Snapshot};
use crate::report::{
    BlockInstruction, ClientIdentity, CrawlerRow, PeriodBound, Report, ReportFragment,
    ReportPeriod, ReportSection,
};
use crate::sites::SiteStatus;
use crate::state::history::RequestHistoryError;
use crate::verdict::crawler_name;
use ClientIdentity::*;
use askama::Template;
use std::cmp::Reverse;
use std::collections::BTreeMap;

#[derive(Template)]
#[template(path = "overview.html")]
struct OverviewPage<'a> {
    layout: PageLayout,
    content: ReportFragment<'a>,
    choices: Vec<PageLink>,
    sites: Vec<PageLink>,
    /// The site, where the page is about one.
    shown: Option<&'a SiteStatus>,
    problems: Vec<Problem>,
}

impl Dashboard {
    /// The overview of the last `days` and of one `site`; by default of a fitting period and all
    /// sites.
    pub(super) fn overview_page(&self, query: &str) -> PageResult {
        let query = QueryParameters::parse(query, &["days", "site"])?;
        let site = query.get("site").unwrap_or_default();
        let period = match query.get("days") {
            Some(_) => query_period(&query, self.now())?,
            None => report_period(&self.operations, None, None)?,
        };
        let report = live_report(&self.operations, period, site, "")?;
        let status = self.operations.status();
        let known = &status.policies.sites;
        let shown = match (site, &known[..]) {
            ("", [only]) => Some(only),
            _ => known.iter().find(|known| known.site == site),
        };
        if !site.is_empty() && shown.is_none() {
            return Err(PageError::NotFound(format!("there is no site {site}")));
        }
        let mut sites = Vec::new();
        if known.len() > 1 {
            sites.push(site_overview_link("", "all sites", site));
            sites.extend(
                known
                    .iter()
                    .map(|known| site_overview_link(&known.site, &known.site, site)),
            );
        }
        let base = site_overview_link(site, site, site).href;
        let page = OverviewPage {
            layout: PageLayout::new(
                "Overview",
                "/",
                status.problems.len(),
                report.instances.clone(),
            ),
            content: ReportFragment {
                report: &report,
                has_links: true,
                heading_level: 1,
            },
            choices: period_links(&period, &base),
            sites,
            shown,
            problems: status.problems,
        };
        Ok(page.render()?)
    }
}

/// The period of these bounds: see [`ReportPeriod::from_bounds`].
///
/// # Errors
/// The history cannot be read.
pub fn report_period(
    operations: &Operations,
    since: Option<PeriodBound>,
    until: Option<PeriodBound>,
) -> Result<ReportPeriod, RequestHistoryError> {
    let first_day = operations.upkeep.history().first_day()?;
    Ok(ReportPeriod::from_bounds(
        since,
        until,
        first_day,
        operations.moment().now,
    ))
}

/// The report of a period, a site and a crawler (empty: all).
///
/// # Errors
/// The history cannot be read.
pub fn live_report(
    operations: &Operations,
    period: ReportPeriod,
    site: &str,
    crawler: &str,
) -> Result<Report, RequestHistoryError> {
    let (history, instances) = period_history(operations, &period)?;
    let mut report = Report::from_history(&history, period, site, crawler)?;
    report.instances = instances;
    // The page cannot know where its reader is.
    report.config_option = "--config crawlgate.yaml ".to_owned();
    for site in operations.status().policies.sites {
        let mut rows = report.sites.iter_mut();
        if let Some(row) = rows.find(|row| row.site == site.site) {
            row.mode = Some(site.mode);
            row.other_modes = site.modes.iter().map(|other| other.words()).collect();
        }
    }
    apply_policies(&mut report, &operations.instance.sites.snapshot());
    report.has_reservation &= crawler.is_empty();
    Ok(report)
}

/// Sets which crawlers that break the rules are blocked now, on all sites whose rules they break or
/// on some, and how to block the others. The example of a row may be older than the policy.
pub fn apply_policies(report: &mut Report, snapshot: &Snapshot) {
    let mut missing: Vec<(usize, BlockingSetting)> = Vec::new();
    for (place, row) in report.crawlers.iter_mut().enumerate() {
        let sites: Vec<&SiteEntry> = row
            .sites
            .iter()
            .filter_map(|site| snapshot.entry_by_name(site))
            .collect();
        if row.part != ReportSection::BreaksRules || sites.is_empty() {
            continue;
        }
        let passing: Vec<&SiteEntry> = sites
            .iter()
            .copied()
            .filter(|entry| !is_enforced(row, entry))
            .collect();
        row.is_blocked = Some(passing.is_empty());
        row.is_blocked_somewhere = passing.len() < sites.len();
        let settings = passing
            .iter()
            .filter_map(|entry| missing_setting(row, entry));
        missing.extend(settings.map(|setting| (place, setting)));
    }
    let mut reserving = snapshot
        .sites()
        .iter()
        .filter(|entry| report.site.is_empty() || report.site == entry.site.name)
        .filter(|entry| entry.site.policy.reservation().is_some())
        .peekable();
    report.has_reservation = reserving.peek().is_some() && reserving.all(records_training);
    // The lines for a purpose come first.
    missing.sort_by_key(|(_, setting)| Reverse(setting.list));
    for (place, setting) in &missing {
        let instruction = setting.instruction(missing.iter().map(|(_, setting)| setting));
        if !report.to_block.contains(&instruction) {
            report.to_block.push(instruction.clone());
        }
        report.crawlers[*place].to_block.get_or_insert(instruction);
    }
}

/// Whether the policy of a site has requests of crawlers for AI training recorded.
fn records_training(entry: &SiteEntry) -> bool {
    let enforcement = &entry.site.policy.enforcement;
    let training = enforcement.purposes.get(&Purpose::Training);
    let mode = training.and_then(|fields| fields.mode);
    mode.or(enforcement.site.mode) != Some(EnforcementMode::Off)
}

/// A link to the overview of a site.
fn site_overview_link(site: &str, name: &str, current: &str) -> PageLink {
    let href = match site {
        "" => "/".to_owned(),
        site => form_urlencoded::Serializer::new("/?".to_owned())
            .append_pair("site", site)
            .finish(),
    };
    PageLink {
        href,
        name: name.to_owned(),
        is_current: site == current,
    }
}

/// Whether the policy of a site blocks requests against the rules by the crawler of a row.
fn is_enforced(row: &CrawlerRow, entry: &SiteEntry) -> bool {
    let rules = entry.site.crawler_rules(claim_of_row(row, entry));
    rules.mode == EnforcementMode::Enforce && !rules.unlisted && may_be_blocked(row, &rules)
}

/// Whether a mode can block the crawler of a row: it is neither exempt nor observed for its identity.
fn may_be_blocked(row: &CrawlerRow, rules: &CrawlerRules) -> bool {
    let is_verified = row.identity == Some(Verified);
    !rules.exempt && (is_verified || rules.unverified != UnverifiedTreatment::Observe)
}

fn claim_of_row(row: &CrawlerRow, entry: &SiteEntry) -> Claim {
    if row.is_unknown_bots() {
        Claim::UnknownBot
    } else {
        entry.site.claim_of(&row.id, Registry::builtin())
    }
}

/// A setting of `enforcement` that would block a crawler.
struct BlockingSetting {
    /// The policy file, with a line.
    place: String,
    /// The section that the setting belongs to; empty for the top level.
    under: String,
    /// `agents` or `purposes`.
    list: &'static str,
    /// The setting, without the list and without the section.
    setting: String,
}

impl BlockingSetting {
    /// How to write it, together with the others for the same place: a key may stand there once.
    fn instruction<'a>(&self, all: impl Iterator<Item = &'a BlockingSetting>) -> BlockInstruction {
        let mut lists: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for other in all.filter(|other| other.place == self.place && other.under == self.under) {
            if !self.under.is_empty() && other.list != self.list {
                continue;
            }
            let settings = lists.entry(other.list).or_default();
            // A crawler may have a verified and an unverified row.
            if !settings.contains(&other.setting.as_str()) {
                settings.push(&other.setting);
            }
        }
        let lists: Vec<String> = lists
            .iter()
            .rev()
            .map(|(list, settings)| format!("{list}: {{ {} }}", settings.join(", ")))
            .collect();
        let line = match self.under.as_str() {
            "" => format!("enforcement: {{ {} }}", lists.join(", ")),
            "enforcement" => lists.join(", "),
            _ => self.setting.clone(),
        };
        BlockInstruction {
            place: self.place.clone(),
            under: self.under.clone(),
            line,
        }
    }
}

/// What the policy of a site lacks to block a crawler which breaks the rules: the mode of its
/// purpose if that is AI training, otherwise its own. `None` if it is exempt, if sites may want it
/// (search, assistants, monitoring, previews, other tasks), or if the policy only observes crawlers
/// that are not verified.
fn missing_setting(row: &CrawlerRow, entry: &SiteEntry) -> Option<BlockingSetting> {
    use Purpose::{Assistant, Monitoring, Other, Preview, Search, Training};

    let site = &*entry.site;
    let claim = claim_of_row(row, entry);
    let rules = site.crawler_rules(claim);
    let passes_by_mode = rules.unlisted || rules.mode != EnforcementMode::Enforce;
    let is_wanted = matches!(
        row.purpose,
        Some(Search | Assistant | Monitoring | Preview | Other)
    );
    if is_wanted || !may_be_blocked(row, &rules) || !passes_by_mode {
        return None;
    }
    let enforcement = &site.policy.enforcement;
    let agent = crawler_name(Registry::builtin(), entry, claim);
    let mut agents = enforcement.agents.iter();
    let own_agent = agents.find(|(name, _)| name.eq_ignore_ascii_case(&agent));
    let purpose = match (claim, own_agent) {
        (Claim::UnknownBot, _) => Some(Other),
        // The mode of an agent outranks that of its purpose.
        (_, Some((_, fields))) if fields.mode.is_some() => None,
        _ => row.purpose.filter(|purpose| *purpose == Training),
    };
    let near_agent = own_agent.or(enforcement.agents.first());
    let agent_line = near_agent.map(|(name, _)| name.span.line);
    let section = enforcement_line(entry);
    let (list, name, line, is_own) = match purpose {
        Some(purpose) => {
            let purposes = &enforcement.purposes;
            let line = section.filter(|_| !purposes.is_empty());
            let is_own = purposes.contains_key(&purpose);
            ("purposes", purpose.name().to_owned(), line, is_own)
        }
        None => ("agents", agent, agent_line, own_agent.is_some()),
    };
    let under = match (line, section) {
        (Some(_), _) if is_own => format!("enforcement.{list}.{name}"),
        (Some(_), _) => format!("enforcement.{list}"),
        (None, Some(_)) => "enforcement".to_owned(),
        (None, None) => String::new(),
    };
    let file = &site.policy.source.name;
    Some(BlockingSetting {
        place: line.or(section).map_or_else(
            || file.to_string(),
            |line| {
                let defaults = site.policy.defaults.as_ref();
                defaults
                    .and_then(|defaults| defaults.place(line))
                    .unwrap_or_else(|| format!("{file}:{line}"))
            },
        ),
        under,
        list,
        setting: if is_own {
            "mode: enforce".to_owned()
        } else {
            format!("{name}: enforce")
        },
    })
}

/// The line of the policy on which its `enforcement` begins.
fn enforcement_line(entry: &SiteEntry) -> Option<u32> {
    let mut lines = entry.site.policy.source.text.lines();
    let place = lines.position(|line| line.starts_with("enforcement:"))?;
    u32::try_from(place + 1).ok()
}

#[cfg(test)]
mod tests {
    use super::{Report, apply_policies};
    use crate::policy::Snapshot;
    use crate::record::{CountedAction, RequestCounts};
    use crate::report::ClientIdentity::*;
    use crate::report::CrawlerRow;
    use crate::sites::{SiteLoadOptions, SiteManager};
    use crate::state::StateStore;
    use crate::time::Timestamp;
    use crate::verdict::Kind;

    /// The sites of these policies, by name.
    fn snapshot(policies: &[(&str, &str)]) -> Snapshot {
        let directory = tempfile::tempdir().expect("a directory");
        for (name, policy) in policies {
            let text =
                format!("hosts: [{name}.example]\nrobots: {{ origin: replace }}\n{policy}\n");
            std::fs::write(directory.path().join(format!("{name}.yaml")), text).expect("written");
        }
        let (store, remembered) = StateStore::in_memory_only();
        let options = SiteLoadOptions {
            policies: directory.path().to_owned(),
            ..SiteLoadOptions::default()
        };
        let sites = SiteManager::start(options, &store, &remembered, Timestamp(1_000));
        Snapshot::clone(&sites.expect("loaded").snapshot())
    }

    /// The report about these crawlers, which all break the rules, by the policies.
    fn report(crawlers: &[&str], site: &str, policies: &[(&str, &str)]) -> Report {
        let mut counts = RequestCounts::default();
        counts.add(Kind::Violation, CountedAction::WouldBlock, 2);
        let sites = policies.iter().map(|(name, _)| (*name).to_owned());
        let sites: Vec<String> = sites
            .filter(|name| site.is_empty() || name == site)
            .collect();
        let rows = crawlers.iter().flat_map(|id| {
            [Verified, Unverified].map(|identity| CrawlerRow {
                sites: sites.clone(),
                ..CrawlerRow::new(id, identity, counts)
            })
        });
        let report = Report {
            crawlers: rows.collect(),
            site: site.to_owned(),
            ..Report::default()
        };
        let mut report = report.finish(Timestamp(2_000));
        apply_policies(&mut report, &snapshot(policies));
        report
    }

    /// What the report tells to write: under which key, and the line.
    fn instructions(report: &Report) -> Vec<(String, String)> {
        let mut all: Vec<_> = report
            .to_block
            .iter()
            .map(|to_block| (to_block.under.clone(), to_block.line.clone()))
            .collect();
        all.sort();
        all
    }

    #[test]
    fn instructions_can_be_pasted_together() {
        let wanted = ["googlebot", "uptimerobot", "twitterbot", "chatgpt-user"];
        assert!(instructions(&report(&wanted, "", &[("shop", "")])).is_empty());
        let crawlers = [&["gptbot", "ccbot", "ahrefsbot", "other"][..], &wanted].concat();
        for (policy, expected) in [
            (
                "",
                vec![(
                    "",
                    "enforcement: { purposes: { training: enforce, other: enforce }, agents: { AhrefsBot: enforce } }",
                )],
            ),
            (
                "enforcement:\n  mode: observe",
                vec![
                    ("enforcement", "agents: { AhrefsBot: enforce }"),
                    (
                        "enforcement",
                        "purposes: { training: enforce, other: enforce }",
                    ),
                ],
            ),
            (
                "enforcement:\n  agents:\n    GPTBot: { unlicensed: pass }\n  purposes: { training: observe }",
                vec![
                    ("enforcement.agents", "AhrefsBot: enforce"),
                    ("enforcement.purposes", "other: enforce"),
                    ("enforcement.purposes.training", "mode: enforce"),
                ],
            ),
            (
                "enforcement: { mode: enforce, agents: { GPTBot: observe }, purposes: { other: enforce } }",
                vec![("enforcement.agents.GPTBot", "mode: enforce")],
            ),
            (
                "enforcement: { unverified: observe, agents: { CCBot: observe }, exempt: [AhrefsBot] }",
                vec![
                    ("enforcement", "purposes: { training: enforce }"),
                    ("enforcement.agents.CCBot", "mode: enforce"),
                ],
            ),
        ] {
            let found = instructions(&report(&crawlers, "", &[("shop", policy)]));
            let expected: Vec<_> = expected
                .into_iter()
                .map(|(under, line)| (under.to_owned(), line.to_owned()))
                .collect();
            assert_eq!(found, expected, "{policy}");
        }
    }

    #[test]
    fn reservation_is_known_only_where_training_is_recorded() {
        let reserving = "tdm: [{ reservation: yes }]";
        let off = format!("{reserving}\nenforcement: {{ mode: off }}");
        let policies = [("blog", &*off), ("shop", reserving), ("wiki", "")];
        for (site, expected) in [
            ("", false),
            ("blog", false),
            ("shop", true),
            ("wiki", false),
        ] {
            assert_eq!(
                report(&[], site, &policies).has_reservation,
                expected,
                "{site}"
            );
        }
    }

    #[test]
    fn crawler_is_blocked_only_where_the_policy_enforces() {
        let enforce = "enforcement: { mode: enforce, exempt: [bingbot] }";
        let both = [("blog", "indexing: []"), ("shop", enforce)];
        let words = |site: &str| {
            let report = report(&["gptbot", "bingbot"], site, &both);
            let rows = report.crawlers.iter();
            rows.filter(|row| row.identity == Some(Unverified))
                .map(|row| (row.id.clone(), row.outcome_words()))
                .collect::<Vec<_>>()
        };
        let expected = |gptbot, bingbot| {
            vec![
                ("bingbot".to_owned(), bingbot),
                ("gptbot".to_owned(), gptbot),
            ]
        };
        assert_eq!(words(""), expected("in part", "passes"));
        assert_eq!(words("shop"), expected("blocked", "passes"));
        assert_eq!(words("blog"), expected("passes", "passes"));
        let mut blocked = report(&["gptbot"], "shop", &both).crawlers.remove(0);
        blocked.counts.add(Kind::StaleCopy, CountedAction::Pass, 1);
        assert_eq!(blocked.outcome_words(), "in part");
        let all = report(&["gptbot"], "", &both);
        assert!(
            all.crawlers[0]
                .to_block
                .as_ref()
                .expect("a line")
                .place
                .ends_with("blog.yaml")
        );
    }
}
