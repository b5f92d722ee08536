//! Tests that explaining a request (`explain`) comes to the same decision as judging it (`judge`),
//! and changes nothing. The tests vary policies, crawlers, addresses, paths and time.

use super::*;
use crate::clock::{Clock, Moment};
use crate::heads::{HeadFields, SignatureFields};
use crate::record::ProxyPath;
use crate::sites::SiteLoadOptions;
use crate::state::StateStore;
use crate::telemetry::Metrics;
use crate::verdict::{Action, Kind, NonCountingHost};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// A judge with its recorder.
struct World {
    judge: Judge,
    recorder: Recorder,
    clock: Clock,
}

const POLICIES: [&str; 4] = [
    "robots: { origin: replace, groups: [{ agents: '*', disallow: [/cart/], crawl_delay: 10s }] }\n\
     enforcement: { mode: enforce, traps: [/trap/] }\n",
    "robots: { origin: replace, groups: [{ agents: [ShopBot, bingbot], disallow: [/cart/, /trap/] }] }\n",
    "crawlers:\n  - { token: ShopBot, networks: [198.51.100.0/24] }\n\
     robots: { origin: replace, groups: [{ agents: '*', disallow: [/cart/] }] }\n\
     enforcement: { mode: enforce, unverified: refuse, traps: [/trap/] }\n",
    "robots: { origin: replace, groups: [{ agents: '*', disallow: [/cart/] }] }\nenforcement: { mode: off }\n",
];
const AGENTS: [&str; 5] = [
    "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
    "ShopBot/1.0",
    "Mozilla/5.0 (compatible; UnknownBot/1.0; +https://bot.example/)",
    "curl/8.9.1",
    "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
];
const TARGETS: [&str; 6] = [
    "/",
    "/cart/1",
    "/x/../cart/",
    "/trap/",
    "/robots.txt",
    "http://shop.example/cart/2",
];
const ADDRESSES: [&str; 3] = ["192.0.2.1", "192.0.2.2", "198.51.100.1"];
const HOSTS: [&str; 3] = ["shop.example", "fresh.example", "elsewhere.example"];

fn judge_with_policy(directory: &Path, policy: &str) -> World {
    let text = format!("hosts: [shop.example, fresh.example]\n{policy}");
    std::fs::write(directory.join("shop.yaml"), text).expect("a policy");
    let clock = Clock::default();
    let (store, remembered) = StateStore::in_memory_only();
    let options = SiteLoadOptions {
        policies: directory.to_owned(),
        strict: true,
        ..SiteLoadOptions::default()
    };
    let registry = Registry::builtin();
    let sites =
        SiteManager::start(options, &store, &remembered, clock.moment().now).expect("loaded");
    let ledger = Arc::new(Ledger::in_memory(
        vec!["shop.example".into()],
        &sites.snapshot(),
        clock.moment(),
    ));
    let proofs = Arc::new(IdentityVerifier::with_policy_networks_only(registry));
    let recorder = Recorder::new(Metrics::new(), Arc::default(), RequestLogs::off());
    let judge = Judge {
        sites,
        registry,
        ledger,
        proofs,
        behaviours: Arc::default(),
        peers: None,
    };
    World {
        judge,
        recorder,
        clock,
    }
}

/// One request, by indexes into the tables, and the seconds since the one before.
#[derive(Clone, Copy, Debug)]
struct Step {
    host: usize,
    agent: usize,
    target: usize,
    address: usize,
    after: u64,
}

fn any_step() -> impl Strategy<Value = Step> {
    let places = (
        0..HOSTS.len(),
        0..AGENTS.len(),
        0..TARGETS.len(),
        0..ADDRESSES.len(),
    );
    (places, 0u64..20).prop_map(|((host, agent, target, address), after)| Step {
        host,
        agent,
        target,
        address,
        after,
    })
}

fn head(step: Step) -> HeadFields<'static> {
    HeadFields {
        host: HOSTS[step.host].as_bytes(),
        target: TARGETS[step.target].as_bytes(),
        method: b"GET",
        user_agent: Some(AGENTS[step.agent].as_bytes()),
        ..HeadFields::default()
    }
}

fn request(step: Step, start: Moment, seconds: u64) -> RequestCopy {
    request_at(&head(step), ADDRESSES[step.address], start, seconds)
}

fn request_at(head: &HeadFields<'_>, address: &str, start: Moment, seconds: u64) -> RequestCopy {
    let now = u64::try_from(start.now.0).expect("after 1970") + seconds;
    let arrived = SystemTime::UNIX_EPOCH + Duration::from_secs(now);
    let mut request = RequestCopy::for_test(head, address.parse().ok(), arrived);
    request.arrival.monotonic = start.monotonic + Duration::from_secs(seconds);
    request
}

