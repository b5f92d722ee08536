//! Tests of what crawlgate remembers about clients over time: crawl rates, marks of clients that
//! requested a trap, and which clients certainly got the present robots.txt.

use super::*;
use crate::clock::Moment;
use crate::crawlers::Registry;
use crate::policy::{
    ParsedRobotsVersion, PublicationHistories, PublicationHistory, SiteEntry, Snapshot,
    SupersededVersion,
};
use crate::state::StateStore;
use crate::time::Timestamp;
use crate::verdict::{
    CachedVersions, CachedVersionsBasis, Decision, DecisionScratch, Identity, Kind, RequestFacts,
    RequestToJudge, SiteClaim, decide_for, load_site,
};
use crate::yaml::SourceFile;
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);

impl Default for MarkedClients {
    fn default() -> MarkedClients {
        let start = Moment {
            now: Timestamp(0),
            monotonic: Duration::ZERO,
        };
        MarkedClients::restore(&[], StateStore::in_memory_only().0, start)
    }
}

impl Default for BehaviourTables {
    fn default() -> BehaviourTables {
        BehaviourTables::new(MarkedClients::default())
    }
}

fn milliseconds(number: u64) -> Duration {
    Duration::from_millis(number)
}

// ---- crawl_rate

proptest! {
    /// Whatever its delay and the moment it begins at, and however much longer it sometimes waits.
    #[test]
    fn crawler_that_keeps_its_delay_is_never_too_fast(
        delay in 1_u64..1_000_000, start in 0_u64..2_000_000_000_000, more in prop::collection::vec(0_u64..500_000, 1..50),
    ) {
        let (mut expected, mut now) = (None, milliseconds(start));
        for pause in more {
            let next = gcra(expected, now, milliseconds(delay));
            prop_assert!(next.is_ok(), "{next:?}");
            expected = next.ok();
            now += milliseconds(delay + pause);
        }
    }

    /// Who is told to wait is in time after exactly that long, and a nanosecond sooner is not.
    #[test]
    fn request_after_the_exact_wait_is_in_time(
        delay in 1_u64..1_000_000, steps in prop::collection::vec(0_u64..2_000_000, 1..50),
    ) {
        let delay = milliseconds(delay);
        let (mut expected, mut now) = (None, milliseconds(1_000_000));
        for step in steps {
            match gcra(expected, now, delay) {
                Ok(next) => expected = Some(next),
                Err(wait) => {
                    prop_assert!(wait <= delay, "{wait:?} of {delay:?}");
                    prop_assert!(gcra(expected, now + wait, delay).is_ok());
                    prop_assert!(gcra(expected, now + wait - Duration::from_nanos(1), delay).is_err());
                }
            }
            now += milliseconds(step);
        }
    }

    /// However it crowds its requests, no more pass than the delay has room for.
    #[test]
    fn crowded_requests_pass_no_faster_than_the_delay(
        delay in 100_u64..10_000, steps in prop::collection::vec(0_u64..2_000, 100..300),
    ) {
        let (mut expected, mut now, mut passed) = (None, Duration::ZERO, 0_u64);
        for step in steps {
            if let Ok(next) = gcra(expected, now, milliseconds(delay)) {
                (expected, passed) = (Some(next), passed + 1);
            }
            now += milliseconds(step);
        }
        let room = now.as_millis() as u64 / delay + 2;
        prop_assert!(passed <= room, "{passed} in {now:?} at {delay} ms");
    }
}

#[test]
fn shorter_delay_locks_no_client_out() {
    let delay = Duration::from_secs(10);
    let next = gcra(None, Duration::from_secs(1_000), HOUR).expect("the first");
    assert!(gcra(Some(next), Duration::from_secs(1_001), HOUR).is_err());
    assert!(
        gcra(Some(next), Duration::from_secs(1_010), delay).is_ok(),
        "the policy has another delay by now"
    );
    let (last, shorter) = (
        gcra(None, Duration::from_secs(1_000), delay).expect("the first"),
        Duration::from_secs(6),
    );
    assert!(
        gcra(Some(last), Duration::from_secs(1_006), shorter).is_ok(),
        "it is counted from the last one"
    );
    assert_eq!(
        gcra(Some(last), Duration::from_secs(1_003), shorter),
        Err(Duration::from_secs(2))
    );
}

#[test]
fn host_in_other_spellings_has_one_crawl_rate() {
    let (crawl_rate, delay, now) = (
        CrawlRates::default(),
        Duration::from_secs(10),
        Duration::from_secs(100),
    );
    let ask = |host: &str| {
        let place = super::proven_fetches::site_host_key("shop", host.as_bytes()).expect("a host");
        let party = RateKey {
            place,
            crawler: "bingbot",
            identity: Identity::Unverified,
            address: None,
        };
        crawl_rate.count_request(party, delay, now).is_none()
    };
    assert!(ask("shop.example") && ask("www.shop.example") && ask("shop.example:8443"));
    assert!(!ask("Shop.Example.:443") && !ask("WWW.shop.example"));
}

fn rate_key<'a>(site: &str, crawler: &'a str, identity: Identity, from: &str) -> RateKey<'a> {
    let place = super::proven_fetches::site_host_key(site, b"shop.example").expect("a host");
    RateKey {
        place,
        crawler,
        identity,
        address: Some(parse_address(from)),
    }
}

