//! Tests of reports that are made from known counts: their sums and sections, until when disallowed
//! requests do not count as violations, and that texts from clients are escaped in every format.

use super::not_counted::NotCountedReason;
use super::traffic::CrawlerShare;
use super::{
    BlockInstruction, ClientIdentity, CrawlerRow, EarlierReport, LineCounts, LogSummary,
    PeriodBound, Report, ReportPeriod, ReportSection, ReportSource, ReportTotals,
    ResponseStatusRow, RuleCount, SitemapCoverage, SitemapSummary, TopEntry, TrafficReport,
    ViolationExample, render_csv, render_html, render_markdown, render_table, render_text,
};
use crate::clock::Moment;
use crate::record::CountedAction::{self, Block, Pass, WouldBlock};
use crate::record::{RecordField, RecordRow, RequestCounts};
use crate::sketch::KeyUsage;
use crate::state::StateStore;
use crate::state::history::{
    DailyCountKind, HOUR, PeriodLength, RequestHistoryBatch, RequestHistoryReader, ServiceVisits,
};
use crate::time::Timestamp;
use crate::verdict::{IdentityOutcome, IdentityStatus, Kind};
use std::sync::Arc;
use std::time::Duration;

/// 22 Nov 2026, 00:00 UTC.
const NOW: Timestamp = Timestamp(1_795_305_600);

fn counts(requests: &[(Kind, CountedAction, u64)]) -> RequestCounts {
    let mut counts = RequestCounts::default();
    for (kind, action, number) in requests {
        counts.add(*kind, *action, *number);
    }
    counts
}

fn crawler_row(
    id: &str,
    identity: ClientIdentity,
    requests: &[(Kind, CountedAction, u64)],
) -> CrawlerRow {
    CrawlerRow::new(id, identity, counts(requests))
}

/// With requests in doubt that end some hours after now.
fn with_doubt_until(mut row: CrawlerRow, hours: i64) -> CrawlerRow {
    let until = Timestamp(NOW.0 + hours * HOUR);
    row.counts.set_older_until(Kind::StaleCopy, until);
    row.counts.set_older_until(Kind::Unproven, until);
    row
}

fn report(crawlers: Vec<CrawlerRow>) -> Report {
    let report = Report {
        from: Some(Timestamp(NOW.0 - 24 * HOUR)),
        to: Some(NOW),
        crawlers,
        ..Report::default()
    };
    report.finish(NOW)
}

/// Two crawlers that break the rules, one of them verified, unknown bots, an impostor, one whose
/// requests do not count, one that obeys, one that the rules do not bind, and tools.
fn mixed_report() -> Report {
    use ClientIdentity::{Impostor, Unverified, Verified};
    report(vec![
        crawler_row("curl", Unverified, &[(Kind::NotACrawler, Pass, 1_000)]),
        crawler_row("bingbot", Verified, &[(Kind::Allowed, Pass, 40)]),
        crawler_row("googlebot", Impostor, &[(Kind::Impostor, Block, 7)]),
        crawler_row(
            "googlebot",
            Verified,
            &[(Kind::Violation, WouldBlock, 2), (Kind::Allowed, Pass, 28)],
        ),
        with_doubt_until(
            crawler_row("ccbot", Unverified, &[(Kind::Unproven, WouldBlock, 5)]),
            6,
        ),
        crawler_row(
            "gptbot",
            Unverified,
            &[(Kind::Violation, Block, 9), (Kind::TooFast, WouldBlock, 1)],
        ),
        crawler_row("other", Unverified, &[(Kind::Trapped, WouldBlock, 3)]),
        crawler_row("adsbot-google", Unverified, &[(Kind::NotBound, Pass, 11)]),
    ])
}

fn numbers_in(text: &str) -> Vec<u64> {
    let parts = text.split(|sign: char| !sign.is_ascii_digit());
    parts.filter_map(|part| part.parse().ok()).collect()
}

#[test]
fn totals_have_neither_impostors_nor_tools() {
    let report = mixed_report();
    let expected = ReportTotals {
        requests: 99,
        against_rules: 15,
        not_counted: 5,
        blocked: 9,
        blocked_against_rules: 9,
        would_block: 8,
        would_block_against_rules: 3,
        unknown_bots_would_block: 3,
        unknown_bots_would_block_against_rules: 3,
        license_demanded: 0,
        pretended: 7,
        tools: 1_000,
    };
    assert_eq!(report.totals, expected);
}

#[test]
fn requests_without_licence_are_apart_from_violations() {
    let mut report = report(vec![
        crawler_row(
            "gptbot",
            ClientIdentity::Verified,
            &[
                (Kind::Allowed, CountedAction::License, 3),
                (Kind::Allowed, CountedAction::WouldLicense, 2),
                (Kind::Allowed, CountedAction::Pass, 4),
            ],
        ),
        crawler_row(
            "ccbot",
            ClientIdentity::Unverified,
            &[(Kind::Allowed, CountedAction::License, 4)],
        ),
        crawler_row(
            "applebot",
            ClientIdentity::Impostor,
            &[(Kind::Impostor, CountedAction::License, 6)],
        ),
    ]);
    let ReportTotals {
        against_rules,
        blocked,
        would_block,
        ..
    } = report.totals;
    assert_eq!((against_rules, blocked, would_block), (0, 0, 0));
    let sentence =
        "GPTBot: 5 requests (verified, 3 refused), CCBot: 4 requests (not verified, refused)";
    for row in &mut report.crawlers {
        let mut columns = row.counts.columns_mut();
        let reserved = columns.find(|(name, _)| *name == "reserved");
        *reserved.expect("a column").1 = 7;
    }
    for page in [
        render_text(&report).expect("text").replace("\n   ", ""),
        render_html(&report).expect("HTML"),
        render_markdown(&report).expect("Markdown"),
    ] {
        assert!(page.contains(sentence), "{page}");
        let reserved = "GPTBot: 7 pages (verified), CCBot: 7 pages";
        assert!(page.contains(reserved), "{page}");
        assert!(!page.contains("Applebot: 7 pages"), "{page}");
        let would_ask = "crawlgate would have asked 2 times more.";
        assert!(page.replace('\n', " ").contains(would_ask), "{page}");
    }
    // Of the requests of a crawler that obeys, only some lacked one.
    let html = render_html(&report).expect("HTML");
    let obeying = "GPTBot: 9 requests (verified, 5 of them without a licence)";
    assert!(html.contains(obeying), "{html}");
    let csv = render_csv(&report).expect("CSV");
    assert!(csv.contains(",0,0,5,,,,,\r\n"), "{csv}");
}

#[test]
fn blocking_by_robots_txt_has_unknown_bots_too() {
    let rows = || {
        vec![
            crawler_row(
                "other",
                ClientIdentity::Unverified,
                &[(Kind::Violation, WouldBlock, 16)],
            ),
            // Its purpose is not known either.
            crawler_row(
                "googleother",
                ClientIdentity::Unverified,
                &[(Kind::Violation, WouldBlock, 4)],
            ),
        ]
    };
    let mut log = report(rows());
    log.source = ReportSource::Logs;
    log.log = Some(LogSummary::default());
    assert_eq!(numbers_in(&log.finish(NOW).enforcement), [20]);
    let live = report(rows());
    assert_eq!(live.totals.would_block, 0);
    assert_eq!(numbers_in(&live.enforcement), [20]);
}

#[test]
fn log_without_user_agents_is_no_good_news() {
    let mut log = Report {
        source: ReportSource::Logs,
        log: Some(LogSummary::default()),
        ..Report::default()
    };
    if let Some(facts) = &mut log.log {
        facts.counts.no_user_agent = 500;
    }
    assert_eq!(numbers_in(&log.finish(NOW).headline), [500]);
}

#[test]
fn rule_is_explained_only_where_one_request_shows_it() {
    let with_rule = |rule: &str, suspected| {
        let mut row = crawler_row(
            "bingbot",
            ClientIdentity::Unverified,
            &[(Kind::Violation, WouldBlock, 9)],
        );
        row.suspected = suspected;
        row.example = Some(ViolationExample {
            site: "shop".to_owned(),
            request: "GET shop.example/cart/".to_owned(),
            rule: rule.to_owned(),
            ..ViolationExample::default()
        });
        row.explain_command("").is_some()
    };
    assert!(with_rule("Disallow: /cart/", 0));
    assert!(!with_rule("Disallow: /cart/", 1));
    assert!(!with_rule("Crawl-delay: 2", 0));
}

