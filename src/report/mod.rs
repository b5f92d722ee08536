//! [`Report`]: which crawlers break the rules, which obey, and which clients pretend to be
//! crawlers. Some disallowed requests are no violations, for example because the crawler may still
//! use an older robots.txt. The report lists these requests separately. A report is made from the
//! stored history of a running crawlgate ([`Report::from_history`]) or from access logs (`audit`),
//! and rendered as text, HTML, JSON, Markdown or CSV. The commands `report` and `audit` and the
//! overview of the dashboard all show a [`Report`].

mod about_log;
pub mod charts;
mod csv;
mod headline;
mod history;
mod html;
pub mod links;
mod log;
mod markdown;
mod not_counted;
mod period;
mod row;
mod sitemap;
#[cfg(test)]
mod tests;
mod text;
mod traffic;
mod urls;

pub use csv::{render_csv, text_cell};
pub use html::{NumbersRow, ReportFragment, render_html};
pub use log::{
    DamagedLog, LineCounts, LogSummary, NetworkListUsage, ResponseStatusRow, RuleCount, TopEntry,
    UnreadableLine, count_with_error,
};
pub use markdown::render_markdown;
pub use not_counted::NotCountedRequests;
pub use period::{PeriodBound, ReportPeriod};
pub use row::{
    BlockInstruction, ClientIdentity, CrawlerRow, ReportSection, ViolationExample, crawler_name,
    is_unprovable_label, registry_crawler,
};
pub use sitemap::{SitemapCoverage, SitemapSummary};
pub use text::{render_table, render_text};
pub use traffic::{OperatorTraffic, TrafficReport};

use crate::crawlers::Purpose;
use crate::numbers::plural_thousands;
use crate::printable::{join_first, printable};
use crate::record::RequestCounts;
use crate::time::{Timestamp, rfc3339};
use charts::PeriodBar;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The crawlers whose traffic and URLs are shown, and the URLs of each, if no more are asked for.
const MAX_LISTED: usize = 5;
/// The most of them that text and pages show. JSON and CSV have all.
const MAX_TOP: usize = 500;

/// The crawlers that one line names.
const MAX_NAMED: usize = 8;
/// The files that a heading names, of each kind.
const MAX_FILES: usize = 4;
/// What the reader of an audit must know if no robots.txt has a rule.
pub const NO_RULES: &str = "robots.txt has no rules: everything is allowed.";
const UNVERIFIED_NAMES: &str =
    "Names could not be verified: no lists of crawler networks were available.";

/// What crawlers did in a period.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The title of the HTML page and the Markdown; may be empty.
    #[serde(skip)]
    pub title: String,
    /// The first sentence, about crawlers that break the rules.
    pub headline: String,
    /// The sentence about blocked requests; may be empty.
    pub enforcement: String,
    /// The beginning of the period; `None` for a log without requests.
    #[serde(serialize_with = "rfc3339")]
    pub from: Option<Timestamp>,
    /// The end of the period.
    #[serde(serialize_with = "rfc3339")]
    pub to: Option<Timestamp>,
    /// The source of the counts.
    pub source: ReportSource,
    /// The site; empty for all sites.
    pub site: String,
    /// The sentence about included instances, where several share a store; else empty.
    pub instances: String,
    /// Sums over all crawlers.
    pub totals: ReportTotals,
    /// Requests that do not count, by reason.
    pub not_counted: Vec<NotCountedRequests>,
    /// Crawlers by name and identity, in the order of the sections. In a section, rows with the most
    /// requests against the rules come first, then rows with the most requests.
    pub crawlers: Vec<CrawlerRow>,
    /// What to write into the policies so that those which break the rules are blocked.
    pub to_block: Vec<BlockInstruction>,
    /// Whether policies reserve a use of the content, and the report would count each crawler for AI
    /// training that took a reserved page.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_reservation: bool,
    /// Names that unknown bots give themselves, with their requests.
    pub unknown_bots: Vec<TopEntry>,
    /// How many crawlers are shown with their traffic and URLs, and how many URLs of each, if not as
    /// many as by default.
    #[serde(skip)]
    pub top: Option<usize>,
    /// The report that this one is compared with.
    #[serde(skip)]
    pub earlier: Option<EarlierReport>,
    /// The option `--config FILE ` of the commands that the report names; may be empty.
    #[serde(skip)]
    pub config_option: String,
    /// Requests by visitors.
    pub visitors: u64,
    /// Requests for hosts without a policy, and malformed requests.
    pub unclaimed: u64,
    /// What crawlers read and take, and who comes back.
    pub traffic: Option<TrafficReport>,
    /// Requests by hour, day or week.
    pub periods: Vec<PeriodBar>,
    /// What crawlers did on each site; empty in the report of one site or of a log.
    pub sites: Vec<SiteRow>,
    /// Rules by the requests that they disallowed; only for logs.
    pub rules: Vec<RuleCount>,
    /// Disallowed URLs by their requests, without the query; only for logs.
    pub urls: Vec<TopEntry>,
    /// The sitemaps with which requests were compared; only for logs.
    pub sitemap: Option<SitemapSummary>,
    /// What was read of the logs; only for logs.
    pub log: Option<LogSummary>,
}