#[test]
fn crawlers_sites_and_verified_clients_have_own_rates() {
    let (crawl_rate, delay, now) = (
        CrawlRates::default(),
        Duration::from_secs(10),
        Duration::from_secs(100),
    );
    let ask = |site: &str, crawler: &str, identity| {
        crawl_rate.count_request(rate_key(site, crawler, identity, "192.0.2.1"), delay, now)
    };
    assert_eq!(ask("shop", "bingbot", Identity::Unverified), None);
    assert_eq!(
        ask("shop", "bingbot", Identity::Unverified),
        Some(Duration::from_secs(9))
    );
    assert_eq!(ask("blog", "bingbot", Identity::Unverified), None);
    assert_eq!(ask("shop", "yandexbot", Identity::Unverified), None);
    assert_eq!(
        ask("shop", "bingbot", Identity::Verified),
        None,
        "nobody who takes its name uses its crawl_rate up"
    );
    let verified = rate_key("shop", "bingbot", Identity::Verified, "192.0.2.2");
    assert_eq!(
        crawl_rate.check_request(verified.clone(), delay, now),
        Some(Duration::from_secs(9)),
        "it is one crawler, wherever it is"
    );
    let later = now + Duration::from_secs(10);
    assert_eq!(
        crawl_rate.check_request(verified.clone(), delay, later),
        None
    );
    assert_eq!(
        crawl_rate.check_request(verified, delay, later),
        None,
        "to look is not to ask"
    );
}

#[test]
fn forger_uses_up_the_rate_of_its_own_address_only() {
    let (crawl_rate, delay) = (CrawlRates::default(), Duration::from_secs(10));
    let (mut now, mut refused) = (Duration::from_secs(100), 0);
    for second in 0..1_000 {
        let forger = rate_key("shop", "bingbot", Identity::Unverified, "2001:db8:1:2::1");
        refused += u32::from(crawl_rate.count_request(forger, delay, now).is_some());
        if second % 10 == 0 {
            for own in ["192.0.2.1", "2001:db8:1:3::1"] {
                let crawler = rate_key("shop", "bingbot", Identity::Unverified, own);
                assert_eq!(
                    crawl_rate.count_request(crawler, delay, now),
                    None,
                    "{own} keeps the delay"
                );
            }
        }
        now += Duration::from_secs(1);
    }
    assert!(refused > 800, "{refused}");
    let neighbour = rate_key(
        "shop",
        "bingbot",
        Identity::Unverified,
        "2001:db8:1:2::ffff",
    );
    assert!(
        crawl_rate.check_request(neighbour, delay, now).is_some(),
        "one machine has the whole /64"
    );
}

#[test]
fn million_addresses_leave_the_rate_table_bounded() {
    let (crawl_rate, delay) = (CrawlRates::default(), Duration::from_secs(1_000_000));
    let from = |number: u64| {
        let address = Some(IpAddr::V4(Ipv4Addr::from(number as u32)));
        let place = super::proven_fetches::site_host_key("shop", b"shop.example").expect("a host");
        RateKey {
            place,
            crawler: "bingbot",
            identity: Identity::Unverified,
            address,
        }
    };
    for number in 0..1_000_000_u64 {
        crawl_rate.count_request(from(number), delay, milliseconds(number));
    }
    assert!(crawl_rate.len() <= 65_536, "{}", crawl_rate.len());
    assert!(
        crawl_rate
            .check_request(from(999_999), delay, milliseconds(1_000_001))
            .is_some(),
        "it was just here"
    );
}

// ---- traps

/// A clock that nobody set.
fn moment_at(seconds: i64) -> Moment {
    moment_after_step(seconds, 0)
}

/// One that somebody set, after so many seconds.
fn moment_after_step(monotonic: i64, set: i64) -> Moment {
    Moment {
        now: Timestamp(monotonic + set),
        monotonic: Duration::from_secs(monotonic.unsigned_abs()),
    }
}

fn parse_address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

#[test]
fn mark_is_for_one_address_name_and_site_until_its_end() {
    let (traps, start) = (MarkedClients::default(), moment_at(1_000));
    let is_marked = |site, crawler, from, at| {
        traps.is_marked(site, crawler, parse_address(from), Duration::from_secs(at))
    };
    assert!(!is_marked("shop", "gptbot", "192.0.2.1", 1_000));
    traps.mark_client("shop", "gptbot", parse_address("192.0.2.1"), start, HOUR);
    assert!(
        is_marked("shop", "gptbot", "192.0.2.1", 1_000)
            && is_marked("shop", "gptbot", "192.0.2.1", 4_599)
    );
    assert!(
        !is_marked("shop", "gptbot", "192.0.2.1", 4_600),
        "the hour is over"
    );
    assert!(!is_marked("shop", "bingbot", "192.0.2.1", 1_001));
    assert!(!is_marked("blog", "gptbot", "192.0.2.1", 1_001));
    assert!(!is_marked("shop", "gptbot", "192.0.2.2", 1_001));
    traps.mark_client(
        "shop",
        "gptbot",
        parse_address("192.0.2.1"),
        moment_at(4_000),
        HOUR,
    );
    assert!(
        is_marked("shop", "gptbot", "192.0.2.1", 7_599),
        "who does it again is marked anew"
    );
    assert_eq!(traps.len(), 1);
    assert_eq!(
        traps.active_marks(moment_at(7_599))[0].since,
        Timestamp(4_000)
    );
    assert!(traps.active_marks(moment_at(7_600)).is_empty());
}

