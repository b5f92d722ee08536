//! For random policies, tokens and targets the verdict is that of an independent, naive RFC 9309
//! matcher run over the rendered bytes, and for Google's crawlers also that of a naive copy of
//! Google's; and `explain` says what `decide` does. Nothing of the engine's own matching is used on
//! the other side.

use crawlgate::crawlers::Registry;
use crawlgate::internals::policy::origin::{OriginRobotsAvailability, OriginRobotsTxt};
use crawlgate::internals::policy::{
    self, ParsedRobotsVersion, SiteEntry, Snapshot, SupersededVersion,
};
use crawlgate::internals::verdict::{
    CachedVersions, CachedVersionsBasis, Decision, DecisionScratch, Identity, Kind, RequestFacts,
    RequestToJudge, ResponseFacts, SiteClaim, Verdict, decide, explain, explain_request,
};
use crawlgate::time::Timestamp;
use crawlgate::yaml::SourceFile;
use proptest::prelude::*;
use std::sync::Arc;

// ---- the naive matcher
// -------------------------------------------------------------------------------------------------

/// RFC 9309 section 2.2.2: unreserved bytes decoded, others percent-encoded, escapes in upper
/// case. In a target `*` and `$`, raw or escaped, are the characters that a rule means when it
/// escapes them (figure 6): 1 and 2 here.
fn normal(text: &[u8], target: bool) -> Vec<u8> {
    let mut out = Vec::new();
    let mut index = 0;
    while index < text.len() {
        let byte = text[index];
        let escaped = (byte == b'%')
            .then(|| text.get(index + 1..index + 3))
            .flatten();
        let value =
            escaped.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        let (byte, was_escaped) = value.map_or((byte, false), |value| (value, true));
        index += if was_escaped { 3 } else { 1 };
        let unreserved = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        if target && (byte == b'*' || byte == b'$') {
            out.push(if byte == b'*' { 1 } else { 2 });
        } else if unreserved || !was_escaped && byte.is_ascii_graphic() && byte != b'#' {
            out.push(byte);
        } else {
            out.extend(format!("%{byte:02X}").bytes());
        }
    }
    out
}

fn matches(pattern: &[u8], target: &[u8]) -> bool {
    match pattern {
        [] => true,
        b"$" => target.is_empty(),
        [b'*', rest @ ..] => (0..=target.len()).any(|skip| matches(rest, &target[skip..])),
        [b'%', b'2', b'A', rest @ ..] => target
            .strip_prefix(&[1])
            .is_some_and(|target| matches(rest, target)),
        // A `$` that is not last is itself.
        [b'%', b'2', b'4', rest @ ..] | [b'$', rest @ ..] => target
            .strip_prefix(&[2])
            .is_some_and(|target| matches(rest, target)),
        [byte, rest @ ..] => target.first() == Some(byte) && matches(rest, &target[1..]),
    }
}

struct Group {
    agents: Vec<String>,
    rules: Vec<(bool, Vec<u8>)>,
}

fn parse(bytes: &[u8]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut open = false;
    for line in std::str::from_utf8(bytes).expect("UTF-8").lines() {
        let line = line.split('#').next().unwrap_or("");
        let Some((key, value)) = line.split_once(':') else {
            continue;
        };
        let value = value.trim();
        match key.trim().to_ascii_lowercase().as_str() {
            "user-agent" => {
                if !open {
                    groups.push(Group {
                        agents: Vec::new(),
                        rules: Vec::new(),
                    });
                }
                open = true;
                groups
                    .last_mut()
                    .expect("just pushed")
                    .agents
                    .push(value.to_ascii_lowercase());
            }
            key @ ("allow" | "disallow") => {
                open = false;
                if let Some(group) = groups.last_mut() {
                    group
                        .rules
                        .push((key == "allow", normal(value.as_bytes(), false)));
                }
            }
            _ => {}
        }
    }
    groups
}

