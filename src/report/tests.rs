//! What a report says of known counts: its sums, its parts, what does not count and until when; and
//! that texts of clients stay texts in each of its forms.

use super::not_counted::Reason;
use super::{
    ClientIdentity, CrawlerRow, Example, LogFacts, Part, Period, Report, RuleCount, Source,
    ToBlock, Top, Totals, html, markdown, table, text,
};
use crate::clock::Moment;
use crate::record::CountedAction::{self, Block, Pass, WouldBlock};
use crate::record::{Counts, Field, Row};
use crate::state::StateStore;
use crate::state::history::{HOUR, HistoryBatch, HistoryReader, Step};
use crate::time::Timestamp;
use crate::verdict::{IdentityOutcome, Kind, KnownIdentity};
use std::sync::Arc;
use std::time::Duration;

/// 22 Nov 2026, 00:00 UTC.
const NOW: Timestamp = Timestamp(1_795_305_600);

fn counts(requests: &[(Kind, CountedAction, u64)]) -> Counts {
    let mut counts = Counts::default();
    for (kind, action, number) in requests {
        counts.add(*kind, *action, *number);
    }
    counts
}

fn row(id: &str, identity: ClientIdentity, requests: &[(Kind, CountedAction, u64)]) -> CrawlerRow {
    CrawlerRow::new(id, identity, counts(requests))
}

