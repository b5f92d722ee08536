//! Tests of the ledger, which records which robots.txt each crawler was served. Random tests
//! compare the ledger with [`NaiveHistory`], a slow model that computes the same from everything
//! that ever happened. In other random tests, an [`ObedientCrawler`] must never be called a
//! violator. Further tests cover the bounds of the ledger and its stored facts.
//!
//! `LEDGER_LIVES=10000` runs more random tests with restarts and upgrades.

mod caches;
mod moved;
mod network_list_health;
mod restart;
mod upgrades;

use super::Ledger;
use super::host::{HostOwner, HostRecord};
use super::host_table::{HostTable, host_key};
use crate::clock::Moment;
use crate::crawlers::{Claim, Registry};
use crate::policy::{
    ParsedRobotsVersion, PublicationHistories, PublicationHistory, RobotsVersionId, Site,
    SiteEntry, Snapshot, SupersededVersion,
};
use crate::state::StateStore;
use crate::time::Timestamp;
use crate::verdict::{
    CachedVersions, DecisionScratch, Identity, Kind, RecentBehaviour, RequestFacts, RequestToJudge,
    SiteClaim, decide_for, load_site,
};
use crate::yaml::SourceFile;
use proptest::prelude::*;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

const HOUR: i64 = 3_600;
const DAY: i64 = 24 * HOUR;
/// The longest that any crawler keeps a copy, and the hour that a slow answer may take: what `live`
/// keeps.
const KEPT: i64 = 7 * DAY + HOUR;

/// Versions that each close some of the four paths.
static SITES: LazyLock<Vec<Arc<Site>>> = LazyLock::new(|| {
    let closed = |version: usize| -> String {
        (0..4)
            .filter(|path| version >> path & 1 == 1)
            .map(|path| format!("/p{path}/, "))
            .collect()
    };
    (0..16)
        .map(|version| site_with_rules(&format!("disallow: [{}/always/]", closed(version)), ""))
        .collect()
});

fn site_with_rules(rules: &str, enforcement: &str) -> Arc<Site> {
    let text = format!(
        "hosts: [a.example, b.example]\nrobots: {{ origin: replace, groups: [{{ agents: '*', {rules} }}] }}\nenforcement: {{ mode: enforce{enforcement} }}\n"
    );
    let (site, findings) = load_site(
        "shop",
        &SourceFile {
            name: "shop.yaml".into(),
            text: text.as_str().into(),
        },
        Registry::builtin(),
    );
    site.unwrap_or_else(|| panic!("{text}\n{findings:?}"))
}

fn user_agent(crawler: usize) -> &'static str {
    [
        "bingbot/2.0",
        "Googlebot/2.1",
        "Googlebot-Image/1.0",
        "DuckAssistBot/1.2",
        "Mozilla/5.0 (compatible; SomeBot/1; +http://a.example/bot)",
    ][crawler]
}

/// Crawlers that share a cache, and how long each of them may go by a copy.
const CACHES: [(usize, i64); 5] = [(0, DAY), (1, DAY), (1, DAY), (2, 3 * DAY), (3, DAY)];
const HOSTS: [&str; 2] = ["a.example", "B.example:80"];

fn parse_version(site: &Site) -> Arc<ParsedRobotsVersion> {
    Arc::new(ParsedRobotsVersion::parse(
        site.robots_txt.body.clone(),
        Registry::builtin(),
    ))
}

/// What the owner of a policy does to a site, and what the history of its hosts becomes by it.
struct LedgerWorld {
    entry: SiteEntry,
    history: PublicationHistory,
    ledger: Ledger,
    disk: LedgerDisk,
    now: i64,
    /// How far the clock on the wall is from what it was at first.
    set: i64,
    /// The process before, which still answers.
    before: Option<upgrades::DrainingProcess>,
}

/// Without a past, and with crawlers told apart in the same way since ever.
fn new_history(now: Timestamp) -> PublicationHistory {
    PublicationHistory {
        identity_epoch: Timestamp(i64::MIN / 2),
        ..PublicationHistory::new(now)
    }
}

