//! [`Comparison`]: asks both sides about URLs and requests, and collects where the answers differ. Memory is bounded by
//! the number of different answers, not of URLs.

use super::crawlers::{BothClaims, Classes};
use super::pairs::pairs;
use super::response::{Kinds, differences, differences_of};
use super::settings::settings;
use super::witnesses::witnesses;
use super::{AccessChange, Basis, Difference, Effect, ResponseChange, Ruling, Side, SiteDifference};
use crate::crawlers::{Claim, Registry};
use crate::heads::likely_type;
use crate::logs::Record;
use crate::policy::site::name_and_port;
use crate::policy::{HostHistory, Site, SiteEntry};
use crate::time::Timestamp;
use crate::verdict::{
    Action, Behaviour, CachedVersions, Case, Claimant, Decision, Facts, HistoryBasis, Identity, Scratch, Verdict,
    claim_label, decide_for, load, rule_line, rule_place,
};
use crate::yaml::Source;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a host without a policy says to crawlers.
const NO_POLICY: &str = "robots: { origin: replace }\n";

/// Two sides that are being compared.
pub struct Comparison<'a> {
    old: &'a Side,
    new: &'a Side,
    registry: &'static Registry,
    sites: Vec<ComparedSite>,
    /// Which of `sites` a host belongs to.
    by_host: BTreeMap<(Option<usize>, Option<usize>), usize>,
    scratch: [Scratch; 2],
    basis: Basis,
    compared: u64,
    other_hosts: u64,
}

struct ComparedSite {
    hosts: Vec<String>,
    old: Compared,
    new: Compared,
    classes: Classes,
    kinds: Kinds,
    access: BTreeMap<(Ruling, Ruling), Found>,
    responses: BTreeMap<ResponseKey, Found>,
    notes: Vec<String>,
    /// URLs and requests that were compared.
    compared: u64,
}