fn naive_allows(robots_txt: &[u8], token: &str, target: &str) -> bool {
    let path = target.split('?').next().unwrap_or("");
    if path == "/robots.txt" {
        return true;
    }
    let groups = parse(robots_txt);
    let of = |agent: &str| -> Option<Vec<&(bool, Vec<u8>)>> {
        let agent = agent.to_ascii_lowercase();
        let named: Vec<&Group> = groups
            .iter()
            .filter(|group| group.agents.contains(&agent))
            .collect();
        (!named.is_empty()).then(|| named.into_iter().flat_map(|group| &group.rules).collect())
    };
    let rules = chain(token)
        .iter()
        .find_map(|token| of(token))
        .unwrap_or_default();
    let target = normal(target.as_bytes(), true);
    let longest = rules
        .iter()
        .filter(|(_, pattern)| !pattern.is_empty() && matches(pattern, &target))
        .map(|(allow, pattern)| (pattern.len(), *allow))
        .max();
    longest.is_none_or(|(_, allow)| allow)
}

/// A token of a User-agent line as Google's library cuts it.
fn google_token(agent: &str) -> &str {
    if agent == "*" {
        return agent;
    }
    let is_of_token = |sign: char| sign.is_ascii_alphabetic() || sign == '-' || sign == '_';
    &agent[..agent.find(|sign| !is_of_token(sign)).unwrap_or(agent.len())]
}

/// Whether Google's library matches: nothing is decoded, and `$` is the end only as the last
/// character.
fn google_matches(pattern: &[u8], target: &[u8]) -> bool {
    match pattern {
        [] => true,
        b"$" => target.is_empty(),
        [b'*', rest @ ..] => (0..=target.len()).any(|skip| google_matches(rest, &target[skip..])),
        [byte, rest @ ..] => target.first() == Some(byte) && google_matches(rest, &target[1..]),
    }
}

/// The length of the match of a rule, as Google's library counts it. An Allow of an index page is
/// one of its directory.
fn google_priority(allow: bool, pattern: &[u8], target: &[u8]) -> Option<usize> {
    if pattern.is_empty() {
        return None;
    }
    let slash = pattern.iter().rposition(|byte| *byte == b'/');
    let index_page = slash.filter(|slash| allow && pattern[*slash..].starts_with(b"/index.htm"));
    let directory = index_page.map(|slash| [&pattern[..=slash], b"$"].concat());
    let patterns = std::iter::once(pattern.to_vec()).chain(directory);
    patterns
        .filter(|pattern| google_matches(pattern, target))
        .map(|pattern| pattern.len())
        .max()
}

fn naive_google_allows(robots_txt: &[u8], token: &str, target: &str) -> bool {
    let groups = parse(robots_txt);
    let rules_of = |token: &&str| {
        let names = |group: &&Group| {
            group
                .agents
                .iter()
                .any(|agent| google_token(agent).eq_ignore_ascii_case(token))
        };
        let named: Vec<&Group> = groups.iter().filter(names).collect();
        (!named.is_empty()).then(|| {
            named
                .into_iter()
                .flat_map(|group| &group.rules)
                .collect::<Vec<_>>()
        })
    };
    let rules = chain(token).iter().find_map(rules_of).unwrap_or_default();
    let matching = rules.iter().filter_map(|(allow, pattern)| {
        Some((google_priority(*allow, pattern, target.as_bytes())?, *allow))
    });
    matching.max().is_none_or(|(_, allow)| allow)
}

/// What is right about a target as it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    Allowed,
    Disallowed,
    /// Google's library allows it only because it is not in normal form.
    Misspelled,
}

fn expected(body: &[u8], token: &str, target: &str) -> Expected {
    let is_google = token.starts_with("Googlebot");
    let written: Vec<u8> = normal(target.as_bytes(), true)
        .iter()
        .map(|byte| match byte {
            1 => b'*',
            2 => b'$',
            byte => *byte,
        })
        .collect();
    let is_normal = written == target.as_bytes()
        && naive_resolved(target) == target
        && naive_stripped(target) == target;
    match naive_allows(body, token, target) {
        true => Expected::Allowed,
        false if !is_google || !naive_google_allows(body, token, target) => Expected::Disallowed,
        false if is_normal => Expected::Allowed,
        false => Expected::Misspelled,
    }
}