fn snapshot_with_history(snapshot: Snapshot, history: &PublicationHistory) -> Snapshot {
    snapshot.with_histories(
        PublicationHistories::new(vec![(None, Arc::new(history.clone()))]),
        Timestamp(0),
    )
}

impl LedgerWorld {
    fn new(state: Option<&Path>, version: usize, now: i64) -> LedgerWorld {
        let entry = SiteEntry::new(SITES[version].clone(), Timestamp(now));
        let history = new_history(Timestamp(now));
        let snapshot = snapshot_with_history(Snapshot::new(vec![entry.clone()], 0), &history);
        let (ledger, disk) = LedgerDisk::open(state, &snapshot, moment(now, 0));
        LedgerWorld {
            entry,
            history,
            ledger,
            disk,
            now,
            set: 0,
            before: None,
        }
    }

    fn snapshot(&self) -> Snapshot {
        snapshot_with_history(Snapshot::new(vec![self.entry.clone()], 0), &self.history)
    }

    fn moment(&self) -> Moment {
        self.disk.set_time(moment(self.now, self.set))
    }

    /// A second of the ledger's thread, after which everything is on the disk.
    fn tick(&self) {
        self.ledger.tick(&self.snapshot(), self.moment());
        self.disk.commit(self.moment());
    }

    /// The end of a run, in order or by a crash.
    fn end_run(&mut self, in_order: bool) {
        let snapshot = self.snapshot();
        let moment = self.moment();
        self.disk
            .end_run(&mut self.ledger, in_order, &snapshot, moment);
    }

    /// The start of the next one.
    fn start_run(&mut self) {
        let snapshot = self.snapshot();
        let moment = self.moment();
        self.ledger = self.disk.start_run(&snapshot, moment);
    }

    fn wall_time(&self) -> Timestamp {
        self.moment().now
    }

    /// The site that is in force, as a place in [`SITES`].
    fn version(&self) -> usize {
        SITES
            .iter()
            .position(|site| Arc::ptr_eq(site, &self.entry.site))
            .expect("it is one of them")
    }

    fn publish(&mut self, version: usize) {
        self.publish_site(SITES[version].clone());
    }

    fn publish_site(&mut self, site: Arc<Site>) {
        let (now, before) = (
            self.wall_time(),
            std::mem::replace(&mut self.entry.site, site),
        );
        let version = self.entry.site.robots_txt.version;
        if version == before.robots_txt.version {
            return;
        }
        let superseded = &mut self.history.superseded;
        superseded
            .retain(|old| ![version, before.robots_txt.version].contains(&old.parsed.version));
        superseded.insert(
            0,
            SupersededVersion {
                parsed: parse_version(&before),
                since: self.entry.since,
                superseded_at: now,
            },
        );
        superseded
            .retain(|version| now.since(version.superseded_at) <= Duration::from_secs(KEPT as u64));
        self.history.has_unique_date = superseded.iter().all(|version| version.since != now);
        (self.entry.since, self.history.since) = (now, now);
    }

    fn fetch(&self, crawler: usize, host: usize) {
        let claim = Registry::builtin().identify(user_agent(crawler).as_bytes());
        self.ledger.record_served(
            Registry::builtin(),
            &self.entry,
            HOSTS[host].as_bytes(),
            claim,
            self.wall_time(),
        );
    }

    fn request_kind(&self, crawler: usize, host: usize, path: &str) -> (Kind, bool) {
        let facts = RequestFacts {
            host: HOSTS[host].as_bytes(),
            target: path.as_bytes(),
            method: b"GET",
            user_agent: user_agent(crawler).as_bytes(),
            client: None,
            identity: Identity::Unverified,
            now: self.wall_time(),
        };
        let (snapshot, registry) = (self.snapshot(), Registry::builtin());
        let claimant = SiteClaim::find(&snapshot, registry, &facts).expect("a site has the host");
        let cached_versions =
            cached_versions_of_request(&self.ledger, claimant, facts.host, self.moment());
        let case = RequestToJudge {
            registry,
            facts,
            claimant,
            cached_versions,
        };
        let decision = decide_for(
            &case,
            RecentBehaviour::default(),
            &mut DecisionScratch::default(),
        );
        (decision.kind, decision.never_fetched)
    }
}

