//! Tests of [`ExchangeThread`], which exchanges facts with other crawlgate instances (such as which
//! crawler fetched which robots.txt). They use two complete instances and a shared store in memory.

use super::{ExchangeOptions, ExchangeThread};
use crate::clock::Clock;
use crate::crawlers::Registry;
use crate::exchange::tests::simulated::{SimulatedServer, SimulatedStore};
use crate::exchange::{
    ExchangeStore, LogPosition, LogReadResult, Member, NoAccusationReason, SharedFact, StoreBatch,
    StoreContents, StoreDeadline, StoreError, StoreIdentity,
};
use crate::facts::AnyFact;
use crate::heads::HeadFields;
use crate::identity::IdentityVerifier;
use crate::judge::RequestLogs;
use crate::peers::ForgetError;
use crate::record::{Judgement, RequestCopy, RequestRecord};
use crate::sites::{PauseRequest, SiteLoadOptions};
use crate::state::StateStore;
use crate::time::Timestamp;
use crate::upkeep::{Instance, InstanceInputs};
use crate::verdict::{Action, Kind};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const BINGBOT: &str = "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)";

/// A store whose clock is that of the machine.
struct RealTimeStore(SimulatedServer);

impl RealTimeStore {
    fn store_now(&self) -> SimulatedStore<'_> {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .expect("after 1970")
            .as_millis();
        self.0
            .with_state(|inner| inner.milliseconds = i64::try_from(now).expect("small"));
        SimulatedStore(&self.0, false)
    }
}

impl ExchangeStore for RealTimeStore {
    fn identity(&mut self, founding: &str) -> Result<(StoreIdentity, i64), StoreError> {
        self.store_now().identity(founding)
    }

    fn write(
        &mut self,
        expected: &StoreIdentity,
        batch: &StoreBatch,
    ) -> Result<Option<LogPosition>, StoreError> {
        self.store_now().write(expected, batch)
    }

    fn read(&mut self, after: LogPosition) -> Result<LogReadResult, StoreError> {
        self.store_now().read(after)
    }

    fn read_sets(&mut self) -> Result<StoreContents, StoreError> {
        self.store_now().read_sets()
    }

    fn read_members(&mut self) -> Result<Vec<Member>, StoreError> {
        self.store_now().read_members()
    }

    fn fetch(&mut self, keys: &[String]) -> Result<Vec<SharedFact>, StoreError> {
        self.store_now().fetch(keys)
    }
}

/// A store that answers nothing until its deadline.
struct MuteStore(StoreDeadline);

impl MuteStore {
    fn wait_for_deadline<T>(&self) -> Result<T, StoreError> {
        while self.0.get().is_none_or(|end| Instant::now() < end) {
            std::thread::park_timeout(Duration::from_millis(5));
        }
        Err(StoreError::Away("it is mute".to_owned()))
    }
}

impl ExchangeStore for MuteStore {
    fn identity(&mut self, _: &str) -> Result<(StoreIdentity, i64), StoreError> {
        self.wait_for_deadline()
    }

    fn write(
        &mut self,
        _: &StoreIdentity,
        _: &StoreBatch,
    ) -> Result<Option<LogPosition>, StoreError> {
        self.wait_for_deadline()
    }

    fn read(&mut self, _: LogPosition) -> Result<LogReadResult, StoreError> {
        self.wait_for_deadline()
    }

    fn read_sets(&mut self) -> Result<StoreContents, StoreError> {
        self.wait_for_deadline()
    }

    fn read_members(&mut self) -> Result<Vec<Member>, StoreError> {
        self.wait_for_deadline()
    }

    fn fetch(&mut self, _: &[String]) -> Result<Vec<SharedFact>, StoreError> {
        self.wait_for_deadline()
    }
}

/// A directory with a policy.
fn policy_directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::create_dir(directory.path().join("policies")).expect("a folder");
    write_policy(directory.path(), "");
    directory
}

struct TestInstance {
    directory: tempfile::TempDir,
    instance: Arc<Instance>,
    exchange: Arc<ExchangeThread>,
    state: StateStore,
}

fn write_policy(directory: &Path, rule: &str) {
    let text = format!(
        "hosts: [shop.example]\nrobots: {{ origin: replace, groups: [{{ agents: '*', disallow: [/never/{rule}] }}] }}\nenforcement: {{ mode: enforce, traps: [/trap/] }}\n"
    );
    std::fs::write(directory.join("policies/shop.yaml"), text).expect("a policy");
}

