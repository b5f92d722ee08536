//! [`Worker`] reads chunks of lines of a log, judges each request, and adds it to its counts. It
//! identifies each user agent once, because a log holds few different ones.
//!
//! [`PublishedNetworks`]: the networks that operators of crawlers publish, to look up the addresses
//! of a log. A client from the networks of the crawler that it names is verified. A client from
//! elsewhere is at most a suspected impostor, because an audit does not ask reverse DNS, and the
//! lists may be younger than the log.

use super::rules::{Found, Rules};
use super::tally::{Judged, Rows, Span, Tally};
use crate::crawlers::{Claim, CrawlerIndex, Purpose, Registry, calls_itself};
use crate::identity::{KnownList, KnownMeans, ListsSay, Means, PublishedLists, is_directory};
use crate::logs::{Line, LineFormat, Record};
use crate::policy::{HostHistory, Site};
use crate::report::{ClientIdentity, ListsUsed};
use crate::time::Timestamp;
use crate::verdict::{
    Behaviour, Case, Claimant, Doubt, Facts, Identity, Kind, Scratch, claim_label, decide_for,
    is_challenge, is_public,
};
use ahash::AHashMap;
use ipnet::IpNet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// How the logs of an audit are read.
#[derive(Default)]
pub struct Options {
    /// The form of the lines.
    pub format: LineFormat,
    /// Judge only requests to this host. Lines without a host are taken to be for it.
    pub host: Option<String>,
    /// Proxies whose addresses in a list are not the client's.
    pub trusted_proxies: Vec<IpNet>,
    /// What operators publish, where it is at hand.
    pub networks: Option<PublishedNetworks>,
}

/// User agents whose claim is remembered, of all entries together; then all are forgotten.
const REMEMBERED: usize = 20_000;

/// Longer user agents are not remembered.
const LONGEST_REMEMBERED: usize = 1_024;

/// Of a longer URL only the beginning is shown.
const LONGEST_URL: usize = 200;

/// Whole lines of one input.
pub struct Chunk {
    /// Index of the input.
    pub input: usize,
    /// Number of the first line.
    pub first_line: u64,
    /// The lines.
    pub octets: Vec<u8>,
}

/// What a worker needs and has counted.
pub struct Worker<'a> {
    rules: &'a Rules,
    registry: &'static Registry,
    options: &'a Options,
    /// By entry and user agent.
    claims: Vec<AHashMap<Box<[u8]>, Claim>>,
    remembered: usize,
    scratch: Scratch,
    url: Vec<u8>,
    /// The result.
    pub tally: Tally,
}

impl<'a> Worker<'a> {
    /// A worker that has counted nothing yet.
    pub fn new(rules: &'a Rules, registry: &'static Registry, options: &'a Options) -> Self {
        Worker {
            rules,
            registry,
            options,
            claims: rules.entries().map(|_| AHashMap::new()).collect(),
            remembered: 0,
            scratch: Scratch::default(),
            url: Vec::new(),
            tally: Tally::default(),
        }
    }

    /// Counts the lines of a chunk and judges their requests. Empty lines do not count.
    pub fn read(&mut self, chunk: &Chunk) {
        let octets = chunk.octets.strip_suffix(b"\n").unwrap_or(&chunk.octets);
        let mut start = 0;
        let mut has_user_agent: Option<bool> = None;
        let ends = memchr::memchr_iter(b'\n', octets).chain([octets.len()]);
        for (line, end) in (chunk.first_line..).zip(ends) {
            let text = &octets[start..end];
            start = end + 1;
            let text = text.strip_suffix(b"\r").unwrap_or(text);
            if text.is_empty() {
                continue;
            }
            self.tally.lines += 1;
            match self.options.format.read(text) {
                Ok(Line::Request(record)) => {
                    let user_agent = record.user_agent.as_deref();
                    has_user_agent =
                        has_user_agent.max(user_agent.map(|user_agent| !user_agent.is_empty()));
                    self.request(&record);
                }
                Ok(Line::NoRequest) => self.tally.no_request += 1,
                Ok(Line::ServerMessage) => self.tally.server_messages += 1,
                Err(reason) => self.tally.unreadable(chunk.input, line, reason, text),
            }
        }
        if let Some(has_one) = has_user_agent {
            *self.tally.has_user_agents.entry(chunk.input).or_default() |= has_one;
        }
    }