#[test]
fn rows_sort_by_section_identity_violations() {
    let rows: Vec<(ReportSection, String)> = mixed_report()
        .crawlers
        .into_iter()
        .map(|row| (row.part, row.id))
        .collect();
    let expected = [
        (ReportSection::BreaksRules, "googlebot"),
        (ReportSection::BreaksRules, "gptbot"),
        (ReportSection::BreaksRules, "other"),
        (ReportSection::Pretends, "googlebot"),
        (ReportSection::DoesNotCount, "ccbot"),
        (ReportSection::Obeys, "bingbot"),
        (ReportSection::NotJudged, "adsbot-google"),
        (ReportSection::Tool, "curl"),
    ];
    assert_eq!(rows, expected.map(|(part, id)| (part, id.to_owned())));
    let most = |id, broke| {
        crawler_row(
            id,
            ClientIdentity::Unverified,
            &[(Kind::Violation, Pass, broke)],
        )
    };
    let sorted = report(vec![
        most("ccbot", 4),
        most("gptbot", 9),
        most("bytespider", 4),
    ]);
    let ids: Vec<&str> = sorted.crawlers.iter().map(|row| &*row.id).collect();
    assert_eq!(ids, ["gptbot", "bytespider", "ccbot"]);
}

#[test]
fn headline_counts_rule_breakers() {
    assert_eq!(numbers_in(&mixed_report().headline), [1, 1, 15, 99]);
    assert_eq!(numbers_in(&mixed_report().enforcement), [9, 3, 3, 5]);
    let one = report(vec![crawler_row(
        "googlebot",
        ClientIdentity::Verified,
        &[(Kind::Violation, WouldBlock, 2_000)],
    )]);
    assert_eq!(
        numbers_in(&one.headline.replace(',', "")),
        [1, 2_000, 2_000]
    );
    assert!(one.headline.contains("crawler breaks "), "{}", one.headline);
    assert_eq!(numbers_in(&one.enforcement.replace(',', "")), [2_000]);
}

/// The numbers about violations add up to that of the headline. The numbers about other requests
/// add up to those that were, or would be, blocked all the same.
#[test]
fn numbers_after_the_headline_add_up_to_it() {
    use CountedAction::{Pause, Slow};
    use Kind::{Ambiguous, TooFast, Trapped, Unproven, Unverified, Violation};
    type Requests<'a> = &'a [(Kind, CountedAction, u64)];

    let cases: [(&str, Requests<'_>, Requests<'_>, [u64; 2]); 11] = [
        ("observe", &[(Violation, WouldBlock, 7)], &[], [7, 0]),
        (
            "enforce",
            &[(Violation, Block, 7), (TooFast, Slow, 2)],
            &[],
            [9, 0],
        ),
        ("paused", &[(Violation, Pause, 10)], &[], [10, 0]),
        (
            "paused, and uncounted",
            &[(Violation, Pause, 10), (Unproven, WouldBlock, 10)],
            &[],
            [10, 10],
        ),
        (
            "paused, and uncounted of unknown bots",
            &[(Violation, Pause, 10)],
            &[(Unproven, WouldBlock, 8)],
            [10, 8],
        ),
        (
            "unknown bots",
            &[(Violation, WouldBlock, 1)],
            &[(Trapped, WouldBlock, 5), (Unproven, WouldBlock, 500)],
            [6, 500],
        ),
        (
            "only unknown bots",
            &[],
            &[(Unproven, WouldBlock, 500)],
            [0, 500],
        ),
        (
            "uncounted",
            &[(Ambiguous, Block, 4), (Unproven, Block, 2)],
            &[],
            [0, 6],
        ),
        (
            "unverified: refuse, observed",
            &[(Unverified, WouldBlock, 40)],
            &[],
            [0, 40],
        ),
        (
            "a site that refuses unverified crawlers, and one that observes",
            &[
                (Unverified, Block, 40),
                (Violation, WouldBlock, 2),
                (Unproven, WouldBlock, 3),
            ],
            &[(Violation, WouldBlock, 1)],
            [3, 43],
        ),
        (
            "sites of each mode",
            &[
                (Violation, Block, 5),
                (Violation, WouldBlock, 7),
                (Violation, Pause, 1),
                (Ambiguous, Block, 1),
                (Unproven, WouldBlock, 4),
            ],
            &[(Violation, WouldBlock, 3), (Unproven, WouldBlock, 2)],
            [16, 7],
        ),
    ];
    let cases =
        cases.map(|(state, known, unknown, sums)| (state, [counts(known), counts(unknown)], sums));
    let without_columns = r#"{"requests": 12, "allowed": 2, "violation": 10, "refused": 10}"#;
    let faulty = r#"{"requests": 3, "violation": 3, "refused_against_rules": 5}"#;
    let read = [(without_columns, [10, 0]), (faulty, [3, 0])].map(|(json, sums)| {
        let counts: RequestCounts = serde_json::from_str(json).expect(json);
        (json, [counts, RequestCounts::default()], sums)
    });
    for (state, [known, unknown], sums) in cases.into_iter().chain(read) {
        let report = report(vec![
            CrawlerRow::new("gptbot", ClientIdentity::Unverified, known),
            CrawlerRow::new("other", ClientIdentity::Unverified, unknown),
        ]);
        let sentences = report.enforcement.split(". ");
        let (others, violations): (Vec<&str>, Vec<&str>) =
            sentences.partition(|sentence| sentence.contains("not count as"));
        let found = [violations, others].map(|sentences| {
            // A second number is a part of the first.
            let numbers = sentences.into_iter().map(numbers_in);
            numbers
                .filter_map(|numbers| numbers.first().copied())
                .sum::<u64>()
        });
        assert_eq!(found, sums, "{state}: {}", report.enforcement);
        assert_eq!(report.totals.against_rules, sums[0], "{state}");
    }
}

#[test]
fn headline_accuses_none_while_nothing_counts() {
    assert!(numbers_in(&report(Vec::new()).headline).is_empty());
    let obeying = crawler_row(
        "bingbot",
        ClientIdentity::Verified,
        &[(Kind::Allowed, Pass, 32)],
    );
    assert_eq!(numbers_in(&report(vec![obeying.clone()]).headline), [32]);
    let doubtful = crawler_row(
        "ccbot",
        ClientIdentity::Unverified,
        &[(Kind::Unproven, WouldBlock, 68)],
    );
    let first_day = report(vec![obeying, with_doubt_until(doubtful, 24)]);
    assert_eq!(numbers_in(&first_day.headline), [68, 100]);
    assert_eq!(numbers_in(&first_day.enforcement), [68]);
    assert_eq!(first_day.totals.against_rules, 0);
    assert_eq!(first_day.rows_in(ReportSection::BreaksRules).count(), 0);
    // Who pretends and who is a tool is no crawler that came.
    let nobody = report(vec![
        crawler_row(
            "googlebot",
            ClientIdentity::Impostor,
            &[(Kind::Impostor, Pass, 3)],
        ),
        crawler_row(
            "curl",
            ClientIdentity::Unverified,
            &[(Kind::NotACrawler, Pass, 4)],
        ),
    ]);
    assert!(numbers_in(&nobody.headline).is_empty());
}

#[test]
fn suspected_impostors_pretend_and_break_no_rule() {
    let suspected = crawler_row(
        "googlebot",
        ClientIdentity::SuspectedImpostor,
        &[(Kind::Violation, Pass, 3), (Kind::Unproven, Pass, 2)],
    );
    let report = report(vec![suspected]);
    assert_eq!(report.crawlers[0].part, ReportSection::Pretends);
    assert_eq!((report.totals.pretended, report.totals.requests), (5, 0));
    assert_eq!(report.not_counted, []);
}

#[test]
fn tool_judged_by_rules_is_a_crawler() {
    let judged = [(Kind::NotACrawler, Pass, 4), (Kind::Violation, Block, 1)];
    let report = report(vec![crawler_row(
        "wget",
        ClientIdentity::Unverified,
        &judged,
    )]);
    assert_eq!(report.crawlers[0].part, ReportSection::BreaksRules);
    assert_eq!((report.totals.requests, report.totals.tools), (5, 0));
}

