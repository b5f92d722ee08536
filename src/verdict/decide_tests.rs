//! Tests of judging a request for which several conditions hold at once. For example, the crawler
//! has requested a trap (a path that no obedient crawler requests), is exempt, needs a licence, or
//! has to keep a crawl delay, and its cache may have several versions of robots.txt.

use super::*;
use crate::policy::site::GroupBinding;

const ADSBOT: &str = "AdsBot-Google (+http://www.google.com/adsbot.html)";

/// Complete knowledge of the cached versions of a crawler that was served none.
fn complete_versions<'a>() -> CachedVersions<'a> {
    CachedVersions {
        basis: CachedVersionsBasis::Observed,
        ..CachedVersions::default()
    }
}

/// A request to judge, with fields that a test may change.
struct Request<'a> {
    world: &'a World,
    user_agent: &'a str,
    target: &'a str,
    identity: Identity,
    cached_versions: CachedVersions<'a>,
    behaviour: RecentBehaviour,
}

impl<'a> Request<'a> {
    fn new(world: &'a World, user_agent: &'a str, target: &'a str) -> Request<'a> {
        let identity = Identity::Unverified;
        let behaviour = RecentBehaviour::default();
        Request {
            world,
            user_agent,
            target,
            identity,
            cached_versions: complete_versions(),
            behaviour,
        }
    }

    fn to_judge(&self) -> RequestToJudge<'a> {
        let facts = RequestFacts {
            host: b"shop.example",
            target: self.target.as_bytes(),
            method: b"GET",
            user_agent: self.user_agent.as_bytes(),
            client: None,
            identity: self.identity,
            now: self.world.now,
        };
        let claimant = SiteClaim::find(&self.world.snapshot, Registry::builtin(), &facts)
            .expect("a site has the host");
        RequestToJudge {
            registry: Registry::builtin(),
            facts,
            claimant,
            cached_versions: self.cached_versions,
        }
    }

    fn decide(&self) -> Decision {
        decide_for(
            &self.to_judge(),
            self.behaviour,
            &mut DecisionScratch::default(),
        )
    }
}

fn superseded(text: &str) -> [SupersededVersion; 1] {
    let parsed = Arc::new(ParsedRobotsVersion::parse(
        text.as_bytes().into(),
        Registry::builtin(),
    ));
    [SupersededVersion {
        parsed,
        since: Timestamp(0),
        superseded_at: Timestamp(10 * DAY),
    }]
}

fn caching(versions: &[SupersededVersion]) -> CachedVersions<'_> {
    CachedVersions {
        versions,
        cached: 1,
        ..complete_versions()
    }
}

#[test]
fn never_fetched_marks_violations_without_a_served_copy() {
    let world = World::from_policy(&enforced_policy("{ agents: '*', disallow: [/a/] }"));
    let mark = |request: Request<'_>| {
        let decision = request.decide();
        (decision.kind, decision.never_fetched)
    };
    let violation = || Request::new(&world, BINGBOT, "/a/");
    let served = CachedVersions {
        was_served: true,
        ..complete_versions()
    };
    assert_eq!(mark(violation()), (Kind::Violation, true));
    assert_eq!(
        mark(Request {
            cached_versions: served,
            ..violation()
        }),
        (Kind::Violation, false)
    );
    assert_eq!(
        mark(Request {
            cached_versions: CachedVersions::default(),
            ..violation()
        }),
        (Kind::Unproven, false)
    );
    assert_eq!(
        mark(Request {
            identity: Identity::Impostor,
            ..violation()
        }),
        (Kind::Impostor, false)
    );
    let trapped = RecentBehaviour {
        trapped: true,
        ..RecentBehaviour::default()
    };
    assert_eq!(
        mark(Request {
            behaviour: trapped,
            ..violation()
        }),
        (Kind::Trapped, false)
    );
    assert_eq!(
        mark(Request::new(&world, BINGBOT, "/")),
        (Kind::Allowed, false)
    );
    assert_eq!(
        mark(Request::new(&world, BINGBOT, "//a/")),
        (Kind::Ambiguous, false)
    );
}

#[test]
fn mode_off_records_nothing() {
    for (mode, recorded) in [("off", false), ("observe", true), ("enforce", true)] {
        let world = World::from_policy(&policy_with(
            "{ agents: '*', disallow: [/a/] }",
            &format!("enforcement: {{ mode: {mode} }}"),
        ));
        let decision = Request::new(&world, BINGBOT, "/a/").decide();
        assert_eq!(
            (decision.kind, decision.recorded),
            (Kind::Violation, recorded),
            "{mode}"
        );
    }
}

