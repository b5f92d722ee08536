//! The origin's own robots.txt, from an origin that says what a test wants: through its whole life with a clock of
//! ours, and with the real binary.

use crate::support::{Gate, Origin, Received, Setup, eventually, run};
use crawlgate::clock::Moment;
use crawlgate::crawlers::Registry;
use crawlgate::origin::robots::StoredCopies;
use crawlgate::policy::Held;
use crawlgate::server::{OriginRobots, known_origins};
use crawlgate::settings::{OriginSettings, OriginTimeouts, ServerAddress};
use crawlgate::sites::{SiteManager, SiteOptions};
use crawlgate::state::{Fact, OriginCopy, StateStore};
use crawlgate::time::Timestamp;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const RULES: &str = "User-agent: *\nDisallow: /a/\n";

/// An origin that says the same until it is told otherwise. `{etag}` in what it says answers a condition with 304.
#[derive(Clone)]
struct Script(Arc<Mutex<Vec<u8>>>);

impl Script {
    fn start(first: &str) -> (Script, Origin) {
        let script = Script(Arc::new(Mutex::new(first.as_bytes().to_vec())));
        let answers = script.clone();
        let origin = Origin::start(move |request, stream| {
            let answer = answers.0.lock().expect("no panic").clone();
            if answer.is_empty() {
                // Says nothing, for as long as anybody waits.
                std::thread::park_timeout(crate::support::PATIENCE);
                return false;
            }
            let etag = String::from_utf8_lossy(&answer)
                .lines()
                .find_map(|line| line.strip_prefix("ETag: ").map(str::to_owned));
            if etag.is_some() && request.field("if-none-match") == etag.as_deref() {
                return stream.write_all(b"HTTP/1.1 304 Not Modified\r\n\r\n").is_ok();
            }
            let _ = stream.write_all(&answer);
            // The answer ends where the connection does.
            false
        });
        (script, origin)
    }

    fn says(&self, answer: impl Into<Vec<u8>>) {
        *self.0.lock().expect("no panic") = answer.into();
    }
}