/// The path as origins resolve it: `%2F` is a slash, doubled slashes are one, dot segments are gone
/// (RFC 3986 section 5.2.4). The targets here have no escaped dots.
fn naive_resolved(target: &str) -> String {
    let (path, query) = target.split_at(target.find('?').unwrap_or(target.len()));
    let path = path.replace("%2f", "/").replace("%2F", "/");
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            _ => segments.push(segment),
        }
    }
    let is_directory =
        segments.is_empty() || ["/", "/.", "/.."].iter().any(|end| path.ends_with(end));
    let end = if is_directory && !segments.is_empty() {
        "/"
    } else {
        ""
    };
    format!("/{}{end}{query}", segments.join("/"))
}

/// A target without the parameters of its segments.
fn naive_stripped(target: &str) -> String {
    let (path, query) = target.split_at(target.find('?').unwrap_or(target.len()));
    let segments: Vec<&str> = path
        .split('/')
        .map(|segment| segment.split(';').next().unwrap_or_default())
        .collect();
    format!("{}{query}", segments.join("/"))
}

/// Whether a path has dot segments.
fn has_dots(target: &str) -> bool {
    let path = target
        .split('?')
        .next()
        .unwrap_or_default()
        .replace("%2f", "/");
    path.split('/').any(|segment| matches!(segment, "." | ".."))
}

/// Whether what origins may resolve a path to is disallowed; with `shortened`, by the loss of dot
/// segments or parameters.
fn is_closed_resolved(body: &[u8], token: &str, target: &str, shortened: bool) -> bool {
    let stripped = naive_stripped(target);
    let read = [
        (target, has_dots(target)),
        (stripped.as_str(), stripped != target),
    ];
    let is_closed = |target: &str| !naive_allows(body, token, &naive_resolved(target));
    read.iter()
        .any(|(target, is_shorter)| (!shortened || *is_shorter) && is_closed(target))
}

// ---- random policies
// ---------------------------------------------------------------------------------------------------

/// Tokens that follow `*`; each is its own only one, but for Googlebot-Image.
const TOKENS: [&str; 6] = [
    "GPTBot",
    "Googlebot-Image",
    "Googlebot",
    "bingbot",
    "CCBot",
    "FooBot",
];

const BROWSER: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";

/// The tokens by which a crawler goes, the first that is named: Google's page on its crawlers.
fn chain(token: &str) -> &[&str] {
    match token {
        "Googlebot-Image" => &["Googlebot-Image", "Googlebot", "*"],
        "GPTBot" => &["GPTBot", "*"],
        "Googlebot" => &["Googlebot", "*"],
        "bingbot" => &["bingbot", "*"],
        "CCBot" => &["CCBot", "*"],
        _ => &["FooBot", "*"],
    }
}

fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => Just("a"), 4 => Just("b"), 4 => Just("/"), 2 => Just("*"), 1 => Just("$"), 1 => Just("%61"), 1 => Just("%2A"), 1 => Just("%24"),
        2 => Just("/index.html"), 1 => Just("/index.htm$"), 1 => Just("."), 1 => Just("ä"), 1 => Just("%c3%a4"), 1 => Just("?"), 1 => Just("%2f"), 1 => Just("~"), 1 => Just("/../"), 1 => Just(";")
    ];
    proptest::collection::vec(piece, 0..7).prop_map(|pieces| pieces.concat())
}

fn rules() -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec(text().prop_map(|text| format!("/{text}")), 0..5)
}

fn policy() -> impl Strategy<Value = String> {
    let group = (rules(), rules(), any::<bool>(), any::<bool>());
    proptest::collection::vec(group, 1..5).prop_map(|groups| {
        let list = |rules: &[String]| {
            rules
                .iter()
                .map(|rule| format!("{rule:?}"))
                .collect::<Vec<_>>()
                .join(", ")
        };
        let mut text = "robots:\n  origin: replace\n  groups:\n".to_owned();
        for (index, (allow, disallow, extends, delay)) in groups.iter().enumerate() {
            let agent = if index == 0 { "*" } else { TOKENS[index - 1] };
            text.push_str(&format!(
                "    - agents: [\"{agent}\"]\n      allow: [{}]\n      disallow: [{}]\n",
                list(allow),
                list(disallow)
            ));
            if *extends && index > 0 {
                text.push_str("      extends: \"*\"\n");
            }
            if *delay {
                text.push_str("      crawl_delay: 2s\n");
            }
        }
        text
    })
}

fn snapshot(text: &str) -> Snapshot {
    snapshot_with(text, &OriginRobotsAvailability::Missing)
}