#[test]
fn trap_counts_only_if_every_cached_version_has_it() {
    let world = World::from_policy(&policy_with(
        "{ agents: '*', disallow: [/a/] }",
        "enforcement: { mode: enforce, traps: [/trap/] }",
    ));
    let hits = |request: Request<'_>| request.decide().trap_hit;
    let request = |user_agent| Request::new(&world, user_agent, "/trap/");
    assert!(hits(request(BINGBOT)));
    assert!(hits(Request {
        identity: Identity::Verified,
        ..request(BINGBOT)
    }));
    assert!(
        !hits(Request {
            identity: Identity::Impostor,
            ..request(BINGBOT)
        }),
        "another's name"
    );
    assert!(
        !hits(Request::new(&world, BINGBOT, "/a/")),
        "disallowed, and no trap"
    );
    assert!(!hits(request(ADSBOT)), "not bound");
    assert!(!hits(request(PERSON)));
    assert!(
        !hits(Request::new(&world, GOOGLEBOT, "/%74rap/")),
        "allowed by its own parser"
    );
    assert!(
        !hits(Request {
            cached_versions: CachedVersions::default(),
            ..request(BINGBOT)
        }),
        "not observed"
    );
    let forgotten = CachedVersions {
        may_be_unknown: true,
        ..complete_versions()
    };
    assert!(
        !hits(Request {
            cached_versions: forgotten,
            ..request(BINGBOT)
        }),
        "a version is not known any more"
    );
    let (knows, does_not) = (
        superseded("User-agent: *\nDisallow: /trap/\n"),
        superseded("User-agent: *\nDisallow: /\n"),
    );
    assert!(hits(Request {
        cached_versions: caching(&knows),
        ..request(BINGBOT)
    }));
    assert!(
        !hits(Request {
            cached_versions: caching(&does_not),
            ..request(BINGBOT)
        }),
        "disallowed without a trap"
    );
    for more in ["mode: off", "mode: enforce, exempt: [Bingbot]"] {
        let text = policy_with(
            "{ agents: '*', disallow: [/a/] }",
            &format!("enforcement: {{ {more}, traps: [/trap/] }}"),
        );
        assert!(
            !hits(Request::new(&World::from_policy(&text), BINGBOT, "/trap/")),
            "{more}"
        );
    }
}

#[test]
fn tdmrep_is_allowed_where_all_is_disallowed() {
    let text = "acknowledge: site_disallowed\ntdm: [{ reservation: yes }]\n";
    let world = World::from_policy(&format!(
        "{}{text}",
        enforced_policy("{ agents: '*', disallow: [/] }")
    ));
    for identity in [Identity::Unverified, Identity::Impostor] {
        let request = Request {
            identity,
            ..Request::new(&world, BINGBOT, "/.well-known/tdmrep.json")
        };
        let decision = request.decide();
        assert_eq!(
            (decision.verdict, decision.kind, decision.action),
            (Verdict::Allowed, Kind::Allowed, Action::Tdmrep)
        );
        assert!(decision.rule.is_some_and(|rule| rule.rule.is_none()));
    }
    assert_eq!(
        Request::new(&world, BINGBOT, "/.well-known/tdmrep.json5")
            .decide()
            .kind,
        Kind::Violation
    );
}

#[test]
fn violation_of_exempt_crawler_has_kind_exempt() {
    let text = policy_with(
        "{ agents: '*', disallow: [/a/] }",
        "enforcement: { mode: enforce, exempt: [Bingbot] }",
    );
    let world = World::from_policy(&text);
    let kind = |request: Request<'_>| request.decide().kind;
    assert_eq!(kind(Request::new(&world, BINGBOT, "/a/")), Kind::Exempt);
    assert_eq!(kind(Request::new(&world, BINGBOT, "/")), Kind::Allowed);
    let open = superseded("User-agent: *\nDisallow: /b/\n");
    assert_eq!(
        kind(Request {
            cached_versions: caching(&open),
            ..Request::new(&world, BINGBOT, "/a/")
        }),
        Kind::StaleCopy
    );
    let off = World::from_policy(&policy_with(
        "{ agents: '*', disallow: [/a/] }",
        "enforcement: { mode: off }",
    ));
    assert_eq!(
        kind(Request::new(&off, BINGBOT, "/a/")),
        Kind::Violation,
        "nobody is exempt"
    );
}

#[test]
fn licence_terms_and_challenges_need_no_licence() {
    let world = World::from_policy(
        "robots: { origin: replace, license: https://shop.example/terms.xml }\nhosts: shop.example\nenforcement: { mode: enforce, unlicensed: 402 }\n",
    );
    let action = |target| Request::new(&world, BINGBOT, target).decide().action;
    assert_eq!(action("/"), Action::License { status: 402 });
    assert_eq!(action("/terms.xml"), Action::Pass);
    assert_eq!(action("/.well-known/acme-challenge/token"), Action::Pass);
    assert_eq!(
        action("/.well-known/acme-challenge/"),
        Action::License { status: 402 }
    );
    assert_eq!(
        Request::new(&world, PERSON, "/").decide().action,
        Action::Pass
    );
}