    /// Counts a request: as one for another host, or without a host or user agent, or by a visitor,
    /// or by a crawler. A request without a host is taken to be for the host of the options.
    /// Requests for the files by which certificate authorities check a host count as those of
    /// visitors.
    fn request(&mut self, record: &Record<'_>) {
        let rules = self.rules;
        let wanted = self.options.host.as_deref().map(str::as_bytes);
        let host = record.host.as_deref().or(wanted);
        let both = record.host.as_deref().zip(wanted);
        let is_meant = both.is_none_or(|(host, wanted)| {
            crate::policy::site::name_and_port(host)
                .0
                .eq_ignore_ascii_case(wanted)
        });
        let Some(found) = is_meant.then(|| rules.find(host, record.time)).flatten() else {
            let count = if host.is_some() {
                &mut self.tally.other_hosts
            } else {
                &mut self.tally.no_host
            };
            *count += 1;
            return;
        };
        self.tally.span.add(Span::at(record.time));
        let Some(user_agent) = record.user_agent.as_deref() else {
            self.tally.no_user_agent += 1;
            return;
        };
        let is_challenge = is_challenge(&record.method, &record.target);
        match self.claim(&found, user_agent) {
            claim if is_challenge || claim == Claim::Nobody => {
                self.tally.visitors += 1;
                self.tally.visitors_bytes += record.bytes;
            }
            claim => self.crawler(record, &found, user_agent, claim),
        }
    }

    /// Whom a user agent claims to be, by the registry and the tokens of the entry's site.
    /// Remembered by entry and user agent.
    fn claim(&mut self, found: &Found<'_>, user_agent: &[u8]) -> Claim {
        if let Some(claim) = self.claims[found.index].get(user_agent) {
            return *claim;
        }
        let claim = self
            .registry
            .identify_with(user_agent, &found.entry.site.tokens);
        if user_agent.len() <= LONGEST_REMEMBERED {
            if self.remembered == REMEMBERED {
                self.claims.iter_mut().for_each(|claims| claims.clear());
                self.remembered = 0;
            }
            self.claims[found.index].insert(user_agent.into(), claim);
            self.remembered += 1;
        }
        claim
    }

    /// Judges a request of a crawler or tool by what was in force, and counts it in the row of its
    /// label and identity, in its day, and, if it is disallowed, under its URL. An unknown bot is
    /// also counted by the name that it gives itself.
    fn crawler(&mut self, record: &Record<'_>, found: &Found<'_>, user_agent: &[u8], claim: Claim) {
        let site = &*found.entry.site;
        let facts = Facts {
            host: record.host.as_deref().unwrap_or_default(),
            target: &record.target,
            method: &record.method,
            user_agent,
            client: None,
            // Claims are taken at their word: a log proves nothing.
            identity: Identity::Verified,
            now: record.time,
        };
        let history = HostHistory::none();
        let claimant = Claimant {
            site: found.index,
            entry: found.entry,
            history,
            claim,
        };
        let kept = match claim {
            Claim::Known(crawler) => self.registry.robots_cache(crawler).1,
            Claim::Nobody | Claim::Token(_) | Claim::Other | Claim::Tool => Duration::ZERO,
        };
        let cached_versions = self.rules.cached(found.index, record.time, kept);
        let case = Case {
            registry: self.registry,
            facts,
            claimant,
            cached_versions,
        };
        let decision = decide_for(&case, Behaviour::default(), &mut self.scratch);
        let label = claim_label(claim, self.registry, Some(site)).unwrap_or_default();
        let rows = &mut self.tally.rows;
        if !rows.contains_key(label) {
            rows.insert(label.into(), Rows::default());
        }
        let Some(rows) = rows.get_mut(label) else {
            return;
        };
        let identity = identity(claim, record, self.registry, site, self.options);
        let older_until = match decision.kind {
            Kind::Unproven => self.rules.unknown_until(kept),
            _ => cached_versions.older_until,
        };
        let judged = Judged {
            site: found.index,
            decision: &decision,
            older_until: older_until.filter(|_| decision.is_in_doubt()),
            time: record.time,
            bytes: record.bytes,
        };
        rows.row(identity).add(&judged);
        if let Some(day) = self.tally.day(record.time) {
            day.add(identity, &judged);
        }
        if judged.is_disallowed() {
            self.tally.disallowed += 1;
            self.url(record);
        }
        if claim == Claim::Other {
            let name = calls_itself(user_agent).unwrap_or("(no name)").as_bytes();
            self.tally.unknown_bots.add(name);
        }
    }