/// The facts that a judgement and an explanation must agree on.
type JudgedFacts = (
    &'static str,
    Kind,
    &'static str,
    Option<&'static str>,
    bool,
    Identity,
);

fn judged_facts(judgement: &Judgement) -> JudgedFacts {
    let Some(judged) = judgement.judged() else {
        return (
            "not_a_crawler",
            Kind::NotACrawler,
            "pass",
            None,
            false,
            Identity::Unverified,
        );
    };
    let Decision {
        verdict,
        kind,
        action,
        would,
        never_fetched,
        ..
    } = judged.decision;
    (
        verdict.name(),
        kind,
        action.name(),
        would.map(Action::name),
        never_fetched,
        judged.identity,
    )
}

fn explained_facts(explanation: &Explanation) -> JudgedFacts {
    let would = explanation
        .action
        .would
        .as_ref()
        .map(|would| would.kind.name());
    let Explanation {
        verdict,
        kind,
        never_fetched,
        identity,
        ..
    } = explanation;
    (
        verdict.name(),
        *kind,
        explanation.action.kind.name(),
        would,
        *never_fetched,
        *identity,
    )
}

fn record_judged(world: &World, request: &RequestCopy, judgement: &Judgement) {
    let mut record = RequestRecord::unjudged(request.clone());
    record.judgement = judgement.clone();
    record.response.status = 200;
    world.judge.record_served(&record, world.clock.now().into());
    world.recorder.record(&record);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// One judge explains each request twice before it judges it, another one only judges. All four
    /// results are equal.
    #[test]
    fn judge_and_explain_agree_and_explaining_changes_nothing(policy in 0..POLICIES.len(), steps in prop::collection::vec(any_step(), 1..40)) {
        let (asked, plain) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
        let (asked, plain) = (judge_with_policy(asked.path(), POLICIES[policy]), judge_with_policy(plain.path(), POLICIES[policy]));
        let starts = [asked.clock.moment(), plain.clock.moment()];
        let mut seconds = 0;
        for step in steps {
            seconds += step.after;
            let (one, other) = (request(step, starts[0], seconds), request(step, starts[1], seconds));
            let response = ResponseFacts::default();
            let (first, second) = (asked.judge.explain(&one, &response), asked.judge.explain(&one, &response));
            prop_assert_eq!(&first, &second);
            let (judgement, unasked) = (asked.judge.judge(&one), plain.judge.judge(&other));
            prop_assert_eq!(explained_facts(&first), judged_facts(&judgement), "{:?} after {} s", step, seconds);
            prop_assert_eq!(judged_facts(&judgement), judged_facts(&unasked), "{:?} after {} s", step, seconds);
            record_judged(&asked, &one, &judgement);
            record_judged(&plain, &other, &unasked);
        }
        let marks = [&asked, &plain].map(|world| world.judge.behaviours.marked_clients.len());
        prop_assert_eq!(marks[0], marks[1]);
    }
}

#[test]
fn listed_networks_of_a_policy_are_evidence() {
    let directory = tempfile::tempdir().expect("a directory");
    let world = judge_with_policy(directory.path(), POLICIES[2]);
    let evidence = |agent, address| {
        let request = request(
            Step {
                host: 0,
                agent,
                target: 0,
                address,
                after: 0,
            },
            world.clock.moment(),
            0,
        );
        world
            .judge
            .explain(&request, &ResponseFacts::default())
            .evidence
    };
    assert_eq!(evidence(1, 2)[0].id, "policy-inside");
    assert_eq!(evidence(1, 0)[0].id, "policy-outside");
    assert!(
        !evidence(0, 2)
            .iter()
            .any(|evidence| evidence.id.starts_with("policy")),
        "the policy lists nothing for bingbot"
    );
}

#[test]
fn explaining_changes_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let world = judge_with_policy(directory.path(), POLICIES[0]);
    let judge = &world.judge;
    let start = world.clock.moment();
    for target in 0..TARGETS.len() {
        for host in 0..HOSTS.len() {
            let request = request(
                Step {
                    host,
                    agent: 0,
                    target,
                    address: 0,
                    after: 0,
                },
                start,
                0,
            );
            let one = judge.explain(&request, &ResponseFacts::default());
            assert_eq!(one, judge.explain(&request, &ResponseFacts::default()));
        }
    }
    assert!(judge.ledger.crawler_copies("shop").is_empty());
    assert!(judge.behaviours.marked_clients.is_empty());
    assert!(
        !world
            .recorder
            .metrics
            .render()
            .contains("crawlgate_requests_total{")
    );
    assert!(world.recorder.logs.events.recent().is_empty());
}