/// What an earlier report, as JSON, says about the crawlers.
#[derive(Debug, PartialEq, Deserialize)]
pub struct EarlierReport<Row = CrawlerRow> {
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    site: String,
    /// Its rows.
    pub crawlers: Vec<Row>,
    log: Option<EarlierLog>,
}

/// The files with the rules of an earlier report, and whether it had lists of networks.
#[derive(Debug, PartialEq, Deserialize)]
struct EarlierLog {
    rules: Vec<String>,
    lists: Option<serde::de::IgnoredAny>,
}

/// The source of a report's counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReportSource {
    /// The counts of a running crawlgate.
    #[default]
    History,
    /// Access logs, judged by robots.txt files with publication times.
    Logs,
    /// Access logs, judged by policies that need not have been in force.
    LogsByPolicies,
}

/// Sums over all crawlers. Impostors are only in `pretended`. Visitors are in none.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
#[serde(default)]
pub struct ReportTotals {
    pub requests: u64,
    pub against_rules: u64,
    pub not_counted: u64,
    pub blocked: u64,
    /// The blocked requests that broke the rules.
    pub blocked_against_rules: u64,
    /// Requests that enforcement would block; without those by unknown bots.
    pub would_block: u64,
    /// Those of them that broke the rules.
    pub would_block_against_rules: u64,
    /// Requests by unknown bots that `purposes: { other: enforce }` would block.
    pub unknown_bots_would_block: u64,
    /// Those of them that broke the rules.
    pub unknown_bots_would_block_against_rules: u64,
    /// Requests that were answered with a demand for a licence.
    pub license_demanded: u64,
    /// Requests by clients that only used the name of a crawler.
    pub pretended: u64,
    /// Requests by tools, which are in no other sum.
    pub tools: u64,
}

/// What crawlers did on a site.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct SiteRow {
    /// Its name.
    pub site: String,
    /// The mode of its policy, where it is known.
    pub mode: Option<String>,
    /// Other modes, such as `enforce for training`. For pages.
    #[serde(skip)]
    pub other_modes: Vec<String>,
    /// What crawlers did, without impostors.
    pub counts: RequestCounts,
    /// Requests by impostors.
    pub pretended: u64,
}

impl Report {
    /// The crawlers with most requests that were compared with sitemaps.
    fn rows_with_sitemap(&self) -> Vec<(&CrawlerRow, &SitemapCoverage)> {
        let rows = self.crawlers.iter();
        let rows = rows.filter_map(|row| Some((row, row.sitemap.as_ref()?)));
        let mut rows: Vec<_> = rows.collect();
        rows.sort_by_key(|(_, coverage)| Reverse(coverage.requests));
        rows.truncate(self.max_listed());
        rows
    }

