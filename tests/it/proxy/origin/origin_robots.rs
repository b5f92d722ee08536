//! The origin's own robots.txt, from an origin with scripted answers: first the rooms alone with a
//! clock of the test, then the binary.

use crate::proxy::support::{Gate, Origin, Received, Setup, eventually, run};
use crawlgate::internals::clock::Moment;
use crawlgate::internals::facts::{Fact, OriginCopy};
use crawlgate::internals::origin::robots::StoredCopies;
use crawlgate::internals::policy::SupersededVersion;
use crawlgate::internals::server::{OriginRobotsTracker, known_origins};
use crawlgate::internals::settings::{OriginServerAddress, OriginSettings, OriginTimeouts};
use crawlgate::internals::sites::{SiteLoadOptions, SiteManager};
use crawlgate::internals::state::StateStore;
use crawlgate::time::Timestamp;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const MOVED: &str = "/moved.txt";
const RULES: &str = "User-agent: *\nDisallow: /a/\n";

/// An origin with one answer, until a test sets another. An `ETag` in the answer makes it answer
/// 304 to that condition. At [`MOVED`] are always [`RULES`].
#[derive(Clone)]
struct Script(Arc<Mutex<Vec<u8>>>);

impl Script {
    fn start(first: &str) -> (Script, Origin) {
        let script = Script(Arc::new(Mutex::new(first.as_bytes().to_vec())));
        let answers = script.clone();
        let origin = Origin::start(move |request, stream| {
            let mut answer = answers.0.lock().expect("no panic").clone();
            if request.target() == MOVED {
                answer = ok(RULES).into();
            }
            if answer.is_empty() {
                // No answer at all.
                std::thread::park_timeout(crate::proxy::support::PATIENCE);
                return false;
            }
            let etag = String::from_utf8_lossy(&answer)
                .lines()
                .find_map(|line| line.strip_prefix("ETag: ").map(str::to_owned));
            if etag.is_some() && request.field("if-none-match") == etag.as_deref() {
                return stream
                    .write_all(b"HTTP/1.1 304 Not Modified\r\n\r\n")
                    .is_ok();
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
    format!(
        "HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )
}

/// A moment of a clock that was never set.
fn at(now: i64) -> Moment {
    Moment {
        now: Timestamp(now),
        monotonic: Duration::from_secs(now.unsigned_abs()),
    }
}

/// An origin with a short timeout, so that a silent one costs the test little.
fn origin_settings(origin: &Origin) -> OriginSettings {
    let server = OriginServerAddress::parse(&format!("http://{}", origin.address));
    OriginSettings {
        timeouts: OriginTimeouts {
            read: Duration::from_millis(300),
            ..OriginTimeouts::default()
        },
        ..OriginSettings::with_servers([server.expect("an address")])
    }
}

/// A site, its copies, and the time. The state directory is closed in order when it is dropped.
struct World {
    live: Arc<SiteManager>,
    robots: OriginRobotsTracker,
    store: StateStore,
    state: PathBuf,
    /// The wall clock.
    now: i64,
    /// By how many seconds the wall clock was set.
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
        let (store, remembered) =
            StateStore::open(Some(&state), Arc::new(move || at(now))).expect("opened");
        store.begin(Vec::new()).expect("begun");
        let copies = StoredCopies::from_records(&remembered.facts.origin_copies, Timestamp(now));
        let options = SiteLoadOptions {
            policies,
            origins: known_origins(&copies, &[]),
            ..SiteLoadOptions::default()
        };
        let live = SiteManager::start(options, &store, &remembered, Timestamp(now))
            .unwrap_or_else(|error| panic!("{error}"));
        let robots = OriginRobotsTracker::new(
            live.clone(),
            &[origin_settings(origin)],
            copies,
            store.clone(),
            Timestamp(now),
        );
        World {
            live,
            robots,
            store,
            state,
            now,
            set: 0,
        }
    }

    /// The bytes of the stored copy of a site.
    fn stored(&self, site: &str) -> Option<Arc<[u8]>> {
        self.store
            .commit(Vec::new())
            .expect("written, and what was put before");
        let facts = StateStore::read(&self.state, Timestamp(self.now)).expect("read");
        facts
            .origin_copies
            .into_iter()
            .find(|(_, copy)| copy.site == site)
            .map(|(_, copy)| copy.bytes)
    }

    /// Lets time pass and runs the fetches that are due. Returns how many.
    fn after(&mut self, seconds: i64) -> usize {
        self.now += seconds;
        let moment = Moment {
            now: Timestamp(self.now),
            ..at(self.now - self.set)
        };
        self.live.apply_due_changes(moment.now);
        let jobs = self.robots.take_due_fetches(moment);
        let asked = jobs.len();
        for job in jobs {
            self.robots.finish_fetch(&job, job.run(), moment, 0.0);
        }
        asked
    }

    /// The robots.txt, or `None` while it is answered 503.
    fn served(&self) -> Option<String> {
        let snapshot = self.live.snapshot();
        let file = &snapshot.sites()[0].site.robots_txt;
        let is_unavailable = snapshot.sites()[0].robots_txt.is_unavailable();
        (!is_unavailable).then(|| String::from_utf8_lossy(&file.body).into_owned())
    }

    /// What the host published before.
    fn superseded(&self) -> Vec<SupersededVersion> {
        self.live
            .snapshot()
            .history(b"shop.test")
            .superseded
            .clone()
    }

    fn state(&mut self) -> String {
        let status = self.live.status(Timestamp(self.now));
        status.sites[0]
            .origin_robots
            .as_ref()
            .expect("a state")
            .state
            .name()
            .to_owned()
    }

    /// The field `served` of the status.
    fn meanwhile(&self) -> serde_json::Value {
        let status = self.live.status(Timestamp(self.now));
        serde_json::to_value(&status.sites[0].origin_robots).expect("JSON")["served"].clone()
    }

    fn indexable(&self) -> bool {
        self.live.status(Timestamp(self.now)).sites[0].indexable
    }

    fn url(&self) -> String {
        let status = self.live.status(Timestamp(self.now));
        status.sites[0]
            .origin_robots
            .clone()
            .and_then(|robots| robots.url)
            .unwrap_or_default()
    }

    /// The place of the origin's first rule, as `explain` names it.
    fn place(&self) -> Option<String> {
        self.live.snapshot().sites()[0]
            .site
            .origin
            .as_ref()
            .map(|origin| origin.line_location(2))
    }

    /// Sets the wall clock.
    fn set_clock(&mut self, by: i64) {
        self.now += by;
        self.set += by;
    }

    /// Writes another policy, and runs the fetch that it causes.
    fn edit(&mut self, directory: &Path, policy: &str) {
        fs::write(directory.join("policies/shop.yaml"), policy).expect("a policy");
        self.live.reload(Timestamp(self.now));
        self.after(0);
    }

    fn problem(&self) -> String {
        let status = self.live.status(Timestamp(self.now));
        status.sites[0]
            .origin_robots
            .clone()
            .and_then(|robots| robots.problem)
            .unwrap_or_default()
    }

    /// Sets the origin's answer, runs the next fetch and returns the state.
    fn fetch(&mut self, script: &Script, answer: impl Into<Vec<u8>>) -> String {
        script.says(answer);
        let asked = self.after(661);
        assert_eq!(asked, 1, "one fetch is due within eleven minutes");
        self.state()
    }
}

const MERGE: &str = "hosts: [shop.test, www.shop.test]\npurposes: { training: disallow }\n";
const OTHER_SITE: &str = "hosts: [other.test]\npurposes: { training: disallow }\n";

#[test]
fn origin_answers_of_every_kind_give_the_documented_states() {
    let directory = tempfile::tempdir().expect("a directory");
    let (script, origin) = Script::start(&status("503 Service Unavailable"));
    let mut world = World::new(directory.path(), &origin, MERGE, 1_000);
    // No copy yet.
    assert_eq!(
        (world.after(0), world.served(), world.state()),
        (1, None, "awaited".into())
    );
    assert_eq!(origin.last_own().line, "GET /robots.txt HTTP/1.1");
    assert_eq!(
        origin.last_own().field("host"),
        Some("shop.test"),
        "asked as the site, not as the upstream"
    );
    assert_eq!(world.after(1), 0, "not due yet");
    script.says(ok(RULES).replace("Connection", "ETag: \"1\"\r\nConnection"));
    assert_eq!((world.after(5), world.state()), (1, "current".into()));
    let served = world.served().expect("a file");
    assert!(
        served.contains("Disallow: /a/") && served.contains("User-agent: GPTBot\nDisallow: /\n"),
        "{served}"
    );
    // Unchanged.
    assert_eq!((world.after(600), world.state()), (1, "current".into()));
    assert_eq!(origin.last_own().field("if-none-match"), Some("\"1\""));
    assert_eq!(
        world.superseded().len(),
        0,
        "a version that was never served is not cached"
    );

    // Failures of every kind: the last good copy stays.
    let huge =
        format!("HTTP/1.1 200 OK\r\nContent-Length: 9000\r\nConnection: close\r\n\r\n{RULES}");
    for answer in [
        status("500 Internal Server Error"),
        status("429 Too Many Requests"),
        // A part of the file, with other rules.
        ok("User-agent: *\nDisallow: /part/\n").replace("200 OK", "206 Partial Content"),
        ok("<!DOCTYPE html><title>Maintenance</title>"),
        huge,
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nUser-".into(),
        // A Content-Encoding that the request did not allow, and a body that is not text.
        ok("\u{b}\u{2}coded").replace("text/plain", "text/plain\r\nContent-Encoding: br"),
        ok("\0\0binary\0"),
        "no HTTP at all".into(),
        String::new(),
    ] {
        assert_eq!(world.fetch(&script, answer.clone()), "kept", "{answer}");
        assert_eq!(world.served().as_ref(), Some(&served), "{answer}");
        assert!(!world.problem().is_empty(), "{answer}");
    }
    // A UTF-16 file, which no crawler can read.
    let utf16: Vec<u8> = RULES.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        utf16.len()
    );
    assert_eq!(
        world.fetch(&script, [head.into_bytes(), utf16].concat()),
        "kept"
    );

    // A restart during the failures.
    drop(world);
    let now = 20_000;
    let mut world = World::new(directory.path(), &origin, MERGE, now);
    assert_eq!(
        world.served().as_ref(),
        Some(&served),
        "from the state directory, before the first fetch"
    );
    assert_eq!((world.after(0), world.state()), (1, "kept".into()));

    // Forbidden once, then back; then gone for ten minutes.
    assert_eq!(world.fetch(&script, status("403 Forbidden")), "kept");
    assert_eq!(world.fetch(&script, ok(RULES)), "current");
    assert_eq!(world.fetch(&script, status("404 Not Found")), "kept");
    assert_eq!(world.served().as_ref(), Some(&served));
    assert_eq!((world.after(601), world.state()), (1, "absent".into()));
    let alone = world.served().expect("a file");
    assert!(
        !alone.contains("/a/") && alone.contains("User-agent: GPTBot"),
        "{alone}"
    );
    assert!(
        world
            .superseded()
            .iter()
            .any(|held| held.parsed.body.as_ref() == served.as_bytes())
    );

    // A huge file: only what crawlers read of it.
    let lines: String = (0..40_000)
        .map(|line| format!("Disallow: /some/long/path/{line}\n"))
        .collect();
    let long = format!("{RULES}{lines}Disallow: /end/\n");
    world.fetch(&script, ok(&long));
    assert_eq!(
        world.state(),
        "held_back",
        "more than fits into what is served"
    );
    assert!(world.problem().contains("KiB"), "{}", world.problem());
    let long = format!(
        "{RULES}{}Disallow: /end/\n",
        "# nothing to see here\n".repeat(40_000)
    );
    assert_eq!(world.fetch(&script, ok(&long)), "current");
    let served = world.served().expect("a file");
    assert!(
        served.contains("/a/") && !served.contains("/end/"),
        "{served}"
    );
}

#[test]
fn redirects_to_the_site_and_its_origin_are_followed_ten_times() {
    // A server of the origin, as the settings write it.
    let itself = Origin::start(|request: &Received, stream| {
        let host = request.field("host").unwrap_or_default();
        let answer = match (host, request.target()) {
            ("shop.test", "/robots.txt") => {
                let here = stream.local_addr().expect("an address");
                redirect(&format!("http://{here}/files/robots.txt"))
            }
            _ => ok("User-agent: *\nDisallow: /files/\n"),
        };
        let _ = stream.write_all(answer.as_bytes());
        false
    });
    let directory = tempfile::tempdir().expect("a directory");
    let mut world = World::new(directory.path(), &itself, MERGE, 0);
    world.after(0);
    assert!(
        world.served().is_some_and(|text| text.contains("/files/")),
        "{}",
        world.problem()
    );
    assert_eq!(
        itself.last_own().field("host"),
        Some(itself.address.to_string().as_str())
    );

    // A redirect to the public name leads to this origin.
    let public = Origin::start(|request: &Received, stream| {
        let _ = stream.write_all(
            match (
                request.field("host"),
                request.field("x-forwarded-proto"),
                request.target(),
            ) {
                (Some("www.shop.test"), Some("https"), "/r.txt?x=1") => {
                    ok("User-agent: *\nDisallow: /public/\n")
                }
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
    assert!(
        world.served().is_some_and(|text| text.contains("/public/")),
        "{}",
        world.problem()
    );

    // Ten redirects are followed. With eleven there is no file (RFC 9309 section 2.3.1.2).
    for (redirects, state) in [(10, "current"), (11, "absent")] {
        let chain = Origin::start(move |request: &Received, stream| {
            let step: u32 = request
                .target()
                .trim_start_matches("/step")
                .parse()
                .unwrap_or(0);
            let answer = if step == redirects {
                ok(RULES)
            } else {
                redirect(&format!("/step{}", step + 1))
            };
            let _ = stream.write_all(answer.as_bytes());
            false
        });
        let directory = tempfile::tempdir().expect("a directory");
        let mut world = World::new(directory.path(), &chain, MERGE, 0);
        world.after(0);
        assert_eq!(world.state(), state, "{redirects}");
    }
    // A redirect that cannot be followed.
    let (_script, origin) = Script::start(&redirect("ftp://elsewhere.test/robots.txt"));
    let directory = tempfile::tempdir().expect("a directory");
    let mut world = World::new(directory.path(), &origin, MERGE, 0);
    world.after(0);
    assert_eq!(world.state(), "absent");
}

#[test]
fn file_that_closes_the_site_is_held_back_until_acknowledged() {
    let directory = tempfile::tempdir().expect("a directory");
    let (script, origin) = Script::start(&ok(RULES));
    let mut world = World::new(directory.path(), &origin, MERGE, 0);
    world.after(0);
    let served = world.served();
    let closed = "User-agent: Googlebot\nDisallow: /\n";
    assert_eq!(world.fetch(&script, ok(closed)), "held_back");
    assert!(
        world.problem().contains("/robots.txt:2") && world.problem().contains("site-disallowed"),
        "{}",
        world.problem()
    );
    assert_eq!(world.served(), served);
    // Once acknowledged, the file is fetched at once.
    let file = directory.path().join("policies/shop.yaml");
    fs::write(&file, format!("{MERGE}acknowledge: [site_disallowed]\n")).expect("a policy");
    world.live.reload(Timestamp(world.now));
    assert_eq!((world.after(0), world.state()), (1, "current".into()));
    assert!(
        world
            .served()
            .is_some_and(|text| text.contains("User-agent: Googlebot\nDisallow: /\n"))
    );
    // Without the acknowledgement the policy is rejected, with the line of the origin.
    fs::write(&file, MERGE).expect("a policy");
    let report = world.live.reload(Timestamp(world.now));
    assert!(
        report.sites[0].findings[0]
            .message
            .contains("/robots.txt:2"),
        "{report:?}"
    );
}

#[test]
fn file_that_breaks_a_test_of_the_policy_is_held_back() {
    let directory = tempfile::tempdir().expect("a directory");
    let (_script, origin) = Script::start(&ok("User-agent: *\nDisallow: /press/\n"));
    let policy =
        format!("{MERGE}tests: [{{ agent: Googlebot, path: /press/, expect: allowed }}]\n");
    let mut world = World::new(directory.path(), &origin, &policy, 0);
    world.after(0);
    assert_eq!(world.state(), "held_back");
    assert!(
        world.problem().contains("test-failed"),
        "{}",
        world.problem()
    );
}

#[test]
fn policy_stands_alone_after_an_hour_without_copy() {
    let directory = tempfile::tempdir().expect("a directory");
    let (script, origin) = Script::start(&status("502 Bad Gateway"));
    let mut world = World::new(directory.path(), &origin, MERGE, 0);
    world.after(0);
    drop(world);
    let mut world = World::new(directory.path(), &origin, MERGE, 3_000);
    world.after(599);
    assert_eq!((world.served(), world.state()), (None, "awaited".into()));
    world.after(1);
    assert!(
        world.served().is_some_and(|text| text.contains("GPTBot")),
        "an hour, restarts included"
    );
    world.after(600);
    assert_eq!(world.state(), "missing");
    // When the file comes at last, crawlers may have cached the policy alone.
    assert_eq!(world.fetch(&script, ok(RULES)), "current");
    assert_eq!(world.superseded().len(), 1);
}

#[test]
fn trickling_origin_is_given_up() {
    let directory = tempfile::tempdir().expect("a directory");
    let origin = Origin::start(|_, stream| {
        let _ = stream.write_all(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 100000\r\n\r\n",
        );
        while stream.write_all(b"#").is_ok() {
            std::thread::park_timeout(Duration::from_millis(100));
        }
        false
    });
    let mut world = World::new(directory.path(), &origin, MERGE, 1_000);
    assert_eq!(
        (world.after(0), world.served(), world.state()),
        (1, None, "awaited".into())
    );
    assert!(!world.problem().is_empty());
}

/// Single-page apps answer every request with their page. A site that never had a file does not
/// wait for an hour.
#[test]
fn page_of_html_is_absence_first_and_failure_later() {
    let directory = tempfile::tempdir().expect("a directory");
    let page = ok("<!doctype html><div id=app></div>").replace("text/plain", "text/html");
    let (script, origin) = Script::start(&page);
    let mut world = World::new(directory.path(), &origin, MERGE, 1_000);
    assert_eq!((world.after(0), world.state()), (1, "absent".into()));
    assert!(
        world
            .served()
            .is_some_and(|text| text.contains("User-agent: GPTBot")),
        "the policy alone"
    );
    assert!(!world.problem().is_empty());
    assert_eq!(world.fetch(&script, ok(RULES)), "current");
    assert_eq!(world.fetch(&script, page), "kept");
    assert!(world.served().is_some_and(|text| text.contains("/a/")));
}

/// A default site passes on what crawlers make of the answer, and the status says what helps.
#[test]
fn page_of_html_without_policy_is_no_rules() {
    let directory = tempfile::tempdir().expect("a directory");
    let (script, origin) =
        Script::start(&ok("<!doctype html><div id=app></div>").replace("text/plain", "text/html"));
    let mut world = World::new(directory.path(), &origin, "", 1_000);
    assert_eq!((world.after(0), world.state()), (1, "absent".into()));
    let served = world.served().expect("no 503");
    assert!(!served.contains("Disallow"), "{served}");
    assert!(world.problem().contains("\"hosts\""), "{}", world.problem());
    assert_eq!(world.fetch(&script, status("404 Not Found")), "absent");
    assert!(
        world.problem().contains("404") && world.problem().contains("\"hosts\""),
        "{}",
        world.problem()
    );
    // A page in place of rules is believed if it stays for ten minutes.
    assert_eq!(world.fetch(&script, ok(RULES)), "current");
    assert_eq!(world.problem(), "");
    assert_eq!(world.fetch(&script, ok("<!doctype html>")), "kept");
    assert_eq!(world.fetch(&script, ok("<!doctype html>")), "absent");
}

/// A 304 to an unconditional request does not say that there is no file.
#[test]
fn unasked_304_is_a_failure() {
    let directory = tempfile::tempdir().expect("a directory");
    let (script, origin) = Script::start("HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n");
    let mut world = World::new(directory.path(), &origin, MERGE, 0);
    assert_eq!(
        (world.after(0), world.served(), world.state()),
        (1, None, "awaited".into())
    );
    assert_eq!(origin.last_own().field("if-none-match"), None);
    assert!(world.problem().contains("304"), "{}", world.problem());
    script.says(ok(RULES));
    assert_eq!((world.after(6), world.state()), (1, "current".into()));
}

/// The validators of one host's file say nothing about the file of another host.
#[test]
fn policy_change_makes_the_next_fetch_unconditional() {
    let directory = tempfile::tempdir().expect("a directory");
    // Both hosts have the same ETag, as files of the same size and second may have.
    let of_host = |request: &Received, rule: &str| {
        let host = request
            .field("host")
            .unwrap_or_default()
            .replace(".test", "");
        ok(&format!("User-agent: *\nDisallow: /{host}{rule}\n"))
            .replace("Connection", "ETag: \"1\"\r\nConnection")
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
    assert!(
        world
            .served()
            .is_some_and(|text| text.contains("Disallow: /one/\n"))
    );
    fs::write(
        directory.path().join("policies/shop.yaml"),
        "hosts: two.test\n",
    )
    .expect("a policy");
    world.live.reload(Timestamp(1));
    assert_eq!(world.after(1), 1);
    assert!(
        world
            .served()
            .is_some_and(|text| text.contains("Disallow: /two/\n")),
        "{:?}",
        world.served()
    );
    assert_eq!(world.after(661), 1);
    assert_eq!(
        origin.last_own().field("if-none-match"),
        Some("\"1\""),
        "the fetch after it is conditional again"
    );
    assert_eq!(world.state(), "current");
}

/// The result of a function, and what it logged.
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
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    // With one subscriber alone, tracing-core 0.1 asks that of the thread which comes to a line
    // first, and a thread that has none turns the line off for all.
    let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry());
    let result = tracing::subscriber::with_default(subscriber, happens);
    let text = String::from_utf8_lossy(&written.0.lock().expect("no panic")).into_owned();
    (result, text)
}

#[test]
fn first_fetch_pending_logs_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let (_script, origin) = Script::start(&status("503 Service Unavailable"));
    for policy in ["", MERGE] {
        let mut world = World::new(directory.path(), &origin, policy, 0);
        // Also an hour later, when the state is `missing`.
        let (_, log) = logged(|| {
            drop(world.robots.take_due_fetches(at(0)));
            world.now = 3_600;
            drop(world.robots.take_due_fetches(at(3_600)));
        });
        assert_eq!(log, "", "no fetch has ended");
        drop(world);
        let mut world = World::new(directory.path(), &origin, policy, 0);
        let (_, log) = logged(|| (world.after(0), world.after(3_600)));
        assert_eq!(log.lines().count(), 2, "{log}");
        for (line, (level, state)) in log.lines().zip([("WARN", "awaited"), ("ERROR", "missing")]) {
            assert!(
                line.contains(level) && line.contains(&format!("state=\"{state}\"")),
                "{line}"
            );
            let reason = line.split_once("reason=").expect("a reason").1;
            assert!(reason.starts_with("http://"), "{line}");
        }
    }
}

#[test]
fn server_that_is_down_is_logged_once_for_all_its_sites() {
    let directory = tempfile::tempdir().expect("a directory");
    let policies = directory.path().join("policies");
    fs::create_dir_all(&policies).expect("a folder");
    fs::write(policies.join("other.yaml"), OTHER_SITE).expect("a policy");
    let (script, origin) = Script::start("");
    let mut world = World::new(directory.path(), &origin, MERGE, 0);
    let (_, log) = logged(|| world.after(0));
    assert_eq!(log.matches("state=\"awaited\"").count(), 1, "{log}");
    // Both sites stop waiting in the same call.
    let (_, log) = logged(|| world.after(3_600));
    assert_eq!(log.matches("state=\"missing\"").count(), 1, "{log}");
    // These answers may be the fault of one site.
    for (answer, state) in [
        ("503 Service Unavailable", "state=\"missing\""),
        ("404 Not Found", "state=\"absent\""),
    ] {
        script.says(status(answer));
        let (asked, log) = logged(|| world.after(661));
        assert_eq!((asked, log.matches(state).count()), (2, 2), "{log}");
    }
}

#[test]
fn each_server_that_is_down_is_logged() {
    let directory = tempfile::tempdir().expect("a directory");
    let (_script, origin) = Script::start("");
    let (_other_script, other_origin) = Script::start("");
    let mut world = World::new(directory.path(), &origin, MERGE, 0);
    let origins = [("shop.test", &origin), ("other.test", &other_origin)];
    let origins = origins.map(|(host, origin)| OriginSettings {
        hosts: vec![host.to_owned()],
        ..origin_settings(origin)
    });
    world.robots = OriginRobotsTracker::new(
        world.live.clone(),
        &origins,
        StoredCopies::default(),
        world.store.clone(),
        Timestamp(0),
    );
    fs::write(directory.path().join("policies/other.yaml"), OTHER_SITE).expect("a policy");
    world.live.reload(Timestamp(0));
    let (_, log) = logged(|| world.after(0));
    assert_eq!(log.matches("state=\"awaited\"").count(), 2, "{log}");
}

/// Every way to an address that is none of the origin's, and that no crawler could reach.
#[test]
fn redirects_to_private_addresses_are_never_followed() {
    let (_script, secret) = Script::start(&ok("User-agent: *\nDisallow: /secret/\n"));
    let port = secret.address.port();
    let (script, origin) = Script::start("");
    for host in [
        "127.0.0.1",
        "localhost",
        "[::ffff:127.0.0.1]",
        "2130706433",
        "0.0.0.0",
        "[::1]",
        "169.254.169.254",
    ] {
        for scheme in ["http", "https"] {
            script.says(redirect(&format!("{scheme}://{host}:{port}/meta-data/")));
            let directory = tempfile::tempdir().expect("a directory");
            let mut world = World::new(directory.path(), &origin, MERGE, 0);
            world.after(0);
            assert_eq!(
                (world.served(), world.state()),
                (None, "awaited".into()),
                "{scheme}://{host}"
            );
            let problem = world.problem();
            assert!(problem.contains("/meta-data/"), "{problem}");
        }
    }
    assert!(!secret.was_asked());
    // A copy that is in use stays.
    let directory = tempfile::tempdir().expect("a directory");
    script.says(ok(RULES));
    let mut world = World::new(directory.path(), &origin, MERGE, 0);
    world.after(0);
    let served = world.served();
    assert_eq!(
        world.fetch(&script, redirect(&format!("http://127.0.0.1:{port}/"))),
        "kept"
    );
    assert_eq!(world.served(), served);
}

/// The origin redirects to its public name, which is crawlgate, or to a place that crawlgate does
/// not follow it to.
#[test]
fn redirect_to_crawlgate_is_reported_with_remedy() {
    let (_other, origin) = Script::start(&redirect("http://shop.test/robots.txt"));
    for (policy, helps) in [("", true), ("hosts: [blog.test]\n", false)] {
        let directory = tempfile::tempdir().expect("a directory");
        let mut world = World::new(directory.path(), &origin, policy, 0);
        let (_, log) = logged(|| world.after(0));
        assert_eq!(world.state(), "awaited");
        let problem = world.problem();
        assert!(problem.contains("http://shop.test/robots.txt"), "{problem}");
        // A policy names the host.
        assert_eq!(problem.contains("\"hosts\""), helps, "{problem}");
        assert!(log.contains(&problem), "{log}");
    }
    // An origin that is down needs no such remedy.
    let directory = tempfile::tempdir().expect("a directory");
    let (_script, down) = Script::start(&status("503 Service Unavailable"));
    let mut world = World::new(directory.path(), &down, "", 0);
    world.after(0);
    assert!(
        !world.problem().contains("\"hosts\"") && !world.problem().is_empty(),
        "{}",
        world.problem()
    );
}

#[test]
fn policy_that_stops_merging_removes_its_copy() {
    let directory = tempfile::tempdir().expect("a directory");
    let (_script, origin) = Script::start(&ok(RULES));
    let mut world = World::new(directory.path(), &origin, MERGE, 0);
    world.after(0);
    assert!(world.stored("shop").is_some());
    fs::write(
        directory.path().join("policies/shop.yaml"),
        "robots: { origin: replace }\n",
    )
    .expect("a policy");
    world.live.reload(Timestamp(1));
    assert_eq!(world.after(10_000), 0);
    assert_eq!(world.stored("shop"), None);
    assert!(world.served().is_some_and(|text| !text.contains("/a/")));
}

/// The same bytes from another URL are the same copy.
#[test]
fn moved_file_stays_the_same_copy() {
    let directory = tempfile::tempdir().expect("a directory");
    let (script, origin) = Script::start(&ok(RULES));
    let mut world = World::new(directory.path(), &origin, MERGE, 0);
    world.after(0);
    let served = world.served().expect("a file");
    // The same file behind a redirect.
    let place = format!("http://{}{MOVED}", origin.address);
    assert_eq!(world.fetch(&script, redirect(&place)), "current");
    assert_eq!(
        (world.url(), world.place()),
        (place.clone(), Some(format!("{place}:2"))),
        "status and explanation name the same place"
    );
    assert_eq!(world.served().as_ref(), Some(&served));
    assert_eq!(world.superseded().len(), 0, "the same version");

    // The policy is edited while the origin is down.
    script.says(status("500 Internal Server Error"));
    world.edit(directory.path(), &format!("{MERGE}# a word\n"));
    assert_eq!(
        (world.state(), world.served().as_ref()),
        ("kept".into(), Some(&served)),
        "{}",
        world.problem()
    );
    assert_eq!(
        world.stored("shop").as_deref(),
        Some(RULES.as_bytes()),
        "on disk too"
    );
    drop(world);
    let mut world = World::new(
        directory.path(),
        &origin,
        &format!("{MERGE}# a word\n"),
        2_000,
    );
    assert_eq!(world.served().as_ref(), Some(&served));
    assert_eq!(
        (world.after(0), world.state(), world.served().as_ref()),
        (1, "kept".into(), Some(&served))
    );
    // One 404 after an edit is not believed. A second one ten minutes later is.
    script.says(status("404 Not Found"));
    world.edit(directory.path(), MERGE);
    assert_eq!(
        (world.state(), world.served().as_ref()),
        ("kept".into(), Some(&served))
    );
    assert_eq!((world.after(601), world.state()), (1, "absent".into()));
}

#[test]
fn moved_file_keeps_front_page_observations() {
    let directory = tempfile::tempdir().expect("a directory");
    let (script, origin) = Script::start(&ok(RULES));
    let mut world = World::new(directory.path(), &origin, MERGE, 0);
    world.after(0);
    let noindex = crawlgate::indexing::parse_lines(["noindex".as_bytes()]);
    world.live.snapshot().sites()[0]
        .site
        .front_page
        .record_tags(&noindex, Timestamp(5));
    assert!(!world.indexable());
    assert_eq!(world.fetch(&script, redirect(MOVED)), "current");
    assert!(world.url().ends_with(MOVED));
    assert!(!world.indexable(), "its noindex was seen");
}

/// The first policy is written while the origin is down.
#[test]
fn first_policy_takes_over_the_copy_of_the_default_site() {
    let directory = tempfile::tempdir().expect("a directory");
    let (script, origin) = Script::start(&ok(RULES));
    let mut world = World::new(directory.path(), &origin, "", 0);
    world.after(0);
    assert_eq!(world.fetch(&script, redirect(MOVED)), "current");
    script.says(status("500 Internal Server Error"));
    // Stored before a fetch has ended.
    fs::write(
        directory.path().join("policies/shop.yaml"),
        "purposes: { training: disallow }\n",
    )
    .expect("a policy");
    world.live.reload(Timestamp(world.now));
    drop(world.robots.take_due_fetches(at(world.now)));
    assert_eq!(world.stored("shop").as_deref(), Some(RULES.as_bytes()));
    assert_eq!(world.stored("origin"), None);
    drop(world);
    let mut world = World::new(
        directory.path(),
        &origin,
        "purposes: { training: disallow }\n",
        2_000,
    );
    assert_eq!((world.after(0), world.state()), (1, "kept".into()));
    assert!(
        world
            .served()
            .is_some_and(|text| text.contains("/a/") && text.contains("GPTBot"))
    );
}

/// crawlgate fetches by the new host name, and uses the copy until the origin answers.
#[test]
fn added_host_keeps_the_copy() {
    let (script, origin) = Script::start(&ok(RULES));
    for hosts in ["hosts: [new.test, shop.test, www.shop.test]\n", ""] {
        let directory = tempfile::tempdir().expect("a directory");
        script.says(ok(RULES));
        let mut world = World::new(directory.path(), &origin, MERGE, 0);
        world.after(0);
        script.says(status("500 Internal Server Error"));
        world.edit(
            directory.path(),
            &format!("{hosts}purposes: {{ training: disallow }}\n"),
        );
        assert_eq!(world.state(), "kept", "{hosts}");
        assert!(
            world.served().is_some_and(|text| text.contains("/a/")),
            "{hosts}"
        );
        assert_eq!(
            world.stored("shop").as_deref(),
            Some(RULES.as_bytes()),
            "{hosts}"
        );
    }
}

/// The policy is for another host by the time the fetch ends.
#[test]
fn answer_for_a_former_policy_is_fetched_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let origin = Origin::start(|request: &Received, stream| {
        let host = request
            .field("host")
            .unwrap_or_default()
            .replace(".test", "");
        let _ = stream.write_all(ok(&format!("User-agent: *\nDisallow: /{host}/\n")).as_bytes());
        false
    });
    let mut world = World::new(directory.path(), &origin, "hosts: one.test\n", 0);
    let jobs = world.robots.take_due_fetches(at(0));
    fs::write(
        directory.path().join("policies/shop.yaml"),
        "hosts: two.test\n",
    )
    .expect("a policy");
    world.live.reload(Timestamp(0));
    for job in jobs {
        world.robots.finish_fetch(&job, job.run(), at(0), 0.0);
    }
    assert_eq!(world.served(), None);
    assert_eq!(world.after(0), 1);
    assert!(
        world
            .served()
            .is_some_and(|text| text.contains("Disallow: /two/\n")),
        "{:?}",
        world.served()
    );
}

/// Changes the stored copy of the shop, while nothing runs.
fn damage(state: &Path, damage: impl FnOnce(&mut OriginCopy)) {
    let (store, remembered) = StateStore::open(Some(state), Arc::new(|| at(10))).expect("opened");
    store.begin(Vec::new()).expect("begun");
    let (_, mut copy) = remembered
        .facts
        .origin_copies
        .first()
        .cloned()
        .expect("a copy");
    damage(&mut copy);
    store.put([Fact::set(Timestamp(10), copy)]);
    store.close().expect("closed");
}

/// A rule less, another rule, and a rule more.
#[test]
fn damaged_copy_is_reported_once_and_fetched_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let rules = format!("{RULES}Disallow: /b/\n");
    let (_script, origin) =
        Script::start(&ok(&rules).replace("Connection", "ETag: \"1\"\r\nConnection"));
    let mut world = World::new(directory.path(), &origin, MERGE, 0);
    world.after(0);
    let (served, state) = (world.served(), world.state.clone());
    drop(world);
    let damages: [fn(&mut OriginCopy); 3] = [
        |copy| copy.bytes = copy.bytes[..copy.bytes.len() - "Disallow: /b/".len() - 1].into(),
        |copy| {
            copy.bytes = String::from_utf8_lossy(&copy.bytes)
                .replace("/b/", "/x/")
                .into_bytes()
                .into()
        },
        |copy| copy.bytes = [&copy.bytes[..], b"Allow: /\n"].concat().into(),
    ];
    for change in damages {
        damage(&state, change);
        let (mut world, log) = logged(|| World::new(directory.path(), &origin, MERGE, 10));
        assert_eq!(log.matches("site=shop").count(), 1, "{log}");
        assert_eq!((world.served(), world.stored("shop")), (None, None));
        assert_eq!(
            (world.after(0), world.served()),
            (1, served.clone()),
            "asked for without a condition"
        );
        assert_eq!(
            world.stored("shop").as_deref(),
            Some(rules.as_bytes()),
            "it is stored again"
        );
    }
}

#[test]
fn first_file_held_back_reports_the_served_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let (script, origin) = Script::start(&ok("User-agent: *\nDisallow: /\n"));
    let mut world = World::new(directory.path(), &origin, MERGE, 0);
    assert_eq!(world.live.status(Timestamp(0)).sites[0].origin_robots, None);
    let (_, log) = logged(|| world.after(0));
    assert_eq!(
        (world.served(), world.state(), world.meanwhile()),
        (None, "held_back".into(), "unavailable".into())
    );
    assert!(!world.indexable(), "503 keeps crawlers off everything");
    assert!(
        log.contains("ERROR") && log.contains("state=\"held_back\""),
        "{log}"
    );
    let status = world.live.status(Timestamp(world.now));
    let robots = status.sites[0].origin_robots.clone().expect("a state");
    assert_eq!(robots.unavailable_until, Some(Timestamp(3_600)));
    // The change after an hour is logged then, without a fetch.
    assert!(world.robots.time_to_next_fetch(Timestamp(3_590)) <= Duration::from_secs(10));
    let (_, log) = logged(|| world.after(3_600));
    assert_eq!(
        (world.state(), world.meanwhile()),
        ("held_back".into(), "without_origin".into())
    );
    assert!(
        world.indexable()
            && world
                .served()
                .is_some_and(|text| !text.contains("Disallow: /\n\nUser-agent: *"))
    );
    assert!(
        log.contains("ERROR") && log.contains("state=\"held_back\""),
        "{log}"
    );
    // A good copy stays in use.
    assert_eq!(
        (world.fetch(&script, ok(RULES)), world.meanwhile()),
        ("current".into(), "with_origin".into())
    );
    let (state, log) = logged(|| world.fetch(&script, ok("User-agent: *\nDisallow: /\n")));
    assert_eq!(
        (state.as_str(), world.meanwhile()),
        ("held_back", "with_origin".into())
    );
    assert!(
        log.contains("state=\"held_back\"") && world.indexable(),
        "{log}"
    );
}

#[test]
fn site_is_not_indexable_while_first_copy_is_awaited() {
    let directory = tempfile::tempdir().expect("a directory");
    let (_script, origin) = Script::start(&status("503 Service Unavailable"));
    let mut world = World::new(directory.path(), &origin, MERGE, 0);
    world.after(0);
    assert_eq!(
        (world.state(), world.meanwhile(), world.indexable()),
        ("awaited".into(), "unavailable".into(), false)
    );
    world.after(3_600);
    assert_eq!(
        (world.state(), world.meanwhile(), world.indexable()),
        ("missing".into(), "without_origin".into(), true)
    );
}

#[test]
fn reason_to_hold_back_names_line_and_remedy() {
    let directory = tempfile::tempdir().expect("a directory");
    let (script, origin) = Script::start(&ok(RULES));
    let policy =
        format!("{MERGE}tests: [{{ agent: Googlebot, path: /press/, expect: allowed }}]\n");
    let mut world = World::new(directory.path(), &origin, &policy, 0);
    world.after(0);
    let place = format!("http://{}/robots.txt", origin.address);
    let lines: String = (0..40_000)
        .map(|line| format!("Disallow: /some/long/path/{line}\n"))
        .collect();
    for (body, said) in [
        (
            "User-agent: *\nDisallow: /press/\n".into(),
            vec!["test-failed", ":2", "disallow: /press/"],
        ),
        (
            "User-agent: *\nDisallow: /\n".into(),
            vec![":2", "acknowledge: [site_disallowed]", "origin: replace"],
        ),
        (
            format!("{RULES}{lines}"),
            vec!["robots-txt-too-large", "512000 bytes"],
        ),
    ] {
        let (state, log) = logged(|| world.fetch(&script, ok(&body)));
        let problem = world.problem();
        assert_eq!(state, "held_back");
        let findings = problem.matches("error[").count();
        assert_eq!(
            problem.matches(&place).count(),
            findings,
            "each finding names the place once: {problem}"
        );
        assert!(said.iter().all(|said| problem.contains(said)), "{problem}");
        assert!(log.contains(&problem), "{log}");
    }
}

/// The origin chooses how long a reason is.
#[test]
fn endless_reason_is_cut_and_costs_no_copy() {
    let directory = tempfile::tempdir().expect("a directory");
    let (script, origin) = Script::start(&ok(RULES));
    let policy =
        format!("{MERGE}tests: [{{ agent: Googlebot, path: /press/, expect: allowed }}]\n");
    let mut world = World::new(directory.path(), &origin, &policy, 0);
    world.after(0);
    let served = world.served();
    let long = format!("User-agent: *\nDisallow: /press/{}\n", "*".repeat(450_000));
    assert_eq!(world.fetch(&script, ok(&long)), "held_back");
    assert!(
        world.problem().len() < 10_000,
        "{} bytes",
        world.problem().len()
    );
    assert!(
        world.problem().contains("error[test-failed]"),
        "{}",
        world.problem()
    );
    // The state of a copy may be long as well.
    let url = format!("http://{}/{}", origin.address, "x".repeat(200_000));
    script.says(redirect(&url));
    world.after(661);
    let now = world.now;
    drop(world);
    let (world, log) = logged(|| World::new(directory.path(), &origin, &policy, now));
    assert_eq!(
        (world.served(), log.matches("damaged").count()),
        (served, 0),
        "{log}"
    );
}

#[test]
fn restart_keeps_state_and_reason() {
    let directory = tempfile::tempdir().expect("a directory");
    let (script, origin) = Script::start(&ok(RULES));
    let mut world = World::new(directory.path(), &origin, MERGE, 0);
    world.after(0);
    for (answer, state) in [
        (ok("User-agent: *\nDisallow: /\n"), "held_back"),
        (status("500 Internal Server Error"), "kept"),
        (status("404 Not Found"), "kept"),
    ] {
        assert_eq!(world.fetch(&script, answer), state);
        let (before, now) = (
            world.live.status(Timestamp(world.now)).sites[0]
                .origin_robots
                .clone(),
            world.now,
        );
        drop(world);
        world = World::new(directory.path(), &origin, MERGE, now);
        drop(world.robots.take_due_fetches(at(now)));
        let after = world.live.status(Timestamp(now)).sites[0]
            .origin_robots
            .clone();
        assert_eq!(after, before);
        drop(world);
        world = World::new(directory.path(), &origin, MERGE, now);
    }
}

#[test]
fn file_gone_for_less_than_ten_minutes_reports_believed_at() {
    let directory = tempfile::tempdir().expect("a directory");
    let (script, origin) = Script::start(&ok(RULES));
    let mut world = World::new(directory.path(), &origin, MERGE, 0);
    world.after(0);
    let (state, log) = logged(|| world.fetch(&script, status("404 Not Found")));
    let robots = world.live.status(Timestamp(world.now)).sites[0]
        .origin_robots
        .clone()
        .expect("a state");
    assert_eq!(
        (state.as_str(), robots.believed_at),
        ("kept", Some(Timestamp(world.now + 600)))
    );
    let written = serde_json::to_value(&robots).expect("JSON");
    assert_eq!(
        written["believed_at"],
        Timestamp(world.now + 600).to_string(),
        "RFC 3339"
    );
    assert!(
        log.contains("WARN") && log.contains("state=\"kept\""),
        "{log}"
    );
    assert_eq!(
        world.fetch(&script, status("500 Internal Server Error")),
        "kept"
    );
    let robots = world.live.status(Timestamp(world.now)).sites[0]
        .origin_robots
        .clone()
        .expect("a state");
    assert_eq!(
        robots.believed_at, None,
        "a failure says nothing about the file"
    );
}

#[test]
fn clock_set_keeps_the_interval_of_fetches() {
    const DAY: i64 = 86_400;
    for by in [-DAY, DAY] {
        let directory = tempfile::tempdir().expect("a directory");
        let (script, origin) = Script::start(&ok(RULES));
        let mut world = World::new(directory.path(), &origin, MERGE, 100_000);
        world.after(0);
        world.set_clock(by);
        assert_eq!(world.after(30), 0, "{by}: no sooner");
        let robots = world.live.status(Timestamp(world.now)).sites[0]
            .origin_robots
            .clone()
            .expect("a state");
        assert!(
            robots
                .last_success
                .is_some_and(|moment| moment <= Timestamp(world.now)),
            "{by}: {robots:?}"
        );
        assert_eq!(
            world.fetch(&script, ok("User-agent: *\nDisallow: /b/\n")),
            "current",
            "{by}"
        );
        assert!(
            world.served().is_some_and(|text| text.contains("/b/")),
            "{by}"
        );
        // The ten minutes of a file that is gone are elapsed time.
        assert_eq!(
            world.fetch(&script, status("404 Not Found")),
            "kept",
            "{by}"
        );
        world.set_clock(by);
        assert_eq!((world.after(30), world.state()), (0, "kept".into()), "{by}");
        assert_eq!(
            (world.after(571), world.state()),
            (1, "absent".into()),
            "{by}"
        );
        // A restart with a clock behind the stored moments.
        drop(world);
        let now = 50_000;
        script.says(ok(RULES));
        let mut world = World::new(directory.path(), &origin, MERGE, now);
        assert_eq!(
            (world.after(0), world.state()),
            (1, "current".into()),
            "{by}"
        );
        let robots = world.live.status(Timestamp(now)).sites[0]
            .origin_robots
            .clone()
            .expect("a state");
        assert_eq!(robots.last_success, Some(Timestamp(now)), "{by}");
    }
}

#[test]
fn clock_set_keeps_the_hour_of_waiting() {
    const DAY: i64 = 86_400;
    for by in [-DAY, DAY] {
        let directory = tempfile::tempdir().expect("a directory");
        let (_script, origin) = Script::start(&status("500 Internal Server Error"));
        let mut world = World::new(directory.path(), &origin, MERGE, 200_000);
        world.after(0);
        world.set_clock(by);
        world.after(1_800);
        assert_eq!(
            (world.served(), world.state()),
            (None, "awaited".into()),
            "{by}"
        );
        world.after(1_801);
        assert_eq!(
            (world.served().is_some(), world.state()),
            (true, "missing".into()),
            "{by}"
        );
    }
}

#[test]
fn copy_of_removed_site_is_removed() {
    let directory = tempfile::tempdir().expect("a directory");
    let (_script, origin) = Script::start(&ok(RULES));
    let policy = directory.path().join("policies/shop.yaml");
    let mut world = World::new(directory.path(), &origin, MERGE, 0);
    fs::write(
        directory.path().join("policies/zoo.yaml"),
        "hosts: zoo.test\nrobots: { origin: replace }\n",
    )
    .expect("a policy");
    world.live.reload(Timestamp(0));
    world.after(0);
    assert!(world.stored("shop").is_some());
    fs::remove_file(&policy).expect("there");
    world
        .live
        .remove(&["shop".to_owned()], Timestamp(1))
        .expect("removed");
    assert_eq!(world.after(1), 0, "the site is not followed any more");
    assert_eq!(world.stored("shop"), None);
}

// ---- the binary
// --------------------------------------------------------------------------------------------------------

fn robots_txt(gate: &Gate) -> crate::proxy::support::Response {
    gate.get("site.test", "/robots.txt", "")
}

#[test]
fn robots_txt_is_503_until_first_copy() {
    let (script, origin) = Script::start(&status("503 Service Unavailable"));
    let gate = Setup::before(origin.address)
        .policy("site", "purposes: { training: disallow }\n")
        .start();
    let waiting = robots_txt(&gate);
    assert_eq!(waiting.status, 503);
    assert!(
        waiting
            .field("retry-after")
            .and_then(|seconds| seconds.parse::<u32>().ok())
            .is_some_and(|seconds| seconds <= 60)
    );
    assert_eq!(waiting.field("cache-control"), Some("no-store"));
    gate.wait_for_metric(
        r#"crawlgate_origin_robots_state{site="site",state="awaited"}"#,
        1.0,
    );
    let said = gate.command(&["status", "--json"]);
    assert!(
        String::from_utf8_lossy(&said.stdout).contains("\"awaited\""),
        "{said:?}"
    );
    script.says(ok(RULES));
    eventually("the merged file", || {
        robots_txt(&gate).text().contains("/a/").then_some(())
    });
    gate.wait_for_metric(
        r#"crawlgate_origin_robots_state{site="site",state="current"}"#,
        1.0,
    );
    assert!(
        gate.metrics()
            .contains(r#"crawlgate_origin_robots_last_success_timestamp_seconds{site="site"} 1"#)
    );
    // Offline commands use the stored copy.
    eventually("a stored copy", || {
        gate.stored_copy("site")
            .filter(|copy| &*copy.bytes == RULES.as_bytes())
    });
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
    assert_eq!(
        explained["rule"]["source"],
        format!("http://{}/robots.txt:2", origin.address)
    );
    let rendered = run(&[
        "render",
        "--host",
        "x",
        "--policies",
        &policies,
        "--state",
        &state,
    ]);
    assert_eq!(rendered.stdout, robots_txt(&gate).body);
}

/// The first file would close the site, so robots.txt answers 503.
#[test]
fn held_back_first_file_is_explained_everywhere() {
    let (_script, origin) = Script::start(&ok("User-agent: *\nDisallow: /\n"));
    let gate = Setup::before(origin.address)
        .policy("site", "purposes: { training: disallow }\n")
        .start();
    assert_eq!(robots_txt(&gate).status, 503);
    gate.wait_for_metric(
        r#"crawlgate_origin_robots_state{site="site",state="held_back"}"#,
        1.0,
    );
    gate.wait_for_metric(r#"crawlgate_site_indexable{site="site"}"#, 0.0);
    let said = gate.command(&["status"]);
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    for part in ["503", "Googlebot", "[site_disallowed]"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let state = gate.path("state").display().to_string();
    let policies = gate.setup.policies().display().to_string();
    eventually("a stored state", || gate.stored_copy("site"));
    let checked = run(&["check", &policies, "--state", &state]);
    let checked = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(checked.contains("--origin-robots"), "{checked}");
    let explained = gate.command(&[
        "explain",
        "--live",
        "--host",
        "x",
        "--user-agent",
        "bingbot",
        "/",
    ]);
    let explained = String::from_utf8_lossy(&explained.stdout).into_owned();
    assert!(explained.contains("503"), "{explained}");
}

/// There is no policy directory and no copy yet.
#[test]
fn awaited_default_site_can_be_explained_offline() {
    let (_script, origin) = Script::start(&status("503 Service Unavailable"));
    let gate = Setup::before(origin.address).start();
    gate.wait_for_metric(
        r#"crawlgate_origin_robots_state{site="origin",state="awaited"}"#,
        1.0,
    );
    eventually("a stored state", || gate.stored_copy("origin"));
    let (state, nowhere) = (
        gate.path("state").display().to_string(),
        gate.path("nowhere").display().to_string(),
    );
    let asked = ["--policies", &nowhere, "--state", &state, "--host", "x"];
    let explained = run(&[&["explain"], &asked[..], &["--user-agent", "bingbot", "/"]].concat());
    let text = String::from_utf8_lossy(&explained.stdout).into_owned();
    assert!(text.contains("503"), "{explained:?}");
    let explained = run(&[
        &["explain", "--json"],
        &asked[..],
        &["--user-agent", "bingbot", "/"],
    ]
    .concat());
    let explained: serde_json::Value = serde_json::from_slice(&explained.stdout).expect("JSON");
    assert!(
        explained["robots_txt_unavailable_until"]
            .as_str()
            .is_some_and(|moment| moment.ends_with('Z')),
        "{explained}"
    );
    let rendered = run(&[&["render"], &asked[..]].concat());
    assert!(rendered.status.success(), "{rendered:?}");
    assert!(
        String::from_utf8_lossy(&rendered.stderr).contains("503"),
        "{rendered:?}"
    );
}

#[test]
fn offline_commands_name_their_assumption() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).display().to_string();
    fs::create_dir(directory.path().join("policies")).expect("a folder");
    fs::write(path("policies/shop.yaml"), MERGE).expect("a policy");
    fs::write(path("robots.txt"), RULES).expect("a file");
    let policies = path("policies");
    let rendered = run(&["render", "--host", "shop.test", "--policies", &policies]);
    assert!(!rendered.stderr.is_empty());
    assert!(!String::from_utf8_lossy(&rendered.stdout).contains("/a/"));
    let rendered = run(&[
        "render",
        "--host",
        "shop.test",
        "--policies",
        &policies,
        "--origin-robots",
        &path("robots.txt"),
    ]);
    assert!(rendered.stderr.is_empty(), "{rendered:?}");
    assert!(String::from_utf8_lossy(&rendered.stdout).contains("Disallow: /a/"));
    let checked = run(&["check", &policies]);
    assert!(
        String::from_utf8_lossy(&checked.stdout).contains("--origin-robots"),
        "{checked:?}"
    );
    let checked = run(&[
        "check",
        &policies,
        "--json",
        "--origin-robots",
        &path("robots.txt"),
    ]);
    let checked: serde_json::Value = serde_json::from_slice(&checked.stdout).expect("JSON");
    assert_eq!(
        checked["sites"][0]["origin_robots"],
        format!("as in {}", path("robots.txt"))
    );
    // Before the first start the copy of `init` is taken.
    fs::write(path("policies/before.txt"), RULES).expect("a file");
    fs::write(path("crawlgate.yaml"), "policies: policies\n").expect("a file");
    let checked = run(&["check", "--config", &path("crawlgate.yaml")]);
    assert!(
        String::from_utf8_lossy(&checked.stdout).contains("Disallow: /a/"),
        "{checked:?}"
    );
    // `check` finds what the server would hold back.
    fs::write(path("closed.txt"), "User-agent: *\nDisallow: /\n").expect("a file");
    let checked = run(&["check", &policies, "--origin-robots", &path("closed.txt")]);
    assert_eq!(checked.status.code(), Some(1));
    assert!(
        String::from_utf8_lossy(&checked.stdout).contains("closed.txt:2"),
        "{checked:?}"
    );
    // Without a policy the origin's rules are explained.
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
    assert!(
        text.contains("robots.txt:2") && text.contains("observed"),
        "{explained:?}"
    );
}

#[test]
fn origin_flag_alone_serves_the_origins_file() {
    let (_script, origin) = Script::start(&ok("User-agent: bingbot\nDisallow: /a/\n"));
    let directory = tempfile::tempdir().expect("a directory");
    let mut child = Command::new(env!("CARGO_BIN_EXE_crawlgate"))
        .args(["run", "--origin", &format!("http://{}", origin.address)])
        .args([
            "--listen",
            "127.0.0.1:0",
            "--admin",
            "127.0.0.1:0",
            "--control",
            "off",
            "--state",
            "state",
        ])
        .current_dir(directory.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary");
    let mut lines =
        std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().expect("piped")));
    let first = lines.next().expect("a line").expect("text");
    let address = first
        .strip_prefix("listening on http://")
        .unwrap_or_else(|| panic!("{first}"))
        .parse()
        .expect("an address");
    let mut connection = crate::proxy::support::Connection::open(address);
    connection.send("GET /robots.txt HTTP/1.1\r\nHost: any.test\r\nConnection: close\r\n\r\n");
    let served = connection.response("GET");
    let _ = child.kill();
    let _ = child.wait();
    assert!(
        served
            .text()
            .contains("User-agent: bingbot\nDisallow: /a/\n"),
        "{served:?}"
    );
}

/// An application that writes the Host of each request into its robots.txt.
#[test]
fn address_of_the_origin_is_not_published() {
    let origin = Origin::start(|request: &Received, stream| {
        let host = request.field("host").unwrap_or_default();
        let body = format!("User-agent: *\nDisallow: /a/\nSitemap: https://{host}/sitemap.xml\n");
        let _ = stream.write_all(ok(&body).as_bytes());
        false
    });
    for policy in ["", "purposes: { training: disallow }\n"] {
        let setup = Setup::before(origin.address);
        let setup = match policy {
            "" => setup.without_policy_directory(),
            policy => setup.policy("site", policy),
        };
        let gate = setup.start();
        let served = gate.get("shop.example", "/robots.txt", "");
        let text = served.text();
        assert!(text.contains("\nDisallow: /a/\n"), "{text}");
        assert!(
            !text.contains("Sitemap:") && !text.contains("127.0.0.1"),
            "{text}"
        );
        assert!(
            text.lines()
                .any(|line| line.starts_with("# Left out of the origin's robots.txt")),
            "{text}"
        );
        let output = gate.command(&["status", "--json"]);
        let status: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(
            status["sites"][0]["origin_robots"]["unpublished_lines"],
            serde_json::json!([3]),
            "{status}"
        );
        assert_eq!(output.status.code(), Some(0), "a note is no problem");
        let shown = gate.command(&["status"]);
        assert!(String::from_utf8_lossy(&shown.stdout).contains(": line 3\n"));
    }
}
