//! Tests of the default sites, which crawlgate uses while there is no policy, and of the change to
//! the first policy.

use super::default_sites::DEFAULT_SITE_NAME;
use super::*;
use crate::policy::origin::OriginRobotsTxt;
use crate::settings::{OriginServerAddress, OriginSettings};
use std::fs;
use std::path::Path;

fn origin_settings(hosts: &[&str]) -> OriginSettings {
    let server = OriginServerAddress::parse("http://127.0.0.1:3000").expect("a URL");
    OriginSettings {
        hosts: hosts.iter().map(|host| host.to_string()).collect(),
        ..OriginSettings::with_servers([server])
    }
}

#[test]
fn origin_of_some_paths_alone_has_no_site() {
    let api = OriginSettings {
        paths: vec!["/api/".into()],
        ..origin_settings(&["a.example"])
    };
    let rest = OriginSettings {
        paths: vec!["/api/v2/".into(), "/".into()],
        ..origin_settings(&["b.example"])
    };
    let origins = [api, origin_settings(&["a.example"]), rest];
    assert_eq!(
        site_names(&origins),
        ["origin-a.example", "origin-b.example"]
    );
    assert_eq!(
        DefaultSite::robots_origins(&origins)
            .map(|(place, _)| place)
            .collect::<Vec<_>>(),
        [1, 2]
    );
}

fn site_names(origins: &[OriginSettings]) -> Vec<String> {
    DefaultSite::from_settings(origins)
        .into_iter()
        .map(|site| site.name)
        .collect()
}

/// An origin for each of two shops, and one for all other hosts.
fn three_origins() -> [OriginSettings; 3] {
    [
        origin_settings(&["a.example", "www.a.example"]),
        origin_settings(&["b.example"]),
        origin_settings(&[]),
    ]
}

fn start_manager(policies: &Path, origins: &[OriginSettings]) -> Arc<SiteManager> {
    let options = SiteLoadOptions {
        policies: policies.to_owned(),
        origins: InitialOriginRobots {
            default_sites: DefaultSite::from_settings(origins),
            ..InitialOriginRobots::default()
        },
        ..SiteLoadOptions::default()
    };
    super::tests::start_with_options(options, None, 0).unwrap_or_else(|error| panic!("{error}"))
}

fn set_origin_copy_text(manager: &SiteManager, site: &str, text: &str, now: i64) {
    let file = Arc::new(OriginRobotsTxt::new(
        format!("http://{site}.test/robots.txt"),
        text.as_bytes(),
    ));
    manager
        .set_origin_copy(site, file, Timestamp(now))
        .expect("passed on");
}

/// The three sites with a file each.
fn start_with_copies(policies: &Path) -> Arc<SiteManager> {
    let manager = start_manager(policies, &three_origins());
    set_origin_copy_text(
        &manager,
        "origin-a.example",
        "User-agent: *\nDisallow: /a/\n",
        1,
    );
    set_origin_copy_text(
        &manager,
        "origin-b.example",
        "User-agent: *\nDisallow: /b/\n",
        1,
    );
    set_origin_copy_text(&manager, "origin", "User-agent: *\nDisallow: /others/\n", 1);
    manager
}

/// The name of the site of a host, and what is served there; nothing while that is awaited.
fn served_robots(manager: &SiteManager, host: &str, now: i64) -> (String, Option<String>) {
    let snapshot = manager.snapshot();
    let Some(site) = snapshot.site_for_host(host.as_bytes()) else {
        return ("nobody".into(), None);
    };
    let site = &snapshot.sites()[site].site;
    let body = String::from_utf8_lossy(&site.robots_txt.body).into_owned();
    (
        site.name.clone(),
        site.robots_txt
            .origin_wait_seconds(Timestamp(now))
            .is_none()
            .then_some(body),
    )
}

