//! Tests of judging single requests: which rule and which user-agent token count, URLs with dot
//! segments, the action that follows, and versions of robots.txt in a crawler's cache.

use super::*;
use crate::crawlers::{Claim, Registry, is_generic_bot_name, visitor_user_agents, visitor_words};
use crate::policy::model::PauseAudience;
use crate::policy::site::{ParsedRobotsVersion, PauseWindow, SupersededVersion};
use crate::policy::{PublicationHistories, PublicationHistory, Site, SiteEntry, Snapshot};
use crate::yaml::{Diagnostics, Severity, SourceFile};
use std::sync::Arc;

const BINGBOT: &str = "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)";
const GOOGLEBOT: &str = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";
const GPTBOT: &str = "Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)";
const PERSON: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
const UNLISTED: &str = "Mozilla/5.0 (compatible; NobodyKnowsBot/1.0; +https://example.org/bot)";
const DAY: i64 = 86_400;

fn load_text(text: &str) -> (Option<Arc<Site>>, Diagnostics) {
    load_site(
        "shop",
        &SourceFile {
            name: "policies/shop.yaml".into(),
            text: text.into(),
        },
        Registry::builtin(),
    )
}

fn site(text: &str) -> Arc<Site> {
    let (site, findings) = load_text(text);
    site.unwrap_or_else(|| panic!("{text}\n{findings:?}"))
}

/// The robots.txt of a site as a version that was superseded at a moment.
fn superseded_version(site: &Site, superseded_at: Timestamp) -> SupersededVersion {
    let parsed = Arc::new(ParsedRobotsVersion::parse(
        site.robots_txt.body.clone(),
        Registry::builtin(),
    ));
    SupersededVersion {
        parsed,
        since: Timestamp(0),
        superseded_at,
    }
}

/// The ids and lines of errors and warnings.
fn errors(text: &str) -> Vec<(&'static str, u32)> {
    let findings = load_text(text).1;
    let worth = findings
        .items
        .iter()
        .filter(|item| item.severity > Severity::Note);
    worth
        .map(|item| (item.id, item.span.map_or(0, |span| span.line)))
        .collect()
}

/// A policy with these groups and more lines.
fn policy_with(groups: &str, more: &str) -> String {
    format!("robots:\n  origin: replace\n  groups: [{groups}]\n{more}\n")
}

fn enforced_policy(groups: &str) -> String {
    policy_with(groups, "enforcement: { mode: enforce }")
}

struct World {
    snapshot: Snapshot,
    now: Timestamp,
}

impl World {
    fn from_policy(text: &str) -> World {
        World::from_entry(SiteEntry::new(site(text), Timestamp(0)))
    }

    fn from_entry(entry: SiteEntry) -> World {
        World {
            snapshot: Snapshot::new(vec![entry], 1),
            now: Timestamp(10 * DAY),
        }
    }

    fn with_history(
        entry: SiteEntry,
        superseded: Vec<SupersededVersion>,
        unknown_until: Option<Timestamp>,
    ) -> World {
        let world = World::from_entry(entry);
        let history = PublicationHistory {
            superseded,
            unknown_until,
            ..PublicationHistory::new(Timestamp(0))
        };
        let histories = PublicationHistories::new(vec![(None, Arc::new(history))]);
        World {
            snapshot: world.snapshot.with_histories(histories, world.now),
            ..world
        }
    }

    fn decide(&self, user_agent: &str, target: &str) -> Decision {
        let facts = RequestFacts {
            host: b"shop.example",
            target: target.as_bytes(),
            method: b"GET",
            user_agent: user_agent.as_bytes(),
            client: None,
            identity: Identity::Unverified,
            now: self.now,
        };
        let cached_versions = CachedVersions::for_any_crawler(self.claimant(&facts), self.now);
        decide(
            &self.snapshot,
            Registry::builtin(),
            &facts,
            &cached_versions,
            &mut DecisionScratch::default(),
        )
        .expect("a site has the host")
    }

    fn explain(&self, user_agent: &str, target: &str) -> Explanation {
        let (registry, response) = (Registry::builtin(), ResponseFacts::default());
        let facts = RequestFacts {
            host: b"shop.example",
            target: target.as_bytes(),
            method: b"GET",
            user_agent: user_agent.as_bytes(),
            client: None,
            identity: Identity::Unverified,
            now: self.now,
        };
        explain(
            &self.snapshot,
            registry,
            &facts,
            CachedVersionsBasis::Unknown,
            &response,
        )
    }

