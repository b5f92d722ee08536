//! A real crawler: wget, which honours robots.txt, and is told not to.

#![cfg(feature = "proxy")]

mod support;

use std::process::Command;
use support::nginx::Nginx;
use support::{BROWSER, Gate, Setup};

fn policy(mode: &str) -> String {
    format!(
        r#"
robots:
  origin: replace
  groups:
    - agents: ["*"]
      disallow: [/private/]
enforcement:
  mode: observe
  agents: {{ Wget: {{ mode: {mode} }} }}
"#
    )
}

fn crawl(gate: &Gate, options: &[&str]) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let status = Command::new("wget")
        .args(["--recursive", "--level=5", "--quiet", "--no-proxy", "--tries=1", "--timeout=20"])
        .args(options)
        .arg(format!("http://{}/index.html", gate.address))
        .current_dir(directory.path())
        .status()
        .expect("wget is installed");
    // 8: some answer was an error, which a refusal is.
    assert!(status.success() || status.code() == Some(8), "wget failed: {status}");
}

#[test]
fn wget_keeping_to_the_rules_fetches_nothing_disallowed() {
    let nginx = Nginx::start(None);
    let gate = Setup::before(nginx.address).policy("site", &policy("enforce")).start();
    crawl(&gate, &[]);
    let requests = nginx.requests();
    assert!(requests.iter().any(|path| path == "/about.html"), "it crawled: {requests:?}");
    assert!(requests.iter().any(|path| path == "/report.pdf"), "it crawled: {requests:?}");
    assert!(!requests.iter().any(|path| path.starts_with("/private/")), "{requests:?}");
    let metrics = gate.metrics();
    assert!(!metrics.contains(r#"verdict="unproven""#), "nothing it did was against the rules: {metrics}");
    assert!(metrics.contains("crawlgate_robots_txt_total{crawler=\"wget\""), "{metrics}");
}

#[test]
fn wget_ignoring_the_rules_is_counted_under_observe() {
    let nginx = Nginx::start(None);
    let gate = Setup::before(nginx.address).policy("site", &policy("observe")).start();
    crawl(&gate, &["-e", "robots=off"]);
    let private = nginx.requests().iter().filter(|path| path.starts_with("/private/")).count();
    assert_eq!(private, 2, "observe lets them pass");
    gate.wait_for_metric(
        r#"crawlgate_requests_total{action="would_block",crawler="wget",site="site",verdict="unproven"}"#,
        2.0,
    );
}

#[test]
fn wget_ignoring_the_rules_is_refused_and_counted_under_enforce() {
    let nginx = Nginx::start(None);
    let gate = Setup::before(nginx.address).policy("site", &policy("enforce")).start();
    crawl(&gate, &["-e", "robots=off"]);
    // two.html is linked from one.html, which is refused, and from about.html: both are asked for once.
    assert!(!nginx.requests().iter().any(|path| path.starts_with("/private/")), "nothing passed");
    gate.wait_for_metric(
        r#"crawlgate_requests_total{action="block",crawler="wget",site="site",verdict="unproven"}"#,
        2.0,
    );
    let person = gate.fetch_as(BROWSER, "/private/one.html");
    assert_eq!(person.status, 200, "people are not crawlers");
}