#[test]
fn unknown_bots_of_a_report_are_named_if_one_sent_all() {
    let sent = [(Kind::Violation, WouldBlock, 2), (Kind::Allowed, Pass, 3)];
    for (names, shown, is_separate) in [
        (&[("NiceBot", 3), ("PriceBot", 2)][..], "unknown bots", true),
        (&[("NiceBot", 3)], "unknown bots", true),
        (&[("PriceBot", 5)], "PriceBot", false),
    ] {
        let names = names.iter().map(|(name, count)| TopEntry {
            name: (*name).to_owned(),
            count: *count,
            ..TopEntry::default()
        });
        let report = Report {
            crawlers: vec![crawler_row("other", ClientIdentity::Unverified, &sent)],
            unknown_bots: names.collect(),
            ..Report::default()
        };
        let report = report.finish(NOW);
        assert_eq!(report.crawlers[0].name, shown);
        assert_eq!(report.has_separate_unknown_bots(), is_separate);
    }
}

#[test]
fn older_copy_becomes_obedience_after_its_time() {
    let older = crawler_row(
        "ccbot",
        ClientIdentity::Unverified,
        &[(Kind::StaleCopy, Pass, 6)],
    );
    let waiting = report(vec![with_doubt_until(older.clone(), 1)]);
    assert_eq!(waiting.crawlers[0].part, ReportSection::DoesNotCount);
    assert_eq!(waiting.totals.not_counted, 6);
    let over = report(vec![with_doubt_until(older, 0)]);
    assert_eq!(over.crawlers[0].part, ReportSection::Obeys);
    assert_eq!(
        (
            over.totals.not_counted,
            over.crawlers[0].counts.rule_obeying_requests()
        ),
        (0, 6)
    );
}

/// Counts of each reason, some of which have a column of their own.
fn counts_of_each_reason() -> RequestCounts {
    let mut counts = counts(&[
        (Kind::StaleCopy, Pass, 1),
        (Kind::Unproven, Pass, 2 + 4 + 8),
        (Kind::Ambiguous, Pass, 16),
    ]);
    for (column, number) in counts.columns_mut() {
        match column {
            "perhaps_cached" => *number = 4,
            "peers_unknown" => *number = 8,
            _ => {}
        }
    }
    counts.set_older_until(Kind::StaleCopy, Timestamp(NOW.0 + 3 * HOUR));
    counts.set_older_until(Kind::Unproven, Timestamp(NOW.0 + HOUR));
    counts
}

#[test]
fn uncounted_requests_have_reason_and_end() {
    let counts = counts_of_each_reason();
    let one = CrawlerRow::new("ccbot", ClientIdentity::Unverified, counts);
    let older = crawler_row(
        "ahrefsbot",
        ClientIdentity::Unverified,
        &[(Kind::StaleCopy, Pass, 32)],
    );
    let pretending = CrawlerRow::new("googlebot", ClientIdentity::Impostor, counts);
    let report = report(vec![one, with_doubt_until(older, 5), pretending]);
    let found = report.not_counted.iter();
    let found: Vec<(NotCountedReason, u64, Option<i64>)> = found
        .map(|part| {
            let hours = part.until.map(|until| (until.0 - NOW.0) / HOUR);
            (part.reason, part.requests, hours)
        })
        .collect();
    let expected = [
        (NotCountedReason::OlderCopy, 1, Some(3)),
        (NotCountedReason::OlderCopy, 32, Some(5)),
        (NotCountedReason::NotObserved, 2, Some(1)),
        (NotCountedReason::PerhapsCached, 4, None),
        (NotCountedReason::PeersUnknown, 8, None),
        (NotCountedReason::Ambiguous, 16, None),
    ];
    assert_eq!(found, expected);
    assert_eq!(report.not_counted[0].crawlers, ["CCBot"]);
    assert_eq!(report.not_counted[1].crawlers, ["AhrefsBot"]);
    // Its operator documents how long it keeps a file.
    let has_days = report.not_counted[..2].iter();
    let has_days = has_days.map(|part| part.sentence.contains(" 7 days"));
    assert!(has_days.eq([false, true]));
    for part in &report.not_counted {
        let until = part
            .until
            .map(Timestamp::human_readable)
            .unwrap_or_default();
        assert!(part.sentence.contains(&until), "{}", part.sentence);
    }
}

/// A sample of a request against the rules, some hours before now.
fn violation_sample(
    site: &str,
    crawler: &str,
    identity: IdentityStatus,
    hours: i64,
    would: &str,
) -> RecordRow {
    let fields = [
        (RecordField::Site, site),
        (RecordField::Crawler, crawler),
        (RecordField::Kind, Kind::Violation.name()),
        (RecordField::Identity, identity.name()),
        (RecordField::Method, "GET"),
        (RecordField::Host, "shop.example"),
        (RecordField::Target, &format!("/cart/{hours}")),
        (RecordField::Rule, "Disallow: /cart/"),
        (RecordField::RuleSource, "policies/shop.yaml:7:20"),
        (RecordField::Would, would),
    ];
    RecordRow::from_texts(Timestamp(NOW.0 - hours * HOUR), &fields)
}

/// A history of two sites in memory.
fn test_history() -> RequestHistoryReader {
    use IdentityStatus::{Impostor, Unverified, Verified};
    let moment = Moment {
        now: NOW,
        monotonic: Duration::ZERO,
    };
    let (store, _) = StateStore::open(None, Arc::new(move || moment)).expect("a store");
    let mut batch = RequestHistoryBatch::default();
    let mut add = |hours, site, crawler, identity, requests: &[(Kind, CountedAction, u64)]| {
        let time = Timestamp(NOW.0 - hours * HOUR);
        batch.add_requests(time, site, crawler, identity, &counts(requests));
    };
    let violations = [(Kind::Violation, WouldBlock, 5), (Kind::Allowed, Pass, 1)];
    add(2, "shop", "gptbot", Some(Unverified), &violations);
    add(
        1,
        "blog",
        "gptbot",
        Some(Unverified),
        &[(Kind::Violation, Block, 3)],
    );
    add(
        1,
        "shop",
        "googlebot",
        Some(Verified),
        &[(Kind::Allowed, Pass, 10)],
    );
    add(
        1,
        "shop",
        "googlebot",
        Some(Impostor),
        &[(Kind::Impostor, Pass, 4)],
    );
    add(
        1,
        "shop",
        "other",
        Some(Unverified),
        &[(Kind::Violation, WouldBlock, 2)],
    );
    add(
        1,
        "blog",
        "wget",
        Some(Unverified),
        &[(Kind::Violation, Block, 2)],
    );
    add(
        1,
        "shop",
        "curl",
        Some(Unverified),
        &[(Kind::NotACrawler, Pass, 50)],
    );
    add(1, "shop", "none", None, &[(Kind::NotACrawler, Pass, 60)]);
    add(
        1,
        "unclaimed",
        "bingbot",
        Some(Verified),
        &[(Kind::NotACrawler, Pass, 6)],
    );
    add(
        72,
        "shop",
        "ccbot",
        Some(Unverified),
        &[(Kind::Violation, Pass, 9)],
    );
    for (site, hours, would) in [("shop", 2, "block"), ("blog", 1, "")] {
        batch.add_sample(violation_sample(site, "gptbot", Unverified, hours, would));
    }
    batch.add_daily(DailyCountKind::Unlisted, NOW, ["PriceHunter", ""], 2);
    let suspected = ["gptbot", IdentityOutcome::Suspected.name()];
    batch.add_daily(DailyCountKind::Identity, NOW, suspected, 3);
    store.put_history(batch, NOW);
    store.history()
}

fn report_from_history(site: &str) -> Report {
    Report::from_history(&test_history(), ReportPeriod::last_days(1, NOW), site, "").expect("read")
}

