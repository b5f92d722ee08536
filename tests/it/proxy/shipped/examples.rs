//! The examples do what they say: the translation of a policy for nginx and HAProxy is held to
//! crawlgate's own decisions by the real programs, and the bare proxy forwards.

use crate::proxy::support::program::free_address;
use crate::proxy::support::{
    BINGBOT, BROWSER, Connection, GPTBOT, HOST, Origin, Response, eventually,
};
use crawlgate::crawlers::Registry;
use crawlgate::{Engine, Request};
use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// An example, built together with the tests: beside them, one directory up.
pub fn example(name: &str) -> Command {
    let test = std::env::current_exe().expect("the test's own path");
    let built = test
        .ancestors()
        .nth(2)
        .expect("the profile's directory")
        .join("examples")
        .join(name);
    assert!(
        built.exists(),
        "{} is missing: cargo build --examples",
        built.display()
    );
    Command::new(built)
}

/// What a command prints; it must do well.
fn output(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Servers live in sbin, which ordinary users do not search.
fn program(name: &str) -> PathBuf {
    let sbin = Path::new("/usr/sbin").join(name);
    if sbin.exists() { sbin } else { name.into() }
}

/// The policy of the comparison, with more lines.
fn policy(rules: usize, more: &str) -> String {
    output(example("side_by_side_config").args(["policy", &rules.to_string()])) + more
}

/// The proxies that keep the policy.
const KEEPERS: [&str; 3] = ["nginx-usual", "nginx-best", "haproxy"];

/// A proxy with what was written for it; killed when dropped.
struct Proxy {
    child: Child,
    address: SocketAddr,
    directory: Option<TempDir>,
}

impl Proxy {
    /// Starts one of the translations before an origin, checked by the program itself first.
    fn start(name: &str, policy: &str, origin: SocketAddr) -> Proxy {
        // No port can be had but by picking one, and another test may take it in between.
        (0..10)
            .find_map(|_| Proxy::try_start(name, policy, origin))
            .unwrap_or_else(|| panic!("{name} does not start"))
    }

    fn try_start(name: &str, policy: &str, origin: SocketAddr) -> Option<Proxy> {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (root, address) = (directory.path(), free_address());
        fs::write(root.join("policy.yaml"), policy).expect("the policy is written");
        let listen = |proxy: &str| {
            if proxy == name {
                address
            } else {
                "127.0.0.1:1".parse().unwrap()
            }
            .to_string()
        };
        output(
            example("side_by_side_config")
                .arg("configs")
                .args([root.join("policy.yaml"), root.to_owned()])
                .arg(origin.to_string())
                .args(["nginx-usual", "nginx-best", "nginx-plain", "haproxy"].map(listen)),
        );
        let mut command = if name == "haproxy" {
            let mut command = Command::new(program("haproxy"));
            command.arg("-C").arg(root).args(["-f", "haproxy.cfg"]);
            output(Command::new(program("haproxy")).arg("-C").arg(root).args([
                "-c",
                "-f",
                "haproxy.cfg",
            ]));
            command.arg("-db");
            command
        } else {
            let nginx = || {
                let mut command = Command::new(program("nginx"));
                command
                    .args(["-e", "stderr", "-p"])
                    .arg(root)
                    .arg("-c")
                    .arg(root.join(format!("{name}.conf")));
                command
            };
            output(nginx().arg("-t"));
            let mut command = nginx();
            command.args(["-g", "daemon off; master_process off;"]);
            command
        };
        Proxy::spawn(&mut command, address, Some(directory))
    }

    /// Waits until the address is open; `None` when the program ends instead.
    fn spawn(
        command: &mut Command,
        address: SocketAddr,
        directory: Option<TempDir>,
    ) -> Option<Proxy> {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let mut proxy = Proxy {
            child,
            address,
            directory,
        };
        let open = eventually("the proxy listens or ends", || {
            let ended = proxy
                .child
                .try_wait()
                .expect("the state of the process")
                .is_some();
            (ended || TcpStream::connect(address).is_ok()).then_some(!ended)
        });
        if !open {
            let mut said = String::new();
            let _ = proxy
                .child
                .stderr
                .take()
                .map(|mut stderr| stderr.read_to_string(&mut said));
            eprintln!("{command:?}: {said}");
        }
        open.then_some(proxy)
    }

    fn get(&self, target: &str, user_agent: &str) -> Response {
        self.get_on(&mut Connection::open(self.address), target, user_agent)
    }

    fn get_on(&self, connection: &mut Connection, target: &str, user_agent: &str) -> Response {
        connection.send(&format!(
            "GET {target} HTTP/1.1\r\nHost: {HOST}\r\nUser-Agent: {user_agent}\r\n\r\n"
        ));
        connection.response("GET")
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        drop(self.directory.take());
    }
}

#[test]
fn nginx_and_haproxy_block_the_crawler_not_the_browser() {
    let origin = Origin::plain();
    let policy = policy(10, "");
    for name in KEEPERS {
        let proxy = Proxy::start(name, &policy, origin.address);
        let refused = proxy.get("/", GPTBOT);
        assert_eq!(
            (refused.status, refused.text()),
            (403, "Not for crawlers.\n"),
            "{name}"
        );
        assert_eq!(refused.field("cache-control"), Some("no-store"), "{name}");
        let page = proxy.get("/section-3/private/x", BROWSER);
        assert_eq!((page.status, page.text()), (200, "hello"), "{name}");
        assert_eq!(
            proxy.get("/section-3/private/x", BINGBOT).status,
            403,
            "{name}"
        );
        assert_eq!(proxy.get("/", BINGBOT).status, 200, "{name}");
    }
    let forwarded = &origin.received()[0];
    assert_eq!(forwarded.field("host"), Some(HOST));
    assert_eq!(forwarded.field("x-forwarded-for"), Some("127.0.0.1"));
}

/// Every crawler of the registry, as it introduces itself, on paths of every kind of rule, with
/// many rules: the regexes are then too long for one line, and split.
#[test]
fn nginx_and_haproxy_decide_as_crawlgate_does() {
    let registry = Registry::builtin();
    let policy = policy(2_000, "");
    let engine = Engine::load(&policy).expect("a policy").engine;
    let targets = [
        "/",
        "/section-8/private/minutes.html",
        "/section-1999/private/",
        "/section-8/public/minutes.html",
        "/section-1995/of/the/site/print",
        "/some/article?ref=1996",
        "/some/article?ref=x",
        "/page-1997.html",
        "/page-1997.html?x",
    ];
    let origin = Origin::plain();
    for name in KEEPERS {
        let proxy = Proxy::start(name, &policy, origin.address);
        let mut connection = Connection::open(proxy.address);
        let (mut refused, mut passed, mut wrong) = (0, 0, Vec::new());
        // Those that only name another crawler (`like Googlebot`) are taken for it: a regex misses
        // this.
        let marks = || {
            registry
                .crawlers()
                .iter()
                .flat_map(|crawler| &crawler.markers)
        };
        let likens = |agent: &&str| marks().any(|mark| agent.contains(&format!("like {mark}")));
        let agents = registry
            .crawlers()
            .iter()
            .filter_map(|crawler| crawler.user_agent.as_deref());
        let agents = agents.filter(|agent| !likens(agent)).chain([BROWSER]);
        for (user_agent, target) in agents.flat_map(|agent| targets.map(|target| (agent, target))) {
            let decided = engine.decide(Request::get(HOST, target).user_agent(user_agent));
            let expected = if decided.action.kind == crawlgate::ActionKind::Block {
                403
            } else {
                200
            };
            *if expected == 403 {
                &mut refused
            } else {
                &mut passed
            } += 1;
            let status = proxy.get_on(&mut connection, target, user_agent).status;
            if status != expected {
                wrong.push(format!(
                    "{status} in place of {expected}: {target} for {user_agent}"
                ));
            }
        }
        assert!(
            refused > 500 && passed > 500,
            "{refused} refused, {passed} passed"
        );
        assert!(wrong.is_empty(), "{name}:\n{}", wrong.join("\n"));
    }
}

#[test]
fn nginx_and_haproxy_send_pdf_tags_and_robots_txt() {
    let pdf = "HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\nContent-Length: 5\r\n\r\nhello";
    let (origin, policy) = (Origin::saying(pdf), policy(10, ""));
    for name in KEEPERS {
        let proxy = Proxy::start(name, &policy, origin.address);
        assert_eq!(
            proxy.get("/report.pdf", BINGBOT).fields("x-robots-tag"),
            ["noindex, noarchive"],
            "{name}"
        );
        if name == "haproxy" {
            // The file does not fit into HAProxy's default buffers, so the origin has it.
            continue;
        }
        let robots = proxy.get("/robots.txt", GPTBOT);
        assert_eq!(robots.status, 200, "{name}");
        assert_eq!(
            robots.field("content-type"),
            Some("text/plain; charset=utf-8"),
            "{name}"
        );
        assert!(
            robots.text().contains("User-agent: GPTBot\nDisallow: /\n"),
            "{name}"
        );
        assert!(
            robots
                .field("cache-control")
                .is_some_and(|value| value.contains("max-age=3600")),
            "{name}"
        );
    }
}

#[test]
fn nginx_and_haproxy_pause_for_crawlers_only() {
    let (origin, policy) = (
        Origin::plain(),
        policy(10, "pause: { audience: crawlers, retry_after: 30m }\n"),
    );
    for name in KEEPERS {
        let proxy = Proxy::start(name, &policy, origin.address);
        for crawler in [BINGBOT, GPTBOT] {
            let paused = proxy.get("/", crawler);
            assert_eq!(
                (paused.status, paused.field("retry-after")),
                (503, Some("1800")),
                "{name}"
            );
            assert_eq!(proxy.get("/robots.txt", crawler).status, 200, "{name}");
        }
        assert_eq!(proxy.get("/", BROWSER).status, 200, "{name}");
    }
}

#[test]
fn untranslatable_policy_is_refused() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("policy.yaml");
    for (more, says) in [
        (
            "  too_fast: { status: 429 }\n  agents: { GPTBot: { disallowed: { status: 410 } } }\n",
            "only one answer",
        ),
        (
            "pause: { audience: everyone }\n",
            "only a pause for crawlers",
        ),
    ] {
        fs::write(&file, policy(10, more)).expect("the policy is written");
        let run = example("side_by_side_config")
            .arg("configs")
            .args([&file, &directory.path().to_owned()])
            .args(["127.0.0.1:1"; 5])
            .output()
            .expect("the example runs");
        let said = String::from_utf8_lossy(&run.stderr);
        assert!(!run.status.success() && said.contains(says), "{said}");
    }
}

