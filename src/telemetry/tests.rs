use super::*;
use crate::settings::AccessDestination;
use std::time::Duration;

fn gauges(site: &str) -> SiteGauges {
    SiteGauges { site: site.into(), version: "v1".into(), indexable: true, paused: false, reload_success: true }
}

#[test]
fn series_go_with_their_site() {
    let metrics = Metrics::new();
    metrics.set_sites(&[gauges("one"), gauges("two")], 7);
    for site in ["one", "two"] {
        metrics.request(site, "gptbot", "unproven", "block");
        metrics.robots_txt(site, "gptbot", 200, 5);
        metrics.violation(site, "gptbot", "unproven");
    }
    metrics.request(UNCLAIMED, "none", "not_a_crawler", "pass");
    metrics.set_sites(&[gauges("two")], 8);
    let text = metrics.render();
    assert!(!text.contains("site=\"one\""), "{text}");
    for line in [
        r#"crawlgate_requests_total{action="block",crawler="gptbot",site="two",verdict="unproven"} 1"#,
        r#"crawlgate_robots_txt_total{crawler="gptbot",site="two",status="200"} 1"#,
        r#"crawlgate_robots_last_fetch_timestamp_seconds{crawler="gptbot",site="two"} 5"#,
        r#"crawlgate_requests_total{action="pass",crawler="none",site="unclaimed",verdict="not_a_crawler"} 1"#,
        r#"crawlgate_policy_info{site="two",version="v1"} 1"#,
        "crawlgate_policy_reload_timestamp_seconds 8",
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
    metrics.request("two", "gptbot", "unproven", "block");
    assert!(metrics.render().contains(r#"site="two",verdict="unproven"} 2"#), "counting goes on");
}

#[test]
fn series_are_capped() {
    let metrics = Metrics::new();
    for crawler in 0..20_100 {
        metrics.request("site", &format!("token-{crawler}"), "allowed", "pass");
    }
    let text = metrics.render();
    assert!(
        text.contains(
            r#"crawlgate_requests_total{action="pass",crawler="overflow",site="site",verdict="allowed"} 100"#
        )
    );
    assert_eq!(text.lines().filter(|line| line.starts_with("crawlgate_requests_total{")).count(), 20_001);
}

#[test]
fn lines_reach_the_file_and_the_new_one_after_rotation() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("access.log");
    let log = AccessLog::open(&AccessDestination::File(file.clone())).expect("opened");
    log.write(AccessRecord { target: "/one\n\"quoted\"".into(), status: 200, ..AccessRecord::default() });
    log.flush(Duration::from_secs(10));
    let rotated = directory.path().join("access.log.1");
    std::fs::rename(&file, &rotated).expect("rotated");
    log.reopen();
    log.write(AccessRecord { target: "/two".into(), ..AccessRecord::default() });
    log.flush(Duration::from_secs(10));
    let read = |path: &std::path::Path| std::fs::read_to_string(path).expect("read");
    let line: serde_json::Value = serde_json::from_str(&read(&rotated)).expect("one line of JSON");
    assert_eq!(line["target"], "/one\n\"quoted\"");
    assert!(read(&file).contains("/two"));
    assert_eq!(log.dropped(), 0);
}
