//! [`SimulatedInstance`]: one crawlgate instance in tests of the exchange of facts between
//! crawlgate instances (such as which crawler fetched which robots.txt). It has the real exchange
//! and the real ledger (the record of what crawlers were served), but no threads and no files.
//! [`InstanceDisk`] is what survives when the process of an instance ends, so that a test can start
//! the instance again.

use super::operator_commands::OperatorState;
use super::simulated::{SimulatedServer, SimulatedStore};
use crate::clock::Moment;
use crate::crawlers::Registry;
use crate::exchange::{
    Exchange, ExchangeProgress, ExchangeTime, FactOutbox, LocalFacts, Member, PreviousMembership,
    StoreIdentity,
};
use crate::facts::{AnyFact, Fact};
use crate::ledger::Ledger;
use crate::policy::{PublicationHistories, Site, SiteEntry, Snapshot};
use crate::publications::{
    HistoryHorizon, PublicationLog, PublishedRobots, PublishedSite, VersionStore,
};
use crate::time::Timestamp;
use crate::verdict::{
    DecisionScratch, Identity as Proven, Kind, RecentBehaviour, RequestFacts, RequestToJudge,
    SiteClaim, decide_for, load_site,
};
use crate::yaml::SourceFile;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

pub const HOST: &[u8] = b"shop.example";
pub const HOUR: i64 = 3_600;
/// The longest that a crawler of these lives uses a copy, and an hour for slow answers.
const LONGEST: Duration = Duration::from_secs(25 * 3_600);

/// Versions that each close some of three paths, and `/never/`.
pub static SITES: LazyLock<Vec<Arc<Site>>> = LazyLock::new(|| {
    let closed = |version: usize| -> String {
        (0..3)
            .filter(|path| version >> path & 1 == 1)
            .map(|path| format!("/p{path}/, "))
            .collect()
    };
    let site = |version| {
        let text = format!(
            "hosts: [shop.example]\nrobots: {{ origin: replace, groups: [{{ agents: '*', disallow: [{}/never/] }}] }}\nenforcement: {{ mode: enforce }}\n",
            closed(version)
        );
        let source = SourceFile {
            name: "shop.yaml".into(),
            text: text.as_str().into(),
        };
        load_site("shop", &source, Registry::builtin())
            .0
            .expect("a policy")
    };
    (0..8).map(site).collect()
});

pub const AGENTS: [&str; 3] = [
    "bingbot/2.0",
    "Mozilla/5.0 (compatible; GPTBot/1.2)",
    "PetalBot/1.0",
];

/// What outlasts the process.
#[derive(Default)]
pub struct InstanceDisk {
    id: String,
    log: PublicationLog,
    /// What was served and observed.
    facts: Vec<Fact>,
    orders: OperatorState,
    identity: Option<StoreIdentity>,
    run: Option<String>,
    has_left: bool,
    committed: Option<Timestamp>,
    ended: bool,
}

/// A request that waits for the word of the other instances.
pub struct WaitingRequest {
    ticket: u64,
    deadline: Duration,
    pub request: TestRequest,
}

/// What became of a request that waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitOutcome {
    /// It is a violation.
    Violation,
    /// What came in takes the accusation back.
    TakenBack,
    /// The others did not say in time.
    Late,
}

/// A request, as the life knows it.
#[derive(Debug)]
pub struct TestRequest {
    pub agent: usize,
    pub path: String,
    pub at: Timestamp,
    pub is_violator: bool,
    pub true_ms: i64,
}

pub struct SimulatedInstance {
    pub disk: InstanceDisk,
    pub exchange: Exchange,
    pub progress: Arc<ExchangeProgress>,
    ledger: Arc<Ledger>,
    /// Marks and pauses.
    pub orders: OperatorState,
    log: PublicationLog,
    versions: VersionStore,
    others: Vec<PublicationLog>,
    snapshot: Arc<Snapshot>,
    pub version: usize,
    pub wanted: usize,
    /// Milliseconds by which its clock is ahead of the truth.
    pub ahead: i64,
    began: i64,
    pub waiting: Vec<WaitingRequest>,
    committed_at: i64,
}

struct LedgerFacts<'a> {
    ledger: &'a Ledger,
    orders: &'a mut OperatorState,
    now: Timestamp,
}