/// What a request finds that counts.
fn cached_versions_of_request<'a>(
    ledger: &Ledger,
    claimant: SiteClaim<'a>,
    host: &[u8],
    moment: Moment,
) -> CachedVersions<'a> {
    let (cached_versions, visit) =
        ledger.cached_versions(Registry::builtin(), claimant, host, moment, false);
    ledger.record_request(claimant.entry, host, visit, moment.now);
    cached_versions
}

fn moment(now: i64, set: i64) -> Moment {
    Moment {
        now: Timestamp(now + set),
        monotonic: Duration::from_secs(now as u64),
    }
}

/// The state store of a ledger, by a clock that the test sets.
struct LedgerDisk {
    directory: Option<PathBuf>,
    store: StateStore,
    shown: Arc<Mutex<Moment>>,
}

impl LedgerDisk {
    fn open(directory: Option<&Path>, snapshot: &Snapshot, moment: Moment) -> (Ledger, LedgerDisk) {
        let shown = Arc::new(Mutex::new(moment));
        let store = StateStore::open(None, Arc::new(move || moment))
            .expect("in memory")
            .0;
        let mut disk = LedgerDisk {
            directory: directory.map(Path::to_owned),
            store,
            shown,
        };
        (disk.start_run(snapshot, moment), disk)
    }

    /// What time it is for the store.
    fn set_time(&self, moment: Moment) -> Moment {
        *self.shown.lock().expect("shown") = moment;
        moment
    }

    fn start_run(&mut self, snapshot: &Snapshot, moment: Moment) -> Ledger {
        self.set_time(moment);
        let shown = self.shown.clone();
        let now = Arc::new(move || *shown.lock().expect("shown"));
        let (store, remembered) =
            StateStore::open(self.directory.as_deref(), now).expect("a state directory");
        let (ledger, facts) =
            Ledger::open(store.clone(), &remembered, Vec::new(), snapshot, moment);
        store.begin(facts).expect("begun");
        self.store = store;
        ledger
    }

    fn commit(&self, moment: Moment) {
        self.set_time(moment);
        self.store.commit(Vec::new()).expect("committed");
    }

    /// The state directory is given up with the last share of the store.
    fn end_run(
        &mut self,
        ledger: &mut Ledger,
        in_order: bool,
        snapshot: &Snapshot,
        moment: Moment,
    ) {
        self.set_time(moment);
        if in_order {
            ledger.flush(snapshot, moment);
            self.store.close().expect("closed");
        }
        *ledger = Ledger::in_memory(Vec::new(), &Snapshot::default(), moment);
        self.store = StateStore::open(None, Arc::new(move || moment))
            .expect("in memory")
            .0;
    }
}

/// One thing that happens; `Pass` is in minutes.
#[derive(Clone, Debug)]
enum WorldEvent {
    Pass(i64),
    Publish(usize),
    Fetch(usize, usize),
    Ask(usize, usize, usize),
    Restart {
        down: i64,
        in_order: bool,
        version: Option<usize>,
    },
    LoseState,
    SetClock(i64),
    Tick,
    /// Another process takes over, perhaps with another version. The one before still answers.
    Upgrade(Option<usize>),
    /// The same, and the next process dies. It may have served a crawler by then.
    FailedUpgrade(usize, Option<usize>),
    /// The process before serves a crawler.
    FetchBefore(usize),
    /// The process before ends, in order or not.
    EndBefore(bool),
}

/// Mostly all is open or all is closed: that is where copies differ.
fn any_version() -> impl Strategy<Value = usize> {
    prop_oneof![3 => Just(0usize), 3 => Just(15), 2 => 0usize..16]
}

fn any_quiet_event() -> impl Strategy<Value = WorldEvent> {
    prop_oneof![
        6 => (1i64..400).prop_map(WorldEvent::Pass),
        1 => (1_000i64..2_000).prop_map(WorldEvent::Pass),
        3 => any_version().prop_map(WorldEvent::Publish),
        6 => (0usize..5, 0usize..2).prop_map(|(crawler, host)| WorldEvent::Fetch(crawler, host)),
        9 => (0usize..5, 0usize..2, 0usize..4).prop_map(|(crawler, host, path)| WorldEvent::Ask(crawler, host, path)),
        2 => Just(WorldEvent::Tick),
    ]
}