#[test]
fn the_bare_proxy_forwards_and_keeps_connections() {
    let origin = Origin::plain();
    let start = || {
        let address = free_address();
        let words = [address.to_string(), origin.address.to_string()];
        Proxy::spawn(example("bare_proxy").args(words), address, None)
    };
    let proxy = (0..10)
        .find_map(|_| start())
        .expect("the bare proxy starts");
    let mut connection = Connection::open(proxy.address);
    for target in ["/one?x", "/two"] {
        let page = proxy.get_on(&mut connection, target, GPTBOT);
        assert_eq!((page.status, page.text()), (200, "hello"));
        assert_eq!(page.fields("x-robots-tag"), Vec::<&str>::new());
    }
    let asked: Vec<String> = origin
        .received()
        .iter()
        .map(|request| request.target().to_owned())
        .collect();
    assert_eq!(asked, ["/one?x", "/two"]);
}

#[test]
fn examples_are_those_of_their_page() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let page = fs::read_to_string(directory.join("README.md")).expect("the page");
    let entries = fs::read_dir(&directory).expect("the examples");
    let programs: BTreeSet<String> = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.join("main.rs").exists() || path.extension() == Some("rs".as_ref()))
        .map(|path| path.file_stem().expect("a name").to_string_lossy().into())
        .collect();
    let named = page.split("--example ").skip(1);
    let named: BTreeSet<String> = named
        .map(|rest| rest.split([' ', '`']).next().expect("a name").to_owned())
        .collect();
    assert_eq!(named, programs);
}