    fn claimant(&self, facts: &RequestFacts<'_>) -> SiteClaim<'_> {
        SiteClaim::find(&self.snapshot, Registry::builtin(), facts).expect("a site has the host")
    }

    /// The names of the verdict, the kind, the action, and the action under enforcement.
    fn outcome(
        &self,
        user_agent: &str,
        target: &str,
    ) -> (
        &'static str,
        &'static str,
        &'static str,
        Option<&'static str>,
    ) {
        let decision = self.decide(user_agent, target);
        (
            decision.verdict.name(),
            decision.kind.name(),
            decision.action.name(),
            decision.would.map(Action::name),
        )
    }

    fn tags(&self, target: &str, status: u16, content_type: &str) -> Vec<String> {
        let decision = self.decide(PERSON, target);
        let lines = self.snapshot.sites()[0].site.tags.tags(
            &decision.path_rules,
            status,
            Some(content_type.as_bytes()),
        );
        lines.map(|lines| lines.lines.clone()).unwrap_or_default()
    }
}

const BLOCKED: (&str, &str, &str, Option<&str>) = ("disallowed", "unproven", "block", None);
const ALLOWED: (&str, &str, &str, Option<&str>) = ("allowed", "allowed", "pass", None);

#[test]
fn longest_rule_decides_and_explicit_allow_counts() {
    let world = World::from_policy(&enforced_policy(
        "{ agents: '*', disallow: [/private/], allow: [/private/help, '//private/'] }",
    ));
    assert_eq!(world.outcome(BINGBOT, "/private/a"), BLOCKED);
    assert_eq!(world.outcome(BINGBOT, "/%70rivate/a"), BLOCKED);
    assert_eq!(world.outcome(BINGBOT, "/private/help"), ALLOWED);
    assert_eq!(
        world.outcome(BINGBOT, "//private/a"),
        ALLOWED,
        "the owner allowed the URL as sent"
    );
    assert_eq!(
        world.outcome(BINGBOT, "/robots.txt"),
        ("allowed", "allowed", "robots_txt", None)
    );
    assert_eq!(world.outcome(BINGBOT, "/robots.txt?x=1").2, "robots_txt");
}

#[test]
fn url_that_resolves_to_a_disallowed_one_is_ambiguous() {
    let world = World::from_policy(&policy_with(
        "{ agents: '*', disallow: [/private/] }",
        "enforcement: { mode: enforce, ambiguous: 404 }",
    ));
    for target in [
        "/x/../private/a",
        "//private/a",
        "/./private/a",
        "/%2e/private/a",
        "/private%2fa",
        "/x%2F..%2fprivate%2Fa",
        "/private;x/a",
        "/;x/private/a",
        "/x/..;/private/a",
        // As Tomcat reads it, and as nginx does.
        "/private;%2F../a",
        "/a;%2F..%2F..%2Fprivate/a",
    ] {
        assert_eq!(
            world.outcome(BINGBOT, target),
            ("disallowed", "ambiguous", "block", None),
            "{target}"
        );
    }
    let Action::Block(answer) = world.decide(BINGBOT, "//private/a").action else {
        panic!("blocked")
    };
    assert_eq!(
        world.snapshot.sites()[0].site.answers[usize::from(answer)].status,
        404
    );
    assert_eq!(
        world.outcome(BINGBOT, "/a?x=/../private/"),
        ALLOWED,
        "queries are not resolved"
    );
    assert_eq!(
        world.outcome(BINGBOT, "/a?x=%2F..%2Fprivate%2F"),
        ALLOWED,
        "queries are not resolved"
    );

    let world = World::from_policy(&enforced_policy(
        "{ agents: '*', disallow: [/private/], allow: [/, '/open%2F'] }",
    ));
    assert_eq!(
        world.outcome(BINGBOT, "/private%2Fa").1,
        "ambiguous",
        "`Allow: /` says less than the Disallow"
    );
    assert_eq!(
        world.outcome(BINGBOT, "/open%2F..%2Fprivate%2Fa").1,
        "ambiguous"
    );
    let world = World::from_policy(&enforced_policy(
        "{ agents: '*', disallow: [/private/], allow: ['/private%2F'] }",
    ));
    assert_eq!(
        world.outcome(BINGBOT, "/private%2Fa"),
        ALLOWED,
        "the owner allowed the URL as sent"
    );
}

#[test]
fn allow_list_applies_to_resolved_dot_segments() {
    let world = World::from_policy(&enforced_policy(
        "{ agents: GPTBot, disallow: [/], allow: [/public/] }",
    ));
    for target in [
        "/public/../private/index.html",
        "/public/%2e%2e/private/index.html",
        "/public/..%2fprivate/index.html",
        "/public%2f..%2fprivate/index.html",
        "/public/..;/private/index.html",
        "/public/x/../../private/index.html",
        "/public/..",
    ] {
        let expected = if target.starts_with("/public%2f") {
            "unproven"
        } else {
            "ambiguous"
        };
        assert_eq!(
            world.outcome(GPTBOT, target),
            ("disallowed", expected, "block", None),
            "{target}"
        );
    }
    for target in [
        "/public/",
        "/public/./a",
        "/public/a/../b",
        "/public//a",
        "/public/a;x=1",
        "/public/a?/../../b",
    ] {
        assert_eq!(world.outcome(GPTBOT, target), ALLOWED, "{target}");
    }
    assert_eq!(
        world.outcome(GPTBOT, "/private/../public/a"),
        BLOCKED,
        "a crawler that goes by the path as sent may not"
    );
}

#[test]
fn allow_list_applies_to_path_without_parameters() {
    let rules = "{ agents: GPTBot, disallow: [/], allow: [/public/, /page, '/*.css$', '/*.jsp;v=', '/api;v=1'] }";
    let world = World::from_policy(&enforced_policy(rules));
    for target in [
        "/private/index.html;x.css",
        "/private/x;.css",
        "/private/a.jsp;v=1",
        "/private;/x.css/..;.css",
        "/api;v=1",
    ] {
        assert_eq!(
            world.outcome(GPTBOT, target),
            ("disallowed", "ambiguous", "block", None),
            "{target}"
        );
    }
    for target in [
        "/page;jsessionid=1",
        "/public/a;x=1",
        "/a.css",
        "/a.css;v=1.css",
        "/private/a.css;.css",
        "/public/a?x;.css",
    ] {
        assert_eq!(world.outcome(GPTBOT, target), ALLOWED, "{target}");
    }
    let world = World::from_policy(&enforced_policy(
        "{ agents: GPTBot, disallow: [/in/], allow: ['/*.css$'] }",
    ));
    assert_eq!(
        world.outcome(GPTBOT, "/in/x;.css").1,
        "ambiguous",
        "however long the Allow is"
    );
    assert_eq!(world.outcome(GPTBOT, "/open/x;.css"), ALLOWED);
}

#[test]
fn path_that_resolves_to_robots_txt_gets_the_file() {
    let world = World::from_policy(&policy_with(
        "{ agents: '*', disallow: [/] }",
        "acknowledge: site_disallowed",
    ));
    for target in [
        "//robots.txt",
        "/./robots.txt",
        "/a/../robots.txt?x",
        "/%2Frobots.txt",
        "/a%2f..%2frobots%2etxt",
    ] {
        assert_eq!(
            world.outcome(BINGBOT, target),
            ("allowed", "allowed", "robots_txt", None),
            "{target}"
        );
    }
    assert_eq!(world.outcome(BINGBOT, "/a/robots.txt").0, "disallowed");
}

#[test]
fn crawler_follows_its_most_specific_token() {
    let world = World::from_policy(&enforced_policy(
        "{ agents: '*', disallow: [/star/] }, { agents: Googlebot, disallow: [/google/] }, { agents: Googlebot-Image, disallow: [/image/] }",
    ));
    let image = "Googlebot-Image/1.0";
    assert_eq!(world.outcome(image, "/image/"), BLOCKED);
    assert_eq!(world.outcome(image, "/google/"), ALLOWED);
    assert_eq!(
        world.outcome("Googlebot-Video/1.0", "/google/"),
        BLOCKED,
        "no group of its own: Googlebot's"
    );
    assert_eq!(
        world.outcome(GOOGLEBOT, "/star/"),
        ALLOWED,
        "a named group replaces `*`"
    );
    let applebot = "Mozilla/5.0 (compatible; Applebot/0.1; +http://www.apple.com/go/applebot)";
    assert_eq!(
        world.outcome(applebot, "/google/"),
        BLOCKED,
        "Applebot follows Googlebot's group"
    );
    assert_eq!(world.outcome(BINGBOT, "/star/"), BLOCKED);
}

#[test]
fn rules_that_do_not_bind_a_crawler_are_no_violation() {
    let adsbot = "AdsBot-Google (+http://www.google.com/adsbot.html)";
    let star = World::from_policy(&enforced_policy("{ agents: '*', disallow: [/a/] }"));
    assert_eq!(
        star.outcome(adsbot, "/a/"),
        ("not_bound", "not_bound", "pass", None)
    );
    let named = World::from_policy(&enforced_policy(
        "{ agents: '*', disallow: [/a/] }, { agents: AdsBot-Google, disallow: [/a/] }",
    ));
    assert_eq!(named.outcome(adsbot, "/a/"), BLOCKED);
    let ignoring = "FeedFetcher-Google; (+http://www.google.com/feedfetcher.html)";
    assert_eq!(star.outcome(ignoring, "/a/").0, "not_bound");
    let named = World::from_policy(&enforced_policy(
        "{ agents: '*', disallow: [/a/] }, { agents: FeedFetcher-Google, disallow: [/a/] }",
    ));
    assert_eq!(
        named.outcome(ignoring, "/a/"),
        ("disallowed", "not_bound", "block", None),
        "refused as the owner wished, reported as not bound"
    );
}

#[test]
fn enforcement_fields_come_from_agent_then_purpose_then_site() {
    let policy = policy_with(
        "{ agents: '*', disallow: [/a/] }",
        "enforcement:\n  mode: observe\n  disallowed: 404\n  purposes: { training: { mode: enforce }, seo: { mode: off } }\n  agents: { CCBot: { disallowed: { status: 503, retry_after: 1h } }, bingbot: { mode: enforce } }",
    );
    let world = World::from_policy(&policy);
    let answer = |user_agent: &str| match world.decide(user_agent, "/a/").action {
        Action::Block(index) => world.snapshot.sites()[0].site.answers[usize::from(index)].clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        world.outcome(GOOGLEBOT, "/a/"),
        ("disallowed", "unproven", "pass", Some("block")),
        "observe records what enforce would do"
    );
    assert_eq!(
        world.outcome("AhrefsBot/7.0", "/a/"),
        ("disallowed", "unproven", "pass", None),
        "off records nothing"
    );
    assert_eq!(answer("GPTBot/1.2").status, 404);
    assert_eq!(
        answer("CCBot/2.0 (https://commoncrawl.org/faq/)").retry_after,
        Some(3_600)
    );
    assert_eq!(answer(BINGBOT).status, 404);
}

#[test]
fn people_are_not_judged_and_tools_only_if_named() {
    let world = World::from_policy(&enforced_policy("{ agents: '*', disallow: [/a/] }"));
    assert_eq!(
        world.outcome(PERSON, "/a/"),
        ("not_a_crawler", "not_a_crawler", "pass", None)
    );
    assert_eq!(world.outcome("curl/8.0", "/a/").0, "not_a_crawler");
    assert_eq!(
        world.outcome(UNLISTED, "/a/"),
        ("disallowed", "unproven", "pass", Some("block")),
        "only observed"
    );
    let meant = World::from_policy(&policy_with(
        "{ agents: '*', disallow: [/a/] }",
        "enforcement: { mode: enforce, agents: { curl: {} }, purposes: { other: enforce } }",
    ));
    assert_eq!(meant.outcome("curl/8.0", "/a/"), BLOCKED);
    assert_eq!(meant.outcome("Wget/1.21", "/a/").0, "not_a_crawler");
    assert_eq!(meant.outcome(UNLISTED, "/a/"), BLOCKED);
    let grouped = World::from_policy(&enforced_policy("{ agents: Wget, disallow: [/a/] }"));
    assert_eq!(
        grouped.outcome("Wget/1.21.3", "/a/"),
        BLOCKED,
        "a group that names a tool means it"
    );
}

#[test]
fn token_without_requests_is_published_and_not_enforced() {
    let text = "purposes: { training: disallow }\nrobots: { origin: replace }\nenforcement: { mode: enforce }\ntests:\n  - { agent: Google-Extended, path: /, expect: { verdict: disallowed, action: pass } }\n";
    let world = World::from_policy(text);
    assert_eq!(
        world
            .outcome("Mozilla/5.0 (X11; Linux) Google-Extended/1.0 Safari/1", "/")
            .0,
        "not_a_crawler"
    );
    assert!(served_robots_txt(text).contains("User-agent: Google-Extended\nDisallow: /\n"));
}

#[test]
fn tokens_of_the_policy_identify_crawlers() {
    let world = World::from_policy(&enforced_policy(
        "{ agents: '*', allow: [/] }, { agents: IntranetBot, disallow: [/a/] }",
    ));
    assert_eq!(world.outcome("IntranetBot/3 (intranet)", "/a/"), BLOCKED);
    assert_eq!(world.outcome("NotIntranetBot/3", "/a/").0, "allowed");
}

#[test]
fn request_that_a_cached_version_allows_is_not_blocked() {
    let closed = enforced_policy("{ agents: '*', disallow: [/a/] }");
    let open = site(&enforced_policy("{ agents: '*', disallow: [/b/] }"));
    let entry = || SiteEntry::new(site(&closed), Timestamp(0));
    let world = |superseded_at: i64| {
        World::with_history(
            entry(),
            vec![superseded_version(&open, Timestamp(superseded_at))],
            None,
        )
    };
    assert_eq!(
        world(10 * DAY - 60).outcome(BINGBOT, "/a/"),
        ("disallowed", "stale_copy", "pass", None)
    );
    assert_eq!(
        world(9 * DAY).outcome(BINGBOT, "/a/").1,
        "stale_copy",
        "to the last second of the grace time"
    );
    assert_eq!(world(9 * DAY - 1).outcome(BINGBOT, "/a/"), BLOCKED);
    assert_eq!(
        world(10 * DAY).outcome(BINGBOT, "//a/").1,
        "stale_copy",
        "the older one is not ambiguous about it"
    );
    let same = World::with_history(
        entry(),
        vec![superseded_version(&site(&closed), Timestamp(10 * DAY))],
        None,
    );
    assert_eq!(
        same.outcome(BINGBOT, "/a/"),
        BLOCKED,
        "the older one disallows it as well"
    );
    let unknown = World::with_history(entry(), vec![], Some(Timestamp(10 * DAY - 1)));
    assert_eq!(unknown.outcome(BINGBOT, "/a/").1, "stale_copy");
}

#[test]
fn token_is_the_same_crawler_in_another_version() {
    let before = site(&enforced_policy(
        "{ agents: [FirstBot], disallow: [/x/] }, { agents: [HouseBot], disallow: [/b/] }",
    ));
    let now = site(&enforced_policy(
        "{ agents: [HouseBot], disallow: [/a/, /b/] }",
    ));
    let superseded = vec![superseded_version(&before, Timestamp(10 * DAY))];
    let world = World::with_history(SiteEntry::new(now, Timestamp(0)), superseded, None);
    assert_eq!(world.outcome("HouseBot/1.0", "/a/").1, "stale_copy");
    assert_eq!(world.outcome("HouseBot/1.0", "/b/"), BLOCKED);
}

#[test]
fn pause_stops_its_audience_until_its_end() {
    let pause = |audience, robots_txt| PauseWindow {
        audience,
        from: Timestamp(10 * DAY - 100),
        until: Timestamp(10 * DAY + 50),
        retry_after: 1_800,
        robots_txt_until: robots_txt,
        at_run_time: false,
    };
    let world = |pause: PauseWindow| {
        let site = site(&enforced_policy("{ agents: '*', disallow: [/a/] }"));
        World::from_entry(
            SiteEntry::new(site, Timestamp(0)).with_pauses(vec![pause], Timestamp(10 * DAY)),
        )
    };
    let crawlers = world(pause(PauseAudience::Crawlers, None));
    assert_eq!(
        crawlers.decide(BINGBOT, "/").action,
        Action::Pause { retry_after: 50 },
        "the time left is shorter"
    );
    assert_eq!(crawlers.decide(UNLISTED, "/").action.name(), "pause");
    for passing in [
        PERSON,
        "curl/8.0",
        "Mozilla/5.0+(compatible; UptimeRobot/2.0; http://www.uptimerobot.com/)",
    ] {
        assert_eq!(
            crawlers.decide(passing, "/").action,
            Action::Pass,
            "{passing}"
        );
    }
    assert_eq!(
        crawlers.decide(BINGBOT, "/robots.txt").action,
        Action::RobotsTxt
    );
    assert_eq!(
        crawlers
            .decide(BINGBOT, "/.well-known/acme-challenge/x")
            .action,
        Action::Pass
    );
    for beside in [
        "/.well-known/acme-challenge/../../a",
        "/.well-known/acme-challenge/",
        "/.well-known/acme-challenge/x/y",
    ] {
        assert_eq!(
            crawlers.decide(BINGBOT, beside).action.name(),
            "pause",
            "{beside}"
        );
    }
    let everyone = world(pause(
        PauseAudience::Everyone,
        Some(Timestamp(10 * DAY + 10)),
    ));
    assert_eq!(everyone.decide(PERSON, "/").action.name(), "pause");
    assert_eq!(
        everyone.decide(BINGBOT, "/robots.txt").action.name(),
        "pause"
    );
    let over = World {
        now: Timestamp(10 * DAY + 50),
        ..everyone
    };
    assert_eq!(over.decide(PERSON, "/").action, Action::Pass);
    let half = world(pause(PauseAudience::Crawlers, Some(Timestamp(10 * DAY))));
    assert_eq!(
        half.decide(BINGBOT, "/robots.txt").action,
        Action::RobotsTxt,
        "its part of the pause is over"
    );
}

#[test]
fn hosts_choose_the_site() {
    let texts = [
        "hosts: [shop.example, 'shop.example:8080']\n",
        "hosts: '*.shop.example'\n",
        "hosts: 'shop.example:9190'\n",
        "",
        "hosts: ['*.deep.shop.example', '[2001:db8::1]']\n",
    ];
    let entries = texts.map(|hosts| {
        let site = site(&format!("{hosts}robots: {{ origin: replace }}\n"));
        SiteEntry::new(site, Timestamp(0))
    });
    let snapshot = Snapshot::new(entries.to_vec(), 0);
    for (host, expected) in [
        ("shop.example", 0),
        ("SHOP.Example.", 0),
        ("shop.example:80", 0),
        ("shop.example:8080", 0),
        ("shop.example:9190", 2),
        ("www.shop.example:443", 1),
        ("a.b.shop.example", 1),
        ("x.deep.shop.example", 4),
        ("deep.shop.example", 1),
        ("[2001:DB8::1]:80", 4),
        ("other.example", 3),
        ("", 3),
        ("shop.example.evil.example", 3),
    ] {
        assert_eq!(
            snapshot.site_for_host(host.as_bytes()),
            Some(expected),
            "{host}"
        );
    }
    let long = "a".repeat(400) + ".shop.example";
    assert_eq!(snapshot.site_for_host(long.as_bytes()), Some(3));
}

fn served_robots_txt(text: &str) -> String {
    String::from_utf8_lossy(&site(text).robots_txt.body).into_owned()
}

#[test]
fn purposes_are_published_for_each_of_their_tokens() {
    let text = served_robots_txt(
        "purposes: { training: disallow, archive: allow }\nrobots:\n  origin: replace\n  groups:\n    - { agents: '*', disallow: [/cart/], crawl_delay: 2s }\n    - { agents: CCBot, disallow: [/x/] }\n",
    );
    for group in [
        "User-agent: GPTBot\nDisallow: /\n",
        "User-agent: Google-Extended\nDisallow: /\n",
        "User-agent: CCBot\nDisallow: /x/\n",
        "User-agent: archive.org_bot\nDisallow: /cart/\nCrawl-delay: 2\n",
    ] {
        assert!(text.contains(group), "{group} is not in\n{text}");
    }
    assert!(
        !text.to_lowercase().contains("user-agent: bingbot"),
        "search inherits"
    );
    let open = served_robots_txt(
        "purposes: { archive: allow }\nacknowledge: site_disallowed\nrobots: { origin: replace, groups: [{ agents: '*', disallow: ['/', /cart/] }] }\n",
    );
    assert!(
        open.contains("User-agent: archive.org_bot\nDisallow: /cart/\n"),
        "without the blanket rule: {open}"
    );
}

#[test]
fn tokens_with_the_same_rules_share_a_group() {
    let paths: Vec<String> = (0..200)
        .map(|index| format!("/some/rather/long/path/number/{index}/"))
        .collect();
    let text = format!(
        "purposes: {{ archive: allow, seo: allow }}\nrobots: {{ origin: replace, groups: [{{ agents: '*', disallow: [{}] }}] }}\n",
        paths.join(", ")
    );
    let body = served_robots_txt(&text);
    assert!(body.len() < 64 * 1024, "{} bytes", body.len());
    assert!(
        body.contains("User-agent: AhrefsBot\nUser-agent: "),
        "they share"
    );
    assert!(
        body.contains("User-agent: *\nDisallow: /some"),
        "`*` stays alone"
    );
    // The same where `*` has the rules of the others and stands before them.
    let paths = paths.join(", ");
    let agents: Vec<String> = (0..60).map(|index| format!("Our{index}Bot")).collect();
    let agents = agents.join(", ");
    let text = format!(
        "robots: {{ origin: replace, groups: [{{ agents: ['*', {agents}], disallow: [{paths}] }}] }}\n"
    );
    let body = served_robots_txt(&text);
    assert!(body.len() < 64 * 1024, "{} bytes", body.len());
    assert!(
        body.contains("User-agent: *\nDisallow: /some"),
        "`*` stays alone"
    );
}

#[test]
fn robots_txt_above_500_kib_is_an_error() {
    let paths: Vec<String> = (0..6_000)
        .map(|index| format!("/{}{index}", "x".repeat(90)))
        .collect();
    let text = format!(
        "robots: {{ origin: replace, groups: [{{ agents: '*', disallow: [{}] }}] }}\n",
        paths.join(", ")
    );
    assert_eq!(errors(&text), [("robots-txt-too-large", 1)]);
}

#[test]
fn staging_is_crawlable_and_has_noindex() {
    let world = World::from_policy(
        "environment: staging\nrobots: { origin: replace, groups: [{ agents: '*', disallow: [/a/] }] }\nindexing: [{ types: application/pdf, tag: noarchive }]\nenforcement: { mode: enforce }\n",
    );
    assert_eq!(world.outcome(BINGBOT, "/a/"), ALLOWED);
    assert_eq!(world.tags("/a/", 200, "text/html"), ["noindex"]);
    assert_eq!(
        world.tags("/a/x.pdf", 200, "application/pdf"),
        ["noindex, noarchive"]
    );
    let closed = served_robots_txt(
        "environment: staging\nstaging_crawl: disallow\nrobots: { origin: replace }\n",
    );
    assert!(closed.contains("User-agent: *\nDisallow: /\n"), "{closed}");
}

#[test]
fn tags_follow_path_type_and_status() {
    let world = World::from_policy(&policy_with(
        "",
        r#"indexing:
  - { types: [application/pdf], tag: [noindex, noarchive] }
  - { types: ["image/*"], tags: { "*": noimageindex, googlebot: nofollow }, not: { paths: [/images/press/] } }
  - { path_regex: "^/events/.*\\.html$", tag: "max-snippet: 50" }
  - { paths: ["/events/"], tag: "max-snippet: 0", not: { status: [404], types: [text/html] } }
  - { status: [4xx], tag: noindex }"#,
    ));
    assert_eq!(
        world.tags("/a.pdf", 200, "Application/PDF; version=1.7"),
        ["noindex, noarchive"]
    );
    assert_eq!(
        world.tags("/images/a.png", 200, "image/png"),
        ["noimageindex", "googlebot: nofollow"]
    );
    assert!(
        world
            .tags("/images/press/a.png", 200, "image/png")
            .is_empty()
    );
    assert_eq!(
        world.tags("/events/a.html?q=1", 200, "text/html"),
        ["max-snippet: 0"],
        "the strictest value of two rules"
    );
    assert_eq!(
        world.tags("/events/a.html", 404, "text/html"),
        ["noindex, max-snippet: 50"],
        "excluded only where all of `not` holds"
    );
    assert_eq!(
        world.tags("/events/a.html", 404, "text/plain"),
        ["noindex, max-snippet: 0"]
    );
    assert!(world.tags("/a.pdf", 103, "application/pdf").is_empty());
    let escaped = World::from_policy(&policy_with(
        "",
        r#"indexing: { path_regex: "^/bücher/.*\\*$", tag: noindex }"#,
    ));
    assert_eq!(
        escaped.tags("/b%C3%BCcher/a*?x", 200, "text/html"),
        ["noindex"],
        "expressions are for decoded paths"
    );
    assert!(world.tags("/", 200, "text/html").is_empty());
}

#[test]
fn response_304_has_the_tags_of_its_200() {
    let world = World::from_policy(&policy_with(
        "",
        "indexing:\n  - { paths: [/a/], status: [200], tag: noarchive }\n  - { paths: [/a/b/], types: [text/html], tag: nosnippet }",
    ));
    assert_eq!(world.tags("/a/", 304, ""), ["noarchive"]);
    assert!(
        world.tags("/a/b/", 304, "").is_empty(),
        "a partial field would replace the stored one"
    );
}

#[test]
fn interlocks_reject_deindexing_of_production_sites() {
    let closed = "robots: { origin: replace, groups: [{ agents: '*', disallow: / }] }\n";
    assert_eq!(errors(closed), [("site-disallowed", 1)]);
    assert!(errors(&format!("{closed}acknowledge: site_disallowed\n")).is_empty());
    assert_eq!(
        errors("purposes: { search: disallow }\nrobots: { origin: replace }\n"),
        [("site-disallowed", 1)]
    );
    assert!(errors(&format!("environment: staging\n{closed}")).is_empty());
    let noindex = "robots: { origin: replace }\nindexing: [{ tag: noindex }]\n";
    assert_eq!(errors(noindex), [("site-noindex", 2)]);
    assert_eq!(
        errors("robots: { origin: replace }\nindexing: [{ tags: { googlebot: none } }]\n"),
        [("site-noindex", 2)]
    );
    assert!(errors(&format!("{noindex}acknowledge: [site_noindex]\n")).is_empty());
    let pause = "robots: { origin: replace }\npause: { from: 2026-12-01, until: 2026-12-03 }\n";
    assert_eq!(errors(pause), [("long-pause", 2)]);
    assert!(errors(&format!("{pause}acknowledge: long_pause\n")).is_empty());
}

/// Whether a policy may use the word as a token.
fn is_policy_word(word: &str) -> bool {
    Registry::builtin().find(word).is_none() && !is_generic_bot_name(word.as_bytes())
}

/// The policies use every word of the user agents of people as a token.
#[test]
fn people_are_not_judged_with_any_policy() {
    let words = visitor_words()
        .into_iter()
        .filter(|word| is_policy_word(word));
    let words: Vec<String> = words.map(|word| format!("\"{word}\"")).collect();
    let (list, enforced) = (words.join(", "), words.join(": enforce, "));
    let described: Vec<String> = words
        .iter()
        .take(150)
        .map(|word| format!("{{ token: {word} }}"))
        .collect();
    for text in [
        policy_with(
            &format!("{{ agents: [\"*\", {list}, bot, spider, crawler], disallow: / }}"),
            "enforcement: { mode: enforce }",
        ),
        policy_with(
            "{ agents: \"*\", disallow: / }",
            &format!("enforcement: {{ mode: enforce, agents: {{ {enforced}: enforce }} }}"),
        ),
        policy_with(
            "{ agents: \"*\", disallow: / }",
            &format!(
                "enforcement: {{ mode: enforce, purposes: {{ other: enforce, tool: enforce }} }}\ncrawlers: [{}]",
                described.join(", ")
            ),
        ),
    ] {
        let world = World::from_policy(&format!("{text}\nacknowledge: site_disallowed\n"));
        for person in visitor_user_agents() {
            let decision = world.decide(person, "/x/");
            assert_eq!(
                (decision.claim, decision.kind, decision.action),
                (Claim::Visitor, Kind::NotACrawler, Action::Pass),
                "{person}"
            );
        }
        assert_ne!(
            world
                .decide("Mozilla/5.0 (compatible; GPTBot/1.2)", "/x/")
                .kind,
            Kind::NotACrawler
        );
    }
}

#[test]
fn acknowledged_marker_blocks_the_app() {
    let described =
        "crawlers: [{ token: Insta, user_agent: Instagram }]\nenforcement: { mode: enforce }";
    let policy = policy_with("{ agents: Insta, disallow: / }", described);
    assert_eq!(errors(&policy), [("blocks-people", 4)]);
    let world = World::from_policy(&format!("{policy}\nacknowledge: [blocks_people]\n"));
    let apps: Vec<&str> = visitor_user_agents()
        .filter(|person| person.contains("Instagram"))
        .collect();
    assert!(!apps.is_empty());
    for person in visitor_user_agents() {
        let is_blocked = matches!(world.decide(person, "/x/").action, Action::Block(_));
        assert_eq!(is_blocked, apps.contains(&person), "{person}");
    }
}

/// An older robots.txt may have a browser as a token, too.
#[test]
fn superseded_version_identifies_no_person() {
    let registry = Registry::builtin();
    let parsed = ParsedRobotsVersion::parse(
        b"User-agent: Safari\nUser-agent: bot\nDisallow: /\n"
            .as_slice()
            .into(),
        registry,
    );
    for person in visitor_user_agents() {
        assert_eq!(
            registry.identify_on_site(person.as_bytes(), &parsed.tokens),
            Claim::Visitor,
            "{person}"
        );
    }
    let bot = b"PriceHunter/2.0 (bot; +http://x.example)";
    assert_eq!(
        registry.identify_on_site(bot, &parsed.tokens),
        Claim::UnknownBot
    );
}

#[test]
fn explain_identifies_people_as_the_gate_does() {
    let world = World::from_policy(&policy_with(
        "{ agents: [Spider, Instagram, bot], disallow: / }",
        "enforcement: { mode: enforce }",
    ));
    for person in visitor_user_agents().chain(["Instagram"]) {
        assert!(world.explain(person, "/x/").crawler.is_none(), "{person}");
    }
    assert_eq!(
        world
            .explain("bot", "/x/")
            .crawler
            .map(|crawler| crawler.id)
            .as_deref(),
        Some("other")
    );
}

/// The line has no warnings, and blocks the bot but no other bot and no person.
#[test]
fn enforce_line_blocks_exactly_the_unknown_bot() {
    let closed = |more: &str| policy_with("{ agents: '*', disallow: /x/ }", more);
    let others = [
        "OtherHunter/1.0 (bot; +http://y.example)",
        "Mozilla/5.0 (Linux; Android 8.1.0; M bot 51) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/74.0 Mobile Safari/537.36",
    ];
    for (user_agent, lines) in [
        ("PriceHunter/2.0 (bot; +http://x.example)", 2),
        (
            "Mozilla/5.0 (compatible; PriceHunter/2.0; bot; +http://x.example)",
            2,
        ),
        ("FoozleBot/1.0 (+https://foozle.example)", 2),
        // Names that a policy cannot have without a warning, and none.
        ("bot/1.0 (+http://x.example)", 1),
        ("ab/1.0 (bot; +http://x.example)", 1),
        ("Gogglebot/1.0 (+http://x.example)", 1),
        ("Opera/1.0 (bot; +http://x.example)", 1),
        ("The Web Reader (bot; +http://x.example)", 1),
    ] {
        let found = World::from_policy(&closed("enforcement: { mode: enforce }"))
            .explain(user_agent, "/x/")
            .to_enforce;
        assert_eq!(found.len(), lines, "{user_agent}: {found:?}");
        for (place, line) in found.iter().enumerate() {
            let policy = closed(&line.replace("enforcement: {", "enforcement: { mode: enforce,"));
            assert!(
                errors(&policy).is_empty(),
                "{policy}: {:?}",
                errors(&policy)
            );
            let world = World::from_policy(&policy);
            assert!(
                matches!(world.decide(user_agent, "/x/").action, Action::Block(_)),
                "{policy} {user_agent}"
            );
            let is_for_all = place + 1 == lines;
            assert_eq!(
                matches!(world.decide(others[0], "/x/").action, Action::Block(_)),
                is_for_all,
                "{policy}"
            );
            assert_eq!(
                world.decide(others[1], "/x/").action,
                Action::Pass,
                "{policy}"
            );
        }
    }
}

#[test]
fn lints_find_likely_mistakes() {
    assert_eq!(
        errors(&policy_with(
            "{ agents: archive-org-bot, disallow: [/x/] }",
            ""
        )),
        [("not-a-token", 3)]
    );
    assert_eq!(
        errors(&policy_with(
            "{ agents: '*', disallow: [/drafts/] }",
            "indexing: [{ paths: [/drafts/], tag: noindex }]"
        )),
        [("noindex-unseen", 4)]
    );
    assert_eq!(
        errors(
            "robots:\n  origin: replace\n  groups:\n    - { agents: '*', disallow: [/cart/] }\n    - { agents: Googlebot, disallow: [/x/] }\n    - { agents: [Applebot], extends: '*' }\n"
        ),
        [("group-drops-star-rules", 5)]
    );
    assert_eq!(
        errors("robots: { origin: replace }\nenforcement: { mode: enforce, disallowed: 503 }\n"),
        [("permanent-error", 0)]
    );
    assert_eq!(
        errors(
            "robots: { origin: replace }\nenforcement: { agents: { Gogglebot: { mode: off } } }\n"
        ),
        [("unknown-crawler", 2)]
    );
}

#[test]
fn policy_with_failing_tests_is_rejected() {
    let text = policy_with(
        "{ agents: '*', disallow: [/a/] }",
        "tests:\n  - { agent: bingbot, path: /a/, expect: allowed }\n  - { agent: bingbot, path: /a/, expect: disallowed }\n  - { agent: bingbot, path: /b, expect: { tag: noindex, action: block } }\n  - { agent: bingbot, path: /b, host: elsewhere.example, expect: allowed }",
    );
    let (site, findings) = load_text(&format!("hosts: shop.example\n{text}"));
    assert!(site.is_none());
    let expected = [
        (6, "\"disallowed\""),
        (8, "X-Robots-Tag"),
        (8, "\"pass\""),
        (9, "host"),
    ];
    assert_eq!(findings.items.len(), expected.len(), "{findings:?}");
    for (finding, (line, value)) in findings.items.iter().zip(expected) {
        assert_eq!(finding.id, "test-failed");
        assert_eq!(finding.span.map(|span| span.line), Some(line));
        assert!(finding.message.contains(value), "{finding:?}");
    }
    assert!(
        findings.items[0]
            .help
            .as_deref()
            .is_some_and(|help| help.contains("policies/shop.yaml:4:")),
        "{findings:?}"
    );
}

#[test]
fn failed_test_says_whether_the_rule_decided() {
    let helps = ["as_claimed", "refuse"].map(|unverified| {
        let rest = format!(
            "enforcement: {{ mode: enforce, unverified: {unverified} }}\ntests: [{{ agent: bingbot, path: /, expect: {{ status: 404 }} }}]"
        );
        let text = policy_with("{ agents: '*', allow: [/] }", &rest);
        let (_, findings) = load_text(&format!("hosts: shop.example\n{text}"));
        let mut found = findings.items.into_iter();
        let failed = found.find(|finding| finding.id == "test-failed");
        failed.and_then(|finding| finding.help).expect("a help")
    });
    assert_ne!(helps[0], helps[1]);
}

#[test]
fn explanation_has_the_line_of_the_policy() {
    let world = World::from_policy(
        "purposes:\n  training: disallow\nrobots: { origin: replace }\nenforcement: { mode: enforce }\n",
    );
    let facts = RequestFacts {
        host: b"shop.example",
        target: b"/cart/",
        method: b"GET",
        user_agent: b"gptbot",
        client: None,
        identity: Identity::Unverified,
        now: Timestamp(0),
    };
    let explanation = explain(
        &world.snapshot,
        Registry::builtin(),
        &facts,
        CachedVersionsBasis::Unknown,
        &ResponseFacts::default(),
    );
    let json = serde_json::to_value(&explanation).expect("JSON");
    assert_eq!(json["crawler"]["id"], "gptbot");
    assert_eq!(json["rule"]["source"], "policies/shop.yaml:2:13");
    assert_eq!(
        json["action"],
        serde_json::json!({ "kind": "block", "status": 403 })
    );
    let text = explanation.to_text(&world.snapshot, false);
    for part in [
        "GPTBot",
        "Disallow: /",
        "training: disallow",
        "policies/shop.yaml:2:13",
        "403",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}

#[test]
fn explanation_has_the_crawl_delay_and_its_line() {
    let policy = |mode: &str| {
        format!(
            "robots:\n  origin: replace\n  groups:\n    - agents: ['*']\n      disallow: [/cart/]\n      crawl_delay: 2s\n\
             enforcement: {{ mode: {mode} }}\n"
        )
    };
    let world = World::from_policy(&policy("enforce"));
    let explanation = world.explain("bingbot", "/");
    let delay = &serde_json::to_value(&explanation).expect("JSON")["crawl_delay"];
    let answer = serde_json::json!({ "kind": "slow", "status": 429, "retry_after": 2 });
    assert_eq!(delay["seconds"], "2");
    assert_eq!(delay["source"], "policies/shop.yaml:6:20");
    assert_eq!(delay["action"], answer);
    let text = explanation.to_text(&world.snapshot, false);
    assert!(
        text.contains("Crawl-delay: 2") && text.contains("429"),
        "{text}"
    );

    let observing = World::from_policy(&policy("observe")).explain("bingbot", "/");
    let observing = observing.crawl_delay.expect("a delay that is observed");
    assert_eq!(observing.observed, Some(UnenforcedReason::Mode));
    for (mode, crawler, target) in [
        ("off", "bingbot", "/"),
        ("enforce", "Googlebot", "/"),
        ("enforce", "bingbot", "/cart/"),
        ("enforce", "bingbot", "/robots.txt"),
    ] {
        let explanation = World::from_policy(&policy(mode)).explain(crawler, target);
        assert_eq!(explanation.crawl_delay, None, "{mode} {crawler} {target}");
    }
}

#[path = "decide_tests.rs"]
mod decide_tests;
#[path = "readings_tests.rs"]
mod readings_tests;

#[test]
fn explanation_marks_names_without_requests() {
    let world = World::from_policy("robots: { origin: replace }\n");
    for crawler in Registry::builtin().crawlers() {
        let explanation = world.explain(&crawler.id, "/");
        let makes_none = explanation
            .crawler
            .is_some_and(|crawler| crawler.makes_no_requests);
        assert_eq!(makes_none, crawler.markers.is_empty(), "{}", crawler.id);
    }
    assert!(
        world
            .explain("Google-Extended", "/")
            .crawler
            .is_some_and(|crawler| crawler.makes_no_requests)
    );
}