fn ok(body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

fn status(status: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
}

fn redirect(location: &str) -> String {
    format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
}

/// A moment of a clock that nobody set.
fn at(now: i64) -> Moment {
    Moment { now: Timestamp(now), lived: Duration::from_secs(now.unsigned_abs()) }
}

/// A site, its copies, and the time. The state directory is closed in order when it is dropped.
struct World {
    live: Arc<SiteManager>,
    robots: OriginRobots,
    store: StateStore,
    state: PathBuf,
    /// By the clock on the wall.
    now: i64,
    /// By how much that was set.
    set: i64,
}

impl Drop for World {
    fn drop(&mut self) {
        self.store.close().expect("closed");
    }
}

impl World {
    fn new(directory: &Path, origin: &Origin, policy: &str, now: i64) -> World {
        let (policies, state) = (directory.join("policies"), directory.join("state"));
        fs::create_dir_all(&policies).expect("a folder");
        if !policy.is_empty() {
            fs::write(policies.join("shop.yaml"), policy).expect("a policy");
        }
        let (store, remembered) = StateStore::open(Some(&state), Arc::new(move || at(now))).expect("opened");
        store.begin(Vec::new()).expect("begun");
        let copies = StoredCopies::read(&remembered.facts.origin_copies, Timestamp(now));
        let options = SiteOptions { policies, strict: false, may_be_missing: false, origins: known_origins(&copies) };
        let live = SiteManager::start(options, (&store, &remembered), Registry::builtin(), Timestamp(now))
            .unwrap_or_else(|error| panic!("{error}"));
        let server = ServerAddress::parse(&format!("http://{}", origin.address)).expect("an address");
        // Short, so that an origin that hangs fails a fetch and not the test.
        let timeouts = OriginTimeouts { read: Duration::from_millis(300), ..OriginTimeouts::default() };
        let origins = [OriginSettings { hosts: Vec::new(), servers: vec![server], timeouts }];
        let robots = OriginRobots::new(live.clone(), &origins, copies, store.clone(), Timestamp(now));
        World { live, robots, store, state, now, set: 0 }
    }

    /// The bytes of the stored copy of a site.
    fn stored(&self, site: &str) -> Option<Arc<[u8]>> {
        self.store.commit(Vec::new()).expect("written, and what was put before");
        let facts = StateStore::read(&self.state, Timestamp(self.now)).expect("read");
        facts.origin_copies.into_iter().find(|(_, copy)| copy.site == site).map(|(_, copy)| copy.bytes)
    }

    /// Some seconds later: whoever is due is asked. Says how many were.
    fn after(&mut self, seconds: i64) -> usize {
        self.now += seconds;
        let moment = Moment { now: Timestamp(self.now), ..at(self.now - self.set) };
        self.live.keep_time(moment.now);
        let jobs = self.robots.due(moment);
        let asked = jobs.len();
        for job in jobs {
            self.robots.finished(job.run(), moment, 0.0);
        }
        asked
    }

    /// What is served; nothing while robots.txt is answered 503.
    fn served(&self) -> Option<String> {
        let snapshot = self.live.snapshot();
        let file = &snapshot.sites()[0].site.robots_txt;
        let is_unavailable = snapshot.sites()[0].robots_txt.is_unavailable();
        (!is_unavailable).then(|| String::from_utf8_lossy(&file.body).into_owned())
    }

    /// What the host published before.
    fn superseded(&self) -> Vec<Held> {
        self.live.snapshot().history(b"shop.test").superseded.clone()
    }

    fn state(&mut self) -> String {
        // Nobody is due; the status is brought up to date all the same.
        let status = self.live.status(Timestamp(self.now));
        status.sites[0].origin_robots.as_ref().expect("a state").state.clone()
    }

    /// What is served meanwhile, as the status has it.
    fn meanwhile(&self) -> serde_json::Value {
        let status = self.live.status(Timestamp(self.now));
        serde_json::to_value(&status.sites[0].origin_robots).expect("JSON")["served"].clone()
    }

    fn indexable(&self) -> bool {
        self.live.status(Timestamp(self.now)).sites[0].indexable
    }

    fn url(&self) -> String {
        let status = self.live.status(Timestamp(self.now));
        status.sites[0].origin_robots.clone().and_then(|robots| robots.url).unwrap_or_default()
    }

    /// Where the first rule of the origin stands, as `explain` names it.
    fn place(&self) -> Option<String> {
        self.live.snapshot().sites()[0].site.origin.as_ref().map(|origin| origin.place(2))
    }

    /// Somebody sets the clock.
    fn is_set(&mut self, by: i64) {
        self.now += by;
        self.set += by;
    }

    /// Another policy, asked about at once.
    fn edits(&mut self, directory: &Path, policy: &str) {
        fs::write(directory.join("policies/shop.yaml"), policy).expect("a policy");
        self.live.reload(Timestamp(self.now));
        self.after(0);
    }

    fn problem(&self) -> String {
        let status = self.live.status(Timestamp(self.now));
        status.sites[0].origin_robots.clone().and_then(|robots| robots.problem).unwrap_or_default()
    }

    /// Says what the origin says from now on, and looks at what came of it with the next fetch.
    fn hears(&mut self, script: &Script, answer: impl Into<Vec<u8>>) -> String {
        script.says(answer);
        let asked = self.after(661);
        assert_eq!(asked, 1, "one fetch is due within eleven minutes");
        self.state()
    }
}

const MERGE: &str = "hosts: [shop.test, www.shop.test]\npurposes: { training: disallow }\n";

#[test]
fn the_whole_life_of_an_origin() {
    let directory = tempfile::tempdir().expect("a directory");
    let (script, origin) = Script::start(&status("503 Service Unavailable"));
    let mut world = World::new(directory.path(), &origin, MERGE, 1_000);
    // Never there.
    assert_eq!((world.after(0), world.served(), world.state()), (1, None, "awaited".into()));
    assert_eq!(origin.last_own().line, "GET /robots.txt HTTP/1.1");
    assert_eq!(origin.last_own().field("host"), Some("shop.test"), "asked as the site, not as the upstream");
    assert_eq!(world.after(1), 0, "not asked at every look");
    script.says(ok(RULES).replace("Connection", "ETag: \"1\"\r\nConnection"));
    assert_eq!((world.after(5), world.state()), (1, "current".into()));
    let served = world.served().expect("a file");
    assert!(served.contains("Disallow: /a/") && served.contains("User-agent: GPTBot\nDisallow: /\n"), "{served}");
    // Unchanged.
    assert_eq!((world.after(600), world.state()), (1, "current".into()));
    assert_eq!(origin.last_own().field("if-none-match"), Some("\"1\""));
    assert_eq!(world.superseded().len(), 0, "what was never served is held by nobody");

    // Trouble of every kind: the last good copy stays.
    let huge = format!("HTTP/1.1 200 OK\r\nContent-Length: 9000\r\nConnection: close\r\n\r\n{RULES}");
    for answer in [
        status("500 Internal Server Error"),
        status("429 Too Many Requests"),
        // A part of the file, with other rules, which nobody asked for.
        ok("User-agent: *\nDisallow: /part/\n").replace("200 OK", "206 Partial Content"),
        ok("<!DOCTYPE html><title>Maintenance</title>"),
        huge,
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nUser-".into(),
        // In a coding that nobody asked for; and what is no text.
        ok("\u{b}\u{2}coded").replace("text/plain", "text/plain\r\nContent-Encoding: br"),
        ok("\0\0binary\0"),
        "no HTTP at all".into(),
        String::new(),
    ] {
        assert_eq!(world.hears(&script, answer.clone()), "kept", "{answer}");
        assert_eq!(world.served().as_ref(), Some(&served), "{answer}");
        assert!(!world.problem().is_empty(), "{answer}");
    }
    // A UTF-16 file, which has no rules for anybody.
    let utf16: Vec<u8> = RULES.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", utf16.len());
    assert_eq!(world.hears(&script, [head.into_bytes(), utf16].concat()), "kept");

    // A restart in the middle of it.
    drop(world);
    let now = 20_000;
    let mut world = World::new(directory.path(), &origin, MERGE, now);
    assert_eq!(world.served().as_ref(), Some(&served), "from the state directory, before anybody is asked");
    assert_eq!((world.after(0), world.state()), (1, "kept".into()));

    // Forbidden, once and then ten minutes later; in between a flap that nobody sees.
    assert_eq!(world.hears(&script, status("403 Forbidden")), "kept");
    assert_eq!(world.hears(&script, ok(RULES)), "current");
    assert_eq!(world.hears(&script, status("404 Not Found")), "kept");
    assert_eq!(world.served().as_ref(), Some(&served));
    assert_eq!((world.after(601), world.state()), (1, "absent".into()));
    let alone = world.served().expect("a file");
    assert!(!alone.contains("/a/") && alone.contains("User-agent: GPTBot"), "{alone}");
    assert!(world.superseded().iter().any(|held| held.former.body.as_ref() == served.as_bytes()));

    // Huge: what crawlers read of it.
    let lines: String = (0..40_000).map(|line| format!("Disallow: /some/long/path/{line}\n")).collect();
    let long = format!("{RULES}{lines}Disallow: /end/\n");
    world.hears(&script, ok(&long));
    assert_eq!(world.state(), "held_back", "more than fits into what is served");
    assert!(world.problem().contains("KiB"), "{}", world.problem());
    let long = format!("{RULES}{}Disallow: /end/\n", "# nothing to see here\n".repeat(40_000));
    assert_eq!(world.hears(&script, ok(&long)), "current");
    let served = world.served().expect("a file");
    assert!(served.contains("/a/") && !served.contains("/end/"), "{served}");
}

#[test]
fn redirects_are_followed_to_the_origin_to_other_hosts_and_not_for_ever() {
    let directory = tempfile::tempdir().expect("a directory");
    let (elsewhere, other) = Script::start(&ok("User-agent: *\nDisallow: /elsewhere/\n"));
    let (script, origin) = Script::start(&redirect(&format!("http://{}/files/robots.txt", other.address)));
    let mut world = World::new(directory.path(), &origin, MERGE, 0);
    world.after(0);
    assert!(world.served().is_some_and(|text| text.contains("/elsewhere/")));
    assert_eq!(other.last_own().target(), "/files/robots.txt");
    assert_eq!(other.last_own().field("host"), Some(other.address.to_string().as_str()));
    // Back to ourselves.
    elsewhere.says(ok(RULES).replace("Connection", "Server: crawlgate\r\nConnection"));
    world.after(700);
    assert_eq!(world.state(), "kept");
    assert!(world.problem().contains("back to crawlgate"), "{}", world.problem());

    // To the public name: that is this origin.
    let public = Origin::start(|request: &Received, stream| {
        let _ = stream.write_all(
            match (request.field("host"), request.field("x-forwarded-proto"), request.target()) {
                (Some("www.shop.test"), Some("https"), "/r.txt?x=1") => ok("User-agent: *\nDisallow: /public/\n"),
                (Some("www.shop.test"), Some("https"), "/") => redirect("r.txt?x=1#fragment"),
                _ => redirect("https://www.shop.test/"),
            }
            .as_bytes(),
        );
        false
    });
    let directory = tempfile::tempdir().expect("a directory");
    let mut world = World::new(directory.path(), &public, MERGE, 0);
    world.after(0);
    assert!(world.served().is_some_and(|text| text.contains("/public/")), "{}", world.problem());

    // Ten are followed, eleven are none (RFC 9309 section 2.3.1.2); then there is no file.
    for (redirects, state) in [(10, "current"), (11, "absent")] {
        let chain = Origin::start(move |request: &Received, stream| {
            let step: u32 = request.target().trim_start_matches("/step").parse().unwrap_or(0);
            let answer = if step == redirects { ok(RULES) } else { redirect(&format!("/step{}", step + 1)) };
            let _ = stream.write_all(answer.as_bytes());
            false
        });
        let directory = tempfile::tempdir().expect("a directory");
        let mut world = World::new(directory.path(), &chain, MERGE, 0);
        world.after(0);
        assert_eq!(world.state(), state, "{redirects}");
    }
    // Nowhere that anybody could follow.
    script.says(redirect("ftp://elsewhere.test/robots.txt"));
    let directory = tempfile::tempdir().expect("a directory");
    let mut world = World::new(directory.path(), &origin, MERGE, 0);
    world.after(0);
    assert_eq!(world.state(), "absent");
}

#[test]
fn what_would_close_the_site_is_held_back_until_the_owner_says_that_it_is_meant() {
    let directory = tempfile::tempdir().expect("a directory");
    let (script, origin) = Script::start(&ok(RULES));
    let mut world = World::new(directory.path(), &origin, MERGE, 0);
    world.after(0);
    let served = world.served();
    let closed = "User-agent: Googlebot\nDisallow: /\n";
    assert_eq!(world.hears(&script, ok(closed)), "held_back");
    assert!(
        world.problem().contains("/robots.txt:2") && world.problem().contains("site-disallowed"),
        "{}",
        world.problem()
    );
    assert_eq!(world.served(), served);
    // Said, it is asked for at once.
    let file = directory.path().join("policies/shop.yaml");
    fs::write(&file, format!("{MERGE}acknowledge: [site_disallowed]\n")).expect("a policy");
    world.live.reload(Timestamp(world.now));
    assert_eq!((world.after(0), world.state()), (1, "current".into()));
    assert!(world.served().is_some_and(|text| text.contains("User-agent: Googlebot\nDisallow: /\n")));
    // And taken back, the policy is refused, with the line of the origin.
    fs::write(&file, MERGE).expect("a policy");
    let report = world.live.reload(Timestamp(world.now));
    assert!(report.sites[0].findings[0].contains("/robots.txt:2"), "{report:?}");
}

#[test]
fn a_test_of_the_policy_holds_back_what_breaks_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let (_script, origin) = Script::start(&ok("User-agent: *\nDisallow: /press/\n"));
    let policy = format!("{MERGE}tests: [{{ agent: Googlebot, path: /press/, expect: allowed }}]\n");
    let mut world = World::new(directory.path(), &origin, &policy, 0);
    world.after(0);
    assert_eq!(world.state(), "held_back");
    assert!(world.problem().contains("test-failed"), "{}", world.problem());
}

