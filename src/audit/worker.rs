//! [`AuditWorker`] does the work of one thread of an audit: it parses log lines, judges the
//! requests, and counts them. A client that claims to be a crawler is verified if its address is in
//! the IP networks that the crawler's operator publishes ([`PublishedNetworks`]), or in networks
//! that the policy names. A client from elsewhere may be called a suspected impostor. The audit
//! cannot prove it, because the audit does not use reverse DNS, and the published networks may have
//! changed since the log was written.

use super::input::LineChunk;
use super::rules::{AuditRules, MatchedSite};
use super::sitemap_urls::{SitemapUrls, host_name};
use super::tally::{AuditTally, JudgedRequest, KeyBudget, TimeRange, joined_names};
use crate::crawlers::{Claim, Crawler, CrawlerIndex, Purpose, Registry, self_given_name};
use crate::identity::{
    ListMembership, ParsedList, PublishedLists, RegistryProofMeans, is_directory,
};
use crate::logs::{LineFormat, LineReader, LogLine, LogRecord};
use crate::policy::site::split_host_port;
use crate::policy::{PublicationHistory, Site};
use crate::record::is_visit;
use crate::referrals::ReferringServices;
use crate::report::{ClientIdentity, NetworkListUsage};
use crate::time::Timestamp;
use crate::verdict::{
    DecisionScratch, Identity, IdentityDoubt, Kind, RecentBehaviour, RequestFacts, RequestToJudge,
    SiteClaim, claim_label, claim_with_method, decide_for, is_challenge, is_public_address,
};
use Claim::*;
use ClientIdentity::{SuspectedImpostor, Unverified, Verified};
use ahash::AHashMap;
use ipnet::IpNet;
use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// How an audit reads logs and identifies clients.
#[derive(Default)]
pub struct AuditOptions {
    /// The format of the lines.
    pub format: LineFormat,
    /// Judge only requests to this host, or to the site of this name. Lines without a host are taken
    /// to be for it.
    pub site: Option<String>,
    /// Count only requests in this period; `None` counts all.
    pub period: Option<Range<Timestamp>>,
    /// Count only requests under these labels; empty for all.
    pub crawlers: Vec<String>,
    /// Proxies whose addresses in a list are not the client's.
    pub trusted_proxies: Vec<IpNet>,
    /// The published networks, where they are known.
    pub networks: Option<PublishedNetworks>,
    /// The URLs with which requests of search crawlers, or of `crawler`, are compared.
    pub sitemap: Option<SitemapUrls>,
    /// How many crawlers, and URLs of each, the report lists, if not as many as by default.
    pub top: Option<usize>,
    /// How many entries each list has at least, if there are so many.
    pub list_length: usize,
    /// How many directories of a path are its section.
    pub section_depth: usize,
}

/// The user agents in the claim caches of all sites. When there are more, all are dropped.
const MAX_CACHED_CLAIMS: usize = 20_000;

/// Longer user agents are not cached.
const MAX_CACHED_USER_AGENT: usize = 1_024;

/// Parts of the ids of search crawlers that request no pages.
const NO_PAGES: [&str; 4] = ["image", "video", "favicon", "media"];

/// Longer URLs are cut.
const MAX_URL_BYTES: usize = 200;

/// Whole lines of one input.
pub struct LogChunk {
    /// Index of the input.
    pub input: usize,
    /// Number of the first line.
    pub first_line: u64,
    /// The lines.
    pub lines: LineChunk,
}

/// Judges and counts the requests of chunks.
pub struct AuditWorker<'a> {
    rules: &'a AuditRules,
    registry: &'static Registry,
    options: &'a AuditOptions,
    budget: &'a KeyBudget,
    /// The site that the options name.
    wanted_site: Option<usize>,
    /// By site and user agent: a log has few different user agents.
    claim_cache: Vec<AHashMap<Box<[u8]>, Claim>>,
    cached_claims: usize,
    scratch: DecisionScratch,
    last_host: Vec<u8>,
    /// The counts of all chunks so far.
    pub tally: AuditTally,
}

