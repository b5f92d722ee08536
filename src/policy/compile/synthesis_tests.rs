//! These tests check details of the robots.txt that is made from a policy: no Allow of the origin reopens a retired
//! path, sitemaps without an absolute URL are left out, and comments above groups are true.

use crate::crawlers::Registry;
use crate::policy::origin::{Origin, OriginFile};
use crate::policy::{Site, compile_with_origin, read};
use crate::robots::{Dialect, File, Reading};
use crate::time::Timestamp;
use crate::yaml::Source;
use std::sync::Arc;

const DAY: i64 = 86_400;

fn site(policy: &str, origin: &str, at: i64) -> Site {
    let source = Source { name: "shop.yaml".into(), text: policy.into() };
    let (policy, findings) = read("shop", &source);
    let policy = policy.unwrap_or_else(|| panic!("{findings:?}"));
    let file = OriginFile::new("http://10.0.0.7:3000/robots.txt", origin.as_bytes());
    compile_with_origin(Arc::new(policy), &Origin::Read(Arc::new(file)), Registry::builtin(), Timestamp(at))
        .expect("small")
}

fn served(policy: &str, origin: &str, at: i64) -> String {
    String::from_utf8_lossy(&site(policy, origin, at).robots_txt.body).into_owned()
}

fn allows(text: &str, token: &str, path: &str) -> bool {
    Reading::new(&File::parse(text.as_bytes()), Dialect::Rfc9309, &[])
        .verdict(token.as_bytes(), path.as_bytes())
        .allowed
}

/// What is retired is disallowed at last, whatever the origin goes on to allow.
#[test]
fn no_origin_allow_defeats_the_disallow_of_a_retired_path() {
    let origin = "User-agent: *\nAllow: /old/catalogue\nAllow: /*.html\nAllow: /o\nDisallow: /tmp/\n\n\
                  User-agent: CCBot\nAllow: /old/*\n\nUser-agent: HouseBot\nDisallow: /h/\n";
    for mode in ["merge", "only"] {
        let policy = format!(
            "robots: {{ origin: {mode} }}\nretire: [{{ paths: [/old/], noindex_from: 1970-01-01, disallow_after: 14d }}]\n"
        );
        let before = served(&policy, origin, 13 * DAY);
        assert!(before.contains("\nAllow: /old/catalogue\n"), "as long as it is to be crawled:\n{before}");
        assert!(allows(&before, "*", "/old/catalogue") && !before.contains("Disallow: /old/"));
        let after = served(&policy, origin, 14 * DAY);
        for token in ["*", "CCBot", "HouseBot"] {
            for path in ["/old/", "/old/catalogue", "/old/page.html"] {
                assert!(!allows(&after, token, path), "{token}, {path}, {mode}:\n{after}");
            }
        }
        assert!(allows(&after, "*", "/o"), "what is elsewhere stays:\n{after}");
        for allow in ["/old/catalogue", "/*.html"] {
            assert!(after.contains(&format!("`Allow: {allow}`, which could defeat `Disallow: /old/`")), "{after}");
        }
    }
}

#[test]
fn a_sitemap_that_is_no_whole_url_is_left_out_and_said() {
    let origin = "User-agent: *\nDisallow: /a/\nSitemap: /sitemap.xml\nSitemap: //cdn.example/s.xml\nSitemap: s.xml\n\
                  Sitemap: http:///s.xml\nSitemap: HTTPS://shop.example/s.xml\nSitemap: /sitemap.xml\n";
    for mode in ["merge", "only"] {
        let text = served(&format!("robots: {{ origin: {mode} }}\n"), origin, 0);
        let sitemaps: Vec<&str> = text.lines().filter(|line| line.starts_with("Sitemap")).collect();
        assert_eq!(sitemaps, ["Sitemap: HTTPS://shop.example/s.xml"], "{text}");
        let said = |url: &str| text.matches(&format!("`Sitemap: {url}`, which is no whole URL")).count();
        assert_eq!(["/sitemap.xml", "//cdn.example/s.xml", "s.xml", "http:///s.xml"].map(said), [1; 4], "{text}");
        assert!(!text.contains("10.0.0.7"), "where the origin is, is nobody's business:\n{text}");
    }
    // A file of thousands is told of in few lines.
    let many: String = (0..5_000).map(|number| format!("Sitemap: /{number}{}\n", "x".repeat(60))).collect();
    let text = served("robots: { origin: merge }\n", &many, 0);
    assert!(text.len() < 10_000 && text.contains("for the same reason: 4980 more sitemaps."), "{}", text.len());
}

/// A comment is for people, who take it at its word.
#[test]
fn only_the_star_group_says_that_it_is_for_unnamed_crawlers() {
    const COMMENT: &str = "# For every crawler that no group names.";
    let policy = "robots: { content_signal: { ai-train: no }, groups: [{ agents: bingbot, disallow: /b/ }] }\n";
    for origin in
        ["User-agent: CCBot\nDisallow: /c/\n", "User-agent: *\nDisallow: /a/\n\nUser-agent: CCBot\nDisallow: /c/\n"]
    {
        let text = served(policy, origin, 0);
        let blocks: Vec<&str> = text.split("\n\n").filter(|block| block.contains(COMMENT)).collect();
        assert_eq!(blocks.len(), 1, "{text}");
        assert!(blocks[0].contains("\nUser-agent: *\n"), "{text}");
        let of_ccbot = text.split("\n\n").find(|block| block.contains("User-agent: CCBot")).expect("a group");
        assert!(of_ccbot.contains("# From the site's policy. And from the origin's robots.txt.\n"), "{text}");
    }
    let text = served(policy, "", 0);
    assert!(text.contains(&format!("{COMMENT}\nUser-agent: *\n")), "{text}");
}
