//! Tests of the lints. Each lint reports the mistake that it is about, at the right position, and
//! reports nothing about a correct policy that looks similar.

use super::{LINTS, lint_file};
use crate::crawlers::Registry;
use crate::policy::origin::OriginRobotsAvailability;
use crate::policy::site::Site;
use crate::policy::{compile_with_origin, read};
use crate::robots::RobotsFile;
use crate::time::Timestamp;
use crate::yaml::{Diagnostics, Severity, SourceFile};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The id and line of each finding about a robots.txt.
fn lint_text(text: &[u8], host: Option<&str>) -> Vec<(&'static str, u32)> {
    let found = lint_file(
        "robots.txt",
        &RobotsFile::parse(text),
        host,
        Registry::builtin(),
    );
    found
        .diagnostics
        .items
        .iter()
        .map(|item| (item.id, item.span.map_or(0, |span| span.line)))
        .collect()
}

fn lint_policy(text: &str) -> Vec<(&'static str, u32)> {
    let found = policy_findings(text);
    found
        .items
        .iter()
        .map(|item| (item.id, item.span.map_or(0, |span| span.line)))
        .collect()
}

fn policy_findings(text: &str) -> Diagnostics {
    compile_and_lint(text).1
}

/// Compiles a policy, and returns the findings of the lints.
pub(super) fn compile_and_lint(text: &str) -> (Site, Diagnostics) {
    let source = SourceFile {
        name: "shop.yaml".into(),
        text: text.into(),
    };
    let (policy, found) = read("shop", &source);
    let policy = policy.unwrap_or_else(|| panic!("{text}: {found:?}"));
    let now = Timestamp::parse("2026-11-21").expect("a day");
    let site = compile_with_origin(
        Arc::new(policy),
        &OriginRobotsAvailability::Missing,
        Registry::builtin(),
        now,
    )
    .expect("compiles");
    let mut found = Diagnostics::default();
    super::lint(&site, Registry::builtin(), &mut found);
    (site, found)
}

