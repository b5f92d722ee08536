//! [`Comparison`] judges URLs and requests for `crawlgate diff`, once by the old rules and once by
//! the new rules. It collects the differences of each site ([`SiteComparison`]). Its memory grows
//! with the number of differences, and with the URLs that change, up to a limit.
//! The caller remembers the hash of each URL of a list: 9 to 18 bytes.

use super::crawlers::{CrawlerClass, group_crawlers, is_wanted, sort_crawlers};
use super::pairs::match_sites;
use super::response::{
    ResponseKinds, SiteDecision, header_changes_of_kinds, header_changes_of_response,
};
use super::settings::changed_settings;
use super::witnesses::find_witness_urls;
use super::{
    AccessChange, AccessEffect, ComparedRules, ComparisonBasis, CrawlerRequests, CrawlerTreatment,
    Difference, HeaderChange, Occurrences, PageHeaderChange, SiteDifference,
};
use crate::crawlers::{Claim, Registry};
use crate::heads::likely_content_type;
use crate::logs::LogRecord;
use crate::policy::origin::OriginRobotsTxt;
use crate::policy::site::split_host_port;
use crate::policy::{Site, SiteEntry};
use crate::robots::without_query;
use crate::time::Timestamp;
use crate::verdict::{
    Action, Decision, DecisionScratch, RecentBehaviour, RequestToJudge, Verdict, action_report,
    claim_label, claim_with_method, decide_for, load_site, misspelt_line, rule_location,
};
use crate::yaml::SourceFile;
use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::BuildHasher;
use std::rc::Rc;
use std::sync::Arc;

/// The policy that a host without one is compared with.
const NO_POLICY: &str = "robots: { origin: replace }\n";
/// Further paths of a site are not counted. They take up to 80 MB.
const MAX_PATHS: usize = 5_000_000;
/// Further URLs are not listed, of all sites together. They take about so much memory.
const MAX_LISTED_BYTES: usize = 1_000_000_000;
/// What a listed URL takes beside its text.
const BYTES_PER_URL: usize = 80;

/// A running comparison of two sets of rules, the old one first.
pub struct Comparison<'a> {
    sides: [&'a ComparedRules; 2],
    sites: Vec<SiteComparison>,
    /// The index in `sites`, by the indexes of the old and the new site in their snapshots.
    by_host: BTreeMap<[Option<usize>; 2], usize>,
    basis: ComparisonBasis,
    crawlers: &'a [String],
    compared: u64,
    other_hosts: u64,
}

struct SiteComparison {
    hosts: Vec<String>,
    sides: [ComparedSide; 2],
    /// Only these crawlers are compared; empty for all.
    crawlers: Vec<String>,
    classes: Vec<CrawlerClass>,
    kinds: ResponseKinds,
    /// The memory left for the URLs for which access changes, of all sites together. `None` to list
    /// none.
    spare_bytes: Option<Rc<Cell<usize>>>,
    /// The treatments that differ, with their crawlers.
    access: BTreeMap<(CrawlerTreatment, CrawlerTreatment), (BTreeSet<String>, Occurrences)>,
    /// The requests of a log, by crawler.
    by_crawler: BTreeMap<String, CrawlerRequests>,
    /// Hashes of the paths in it that change, each with its crawler and effect.
    paths: HashSet<u64>,
    responses: BTreeMap<HeaderChange, Occurrences>,
    notes: Vec<String>,
    /// URLs and requests that were compared.
    compared: u64,
    /// Requests of clients that only pretend to be a crawler.
    pretended: u64,
}

/// The old or the new site of a comparison.
struct ComparedSide {
    entry: SiteEntry,
    exists: bool,
    scratch: DecisionScratch,
}

impl ComparedSide {
    /// The site at `index` of a snapshot, or the `empty` one. `None` without either.
    fn new(
        side: &ComparedRules,
        index: Option<usize>,
        empty: Option<&Arc<Site>>,
    ) -> Option<ComparedSide> {
        let entry = index.and_then(|index| side.snapshot.sites().get(index));
        let site = entry.map(|entry| &entry.site).or(empty)?.clone();
        Some(ComparedSide {
            // Without pauses, which begin and end.
            entry: SiteEntry::new(site, Timestamp(0)),
            exists: entry.is_some(),
            scratch: DecisionScratch::default(),
        })
    }
}