impl LocalFacts for LedgerFacts<'_> {
    fn all_facts(&self) -> Vec<Fact> {
        let mut facts = self.ledger.all_facts(self.now);
        facts.extend(self.orders.all_facts());
        facts
    }

    fn apply(&mut self, fact: Fact) {
        match fact.fact {
            AnyFact::ServedVersion(served) => {
                self.ledger.record_peer_served(&served, fact.at, self.now)
            }
            AnyFact::HostObservation(observed) => {
                self.ledger.record_peer_observation(&observed, self.now)
            }
            _ => self.orders.apply(fact),
        }
    }

    fn restart_observation(&mut self, _is_anew: bool) {
        self.ledger.restart_observations(self.now);
    }
}

impl InstanceDisk {
    /// Whether the process before ended a moment ago.
    fn is_continued(&self, now: Timestamp) -> bool {
        let longest = if self.ended { 60 } else { 20 };
        self.committed
            .is_some_and(|at| (at.0 - 5..=at.0 + longest).contains(&now.0))
    }

    /// What the exchange is told of the process before.
    fn previous_membership(&self) -> PreviousMembership {
        PreviousMembership {
            run: self.run.clone(),
            identity: self.identity.clone(),
            has_left: self.has_left && self.ended,
            has_observed: self.committed.is_some(),
            unreported_since: self
                .committed
                .filter(|_| !self.ended)
                .map(|at| Timestamp(at.0 - 1)),
        }
    }

    /// The ledger of the next process.
    fn restore_ledger(&self, version: usize, now: Timestamp) -> Ledger {
        let entry = SiteEntry::new(SITES[version].clone(), now);
        let moment = Moment {
            now,
            monotonic: Duration::ZERO,
        };
        let ledger = Ledger::in_memory(Vec::new(), &Snapshot::new(vec![entry], 0), moment);
        for fact in self.facts.clone() {
            match fact.fact {
                AnyFact::HostObservation(mut observed) => {
                    if !self.is_continued(now) {
                        observed.since = now;
                    }
                    ledger.record_peer_observation(&observed, now);
                }
                AnyFact::ServedVersion(served) => ledger.record_peer_served(&served, fact.at, now),
                _ => {}
            }
        }
        ledger
    }
}

impl SimulatedInstance {
    /// Starts a process with what the one before left on the disk.
    pub fn start(
        number: usize,
        disk: InstanceDisk,
        run: u64,
        version: usize,
        ahead: i64,
        true_ms: i64,
    ) -> SimulatedInstance {
        let now = Timestamp((true_ms + ahead).div_euclid(1_000));
        let mut disk = disk;
        if disk.id.is_empty() {
            disk.id = format!("{run:016x}");
        }
        let mut log = disk.log.clone();
        if !disk.is_continued(now) && disk.committed.is_some() {
            log.reset_identities();
            log.gaps.broken_at = Some(now);
        }
        let mut versions = VersionStore::default();
        let before = disk.previous_membership();
        let me = Member {
            id: disk.id.clone(),
            run: format!("{}.{run:08x}", disk.id),
            host: number.to_string(),
            crawlers: "same".into(),
            ..Member::default()
        };
        let outbox = Arc::<FactOutbox>::default();
        let progress = Arc::<ExchangeProgress>::default();
        record_publication(&mut log, version, now);
        let published = log.versions_since(Timestamp(i64::MIN));
        let files = SITES
            .iter()
            .map(|site| (site.robots_txt.version, site.robots_txt.body.clone()));
        let files: Vec<_> = files
            .filter(|(version, _)| published.contains(version))
            .collect();
        for (version, bytes) in &files {
            versions.insert(*version, bytes.clone());
        }
        let snapshot = build_snapshot(&log, &[], &mut versions, version, now);
        let ledger = disk.restore_ledger(version, now);
        if let Some(since) = before.unreported_since {
            ledger.record_served_to_all_since(&snapshot, since, now);
        }
        disk.orders.set_outbox(outbox.clone());
        ledger.subscribers().add(outbox.clone());
        ledger.set_peers_unknown(true);
        let exchange = Exchange::new(
            me.clone(),
            before,
            outbox,
            progress.clone(),
            log.clone(),
            files,
        );
        disk.run = Some(me.run);
        disk.ended = false;
        disk.has_left = false;
        let mut instance = SimulatedInstance {
            orders: disk.orders.clone(),
            disk,
            exchange,
            progress,
            ledger: Arc::new(ledger),
            log,
            versions,
            others: Vec::new(),
            snapshot: Arc::new(snapshot),
            version,
            wanted: version,
            ahead,
            began: true_ms,
            waiting: Vec::new(),
            committed_at: true_ms,
        };
        instance.commit(true_ms);
        instance
    }

