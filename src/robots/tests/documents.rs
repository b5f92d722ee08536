//! Tests of `RobotsDocument`, the robots.txt that crawlgate makes from a policy: how it is written
//! as text, and which group is found for a crawler's user-agent token.

use super::{document_with, rule_group};
use crate::robots::{ExtensionLine, GroupMatcher, RobotsDocument, RuleGroup, render_robots_txt};
use std::time::Duration;

fn with_delay(delay: Duration) -> RobotsDocument {
    document_with(vec![RuleGroup {
        crawl_delay: Some(delay),
        ..rule_group(&["*"], &["Disallow: /x"])
    }])
}

#[test]
fn document_is_written_in_its_order() {
    let document = RobotsDocument {
        comments: vec![
            "Made by crawlgate.".to_owned(),
            String::new(),
            "Second".to_owned(),
        ],
        groups: vec![
            RuleGroup {
                comments: vec!["For everyone.".to_owned()],
                crawl_delay: Some(Duration::from_secs(10)),
                extensions: vec![ExtensionLine {
                    key: "Content-Signal".to_owned(),
                    value: "ai-train=no".to_owned(),
                }],
                ..rule_group(
                    &["*"],
                    &["Disallow: /cart/", "Allow: /cart/help", "Disallow: /*?s=*$"],
                )
            },
            rule_group(&["GPTBot", "CCBot"], &["Disallow: /"]),
        ],
        extensions: vec![ExtensionLine {
            key: "License".to_owned(),
            value: "https://shop.example/license.xml".to_owned(),
        }],
        sitemaps: vec![
            "https://shop.example/a.xml".to_owned(),
            "https://shop.example/b.xml".to_owned(),
        ],
    };
    let expected = "\
# Made by crawlgate.
#
# Second

License: https://shop.example/license.xml

# For everyone.
User-agent: *
Disallow: /cart/
Allow: /cart/help
Disallow: /*?s=*$
Crawl-delay: 10
Content-Signal: ai-train=no

User-agent: GPTBot
User-agent: CCBot
Disallow: /

Sitemap: https://shop.example/a.xml
Sitemap: https://shop.example/b.xml
";
    assert_eq!(render_robots_txt(&document), expected);
    assert_eq!(
        render_robots_txt(&document),
        render_robots_txt(&document.clone())
    );
}

#[test]
fn empty_document_renders_as_empty_text() {
    assert_eq!(render_robots_txt(&RobotsDocument::default()), "");
    let only = RobotsDocument {
        sitemaps: vec!["https://a.example/s".to_owned()],
        ..RobotsDocument::default()
    };
    assert_eq!(render_robots_txt(&only), "Sitemap: https://a.example/s\n");
}

#[test]
fn group_without_rules_gets_one_before_its_crawl_delay() {
    let document = document_with(vec![
        RuleGroup {
            crawl_delay: Some(Duration::from_secs(5)),
            ..rule_group(&["msnbot"], &[])
        },
        rule_group(&["Baiduspider"], &["Disallow: /"]),
    ]);
    assert_eq!(
        render_robots_txt(&document),
        "User-agent: msnbot\nAllow: /\nCrawl-delay: 5\n\nUser-agent: Baiduspider\nDisallow: /\n"
    );
}

#[test]
fn empty_pattern_is_written_without_a_trailing_blank() {
    assert_eq!(
        render_robots_txt(&document_with(vec![rule_group(&["*"], &["Disallow:"])])),
        "User-agent: *\nDisallow:\n"
    );
}

#[test]
fn group_without_agents_is_left_out() {
    let document = document_with(vec![
        rule_group(&["a"], &["Allow: /x"]),
        rule_group(&[], &["Disallow: /"]),
        rule_group(&["", " \n"], &["Disallow: /"]),
    ]);
    assert_eq!(render_robots_txt(&document), "User-agent: a\nAllow: /x\n");
}

#[test]
fn crawl_delay_is_in_seconds_with_the_decimals_it_needs() {
    for (millis, written) in [
        (500, "0.5"),
        (10_000, "10"),
        (1_250, "1.25"),
        (100_000, "100"),
        (0, "0"),
        (1, "0.001"),
    ] {
        let text = render_robots_txt(&with_delay(Duration::from_millis(millis)));
        assert!(
            text.ends_with(&format!("\nCrawl-delay: {written}\n")),
            "{text}"
        );
    }
}

#[test]
fn sitemap_is_written_without_its_fragment() {
    let sitemaps = ["#", " ", "https://a.example/s#x", "https://a.example/a b"]
        .map(str::to_owned)
        .to_vec();
    let text = render_robots_txt(&RobotsDocument {
        sitemaps,
        ..RobotsDocument::default()
    });
    assert_eq!(
        text,
        "Sitemap: https://a.example/s\nSitemap: https://a.example/a%20b\n"
    );
}

#[test]
fn text_cannot_inject_lines() {
    let break_out =
        "x\r\nDisallow: /\rAllow: /y\u{0}\u{b}\u{c}\u{1c}\u{85}\u{2028}Disallow: /\u{2029}z#w";
    let document = RobotsDocument {
        comments: vec![break_out.to_owned()],
        groups: vec![RuleGroup {
            comments: vec![break_out.to_owned()],
            ..rule_group(&[break_out], &["Allow: /ok"])
        }],
        sitemaps: vec![format!("https://a.example/{break_out}")],
        extensions: vec![
            ExtensionLine {
                key: break_out.to_owned(),
                value: break_out.to_owned(),
            },
            ExtensionLine {
                key: "Disallow".to_owned(),
                value: "/".to_owned(),
            },
            ExtensionLine {
                key: "User-agent".to_owned(),
                value: "*".to_owned(),
            },
        ],
    };
    let text = render_robots_txt(&document);
    assert!(
        text.chars()
            .all(|c| c == '\n' || !(c.is_control() || matches!(c, '\u{2028}' | '\u{2029}'))),
        "{text:?}"
    );
    for line in text.lines().filter(|line| !line.is_empty()) {
        let known = [
            "#",
            "User-agent: x_",
            "Allow: /ok",
            "Sitemap: https://a.example/x%0D%0ADisallow:%20/%0DAllow",
            "x__Disallow_ /",
        ];
        assert!(
            known.iter().any(|known| line.starts_with(known)),
            "{line:?}"
        );
    }
    assert_eq!(text.matches("\nAllow: ").count(), 1);
    assert_eq!(text.matches("\nDisallow: ").count(), 0);
}

#[test]
fn token_is_found_without_regard_to_case() {
    let matcher = GroupMatcher::new(&document_with(vec![
        rule_group(&["Googlebot", "Bingbot"], &["Disallow: /g"]),
        rule_group(&["*"], &["Disallow: /s"]),
        rule_group(
            &["GOOGLEBOT", "Googlebot-Image", "MJ12bot"],
            &["Disallow: /late"],
        ),
        rule_group(&["*"], &[]),
    ]));
    assert_eq!(matcher.named_group("googleBOT"), Some(0));
    assert_eq!(matcher.named_group("BINGBOT"), Some(0));
    assert_eq!(matcher.named_group("googlebot-image"), Some(2));
    assert_eq!(matcher.named_group("mj12BOT"), Some(2));
    for unknown in [
        "Google",
        "Googlebot-",
        "Googlebot-Images",
        "",
        "*",
        "ſ",
        "googlebot\u{0}",
    ] {
        assert_eq!(matcher.named_group(unknown), None, "{unknown}");
    }
    assert_eq!(matcher.star_group(), Some(1));
    assert_eq!(matcher.rules(0).find(b"/g/x"), Some(0));
    assert_eq!(matcher.rules(1).find(b"/g/x"), None);
    assert_eq!(matcher.rules(0).rules()[0].pattern.as_str(), "/g");
}

#[test]
fn document_without_a_star_group_has_none() {
    let matcher = GroupMatcher::new(&document_with(vec![rule_group(&["a"], &[])]));
    assert_eq!(
        (matcher.star_group(), matcher.named_group("A")),
        (None, Some(0))
    );
}
