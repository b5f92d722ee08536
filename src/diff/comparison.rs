//! [`Comparison`] judges URLs and requests by the old and by the new rules, and collects the
//! differences. Its memory grows with the number of different answers, not with the number of URLs.

use super::crawlers::{Class, classes, sort};
use super::pairs::pairs;
use super::response::{Decided, Kinds, differences, differences_of};
use super::settings::settings;
use super::witnesses::witnesses;
use super::{
    AccessChange, Basis, Difference, Effect, HeaderChange, Occurrences, ResponseChange, Ruling,
    Side, SiteDifference,
};
use crate::crawlers::{Claim, Registry};
use crate::heads::likely_type;
use crate::logs::Record;
use crate::policy::site::name_and_port;
use crate::policy::{HostHistory, Site, SiteEntry};
use crate::time::Timestamp;
use crate::verdict::{
    Action, Behaviour, CachedVersions, Case, Claimant, Decision, Facts, HistoryBasis, Identity,
    Scratch, Verdict, action_report, claim_label, decide_for, is_challenge, load, rule_place,
};
use crate::yaml::Source;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The policy of a host that has none on one side.
const NO_POLICY: &str = "robots: { origin: replace }\n";

/// Two sides that are being compared, the old one first.
pub struct Comparison<'a> {
    sides: [&'a Side; 2],
    sites: Vec<ComparedSite>,
    /// Which of `sites` a host belongs to.
    by_host: BTreeMap<[Option<usize>; 2], usize>,
    basis: Basis,
    compared: u64,
    other_hosts: u64,
}

struct ComparedSite {
    registry: &'static Registry,
    hosts: Vec<String>,
    sides: [Compared; 2],
    classes: Vec<Class>,
    kinds: Kinds,
    /// The pairs of rulings that differ, with the crawlers that they are for.
    access: BTreeMap<(Ruling, Ruling), (BTreeSet<String>, Occurrences)>,
    responses: BTreeMap<HeaderChange, Occurrences>,
    notes: Vec<String>,
    /// URLs and requests that were compared.
    compared: u64,
}

struct Compared {
    entry: SiteEntry,
    is_there: bool,
    scratch: Scratch,
}

impl Compared {
    /// The site at `place` of a side's snapshot; where there is none, `nothing`, the empty policy.
    /// `None` without either. The site is without its pauses.
    fn new(side: &Side, place: Option<usize>, nothing: Option<&Arc<Site>>) -> Option<Compared> {
        let entry = place.and_then(|place| side.snapshot.sites().get(place));
        let site = entry.map(|entry| &entry.site).or(nothing)?.clone();
        Some(Compared {
            // Without pauses: those are about the time to come.
            entry: SiteEntry::new(site, Timestamp(0)),
            is_there: entry.is_some(),
            scratch: Scratch::default(),
        })
    }
}

impl<'a> Comparison<'a> {
    /// A comparison of two sides that has compared nothing yet. A host with a policy on one side
    /// only is compared with an empty policy, which allows everything. `basis` is only passed on to
    /// the result.
    pub fn new(
        old: &'a Side,
        new: &'a Side,
        registry: &'static Registry,
        basis: Basis,
    ) -> Comparison<'a> {
        let empty = Source {
            name: "(no policy)".into(),
            text: NO_POLICY.into(),
        };
        let (nothing, _) = load("none", &empty, registry);
        let mut sites = Vec::new();
        let mut by_host = BTreeMap::new();
        for pair in pairs([old, new]) {
            by_host.insert(pair.sites, sites.len());
            let [old_place, new_place] = pair.sites;
            let Some(old) = Compared::new(old, old_place, nothing.as_ref()) else {
                continue;
            };
            let Some(new) = Compared::new(new, new_place, nothing.as_ref()) else {
                continue;
            };
            sites.push(ComparedSite::new(pair.hosts, [old, new], registry));
        }
        Comparison {
            sides: [old, new],
            sites,
            by_host,
            basis,
            compared: 0,
            other_hosts: 0,
        }
    }

    /// Compares each site on the URLs made from the patterns of both sides. If these are too many
    /// to try all, the site gets a note.
    pub fn witnesses(&mut self) {
        for site in &mut self.sites {
            let found = witnesses(site.sites());
            if found.is_cut {
                let note = "the sites have too many patterns or wildcards to try all of them; compare on real URLs with \
                            --urls or --log, too";
                site.notes.push(note.into());
            }
            for target in found.targets {
                self.compared += 1;
                site.target(&target);
            }
        }
    }

    /// Compares a path for every class of crawlers, on the site of `host`; without a host on every
    /// site. A host that no site has counts among the other hosts.
    pub fn url(&mut self, host: Option<&str>, target: &str) {
        self.compared += 1;
        let places = match host {
            None => 0..self.sites.len(),
            Some(host) => self
                .site_of(host.as_bytes())
                .map_or(0..0, |place| place..place + 1),
        };
        self.other_hosts += u64::from(places.is_empty());
        self.sites[places]
            .iter_mut()
            .for_each(|site| site.target(target));
    }

    /// Compares on one request of a log. One without a host is for the only site. Where no site is
    /// found, it counts among the other hosts and not as compared.
    pub fn request(&mut self, record: &Record<'_>, user_agent: &[u8]) {
        let place = match record.host.as_deref() {
            None => (self.sites.len() == 1).then_some(0),
            Some(host) => self.site_of(host),
        };
        match place {
            Some(place) => {
                self.compared += 1;
                self.sites[place].request(record, user_agent);
            }
            None => self.other_hosts += 1,
        }
    }

    /// The place in `sites` of the site for a host, whose port is ignored. If both sides are single
    /// files with one site, that is the site for every host, unless the files name hosts and this
    /// is none of them. `None` where neither side has a policy for the host.
    fn site_of(&self, host: &[u8]) -> Option<usize> {
        let host = name_and_port(host).0;
        if self.sites.len() == 1 && self.sides.iter().all(|side| side.is_one_file) {
            let mut with_hosts = self
                .sides
                .iter()
                .filter(|side| {
                    side.snapshot
                        .sites()
                        .iter()
                        .any(|entry| !entry.site.policy.hosts.is_empty())
                })
                .peekable();
            let is_meant = with_hosts.peek().is_none()
                || with_hosts.any(|side| side.snapshot.site_for_host(host).is_some());
            return is_meant.then_some(0);
        }
        self.by_host
            .get(&self.sides.map(|side| side.snapshot.site_for_host(host)))
            .copied()
    }

    /// The differences that were found. Sites without a difference and without a note are left out.
    pub fn finish(self) -> Difference {
        let sites: Vec<SiteDifference> = self
            .sites
            .into_iter()
            .map(ComparedSite::finish)
            .filter(|site| site.is_changed() || !site.notes.is_empty())
            .collect();
        let [old, new] = self.sides.map(|side| side.name.clone());
        Difference {
            old,
            new,
            changed: sites.iter().any(SiteDifference::is_changed),
            basis: self.basis,
            compared: self.compared,
            other_hosts: self.other_hosts,
            sites,
        }
    }
}

