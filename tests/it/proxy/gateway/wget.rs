//! A real crawler: wget, which honours robots.txt, and is told not to.

use crate::proxy::support::nginx::Nginx;
use crate::proxy::support::{BROWSER, Gate, Setup};
use std::process::Command;

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
        .args([
            "--recursive",
            "--level=5",
            "--quiet",
            "--no-proxy",
            "--tries=1",
            "--timeout=20",
        ])
        .args(options)
        .arg(format!("http://{}/index.html", gate.address))
        .current_dir(directory.path())
        .status()
        .expect("wget is installed");
    // 8: some answer was an error, which a refusal is.
    assert!(
        status.success() || status.code() == Some(8),
        "wget failed: {status}"
    );
}

#[test]
fn wget_keeping_to_the_rules_fetches_nothing_disallowed() {
    let nginx = Nginx::start(None);
    let gate = Setup::before(nginx.address)
        .policy("site", &policy("enforce"))
        .start();
    crawl(&gate, &[]);
    let requests = nginx.requests();
    assert!(
        requests.iter().any(|path| path == "/about.html"),
        "it crawled: {requests:?}"
    );
    assert!(
        requests.iter().any(|path| path == "/report.pdf"),
        "it crawled: {requests:?}"
    );
    assert!(
        !requests.iter().any(|path| path.starts_with("/private/")),
        "{requests:?}"
    );
    let metrics = gate.metrics();
    assert!(
        !metrics.contains(r#"kind="unproven""#),
        "nothing it did was against the rules: {metrics}"
    );
    assert!(
        metrics.contains("crawlgate_robots_txt_total{crawler=\"wget\""),
        "{metrics}"
    );
}

#[test]
fn wget_ignoring_the_rules_is_counted_under_observe() {
    let nginx = Nginx::start(None);
    let gate = Setup::before(nginx.address)
        .policy("site", &policy("observe"))
        .start();
    crawl(&gate, &["-e", "robots=off"]);
    let private = nginx
        .requests()
        .iter()
        .filter(|path| path.starts_with("/private/"))
        .count();
    assert_eq!(private, 2, "observe lets them pass");
    gate.wait_for_metric(
        r#"crawlgate_requests_total{action="would_block",crawler="wget",kind="unproven",site="site"}"#,
        2.0,
    );
}

/// Two pages that are open today, one after the other; robots.txt closes them while wget is on its
/// way.
#[test]
fn wget_obeying_its_old_copy_is_no_violator() {
    let nginx = Nginx::start(None);
    let mut gate = Setup::before(nginx.address)
        .policy("site", &changing("/elsewhere/"))
        .with_clock()
        .start();
    settle(&mut gate);
    // It reads robots.txt once, waits a second before each page, and goes on by its copy.
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut wget = Command::new("wget")
        .args([
            "--recursive",
            "--level=5",
            "--quiet",
            "--no-proxy",
            "--tries=1",
            "--timeout=20",
            "--wait=1",
        ])
        .arg(format!("http://{}/index.html", gate.address))
        .current_dir(directory.path())
        .spawn()
        .expect("wget is installed");
    let robots = r#"crawlgate_robots_txt_total{crawler="wget",site="site",status="200"}"#;
    gate.wait_for_metric(robots, 1.0);
    gate.write_policy("site", &changing("/private/"));
    assert!(gate.command(&["reload"]).status.success());
    let status = wget.wait().expect("it ends");
    assert!(
        status.success() || status.code() == Some(8),
        "wget failed: {status}"
    );
    let private = nginx
        .requests()
        .iter()
        .filter(|path| path.starts_with("/private/"))
        .count();
    assert_eq!(private, 2, "its copy allows them, and nobody refuses them");
    gate.wait_for_metric(
        r#"crawlgate_requests_total{action="pass",crawler="wget",kind="stale_copy",site="site"}"#,
        2.0,
    );
    assert!(
        !gate.metrics().contains("crawlgate_violations_total{"),
        "{}",
        gate.metrics()
    );
    // A day later the copy is too old, and whoever goes by it a violator.
    settle(&mut gate);
    crawl(&gate, &["-e", "robots=off"]);
    gate.wait_for_metric(
        r#"crawlgate_violations_total{crawler="wget",kind="never_fetched",site="site"}"#,
        2.0,
    );
    let private = nginx
        .requests()
        .iter()
        .filter(|path| path.starts_with("/private/"))
        .count();
    assert_eq!(private, 2, "nothing more passed");
    // And one that fetches the rules and does not keep to them.
    let agent = "Wget/1.21.3";
    assert_eq!(
        gate.get(
            &gate.address.to_string(),
            "/robots.txt",
            &format!("User-Agent: {agent}\r\n")
        )
        .status,
        200
    );
    gate.wait_for_metric(robots, 2.0);
    crawl(&gate, &["-e", "robots=off"]);
    gate.wait_for_metric(
        r#"crawlgate_violations_total{crawler="wget",kind="violation",site="site"}"#,
        2.0,
    );
}

fn changing(closed: &str) -> String {
    policy("enforce").replace("/private/", closed)
}

/// A day in which crawlers come and keep to the rules: whatever was fetched before is over, the
/// host was watched.
fn settle(gate: &mut Gate) {
    let host = gate.address.to_string();
    for _ in 0..5 {
        assert_eq!(
            gate.get(&host, "/index.html", "User-Agent: bingbot/2.0\r\n")
                .status,
            200
        );
        gate.live_through(6 * 3_600);
    }
}

#[test]
fn wget_ignoring_the_rules_is_refused_and_counted_under_enforce() {
    let nginx = Nginx::start(None);
    let gate = Setup::before(nginx.address)
        .policy("site", &policy("enforce"))
        .start();
    crawl(&gate, &["-e", "robots=off"]);
    // two.html is linked from one.html, which is refused, and from about.html: both are asked for
    // once.
    assert!(
        !nginx
            .requests()
            .iter()
            .any(|path| path.starts_with("/private/")),
        "nothing passed"
    );
    gate.wait_for_metric(
        r#"crawlgate_requests_total{action="block",crawler="wget",kind="unproven",site="site"}"#,
        2.0,
    );
    let person = gate.fetch_as(BROWSER, "/private/one.html");
    assert_eq!(person.status, 200, "people are not crawlers");
}

/// What the site itself says, without any policy.
const OWN: &str = "User-agent: *\nDisallow: /about.html\n\nUser-agent: Wget\nDisallow: /private/\n";

/// nginx with a robots.txt of its own, and crawlgate before it without a policy.
fn default_sites() -> (Nginx, Gate) {
    let nginx = Nginx::start(None);
    nginx.write("robots.txt", OWN);
    let gate = Setup::before(nginx.address).start();
    assert!(
        gate.get("site.test", "/robots.txt", "")
            .text()
            .contains("User-agent: Wget\nDisallow: /private/\n")
    );
    (nginx, gate)
}

fn broken(site: &str, verdict: &str) -> String {
    format!(
        r#"crawlgate_requests_total{{action="would_block",crawler="wget",kind="{verdict}",site="{site}"}}"#
    )
}

#[test]
fn without_policy_obedient_wget_breaks_no_rule() {
    let (nginx, gate) = default_sites();
    crawl(&gate, &[]);
    let requests = nginx.requests();
    assert!(
        requests.iter().any(|path| path == "/about.html"),
        "its own group replaces `*`: {requests:?}"
    );
    assert!(
        !requests.iter().any(|path| path.starts_with("/private/")),
        "{requests:?}"
    );
    let metrics = gate.metrics();
    assert!(
        !metrics.contains("would_block") && !metrics.contains(r#"action="block""#),
        "{metrics}"
    );
    assert!(
        metrics.contains(r#"crawlgate_origin_robots_state{site="origin",state="current"} 1"#),
        "{metrics}"
    );
}

#[test]
fn without_policy_violations_of_own_rules_are_counted() {
    let (nginx, gate) = default_sites();
    crawl(&gate, &["-e", "robots=off"]);
    let private = nginx
        .requests()
        .iter()
        .filter(|path| path.starts_with("/private/"))
        .count();
    assert_eq!(private, 2, "nothing is refused");
    gate.wait_for_metric(&broken("origin", "unproven"), 2.0);
    let fine = nginx
        .requests()
        .iter()
        .filter(|path| !path.starts_with("/private/") && *path != "/robots.txt")
        .count();
    gate.wait_for_metric(
        r#"crawlgate_requests_total{action="pass",crawler="wget",kind="allowed",site="origin"}"#,
        fine as f64,
    );
    assert_eq!(
        gate.metrics().matches("would_block").count(),
        1,
        "nobody else broke anything"
    );

    // Three lines more change what these three lines say.
    gate.write_policy(
        "shop",
        "robots:\n  groups:\n    - { agents: Wget, disallow: /report.pdf }\n",
    );
    let served = |wanted: &str| {
        crate::proxy::support::eventually(wanted, || {
            let text = gate.get("site.test", "/robots.txt", "").text().to_owned();
            text.contains(wanted).then_some(text)
        })
    };
    let text = served("User-agent: Wget\nDisallow: /report.pdf\nDisallow: /private/\n");
    assert!(
        text.contains("User-agent: *\nDisallow: /about.html\n"),
        "{text}"
    );
    crawl(&gate, &["-e", "robots=off"]);
    gate.wait_for_metric(&broken("shop", "unproven"), 2.0);
    // What was served a moment ago let it fetch the report.
    gate.wait_for_metric(
        r#"crawlgate_requests_total{action="pass",crawler="wget",kind="stale_copy",site="shop"}"#,
        1.0,
    );
}