fn any_quiet_events() -> impl Strategy<Value = Vec<WorldEvent>> {
    proptest::collection::vec(any_quiet_event(), 1..120)
}

/// One crawler of each kind on one host, after two days without trouble.
fn any_troubled_events() -> impl Strategy<Value = Vec<WorldEvent>> {
    let crawler = || prop_oneof![4 => Just(0usize), 1 => Just(3)];
    let event = prop_oneof![
        3 => (1i64..400).prop_map(WorldEvent::Pass),
        4 => any_version().prop_map(WorldEvent::Publish),
        4 => crawler().prop_map(|crawler| WorldEvent::Fetch(crawler, 0)),
        9 => (crawler(), 0usize..4).prop_map(|(crawler, path)| WorldEvent::Ask(crawler, 0, path)),
        3 => (prop_oneof![0i64..30, 0i64..4_000], any::<bool>(), proptest::option::of(any_version()))
            .prop_map(|(down, in_order, version)| WorldEvent::Restart { down, in_order, version }),
        1 => Just(WorldEvent::LoseState),
        2 => prop_oneof![-40 * HOUR..40 * HOUR, Just(30 * HOUR)].prop_map(WorldEvent::SetClock),
        2 => Just(WorldEvent::Tick),
        3 => proptest::option::of(any_version()).prop_map(WorldEvent::Upgrade),
        1 => (any_version(), proptest::option::of(crawler())).prop_map(|(version, served)| WorldEvent::FailedUpgrade(version, served)),
        4 => crawler().prop_map(WorldEvent::FetchBefore),
        2 => any::<bool>().prop_map(WorldEvent::EndBefore),
    ];
    proptest::collection::vec(event, 4..20)
}

/// The definition of 5.4 over everything that ever happened, with nothing remembered in between.
#[derive(Default)]
struct NaiveHistory {
    /// Who was served what, where, when: cache, host, version, moment.
    served: Vec<(usize, usize, usize, i64)>,
    /// When which version came into force.
    published: Vec<(i64, usize)>,
    /// When somebody asked for which host.
    seen: Vec<(usize, i64)>,
}

impl NaiveHistory {
    /// Since when a host is observed: the first request after the last silence of a day.
    fn observed_since(&self, host: usize, now: i64) -> Option<i64> {
        let seen: Vec<i64> = self
            .seen
            .iter()
            .filter(|(at, _)| *at == host)
            .map(|(_, moment)| *moment)
            .collect();
        let mut since = *seen.first()?;
        let later = seen.iter().copied().skip(1).chain([now]);
        for (before, moment) in seen.iter().copied().zip(later) {
            if moment - before > DAY {
                since = moment;
            }
        }
        // Whoever asks now may be the one to begin it.
        (now - seen.last()? <= DAY).then_some(since)
    }

    fn version_in_force(&self) -> usize {
        self.published[self.published.len() - 1].1
    }