#[test]
fn names_are_readable_stable_and_each_its_own() {
    assert_eq!(site_names(&[origin_settings(&[])]), [DEFAULT_SITE_NAME]);
    assert_eq!(
        site_names(&three_origins()),
        ["origin-a.example", "origin-b.example", "origin"]
    );
    let odd = [
        origin_settings(&["*.shop.example"]),
        origin_settings(&["any.shop.example"]),
        origin_settings(&["*.c.example", "c.example"]),
        origin_settings(&["2001:db8::1"]),
        origin_settings(&["xn--bcher-kva.example"]),
    ];
    assert_eq!(
        site_names(&odd),
        [
            "origin-any.shop.example",
            "origin-any.shop.example-2",
            "origin-c.example",
            "origin-2001-db8--1",
            "origin-xn--bcher-kva.example"
        ]
    );
    // A label of a host has 63 characters, a host 253; a file name 255 bytes, with its ending.
    let long = ["x"; 60].map(|part| part.repeat(63)).join(".")[..250].to_owned();
    let both = site_names(&[
        origin_settings(&[&long]),
        origin_settings(&[&format!("{long}.y")]),
    ]);
    assert!(
        both[0].len() < 120 && both[1] == format!("{}-2", both[0]),
        "{both:?}"
    );
}

#[test]
fn each_origin_is_a_site_with_its_own_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let manager = start_with_copies(directory.path());
    for (host, site, rule) in [
        ("a.example", "origin-a.example", "/a/"),
        ("WWW.a.example:8080", "origin-a.example", "/a/"),
        ("b.example", "origin-b.example", "/b/"),
        ("else.example", "origin", "/others/"),
    ] {
        let (name, text) = served_robots(&manager, host, 2);
        assert_eq!(name, site);
        assert!(
            text.is_some_and(|text| text.contains(&format!("Disallow: {rule}\n"))),
            "{host}"
        );
    }
    let status = manager.status(Timestamp(2)).sites;
    let hosts: Vec<_> = status
        .iter()
        .map(|site| (site.site.as_str(), site.hosts.join(" ")))
        .collect();
    assert_eq!(
        hosts,
        [
            ("origin", String::new()),
            ("origin-a.example", "a.example www.a.example".into()),
            ("origin-b.example", "b.example".into())
        ]
    );
    assert!(
        status
            .iter()
            .all(|site| site.mode == "observe" && site.reload_ok)
    );
}

/// Addresses of every kind that `crawlgate.yaml` takes.
#[test]
fn hosts_of_the_settings_are_hosts_of_a_site() {
    let directory = tempfile::tempdir().expect("a directory");
    let origins = [
        origin_settings(&["2001:db8::1", "192.0.2.1"]),
        origin_settings(&["*.c.example", "under_score.example"]),
    ];
    let manager = start_manager(directory.path(), &origins);
    for (host, site) in [
        ("[2001:db8::1]:8080", "origin-2001-db8--1"),
        ("192.0.2.1", "origin-2001-db8--1"),
        ("x.y.c.example", "origin-under_score.example"),
        ("under_score.example", "origin-under_score.example"),
        ("c.example", "nobody"),
    ] {
        assert_eq!(served_robots(&manager, host, 0).0, site, "{host}");
    }
    let asked: Vec<_> = manager
        .snapshot()
        .sites()
        .iter()
        .map(|entry| origin_request_host(&entry.site.policy))
        .collect();
    assert_eq!(
        asked,
        [
            Some("[2001:db8::1]".into()),
            Some("under_score.example".into())
        ]
    );
}