#[test]
fn ipv6_mark_covers_the_64_and_mapped_address_is_ipv4() {
    let (traps, now) = (MarkedClients::default(), moment_at(0));
    traps.mark_client(
        "shop",
        "other",
        parse_address("2001:db8:1:2:3:4:5:6"),
        now,
        HOUR,
    );
    assert!(traps.is_marked(
        "shop",
        "other",
        parse_address("2001:db8:1:2::9"),
        now.monotonic
    ));
    assert!(!traps.is_marked(
        "shop",
        "other",
        parse_address("2001:db8:1:3::9"),
        now.monotonic
    ));
    traps.mark_client(
        "shop",
        "other",
        parse_address("::ffff:192.0.2.7"),
        now,
        HOUR,
    );
    assert!(traps.is_marked("shop", "other", parse_address("192.0.2.7"), now.monotonic));
    assert_eq!(
        traps
            .release_network(parse_network("2001:db8:1:2::1/128"), now)
            .len(),
        1
    );
    assert!(!traps.is_marked(
        "shop",
        "other",
        parse_address("2001:db8:1:2::9"),
        now.monotonic
    ));
}

fn parse_network(text: &str) -> ipnet::IpNet {
    text.parse().expect("a network")
}

#[test]
fn release_within_a_64_removes_all_marks_of_it() {
    let (traps, now) = (MarkedClients::default(), moment_at(0));
    for marked in [
        "192.0.2.1",
        "192.0.2.200",
        "198.51.100.1",
        "2001:db8:1:2::3",
        "2001:db8:1:4::",
    ] {
        traps.mark_client("shop", "other", parse_address(marked), now, HOUR);
    }
    for (released, count) in [
        ("2001:db8:1:2::/64", 1),
        ("2001:db8:1:2:3::/80", 0),
        ("2001:db8:1:4:3::/80", 1),
        ("192.0.2.128/25", 1),
        ("::ffff:192.0.2.1/128", 1),
        ("::ffff:198.51.100.0/120", 1),
        ("::/0", 0),
        ("0.0.0.0/0", 0),
    ] {
        assert_eq!(
            traps.release_network(parse_network(released), now).len(),
            count,
            "{released}"
        );
    }
    assert!(traps.is_empty());
}

#[test]
fn release_removes_marks_under_every_name() {
    let (traps, now) = (MarkedClients::default(), moment_at(0));
    for crawler in ["gptbot", "other"] {
        traps.mark_client("shop", crawler, parse_address("192.0.2.1"), now, HOUR);
    }
    traps.mark_client("shop", "gptbot", parse_address("192.0.2.2"), now, HOUR);
    assert_eq!(
        traps
            .release_network(parse_network("192.0.2.1/32"), now)
            .len(),
        2
    );
    assert!(
        traps
            .release_network(parse_network("192.0.2.1/32"), now)
            .is_empty()
    );
    assert_eq!((traps.len(), traps.active_marks(now).len()), (1, 1));
}

#[test]
fn million_addresses_leave_the_mark_table_bounded() {
    let traps = MarkedClients::default();
    for number in 0..1_000_000_u32 {
        let now = moment_at(i64::from(number / 10_000));
        let address = match number % 2 {
            0 => IpAddr::V4(Ipv4Addr::from(number)),
            _ => IpAddr::V6(Ipv6Addr::from(u128::from(number) << 64)),
        };
        traps.mark_client("shop", "other", address, now, HOUR);
    }
    let now = moment_at(100);
    assert!(traps.len() <= 65_536, "{}", traps.len());
    assert_eq!(traps.active_marks(now).len(), traps.len());
    assert!(traps.is_marked(
        "shop",
        "other",
        IpAddr::V6(Ipv6Addr::from(999_999_u128 << 64)),
        now.monotonic
    ));
}

/// Marks in a state directory, at a start at this moment.
fn open_marks(directory: &std::path::Path, moment: Moment) -> (MarkedClients, StateStore) {
    let (store, remembered) =
        StateStore::open(Some(directory), Arc::new(move || moment)).expect("opened");
    store.begin(Vec::new()).expect("begun");
    (
        MarkedClients::restore(&remembered.facts.marked_clients, store.clone(), moment),
        store,
    )
}

/// The end of such a run.
fn close_marks((traps, store): (MarkedClients, StateStore), moment: Moment) {
    traps.flush(moment);
    store.close().expect("closed");
}

#[test]
fn marks_survive_a_restart() {
    let directory = tempfile::tempdir().expect("a directory");
    let (traps, store) = open_marks(directory.path(), moment_at(0));
    traps.mark_client(
        "shop",
        "gptbot",
        parse_address("192.0.2.1"),
        moment_at(0),
        HOUR,
    );
    traps.mark_client(
        "shop",
        "gptbot",
        parse_address("2001:db8::1"),
        moment_at(0),
        Duration::from_secs(10),
    );
    close_marks((traps, store), moment_at(0));
    let (again, _store) = open_marks(directory.path(), moment_at(100));
    assert!(again.is_marked(
        "shop",
        "gptbot",
        parse_address("192.0.2.1"),
        moment_at(100).monotonic
    ));
    assert_eq!(
        again.active_marks(moment_at(100)).len(),
        1,
        "the other one's time is over"
    );
}

