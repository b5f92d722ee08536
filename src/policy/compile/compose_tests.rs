//! These tests check details of the robots.txt that is made from a policy. No Allow of the origin's
//! own file opens a path that the policy takes out of search engines. Sitemaps without an absolute
//! URL are left out. Comments above groups are true.

use crate::crawlers::{Claim, Registry};
use crate::policy::compile::draft::{GroupHeading, ORIGIN_FILE};
use crate::policy::origin::{
    HostOverride, InternalAuthorities, OriginRobotsAvailability, OriginRobotsTxt,
};
use crate::policy::{Site, compile_with_origin, read};
use crate::robots::{Dialect, DialectRules, RobotsFile};
use crate::time::Timestamp;
use crate::yaml::SourceFile;
use std::sync::Arc;

const DAY: i64 = 86_400;

fn compile_site(policy: &str, origin: &str, at: i64) -> Site {
    let source = SourceFile {
        name: "shop.yaml".into(),
        text: policy.into(),
    };
    let (policy, findings) = read("shop", &source);
    let policy = policy.unwrap_or_else(|| panic!("{findings:?}"));
    let file = OriginRobotsTxt::new("http://10.0.0.7:3000/robots.txt", origin.as_bytes());
    compile_with_origin(
        Arc::new(policy),
        &OriginRobotsAvailability::Available(Arc::new(file)),
        Registry::builtin(),
        Timestamp(at),
    )
    .expect("small")
}

fn served_text(policy: &str, origin: &str, at: i64) -> String {
    String::from_utf8_lossy(&compile_site(policy, origin, at).robots_txt.body).into_owned()
}

fn is_allowed(text: &str, token: &str, path: &str) -> bool {
    DialectRules::new(&RobotsFile::parse(text.as_bytes()), Dialect::Rfc9309, &[])
        .verdict(token.as_bytes(), path.as_bytes())
        .allowed
}

#[test]
fn own_comment_begins_every_robots_txt() {
    for origin in ["merge", "replace", "only"] {
        let policy = format!(
            "robots:\n  origin: {origin}\n  comment: |\n    Reserved: a # b\n\n    Disallow: /x\n"
        );
        let served = served_text(&policy, "User-agent: *\nDisallow: /cart/\n", 0);
        let expected = "# Reserved: a # b\n#\n# Disallow: /x\n#\n# Written by crawlgate";
        assert!(served.starts_with(expected), "{origin}: {served}");
        assert!(is_allowed(&served, "GPTBot", "/x"), "{origin}");
    }
}

#[test]
fn retired_tokens_are_not_published() {
    let served = served_text(
        "purposes: { training: disallow, assistant: allow }\nrobots: { origin: replace }\n",
        "",
        0,
    );
    let is_published = |token: &str| served.contains(&format!("User-agent: {token}\n"));
    assert!(
        is_published("ClaudeBot") && is_published("Claude-User"),
        "{served}"
    );
    for retired in [
        "anthropic-ai",
        "Claude-Web",
        "FacebookBot",
        "Google-NotebookLM",
    ] {
        assert!(!is_published(retired), "{retired}");
        let registry = Registry::builtin();
        let found = registry.find(retired).map(Claim::Known);
        assert_eq!(
            found,
            Some(registry.identify(format!("{retired}/1.0").as_bytes())),
            "requests are matched"
        );
    }
    let own = "robots: { origin: replace, groups: [{ agents: anthropic-ai, disallow: / }] }\npurposes: { training: disallow }\n";
    assert!(
        compile_site(own, "", 0)
            .robots_txt
            .body
            .windows(12)
            .any(|part| part == b"anthropic-ai")
    );
}