/// For each lint of files: its id, the line of the finding, a file with the mistake, and a similar
/// file without it.
#[rustfmt::skip]
const FILES: &[(&str, u32, &str, &str)] = &[
    ("group-drops-star-rules", 3, "User-agent: *\nDisallow: /a\nUser-agent: Bingbot\nCrawl-delay: 10\n",
        "User-agent: *\nDisallow: /a\nUser-agent: Bingbot\nDisallow:\nUser-agent: AdsBot-Google\nDisallow: /b\n"),
    ("group-drops-star-rules", 3, "User-agent: *\nDisallow: /a*\nUser-agent: Bingbot\nDisallow: /b\n",
        "User-agent: *\nDisallow: /\nUser-agent: Bingbot\nDisallow: /b\n"),
    ("group-drops-star-rules", 3, "User-agent: *\nDisallow: /a\nUser-agent: Bingbot\nDisallow: /b\n",
        "User-agent: *\nDisallow: private\nDisallow: /a\nUser-agent: Bingbot\nDisallow: /a\n"),
    ("group-drops-star-rules", 3, "User-agent: *\nDisallow: /a\nUser-agent: Twitterbot\nAllow: /y\n",
        "User-agent: *\nDisallow: /a\nUser-agent: Twitterbot\nAllow: /\nUser-agent: Bingbot\nAllow: /a\n"),
    ("unknown-token", 1, "User-agent: Googelbot\nDisallow: /a\n",
        "User-agent: OurOwnBot\nUser-agent: WebZIP\nUser-agent: Roverbot\nUser-agent: Devil\nUser-agent: CBot\nDisallow: /a\n"),
    ("token-matches-no-request", 1, "User-agent: Chrome\nDisallow: /a\n", "User-agent: Chrome-Lighthouse\nDisallow: /a\n"),
    ("generic-token", 1, "User-agent: Spider\nDisallow: /a\n", "User-agent: otherspider\nDisallow: /a\n"),
    ("dialects-disagree", 2, "User-agent: *\nDisallow: /%2A\n", "User-agent: *\nDisallow: /*/a\n"),
    ("dialects-disagree", 2, "User-agent: *\nDisallow: /x%24y\n", "User-agent: *\nDisallow: /x$y\n"),
    ("dialects-disagree", 2, "User-agent: *\nDisallow: *%61\n", "User-agent: *\nDisallow: *a\n"),
    ("dialects-disagree", 2, "User-agent: *\nDisallow: /wiki/%7E\n",
        "User-agent: *\nDisallow: /wiki/Löschkandidaten/\nDisallow: /a%c3%a4/b\n"),
    ("short-token", 1, "User-agent:\nDisallow: /a\n", "User-agent: *\nDisallow: /a\n"),
    ("short-token", 1, "User-agent: ia\nDisallow: /a\n", "User-agent: ice\nDisallow: /a\n"),
    ("star-ignored", 2, "User-agent: *\nDisallow: /\n", "User-agent: *\nDisallow: /\nAllow: /$\n"),
    ("duplicate-rule", 3, "User-agent: *\nDisallow: /a\nDisallow: /%61\n", "User-agent: *\nDisallow: /a\nDisallow: /b\n"),
    ("every-query", 2, "User-agent: *\nDisallow: /*?\n", "User-agent: *\nDisallow: /*?a=\nAllow: /*?\n"),
    ("every-query", 2, "User-agent: *\nDisallow: *?*\n", "User-agent: *\nDisallow: /search?\n"),
    ("not-a-token", 1, "User-agent: *\u{a0}\nDisallow: /\n", "User-agent: * \nDisallow: /a\n"),
    ("not-a-token", 1, "User-agent: GPTBot\u{2028}\nDisallow: /\n", "User-agent: GPTBot \nDisallow: /\n"),
    ("generic-token", 1, "User-agent: Mozilla\nDisallow: /a\n", "User-agent: Mozilla-Tabstack\nDisallow: /a\n"),
    ("unreachable-rule", 2, "User-agent: *\nDisallow: /a\nAllow: /a\n", "User-agent: *\nDisallow: /a\nAllow: /a/\n"),
    ("path-without-slash", 2, "User-agent: *\nDisallow: private\n", "User-agent: *\nDisallow: *private\n"),
    ("private-path", 2, "User-agent: *\nDisallow: /backup/\n", "User-agent: *\nDisallow: /backup-guide/\n"),
    ("dialects-disagree", 2, "User-agent: *\nDisallow: /%7Euser\n", "User-agent: *\nDisallow: /~user\n"),
    ("dialects-disagree", 2, "User-agent: *\nAllow: /d/index.html\nDisallow: /d\n",
        "User-agent: *\nAllow: /d/index.html\nAllow: /d/$\nDisallow: /d\n"),
    ("sitemap-relative", 3, "User-agent: *\nDisallow: /a\nSitemap: /s.xml\n",
        "User-agent: *\nDisallow: /a\nSitemap: https://shop.example/s.xml\n"),
    ("sitemap-disallowed", 3, "User-agent: *\nDisallow: /a\nSitemap: https://shop.example/a/s.xml\n",
        "User-agent: *\nDisallow: /a\nAllow: /a/s.xml\nSitemap: https://shop.example/a/s.xml\n"),
    ("sitemap-other-host", 1, "Sitemap: https://shop-example.cdn.example/s.xml\n",
        "Sitemap: https://www.shop.example/s.xml\nSitemap: https://sitemaps.shop.example/s.xml\n"),
    ("sitemap-other-host", 1, "Sitemap: https://other.example/s.xml\n", "Sitemap: https://SHOP.example:443/s.xml\n"),
    ("site-closed", 0, "User-agent: *\nDisallow: /\n", "User-agent: *\nDisallow: /\nUser-agent: Googlebot\nDisallow: /a\n"),
    ("site-closed", 0, "User-agent: Bingbot\nDisallow: /a\nUser-agent: Googlebot\nDisallow: /*\n",
        "User-agent: *\nDisallow: /\nAllow: /shop\n"),
    ("site-closed", 0, "User-agent: *\nDisallow: /\nAllow: /robots.txt$\nAllow: /ads.txt\nAllow: /.well-known/acme-challenge/\nAllow: /favicon.ico\nAllow: /sitemap_index.xml\n",
        "User-agent: *\nDisallow: /\nAllow: /robots.txt\nAllow: /sitemap/\n"),
    ("site-closed", 0, "User-agent: *\nCrawl-delay: 120\nUser-agent: 008\nDisallow: /\n",
        "User-agent: *\nDisallow: /*/\nDisallow: /$\n"),
    ("site-partly-closed", 2, "User-agent: *\nDisallow: /$\n", "User-agent: *\nDisallow: /*/\n"),
    ("site-partly-closed", 2, "User-agent: *\nDisallow: /\nAllow: /blog/\n", "User-agent: *\nDisallow: /blog/\n"),
    ("site-partly-closed", 2, "User-agent: *\nDisallow: *\nAllow: /a\n", "User-agent: *\nDisallow: *\nAllow: *\n"),
    ("site-partly-closed", 2, "User-agent: bingbot\nDisallow: /\nUser-agent: *\nDisallow: /admin/\n",
        "User-agent: DuckDuckBot\nDisallow: /\nUser-agent: *\nDisallow: /admin/\n"),
    ("empty-file", 0, "# User-agent: *\n# Disallow: /\n", "User-agent: *\nDisallow:\n"),
    ("empty-file", 0, "Sitemap: https://shop.example/s.xml\n", "User-agent: *\nAllow: /\nSitemap: https://shop.example/s.xml\n"),
    ("crawl-delay-ignored", 3, "User-agent: Googlebot\nDisallow: /a\nCrawl-delay: 10\n",
        "User-agent: Bingbot\nUser-agent: Googlebot\nDisallow: /a\nCrawl-delay: 10\n"),
    ("not-a-token", 1, "User-agent: \"*\"\nDisallow: /\n", "User-agent: *\nDisallow: /a\n"),
    ("not-a-token", 1, "User-agent: *bot*\nDisallow: /\n", "User-agent: * bot\nDisallow: /a\n"),
    ("not-a-token", 1, "User-agent: ChatGPT\nDisallow: /a\n", "User-agent: ChatGPT-User\nUser-agent: chatbot\nDisallow: /a\n"),
    ("not-a-token", 1, "User-agent: OpenAI\nDisallow: /a\n", "User-agent: OAI-SearchBot\nUser-agent: Yandex\nDisallow: /a\n"),
    ("unreadable-signal", 2, "User-agent: *\nContent-Signal: search=yes, ai-train=maybe\nAllow: /\n",
        "User-agent: *\nContent-Signal: Search=YES, AI-train = no, use=reference\nAllow: /\n"),
    ("unreadable-signal", 2, "User-agent: *\nContent-Signal: ai-train:no\nAllow: /\n",
        "User-agent: *\nContent-Signal: ai-train=no,\nAllow: /\n"),
    ("unreadable-signal", 2, "User-agent: *\nContent-Usage: train-ai=no\nAllow: /\n",
        "User-agent: *\nContent-Usage: train-ai=n;q=1\nContent-Usage: /a/ search=y, ai-use=n\nAllow: /\n"),
    ("unreadable-signal", 2, "User-agent: *\nContent-Usage: Train-AI=n\nAllow: /\n", "User-agent: *\nContent-Signal:search=no\nAllow: /\n"),
    ("unreadable-signal", 2, "User-agent: *\nContent-Signal: ai-training:no\nAllow: /\n",
        "User-agent: *\nContent-Signal: use=full\nAllow: /\n"),
    ("unreadable-signal", 2, "User-agent: *\nContent-Signal: train-ai=no\nAllow: /\n",
        "User-agent: *\nContent-Signal: ai-train=no\nAllow: /\n"),
    ("unreadable-signal", 2, "User-agent: *\nContent-Usage: ai-train=n\nAllow: /\n",
        "User-agent: *\nContent-Usage: train-ai=n\nAllow: /\n"),
    ("hash-in-path", 2, "User-agent: *\nDisallow: /a#b\n", "User-agent: *\nDisallow: /a # b\nDisallow: /c# d\nDisallow: /d #e\n"),
    ("open-ended-path", 2, "User-agent: *\nDisallow: /shop\n",
        "User-agent: *\nDisallow: /shop/\nDisallow: /a\nAllow: /ab\nDisallow: /c$\nDisallow: /d.html\nDisallow: /e?\nAllow: /f\n"),
    ("resources-closed", 2, "User-agent: *\nDisallow: /_next/static/\n", "User-agent: *\nDisallow: /_next/\nAllow: /_next/static/\n"),
    ("resources-closed", 2, "User-agent: *\nDisallow: /_nuxt/\n", "User-agent: *\nDisallow: /nuxt/\n"),
    ("resources-closed", 2, "User-agent: *\nDisallow: /pub/static/\n", "User-agent: *\nDisallow: /pub/errors/\n"),
    ("resources-closed", 2, "User-agent: *\nDisallow: /wp-content/uploads/\n",
        "User-agent: *\nDisallow: /wp-content/\nAllow: /wp-content/themes/\nAllow: /wp-content/plugins/\nAllow: /wp-content/uploads/\n"),
    ("several-paths", 2, "User-agent: *\nDisallow: /i,/j\n", "User-agent: *\nDisallow: /i,j\nDisallow: /%20/\n"),
    ("several-paths", 2, "User-agent: *\nDisallow: /i/ /j/\n", "User-agent: *\nDisallow: /i%20/\n"),
    ("several-paths", 2, "User-agent: *\nDisallow: /i, /j\n", "User-agent: *\nDisallow: /i,\n"),
    ("regular-expression", 2, "User-agent: *\nDisallow: /.*\\.php\n", "User-agent: *\nDisallow: /.*\nDisallow: /*.php$\n"),
    ("regular-expression", 2, "User-agent: *\nDisallow: /(en|de)/shop\n",
        "User-agent: *\nDisallow: /(en)/\nDisallow: /a[]=\nDisallow: ^/a|b\n"),
    ("regular-expression", 2, "User-agent: *\nDisallow: /*.pdf$/\n", "User-agent: *\nDisallow: /*.pdf$\nDisallow: /$\n"),
    ("resources-closed", 2, "User-agent: *\nDisallow: /js/\n",
        "User-agent: *\nDisallow: /js/\nAllow: /js/*.js$\nDisallow: /departments/images/\nDisallow: /track.gif\n"),
    ("resources-closed", 2, "User-agent: Googlebot\nDisallow: /*.css$\nUser-agent: *\nDisallow: /a\n",
        "User-agent: *\nDisallow: /wp-includes/\nUser-agent: Googlebot\nDisallow: /a\n"),
    ("resources-closed", 2, "User-agent: *\nDisallow: /wp-content/plugins/\n",
        "User-agent: *\nDisallow: /wp-content/cache/\nDisallow: /media/\nDisallow: /templates/\nDisallow: /distribution/\n"),
    ("resources-closed", 2, "User-agent: *\nDisallow: /wp-content/\nAllow: /wp-content/uploads/\n",
        "User-agent: *\nDisallow: /wp\nDisallow: /wp-content/themes/shop/private/\n"),
    ("resources-closed", 2, "User-agent: *\nDisallow: /WP-Content\n", "User-agent: *\nDisallow: /wp-admin/\n"),
    ("resources-closed", 2, "User-agent: *\nDisallow: /wp-\n", "User-agent: *\nDisallow: /wp-\nAllow: /wp-content/\nAllow: /wp-includes/\n"),
    ("resources-closed", 2, "User-agent: *\nDisallow: /dist/\n", "User-agent: *\nDisallow: /blog/dist/\n"),
    ("resources-closed", 2, "User-agent: *\nDisallow: /*.JS$\n", "User-agent: *\nDisallow: /*.JSON$\n"),
    ("resources-closed", 2, "User-agent: *\nDisallow: /*.css$\nAllow: /skin/*.css$\n", "User-agent: *\nDisallow: /*.css?v=\n"),
    ("missing-colon", 1, "Sitemap https://shop.example/s.xml\n", "Sitemap : https://shop.example/s.xml\n"),
    ("several-agents", 1, "User-agent: Googlebot, Bingbot\nDisallow: /a\n",
        "User-agent: Googlebot/2.1 (compatible; Bingbot)\nUser-agent: Sogou web spider\nDisallow: /a\n"),
    ("several-agents", 1, "User-agent: BadBot, EvilBot\nDisallow: /a\n",
        "User-agent: BadBot/1.0 (bad, like Evil)\nDisallow: /a\n"),
    ("several-agents", 1, "User-agent: googlebot BINGBOT\nDisallow: /a\n",
        "User-agent: Googlebot # Bingbot\nUser-agent: Googlebot Mozilla\nUser-agent: Bingbot,\nDisallow: /a\n"),
    ("glued-group", 3, "User-agent: msnbot\nCrawl-delay: 10\nUser-agent: Baiduspider\nDisallow: /\n",
        "User-agent: msnbot\nCrawl-delay: 10\nAllow: /\nUser-agent: Baiduspider\nDisallow: /\n"),
    ("glued-group", 3, "User-agent: *\nCrawl-delay: 5\nUser-agent: Bingbot\nDisallow: /a\n",
        "User-agent: *\nCrawl-delay: 5\nUser-agent: *\nDisallow: /a\n"),
    ("glued-group", 3, "User-agent: bingbot\n\nUser-agent: GPTBot\nDisallow: /\n",
        "User-agent: bingbot\nAllow: /\n\nUser-agent: GPTBot\nDisallow: /\n"),
    ("glued-group", 3, "User-agent: *\n# No training.\nUser-agent: GPTBot\nDisallow: /a/\n",
        "User-agent: *\n# Search.\nUser-agent: Googlebot\nDisallow: /a/\n"),
    ("glued-group", 3, "User-agent: bingbot\n# No training.\nUser-agent: GPTBot\nDisallow: /\n",
        "User-agent: CCBot\n# No training.\nUser-agent: GPTBot # by OpenAI\nDisallow: /\n"),
    ("glued-group", 3, "User-agent: bingbot\nSitemap: https://shop.example/s.xml\nUser-agent: GPTBot\nDisallow: /\n",
        "User-agent: bingbot\nUser-agent: GPTBot\nSitemap: https://shop.example/s.xml\nDisallow: /a\n"),
    ("glued-group", 3, "User-agent: bingbot\nwelcome to all\nUser-agent: GPTBot\nDisallow: /\n",
        "User-agent: bingbot\nDisallow:\nwelcome to all\nUser-agent: GPTBot\nDisallow: /\n"),
    ("rule-outside-group", 1, "Disallow: /a\nUser-agent: *\nDisallow: /b\n", "Sitemap: https://shop.example/s.xml\nUser-agent: *\nDisallow: /b\n"),
    ("misspelt-key", 2, "User-agent: *\nDisalow: /a\n", "User-agent: *\ndisallow: /a\n"),
    ("misspelt-key", 2, "User-agent: *\nDisallowed: /a\n", "User-agent: *\nDisallow : /a\n"),
    ("missing-colon", 2, "User-agent: *\nDisallow /a\n", "User-agent: *\nDisallow:/a\n"),
    ("no-record", 2, "User-agent: *\nKeep out of here\nDisallow: /a\n", "User-agent: *\n# Keep out of here\nDisallow: /a\n"),
    ("retired-token", 1, "User-agent: anthropic-ai\nDisallow: /\n", "User-agent: anthropic-ai\nUser-agent: ClaudeBot\nDisallow: /\n"),
    ("retired-directive", 3, "User-agent: *\nDisallow: /a\nNoindex: /b\n", "User-agent: *\nDisallow: /a\nCrawl-delay: 1\n"),
    ("unknown-directive", 3, "User-agent: *\nDisallow: /a\nUnicorn: /b\n", "User-agent: *\nDisallow: /a\nContent-Signal: search=yes\n"),
    ("unreadable-bytes", 2, "User-agent: *\n\u{a0}Disallow: /a\n", "User-agent: *\nDisallow: /a\n"),
    ("unreadable-bytes", 2, "User-agent: *\nDisallow: /a\u{a0}\n", "User-agent: *\nDisallow: /a\u{200c}b\n"),
    ("unreadable-bytes", 2, "User-agent: *\nDisallow: /a\0b\n", "User-agent: *\nDisallow: /a%00b\n"),
    ("unreadable-bytes", 2, "User-agent: *\n\u{feff}Disallow: /a\n", "\u{feff}User-agent: *\nDisallow: /a\n"),
    ("not-a-robots-txt", 0, "<!DOCTYPE html>\n<html></html>\n", "# <html>\n"),
    ("not-a-robots-txt", 0, "<script>\nUser-agent: *\n</script>\n", "<script>\nUser-agent: *\nDisallow: /a\n"),
];