impl TestInstance {
    /// An instance on a host that is new with crawlgate, if it is among these.
    fn start(
        store: &SimulatedServer,
        directory: tempfile::TempDir,
        new_hosts: &[&str],
    ) -> TestInstance {
        let store = Box::new(RealTimeStore(store.clone()));
        let options = ExchangeOptions {
            store,
            deadline: StoreDeadline::default(),
            host: "edge".into(),
            peers: Arc::default(),
        };
        TestInstance::start_with(options, Clock::default(), directory, new_hosts)
    }

    fn start_with(
        options: ExchangeOptions,
        clock: Clock,
        directory: tempfile::TempDir,
        new_hosts: &[&str],
    ) -> TestInstance {
        let started = clock.moment();
        let of_store = clock.clone();
        let opened = StateStore::open(
            Some(&directory.path().join("state")),
            Arc::new(move || of_store.moment()),
        );
        let (state, remembered) = opened.expect("no other owner");
        let parts = InstanceInputs {
            clock,
            started,
            store: &state,
            restored: &remembered,
            sites: SiteLoadOptions {
                policies: directory.path().join("policies"),
                strict: true,
                ..SiteLoadOptions::default()
            },
            new_hosts: new_hosts.iter().map(|host| (*host).to_owned()).collect(),
            proofs: Arc::new(IdentityVerifier::with_policy_networks_only(
                Registry::builtin(),
            )),
            logs: RequestLogs {
                peers: Some(options.peers.clone()),
                ..RequestLogs::off()
            },
        };
        let instance = parts.open().unwrap_or_else(|error| panic!("{error}"));
        let exchange = ExchangeThread::start(instance.clone(), state.clone(), &remembered, options);
        TestInstance {
            directory,
            instance,
            exchange: exchange.expect("a thread"),
            state,
        }
    }

    fn on_new_host(store: &SimulatedServer) -> TestInstance {
        TestInstance::start(store, policy_directory(), &["shop.example"])
    }

    /// One by this policy, on a host that crawlers may know from before.
    fn with_policy(store: &SimulatedServer, policy: &str) -> TestInstance {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(directory.path().join("policies")).expect("a folder");
        std::fs::write(directory.path().join("policies/shop.yaml"), policy).expect("a policy");
        TestInstance::start(store, directory, &[])
    }

    /// Sends a request through, and says what was found at once.
    fn request_page(&self, target: &str) -> Judgement {
        let Instance {
            judge,
            recorder,
            clock,
            ..
        } = &*self.instance;
        let head = HeadFields {
            host: b"shop.example",
            target: target.as_bytes(),
            method: b"GET",
            user_agent: Some(BINGBOT.as_bytes()),
            ..HeadFields::default()
        };
        let mut request = RequestCopy::for_test(&head, "192.0.2.1".parse().ok(), clock.now());
        request.arrival.monotonic = clock.moment().monotonic;
        let judgement = judge.judge(&request);
        let mut record = RequestRecord::unjudged(request);
        record.judgement = judgement.clone();
        record.response.status = 200;
        judge.record_served(&record, clock.now().into());
        recorder.record(&record);
        judgement
    }

    fn request_kind(&self, target: &str) -> Kind {
        self.request_page(target)
            .judged()
            .expect("a site")
            .decision
            .kind
    }

    fn is_counted(&self, kind: &str) -> bool {
        let series = "crawlgate_violations_total{crawler=\"bingbot\"";
        let rendered = self.instance.metrics.render();
        rendered
            .lines()
            .any(|line| line.starts_with(series) && line.contains(&format!("kind=\"{kind}\"")))
    }
}

fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn two_instances_confirm_violations_of_each_other() {
    let store = SimulatedServer::new(1);
    let (one, two) = (
        TestInstance::on_new_host(&store),
        TestInstance::on_new_host(&store),
    );
    eventually("both are members", || {
        [&one, &two].iter().all(|each| {
            let status = each.exchange.status();
            status.members.len() == 2 && status.accuses_not.is_none()
        })
    });
    one.request_page("/robots.txt");
    assert_eq!(two.request_kind("/never/1"), Kind::Violation);
    assert!(
        !two.is_counted("violation") && !two.is_counted("never_fetched"),
        "it waits for the other"
    );
    eventually("the violation is recorded", || two.is_counted("violation"));
    assert!(
        !two.is_counted("never_fetched"),
        "the other served the crawler"
    );
    // The other instance has the new version before this one has.
    write_policy(one.directory.path(), ", /new/");
    one.instance.sites.reload(one.instance.clock.moment().now);
    assert_eq!(one.request_kind("/new/1"), Kind::StaleCopy);
    let status = one.exchange.status();
    assert_eq!((status.totals.confirmed, status.records_waiting), (0, 0));
}