    fn kind(&self, crawler: usize, host: usize, path: usize, now: i64) -> (Kind, bool) {
        let closes = |version: usize| version >> path & 1 == 1;
        if !closes(self.version_in_force()) {
            return (Kind::Allowed, false);
        }
        let (cache, window) = CACHES[crawler];
        let since = self.observed_since(host, now);
        let is_observed = since.is_some_and(|since| now - since > window);
        let cached: Vec<usize> = self
            .served
            .iter()
            .filter(|(of, at, _, moment)| (*of, *at) == (cache, host) && now - moment <= window)
            .map(|(_, _, version, _)| *version)
            .collect();
        // Otherwise every version that was in force within the window may have been served before.
        let unseen = self
            .published
            .windows(2)
            .filter(|pair| !is_observed && now - pair[1].0 <= window);
        let unseen: Vec<usize> = unseen.map(|pair| pair[0].1).collect();
        if cached
            .iter()
            .chain(&unseen)
            .any(|version| !closes(*version))
        {
            return (Kind::StaleCopy, false);
        }
        match is_observed {
            true => (Kind::Violation, cached.is_empty()),
            false => (Kind::Unproven, false),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn ledger_agrees_with_the_definition(first in 0usize..16, events in any_quiet_events()) {
        let mut world = LedgerWorld::new(None, first, 1_000 * DAY);
        let mut history = NaiveHistory { published: vec![(world.now, first)], ..NaiveHistory::default() };
        for (number, event) in events.iter().enumerate() {
            match *event {
                WorldEvent::Pass(minutes) => world.now += minutes * 60,
                WorldEvent::Publish(version) => {
                    world.publish(version);
                    if history.version_in_force() != version {
                        history.published.push((world.now, version));
                    }
                }
                WorldEvent::Fetch(crawler, host) => {
                    world.fetch(crawler, host);
                    history.served.push((CACHES[crawler].0, host, history.version_in_force(), world.now));
                    history.seen.push((host, world.now));
                }
                WorldEvent::Ask(crawler, host, path) => {
                    let expected = history.kind(crawler, host, path, world.now);
                    let said = world.request_kind(crawler, host, &format!("/p{path}/"));
                    history.seen.push((host, world.now));
                    prop_assert_eq!(said, expected, "event {} of {:?}", number, events);
                }
                WorldEvent::Tick => world.tick(),
                _ => {}
            }
        }
    }
}

/// A crawler that obeys: it goes by any copy that it fetched within its time, and asks only for
/// what that copy allows.
struct ObedientCrawler {
    /// Version and when it was fetched, by the monotonic time: it has a clock of its own.
    copies: Vec<(usize, i64)>,
}

/// How many lives with trouble are played.
fn lives_to_play() -> u32 {
    std::env::var("LEDGER_LIVES")
        .ok()
        .and_then(|lives| lives.parse().ok())
        .unwrap_or(200)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(lives_to_play()))]

    /// Whatever happens to crawlgate: restarts, crashes, upgrades, a state that is lost, a clock
    /// that is set; and whoever else fetches in its name.
    #[test]
    fn obedient_crawler_is_never_called_a_violator(first in any_version(), before in any_version(), events in any_troubled_events()) {
        let directory = tempfile::tempdir().expect("a directory");
        let mut world = LedgerWorld::new(Some(directory.path()), first, 1_000 * DAY);
        // Each of the caches was served something else here before crawlgate was.
        let mut crawlers: Vec<Vec<ObedientCrawler>> = (0..4)
            .map(|_| (0..2).map(|_| ObedientCrawler { copies: vec![(before, world.now - HOUR)] }).collect())
            .collect();
        for _ in 0..8 {
            world.now += 6 * HOUR;
            world.request_kind(4, 0, "/");
            world.tick();
        }
        for event in &events {
            match *event {
                WorldEvent::Pass(minutes) => {
                    // The thread that ticks is not the one that is late.
                    world.now += minutes * 60;
                    world.pass_facts_on();
                    world.tick();
                }
                WorldEvent::Publish(version) => world.publish(version),
                WorldEvent::Fetch(crawler, host) => {
                    world.fetch(crawler, host);
                    crawlers[CACHES[crawler].0][host].copies.push((world.version(), world.now));
                }
                WorldEvent::Ask(crawler, host, path) => {
                    let (cache, window) = CACHES[crawler];
                    let allows = |(version, at): &(usize, i64)| world.now - at <= window && version >> path & 1 == 0;
                    let allowed = crawlers[cache][host].copies.iter().any(allows);
                    let (kind, _) = world.request_kind(crawler, host, &format!("/p{path}/"));
                    prop_assert!(!(allowed && kind == Kind::Violation), "{:?}", events);
                }
                WorldEvent::Restart { down, in_order, version } => {
                    world.end_predecessor(true);
                    if !in_order {
                        // What a crash loses has tests of its own.
                        world.tick();
                    }
                    world.end_run(in_order);
                    if down > 60 {
                        // Somebody else serves meanwhile, something else.
                        for copies in crawlers.iter_mut().flatten() {
                            copies.copies.push((before, world.now + down / 2));
                        }
                    }
                    world.now += down;
                    if let Some(version) = version {
                        world.publish(version);
                    }
                    world.start_run();
                }
                WorldEvent::LoseState => {
                    world.end_predecessor(true);
                    world.end_run(true);
                    std::fs::remove_file(directory.path().join("state.db")).expect("removed");
                    let now = world.wall_time();
                    (world.entry.since, world.history) = (now, new_history(now));
                    world.start_run();
                }
                WorldEvent::SetClock(seconds) => world.set += seconds,
                WorldEvent::Tick => world.tick(),
                WorldEvent::Upgrade(version) => {
                    world.end_predecessor(true);
                    world.upgrade(version);
                }
                WorldEvent::FailedUpgrade(version, served) => {
                    world.end_predecessor(true);
                    world.fail_to_upgrade(version, served);
                    if let Some(crawler) = served {
                        crawlers[CACHES[crawler].0][0].copies.push((version, world.now));
                    }
                }
                WorldEvent::FetchBefore(crawler) => {
                    let served = world.fetch_from_predecessor(crawler);
                    crawlers[CACHES[crawler].0][0].copies.extend(served.map(|version| (version, world.now)));
                }
                WorldEvent::EndBefore(in_order) => world.end_predecessor(in_order),
            }
            prop_assert!(world.predecessor_accuses_no_crawler(), "{:?}", events);
        }
    }

