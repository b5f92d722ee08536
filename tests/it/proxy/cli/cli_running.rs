//! The commands that talk to a running crawlgate, and the demo that they are tried on.

use crate::proxy::support::eventually;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

fn binary() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_crawlgate"));
    command
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env_remove("RUST_LOG");
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A running demo on free ports, with policies of its own; killed when dropped.
struct Demo {
    child: Child,
    site: String,
    admin: String,
    control: PathBuf,
    policies: tempfile::TempDir,
    /// What it printed for people to try.
    guide: Vec<String>,
}

impl Demo {
    fn start() -> Demo {
        let policies = tempfile::tempdir().expect("a directory");
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("policies/demo.yaml");
        std::fs::copy(example, policies.path().join("demo.yaml")).expect("a copy");
        let mut child = binary()
            .args([
                "demo",
                "--listen",
                "127.0.0.1:0",
                "--admin",
                "127.0.0.1:0",
                "--policies",
            ])
            .arg(policies.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the demo starts");
        let (mut site, mut admin, mut control) = (None, None, None);
        let mut guide = Vec::new();
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        for line in lines.by_ref().map_while(Result::ok) {
            if let Some(address) = line.strip_prefix("listening on http://") {
                site = Some(address.to_owned());
            } else if let Some(address) = line.strip_prefix("admin on http://") {
                admin = Some(address.to_owned());
            } else if let Some((_, path)) = line.split_once("resume --control ") {
                control = Some(PathBuf::from(path.trim()));
            } else if line.starts_with("Ctrl-C") {
                break;
            }
            guide.push(line.trim().to_owned());
        }
        let (site, admin, control) = (
            site.expect("a site"),
            admin.expect("an admin"),
            control.expect("a socket"),
        );
        Demo {
            child,
            site,
            admin,
            control,
            policies,
            guide,
        }
    }

    fn ask(&self, command: &str, arguments: &[&str]) -> Output {
        binary()
            .arg(command)
            .args(arguments)
            .arg("--control")
            .arg(&self.control)
            .output()
            .expect("it runs")
    }

    fn get(&self, path: &str, user_agent: &str) -> String {
        get(&self.site, path, user_agent)
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        // SIGINT rather than SIGKILL, so that it removes its temporary files.
        let asked = Command::new("kill")
            .args(["-INT", &self.child.id().to_string()])
            .status();
        if !asked.is_ok_and(|status| status.success()) {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

fn get(address: &str, path: &str, user_agent: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream
        .set_read_timeout(Some(Duration::from_secs(10)))
        .expect("a timeout");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nUser-Agent: {user_agent}\r\nConnection: close\r\n\r\n")
        .expect("it reads");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("it answers");
    text(&answer)
}

#[test]
fn without_a_running_crawlgate_the_commands_say_so_and_exit_3() {
    let nowhere = tempfile::tempdir().expect("a directory");
    let socket = nowhere.path().join("control.sock");
    for command in ["status", "pause", "resume", "reload"] {
        let output = binary()
            .arg(command)
            .arg("--control")
            .arg(&socket)
            .output()
            .expect("it runs");
        assert_eq!(output.status.code(), Some(3), "{command}");
        let told = text(&output.stderr);
        assert!(told.contains(&socket.display().to_string()), "{told}");
        assert!(output.stdout.is_empty(), "{command}");
    }
}

#[test]
fn demo_blocks_and_counts_disallowed_requests() {
    let demo = Demo::start();
    assert!(demo.get("/", "GPTBot").starts_with("HTTP/1.1 403 "));
    let person = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0";
    assert!(demo.get("/", person).starts_with("HTTP/1.1 200 "));
    assert!(
        demo.get("/members/minutes.html", person)
            .starts_with("HTTP/1.1 200 ")
    );
    let pdf = demo
        .get("/reports/annual-report.pdf", "Googlebot")
        .to_ascii_lowercase();
    assert!(
        pdf.contains("x-robots-tag: noindex, noarchive\r\n"),
        "{pdf}"
    );
    assert!(
        demo.get("/robots.txt", "GPTBot")
            .contains("User-agent: GPTBot\nDisallow: /\n")
    );
    let metrics = get(&demo.admin, "/metrics", "test");
    // The demo's own hosts are new with it, so that nobody can have another robots.txt of them.
    let counted = "crawlgate_requests_total{action=\"block\",crawler=\"gptbot\",identity=\"unverified\",kind=\"violation\",site=\"demo\"} 1";
    assert!(metrics.contains(counted), "{metrics}");
    assert!(metrics.contains(
        "crawlgate_violations_total{crawler=\"gptbot\",identity=\"unverified\",kind=\"never_fetched\",site=\"demo\"} 1"
    ));
}

#[test]
fn the_guide_of_the_demo_leads_to_its_report() {
    let demo = Demo::start();
    assert!(demo.get("/", "GPTBot").starts_with("HTTP/1.1 403 "));
    let dashboard = format!("http://{}/", demo.admin);
    assert!(demo.guide.iter().any(|line| line.contains(&dashboard)));
    let is_report = |line: &&String| line.contains(" report --control ");
    let line = demo.guide.iter().find(is_report).expect("a report");
    // Requests are counted just after their answer.
    let gptbot = eventually("gptbot", || {
        let output = Command::new("sh")
            .args(["-c", &format!("{line} --json")])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .expect("a shell");
        let report: serde_json::Value =
            serde_json::from_slice(&output.stdout).expect("a report is JSON");
        let rows = report["crawlers"].as_array().expect("rows");
        rows.iter().find(|row| row["id"] == "gptbot").cloned()
    });
    assert_eq!(gptbot["part"], "breaks_rules", "{gptbot}");
    assert_eq!(gptbot["counts"]["refused"], 1, "{gptbot}");
    assert_eq!(gptbot["is_blocked"], true, "{gptbot}");
}

#[test]
fn wget_gets_allowed_pages_of_the_demo_alone() {
    let demo = Demo::start();
    let blocked = |demo: &Demo| {
        let metrics = get(&demo.admin, "/metrics", "test");
        let line = metrics
            .lines()
            .find(|line| line.contains("action=\"block\",crawler=\"wget\""))
            .map(str::to_owned);
        line.and_then(|line| line.rsplit(' ').next()?.parse::<u32>().ok())
            .unwrap_or(0)
    };
    let crawl = |options: &[&str]| {
        let download = tempfile::tempdir().expect("a directory");
        let url = format!("http://{}/", demo.site);
        let output = Command::new("wget")
            .args([
                "-r",
                "-nv",
                "--tries=1",
                "--no-proxy",
                "--no-host-directories",
                "-P",
            ])
            .arg(download.path())
            .args(options)
            .arg(url)
            .output()
            .expect("wget runs");
        assert!(
            download.path().join("exhibits/ropewalk.html").is_file(),
            "{}",
            text(&output.stderr)
        );
        assert!(!download.path().join("members/minutes.html").exists());
    };
    crawl(&[]);
    assert_eq!(
        blocked(&demo),
        0,
        "what keeps to robots.txt asks for nothing that is refused"
    );
    crawl(&["-e", "robots=off"]);
    // /members/minutes.html, /members/directory.html, and three links to /search.
    assert_eq!(blocked(&demo), 5);
}

#[test]
fn a_pause_begins_and_ends_from_the_command_line() {
    let demo = Demo::start();
    let paused = demo.ask("pause", &["--for", "10m", "--retry-after", "2m"]);
    assert_eq!(paused.status.code(), Some(0), "{}", text(&paused.stderr));
    let answer = demo.get("/", "Googlebot");
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(
        answer.to_ascii_lowercase().contains("retry-after: 120\r\n"),
        "{answer}"
    );
    assert!(
        demo.get(
            "/",
            "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"
        )
        .contains(" 200 ")
    );
    let status = demo.ask("status", &[]);
    assert!(
        text(&status.stdout).contains("\ndemo is paused for crawlers until "),
        "{}",
        text(&status.stdout)
    );
    assert_eq!(text(&demo.ask("resume", &[]).stdout), "resumed: demo\n");
    assert!(demo.get("/", "Googlebot").starts_with("HTTP/1.1 200 "));
    let again = demo.ask("resume", &[]);
    assert_eq!(again.status.code(), Some(0));
    assert!(
        !text(&again.stdout).contains("demo"),
        "{}",
        text(&again.stdout)
    );
    assert_eq!(
        demo.ask("pause", &["--site", "nowhere"]).status.code(),
        Some(1)
    );
    let long = demo.ask("pause", &["--for", "3d"]);
    assert_eq!(long.status.code(), Some(1));
    assert!(
        text(&long.stderr).contains("--long"),
        "{}",
        text(&long.stderr)
    );
    assert_eq!(
        demo.ask("pause", &["--for", "3d", "--long"]).status.code(),
        Some(0)
    );
}

#[test]
fn a_bad_policy_is_refused_on_reload_and_the_old_one_stays() {
    let demo = Demo::start();
    assert_eq!(demo.ask("reload", &[]).status.code(), Some(0));
    let file = demo.policies.path().join("demo.yaml");
    let good = std::fs::read_to_string(&file).expect("the policy");
    std::fs::write(
        &file,
        good.replace("training: disallow", "training: forbid"),
    )
    .expect("written");
    let refused = demo.ask("reload", &[]);
    assert_eq!(refused.status.code(), Some(1), "{}", text(&refused.stdout));
    assert!(
        text(&refused.stdout).contains("demo.yaml:12:13: error[bad-value]"),
        "{}",
        text(&refused.stdout)
    );
    assert!(demo.get("/", "GPTBot").starts_with("HTTP/1.1 403 "));
    let status: serde_json::Value =
        serde_json::from_slice(&demo.ask("status", &["--json"]).stdout).expect("status is JSON");
    assert_eq!(status["sites"][0]["reload_ok"], false);
    std::fs::write(&file, good).expect("written");
    assert_eq!(demo.ask("reload", &[]).status.code(), Some(0));
}

#[test]
fn saved_policy_is_reloaded_by_the_watch() {
    let demo = Demo::start();
    let file = demo.policies.path().join("demo.yaml");
    let good = std::fs::read_to_string(&file).expect("the policy");
    std::fs::write(
        &file,
        good.replace("    - agents: [Wget]", "    - agents: [Wget, ExampleBot]"),
    )
    .expect("written");
    let deadline = Instant::now() + Duration::from_secs(20);
    while !demo.get("/robots.txt", "x").contains("ExampleBot") {
        assert!(Instant::now() < deadline, "the change was not noticed");
        std::thread::yield_now();
    }
}

#[test]
fn explain_equals_the_running_demo() {
    let demo = Demo::start();
    for (user_agent, target) in [
        ("GPTBot", "/"),
        ("Googlebot", "/"),
        ("Googlebot", "/members/minutes.html"),
        ("Googlebot", "/x/../members/minutes.html"),
        ("Googlebot", "/x%2f..%2fmembers%2fminutes.html"),
        (
            "FoozleBot/1.0 (+https://foozle.example)",
            "/members/minutes.html",
        ),
        ("Bingbot", "/search?q=anchor"),
        ("Wget/1.21.4", "/members/minutes.html"),
        ("curl/8.0", "/members/minutes.html"),
    ] {
        let explained = binary()
            .args([
                "explain",
                "--json",
                "--host",
                &demo.site,
                "--user-agent",
                user_agent,
                "--policies",
            ])
            .arg(demo.policies.path())
            .arg(target)
            .output()
            .expect("it runs");
        let said: serde_json::Value = serde_json::from_slice(&explained.stdout).expect("JSON");
        let status = said["action"]["status"].as_u64().unwrap_or(200);
        let answer = demo.get(target, user_agent);
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{user_agent} {target}: {said}\n{answer}"
        );
    }
}

#[test]
fn a_stopped_demo_leaves_nothing_behind() {
    let mut demo = Demo::start();
    let temporary = demo.control.parent().expect("a directory").to_owned();
    assert!(temporary.is_dir());
    let sent = Command::new("kill")
        .args(["-INT", &demo.child.id().to_string()])
        .status()
        .expect("kill runs");
    assert!(sent.success());
    assert_eq!(demo.child.wait().expect("it ends").code(), Some(0));
    assert!(
        !temporary.exists(),
        "{} is still there",
        temporary.display()
    );
}

#[test]
fn a_busy_port_fails_at_once_with_3() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let started = Instant::now();
    let output = binary()
        .args(["demo", "--listen", &address])
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert!(
        text(&output.stderr).contains(&address),
        "{}",
        text(&output.stderr)
    );
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_mistake_in_the_settings_file_is_shown_in_its_place() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("crawlgate.yaml");
    std::fs::write(&file, "origins: shop.example\nlimits: { drain: soon }\n").expect("written");
    let output = binary()
        .arg("run")
        .arg("--config")
        .arg(&file)
        .output()
        .expect("it runs");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("crawlgate.yaml:1:10") && said.contains("crawlgate.yaml:2:18"),
        "{said}"
    );
}
