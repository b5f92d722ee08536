//! crawlgate before several origins and without a policy: each host by its own robots.txt, with
//! real servers and a real crawler, until the first policy says more.

use crate::proxy::support::nginx::Nginx;
use crate::proxy::support::{BROWSER, Gate, Setup, eventually, run};
use std::process::Command;

/// Two names by which a client of this machine finds crawlgate without asking anybody.
const ONE: &str = "localhost";
const OTHER: &str = "127.0.0.1";
/// wget is a tool, which is judged where a file names it.
const OF_ONE: &str =
    "User-agent: *\nDisallow: /report.pdf\n\nUser-agent: Wget\nDisallow: /about.html\n";
const OF_OTHER: &str = "User-agent: Wget\nDisallow: /private/\n";

/// nginx for each of the two, and crawlgate before both with a settings file and nothing else.
fn two_hosts() -> (Nginx, Nginx, Gate) {
    let (one, other) = (Nginx::start(None), Nginx::start(None));
    one.write("robots.txt", OF_ONE);
    other.write("robots.txt", OF_OTHER);
    let entry = |host: &str, nginx: &Nginx| {
        format!(
            "  - {{ hosts: {host}, servers: http://{} }}\n",
            nginx.address
        )
    };
    let origins = format!("origins:\n{}{}", entry(ONE, &one), entry(OTHER, &other));
    let gate = Setup::before("").with_origins(&origins).start();
    (one, other, gate)
}

fn crawl(gate: &Gate, host: &str, options: &[&str]) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let status = Command::new("wget")
        .args([
            "--recursive",
            "--level=5",
            "--quiet",
            "--no-proxy",
            "--tries=1",
            "--timeout=20",
            "--inet4-only",
        ])
        .args(options)
        .arg(format!("http://{host}:{}/index.html", gate.address.port()))
        .current_dir(directory.path())
        .status()
        .expect("wget is installed");
    assert!(
        status.success() || status.code() == Some(8),
        "wget failed: {status}"
    );
}

fn requests(site: &str, action: &str, verdict: &str) -> String {
    format!(
        r#"crawlgate_requests_total{{action="{action}",crawler="wget",kind="{verdict}",site="{site}"}}"#
    )
}

fn robots_txt(gate: &Gate, host: &str) -> String {
    let answer = gate.get(host, "/robots.txt", "");
    assert_eq!(answer.status, 200, "{host}");
    answer.text().to_owned()
}

fn asked_for(nginx: &Nginx, path: &str) -> usize {
    nginx
        .requests()
        .iter()
        .filter(|asked| asked.starts_with(path))
        .count()
}