const TRAP: &str = "hosts: [shop.example]\nrobots: { origin: replace, groups: [{ agents: '*', disallow: [/trap/] }] }\nenforcement: { mode: enforce, traps: [/trap/] }\n";

/// Two instances with a trap, on a host that is new with crawlgate.
fn two_with_trap(store: &SimulatedServer) -> (TestInstance, TestInstance) {
    let (one, two) = (
        TestInstance::on_new_host(store),
        TestInstance::on_new_host(store),
    );
    for each in [&one, &two] {
        std::fs::write(each.directory.path().join("policies/shop.yaml"), TRAP).expect("a policy");
        each.instance.sites.reload(each.instance.clock.moment().now);
    }
    eventually("nothing else is in force", || {
        one.exchange.status().accuses_not.is_none() && one.exchange.status().members.len() == 2
    });
    (one, two)
}

#[test]
fn mark_waits_for_peers() {
    let store = SimulatedServer::new(1);
    let (one, _two) = two_with_trap(&store);
    let marks = || {
        one.instance
            .behaviours
            .marked_clients
            .active_count(one.instance.clock.moment().monotonic)
    };
    assert_eq!(one.request_kind("/trap/1"), Kind::Trapped);
    assert_eq!(marks(), 0);
    eventually("the client is marked", || marks() == 1);
}

/// Two instances that know each other and accuse.
fn two_with_policy(store: &SimulatedServer, policy: &str) -> [TestInstance; 2] {
    let pair = [
        TestInstance::with_policy(store, policy),
        TestInstance::with_policy(store, policy),
    ];
    eventually("both know each other", || {
        pair.iter().all(|each| {
            let status = each.exchange.status();
            status.members.len() == 2 && status.accuses_not.is_none()
        })
    });
    pair
}

#[test]
fn mark_and_its_release_reach_the_peer() {
    let store = SimulatedServer::new(1);
    let (one, two) = two_with_trap(&store);
    let marks = |of: &TestInstance| {
        of.instance
            .behaviours
            .marked_clients
            .active_count(of.instance.clock.moment().monotonic)
    };
    assert_eq!(one.request_kind("/trap/1"), Kind::Trapped);
    eventually("the other has the mark", || marks(&two) == 1);
    assert_eq!(two.request_kind("/"), Kind::Trapped, "an allowed page");
    // One that begins later hears of it from the store.
    let three = TestInstance::on_new_host(&store);
    eventually("the third has the mark", || marks(&three) == 1);
    two.instance.behaviours.marked_clients.release_network(
        "192.0.2.0/24".parse().expect("a network"),
        two.instance.clock.moment(),
    );
    eventually("the first has no mark", || marks(&one) == 0);
    eventually("the third has no mark", || marks(&three) == 0);
    assert_eq!(marks(&two), 0);
}

#[test]
fn pause_and_its_end_reach_the_peer() {
    let store = SimulatedServer::new(1);
    let [one, two] = two_with_policy(&store, TRAP);
    let paused = |of: &TestInstance| {
        matches!(
            of.request_page("/")
                .judged()
                .expect("a site")
                .decision
                .action,
            Action::Pause { .. }
        )
    };
    assert!(!paused(&two));
    let now = || one.instance.clock.moment().now;
    let request = PauseRequest {
        seconds: Some(3_600),
        ..PauseRequest::default()
    };
    one.instance.sites.pause(&request, now()).expect("a pause");
    eventually("the other is paused", || paused(&two));
    // Ended where it did not begin.
    two.instance
        .sites
        .resume(Some("shop"), now())
        .expect("a site");
    eventually("the pause is over", || !paused(&one) && !paused(&two));
    two.instance.sites.pause(&request, now()).expect("a pause");
    eventually("it is paused again", || paused(&one));
    // One that begins later, and the store that was lost, are told of it.
    store.with_state(crate::exchange::tests::simulated::ServerState::flush);
    eventually("all is written again", || {
        one.exchange.status().totals.started_over == 1
            && one.exchange.status().accuses_not.is_none()
    });
    let three = TestInstance::on_new_host(&store);
    eventually("the third is paused", || paused(&three));
    assert!(paused(&one) && paused(&two));
}

