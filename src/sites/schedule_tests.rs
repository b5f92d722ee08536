//! Tests of retired paths, whose pages first get `noindex` and are later disallowed. As time
//! passes, robots.txt, verdicts and X-Robots-Tag lines change together, also while a policy file is
//! rejected and after restarts.

use super::*;
use crate::crawlers::Registry;
use crate::indexing::parse_lines;
use crate::policy::retire::RetireStage;
use crate::policy::site::FrontPageStatus;
use crate::policy::{RobotsVersionId, SiteEntry};
use crate::verdict::{
    CachedVersions, DecisionScratch, Identity, Kind, RequestFacts, SiteClaim, decide,
};
use std::fs;
use std::path::Path;
use std::time::Duration;

const DAY: i64 = 86_400;
/// 1970-01-11 and, ten days later, 1970-01-21.
const POLICY: &str = "hosts: [a.example]\nrobots: { origin: replace, groups: [{ agents: '*', disallow: /x }] }\n\
     retire: { paths: /old/, noindex_from: 1970-01-11, disallow_after: 10d }\n";

fn start_manager(directory: &Path, now: i64) -> Arc<SiteManager> {
    fs::create_dir_all(directory.join("policies")).expect("a directory");
    super::tests::start_manager(
        &directory.join("policies"),
        Some(&directory.join("state")),
        now,
    )
}

fn write_policy(directory: &Path, text: &str) {
    fs::create_dir_all(directory.join("policies")).expect("a directory");
    fs::write(directory.join("policies/a.yaml"), text).expect("a policy");
}

/// What is served, what is judged, and what is said about an old page.
fn served_verdict_and_tags(manager: &SiteManager, now: i64) -> (bool, Kind, Vec<String>) {
    let snapshot = manager.snapshot();
    let entry = &snapshot.sites()[0];
    let served = String::from_utf8_lossy(&entry.site.robots_txt.body).contains("Disallow: /old/");
    let facts = RequestFacts {
        host: b"a.example",
        target: b"/old/page",
        method: b"GET",
        user_agent: b"Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
        client: None,
        identity: Identity::Unverified,
        now: Timestamp(now),
    };
    let claimant =
        SiteClaim::find(&snapshot, Registry::builtin(), &facts).expect("a site has the host");
    let held = CachedVersions::for_any_crawler(claimant, Timestamp(now));
    let decision = decide(
        &snapshot,
        Registry::builtin(),
        &facts,
        &held,
        &mut DecisionScratch::default(),
    )
    .expect("a site has the host");
    let lines = entry
        .site
        .tags
        .tags(&decision.path_rules, 200, Some(b"text/html"));
    (
        served,
        decision.kind,
        lines.map(|lines| lines.lines.clone()).unwrap_or_default(),
    )
}

fn only_entry(manager: &SiteManager) -> SiteEntry {
    manager.snapshot().sites()[0].clone()
}

fn superseded_versions(manager: &SiteManager) -> Vec<(RobotsVersionId, Timestamp)> {
    let snapshot = manager.snapshot();
    let superseded = snapshot.history(b"a.example").superseded.iter();
    superseded
        .map(|held| (held.parsed.version, held.superseded_at))
        .collect()
}

#[test]
fn clock_moves_a_retired_path_to_its_next_stage() {
    let directory = tempfile::tempdir().expect("a directory");
    write_policy(directory.path(), POLICY);
    let manager = start_manager(directory.path(), 0);
    assert_eq!(
        served_verdict_and_tags(&manager, 0),
        (false, Kind::Allowed, vec![])
    );
    assert_eq!(manager.next_switch(), Some(Timestamp(10 * DAY)));
    assert!(
        manager
            .apply_due_changes(Timestamp(10 * DAY - 1))
            .is_empty()
    );

    assert_eq!(manager.apply_due_changes(Timestamp(10 * DAY)), ["a"]);
    assert_eq!(
        served_verdict_and_tags(&manager, 10 * DAY),
        (false, Kind::Allowed, vec!["noindex".to_owned()])
    );
    let entry = only_entry(&manager);
    assert_eq!(entry.since, Timestamp(0), "the bytes are the same");
    assert!(superseded_versions(&manager).is_empty());
    let mut scratch = crate::robots::TargetScratch::default();
    let rules = entry
        .site
        .tags
        .for_path(scratch.normalise(b"/old/page"), &mut Vec::new());
    assert!(
        entry.has_new_tags(&rules, Timestamp(10 * DAY + 1)),
        "a 304 would hide the noindex"
    );

    let before = entry.site.robots_txt.version;
    assert_eq!(manager.apply_due_changes(Timestamp(20 * DAY)), ["a"]);
    assert!(served_verdict_and_tags(&manager, 20 * DAY).0);
    assert_eq!(
        served_verdict_and_tags(&manager, 20 * DAY).1,
        Kind::StaleCopy,
        "the version before may be held"
    );
    assert_eq!(
        served_verdict_and_tags(&manager, 22 * DAY).1,
        Kind::Unproven
    );
    let entry = only_entry(&manager);
    assert_eq!(
        (entry.since, superseded_versions(&manager)),
        (Timestamp(20 * DAY), vec![(before, Timestamp(20 * DAY))])
    );
    assert_eq!(manager.next_switch(), None);
    let status = &manager.status(Timestamp(20 * DAY)).sites[0];
    assert_eq!(status.retire[0].stage, RetireStage::Disallowed);
    assert_eq!(
        status.retire[0].to_string(),
        "/old/: disallowed since 1970-01-21T00:00:00Z"
    );
}