#[test]
fn no_origin_allow_defeats_the_disallow_of_a_retired_path() {
    let origin = "User-agent: *\nAllow: /old/catalogue\nAllow: /*.html\nAllow: /o\nDisallow: /tmp/\n\n\
                  User-agent: CCBot\nAllow: /old/*\n\nUser-agent: HouseBot\nDisallow: /h/\n";
    for mode in ["merge", "only"] {
        let policy = format!(
            "robots: {{ origin: {mode} }}\nretire: [{{ paths: [/old/], noindex_from: 1970-01-01, disallow_after: 14d }}]\n"
        );
        let before = served_text(&policy, origin, 13 * DAY);
        assert!(
            before.contains("\nAllow: /old/catalogue\n"),
            "as long as it is to be crawled:\n{before}"
        );
        assert!(is_allowed(&before, "*", "/old/catalogue") && !before.contains("Disallow: /old/"));
        let after = served_text(&policy, origin, 14 * DAY);
        for token in ["*", "CCBot", "HouseBot"] {
            for path in ["/old/", "/old/catalogue", "/old/page.html"] {
                assert!(
                    !is_allowed(&after, token, path),
                    "{token}, {path}, {mode}:\n{after}"
                );
            }
        }
        assert!(
            is_allowed(&after, "*", "/o"),
            "what is elsewhere stays:\n{after}"
        );
        for allow in ["/old/catalogue", "/*.html"] {
            assert!(after.contains(&format!("\"Allow: {allow}\"")), "{after}");
        }
    }
}

#[test]
fn relative_sitemap_is_left_out_with_a_comment() {
    let origin = "User-agent: *\nDisallow: /a/\nSitemap: /sitemap.xml\nSitemap: //cdn.example/s.xml\nSitemap: s.xml\n\
                  Sitemap: http:///s.xml\nSitemap: HTTPS://shop.example/s.xml\nSitemap: /sitemap.xml\n";
    for mode in ["merge", "only"] {
        let text = served_text(&format!("robots: {{ origin: {mode} }}\n"), origin, 0);
        let sitemaps: Vec<&str> = text
            .lines()
            .filter(|line| line.starts_with("Sitemap"))
            .collect();
        assert_eq!(sitemaps, ["Sitemap: HTTPS://shop.example/s.xml"], "{text}");
        assert!(text.contains("not full URLs (4)"), "{text}");
        assert!(
            !text.contains("10.0.0.7"),
            "where the origin is, is nobody's business:\n{text}"
        );
    }
}

#[test]
fn groups_with_the_signals_of_the_site_say_so() {
    let comment = format!("# {}", GroupHeading::Signals);
    let policy = "robots: { content_signal: { ai-train: no }, groups: [{ agents: bingbot, disallow: /b/ }] }\n";
    let text = served_text(policy, "User-agent: CCBot\nDisallow: /c/\n", 0);
    for agent in ["*", "CCBot"] {
        let name = format!("\nUser-agent: {agent}\n");
        let group = text.split("\n\n").find(|block| block.contains(&name));
        let group = group.expect("a group");
        assert!(group.contains(&comment), "{text}");
        assert_eq!(group.contains(ORIGIN_FILE), agent == "CCBot", "{text}");
    }
}

fn host_override(host: &str, origin_hosts: &[&str]) -> HostOverride {
    HostOverride {
        host: host.into(),
        origin_hosts: origin_hosts.iter().map(|host| (*host).into()).collect(),
    }
}

/// The published file of an origin with these internal authorities, and the lines that are left
/// out.
fn published_file(
    policy: &str,
    origin: &str,
    internal: InternalAuthorities,
) -> (String, Vec<usize>) {
    let source = SourceFile {
        name: "shop.yaml".into(),
        text: policy.into(),
    };
    let (policy, findings) = read("shop", &source);
    let policy = policy.unwrap_or_else(|| panic!("{findings:?}"));
    let file = OriginRobotsTxt {
        internal: Arc::new(internal),
        ..OriginRobotsTxt::new("http://10.0.0.7:3000/robots.txt", origin.as_bytes())
    };
    let origin = OriginRobotsAvailability::Available(Arc::new(file));
    let site = compile_with_origin(Arc::new(policy), &origin, Registry::builtin(), Timestamp(0))
        .expect("small");
    (
        String::from_utf8_lossy(&site.robots_txt.body).into_owned(),
        site.unpublished_lines,
    )
}