impl SiteDifference {
    /// Whether anything differs, also if only one side has a policy.
    fn is_changed(&self) -> bool {
        !self.access.is_empty()
            || !self.responses.is_empty()
            || !self.settings.is_empty()
            || self.old.is_some() != self.new.is_some()
    }
}

impl Compared {
    fn site(&self) -> &Site {
        &self.entry.site
    }

    /// The name of the site in the result: its policy file, or the robots.txt that it was made from
    /// if it names no hosts. `None` if this side has no policy for the hosts.
    fn name(&self) -> Option<String> {
        if !self.is_there {
            return None;
        }
        let policy = &self.site().policy;
        Some(match &self.site().origin {
            Some(origin) if policy.hosts.is_empty() => origin.location.clone(),
            _ => policy.source.name.to_string(),
        })
    }

    /// Decides about a GET of this target by a verified crawler that has the newest robots.txt. For
    /// the target of a certificate authority's challenge, nobody is taken to ask, whatever the
    /// claim.
    fn decide(&mut self, target: &[u8], claim: Claim, registry: &Registry) -> Decision {
        let claim = if is_challenge(b"GET", target) {
            Claim::Nobody
        } else {
            claim
        };
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
        let claimant = Claimant {
            site: 0,
            entry: &self.entry,
            history: HostHistory::none(),
            claim,
        };
        let cached_versions = CachedVersions {
            was_served: true,
            has_version_in_force: true,
            basis: HistoryBasis::Declared,
            ..CachedVersions::default()
        };
        let case = Case {
            registry,
            facts,
            claimant,
            cached_versions,
        };
        decide_for(&case, Behaviour::default(), &mut self.scratch)
    }

    /// A decision as texts, with the rule of robots.txt that decided and its place.
    fn ruling(&self, decision: &Decision) -> Ruling {
        let site = self.site();
        let deciding = decision.rule;
        let rule = deciding.and_then(|deciding| site.rule(deciding.group, deciding.rule?));
        Ruling {
            verdict: decision.verdict.name(),
            action: action(decision.action, site),
            would: decision.would.map(|would| action(would, site)),
            rule: rule.map(|(rule, _)| rule.to_string()),
            source: rule_place(decision, site),
        }
    }
}

/// An action as text: `block 403`; one without a status of its own is its name alone.
fn action(action: Action, site: &Site) -> String {
    let report = action_report(action, site);
    match (action, report.status) {
        (Action::Block(_) | Action::Slow { .. } | Action::License { .. }, Some(status)) => {
            format!("{} {status}", report.kind)
        }
        _ => report.kind.to_owned(),
    }
}

impl ComparedSite {
    /// Prepares the comparison of an old and a new site that both answer for `hosts`: nothing is
    /// compared yet. The classes of crawlers and kinds of responses are those of either site.
    fn new(hosts: Vec<String>, sides: [Compared; 2], registry: &'static Registry) -> ComparedSite {
        let sites = sides.each_ref().map(Compared::site);
        ComparedSite {
            registry,
            hosts,
            classes: classes(sites, registry),
            kinds: Kinds::of(sites),
            sides,
            access: BTreeMap::new(),
            responses: BTreeMap::new(),
            notes: Vec::new(),
            compared: 0,
        }
    }