#[test]
fn history_is_summed_by_crawler_and_site() {
    let report = report_from_history("");
    let expected = ReportTotals {
        requests: 6 + 3 + 10 + 2 + 2 + 6,
        against_rules: 12,
        blocked: 5,
        blocked_against_rules: 5,
        would_block: 5,
        would_block_against_rules: 5,
        unknown_bots_would_block: 2,
        unknown_bots_would_block_against_rules: 2,
        pretended: 4,
        tools: 50,
        ..ReportTotals::default()
    };
    assert_eq!(report.totals, expected);
    assert_eq!((report.visitors, report.unclaimed), (60, 6));
    let mut sites = Vec::new();
    for row in &report.sites {
        let counts = &row.counts;
        let would_block = counts.would_refuse();
        sites.push((
            &*row.site,
            counts.requests(),
            counts.rule_breaking_requests(),
            would_block,
        ));
    }
    // Enforcement alone blocks no unknown bot, and a tool that broke a rule is a crawler.
    assert_eq!(sites, [("shop", 18, 7, 5), ("blog", 5, 5, 0)]);
    assert_eq!(
        (report.sites[0].pretended, report.sites[1].pretended),
        (4, 0)
    );
    let bars =
        |of: fn(&super::charts::PeriodBar) -> u64| report.periods.iter().map(of).sum::<u64>();
    assert_eq!(report.periods.len(), 25);
    assert_eq!(bars(|bar| bar.against_rules), 12);
    assert_eq!(bars(|bar| bar.obeyed), 11);
    assert_eq!(bars(|bar| bar.pretended), 4);
    assert_eq!(report.unknown_bots[0].name, "PriceHunter");
    let of_site = report_from_history("shop").unknown_bots;
    assert_eq!(of_site, report.unknown_bots);
    assert!(report_from_history("blog").unknown_bots.is_empty());
}

#[test]
fn report_with_an_end_has_nothing_later() {
    let until = PeriodBound::At(Timestamp(NOW.0 - HOUR));
    let period = ReportPeriod::from_bounds(None, Some(until), None, NOW);
    let report = Report::from_history(&test_history(), period, "", "").expect("read");
    assert_eq!(report.to, Some(Timestamp(NOW.0 - HOUR - 1)));
    // Before that nothing was counted.
    assert_eq!(report.from, Some(Timestamp(NOW.0 - 2 * HOUR)));
    let [row] = &report.crawlers[..] else {
        panic!("{:?}", report.crawlers);
    };
    assert_eq!((&*row.id, row.counts.requests()), ("gptbot", 6));
    assert_eq!(row.last, Some(Timestamp(NOW.0 - 2 * HOUR)));
    assert_eq!(
        (&row.sites[..], row.suspected),
        (&["shop".to_owned()][..], 0)
    );
    assert_eq!((report.sites.len(), report.visitors), (1, 0));
    assert!(report.unknown_bots.is_empty());
    let bars = report.periods.iter().map(|bar| bar.against_rules);
    assert_eq!((bars.len(), bars.sum::<u64>()), (24, 5));
}

#[test]
fn report_of_one_crawler_has_nothing_of_others() {
    let whole = report_from_history("");
    let period = ReportPeriod::last_days(1, NOW);
    let one = Report::from_history(&test_history(), period, "", "gptbot").expect("read");
    let rows = whole.crawlers.iter().filter(|row| row.id == "gptbot");
    assert_eq!(one.crawlers, rows.cloned().collect::<Vec<_>>());
    assert!(!one.crawlers.is_empty());
    assert_eq!((one.visitors, one.unclaimed), (0, 0));
    assert!(one.unknown_bots.is_empty() && one.traffic.is_none());
    let requests: u64 = one.crawlers.iter().map(|row| row.counts.requests()).sum();
    let of_sites = one
        .sites
        .iter()
        .map(|row| row.counts.requests() + row.pretended);
    assert_eq!(of_sites.sum::<u64>(), requests);
}

#[test]
fn row_has_first_and_latest_violation() {
    let gptbot = |report: Report| {
        let mut rows = report.crawlers.into_iter();
        rows.find(|row| row.id == "gptbot").expect("gptbot")
    };
    let hours = |time: Option<Timestamp>| (NOW.0 - time.expect("a time").0) / HOUR;
    let row = gptbot(report_from_history(""));
    assert_eq!((hours(row.first), hours(row.last)), (2, 1));
    assert_eq!((row.is_blocked, row.suspected), (Some(true), 3));
    assert_eq!(row.outcome_words(), "blocked");
    let of_shop = report_from_history("shop");
    assert_eq!((of_shop.totals.against_rules, of_shop.visitors), (7, 60));
    assert!(of_shop.sites.is_empty());
    let row = gptbot(of_shop);
    assert_eq!((hours(row.first), row.is_blocked), (2, Some(false)));
    let example = row.example.expect("an example");
    assert_eq!(example.request, "GET shop.example/cart/2");
    assert_eq!(
        (&*example.rule, &*example.place),
        ("Disallow: /cart/", "policies/shop.yaml:7:20")
    );
}

/// With pages that were read, each of the same number of bytes.
fn with_pages(mut counts: RequestCounts, pages: u64, bytes: u64) -> RequestCounts {
    for page in 0..pages {
        counts.add_status(if page % 3 == 0 { 304 } else { 200 });
        counts.add_bytes(bytes);
    }
    counts
}

fn sent_visits(visits: &[(&str, u64)]) -> Vec<ServiceVisits> {
    let visits = visits.iter().map(|(service, visits)| ServiceVisits {
        service: (*service).to_owned(),
        visits: *visits,
    });
    visits.collect()
}

/// A report whose rows are under one name each: a crawler, its impostors, one that breaks rules,
/// unknown bots and a tool.
fn report_with_bytes() -> Report {
    use ClientIdentity::{Impostor, SuspectedImpostor, Unverified, Verified};
    let mut crawlers = Vec::new();
    for (id, identity, kind, requests, pages, bytes) in [
        ("gptbot", Verified, Kind::Allowed, 40, 30, 100),
        ("gptbot", Impostor, Kind::Impostor, 500, 200, 1_000),
        ("chatgpt-user", Unverified, Kind::Violation, 20, 10, 10),
        ("googlebot", SuspectedImpostor, Kind::Allowed, 50, 5, 900),
        ("ccbot", Unverified, Kind::Allowed, 8, 8, 500),
        ("other", Unverified, Kind::Allowed, 3, 3, 7),
        ("curl", Unverified, Kind::NotACrawler, 9, 9, 11),
    ] {
        let counts = with_pages(counts(&[(kind, Pass, requests)]), pages, bytes);
        crawlers.push(CrawlerRow::new(id, identity, counts));
    }
    let mut report = report(crawlers);
    report.visitors = 100;
    report
}

#[test]
fn traffic_of_impostors_is_nobodys() {
    let report = report_with_bytes();
    let mut traffic = TrafficReport::new(&report, 2_000);
    let crawlers = 40 + 20 + 8 + 3;
    let all = crawlers + 500 + 50 + 9 + 100;
    assert_eq!(traffic.requests, CrawlerShare { crawlers, all });
    let crawlers = 3_000 + 100 + 4_000 + 21;
    let all = crawlers + 200_000 + 4_500 + 99 + 2_000;
    assert_eq!(traffic.bytes, CrawlerShare { crawlers, all });
    let takers = traffic.takers.iter();
    let takers: Vec<(&str, u64, u64, u64)> = takers
        .map(|taker| (&*taker.id, taker.requests, taker.pages, taker.bytes))
        .collect();
    let expected = [
        ("ccbot", 8, 8, 4_000),
        ("gptbot", 40, 30, 3_000),
        ("chatgpt-user", 20, 10, 100),
        ("other", 3, 3, 21),
    ];
    assert_eq!(takers, expected);
    assert_eq!(traffic.takers[1].identity, Some(ClientIdentity::Verified));
    let visits = sent_visits(&[("google", 9), ("chatgpt", 16), ("gone", 5)]);
    traffic.set_visits(visits.clone(), report.pages_by_crawler());
    assert_eq!(traffic.services, visits);
    let operators = traffic.operators.iter();
    let operators: Vec<(&str, u64, u64, Option<f64>)> = operators
        .map(|one| (&*one.operator, one.pages, one.visits, one.pages_per_visit))
        .collect();
    // Common Crawl has no service, and Google's crawler did not come.
    let expected = [("OpenAI", 40, 16, Some(2.5)), ("Google", 0, 9, Some(0.0))];
    assert_eq!(operators, expected);
    assert_eq!(traffic.operators[0].services, ["ChatGPT"]);
    assert_eq!(
        numbers_in(&traffic.operator_sentence(&traffic.operators[0])),
        [16, 40, 2, 5]
    );
    assert_eq!(
        numbers_in(&traffic.operator_sentence(&traffic.operators[1])),
        [9]
    );
    let visits = sent_visits(&[("google", 9), ("gemini", 3), ("notebooklm", 2)]);
    traffic.set_visits(visits, report.pages_by_crawler());
    let google = traffic
        .operators
        .iter()
        .find(|one| one.operator == "Google");
    let sentence = traffic.operator_sentence(google.expect("an operator"));
    assert_eq!(numbers_in(&sentence), [9, 3, 1, 2]);
    traffic.set_visits(Vec::new(), report.pages_by_crawler());
    assert_eq!(
        numbers_in(&traffic.operator_sentence(&traffic.operators[0])),
        [40]
    );
}

