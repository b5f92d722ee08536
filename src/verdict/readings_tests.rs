//! Tests of requests by Google's crawlers, which are judged by RFC 9309 and by the way in which
//! Google's published parser reads robots.txt. A request is a violation only if both disallow it.

use super::*;
use crate::robots::Dialect;
use crate::verdict::decision::RuleRef;

const INDEX_PAGE: &str = "{ agents: '*', disallow: /d/, allow: /d/index.html }";
const STOREBOT: &str = "Mozilla/5.0 (X11; Linux x86_64; Storebot-Google/1.0) AppleWebKit/537.36";

/// Kind, action and readings.
fn decide_names(
    world: &World,
    user_agent: &str,
    target: &str,
) -> (&'static str, &'static str, &'static str) {
    let decision = world.decide(user_agent, target);
    (
        decision.kind.name(),
        decision.action.name(),
        decision.readings.name(),
    )
}

fn with_superseded(now: &str, before: &[u8]) -> World {
    let parsed = Arc::new(ParsedRobotsVersion::parse(
        before.into(),
        Registry::builtin(),
    ));
    let superseded = SupersededVersion {
        parsed,
        since: Timestamp(0),
        superseded_at: Timestamp(10 * DAY),
    };
    World::with_history(
        SiteEntry::new(site(&enforced_policy(now)), Timestamp(0)),
        vec![superseded],
        None,
    )
}

#[test]
fn google_may_fetch_directory_of_allowed_index_page() {
    let world = World::from_policy(&enforced_policy(INDEX_PAGE));
    for user_agent in [GOOGLEBOT, "Googlebot-Image/1.0", STOREBOT] {
        assert_eq!(
            decide_names(&world, user_agent, "/d/"),
            ("allowed", "pass", "only_rfc9309"),
            "{user_agent}"
        );
        assert_eq!(
            decide_names(&world, user_agent, "/d/index.html"),
            ("allowed", "pass", "both"),
            "{user_agent}"
        );
        assert_eq!(
            decide_names(&world, user_agent, "/d/other.html"),
            ("unproven", "block", "both"),
            "{user_agent}"
        );
        assert_eq!(
            decide_names(&world, user_agent, "/d/?page=2"),
            ("unproven", "block", "both"),
            "{user_agent}"
        );
        assert_eq!(
            decide_names(&world, user_agent, "/%64/"),
            ("ambiguous", "block", "only_rfc9309"),
            "{user_agent}"
        );
        assert_eq!(
            decide_names(&world, user_agent, "//d/"),
            ("ambiguous", "block", "both"),
            "{user_agent}"
        );
    }
    assert_eq!(
        decide_names(&world, BINGBOT, "/d/"),
        ("unproven", "block", "rfc9309")
    );
    let decided = world
        .decide(GOOGLEBOT, "/d/")
        .rule
        .and_then(|rule| rule.rule);
    let rules = &world.snapshot.sites()[0].site.document.groups[0].rules;
    assert_eq!(
        decided.map(|rule| rules[rule].to_string()).as_deref(),
        Some("Allow: /d/index.html")
    );
}

#[test]
fn other_spelling_of_closed_path_is_ambiguous_for_google() {
    let world = World::from_policy(&enforced_policy(
        "{ agents: '*', disallow: [/cart/, '/a%2fb', /b%C3%A4/] }",
    ));
    for target in [
        "/%63art/",
        "/%63art/x",
        "/car%74/?a",
        "/a%2fb",
        "/b%c3%a4/",
        "/b\u{e4}/",
    ] {
        let ambiguous = ("ambiguous", "block", "only_rfc9309");
        assert_eq!(
            decide_names(&world, GOOGLEBOT, target),
            ambiguous,
            "{target}"
        );
        assert_eq!(
            decide_names(&world, BINGBOT, target),
            ("unproven", "block", "rfc9309"),
            "{target}"
        );
    }
    for target in ["/cart/", "/a%2Fb", "/b%C3%A4/", "/cart/%63"] {
        assert_eq!(
            decide_names(&world, GOOGLEBOT, target),
            ("unproven", "block", "both"),
            "{target}"
        );
    }
}