/// The same for the lints of policies.
#[rustfmt::skip]
const POLICIES: &[(&str, u32, &str, &str)] = &[
    ("site-disallowed", 4, "robots:\n  origin: replace\n  groups:\n    - { agents: \"*\", disallow: / }\n",
        "acknowledge: site_disallowed\nrobots:\n  origin: replace\n  groups:\n    - { agents: \"*\", disallow: / }\n"),
    ("site-disallowed", 1, "robots: { origin: replace, groups: [{ agents: Googlebot, disallow: ['*'], allow: /robots.txt }] }\n",
        "robots: { origin: replace, groups: [{ agents: '*', disallow: /, allow: /blog/ }] }\n"),
    ("site-disallowed", 1, "robots: { origin: replace, groups: [{ agents: '*', disallow: /, allow: /wp-admin/admin-ajax.php }] }\n",
        "robots: { origin: replace, groups: [{ agents: '*', disallow: /, allow: /view.php }] }\n"),
    ("site-partly-closed", 1, "robots: { origin: replace, groups: [{ agents: '*', disallow: /, allow: /blog/ }] }\n",
        "robots: { origin: replace, groups: [{ agents: '*', disallow: /, allow: /blog/ }] }\nacknowledge: site_disallowed\n"),
    ("site-partly-closed", 1, "robots: { origin: replace, groups: [{ agents: bingbot, disallow: / }] }\n",
        "robots: { origin: replace, groups: [{ agents: bingbot, disallow: / }] }\nenvironment: staging\n"),
    ("site-noindex", 3, "robots: { origin: replace }\nindexing:\n  - { tag: 'unavailable_after: 2020-01-01' }\n",
        "robots: { origin: replace }\nindexing:\n  - { tag: 'unavailable_after: 2099-01-01' }\n"),
    ("site-noindex", 3, "robots: { origin: replace }\nindexing:\n  - { tag: noindex }\n",
        "robots: { origin: replace }\nindexing:\n  - { types: application/pdf, tag: noindex }\n"),
    ("long-pause", 2, "robots: { origin: replace }\npause: { from: 2026-12-01, until: 2026-12-04 }\n",
        "robots: { origin: replace }\npause: { from: 2026-12-01, until: 2026-12-02 }\n"),
    ("past-pause", 2, "robots: { origin: replace }\npause: { from: 2026-11-19, until: 2026-11-20 }\n",
        "robots: { origin: replace }\npause: { from: 2026-11-20, until: 2026-11-22 }\n"),
    ("past-pause", 2, "robots: { origin: replace }\npause: { until: 2026-11-21 }\n",
        "robots: { origin: replace }\npause: { from: 2026-11-19 }\n"),
    ("pause-without-from", 2, "robots: { origin: replace }\npause: { until: 2026-12-04 }\n",
        "robots: { origin: replace }\npause: { from: 2026-12-03, until: 2026-12-04 }\n"),
    ("blocks-people", 2, "robots: { origin: replace }\ncrawlers: [{ token: Insta, user_agent: Instagram }]\n",
        "robots: { origin: replace }\ncrawlers: [{ token: Insta, user_agent: Instagram }]\nacknowledge: blocks_people\n"),
    ("blocks-people", 2, "robots: { origin: replace }\ncrawlers: { token: Googlebot, user_agent: CriOS }\n",
        "robots: { origin: replace }\ncrawlers: { token: Googlebot, user_agent: CriOSReader }\n"),
    ("token-matches-no-request", 4, "robots:\n  origin: replace\n  groups:\n    - { agents: CriOS, disallow: /a }\n",
        "robots:\n  origin: replace\n  groups:\n    - { agents: CriOS, disallow: /a }\ncrawlers: { token: CriOS, user_agent: CriOS }\n"),
    ("token-matches-no-request", 2, "robots: { origin: replace }\nenforcement: { agents: { CriOS: enforce } }\n",
        "robots: { origin: replace }\nenforcement: { agents: { CriOSBot: enforce } }\n"),
    ("token-matches-no-request", 2, "robots: { origin: replace }\nenforcement: { agents: { ChatGPT Agent: enforce } }\n",
        "robots: { origin: replace }\nenforcement: { agents: { Google-Agent: enforce } }\n"),
    ("token-matches-no-request", 4, "robots:\n  origin: replace\n  groups:\n    - { agents: CloudflareBrowserRenderingCrawler, disallow: /a }\n",
        "robots:\n  origin: replace\n  groups:\n    - { agents: CloudflareBrowserRenderingCrawler, disallow: /a }\ncrawlers: { token: CloudflareBrowserRenderingCrawler, user_agent: our-renderer }\n"),
    ("token-matches-no-request", 2, "robots: { origin: replace }\ncrawlers: { token: Cursor }\n",
        "robots: { origin: replace }\ncrawlers: { token: Cursor, user_agent: cursor-reader }\n"),
    ("generic-token", 4, "robots:\n  origin: replace\n  groups:\n    - { agents: bot, disallow: /a }\n",
        "robots:\n  origin: replace\n  groups:\n    - { agents: otherbot, disallow: /a }\n"),
    ("generic-token", 2, "robots: { origin: replace }\nenforcement: { agents: { Bot: enforce } }\n",
        "robots: { origin: replace }\nenforcement: { purposes: { other: enforce } }\n"),
    ("generic-token", 2, "robots: { origin: replace }\nenforcement: { exempt: crawler }\n",
        "robots: { origin: replace }\nenforcement: { exempt: OurCrawler }\n"),
    ("generic-token", 2, "robots: { origin: replace }\ncrawlers: { token: scraper, user_agent: PriceReader }\n",
        "robots: { origin: replace }\ncrawlers: { token: PriceReader }\n"),
    ("unknown-token", 2, "robots: { origin: replace }\ntests: [{ agent: Gogglebot, path: /, expect: allowed }]\n",
        "robots: { origin: replace }\ntests: [{ agent: Googlebot, path: /, expect: allowed }, { agent: Mozilla/5.0 (compatible; Googlebot/2.1), path: /, expect: allowed }]\n"),
    ("noindex-unseen", 5, "robots:\n  origin: replace\n  groups: [{ agents: \"*\", disallow: /a }]\nindexing:\n  - { paths: /a/, tag: noindex }\n",
        "robots:\n  origin: replace\n  groups: [{ agents: \"*\", disallow: /b }]\nindexing:\n  - { paths: /a/, tag: noindex }\n"),
    ("group-drops-star-rules", 5, "robots:\n  origin: replace\n  groups:\n    - { agents: \"*\", disallow: /a }\n    - { agents: Bingbot, disallow: /b }\n",
        "robots:\n  origin: replace\n  groups:\n    - { agents: \"*\", disallow: /a }\n    - { agents: Bingbot, extends: \"*\", disallow: /b }\n"),
    ("permanent-error", 0, "robots: { origin: replace }\nenforcement: { mode: enforce, disallowed: 503 }\n",
        "robots: { origin: replace }\nenforcement: { mode: enforce, disallowed: 410 }\n"),
    ("not-a-token", 4, "robots:\n  origin: replace\n  groups:\n    - { agents: GPT-Bot, disallow: /a }\n",
        "robots:\n  origin: replace\n  groups:\n    - { agents: GPTBot, disallow: /a }\n"),
    ("not-a-token", 4, "robots:\n  origin: replace\n  groups:\n    - { agents: archive-org-bot, disallow: /a }\n",
        "robots:\n  origin: replace\n  groups:\n    - { agents: bingbot, disallow: /a }\n"),
    ("unknown-crawler", 2, "robots: { origin: replace }\nenforcement: { agents: { OurOwnBot: { mode: enforce } } }\n",
        "robots: { origin: replace }\nenforcement: { agents: { GPTBot: { mode: enforce } } }\n"),
    ("unverified-refused", 2, "robots: { origin: replace }\nenforcement: { unverified: refuse }\n",
        "robots: { origin: replace }\nenforcement: { agents: { OurBot: { unverified: refuse } } }\ncrawlers: { token: OurBot, networks: 10.0.0.0/8 }\n"),
    ("unknown-token", 4, "robots:\n  origin: replace\n  groups:\n    - { agents: Googelbot, disallow: /a }\n",
        "robots:\n  origin: replace\n  groups:\n    - { agents: [Googlebot, Applebot], disallow: /a }\n"),
    ("sitemap-other-host", 3, "robots:\n  origin: replace\n  sitemaps: https://10.0.0.5/s.xml\n",
        "robots:\n  origin: replace\n  sitemaps: https://shop.example/s.xml\n"),
    ("sitemap-other-host", 4, "hosts: shop.example\nrobots:\n  origin: replace\n  sitemaps: https://other.example/s.xml\n",
        "hosts: \"*.shop.example\"\nrobots:\n  origin: replace\n  sitemaps: https://www.shop.example/s.xml\n"),
    ("signals-disagree", 4, "robots:\n  origin: replace\n  content_signal: { ai-train: no }\n  content_usage: { train-ai: yes }\n",
        "robots:\n  origin: replace\n  content_signal: { ai-train: no }\n  content_usage: [{ train-ai: no }, { paths: /open/, train-ai: yes }]\n"),
    ("signals-disagree", 2, "robots: { origin: replace, content_signal: { ai-train: no } }\ntdm: { reservation: no }\n",
        "robots: { origin: replace, content_signal: { ai-train: no } }\ntdm: { reservation: yes }\n"),
    ("signals-disagree", 2, "robots: { origin: replace, content_signal: { ai-train: no } }\ntdm: [{ paths: /press/, reservation: no }, { reservation: yes }]\n",
        "robots: { origin: replace, content_signal: { ai-train: yes } }\ntdm: [{ paths: /press/, reservation: no }]\n"),
    ("signals-disagree", 2, "robots: { origin: replace, content_usage: { train-ai: no } }\ntdm: [{ paths: /press/, reservation: no }, { reservation: yes }]\n",
        "robots: { origin: replace, content_usage: [{ train-ai: no }, { paths: /press/, train-ai: yes }] }\ntdm: [{ paths: /press/, reservation: no }, { reservation: yes }]\n"),
    ("signals-disagree", 2, "robots: { origin: replace, content_usage: [{ train-ai: no }, { paths: /press/, train-ai: yes }] }\ntdm: [{ reservation: yes }]\n",
        "robots: { origin: replace, content_usage: [{ train-ai: no }, { paths: /press/, search: yes }] }\ntdm: [{ reservation: yes }]\n"),
    ("signals-disagree", 2, "robots: { origin: replace, content_signal: { ai-train: no }, content_usage: [{ paths: /, search: yes }, { paths: \"/*\", train-ai: no }] }\ntdm: [{ paths: /press/, reservation: no }]\n",
        "robots: { origin: replace, content_signal: { ai-train: no }, content_usage: [{ paths: /press/, train-ai: yes }] }\ntdm: [{ paths: /press/, reservation: no }]\n"),
    ("signals-disagree", 2, "robots: { origin: replace, content_signal: { ai-train: no } }\ntdm: [{ paths: /open/, reservation: no }, { reservation: yes }]\n",
        "robots: { origin: replace, content_signal: { ai-train: no } }\ntdm: [{ reservation: yes }, { paths: /open/, reservation: no }]\n"),
    ("signals-disagree", 6, "robots:\n  origin: replace\n  content_usage: { train-ai: yes }\n  groups:\n    - { agents: \"*\", allow: / }\n    - { agents: GPTBot, disallow: /a, content_signal: { ai-train: yes }, content_usage: { train-ai: no } }\n",
        "robots:\n  origin: replace\n  content_usage: { train-ai: yes }\n  groups:\n    - { agents: \"*\", allow: / }\n    - { agents: GPTBot, disallow: /a, content_signal: { ai-train: no }, content_usage: { train-ai: no } }\n"),
    ("signals-disagree", 5, "robots:\n  origin: replace\n  groups:\n    - { agents: \"*\", allow: / }\n    - { agents: GPTBot, disallow: /a, content_signal: { ai-train: no }, content_usage: { train-ai: yes } }\n",
        "robots:\n  origin: replace\n  content_usage: { train-ai: yes }\n  groups:\n    - { agents: \"*\", allow: / }\n    - { agents: GPTBot, disallow: /a, content_signal: { ai-train: no }, content_usage: { search: yes } }\n"),
    ("unreachable-rule", 4, "robots: { origin: replace }\ntdm:\n  - { reservation: yes }\n  - { paths: /open/, reservation: no }\n",
        "robots: { origin: replace }\ntdm:\n  - { paths: [/open/, /open/a/], reservation: no }\n  - { reservation: yes }\n"),
    ("unreachable-rule", 5, "robots:\n  origin: replace\n  license:\n    - { url: \"https://a.example/l\", paths: /a/ }\n    - { url: \"https://a.example/m\", paths: [/a/b, /a/c] }\n",
        "robots:\n  origin: replace\n  license:\n    - { url: \"https://a.example/l\", paths: /a/b }\n    - { url: \"https://a.example/m\", paths: [/a/, /b] }\n"),
    ("license-for-search", 2, "robots: { origin: replace, license: https://a.example/l }\nenforcement: { unlicensed: 402 }\n",
        "robots: { origin: replace, license: https://a.example/l }\nenforcement: { unlicensed: 402, purposes: { search: { unlicensed: pass } } }\n"),
    ("license-of-nobody", 3, "robots: { origin: replace, license: https://a.example/l }\npurposes: { training: disallow }\nenforcement: { purposes: { training: { unlicensed: 401 } } }\n",
        "robots: { origin: replace, license: https://a.example/l }\npurposes: { training: disallow }\nenforcement: { purposes: { assistant: { unlicensed: 401 } } }\n"),
    ("license-of-nobody", 3, "robots: { origin: replace, license: https://a.example/l }\npurposes: { training: disallow }\nenforcement: { unlicensed: 401 }\n",
        "robots: { origin: replace, license: https://a.example/l, groups: [{ agents: [GPTBot, Google-Extended], disallow: / }] }\nenforcement: { purposes: { training: { unlicensed: 401 } } }\n"),
    ("license-of-nobody", 4, "robots:\n  origin: replace\n  groups: [{ agents: GPTBot, disallow: / }]\nenforcement: { purposes: { training: { unlicensed: 401 } } }\n",
        "robots:\n  origin: replace\n  license: https://a.example/l\n  groups: [{ agents: GPTBot, disallow: /a }]\nenforcement: { purposes: { training: { unlicensed: 401 } } }\n"),
    ("license-of-nobody", 2, "robots: { origin: replace }\nenforcement: { purposes: { training: { unlicensed: 402 } } }\n",
        "robots: { origin: replace, groups: [{ agents: GPTBot, license: \"https://a.example/l\" }] }\nenforcement: { purposes: { training: { unlicensed: 402 } } }\n"),
    ("license-not-https", 1, "robots: { origin: replace, license: http://a.example/l }\n",
        "robots: { origin: replace, license: https://a.example/l }\n"),
    ("noindex-unseen", 5, "robots:\n  origin: replace\n  groups: [{ agents: Bingbot, disallow: /a }]\nindexing:\n  - { paths: /a/, tags: { bingbot: noindex } }\n",
        "robots:\n  origin: replace\n  groups: [{ agents: Bingbot, disallow: /a }]\nindexing:\n  - { paths: /a/, tags: { googlebot: noindex } }\n"),
    ("noindex-unseen", 6, "acknowledge: site_disallowed\nrobots:\n  origin: replace\n  groups: [{ agents: \"*\", disallow: / }]\nindexing:\n  - { types: application/pdf, tag: noindex }\n",
        "acknowledge: site_disallowed\nrobots:\n  origin: replace\n  groups: [{ agents: \"*\", disallow: /, allow: /pdf/ }]\nindexing:\n  - { types: application/pdf, tag: noindex }\n"),
    ("noindex-unseen", 2, "robots: { origin: replace, groups: [{ agents: \"*\", disallow: /old }] }\nretire: { paths: /old/, noindex_from: 2026-11-20 }\n",
        "robots: { origin: replace, groups: [{ agents: \"*\", disallow: /older }] }\nretire: { paths: /old/, noindex_from: 2026-01-20 }\n"),
    ("staging-looks-like-production", 1, "hosts: [www.shop.example]\nenvironment: staging\nrobots: { origin: replace }\n",
        "hosts: [new.shop.example, test-shop.example, staging.example.com, localhost]\nenvironment: staging\nrobots: { origin: replace }\n"),
    ("production-looks-like-staging", 1, "hosts: [shop.example, stage2.shop.example]\nrobots: { origin: replace }\n",
        "hosts: [shop.example, www.testing.example, backstage.shop.example, dev.test]\nrobots: { origin: replace }\n"),
    ("unavailable-after-past", 3, "robots: { origin: replace }\nindexing:\n  - { paths: /a, tag: \"unavailable_after: 2026-11-20\" }\n",
        "robots: { origin: replace }\nindexing:\n  - { paths: /a, tag: \"unavailable_after: 2026-11-22\" }\n"),
    ("custom-directive", 3, "robots: { origin: replace }\nindexing:\n  - { paths: /a, tag: dontkeepme }\n",
        "robots: { origin: replace }\nindexing:\n  - { paths: /a, tag: noai }\n"),
    ("directive-ignored", 3, "robots: { origin: replace }\nindexing:\n  - { paths: /a, tags: { Googlebot: [nofollow, nocache] } }\n",
        "robots: { origin: replace }\nindexing:\n  - { paths: /a, tags: { \"*\": [noarchive, nocache], bingbot: noarchive } }\n"),
    ("directive-ignored", 3, "robots: { origin: replace }\nindexing:\n  - { paths: /a, tag: noodp }\n",
        "robots: { origin: replace }\nindexing:\n  - { paths: /a, tag: nosnippet }\n"),
    ("directive-ignored", 3, "robots: { origin: replace }\nindexing:\n  - { paths: /a, tags: { bingbot: \"unavailable_after: 2026-11-22\" } }\n",
        "robots: { origin: replace }\nindexing:\n  - { paths: /a, tags: { googlebot: \"unavailable_after: 2026-11-22\" } }\n"),
    ("unknown-token", 3, "robots: { origin: replace }\nindexing:\n  - { paths: /a, tags: { robots: noindex } }\n",
        "robots: { origin: replace }\nindexing:\n  - { paths: /a, tags: { \"*\": noindex } }\n"),
    ("unknown-token", 3, "robots: { origin: replace }\nindexing:\n  - { paths: /a, tags: { noindx: nofollow } }\n",
        "robots: { origin: replace }\nindexing:\n  - { paths: /a, tags: { ourownbot: nofollow } }\n"),
    ("unknown-token", 3, "robots: { origin: replace }\nindexing:\n  - { paths: /a, tags: { googelbot: noindex } }\n",
        "robots: { origin: replace }\nindexing:\n  - { paths: /a, tags: { googlebot-news: noindex, ourownbot: noindex } }\n"),
    // The examples of MDN and of Google's page.
    ("unknown-token", 3, "robots: { origin: replace }\nindexing:\n  - { paths: /a, tags: { gtpbot: noindex } }\n",
        "robots: { origin: replace }\nindexing:\n  - { paths: /a, tags: { BadBot: noindex, otherbot: noindex, unicorn: noindex, googlebot: nofollow } }\n"),
    ("unknown-token", 4, "robots:\n  origin: replace\n  groups:\n    - { agents: Bytespyder, disallow: /a }\n",
        "robots:\n  origin: replace\n  groups:\n    - { agents: [BadBot, otherbot, unicorn, googlebot-news, anotherbot, DuckBot, pingbot, mybot], disallow: /a }\n"),
    ("noindex-unseen", 5, "robots:\n  origin: replace\n  groups: [{ agents: '*', disallow: '/*.pdf$' }]\nindexing:\n  - { paths: '/*.pdf$', tag: noindex }\n",
        "robots:\n  origin: replace\n  groups: [{ agents: '*', disallow: '/*.pdf$', allow: '/open/*.pdf$' }]\nindexing:\n  - { paths: '/*.pdf$', tag: noindex }\n"),
    ("noindex-unseen", 5, "robots:\n  origin: replace\n  groups: [{ agents: '*', disallow: /a, allow: /b }]\nindexing:\n  - { paths: '/a/*.pdf$', tag: noindex }\n",
        "robots:\n  origin: replace\n  groups: [{ agents: '*', disallow: /a/$, allow: /b }]\nindexing:\n  - { paths: '/a/*.pdf$', tag: noindex }\n"),
    ("noindex-unseen", 5, "robots:\n  origin: replace\n  groups: [{ agents: '*', disallow: '/*.pdf$' }]\nindexing:\n  - { types: application/pdf, tag: noindex }\n",
        "robots:\n  origin: replace\n  groups: [{ agents: '*', disallow: '/*.pdf$' }]\nindexing:\n  - { types: image/png, tag: noindex }\n"),
    ("noindex-unseen", 5, "robots:\n  origin: replace\n  groups: [{ agents: '*', disallow: '/*.pdf$' }]\nindexing:\n  - { paths: /d/, types: application/pdf, tag: noindex }\n",
        "robots:\n  origin: replace\n  groups: [{ agents: '*', disallow: '/*.pdf$' }]\nindexing:\n  - { paths: /d/, types: image/webp, tag: noindex }\n"),
    ("noindex-unseen", 5, "robots:\n  origin: replace\n  groups: [{ agents: '*', disallow: '/*.pdf$' }]\nindexing:\n  - { paths: /about, types: application/pdf, tag: noindex }\n",
        "robots:\n  origin: replace\n  groups: [{ agents: '*', disallow: '/*.pdf$' }]\nindexing:\n  - { paths: /about$, types: application/pdf, tag: noindex }\n  - { path_regex: '^/about$', types: application/pdf, tag: noindex }\n"),
    ("header-unread", 3, "robots: { origin: replace }\nindexing:\n  - { paths: /a, tags: { applebot: noindex } }\n",
        "robots: { origin: replace }\nindexing:\n  - { paths: /a, tags: { otherbot: noindex } }\n"),
    ("noindex-unseen", 5, "robots:\n  origin: replace\n  groups: [{ agents: '*', disallow: '/*.pdf$' }]\nindexing:\n  - { paths: '/d/*.pdf$', tag: noindex }\n",
        "robots:\n  origin: replace\n  groups: [{ agents: '*', disallow: '/*.pdf$' }]\nindexing:\n  - { paths: '/d/*.pdf', tag: noindex }\n"),
    ("noindex-unseen", 5, "robots:\n  origin: replace\n  groups: [{ agents: Googlebot, disallow: /g/ }, { agents: Bingbot, disallow: /g/ }]\nindexing:\n  - { paths: /g/, tag: noindex }\n",
        "robots:\n  origin: replace\n  groups: [{ agents: Googlebot, disallow: /g/x }, { agents: GPTBot, disallow: /g/ }, { agents: Bingbot, disallow: / }]\nindexing:\n  - { paths: /g/, tag: noindex }\n"),
    ("noindex-unseen", 5, "robots:\n  origin: replace\n  groups: [{ agents: Googlebot, disallow: /i/ }]\nindexing:\n  - { paths: /i/, tags: { googlebot-image: noindex } }\n",
        "robots:\n  origin: replace\n  groups: [{ agents: Googlebot, disallow: /i/ }, { agents: Googlebot-Image, disallow: /j/ }]\nindexing:\n  - { paths: /i/, tags: { googlebot-image: noindex } }\n"),
    ("site-noindex", 2, "robots: { origin: replace }\nretire: { paths: /, noindex_from: 2026-11-20 }\n",
        "robots: { origin: replace }\nretire: { paths: /a, noindex_from: 2026-11-20 }\n"),
];