#[test]
fn first_policy_replaces_all_default_sites() {
    let directory = tempfile::tempdir().expect("a directory");
    let manager = start_with_copies(directory.path());
    fs::write(
        directory.path().join("b.yaml"),
        "hosts: b.example\npurposes: { training: disallow }\n",
    )
    .expect("a policy");
    manager.reload(Timestamp(5));
    // Not a moment of 503: the same origin is asked by the same name.
    let (site, text) = served_robots(&manager, "b.example", 5);
    let text = text.expect("the copy");
    assert_eq!(site, "b");
    assert!(
        text.contains("Disallow: /b/\n") && text.contains("User-agent: GPTBot\nDisallow: /\n"),
        "{text}"
    );
    let held: Vec<_> = manager
        .snapshot()
        .history(b"b.example")
        .superseded
        .iter()
        .map(|held| held.parsed.body.to_vec())
        .collect();
    assert_eq!(
        held.len(),
        1,
        "what was served on its host, and on no other"
    );
    assert!(String::from_utf8_lossy(&held[0]).contains("Disallow: /b/"));
    for other in ["a.example", "else.example"] {
        assert_eq!(served_robots(&manager, other, 5).0, "nobody");
    }
    // And when it is gone, they are back, with what was in use on their hosts until they are asked
    // again.
    fs::remove_file(directory.path().join("b.yaml")).expect("removed");
    manager
        .remove(&["b".to_owned()], Timestamp(6))
        .expect("removed");
    for (host, site, rule) in [
        ("a.example", "origin-a.example", "/a/"),
        ("b.example", "origin-b.example", "/b/"),
    ] {
        let (name, text) = served_robots(&manager, host, 6);
        assert!(
            name == site && text.is_some_and(|text| text.contains(rule)),
            "{host}"
        );
    }
    assert_eq!(manager.status(Timestamp(6)).sites.len(), 3);
}

#[test]
fn first_policy_for_every_host_follows_every_default_site() {
    let directory = tempfile::tempdir().expect("a directory");
    let manager = start_with_copies(directory.path());
    fs::write(
        directory.path().join("all.yaml"),
        "purposes: { training: disallow }\n",
    )
    .expect("a policy");
    manager.reload(Timestamp(5));
    assert!(
        served_robots(&manager, "a.example", 5)
            .1
            .is_some_and(|text| text.contains("/others/") && !text.contains("/a/"))
    );
    let snapshot = manager.snapshot();
    for (host, rule) in [
        ("a.example", "/a/"),
        ("b.example", "/b/"),
        ("else.example", "/others/"),
    ] {
        let superseded = &snapshot.history(host.as_bytes()).superseded;
        let bodies: Vec<_> = superseded
            .iter()
            .map(|held| String::from_utf8_lossy(&held.parsed.body))
            .collect();
        assert!(
            bodies.len() == 1 && bodies[0].contains(rule),
            "{host}: {bodies:?}"
        );
    }
    assert_eq!(manager.status(Timestamp(5)).sites[0].cached_versions, 3);
}

/// It was in force on this host a moment ago, whatever name it was asked for by: it stays until the
/// origin says otherwise.
#[test]
fn policy_takes_over_the_copy_of_its_host() {
    let directory = tempfile::tempdir().expect("a directory");
    let manager = start_with_copies(directory.path());
    // Its file is called like the site of another host.
    fs::write(
        directory.path().join("origin-a.example.yaml"),
        "hosts: www.a.example\n",
    )
    .expect("a policy");
    manager.reload(Timestamp(5));
    let (site, text) = served_robots(&manager, "www.a.example", 5);
    assert!(site == "origin-a.example" && text.is_some_and(|text| text.contains("/a/")));
}

#[test]
fn rejected_file_named_like_a_default_site_changes_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let manager = start_with_copies(directory.path());
    fs::write(
        directory.path().join("origin-a.example.yaml"),
        "hots: a.example\n",
    )
    .expect("a policy");
    manager.reload(Timestamp(5));
    assert!(
        served_robots(&manager, "a.example", 5)
            .1
            .is_some_and(|text| text.contains("/a/"))
    );
    let status = manager.status(Timestamp(5)).sites;
    let names: Vec<&str> = status.iter().map(|site| site.site.as_str()).collect();
    assert_eq!(names, ["origin-a.example", "origin", "origin-b.example"]);
    assert!(
        !status[0].reload_ok && status[0].in_force && status[0].findings[0].id == "unknown-field",
        "{status:?}"
    );
}
