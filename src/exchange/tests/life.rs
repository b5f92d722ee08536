//! One instance of a simulated life: the exchange, the ledger and the history of one process,
//! without threads and files.

use super::orders::OfOperators;
use super::simulated::{OnThread, Simulated};
use crate::clock::Moment;
use crate::crawlers::Registry;
use crate::exchange::{Before, Exchange, Gauge, Identity, Member, Memory, Now, Outbox};
use crate::facts::{AnyFact, Fact};
use crate::ledger::Ledger;
use crate::policy::{HostHistories, Site, SiteEntry, Snapshot};
use crate::publications::{Current, Horizon, PublicationLog, Published, VersionStore};
use crate::time::Timestamp;
use crate::verdict::{
    Behaviour, Case, Claimant, Facts, Identity as Proven, Kind, Scratch, decide_for, load,
};
use crate::yaml::Source;
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
        let source = Source {
            name: "shop.yaml".into(),
            text: text.as_str().into(),
        };
        load("shop", &source, Registry::builtin())
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
#[derive(Clone, Debug, Default)]
pub struct Disk {
    id: String,
    log: PublicationLog,
    /// What was served and observed.
    facts: Vec<Fact>,
    orders: OfOperators,
    identity: Option<Identity>,
    run: Option<String>,
    has_left: bool,
    committed: Option<Timestamp>,
    ended: bool,
}

/// A request that waits for the word of the other instances.
pub struct Waiting {
    ticket: u64,
    deadline: Duration,
    pub request: Request,
}

/// What became of a request that waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// It is a violation.
    Violation,
    /// What came in takes the accusation back.
    TakenBack,
    /// The others did not say in time.
    Late,
}

/// A request, as the life knows it.
#[derive(Clone, Debug)]
pub struct Request {
    pub agent: usize,
    pub path: String,
    pub at: Timestamp,
    pub is_violator: bool,
    pub true_ms: i64,
}

pub struct Instance {
    pub disk: Disk,
    pub exchange: Exchange,
    pub gauge: Arc<Gauge>,
    ledger: Arc<Ledger>,
    /// Marks and pauses.
    pub orders: OfOperators,
    log: PublicationLog,
    versions: VersionStore,
    others: Vec<PublicationLog>,
    snapshot: Arc<Snapshot>,
    pub version: usize,
    pub wanted: usize,
    /// Milliseconds by which its clock is ahead of the truth.
    pub ahead: i64,
    began: i64,
    pub waiting: Vec<Waiting>,
    committed_at: i64,
}

struct OfLedger<'a> {
    ledger: &'a Ledger,
    orders: &'a mut OfOperators,
    now: Timestamp,
}

impl Memory for OfLedger<'_> {
    fn everything(&self) -> Vec<Fact> {
        let mut facts = self.ledger.everything(self.now);
        facts.extend(self.orders.everything());
        facts
    }

    fn apply(&mut self, fact: Fact) {
        match fact.fact {
            AnyFact::Served(served) => self.ledger.served_elsewhere(&served, fact.at, self.now),
            AnyFact::Observation(observed) => self.ledger.observed_elsewhere(&observed, self.now),
            _ => self.orders.apply(fact),
        }
    }

    fn begin(&mut self, _is_anew: bool) {
        self.ledger.begin_anew(self.now);
    }
}

impl Disk {
    /// Whether the process before ended a moment ago.
    fn is_continued(&self, now: Timestamp) -> bool {
        let longest = if self.ended { 60 } else { 20 };
        self.committed
            .is_some_and(|at| (at.0 - 5..=at.0 + longest).contains(&now.0))
    }