#[test]
fn fetch_counts_for_the_delay_at_its_instance_only() {
    let store = SimulatedServer::new(1);
    let policy = "hosts: [shop.example]\nrobots: { origin: replace, groups: [{ agents: '*', crawl_delay: 60s, disallow: [/never/] }] }\nenforcement: { mode: enforce }\n";
    let [one, two] = two_with_policy(&store, policy);
    let is_slowed = |instance: &TestInstance| {
        let asked = instance.request_page("/");
        asked
            .judged()
            .expect("a site")
            .decision
            .slow_retry_after()
            .is_some()
    };
    for instance in [&one, &two] {
        assert!(
            !is_slowed(instance) && !is_slowed(instance),
            "it may go by what was there before crawlgate"
        );
    }
    one.request_page("/robots.txt");
    eventually("the other instance knows the copy", || {
        two.instance
            .ledger
            .all_facts(Timestamp(0))
            .iter()
            .any(|fact| matches!(fact.fact, AnyFact::ServedVersion(_)))
    });
    assert!(!is_slowed(&one) && is_slowed(&one), "the fetch counts");
    assert!(!is_slowed(&two) && !is_slowed(&two));
}

#[test]
fn outage_accuses_no_crawler_and_withholds_robots_txt() {
    let store = SimulatedServer::new(1);
    store.with_state(|inner| inner.is_away = true);
    let one = TestInstance::on_new_host(&store);
    assert_eq!(
        one.exchange.status().accuses_not,
        Some(NoAccusationReason::StoreAway)
    );
    assert!(
        one.request_page("/robots.txt")
            .judged()
            .is_some_and(|judged| judged.withholds_robots_txt)
    );
    assert_eq!(one.request_kind("/never/"), Kind::Unproven);
    store.with_state(|inner| inner.is_away = false);
    eventually("the store is reached", || {
        one.exchange.status().accuses_not.is_none()
    });
    assert!(
        one.request_page("/robots.txt")
            .judged()
            .is_some_and(|judged| !judged.withholds_robots_txt)
    );
    assert_eq!(
        one.request_kind("/never/"),
        Kind::Unproven,
        "it observes from when it joined"
    );
    let store = SimulatedServer::new(2);
    let one = TestInstance::on_new_host(&store);
    eventually("it is a member", || {
        one.exchange.status().accuses_not.is_none()
    });
    assert_eq!(one.request_kind("/never/"), Kind::Violation);
    store.with_state(|inner| inner.is_away = true);
    let before = one.instance.sites.snapshot().sites()[0]
        .site
        .robots_txt
        .version;
    write_policy(one.directory.path(), ", /new/");
    let report = one.instance.sites.reload(one.instance.clock.moment().now);
    assert!(report.waiting.is_some());
    assert_eq!(
        one.instance.sites.snapshot().sites()[0]
            .site
            .robots_txt
            .version,
        before
    );
    assert!(one.exchange.status().announcement_waits_since.is_some());
}

#[test]
fn long_turn_blocks_nothing_and_is_in_the_status() {
    let (directory, deadline) = (policy_directory(), StoreDeadline::default());
    let shift = directory.path().join("clock");
    std::fs::write(&shift, "elapsed 1s").expect("a clock");
    let options = ExchangeOptions {
        store: Box::new(MuteStore(deadline.clone())),
        deadline,
        host: "edge".into(),
        peers: Arc::default(),
    };
    let one = TestInstance::start_with(
        options,
        Clock::following_file(&shift).expect("a clock"),
        directory,
        &[],
    );
    let status = one.exchange.status();
    assert_eq!(status.accuses_not, Some(NoAccusationReason::StoreAway));
    assert!(status.withholds_robots_txt_since.is_some());
    write_policy(one.directory.path(), ", /new/");
    assert!(
        one.instance
            .sites
            .reload(one.instance.clock.moment().now)
            .waiting
            .is_some()
    );
    std::fs::write(&shift, "elapsed 7s").expect("a clock");
    eventually("it is said", || one.exchange.status().away.is_some());
    one.exchange.close();
}

#[test]
fn restarted_instance_keeps_its_id() {
    let store = SimulatedServer::new(1);
    let (one, two) = (
        TestInstance::on_new_host(&store),
        TestInstance::on_new_host(&store),
    );
    let id = one.exchange.status().id;
    eventually("the other is known", || {
        two.exchange.status().members.len() == 2
    });
    one.exchange.close();
    one.state.close().expect("written");
    eventually("the goodbye is heard", || {
        two.exchange
            .status()
            .members
            .iter()
            .any(|member| member.member.id == id && member.member.has_left)
    });
    assert_eq!(two.exchange.status().accuses_not, None);
    let TestInstance {
        directory,
        instance,
        exchange,
        state,
    } = one;
    drop((instance, exchange, state));
    let again = TestInstance::start(&store, directory, &["shop.example"]);
    assert_eq!(again.exchange.status().id, id);
    eventually("it is back", || {
        two.exchange
            .status()
            .members
            .iter()
            .any(|member| member.member.id == id && !member.member.has_left)
    });
    assert_eq!(
        two.exchange.forget("nobody"),
        Err(ForgetError::UnknownInstance("nobody".into()))
    );
}
