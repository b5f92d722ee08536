//! Two whole instances with their threads and a shared store in memory.

use super::{ExchangeOptions, ExchangeThread};
use crate::clock::Clock;
use crate::crawlers::Registry;
use crate::exchange::tests::simulated::{OnThread, Simulated};
use crate::exchange::{
    Batch, Deadline, Hindrance, Identity, LogRead, Member, Position, Sets, SharedFact, Store,
    StoreError, Written,
};
use crate::facts::AnyFact;
use crate::heads::HeadFields;
use crate::identity::Proofs;
use crate::judge::Logs;
use crate::peers::ForgetError;
use crate::record::{Judgement, RequestFacts, RequestRecord};
use crate::sites::{PauseRequest, SiteOptions};
use crate::state::StateStore;
use crate::time::Timestamp;
use crate::upkeep::{Instance, JudgeParts};
use crate::verdict::{Action, Kind};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const BINGBOT: &str = "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)";

/// A store whose clock is that of the machine.
struct Live(Simulated);

impl Live {
    fn now(&self) -> OnThread<'_> {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .expect("after 1970")
            .as_millis();
        self.0
            .change(|inner| inner.milliseconds = i64::try_from(now).expect("small"));
        OnThread(&self.0, false)
    }
}

impl Store for Live {
    fn identity(&mut self, founding: &str) -> Result<(Identity, i64), StoreError> {
        self.now().identity(founding)
    }

    fn write(&mut self, expected: &Identity, batch: &Batch) -> Result<Written, StoreError> {
        self.now().write(expected, batch)
    }

    fn read(&mut self, after: Position) -> Result<LogRead, StoreError> {
        self.now().read(after)
    }

    fn read_sets(&mut self) -> Result<Sets, StoreError> {
        self.now().read_sets()
    }

    fn read_members(&mut self) -> Result<Vec<Member>, StoreError> {
        self.now().read_members()
    }

    fn fetch(&mut self, keys: &[String]) -> Result<Vec<SharedFact>, StoreError> {
        self.now().fetch(keys)
    }
}

/// A store that answers nothing until its deadline.
struct Mute(Deadline);

impl Mute {
    fn answer<T>(&self) -> Result<T, StoreError> {
        while self.0.get().is_none_or(|end| Instant::now() < end) {
            std::thread::park_timeout(Duration::from_millis(5));
        }
        Err(StoreError::Away("it is mute".to_owned()))
    }
}

impl Store for Mute {
    fn identity(&mut self, _: &str) -> Result<(Identity, i64), StoreError> {
        self.answer()
    }

    fn write(&mut self, _: &Identity, _: &Batch) -> Result<Written, StoreError> {
        self.answer()
    }

    fn read(&mut self, _: Position) -> Result<LogRead, StoreError> {
        self.answer()
    }

    fn read_sets(&mut self) -> Result<Sets, StoreError> {
        self.answer()
    }

    fn read_members(&mut self) -> Result<Vec<Member>, StoreError> {
        self.answer()
    }

    fn fetch(&mut self, _: &[String]) -> Result<Vec<SharedFact>, StoreError> {
        self.answer()
    }
}

/// A directory with a policy.
fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::create_dir(directory.path().join("policies")).expect("a folder");
    write(directory.path(), "");
    directory
}

struct One {
    directory: tempfile::TempDir,
    instance: Arc<Instance>,
    exchange: Arc<ExchangeThread>,
    state: StateStore,
}

fn write(directory: &Path, rule: &str) {
    let text = format!(
        "hosts: [shop.example]\nrobots: {{ origin: replace, groups: [{{ agents: '*', disallow: [/never/{rule}] }}] }}\nenforcement: {{ mode: enforce, traps: [/trap/] }}\n"
    );
    std::fs::write(directory.join("policies/shop.yaml"), text).expect("a policy");
}

impl One {
    /// An instance on a host that is new with crawlgate, if it is among these.
    fn start(store: &Simulated, directory: tempfile::TempDir, new_hosts: &[&str]) -> One {
        let store = Box::new(Live(store.clone()));
        let options = ExchangeOptions {
            store,
            deadline: Deadline::default(),
            host: "edge".into(),
            peers: Arc::default(),
        };
        One::with(options, Clock::default(), directory, new_hosts)
    }