#[test]
fn crawl_delay_is_the_shortest_that_may_be_cached() {
    let world = World::from_policy(&enforced_policy(
        "{ agents: [bingbot], crawl_delay: 10s, disallow: [/a/] }",
    ));
    let delay = |cached_versions: CachedVersions<'_>, was_served_current: bool| {
        let request = Request {
            cached_versions,
            ..Request::new(&world, BINGBOT, "/")
        };
        crawl_delay(&request.to_judge(), was_served_current).map(|delay| delay.as_secs())
    };
    assert_eq!(delay(complete_versions(), false), Some(10));
    assert_eq!(
        delay(
            CachedVersions {
                may_be_unknown: true,
                ..complete_versions()
            },
            true
        ),
        None
    );
    assert_eq!(delay(CachedVersions::default(), false), None);
    assert_eq!(delay(CachedVersions::default(), true), Some(10));
    for (rules, expected) in [
        ("User-agent: bingbot\nCrawl-delay: 4\nDisallow:\n", Some(4)),
        (
            "User-agent: bingbot\nCrawl-delay: 60\nDisallow:\n",
            Some(10),
        ),
        ("User-agent: bingbot\nDisallow:\n", None),
        ("User-agent: GPTBot\nCrawl-delay: 4\nDisallow:\n", None),
    ] {
        assert_eq!(
            delay(caching(&superseded(rules)), false),
            expected,
            "{rules}"
        );
    }
    assert_eq!(
        crawl_delay(&Request::new(&world, GPTBOT, "/").to_judge(), true),
        None,
        "it has no delay"
    );
}

#[test]
fn allow_as_sent_counts_unless_the_disallow_is_longer() {
    for (allow, expected) in [
        ("//priv", Kind::Ambiguous),
        ("//priv/", Kind::Allowed),
        ("//priv/a", Kind::Allowed),
    ] {
        let world = World::from_policy(&enforced_policy(&format!(
            "{{ agents: '*', disallow: [/priv/a], allow: ['{allow}'] }}"
        )));
        assert_eq!(
            Request::new(&world, BINGBOT, "//priv/a").decide().kind,
            expected,
            "{allow}"
        );
    }
}

#[test]
fn superseded_version_identifies_crawler_by_its_own_tokens() {
    let now = "{ agents: '*', disallow: [/a/] }, { agents: HouseBot, disallow: [/a/, /h/] }";
    let world = World::from_policy(&enforced_policy(now));
    let kind = |user_agent, target, before: &str| {
        let versions = superseded(before);
        Request {
            cached_versions: caching(&versions),
            ..Request::new(&world, user_agent, target)
        }
        .decide()
        .kind
    };
    // Another token has the place of HouseBot's.
    let others = "User-agent: FirstBot\nDisallow: /h/\n\nUser-agent: *\nDisallow: /b/\n";
    assert_eq!(kind("HouseBot/1.0", "/h/", others), Kind::StaleCopy);
    assert_eq!(
        kind("HouseBot/1.0", "/h/", "User-agent: *\nDisallow: /h/\n"),
        Kind::Violation
    );
    // A token that only the superseded version has.
    let former = "User-agent: FormerBot\nDisallow: /b/\n\nUser-agent: *\nDisallow: /a/\n";
    assert_eq!(kind("FormerBot/1.0", "/a/", former), Kind::StaleCopy);
    assert_eq!(kind("OtherBot/1.0", "/a/", former), Kind::Violation);
    // A crawler of the registry beside such a token.
    let named = "User-agent: FormerBot\nDisallow: /b/\n\nUser-agent: bingbot\nDisallow: /c/\n\nUser-agent: *\nDisallow: /a/\n";
    assert_eq!(kind(BINGBOT, "/a/", named), Kind::StaleCopy);
    assert_eq!(kind(GPTBOT, "/a/", named), Kind::Violation);
}

#[test]
fn described_crawler_is_found_in_superseded_version_by_token() {
    let described = "crawlers: [{ token: HouseBot, user_agent: [our-reader] }]\n";
    let world = World::from_policy(&format!(
        "{}{described}",
        enforced_policy("{ agents: '*', disallow: [/a/] }")
    ));
    for (before, expected) in [
        (
            "User-agent: HouseBot\nDisallow: /b/\n\nUser-agent: *\nDisallow: /a/\n",
            Kind::StaleCopy,
        ),
        (
            "User-agent: OtherBot\nDisallow: /b/\n\nUser-agent: *\nDisallow: /a/\n",
            Kind::Violation,
        ),
    ] {
        let versions = superseded(before);
        let request = Request {
            cached_versions: caching(&versions),
            ..Request::new(&world, "our-reader/1.0", "/a/")
        };
        assert_eq!(request.decide().kind, expected, "{before}");
    }
}

#[test]
fn crawler_without_rules_is_allowed() {
    let world = World::from_policy(
        "robots: { origin: replace, groups: [{ agents: GPTBot, disallow: /a/ }] }\n",
    );
    for (user_agent, verdict, binding) in [
        (BINGBOT, Verdict::Allowed, GroupBinding::NoRules),
        (ADSBOT, Verdict::NotBound, GroupBinding::NotBound),
        (PERSON, Verdict::NotACrawler, GroupBinding::NoRules),
    ] {
        let request = Request::new(&world, user_agent, "/a/");
        let claimant = request.to_judge().claimant;
        assert_eq!(
            claimant.entry.site.crawler_rules(claimant.claim).binding,
            binding,
            "{user_agent}"
        );
        let decision = request.decide();
        assert_eq!(
            (decision.verdict, decision.rule),
            (verdict, None),
            "{user_agent}"
        );
    }
}