impl<'a> AuditWorker<'a> {
    /// A worker that has counted nothing yet.
    pub fn new(
        rules: &'a AuditRules,
        registry: &'static Registry,
        options: &'a AuditOptions,
        budget: &'a KeyBudget,
    ) -> Self {
        AuditWorker {
            rules,
            registry,
            options,
            budget,
            wanted_site: options
                .site
                .as_deref()
                .and_then(|name| rules.site_index(name)),
            claim_cache: rules.site_entries().map(|_| AHashMap::new()).collect(),
            cached_claims: 0,
            scratch: DecisionScratch::default(),
            last_host: Vec::new(),
            tally: AuditTally::default(),
        }
    }

    /// Counts the lines of a chunk and judges their requests. Empty lines do not count.
    pub fn count_chunk(&mut self, chunk: &LogChunk) {
        let bytes = &chunk.lines.bytes;
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let mut reader = LineReader::new(&self.options.format, chunk.lines.header.clone());
        let mut start = 0;
        let ends = memchr::memchr_iter(b'\n', bytes).chain([bytes.len()]);
        for (line, end) in (chunk.first_line..).zip(ends) {
            let text = &bytes[start..end];
            start = end + 1;
            let text = text.strip_suffix(b"\r").unwrap_or(text);
            if text.is_empty() {
                continue;
            }
            self.tally.lines.lines += 1;
            match reader.parse(text) {
                Ok(LogLine::Request(ref record)) => {
                    let user_agent = record.user_agent.as_deref().unwrap_or_default();
                    *self.tally.has_user_agents.entry(chunk.input).or_default() |=
                        !user_agent.is_empty();
                    self.tally.lines.unread_columns += u64::from(record.has_unread_columns);
                    self.count_request(record);
                }
                Ok(LogLine::NoRequest) => self.tally.lines.no_request += 1,
                Ok(LogLine::ServerMessage) => self.tally.lines.server_messages += 1,
                Err(reason) => self.tally.add_unreadable(chunk.input, line, reason, text),
            }
        }
    }