#[test]
fn judging_marks_trapped_clients_and_records_fetches() {
    let directory = tempfile::tempdir().expect("a directory");
    let world = judge_with_policy(directory.path(), POLICIES[0]);
    let judge = &world.judge;
    let start = world.clock.moment();
    let at = |target| {
        request(
            Step {
                host: 0,
                agent: 0,
                target,
                address: 0,
                after: 0,
            },
            start,
            0,
        )
    };
    let fetch = at(4);
    let judgement = judge.judge(&fetch);
    record_judged(&world, &fetch, &judgement);
    assert_eq!(judge.ledger.crawler_copies("shop").len(), 1);
    assert_eq!(judged_facts(&judge.judge(&at(3))).1, Kind::Trapped);
    assert_eq!(judge.behaviours.marked_clients.len(), 1);
    assert_eq!(judged_facts(&judge.judge(&at(0))).1, Kind::Trapped);
    let metrics = world.recorder.metrics.render();
    for name in ["crawlgate_requests_total{", "crawlgate_robots_txt_total{"] {
        let counts: Vec<&str> = metrics
            .lines()
            .filter(|line| line.starts_with(name))
            .collect();
        assert!(
            counts.len() == 1 && counts[0].ends_with(" 1"),
            "only the fetch was recorded: {counts:?}"
        );
    }
    assert!(start.now > Timestamp(0));
}

/// Judges a request of a crawler that came through these proxies.
fn judge_through(
    world: &World,
    user_agent: &'static str,
    target: &'static str,
    proxies: Option<ProxyPath>,
) -> SiteJudgement {
    let moment = world.clock.moment();
    let head = HeadFields {
        host: HOSTS[0].as_bytes(),
        method: b"GET",
        target: target.as_bytes(),
        user_agent: Some(user_agent.as_bytes()),
        ..HeadFields::default()
    };
    let mut request = request_at(&head, ADDRESSES[0], moment, 0);
    request.proxies = proxies;
    let mut record = RequestRecord::unjudged(request);
    record.judgement = world.judge.judge(&record.request);
    world.judge.record_served(&record, moment.now);
    record.judged().expect("a site").clone()
}

#[test]
fn host_is_perhaps_cached_until_two_crawlers_came_through() {
    const BINGBOT: &str = "bingbot/2.0";
    const GPTBOT: &str = "GPTBot/1.2";
    let directory = tempfile::tempdir().expect("a directory");
    let rules = "robots: { origin: replace, groups: [{ agents: '*', disallow: [/cart/] }] }\n";
    let world = judge_with_policy(directory.path(), rules);
    let near = Some(ProxyPath::from_addresses([[10, 0, 0, 1].into()]));
    let other = Some(ProxyPath::from_addresses([[10, 0, 0, 2].into()]));
    let found = |proxies| {
        let judged = judge_through(&world, BINGBOT, "/cart/1", proxies);
        (judged.decision.kind, judged.basis)
    };
    let doubted = (Kind::Unproven, CachedVersionsBasis::PerhapsCached);
    let certain = (Kind::Violation, CachedVersionsBasis::Observed);
    assert_eq!((found(near), found(None)), (doubted, certain));
    let now = world.clock.moment().now;
    let unproven = || {
        world
            .judge
            .ledger
            .unproven_hosts(&world.judge.sites.snapshot(), now)
            .remove("shop")
    };
    let doubt = NonCountingHost {
        host: "shop.example".into(),
        history: CachedVersionsBasis::PerhapsCached,
        until: None,
    };
    assert_eq!(unproven(), Some(vec![doubt]));
    judge_through(&world, BINGBOT, "/robots.txt", near);
    judge_through(&world, BINGBOT, "/robots.txt", near);
    judge_through(&world, GPTBOT, "/robots.txt", other);
    assert_eq!((found(near), found(other)), (doubted, doubted));
    assert_eq!(
        explain_cart(&world, 0),
        (
            Kind::Unproven,
            Some(CachedVersionsBasis::PerhapsCached),
            None
        )
    );
    judge_through(&world, GPTBOT, "/robots.txt", near);
    assert_eq!(
        (unproven(), explain_cart(&world, 0)),
        (None, (Kind::Violation, None, None)),
        "at once"
    );
    assert_eq!((found(near), found(other)), (certain, doubted));
}

/// Explains a request of Bingbot for `/cart/1` without proxies: kind, history and end of the doubt.
fn explain_cart(
    world: &World,
    host: usize,
) -> (Kind, Option<CachedVersionsBasis>, Option<Timestamp>) {
    let request = request(
        Step {
            host,
            agent: 0,
            target: 1,
            address: 0,
            after: 0,
        },
        world.clock.moment(),
        0,
    );
    let Explanation {
        kind,
        history,
        older_until,
        ..
    } = world.judge.explain(&request, &ResponseFacts::default());
    (kind, history, older_until)
}

