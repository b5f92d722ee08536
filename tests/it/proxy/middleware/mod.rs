//! The tower layer in the servers of `examples/` (axum, hyper, tonic), as crawlers, browsers and the
//! author of the application see it.

mod grpc;

use crate::proxy::shipped::examples::example;
use crate::proxy::support::{BINGBOT, BROWSER, Connection, GPTBOT, HOST, Response, eventually};
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// The application with a policy directory of its own; killed when dropped.
struct Application {
    child: Child,
    address: SocketAddr,
    policies: TempDir,
}

impl Application {
    /// The axum example with the policy of the examples.
    fn start() -> Application {
        Application::start_example("axum")
    }

    fn start_example(name: &str) -> Application {
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/policies/shop.yaml");
        let policy = fs::read_to_string(shipped).expect("the policy of the examples");
        Application::start_example_with(name, &policy)
    }

    fn with_policy(policy: &str) -> Application {
        Application::start_example_with("axum", policy)
    }

    fn start_example_with(name: &str, policy: &str) -> Application {
        let policies = tempfile::tempdir().expect("a temporary directory");
        fs::write(policies.path().join("shop.yaml"), policy).expect("a policy");
        let mut command = example(name);
        command.arg("127.0.0.1:0").arg(policies.path());
        Application::spawn(command, policies)
    }

    fn spawn(mut command: Command, policies: TempDir) -> Application {
        let mut child = command
            .stdout(Stdio::piped())
            .spawn()
            .expect("the example starts");
        let mut said = String::new();
        let stdout = child.stdout.take().expect("its output");
        BufReader::new(stdout).read_line(&mut said).expect("a line");
        let address = said
            .trim()
            .strip_prefix("listening on http://")
            .and_then(|address| address.parse().ok());
        Application {
            child,
            address: address.unwrap_or_else(|| panic!("it does not listen: {said:?}")),
            policies,
        }
    }

    fn ask(&self, method: &str, target: &str, user_agent: &str, more: &str) -> Response {
        let mut connection = Connection::open(self.address);
        let close = "Connection: close\r\n";
        connection.send(&format!(
            "{method} {target} HTTP/1.1\r\nHost: {HOST}\r\nUser-Agent: {user_agent}\r\n{close}{more}\r\n"
        ));
        connection.response(method)
    }

    fn get(&self, target: &str, user_agent: &str) -> Response {
        self.ask("GET", target, user_agent, "")
    }

    fn metrics(&self) -> String {
        self.get("/metrics", BROWSER).text().to_owned()
    }

    fn wait_for_metric(&self, series: &str, value: u64) {
        eventually(&format!("{series} {value}"), || {
            (crate::proxy::support::sum_of(&self.metrics(), series) == Some(value as f64))
                .then_some(())
        });
    }

    fn write_policy(&self, text: &str) {
        let new = self.policies.path().join("new");
        fs::write(&new, text).expect("a policy");
        fs::rename(new, self.policies.path().join("shop.yaml")).expect("the policy in its place");
    }

    /// Crawls all of it with wget, and gives what it stored.
    fn crawl(&self, options: &[&str]) -> TempDir {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let status = Command::new("wget")
            .args([
                "--recursive",
                "--no-host-directories",
                "--quiet",
                "--no-proxy",
                "--tries=1",
                "--timeout=20",
            ])
            .args(options)
            .arg(format!("http://{}/", self.address))
            .current_dir(directory.path())
            .status()
            .expect("wget is installed");
        // 8: some answer was an error, which a refusal is.
        assert!(
            status.success() || status.code() == Some(8),
            "wget failed: {status}"
        );
        directory
    }
}