#[test]
fn traffic_is_left_out_if_responses_are_unknown() {
    let mut counts = counts(&[(Kind::Allowed, Pass, 9), (Kind::Violation, Block, 3)]);
    for _ in 0..3 {
        counts.add_status(403);
    }
    counts.add_bytes(70);
    let row = CrawlerRow::new("gptbot", ClientIdentity::Verified, counts);
    let report = report(vec![row]);
    let mut traffic = TrafficReport::new(&report, 0);
    assert_eq!((traffic.requests.crawlers, traffic.bytes.all), (12, 0));
    assert!(traffic.takers.is_empty());
    traffic.set_visits(sent_visits(&[("google", 9)]), report.pages_by_crawler());
    let operators = traffic.operators.iter();
    let operators: Vec<&str> = operators.map(|one| &*one.operator).collect();
    assert_eq!(operators, ["Google"]);
}

#[test]
fn traffic_stays_if_more_is_blocked_than_read() {
    use CountedAction::{License, Pause, RobotsTxt};
    let read = with_pages(counts(&[(Kind::Allowed, Pass, 3)]), 3, 100);
    let answered = [
        (Kind::Violation, Block, 5),
        (Kind::Allowed, License, 2),
        (Kind::Allowed, Pause, 2),
        (Kind::Allowed, RobotsTxt, 2),
    ];
    let report = report(vec![
        CrawlerRow::new("bingbot", ClientIdentity::Verified, read),
        crawler_row("gptbot", ClientIdentity::Verified, &answered),
    ]);
    let traffic = TrafficReport::new(&report, 0);
    let takers = traffic.takers.iter();
    let takers: Vec<(&str, u64, u64)> = takers
        .map(|taker| (&*taker.id, taker.requests, taker.pages))
        .collect();
    assert_eq!(takers, [("bingbot", 3, 3), ("gptbot", 11, 0)]);
    assert_eq!(traffic.bytes.crawlers, 300);
}

#[test]
fn explain_commands_are_for_search_engines() {
    let mut report = mixed_report();
    for row in &mut report.crawlers {
        row.example = Some(ViolationExample {
            site: "shop".to_owned(),
            request: "GET shop.example/a'$(x)".to_owned(),
            ..ViolationExample::default()
        });
    }
    let command =
        "crawlgate explain --live --host 'shop.example' --user-agent googlebot '/a%27$(x)'";
    assert_eq!(report.explain_commands(), [command]);
}

#[test]
fn traffic_of_history_counts_whole_days_of_visits() {
    use IdentityStatus::{Impostor, Verified};
    let moment = Moment {
        now: NOW,
        monotonic: Duration::ZERO,
    };
    let (store, _) = StateStore::open(None, Arc::new(move || moment)).expect("a store");
    let mut batch = RequestHistoryBatch::default();
    for (hours, site, crawler, identity, pages) in [
        (2, "shop", "gptbot", Some(Verified), 30),
        (3, "shop", "gptbot", Some(Impostor), 500),
        (3, "blog", "gptbot", Some(Verified), 7),
        (2, "shop", "none", None, 40),
        // Yesterday, before the first hour of the period.
        (30, "shop", "gptbot", Some(Verified), 10),
        (100, "shop", "gptbot", Some(Verified), 1_000),
    ] {
        let time = Timestamp(NOW.0 + 12 * HOUR - hours * HOUR);
        let counts = with_pages(counts(&[(Kind::Allowed, Pass, pages)]), pages, 10);
        batch.add_requests(time, site, crawler, identity, &counts);
    }
    for (hours, site, service, visits) in [
        (2, "shop", "chatgpt", 4),
        (30, "shop", "chatgpt", 4),
        (2, "blog", "chatgpt", 1),
        (100, "shop", "chatgpt", 100),
    ] {
        let time = Timestamp(NOW.0 + 12 * HOUR - hours * HOUR);
        batch.add_daily(DailyCountKind::Visits, time, [site, service], visits);
    }
    let now = Timestamp(NOW.0 + 12 * HOUR);
    store.put_history(batch, now);
    let period = ReportPeriod::last_days(1, now);
    let traffic = |site: &str| {
        let report = Report::from_history(&store.history(), period, site, "").expect("read");
        report.traffic.expect("traffic")
    };
    let shop = traffic("shop");
    assert_eq!(shop.visits_from, Some(Timestamp(NOW.0 - 24 * HOUR)));
    assert_eq!((shop.operators[0].pages, shop.operators[0].visits), (40, 8));
    let all = 30 + 500 + 40;
    assert_eq!(shop.requests, CrawlerShare { crawlers: 30, all });
    assert_eq!(
        shop.bytes,
        CrawlerShare {
            crawlers: 300,
            all: 10 * all
        }
    );
    let both = traffic("");
    assert_eq!((both.operators[0].pages, both.operators[0].visits), (47, 9));
    assert_eq!(both.services, sent_visits(&[("chatgpt", 9)]));
    assert_eq!(both.takers[0].pages, 37);
}

#[test]
fn statuses_of_crawlers_that_take_most_are_shown() {
    let mut report = report_with_bytes();
    let mut traffic = TrafficReport::new(&report, 2_000);
    traffic.takers[1].statuses = [20, 3, 10, 1_005, 0];
    report.traffic = Some(traffic);
    let text = render_markdown(&report).expect("Markdown");
    let read = "read 30 pages, 2.9 KiB, 1 % of all bytes; 3 redirected; 1,005 with 4xx";
    assert!(text.contains(read), "{text}");
    assert!(!text.contains("with 5xx"), "{text}");
    let page = render_html(&report).expect("HTML");
    assert!(page.contains("<td data-label=\"4xx\">1,005</td>"), "{page}");
}