fn snapshot_with(text: &str, origin: &OriginRobotsAvailability) -> Snapshot {
    let source = SourceFile {
        name: "site.yaml".into(),
        text: text.into(),
    };
    let (policy, findings) = policy::read("site", &source);
    let policy = policy.unwrap_or_else(|| panic!("{text}\n{findings:?}"));
    let site = policy::compile_with_origin(
        Arc::new(policy),
        origin,
        Registry::builtin(),
        Timestamp(i64::MIN),
    )
    .expect("small");
    let entry = SiteEntry::new(Arc::new(site), Timestamp(0));
    Snapshot::new(vec![entry], 1)
}

fn facts<'a>(user_agent: &'a str, target: &'a str) -> RequestFacts<'a> {
    RequestFacts {
        host: b"site.test",
        target: target.as_bytes(),
        method: b"GET",
        user_agent: user_agent.as_bytes(),
        client: None,
        identity: Identity::Unverified,
        now: Timestamp(0),
    }
}

/// Tokens and what they ask for. To make a site of a policy takes far longer than to ask it, so
/// each is asked often.
fn questions() -> impl Strategy<Value = Vec<(&'static str, String)>> {
    let target = text().prop_map(|text| format!("/{text}"));
    proptest::collection::vec((proptest::sample::select(&TOKENS[..]), target), 8)
}

/// A robots.txt as somebody wrote it: tokens in several groups, groups of several tokens, rules of
/// any kind.
fn origin() -> impl Strategy<Value = String> {
    let agent = prop_oneof![3 => Just("*"), 2 => Just("GPTBot"), 2 => Just("bingbot"), 2 => Just("Googlebot-Image"), 1 => Just("googlebot"), 1 => Just("Googlebot2"), 1 => Just("foobot"), 1 => Just("Other")];
    let rule = (any::<bool>(), text());
    let group = (
        proptest::collection::vec(agent, 1..3),
        proptest::collection::vec(rule, 0..5),
        any::<bool>(),
    );
    proptest::collection::vec(group, 0..5).prop_map(|groups| {
        let mut text = String::new();
        for (agents, rules, delay) in groups {
            agents
                .iter()
                .for_each(|agent| text.push_str(&format!("User-agent: {agent}\n")));
            if delay {
                text.push_str("Crawl-delay: 5\n");
            }
            for (allow, path) in rules {
                text.push_str(&format!(
                    "{}: /{path}\n",
                    if allow { "Allow" } else { "Disallow" }
                ));
            }
        }
        text
    })
}

fn merged(policy: &str, origin: &str) -> Snapshot {
    let policy = policy.replace("origin: replace", "origin: merge");
    snapshot_with(
        &policy,
        &OriginRobotsAvailability::Available(Arc::new(OriginRobotsTxt::new(
            "https://origin.test/robots.txt",
            origin.as_bytes(),
        ))),
    )
}

fn body(snapshot: &Snapshot) -> String {
    String::from_utf8_lossy(&snapshot.sites()[0].site.robots_txt.body).into_owned()
}

/// The rules that bind a token, by the naive reading.
fn rules_for(robots_txt: &str, token: &str) -> Vec<(bool, Vec<u8>)> {
    let groups = parse(robots_txt.as_bytes());
    let of = |agent: &str| -> Option<Vec<(bool, Vec<u8>)>> {
        let agent = agent.to_ascii_lowercase();
        let named: Vec<&Group> = groups
            .iter()
            .filter(|group| group.agents.contains(&agent))
            .collect();
        (!named.is_empty()).then(|| {
            named
                .into_iter()
                .flat_map(|group| group.rules.clone())
                .collect()
        })
    };
    chain(token)
        .iter()
        .find_map(|token| of(token))
        .unwrap_or_default()
}

/// Whether rules disallow everything, so that no other rule changes anything.
fn is_closed(rules: &[(bool, Vec<u8>)]) -> bool {
    const BLANKETS: [&[u8]; 5] = [b"/", b"/*", b"*", b"/*$", b"*$"];
    rules.iter().all(|(allow, _)| !allow)
        && rules
            .iter()
            .any(|(_, pattern)| BLANKETS.contains(&pattern.as_slice()))
}