#[test]
fn lines_with_unreachable_hosts_are_left_out() {
    let internal = InternalAuthorities {
        hosts: Vec::new(),
        servers: vec!["origin.example:8443".into(), "origin.example:443".into()],
    };
    for host in [
        "127.0.0.1:3000",
        "127.8.9.1",
        "10.0.0.7",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.1.1",
        "100.64.0.1",
        "127.1:3000",
        "0x7f.0.0.1",
        "%31%32%37.0.0.1",
        "2130706433",
        "0.0.0.0",
        "[::1]:80",
        "[fd00::1]",
        "[fe80::1]",
        "[::ffff:10.0.0.1]",
        "localhost",
        "LocalHost.:3000",
        "app.localhost",
        "app",
        "web:8000",
        "printer.local",
        "api.internal",
        "nas.home.arpa",
        "user@localhost",
        "origin.example:8443",
        "origin.example",
    ] {
        for mode in ["merge", "only"] {
            let origin = format!(
                "Sitemap: https://{host}/secret.xml\nUser-agent: *\nDisallow: /a\nLicense: https://{host}/secret\n\
                 Host: {host}\nSitemap: {host}/secret.xml\nSitemap: //{host}/secret.xml\n\
                 Clean-param: a https://{host}/secret\n"
            );
            let policy = format!("hosts: [shop.example]\nrobots: {{ origin: {mode} }}\n");
            let (text, lines) = published_file(&policy, &origin, internal.clone());
            assert!(
                !text.contains("secret")
                    && !text.contains(host)
                    && text.contains("\nDisallow: /a\n"),
                "{host}:\n{text}"
            );
            assert_eq!(lines, [1, 4, 5, 6, 7, 8], "{host}, {mode}");
        }
    }
}

#[test]
fn lines_with_public_hosts_are_published() {
    let internal = InternalAuthorities {
        hosts: vec![host_override("www.shop.example", &[])],
        servers: vec!["shop.example:443".into(), "cdn.example:8080".into()],
    };
    for url in [
        "https://shop.example/s.xml",
        "https://www.shop.example:443/s.xml",
        "http://shop.example/s.xml",
        "http://shop.example:8080/s.xml",
        "https://cdn.example/s.xml",
        "https://203.0.113.9/s.xml",
        "https://[2001:db8::1]/s.xml",
        "http://intranet/s.xml",
    ] {
        let policy =
            "hosts: [shop.example, www.shop.example, intranet]\nrobots: { origin: only }\n";
        let (text, lines) = published_file(policy, &format!("Sitemap: {url}\n"), internal.clone());
        assert!(
            text.contains(&format!("\nSitemap: {url}\n")),
            "{url}:\n{text}"
        );
        assert_eq!(lines, Vec::<usize>::new(), "{url}");
    }
}

#[test]
fn host_value_of_an_origin_becomes_the_sites_first_host() {
    let hosts = vec![
        host_override("app.example", &["www.shop.example"]),
        host_override("app:81", &[]),
    ];
    let internal = InternalAuthorities {
        hosts,
        servers: Vec::new(),
    };
    let origin =
        "Sitemap: https://App.example/a.xml?b\nSitemap: http://app:81/c.xml\nHost: app.example\n";
    let policy =
        "hosts: ['*.shop.example', shop.example, www.shop.example]\nrobots: { origin: only }\n";
    let (text, lines) = published_file(policy, origin, internal.clone());
    for line in [
        "Sitemap: https://shop.example/a.xml?b",
        "Sitemap: http://shop.example/c.xml",
        "Host: shop.example",
    ] {
        assert!(text.contains(&format!("\n{line}\n")), "{line}:\n{text}");
    }
    assert_eq!(lines, Vec::<usize>::new());
    let another = InternalAuthorities {
        hosts: vec![host_override("app.example", &["blog.example"])],
        servers: Vec::new(),
    };
    assert_eq!(
        published_file(policy, origin, another).1,
        [1, 2, 3],
        "the host that the origin of another site wants"
    );
    for hosts in ["", "hosts: ['*.shop.example']\n"] {
        let (text, lines) = published_file(
            &format!("{hosts}robots: {{ origin: only }}\n"),
            origin,
            internal.clone(),
        );
        assert!(!text.to_lowercase().contains("app"), "{text}");
        assert_eq!(lines, [1, 2, 3], "{hosts}");
    }
}
