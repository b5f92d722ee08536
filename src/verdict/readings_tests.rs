//! Google's crawlers are judged by Google's published parser as well as by RFC 9309: a violation
//! needs both.

use super::*;
use crate::robots::Dialect;
use crate::verdict::decision::RuleRef;

const INDEX_PAGE: &str = "{ agents: '*', disallow: /d/, allow: /d/index.html }";
const STOREBOT: &str = "Mozilla/5.0 (X11; Linux x86_64; Storebot-Google/1.0) AppleWebKit/537.36";

/// Kind, action and readings.
fn read(
    world: &World,
    user_agent: &str,
    target: &str,
) -> (&'static str, &'static str, &'static str) {
    let decision = world.ask(user_agent, target);
    (
        decision.kind.name(),
        decision.action.name(),
        decision.readings.name(),
    )
}

fn with_superseded(now: &str, before: &[u8]) -> World {
    let parsed = Arc::new(ParsedVersion::read(before.into(), Registry::builtin()));
    let superseded = SupersededVersion {
        parsed,
        since: Timestamp(0),
        superseded_at: Timestamp(10 * DAY),
    };
    World::with_history(
        SiteEntry::new(site(&enforced(now)), Timestamp(0)),
        vec![superseded],
        None,
    )
}

#[test]
fn directory_of_an_allowed_index_page_is_open_to_google() {
    let world = World::of(&enforced(INDEX_PAGE));
    for user_agent in [GOOGLEBOT, "Googlebot-Image/1.0", STOREBOT] {
        assert_eq!(
            read(&world, user_agent, "/d/"),
            ("allowed", "pass", "only_rfc9309"),
            "{user_agent}"
        );
        assert_eq!(
            read(&world, user_agent, "/d/index.html"),
            ("allowed", "pass", "both"),
            "{user_agent}"
        );
        assert_eq!(
            read(&world, user_agent, "/d/other.html"),
            ("unproven", "block", "both"),
            "{user_agent}"
        );
        assert_eq!(
            read(&world, user_agent, "/d/?page=2"),
            ("unproven", "block", "both"),
            "{user_agent}"
        );
        assert_eq!(
            read(&world, user_agent, "/%64/"),
            ("ambiguous", "block", "only_rfc9309"),
            "{user_agent}"
        );
        assert_eq!(
            read(&world, user_agent, "//d/"),
            ("ambiguous", "block", "both"),
            "{user_agent}"
        );
    }
    assert_eq!(
        read(&world, BINGBOT, "/d/"),
        ("unproven", "block", "rfc9309")
    );
    let decided = world.ask(GOOGLEBOT, "/d/").rule.and_then(|rule| rule.rule);
    let rules = &world.snapshot.sites()[0].site.document.groups[0].rules;
    assert_eq!(
        decided
            .map(|rule| rules[rule as usize].to_string())
            .as_deref(),
        Some("Allow: /d/index.html")
    );
}