/// Whether merging left an Allow out that matches the target: then the Allow no longer opens it.
fn opened_by_a_left_out_allow(merged: &str, token: &str, target: &[u8]) -> bool {
    comments_for(merged, token).iter().any(|comment| {
        let left_out = comment
            .split_once(": \"Allow: ")
            .and_then(|(_, rest)| rest.split_once('"'));
        left_out.is_some_and(|(pattern, _)| matches(pattern.as_bytes(), target))
    })
}

/// The comments on the group that binds a token: those above it, which stand once for groups that
/// have the same.
fn comments_for(robots_txt: &str, token: &str) -> Vec<String> {
    let (mut comments, mut by_agent) = (Vec::new(), Vec::new());
    for group in robots_txt.split("\n\n") {
        let above: Vec<&str> = group.lines().filter(|line| line.starts_with('#')).collect();
        if !above.is_empty() {
            comments = above;
        }
        let agents = group
            .lines()
            .filter_map(|line| line.strip_prefix("User-agent: "));
        by_agent.extend(agents.map(|agent| (agent.to_ascii_lowercase(), comments.clone())));
    }
    let of = |token: &&str| {
        by_agent
            .iter()
            .find(|(agent, _)| agent.eq_ignore_ascii_case(token))
    };
    let found = chain(token).iter().find_map(of);
    found
        .map(|(_, comments)| comments.iter().map(|&comment| comment.to_owned()).collect())
        .unwrap_or_default()
}