#[test]
fn the_engine_decides_without_a_server() {
    let printed = output(&mut example("engine"));
    assert!(
        printed.contains("User-agent: GPTBot\nDisallow: /\n"),
        "{printed}"
    );
    for line in [
        "GPTBot/1.2 /: disallowed, block; as a PDF: noindex",
        "Mozilla/5.0 (compatible; bingbot/2.0) /cart/7: disallowed, block; as a PDF: noindex",
        "curl/8.5 /a.pdf: not_a_crawler, pass; as a PDF: noindex",
    ] {
        assert!(
            printed.lines().any(|printed| printed == line),
            "{line} in {printed}"
        );
    }
}

#[test]
fn own_crawler_is_known_by_its_marker_alone() {
    let printed = output(&mut example("own_crawler"));
    let expected = [
        "IntranetBot/3.1: intranetbot",
        "NotTheIntranetBot/1.0: an unknown bot",
        "GPTBot/1.2: gptbot",
        "Mozilla/5.0 (X11; rv:145.0) Firefox/145.0: a visitor",
    ];
    assert_eq!(printed.lines().collect::<Vec<_>>(), expected);
}

/// What an example prints that answers three requests by a policy.
fn answered(name: &str) -> String {
    let policies = tempfile::tempdir().expect("a directory");
    let policy = "hosts: [shop.example]\nrobots: { groups: [{ agents: [GPTBot], disallow: [/] }] }\nenforcement: { mode: enforce }\n";
    fs::write(policies.path().join("shop.yaml"), policy).expect("a policy");
    let mut child = example(name)
        .arg(policies.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the example starts");
    let lines = "GET shop.example /page GPTBot/1.2\nGET shop.example /page curl/8.5.0\nGET shop.example /robots.txt GPTBot/1.2\n";
    std::io::Write::write_all(
        &mut child.stdin.take().expect("its input"),
        lines.as_bytes(),
    )
    .expect("written");
    let said = child.wait_with_output().expect("it ends").stdout;
    String::from_utf8_lossy(&said).into_owned()
}

#[test]
fn toy_entry_point_answers_as_the_policy_says() {
    assert_eq!(answered("toy_entry_point"), "403\n200\n200\n");
}

#[test]
fn a_toy_sink_gets_each_request_against_the_rules() {
    assert_eq!(
        answered("toy_sink"),
        "{\"crawler\":\"gptbot\",\"target\":\"/page\",\"kind\":\"unproven\",\"rule\":\"Disallow: /\",\"would\":null}\n"
    );
}

/// The rows of the table that a load prints.
fn table(words: &[&str]) -> Vec<Vec<String>> {
    let printed = output(example("under_load").args(words));
    let rows = printed
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    rows.skip(1)
        .map(|row| row.split(" | ").map(str::to_owned).collect())
        .collect()
}

#[test]
fn load_of_people_and_crawlers_is_counted_on_every_way() {
    let rows = table(&["people-first", "--seconds", "1"]);
    assert_eq!(rows.len(), 4, "{rows:?}");
    // How much comes of it in a second is the machine's business.
    assert!(rows.iter().all(|row| row.len() == 7), "{rows:?}");
    assert!(
        rows[..3].iter().all(|row| row[6] == "0"),
        "nobody else turns crawlers away: {rows:?}"
    );
}

#[test]
fn load_on_a_server_that_flaps_costs_no_get() {
    let rows = table(&["flapping", "--seconds", "3"]);
    assert_eq!(rows.len(), 3, "{rows:?}");
    for row in &rows {
        assert!(row.len() == 8 && row[1] != "0" && row[2] == "0", "{row:?}");
    }
}