    fn with(
        options: ExchangeOptions,
        clock: Clock,
        directory: tempfile::TempDir,
        new_hosts: &[&str],
    ) -> One {
        let of_store = clock.clone();
        let opened = StateStore::open(
            Some(&directory.path().join("state")),
            Arc::new(move || of_store.moment()),
        );
        let (state, remembered) = opened.expect("no other owner");
        let parts = JudgeParts {
            clock,
            state: (&state, &remembered),
            sites: SiteOptions {
                policies: directory.path().join("policies"),
                strict: true,
                may_be_missing: false,
                origins: Default::default(),
                published_proof: false,
            },
            new_hosts: new_hosts.iter().map(|host| (*host).to_owned()).collect(),
            proofs: Arc::new(Proofs::none(Registry::builtin())),
            logs: Logs {
                peers: Some(options.peers.clone()),
                ..Logs::off()
            },
            passed: None,
        };
        let instance = parts.open().unwrap_or_else(|error| panic!("{error}"));
        let exchange = ExchangeThread::start(instance.clone(), state.clone(), &remembered, options);
        One {
            directory,
            instance,
            exchange: exchange.expect("a thread"),
            state,
        }
    }

    fn new(store: &Simulated) -> One {
        One::start(store, directory(), &["shop.example"])
    }

    /// One by this policy, on a host that crawlers may know from before.
    fn by(store: &Simulated, policy: &str) -> One {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(directory.path().join("policies")).expect("a folder");
        std::fs::write(directory.path().join("policies/shop.yaml"), policy).expect("a policy");
        One::start(store, directory, &[])
    }

    /// Sends a request through, and says what was found at once.
    fn ask(&self, target: &str) -> Judgement {
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
        let mut request = RequestFacts::of(&head, "192.0.2.1".parse().ok(), clock.now());
        request.arrival.lived = clock.moment().lived;
        let judgement = judge.judge(&request);
        let mut record = RequestRecord::unjudged(request);
        record.judgement = judgement.clone();
        record.response.status = 200;
        judge.served(&record, clock.now().into());
        recorder.record(&record);
        judgement
    }

    fn kind(&self, target: &str) -> Kind {
        self.ask(target).judged().expect("a site").decision.kind
    }