    /// Finds the site that judges a request, unless the options ask for another one. A request
    /// without a host is taken to be for the site or host of the options.
    fn find_wanted_site(&self, record: &LogRecord<'_>) -> Option<MatchedSite<'a>> {
        let host = record.host.as_deref();
        if let Some(index) = self.wanted_site {
            let found = match host {
                None => self.rules.get_site(index),
                Some(_) => self.rules.find_site(host, record.time),
            };
            return found.filter(|found| found.index == index);
        }
        let wanted = self.options.site.as_deref().map(str::as_bytes);
        if let Some((host, wanted)) = host.zip(wanted)
            && !split_host_port(host).0.eq_ignore_ascii_case(wanted)
        {
            return None;
        }
        self.rules.find_site(host.or(wanted), record.time)
    }

    /// Counts a request under what it is: outside the period, for another host, without a host or user
    /// agent, by a visitor, or by a crawler. An unknown bot is also counted by the name that it gives
    /// itself. Requests for challenge files of certificate authorities count as visitors'.
    fn count_request(&mut self, record: &LogRecord<'_>) {
        let wanted = self.options.site.as_deref().map(str::as_bytes);
        let host = record.host.as_deref().or(wanted);
        let found = self.find_wanted_site(record);
        let period = self.options.period.as_ref();
        if period.is_some_and(|period| !period.contains(&record.time)) {
            self.tally.lines.outside_period += 1;
            if found.is_some() {
                self.tally
                    .outside_span
                    .add(TimeRange::from_instant(record.time));
            }
            return;
        }
        if let Some(host) = record.host.as_deref() {
            self.add_host(host, found.is_some());
        }
        let Some(found) = found else {
            if host.is_some() {
                self.tally.lines.other_hosts += 1;
            } else {
                self.tally.lines.no_host += 1;
            }
            return;
        };
        self.tally.span.add(TimeRange::from_instant(record.time));
        self.tally.has_referers |= record.referer.is_some();
        let Some(user_agent) = record.user_agent.as_deref() else {
            self.tally.lines.no_user_agent += 1;
            return;
        };
        // A quick test: few paths begin with a dot.
        let is_challenge =
            record.target.starts_with(b"/.") && is_challenge(&record.method, &record.target);
        let claim = claim_with_method(self.identify_claim(&found, user_agent), &record.method);
        let wanted = &self.options.crawlers;
        if !wanted.is_empty() {
            let label =
                claim_label(claim, self.registry, Some(&found.entry.site)).unwrap_or_default();
            if is_challenge || !wanted.iter().any(|one| one.eq_ignore_ascii_case(label)) {
                return;
            }
        }
        if is_challenge || claim == Visitor {
            self.tally.visitors += 1;
            self.tally.lines.visitors_bytes += record.bytes;
            if !is_challenge {
                self.count_visit(record, host.unwrap_or_default());
            }
            return;
        }
        let breaks_rules = self.count_crawler_request(record, &found, user_agent, claim);
        if claim == UnknownBot {
            let name = self_given_name(user_agent).unwrap_or("(no name)");
            let tally = &mut self.tally;
            self.budget.add(&mut tally.unknown_bots, name.as_bytes());
            if breaks_rules {
                self.budget
                    .add(&mut tally.unknown_violators, name.as_bytes());
            }
        }
    }

    /// Notes a host of the log, of a name at most the 255 bytes that DNS allows. Most lines have the
    /// host of the line before.
    fn add_host(&mut self, host: &[u8], is_judged: bool) {
        if *self.last_host != *host {
            self.last_host.clear();
            self.last_host.extend_from_slice(host);
            self.tally
                .add_host(host_name(host.get(..255).unwrap_or(host)), is_judged);
        }
    }

    /// Counts a request of a visitor by the service that it came from, if it is a visit. A method or
    /// status that the log does not have is taken to be that of a visit.
    fn count_visit(&mut self, record: &LogRecord<'_>, host: &[u8]) {
        let service =
            ReferringServices::builtin().referring(host, record.referer.as_deref(), &record.target);
        let method: &[u8] = if record.method.is_empty() {
            b"GET"
        } else {
            &record.method
        };
        let status = if record.status == 0 {
            200
        } else {
            record.status
        };
        if let Some(service) = service
            && is_visit(method, status, &record.target)
        {
            *self.tally.visits.entry(&service.id).or_default() += 1;
        }
    }

    /// The crawler that a user agent claims to be, by the registry and the tokens of the site.
    fn identify_claim(&mut self, found: &MatchedSite<'_>, user_agent: &[u8]) -> Claim {
        if let Some(claim) = self.claim_cache[found.index].get(user_agent) {
            return *claim;
        }
        let claim = self
            .registry
            .identify_on_site(user_agent, &found.entry.site.tokens);
        if user_agent.len() <= MAX_CACHED_USER_AGENT {
            if self.cached_claims == MAX_CACHED_CLAIMS {
                self.claim_cache
                    .iter_mut()
                    .for_each(|claims| claims.clear());
                self.cached_claims = 0;
            }
            self.claim_cache[found.index].insert(user_agent.into(), claim);
            self.cached_claims += 1;
        }
        claim
    }

    /// A request of a crawler or tool as the engine judges it. A log proves nothing, so the rules are
    /// applied as if the claim were true.
    fn request_to_judge<'r>(
        &self,
        record: &'r LogRecord<'_>,
        found: &MatchedSite<'r>,
        user_agent: &'r [u8],
        claim: Claim,
    ) -> RequestToJudge<'r>
    where
        'a: 'r,
    {
        let cache_time = documented_cache_time(claim, self.registry);
        RequestToJudge {
            registry: self.registry,
            facts: RequestFacts {
                host: record.host.as_deref().unwrap_or_default(),
                target: &record.target,
                method: &record.method,
                user_agent,
                client: None,
                identity: Identity::Verified,
                now: record.time,
            },
            claimant: SiteClaim {
                site: found.index,
                entry: found.entry,
                history: PublicationHistory::empty(),
                claim,
            },
            cached_versions: self
                .rules
                .cached_versions(found.index, record.time, cache_time),
        }
    }