#[test]
fn file_lints_report_mistakes_and_nothing_similar() {
    for (id, line, with, without) in FILES {
        let found = lint_text(with.as_bytes(), Some("shop.example"));
        assert!(found.contains(&(id, *line)), "{id} in {with:?}: {found:?}");
        let found = lint_text(without.as_bytes(), Some("shop.example"));
        assert!(
            !found.iter().any(|(other, _)| other == id),
            "{id} in {without:?}: {found:?}"
        );
    }
}

#[test]
fn each_lint_reports_only_its_own_mistake() {
    for (id, line, with, without) in POLICIES {
        let found = lint_policy(with);
        assert!(found.contains(&(id, *line)), "{id} in {with:?}: {found:?}");
        let found = lint_policy(without);
        assert!(
            !found.iter().any(|(other, _)| other == id),
            "{id} in {without:?}: {found:?}"
        );
    }
}

#[test]
fn disagreeing_reservation_is_named_with_its_value() {
    let text = "robots: { origin: replace, content_signal: { ai-train: yes } }\ntdm: { reservation: yes }\n";
    let items = policy_findings(text).items;
    let found = items.iter().find(|item| item.id == "signals-disagree");
    let message = &found.expect("a finding").message;
    assert!(message.contains("tdm reservation: yes"), "{message}");
}

