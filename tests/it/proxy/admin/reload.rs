//! Policies swapped under load: no request fails, each is judged wholly by one version, a bad file
//! changes nothing.

use crate::proxy::support::nginx::Nginx;
use crate::proxy::support::{BINGBOT, Connection, Gate, HOST, Setup, eventually};
use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Policies that differ in the rule and in the tag at once: a request judged by two of them would
/// show one of each.
fn policy(version: usize) -> String {
    format!(
        r#"
robots:
  origin: replace
  groups:
    - agents: ["*"]
      disallow: [/version-{version}/]
indexing:
  - {{ paths: [/], tag: "max-snippet: {version}" }}
"#
    )
}

const BROKEN: &str = "robots:\n  origin: replace\n  groups: [{ agents: ['*'], disalow: [/] }]\n";

#[test]
fn ten_reloads_a_second_good_and_bad_lose_no_request() {
    let nginx = Nginx::start(None);
    let gate = Setup::before(nginx.address)
        .policy("site", &policy(0))
        .start();
    let stop = Arc::new(AtomicBool::new(false));
    let served = Arc::new(AtomicUsize::new(0));
    let clients: Vec<_> = (0..4)
        .map(|client| {
            let (stop, served, address) = (stop.clone(), served.clone(), gate.address);
            std::thread::spawn(move || load(client, address, &stop, &served))
        })
        .collect();

    // Five seconds at this pace; more where a reload takes longer.
    for round in 1..=50 {
        let next = Instant::now() + Duration::from_millis(100);
        let text = if round % 2 == 0 {
            policy(round)
        } else {
            BROKEN.to_owned()
        };
        gate.write_policy("site", &text);
        let reloaded = gate.command(&["reload"]);
        // Good policies exit 0; a refused one exits 1, and the old one stays.
        assert_eq!(
            reloaded.status.code(),
            Some(if round % 2 == 0 { 0 } else { 1 }),
            "{reloaded:?}"
        );
        while Instant::now() < next {
            std::thread::yield_now();
        }
    }
    stop.store(true, Ordering::Relaxed);
    for client in clients {
        client.join().expect("no client saw a failure");
    }
    assert!(served.load(Ordering::Relaxed) > 50, "there was load");
    // What is in force at the end is the last good one, and the failure is visible.
    gate.write_policy("site", BROKEN);
    gate.command(&["reload"]);
    gate.wait_for_metric(r#"crawlgate_policy_reload_success{site="site"}"#, 0.0);
    assert_eq!(gate.fetch("/robots.txt").status, 200);
}

fn load(client: usize, address: SocketAddr, stop: &AtomicBool, served: &AtomicUsize) {
    let mut connection = Connection::open(address);
    while !stop.load(Ordering::Relaxed) {
        let page = if client.is_multiple_of(2) {
            "/index.html"
        } else {
            "/robots.txt"
        };
        connection.send(&format!("GET {page} HTTP/1.1\r\nHost: {HOST}\r\n\r\n"));
        let response = connection.final_response("GET");
        assert_eq!(response.status, 200, "{}", response.text());
        let tag: Vec<&str> = response.fields("x-robots-tag");
        assert_eq!(
            tag.len(),
            1,
            "each answer is tagged by exactly one version: {tag:?}"
        );
        if page == "/robots.txt" {
            let version = tag[0]
                .strip_prefix("max-snippet: ")
                .expect("the tag of the policy");
            assert!(
                response
                    .text()
                    .contains(&format!("Disallow: /version-{version}/")),
                "one version, not two"
            );
        }
        served.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn unchanged_policy_is_reported_with_when_it_was_loaded() {
    let nginx = Nginx::start(None);
    let gate = Setup::before(nginx.address)
        .policy("site", &policy(1))
        .start();
    let reload = || -> serde_json::Value {
        let output = gate.command(&["reload", "--json"]);
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        report["sites"][0].clone()
    };
    let first = reload();
    assert_eq!(
        (&first["outcome"], first.get("since")),
        (&"unchanged".into(), None)
    );
    gate.write_policy("site", &policy(2));
    eventually("the new robots.txt", || {
        gate.fetch("/robots.txt")
            .text()
            .contains("/version-2/")
            .then_some(())
    });
    let second = reload();
    assert_eq!(second["outcome"], "unchanged");
    assert!(second.get("since").is_some(), "{second}");
}

#[test]
fn edited_defaults_are_reloaded_for_every_site() {
    let nginx = Nginx::start(None);
    let other = format!("hosts: [other.example]\n{}", policy(2));
    let gate = Setup::before(nginx.address)
        .policy("defaults", "robots: { comment: first }\n")
        .policy("site", &policy(1))
        .policy("other", &other)
        .start();
    let wait_for = |comment: &str, is_there: bool| {
        for host in [HOST, "other.example"] {
            eventually("the robots.txt", || {
                let served = gate.get(host, "/robots.txt", "");
                (served.text().contains(comment) == is_there).then_some(())
            });
        }
    };
    wait_for("# first", true);
    gate.write_policy("defaults", "robots: { comment: second }\n");
    wait_for("# second", true);
    fs::remove_file(gate.path("policies/defaults.yaml")).expect("removed");
    wait_for("# second", false);
    let output = gate.command(&["reload", "--json"]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["sites"].as_array().map(Vec::len), Some(2));
}

#[test]
fn edited_policy_is_reloaded_by_the_watch() {
    let nginx = Nginx::start(None);
    let gate = Setup::before(nginx.address)
        .policy("site", &policy(1))
        .start();
    gate.write_policy("site", &policy(2));
    eventually("the new robots.txt", || {
        gate.fetch("/robots.txt")
            .text()
            .contains("/version-2/")
            .then_some(())
    });
}

#[cfg(unix)]
#[test]
fn a_kubernetes_symlink_swap_is_noticed() {
    use std::os::unix::fs::symlink;
    let nginx = Nginx::start(None);
    let setup = Setup::before(nginx.address);
    let root = setup.policies();
    for version in [1, 2] {
        fs::create_dir(root.join(format!("..v{version}"))).expect("a directory");
        fs::write(
            root.join(format!("..v{version}/site.yaml")),
            policy(version),
        )
        .expect("a policy");
    }
    symlink("..v1", root.join("..data")).expect("a link");
    symlink("..data/site.yaml", root.join("site.yaml")).expect("a link");
    let gate = setup.start();
    assert!(gate.fetch("/robots.txt").text().contains("/version-1/"));
    symlink("..v2", root.join("..data_tmp")).expect("a link");
    fs::rename(root.join("..data_tmp"), root.join("..data")).expect("swapped");
    eventually("the new robots.txt", || {
        gate.fetch("/robots.txt")
            .text()
            .contains("/version-2/")
            .then_some(())
    });
}

#[test]
fn nothing_is_refused_that_a_superseded_version_allowed() {
    let nginx = Nginx::start(None);
    let open = "robots: { origin: replace, groups: [{ agents: ['*'], allow: [/] }] }\nenforcement: { mode: enforce }\n";
    let closed = "robots: { origin: replace, groups: [{ agents: ['*'], allow: [/], disallow: [/private/] }] }\nenforcement: { mode: enforce }\n";
    let gate = Setup::before(nginx.address).policy("site", open).start();
    let ask = |gate: &Gate| gate.fetch_as(BINGBOT, "/private/one.html").status;
    assert_eq!(ask(&gate), 200);
    gate.write_policy("site", closed);
    assert_eq!(gate.command(&["reload"]).status.code(), Some(0));
    assert!(
        gate.fetch("/robots.txt")
            .text()
            .contains("Disallow: /private/")
    );
    assert_eq!(
        ask(&gate),
        200,
        "it may still hold the version that allowed it"
    );
    gate.wait_for_metric(
        r#"crawlgate_requests_total{action="pass",crawler="bingbot",kind="stale_copy",site="site"}"#,
        1.0,
    );
}

#[test]
fn policy_directory_made_after_the_start_is_watched() {
    let gate = Setup::before(crate::proxy::support::Origin::nowhere())
        .without_policy_directory()
        .start();
    assert!(!gate.setup.policies().exists());
    fs::create_dir(gate.setup.policies()).expect("the policy directory");
    let made = Instant::now();
    gate.write_policy("site", &policy(7));
    eventually("the policy", || {
        gate.get(HOST, "/robots.txt", "")
            .text()
            .contains("/version-7/")
            .then_some(())
    });
    // The look every half minute would come later.
    assert!(
        made.elapsed() < Duration::from_secs(10),
        "{:?}",
        made.elapsed()
    );
}