    /// Judges a request of a crawler or tool. Counts it by label and identity, by day, a crawler's
    /// by the parts of its URL, and a disallowed one by URL. Returns whether it broke the rules.
    fn count_crawler_request(
        &mut self,
        record: &LogRecord<'_>,
        found: &MatchedSite<'_>,
        user_agent: &[u8],
        claim: Claim,
    ) -> bool {
        let site = &*found.entry.site;
        let case = self.request_to_judge(record, found, user_agent, claim);
        let decision = decide_for(&case, RecentBehaviour::default(), &mut self.scratch);
        let label = claim_label(claim, self.registry, Some(site)).unwrap_or_default();
        let identity = client_identity(claim, record, self.registry, site, self.options);
        let urls = self.urls_to_compare(claim, identity);
        let address = self.count_address(record);
        let rows = &mut self.tally.rows;
        let rows = match rows.get_mut(label) {
            Some(rows) => rows,
            None => rows.entry(label.into()).or_default(),
        };
        let older_until = match decision.kind {
            Kind::Unproven => {
                let cache_time = documented_cache_time(claim, self.registry);
                self.rules.history_unknown_until(cache_time)
            }
            _ => case.cached_versions.older_until,
        };
        let judged = JudgedRequest {
            site: found.index,
            decision: &decision,
            older_until: older_until.filter(|_| decision.is_in_doubt()),
            time: record.time,
            status: record.status,
            bytes: record.bytes,
        };
        let row = rows.get_mut(identity);
        row.add(&judged);
        if decision.kind != Kind::NotACrawler {
            let depth = self.options.section_depth;
            let is_page = !decision.robots_txt;
            let status = if is_page { record.status } else { 0 };
            row.add_url(status, record, depth, self.budget);
            if is_page && let Some(urls) = urls {
                let scratch = &mut self.scratch.target;
                urls.count(record, scratch, &mut row.sitemap, depth, self.budget);
            }
        }
        if let (SuspectedImpostor, Some(address)) = (identity, address) {
            let address = address.to_string();
            self.budget.add(&mut row.addresses, address.as_bytes());
        }
        let breaks_rules = judged.breaks_rules();
        if judged.is_disallowed() {
            self.tally.lines.disallowed += 1;
            let url = url_without_values(record);
            self.budget.add(&mut self.tally.urls, &url);
            if breaks_rules {
                self.budget.add(&mut row.urls_against_rules, &url);
            }
        }
        if let Some(day) = self.tally.day_mut(record.time) {
            day.get_mut(identity).add(&judged);
        }
        breaks_rules
    }

    /// Counts requests without the address of a client, or with a shortened one. Returns the address.
    fn count_address(&mut self, record: &LogRecord<'_>) -> Option<IpAddr> {
        let address = record.client_address(&self.options.trusted_proxies);
        let lines = &mut self.tally.lines;
        lines.shortened_addresses += u64::from(address.is_some_and(is_shortened));
        lines.no_address += u64::from(address.is_none());
        address
    }

    /// The URLs of sitemaps with which the requests of a client are compared: of a search crawler for
    /// pages, or of the crawler that the options name.
    fn urls_to_compare(&self, claim: Claim, identity: ClientIdentity) -> Option<&'a SitemapUrls> {
        let is_wanted = !self.options.crawlers.is_empty()
            || matches!(claim, Known(crawler) if searches_pages(self.registry.get(crawler)));
        self.options
            .sitemap
            .as_ref()
            .filter(|_| is_wanted && identity != SuspectedImpostor)
    }
}

/// The URL of a request: the host, the beginning of the path, and the names of the parameters if all
/// have values, else `?...`. The values are left out, because those of searches are all different.
fn url_without_values(record: &LogRecord<'_>) -> Vec<u8> {
    let host = record.host.as_deref().unwrap_or_default();
    let target = &*record.target;
    let end = memchr::memchr(b'?', target).unwrap_or(target.len());
    let path = &target[..end.min(MAX_URL_BYTES)];
    let mut parameters = target[end..].split(|byte| *byte == b'&');
    let names = if end == target.len() {
        Vec::new()
    } else if parameters.all(|parameter| parameter.contains(&b'=')) {
        [b"?", &*joined_names(target)].concat()
    } else {
        b"?...".to_vec()
    };
    [host, path, &names].concat()
}