#[test]
fn wget_keeping_to_each_host_s_own_rules_breaks_none() {
    let (one, other, gate) = two_hosts();
    assert!(robots_txt(&gate, ONE).contains("User-agent: Wget\nDisallow: /about.html\n"));
    assert!(robots_txt(&gate, OTHER).contains("User-agent: Wget\nDisallow: /private/\n"));
    crawl(&gate, ONE, &[]);
    crawl(&gate, OTHER, &[]);
    // What one forbids the other does not.
    assert_eq!(
        (
            asked_for(&one, "/about.html"),
            asked_for(&one, "/private/one.html")
        ),
        (0, 1),
        "{:?}",
        one.requests()
    );
    assert_eq!(
        (
            asked_for(&other, "/about.html"),
            asked_for(&other, "/private/")
        ),
        (1, 0),
        "{:?}",
        other.requests()
    );
    let metrics = gate.metrics();
    assert!(!metrics.contains("would_block"), "{metrics}");
    for site in ["origin-localhost", "origin-127.0.0.1"] {
        let state = format!(r#"crawlgate_origin_robots_state{{site="{site}",state="current"}} 1"#);
        assert!(metrics.contains(&state), "{metrics}");
        eventually("a stored copy", || gate.stored_copy(site));
    }
    assert!(
        !metrics.contains(r#"site="origin""#),
        "there is no origin for other hosts: {metrics}"
    );
    let status = gate.command(&["status"]);
    let status = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(
        status.contains("origin-localhost") && status.contains("origin-127.0.0.1"),
        "{status}"
    );
}

#[test]
fn violations_are_counted_at_the_site_of_their_host() {
    let (one, other, gate) = two_hosts();
    crawl(&gate, ONE, &["-e", "robots=off"]);
    crawl(&gate, OTHER, &["-e", "robots=off"]);
    for (nginx, site, broken) in [
        (&one, "origin-localhost", "/about.html"),
        (&other, "origin-127.0.0.1", "/private/"),
    ] {
        let breaking = asked_for(nginx, broken);
        assert!(breaking > 0, "nothing is refused");
        gate.wait_for_metric(&requests(site, "would_block", "unproven"), breaking as f64);
        // What crawlgate itself asks for is the one fetch of robots.txt.
        let fine = nginx.requests().len() - breaking - asked_for(nginx, "/robots.txt");
        gate.wait_for_metric(&requests(site, "pass", "allowed"), fine as f64);
    }
    assert_eq!(
        gate.metrics().matches("would_block").count(),
        2,
        "nobody else broke anything"
    );
}

#[test]
fn failing_origin_of_one_host_leaves_the_other_alone() {
    let (one, other, mut gate) = two_hosts();
    let before = robots_txt(&gate, OTHER);
    drop(other);
    assert_eq!(robots_txt(&gate, OTHER), before, "the copy stays");
    assert_eq!(
        gate.get(OTHER, "/index.html", &format!("User-Agent: {BROWSER}\r\n"))
            .status,
        502
    );
    assert_eq!(
        gate.get(ONE, "/index.html", &format!("User-Agent: {BROWSER}\r\n"))
            .status,
        200
    );
    // Through a restart, too, and then it is said who cannot be asked.
    gate.restart("TERM", |_| ());
    assert_eq!(robots_txt(&gate, OTHER), before);
    gate.wait_for_metric(
        r#"crawlgate_origin_robots_state{site="origin-127.0.0.1",state="kept"}"#,
        1.0,
    );
    gate.wait_for_metric(
        r#"crawlgate_origin_robots_state{site="origin-localhost",state="current"}"#,
        1.0,
    );
    assert!(robots_txt(&gate, ONE).contains("/about.html"));
    assert!(
        asked_for(&one, "/robots.txt") >= 2,
        "it was asked again after the restart"
    );
    // Who asks without the server finds the same, by host.
    let policies = gate.setup.policies().display().to_string();
    let state = gate.path("state").display().to_string();
    for host in [ONE, OTHER] {
        // Both copies are stored since the first run.
        let rendered = run(&[
            "render",
            "--host",
            host,
            "--policies",
            &policies,
            "--state",
            &state,
        ]);
        assert_eq!(
            String::from_utf8_lossy(&rendered.stdout),
            robots_txt(&gate, host),
            "{rendered:?}"
        );
    }
}

#[test]
fn policy_for_one_host_changes_that_host_alone() {
    let (_one, other, gate) = two_hosts();
    let before = robots_txt(&gate, ONE);
    crawl(&gate, ONE, &["-e", "robots=off"]);
    gate.wait_for_metric(
        &requests("origin-localhost", "would_block", "unproven"),
        1.0,
    );
    gate.write_policy(
        "shop",
        &format!("hosts: {ONE}\npurposes:\n  training: disallow\n"),
    );
    let after = eventually("the policy", || {
        Some(robots_txt(&gate, ONE)).filter(|text| text.contains("GPTBot"))
    });
    // The groups of before are all there, and the new ones are of that purpose.
    let groups = |text: &str| -> Vec<String> {
        let rules = |block: &str| {
            block
                .lines()
                .filter(|line| !line.starts_with('#'))
                .collect::<Vec<_>>()
                .join("\n")
        };
        text.split("\n\n")
            .map(rules)
            .map(|block| block.trim().to_owned())
            .filter(|block| !block.is_empty())
            .collect()
    };
    let (before, after) = (groups(&before), groups(&after));
    assert!(
        before.iter().all(|group| after.contains(group)),
        "{before:?}\n{after:?}"
    );
    let new: Vec<&String> = after
        .iter()
        .filter(|group| !before.contains(group))
        .collect();
    assert!(
        !new.is_empty() && new.iter().all(|group| group.ends_with("\nDisallow: /")),
        "{new:?}"
    );
    // Wget's rules are what they were, and so is what it did.
    crawl(&gate, ONE, &["-e", "robots=off"]);
    gate.wait_for_metric(&requests("shop", "would_block", "unproven"), 1.0);
    // There is a policy now, and none for the other host: forwarded untouched.
    assert_eq!(robots_txt(&gate, OTHER), OF_OTHER);
    assert!(asked_for(&other, "/robots.txt") >= 2);
    eventually("its copy is removed", || {
        gate.stored_copy("origin-127.0.0.1").is_none().then_some(())
    });
}
