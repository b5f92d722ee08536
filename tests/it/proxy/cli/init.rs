//! `crawlgate init`, as a newcomer uses it: before origins that answer well, badly and not at all.

use crate::proxy::support::{Connection, GPTBOT, Origin, Received, eventually, read};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;

/// No name server knows it, so that only the origin answers.
const HOST: &str = "shop.example";
const ROBOTS: &str = "# Ours\nUser-agent: *\nDisallow: /cart/\n";
const ACTIVE: &str = "\n  previous: before.txt\n";

/// A new directory with what `init` wrote there.
struct Begun {
    directory: TempDir,
    output: Output,
}

impl Begun {
    fn new(origin: SocketAddr, arguments: &[&str]) -> Begun {
        let directory = tempfile::tempdir().expect("a directory");
        let origin = format!("http://{origin}");
        let mut all = vec!["--host", HOST, "--origin", &origin];
        all.extend(arguments);
        let output = init(directory.path(), &all);
        Begun { directory, output }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn code(&self) -> Option<i32> {
        self.output.status.code()
    }

    fn policy(&self) -> String {
        read(&self.path("policies/shop.example.yaml"))
    }
}

fn crawlgate(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_crawlgate"));
    command.current_dir(directory).stdin(Stdio::null());
    command
}

fn init(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = crawlgate(directory);
    command.arg("init").args(arguments);
    command.output().expect("the crawlgate binary")
}

/// `crawlgate run` with the settings that `init` wrote, on free ports; killed when dropped.
struct Running {
    child: Child,
    address: SocketAddr,
    access: PathBuf,
}

impl Running {
    fn start(begun: &Begun) -> Running {
        let access = begun.path("access.log");
        let mut command = crawlgate(begun.directory.path());
        command.args([
            "run",
            "--config",
            "crawlgate.yaml",
            "--listen",
            "127.0.0.1:0",
        ]);
        command
            .args(["--admin", "127.0.0.1:0", "--access-log"])
            .arg(&access);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the crawlgate binary");
        let lines = BufReader::new(child.stdout.take().expect("stdout is piped")).lines();
        let address = lines
            .map_while(Result::ok)
            .find_map(|line| line.strip_prefix("listening on http://")?.parse().ok())
            .expect("an address");
        Running {
            child,
            address,
            access,
        }
    }