#[test]
fn doubt_ends_at_the_same_time_everywhere() {
    let directory = tempfile::tempdir().expect("a directory");
    let world = judge_with_policy(
        directory.path(),
        "robots: { origin: replace, groups: [{ agents: '*', disallow: [/cart/] }] }\n",
    );
    let start = world.clock.moment();
    let at = |target, seconds| {
        request(
            Step {
                host: 1,
                agent: 0,
                target,
                address: 0,
                after: 0,
            },
            start,
            seconds,
        )
    };
    let judged_at = |seconds| {
        world
            .judge
            .judge(&at(1, seconds))
            .judged()
            .map(|found| (found.decision.kind, found.older_until))
    };
    let until = start.now.plus(Duration::from_secs(86_400));
    assert_eq!(judged_at(0), Some((Kind::Unproven, Some(until))));
    assert_eq!(
        explain_cart(&world, 1),
        (
            Kind::Unproven,
            Some(CachedVersionsBasis::Unknown),
            Some(until)
        )
    );
    let hosts = |now| {
        world
            .judge
            .ledger
            .unproven_hosts(&world.judge.sites.snapshot(), now)
            .remove("shop")
    };
    let doubt = NonCountingHost {
        host: "fresh.example".into(),
        history: CachedVersionsBasis::Unknown,
        until: Some(until),
    };
    assert_eq!(hosts(start.now), Some(vec![doubt]));
    judged_at(50_000);
    assert_eq!(
        judged_at(86_400),
        Some((Kind::Unproven, Some(until))),
        "to its last second"
    );
    assert_eq!(judged_at(86_401), Some((Kind::Violation, None)));
    assert_eq!(hosts(until.plus(Duration::from_secs(1))), None);
}

#[test]
fn behind_cache_setting_ends_the_doubt() {
    for (setting, kind, basis) in [
        ("no", Kind::Violation, CachedVersionsBasis::Observed),
        ("yes", Kind::Violation, CachedVersionsBasis::Observed),
    ] {
        let directory = tempfile::tempdir().expect("a directory");
        let rules = "robots: { origin: replace, groups: [{ agents: '*', disallow: [/cart/] }] }\n";
        let world = judge_with_policy(
            directory.path(),
            &format!("{rules}enforcement: {{ behind_cache: {setting} }}\n"),
        );
        let near = Some(ProxyPath::from_addresses([[10, 0, 0, 1].into()]));
        let judged = judge_through(&world, "bingbot/2.0", "/cart/1", near);
        assert_eq!(
            (judged.decision.kind, judged.basis),
            (kind, basis),
            "{setting}"
        );
    }
}

#[test]
fn explanation_has_the_requested_hosts() {
    let directory = tempfile::tempdir().expect("a directory");
    let world = judge_with_policy(directory.path(), POLICIES[0]);
    let step = Step {
        host: 0,
        agent: 0,
        target: 0,
        address: 0,
        after: 0,
    };
    let moment = world.clock.moment();
    let requested = |host: &'static str, agent: usize| {
        let head = HeadFields {
            host: host.as_bytes(),
            ..head(Step { agent, ..step })
        };
        let request = request_at(&head, ADDRESSES[0], moment, 0);
        world
            .judge
            .explain(&request, &ResponseFacts::default())
            .requested_hosts
    };
    assert_eq!(requested("shop.example:8080", 0), Some(BTreeSet::new()));
    let head = HeadFields {
        host: b"shop.example:8080",
        ..head(step)
    };
    world
        .judge
        .judge(&request_at(&head, ADDRESSES[0], moment, 0));
    assert_eq!(
        requested("shop.example", 0),
        Some(BTreeSet::from(["shop.example:8080".to_owned()]))
    );
    assert_eq!(requested("shop.example:8080", 0), None);
    assert_eq!(requested("shop.example", 4), None, "a person's browser");
}

#[test]
fn every_signed_request_has_a_signature_result() {
    let directory = tempfile::tempdir().expect("a directory");
    let world = judge_with_policy(directory.path(), POLICIES[2]);
    let fields = SignatureFields {
        input: "a=()",
        signature: "a=:AA==:",
        agent: "\"https://bot.example\"",
    };
    let mut results = Vec::new();
    for (agent, address) in [(0, 0), (1, 0), (1, 2), (2, 0), (3, 0)] {
        let step = Step {
            host: 0,
            agent,
            target: 1,
            address,
            after: 0,
        };
        for is_known in [true, false] {
            let signature = |signature| {
                let head = HeadFields {
                    signature,
                    ..head(step)
                };
                let moment = world.clock.moment();
                let mut request = request_at(&head, ADDRESSES[address], moment, 0);
                request.client = request.client.filter(|_| is_known);
                let judgement = world.judge.judge(&request);
                judgement.judged().and_then(|judged| judged.signature)
            };
            assert_eq!(signature(SignatureFields::default()), None);
            results.push(signature(fields));
        }
    }
    assert!(results.iter().all(Option::is_some), "{results:?}");
}