    fn sites(&self) -> [&Site; 2] {
        self.sides.each_ref().map(Compared::site)
    }

    /// Compares a URL for every class of crawlers, and collects the rulings that differ. Header
    /// lines of pages are compared once, because they are the same for every crawler; not at all if
    /// no crawler is judged.
    fn target(&mut self, target: &str) {
        self.compared += 1;
        for place in 0..self.classes.len() {
            let decisions = self.decide(target.as_bytes(), self.classes[place].claims);
            if place == 0 {
                // The header lines of pages are the same for every crawler.
                let changes = differences(self.decided(&decisions), &self.kinds, target.as_bytes());
                self.responses(changes, target, true);
            }
            if let Some(rulings) = self.changed(&decisions) {
                let (crawlers, found) = self.access.entry(rulings).or_default();
                crawlers.extend(self.classes[place].crawlers.iter().cloned());
                found.add(self.compared, target, true);
            }
        }
    }

    /// Compares on one request: header lines by its status and type (or 200 and the type of its
    /// path), and the ruling for the crawler that its user agent claims to be. The query is left
    /// out of the URL. The crawler has the label of the new site, else that of the old one; for a
    /// client that neither side judges, only the header lines count.
    fn request(&mut self, record: &Record<'_>, user_agent: &[u8]) {
        self.compared += 1;
        let registry = self.registry;
        let target = &*record.target;
        let claims = self
            .sites()
            .map(|site| registry.identify_with(user_agent, &site.tokens));
        let decisions = self.decide(target, claims);
        // Queries of searches are all different.
        let url = match memchr::memchr(b'?', target) {
            Some(query) => format!("{}?...", String::from_utf8_lossy(&target[..query])),
            None => String::from_utf8_lossy(target).into_owned(),
        };
        let is_judged = decisions
            .iter()
            .any(|decision| decision.verdict != Verdict::NotACrawler);
        // A log that says neither status nor type is of pages that were found, with the types of
        // their paths.
        let status = if record.status == 0 {
            200
        } else {
            record.status
        };
        let media = record
            .content_type
            .as_deref()
            .unwrap_or(likely_type(target).as_bytes());
        let changes = differences_of(self.decided(&decisions), status, media);
        self.responses(changes, &url, is_judged);
        let claimed = claims.into_iter().zip(self.sites());
        let label = claimed
            .rev()
            .find_map(|(claim, site)| claim_label(claim, registry, Some(site)))
            .map(str::to_owned);
        if is_judged
            && let Some(label) = label
            && let Some(rulings) = self.changed(&decisions)
        {
            let (crawlers, found) = self.access.entry(rulings).or_default();
            crawlers.insert(label);
            found.add(self.compared, &url, true);
        }
    }

    fn decide(&mut self, target: &[u8], claims: [Claim; 2]) -> [Decision; 2] {
        std::array::from_fn(|side| self.sides[side].decide(target, claims[side], self.registry))
    }

    fn decided<'a>(&'a self, decisions: &'a [Decision; 2]) -> [Decided<'a>; 2] {
        std::array::from_fn(|side| (self.sides[side].site(), &decisions[side]))
    }

    /// The rulings of the old and the new site; `None` where a crawler notices no difference.
    fn changed(&self, decisions: &[Decision; 2]) -> Option<(Ruling, Ruling)> {
        let [old, new] = std::array::from_fn(|side| self.sides[side].ruling(&decisions[side]));
        (!old.is_like(&new)).then_some((old, new))
    }

    /// Adds an occurrence to each of these changes of header lines; `is_crawler` is whether the
    /// request is of a crawler.
    fn responses(&mut self, changes: Vec<HeaderChange>, url: &str, is_crawler: bool) {
        for change in changes {
            self.responses
                .entry(change)
                .or_default()
                .add(self.compared, url, is_crawler);
        }
    }

    /// The differences of this site. The changes of access that concern the most crawlers come
    /// first.
    fn finish(self) -> SiteDifference {
        let settings = settings(self.sites(), &self.classes);
        let access = self
            .access
            .into_iter()
            .map(|((old, new), (crawlers, found))| {
                let mut crawlers = Vec::from_iter(crawlers);
                sort(&mut crawlers);
                AccessChange {
                    effect: Effect::of(&old, &new),
                    crawlers,
                    old,
                    new,
                    found,
                }
            });
        let mut access: Vec<AccessChange> = access.collect();
        access.sort_by_cached_key(|change| {
            (
                Reverse(change.crawlers.len()),
                change.crawlers.clone(),
                Reverse(change.found.count),
                change.found.url.clone(),
            )
        });
        let [old, new] = self.sides.each_ref().map(Compared::name);
        SiteDifference {
            hosts: self.hosts,
            old,
            new,
            crawlers: self.classes.iter().map(|class| class.crawlers.len()).sum(),
            access,
            responses: self
                .responses
                .into_iter()
                .map(|(lines, found)| ResponseChange { lines, found })
                .collect(),
            settings,
            notes: self.notes,
        }
    }
}