#[test]
fn lints_of_large_files_report_their_mistakes() {
    let long = format!("User-agent: *\nDisallow: /{}\n", "a".repeat(17_000));
    assert!(lint_text(long.as_bytes(), None).contains(&("line-too-long", 2)));
    let large = format!(
        "User-agent: *\n{}",
        "Disallow: /page\n# and so on\n".repeat(20_000)
    );
    let found = lint_text(large.as_bytes(), None);
    let first = u32::try_from(1 + large[..500 * 1024].matches('\n').count()).unwrap();
    assert!(found.contains(&("file-too-large", first)), "{found:?}");
    assert!(
        lint_text(b"User-agent: *\nDisallow: /\xff\n", None).contains(&("unreadable-bytes", 2))
    );
    let utf16: Vec<u8> = "User-agent: *\nDisallow: /\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    assert!(lint_text(&utf16, None).contains(&("not-a-robots-txt", 0)));
}

#[test]
fn every_lint_has_a_test_case() {
    let here = [
        "line-too-long",
        "file-too-large",
        "origin-allow-left-out",
        "origin-disallow-left-out",
        "origin-key-left-out",
        "previous-undeclared",
        // tests/it/proxy/cli/first_day.rs.
        "missing-file",
    ];
    let cases: BTreeSet<&str> = FILES
        .iter()
        .chain(POLICIES)
        .map(|(id, ..)| *id)
        .chain(here)
        .collect();
    let lints: BTreeSet<&str> = LINTS.into_iter().flatten().map(|lint| lint.id).collect();
    assert_eq!(cases, lints);
}

