//! Tests of how an origin's answers change crawlgate's copy of its robots.txt, also over failures
//! and restarts.

use super::stored_copy::StoredCopyError;
use super::*;
use crate::facts::{AnyFact, OriginCopy};
use crate::policy::origin::OriginCopyState;
use crate::time::Timestamp;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3_600);
const URL: &str = "http://origin.test/robots.txt";
const RULES: &str = "User-agent: *\nDisallow: /a/\n";
const OTHER: &str = "User-agent: *\nDisallow: /b/\n";

fn file_result(text: &str) -> FetchResult {
    bytes_result(text.as_bytes().to_vec())
}

fn bytes_result(bytes: Vec<u8>) -> FetchResult {
    FetchResult::File {
        bytes,
        url: URL.into(),
        etag: Some("\"1\"".into()),
        last_modified: None,
        html: false,
    }
}

fn html_result(text: &str) -> FetchResult {
    FetchResult::File {
        bytes: text.into(),
        url: URL.into(),
        etag: None,
        last_modified: None,
        html: true,
    }
}

fn gone_result() -> FetchResult {
    FetchResult::NoFile {
        url: URL.into(),
        reason: "the answer is 404".into(),
    }
}

fn unreachable_result() -> FetchResult {
    FetchResult::Unreachable("the answer is 503".into())
}

