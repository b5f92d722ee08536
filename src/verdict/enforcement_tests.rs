//! Tests of the policy section `enforcement`: which requests it blocks, and with which answers, for
//! reasons other than a robots.txt rule. Reasons are a false or unverified identity, a trap (a path
//! that no obedient crawler requests), and a missing licence. Other tests are about exempt
//! crawlers, and crawlers that the policy describes.

use super::*;
use crate::crawlers::Claim;
use crate::crawlers::Registry;
use crate::policy::site::CrawlerRules;
use crate::policy::{Site, SiteEntry, Snapshot};
use crate::yaml::SourceFile;
use std::sync::Arc;
use std::time::Duration;

const PERSON: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
const GOOGLEBOT: &str = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";

fn load_text(text: &str) -> (Option<Arc<Site>>, Vec<(&'static str, u32)>) {
    let source = SourceFile {
        name: "shop.yaml".into(),
        text: text.into(),
    };
    let (site, findings) = load_site("shop", &source, Registry::builtin());
    (
        site,
        findings
            .items
            .iter()
            .map(|item| (item.id, item.span.map_or(0, |span| span.line)))
            .collect(),
    )
}

fn site(text: &str) -> Arc<Site> {
    let (site, findings) = load_text(text);
    site.unwrap_or_else(|| panic!("{text}\n{findings:?}"))
}

/// A policy with this `enforcement`, where `*` may not fetch `/cart/`.
fn policy_with(enforcement: &str) -> String {
    format!(
        "robots: {{ origin: replace, groups: [{{ agents: \"*\", disallow: /cart/, crawl_delay: 10s }}] }}\n\
         enforcement: {enforcement}\n"
    )
}

fn decide_policy(
    text: &str,
    identity: Identity,
    user_agent: &str,
    target: &str,
    behaviour: RecentBehaviour,
) -> (Decision, Arc<Site>) {
    let site = site(text);
    let snapshot = Snapshot::new(vec![SiteEntry::new(site.clone(), Timestamp(0))], 1);
    let facts = RequestFacts {
        host: b"shop.example",
        target: target.as_bytes(),
        method: b"GET",
        user_agent: user_agent.as_bytes(),
        client: None,
        identity,
        now: Timestamp(0),
    };
    let (registry, cached_versions) = (
        Registry::builtin(),
        CachedVersions {
            basis: CachedVersionsBasis::Observed,
            ..CachedVersions::default()
        },
    );
    let claimant = SiteClaim::find(&snapshot, registry, &facts).expect("a site has the host");
    let request = RequestToJudge {
        registry,
        facts,
        claimant,
        cached_versions,
    };
    let decision = decide_for(&request, behaviour, &mut DecisionScratch::default());

    (decision, site)
}

/// The kind, and the status that enforcement sends, if it blocks the request.
fn kind_and_status(
    text: &str,
    identity: Identity,
    user_agent: &str,
    target: &str,
) -> (Kind, Option<u16>) {
    let (decision, site) = decide_policy(
        text,
        identity,
        user_agent,
        target,
        RecentBehaviour::default(),
    );
    let answer = match decision.would.unwrap_or(decision.action) {
        Action::Block(answer) | Action::Slow { answer, .. } => {
            Some(site.answers[usize::from(answer)].status)
        }
        _ => None,
    };
    (decision.kind, answer)
}

#[test]
fn impostor_gets_only_robots_txt() {
    let text =
        policy_with("{ mode: enforce, impostor: 404, agents: { Bingbot: { impostor: 410 } } }");
    assert_eq!(
        kind_and_status(&text, Identity::Impostor, GOOGLEBOT, "/"),
        (Kind::Impostor, Some(404))
    );
    assert_eq!(
        kind_and_status(&text, Identity::Impostor, "bingbot/2.0", "/cart/"),
        (Kind::Impostor, Some(410))
    );
    assert_eq!(
        kind_and_status(&text, Identity::Impostor, GOOGLEBOT, "/robots.txt"),
        (Kind::Allowed, None)
    );
    assert_eq!(
        kind_and_status(&text, Identity::Verified, GOOGLEBOT, "/"),
        (Kind::Allowed, None)
    );
    assert_eq!(
        kind_and_status(&text, Identity::Verified, GOOGLEBOT, "/cart/"),
        (Kind::Violation, Some(403))
    );
    let off = policy_with("{ mode: off }");
    assert_eq!(
        kind_and_status(&off, Identity::Impostor, GOOGLEBOT, "/"),
        (Kind::Allowed, None)
    );
}

#[test]
fn unverified_setting_trusts_observes_or_blocks() {
    let as_claimed = policy_with("{ mode: enforce }");
    assert_eq!(
        kind_and_status(&as_claimed, Identity::Unverified, GOOGLEBOT, "/"),
        (Kind::Allowed, None)
    );
    let observe = policy_with("{ mode: enforce, unverified: observe }");
    for (identity, action) in [
        (Identity::Unverified, "pass"),
        (Identity::Verified, "block"),
    ] {
        let (decision, _) = decide_policy(
            &observe,
            identity,
            GOOGLEBOT,
            "/cart/",
            RecentBehaviour::default(),
        );
        assert_eq!(decision.action.name(), action, "{identity:?}");
        assert_eq!(decision.would.is_some(), action == "pass");
    }
    let refuse = policy_with(
        "{ mode: enforce, unverified: refuse, agents: { Bingbot: { unverified: as_claimed } } }",
    );
    assert_eq!(
        kind_and_status(&refuse, Identity::Unverified, GOOGLEBOT, "/"),
        (Kind::Unverified, Some(403))
    );
    assert_eq!(
        kind_and_status(&refuse, Identity::Unverified, GOOGLEBOT, "/cart/"),
        (Kind::Violation, Some(403))
    );
    assert_eq!(
        kind_and_status(&refuse, Identity::Verified, GOOGLEBOT, "/"),
        (Kind::Allowed, None)
    );
    assert_eq!(
        kind_and_status(&refuse, Identity::Unverified, "bingbot/2.0", "/"),
        (Kind::Allowed, None)
    );
    assert_eq!(
        kind_and_status(&refuse, Identity::Unverified, GOOGLEBOT, "/robots.txt"),
        (Kind::Allowed, None)
    );
    assert_eq!(
        kind_and_status(&refuse, Identity::Unverified, PERSON, "/"),
        (Kind::NotACrawler, None)
    );
}

#[test]
fn exempt_crawler_is_blocked_only_as_impostor() {
    let text = policy_with(
        "{ mode: enforce, exempt: [IntranetBot, Googlebot], unverified: refuse, traps: [/trap/] }",
    );
    for target in ["/", "/cart/", "/x/../cart/", "/trap/"] {
        for user_agent in ["IntranetBot/1.0", GOOGLEBOT] {
            assert_eq!(
                kind_and_status(&text, Identity::Unverified, user_agent, target).1,
                None,
                "{user_agent} {target}"
            );
        }
    }
    let paced = RecentBehaviour {
        too_fast: Some(Duration::from_secs(5)),
        trapped: true,
        was_served_current: true,
    };
    let (decision, _) = decide_policy(&text, Identity::Unverified, GOOGLEBOT, "/", paced);
    assert_eq!(
        (decision.kind, decision.action, decision.would),
        (Kind::Allowed, Action::Pass, None)
    );
    assert_eq!(
        kind_and_status(&text, Identity::Impostor, GOOGLEBOT, "/"),
        (Kind::Impostor, Some(403))
    );
    for user_agent in ["bingbot/2.0", "Applebot/0.1"] {
        assert_eq!(
            kind_and_status(&text, Identity::Unverified, user_agent, "/cart/"),
            (Kind::Violation, Some(403)),
            "{user_agent}"
        );
    }
    let image = kind_and_status(&text, Identity::Unverified, "Googlebot-Image/1.0", "/cart/");
    assert_eq!(image, (Kind::Exempt, None));
}

#[test]
fn answer_fields_come_from_agent_then_purpose_then_site() {
    let text = policy_with(
        "{ mode: observe, disallowed: 401, too_fast: 503, trapped: 404, \
         purposes: { search: { mode: enforce, disallowed: 402, trapped: 410 } }, \
         agents: { Bingbot: { disallowed: 451 } } }",
    );
    let answers = |user_agent: &str| {
        let site = site(&text);
        let claim = Registry::builtin().identify_on_site(user_agent.as_bytes(), &site.tokens);
        let standing = site.crawler_rules(claim);
        let status = |answer: u16| site.answers[usize::from(answer)].status;
        (
            standing.mode.name(),
            status(standing.disallowed),
            status(standing.too_fast),
            status(standing.trapped),
        )
    };
    assert_eq!(answers("GPTBot/1.2"), ("observe", 401, 503, 404));
    assert_eq!(answers(GOOGLEBOT), ("enforce", 402, 503, 410));
    assert_eq!(answers("bingbot/2.0"), ("enforce", 451, 503, 410));
}

#[test]
fn answer_inherits_missing_fields() {
    let text = policy_with(
        "{ mode: enforce, disallowed: { status: 410, retry_after: 1h, body: ours }, trapped: { status: 404, for: 2h }, \
         purposes: { search: { disallowed: { body: theirs }, trapped: { body: pit } } }, \
         agents: { Bingbot: { disallowed: 418, too_fast: { body: slow } }, \
                   GPTBot: { disallowed: { retry_after: 2h, body: '' }, trapped: { for: 1h } } } }",
    );
    let site = site(&text);
    let answer_of = |user_agent: &str, get: fn(CrawlerRules) -> u16| {
        let claim = Registry::builtin().identify_on_site(user_agent.as_bytes(), &site.tokens);
        let answer = &site.answers[usize::from(get(site.crawler_rules(claim)))];
        (
            answer.status,
            answer.retry_after,
            answer.body.as_deref().unwrap_or("none").to_owned(),
        )
    };
    let disallowed = |user_agent| answer_of(user_agent, |standing| standing.disallowed);
    assert_eq!(
        disallowed("ClaudeBot/1.0"),
        (410, Some(3_600), "ours".into())
    );
    assert_eq!(disallowed(GOOGLEBOT), (410, Some(3_600), "theirs".into()));
    assert_eq!(
        disallowed("bingbot/2.0"),
        (418, Some(3_600), "theirs".into())
    );
    assert_eq!(disallowed("GPTBot/1.2"), (410, Some(7_200), String::new()));
    assert_eq!(
        answer_of("bingbot/2.0", |standing| standing.trapped),
        (404, None, "pit".into())
    );
    assert_eq!(
        answer_of("GPTBot/1.2", |standing| standing.trapped),
        (404, None, "none".into())
    );
    assert_eq!(
        answer_of("bingbot/2.0", |standing| standing.too_fast),
        (429, None, "slow".into())
    );
    assert_eq!(
        answer_of("bingbot/2.0", |standing| standing.ambiguous),
        (403, None, "none".into())
    );
}

#[test]
fn trap_then_rule_then_rate_decides() {
    let text = policy_with("{ mode: enforce, trapped: 410, traps: [/trap/] }");
    let both = RecentBehaviour {
        too_fast: Some(Duration::from_millis(4_001)),
        trapped: true,
        was_served_current: true,
    };
    let (decision, _) = decide_policy(&text, Identity::Unverified, GOOGLEBOT, "/cart/", both);
    assert_eq!(
        (decision.kind, decision.verdict),
        (Kind::Trapped, Verdict::Disallowed)
    );
    let (decision, _) = decide_policy(&text, Identity::Verified, GOOGLEBOT, "/", both);
    assert_eq!(
        decision.kind,
        Kind::TooFast,
        "who is verified answers for nobody's address"
    );
    let Action::Slow { retry_after, .. } = decision.action else {
        panic!("{decision:?}")
    };
    assert_eq!(retry_after, 5, "whole seconds, up");
    let fast = RecentBehaviour {
        trapped: false,
        ..both
    };
    let (decision, _) = decide_policy(&text, Identity::Unverified, GOOGLEBOT, "/cart/", fast);
    assert_eq!(
        decision.kind,
        Kind::Violation,
        "what is disallowed does not become allowed by waiting"
    );
    let (decision, _) = decide_policy(&text, Identity::Unverified, PERSON, "/", both);
    assert_eq!(decision.kind, Kind::NotACrawler);
}

#[test]
fn every_group_has_the_traps() {
    let text = "purposes: { archive: disallow }\nrobots: { origin: replace, groups: [{ agents: [Bingbot], allow: / }] }\n\
                enforcement: { traps: [/trap/, /pit/] }\n";
    let site = site(text);
    assert!(site.document.groups.len() > 3 && site.matcher.star_group().is_some());
    for group in &site.document.groups {
        let has = |path: &str| {
            group
                .rules
                .iter()
                .any(|rule| !rule.allow && rule.pattern.as_str() == path)
        };
        assert!(has("/trap/") && has("/pit/"), "{group:?}");
    }
    let (_, findings) = load_text(text);
    assert!(findings.is_empty(), "{findings:?}");
}

#[test]
fn described_crawler_is_known_by_its_markers() {
    let text = "purposes: { archive: disallow }\nacknowledge: site_disallowed\nrobots: { origin: replace }\nenforcement: { mode: enforce }\ncrawlers:\n\
                \x20 - { token: OurBot, user_agent: [our-reader, Our Fetcher], purpose: archive, networks: [10.0.0.0/8] }\n\
                \x20 - { token: Googlebot, purpose: archive, user_agent: [GoogleTest], networks: [203.0.113.0/24] }\n";
    let site = site(text);
    let registry = Registry::builtin();
    let claim = |user_agent: &str| registry.identify_on_site(user_agent.as_bytes(), &site.tokens);
    let google = Claim::Known(registry.find("googlebot").expect("known"));
    assert_eq!(claim("Our Fetcher/2.0"), Claim::PolicyToken(0));
    assert_eq!(claim("x our-reader"), Claim::PolicyToken(0));
    assert_eq!(claim("your-reader/1.0 (like Our Fetcher)"), Claim::Tool);
    assert_eq!(claim("GoogleTest/1.0"), google);
    let robots = String::from_utf8_lossy(&site.robots_txt.body);
    assert!(
        robots.contains("User-agent: OurBot\nDisallow: /\n"),
        "{robots}"
    );
    assert!(
        robots.contains("User-agent: Googlebot\nDisallow: /\n"),
        "a corrected purpose moves it: {robots}"
    );
    assert_eq!(
        kind_and_status(text, Identity::Unverified, "our-reader", "/"),
        (Kind::Violation, Some(403))
    );
    assert_eq!(
        site.networks
            .contains_address(claim("our-reader"), "10.1.1.1".parse().expect("an address")),
        Some(true)
    );
    assert_eq!(
        site.networks
            .contains_address(google, "192.0.2.1".parse().expect("an address")),
        Some(false)
    );
    assert_eq!(
        site.networks
            .contains_address(google, "2001:db8::1".parse().expect("an address")),
        None,
        "the list says nothing of IPv6"
    );
    assert_eq!(
        site.networks
            .contains_address(Claim::UnknownBot, "10.1.1.1".parse().expect("an address")),
        None
    );
}

#[test]
fn registry_override_changes_binding_and_crawl_delay() {
    let text = policy_with("{ mode: enforce }");
    let corrected = |more: &str| {
        let site = site(&format!("{text}crawlers: {{ token: Googlebot, {more} }}\n"));
        site.crawler_rules(Claim::Known(
            Registry::builtin().find("googlebot").expect("known"),
        ))
    };
    assert_eq!(corrected("purpose: search").crawl_delay, None);
    assert_eq!(
        corrected("crawl_delay: yes").crawl_delay,
        Some(Duration::from_secs(10))
    );
    assert_eq!(
        corrected("binds: never").binding,
        crate::policy::site::GroupBinding::NotBound
    );
}

#[test]
fn address_proves_and_accuses_within_its_limits() {
    let text = format!(
        "{}crawlers: {{ token: Googlebot, networks: [198.51.100.0/24, 10.9.0.0/16] }}\n",
        policy_with("{}")
    );
    let site = site(&text);
    let claim = Claim::Known(Registry::builtin().find("googlebot").expect("known"));
    let identity = |address: &str, may_accuse: bool| {
        let facts = RequestFacts {
            host: b"",
            target: b"/",
            method: b"GET",
            user_agent: b"",
            client: address.parse().ok(),
            identity: Identity::Unverified,
            now: Timestamp(0),
        };
        identity_by_policy(&site, &facts, claim, may_accuse)
    };
    assert_eq!(identity("198.51.100.7", false), Identity::Verified);
    assert_eq!(identity("10.9.1.1", true), Identity::Verified);
    assert_eq!(identity("203.0.113.1", true), Identity::Impostor);
    assert_eq!(
        identity("203.0.113.1", false),
        Identity::Unverified,
        "it may be a proxy's"
    );
    assert_eq!(
        identity("10.8.0.1", true),
        Identity::Unverified,
        "an undeclared proxy has such an address"
    );
    assert_eq!(identity("127.0.0.1", true), Identity::Unverified);
    assert_eq!(identity("2001:db8::1", true), Identity::Unverified);
    assert_eq!(identity("", true), Identity::Unverified);
}

#[test]
fn all_mistakes_are_reported_with_their_lines() {
    let text = "robots: { origin: replace }\nenforcement:\n  traps: [/, trap/, /robots.txt]\n  too_fast: { retry_after: 1h }\n\
                \x20 trapped: { for: 40d }\n  unverified: maybe\n  exempt: [\"*\", GPTBot/1.0]\n  agents: { GPTBot: { exempt: x } }\n\
                crawlers:\n  - { token: \"a/b\", purpose: shopping }\n  - { token: OurBot, user_agent: [ab], networks: here }\n\
                \x20 - { token: ourbot }\n";
    let (site, mut found) = load_text(text);
    assert!(site.is_none());
    found.sort_by_key(|(_, line)| *line);
    let wanted = [
        ("bad-trap", 3),
        ("bad-path", 3),
        ("bad-trap", 3),
        ("unknown-field", 4),
        ("bad-value", 5),
        ("bad-value", 6),
        ("bad-token", 7),
        ("bad-token", 7),
        ("unknown-field", 8),
        ("bad-token", 10),
        ("bad-value", 10),
        ("bad-mark", 11),
        ("bad-network", 11),
        ("duplicate-crawler", 12),
    ];
    for (id, line) in wanted {
        let count = |list: &[(&str, u32)]| list.iter().filter(|item| **item == (id, line)).count();
        assert_eq!(
            count(&found),
            count(&wanted),
            "{id} in line {line}: {found:?}"
        );
    }
    assert_eq!(found.len(), wanted.len(), "{found:?}");
}

#[test]
fn policy_test_can_set_address_and_identity() {
    let text = |expect: &str| {
        format!(
            "{}crawlers: {{ token: OurBot, networks: 10.0.0.0/8 }}\ntests:\n  - {{ agent: OurBot, path: /, {expect} }}\n",
            policy_with("{ mode: observe, traps: [/trap/], unverified: observe }")
        )
    };
    let fails = |expect: &str| {
        load_text(&text(expect))
            .1
            .iter()
            .any(|(id, _)| *id == "test-failed")
    };
    assert!(!fails(
        "ip: 203.0.113.1, expect: { kind: impostor, action: block, status: 403 }"
    ));
    assert!(!fails(
        "ip: 10.1.1.1, expect: { kind: allowed, action: pass }"
    ));
    assert!(!fails("identity: impostor, expect: { kind: impostor }"));
    assert!(!fails(
        "ip: 203.0.113.1, identity: verified, expect: { kind: allowed }"
    ));
    assert!(fails("ip: 10.1.1.1, expect: { kind: impostor }"));
}

#[test]
fn policy_test_can_expect_the_mode() {
    let text = "{ mode: enforce, unverified: observe, agents: { GPTBot: off } }";
    for (case, mode) in [
        ("agent: bingbot", "observe"),
        ("agent: bingbot, identity: verified", "enforce"),
        ("agent: GPTBot", "off"),
        ("agent: FooBot, identity: verified", "observe"),
        ("agent: curl/8.5", "off"),
        ("agent: Mozilla/5.0 (X11; rv:140.0) Firefox/140.0", "off"),
    ] {
        for expected in ["off", "observe", "enforce"] {
            let policy = policy_with(text);
            let test = format!("{{ {case}, path: /, expect: {{ mode: {expected} }} }}");
            let (site, found) = load_text(&format!("{policy}tests: [{test}]\n"));
            assert_eq!(site.is_some(), expected == mode, "{test} {found:?}");
        }
    }
}

#[test]
fn licence_demand_comes_after_every_other_block() {
    let text = "robots: { origin: replace, license: https://shop.example/l.xml, \
                groups: [{ agents: \"*\", disallow: /cart/, crawl_delay: 10s }] }\n\
                tdm: [{ reservation: yes, policy: https://shop.example/tdm.json }]\n\
                enforcement: { mode: enforce, unlicensed: 402, traps: [/trap/], exempt: [Applebot] }\n";
    let asked = |user_agent: &str, target: &str, behaviour: RecentBehaviour| {
        let (decision, _) =
            decide_policy(text, Identity::Unverified, user_agent, target, behaviour);
        (decision.kind, decision.action.name(), decision.trap_hit)
    };
    let calm = RecentBehaviour::default();
    assert_eq!(
        asked("bingbot/2.0", "/", calm),
        (Kind::Allowed, "license", false)
    );
    assert_eq!(
        asked("bingbot/2.0", "/cart/", calm),
        (Kind::Violation, "block", false)
    );
    assert_eq!(
        asked("bingbot/2.0", "/trap/", calm),
        (Kind::Trapped, "block", true)
    );
    assert_eq!(
        asked("Applebot/0.1", "/", calm),
        (Kind::Allowed, "pass", false)
    );
    let fast = RecentBehaviour {
        too_fast: Some(Duration::from_secs(5)),
        ..RecentBehaviour::default()
    };
    assert_eq!(
        asked("bingbot/2.0", "/", fast),
        (Kind::TooFast, "slow", false)
    );
    let trapped = RecentBehaviour {
        trapped: true,
        ..RecentBehaviour::default()
    };
    assert_eq!(
        asked("bingbot/2.0", "/", trapped),
        (Kind::Trapped, "block", false)
    );
    assert_eq!(
        asked("bingbot/2.0", "/.well-known/tdmrep.json", trapped),
        (Kind::Allowed, "tdmrep", false)
    );
    assert_eq!(
        asked("bingbot/2.0", "/robots.txt", trapped),
        (Kind::Allowed, "robots_txt", false)
    );
}

#[test]
fn unknown_bot_that_sends_no_get_is_a_tool() {
    let text = policy_with("{ mode: enforce, purposes: { other: enforce } }");
    let entry = SiteEntry::new(site(&text), Timestamp(0));
    let snapshot = Snapshot::new(vec![entry], 1);
    let kind = |user_agent: &str, method: &str| {
        let facts = RequestFacts {
            host: b"shop.example",
            target: b"/cart/",
            method: method.as_bytes(),
            user_agent: user_agent.as_bytes(),
            client: None,
            identity: Identity::Verified,
            now: Timestamp(0),
        };
        let scratch = &mut DecisionScratch::default();
        let versions = CachedVersions::default();
        let decision = decide(&snapshot, Registry::builtin(), &facts, &versions, scratch);
        decision.expect("a site has the host").kind
    };
    let webhook = "Shop-Hooks/1.0 (+https://pay.example/webhooks)";
    for method in ["POST", "PUT", "OPTIONS", "PURGE"] {
        assert_eq!(kind(webhook, method), Kind::NotACrawler, "{method}");
        assert_ne!(kind("GPTBot/1.2", method), Kind::NotACrawler, "{method}");
    }
    // The empty method is that of a log without methods.
    for method in ["GET", "HEAD", ""] {
        assert_ne!(kind(webhook, method), Kind::NotACrawler, "{method}");
    }
}

/// A policy with everything that can block a request.
const STRICT: &str = "robots:\n  origin: replace\n  license: https://shop.example/license.xml\n  \
    groups: [{ agents: [\"*\", GPTBot], disallow: [/.well-known/], crawl_delay: 10s }]\n\
    enforcement: { mode: enforce, unverified: refuse, traps: [\"/.well-known/pki-validation/\"], \
    purposes: { other: enforce, training: { unlicensed: 402 } } }\n";

#[test]
fn challenges_pass_every_rule() {
    let behaviour = RecentBehaviour {
        too_fast: Some(Duration::from_secs(9)),
        trapped: true,
        was_served_current: true,
    };
    let le =
        "Mozilla/5.0 (compatible; Let's Encrypt validation server; +https://www.letsencrypt.org)";
    let is_refused = |target: &str| {
        let (decision, _) =
            decide_policy(STRICT, Identity::Impostor, "GPTBot/1.2", target, behaviour);
        matches!(decision.action, Action::Block(_))
    };
    for directory in ["acme-challenge", "pki-validation"] {
        for identity in [
            Identity::Unverified,
            Identity::Pending,
            Identity::Impostor,
            Identity::Verified,
        ] {
            for agent in [le, "GPTBot/1.2", GOOGLEBOT, "curl/8.0", PERSON] {
                let target = format!("/.well-known/{directory}/abcdefghijk");
                let (decision, _) = decide_policy(STRICT, identity, agent, &target, behaviour);
                assert_eq!(
                    (decision.action, decision.would),
                    (Action::Pass, None),
                    "{identity:?} {agent} {target}"
                );
                assert_eq!(
                    (decision.claim, decision.kind),
                    (Claim::Visitor, Kind::NotACrawler),
                    "{agent} {target}"
                );
                assert!(!decision.trap_hit, "{agent} {target}");
            }
        }
        for name in ["", "../cart/", "..%2fcart/", "a/b", "%61", ".a"] {
            assert!(
                is_refused(&format!("/.well-known/{directory}/{name}")),
                "{directory} {name}"
            );
        }
    }
    for target in [
        "/.well-known/security.txt",
        "/.well-known/acme-challenge/a.txt",
    ] {
        assert!(is_refused(target), "{target}");
    }
}