#[test]
fn every_example_of_a_lint_shows_it() {
    for lint in LINTS.into_iter().flatten() {
        let explanation = lint.explanation();
        let blocks = |language: &str| -> Vec<String> {
            let fence = format!("```{language}\n");
            let blocks = explanation.split(&fence).skip(1);
            blocks
                .map(|rest| rest.split("```").next().unwrap_or_default().to_owned())
                .collect()
        };
        for text in blocks("text") {
            let found = lint_text(text.as_bytes(), None);
            assert!(
                found.iter().any(|(id, _)| *id == lint.id),
                "{text}{found:?}"
            );
        }
        for text in blocks("yaml") {
            let found = lint_policy(&text);
            assert!(
                found.iter().any(|(id, _)| *id == lint.id),
                "{text}{found:?}"
            );
        }
    }
}

#[test]
fn help_for_a_path_without_slash_is_valid() {
    for (written, help) in [
        ("private", &["\"/private\"", "\"*private\""][..]),
        ("https://a.example/b", &["\"/b\""]),
        // No path to write instead, but the signs that there are.
        ("^/x", &["\"*\"", "\"$\""]),
    ] {
        let text = format!("User-agent: *\nDisallow: {written}\n");
        let found = lint_file(
            "robots.txt",
            &RobotsFile::parse(text.into_bytes()),
            None,
            Registry::builtin(),
        );
        let item = found
            .diagnostics
            .items
            .iter()
            .find(|item| item.id == "path-without-slash")
            .expect("a finding");
        assert!(
            item.help
                .as_ref()
                .is_some_and(|told| help.iter().all(|part| told.contains(part))),
            "{written}: {item:?}"
        );
    }
}