    #[test]
    fn further_fetches_never_make_a_violator(first in 0usize..16, events in any_quiet_events(), forged in proptest::collection::vec(any::<bool>(), 120)) {
        let (mut world, mut with_forged) = (LedgerWorld::new(None, first, 1_000 * DAY), LedgerWorld::new(None, first, 1_000 * DAY));
        for (event, forged) in events.iter().zip(forged) {
            match *event {
                WorldEvent::Pass(minutes) => {
                    world.now += minutes * 60;
                    with_forged.now = world.now;
                }
                WorldEvent::Publish(version) => {
                    world.publish(version);
                    with_forged.publish(version);
                }
                WorldEvent::Fetch(crawler, host) => {
                    world.fetch(crawler, host);
                    with_forged.fetch(crawler, host);
                }
                WorldEvent::Ask(crawler, host, path) => {
                    let path = format!("/p{path}/");
                    let (honest, other) = (world.request_kind(crawler, host, &path).0, with_forged.request_kind(crawler, host, &path).0);
                    prop_assert!(other != Kind::Violation || honest == Kind::Violation, "{:?} became {:?}", honest, other);
                }
                _ => {}
            }
            if forged {
                // The host is in use anyway: a request keeps the observation alive in both.
                with_forged.fetch(0, 0);
                world.request_kind(4, 0, "/");
            }
        }
    }
}

#[test]
fn full_table_forgets_hosts_without_requests_first() {
    let table = HostTable::new(StateStore::in_memory_only().0);
    let version = RobotsVersionId([0; 8]);
    let now = |number: i64| Timestamp(number);
    let named = host_key(b"shop.example").expect("a key");
    let serve = |key: &[u8], named: bool, at: Timestamp| {
        table.record_served(key, "bingbot", version, at, || {
            HostRecord::new(&HostOwner::default(), at, at, named)
        });
    };
    serve(&named, true, now(0));
    for number in 0..200_000 {
        let host = format!("host-{number}.example");
        serve(
            &host_key(host.as_bytes()).expect("a key"),
            false,
            now(number),
        );
    }
    let (mut hosts, mut oldest) = (0, i64::MAX);
    table.for_each(|key, host| {
        hosts += 1;
        oldest = oldest.min(if key == &named[..] {
            i64::MAX
        } else {
            host.last_request().0
        });
    });
    assert!((4_096..=8_192).contains(&hosts), "{hosts}");
    assert!(oldest > 180_000, "{oldest}");
    assert!(
        table.get_with(&named, |host| host.is_some()),
        "a host that the policy names is forgotten last"
    );
    assert!(
        host_key(&[b'a'; 256]).is_none()
            && host_key(b"a b").is_none()
            && host_key("é".as_bytes()).is_none()
    );
    assert_eq!(host_key(b"Shop.Example.:443"), host_key(b"shop.example"));
    assert_ne!(host_key(b"shop.example:8443"), host_key(b"shop.example"));
}