#[test]
fn without_a_copy_ever_the_policy_stands_alone_after_an_hour_through_restarts() {
    let directory = tempfile::tempdir().expect("a directory");
    let (script, origin) = Script::start(&status("502 Bad Gateway"));
    let mut world = World::new(directory.path(), &origin, MERGE, 0);
    world.after(0);
    drop(world);
    let mut world = World::new(directory.path(), &origin, MERGE, 3_000);
    world.after(599);
    assert_eq!((world.served(), world.state()), (None, "awaited".into()));
    world.after(1);
    assert!(world.served().is_some_and(|text| text.contains("GPTBot")), "an hour, restarts included");
    world.after(600);
    assert_eq!(world.state(), "missing");
    // When it comes at last, who got the policy alone may hold that.
    assert_eq!(world.hears(&script, ok(RULES)), "current");
    assert_eq!(world.superseded().len(), 1);
}

/// One octet now and then is no answer, however long it goes on.
#[test]
fn an_origin_that_trickles_is_given_up() {
    let directory = tempfile::tempdir().expect("a directory");
    let origin = Origin::start(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 100000\r\n\r\n");
        while stream.write_all(b"#").is_ok() {
            std::thread::park_timeout(Duration::from_millis(100));
        }
        false
    });
    let mut world = World::new(directory.path(), &origin, MERGE, 1_000);
    assert_eq!((world.after(0), world.served(), world.state()), (1, None, "awaited".into()));
    assert!(world.problem().contains("broke off"), "{}", world.problem());
}

/// Apps of one page answer everything with it: where there never was a file there is none, and nobody waits for an
/// hour.
#[test]
fn a_page_where_there_never_was_a_file_is_none_and_in_place_of_one_it_is_trouble() {
    let directory = tempfile::tempdir().expect("a directory");
    let page = ok("<!doctype html><div id=app></div>").replace("text/plain", "text/html");
    let (script, origin) = Script::start(&page);
    let mut world = World::new(directory.path(), &origin, MERGE, 1_000);
    assert_eq!((world.after(0), world.state()), (1, "absent".into()));
    assert!(world.served().is_some_and(|text| text.contains("User-agent: GPTBot")), "the policy alone");
    assert!(world.problem().contains("a page of HTML"), "{}", world.problem());
    assert_eq!(world.hears(&script, ok(RULES)), "current");
    assert_eq!(world.hears(&script, page), "kept");
    assert!(world.served().is_some_and(|text| text.contains("/a/")));
}

/// Without a policy what the origin says is passed on the way crawlers read it, and what helps is said.
#[test]
fn without_a_policy_a_page_in_place_of_the_file_is_no_rules_and_the_remedy_is_said() {
    let directory = tempfile::tempdir().expect("a directory");
    let (script, origin) = Script::start(&ok("<!doctype html><div id=app></div>").replace("text/plain", "text/html"));
    let mut world = World::new(directory.path(), &origin, "", 1_000);
    assert_eq!((world.after(0), world.state()), (1, "absent".into()));
    let served = world.served().expect("no 503");
    assert!(!served.contains("Disallow"), "{served}");
    assert!(
        world.problem().contains("a page of HTML") && world.problem().contains("`hosts` in a policy"),
        "{}",
        world.problem()
    );
    assert_eq!(world.hears(&script, status("404 Not Found")), "absent");
    assert!(world.problem().contains("404") && world.problem().contains("`hosts` in a policy"), "{}", world.problem());
    // A page in place of rules is believed when it stays.
    assert_eq!(world.hears(&script, ok(RULES)), "current");
    assert_eq!(world.problem(), "");
    assert_eq!(world.hears(&script, ok("<!doctype html>")), "kept");
    assert_eq!(world.hears(&script, ok("<!doctype html>")), "absent");
}

/// An origin that answers 304 to whoever has nothing says not that it has no file.
#[test]
fn a_304_that_nobody_asked_for_is_no_answer() {
    let directory = tempfile::tempdir().expect("a directory");
    let (script, origin) = Script::start("HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n");
    let mut world = World::new(directory.path(), &origin, MERGE, 0);
    assert_eq!((world.after(0), world.served(), world.state()), (1, None, "awaited".into()));
    assert_eq!(origin.last_own().field("if-none-match"), None);
    assert!(world.problem().contains("304"), "{}", world.problem());
    script.says(ok(RULES));
    assert_eq!((world.after(6), world.state()), (1, "current".into()));
}