    fn counted(&self, kind: &str) -> bool {
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
fn two_instances_confirm_each_others_violations_and_know_each_others_copies() {
    let store = Simulated::new(1);
    let (one, two) = (One::new(&store), One::new(&store));
    eventually("both are members", || {
        [&one, &two].iter().all(|each| {
            let status = each.exchange.status();
            status.members.len() == 2 && status.accuses_not.is_none()
        })
    });
    one.ask("/robots.txt");
    assert_eq!(two.kind("/never/1"), Kind::Violation);
    assert!(
        !two.counted("violation") && !two.counted("never_fetched"),
        "it waits for the other"
    );
    eventually("the violation is recorded", || two.counted("violation"));
    assert!(
        !two.counted("never_fetched"),
        "the other served the crawler"
    );
    // The other instance has the new version before this one has.
    write(one.directory.path(), ", /new/");
    one.instance.sites.reload(one.instance.clock.moment().now);
    assert_eq!(one.kind("/new/1"), Kind::StaleCopy);
    let status = one.exchange.status();
    assert_eq!((status.totals.confirmed, status.records_waiting), (0, 0));
}

const TRAP: &str = "hosts: [shop.example]\nrobots: { origin: replace, groups: [{ agents: '*', disallow: [/trap/] }] }\nenforcement: { mode: enforce, traps: [/trap/] }\n";

/// Two instances with a trap, on a host that is new with crawlgate.
fn trapping(store: &Simulated) -> (One, One) {
    let (one, two) = (One::new(store), One::new(store));
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
fn a_mark_waits_for_the_other_instances() {
    let store = Simulated::new(1);
    let (one, _two) = trapping(&store);
    let marks = || {
        one.instance
            .behaviours
            .traps
            .in_force(one.instance.clock.moment().lived)
    };
    assert_eq!(one.kind("/trap/1"), Kind::Trapped);
    assert_eq!(marks(), 0);
    eventually("the client is marked", || marks() == 1);
}

/// Two instances that know each other and accuse.
fn pair(store: &Simulated, policy: &str) -> [One; 2] {
    let pair = [One::by(store, policy), One::by(store, policy)];
    eventually("both know each other", || {
        pair.iter().all(|each| {
            let status = each.exchange.status();
            status.members.len() == 2 && status.accuses_not.is_none()
        })
    });
    pair
}

#[test]
fn a_mark_and_its_release_hold_on_the_other_instance() {
    let store = Simulated::new(1);
    let (one, two) = trapping(&store);
    let marks = |of: &One| {
        of.instance
            .behaviours
            .traps
            .in_force(of.instance.clock.moment().lived)
    };
    assert_eq!(one.kind("/trap/1"), Kind::Trapped);
    eventually("the other has the mark", || marks(&two) == 1);
    assert_eq!(two.kind("/"), Kind::Trapped, "an allowed page");
    // One that begins later hears of it from the store.
    let three = One::new(&store);
    eventually("the third has the mark", || marks(&three) == 1);
    two.instance.behaviours.traps.release(
        "192.0.2.0/24".parse().expect("a network"),
        two.instance.clock.moment(),
    );
    eventually("the first has no mark", || marks(&one) == 0);
    eventually("the third has no mark", || marks(&three) == 0);
    assert_eq!(marks(&two), 0);
}

#[test]
fn a_pause_and_its_end_hold_on_the_other_instance() {
    let store = Simulated::new(1);
    let [one, two] = pair(&store, TRAP);
    let paused = |of: &One| {
        matches!(
            of.ask("/").judged().expect("a site").decision.action,
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
    store.change(crate::exchange::tests::simulated::Inner::flush);
    eventually("all is written again", || {
        one.exchange.status().totals.started_over == 1
            && one.exchange.status().accuses_not.is_none()
    });
    let three = One::new(&store);
    eventually("the third is paused", || paused(&three));
    assert!(paused(&one) && paused(&two));
}

#[test]
fn a_fetch_from_one_instance_counts_there_alone_for_the_delay() {
    let store = Simulated::new(1);
    let policy = "hosts: [shop.example]\nrobots: { origin: replace, groups: [{ agents: '*', crawl_delay: 60s, disallow: [/never/] }] }\nenforcement: { mode: enforce }\n";
    let [one, two] = pair(&store, policy);
    let is_slowed = |instance: &One| {
        let asked = instance.ask("/");
        asked
            .judged()
            .expect("a site")
            .decision
            .slowed_for()
            .is_some()
    };
    for instance in [&one, &two] {
        assert!(
            !is_slowed(instance) && !is_slowed(instance),
            "it may go by what was there before crawlgate"
        );
    }
    one.ask("/robots.txt");
    eventually("the other instance knows the copy", || {
        two.instance
            .ledger
            .everything(Timestamp(0))
            .iter()
            .any(|fact| matches!(fact.fact, AnyFact::Served(_)))
    });
    assert!(!is_slowed(&one) && is_slowed(&one), "the fetch counts");
    assert!(!is_slowed(&two) && !is_slowed(&two));
}

#[test]
fn without_the_store_nothing_is_accused_and_robots_txt_waits() {
    let store = Simulated::new(1);
    store.change(|inner| inner.is_away = true);
    let one = One::new(&store);
    assert_eq!(
        one.exchange.status().accuses_not,
        Some(Hindrance::StoreAway)
    );
    assert!(
        one.ask("/robots.txt")
            .judged()
            .is_some_and(|judged| judged.is_silent)
    );
    assert_eq!(one.kind("/never/"), Kind::Unproven);
    store.change(|inner| inner.is_away = false);
    eventually("the store is reached", || {
        one.exchange.status().accuses_not.is_none()
    });
    assert!(
        one.ask("/robots.txt")
            .judged()
            .is_some_and(|judged| !judged.is_silent)
    );
    assert_eq!(
        one.kind("/never/"),
        Kind::Unproven,
        "it observes from when it joined"
    );
    let store = Simulated::new(2);
    let one = One::new(&store);
    eventually("it is a member", || {
        one.exchange.status().accuses_not.is_none()
    });
    assert_eq!(one.kind("/never/"), Kind::Violation);
    store.change(|inner| inner.is_away = true);
    let before = one.instance.sites.snapshot().sites()[0]
        .site
        .robots_txt
        .version;
    write(one.directory.path(), ", /new/");
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
fn turn_that_takes_long_holds_up_nothing_and_is_in_the_status() {
    let (directory, deadline) = (directory(), Deadline::default());
    let shift = directory.path().join("clock");
    std::fs::write(&shift, "lived 1s").expect("a clock");
    let options = ExchangeOptions {
        store: Box::new(Mute(deadline.clone())),
        deadline,
        host: "edge".into(),
        peers: Arc::default(),
    };
    let one = One::with(
        options,
        Clock::following(&shift).expect("a clock"),
        directory,
        &[],
    );
    let status = one.exchange.status();
    assert_eq!(status.accuses_not, Some(Hindrance::StoreAway));
    assert!(status.withholds_robots_txt_since.is_some());
    write(one.directory.path(), ", /new/");
    assert!(
        one.instance
            .sites
            .reload(one.instance.clock.moment().now)
            .waiting
            .is_some()
    );
    std::fs::write(&shift, "lived 7s").expect("a clock");
    eventually("it is said", || one.exchange.status().away.is_some());
    one.exchange.close();
}

#[test]
fn an_instance_keeps_its_id_and_says_goodbye() {
    let store = Simulated::new(1);
    let (one, two) = (One::new(&store), One::new(&store));
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
    let One {
        directory,
        instance,
        exchange,
        state,
    } = one;
    drop((instance, exchange, state));
    let again = One::start(&store, directory, &["shop.example"]);
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