#[test]
fn lists_and_expressions_are_reported_once() {
    for (path, id) in [
        ("/a /b", "several-paths"),
        ("/i, /j", "several-paths"),
        (r"/.*\.php", "regular-expression"),
        ("/search?q=(.*)", "regular-expression"),
        ("/^old", "regular-expression"),
    ] {
        let text = format!("User-agent: *\nDisallow: {path}\n");
        assert_eq!(lint_text(text.as_bytes(), None), [(id, 2)], "{path}");
    }
}

#[test]
fn group_that_drops_rules_is_named_with_crawlers_and_rules() {
    let more: String = (10..20)
        .map(|path| format!("Disallow: /{path}/\n"))
        .collect();
    let group = "User-agent: Googlebot\nUser-agent: Bingbot\nDisallow: /b\n";
    let text = format!("User-agent: *\nDisallow: /z\nDisallow: /b\nDisallow: /a\n{more}{group}");
    let file = RobotsFile::parse(text.as_bytes());
    let found = lint_file("robots.txt", &file, None, Registry::builtin());
    let mut dropped = found.diagnostics.items.iter();
    let dropped = dropped.find(|item| item.id == "group-drops-star-rules");
    let message = &dropped.expect("a finding").message;
    assert!(
        message.contains("Googlebot") && message.contains("Bingbot"),
        "{message}"
    );
    assert!(message.contains("\"/z\", \"/a\", \"/10/\""), "{message}");
    assert!(message.ends_with("\"/17/\", and 2 more"), "{message}");
}

#[test]
fn thousand_findings_of_a_kind_become_three() {
    let text = "User-agent: *\n".to_owned() + &"Disallow /a\n".repeat(1_000);
    let found = lint_file(
        "robots.txt",
        &RobotsFile::parse(text.into_bytes()),
        None,
        Registry::builtin(),
    );
    let colons: Vec<_> = found
        .diagnostics
        .items
        .iter()
        .filter(|item| item.id == "missing-colon")
        .collect();
    assert_eq!((colons.len(), colons[2].more), (3, 997));
    assert!(colons[2].render(&found.source, false).contains("997"));
    let paths: String = (0..500)
        .map(|number| format!("        - /{number}/private/\n"))
        .collect();
    let text = format!(
        "robots:\n  origin: replace\n  groups:\n    - agents: '*'\n      disallow:\n{paths}"
    );
    let found = lint_policy(&text);
    assert_eq!(
        found.iter().filter(|(id, _)| *id == "private-path").count(),
        3,
        "{found:?}"
    );
}

#[test]
fn places_are_right_in_any_encoding() {
    let text = b"\xef\xbb\xbfUser-agent: *\rDisallow: /\xe9\xe9\rDisallow: private\r";
    let found = lint_file(
        "robots.txt",
        &RobotsFile::parse(*text),
        None,
        Registry::builtin(),
    );
    let item = found
        .diagnostics
        .items
        .iter()
        .find(|item| item.id == "path-without-slash")
        .unwrap();
    let shown = item.render(&found.source, false);
    assert!(
        shown.contains("robots.txt:3:1") && shown.contains("3 | Disallow: private"),
        "{shown}"
    );
}

#[test]
fn old_origin_file_suggests_declaring_it() {
    use crate::policy::compile_with_origin;
    use crate::policy::origin::{OriginRobotsAvailability, OriginRobotsTxt};
    let at = Timestamp::parse("2026-11-22T00:00:00Z").expect("a moment");
    let is_told = |policy: &str, modified: &str| {
        let (policy, found) = read(
            "shop",
            &SourceFile {
                name: "shop.yaml".into(),
                text: policy.into(),
            },
        );
        let policy = Arc::new(policy.unwrap_or_else(|| panic!("{found:?}")));
        let file = OriginRobotsTxt {
            last_modified: Timestamp::from_http_date(modified),
            ..OriginRobotsTxt::new("or.txt", &b"User-agent: *\nDisallow: /x\n"[..])
        };
        let site = compile_with_origin(
            policy,
            &OriginRobotsAvailability::Available(Arc::new(file)),
            Registry::builtin(),
            at,
        )
        .expect("compiles");
        let mut found = Diagnostics::default();
        super::lint(&site, Registry::builtin(), &mut found);
        found
            .items
            .iter()
            .any(|item| item.id == "previous-undeclared")
    };
    let old = "Sun, 01 Nov 2026 00:00:00 GMT";
    assert!(is_told("hosts: shop.example\n", old));
    assert!(!is_told(
        "hosts: shop.example\n",
        "Sat, 21 Nov 2026 12:00:00 GMT"
    ));
    assert!(!is_told("hosts: shop.example\n", "yesterday"));
    assert!(!is_told(
        "hosts: shop.example\nrobots: { previous: origin }\n",
        old
    ));
    assert!(!is_told(
        "hosts: shop.example\nrobots: { origin: replace }\n",
        old
    ));
}