/// The copy of one host says nothing about whether that of another is as it was.
#[test]
fn after_a_change_of_the_policy_the_question_is_plain() {
    let directory = tempfile::tempdir().expect("a directory");
    // Both hosts have the same ETag, as files of one size that were written in one second have.
    let of_host = |request: &Received, rule: &str| {
        let host = request.field("host").unwrap_or_default().replace(".test", "");
        ok(&format!("User-agent: *\nDisallow: /{host}{rule}\n")).replace("Connection", "ETag: \"1\"\r\nConnection")
    };
    let origin = Origin::start(move |request, stream| {
        let answer = match request.field("if-none-match") {
            Some("\"1\"") => "HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n".to_owned(),
            _ => of_host(request, "/"),
        };
        let _ = stream.write_all(answer.as_bytes());
        false
    });
    let mut world = World::new(directory.path(), &origin, "hosts: one.test\n", 0);
    world.after(0);
    assert!(world.served().is_some_and(|text| text.contains("Disallow: /one/\n")));
    fs::write(directory.path().join("policies/shop.yaml"), "hosts: two.test\n").expect("a policy");
    world.live.reload(Timestamp(1));
    assert_eq!(world.after(1), 1);
    assert!(world.served().is_some_and(|text| text.contains("Disallow: /two/\n")), "{:?}", world.served());
    assert_eq!(world.after(661), 1);
    assert_eq!(origin.last_own().field("if-none-match"), Some("\"1\""), "and then it is conditional again");
    assert_eq!(world.state(), "current");
}

/// What the log says, of all that happens in here.
fn logged<T>(happens: impl FnOnce() -> T) -> (T, String) {
    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);
    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("no panic").write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let written = Written::default();
    let writer = written.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    let result = tracing::subscriber::with_default(subscriber, happens);
    let text = String::from_utf8_lossy(&written.0.lock().expect("no panic")).into_owned();
    (result, text)
}

#[test]
fn what_is_only_waited_for_is_not_complained_of() {
    let directory = tempfile::tempdir().expect("a directory");
    let (_script, origin) = Script::start(&status("503 Service Unavailable"));
    for policy in ["", MERGE] {
        let mut world = World::new(directory.path(), &origin, policy, 0);
        // An hour later: `missing` is said with its reason, too.
        let (_, log) = logged(|| {
            drop(world.robots.due(at(0)));
            world.now = 3_600;
            drop(world.robots.due(at(3_600)));
        });
        assert_eq!(log, "", "nobody has been asked yet");
        drop(world);
        let mut world = World::new(directory.path(), &origin, policy, 0);
        let (_, log) = logged(|| (world.after(0), world.after(3_600)));
        assert_eq!(log.lines().count(), 2, "{log}");
        assert!(log.contains("503 for up to an hour") && log.contains("there is no copy of it"), "{log}");
        for line in log.lines() {
            let reason = line.split_once("reason=").expect("a reason").1;
            assert!(reason.starts_with("http://"), "{line}");
        }
    }
}

/// An origin that sends everybody to its public name, where crawlgate is.
#[test]
fn an_origin_that_leads_back_to_crawlgate_is_told_of_with_the_remedy() {
    let (_script, ourselves) = Script::start(&ok(RULES).replace("Connection", "Server: crawlgate\r\nConnection"));
    let (_other, origin) = Script::start(&redirect(&format!("http://{}/robots.txt", ourselves.address)));
    for (policy, helps) in [("", true), (MERGE, false)] {
        let directory = tempfile::tempdir().expect("a directory");
        let mut world = World::new(directory.path(), &origin, policy, 0);
        let (_, log) = logged(|| world.after(0));
        assert_eq!(world.state(), "awaited");
        let problem = world.problem();
        assert!(problem.contains("redirects lead back to crawlgate itself"), "{problem}");
        // Whoever has a policy has said by which name to ask.
        assert_eq!(problem.contains("Name `hosts` in a policy"), helps, "{problem}");
        assert!(log.contains(&problem), "{log}");
    }
    // Who is down has no use for it.
    let directory = tempfile::tempdir().expect("a directory");
    let (_script, down) = Script::start(&status("503 Service Unavailable"));
    let mut world = World::new(directory.path(), &down, "", 0);
    world.after(0);
    assert!(!world.problem().contains("Name `hosts`") && !world.problem().is_empty(), "{}", world.problem());
}

#[test]
fn a_policy_that_asks_no_more_forgets_its_copy() {
    let directory = tempfile::tempdir().expect("a directory");
    let (_script, origin) = Script::start(&ok(RULES));
    let mut world = World::new(directory.path(), &origin, MERGE, 0);
    world.after(0);
    assert!(world.stored("shop").is_some());
    fs::write(directory.path().join("policies/shop.yaml"), "robots: { origin: replace }\n").expect("a policy");
    world.live.reload(Timestamp(1));
    assert_eq!(world.after(10_000), 0);
    assert_eq!(world.stored("shop"), None);
    assert!(world.served().is_some_and(|text| !text.contains("/a/")));
}

/// The octets are the copy, wherever they come from: what moves is no other file.
#[test]
fn a_file_that_moves_is_the_same_copy_through_edits_trouble_and_restarts() {
    let directory = tempfile::tempdir().expect("a directory");
    let (script, origin) = Script::start(&ok(RULES));
    let mut world = World::new(directory.path(), &origin, MERGE, 0);
    world.after(0);
    let served = world.served().expect("a file");
    // The same file by way of a redirect.
    let moved = Arc::new(Mutex::new(true));
    let moves = moved.clone();
    let elsewhere = Origin::start(move |request: &Received, stream| {
        let answer = match (*moves.lock().expect("no panic"), request.target()) {
            (true, "/robots.txt") => redirect("/r1.txt"),
            (true, _) => ok(RULES),
            (false, _) => status("404 Not Found"),
        };
        let _ = stream.write_all(answer.as_bytes());
        false
    });
    let place = format!("http://{}/r1.txt", elsewhere.address);
    assert_eq!(world.hears(&script, redirect(&place)), "current");
    assert_eq!((world.url(), world.place()), (place.clone(), Some(format!("{place}:2"))), "one place everywhere");
    assert_eq!(world.served().as_ref(), Some(&served));
    assert_eq!(world.superseded().len(), 0, "what is served did not change");

    // An edit while the origin is down: everything stays.
    script.says(status("500 Internal Server Error"));
    world.edits(directory.path(), &format!("{MERGE}# a word\n"));
    assert_eq!((world.state(), world.served().as_ref()), ("kept".into(), Some(&served)), "{}", world.problem());
    assert_eq!(world.stored("shop").as_deref(), Some(RULES.as_bytes()), "on disk too");
    drop(world);
    let mut world = World::new(directory.path(), &origin, &format!("{MERGE}# a word\n"), 2_000);
    assert_eq!(world.served().as_ref(), Some(&served));
    assert_eq!((world.after(0), world.state(), world.served().as_ref()), (1, "kept".into(), Some(&served)));
    // Nor is one 404 after an edit believed.
    script.says(status("404 Not Found"));
    world.edits(directory.path(), MERGE);
    assert_eq!((world.state(), world.served().as_ref()), ("kept".into(), Some(&served)));
    assert_eq!((world.after(601), world.state()), (1, "absent".into()), "but two are");
}

/// Nobody has what was seen of the front page judged anew because a file moved.
#[test]
fn what_was_seen_of_the_front_page_stays_when_the_same_file_comes_from_elsewhere() {
    let directory = tempfile::tempdir().expect("a directory");
    let (_other, elsewhere) = Script::start(&ok(RULES));
    let (script, origin) = Script::start(&ok(RULES));
    let mut world = World::new(directory.path(), &origin, MERGE, 0);
    world.after(0);
    let noindex = crawlgate::indexing::parse_lines(["noindex".as_bytes()]).effective("googlebot");
    world.live.snapshot().sites()[0].site.front_page.saw(&noindex, Timestamp(5));
    assert!(!world.indexable());
    assert_eq!(world.hears(&script, redirect(&format!("http://{}/robots.txt", elsewhere.address))), "current");
    assert!(world.url().contains(&elsewhere.address.to_string()));
    assert!(!world.indexable(), "its noindex was seen");
}