#[test]
fn csv_has_row_for_each_crawler_and_identity() {
    let mut report = report_with_bytes();
    report.crawlers[0].name = "=1+\"1\",\r\n2".to_owned();
    let entries = vec![TopEntry {
        name: "/a,b/".to_owned(),
        count: 7,
        error: 1,
        usage: Some(KeyUsage {
            bytes: 30,
            last: Some(Timestamp(9)),
            timed: 2,
            milliseconds: 3_000,
            slow: 1,
        }),
        urls: Some(3),
        is_of_cut_list: false,
    }];
    report.crawlers[0].urls_against_rules = vec![TopEntry {
        name: "shop.example/a,b?c".to_owned(),
        count: 4,
        ..TopEntry::default()
    }];
    report.crawlers[0].sections = entries.clone();
    report.crawlers[0].statuses = vec![ResponseStatusRow {
        status: 404,
        requests: 9,
        days: Vec::new(),
        sections: Vec::new(),
        paths: entries,
    }];
    report.crawlers[0].sitemap = Some(SitemapCoverage {
        examples: vec!["https://shop.example/a,b".to_owned()],
        ..SitemapCoverage::default()
    });
    let csv = render_csv(&report).expect("CSV");
    let lines: Vec<&str> = csv.split_terminator("\r\n").collect();
    assert_eq!(lines.len(), 6 + report.crawlers.len());
    let columns: Vec<&str> = lines[0].split(',').collect();
    assert_eq!(columns.len(), 23);
    // The row of the section comes after that of its crawler.
    assert!(lines[1].contains(",crawler,,"), "{csv}");
    assert!(
        lines[2].ends_with(",url_against_rules,\"shop.example/a,b?c\",4,0,,,,,,,4,,,,,,,"),
        "{csv}"
    );
    assert!(
        lines[3].ends_with(",section,\"/a,b/\",7,1,30,,,,,,,,,,1970-01-01T00:00:09Z,1500,1,3"),
        "{csv}"
    );
    assert!(lines[4].ends_with(",status,,9,,,,,,,,,,,404,,,,"), "{csv}");
    assert!(
        lines[5]
            .ends_with(",status_path,\"/a,b/\",7,1,30,,,,,,,,,404,1970-01-01T00:00:09Z,1500,1,3"),
        "{csv}"
    );
    assert!(
        lines[6].ends_with(",never_requested,\"https://shop.example/a,b\",0,,,,,,,,,,,,,,,"),
        "{csv}"
    );
    for line in &lines[2..7] {
        // Its name has a comma, too.
        assert_eq!(line.replace("a,b", "").split(',').count(), 24, "{line}");
    }
    let line = |start: &str| {
        let mut found = lines.iter().filter(|line| line.starts_with(start));
        let line = found.next().expect("a row").split(',');
        line.collect::<Vec<&str>>()
    };
    let row = line("gptbot,GPTBot,OpenAI,training,verified,");
    assert_eq!(
        row[5..],
        [
            "crawler", "", "40", "", "3000", "20", "0", "10", "0", "0", "0", "0", "0", "", "", "",
            "", ""
        ]
    );
    let row = line("gptbot,GPTBot,OpenAI,training,impostor,");
    assert_eq!(row[7..10], ["500", "", "200000"]);
    let hostile = "chatgpt-user,\"'=1+\"\"1\"\",\u{fffd}\u{fffd}2\",OpenAI,";
    assert!(csv.contains(hostile), "{csv}");
}

#[test]
fn chart_has_the_sums_of_the_headline() {
    use ClientIdentity::{SuspectedImpostor, Unverified};
    let pretending = [(Kind::Violation, Pass, 3), (Kind::NotBound, Pass, 4)];
    let rows = vec![
        crawler_row("gptbot", Unverified, &[(Kind::Violation, Pass, 2)]),
        crawler_row("adsbot-google", Unverified, &[(Kind::NotBound, Pass, 11)]),
        crawler_row("googlebot", SuspectedImpostor, &pretending),
    ];
    let mut bar = super::charts::PeriodBar::default();
    for row in &rows {
        bar.add(row.identity.expect("an identity"), &row.counts);
    }
    let mut report = report(rows);
    report.periods = vec![bar.clone(), bar.clone()];
    assert_eq!((report.totals.requests, report.totals.pretended), (13, 7));
    assert_eq!(bar.pretended, report.totals.pretended);
    let page = render_html(&report).expect("a page");
    assert!(page.contains(" UTC: 13, of which "), "{page}");
}

#[test]
fn title_is_the_first_heading_of_the_page() {
    let mut report = mixed_report();
    let page = render_html(&report).expect("a page");
    assert!(page.contains("<h1 class=\"headline"), "{page}");
    "Client".clone_into(&mut report.title);
    let page = render_html(&report).expect("a page");
    assert_eq!(page.matches("<h1").count(), 1);
    assert!(page.contains("<h1 class=\"report-title\">Client</h1>"));
}

#[test]
fn new_history_is_shown_by_hours() {
    for (days, step, length) in [
        (None, PeriodLength::Hour, 25),
        (Some(0), PeriodLength::Hour, 25),
        (Some(6), PeriodLength::Day, 8),
        (Some(300), PeriodLength::Day, 31),
    ] {
        let first_day = days.map(|days| Timestamp(NOW.0 - days * 24 * HOUR));
        let period = ReportPeriod::from_bounds(None, None, first_day, NOW);
        assert_eq!(
            (period.step, period.step_count()),
            (step, length),
            "{days:?}"
        );
    }
}

/// With texts that clients choose, which carry markup, control characters and lines of their own.
fn hostile_report() -> Report {
    const TEXT: &str = "<script>'\"&|*_[x](y)\u{1b}[31m\r\nPretend\u{202e}";
    let mut report = mixed_report();
    report.source = ReportSource::Logs;
    let top = || TopEntry {
        name: TEXT.to_owned(),
        count: 3,
        error: 1,
        ..TopEntry::default()
    };
    report.unknown_bots = vec![top(), top(), top()];
    report.urls = vec![top()];
    report.rules = vec![RuleCount {
        pattern: TEXT.to_owned(),
        count: 1,
        place: "robots.txt:1".to_owned(),
    }];
    report.log = Some(LogSummary {
        without_user_agents: vec![TEXT.to_owned()],
        ..LogSummary::default()
    });
    report.crawlers[0].paths = vec![top()];
    let text = crate::printable::printable(TEXT.as_bytes());
    report.sitemap = Some(SitemapSummary {
        names: vec![text.clone()],
        urls: 3,
        unread: vec![text.clone()],
        other_hosts: vec![text.clone()],
        left_out: 0,
    });
    report.crawlers[0].sitemap = Some(SitemapCoverage {
        never_requested: 3,
        sections: vec![top()],
        examples: vec![text],
        ..SitemapCoverage::default()
    });
    report.traffic = Some(TrafficReport::new(&report, 0));
    report.crawlers[0].example = Some(ViolationExample {
        request: TEXT.to_owned(),
        rule: TEXT.to_owned(),
        ..ViolationExample::default()
    });
    report.finish(NOW)
}

#[test]
fn client_texts_are_escaped() {
    let report = hostile_report();
    let page = render_html(&report).expect("a page");
    assert!(!page.contains("<script") && page.contains("&#60;script&#62;"));
    assert!(!page.contains('\u{1b}') && !page.contains('\u{202e}'));
    let summary = render_markdown(&report).expect("Markdown");
    // A reader of Markdown sees the text, as each sign of it is escaped.
    assert!(!summary.replace("\\<", "").contains('<'), "{summary}");
    assert!(!summary.contains("*_["), "{summary}");
    for printed in [render_text(&report), render_table(&report)] {
        let printed = printed.expect("a text");
        let hidden = |sign: char| sign != '\n' && crate::printable::is_hidden(sign);
        assert!(!printed.contains(hidden), "{printed:?}");
        let is_own = |line: &str| !line.starts_with("Pretend") || line.contains("others");
        assert!(printed.lines().all(is_own), "{printed}");
    }
}

#[test]
fn hosts_of_a_log_are_escaped_in_markdown() {
    let hosts = ["<img/src=//evil.example/p>", "@octocat"].map(str::to_owned);
    let log = LogSummary {
        hosts: hosts.to_vec(),
        unjudged_hosts: hosts.to_vec(),
        ..LogSummary::default()
    };
    let report = Report {
        source: ReportSource::Logs,
        log: Some(log),
        ..Report::default()
    };
    let summary = render_markdown(&report.finish(NOW)).expect("Markdown");
    for host in ["\\<img/src=//evil.example/p\\>", "\\@octocat"] {
        // In the headline and in the caveat about several hosts.
        assert_eq!(summary.matches(host).count(), 2, "{summary}");
    }
    assert!(!summary.replace("\\<", "").contains('<'), "{summary}");
}