#[test]
fn stage_advances_while_the_file_is_rejected() {
    let directory = tempfile::tempdir().expect("a directory");
    write_policy(directory.path(), POLICY);
    let manager = start_manager(directory.path(), 0);
    write_policy(directory.path(), "hots: [a.example]\n");
    assert!(!manager.reload(Timestamp(1)).is_complete());
    assert_eq!(manager.apply_due_changes(Timestamp(20 * DAY)), ["a"]);
    assert!(served_verdict_and_tags(&manager, 20 * DAY).0);
    assert!(
        !manager.status(Timestamp(20 * DAY)).sites[0].reload_ok,
        "the file is refused as before"
    );
}

#[test]
fn reload_and_restart_apply_the_stage() {
    let directory = tempfile::tempdir().expect("a directory");
    write_policy(directory.path(), POLICY);
    let manager = start_manager(directory.path(), 0);
    manager.reload(Timestamp(11 * DAY));
    assert_eq!(served_verdict_and_tags(&manager, 11 * DAY).2, ["noindex"]);
    let before = only_entry(&manager).site.robots_txt.version;
    drop(manager);
    // The switch came while nothing ran: what was served before may still be held.
    let manager = start_manager(directory.path(), 20 * DAY + 60);
    assert!(served_verdict_and_tags(&manager, 20 * DAY + 60).0);
    let grace = only_entry(&manager).site.grace;
    assert_eq!(grace, Duration::from_secs(86_400));
    assert_eq!(
        superseded_versions(&manager),
        [(before, Timestamp(20 * DAY + 60))]
    );
}

#[test]
fn front_page_tags_count_until_the_policy_changes() {
    let directory = tempfile::tempdir().expect("a directory");
    write_policy(directory.path(), POLICY);
    let manager = start_manager(directory.path(), 0);
    let status = |manager: &SiteManager| {
        let site = manager.status(Timestamp(5)).sites.remove(0);
        (site.indexable, site.front_page_seen)
    };
    assert_eq!(status(&manager), (true, None));
    let saw = |line: &str, at| {
        only_entry(&manager)
            .site
            .front_page
            .record_tags(&parse_lines([line.as_bytes()]), Timestamp(at))
    };
    saw("noindex", 3);
    assert_eq!(status(&manager), (false, Some(Timestamp(3))));
    saw("nofollow", 4);
    assert_eq!(status(&manager), (true, Some(Timestamp(4))));
    saw("unavailable_after: 1970-01-01T00:00:05Z", 4);
    assert_eq!(
        status(&manager),
        (true, Some(Timestamp(4))),
        "not after its moment yet"
    );
    assert!(
        !manager.status(Timestamp(6)).sites.remove(0).indexable,
        "its moment came without a request"
    );
    write_policy(
        directory.path(),
        &format!("{POLICY}indexing: {{ paths: /a, tag: noindex }}\n"),
    );
    manager.reload(Timestamp(5));
    assert_eq!(status(&manager), (true, None));
    assert_eq!(FrontPageStatus::default().last_seen(), None);
    let dated = "acknowledge: [site_noindex]\nindexing: { tag: 'unavailable_after: 1970-01-01T00:00:05Z' }\n";
    write_policy(directory.path(), &format!("{POLICY}{dated}"));
    manager.reload(Timestamp(5));
    assert_eq!(status(&manager), (true, None));
    assert!(!manager.status(Timestamp(6)).sites.remove(0).indexable);
}

#[test]
fn front_page_that_google_takes_for_its_index_page_is_indexable() {
    for (allow, indexable) in [("/index.html", true), ("/a/index.html", false)] {
        let directory = tempfile::tempdir().expect("a directory");
        let groups = format!("[{{ agents: '*', disallow: '/$', allow: {allow} }}]");
        write_policy(
            directory.path(),
            &format!(
                "acknowledge: site_disallowed\nrobots: {{ origin: replace, groups: {groups} }}\n"
            ),
        );
        let site = start_manager(directory.path(), 0)
            .status(Timestamp(5))
            .sites
            .remove(0);
        assert_eq!(site.indexable, indexable, "{allow}");
    }
}