/// Without a policy, and then with the first one, while the origin is down.
#[test]
fn the_first_policy_goes_on_with_a_copy_that_had_moved() {
    let directory = tempfile::tempdir().expect("a directory");
    let (other, elsewhere) = Script::start(&ok(RULES));
    let (script, origin) = Script::start(&ok(RULES));
    let mut world = World::new(directory.path(), &origin, "", 0);
    world.after(0);
    assert_eq!(world.hears(&script, redirect(&format!("http://{}/r1.txt", elsewhere.address))), "current");
    script.says(status("500 Internal Server Error"));
    other.says(status("500 Internal Server Error"));
    // Stored before anybody has answered.
    fs::write(directory.path().join("policies/shop.yaml"), "purposes: { training: disallow }\n").expect("a policy");
    world.live.reload(Timestamp(world.now));
    drop(world.robots.due(at(world.now)));
    assert_eq!(world.stored("shop").as_deref(), Some(RULES.as_bytes()));
    assert_eq!(world.stored("origin"), None);
    drop(world);
    let mut world = World::new(directory.path(), &origin, "purposes: { training: disallow }\n", 2_000);
    assert_eq!((world.after(0), world.state()), (1, "kept".into()));
    assert!(world.served().is_some_and(|text| text.contains("/a/") && text.contains("GPTBot")));
}

/// Editors and deployments take a file away and put it back.
#[test]
fn a_policy_that_was_away_for_a_moment_comes_back_to_its_copy() {
    let directory = tempfile::tempdir().expect("a directory");
    let (script, origin) = Script::start(&ok(RULES));
    let mut world = World::new(directory.path(), &origin, MERGE, 0);
    // Another policy, or there would be none.
    fs::write(directory.path().join("policies/zoo.yaml"), "hosts: zoo.test\nrobots: { origin: replace }\n")
        .expect("a policy");
    world.live.reload(Timestamp(0));
    world.after(0);
    let served = world.served().expect("a file");
    script.says(status("500 Internal Server Error"));
    let file = directory.path().join("policies/shop.yaml");
    fs::remove_file(&file).expect("there");
    world.live.reload(Timestamp(1));
    assert_eq!(world.after(1), 0, "nobody asks any more");
    world.edits(directory.path(), MERGE);
    assert_eq!((world.state(), world.served().as_ref()), ("kept".into(), Some(&served)), "{}", world.problem());
    drop(world);
    let world = World::new(directory.path(), &origin, MERGE, 3_000);
    assert_eq!(world.served().as_ref(), Some(&served), "after a restart as well");
}

/// A site that gets one more name is asked for by it, and goes on with what it has until somebody answers.
#[test]
fn a_host_more_is_no_other_site() {
    let (script, origin) = Script::start(&ok(RULES));
    for hosts in ["hosts: [new.test, shop.test, www.shop.test]\n", ""] {
        let directory = tempfile::tempdir().expect("a directory");
        script.says(ok(RULES));
        let mut world = World::new(directory.path(), &origin, MERGE, 0);
        world.after(0);
        script.says(status("500 Internal Server Error"));
        world.edits(directory.path(), &format!("{hosts}purposes: {{ training: disallow }}\n"));
        assert_eq!(world.state(), "kept", "{hosts}");
        assert!(world.served().is_some_and(|text| text.contains("/a/")), "{hosts}");
        assert_eq!(world.stored("shop").as_deref(), Some(RULES.as_bytes()), "{hosts}");
    }
}

/// What was asked of one host says nothing of the other that the policy has been for since.
#[test]
fn an_answer_that_another_policy_asked_for_is_asked_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let origin = Origin::start(|request: &Received, stream| {
        let host = request.field("host").unwrap_or_default().replace(".test", "");
        let _ = stream.write_all(ok(&format!("User-agent: *\nDisallow: /{host}/\n")).as_bytes());
        false
    });
    let mut world = World::new(directory.path(), &origin, "hosts: one.test\n", 0);
    let jobs = world.robots.due(at(0));
    fs::write(directory.path().join("policies/shop.yaml"), "hosts: two.test\n").expect("a policy");
    world.live.reload(Timestamp(0));
    for job in jobs {
        world.robots.finished(job.run(), at(0), 0.0);
    }
    assert_eq!(world.served(), None);
    assert_eq!(world.after(0), 1);
    assert!(world.served().is_some_and(|text| text.contains("Disallow: /two/\n")), "{:?}", world.served());
}

/// Changes the stored copy of the shop, while nothing runs.
fn damage(state: &Path, damage: impl FnOnce(&mut OriginCopy)) {
    let (store, remembered) = StateStore::open(Some(state), Arc::new(|| at(10))).expect("opened");
    store.begin(Vec::new()).expect("begun");
    let (_, mut copy) = remembered.facts.origin_copies.first().cloned().expect("a copy");
    damage(&mut copy);
    store.put([Fact::set(Timestamp(10), copy)]);
    store.close().expect("closed");
}

/// A rule less, another rule, a rule more, and a state of which the copy is lost.
#[test]
fn damaged_copy_is_reported_once_and_fetched_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let rules = format!("{RULES}Disallow: /b/\n");
    let (_script, origin) = Script::start(&ok(&rules).replace("Connection", "ETag: \"1\"\r\nConnection"));
    let mut world = World::new(directory.path(), &origin, MERGE, 0);
    world.after(0);
    let (served, state) = (world.served(), world.state.clone());
    drop(world);
    let damages: [fn(&mut OriginCopy); 4] = [
        |copy| copy.bytes = copy.bytes[..copy.bytes.len() - "Disallow: /b/".len() - 1].into(),
        |copy| copy.bytes = String::from_utf8_lossy(&copy.bytes).replace("/b/", "/x/").into_bytes().into(),
        |copy| copy.bytes = [&copy.bytes[..], b"Allow: /\n"].concat().into(),
        |copy| copy.state = copy.state.replacen("\"copy\"", "\"cope\"", 1),
    ];
    for change in damages {
        damage(&state, change);
        let (mut world, log) = logged(|| World::new(directory.path(), &origin, MERGE, 10));
        assert_eq!(log.matches("site=shop").count(), 1, "{log}");
        assert_eq!((world.served(), world.stored("shop")), (None, None));
        assert_eq!((world.after(0), world.served()), (1, served.clone()), "asked for without a condition");
        assert_eq!(world.stored("shop").as_deref(), Some(rules.as_bytes()), "it is stored again");
    }
}