#[test]
fn flush_stores_new_marks_and_removes_released_ones() {
    let directory = tempfile::tempdir().expect("a directory");
    let (traps, store) = open_marks(directory.path(), moment_at(0));
    for client in ["192.0.2.1", "192.0.2.2"] {
        traps.mark_client("shop", "gptbot", parse_address(client), moment_at(0), HOUR);
    }
    traps.flush(moment_at(1));
    assert_eq!(
        traps
            .release_network("192.0.2.1/32".parse().expect("a network"), moment_at(2))
            .len(),
        1
    );
    close_marks((traps, store), moment_at(3));
    let (again, _store) = open_marks(directory.path(), moment_at(4));
    assert_eq!(
        again
            .active_marks(moment_at(4))
            .iter()
            .map(|mark| mark.address)
            .collect::<Vec<_>>(),
        [parse_address("192.0.2.2")]
    );
}

// ---- both, with the decision

const POLICY: &str = r#"
hosts: [shop.example]
robots:
  origin: replace
  groups:
    - { agents: ["*"], disallow: [/cart/], crawl_delay: 10s }
    - { agents: [GPTBot], disallow: [/garden/], crawl_delay: 2s }
enforcement: { mode: enforce, traps: [/trap/], trapped: { status: 410, for: 1h }, exempt: [HouseBot] }
crawlers:
  - { token: ShopBot, crawl_delay: yes, networks: [198.51.100.0/24] }
"#;

/// A version that another took the place of at the beginning.
fn superseded_version(policy: String) -> SupersededVersion {
    let parsed = Arc::new(ParsedRobotsVersion::parse(
        site(&policy).robots_txt.body.clone(),
        Registry::builtin(),
    ));
    SupersededVersion {
        parsed,
        since: Timestamp(-1_000),
        superseded_at: Timestamp(0),
    }
}

struct BehaviourWorld {
    behaviours: BehaviourTables,
    snapshot: Snapshot,
    /// Versions that may be held besides the one in force.
    cached: Vec<SupersededVersion>,
    /// Whether the host was watched for long enough.
    watched: bool,
}

impl BehaviourWorld {
    fn new(policy: &str) -> BehaviourWorld {
        let snapshot = Snapshot::new(vec![SiteEntry::new(site(policy), Timestamp(0))], 1);
        BehaviourWorld {
            behaviours: BehaviourTables::default(),
            snapshot,
            cached: Vec::new(),
            watched: true,
        }
    }

    /// `client` is empty where the client is not known.
    fn request(&self, seconds: f64, client: &str, user_agent: &str, target: &str) -> Decision {
        self.request_as(Identity::Unverified, seconds, client, user_agent, target)
    }

    fn request_as(
        &self,
        identity: Identity,
        seconds: f64,
        client: &str,
        user_agent: &str,
        target: &str,
    ) -> Decision {
        let facts = RequestFacts {
            host: b"shop.example",
            target: target.as_bytes(),
            method: b"GET",
            user_agent: user_agent.as_bytes(),
            client: (!client.is_empty()).then(|| parse_address(client)),
            identity,
            now: Timestamp(seconds as i64),
        };
        let registry = Registry::builtin();
        let claimant =
            SiteClaim::find(&self.snapshot, registry, &facts).expect("a site has the host");
        let now = Duration::from_secs_f64(seconds);
        let is_cached = |version: &SupersededVersion| facts.now.since(version.superseded_at) <= DAY;
        let places = self
            .cached
            .iter()
            .enumerate()
            .filter(|(_, version)| is_cached(version));
        let cached = places.fold(0, |bits, (place, _)| bits | 1 << place);
        let cached_versions = CachedVersions {
            versions: &self.cached,
            cached,
            basis: if self.watched {
                CachedVersionsBasis::Observed
            } else {
                CachedVersionsBasis::Unknown
            },
            has_version_in_force: true,
            ..CachedVersions::default()
        };
        let case = RequestToJudge {
            registry,
            facts,
            claimant,
            cached_versions,
        };
        let peeked = self.behaviours.evaluate(&case, now, RateCheckMode::Check);
        let behaviour = self.behaviours.evaluate(&case, now, RateCheckMode::Count);
        assert_eq!(peeked, behaviour, "to look says what counting says");
        let decision = decide_for(&case, behaviour, &mut DecisionScratch::default());
        if decision.trap_hit {
            self.behaviours.mark_client(&case, now);
        }
        decision
    }

    /// The version in force is served to somebody under this name.
    fn fetch_robots_txt(&self, identity: Identity, client: &str, user_agent: &str) {
        let facts = RequestFacts {
            host: b"shop.example",
            target: b"/robots.txt",
            method: b"GET",
            user_agent: user_agent.as_bytes(),
            client: Some(parse_address(client)),
            identity,
            now: Timestamp(500),
        };
        let claimant = SiteClaim::find(&self.snapshot, Registry::builtin(), &facts)
            .expect("a site has the host");
        self.behaviours
            .record_served(Registry::builtin(), claimant, &facts);
    }
}

fn site(policy: &str) -> Arc<crate::policy::Site> {
    let (site, findings) = load_site(
        "shop",
        &SourceFile {
            name: "shop.yaml".into(),
            text: policy.into(),
        },
        Registry::builtin(),
    );
    site.unwrap_or_else(|| panic!("{findings:?}"))
}

