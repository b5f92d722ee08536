//! [`TrafficReport`]: how much of a site's traffic comes from crawlers, and which crawlers cause
//! the most. It also says how many visitors come from AI assistants and search engines whose
//! operators run these crawlers. Requests of impostors (clients that pretend to be a crawler) count
//! in the totals, but for no crawler.

use super::{ClientIdentity, CrawlerRow, Report, ReportSource, crawler_name, registry_crawler};
use crate::crawlers::Purpose;
use crate::numbers::{percent, plural_thousands, thousands};
use crate::record::RequestCounts;
use crate::referrals::{ReferringServiceKind, ReferringServices};
use crate::state::history::ServiceVisits;
use crate::time::{Timestamp, rfc3339};
use askama::Template;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The services that a sentence names.
const MAX_SERVICES: usize = 2;

/// What crawlers read and take, and who comes back. Shown as the share of crawlers, for behind a
/// colon.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize, Template)]
#[template(path = "traffic.txt")]
pub struct TrafficReport {
    /// Requests.
    pub requests: CrawlerShare,
    /// Bytes of the bodies that were sent.
    pub bytes: CrawlerShare,
    /// The crawlers that take the most bytes.
    pub takers: Vec<CrawlerTraffic>,
    /// What the crawlers of each purpose take, most bytes first.
    pub purposes: Vec<PurposeTraffic>,
    /// Operators with services that send visitors. Those that read the most pages come first. Empty
    /// for a log without referrers.
    pub operators: Vec<OperatorTraffic>,
    /// Visits by the service that sent them, most first.
    pub services: Vec<ServiceVisits>,
    /// The beginning of the first day that `operators` and `services` have, because the history
    /// counts visits by day; `None` for a log.
    #[serde(serialize_with = "rfc3339")]
    pub visits_from: Option<Timestamp>,
}

/// The part of crawlers, without impostors and tools.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CrawlerShare {
    /// Of crawlers.
    pub crawlers: u64,
    /// Of crawlers, impostors, tools and visitors.
    pub all: u64,
}

/// What the crawlers of one purpose take.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PurposeTraffic {
    /// The purpose, for people.
    pub purpose: String,
    /// Requests.
    pub requests: u64,
    /// Bytes of the bodies that were sent.
    pub bytes: u64,
}

/// What one crawler takes.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct CrawlerTraffic {
    /// The id of its row.
    pub id: String,
    /// The name for people.
    pub name: String,
    /// The identity of its row.
    pub identity: Option<ClientIdentity>,
    /// Requests.
    pub requests: u64,
    /// Responses with the status 2xx or 304.
    pub pages: u64,
    /// Responses with the status 2xx, 3xx (without 304), 304, 4xx and 5xx, in this order.
    pub statuses: [u64; 5],
    /// Bytes of the bodies that were sent.
    pub bytes: u64,
}

#[derive(Template)]
#[template(path = "operator_traffic.txt")]
struct OperatorTrafficText<'a> {
    operator: &'a OperatorTraffic,
    sent: String,
}

/// What the crawlers of an operator read, and the visits that its services send.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OperatorTraffic {
    /// Its name in the registries of crawlers and services.
    pub operator: String,
    /// The names of its services that sent visits, most first.
    pub services: Vec<String>,
    /// Responses with the status 2xx or 304.
    pub pages: u64,
    /// Visits.
    pub visits: u64,
    /// Pages read for each visit, to one decimal; `None` without visits.
    pub pages_per_visit: Option<f64>,
}

impl TrafficReport {
    /// The shares and takers of a finished report. `visitors_bytes` were sent to visitors. Without
    /// bytes and takers if most responses are unknown. A log may have bytes without statuses.
    pub fn new(report: &Report, visitors_bytes: u64) -> TrafficReport {
        let mut traffic = TrafficReport::default();
        traffic.requests.all = report.visitors;
        traffic.bytes.all = visitors_bytes;
        let mut crawlers = Vec::new();
        let mut of_crawlers = RequestCounts::default();
        for row in &report.crawlers {
            traffic.requests.all += row.counts.requests();
            traffic.bytes.all += row.counts.bytes();
            if row.is_of_crawler() {
                of_crawlers.add_all(&row.counts);
                crawlers.push(row);
            }
        }
        traffic.requests.crawlers = of_crawlers.requests();
        let may_be_unknown = report.source == ReportSource::History || of_crawlers.bytes() == 0;
        if may_be_unknown && of_crawlers.has_unknown_responses() {
            traffic.bytes = CrawlerShare::default();
            return traffic;
        }
        traffic.bytes.crawlers = of_crawlers.bytes();
        traffic.purposes = shares_by_purpose(&crawlers);
        crawlers.sort_by_key(|row| Reverse((row.counts.bytes(), row.counts.requests())));
        traffic.takers = crawlers
            .into_iter()
            .take(report.max_listed())
            .map(CrawlerTraffic::from_row)
            .collect();
        traffic
    }