/// The registry's crawlers with the longest names, each with many requests.
fn long_report() -> Report {
    let ids = [
        "perplexitybot",
        "meta-externalagent",
        "google-cloudvertexbot",
        "gptbot",
        "ccbot",
        "bytespider",
        "applebot-extended",
        "googlebot",
        "bingbot",
        "yandexaccessibilitybot",
        "google-inspectiontool",
        "mediapartners-google",
    ];
    let mut crawlers = Vec::new();
    for id in ids {
        let breaking = [
            (Kind::Violation, Block, 12_345),
            (Kind::Allowed, Pass, 67_890),
        ];
        let mut row = crawler_row(id, ClientIdentity::Unverified, &breaking);
        row.first = Some(NOW);
        row.is_blocked = Some(true);
        crawlers.push(row);
    }
    for id in ids {
        crawlers.push(crawler_row(
            id,
            ClientIdentity::Impostor,
            &[(Kind::Impostor, Block, 12_345)],
        ));
        crawlers.push(crawler_row(
            id,
            ClientIdentity::Verified,
            &[(Kind::Allowed, Pass, 12_345)],
        ));
    }
    let doubtful = CrawlerRow::new(
        "amazonbot",
        ClientIdentity::Unverified,
        counts_of_each_reason(),
    );
    crawlers.push(doubtful);
    for row in &mut crawlers {
        row.counts = with_pages(row.counts, row.counts.requests(), 1_234_567);
        let path = TopEntry {
            name: format!("/{}", "long/".repeat(5)),
            count: 1_234,
            error: 12,
            ..TopEntry::default()
        };
        row.sections = vec![path.clone(); 20];
        row.sitemap = Some(SitemapCoverage {
            requested: 123_456,
            never_requested: 123_456,
            requests: 12_345_678,
            requests_outside: 1_234_567,
            outside: row.sections.clone(),
            sections: row.sections.clone(),
            examples: vec![path.name.clone(); 20],
        });
        row.parameters = vec![path.clone(); 20];
        row.paths = vec![path; 20];
        let mut statuses = Vec::new();
        for status in [200, 301, 302, 404, 410, 503] {
            statuses.push(ResponseStatusRow {
                status,
                requests: 123_456,
                days: Vec::new(),
                sections: row.sections.clone(),
                paths: row.paths.clone(),
            });
        }
        row.statuses = statuses;
    }
    let mut report = report(crawlers);
    let mut traffic = TrafficReport::new(&report, 1_234_567);
    let services = crate::referrals::ReferringServices::builtin().all().iter();
    let visits: Vec<(&str, u64)> = services.map(|service| (&*service.id, 12_345)).collect();
    traffic.set_visits(sent_visits(&visits), report.pages_by_crawler());
    report.traffic = Some(traffic);
    report.sitemap = Some(SitemapSummary {
        names: vec!["https://shop.example/sitemap.xml".to_owned(); 4],
        urls: 246_912,
        unread: vec!["https://shop.example/other.xml: it answers 404".to_owned()],
        other_hosts: vec!["shop.example".to_owned(); 4],
        left_out: 1_234_567,
    });
    report
}

#[test]
fn text_has_80_columns_and_short_sections() {
    let mut report = long_report();
    report.earlier = Some(EarlierReport {
        // Times of a file may be any.
        from: Some(Timestamp(i64::MIN)),
        to: report.to,
        site: "other.example".to_owned(),
        crawlers: long_report().crawlers,
        log: None,
    });
    let printed = render_text(&report).expect("a text");
    for line in printed.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    assert_eq!(printed.matches("\nCaution: ").count(), 2, "{printed}");
    let parts: Vec<&str> = printed.split("\n\n").collect();
    assert!(parts.len() > 4, "{printed}");
    for (place, part) in parts.iter().enumerate() {
        // Above each is its name. Each reason why something does not count has three lines.
        let most = match part {
            _ if place == 1 => 1 + 3 * 5,
            // After the crawlers that take most come the purposes and the disallowed bytes.
            part if part.starts_with("Traffic") => 1 + 5 + 4 + 1,
            // The last line says when they are blocked.
            part if part.starts_with("Pretend") => 1 + 8 + 1,
            part if part.starts_with("Break") => 1 + 8,
            part if part.starts_with("Compared") => 2 + 8 + 2,
            part if part.starts_with("Visits") => 1 + 8 * 3,
            // All statuses, sections, parameters, and the paths and sections of five statuses of each
            // crawler.
            part if part.starts_with("URLs") => 1 + 5 * (1 + 2 + 2 + 5 * 2),
            // Notes, and of each crawler the numbers, the sections and the URLs of both kinds.
            part if part.starts_with("Sitemap") => 1 + 8 + 5 * (2 + 1 + 3 + 3),
            _ => 1 + 5,
        };
        assert!(part.lines().count() <= most, "{part}");
    }
    // A row of the table is one line with the identity. Only a name is cut.
    let rows = parts[2].lines().filter(|line| line.contains("12,345 of"));
    let whole = rows.filter(|line| line.contains("not verified") && line.ends_with("blocked"));
    assert_eq!(whole.count(), 7, "{printed}");
    let takers = printed.lines().filter(|line| line.ends_with("% of bytes"));
    let verified = takers.filter(|line| line.contains("verified)"));
    assert_eq!(verified.count(), 5, "{printed}");
}

#[test]
fn only_periods_of_other_lengths_are_cautioned_about() {
    for (hours_before, hours_now, is_cautioned) in [
        (31 * 24, 30 * 24, false),
        (6 * 24 - 1, 6 * 24 + 1, false),
        (20, 10, false),
        (14 * 24, 7 * 24, true),
    ] {
        let mut report = mixed_report();
        report.from = Some(Timestamp(NOW.0 - hours_now * HOUR));
        report.earlier = Some(EarlierReport {
            from: Some(Timestamp(NOW.0 - hours_before * HOUR)),
            to: report.to,
            site: String::new(),
            crawlers: Vec::new(),
            log: None,
        });
        let text = render_text(&report).expect("a text");
        assert_eq!(text.contains("Caution: "), is_cautioned, "{text}");
    }
}

/// Of a text, how many crawlers it lists under traffic and under URLs.
fn listed_crawlers(text: &str) -> [usize; 2] {
    let takers = text.lines().filter(|line| line.ends_with("% of bytes"));
    let statuses = text.lines().filter(|line| line.starts_with("    404 in "));
    [takers.count(), statuses.count()]
}

#[test]
fn as_many_crawlers_and_urls_are_listed_as_asked() {
    let mut report = long_report();
    let text = render_text(&report).expect("a text");
    assert_eq!(listed_crawlers(&text), [5, 5], "{text}");
    let statuses: Vec<&str> = text
        .lines()
        .filter(|line| line.contains(" in 123,456"))
        .collect();
    let first = statuses.iter().take(5).map(|line| &line[4..7]);
    assert!(first.eq(["503", "404", "410", "301", "302"]), "{text}");
    assert!(!text.contains("200 in 123,456"), "{text}");
    report.top = Some(7);
    report.traffic = Some(TrafficReport::new(&report, 1_234_567));
    let text = render_text(&report).expect("a text");
    assert_eq!(listed_crawlers(&text), [7, 7], "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80));
    let urls = text.split("    503 by path: ").nth(1).unwrap_or_default();
    let urls = urls.split("    404 in ").next().unwrap_or_default();
    assert_eq!(urls.matches("%)").count(), 7, "{urls}");
    for page in [render_html(&report), render_markdown(&report)] {
        let page = page.expect("a page");
        assert_eq!(page.matches("404 in 123,456 requests").count(), 7);
        assert_eq!(page.matches("200: 123,456; 301: 123,456").count(), 7);
        assert_eq!(page.matches("123,456 of 246,912").count(), 7);
    }
    // The report of one crawler has no traffic.
    report.traffic = None;
    let text = render_text(&report).expect("a text");
    assert_eq!(listed_crawlers(&text), [0, 7]);
}

#[test]
fn urls_are_listed_by_section_parameter_and_status() {
    let top = |name: &str, count| {
        vec![TopEntry {
            name: name.to_owned(),
            count,
            ..TopEntry::default()
        }]
    };
    let mut row = crawler_row(
        "googlebot",
        ClientIdentity::Verified,
        &[(Kind::Allowed, Pass, 200)],
    );
    row.sections = top("/shop/", 150);
    row.parameters = top("color", 20);
    row.with_parameters = 44;
    row.paths = top("/shop/a", 10);
    row.statuses = vec![
        ResponseStatusRow {
            status: 404,
            requests: 60,
            days: Vec::new(),
            sections: top("/shop/", 40),
            paths: top("/shop/gone", 30),
        },
        // No path is named, or one that explains less than a third, or many with one request each.
        ResponseStatusRow {
            status: 200,
            requests: 40,
            days: Vec::new(),
            sections: top("/blog/", 30),
            paths: Vec::new(),
        },
        ResponseStatusRow {
            status: 302,
            requests: 35,
            days: Vec::new(),
            sections: top("/login/", 35),
            paths: top("/login/a", 11),
        },
        ResponseStatusRow {
            status: 301,
            requests: 30,
            days: Vec::new(),
            sections: top("/r/", 30),
            paths: vec![top("/r/a", 1); 6].concat(),
        },
    ];
    let text = render_text(&report(vec![row.clone()])).expect("a text");
    for line in [
        "  Googlebot (verified, search): 200 requests",
        "    statuses (without robots.txt): 404: 60; 200: 40; 302: 35; 301: 30",
        "    sections: /shop/ 150 (75 %)",
        "    parameters (in 22 % of requests): color 20 (10 %)",
        "    404 in 60 requests: /shop/gone 30 (50 %)",
        "    200 in 40 requests, by section: /blog/ 30 (75 %)",
        "    302 in 35 requests, by section: /login/ 35 (100 %)",
        "    302 by path: /login/a 11 (31 %)",
        "    301 in 30 requests, by section: /r/ 30 (100 %)",
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line} in {text}");
    }
    assert_eq!(text.matches(" by section: ").count(), 3, "{text}");
    assert_eq!(text.matches(" by path: ").count(), 1, "{text}");
    row.statuses.clear();
    row.paths[0].name = "/shop/a".repeat(50);
    let text = render_text(&report(vec![row])).expect("a text");
    assert!(text.contains("\n    paths: /shop/a/shop/a"), "{text}");
    assert!(text.contains("... 10 (5 %)"), "{text}");
}