/// Whatever is the matter with the origin's file, what is served meanwhile is said beside it.
#[test]
fn what_is_served_meanwhile_is_said_when_the_first_file_is_held_back() {
    let directory = tempfile::tempdir().expect("a directory");
    let (script, origin) = Script::start(&ok("User-agent: *\nDisallow: /\n"));
    let mut world = World::new(directory.path(), &origin, MERGE, 0);
    assert_eq!(world.live.status(Timestamp(0)).sites[0].origin_robots, None);
    let (_, log) = logged(|| world.after(0));
    assert_eq!((world.served(), world.state(), world.meanwhile()), (None, "held_back".into(), "unavailable".into()));
    assert!(!world.indexable(), "503 keeps crawlers off everything");
    assert!(log.contains("is held back: ours is answered 503 for up to an hour"), "{log}");
    let status = world.live.status(Timestamp(world.now));
    let robots = status.sites[0].origin_robots.clone().expect("a state");
    assert_eq!(robots.unavailable_until, Some(Timestamp(3_600)));
    // The hour is over: told at that moment, whoever is asked then.
    assert!(world.robots.rest(Timestamp(3_590)) <= Duration::from_secs(10));
    let (_, log) = logged(|| world.after(3_600));
    assert_eq!((world.state(), world.meanwhile()), ("held_back".into(), "without_origin".into()));
    assert!(world.indexable() && world.served().is_some_and(|text| !text.contains("Disallow: /\n\nUser-agent: *")));
    assert!(log.contains("is held back: the policy stands alone"), "{log}");
    // With a copy that was good, it stays.
    assert_eq!((world.hears(&script, ok(RULES)), world.meanwhile()), ("current".into(), "with_origin".into()));
    let (state, log) = logged(|| world.hears(&script, ok("User-agent: *\nDisallow: /\n")));
    assert_eq!((state.as_str(), world.meanwhile()), ("held_back", "with_origin".into()));
    assert!(log.contains("is held back: the last good copy stays") && world.indexable(), "{log}");
}

#[test]
fn while_it_is_awaited_the_site_is_not_indexable_and_then_it_is() {
    let directory = tempfile::tempdir().expect("a directory");
    let (_script, origin) = Script::start(&status("503 Service Unavailable"));
    let mut world = World::new(directory.path(), &origin, MERGE, 0);
    world.after(0);
    assert_eq!((world.state(), world.meanwhile(), world.indexable()), ("awaited".into(), "unavailable".into(), false));
    world.after(3_600);
    assert_eq!(
        (world.state(), world.meanwhile(), world.indexable()),
        ("missing".into(), "without_origin".into(), true)
    );
}

/// Which line of which file it is, and what helps: nobody else can know what the origin said.
#[test]
fn the_reason_why_it_is_held_back_names_the_origin_s_line_and_the_remedy() {
    let directory = tempfile::tempdir().expect("a directory");
    let (script, origin) = Script::start(&ok(RULES));
    let policy = format!("{MERGE}tests: [{{ agent: Googlebot, path: /press/, expect: allowed }}]\n");
    let mut world = World::new(directory.path(), &origin, &policy, 0);
    world.after(0);
    let place = format!("http://{}/robots.txt", origin.address);
    let lines: String = (0..40_000).map(|line| format!("Disallow: /some/long/path/{line}\n")).collect();
    for (body, said) in [
        ("User-agent: *\nDisallow: /press/\n".into(), vec!["test-failed", ":2", "disallow: /press/ decided"]),
        ("User-agent: *\nDisallow: /\n".into(), vec![":2", "acknowledge: [site_disallowed]", "origin: replace"]),
        (format!("{RULES}{lines}"), vec!["512000 bytes", "have the origin use fewer, wider patterns"]),
    ] {
        let (state, log) = logged(|| world.hears(&script, ok(&body)));
        let problem = world.problem();
        assert_eq!(state, "held_back");
        let findings = problem.matches("error[").count();
        assert_eq!(problem.matches(&place).count(), findings, "each says where, once: {problem}");
        assert!(said.iter().all(|said| problem.contains(said)), "{problem}");
        assert!(log.contains(&problem), "{log}");
    }
}

/// An origin can make a reason as long as it likes: it is cut, and the copy beside which it is kept is not lost by it.
#[test]
fn a_reason_without_end_is_cut_and_costs_no_copy() {
    let directory = tempfile::tempdir().expect("a directory");
    let (script, origin) = Script::start(&ok(RULES));
    let policy = format!("{MERGE}tests: [{{ agent: Googlebot, path: /press/, expect: allowed }}]\n");
    let mut world = World::new(directory.path(), &origin, &policy, 0);
    world.after(0);
    let served = world.served();
    let long = format!("User-agent: *\nDisallow: /press/{}\n", "*".repeat(450_000));
    assert_eq!(world.hears(&script, ok(&long)), "held_back");
    assert!(world.problem().len() < 10_000, "{} bytes", world.problem().len());
    assert!(world.problem().contains(&format!("{}/robots.txt:2", origin.address)), "{}", world.problem());
    // What is beside the copy that is in use is as long as it may be, and read.
    let url = format!("http://{}/{}", origin.address, "x".repeat(200_000));
    script.says(redirect(&url));
    world.after(661);
    let now = world.now;
    drop(world);
    let (world, log) = logged(|| World::new(directory.path(), &origin, &policy, now));
    assert_eq!((world.served(), log.matches("damaged").count()), (served, 0), "{log}");
}

/// Before anybody has answered, what was known before the restart is what is known.
#[test]
fn a_restart_forgets_neither_the_state_nor_the_reason() {
    let directory = tempfile::tempdir().expect("a directory");
    let (script, origin) = Script::start(&ok(RULES));
    let mut world = World::new(directory.path(), &origin, MERGE, 0);
    world.after(0);
    for (answer, state) in [
        (ok("User-agent: *\nDisallow: /\n"), "held_back"),
        (status("500 Internal Server Error"), "kept"),
        (status("404 Not Found"), "kept"),
    ] {
        assert_eq!(world.hears(&script, answer), state);
        let (before, now) = (world.live.status(Timestamp(world.now)).sites[0].origin_robots.clone(), world.now);
        drop(world);
        world = World::new(directory.path(), &origin, MERGE, now);
        drop(world.robots.due(at(now)));
        let after = world.live.status(Timestamp(now)).sites[0].origin_robots.clone();
        assert_eq!(after, before);
        drop(world);
        world = World::new(directory.path(), &origin, MERGE, now);
    }
}

#[test]
fn a_file_that_is_gone_and_not_believed_to_be_is_not_called_unreadable() {
    let directory = tempfile::tempdir().expect("a directory");
    let (script, origin) = Script::start(&ok(RULES));
    let mut world = World::new(directory.path(), &origin, MERGE, 0);
    world.after(0);
    let (state, log) = logged(|| world.hears(&script, status("404 Not Found")));
    let robots = world.live.status(Timestamp(world.now)).sites[0].origin_robots.clone().expect("a state");
    assert_eq!((state.as_str(), robots.believed_at), ("kept", Some(Timestamp(world.now + 600))));
    let written = serde_json::to_value(&robots).expect("JSON");
    assert_eq!(written["believed_at"], Timestamp(world.now + 600).to_string(), "as every moment is written");
    assert!(log.contains("no rules any more, which is not believed yet") && !log.contains("cannot be read"), "{log}");
    let (_, log) = logged(|| world.hears(&script, status("500 Internal Server Error")));
    assert!(log.contains("cannot be read: the last good copy stays"), "{log}");
}