/// One fetch: its time, its result, the state and the bytes that follow, and the seconds until the
/// next fetch. A file that closes the site is held back.
struct FetchStep(i64, FetchResult, OriginCopyState, Option<&'static str>, i64);

fn run_steps(fetch: &mut FetchState, rows: Vec<FetchStep>) {
    for (row, FetchStep(at, result, state, text, pause)) in rows.into_iter().enumerate() {
        let now = Timestamp(at);
        if let Some(copy) = fetch.apply_result(result, now, 0.5) {
            match copy.bytes.ends_with(b"Disallow: /\n") {
                true => fetch.record_held_back("it closes the site".into()),
                false => fetch.accept(copy, now),
            }
        }
        assert_eq!(fetch.state(HOUR, now), state, "row {row}: {fetch:?}");
        let copy = fetch
            .copy()
            .map(|copy| String::from_utf8_lossy(&copy.bytes).into_owned());
        assert_eq!(copy.as_deref(), text, "row {row}");
        assert_eq!(fetch.due.0 - at, pause, "row {row}: {fetch:?}");
    }
}

#[test]
fn answers_change_the_state_as_documented() {
    use OriginCopyState::{Absent, Awaited, Current, HeldBack, Kept};
    let mut fetch = FetchState::new(Timestamp(0));
    assert_eq!(
        (fetch.due, fetch.state(HOUR, Timestamp(0))),
        (Timestamp(0), Awaited)
    );
    let (rules, other) = (Some(RULES), Some(OTHER));
    run_steps(
        &mut fetch,
        vec![
            // The origin starts later than crawlgate.
            FetchStep(0, unreachable_result(), Awaited, None, 5),
            FetchStep(5, unreachable_result(), Awaited, None, 11),
            FetchStep(16, html_result("<html>starting"), Awaited, None, 22),
            FetchStep(38, file_result(RULES), Current, rules, 600),
            FetchStep(638, FetchResult::Unchanged, Current, rules, 600),
            // Failures: the copy stays for as long as they last.
            FetchStep(1_238, unreachable_result(), Kept, rules, 5),
            FetchStep(
                1_243,
                html_result("<!DOCTYPE html><title>502</title>"),
                Kept,
                rules,
                11,
            ),
            FetchStep(1_254, html_result("Service unavailable"), Kept, rules, 22),
            FetchStep(
                1_276,
                bytes_result(b"\xFF\xFEU\0s\0".to_vec()),
                Kept,
                rules,
                44,
            ),
            FetchStep(90_000_000, unreachable_result(), Kept, rules, 88),
            FetchStep(90_000_088, FetchResult::Unchanged, Current, rules, 600),
            // Gone, and back within ten minutes: no crawler noticed.
            FetchStep(90_001_000, gone_result(), Kept, rules, 600),
            FetchStep(90_001_300, file_result(RULES), Current, rules, 600),
            // Gone, an error in between, and gone: the ten minutes begin anew.
            FetchStep(90_001_600, gone_result(), Kept, rules, 600),
            FetchStep(90_001_900, unreachable_result(), Kept, rules, 5),
            FetchStep(90_001_905, gone_result(), Kept, rules, 600),
            FetchStep(90_002_200, gone_result(), Kept, rules, 305),
            FetchStep(90_002_505, gone_result(), Absent, Some(""), 600),
            FetchStep(90_003_200, gone_result(), Absent, Some(""), 600),
            FetchStep(90_003_800, file_result(OTHER), Current, other, 600),
            // An empty file or one of comments counts as gone.
            FetchStep(90_005_000, file_result(""), Kept, other, 600),
            FetchStep(
                90_005_600,
                file_result("# soon\n"),
                Current,
                Some("# soon\n"),
                600,
            ),
            // A file that closes the site is held back until it changes.
            FetchStep(90_006_200, file_result(RULES), Current, rules, 600),
            FetchStep(
                90_006_800,
                file_result("User-agent: *\nDisallow: /\n"),
                HeldBack,
                rules,
                600,
            ),
            FetchStep(
                90_007_400,
                file_result("User-agent: *\nDisallow: /\n"),
                HeldBack,
                rules,
                600,
            ),
            FetchStep(90_008_000, unreachable_result(), Kept, rules, 5),
            FetchStep(90_008_005, file_result(RULES), Current, rules, 600),
        ],
    );
}

#[test]
fn first_copy_missing_for_an_hour_is_missing_until_it_comes() {
    let mut fetch = FetchState::new(Timestamp(0));
    run_steps(
        &mut fetch,
        vec![
            FetchStep(
                3_599,
                unreachable_result(),
                OriginCopyState::Awaited,
                None,
                5,
            ),
            FetchStep(
                3_600,
                unreachable_result(),
                OriginCopyState::Missing,
                None,
                11,
            ),
            FetchStep(
                900_000,
                file_result(RULES),
                OriginCopyState::Current,
                Some(RULES),
                600,
            ),
        ],
    );
    let mut fetch = FetchState::new(Timestamp(0));
    // An origin without a file says so: crawlgate does not wait.
    run_steps(
        &mut fetch,
        vec![FetchStep(
            0,
            gone_result(),
            OriginCopyState::Absent,
            Some(""),
            600,
        )],
    );
}

#[test]
fn failures_double_the_wait_up_to_ten_minutes() {
    let mut fetch = FetchState::new(Timestamp(0));
    let mut now = Timestamp(0);
    let mut pauses = Vec::new();
    for _ in 0..40 {
        fetch.apply_result(unreachable_result(), now, 0.0);
        pauses.push(fetch.due.0 - now.0);
        now = fetch.due;
    }
    assert_eq!(&pauses[..9], [5, 10, 20, 40, 80, 160, 320, 600, 600]);
    assert!(pauses[9..].iter().all(|pause| *pause == 600));
}

#[test]
fn jitter_spreads_fetches_by_a_tenth() {
    let due = |jitter| {
        let mut fetch = FetchState::new(Timestamp(0));
        let copy = fetch
            .apply_result(file_result(RULES), Timestamp(0), jitter)
            .expect("a copy");
        fetch.accept(copy, Timestamp(0));
        fetch.due.0
    };
    assert_eq!((due(0.0), due(0.5), due(1.0)), (540, 600, 660));
}

#[test]
fn huge_file_is_cut_to_500_kib_of_whole_lines() {
    let line = "Disallow: /aaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n";
    let text = format!("User-agent: *\n{}", line.repeat(20_000));
    let mut fetch = FetchState::new(Timestamp(0));
    let copy = fetch
        .apply_result(file_result(&text), Timestamp(0), 0.0)
        .expect("a copy");
    assert!(copy.bytes.len() <= 500 * 1024 && copy.bytes.len() > 500 * 1024 - line.len());
    assert!(copy.bytes.ends_with(line.as_bytes()));
    assert!(copy.reason.is_some(), "the status says so");
    let mut short = FetchState::new(Timestamp(0));
    let whole = short
        .apply_result(
            file_result("User-agent: *\nDisallow: /a\n"),
            Timestamp(0),
            0.0,
        )
        .expect("a copy");
    assert_eq!(whole.reason, None);
}

/// What the state store would give back after a restart.
fn after_restart(stored: &StoredCopy, now: Timestamp) -> Result<StoredCopy, StoredCopyError> {
    StoredCopy::from_record(&stored_record(stored), now)
}

fn stored_record(stored: &StoredCopy) -> OriginCopy {
    let fact = stored.to_fact("shop", Timestamp(0));
    let AnyFact::OriginCopy(record) = fact.fact else {
        panic!("another record: {fact:?}")
    };
    record
}

/// The origin had rules at 10 and none at 1,000.
fn copy_gone_since_1000() -> StoredCopy {
    let mut fetch = FetchState::new(Timestamp(7));
    let copy = fetch
        .apply_result(file_result(RULES), Timestamp(10), 0.5)
        .expect("a copy");
    fetch.accept(copy, Timestamp(10));
    fetch.apply_result(gone_result(), Timestamp(1_000), 0.5);
    StoredCopy {
        fetch,
        default_site_hosts: None,
    }
}

#[test]
fn restart_keeps_copy_and_pending_removal() {
    let mut fetch = after_restart(&copy_gone_since_1000(), Timestamp(1_100))
        .expect("a copy")
        .fetch;
    assert_eq!(
        fetch.copy().map(|copy| &*copy.bytes),
        Some(RULES.as_bytes())
    );
    assert_eq!(
        (fetch.wanted_since, fetch.last_success),
        (Timestamp(7), Some(Timestamp(10)))
    );
    assert_eq!(fetch.validators(), (Some("\"1\""), None));
    assert!(
        fetch
            .apply_result(gone_result(), Timestamp(1_600), 0.5)
            .is_some(),
        "ten minutes after it was first gone"
    );
}

#[test]
fn restart_keeps_default_site_without_copy() {
    let fetch = FetchState::new(Timestamp(0));
    let stored = StoredCopy {
        fetch,
        default_site_hosts: Some(vec!["*.a.example".into()]),
    };
    assert_eq!(
        after_restart(&stored, Timestamp(0)).expect("what is stored"),
        stored
    );
}

#[test]
fn damaged_copy_is_rejected_and_reported() {
    let whole = stored_record(&copy_gone_since_1000());
    let cut = OriginCopy {
        bytes: whole.bytes[..RULES.len() - 3].into(),
        ..whole.clone()
    };
    let other = OriginCopy {
        bytes: OTHER.as_bytes().into(),
        ..whole.clone()
    };
    let torn = OriginCopy {
        state: whole.state[..20].to_owned(),
        ..whole.clone()
    };
    for (damaged, is_expected) in [
        (
            cut,
            (|why| matches!(why, StoredCopyError::Digest)) as fn(&StoredCopyError) -> bool,
        ),
        (other, |why| matches!(why, StoredCopyError::Digest)),
        (torn, |why| matches!(why, StoredCopyError::State(_))),
    ] {
        let error = StoredCopy::from_record(&damaged, Timestamp(2_000)).expect_err("damaged");
        assert!(is_expected(&error), "{error:?}");
        let copies = StoredCopies::from_records(&[(Timestamp(0), damaged)], Timestamp(2_000));
        assert_eq!(
            (copies.by_site.len(), copies.damaged),
            (0, vec!["shop".to_owned()])
        );
    }
    let copies = StoredCopies::from_records(&[(Timestamp(0), whole)], Timestamp(2_000));
    assert_eq!((copies.by_site.len(), copies.damaged.len()), (1, 0));
}

/// A 304 to an unconditional request says nothing.
#[test]
fn status_304_without_copy_is_a_failure() {
    let mut fetch = FetchState::new(Timestamp(0));
    run_steps(
        &mut fetch,
        vec![FetchStep(
            0,
            FetchResult::Unchanged,
            OriginCopyState::Awaited,
            None,
            5,
        )],
    );
    assert!(
        fetch
            .problem()
            .is_some_and(|problem| problem.contains("304"))
            && fetch.last_success.is_none()
    );
}

#[test]
fn hosts_of_a_site_select_its_servers() {
    use crate::settings::{OriginServerAddress, OriginSettings};
    let origin = |hosts: &[&str], url: &str| OriginSettings {
        hosts: hosts.iter().map(|host| host.to_string()).collect(),
        ..OriginSettings::with_servers([OriginServerAddress::parse(url).expect("a URL")])
    };
    let targets = OriginTargets::new(&[
        origin(&["*.shop.example", "shop.example"], "http://10.0.0.1:3000"),
        origin(&[], "https://10.0.0.2"),
    ]);
    let asked = |targets: &OriginTargets, host| {
        targets
            .for_host(host)
            .map(|target| (target.host, target.origin.servers[0].address.host.clone()))
    };
    let answer = |host: &str, server: &str| Some((host.to_owned(), server.to_owned()));
    assert_eq!(
        asked(&targets, Some("shop.example:8443")),
        answer("shop.example:8443", "10.0.0.1")
    );
    assert_eq!(
        asked(&targets, Some("www.shop.example")),
        answer("www.shop.example", "10.0.0.1")
    );
    assert_eq!(asked(&targets, None), answer("10.0.0.2", "10.0.0.2"));
    let named = OriginTargets::new(&[origin(
        &["*.shop.example", "shop.example"],
        "http://10.0.0.1:3000",
    )]);
    assert_eq!(asked(&named, None), answer("shop.example", "10.0.0.1"));
    assert_eq!(asked(&named, Some("other.example")), None);
    // A default site belongs to its origin, even if another origin has the host as well.
    let both = OriginTargets::new(&[
        origin(&["www.shop.example"], "http://10.0.0.1:3000"),
        origin(&["*.shop.example"], "http://10.0.0.2:3000"),
    ]);
    let of = |place| {
        both.for_origin(place, Some("www.shop.example"))
            .map(|target| target.origin.servers[0].address.host.clone())
    };
    assert_eq!(
        (of(0), of(1), of(2)),
        (Some("10.0.0.1".into()), Some("10.0.0.2".into()), None)
    );
}

#[test]
fn html_page_is_read_as_no_rules() {
    for page in [
        html_result("<div id=app></div>"),
        file_result("<!doctype html><div id=app></div>"),
    ] {
        let FetchResult::NoFile { url, .. } = page.into_crawler_reading() else {
            panic!("a page has no rules")
        };
        assert_eq!(url, URL);
    }
    for other in [
        file_result(RULES),
        html_result(RULES),
        gone_result(),
        unreachable_result(),
        bytes_result(b"\xFF\xFEU\0s\0".to_vec()),
    ] {
        assert_eq!(other.clone().into_crawler_reading(), other);
    }
}

/// The caller compiles the file with its new URL, so that status and explanations name the same
/// place.
#[test]
fn same_bytes_from_another_url_are_a_new_copy() {
    let mut fetch = FetchState::new(Timestamp(0));
    let copy = fetch
        .apply_result(file_result(RULES), Timestamp(0), 0.5)
        .expect("a copy");
    fetch.accept(copy, Timestamp(0));
    assert_eq!(
        fetch.apply_result(file_result(RULES), Timestamp(600), 0.5),
        None,
        "the same URL is no change"
    );
    let moved = FetchResult::File {
        bytes: RULES.into(),
        url: "http://origin.test/r1.txt".into(),
        etag: None,
        last_modified: None,
        html: false,
    };
    let copy = fetch
        .apply_result(moved, Timestamp(1_200), 0.5)
        .expect("the same copy");
    assert_eq!(
        (copy.url.as_str(), &*copy.bytes),
        ("http://origin.test/r1.txt", RULES.as_bytes())
    );
    fetch.accept(copy, Timestamp(1_200));
    assert_eq!(
        fetch.state(HOUR, Timestamp(1_200)),
        OriginCopyState::Current
    );
}

#[test]
fn taken_over_copy_survives_failures() {
    for bytes in [RULES, ""] {
        let mut fetch = FetchState::with_copy(URL.into(), bytes.as_bytes().into(), Timestamp(9));
        assert_eq!(
            (fetch.due, fetch.state(HOUR, Timestamp(9))),
            (Timestamp(9), OriginCopyState::Kept),
            "not fetched yet"
        );
        assert_eq!((fetch.last_success, fetch.is_unasked()), (None, true));
        assert_eq!(
            fetch.apply_result(unreachable_result(), Timestamp(9), 0.5),
            None
        );
        assert_eq!(
            fetch.copy().map(|copy| &*copy.bytes),
            Some(bytes.as_bytes())
        );
        assert_eq!(
            fetch
                .apply_result(gone_result(), Timestamp(20), 0.5)
                .is_some(),
            bytes.is_empty()
        );
    }
}

#[test]
fn removal_time_is_known_only_while_file_is_gone() {
    let mut fetch = FetchState::new(Timestamp(0));
    let copy = fetch
        .apply_result(file_result(RULES), Timestamp(0), 0.5)
        .expect("a copy");
    fetch.accept(copy, Timestamp(0));
    for (at, result, believed_at) in [
        (600, gone_result(), Some(1_200)),
        (700, unreachable_result(), None),
        (800, gone_result(), Some(1_400)),
        (900, file_result(RULES), None),
        (1_500, file_result(""), Some(2_100)),
    ] {
        fetch.apply_result(result, Timestamp(at), 0.5);
        assert_eq!(fetch.believed_at(), believed_at.map(Timestamp), "at {at}");
    }
    fetch.record_held_back("it closes the site".into());
    assert_eq!(fetch.believed_at(), None);
}

/// A file was there in between, so its earlier absence does not count.
#[test]
fn file_held_back_in_between_restarts_the_ten_minutes() {
    let mut fetch = FetchState::new(Timestamp(0));
    let closed = || file_result("User-agent: *\nDisallow: /\n");
    run_steps(
        &mut fetch,
        vec![
            FetchStep(
                0,
                file_result(RULES),
                OriginCopyState::Current,
                Some(RULES),
                600,
            ),
            FetchStep(600, gone_result(), OriginCopyState::Kept, Some(RULES), 600),
            FetchStep(1_200, closed(), OriginCopyState::HeldBack, Some(RULES), 600),
            FetchStep(
                260_000,
                gone_result(),
                OriginCopyState::Kept,
                Some(RULES),
                600,
            ),
            FetchStep(
                260_600,
                gone_result(),
                OriginCopyState::Absent,
                Some(""),
                600,
            ),
        ],
    );
    assert_eq!(fetch.believed_at(), None);
}

/// The wall clock is set back by a day, and ahead by a day. Elapsed time counts.
#[test]
fn clock_set_keeps_spans() {
    const DAY: i64 = 86_400;
    let gone_at = |by: i64| {
        let mut fetch = FetchState::new(Timestamp(100_000));
        let copy = fetch
            .apply_result(file_result(RULES), Timestamp(100_000), 0.5)
            .expect("a copy");
        fetch.accept(copy, Timestamp(100_000));
        fetch.apply_result(gone_result(), Timestamp(100_600), 0.5);
        fetch.apply_clock_step(by, Timestamp(100_700 + by));
        fetch
    };
    for by in [-DAY, DAY] {
        let mut fetch = gone_at(by);
        let moved = |moment: i64| Timestamp(moment + by);
        assert_eq!(
            (fetch.due, fetch.believed_at()),
            (moved(101_200), Some(moved(101_200)))
        );
        assert!(
            fetch
                .problem()
                .is_some_and(|problem| problem.ends_with(&moved(101_200).to_string()))
        );
        assert!(
            fetch
                .last_success
                .is_some_and(|moment| moment <= moved(100_700))
        );
        assert_eq!(fetch.apply_result(gone_result(), moved(101_199), 0.5), None);
        assert!(
            fetch
                .apply_result(gone_result(), moved(101_200), 0.5)
                .is_some()
        );
    }
    let mut waits = FetchState::new(Timestamp(100_000));
    waits.apply_clock_step(-DAY, Timestamp(100_100 - DAY));
    assert_eq!(
        waits.state(HOUR, Timestamp(103_500 - DAY)),
        OriginCopyState::Awaited
    );
    assert_eq!(
        waits.state(HOUR, Timestamp(103_600 - DAY)),
        OriginCopyState::Missing
    );
}

/// A clock that was wrong noted them. crawlgate must not wait until that clock is right.
#[test]
fn stored_moments_in_the_future_become_now() {
    let mut fetch = FetchState::new(Timestamp(900_000));
    let copy = fetch
        .apply_result(file_result(RULES), Timestamp(900_000), 0.5)
        .expect("a copy");
    fetch.accept(copy, Timestamp(900_000));
    fetch.apply_result(gone_result(), Timestamp(900_600), 0.5);
    let stored = StoredCopy {
        fetch,
        default_site_hosts: None,
    };
    let fetch = after_restart(&stored, Timestamp(5_000))
        .expect("a copy")
        .fetch;
    assert_eq!(
        (fetch.wanted_since, fetch.last_success),
        (Timestamp(5_000), Some(Timestamp(5_000)))
    );
    assert_eq!(fetch.believed_at(), Some(Timestamp(5_600)));
    // Clocks of one machine may differ by five seconds.
    let near = after_restart(&stored, Timestamp(900_595)).expect("a copy");
    assert_eq!(near.fetch.believed_at(), Some(Timestamp(901_200)));
}