const BINGBOT: &str = "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)";
const BROWSER: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";

#[test]
fn client_of_a_trap_is_blocked_everywhere_until_its_end() {
    let time = BehaviourWorld::new(POLICY);
    assert_eq!(
        time.request(0.0, "192.0.2.1", BINGBOT, "/").kind,
        Kind::Allowed
    );
    assert_eq!(
        time.request(10.0, "192.0.2.1", BINGBOT, "/trap/x").kind,
        Kind::Trapped
    );
    assert_eq!(
        time.request(20.0, "192.0.2.1", BINGBOT, "/").kind,
        Kind::Trapped
    );
    assert_eq!(
        time.request(20.0, "192.0.2.1", BINGBOT, "/robots.txt").kind,
        Kind::Allowed,
        "robots.txt is free"
    );
    assert_eq!(
        time.request(20.0, "192.0.2.1", BROWSER, "/").kind,
        Kind::NotACrawler,
        "people share its address"
    );
    assert_eq!(
        time.request(20.0, "192.0.2.2", BINGBOT, "/").kind,
        Kind::Allowed,
        "the crawler has other addresses"
    );
    assert_eq!(
        time.request(3_611.0, "192.0.2.1", BINGBOT, "/").kind,
        Kind::Allowed,
        "the hour is over"
    );
}

#[test]
fn unknown_client_has_no_mark_and_no_crawl_rate() {
    let time = BehaviourWorld::new(POLICY);
    assert_eq!(
        time.request(1.0, "", "GPTBot/1.2", "/trap/").kind,
        Kind::Trapped,
        "the request itself"
    );
    for second in [2.0, 2.1, 2.2] {
        assert_eq!(
            time.request(second, "", "GPTBot/1.2", "/page").kind,
            Kind::Allowed
        );
    }
    assert_eq!(
        (
            time.behaviours.marked_clients.len(),
            time.behaviours.crawl_rates.len()
        ),
        (0, 0)
    );
    // One whose network the policy has is proven, and is one crawler wherever it comes from.
    assert_eq!(
        time.request_as(Identity::Verified, 3.0, "", "ShopBot/1", "/page")
            .kind,
        Kind::Allowed
    );
    assert_eq!(
        time.request_as(Identity::Verified, 3.1, "", "ShopBot/1", "/page")
            .kind,
        Kind::TooFast
    );
}

#[test]
fn trap_marks_no_person_exempt_or_verified_client() {
    let time = BehaviourWorld::new(POLICY);
    for user_agent in [BROWSER, "curl/8.9.1", "HouseBot/1.0"] {
        time.request(0.0, "192.0.2.1", user_agent, "/trap/");
    }
    assert!(time.behaviours.marked_clients.is_empty());
    let reported = time.request_as(
        Identity::Verified,
        0.0,
        "198.51.100.1",
        "ShopBot/1.0",
        "/trap/",
    );
    assert_eq!((reported.kind, reported.trap_hit), (Kind::Trapped, true));
    assert!(time.behaviours.marked_clients.is_empty());
    let impostor = time.request_as(
        Identity::Impostor,
        0.0,
        "192.0.2.1",
        "ShopBot/1.0",
        "/trap/",
    );
    assert_eq!((impostor.kind, impostor.trap_hit), (Kind::Impostor, false));
}

#[test]
fn client_with_a_cached_version_without_trap_is_unmarked() {
    let mut time = BehaviourWorld::new(POLICY);
    time.cached = vec![superseded_version(POLICY.replace("traps: [/trap/], ", ""))];
    assert_eq!(
        time.request(100.0, "192.0.2.1", BINGBOT, "/trap/").kind,
        Kind::StaleCopy
    );
    // It was disallowed by another rule: against the rules, but of the trap it could not know.
    time.cached = vec![superseded_version(
        POLICY
            .replace("traps: [/trap/], ", "")
            .replace("/cart/", "/tra"),
    )];
    assert_eq!(
        time.request(110.0, "192.0.2.1", BINGBOT, "/trap/").kind,
        Kind::Violation
    );
    assert!(time.behaviours.marked_clients.is_empty());
    assert_eq!(
        time.request(90_000.0, "192.0.2.1", BINGBOT, "/trap/").kind,
        Kind::Trapped,
        "a day later it has the new one"
    );
    time.cached = vec![superseded_version(POLICY.replace("/cart/", "/other/"))];
    assert_eq!(
        time.request(90_010.0, "192.0.2.9", BINGBOT, "/trap/").kind,
        Kind::Trapped,
        "both have it"
    );
}

#[test]
fn ambiguous_url_hits_no_trap() {
    let time = BehaviourWorld::new(POLICY);
    assert_eq!(
        time.request(0.0, "192.0.2.1", BINGBOT, "/x/../trap/").kind,
        Kind::Ambiguous
    );
    assert!(time.behaviours.marked_clients.is_empty());
}