/// Whoever sets the clock back has nobody wait for hours: it is asked for as often as before.
#[test]
fn the_origin_is_asked_as_often_when_the_clock_was_set() {
    const DAY: i64 = 86_400;
    for by in [-DAY, DAY] {
        let directory = tempfile::tempdir().expect("a directory");
        let (script, origin) = Script::start(&ok(RULES));
        let mut world = World::new(directory.path(), &origin, MERGE, 100_000);
        world.after(0);
        world.is_set(by);
        assert_eq!(world.after(30), 0, "{by}: no sooner");
        let robots = world.live.status(Timestamp(world.now)).sites[0].origin_robots.clone().expect("a state");
        assert!(robots.last_success.is_some_and(|moment| moment <= Timestamp(world.now)), "{by}: {robots:?}");
        assert_eq!(world.hears(&script, ok("User-agent: *\nDisallow: /b/\n")), "current", "{by}");
        assert!(world.served().is_some_and(|text| text.contains("/b/")), "{by}");
        // Ten minutes of a file that is gone are ten minutes.
        assert_eq!(world.hears(&script, status("404 Not Found")), "kept", "{by}");
        world.is_set(by);
        assert_eq!((world.after(30), world.state()), (0, "kept".into()), "{by}");
        assert_eq!((world.after(571), world.state()), (1, "absent".into()), "{by}");
        // A restart of a clock that is behind what was written down.
        drop(world);
        let now = 50_000;
        script.says(ok(RULES));
        let mut world = World::new(directory.path(), &origin, MERGE, now);
        assert_eq!((world.after(0), world.state()), (1, "current".into()), "{by}");
        let robots = world.live.status(Timestamp(now)).sites[0].origin_robots.clone().expect("a state");
        assert_eq!(robots.last_success, Some(Timestamp(now)), "{by}");
    }
}

/// Nor does the first hour last a day longer, or end at once.
#[test]
fn who_waits_for_the_first_copy_waits_an_hour_however_the_clock_is_set() {
    const DAY: i64 = 86_400;
    for by in [-DAY, DAY] {
        let directory = tempfile::tempdir().expect("a directory");
        let (_script, origin) = Script::start(&status("500 Internal Server Error"));
        let mut world = World::new(directory.path(), &origin, MERGE, 200_000);
        world.after(0);
        world.is_set(by);
        world.after(1_800);
        assert_eq!((world.served(), world.state()), (None, "awaited".into()), "{by}");
        world.after(1_801);
        assert_eq!((world.served().is_some(), world.state()), (true, "missing".into()), "{by}");
    }
}

/// A directory that is not mounted when crawlgate starts, twice, and then is.
#[test]
fn a_policy_that_was_away_through_two_starts_comes_back_to_its_copy() {
    let directory = tempfile::tempdir().expect("a directory");
    let (script, origin) = Script::start(&ok(RULES));
    let mut world = World::new(directory.path(), &origin, MERGE, 1_000);
    world.after(0);
    let served = world.served().expect("a file");
    drop(world);
    script.says(status("500 Internal Server Error"));
    let policy = directory.path().join("policies/shop.yaml");
    fs::remove_file(&policy).expect("there");
    for now in [2_000, 3_000] {
        let mut world = World::new(directory.path(), &origin, "", now);
        world.after(0);
        assert!(world.stored("shop").is_some(), "at {now}");
    }
    let mut world = World::new(directory.path(), &origin, "", 4_000);
    world.after(0);
    fs::write(&policy, MERGE).expect("a policy");
    world.live.reload(Timestamp(4_010));
    assert_eq!(world.served().as_ref(), Some(&served), "at once");
    drop(world.robots.due(at(4_010)));
    let robots = world.live.status(Timestamp(4_010)).sites[0].origin_robots.clone().expect("a state");
    assert_eq!((robots.state.as_str(), robots.last_success), ("kept", Some(Timestamp(1_000))), "{robots:?}");
    assert!(robots.problem.is_some_and(|problem| problem.contains("has not answered since")));
}

/// Nobody goes by what was published long ago, and a policy for other hosts has nothing of it.
#[test]
fn a_copy_of_a_site_that_is_gone_goes_when_nobody_can_hold_it_and_is_of_its_hosts() {
    let directory = tempfile::tempdir().expect("a directory");
    let (script, origin) = Script::start(&ok(RULES));
    let mut world = World::new(directory.path(), &origin, MERGE, 1_000);
    fs::write(directory.path().join("policies/zoo.yaml"), "hosts: zoo.test\nrobots: { origin: replace }\n")
        .expect("a policy");
    world.live.reload(Timestamp(1_000));
    world.after(0);
    let policy = directory.path().join("policies/shop.yaml");
    fs::remove_file(&policy).expect("there");
    world.live.reload(Timestamp(1_001));
    script.says(status("500 Internal Server Error"));
    world.after(86_400);
    assert!(world.stored("shop").is_some(), "a day later");
    drop(world);
    let now = 100_000;
    let mut world = World::new(directory.path(), &origin, "", now);
    fs::write(&policy, "hosts: other.test\n").expect("a policy");
    world.live.reload(Timestamp(now));
    let snapshot = world.live.snapshot();
    let shop = &snapshot.sites()[snapshot.site_named("shop").expect("a site")].site;
    assert!(shop.origin.is_none() && shop.robots_txt.awaits_origin(Timestamp(now)).is_some(), "another host's");
    fs::write(&policy, MERGE).expect("a policy");
    world.after(0);
    fs::remove_file(&policy).expect("there");
    world.live.reload(Timestamp(now));
    world.after(40 * 86_400);
    world.after(60);
    assert_eq!(world.stored("shop"), None, "weeks later");
}

// ---- the binary --------------------------------------------------------------------------------------------------------

fn robots_txt(gate: &Gate) -> crate::support::Response {
    gate.get("site.test", "/robots.txt", "")
}