#[test]
fn other_spelling_of_a_closed_path_is_closed_to_google() {
    let world = World::of(&enforced(
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
        assert_eq!(read(&world, GOOGLEBOT, target), ambiguous, "{target}");
        assert_eq!(
            read(&world, BINGBOT, target),
            ("unproven", "block", "rfc9309"),
            "{target}"
        );
    }
    for target in ["/cart/", "/a%2Fb", "/b%C3%A4/", "/cart/%63"] {
        assert_eq!(
            read(&world, GOOGLEBOT, target),
            ("unproven", "block", "both"),
            "{target}"
        );
    }
}

#[test]
fn escapes_of_signs_are_literal_to_google() {
    let world = World::of(&enforced(
        "{ agents: '*', disallow: ['/a%24b', '/a%2Ab', /c], allow: ['/c%24d'] }",
    ));
    for target in ["/a$b", "/a*b"] {
        assert_eq!(
            read(&world, GOOGLEBOT, target),
            ("allowed", "pass", "only_rfc9309"),
            "{target}"
        );
        assert_eq!(
            read(&world, BINGBOT, target),
            ("unproven", "block", "rfc9309"),
            "{target}"
        );
    }
    for target in ["/a%24b", "/a%2Ab"] {
        assert_eq!(
            read(&world, GOOGLEBOT, target),
            ("unproven", "block", "both"),
            "{target}"
        );
    }
    assert_eq!(
        read(&world, GOOGLEBOT, "/a%2ab"),
        ("ambiguous", "block", "only_rfc9309")
    );
    assert_eq!(
        read(&world, GOOGLEBOT, "/c$d"),
        ("allowed", "pass", "only_google")
    );
    assert_eq!(read(&world, GOOGLEBOT, "/c$d;x").0, "allowed");
}

#[test]
fn group_of_a_token_that_google_cuts_binds_google() {
    let groups = "{ agents: '*', disallow: /a/ }, { agents: Googlebot2, disallow: /b/ }, { agents: Googlebot.x, disallow: /c/ }";
    let world = World::of(&enforced(groups));
    assert_eq!(
        read(&world, GOOGLEBOT, "/a/"),
        ("allowed", "pass", "only_rfc9309")
    );
    for target in ["/b/", "/c/"] {
        assert_eq!(
            read(&world, GOOGLEBOT, target),
            ("allowed", "pass", "only_google"),
            "{target}"
        );
    }
    assert_eq!(read(&world, STOREBOT, "/a/"), ("unproven", "block", "both"));
    // A crawler that RFC 9309 and Google bind by the group by which Google alone binds another.
    let shared =
        "{ agents: [Storebot-Google, Googlebot2], disallow: /b/ }, { agents: '*', disallow: /a/ }";
    let shared = World::of(&enforced(shared));
    assert_eq!(
        read(&shared, STOREBOT, "/b/"),
        ("unproven", "block", "both")
    );
    assert_eq!(
        read(&shared, GOOGLEBOT, "/a/"),
        ("allowed", "pass", "only_rfc9309")
    );
    assert_eq!(
        read(&shared, GOOGLEBOT, "/b/"),
        ("allowed", "pass", "only_google")
    );
    let closed = World::of(&enforced(&groups.replace("/b/", "[/a/1, /b/]")));
    let rule = closed.ask(GOOGLEBOT, "/a/1").rule.expect("a rule");
    let document = &closed.snapshot.sites()[0].site.document;
    assert_eq!(document.groups[usize::from(rule.group)].agents, ["*"]);
    assert_eq!(
        read(&closed, GOOGLEBOT, "/a/1"),
        ("unproven", "block", "both")
    );
}

/// A group without rules is written with `Allow: /`, which Google reads along with another group of
/// the same token.
#[test]
fn group_without_rules_that_google_joins_to_another_opens_it() {
    let groups = "{ agents: Storebot-Google, disallow: [/, /b/] }, { agents: Storebot-Google2 }";
    let world = World::of(&enforced(groups));
    assert_eq!(
        read(&world, STOREBOT, "/a"),
        ("allowed", "pass", "only_rfc9309")
    );
    assert_eq!(
        world.ask(STOREBOT, "/a").rule,
        Some(RuleRef {
            group: 1,
            rule: None
        })
    );
    assert_eq!(read(&world, STOREBOT, "/b/"), ("unproven", "block", "both"));
}

#[test]
fn superseded_version_is_read_by_google_as_well() {
    let index_page = b"User-agent: *\nDisallow: /d/\nAllow: /d/index.html\n";
    let closed = "{ agents: '*', disallow: [/d/, /e/] }";
    let world = with_superseded(closed, index_page);
    assert_eq!(
        read(&world, GOOGLEBOT, "/d/"),
        ("stale_copy", "pass", "both")
    );
    assert_eq!(
        read(&world, BINGBOT, "/d/"),
        ("unproven", "block", "rfc9309")
    );
    assert_eq!(
        read(&world, GOOGLEBOT, "/d/x"),
        ("unproven", "block", "both")
    );
    assert_eq!(
        read(&world, GOOGLEBOT, "/%64/"),
        ("ambiguous", "block", "only_rfc9309")
    );
    // Written otherwise than crawlgate would: Google decodes nothing.
    let escaped = with_superseded(
        closed,
        b"User-agent: Googlebot\nUser-agent: bingbot\nDisallow: /%64/\nDisallow: /e/\n",
    );
    assert_eq!(read(&escaped, GOOGLEBOT, "/d/").0, "stale_copy");
    assert_eq!(read(&escaped, BINGBOT, "/d/").0, "unproven");
    assert_eq!(read(&escaped, GOOGLEBOT, "/e/").0, "unproven");
    let cut = with_superseded(
        closed,
        b"User-agent: *\nDisallow: /\n\nUser-agent: Googlebot2\nDisallow: /d/\n",
    );
    assert_eq!(read(&cut, GOOGLEBOT, "/e/").0, "stale_copy");
    assert_eq!(read(&cut, GOOGLEBOT, "/d/").0, "unproven");
    assert_eq!(read(&cut, BINGBOT, "/e/").0, "unproven");
}

#[test]
fn second_matcher_is_made_only_where_rules_differ() {
    let own = |groups: &str| site(&enforced(groups)).google_rules.len();
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
        ParsedVersion::read(text.as_bytes().into(), Registry::builtin())
            .google
            .is_some()
    };
    assert!(!parsed(
        "User-agent: *\nDisallow: /a\n\nUser-agent: MJ12bot\nUser-agent: MJ13bot\nDisallow: /%61\n"
    ));
    assert!(parsed("User-agent: *\nDisallow: /%61\n"));
}

#[test]
fn crawlers_of_google_alone_have_its_reading() {
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
    let world = World::of(&enforced(INDEX_PAGE));
    for (user_agent, target, readings, rule) in [
        ("Googlebot", "/d/", "only_rfc9309", "/d/index.html"),
        ("Googlebot", "/d/x", "both", "/d/"),
        ("Googlebot", "/%64/", "only_rfc9309", "/d/"),
        ("bingbot", "/d/", "rfc9309", "/d/"),
    ] {
        let facts = Facts {
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