#[test]
fn host_without_a_site_keeps_its_visits_for_a_month() {
    let mut world = observed_for_two_days(None);
    world.fetch(0, 0);
    let settle = |world: &mut LedgerWorld, days: i64, generation: u64, has_site: bool| {
        world.now += days * DAY;
        let sites = if has_site {
            vec![world.entry.clone()]
        } else {
            Vec::new()
        };
        world.ledger.apply_snapshot(
            &snapshot_with_history(Snapshot::new(sites, generation), &world.history),
            world.wall_time(),
        );
        world.ledger.crawler_copies("shop").len()
    };
    assert_eq!(settle(&mut world, 0, 1, false), 0);
    assert_eq!(settle(&mut world, 30, 2, false), 0);
    assert_eq!(settle(&mut world, 0, 3, true), 1);
    assert_eq!(
        world.request_kind(0, 0, "/always/").0,
        Kind::Unproven,
        "it was not observed meanwhile"
    );
    assert_eq!(settle(&mut world, 0, 4, false), 0);
    assert_eq!(settle(&mut world, 32, 5, false), 0);
    assert_eq!(settle(&mut world, 0, 6, true), 0);
}

#[test]
fn new_hosts_are_observed_from_the_beginning() {
    let world = LedgerWorld::new(None, 15, 1_000 * DAY);
    let ledger = Ledger::in_memory(vec!["a.example".into()], &world.snapshot(), world.moment());
    let world = LedgerWorld { ledger, ..world };
    assert_eq!(world.request_kind(0, 0, "/p1/"), (Kind::Violation, true));
    assert_eq!(world.request_kind(0, 1, "/p1/"), (Kind::Unproven, false));
    world.fetch(0, 0);
    assert_eq!(world.request_kind(0, 0, "/p1/"), (Kind::Violation, false));
}

#[test]
fn copies_of_every_crawler_count_after_an_identity_change() {
    let mut world = LedgerWorld::new(None, 0, 1_000 * DAY);
    world.request_kind(4, 0, "/");
    for _ in 0..5 {
        world.now += 6 * HOUR;
        world.request_kind(4, 0, "/");
    }
    world.ledger.record_served(
        Registry::builtin(),
        &world.entry,
        b"a.example",
        Claim::Visitor,
        world.wall_time(),
    );
    world.publish(15);
    assert_eq!(world.request_kind(0, 0, "/p1/"), (Kind::Violation, true));
    // Its name is new in the policy: what it was served came to somebody who had none.
    world.history.identity_epoch = world.wall_time();
    assert_eq!(world.request_kind(0, 0, "/p1/").0, Kind::StaleCopy);
}

#[test]
fn names_of_caches_are_unique() {
    let names: HashSet<&str> = Registry::builtin()
        .crawlers()
        .iter()
        .map(|crawler| crawler.id.as_str())
        .collect();
    let shared = Registry::builtin()
        .crawlers()
        .iter()
        .filter_map(|crawler| crawler.shares_cache.as_deref());
    assert!(shared.into_iter().all(|cache| !names.contains(cache)));
    assert!(!names.contains("other"));
}

/// A host that was observed for two days, everything open.
fn observed_for_two_days(state: Option<&Path>) -> LedgerWorld {
    let mut world = LedgerWorld::new(state, 0, 1_000 * DAY);
    for _ in 0..9 {
        world.request_kind(4, 0, "/");
        world.tick();
        world.now += 6 * HOUR;
    }
    world
}

#[test]
fn visit_lost_in_a_crash_counts_for_every_crawler() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut world = observed_for_two_days(Some(directory.path()));
    world.request_kind(4, 0, "/");
    world.tick();
    world.now += 1;
    world.fetch(0, 0);
    // Nothing is written any more.
    world.end_run(false);
    world.now += 5;
    world.start_run();
    world.publish(15);
    assert_eq!(world.request_kind(0, 0, "/p1/").0, Kind::StaleCopy);
    for _ in 0..3 {
        world.now += 9 * HOUR;
        world.request_kind(4, 0, "/");
    }
    assert_eq!(
        world.request_kind(0, 0, "/p1/"),
        (Kind::Violation, true),
        "a day later that is over"
    );
}