/// Whether a decision is that of the naive matchers. A token that neither the registry nor the
/// policy knows is a bot without a name, which follows `*` as well.
fn check(decision: &Decision, body: &[u8], token: &str, target: &str) -> Result<(), TestCaseError> {
    let said = || {
        format!(
            "{token} asks for {target}\n{}",
            String::from_utf8_lossy(body)
        )
    };
    let expected = expected(body, token, target);
    if decision.kind == Kind::Ambiguous {
        let is_resolved =
            expected == Expected::Allowed && is_closed_resolved(body, token, target, false);
        prop_assert!(
            expected == Expected::Misspelled || is_resolved,
            "{}",
            said()
        );
        return Ok(());
    }
    let verdict = if expected == Expected::Allowed {
        Verdict::Allowed
    } else {
        Verdict::Disallowed
    };
    prop_assert!(expected != Expected::Misspelled, "{}", said());
    prop_assert_eq!(decision.verdict, verdict, "{}", said());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn the_verdict_on_a_merged_site_is_that_of_the_served_bytes(policy in policy(), origin in origin(), asked in questions(), only in any::<bool>()) {
        let snapshot = if only {
            snapshot_with("robots: { origin: only }\n", &OriginRobotsAvailability::Available(Arc::new(OriginRobotsTxt::new("origin", origin.as_bytes()))))
        } else {
            merged(&policy, &origin)
        };
        for (token, target) in &asked {
            let user_agent = format!("Mozilla/5.0 (compatible; {token}/1.0; +https://example.org/)");
            let decision = decide(&snapshot, Registry::builtin(), &facts(&user_agent, target), &CachedVersions::default(), &mut DecisionScratch::default()).expect("a site has the host");
            let body = body(&snapshot);
            check(&decision, body.as_bytes(), token, target)?;
            if only {
                prop_assert_eq!(naive_allows(origin.as_bytes(), token, target), naive_allows(body.as_bytes(), token, target), "{}\n{}", origin, body);
            }
        }
    }

    #[test]
    fn merged_file_allows_nothing_the_policy_disallows(policy in policy(), origin in origin(), asked in questions()) {
        let alone = body(&snapshot(&policy));
        let merged = body(&merged(&policy, &origin));
        for (token, target) in &asked {
            if !naive_allows(alone.as_bytes(), token, target) {
                prop_assert!(!naive_allows(merged.as_bytes(), token, target), "{} asks for {}\n{}\n{}\n{}", token, target, alone, origin, merged);
            }
        }
    }

    #[test]
    fn no_disallow_of_the_origin_is_lost_unsaid(policy in policy(), origin in origin()) {
        let merged = body(&merged(&policy, &origin));
        for token in TOKENS {
            let served = rules_for(&merged, token);
            for (allow, pattern) in rules_for(&origin, token) {
                let line = format!("Disallow: {}", String::from_utf8_lossy(&pattern));
                let said = comments_for(&merged, token).iter().any(|comment| comment.contains(&format!("\"{line}\"")));
                prop_assert!(allow || pattern.is_empty() || served.contains(&(false, pattern.clone())) || said || is_closed(&served), "{} of {} is lost\n{}\n{}", line, token, origin, merged);
            }
        }
    }

    #[test]
    fn where_the_policy_says_nothing_the_origin_s_verdict_stands(policy in policy(), origin in origin(), asked in questions()) {
        let alone = body(&snapshot(&policy));
        let merged = body(&merged(&policy, &origin));
        for (token, target) in &asked {
            let normalised = normal(target.as_bytes(), true);
            let silent = !rules_for(&alone, token).iter().any(|(_, pattern)| matches(pattern, &normalised));
            if silent && !opened_by_a_left_out_allow(&merged, token, &normalised) {
                prop_assert_eq!(naive_allows(merged.as_bytes(), token, target), naive_allows(origin.as_bytes(), token, target), "{} asks for {}\n{}\n{}\n{}", token, target, alone, origin, merged);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn target_allowed_by_both_files_stays_allowed(policy in policy(), origin in origin(), asked in questions()) {
        let alone = body(&snapshot(&policy));
        let merged = body(&merged(&policy, &origin));
        for (token, target) in &asked {
            let both = naive_allows(alone.as_bytes(), token, target) && naive_allows(origin.as_bytes(), token, target);
            if both && !opened_by_a_left_out_allow(&merged, token, &normal(target.as_bytes(), true)) {
                prop_assert!(naive_allows(merged.as_bytes(), token, target), "{} asks for {}\n{}\n{}\n{}", token, target, alone, origin, merged);
            }
        }
    }

    #[test]
    fn the_verdict_is_that_of_the_served_bytes(policy in policy(), asked in questions()) {
        let snapshot = snapshot(&policy);
        let site = &snapshot.sites()[0].site;
        for (token, target) in asked.iter().chain(&[("GPTBot", "/robots.txt?a".to_owned())]) {
            let user_agent = format!("Mozilla/5.0 (compatible; {token}/1.0; +https://example.org/)");
            let decision = decide(&snapshot, Registry::builtin(), &facts(&user_agent, target), &CachedVersions::default(), &mut DecisionScratch::default()).expect("a site has the host");
            check(&decision, &site.robots_txt.body, token, target)?;
            let is_open = decision.verdict == Verdict::Allowed;
            prop_assert!(!(is_open && is_closed_resolved(&site.robots_txt.body, token, target, true)), "{} asks for {}", token, target);
        }
    }

    #[test]
    fn explain_equals_decide(policy in policy(), asked in questions(), status in prop_oneof![Just(200u16), Just(404), Just(304)]) {
        let policy = format!("{policy}indexing:\n  - {{ paths: [/a], tag: noindex }}\n  - {{ types: [text/html], status: [200], tag: noarchive }}\n");
        let snapshot = snapshot(&policy);
        for (number, (token, target)) in asked.iter().enumerate() {
            let user_agent = if number == 0 { BROWSER.to_owned() } else { format!("{token}/1.0") };
            let facts = facts(&user_agent, target);
            let decision = decide(&snapshot, Registry::builtin(), &facts, &CachedVersions::default(), &mut DecisionScratch::default()).expect("a site has the host");
            let response = ResponseFacts { status, content_type: Some("text/html"), origin_tags: &[] };
            let explanation = explain(&snapshot, Registry::builtin(), &facts, CachedVersionsBasis::Unknown, &response);
            prop_assert_eq!(explanation.verdict, decision.verdict);
            prop_assert_eq!(explanation.kind, decision.kind);
            prop_assert_eq!(explanation.action.kind.name(), decision.action.name());
            prop_assert_eq!(explanation.action.would.is_some(), decision.would.is_some());
            prop_assert_eq!(explanation.rule.is_some(), decision.rule.is_some_and(|rule| rule.rule.is_some()));
            if decision.action.name() == "pass" {
                let lines = snapshot.sites()[0].site.tags.tags(&decision.path_rules, status, Some(b"text/html"));
                prop_assert_eq!(explanation.x_robots_tag, lines.map(|lines| lines.lines.clone()).unwrap_or_default());
            }
        }
    }

    #[test]
    fn superseded_version_judges_as_when_it_was_published(policy in policy(), asked in questions()) {
        let before = snapshot(&policy);
        let (site, registry) = (&before.sites()[0].site, Registry::builtin());
        let now = snapshot("robots: { origin: replace, groups: [{ agents: '*', disallow: [/] }, { agents: HouseBot, disallow: [/] }] }\n");
        for (token, target) in &asked {
            let user_agent = format!("Mozilla/5.0 (compatible; {token}/1.0; +https://example.org/)");
            let facts = facts(&user_agent, target);
            let then = decide(&before, registry, &facts, &CachedVersions::default(), &mut DecisionScratch::default()).expect("a site has the host");
            let held = [SupersededVersion { parsed: Arc::new(ParsedRobotsVersion::parse(site.robots_txt.body.clone(), registry)), since: Timestamp(0), superseded_at: Timestamp(0) }];
            let cached_versions = CachedVersions { versions: &held, cached: 1, basis: CachedVersionsBasis::Observed, was_served: true, ..CachedVersions::default() };
            let decision = decide(&now, registry, &facts, &cached_versions, &mut DecisionScratch::default()).expect("a site has the host");
            // What was ambiguous then is so to who goes by it: the RFC lets it ask.
            let expected = match then.kind {
                Kind::Allowed => Kind::StaleCopy,
                Kind::Ambiguous => Kind::Ambiguous,
                _ => Kind::Violation,
            };
            prop_assert_eq!(decision.kind, expected, "{} asks for {}\n{}", token, target, String::from_utf8_lossy(&site.robots_txt.body));
            let claimant = SiteClaim::find_by_name(&now, registry, &facts).expect("a site has the host");
            let case = RequestToJudge { registry, facts, claimant, cached_versions };
            let said = explain_request(&case, &ResponseFacts::default());
            prop_assert_eq!((said.kind, said.never_fetched, said.action.kind.name()), (decision.kind, decision.never_fetched, decision.action.name()));
        }
    }

    #[test]
    fn explain_equals_decide_for_any_cached_versions(policy in policy(), former in policy(), asked in questions(), bits in 0u64..4, flags in any::<[bool; 3]>()) {
        let (snapshot, former) = (snapshot(&policy), snapshot(&former));
        let (site, registry) = (&former.sites()[0].site, Registry::builtin());
        let held = [SupersededVersion { parsed: Arc::new(ParsedRobotsVersion::parse(site.robots_txt.body.clone(), registry)), since: Timestamp(0), superseded_at: Timestamp(0) }];
        let [forgotten, fetched, watched] = flags;
        for (token, target) in &asked {
            let cached_versions = CachedVersions { versions: &held, cached: bits, may_be_unknown: forgotten, older_until: None, was_served: fetched, has_version_in_force: false, basis: if watched { CachedVersionsBasis::Observed } else { CachedVersionsBasis::Unknown } };
            let user_agent = format!("{token}/1.0");
            let facts = facts(&user_agent, target);
            let decision = decide(&snapshot, registry, &facts, &cached_versions, &mut DecisionScratch::default()).expect("a site has the host");
            let claimant = SiteClaim::find_by_name(&snapshot, registry, &facts).expect("a site has the host");
            let case = RequestToJudge { registry, facts, claimant, cached_versions };
            let said = explain_request(&case, &ResponseFacts::default());
            prop_assert_eq!((said.verdict, said.kind, said.never_fetched), (decision.verdict, decision.kind, decision.never_fetched));
            prop_assert_eq!((said.action.kind.name(), said.action.would.is_some()), (decision.action.name(), decision.would.is_some()));
            prop_assert!(!decision.never_fetched || decision.kind == Kind::Violation && !fetched);
        }
    }

    #[test]
    fn policy_renders_equal_bytes_with_one_group_per_token(policy in policy()) {
        let (one, other) = (snapshot(&policy), snapshot(&policy));
        let body = |snapshot: &Snapshot| snapshot.sites()[0].site.robots_txt.body.clone();
        prop_assert_eq!(body(&one), body(&other));
        let mut agents: Vec<String> = parse(&body(&one)).into_iter().flat_map(|group| group.agents).collect();
        let all = agents.len();
        agents.sort();
        agents.dedup();
        prop_assert_eq!(agents.len(), all);
    }
}