    /// What the access log calls a request of GPTBot.
    fn kind(&self, target: &str) -> Value {
        let mut connection = Connection::open(self.address);
        connection.send(&format!(
            "GET {target} HTTP/1.1\r\nHost: {HOST}\r\nUser-Agent: {GPTBOT}\r\nConnection: close\r\n\r\n"
        ));
        connection.response("GET");
        let lines = || -> Vec<Value> {
            let log = read(&self.access);
            let parsed = log
                .lines()
                .filter_map(|line| serde_json::from_str(line).ok());
            parsed.collect()
        };
        eventually("a line of the access log", || {
            let line = lines().into_iter().rfind(|line| line["target"] == target)?;
            Some(line["kind"].clone())
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An origin with this answer for robots.txt, and a page for everything else.
fn origin(robots: impl Fn(&Received) -> Vec<u8> + Send + Sync + 'static) -> Origin {
    Origin::start(move |received, stream| match received.target() {
        "/robots.txt" => stream.write_all(&robots(received)).is_ok(),
        _ => answer(stream, "text/html", b"<p>a page"),
    })
}

fn answer(stream: &mut TcpStream, media: &str, body: &[u8]) -> bool {
    stream.write_all(&response(media, body)).is_ok()
}

fn response(media: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Type: {media}\r\nContent-Length: {length}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

fn file(body: &'static [u8]) -> Origin {
    origin(move |_| response("text/plain", body))
}

#[test]
fn with_the_owners_word_the_first_day_counts() {
    let origin = file(ROBOTS.as_bytes());
    let begun = Begun::new(origin.address, &["--unchanged-for", "24h"]);
    assert_eq!(begun.code(), Some(0), "{:?}", begun.output);
    assert_eq!(read(&begun.path("policies/before.txt")), ROBOTS);
    assert!(begun.policy().contains(ACTIVE), "{}", begun.policy());
    let running = Running::start(&begun);
    assert_eq!(running.kind("/cart/"), "violation");
    // The commands that init prints, with what it wrote.
    let mut report = crawlgate(begun.directory.path());
    report.args(["report", "--config", "crawlgate.yaml"]);
    let report = report.output().expect("the crawlgate binary");
    assert!(report.status.success(), "{report:?}");
}

#[test]
fn without_the_owners_word_the_first_day_does_not_count() {
    let origin = file(ROBOTS.as_bytes());
    let begun = Begun::new(origin.address, &[]);
    assert_eq!(begun.code(), Some(0), "{:?}", begun.output);
    assert!(!begun.policy().contains(ACTIVE), "{}", begun.policy());
    let printed = String::from_utf8_lossy(&begun.output.stdout);
    for text in [&*printed, &begun.policy()] {
        assert!(text.contains("www.shop.example is another host"), "{text}");
    }
    assert_eq!(Running::start(&begun).kind("/cart/"), "unproven");
}

#[test]
fn differing_files_leave_previous_out() {
    let origin = origin(|received| match received.field("host") {
        Some(HOST) => response("text/plain", ROBOTS.as_bytes()),
        _ => response("text/plain", b"User-agent: *\nDisallow: /other/\n"),
    });
    let arguments = ["--host", "other.example", "--unchanged-for", "2d"];
    let begun = Begun::new(origin.address, &arguments);
    assert_eq!(begun.code(), Some(0), "{:?}", begun.output);
    let policy = begun.policy();
    assert!(
        policy.contains("hosts: [shop.example, other.example]\n"),
        "{policy}"
    );
    assert!(!policy.contains(ACTIVE), "{policy}");
    assert_eq!(read(&begun.path("policies/before.txt")), ROBOTS);
}

#[test]
fn file_that_the_origin_lacks_is_named() {
    let origin = origin(|received| match received.field("host") {
        Some(HOST) => response("text/html", b"<!doctype html><title>Shop</title>"),
        _ => response("text/plain", ROBOTS.as_bytes()),
    });
    for (preset, is_named) in [("open-site", true), ("staging", false)] {
        let arguments = ["--host", "other.example", "--preset", preset];
        let begun = Begun::new(origin.address, &arguments);
        assert_eq!(begun.code(), Some(0), "{:?}", begun.output);
        let printed = String::from_utf8_lossy(&begun.output.stdout);
        assert_eq!(printed.contains("The origin lacks"), is_named, "{printed}");
    }
}

#[test]
fn page_in_place_of_robots_txt_is_no_rules() {
    let origin = origin(|_| response("text/html", b"<!doctype html><title>Shop</title>"));
    let begun = Begun::new(origin.address, &["--unchanged-for", "1d"]);
    assert_eq!(begun.code(), Some(0), "{:?}", begun.output);
    let before = fs::read(begun.path("policies/before.txt")).expect("a file");
    assert_eq!(before, b"");
    assert!(begun.policy().contains(ACTIVE), "{}", begun.policy());
}

#[test]
fn tdmrep_of_the_origin_is_named() {
    let with_file = Origin::start(|received, stream| match received.target() {
        "/.well-known/tdmrep.json" if received.field("host") == Some(HOST) => {
            answer(stream, "application/json", b"\n[]")
        }
        _ => answer(stream, "text/plain", ROBOTS.as_bytes()),
    });
    // It answers every other path with a page.
    let without = file(ROBOTS.as_bytes());
    for (origin, is_named) in [(with_file, true), (without, false)] {
        let begun = Begun::new(origin.address, &[]);
        assert_eq!(begun.code(), Some(0), "{:?}", begun.output);
        let noted = String::from_utf8_lossy(&begun.output.stderr);
        assert_eq!(noted.contains("tdmrep.json exists"), is_named, "{noted}");
    }
}

#[test]
fn without_any_answer_the_origins_rules_are_merged() {
    let arguments = ["--preset", "open-site", "--unchanged-for", "24h"];
    let failed = Begun::new(Origin::nowhere(), &arguments);
    assert_eq!(failed.code(), Some(1), "{:?}", failed.output);
    assert!(!failed.path("policies").exists() && !failed.path("crawlgate.yaml").exists());
    let busy = origin(|_| b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n".to_vec());
    let busy = Begun::new(busy.address, &arguments);
    assert_eq!(busy.code(), Some(1), "{:?}", busy.output);
    let begun = Begun::new(Origin::nowhere(), &arguments[..2]);
    assert_eq!(begun.code(), Some(0), "{:?}", begun.output);
    let policy = begun.policy();
    assert!(policy.contains("\n  origin: merge\n"), "{policy}");
    assert!(!policy.contains(ACTIVE), "{policy}");
    assert!(!begun.path("policies/before.txt").exists());
}

#[test]
fn origin_that_speaks_another_protocol_is_an_error() {
    let closing = Origin::start(|_, _| false);
    let begun = Begun::new(closing.address, &[]);
    assert_eq!(begun.code(), Some(1), "{:?}", begun.output);
    assert!(!begun.path("policies").exists() && !begun.path("crawlgate.yaml").exists());
    // Here only one file gets no answer.
    let hiding = Origin::start(|received, stream| match received.target() {
        "/robots.txt" => answer(stream, "text/plain", ROBOTS.as_bytes()),
        _ => false,
    });
    let begun = Begun::new(hiding.address, &[]);
    assert_eq!(begun.code(), Some(0), "{:?}", begun.output);
}

#[test]
fn preset_adds_to_the_rules_of_the_origin() {
    let origin = file(ROBOTS.as_bytes());
    let arguments = [
        "--unchanged-for",
        "24h",
        "--preset",
        "search-yes-training-no",
    ];
    let begun = Begun::new(origin.address, &arguments);
    assert_eq!(begun.code(), Some(0), "{:?}", begun.output);
    let printed = String::from_utf8_lossy(&begun.output.stdout);
    assert!(printed.contains("bingbot: nocache"), "{printed}");
    let publisher = Begun::new(origin.address, &["--preset", "publisher"]);
    let printed = String::from_utf8_lossy(&publisher.output.stdout);
    for part in ["gets 401 at once", "/license.xml and", "/tdm-policy.json:"] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    assert!(!printed.contains("license-of-nobody"), "{printed}");
    let closed = file(b"User-agent: GPTBot\nUser-agent: Google-Extended\nDisallow: /\n");
    let publisher = Begun::new(closed.address, &["--preset", "publisher"]);
    let printed = String::from_utf8_lossy(&publisher.output.stdout);
    assert!(printed.contains("license-of-nobody"), "{printed}");
    assert!(!printed.contains("Google-Extended"), "{printed}");
    let running = Running::start(&begun);
    eventually("the rules of the origin", || {
        let mut connection = Connection::open(running.address);
        connection.send(&format!(
            "GET /robots.txt HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n"
        ));
        let robots = connection.response("GET");
        robots.text().contains("Disallow: /cart/").then_some(())
    });
    assert_eq!(running.kind("/cart/"), "violation");
    // The file from before allows it.
    assert_eq!(running.kind("/page"), "stale_copy");
}

#[test]
fn existing_files_are_never_overwritten() {
    for name in ["policies/before.txt", "policies/shop.example.yaml"] {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path();
        fs::create_dir(path.join("policies")).expect("a directory");
        fs::write(path.join(name), "mine").expect("a file");
        let output = init(path, &["--host", HOST, "--origin", "http://127.0.0.1:9"]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert_eq!(read(&path.join(name)), "mine");
        let entries = |directory: &Path| fs::read_dir(directory).expect("a directory").count();
        assert_eq!(entries(path) + entries(&path.join("policies")), 2);
    }
}

#[test]
fn second_site_leaves_the_first_one_alone() {
    let origin = file(ROBOTS.as_bytes());
    let begun = Begun::new(origin.address, &[]);
    let names = [
        "crawlgate.yaml",
        "policies/before.txt",
        "policies/shop.example.yaml",
    ];
    let first = names.map(|name| read(&begun.path(name)));
    assert!(first[0].ends_with('\n') && first[2].ends_with('\n'));
    let other_origin = file(ROBOTS.as_bytes());
    let other = format!("http://{}", other_origin.address);
    let arguments = ["--host", "blog.example", "--origin", &other];
    let second = init(
        begun.directory.path(),
        &[&arguments[..], &["--unchanged-for", "24h"]].concat(),
    );
    assert_eq!(second.status.code(), Some(0), "{second:?}");
    assert_eq!(names.map(|name| read(&begun.path(name))), first);
    let policy = read(&begun.path("policies/blog.example.yaml"));
    let active = "\n  previous: before-blog.example.txt\n";
    assert!(
        policy.contains(active) && policy.ends_with('\n'),
        "{policy}"
    );
    assert_eq!(
        read(&begun.path("policies/before-blog.example.txt")),
        ROBOTS
    );
    // The lines to add are settings that pass the check.
    let text = String::from_utf8_lossy(&second.stdout).into_owned();
    let (_, lines) = text.split_once("  origins:\n").expect("lines to add");
    let (lines, _) = lines.split_once("Then run ").expect("their end");
    assert!(lines.contains(&format!("- http://{}\n", origin.address)));
    let origins = format!("origins:\n{lines}");
    let settings: Vec<&str> = first[0]
        .lines()
        .filter(|line| !line.starts_with("origins:"))
        .collect();
    fs::write(
        begun.path("crawlgate.yaml"),
        format!("{}\n{origins}", settings.join("\n")),
    )
    .expect("a file");
    let mut check = crawlgate(begun.directory.path());
    check.args(["check", "--config", "crawlgate.yaml"]);
    let check = check.output().expect("the crawlgate binary");
    assert!(check.status.success(), "{origins}: {check:?}");
    let again = init(begun.directory.path(), &arguments);
    assert_eq!(again.status.code(), Some(2), "{again:?}");
    // The settings have the lines by now.
    for name in ["blog.example.yaml", "before-blog.example.txt"] {
        fs::remove_file(begun.path("policies").join(name)).expect("removed");
    }
    let third = init(begun.directory.path(), &arguments);
    let text = String::from_utf8_lossy(&third.stdout).into_owned();
    assert!(
        text.contains("already has the origin of blog.example") && !text.contains("Next, add"),
        "{third:?}"
    );
}

#[test]
fn policy_that_fails_the_check_leaves_no_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let policies = directory.path().join("policies");
    fs::create_dir(&policies).expect("a directory");
    fs::write(policies.join("mine.yaml"), format!("hosts: {HOST}\n")).expect("a file");
    let output = init(
        directory.path(),
        &["--host", HOST, "--origin", "http://127.0.0.1:9"],
    );
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(fs::read_dir(&policies).expect("a directory").count(), 1);
    assert!(!directory.path().join("crawlgate.yaml").exists());
}

#[test]
fn hostile_files_become_policies_that_pass_the_check() {
    let large = format!("User-agent: *\nDisallow: /a\n# {}\n", "x".repeat(1 << 20));
    let many: String = (0..100)
        .map(|n| format!("User-agent: b{n}\nDisallow: /{n}\n\n"))
        .collect();
    let controls = "User-agent: *\0\nDisallow: /\u{1b}[31m\0x: #y\nDisallow: /\"'\\\u{202e}\nSitemap: https://a/\u{7f}\n";
    let yaml = "# robots:\n#   origin: replace\nUser-agent: [a, b]\nDisallow: /{x: &y *z}\nUser-agent: *\nDisallow: /- !!x\n";
    for body in [large, many, controls.to_owned(), yaml.to_owned()] {
        let origin = origin(move |_| response("text/plain", body.as_bytes()));
        let begun = Begun::new(origin.address, &["--unchanged-for", "24h"]);
        let errors = String::from_utf8_lossy(&begun.output.stderr).into_owned();
        assert_eq!(begun.code(), Some(0), "{errors}");
        assert!(
            !errors.contains('\u{1b}') && !errors.contains('\0'),
            "{errors:?}"
        );
        let before = fs::metadata(begun.path("policies/before.txt")).expect("a file");
        assert!(before.len() <= 500 * 1024);
        assert!(begun.policy().contains(ACTIVE));
    }
}

#[test]
fn site_closed_to_googlebot_stays_closed() {
    let origin = file(b"User-agent: *\nDisallow: /\n");
    let begun = Begun::new(origin.address, &[]);
    assert_eq!(begun.code(), Some(0), "{:?}", begun.output);
    assert!(begun.policy().contains("\nacknowledge: [site_disallowed]"));
}

#[test]
fn wrong_or_missing_answers_are_wrong_usage() {
    let directory = tempfile::tempdir().expect("a directory");
    let origin = ["--origin", "http://127.0.0.1:9"];
    for arguments in [
        &["--host", HOST][..],
        &origin,
        &[&origin[..], &["--host", "127.0.0.1:18301"]].concat(),
        &[&origin[..], &["--host", "localhost"]].concat(),
        &[&origin[..], &["--host", "*.shop.example"]].concat(),
        &[&origin[..], &["--host", "https://shop.example"]].concat(),
        &[&origin[..], &["--host", HOST, "--unchanged-for", "3h"]].concat(),
        &[&origin[..], &["--host", HOST, "--unchanged-for", "24"]].concat(),
        &[&origin[..], &["--host", HOST, "--preset", "none"]].concat(),
        &[&origin[..], &["--host", HOST, "--listen", "8080"]].concat(),
    ] {
        let output = init(directory.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?} {output:?}");
    }
    let left = fs::read_dir(directory.path()).expect("a directory").count();
    assert_eq!(left, 0);
}

#[test]
fn names_and_paths_are_quoted_for_yaml() {
    let directory = tempfile::tempdir().expect("a directory");
    let arguments = [
        "a dir",
        "--host",
        "BÜCHER.example",
        "--origin",
        "unix:/nowhere/a: #b.sock",
    ];
    let output = init(directory.path(), &arguments);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let site = directory.path().join("a dir");
    assert!(site.join("policies/xn--bcher-kva.example.yaml").is_file());
    let mut check = crawlgate(&site);
    check.args(["check", "--config", "crawlgate.yaml", "--json"]);
    let check = check.output().expect("the crawlgate binary");
    assert!(check.status.success(), "{check:?}");
}