    /// What the exchange is told of the process before.
    fn before(&self) -> Before {
        Before {
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
    fn ledger(&self, version: usize, now: Timestamp) -> Ledger {
        let entry = SiteEntry::new(SITES[version].clone(), now);
        let moment = Moment {
            now,
            lived: Duration::ZERO,
        };
        let ledger = Ledger::in_memory(Vec::new(), &Snapshot::new(vec![entry], 0), moment);
        for fact in self.facts.clone() {
            match fact.fact {
                AnyFact::Observation(mut observed) => {
                    if !self.is_continued(now) {
                        observed.since = now;
                    }
                    ledger.observed_elsewhere(&observed, now);
                }
                AnyFact::Served(served) => ledger.served_elsewhere(&served, fact.at, now),
                _ => {}
            }
        }
        ledger
    }
}

impl Instance {
    /// Starts a process with what the one before left on the disk.
    pub fn start(
        number: usize,
        disk: Disk,
        run: u64,
        version: usize,
        ahead: i64,
        true_ms: i64,
    ) -> Instance {
        let now = Timestamp((true_ms + ahead).div_euclid(1_000));
        let mut disk = disk;
        if disk.id.is_empty() {
            disk.id = format!("{run:016x}");
        }
        let mut log = disk.log.clone();
        if !disk.is_continued(now) && disk.committed.is_some() {
            log.forget_identities();
            log.set_broken(now);
        }
        let mut versions = VersionStore::default();
        let before = disk.before();
        let me = Member {
            id: disk.id.clone(),
            run: format!("{}.{run:08x}", disk.id),
            host: number.to_string(),
            crawlers: "same".into(),
            ..Member::default()
        };
        let outbox = Arc::<Outbox>::default();
        let gauge = Arc::<Gauge>::default();
        record(&mut log, version, now);
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
        let snapshot = snapshot(&log, &[], &mut versions, version, now);
        let ledger = disk.ledger(version, now);
        if let Some(since) = before.unreported_since {
            ledger.serve_everyone_since(&snapshot, since, now);
        }
        disk.orders.tell(outbox.clone());
        ledger.subscribers().add(outbox.clone());
        ledger.set_peers_unknown(true);
        let exchange = Exchange::new(
            me.clone(),
            before,
            outbox,
            gauge.clone(),
            log.clone(),
            files,
        );
        disk.run = Some(me.run);
        disk.ended = false;
        disk.has_left = false;
        let mut instance = Instance {
            orders: disk.orders.clone(),
            disk,
            exchange,
            gauge,
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

    pub fn now(&self, true_ms: i64) -> Now {
        let lived =
            Duration::from_millis(u64::try_from(true_ms - self.began).expect("time goes on"));
        Now {
            milliseconds: true_ms + self.ahead,
            lived,
        }
    }

    pub fn second(&self, true_ms: i64) -> Timestamp {
        Timestamp((true_ms + self.ahead).div_euclid(1_000))
    }

    /// What the state store does about once a second.
    fn commit(&mut self, true_ms: i64) {
        self.disk.facts = self.ledger.everything(Timestamp(0));
        self.disk.log = self.log.clone();
        self.disk.orders = self.orders.clone();
        self.disk.identity = self
            .exchange
            .settled()
            .cloned()
            .or(self.disk.identity.take());
        self.disk.committed = Some(self.second(true_ms));
        self.committed_at = true_ms;
    }

    fn rebuild(&mut self, true_ms: i64) {
        let now = self.second(true_ms);
        self.snapshot = Arc::new(snapshot(
            &self.log,
            &self.others,
            &mut self.versions,
            self.version,
            now,
        ));
        self.ledger.settle(&self.snapshot, now);
    }

    /// A turn of the exchange; what became of the requests that waited.
    pub fn turn(
        &mut self,
        store: &Simulated,
        is_cut_off: bool,
        true_ms: i64,
    ) -> Vec<(Request, Word)> {
        let (now, second) = (self.now(true_ms), self.second(true_ms));
        let ledger = self.ledger.clone();
        let mut memory = OfLedger {
            ledger: &ledger,
            orders: &mut self.orders,
            now: second,
        };
        let asks = !self.waiting.is_empty();
        self.exchange
            .turn(&mut OnThread(store, is_cut_off), &|| now, &mut memory, asks);
        if let Some(others) = self.exchange.others(now) {
            self.others = others.logs;
            others
                .files
                .into_iter()
                .for_each(|(version, bytes)| self.versions.insert(version, bytes));
            self.rebuild(true_ms);
        }
        self.ledger
            .set_peers_unknown(self.exchange.hindrance(now).is_some());
        self.try_to_publish(store, is_cut_off, true_ms);
        if true_ms - self.committed_at >= 1_000 {
            self.ledger.tick(
                &self.snapshot,
                Moment {
                    now: second,
                    lived: now.lived,
                },
            );
            self.commit(true_ms);
        }
        let confirmed = self.exchange.confirmed(now);
        let mut over = Vec::new();
        let waiting = std::mem::take(&mut self.waiting);
        for waits in waiting {
            if confirmed.is_some_and(|confirmed| waits.ticket <= confirmed) {
                let lived = waits.deadline - crate::exchange::CONFIRM_WITHIN;
                let word = match self.kind(&waits.request, lived, true) {
                    Some(Kind::Violation) => Word::Violation,
                    _ => Word::TakenBack,
                };
                over.push((waits.request, word));
            } else if now.lived >= waits.deadline {
                over.push((waits.request, Word::Late));
            } else {
                self.waiting.push(waits);
            }
        }
        over
    }

    fn try_to_publish(&mut self, store: &Simulated, is_cut_off: bool, true_ms: i64) {
        if self.wanted == self.version {
            return;
        }
        let (now, second) = (self.now(true_ms), self.second(true_ms));
        let mut log = self.log.clone();
        record(&mut log, self.wanted, second);
        let site = &SITES[self.wanted];
        let files = [(site.robots_txt.version, site.robots_txt.body.clone())];
        if self
            .exchange
            .announce(&mut OnThread(store, is_cut_off), now, &log, &files)
            .is_ok()
        {
            (self.log, self.version) = (log, self.wanted);
            self.versions
                .insert(site.robots_txt.version, site.robots_txt.body.clone());
            // As the state store does: before it takes effect.
            self.commit(true_ms);
            self.rebuild(true_ms);
            self.exchange.published(&self.log);
        }
    }

    /// Whether it answers requests for robots.txt with a file.
    pub fn speaks(&self, true_ms: i64) -> bool {
        self.gauge.speaks_until.load(Ordering::SeqCst) > self.second(true_ms).0
    }

    /// Serves robots.txt; says which version.
    pub fn serve(&mut self, agent: usize, true_ms: i64) -> usize {
        let snapshot = self.snapshot.clone();
        let facts = self.facts(agent, b"/robots.txt", self.second(true_ms));
        let claimant = Claimant::of(&snapshot, Registry::builtin(), &facts).expect("a site");
        self.ledger.served(
            Registry::builtin(),
            claimant.entry,
            HOST,
            claimant.claim,
            facts.now,
        );
        self.version
    }

    fn facts<'a>(&self, agent: usize, target: &'a [u8], now: Timestamp) -> Facts<'a> {
        let user_agent = AGENTS[agent].as_bytes();
        Facts {
            host: HOST,
            target,
            method: b"GET",
            user_agent,
            client: None,
            identity: Proven::Unverified,
            now,
        }
    }

    fn kind(&self, request: &Request, lived: Duration, has_heard_all: bool) -> Option<Kind> {
        let snapshot = self.snapshot.clone();
        let registry = Registry::builtin();
        let facts = self.facts(request.agent, request.path.as_bytes(), request.at);
        let claimant = Claimant::of(&snapshot, registry, &facts)?;
        let moment = Moment {
            now: request.at,
            lived,
        };
        let (cached_versions, visit) =
            self.ledger
                .look(registry, claimant, HOST, moment, has_heard_all);
        if !has_heard_all {
            self.ledger
                .note_request(claimant.entry, HOST, visit, request.at);
        }
        let case = Case {
            registry,
            facts,
            claimant,
            cached_versions,
        };
        Some(decide_for(&case, Behaviour::default(), &mut Scratch::default()).kind)
    }

    /// A crawler asks for a page. What was found at once, unless that has to wait.
    pub fn ask(
        &mut self,
        agent: usize,
        path: &str,
        is_violator: bool,
        true_ms: i64,
    ) -> Option<Kind> {
        let now = self.now(true_ms);
        let request = Request {
            agent,
            path: path.to_owned(),
            at: self.second(true_ms),
            is_violator,
            true_ms,
        };
        let kind = self.kind(&request, now.lived, false)?;
        if kind != Kind::Violation {
            return Some(kind);
        }
        let ticket = self.gauge.next_entry.load(Ordering::SeqCst);
        let deadline = now.lived + crate::exchange::CONFIRM_WITHIN;
        self.waiting.push(Waiting {
            ticket,
            deadline,
            request,
        });
        None
    }

    /// The end in order; what it leaves.
    pub fn end(mut self, store: &Simulated, is_cut_off: bool, true_ms: i64) -> Disk {
        let now = self.now(true_ms);
        self.disk.has_left = self
            .exchange
            .leave(&mut OnThread(store, is_cut_off), now)
            .is_ok();
        self.commit(true_ms);
        self.disk.ended = true;
        self.disk
    }
}

fn record(log: &mut PublicationLog, version: usize, now: Timestamp) {
    let site = &SITES[version];
    let current = Current {
        site: "shop",
        hosts: site.policy.hosts.iter().map(|host| &host.value).collect(),
        published: Published::Version(site.robots_txt.version),
        identities: 7,
        tells: false,
        declared: None,
    };
    log.record(&[current], now);
}

fn snapshot(
    log: &PublicationLog,
    others: &[PublicationLog],
    versions: &mut VersionStore,
    version: usize,
    now: Timestamp,
) -> Snapshot {
    let horizon = Horizon {
        longest: LONGEST,
        now,
    };
    let known = log.histories_beside(others, versions, Registry::builtin(), horizon);
    let mut entry = SiteEntry::new(SITES[version].clone(), now);
    entry.since = log.in_force_since("shop").unwrap_or(now);
    Snapshot::new(vec![entry], 1).with_histories(HostHistories::new(known), now)
}

/// Instances by number.
pub type Instances = BTreeMap<usize, Instance>;