    /// Sets services and operators from `visits` and from the pages that each crawler read
    /// meanwhile, without those of impostors.
    pub fn set_visits<'a>(
        &mut self,
        visits: Vec<ServiceVisits>,
        pages: impl IntoIterator<Item = (&'a str, u64)>,
    ) {
        let services = ReferringServices::builtin();
        let mut operators: BTreeMap<&str, OperatorTraffic> = BTreeMap::new();
        for (crawler, pages) in pages.into_iter().filter(|_| !self.takers.is_empty()) {
            // The crawlers of SEO tools feed no service that sends visitors.
            if let Some(known) = registry_crawler(crawler)
                && known.purpose != Purpose::Seo
                && services
                    .all()
                    .iter()
                    .any(|one| one.operator == known.operator)
            {
                operators.entry(&known.operator).or_default().pages += pages;
            }
        }
        for sent in &visits {
            if let Some(service) = services.get(&sent.service) {
                let traffic = operators.entry(&service.operator).or_default();
                traffic.visits += sent.visits;
                traffic.services.push(service.name.clone());
            }
        }
        self.operators = operators
            .into_iter()
            .filter(|(_, traffic)| traffic.pages + traffic.visits > 0)
            .map(|(operator, traffic)| traffic.finish(operator))
            .collect();
        self.operators
            .sort_by_key(|traffic| Reverse((traffic.pages, traffic.visits)));
        self.services = visits;
    }

    /// What an operator's crawlers read, and how many visits each of its services sent.
    pub(super) fn operator_sentence(&self, operator: &OperatorTraffic) -> String {
        let mut sent = Vec::new();
        let mut others = 0;
        let mut other_visits = 0;
        for one in &self.services {
            let service = ReferringServices::builtin().get(&one.service);
            let Some(service) = service.filter(|service| service.operator == operator.operator)
            else {
                continue;
            };
            if sent.len() < MAX_SERVICES {
                let visits = plural_thousands(one.visits, "visit");
                sent.push(format!("{} sent {visits}", service.name));
            } else {
                others += 1;
                other_visits += one.visits;
            }
        }
        if others > 0 {
            let others = plural_thousands(others, "other service");
            let visits = plural_thousands(other_visits, "visit");
            sent.push(format!("{others} sent {visits}"));
        }
        let sent = sent.join(", ");
        OperatorTrafficText { operator, sent }.to_string()
    }
}

fn shares_by_purpose(crawlers: &[&CrawlerRow]) -> Vec<PurposeTraffic> {
    let mut shares: BTreeMap<&str, PurposeTraffic> = BTreeMap::new();
    for row in crawlers {
        let purpose = match row.purpose_words() {
            "" => "other",
            purpose => purpose,
        };
        let share = shares.entry(purpose).or_default();
        share.purpose = purpose.to_owned();
        share.requests += row.counts.requests();
        share.bytes += row.counts.bytes();
    }
    let mut shares: Vec<PurposeTraffic> = shares.into_values().collect();
    shares.sort_by_key(|share| Reverse((share.bytes, share.requests)));
    shares
}

impl CrawlerTraffic {
    fn from_row(row: &CrawlerRow) -> CrawlerTraffic {
        CrawlerTraffic {
            id: row.id.clone(),
            name: crawler_name(&row.id).to_owned(),
            identity: row.identity,
            requests: row.counts.requests(),
            pages: row.counts.pages_read(),
            statuses: row.counts.statuses(),
            bytes: row.counts.bytes(),
        }
    }
}

impl OperatorTraffic {
    fn finish(mut self, operator: &str) -> OperatorTraffic {
        operator.clone_into(&mut self.operator);
        if self.visits > 0 {
            let pages_per_visit = self.pages as f64 / self.visits as f64;
            self.pages_per_visit = Some((pages_per_visit * 10.0).round() / 10.0);
        }
        self
    }
}

/// The name of a service for people.
pub fn service_name(id: &str) -> &str {
    let service = ReferringServices::builtin().get(id);
    service.map_or(id, |service| service.name.as_str())
}

/// What a service is, in words; empty for one that the registry does not know.
pub fn service_kind_words(id: &str) -> &'static str {
    let service = ReferringServices::builtin().get(id);
    service.map_or("", |service| match service.kind {
        ReferringServiceKind::Assistant => "AI assistant",
        ReferringServiceKind::Search => "search engine",
    })
}