impl<'a> Comparison<'a> {
    /// A host with a policy on one side only is compared with an empty policy, which allows
    /// everything. `basis` is for the result. With `crawlers`, ids or tokens, no other crawler is
    /// compared. With `lists_urls` the result has each URL for which access changes.
    pub fn new(
        old: &'a ComparedRules,
        new: &'a ComparedRules,
        basis: ComparisonBasis,
        crawlers: &'a [String],
        lists_urls: bool,
    ) -> Comparison<'a> {
        let empty = SourceFile {
            name: "(no policy)".into(),
            text: NO_POLICY.into(),
        };
        let (empty_site, _) = load_site("none", &empty, Registry::builtin());
        let spare_bytes = lists_urls.then(|| Rc::new(Cell::new(MAX_LISTED_BYTES)));
        let mut sites = Vec::new();
        let mut by_host = BTreeMap::new();
        for pair in match_sites([old, new]) {
            by_host.insert(pair.sites, sites.len());
            let [old_place, new_place] = pair.sites;
            let old = ComparedSide::new(old, old_place, empty_site.as_ref());
            let new = ComparedSide::new(new, new_place, empty_site.as_ref());
            sites.extend(old.zip(new).map(|(old, new)| {
                SiteComparison::new(pair.hosts, [old, new], crawlers, spare_bytes.clone())
            }));
        }
        Comparison {
            sides: [old, new],
            sites,
            by_host,
            basis,
            crawlers,
            compared: 0,
            other_hosts: 0,
        }
    }

    /// Compares each site on URLs made from the patterns of both sides. Adds a note to a site with
    /// too many patterns.
    pub fn compare_witness_urls(&mut self) {
        for site in &mut self.sites {
            let found = find_witness_urls(site.sites());
            if found.is_cut {
                let note = "the sites have too many patterns or wildcards to try all. Compare \
                            real URLs, too, with --urls or --log";
                site.notes.push(note.into());
            }
            for target in found.targets {
                self.compared += 1;
                site.compare_target(&target, &target);
            }
        }
    }

    /// Compares a path for every class of crawlers, on the site of `host`, or on every site without
    /// a host. Counts hosts without a site. The result names the `url` as it was written.
    pub fn compare_url(&mut self, host: Option<&str>, target: &str, url: &str) {
        self.compared += 1;
        let places = match host {
            None => 0..self.sites.len(),
            Some(host) => self
                .find_site(host.as_bytes())
                .map_or(0..0, |place| place..place + 1),
        };
        self.other_hosts += u64::from(places.is_empty());
        for site in &mut self.sites[places] {
            site.compare_target(target, url);
        }
    }

    /// Compares on one request of a log. A request without a host is for the only site. Counts hosts
    /// without a site. `pretends` says whether the client only pretends to be the crawler that it
    /// claims to be on a site.
    pub fn compare_request(
        &mut self,
        record: &LogRecord<'_>,
        user_agent: &[u8],
        pretends: &dyn Fn(Claim, &Site) -> bool,
    ) {
        let place = match record.host.as_deref() {
            None => (self.sites.len() == 1).then_some(0),
            Some(host) => self.find_site(host),
        };
        match place {
            Some(place) => {
                let is_compared = self.sites[place].compare_request(record, user_agent, pretends);
                self.compared += u64::from(is_compared);
            }
            None => self.other_hosts += 1,
        }
    }

    /// The index in `sites` for a host; ignores its port. If both sides are single files with one
    /// site, that is the site of every host, unless the files name other hosts. `None` if neither
    /// side has a policy for the host.
    fn find_site(&self, host: &[u8]) -> Option<usize> {
        let host = split_host_port(host).0;
        if self.sites.len() == 1 && self.sides.iter().all(|side| side.is_one_file) {
            let mut with_hosts = self
                .sides
                .iter()
                .filter(|side| side.snapshot.site_for_host(b"").is_none())
                .peekable();
            let is_meant = with_hosts.peek().is_none()
                || with_hosts.any(|side| side.snapshot.site_for_host(host).is_some());
            return is_meant.then_some(0);
        }
        self.by_host
            .get(&self.sides.map(|side| side.snapshot.site_for_host(host)))
            .copied()
    }

    /// Returns the result, without sites that have neither a difference nor a note.
    pub fn finish(self) -> Difference {
        let pretended = self.sites.iter().map(|site| site.pretended).sum();
        let sites: Vec<SiteDifference> = self
            .sites
            .into_iter()
            .map(SiteComparison::finish)
            .filter(|site| site.is_changed() || !site.notes.is_empty())
            .collect();
        let [old, new] = self.sides.map(|side| side.name.clone());
        Difference {
            old,
            new,
            changed: sites.iter().any(SiteDifference::is_changed),
            crawler: (!self.crawlers.is_empty()).then(|| self.crawlers.join(", ")),
            basis: self.basis,
            compared: self.compared,
            other_hosts: self.other_hosts,
            pretended,
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

impl ComparedSide {
    fn site(&self) -> &Site {
        &self.entry.site
    }

    /// The policy file, or the robots.txt of a site that names no hosts. `None` if this side has no
    /// policy for the hosts.
    fn display_name(&self) -> Option<String> {
        self.exists.then(|| match self.robots_txt_without_policy() {
            Some(file) => file.location.clone(),
            None => self.site().policy.source.name.to_string(),
        })
    }

    /// The robots.txt of a site that names no hosts; `None` for a policy.
    fn robots_txt_without_policy(&self) -> Option<&OriginRobotsTxt> {
        let site = self.site();
        site.origin
            .as_deref()
            .filter(|_| site.policy.hosts.is_empty())
    }

    /// The decision as texts, with the deciding rule and its place.
    fn treatment(&self, decision: &Decision) -> CrawlerTreatment {
        let site = self.site();
        let rule = decision
            .rule
            .and_then(|deciding| site.rule(deciding.group, deciding.rule?));
        let misspelt = misspelt_line(decision, site);
        CrawlerTreatment {
            is_misspelt: misspelt.is_some(),
            verdict: decision.verdict.name(),
            action: describe_action(decision.action, site),
            would: decision.would.map(|would| describe_action(would, site)),
            rule: misspelt.or_else(|| Some(rule?.0.to_string())),
            source: rule_location(decision, site),
        }
    }
}

/// An action with its status, if it has one: `block 403`, `pass`.
fn describe_action(action: Action, site: &Site) -> String {
    match (action, action_report(action, site).status) {
        (Action::Block(_) | Action::Slow { .. } | Action::License { .. }, Some(status)) => {
            format!("{} {status}", action.name())
        }
        _ => action.name().to_owned(),
    }
}

impl SiteComparison {
    /// Prepares the comparison of an old and a new site of the same hosts.
    fn new(
        hosts: Vec<String>,
        sides: [ComparedSide; 2],
        crawlers: &[String],
        spare_bytes: Option<Rc<Cell<usize>>>,
    ) -> SiteComparison {
        let sites = sides.each_ref().map(ComparedSide::site);
        SiteComparison {
            hosts,
            crawlers: crawlers.to_vec(),
            classes: group_crawlers(sites, crawlers),
            kinds: ResponseKinds::from_sites(sites),
            spare_bytes,
            sides,
            access: BTreeMap::new(),
            by_crawler: BTreeMap::new(),
            paths: HashSet::new(),
            responses: BTreeMap::new(),
            notes: Vec::new(),
            compared: 0,
            pretended: 0,
        }
    }

    fn sites(&self) -> [&Site; 2] {
        self.sides.each_ref().map(ComparedSide::site)
    }

    /// Compares a URL for every class of crawlers, and collects the treatments that differ. Header
    /// lines are the same for every crawler, and compared once. The differences name the `url`.
    fn compare_target(&mut self, target: &str, url: &str) {
        self.compared += 1;
        for place in 0..self.classes.len() {
            let decisions = self.decide_both(target.as_bytes(), self.classes[place].claims);
            if place == 0 {
                let changes = header_changes_of_kinds(
                    self.site_decisions(&decisions),
                    &self.kinds,
                    target.as_bytes(),
                );
                self.add_header_changes(changes, url, true);
            }
            if let Some(treatments) = self.changed_treatments(&decisions) {
                let crawlers = std::mem::take(&mut self.classes[place].crawlers);
                self.add_access_change(treatments, &crawlers, url);
                self.classes[place].crawlers = crawlers;
            }
        }
    }

    /// Compares on one request: the treatment of the crawler that the user agent claims to be, and
    /// the header lines by status and type (or 200 and the type of the path). The crawler is called
    /// as on the new site, else as on the old one. For a client that neither side judges, or that
    /// only pretends to be a crawler, only the header lines are compared. Returns whether the request
    /// was compared: those of other crawlers than the wanted one are not.
    fn compare_request(
        &mut self,
        record: &LogRecord<'_>,
        user_agent: &[u8],
        pretends: &dyn Fn(Claim, &Site) -> bool,
    ) -> bool {
        let registry = Registry::builtin();
        let target = &*record.target;
        let claims = self.sites().map(|site| {
            let claim = registry.identify_on_site(user_agent, &site.tokens);
            claim_with_method(claim, &record.method)
        });
        let decisions = self.decide_both(target, claims);
        let is_judged = decisions
            .iter()
            .any(|decision| decision.verdict != Verdict::NotACrawler);
        let named = claims
            .into_iter()
            .zip(self.sites())
            .rev()
            .filter(|_| is_judged)
            .find_map(|(claim, site)| {
                let label = claim_label(claim, registry, Some(site))?.to_owned();
                Some((label, pretends(claim, site)))
            });
        let label = named.as_ref().map_or("", |(label, _)| label);
        if !is_wanted(label, &self.crawlers) {
            return false;
        }
        self.compared += 1;
        let url = String::from_utf8_lossy(target);
        let status = match record.status {
            0 => 200,
            status => status,
        };
        let media = record
            .content_type
            .as_deref()
            .unwrap_or(likely_content_type(target).as_bytes());
        let changes = header_changes_of_response(self.site_decisions(&decisions), status, media);
        let is_pretender = named.as_ref().is_some_and(|(_, pretends)| *pretends);
        self.pretended += u64::from(is_pretender);
        let crawler = named.filter(|_| !is_pretender);
        self.add_header_changes(changes, &url, crawler.is_some());
        let Some((label, _)) = crawler else {
            return true;
        };
        let treatments = self.changed_treatments(&decisions);
        let effect = treatments
            .as_ref()
            .map(|(old, new)| AccessEffect::from_treatments(old, new));
        // Queries of searches are all different.
        self.count_request(&label, without_query(target), effect);
        if let Some(treatments) = treatments {
            self.add_access_change(treatments, &[label], &url);
        }
        true
    }

    /// Counts a request of a crawler; `effect` is `None` if nothing changes for it.
    fn count_request(&mut self, crawler: &str, path: &[u8], effect: Option<AccessEffect>) {
        let counts = self.by_crawler.entry(crawler.to_owned()).or_default();
        crawler.clone_into(&mut counts.crawler);
        counts.requests += 1;
        if let Some(effect) = effect {
            let changed = counts.changes.entry(effect).or_default();
            changed.requests += 1;
            let hash = self.paths.hasher().hash_one((crawler, effect, path));
            let is_new = self.paths.len() < MAX_PATHS && self.paths.insert(hash);
            changed.paths += u64::from(is_new);
        }
    }

    /// Decides about a GET of this target by a verified crawler that has the newest robots.txt. For
    /// the challenge of a certificate authority the claim is ignored.
    fn decide_both(&mut self, target: &[u8], claims: [Claim; 2]) -> [Decision; 2] {
        std::array::from_fn(|index| {
            let side = &mut self.sides[index];
            let claim = claims[index];
            let registry = Registry::builtin();
            let case = RequestToJudge::verified_get(registry, &side.entry, claim, target);
            decide_for(&case, RecentBehaviour::default(), &mut side.scratch)
        })
    }

    fn site_decisions<'a>(&'a self, decisions: &'a [Decision; 2]) -> [SiteDecision<'a>; 2] {
        std::array::from_fn(|side| (self.sides[side].site(), &decisions[side]))
    }

    /// The old and the new treatment; `None` if verdict and actions are the same. The rule behind them
    /// may differ.
    fn changed_treatments(
        &self,
        decisions: &[Decision; 2],
    ) -> Option<(CrawlerTreatment, CrawlerTreatment)> {
        let [mut old, mut new] =
            std::array::from_fn(|side| self.sides[side].treatment(&decisions[side]));
        // No mode belongs to a robots.txt.
        if self
            .sides
            .iter()
            .any(|side| side.robots_txt_without_policy().is_some())
        {
            old.would = None;
            new.would = None;
        }
        let differ =
            (old.verdict, &old.action, &old.would) != (new.verdict, &new.action, &new.would);
        differ.then_some((old, new))
    }

    /// Counts a change of access of these crawlers, and lists its URL.
    fn add_access_change(
        &mut self,
        treatments: (CrawlerTreatment, CrawlerTreatment),
        affected: &[String],
        url: &str,
    ) {
        let (crawlers, found) = self.access.entry(treatments).or_default();
        // All of a class are there, or none.
        if !crawlers.contains(&affected[0]) {
            crawlers.extend(affected.iter().cloned());
        }
        let is_new = found.add(self.compared, url, true);
        if let Some(requests) = found.urls.get_mut(url) {
            *requests += u64::from(is_new);
        } else if let Some(spare) = self.spare_bytes.as_ref().filter(|spare| spare.get() > 0) {
            spare.set(spare.get().saturating_sub(BYTES_PER_URL + url.len()));
            found.urls.insert(url.to_owned(), 1);
        }
    }

    /// Counts these changes of header lines. `is_crawler` is whether a crawler sent the request.
    fn add_header_changes(&mut self, changes: Vec<HeaderChange>, url: &str, is_crawler: bool) {
        for change in changes {
            self.responses
                .entry(change)
                .or_default()
                .add(self.compared, url, is_crawler);
        }
    }

    /// Returns the differences. Of the changes of access, losses come first: those of Googlebot, then
    /// of bingbot, then for the most crawlers.
    fn finish(self) -> SiteDifference {
        let settings = changed_settings(self.sites(), &self.classes);
        let is_plain = self
            .sides
            .iter()
            .all(|side| side.exists && side.robots_txt_without_policy().is_some());
        let mut access: Vec<AccessChange> = self
            .access
            .into_iter()
            .map(|((old, new), (crawlers, found))| {
                let mut crawlers = Vec::from_iter(crawlers);
                sort_crawlers(&mut crawlers);
                AccessChange {
                    effect: AccessEffect::from_treatments(&old, &new),
                    crawlers,
                    old,
                    new,
                    found,
                }
            })
            .collect();
        access.sort_by_cached_key(|change| {
            (
                change.effect,
                change.crawlers[0] != "googlebot",
                change.crawlers[0] != "bingbot",
                Reverse(change.crawlers.len()),
                change.crawlers.clone(),
                Reverse(change.found.count),
            )
        });
        let mut by_crawler: Vec<CrawlerRequests> = self
            .by_crawler
            .into_values()
            .filter(|requests| !requests.changes.is_empty())
            .collect();
        by_crawler.sort_by_key(|crawler| {
            let changes = crawler.changes.values();
            Reverse(changes.map(|changed| changed.requests).sum::<u64>())
        });
        let mut notes = self.notes;
        if self.paths.len() == MAX_PATHS {
            notes.push("only the first 5,000,000 paths that change are counted".into());
        }
        let is_full = self.spare_bytes.is_some_and(|spare| spare.get() == 0);
        if is_full && !access.is_empty() {
            notes.push("the lists of URLs end at 1 GB in all, so some may be missing".into());
        }
        notes.extend(self.sides.iter().filter_map(|side| {
            side.robots_txt_without_policy()?
                .misspelt_lines_caution("for them other URLs may change")
        }));
        let [old, new] = self.sides.each_ref().map(ComparedSide::display_name);
        SiteDifference {
            is_plain,
            hosts: self.hosts,
            old,
            new,
            crawlers: self.classes.iter().map(|class| class.crawlers.len()).sum(),
            by_crawler,
            access,
            responses: self
                .responses
                .into_iter()
                .map(|(lines, found)| PageHeaderChange { lines, found })
                .collect(),
            settings,
            notes,
        }
    }
}