#[test]
fn delay_binds_crawlers_that_honour_it_or_are_named() {
    let time = BehaviourWorld::new(POLICY);
    let kinds = |user_agent: &str, target: &str| {
        let ask = |seconds| time.request(seconds, "192.0.2.1", user_agent, target).kind;
        [ask(1_000.0), ask(1_001.0)]
    };
    assert_eq!(
        kinds("GPTBot/1.2", "/")[1],
        Kind::TooFast,
        "a group names it"
    );
    assert_eq!(
        kinds("ShopBot/1.0", "/")[1],
        Kind::TooFast,
        "its owner says it honours it"
    );
    assert_eq!(
        kinds("Googlebot/2.1", "/")[1],
        Kind::Allowed,
        "it ignores Crawl-delay by its operator's word"
    );
    assert_eq!(kinds(BROWSER, "/")[1], Kind::NotACrawler);
    assert_eq!(kinds(BINGBOT, "/robots.txt?x"), [Kind::Allowed; 2]);
    assert_eq!(
        time.request(1_002.1, "192.0.2.1", "GPTBot/1.2", "/").kind,
        Kind::Allowed,
        "two seconds after the first"
    );
}

#[test]
fn request_after_retry_after_is_allowed() {
    let time = BehaviourWorld::new(POLICY);
    time.request(1_000.0, "192.0.2.1", "ShopBot/1.0", "/");
    let mut now = 1_000.25;
    let crate::verdict::Action::Slow { retry_after, .. } =
        time.request(now, "192.0.2.1", "ShopBot/1.0", "/").action
    else {
        panic!("too fast");
    };
    assert_eq!(retry_after, 9, "whole seconds, up");
    now += f64::from(retry_after);
    assert_eq!(
        time.request(now, "192.0.2.1", "ShopBot/1.0", "/").kind,
        Kind::Allowed
    );
}

#[test]
fn raised_delay_counts_once_no_older_version_is_cached() {
    let bot = "ShopBot/1.0";
    let mut time = BehaviourWorld::new(POLICY);
    time.cached = vec![superseded_version(
        POLICY.replace("crawl_delay: 10s", "crawl_delay: 2s"),
    )];
    for seconds in [1_000.0, 1_002.0, 1_004.0] {
        assert_eq!(
            time.request(seconds, "192.0.2.1", bot, "/").kind,
            Kind::Allowed,
            "it keeps the delay that it knows"
        );
    }
    assert_eq!(
        time.request(1_005.0, "192.0.2.1", bot, "/").kind,
        Kind::TooFast,
        "nor did any version allow this"
    );
    assert_eq!(
        time.request(90_000.0, "192.0.2.1", bot, "/").kind,
        Kind::Allowed
    );
    assert_eq!(
        time.request(90_002.0, "192.0.2.1", bot, "/").kind,
        Kind::TooFast,
        "a day later it has the new one"
    );

    for before in [
        ", crawl_delay: 10s",
        "[\"*\"], disallow: [/cart/], crawl_delay: 10s",
    ] {
        let after = if before.starts_with('[') {
            "[Nobodybot], disallow: [/cart/]"
        } else {
            ""
        };
        let mut time = BehaviourWorld::new(POLICY);
        time.cached = vec![superseded_version(
            POLICY
                .replace(before, after)
                .replace("traps: [/trap/], ", ""),
        )];
        for seconds in [1_000.0, 1_000.5, 1_001.0] {
            assert_eq!(
                time.request(seconds, "192.0.2.1", bot, "/").kind,
                Kind::Allowed,
                "there was none"
            );
        }
    }
    let mut time = BehaviourWorld::new(&POLICY.replace("crawl_delay: 10s", "crawl_delay: 2s"));
    time.cached = vec![superseded_version(POLICY.to_owned())];
    time.request(1_000.0, "192.0.2.1", bot, "/");
    assert_eq!(
        time.request(1_002.0, "192.0.2.1", bot, "/").kind,
        Kind::Allowed,
        "the shorter one is in force at once"
    );
}

#[test]
fn crawler_of_an_unobserved_host_is_never_too_fast() {
    let (bot, mut time) = ("ShopBot/1.0", BehaviourWorld::new(POLICY));
    time.watched = false;
    for seconds in [1_000.0, 1_000.5] {
        assert_eq!(
            time.request(seconds, "192.0.2.1", bot, "/").kind,
            Kind::Allowed,
            "it may never have heard of a delay"
        );
    }
    time.fetch_robots_txt(Identity::Unverified, "192.0.2.1", bot);
    time.request(2_000.0, "192.0.2.1", bot, "/");
    let slowed = time.request(2_001.0, "192.0.2.1", bot, "/");
    assert_eq!(
        (slowed.kind, slowed.action.name()),
        (Kind::Unproven, "slow"),
        "it knows, and may hold another one"
    );
}

#[test]
fn trap_of_an_unobserved_host_marks_no_client() {
    let mut time = BehaviourWorld::new(POLICY);
    time.watched = false;
    assert_eq!(
        time.request(1_000.0, "192.0.2.1", "Googlebot/2.1", "/trap/")
            .kind,
        Kind::Unproven
    );
    assert_eq!(
        time.request(1_001.0, "192.0.2.1", "Googlebot/2.1", "/")
            .kind,
        Kind::Allowed,
        "it is not shut out"
    );
    assert!(time.behaviours.marked_clients.is_empty());
    time.fetch_robots_txt(Identity::Unverified, "192.0.2.1", "Googlebot/2.1");
    // The line was shown to it, and it may go by what it held before all the same.
    assert_eq!(
        time.request(1_002.0, "192.0.2.1", "Googlebot/2.1", "/trap/")
            .kind,
        Kind::Unproven
    );
    assert!(time.behaviours.marked_clients.is_empty());
    let mut later = BehaviourWorld::new(POLICY);
    assert_eq!(
        later
            .request(1_000.0, "192.0.2.1", "Googlebot/2.1", "/trap/")
            .kind,
        Kind::Trapped,
        "no copy is unknown"
    );
    later.cached = vec![superseded_version(POLICY.replace("traps: [/trap/], ", ""))];
    assert_eq!(
        later
            .request(1_001.0, "192.0.2.2", "Googlebot/2.1", "/trap/")
            .kind,
        Kind::StaleCopy
    );
}