fn searches_pages(crawler: &Crawler) -> bool {
    crawler.purpose == Purpose::Search && !NO_PAGES.iter().any(|word| crawler.id.contains(word))
}

/// How long the operator of a crawler documents that it uses a copy of robots.txt; zero if nothing is
/// documented.
fn documented_cache_time(claim: Claim, registry: &Registry) -> Duration {
    if let Known(crawler) = claim {
        registry.robots_cache(crawler).1
    } else {
        Duration::ZERO
    }
}

/// Compares the address of a client with the networks of the policy and with the published ones.
/// Either can verify the client or make it a suspected impostor; the policy goes first. For the
/// address of a trusted proxy, which is not the client's, only the policy can verify, and there is
/// no suspicion, and none for an address that is shortened. A client that claims no name, or that of a tool, is unverified.
pub fn client_identity(
    claim: Claim,
    record: &LogRecord<'_>,
    registry: &Registry,
    site: &Site,
    options: &AuditOptions,
) -> ClientIdentity {
    let crawler = match claim {
        Known(crawler) if registry.get(crawler).purpose != Purpose::Tool => Some(crawler),
        PolicyToken(_) => None,
        _ => return Unverified,
    };
    let address = record.client_address(&options.trusted_proxies);
    let is_shortened = address.is_some_and(is_shortened);
    let by_policy = address.and_then(|address| site.networks.contains_address(claim, address));
    let is_proxy = address.is_some_and(|address| {
        options
            .trusted_proxies
            .iter()
            .any(|network| network.contains(&address))
    });
    let published = crawler
        .zip(options.networks.as_ref())
        .and_then(|(crawler, networks)| networks.look_up(crawler, address));
    match (by_policy, published) {
        (Some(true), _) => Verified,
        _ if is_proxy => Unverified,
        (_, Some(ListMembership::Inside)) => Verified,
        _ if is_shortened => Unverified,
        (_, Some(ListMembership::Outside)) => SuspectedImpostor,
        (Some(false), _) if address.is_some_and(is_public_address) => SuspectedImpostor,
        _ => Unverified,
    }
}

/// Whether an address looks like one that the log has shortened for privacy: it ends with zeros.
fn is_shortened(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.octets()[3] == 0,
        IpAddr::V6(address) => address.segments()[4..] == [0; 4],
    }
}

/// The networks that operators of crawlers publish.
pub struct PublishedNetworks {
    means: RegistryProofMeans,
    lists: PublishedLists,
    now: Timestamp,
}

impl PublishedNetworks {
    /// `None` if no list has networks.
    pub fn new(
        means: RegistryProofMeans,
        lists: PublishedLists,
        now: Timestamp,
    ) -> Option<PublishedNetworks> {
        let networks = PublishedNetworks { means, lists, now };
        let has_some = networks.network_lists().next().is_some();
        has_some.then_some(networks)
    }

    /// The lists of networks, without key directories and without lists that were never fetched.
    fn network_lists(&self) -> impl Iterator<Item = Arc<ParsedList>> {
        self.lists
            .all()
            .filter(|(_, url)| !is_directory(url))
            .filter_map(|(list, _)| self.lists.get(list))
    }

    /// How many lists are known and fresh.
    pub fn network_list_usage(&self) -> NetworkListUsage {
        let mut known = 0;
        let mut fresh = 0;
        let mut checked = None;
        for list in self.network_lists() {
            known += 1;
            fresh += usize::from(list.is_fresh(self.now));
            checked = checked.max(Some(list.copy.checked));
        }
        NetworkListUsage {
            known,
            fresh,
            checked,
        }
    }

    /// Looks an address up in the lists of a crawler. They are undecided without an address, and for
    /// one that is not public. `None` if the operator publishes no lists.
    fn look_up(&self, crawler: CrawlerIndex, address: Option<IpAddr>) -> Option<ListMembership> {
        let means = self.means.get(crawler)?;
        if means.lists.is_empty() {
            return None;
        }
        Some(match address {
            Some(address) if is_public_address(address) => {
                self.lists.look_up(means, address, self.now)
            }
            _ => ListMembership::Undecided(IdentityDoubt::PrivateAddress),
        })
    }
}