/// Field, old lines, new lines, type, status.
type ResponseKey = (&'static str, Vec<String>, Vec<String>, String, u16);

struct Compared {
    entry: SiteEntry,
    is_there: bool,
}

/// Where an answer differs.
#[derive(Default)]
struct Found {
    crawlers: BTreeSet<String>,
    url: Option<String>,
    count: u64,
    /// Requests of people and tools.
    others: u64,
    /// The number of the URL or request that was counted last.
    last: u64,
}

impl Found {
    /// A URL counts once, however many crawlers it is about.
    fn add(&mut self, number: u64, target: &str, crawlers: &[String], is_crawler: bool) {
        let counted = if is_crawler { &mut self.count } else { &mut self.others };
        *counted += u64::from(self.last != number);
        self.last = number;
        self.crawlers.extend(crawlers.iter().cloned());
        let is_shorter = |known: &String| (target.len(), target) < (known.len(), known.as_str());
        if self.url.as_ref().is_none_or(is_shorter) {
            self.url = Some(target.to_owned());
        }
    }
}

impl<'a> Comparison<'a> {
    /// Nothing is compared yet.
    pub fn new(old: &'a Side, new: &'a Side, registry: &'static Registry, basis: Basis) -> Comparison<'a> {
        let empty = Source { name: "(no policy)".into(), text: NO_POLICY.into() };
        let (nothing, _) = load("none", &empty, registry);
        let compared = |entry: Option<&SiteEntry>| {
            let is_there = entry.is_some();
            let site = entry.map(|entry| entry.site.clone()).or_else(|| nothing.clone())?;
            // Without pauses: those are about the time to come.
            Some(Compared { entry: SiteEntry::new(site, Timestamp(0)), is_there })
        };
        let (mut sites, mut by_host) = (Vec::new(), BTreeMap::new());
        for pair in pairs(old, new) {
            let place = |side: &Side, entry: Option<&SiteEntry>| {
                side.snapshot.sites().iter().position(|known| entry.is_some_and(|entry| std::ptr::eq(known, entry)))
            };
            by_host.insert((place(old, pair.old), place(new, pair.new)), sites.len());
            let (Some(old), Some(new)) = (compared(pair.old), compared(pair.new)) else { continue };
            sites.push(ComparedSite::new(pair.hosts, old, new, registry));
        }
        let scratch = [Scratch::default(), Scratch::default()];
        Comparison { old, new, registry, sites, by_host, scratch, basis, compared: 0, other_hosts: 0 }
    }

    /// Compares on the URLs that the patterns of both sides match.
    pub fn witnesses(&mut self) {
        for place in 0..self.sites.len() {
            let found = witnesses(self.sites[place].old.site(), self.sites[place].new.site());
            if found.is_cut {
                let note = "the sites have too many patterns to try each with every other; compare on real URLs with \
                            --urls or --log, too";
                self.sites[place].notes.push(note.into());
            }
            for target in found.targets {
                self.compared += 1;
                self.sites[place].target(&target, self.registry, &mut self.scratch);
            }
        }
    }

    /// Compares on a path for every crawler; without a host on every site.
    pub fn url(&mut self, host: Option<&str>, target: &str) {
        self.compared += 1;
        let places: Vec<usize> = match host {
            None => (0..self.sites.len()).collect(),
            Some(host) => self.site_of(host.as_bytes()).into_iter().collect(),
        };
        if places.is_empty() {
            self.other_hosts += 1;
        }
        for place in places {
            self.sites[place].target(target, self.registry, &mut self.scratch);
        }
    }

    /// Compares on one request. A request without a host is for the only site.
    pub fn request(&mut self, record: &Record<'_>, user_agent: &[u8]) {
        let place = match record.host.as_deref() {
            None if self.sites.len() == 1 => Some(0),
            None => None,
            Some(host) => self.site_of(host),
        };
        let Some(place) = place else {
            self.other_hosts += 1;
            return;
        };
        self.compared += 1;
        self.sites[place].request(record, user_agent, self.registry, &mut self.scratch);
    }

    fn site_of(&self, host: &[u8]) -> Option<usize> {
        let host = name_and_port(host).0;
        if self.sites.len() == 1 && self.old.is_one_file && self.new.is_one_file {
            let has_hosts =
                |side: &&&Side| side.snapshot.sites().iter().any(|entry| !entry.site.policy.hosts.is_empty());
            let sides = [self.old, self.new];
            let mut with_hosts = sides.iter().filter(has_hosts).peekable();
            let is_meant =
                with_hosts.peek().is_none() || with_hosts.any(|side| side.snapshot.site_for_host(host).is_some());
            return is_meant.then_some(0);
        }
        let place = (self.old.snapshot.site_for_host(host), self.new.snapshot.site_for_host(host));
        self.by_host.get(&place).copied()
    }

    /// What differs.
    pub fn finish(self) -> Difference {
        let sites: Vec<SiteDifference> = self
            .sites
            .into_iter()
            .map(ComparedSite::finish)
            .filter(|site| site.is_changed() || !site.notes.is_empty())
            .collect();
        Difference {
            old: self.old.name.clone(),
            new: self.new.name.clone(),
            changed: sites.iter().any(SiteDifference::is_changed),
            basis: self.basis,
            compared: self.compared,
            other_hosts: self.other_hosts,
            sites,
        }
    }
}

impl SiteDifference {
    fn is_changed(&self) -> bool {
        !self.access.is_empty()
            || !self.responses.is_empty()
            || !self.settings.is_empty()
            || self.old.is_some() != self.new.is_some()
    }
}

impl Compared {
    fn site(&self) -> &Arc<Site> {
        &self.entry.site
    }

    fn name(&self) -> Option<String> {
        let policy = &self.site().policy;
        let name =
            self.site().origin.as_ref().filter(|_| policy.hosts.is_empty()).map(|origin| origin.location.clone());
        self.is_there.then(|| name.unwrap_or_else(|| policy.source.name.to_string()))
    }

    fn decide(&self, target: &[u8], claim: Claim, registry: &Registry, scratch: &mut Scratch) -> Decision {
        let facts = Facts {
            host: b"",
            target,
            method: b"GET",
            user_agent: b"",
            client: None,
            // The crawler is the one that it says it is, and has the newest robots.txt.
            identity: Identity::Verified,
            now: Timestamp(0),
        };
        let claimant = Claimant { site: 0, entry: &self.entry, history: HostHistory::none(), claim };
        let cached_versions = CachedVersions {
            was_served: true,
            has_version_in_force: true,
            basis: HistoryBasis::Declared,
            ..CachedVersions::default()
        };
        let case = Case { registry, facts, claimant, cached_versions };
        decide_for(&case, Behaviour::default(), scratch)
    }

    fn ruling(&self, decision: &Decision) -> Ruling {
        let site = self.site();
        let rule = decision.rule.and_then(|rule| {
            let group = site.document.groups.get(usize::from(rule.group))?;
            group.rules.get(usize::try_from(rule.rule?).ok()?)
        });
        Ruling {
            verdict: decision.verdict.name(),
            action: action(decision.action, site),
            would: decision.would.map(|would| action(would, site)),
            rule: rule.map(rule_line),
            source: rule_place(decision, site),
        }
    }
}

/// `block 403`; what has no status of its own is its name alone.
fn action(action: Action, site: &Site) -> String {
    let status = match action {
        Action::Block(index) | Action::Slow { answer: index, .. } => {
            site.answers.get(usize::from(index)).map(|answer| answer.status)
        }
        Action::License { status } => Some(status),
        Action::Pass | Action::Pause { .. } | Action::RobotsTxt | Action::TdmRep => None,
    };
    status.map_or_else(|| action.name().to_owned(), |status| format!("{} {status}", action.name()))
}

impl ComparedSite {
    fn new(hosts: Vec<String>, old: Compared, new: Compared, registry: &'static Registry) -> ComparedSite {
        let classes = Classes::new(old.site(), new.site(), registry);
        let kinds = Kinds::of(&old.site().policy, &new.site().policy);
        let (access, responses) = (BTreeMap::new(), BTreeMap::new());
        ComparedSite { hosts, old, new, classes, kinds, access, responses, notes: Vec::new(), compared: 0 }
    }

    /// Compares for every class of crawlers.
    fn target(&mut self, target: &str, registry: &Registry, scratch: &mut [Scratch; 2]) {
        self.compared += 1;
        for place in 0..self.classes.0.len() {
            let claims = self.classes.0[place].claims;
            let decisions = self.decide(target.as_bytes(), claims, registry, scratch);
            if place == 0 {
                self.response(target, &decisions);
            }
            let (old, new) = (self.old.ruling(&decisions[0]), self.new.ruling(&decisions[1]));
            if !old.is_like(&new) {
                self.access.entry((old, new)).or_default().add(
                    self.compared,
                    target,
                    &self.classes.0[place].crawlers,
                    true,
                );
            }
        }
    }

    fn request(&mut self, record: &Record<'_>, user_agent: &[u8], registry: &Registry, scratch: &mut [Scratch; 2]) {
        self.compared += 1;
        let target = &*record.target;
        let identify = |compared: &Compared| registry.identify_with(user_agent, &compared.site().tokens);
        let claims = BothClaims { old: identify(&self.old), new: identify(&self.new) };
        let decisions = self.decide(target, claims, registry, scratch);
        // Queries of searches are all different.
        let url = match memchr::memchr(b'?', target) {
            Some(query) => format!("{}?...", String::from_utf8_lossy(&target[..query])),
            None => String::from_utf8_lossy(target).into_owned(),
        };
        let is_judged = decisions.iter().any(|decision| decision.verdict != Verdict::NotACrawler);
        // A log that says neither status nor type is of pages that were found, with the types of their paths.
        let status = if record.status == 0 { 200 } else { record.status };
        let media = record.content_type.as_deref().unwrap_or(likely_type(target).as_bytes());
        let [old, new] = &decisions;
        let changes = differences_of((self.old.site(), old), (self.new.site(), new), (status, media));
        self.responses(changes, &url, is_judged);
        let label = claim_label(claims.new, registry, Some(self.new.site()));
        let label = label.or_else(|| claim_label(claims.old, registry, Some(self.old.site())));
        let Some(label) = label.filter(|_| is_judged).map(str::to_owned) else { return };
        let (old, new) = (self.old.ruling(&decisions[0]), self.new.ruling(&decisions[1]));
        if !old.is_like(&new) {
            let found = self.access.entry((old, new)).or_default();
            found.add(self.compared, &url, &[], true);
            found.crawlers.insert(label);
        }
    }

    fn decide(
        &self,
        target: &[u8],
        claims: BothClaims,
        registry: &Registry,
        [old, new]: &mut [Scratch; 2],
    ) -> [Decision; 2] {
        [self.old.decide(target, claims.old, registry, old), self.new.decide(target, claims.new, registry, new)]
    }

    /// What is said about pages is the same for every crawler.
    fn response(&mut self, url: &str, [old, new]: &[Decision; 2]) {
        let changes = differences((self.old.site(), old), (self.new.site(), new), &self.kinds);
        self.responses(changes, url, true);
    }

    fn responses(&mut self, changes: Vec<ResponseChange>, url: &str, is_crawler: bool) {
        for change in changes {
            let key = (change.field, change.old, change.new, change.content_type, change.status);
            let found = self.responses.entry(key).or_default();
            found.add(self.compared, url, &[], is_crawler);
        }
    }

    fn finish(self) -> SiteDifference {
        let settings = settings(self.old.site(), self.new.site(), &self.classes);
        let mut access: Vec<AccessChange> = self
            .access
            .into_iter()
            .map(|((old, new), found)| AccessChange {
                effect: Effect::of(&old, &new),
                crawlers: found.crawlers.into_iter().collect(),
                old,
                new,
                url: found.url.unwrap_or_default(),
                count: found.count,
            })
            .collect();
        access.sort_by(|one, other| {
            let order = |change: &AccessChange| (std::cmp::Reverse(change.crawlers.len()), change.crawlers.clone());
            order(one)
                .cmp(&order(other))
                .then_with(|| other.count.cmp(&one.count))
                .then_with(|| one.url.cmp(&other.url))
        });
        let responses =
            self.responses.into_iter().map(|((field, old, new, content_type, status), found)| ResponseChange {
                field,
                old,
                new,
                content_type,
                status,
                url: found.url.unwrap_or_default(),
                count: found.count,
                others: found.others,
            });
        SiteDifference {
            hosts: self.hosts,
            old: self.old.name(),
            new: self.new.name(),
            crawlers: self.classes.crawlers(),
            access,
            responses: responses.collect(),
            settings,
            notes: self.notes,
        }
    }
}