#[test]
fn google_reads_escaped_signs_literally() {
    let world = World::from_policy(&enforced_policy(
        "{ agents: '*', disallow: ['/a%24b', '/a%2Ab', /c], allow: ['/c%24d'] }",
    ));
    for target in ["/a$b", "/a*b"] {
        assert_eq!(
            decide_names(&world, GOOGLEBOT, target),
            ("allowed", "pass", "only_rfc9309"),
            "{target}"
        );
        assert_eq!(
            decide_names(&world, BINGBOT, target),
            ("unproven", "block", "rfc9309"),
            "{target}"
        );
    }
    for target in ["/a%24b", "/a%2Ab"] {
        assert_eq!(
            decide_names(&world, GOOGLEBOT, target),
            ("unproven", "block", "both"),
            "{target}"
        );
    }
    assert_eq!(
        decide_names(&world, GOOGLEBOT, "/a%2ab"),
        ("ambiguous", "block", "only_rfc9309")
    );
    assert_eq!(
        decide_names(&world, GOOGLEBOT, "/c$d"),
        ("allowed", "pass", "only_google")
    );
    assert_eq!(decide_names(&world, GOOGLEBOT, "/c$d;x").0, "allowed");
}

#[test]
fn group_of_truncated_token_binds_google() {
    let groups = "{ agents: '*', disallow: /a/ }, { agents: Googlebot2, disallow: /b/ }, { agents: Googlebot.x, disallow: /c/ }";
    let world = World::from_policy(&enforced_policy(groups));
    assert_eq!(
        decide_names(&world, GOOGLEBOT, "/a/"),
        ("allowed", "pass", "only_rfc9309")
    );
    for target in ["/b/", "/c/"] {
        assert_eq!(
            decide_names(&world, GOOGLEBOT, target),
            ("allowed", "pass", "only_google"),
            "{target}"
        );
    }
    assert_eq!(
        decide_names(&world, STOREBOT, "/a/"),
        ("unproven", "block", "both")
    );
    // A crawler that RFC 9309 and Google bind by the group by which Google alone binds another.
    let shared =
        "{ agents: [Storebot-Google, Googlebot2], disallow: /b/ }, { agents: '*', disallow: /a/ }";
    let shared = World::from_policy(&enforced_policy(shared));
    assert_eq!(
        decide_names(&shared, STOREBOT, "/b/"),
        ("unproven", "block", "both")
    );
    assert_eq!(
        decide_names(&shared, GOOGLEBOT, "/a/"),
        ("allowed", "pass", "only_rfc9309")
    );
    assert_eq!(
        decide_names(&shared, GOOGLEBOT, "/b/"),
        ("allowed", "pass", "only_google")
    );
    let closed = World::from_policy(&enforced_policy(&groups.replace("/b/", "[/a/1, /b/]")));
    let rule = closed.decide(GOOGLEBOT, "/a/1").rule.expect("a rule");
    let document = &closed.snapshot.sites()[0].site.document;
    assert_eq!(document.groups[rule.group].agents, ["*"]);
    assert_eq!(
        decide_names(&closed, GOOGLEBOT, "/a/1"),
        ("unproven", "block", "both")
    );
}

/// A group without rules is written with `Allow: /`, which Google reads along with another group of
/// the same token.
#[test]
fn empty_group_joined_by_google_allows_all() {
    let groups = "{ agents: Storebot-Google, disallow: [/, /b/] }, { agents: Storebot-Google2 }";
    let world = World::from_policy(&enforced_policy(groups));
    assert_eq!(
        decide_names(&world, STOREBOT, "/a"),
        ("allowed", "pass", "only_rfc9309")
    );
    assert_eq!(
        world.decide(STOREBOT, "/a").rule,
        Some(RuleRef {
            group: 1,
            rule: None
        })
    );
    assert_eq!(
        decide_names(&world, STOREBOT, "/b/"),
        ("unproven", "block", "both")
    );
}