#[test]
fn urls_of_real_crawler_come_before_those_of_pretenders() {
    use ClientIdentity::{SuspectedImpostor, Unverified, Verified};
    let identities = [SuspectedImpostor, Unverified, Verified];
    let rows = identities.map(|identity| {
        let kind = match identity {
            SuspectedImpostor => Kind::Violation,
            _ => Kind::Allowed,
        };
        let mut row = crawler_row("googlebot", identity, &[(kind, Pass, 9)]);
        row.sections = vec![TopEntry {
            name: "/".to_owned(),
            count: 9,
            ..TopEntry::default()
        }];
        row
    });
    let report = report(rows.into());
    let listed = report.rows_with_urls();
    let listed: Vec<_> = listed.iter().filter_map(|row| row.identity).collect();
    assert_eq!(listed, [Verified, Unverified, SuspectedImpostor]);
}

#[test]
fn referrers_are_missed_only_in_log_with_requests() {
    for (from, is_said) in [(None, false), (Some(NOW), true)] {
        let report = Report {
            from,
            log: Some(LogSummary::default()),
            ..report(Vec::new())
        };
        let text = render_text(&report).expect("a text");
        assert_eq!(text.contains("has a referrer"), is_said, "{text}");
    }
}

#[test]
fn json_round_trips() {
    let mut report = long_report();
    report.crawlers[0].to_block = Some(BlockInstruction {
        place: "policies/shop.yaml:9".to_owned(),
        under: "enforcement.agents".to_owned(),
        line: "GPTBot: enforce".to_owned(),
    });
    for report in [
        report,
        report_from_history(""),
        hostile_report(),
        Report::default(),
    ] {
        let written = serde_json::to_string(&report).expect("JSON");
        let read: Report = serde_json::from_str(&written).expect("a report");
        assert_eq!(read, report);
    }
}

#[test]
fn report_of_an_older_server_is_read() {
    let report = report_from_history("");
    let mut written = serde_json::to_value(&report).expect("JSON");
    let row = written["crawlers"][0].as_object_mut().expect("a row");
    row.retain(|key, _| !["usage", "distinct_paths"].contains(&key.as_str()));
    let read: Report = serde_json::from_value(written).expect("a report");
    assert_eq!(read, report);
}

#[test]
fn crawlers_that_rules_do_not_bind_obey_none() {
    use ClientIdentity::Unverified;
    let rows = vec![
        crawler_row("googlebot", Unverified, &[(Kind::Exempt, Pass, 2)]),
        crawler_row("chatgpt-user", Unverified, &[(Kind::NotBound, Pass, 1)]),
        crawler_row("bingbot", Unverified, &[(Kind::Allowed, Pass, 3)]),
        crawler_row(
            "gptbot",
            Unverified,
            &[(Kind::Allowed, Pass, 1_000), (Kind::Exempt, Pass, 1)],
        ),
    ];
    let report = report(rows);
    let unbound = "Googlebot: 2 requests (not verified, 2 disallowed but exempt), ChatGPT-User: 1 request (not verified, 1 not bound)";
    for page in [
        render_text(&report).expect("text").replace("\n   ", ""),
        render_html(&report).expect("HTML"),
        render_markdown(&report).expect("Markdown"),
    ] {
        let (obeying, rest) = page
            .split_once("Not bound by robots.txt, or exempt")
            .expect("a section");
        assert!(
            obeying.contains("bingbot: 3 requests (not verified)"),
            "{page}"
        );
        // One exempt request of many does not hide that a crawler obeys.
        assert!(
            obeying.contains("GPTBot: 1,001 requests (not verified, 1 disallowed but exempt)"),
            "{page}"
        );
        assert!(rest.contains(unbound), "{page}");
    }
}

#[test]
fn long_name_is_cut_and_its_identity_is_not() {
    let broke = [(Kind::Violation, Pass, 2)];
    let mut row = crawler_row("gptbot", ClientIdentity::Unverified, &broke);
    row.name = "A-Crawler-With-A-Name-That-Is-Too-Long".to_owned();
    let preview = crawler_row("facebookexternalhit", ClientIdentity::Unverified, &broke);
    let text = render_text(&report(vec![row, preview])).expect("rendered");
    assert!(text.contains("... (not verified)  "), "{text}");
    assert!(
        text.contains("  facebookexternalhit (not verified)  "),
        "{text}"
    );
    // All have their purposes, or none has.
    let mut fitting = crawler_row("ccbot", ClientIdentity::Unverified, &broke);
    let shown = |row: &CrawlerRow| {
        let other = crawler_row("gptbot", ClientIdentity::Unverified, &broke);
        let text = render_text(&report(vec![row.clone(), other])).expect("rendered");
        let table = text.split("Break the rules").nth(1).unwrap_or_default();
        table.matches("(not verified, AI training) ").count()
    };
    assert_eq!(shown(&fitting), 2);
    fitting.name = "x".repeat(24);
    assert_eq!(shown(&fitting), 0);
}

#[test]
fn log_of_several_hosts_is_not_judged_by_one_file_in_silence() {
    let hosts = vec!["blog.example".to_owned(), "shop.example".to_owned()];
    let counts = LineCounts {
        other_hosts: 1,
        ..LineCounts::default()
    };
    for (source, hosts, expected) in [
        (ReportSource::Logs, hosts.clone(), true),
        (ReportSource::Logs, hosts[..1].to_vec(), false),
        (ReportSource::LogsByPolicies, hosts, false),
    ] {
        let report = Report {
            source,
            log: Some(LogSummary {
                hosts,
                counts,
                ..LogSummary::default()
            }),
            ..mixed_report()
        };
        for text in [
            render_text(&report),
            render_html(&report),
            render_markdown(&report),
        ] {
            let text = text.expect("rendered");
            assert_eq!(text.contains("--site"), expected);
            // None is known by its name.
            assert!(text.contains("hosts that were not judged."), "{text}");
        }
    }
}

#[test]
fn log_without_statuses_and_bytes_has_no_takers() {
    for (statuses, bytes, takers) in [(0, 0, 0), (3, 0, 1), (0, 9, 1)] {
        let allowed = [(Kind::Allowed, Pass, 5)];
        let row = crawler_row("gptbot", ClientIdentity::Unverified, &allowed);
        let mut report = report(vec![row]);
        report.source = ReportSource::Logs;
        let counts = &mut report.crawlers[0].counts;
        (0..statuses).for_each(|_| counts.add_status(404));
        counts.add_bytes(bytes);
        let traffic = TrafficReport::new(&report, 0);
        assert_eq!(traffic.takers.len(), takers);
        let purposes = traffic.purposes.iter().map(|share| share.requests);
        assert_eq!(purposes.sum::<u64>(), takers as u64 * 5);
    }
}