/// A forger took its name, and the file: it itself was shown nothing.
#[test]
fn fetch_of_a_forger_binds_only_its_own_address() {
    let mut time = BehaviourWorld::new(POLICY);
    time.watched = false;
    for bot in ["ShopBot/1.0", "bingbot/2.0", "GPTBot/1.2"] {
        time.fetch_robots_txt(Identity::Unverified, "203.0.113.66", bot);
        time.fetch_robots_txt(Identity::Impostor, "203.0.113.66", bot);
        for seconds in [1_000.0, 1_000.5] {
            assert_eq!(
                time.request(seconds, "192.0.2.1", bot, "/").kind,
                Kind::Allowed,
                "{bot}"
            );
        }
        let trap = time.request(1_001.0, "192.0.2.1", bot, "/trap/");
        assert!(
            !trap.trap_hit && trap.kind != Kind::Trapped,
            "{bot}: {trap:?}"
        );
        // The forger is held to what it was given.
        assert_eq!(
            time.request(1_000.0, "203.0.113.66", bot, "/").kind,
            Kind::Allowed
        );
        assert_eq!(
            time.request(1_000.5, "203.0.113.66", bot, "/")
                .action
                .name(),
            "slow",
            "{bot}"
        );
    }
    assert!(time.behaviours.marked_clients.is_empty());
}

#[test]
fn verified_fetch_counts_for_every_address_of_the_crawler() {
    let (bot, mut time) = ("ShopBot/1.0", BehaviourWorld::new(POLICY));
    time.watched = false;
    let slow = |time: &BehaviourWorld, start: f64, client: &str| {
        time.request(start, client, bot, "/");
        time.request(start + 0.5, client, bot, "/").action.name() == "slow"
    };
    time.fetch_robots_txt(Identity::Verified, "198.51.100.1", bot);
    assert!(slow(&time, 1_000.0, "198.51.100.1") && slow(&time, 1_000.0, "192.0.2.1"));
    // The owner changes the file: nobody was shown the new one.
    let parsed = superseded_version(POLICY.to_owned());
    time.snapshot = Snapshot::new(
        vec![SiteEntry::new(
            site(&POLICY.replace("/cart/", "/carts/")),
            Timestamp(0),
        )],
        2,
    );
    time.cached = vec![parsed];
    assert!(!slow(&time, 2_000.0, "198.51.100.1"));
    time.fetch_robots_txt(Identity::Unverified, "2001:db8:0:1::1", bot);
    assert!(
        slow(&time, 3_000.0, "2001:db8:0:1:ffff::2"),
        "one machine has the whole /64"
    );
    assert!(!slow(&time, 3_000.0, "2001:db8:0:2::1"));
    // Where somebody else had its name when it was fetched, that was somebody else.
    let history = PublicationHistory {
        identity_epoch: Timestamp(501),
        ..PublicationHistory::new(Timestamp(0))
    };
    let histories = PublicationHistories::new(vec![(None, Arc::new(history))]);
    time.snapshot = time
        .snapshot
        .clone()
        .with_histories(histories, Timestamp(4_000));
    assert!(!slow(&time, 4_000.0, "2001:db8:0:1::1"));
}

#[test]
fn million_fetches_leave_the_fetch_table_bounded() {
    use super::proven_fetches::{ProvenFetch, ProvenFetches};
    let (shown, version) = (
        ProvenFetches::default(),
        crate::policy::RobotsVersionId([0; 8]),
    );
    let showing = ProvenFetch {
        key: b"shop\0shop.example",
        crawler: "bingbot",
        version,
    };
    for number in 0..1_000_000_u32 {
        shown.record(
            showing,
            Identity::Unverified,
            Some(Ipv4Addr::from(number).into()),
            Timestamp(number.into()),
        );
    }
    assert!(shown.len() <= 65_536, "{}", shown.len());
    let was_shown = |number: u32, now: i64| {
        shown.was_served_within(
            showing,
            Some(Ipv4Addr::from(number).into()),
            Timestamp(0)..=Timestamp(now),
        )
    };
    assert!(was_shown(999_999, 1_000_000), "the last are remembered");
    assert!(!was_shown(0, 1_000_000));
    assert!(
        !was_shown(999_999, 999_000),
        "by a clock that was ahead nothing was shown"
    );
}

#[test]
fn unknown_bots_at_one_address_are_marked_separately() {
    let time = BehaviourWorld::new(POLICY);
    let [one, other] = [
        "OneBot/1.0 (+http://one.example)",
        "OtherBot/2.0 (+http://other.example)",
    ];
    assert_eq!(
        time.request(0.0, "192.0.2.1", one, "/trap/").kind,
        Kind::Trapped
    );
    assert_eq!(
        time.request(10.0, "192.0.2.1", one, "/").kind,
        Kind::Trapped
    );
    assert_eq!(
        time.request(10.0, "192.0.2.1", other, "/").kind,
        Kind::Allowed
    );
    let nameless = "Mozilla/5.0 (compatible; +http://a.example)";
    assert_eq!(
        time.request(20.0, "192.0.2.2", nameless, "/trap/").kind,
        Kind::Trapped
    );
    assert_eq!(
        time.behaviours.marked_clients.len(),
        1,
        "who has no name is refused, and not marked"
    );
}