#[test]
fn superseded_version_has_googles_reading() {
    let index_page = b"User-agent: *\nDisallow: /d/\nAllow: /d/index.html\n";
    let closed = "{ agents: '*', disallow: [/d/, /e/] }";
    let world = with_superseded(closed, index_page);
    assert_eq!(
        decide_names(&world, GOOGLEBOT, "/d/"),
        ("stale_copy", "pass", "both")
    );
    assert_eq!(
        decide_names(&world, BINGBOT, "/d/"),
        ("unproven", "block", "rfc9309")
    );
    assert_eq!(
        decide_names(&world, GOOGLEBOT, "/d/x"),
        ("unproven", "block", "both")
    );
    assert_eq!(
        decide_names(&world, GOOGLEBOT, "/%64/"),
        ("ambiguous", "block", "only_rfc9309")
    );
    // Written otherwise than crawlgate would: Google decodes nothing.
    let escaped = with_superseded(
        closed,
        b"User-agent: Googlebot\nUser-agent: bingbot\nDisallow: /%64/\nDisallow: /e/\n",
    );
    assert_eq!(decide_names(&escaped, GOOGLEBOT, "/d/").0, "stale_copy");
    assert_eq!(decide_names(&escaped, BINGBOT, "/d/").0, "unproven");
    assert_eq!(decide_names(&escaped, GOOGLEBOT, "/e/").0, "unproven");
    let cut = with_superseded(
        closed,
        b"User-agent: *\nDisallow: /\n\nUser-agent: Googlebot2\nDisallow: /d/\n",
    );
    assert_eq!(decide_names(&cut, GOOGLEBOT, "/e/").0, "stale_copy");
    assert_eq!(decide_names(&cut, GOOGLEBOT, "/d/").0, "unproven");
    assert_eq!(decide_names(&cut, BINGBOT, "/e/").0, "unproven");
}

#[test]
fn second_matcher_is_made_only_if_rules_differ() {
    let own = |groups: &str| site(&enforced_policy(groups)).google_rules.len();
    assert_eq!(
        own("{ agents: '*', disallow: [/a, '/*.pdf$'], allow: /index.html.bak/x }"),
        0
    );
    assert_eq!(
        own("{ agents: GPTBot, allow: /d/index.html }, { agents: '*', disallow: /a }"),
        0
    );
    assert_eq!(
        own("{ agents: '*', disallow: /a }, { agents: Googlebot, allow: /d/index.htm }"),
        1
    );
    assert_eq!(own(INDEX_PAGE), 1);
    let parsed = |text: &str| {
        ParsedRobotsVersion::parse(text.as_bytes().into(), Registry::builtin())
            .google
            .is_some()
    };
    assert!(!parsed(
        "User-agent: *\nDisallow: /a\n\nUser-agent: MJ12bot\nUser-agent: MJ13bot\nDisallow: /%61\n"
    ));
    assert!(parsed("User-agent: *\nDisallow: /%61\n"));
}

#[test]
fn only_google_crawlers_have_googles_reading() {
    for crawler in Registry::builtin().crawlers() {
        let expected = if crawler.operator == "Google" {
            Dialect::Google
        } else {
            Dialect::Rfc9309
        };
        assert_eq!(crawler.reading, expected, "{}", crawler.id);
    }
}

#[test]
fn explanation_names_the_readings() {
    let world = World::from_policy(&enforced_policy(INDEX_PAGE));
    for (user_agent, target, readings, rule) in [
        ("Googlebot", "/d/", "only_rfc9309", "/d/index.html"),
        ("Googlebot", "/d/x", "both", "/d/"),
        ("Googlebot", "/%64/", "only_rfc9309", "/d/"),
        ("bingbot", "/d/", "rfc9309", "/d/"),
    ] {
        let facts = RequestFacts {
            host: b"shop.example",
            target: target.as_bytes(),
            method: b"GET",
            user_agent: user_agent.as_bytes(),
            client: None,
            identity: Identity::Unverified,
            now: world.now,
        };
        let explanation = explain(
            &world.snapshot,
            Registry::builtin(),
            &facts,
            CachedVersionsBasis::Unknown,
            &ResponseFacts::default(),
        );
        let json = serde_json::to_value(&explanation).expect("JSON");
        assert_eq!(
            (&json["readings"], &json["rule"]["pattern"]),
            (&readings.into(), &rule.into()),
            "{target}"
        );
    }
}