/// A suggested noindex in place of nofollow would remove the pages from search.
#[test]
fn retired_directive_is_suggested_as_header() {
    for key in ["Noindex", "NoFollow", "Noarchive"] {
        let text = format!("User-agent: *\nDisallow: /a\n{key}: /b\n");
        let found = lint_file(
            "robots.txt",
            &RobotsFile::parse(text.into_bytes()),
            None,
            Registry::builtin(),
        );
        let item = found
            .diagnostics
            .items
            .iter()
            .find(|item| item.id == "retired-directive")
            .expect("a finding");
        let help = item.help.as_deref().unwrap_or_default();
        assert!(
            help.contains(&format!("\"X-Robots-Tag: {}\"", key.to_ascii_lowercase())),
            "{help}"
        );
    }
}

#[test]
fn product_name_gets_suggested_tokens() {
    for (written, meant) in [
        ("ChatGPT", &["OAI-SearchBot", "GPTBot", "ChatGPT-User"][..]),
        ("OpenAI", &["OAI-SearchBot", "GPTBot", "ChatGPT-User"]),
        ("GPT-Bot", &["GPTBot"]),
        (
            "Google",
            &["Googlebot", "Google-Extended", "Google-CloudVertexBot"],
        ),
        (
            "anthropic",
            &["Claude-SearchBot", "ClaudeBot", "Claude-User"],
        ),
        ("Claude", &["Claude-SearchBot", "ClaudeBot", "Claude-User"]),
        ("Perplexity", &["PerplexityBot", "Perplexity-User"]),
        ("Copilot", &["bingbot"]),
        ("Gemini", &["Google-Extended"]),
        ("Ahrefs", &["AhrefsBot"]),
        ("Google-bot", &["Googlebot"]),
    ] {
        let text = format!("User-agent: {written}\nDisallow: /a/\n");
        let found = lint_file(
            "robots.txt",
            &RobotsFile::parse(text.into_bytes()),
            None,
            Registry::builtin(),
        );
        let ids: Vec<_> = found.diagnostics.items.iter().map(|item| item.id).collect();
        assert!(
            !ids.contains(&"unlisted-token") && !ids.contains(&"unknown-token"),
            "{written}: {ids:?}"
        );
        let item = found
            .diagnostics
            .items
            .iter()
            .find(|item| item.id == "not-a-token")
            .expect(written);
        let help = item.help.as_deref().unwrap_or_default();
        let told: Vec<&str> = help.split('"').skip(1).step_by(2).collect();
        assert_eq!(told, meant, "{written}: {help}");
    }
    assert!(
        !lint_text(b"User-agent: Grok\nDisallow: /a/\n", None)
            .iter()
            .any(|(id, _)| *id == "not-a-token")
    );
}

#[test]
fn known_token_gets_no_suggestion() {
    for token in Registry::builtin()
        .crawlers()
        .iter()
        .flat_map(|crawler| &crawler.tokens)
    {
        let text = format!("User-agent: {token}\nDisallow: /a/\n");
        let found = lint_text(text.as_bytes(), None);
        assert!(!found.iter().any(|(id, _)| *id == "not-a-token"), "{token}");
    }
}

#[test]
fn signal_parts_are_reported_at_their_place() {
    let text = "User-agent: *\nContent-Signal: search=yes, ai-train=maybe\nDisallow: /a/\n";
    let found = lint_file(
        "robots.txt",
        &RobotsFile::parse(text.as_bytes()),
        None,
        Registry::builtin(),
    );
    let item = found
        .diagnostics
        .items
        .iter()
        .find(|item| item.id == "unreadable-signal")
        .expect("a finding");
    let span = item.span.expect("a place");
    assert_eq!(
        (&text[span.start..span.end], span.line, span.column),
        ("ai-train=maybe", 2, 29)
    );
}

#[test]
fn severity_depends_on_where_a_name_stands() {
    let severity = |text: &str, id: &str| {
        let found = policy_findings(&format!("robots: {{ origin: replace{text}\n"));
        found
            .items
            .into_iter()
            .find(|item| item.id == id)
            .map(|item| item.severity)
    };
    for (text, id, expected) in [
        (
            ", groups: [{ agents: bot, disallow: /a }] }",
            "generic-token",
            Some(Severity::Warning),
        ),
        (
            " }\nenforcement: { agents: { spider: enforce } }",
            "generic-token",
            Some(Severity::Error),
        ),
        (
            " }\ncrawlers: { token: crawler }",
            "generic-token",
            Some(Severity::Error),
        ),
        (
            ", groups: [{ agents: CriOS, disallow: /a }] }",
            "token-matches-no-request",
            Some(Severity::Note),
        ),
        (
            " }\nenforcement: { agents: { Firefox: enforce } }",
            "token-matches-no-request",
            Some(Severity::Warning),
        ),
        (
            " }\nenforcement: { agents: { PriceHunter: enforce } }",
            "unknown-crawler",
            Some(Severity::Note),
        ),
        (
            " }\nenforcement: { agents: { Gogglebot: enforce } }",
            "unknown-crawler",
            Some(Severity::Error),
        ),
        (
            " }\nenforcement: { exempt: GPTbt }",
            "unknown-crawler",
            Some(Severity::Error),
        ),
        (
            " }\nenforcement: { exempt: GPTbt }\ncrawlers: { token: GPTbt }",
            "unknown-crawler",
            None,
        ),
        (
            ", groups: [{ agents: CCBott, disallow: /a }] }",
            "unknown-token",
            Some(Severity::Warning),
        ),
        (
            " }\nenforcement: { exempt: Storebot }",
            "unknown-crawler",
            Some(Severity::Warning),
        ),
        (
            " }\ncrawlers: { token: A, user_agent: Chrome }",
            "blocks-people",
            Some(Severity::Error),
        ),
        (
            ", groups: [{ agents: Chrome, disallow: /a }] }",
            "blocks-people",
            None,
        ),
    ] {
        assert_eq!(severity(text, id), expected, "{text}");
    }
}

#[test]
fn rule_google_reads_otherwise_is_reported() {
    let policy = |rules: &str| {
        format!("robots:\n  origin: replace\n  groups:\n    - agents: [\"*\"]\n{rules}")
    };
    let disagree = |rules: &str| -> Vec<u32> {
        let found = lint_policy(&policy(rules)).into_iter();
        found
            .filter(|(id, _)| *id == "dialects-disagree")
            .map(|(_, line)| line)
            .collect()
    };
    assert_eq!(
        disagree("      disallow: [/d/]\n      allow: [/d/index.html]\n"),
        [6]
    );
    let of_file = lint_text(
        b"User-agent: *\nDisallow: /d/\nAllow: /d/index.html\n",
        None,
    )
    .into_iter();
    let lines: Vec<u32> = of_file
        .filter(|(id, _)| *id == "dialects-disagree")
        .map(|(_, line)| line)
        .collect();
    assert_eq!(lines, [3]);
    assert_eq!(
        disagree("      disallow: [/d]\n      allow:\n        - '/d/$'\n        - /d/index.html\n"),
        [] as [u32; 0]
    );
    assert_eq!(disagree("      disallow: ['/x%24y']\n"), [5]);
    assert_eq!(
        disagree("      disallow: ['/x%24y']\n    - agents: [GPTBot]\n      extends: '*'\n"),
        [5]
    );
    assert_eq!(
        disagree("      disallow: [/a]\n      allow: ['/a%2Ab']\n"),
        [6]
    );
    assert_eq!(
        disagree("      disallow: ['/x$y', /%7Euser]\n      allow: [/other/index.html]\n"),
        [] as [u32; 0]
    );
}