    pub fn exchange_time(&self, true_ms: i64) -> ExchangeTime {
        let monotonic =
            Duration::from_millis(u64::try_from(true_ms - self.began).expect("time goes on"));
        ExchangeTime {
            milliseconds: true_ms + self.ahead,
            monotonic,
        }
    }

    pub fn own_time(&self, true_ms: i64) -> Timestamp {
        Timestamp((true_ms + self.ahead).div_euclid(1_000))
    }

    /// What the state store does about once a second.
    fn commit(&mut self, true_ms: i64) {
        self.disk.facts = self.ledger.all_facts(Timestamp(0));
        self.disk.log = self.log.clone();
        self.disk.orders = self.orders.clone();
        self.disk.identity = self.exchange.settled.clone().or(self.disk.identity.take());
        self.disk.committed = Some(self.own_time(true_ms));
        self.committed_at = true_ms;
    }

    fn rebuild_snapshot(&mut self, true_ms: i64) {
        let now = self.own_time(true_ms);
        self.snapshot = Arc::new(build_snapshot(
            &self.log,
            &self.others,
            &mut self.versions,
            self.version,
            now,
        ));
        self.ledger.apply_snapshot(&self.snapshot, now);
    }

    /// A turn of the exchange; what became of the requests that waited.
    pub fn turn(
        &mut self,
        store: &SimulatedServer,
        is_cut_off: bool,
        true_ms: i64,
    ) -> Vec<(TestRequest, WaitOutcome)> {
        let now = self.exchange_time(true_ms);
        let second = self.own_time(true_ms);
        let ledger = self.ledger.clone();
        let mut memory = LedgerFacts {
            ledger: &ledger,
            orders: &mut self.orders,
            now: second,
        };
        let asks = !self.waiting.is_empty();
        self.exchange.turn(
            &mut SimulatedStore(store, is_cut_off),
            &|| now,
            &mut memory,
            asks,
        );
        if let Some(others) = self.exchange.take_peer_publications(now) {
            self.others = others.logs;
            others
                .files
                .into_iter()
                .for_each(|(version, bytes)| self.versions.insert(version, bytes));
            self.rebuild_snapshot(true_ms);
        }
        self.ledger
            .set_peers_unknown(self.exchange.no_accusation_reason(now).is_some());
        self.try_to_publish(store, is_cut_off, true_ms);
        if true_ms - self.committed_at >= 1_000 {
            self.ledger.tick(
                &self.snapshot,
                Moment {
                    now: second,
                    monotonic: now.monotonic,
                },
            );
            self.commit(true_ms);
        }
        let confirmed = self.exchange.last_confirmed_entry(now);
        let mut over = Vec::new();
        let waiting = std::mem::take(&mut self.waiting);
        for waits in waiting {
            if confirmed.is_some_and(|confirmed| waits.ticket <= confirmed) {
                let monotonic = waits.deadline - crate::exchange::CONFIRM_TIMEOUT;
                let word = match self.judge_request(&waits.request, monotonic, true) {
                    Some(Kind::Violation) => WaitOutcome::Violation,
                    _ => WaitOutcome::TakenBack,
                };
                over.push((waits.request, word));
            } else if now.monotonic >= waits.deadline {
                over.push((waits.request, WaitOutcome::Late));
            } else {
                self.waiting.push(waits);
            }
        }
        over
    }

    fn try_to_publish(&mut self, store: &SimulatedServer, is_cut_off: bool, true_ms: i64) {
        if self.wanted == self.version {
            return;
        }
        let now = self.exchange_time(true_ms);
        let second = self.own_time(true_ms);
        let mut log = self.log.clone();
        record_publication(&mut log, self.wanted, second);
        let site = &SITES[self.wanted];
        let files = [(site.robots_txt.version, site.robots_txt.body.clone())];
        if self
            .exchange
            .announce(&mut SimulatedStore(store, is_cut_off), now, &log, &files)
            .is_ok()
        {
            (self.log, self.version) = (log, self.wanted);
            self.versions
                .insert(site.robots_txt.version, site.robots_txt.body.clone());
            // As the state store does: before it takes effect.
            self.commit(true_ms);
            self.rebuild_snapshot(true_ms);
            self.exchange.log.set_log(&self.log);
        }
    }