    /// Counts the URL of a request: host and the first 200 octets of the path, with `?...` for a
    /// query, because the queries of searches are all different.
    fn url(&mut self, record: &Record<'_>) {
        self.url.clear();
        self.url
            .extend_from_slice(record.host.as_deref().unwrap_or_default());
        let (path, query) = match memchr::memchr(b'?', &record.target) {
            Some(query) => (&record.target[..query], b"?...".as_slice()),
            None => (&*record.target, b"".as_slice()),
        };
        self.url
            .extend_from_slice(&path[..path.len().min(LONGEST_URL)]);
        self.url.extend_from_slice(query);
        self.tally.urls.add(&self.url);
    }
}

/// Who a client is that claims a crawler's name, by the networks of the policy and by those that
/// its operator publishes. Either can verify it, or raise a suspicion; the policy goes first. For
/// the address of a trusted proxy, which is not the client's, only the policy can verify it, and
/// nothing raises a suspicion. A client that claims no name, or that of a tool, is unverified.
fn identity(
    claim: Claim,
    record: &Record<'_>,
    registry: &Registry,
    site: &Site,
    options: &Options,
) -> ClientIdentity {
    let crawler = match claim {
        Claim::Known(crawler) if registry.get(crawler).purpose != Purpose::Tool => Some(crawler),
        Claim::Token(_) => None,
        Claim::Known(_) | Claim::Other | Claim::Tool | Claim::Nobody => {
            return ClientIdentity::Unverified;
        }
    };
    let address = record.client_address(&options.trusted_proxies);
    let by_policy = address.and_then(|address| site.networks.hold(claim, address));
    let is_proxy = address.is_some_and(|address| {
        options
            .trusted_proxies
            .iter()
            .any(|network| network.contains(&address))
    });
    let published = crawler
        .zip(options.networks.as_ref())
        .and_then(|(crawler, networks)| {
            let means = networks.of(crawler)?;
            Some(networks.say(means, address))
        });
    match (by_policy, published) {
        (Some(true), _) => ClientIdentity::Verified,
        _ if is_proxy => ClientIdentity::Unverified,
        (_, Some(ListsSay::Inside(_))) => ClientIdentity::Verified,
        (_, Some(ListsSay::Outside)) => ClientIdentity::SuspectedImpostor,
        (Some(false), _) if address.is_some_and(is_public) => ClientIdentity::SuspectedImpostor,
        _ => ClientIdentity::Unverified,
    }
}

/// The lists at hand.
pub struct PublishedNetworks {
    means: KnownMeans,
    lists: PublishedLists,
    now: Timestamp,
}

impl PublishedNetworks {
    /// The networks of these lists. `None` where none has networks.
    pub fn new(
        means: KnownMeans,
        lists: PublishedLists,
        now: Timestamp,
    ) -> Option<PublishedNetworks> {
        let networks = PublishedNetworks { means, lists, now };
        let has_some = networks.known().next().is_some();
        has_some.then_some(networks)
    }

    /// The lists of networks that are at hand, without key directories.
    fn known(&self) -> impl Iterator<Item = Arc<KnownList>> {
        let lists = self.lists.all().filter(|(_, url)| !is_directory(url));
        lists.filter_map(|(list, _)| self.lists.get(list))
    }

    /// The lists in numbers.
    pub fn used(&self) -> ListsUsed {
        let mut known = 0;
        let mut fresh = 0;
        let mut checked = None;
        for list in self.known() {
            known += 1;
            fresh += usize::from(list.is_fresh(self.now));
            checked = checked.max(Some(list.copy.checked));
        }
        ListsUsed {
            known,
            fresh,
            checked,
        }
    }

    /// How to prove a crawler, if its operator publishes lists; else `None`.
    pub fn of(&self, crawler: CrawlerIndex) -> Option<&Means> {
        self.means
            .get(crawler)
            .filter(|means| !means.lists.is_empty())
    }

    /// What the lists of a crawler say of an address; nothing without an address, or for one that
    /// is not public.
    pub fn say(&self, means: &Means, address: Option<IpAddr>) -> ListsSay {
        match address {
            Some(address) if is_public(address) => self.lists.say(means, address, self.now),
            _ => ListsSay::Nothing(Doubt::PrivateAddress),
        }
    }
}