#[test]
fn exempt_crawler_has_the_kind_exempt() {
    let time = BehaviourWorld::new(POLICY);
    for target in ["/cart/", "/trap/", "/x/../cart/"] {
        let decision = time.request(0.0, "192.0.2.1", "HouseBot/1.0", target);
        assert_eq!(
            (decision.kind, decision.action.name(), decision.would),
            (Kind::Exempt, "pass", None),
            "{target}"
        );
    }
    assert_eq!(
        time.request(0.0, "192.0.2.1", "HouseBot/1.0", "/").kind,
        Kind::Allowed
    );
}

#[test]
fn mark_keeps_its_duration_when_the_clock_is_set() {
    for set in [
        -365 * 86_400,
        -7_000,
        -3_600,
        -30,
        -2,
        0,
        2,
        30,
        3_600,
        365 * 86_400,
    ] {
        let traps = MarkedClients::default();
        traps.mark_client(
            "shop",
            "gptbot",
            parse_address("192.0.2.1"),
            moment_at(1_000_000),
            HOUR,
        );
        let is_marked = |monotonic| {
            traps.is_marked(
                "shop",
                "gptbot",
                parse_address("192.0.2.1"),
                moment_at(monotonic).monotonic,
            )
        };
        assert!(
            is_marked(1_000_001)
                && is_marked(1_003_599)
                && !is_marked(1_003_600)
                && !is_marked(1_007_000)
        );
        let (last, over) = (
            moment_after_step(1_003_590, set),
            moment_after_step(1_003_600, set),
        );
        assert_eq!(
            (
                traps.active_count(last.monotonic),
                traps.active_marks(last).len()
            ),
            (1, 1),
            "{set}"
        );
        let listed = &traps.active_marks(last)[0];
        // A correction is none of the list's business.
        let until = if set.abs() <= 5 {
            last.now.0 - set + 10
        } else {
            last.now.0 + 10
        };
        assert_eq!(
            (listed.until.0, listed.until.since(listed.since)),
            (until, HOUR),
            "{set}"
        );
        assert_eq!(
            (
                traps.active_count(over.monotonic),
                traps.active_marks(over).len()
            ),
            (0, 0),
            "{set}"
        );
    }
}

#[test]
fn remaining_mark_outlasts_a_restart_and_a_set_clock() {
    for (monotonic, set, away, left) in [
        (1_800, 0, 0, 1_800),
        (1_800, 0, 1_000, 800),
        (1_800, 0, 1_800, 0),
        // Set while crawlgate ran: the file is by the clock as it is then.
        (1_800, -100_000, 0, 1_800),
        (1_800, 100_000, 1_000, 800),
        (3_600, -3_000, 0, 0),
        // Set while it was away: never more than all of it.
        (1_800, 0, -1_000, 2_800),
        (1_800, 0, -100_000, 3_600),
    ] {
        let directory = tempfile::tempdir().expect("a directory");
        let (traps, store) = open_marks(directory.path(), moment_at(1_000_000));
        traps.mark_client(
            "shop",
            "gptbot",
            parse_address("192.0.2.1"),
            moment_at(1_000_000),
            HOUR,
        );
        let stop = moment_after_step(1_000_000 + monotonic, set);
        close_marks((traps, store), stop);
        let start = Moment {
            now: Timestamp(stop.now.0 + away),
            monotonic: Duration::from_secs(7),
        };
        let (again, _store) = open_marks(directory.path(), start);
        let is_marked = |after: u64| {
            again.is_marked(
                "shop",
                "gptbot",
                parse_address("192.0.2.1"),
                start.monotonic + Duration::from_secs(after),
            )
        };
        let case = (monotonic, set, away);
        assert!(left == 0 || is_marked(left - 1), "{case:?}");
        assert!(!is_marked(left), "{case:?}");
    }
}

#[test]
fn expired_mark_is_removed_from_the_disk() {
    let directory = tempfile::tempdir().expect("a directory");
    let (traps, store) = open_marks(directory.path(), moment_at(1_000_000));
    traps.mark_client(
        "shop",
        "gptbot",
        parse_address("192.0.2.1"),
        moment_at(1_000_000),
        HOUR,
    );
    traps.mark_client(
        "shop",
        "gptbot",
        parse_address("192.0.2.2"),
        moment_at(1_000_000),
        2 * HOUR,
    );
    traps.flush(moment_at(1_000_000));
    close_marks((traps, store), moment_at(1_003_600));
    // By a clock that is an hour back it would count again.
    let (again, store) = open_marks(directory.path(), moment_at(1_000_000));
    assert_eq!(again.active_count(moment_at(1_000_000).monotonic), 1);
    drop(again);
    store.close().expect("closed");
    // What was over while crawlgate was away goes from the disk, too.
    close_marks(
        open_marks(directory.path(), moment_at(1_010_000)),
        moment_at(1_010_000),
    );
    assert_eq!(
        open_marks(directory.path(), moment_at(1_000_000)).0.len(),
        0
    );
}