impl Drop for Application {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const REQUESTS: &str = "crawlgate_requests_total";

#[test]
fn wget_that_obeys_fetches_nothing_disallowed() {
    let application = Application::start();
    let stored = application.crawl(&[]);
    let has = |name: &str| stored.path().join(name).exists();
    assert!(has("index.html") && has("about") && has("report.pdf") && has("robots.txt"));
    assert!(!has("private"));
    let robots = r#"crawlgate_robots_txt_total{crawler="wget",site="shop",status="200"}"#;
    application.wait_for_metric(robots, 1);
    application.wait_for_metric(
        &format!(r#"{REQUESTS}{{action="pass",crawler="wget",kind="allowed",site="shop"}}"#),
        3,
    );
    assert!(
        !application.metrics().contains("action=\"block\""),
        "{}",
        application.metrics()
    );
}

#[test]
fn wget_that_ignores_the_rules_is_refused_and_counted() {
    let application = Application::start();
    let stored = application.crawl(&["-e", "robots=off"]);
    assert!(stored.path().join("about").exists());
    assert!(
        !stored.path().join("private").exists(),
        "the answer was an error"
    );
    let refused = |line: &str| {
        line.starts_with(REQUESTS) && line.contains(r#"action="block",crawler="wget""#)
    };
    eventually("the refusal is counted", || {
        application.metrics().lines().any(refused).then_some(())
    });
}

#[test]
fn refusal_names_the_rule_and_never_reaches_the_application() {
    let application = Application::start();
    let refused = application.get("/", GPTBOT);
    // The server is the application's.
    assert_eq!((refused.status, refused.field("server")), (403, None));
    assert!(refused.text().contains("Disallow: /"), "{}", refused.text());
    let head = application.ask("HEAD", "/", GPTBOT, "");
    assert_eq!(
        (head.status, head.field("content-length")),
        (403, refused.field("content-length"))
    );
}

#[test]
fn robots_txt_is_served_with_validators() {
    let application = Application::start();
    let robots = application.get("/robots.txt", BINGBOT);
    assert_eq!(
        (robots.status, robots.field("content-type")),
        (200, Some("text/plain; charset=utf-8"))
    );
    assert!(
        robots
            .text()
            .contains("User-agent: *\nDisallow: /private/\n"),
        "{}",
        robots.text()
    );
    let etag = robots.field("etag").expect("an entity tag");
    let again = application.ask(
        "GET",
        "/robots.txt",
        BINGBOT,
        &format!("If-None-Match: {etag}\r\n"),
    );
    assert_eq!((again.status, again.body.len()), (304, 0));
}

#[test]
fn tags_follow_the_content_type_and_stand_in_pages_too() {
    let application = Application::start();
    assert_eq!(
        application
            .get("/report.pdf", BROWSER)
            .fields("x-robots-tag"),
        ["noindex"]
    );
    let page = application.get("/about", BROWSER);
    assert_eq!(page.fields("x-robots-tag"), ["max-image-preview: large"]);
    application.write_policy("indexing: [{ paths: /, tag: noarchive }]\nhtml: meta\n");
    let page = eventually("the new policy is in force", || {
        let page = application.get("/about", BROWSER);
        (page.fields("x-robots-tag") == ["noarchive"]).then_some(page)
    });
    assert!(
        page.text()
            .contains(r#"<meta name="robots" content="noarchive">"#),
        "{}",
        page.text()
    );
    assert!(page.text().contains("<p>A shop."), "{}", page.text());
    let head = application.ask("HEAD", "/about", BROWSER, "");
    assert_eq!(
        (head.status, head.field("content-length")),
        (200, None),
        "as long as the page that is rewritten"
    );
}

#[test]
fn policy_that_breaks_later_leaves_the_good_one_in_force() {
    let application = Application::start();
    application.write_policy("enforcement: { mode: enfroce }\n");
    application.wait_for_metric(r#"crawlgate_policy_reload_success{site="shop"}"#, 0);
    assert_eq!(application.get("/", GPTBOT).status, 403);
    application.write_policy("enforcement: { mode: off }\n");
    eventually("the next good policy", || {
        (application.get("/", GPTBOT).status == 200).then_some(())
    });
}

#[test]
fn policy_that_is_broken_at_the_start_is_an_error_with_its_line() {
    let policies = tempfile::tempdir().expect("a temporary directory");
    fs::write(
        policies.path().join("shop.yaml"),
        "robots: {}\nenforcement: { mode: enfroce }\n",
    )
    .expect("a policy");
    let output = example("axum")
        .arg("127.0.0.1:0")
        .arg(policies.path())
        .output()
        .expect("the example runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains("shop.yaml:2:"),
        "{said}"
    );
}

#[test]
fn pause_answers_503_to_crawlers_and_not_to_people() {
    let application = Application::with_policy("pause: { audience: crawlers, retry_after: 30m }\n");
    let paused = application.get("/", BINGBOT);
    assert_eq!(
        (paused.status, paused.field("retry-after")),
        (503, Some("1800"))
    );
    assert_eq!(application.get("/robots.txt", BINGBOT).status, 200);
    assert_eq!(application.get("/", BROWSER).status, 200);
}

#[test]
fn crawler_that_comes_too_fast_is_slowed_down() {
    let policy = "robots: { groups: [{ agents: bingbot, crawl_delay: 1h }] }\nenforcement: { mode: enforce }\n";
    let application = Application::with_policy(policy);
    // A crawler is held to a delay that it provably knows.
    assert_eq!(application.get("/robots.txt", BINGBOT).status, 200);
    let slowed = eventually("it came too fast", || {
        let response = application.get("/about", BINGBOT);
        (response.status != 200).then_some(response)
    });
    assert_eq!(slowed.status, 429);
    assert!(slowed.field("retry-after").is_some());
    assert_eq!(application.get("/about", BROWSER).status, 200);
}

#[test]
fn body_of_a_request_arrives_behind_the_gate() {
    let application = Application::start();
    let mut connection = Connection::open(application.address);
    let body = "POST / HTTP/1.1\r\nHost: site.test\r\nContent-Length: 5\r\n\r\nhello";
    // The application has no POST there: its own answer passes, and the connection goes on.
    connection.send(body);
    assert_eq!(connection.response("POST").status, 405);
    connection.send(&format!(
        "GET /about HTTP/1.1\r\nHost: {HOST}\r\nUser-Agent: {GPTBOT}\r\n\r\n"
    ));
    assert_eq!(connection.response("GET").status, 403);
    connection.send(&format!(
        "GET /about HTTP/1.1\r\nHost: {HOST}\r\nUser-Agent: {BROWSER}\r\n\r\n"
    ));
    assert_eq!(connection.response("GET").status, 200);
}

#[test]
fn hyper_server_answers_by_the_policy() {
    let policy = "purposes: { training: disallow }\nenforcement: { mode: enforce }\n\
                  robots: { groups: [{ agents: bingbot, crawl_delay: 1h }] }\n";
    let server = Application::start_example_with("hyper", policy);
    assert_eq!(server.get("/", GPTBOT).status, 403);
    assert_eq!(server.get("/", BROWSER).status, 200);
    assert_eq!(server.get("/robots.txt", BINGBOT).status, 200);
    // Only a client with an address has a crawl rate.
    eventually("it came too fast", || {
        (server.get("/", BINGBOT).status == 429).then_some(())
    });
}

#[test]
fn tonic_client_gets_the_status_of_its_call() {
    let server = Application::start_example("tonic");
    for (user_agent, printed) in [(BROWSER, "SERVING\n"), (GPTBOT, "PermissionDenied\n")] {
        let url = format!("http://{}", server.address);
        let output = example("tonic")
            .args(["--call", &url, user_agent])
            .output()
            .expect("the example runs");
        assert_eq!(String::from_utf8_lossy(&output.stdout), printed);
    }
}

#[test]
fn tonic_example_takes_an_address_alone_and_ends_in_order() {
    let mut command = example("tonic");
    command
        .arg("127.0.0.1:0")
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    let policies = tempfile::tempdir().expect("a temporary directory");
    let mut server = Application::spawn(command, policies);
    assert_ne!(server.address.port(), 8080);
    // It waits for the signal once it answers.
    let url = format!("http://{}", server.address);
    let output = example("tonic").args(["--call", &url, BROWSER]).output();
    assert_eq!(output.expect("the example runs").stdout, b"SERVING\n");
    let interrupt = Command::new("kill")
        .args(["-INT", &server.child.id().to_string()])
        .status();
    assert!(interrupt.expect("kill is installed").success());
    let ended = eventually("it ends", || server.child.try_wait().expect("its state"));
    assert!(ended.success());
}