    /// The crawlers of this report and the earlier one, first those whose violations changed most, then
    /// those whose requests did: requests, those against the rules, and those
    /// with 4xx and with 5xx, each before and now.
    fn changes<'a>(&'a self, earlier: &'a EarlierReport) -> Vec<(&'a CrawlerRow, [[u64; 2]; 4])> {
        let mut changes = BTreeMap::new();
        for (place, rows) in [(1, &self.crawlers), (0, &earlier.crawlers)] {
            for row in rows {
                let change = changes.entry((&row.id, row.identity));
                let (_, numbers) = change.or_insert((row, [[0; 2]; 4]));
                numbers[0][place] = row.counts.requests();
                numbers[1][place] = row.counts.rule_breaking_requests();
                [.., numbers[2][place], numbers[3][place]] = row.counts.statuses();
            }
        }
        let mut changes: Vec<_> = changes.into_values().collect();
        changes.sort_by_key(|(_, [requests, against_rules, ..])| {
            [against_rules, requests].map(|[before, now]| Reverse(before.abs_diff(*now)))
        });
        changes
    }

    /// The period and the site; for logs also the files with the rules, and the logs.
    fn scope(&self) -> String {
        let mut parts = Vec::new();
        if let (Some(from), Some(to)) = (self.from, self.to) {
            parts.push(format!(
                "{} to {}",
                from.human_readable(),
                to.human_readable()
            ));
        }
        parts.extend(Some(self.site.clone()).filter(|site| !site.is_empty()));
        if let Some(log) = &self.log {
            for (what, names) in [("rules", &log.rules), ("logs", &log.names)] {
                parts.push(format!("{what}: {}", file_names(names)));
            }
        }
        parts.join(", ")
    }

    /// What the reader must know before the numbers: that there are no rules, that names are not
    /// verified, and which crawlers that break the rules fetch for a person.
    fn caveats(&self) -> Vec<String> {
        let unverified = self.has_no_networks().then(|| UNVERIFIED_NAMES.to_owned());
        let has_no_rules = self.log.as_ref().is_some_and(|log| log.has_no_rules);
        let cautions = self.log.iter().flat_map(|log| log.cautions.clone());
        let no_rules = has_no_rules.then(|| NO_RULES.to_owned());
        let fetchers = self.rows_in(ReportSection::BreaksRules);
        let fetchers = fetchers.filter(|row| row.fetches_for_person());
        let fetchers = fetchers.map(|row| {
            format!(
                "{} counts here. But its operator says that robots.txt may not apply to it, \
                 because it fetches for a person.",
                row.name
            )
        });
        let hosts = self.log.as_ref().map_or(&[][..], |log| &log.hosts);
        let shared_rules = (self.source == ReportSource::Logs && hosts.len() > 1).then(|| {
            format!(
                "One robots.txt judged {} hosts, and it holds only for its own: {}. To judge one host, name it with --site.",
                hosts.len(),
                join_first(hosts, MAX_FILES)
            )
        });
        no_rules
            .into_iter()
            .chain(cautions)
            .chain(unverified)
            .chain(shared_rules)
            .chain(fetchers)
            .collect()
    }

    /// Whether nothing could verify the names in a log.
    fn has_no_networks(&self) -> bool {
        let log = self.log.as_ref();
        log.is_some_and(|log| log.lists.is_none() && !log.policy_networks)
    }

    /// The rows of a section.
    pub fn rows_in(&self, part: ReportSection) -> impl Iterator<Item = &CrawlerRow> {
        self.crawlers.iter().filter(move |row| row.part == part)
    }

    /// Whether the report lists unknown bots separately, because no other section names them.
    fn has_separate_unknown_bots(&self) -> bool {
        let mut rows = self.crawlers.iter();
        let is_named = rows.any(|row| {
            row.identity_words() == "unknown bot"
                && matches!(
                    row.part,
                    ReportSection::BreaksRules | ReportSection::DoesNotCount
                )
        });
        self.unknown_bots.len() > usize::from(is_named)
    }

    /// The pages that each row's crawler read, without impostors and tools.
    pub fn pages_by_crawler(&self) -> impl Iterator<Item = (&str, u64)> {
        let rows = self.crawlers.iter().filter(|row| row.is_of_crawler());
        rows.map(|row| (row.id.as_str(), row.counts.pages_read()))
    }

    fn max_listed(&self) -> usize {
        self.top.unwrap_or(MAX_LISTED).min(MAX_TOP)
    }

    /// The rows of the crawlers that take most, where their URLs are known. If that is not known, or
    /// one crawler was asked for, clients that pretend come last.
    fn rows_with_urls(&self) -> Vec<&CrawlerRow> {
        let rows = self.crawlers.iter();
        let traffic = self.traffic.as_ref();
        let rows: Vec<&CrawlerRow> = match traffic.filter(|traffic| !traffic.takers.is_empty()) {
            None => {
                let mut rows: Vec<&CrawlerRow> = rows.collect();
                // Stable: of one identity, they stay in the order of the sections.
                rows.sort_by_key(|row| (row.identity.is_none(), row.identity));
                rows.truncate(self.max_listed());
                rows
            }
            Some(traffic) => traffic
                .takers
                .iter()
                .filter_map(|taker| {
                    let mut rows = rows.clone();
                    rows.find(|row| row.id == taker.id && row.identity == taker.identity)
                })
                .collect(),
        };
        let with_urls = rows.into_iter();
        with_urls
            .filter(|row| !self.url_lists(row).is_empty())
            .collect()
    }

    /// The rows with requests that seem to come from somebody else.
    fn suspected_rows(&self) -> Vec<&CrawlerRow> {
        let rows = self.crawlers.iter();
        rows.filter(|row| row.suspected > 0).collect()
    }

    /// The rows of crawlers that obey, without clients that only seem to be these crawlers.
    fn obeying_rows(&self) -> impl Iterator<Item = &CrawlerRow> {
        self.rows_in(ReportSection::Obeys)
            .filter(|row| row.suspected < row.counts.requests())
    }

    /// The rows of crawlers that the rules do not bind, or that a policy exempts.
    fn unbound_rows(&self) -> impl Iterator<Item = &CrawlerRow> {
        self.rows_in(ReportSection::NotJudged)
            .filter(|row| row.is_unbound())
    }

    /// Requests of crawlers that enforcement would ask for a licence.
    fn would_demand_license(&self) -> u64 {
        let rows = self.crawlers.iter();
        // Enforcement for the site leaves unknown bots alone.
        let rows = rows.filter(|row| row.is_of_crawler() && !row.is_unknown_bots());
        let without = rows.map(|row| row.counts.without_license());
        without
            .fold(0, u64::saturating_add)
            .saturating_sub(self.totals.license_demanded)
    }

    /// The crawlers that lack a licence, with their requests and what happened to these; empty if
    /// none does.
    fn license_sentence(&self) -> String {
        let rows = self.crawlers.iter().filter(|row| row.is_of_crawler());
        let parts = rows.filter_map(CrawlerRow::license_words);
        join_first(parts, MAX_NAMED)
    }

    /// The crawlers that took pages with a reservation, and how many; empty if none did.
    fn reservation_sentence(&self) -> String {
        let rows = self.crawlers.iter();
        let rows = rows.filter(|row| row.is_of_crawler() && row.counts.reserved_pages() > 0);
        let parts = rows.map(|row| {
            let pages = plural_thousands(row.counts.reserved_pages(), "page");
            text::name_with_words(&format!("{}: {pages}", row.name), row.identity_words())
        });
        join_first(parts, MAX_NAMED)
    }

    /// Requests against the rules that the lines of `to_block` would have blocked.
    fn would_block_by_lines(&self) -> u64 {
        let rows = self.crawlers.iter().filter(|row| row.to_block.is_some());
        rows.map(|row| row.counts.would_refuse_against_rules())
            .sum()
    }

    /// Whether `to_block` leaves out a search crawler or an assistant that breaks the rules.
    fn leaves_out_search(&self) -> bool {
        let mut rows = self.rows_in(ReportSection::BreaksRules);
        rows.any(|row| matches!(row.purpose, Some(Purpose::Search | Purpose::Assistant)))
    }

    /// Bytes that were sent to crawlers for disallowed requests; only for logs.
    fn disallowed_bytes(&self) -> u64 {
        let rows = self.crawlers.iter().filter(|row| row.is_of_crawler());
        rows.map(|row| row.disallowed_bytes).sum()
    }

    /// Whether some requests of a crawler that is blocked pass.
    fn has_blocked_in_part(&self) -> bool {
        let mut rows = self.rows_in(ReportSection::BreaksRules);
        rows.any(|row| row.outcome_words() == "in part")
    }

    /// The commands that name the rules which verified or unverified search engines break.
    fn explain_commands(&self) -> Vec<String> {
        let rows = self.rows_in(ReportSection::BreaksRules);
        rows.filter_map(|row| row.explain_command(&self.config_option))
            .collect()
    }

    /// Sorts and sums the rows, and writes the sentences. `now` decides which older copies may still
    /// be in use.
    pub fn finish(mut self, now: Timestamp) -> Report {
        for row in &mut self.crawlers {
            row.assign_section(now);
            // Of several, it is not known here which broke the rules.
            if row.is_unknown_bots()
                && let [bot] = &self.unknown_bots[..]
                && bot.count >= row.counts.requests()
            {
                row.name = printable(bot.name.as_bytes());
            }
        }
        self.crawlers.sort_by_cached_key(CrawlerRow::sort_key);
        let mut totals = ReportTotals::default();
        for row in &self.crawlers {
            row.add_to(&mut totals);
        }
        self.not_counted = not_counted::group_by_reason(&self.crawlers, self.source, now);
        totals.not_counted = self.not_counted.iter().map(|part| part.requests).sum();
        self.totals = totals;
        self.headline = headline::headline_sentence(&self);
        self.enforcement = headline::enforcement_sentence(&self);
        self
    }
}

/// The names of files: of many in one directory, its name and their number.
fn file_names(names: &[String]) -> String {
    let directories: BTreeSet<Option<&str>> = names
        .iter()
        .map(|name| name.rsplit_once('/').map(|(directory, _)| directory))
        .collect();
    if names.len() > MAX_FILES
        && directories.len() == 1
        && let Some(Some(directory)) = directories.first()
    {
        return format!("{} files in {directory}", names.len());
    }
    join_first(names, MAX_FILES)
}

/// Joins two words by a comma; either may be empty.
fn join_words(words: [&str; 2]) -> String {
    match words {
        ["", word] | [word, ""] => word.to_owned(),
        words => words.join(", "),
    }
}
