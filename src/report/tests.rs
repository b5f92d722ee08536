//! Tests of reports that are made from known counts: their sums and sections, which requests do not
//! count and until when, and that texts from clients are escaped in every format.

use super::not_counted::NotCountedReason;
use super::{
    BlockInstruction, ClientIdentity, CrawlerRow, LogFacts, Report, ReportPeriod, ReportSection,
    ReportSource, ReportTotals, RuleCount, TopEntry, ViolationExample, render_html,
    render_markdown, render_table, render_text,
};
use crate::clock::Moment;
use crate::record::CountedAction::{self, Block, Pass, WouldBlock};
use crate::record::{RecordField, RecordRow, RequestCounts};
use crate::state::StateStore;
use crate::state::history::{HOUR, HistoryBatch, HistoryReader, PeriodLength};
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
        would_block: 8,
        unknown_bots_would_block: 3,
        pretended: 7,
        tools: 1_000,
    };
    assert_eq!(report.totals, expected);
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
    assert_eq!(numbers_in(&mixed_report().enforcement), [9, 5 + 3, 3]);
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
            over.crawlers[0].counts.obeyed_rules()
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
        "gptbot",
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
    assert_eq!(report.not_counted[1].crawlers, ["GPTBot"]);
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
fn test_history() -> HistoryReader {
    use IdentityStatus::{Impostor, Unverified, Verified};
    let moment = Moment {
        now: NOW,
        monotonic: Duration::ZERO,
    };
    let (store, _) = StateStore::open(None, Arc::new(move || moment)).expect("a store");
    let mut batch = HistoryBatch::default();
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
    batch.add_unlisted(NOW, "PriceHunter", 2);
    batch.add_identity(NOW, "gptbot", IdentityOutcome::Suspected, 3);
    store.put_history(batch, NOW);
    store.history()
}

fn report_from_history(site: &str) -> Report {
    Report::from_history(&test_history(), ReportPeriod::last_days(1, NOW), site).expect("read")
}

#[test]
fn history_is_summed_by_crawler_and_site() {
    let report = report_from_history("");
    let expected = ReportTotals {
        requests: 6 + 3 + 10 + 2 + 2 + 6,
        against_rules: 12,
        blocked: 5,
        would_block: 5,
        unknown_bots_would_block: 2,
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
            counts.broke_rules(),
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

#[test]
fn new_history_is_shown_by_hours() {
    for (days, step, length) in [
        (None, PeriodLength::Hour, 25),
        (Some(0), PeriodLength::Hour, 25),
        (Some(6), PeriodLength::Day, 8),
        (Some(300), PeriodLength::Day, 31),
    ] {
        let first_day = days.map(|days| Timestamp(NOW.0 - days * 24 * HOUR));
        let period = ReportPeriod::since_first_day(first_day, NOW);
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
    };
    report.unknown_bots = vec![top(), top(), top()];
    report.urls = vec![top()];
    report.rules = vec![RuleCount {
        pattern: TEXT.to_owned(),
        count: 1,
        place: "robots.txt:1".to_owned(),
    }];
    report.log = Some(LogFacts {
        without_user_agents: vec![TEXT.to_owned()],
        ..LogFacts::default()
    });
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
    report(crawlers)
}

#[test]
fn text_has_80_columns_and_short_sections() {
    let printed = render_text(&long_report()).expect("a text");
    for line in printed.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    let parts: Vec<&str> = printed.split("\n\n").collect();
    assert!(parts.len() > 4, "{printed}");
    for (place, part) in parts.iter().enumerate() {
        // Above each is its name. Each reason why something does not count has three lines.
        let most = if place == 1 { 1 + 3 * 5 } else { 1 + 5 };
        assert!(part.lines().count() <= most, "{part}");
    }
    // A row of the table is one line, with its identity.
    let rows = parts[2].lines().filter(|line| line.contains("12,345 of"));
    let whole = rows.filter(|line| line.contains("not verified") && line.ends_with("blocked"));
    assert_eq!(whole.count(), 4, "{printed}");
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