/// With requests in doubt that end some hours after now.
fn in_doubt(mut row: CrawlerRow, hours: i64) -> CrawlerRow {
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
fn mixed() -> Report {
    use ClientIdentity::{Impostor, Unverified, Verified};
    report(vec![
        row("curl", Unverified, &[(Kind::NotACrawler, Pass, 1_000)]),
        row("bingbot", Verified, &[(Kind::Allowed, Pass, 40)]),
        row("googlebot", Impostor, &[(Kind::Impostor, Block, 7)]),
        row(
            "googlebot",
            Verified,
            &[(Kind::Violation, WouldBlock, 2), (Kind::Allowed, Pass, 28)],
        ),
        in_doubt(
            row("ccbot", Unverified, &[(Kind::Unproven, WouldBlock, 5)]),
            6,
        ),
        row(
            "gptbot",
            Unverified,
            &[(Kind::Violation, Block, 9), (Kind::TooFast, WouldBlock, 1)],
        ),
        row("other", Unverified, &[(Kind::Trapped, WouldBlock, 3)]),
        row("adsbot-google", Unverified, &[(Kind::NotBound, Pass, 11)]),
    ])
}

fn numbers(text: &str) -> Vec<u64> {
    let parts = text.split(|sign: char| !sign.is_ascii_digit());
    parts.filter_map(|part| part.parse().ok()).collect()
}

#[test]
fn totals_have_neither_impostors_nor_tools() {
    let report = mixed();
    let expected = Totals {
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
fn rows_stand_by_part_then_identity_then_violations() {
    let rows: Vec<(Part, String)> = mixed()
        .crawlers
        .into_iter()
        .map(|row| (row.part, row.id))
        .collect();
    let expected = [
        (Part::BreaksRules, "googlebot"),
        (Part::BreaksRules, "gptbot"),
        (Part::BreaksRules, "other"),
        (Part::Pretends, "googlebot"),
        (Part::DoesNotCount, "ccbot"),
        (Part::Obeys, "bingbot"),
        (Part::NotJudged, "adsbot-google"),
        (Part::Tool, "curl"),
    ];
    assert_eq!(rows, expected.map(|(part, id)| (part, id.to_owned())));
    let most = |id, broke| {
        row(
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
fn first_sentence_counts_who_breaks_the_rules() {
    assert_eq!(numbers(&mixed().headline), [1, 1, 15, 99]);
    assert_eq!(numbers(&mixed().enforcement), [9, 5 + 3, 3]);
    let one = report(vec![row(
        "googlebot",
        ClientIdentity::Verified,
        &[(Kind::Violation, WouldBlock, 2_000)],
    )]);
    assert_eq!(numbers(&one.headline.replace(',', "")), [1, 2_000, 2_000]);
    assert!(one.headline.contains("crawler breaks "), "{}", one.headline);
    assert_eq!(numbers(&one.enforcement.replace(',', "")), [2_000]);
}

#[test]
fn first_sentence_accuses_nobody_while_nothing_counts() {
    assert!(numbers(&report(Vec::new()).headline).is_empty());
    let obeying = row(
        "bingbot",
        ClientIdentity::Verified,
        &[(Kind::Allowed, Pass, 32)],
    );
    assert_eq!(numbers(&report(vec![obeying.clone()]).headline), [32]);
    let doubtful = row(
        "ccbot",
        ClientIdentity::Unverified,
        &[(Kind::Unproven, WouldBlock, 68)],
    );
    let first_day = report(vec![obeying, in_doubt(doubtful, 24)]);
    assert_eq!(numbers(&first_day.headline), [68, 100]);
    assert_eq!(first_day.totals.against_rules, 0);
    assert_eq!(first_day.part(Part::BreaksRules).count(), 0);
    // Who pretends and who is a tool is no crawler that came.
    let nobody = report(vec![
        row(
            "googlebot",
            ClientIdentity::Impostor,
            &[(Kind::Impostor, Pass, 3)],
        ),
        row(
            "curl",
            ClientIdentity::Unverified,
            &[(Kind::NotACrawler, Pass, 4)],
        ),
    ]);
    assert!(numbers(&nobody.headline).is_empty());
}

#[test]
fn suspected_impostors_pretend_and_break_no_rule() {
    let suspected = row(
        "googlebot",
        ClientIdentity::SuspectedImpostor,
        &[(Kind::Violation, Pass, 3), (Kind::Unproven, Pass, 2)],
    );
    let report = report(vec![suspected]);
    assert_eq!(report.crawlers[0].part, Part::Pretends);
    assert_eq!((report.totals.pretended, report.totals.requests), (5, 0));
    assert_eq!(report.not_counted, []);
}

#[test]
fn a_tool_that_the_rules_judge_is_a_crawler() {
    let judged = [(Kind::NotACrawler, Pass, 4), (Kind::Violation, Block, 1)];
    let report = report(vec![row("wget", ClientIdentity::Unverified, &judged)]);
    assert_eq!(report.crawlers[0].part, Part::BreaksRules);
    assert_eq!((report.totals.requests, report.totals.tools), (5, 0));
}

#[test]
fn an_older_copy_is_obedience_once_its_time_is_over() {
    let older = row(
        "ccbot",
        ClientIdentity::Unverified,
        &[(Kind::StaleCopy, Pass, 6)],
    );
    let waiting = report(vec![in_doubt(older.clone(), 1)]);
    assert_eq!(waiting.crawlers[0].part, Part::DoesNotCount);
    assert_eq!(waiting.totals.not_counted, 6);
    let over = report(vec![in_doubt(older, 0)]);
    assert_eq!(over.crawlers[0].part, Part::Obeys);
    assert_eq!(
        (over.totals.not_counted, over.crawlers[0].counts.kept()),
        (0, 6)
    );
}

/// Counts of each reason, some of which have a column of their own.
fn of_each_reason() -> Counts {
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
fn what_does_not_count_has_its_reason_and_its_end() {
    let counts = of_each_reason();
    let one = CrawlerRow::new("ccbot", ClientIdentity::Unverified, counts);
    let older = row(
        "gptbot",
        ClientIdentity::Unverified,
        &[(Kind::StaleCopy, Pass, 32)],
    );
    let pretending = CrawlerRow::new("googlebot", ClientIdentity::Impostor, counts);
    let report = report(vec![one, in_doubt(older, 5), pretending]);
    let found = report.not_counted.iter();
    let found: Vec<(Reason, u64, Option<i64>)> = found
        .map(|part| {
            let hours = part.until.map(|until| (until.0 - NOW.0) / HOUR);
            (part.reason, part.requests, hours)
        })
        .collect();
    let expected = [
        (Reason::OlderCopy, 1, Some(3)),
        (Reason::OlderCopy, 32, Some(5)),
        (Reason::NotObserved, 2, Some(1)),
        (Reason::PerhapsCached, 4, None),
        (Reason::PeersUnknown, 8, None),
        (Reason::Ambiguous, 16, None),
    ];
    assert_eq!(found, expected);
    assert_eq!(report.not_counted[0].crawlers, ["CCBot"]);
    assert_eq!(report.not_counted[1].crawlers, ["GPTBot"]);
    for part in &report.not_counted {
        let until = part.until.map(Timestamp::for_people).unwrap_or_default();
        assert!(part.sentence.contains(&until), "{}", part.sentence);
    }
}

/// A sample of a request against the rules, some hours before now.
fn sample(site: &str, crawler: &str, identity: KnownIdentity, hours: i64, would: &str) -> Row {
    let fields = [
        (Field::Site, site),
        (Field::Crawler, crawler),
        (Field::Kind, Kind::Violation.name()),
        (Field::Identity, identity.name()),
        (Field::Method, "GET"),
        (Field::Host, "shop.example"),
        (Field::Target, &format!("/cart/{hours}")),
        (Field::Rule, "Disallow: /cart/"),
        (Field::RuleSource, "policies/shop.yaml:7:20"),
        (Field::Would, would),
    ];
    Row::of_texts(Timestamp(NOW.0 - hours * HOUR), &fields)
}

/// A history of two sites in memory.
fn history() -> HistoryReader {
    use KnownIdentity::{Impostor, Unverified, Verified};
    let moment = Moment {
        now: NOW,
        lived: Duration::ZERO,
    };
    let (store, _) = StateStore::open(None, Arc::new(move || moment)).expect("a store");
    let mut batch = HistoryBatch::default();
    let mut add = |hours, site, crawler, identity, requests: &[(Kind, CountedAction, u64)]| {
        let time = Timestamp(NOW.0 - hours * HOUR);
        batch.requests(time, site, crawler, identity, &counts(requests));
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
        batch.sample(sample(site, "gptbot", Unverified, hours, would));
    }
    batch.unlisted(NOW, "PriceHunter", 2);
    batch.identity(NOW, "gptbot", IdentityOutcome::Suspected, 3);
    store.put_history(batch, NOW);
    store.history()
}

fn of_history(site: &str) -> Report {
    Report::from_history(&history(), Period::days(1, NOW), site).expect("read")
}

#[test]
fn a_history_is_added_up_by_crawler_and_by_site() {
    let report = of_history("");
    let expected = Totals {
        requests: 6 + 3 + 10 + 2 + 2 + 6,
        against_rules: 12,
        blocked: 5,
        would_block: 5,
        unknown_bots_would_block: 2,
        pretended: 4,
        tools: 50,
        ..Totals::default()
    };
    assert_eq!(report.totals, expected);
    assert_eq!((report.visitors, report.unclaimed), (60, 6));
    let mut sites = Vec::new();
    for row in &report.sites {
        let counts = &row.counts;
        let would_block = counts.would_refuse();
        sites.push((&*row.site, counts.requests(), counts.broke(), would_block));
    }
    // Enforcement alone blocks no unknown bot, and a tool that broke a rule is a crawler.
    assert_eq!(sites, [("shop", 18, 7, 5), ("blog", 5, 5, 0)]);
    assert_eq!(
        (report.sites[0].pretended, report.sites[1].pretended),
        (4, 0)
    );
    let bars = |of: fn(&super::charts::Bar) -> u64| report.periods.iter().map(of).sum::<u64>();
    assert_eq!(report.periods.len(), 25);
    assert_eq!(bars(|bar| bar.against_rules), 12);
    assert_eq!(bars(|bar| bar.obeyed), 11);
    assert_eq!(bars(|bar| bar.pretended), 4);
    assert_eq!(report.unknown_bots[0].name, "PriceHunter");
}

#[test]
fn a_row_has_its_first_and_its_latest_violation() {
    let gptbot = |report: Report| {
        let mut rows = report.crawlers.into_iter();
        rows.find(|row| row.id == "gptbot").expect("gptbot")
    };
    let hours = |time: Option<Timestamp>| (NOW.0 - time.expect("a time").0) / HOUR;
    let row = gptbot(of_history(""));
    assert_eq!((hours(row.first), hours(row.last)), (2, 1));
    assert_eq!((row.is_blocked, row.suspected), (Some(true), 3));
    let of_shop = of_history("shop");
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
fn a_new_history_is_shown_by_hours() {
    for (days, step, length) in [
        (None, Step::Hour, 25),
        (Some(0), Step::Hour, 25),
        (Some(6), Step::Day, 8),
        (Some(300), Step::Day, 31),
    ] {
        let first_day = days.map(|days| Timestamp(NOW.0 - days * 24 * HOUR));
        let period = Period::fitting(first_day, NOW);
        assert_eq!((period.step, period.len()), (step, length), "{days:?}");
    }
}

/// With texts that clients choose, which carry markup, control characters and lines of their own.
fn hostile() -> Report {
    const TEXT: &str = "<script>'\"&|*_[x](y)\u{1b}[31m\r\nPretend\u{202e}";
    let mut report = mixed();
    report.source = Source::Logs;
    let top = || Top {
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
    report.crawlers[0].example = Some(Example {
        request: TEXT.to_owned(),
        rule: TEXT.to_owned(),
        ..Example::default()
    });
    report.finish(NOW)
}

#[test]
fn texts_of_clients_stay_texts() {
    let report = hostile();
    let page = html(&report).expect("a page");
    assert!(!page.contains("<script") && page.contains("&#60;script&#62;"));
    assert!(!page.contains('\u{1b}') && !page.contains('\u{202e}'));
    let summary = markdown(&report).expect("Markdown");
    // A reader of Markdown sees the text, as each sign of it is escaped.
    assert!(!summary.replace("\\<", "").contains('<'), "{summary}");
    assert!(!summary.contains("*_["), "{summary}");
    for printed in [text(&report), table(&report)] {
        let printed = printed.expect("a text");
        let hidden = |sign: char| sign != '\n' && crate::printable::is_hidden(sign);
        assert!(!printed.contains(hidden), "{printed:?}");
        let is_own = |line: &str| !line.starts_with("Pretend") || line.contains("others");
        assert!(printed.lines().all(is_own), "{printed}");
    }
}

/// The registry's crawlers with the longest names, each with many requests.
fn crowd() -> Report {
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
        let mut row = row(id, ClientIdentity::Unverified, &breaking);
        row.first = Some(NOW);
        row.is_blocked = Some(true);
        crawlers.push(row);
    }
    for id in ids {
        crawlers.push(row(
            id,
            ClientIdentity::Impostor,
            &[(Kind::Impostor, Block, 12_345)],
        ));
        crawlers.push(row(
            id,
            ClientIdentity::Verified,
            &[(Kind::Allowed, Pass, 12_345)],
        ));
    }
    let doubtful = CrawlerRow::new("amazonbot", ClientIdentity::Unverified, of_each_reason());
    crawlers.push(doubtful);
    report(crawlers)
}

#[test]
fn text_has_80_columns_and_few_lines_a_part() {
    let printed = text(&crowd()).expect("a text");
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
fn json_is_read_as_it_was_written() {
    let mut report = crowd();
    report.crawlers[0].to_block = Some(ToBlock {
        place: "policies/shop.yaml:9".to_owned(),
        under: "enforcement.agents".to_owned(),
        line: "GPTBot: enforce".to_owned(),
    });
    for report in [report, of_history(""), hostile(), Report::default()] {
        let written = serde_json::to_string(&report).expect("JSON");
        let read: Report = serde_json::from_str(&written).expect("a report");
        assert_eq!(read, report);
    }
}