#[test]
fn robots_txt_is_503_until_the_origin_s_is_known() {
    let (script, origin) = Script::start(&status("503 Service Unavailable"));
    let gate = Setup::before(origin.address).policy("site", "purposes: { training: disallow }\n").start();
    let waiting = robots_txt(&gate);
    assert_eq!(waiting.status, 503);
    assert!(
        waiting
            .field("retry-after")
            .and_then(|seconds| seconds.parse::<u32>().ok())
            .is_some_and(|seconds| seconds <= 60)
    );
    assert_eq!(waiting.field("cache-control"), Some("no-store"));
    gate.wait_for_metric(r#"crawlgate_origin_robots_state{site="site",state="awaited"}"#, 1.0);
    let said = gate.command(&["status"]);
    assert!(String::from_utf8_lossy(&said.stdout).contains("is awaited"), "{said:?}");
    script.says(ok(RULES));
    eventually("the merged file", || robots_txt(&gate).text().contains("/a/").then_some(()));
    gate.wait_for_metric(r#"crawlgate_origin_robots_state{site="site",state="current"}"#, 1.0);
    assert!(gate.metrics().contains(r#"crawlgate_origin_robots_last_success_timestamp_seconds{site="site"} 1"#));
    // Offline commands use the stored copy.
    eventually("a stored copy", || gate.stored_copy("site").filter(|copy| &*copy.bytes == RULES.as_bytes()));
    let state = gate.path("state").display().to_string();
    let policies = gate.setup.policies().display().to_string();
    let explained = run(&[
        "explain",
        "--json",
        "--policies",
        &policies,
        "--state",
        &state,
        "--host",
        "x",
        "--user-agent",
        "bingbot",
        "/a/b",
    ]);
    let explained: serde_json::Value = serde_json::from_slice(&explained.stdout).expect("JSON");
    assert_eq!(explained["rule"]["source"], format!("http://{}/robots.txt:2", origin.address));
    let rendered = run(&["render", "--host", "x", "--policies", &policies, "--state", &state]);
    assert_eq!(rendered.stdout, robots_txt(&gate).body);
}

/// The first file would close the site: 503, which everybody who looks is told, with the reason and the remedy.
#[test]
fn whoever_asks_is_told_that_robots_txt_is_503_and_why() {
    let (_script, origin) = Script::start(&ok("User-agent: *\nDisallow: /\n"));
    let gate = Setup::before(origin.address).policy("site", "purposes: { training: disallow }\n").start();
    assert_eq!(robots_txt(&gate).status, 503);
    gate.wait_for_metric(r#"crawlgate_origin_robots_state{site="site",state="held_back"}"#, 1.0);
    gate.wait_for_metric(r#"crawlgate_site_indexable{site="site"}"#, 0.0);
    let said = gate.command(&["status"]);
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.contains("is held back: crawlgate answers 503 until "), "{said}");
    assert!(said.contains("Googlebot may not crawl or index /: robots.txt answers 503"), "{said}");
    assert!(said.contains("acknowledge: [site_disallowed]") && !said.contains("may crawl"), "{said}");
    let state = gate.path("state").display().to_string();
    let policies = gate.setup.policies().display().to_string();
    eventually("a stored state", || gate.stored_copy("site"));
    let checked = run(&["check", &policies, "--state", &state]);
    let checked = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(checked.contains("held back") && checked.contains("--origin-robots FILE"), "{checked}");
    let explained = gate.command(&["explain", "--live", "--host", "x", "--user-agent", "bingbot", "/"]);
    let explained = String::from_utf8_lossy(&explained.stdout).into_owned();
    assert!(explained.contains("answered 503 until"), "{explained}");
}

/// Without a policy directory, and without a copy yet.
#[test]
fn what_is_awaited_without_a_policy_can_be_asked_about() {
    let (_script, origin) = Script::start(&status("503 Service Unavailable"));
    let gate = Setup::before(origin.address).start();
    gate.wait_for_metric(r#"crawlgate_origin_robots_state{site="origin",state="awaited"}"#, 1.0);
    eventually("a stored state", || gate.stored_copy("origin"));
    let (state, nowhere) = (gate.path("state").display().to_string(), gate.path("nowhere").display().to_string());
    let asked = ["--policies", &nowhere, "--state", &state, "--host", "x"];
    let explained = run(&[&["explain"], &asked[..], &["--user-agent", "bingbot", "/"]].concat());
    let text = String::from_utf8_lossy(&explained.stdout).into_owned();
    assert!(text.contains("answered 503 until") && text.contains("no rule matches"), "{explained:?}");
    assert!(text.contains("requests are judged by the policy alone"), "{explained:?}");
    let explained = run(&[&["explain", "--json"], &asked[..], &["--user-agent", "bingbot", "/"]].concat());
    let explained: serde_json::Value = serde_json::from_slice(&explained.stdout).expect("JSON");
    assert!(
        explained["robots_txt_unavailable_until"].as_str().is_some_and(|moment| moment.ends_with('Z')),
        "{explained}"
    );
    let rendered = run(&[&["render"], &asked[..]].concat());
    assert!(rendered.status.success(), "{rendered:?}");
    assert!(String::from_utf8_lossy(&rendered.stderr).contains("answers 503 until"), "{rendered:?}");
}

#[test]
fn offline_commands_say_what_they_assume() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).display().to_string();
    fs::create_dir(directory.path().join("policies")).expect("a folder");
    fs::write(path("policies/shop.yaml"), MERGE).expect("a policy");
    fs::write(path("robots.txt"), RULES).expect("a file");
    let policies = path("policies");
    let rendered = run(&["render", "--host", "shop.test", "--policies", &policies]);
    assert!(String::from_utf8_lossy(&rendered.stderr).contains("its rules are missing"), "{rendered:?}");
    assert!(!String::from_utf8_lossy(&rendered.stdout).contains("/a/"));
    let rendered =
        run(&["render", "--host", "shop.test", "--policies", &policies, "--origin-robots", &path("robots.txt")]);
    assert!(rendered.stderr.is_empty(), "{rendered:?}");
    assert!(String::from_utf8_lossy(&rendered.stdout).contains("Disallow: /a/"));
    let checked = run(&["check", &policies]);
    assert!(String::from_utf8_lossy(&checked.stdout).contains("unknown: its rules"), "{checked:?}");
    let checked = run(&["check", &policies, "--json", "--origin-robots", &path("robots.txt")]);
    let checked: serde_json::Value = serde_json::from_slice(&checked.stdout).expect("JSON");
    assert_eq!(checked["sites"][0]["origin_robots"], format!("as in {}", path("robots.txt")));
    // What running would hold back, checking finds.
    fs::write(path("closed.txt"), "User-agent: *\nDisallow: /\n").expect("a file");
    let checked = run(&["check", &policies, "--origin-robots", &path("closed.txt")]);
    assert_eq!(checked.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&checked.stdout).contains("closed.txt:2"), "{checked:?}");
    // Without a policy there is still something to explain.
    let explained = run(&[
        "explain",
        "--policies",
        &path("nowhere"),
        "--origin-robots",
        &path("robots.txt"),
        "--host",
        "any.test",
        "--user-agent",
        "bingbot",
        "/a/",
    ]);
    let text = String::from_utf8_lossy(&explained.stdout).into_owned();
    assert!(text.contains("robots.txt:2") && text.contains("observed only"), "{explained:?}");
}

#[test]
fn one_flag_is_enough() {
    let (_script, origin) = Script::start(&ok("User-agent: bingbot\nDisallow: /a/\n"));
    let directory = tempfile::tempdir().expect("a directory");
    let mut child = Command::new(env!("CARGO_BIN_EXE_crawlgate"))
        .args(["run", "--origin", &format!("http://{}", origin.address)])
        .args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--control", "off", "--state", "state"])
        .current_dir(directory.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary");
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().expect("piped")));
    let first = lines.next().expect("a line").expect("text");
    let address =
        first.strip_prefix("listening on http://").unwrap_or_else(|| panic!("{first}")).parse().expect("an address");
    let mut connection = crate::support::Connection::open(address);
    connection.send("GET /robots.txt HTTP/1.1\r\nHost: any.test\r\nConnection: close\r\n\r\n");
    let served = connection.response("GET");
    let _ = child.kill();
    let _ = child.wait();
    assert!(served.text().contains("User-agent: bingbot\nDisallow: /a/\n"), "{served:?}");
}