#[test]
fn clock_that_is_set_makes_no_violator() {
    for set in [20 * HOUR, 30 * HOUR, -30 * HOUR, 7 * DAY] {
        for noticed in [false, true] {
            let mut world = observed_for_two_days(None);
            world.fetch(0, 0);
            world.now += 10 * HOUR;
            world.request_kind(4, 0, "/");
            world.publish(15);
            world.set += set;
            if noticed {
                world.tick();
            }
            let kind = world.request_kind(0, 0, "/p1/").0;
            assert!(
                [Kind::StaleCopy, Kind::Unproven].contains(&kind),
                "{kind:?} after {set} s"
            );
        }
    }
}

/// Whether a date can say to bingbot that its copy is good.
fn may_confirm_by_date(world: &LedgerWorld, snapshot: &Snapshot) -> bool {
    let cached_versions = peek_cached_versions(world, snapshot, user_agent(0));
    let entry = &snapshot.sites()[0];
    let (history, claim) = (snapshot.history(b"a.example"), Claim::UnknownBot);
    cached_versions.has_version_in_force
        && SiteClaim {
            site: 0,
            entry,
            history,
            claim,
        }
        .has_unique_date()
}

fn peek_cached_versions<'a>(
    world: &LedgerWorld,
    snapshot: &'a Snapshot,
    user_agent: &str,
) -> CachedVersions<'a> {
    let claim = Registry::builtin()
        .identify_on_site(user_agent.as_bytes(), &snapshot.sites()[0].site.tokens);
    let history = snapshot.history(b"a.example");
    let claimant = SiteClaim {
        site: 0,
        entry: &snapshot.sites()[0],
        history,
        claim,
    };
    world
        .ledger
        .cached_versions(
            Registry::builtin(),
            claimant,
            b"a.example",
            world.moment(),
            false,
        )
        .0
}

#[test]
fn date_does_not_confirm_one_of_two_versions_of_a_second() {
    let mut world = observed_for_two_days(None);
    world.publish(1);
    world.fetch(0, 0);
    assert!(may_confirm_by_date(&world, &world.snapshot()));
    world.publish(2);
    world.fetch(0, 0);
    assert!(
        !may_confirm_by_date(&world, &world.snapshot()),
        "its date is that of the version before, too"
    );
    world.now += 1;
    world.publish(3);
    assert!(
        !may_confirm_by_date(&world, &world.snapshot()),
        "it was not served this one"
    );
    world.fetch(0, 0);
    assert!(may_confirm_by_date(&world, &world.snapshot()));
}

#[test]
fn date_does_not_confirm_a_copy_of_another_site() {
    let world = observed_for_two_days(None);
    world.fetch(0, 0);
    let (other, _) = load_site(
        "other",
        &SourceFile {
            name: "other.yaml".into(),
            text: "hosts: [a.example]\nrobots: { origin: replace }\n".into(),
        },
        Registry::builtin(),
    );
    let other = SiteEntry::new(other.expect("a policy"), world.entry.since);
    assert!(may_confirm_by_date(&world, &world.snapshot()));
    let other = snapshot_with_history(Snapshot::new(vec![other], 1), &world.history);
    assert!(
        !may_confirm_by_date(&world, &other),
        "the host went to another site with the same Last-Modified"
    );
}

#[test]
fn unlisted_bots_share_a_name_and_no_copy() {
    let world = observed_for_two_days(None);
    world.fetch(4, 0);
    let claim = Registry::builtin().identify(user_agent(4).as_bytes());
    assert_eq!(claim, Claim::UnknownBot);
    let snapshot = world.snapshot();
    let cached_versions = peek_cached_versions(&world, &snapshot, user_agent(4));
    assert!(cached_versions.was_served && !cached_versions.has_version_in_force);
}