    /// Whether it answers requests for robots.txt with a file.
    pub fn serves_robots_txt(&self, true_ms: i64) -> bool {
        self.progress.robots_txt_until.load(Ordering::SeqCst) > self.own_time(true_ms).0
    }

    /// Serves robots.txt; says which version.
    pub fn serve_robots_txt(&mut self, agent: usize, true_ms: i64) -> usize {
        let snapshot = self.snapshot.clone();
        let facts = self.request_facts(agent, b"/robots.txt", self.own_time(true_ms));
        let claimant = SiteClaim::find(&snapshot, Registry::builtin(), &facts).expect("a site");
        self.ledger.record_served(
            Registry::builtin(),
            claimant.entry,
            HOST,
            claimant.claim,
            facts.now,
        );
        self.version
    }

    fn request_facts<'a>(
        &self,
        agent: usize,
        target: &'a [u8],
        now: Timestamp,
    ) -> RequestFacts<'a> {
        let user_agent = AGENTS[agent].as_bytes();
        RequestFacts {
            host: HOST,
            target,
            method: b"GET",
            user_agent,
            client: None,
            identity: Proven::Unverified,
            now,
        }
    }

    fn judge_request(
        &self,
        request: &TestRequest,
        monotonic: Duration,
        peers_confirmed: bool,
    ) -> Option<Kind> {
        let snapshot = self.snapshot.clone();
        let registry = Registry::builtin();
        let facts = self.request_facts(request.agent, request.path.as_bytes(), request.at);
        let claimant = SiteClaim::find(&snapshot, registry, &facts)?;
        let moment = Moment {
            now: request.at,
            monotonic,
        };
        let (cached_versions, visit) =
            self.ledger
                .cached_versions(registry, claimant, HOST, moment, peers_confirmed);
        if !peers_confirmed {
            self.ledger
                .record_request(claimant.entry, HOST, visit, request.at);
        }
        let case = RequestToJudge {
            registry,
            facts,
            claimant,
            cached_versions,
        };
        Some(
            decide_for(
                &case,
                RecentBehaviour::default(),
                &mut DecisionScratch::default(),
            )
            .kind,
        )
    }

    /// A crawler asks for a page. What was found at once, unless that has to wait.
    pub fn request_page(
        &mut self,
        agent: usize,
        path: &str,
        is_violator: bool,
        true_ms: i64,
    ) -> Option<Kind> {
        let now = self.exchange_time(true_ms);
        let request = TestRequest {
            agent,
            path: path.to_owned(),
            at: self.own_time(true_ms),
            is_violator,
            true_ms,
        };
        let kind = self.judge_request(&request, now.monotonic, false)?;
        if kind != Kind::Violation {
            return Some(kind);
        }
        let ticket = self.progress.next_entry.load(Ordering::SeqCst);
        let deadline = now.monotonic + crate::exchange::CONFIRM_TIMEOUT;
        self.waiting.push(WaitingRequest {
            ticket,
            deadline,
            request,
        });
        None
    }

    /// The end in order; what it leaves.
    pub fn stop(mut self, store: &SimulatedServer, is_cut_off: bool, true_ms: i64) -> InstanceDisk {
        let now = self.exchange_time(true_ms);
        self.disk.has_left = self
            .exchange
            .leave_store(&mut SimulatedStore(store, is_cut_off), now)
            .is_ok();
        self.commit(true_ms);
        self.disk.ended = true;
        self.disk
    }
}

fn record_publication(log: &mut PublicationLog, version: usize, now: Timestamp) {
    let site = &SITES[version];
    let current = PublishedSite {
        site: "shop",
        hosts: site.policy.hosts.iter().map(|host| &host.value).collect(),
        published: PublishedRobots::Version(site.robots_txt.version),
        identities: 7,
        has_page_tags: false,
        declared: None,
    };
    log.record(&[current], now);
}

fn build_snapshot(
    log: &PublicationLog,
    others: &[PublicationLog],
    versions: &mut VersionStore,
    version: usize,
    now: Timestamp,
) -> Snapshot {
    let horizon = HistoryHorizon {
        max_cache_time: LONGEST,
        now,
    };
    let known = log.build_histories(others, versions, Registry::builtin(), horizon);
    let mut entry = SiteEntry::new(SITES[version].clone(), now);
    entry.since = log.in_force_since("shop").unwrap_or(now);
    Snapshot::new(vec![entry], 1).with_histories(PublicationHistories::new(known), now)
}

/// Instances by number.
pub type Instances = BTreeMap<usize, SimulatedInstance>;
