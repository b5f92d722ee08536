//! What must hold for any input, one function per fuzz target. `tests/it/engine/fuzz_corpora.rs`
//! includes this file and runs the same checks over the seeds with the stable toolchain, so the two
//! cannot drift apart.
//!
//! Each check compares the engine with something written apart from it: a naive search, a second
//! reading, the input.

use crawlgate::crawlers::{Claim, Registry};
use crawlgate::indexing::{TagScope, parse_lines};
use crawlgate::internals::crawlers::{SiteMarkers, parse_network_list};
use crawlgate::internals::logs::{ColumnHeader, LineFormat, LineReader, LogFormatString, LogLine};
use crawlgate::internals::policy::{Site, SiteEntry, Snapshot};
use crawlgate::internals::robots::{LITERAL_STAR, RuleSet, TargetScratch, url_path};
use crawlgate::internals::verdict::{
    CachedVersions, DecisionScratch, Identity, RequestFacts, decide, load_site,
};
use crawlgate::robots::{
    Dialect, DialectRules, FileVerdict, GroupMatch, PathPattern, RobotsFile, RobotsKey, Rule,
};
use crawlgate::time::Timestamp;
use crawlgate::yaml::SourceFile;

/// Questions asked about one file: enough to meet its rules, few enough to be quick.
const TOKENS: usize = 12;
const URLS: usize = 40;

/// Any bytes as a robots.txt: nothing is lost, and both readings agree with one that tries every
/// rule.
pub fn robots_file(data: &[u8]) {
    let file = RobotsFile::parse(data);
    let mut together = Vec::new();
    for (number, line) in (1..).zip(file.lines()) {
        assert_eq!(line.number, number);
        assert_eq!(file.line(number), Some(line));
        let inside = |range: &std::ops::Range<usize>| {
            range.start >= line.text.start && range.end <= line.text.end
        };
        assert!(line.comment.as_ref().is_none_or(inside));
        assert!(
            line.key_value
                .as_ref()
                .is_none_or(|record| inside(&record.name) && inside(&record.value))
        );
        assert!(
            line.key_value
                .as_ref()
                .is_none_or(|record| record.name.end <= record.value.start)
        );
        together.extend_from_slice(file.slice(&line.text));
        together.extend_from_slice(match data.get(line.text.end..).unwrap_or_default() {
            [b'\r', b'\n', ..] => b"\r\n",
            [b'\r', ..] => b"\r",
            [b'\n', ..] => b"\n",
            _ => b"",
        });
    }
    assert_eq!(together, data, "the lines put together are not the bytes");

    let spaced = ["Sogou web spider", "Sogou inst spider"];
    let values = |keys: &'static [RobotsKey]| {
        let records = file
            .lines()
            .iter()
            .filter_map(|line| line.key_value.as_ref());
        records
            .filter(|record| keys.contains(&record.key))
            .map(|record| file.slice(&record.value).to_vec())
    };
    let mut urls: Vec<Vec<u8>> = vec![
        b"/".to_vec(),
        b"".to_vec(),
        b"https://shop.example/robots.txt?a".to_vec(),
    ];
    for value in values(&[RobotsKey::Allow, RobotsKey::Disallow, RobotsKey::Sitemap]).take(URLS) {
        urls.push(met_by(&value));
        urls.push([b"https://shop.example", value.as_slice()].concat());
    }
    for dialect in Dialect::ALL {
        let reading = DialectRules::new(&file, dialect, &spaced);
        let mut tokens: Vec<Vec<u8>> = vec![b"GPTBot".to_vec(), b"".to_vec(), b"*".to_vec()];
        tokens.extend(values(&[RobotsKey::UserAgent]).take(TOKENS));
        let read = reading.groups().iter().flat_map(|group| &group.agents);
        tokens.extend(
            read.take(TOKENS)
                .map(|agent| agent.token.to_ascii_uppercase().into_bytes()),
        );
        for token in &tokens {
            for url in &urls {
                assert_eq!(
                    reading.verdict(token, url),
                    naive_verdict(&reading, dialect, token, url),
                    "{} on {:?} of {:?}",
                    dialect.name(),
                    String::from_utf8_lossy(url),
                    String::from_utf8_lossy(token),
                );
            }
        }
    }
}

/// Any bytes as a published list of networks: what is read can be written in two shapes, and is
/// read from both alike.
pub fn network_list(data: &[u8]) {
    let Ok(networks) = parse_network_list(data) else {
        return;
    };
    assert!(!networks.is_empty());
    assert!(
        networks.iter().all(|network| network.trunc() == *network),
        "a network with bits of a host"
    );
    let texts: Vec<String> = networks.iter().map(ToString::to_string).collect();
    assert_eq!(
        parse_network_list(texts.join("\n").as_bytes()).as_ref(),
        Ok(&networks),
        "as lines"
    );
    let strings: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
    assert_eq!(
        parse_network_list(format!("[{}]", strings.join(",")).as_bytes()).as_ref(),
        Ok(&networks),
        "as JSON"
    );
}

/// Something that a pattern matches: wildcards stand for a letter, an anchor for the end.
fn met_by(pattern: &[u8]) -> Vec<u8> {
    let pattern = pattern.strip_suffix(b"$").unwrap_or(pattern);
    pattern
        .iter()
        .map(|byte| if *byte == b'*' { b'x' } else { *byte })
        .collect()
}

/// Whether a URL has neither a slash at its beginning nor a scheme.
fn is_relative(url: &[u8]) -> bool {
    let scheme = url
        .windows(3)
        .position(|piece| piece == b"://")
        .map(|end| &url[..end]);
    let is_absolute = scheme.is_some_and(|scheme| {
        scheme.first().is_some_and(u8::is_ascii_alphabetic)
            && scheme
                .iter()
                .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte))
    });
    !is_absolute && !url.starts_with(b"/")
}

/// The verdict by looking at every group and trying every rule.
fn naive_verdict(
    reading: &DialectRules,
    dialect: Dialect,
    token: &[u8],
    url: &[u8],
) -> FileVerdict {
    let may_be_named = dialect == Dialect::Google || !token.is_empty();
    let naming = |star: bool| {
        reading.groups().iter().filter(move |group| {
            group.agents.iter().any(|agent| {
                agent.star == star
                    && (star || may_be_named && agent.token.as_bytes().eq_ignore_ascii_case(token))
            })
        })
    };
    let (bound, rules): (_, Vec<_>) = if naming(false).next().is_some() {
        (
            GroupMatch::Named,
            naming(false).flat_map(|group| &group.rules).collect(),
        )
    } else if naming(true).next().is_some() {
        (
            GroupMatch::Star,
            naming(true).flat_map(|group| &group.rules).collect(),
        )
    } else {
        return FileVerdict {
            allowed: true,
            line: None,
            bound: GroupMatch::Nothing,
        };
    };
    let path = match dialect {
        Dialect::Rfc9309 if is_relative(url) => url.into(),
        _ => url_path(url),
    };
    let mut scratch = TargetScratch::default();
    let normalised = scratch.normalise(&path);
    let target = match dialect {
        Dialect::Rfc9309 if normalised.is_robots_txt() => {
            return FileVerdict {
                allowed: true,
                line: None,
                bound,
            };
        }
        Dialect::Rfc9309 => normalised.sent,
        Dialect::Google => path.split(|byte| *byte == 0).next().unwrap_or_default(),
    };
    // The first of the longest; of equally long ones an Allow. `max_by_key` would take the last, so
    // backwards.
    let deciding = rules
        .iter()
        .rev()
        .filter(|line| line.rule.pattern.matches(target));
    if let Some(line) = deciding.max_by_key(|line| (line.rule.pattern.priority(), line.rule.allow))
    {
        return FileVerdict {
            allowed: line.rule.allow,
            line: Some(line.line),
            bound,
        };
    }
    let empty = |allow: bool| {
        rules
            .iter()
            .find(|line| line.rule.allow == allow && line.rule.pattern.is_empty())
    };
    FileVerdict {
        allowed: true,
        line: empty(true).or_else(|| empty(false)).map(|line| line.line),
        bound,
    }
}

/// A target in the first line, rules in the others (`+` allows): the indexes find what trying each
/// rule finds, and a pattern matches what a textbook glob matches.
pub fn robots_pattern(data: &[u8]) {
    let mut lines = data.split(|byte| *byte == b'\n');
    let path = lines.next().unwrap_or_default();
    let written: Vec<(bool, &[u8])> = lines
        .map(|line| match line.strip_prefix(b"+") {
            Some(rest) => (true, rest),
            None => (false, line),
        })
        .collect();
    let mut scratch = TargetScratch::default();
    for dialect in Dialect::ALL {
        let target = match dialect {
            Dialect::Rfc9309 => scratch.normalise(path).sent,
            Dialect::Google => path,
        };
        let rules: Vec<Rule> = written
            .iter()
            .map(|(allow, pattern)| Rule {
                allow: *allow,
                pattern: dialect.parse_pattern(pattern),
            })
            .collect();
        for rule in &rules {
            let text = rule.pattern.as_str();
            assert!(text.is_ascii());
            assert_eq!(text.is_empty(), rule.pattern.is_empty());
            assert_eq!(text.len(), rule.pattern.priority());
            // Quadratic: long ones are left to the other checks.
            if text.len() * target.len() <= 40_000 {
                assert_eq!(
                    rule.pattern.matches(target),
                    glob(text, dialect, target),
                    "{text:?}"
                );
            }
            if dialect == Dialect::Rfc9309 {
                assert!(
                    text.bytes()
                        .all(|byte| byte.is_ascii_graphic() && byte != b'#'),
                    "{text:?} leaves its line"
                );
                assert_eq!(PathPattern::new(text), rule.pattern);
            }
        }
        let matching = rules
            .iter()
            .enumerate()
            .rev()
            .filter(|(_, rule)| rule.pattern.matches(target));
        let expected = matching
            .max_by_key(|(_, rule)| (rule.pattern.priority(), rule.allow))
            .map(|(index, _)| index);
        assert_eq!(RuleSet::new(rules).find(target), expected);
    }
}

/// Whether a pattern matches the beginning of a target (or all of it, anchored), by the table of a
/// textbook.
fn glob(pattern: &str, dialect: Dialect, target: &[u8]) -> bool {
    if pattern.is_empty() {
        return false;
    }
    let (body, anchored) = pattern
        .strip_suffix('$')
        .map_or((pattern, false), |body| (body, true));
    let body = match dialect {
        // The characters `*` and `$` are one byte each in a target.
        Dialect::Rfc9309 => body.replace("%24", "$").replace("%2A", "\u{1}"),
        Dialect::Google => body.to_owned(),
    };
    // reached[n]: the pattern so far matches exactly the first n bytes.
    let mut reached = vec![false; target.len() + 1];
    reached[0] = true;
    for byte in body.bytes() {
        if byte == b'*' {
            for place in 1..reached.len() {
                reached[place] |= reached[place - 1];
            }
        } else {
            for place in (1..reached.len()).rev() {
                reached[place] = reached[place - 1] && target[place - 1] == byte;
            }
            reached[0] = false;
        }
    }
    if anchored {
        reached[target.len()]
    } else {
        reached.contains(&true)
    }
}

/// Any bytes as a target and as a URL: normal is normal, and nothing grows beyond what the buffers
/// have room for.
pub fn robots_target(data: &[u8]) {
    let mut scratch = TargetScratch::default();
    // What was in the buffers before is of no account.
    scratch.normalise(b"/b%zz/../../x y");
    let target = scratch.normalise(data);
    let sent = target.sent.to_vec();
    let resolutions: Vec<Vec<u8>> = target
        .resolutions()
        .map(|resolved| resolved.target.to_vec())
        .collect();
    let mut fresh = TargetScratch::default();
    assert_eq!(fresh.normalise(data), target);
    check_normal(&sent);
    assert!(
        sent.len() <= data.len() * 3 + 1,
        "{} bytes out of {}",
        sent.len(),
        data.len()
    );
    let spelled = |bytes: &[u8]| -> Vec<u8> {
        bytes
            .iter()
            .map(|byte| if *byte == LITERAL_STAR { b'*' } else { *byte })
            .collect()
    };
    let written = spelled(&sent);
    let again = fresh.normalise(&written);
    assert_eq!(again.sent, sent);
    assert_eq!(
        again
            .resolutions()
            .map(|resolved| resolved.target.to_vec())
            .collect::<Vec<_>>(),
        resolutions
    );
    for resolved in resolutions {
        check_normal(&resolved);
        assert!(resolved.len() <= sent.len());
        let written = spelled(&resolved);
        let again = fresh.normalise(&written);
        assert_eq!((again.sent, again.resolved), (resolved.as_slice(), None));
    }

    let path = url_path(data);
    assert!(path.starts_with(b"/") && !path.contains(&b'#'));
    assert!(path.len() <= data.len() + 1);
    // A path after an authority is that path.
    if data.starts_with(b"/") {
        let whole = [b"https://shop.example", data].concat();
        let path = data.split(|byte| *byte == b'#').next().unwrap_or_default();
        assert_eq!(&*url_path(&whole), path);
    }
}

fn check_normal(target: &[u8]) {
    assert!(target.starts_with(b"/"));
    assert!(
        target
            .iter()
            .all(|byte| *byte == LITERAL_STAR || byte.is_ascii_graphic() && !b"#*".contains(byte)),
        "{target:?}"
    );
}

/// Any text as a policy: it is refused with a mistake in its place, or what it publishes is what it
/// judges by.
pub fn policy(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let source = SourceFile {
        name: "site.yaml".into(),
        text: text.as_ref().into(),
    };
    let (site, findings) = load_site("site", &source, Registry::builtin());
    assert_eq!(
        site.is_none(),
        findings.has_errors(),
        "{:?}",
        findings.items
    );
    for finding in &findings.items {
        let spans = finding
            .span
            .iter()
            .chain(finding.related.iter().map(|related| &related.span));
        for span in spans {
            assert!(
                span.start <= span.end && span.end <= text.len(),
                "{span:?} of {}",
                text.len()
            );
        }
        let shown = finding.render(&source, false);
        assert!(
            shown
                .chars()
                .all(|sign| sign == '\n' || sign == '\t' || sign == '\r' || !sign.is_control())
        );
        finding.render(&source, true);
        assert!(!finding.one_line(&source).contains(['\n', '\r']));
    }
    if let Some(site) = site {
        published_is_judged(&site);
        let snapshot = Snapshot::new(vec![SiteEntry::new(site, Timestamp(0))], 0);
        for user_agent in [
            "GPTBot/1.2",
            "Mozilla/5.0 (compatible; Googlebot/2.1)",
            "Mozilla/5.0 Firefox/140.0",
            "",
        ] {
            let facts = RequestFacts {
                host: b"shop.example",
                target: b"/a/../private/?b",
                method: b"GET",
                user_agent: user_agent.as_bytes(),
                client: None,
                identity: Identity::Unverified,
                now: Timestamp(0),
            };
            let decision = decide(
                &snapshot,
                Registry::builtin(),
                &facts,
                &CachedVersions::default(),
                &mut DecisionScratch::default(),
            );
            let Some(decision) = decision else { continue };
            let tags = &snapshot.sites()[0].site.tags;
            for status in [200, 404] {
                if let Some(tags) = tags.tags(
                    &decision.path_rules,
                    status,
                    Some(b"text/html; charset=utf-8"),
                ) {
                    assert!(!format!("{tags:?}").is_empty());
                }
            }
        }
    }
}

/// The bytes of a robots.txt, read again, say what the matcher says.
fn published_is_judged(site: &Site) {
    let file = RobotsFile::parse(site.robots_txt.body.clone());
    let spaced: Vec<&str> = Registry::builtin()
        .crawlers()
        .iter()
        .flat_map(|crawler| &crawler.tokens)
        .map(String::as_str)
        .filter(|token| token.contains(' '))
        .collect();
    let reading = DialectRules::new(&file, Dialect::Rfc9309, &spaced);
    let rules = site.document.groups.iter().flat_map(|group| &group.rules);
    let mut paths: Vec<String> = rules
        .take(URLS)
        .map(|rule| String::from_utf8_lossy(&met_by(rule.pattern.as_str().as_bytes())).into_owned())
        .map(|path| {
            if path.starts_with('/') {
                path
            } else {
                format!("/{path}")
            }
        })
        .collect();
    paths.push("/".to_owned());
    let mut scratch = TargetScratch::default();
    for agent in site
        .document
        .groups
        .iter()
        .flat_map(|group| &group.agents)
        .take(TOKENS)
    {
        let group = if agent == "*" {
            site.matcher.star_group()
        } else {
            site.matcher.named_group(agent)
        };
        let group = group.expect("the group of an agent of the document");
        for path in &paths {
            let target = scratch.normalise(path.as_bytes());
            let set = site.matcher.rules(group);
            let allowed = target.is_robots_txt()
                || set
                    .find(target.sent)
                    .is_none_or(|rule| set.rules()[rule].allow);
            let token = if agent == "*" {
                "nobody-names-this"
            } else {
                agent
            };
            let read = reading.verdict(
                token.as_bytes(),
                format!("https://shop.example{path}").as_bytes(),
            );
            assert_eq!(read.allowed, allowed, "{agent} on {path}");
        }
    }
}

/// Any lines as X-Robots-Tag: what is sent on says what was read.
pub fn tags(data: &[u8]) {
    // The room reads at most 1,000 members; what it sends on must fit as well.
    let data = &data[..data.len().min(2_048)];
    let read = parse_lines(data.split(|byte| *byte == b'\n'));
    let sent = read.lines();
    for line in &sent {
        assert!(
            !line.contains(|sign: char| sign.is_ascii_control()),
            "{line:?}"
        );
    }
    let again = parse_lines(sent.iter().map(String::as_bytes));
    assert_eq!(again, read, "sent as {sent:?}");
    assert_eq!(read.is_empty(), sent.is_empty());
    let names = read.iter().map(|(scope, _)| match scope {
        TagScope::All => "somebot",
        TagScope::Bot(name) => name,
    });
    for bot in names {
        assert_eq!(again.effective(bot), read.effective(bot), "{bot}");
    }
}

/// Any bytes as a User-Agent, after a first line of tokens that a policy names: case and what lies
/// beyond the bound do not matter, and a token is found only where it stands.
pub fn user_agent(data: &[u8]) {
    let registry = Registry::builtin();
    let (first, user_agent) = match data.iter().position(|byte| *byte == b'\n') {
        Some(place) => (&data[..place], &data[place + 1..]),
        None => (&b""[..], data),
    };
    let claim = registry.identify(user_agent);
    match claim {
        Claim::Known(index) => assert!(!registry.get(index).id.is_empty()),
        Claim::PolicyToken(_) => panic!("a token without tokens"),
        Claim::Visitor | Claim::UnknownBot | Claim::Tool => {}
    }
    assert_eq!(registry.identify(&user_agent.to_ascii_uppercase()), claim);
    assert_eq!(registry.identify(&user_agent.to_ascii_lowercase()), claim);

    let tokens: Vec<String> = String::from_utf8_lossy(first)
        .split(' ')
        .filter(|token| !token.is_empty())
        .map(str::to_owned)
        .collect();
    let marks = SiteMarkers::new(tokens.clone());
    match registry.identify_on_site(user_agent, &marks) {
        Claim::PolicyToken(index) => {
            let token = tokens[usize::from(index)].as_bytes();
            assert!(
                user_agent
                    .windows(token.len())
                    .any(|window| window.eq_ignore_ascii_case(token))
            );
        }
        with_tokens => assert_eq!(with_tokens, claim),
    }
}

/// Any bytes as a robots.txt that is imported: the policy is accepted, and what it serves gives the
/// verdicts of the file to every token that is not said to be left out.
pub fn import(data: &[u8]) {
    use crawlgate::internals::policy::import::{ImportNote, import};
    let file = RobotsFile::parse(data);
    let imported = import(&file, None, Registry::builtin());
    // What a policy has to say that keeps Googlebot out stands there as a comment.
    let text = imported.text.replace("# acknowledge:", "acknowledge:");
    let source = SourceFile {
        name: "imported.yaml".into(),
        text: text.into(),
    };
    let (site, findings) = load_site("imported", &source, Registry::builtin());
    let Some(site) = site else {
        panic!(
            "the imported policy is refused: {findings:?}\n{}",
            imported.text
        )
    };
    let spaced = Registry::builtin().tokens_with_blanks();
    let before = DialectRules::new(&file, Dialect::Rfc9309, &spaced);
    let after = DialectRules::new(
        &RobotsFile::parse(site.robots_txt.body.clone()),
        Dialect::Rfc9309,
        &spaced,
    );
    let left_out = |token: &str| {
        imported
            .notes
            .iter()
            .any(|(_, left)| matches!(left, ImportNote::Group(left) if left == token))
    };
    let dropped = imported
        .notes
        .iter()
        .any(|(_, left)| matches!(left, ImportNote::PathTooLong(_)));
    let agents = before
        .groups()
        .iter()
        .flat_map(|group| &group.agents)
        .map(|agent| agent.token.as_str());
    let rules = before.groups().iter().flat_map(|group| &group.rules);
    let urls: Vec<Vec<u8>> = rules
        .take(URLS)
        .map(|rule| met_by(rule.rule.pattern.as_str().as_bytes()))
        .collect();
    for token in agents
        .take(TOKENS)
        .chain(["NobodyNamesMe"])
        .filter(|token| !left_out(token) && !dropped)
    {
        for url in urls.iter().filter(|url| url.starts_with(b"/")) {
            assert_eq!(
                after.verdict(token.as_bytes(), url).allowed,
                before.verdict(token.as_bytes(), url).allowed,
                "{token} on {:?}\n{}",
                String::from_utf8_lossy(url),
                imported.text
            );
        }
    }
}

/// What is read of a page here: below what a rewriter may hold, so that nothing depends on how much
/// it does hold.
#[cfg(feature = "html")]
const PAGE: usize = 2_000;

/// A label of an encoding and, behind a blank, the sizes of pieces in the first line, a page in the
/// others: it comes out the same in whatever pieces, and but for metas of its own, what is written
/// into it can be taken out again.
#[cfg(feature = "html")]
pub fn html(data: &[u8]) {
    use crawlgate::internals::html::{PageRewriter, RewriteResult};
    const METAS: [&str; 2] = [
        "<meta name=\"robots\" content=\"noindex\">",
        "<meta name=\"examplebot\" content=\"nofollow\">",
    ];
    let end = data
        .iter()
        .position(|byte| *byte == b'\n')
        .unwrap_or(data.len());
    let (first, html) = (&data[..end], data.get(end + 1..).unwrap_or_default());
    let html = &html[..html.len().min(PAGE)];
    let mut words = first.splitn(2, |byte| *byte == b' ');
    let label = words.next().filter(|label| !label.is_empty());
    let sizes = words
        .next()
        .filter(|sizes| !sizes.is_empty())
        .unwrap_or(b"\x01");
    let tags = parse_lines([b"noindex".as_slice(), b"examplebot: nofollow"]);
    let page = || PageRewriter::new(&tags, label).expect("something to say");
    let mut whole = page();
    let mut at_once = whole.write(html);
    at_once.extend(whole.end());

    let (mut pieces, mut rest, mut sizes) = (page(), html, sizes.iter().cycle());
    let mut together = Vec::new();
    while !rest.is_empty() {
        let size = usize::from(*sizes.next().expect("they go round")).clamp(1, rest.len());
        together.extend(pieces.write(&rest[..size]));
        rest = &rest[size..];
    }
    together.extend(pieces.end());
    assert_eq!(together, at_once, "it matters where pieces end");
    assert_eq!(pieces.outcome(), whole.outcome());

    if whole.outcome() != RewriteResult::Rewritten {
        assert_eq!(at_once, html, "what cannot be read is changed");
    }
    let lower = html.to_ascii_lowercase();
    let has = |word: &[u8]| lower.windows(word.len()).any(|window| window == word);
    if !has(b"robots") && !has(b"examplebot") {
        let written = METAS.concat();
        let places: Vec<usize> = (0..at_once.len())
            .filter(|place| at_once[*place..].starts_with(written.as_bytes()))
            .collect();
        assert!(places.len() <= 1, "written more than once");
        let mut without = at_once;
        for place in places {
            without.drain(place..place + written.len());
        }
        assert_eq!(without, html, "something else is changed");
    }
}

/// A format or a header in the first line, then a line of an access log: what is read of it stands in
/// it, and what is written as Combined again says the same.
pub fn log_line(data: &[u8]) {
    let (first, line) = match data.iter().position(|byte| *byte == b'\n') {
        Some(end) => (&data[..end], &data[end + 1..]),
        None => (b"".as_slice(), data),
    };
    let pattern = std::str::from_utf8(first)
        .ok()
        .and_then(|format| LogFormatString::parse(format).ok());
    for format in [
        Some(LineFormat::Detect),
        pattern.map(LineFormat::FormatString),
    ]
    .into_iter()
    .flatten()
    {
        let mut reader = LineReader::new(&format, ColumnHeader::default());
        let _ = reader.parse(first);
        let Ok(LogLine::Request(record)) = reader.parse(line) else {
            continue;
        };
        assert!(!record.target.is_empty() && record.time.within_rfc3339().is_some());
        // Signs in place of bytes that are no UTF-8 take three bytes each.
        let fields = [
            Some(&record.method),
            Some(&record.target),
            record.host.as_ref(),
            record.user_agent.as_ref(),
        ];
        assert!(
            fields
                .into_iter()
                .flatten()
                .all(|field| field.len() <= 3 * line.len())
        );
        let hex =
            |text: &[u8]| -> String { text.iter().map(|byte| format!("\\x{byte:02X}")).collect() };
        let written = format!(
            r#"192.0.2.7 - - [22/Nov/2026:10:00:00 +0000] "GET {}" {} {} "-" "{}""#,
            hex(&record.target),
            record.status,
            record.bytes,
            hex(record.user_agent.as_deref().unwrap_or_default()),
        );
        // A target that ends like a version is one.
        if record.target.windows(6).any(|part| part == b" HTTP/") {
            continue;
        }
        let Ok(LogLine::Request(again)) = LineFormat::Detect.parse(written.as_bytes()) else {
            panic!("{written}")
        };
        assert_eq!(
            (&again.target, again.status, again.bytes),
            (&record.target, record.status, record.bytes)
        );
        if record.user_agent.as_deref() != Some(b"-") {
            assert_eq!(
                again.user_agent.unwrap_or_default(),
                record.user_agent.unwrap_or_default()
            );
        }
    }
}

/// Any bytes as what a client sends: a head that is taken is one that a plain reader of lines
/// understands in the same way, and where it ends does not depend on the pieces that it comes in.
#[cfg(feature = "proxy")]
pub fn head(data: &[u8]) {
    use crawlgate::internals::edge::{HeadScanner, Http1RequestHead, MAX_FIELDS};
    use crawlgate::internals::requests::BodyFraming;
    use crawlgate::internals::settings::Limits;
    let limits = Limits {
        target: 256,
        headers: 1_024,
        fields: 16,
        ..Limits::default()
    };
    let whole = HeadScanner::new(&limits).scan(data);
    let mut scanner = HeadScanner::new(&limits);
    let singly = (0..=data.len())
        .find_map(|end| scanner.scan(&data[..end]).transpose())
        .transpose();
    // Of two mistakes the pieces may decide which one is found first.
    assert!(
        singly == whole || singly.is_err(),
        "{singly:?} and {whole:?}"
    );
    let Ok(Some(place)) = whole.clone() else {
        assert!(
            singly == whole || whole.is_err(),
            "{singly:?} and {whole:?}"
        );
        return;
    };
    let head = &data[place];
    let mut room = [const { std::mem::MaybeUninit::uninit() }; MAX_FIELDS];
    let Ok(request) = Http1RequestHead::parse(head, &mut room, &limits) else {
        return;
    };
    assert_eq!(singly, whole);
    assert!(head.ends_with(b"\r\n\r\n") && !head.contains(&0));
    let lines: Vec<&[u8]> = head[..head.len() - 4]
        .split(|byte| *byte == b'\n')
        .map(|line| line.trim_ascii_end())
        .collect();
    let (line, rest) = lines.split_first().expect("a request line");
    let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let version: &[u8] = if request.is_http10 {
        b"HTTP/1.0"
    } else {
        b"HTTP/1.1"
    };
    assert_eq!(
        words,
        [request.fields.method, request.fields.target, version]
    );
    assert_eq!(request.lines.len(), rest.len());
    let of = |name: &str| -> Vec<&[u8]> {
        let pairs = rest.iter().filter_map(|line| {
            let colon = line.iter().position(|byte| *byte == b':')?;
            line[..colon]
                .eq_ignore_ascii_case(name.as_bytes())
                .then(|| line[colon + 1..].trim_ascii())
        });
        pairs.collect()
    };
    let hosts = of("host");
    assert!(hosts.len() <= 1 && (request.is_http10 || hosts.len() == 1));
    assert_eq!(
        hosts.first().copied().unwrap_or_default(),
        request.fields.host
    );
    assert!(
        !request
            .fields
            .host
            .iter()
            .any(|byte| byte.is_ascii_whitespace() || b"/@,?#\\".contains(byte))
    );
    match (
        of("content-length").as_slice(),
        of("transfer-encoding").as_slice(),
    ) {
        ([], []) => assert_eq!(request.framing, BodyFraming::None),
        ([length], []) => {
            let length: u64 = std::str::from_utf8(length)
                .expect("digits")
                .parse()
                .expect("a number");
            assert_eq!(
                request.framing,
                if length == 0 {
                    BodyFraming::None
                } else {
                    BodyFraming::Length(length)
                }
            );
        }
        ([], [coding]) => {
            assert!(coding.eq_ignore_ascii_case(b"chunked") && !request.is_http10);
            assert_eq!(request.framing, BodyFraming::Chunked);
        }
        framing => panic!("two framings were taken: {framing:?}"),
    }
}

/// Any bytes as a body in chunks: it ends in the same place in whatever pieces, and is what a
/// plain reader reads.
#[cfg(feature = "proxy")]
pub fn chunks(data: &[u8]) {
    use crawlgate::internals::edge::ChunkedDecoder;
    let mut together = ChunkedDecoder::default();
    let whole = together
        .read(data)
        .map(|count| (count, together.is_finished()));
    let mut chunks = ChunkedDecoder::default();
    let mut count = 0;
    let singly = data
        .iter()
        .try_for_each(|byte| chunks.read(&[*byte]).map(|read| count += read));
    assert_eq!(singly.map(|()| (count, chunks.is_finished())), whole);
    let Ok((count, true)) = whole else { return };
    // A reader of lines: sizes in hexadecimal, data, and an empty line after the last chunk.
    let mut rest = &data[..count];
    let line = |rest: &mut &[u8]| -> Vec<u8> {
        let end = rest
            .windows(2)
            .position(|window| window == b"\r\n")
            .expect("a line");
        let line = rest[..end].to_vec();
        *rest = &rest[end + 2..];
        line
    };
    loop {
        let size = line(&mut rest);
        let digits = size.split(|byte| *byte == b';').next().expect("a size");
        let size = usize::from_str_radix(std::str::from_utf8(digits).expect("digits"), 16)
            .expect("a size");
        if size == 0 {
            while !line(&mut rest).is_empty() {}
            assert!(rest.is_empty(), "bytes after the body");
            return;
        }
        assert_eq!(&rest[size..size + 2], b"\r\n");
        rest = &rest[size + 2..];
    }
}

/// Any bytes as what follows the last chunk of a body: no field of a head comes through, and what
/// comes through was there.
#[cfg(feature = "proxy")]
pub fn trailers(data: &[u8]) {
    use crawlgate::internals::edge::{ChunkedDecoder, read_trailers};
    let mut body = ChunkedDecoder::for_response();
    let bytes = [b"0\r\n", data].concat();
    let Ok(count) = body.read(&bytes) else {
        return;
    };
    assert!(
        bytes[3..count].starts_with(body.trailers()),
        "trailers are kept as they came"
    );
    if !body.is_finished() {
        return;
    }
    assert_eq!(bytes[3..count].strip_suffix(b"\r\n"), Some(body.trailers()));
    let passed = read_trailers(body.trailers(), |fields| {
        fields
            .iter()
            .map(|field| (field.name.to_ascii_lowercase(), field.value.to_vec()))
            .collect::<Vec<_>>()
    });
    let lines: Vec<&[u8]> = body
        .trailers()
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .collect();
    let Ok(passed) = passed else { return };
    assert!(passed.len() <= lines.len());
    let mut lines = lines.iter();
    for (name, value) in passed {
        let kept_back = [
            "authorization",
            "connection",
            "content-length",
            "cookie",
            "forwarded",
            "host",
            "transfer-encoding",
        ];
        assert!(
            !kept_back.contains(&name.replace('_', "-").as_str())
                && !name.starts_with("x-forwarded-"),
            "{name}"
        );
        assert!(!value.iter().any(|byte| b"\r\n\0".contains(byte)));
        // In their order, each as one line.
        let line = [name.as_bytes(), b":", &value].concat();
        let is_it = |other: &&[u8]| {
            let colon = other
                .iter()
                .position(|byte| *byte == b':')
                .expect("a field");
            [
                other[..colon].to_ascii_lowercase().as_slice(),
                b":",
                other[colon + 1..].trim_ascii(),
            ]
            .concat()
                == line
        };
        assert!(lines.any(is_it), "{name} is not one of the lines");
    }
}

/// Any bytes as a response that comes in pieces: the first byte says how. It is read as in one
/// piece, also where a part of it waits for the client.
#[cfg(feature = "proxy")]
pub fn incoming(data: &[u8]) {
    use crawlgate::internals::edge::ResponseReader;
    let Some((cut, bytes)) = data.split_first() else {
        return;
    };
    let (whole, pieces) = (
        read_incoming(&[bytes], 0),
        bytes.chunks(1 + usize::from(cut % 32)).collect::<Vec<_>>(),
    );
    let in_pieces = read_incoming(&pieces, usize::from(cut / 32));
    assert_eq!(whole, in_pieces);

    /// The body, whether it is over, and its trailers; `None` if it is malformed. So many bytes at
    /// a time are passed on; 0 is all.
    fn read_incoming(pieces: &[&[u8]], stall: usize) -> Option<(Vec<u8>, bool, Vec<u8>)> {
        let (mut response, mut body) = (ResponseReader::default(), Vec::new());
        for piece in pieces {
            response.input_buffer().reserve(32 * 1024);
            response.input_buffer().extend_from_slice(piece);
            response.mark_read();
            while response.is_before_body() {
                match response.parse_head(false, |_| ()) {
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    Err(_) => return None,
                }
            }
            while !response.is_before_body() {
                loop {
                    let waiting = response.data().0;
                    let count = if stall == 0 {
                        waiting.len()
                    } else {
                        waiting.len().min(stall)
                    };
                    if count == 0 {
                        break;
                    }
                    body.extend_from_slice(&waiting[..count]);
                    response.consume(count);
                    response.shrink_buffer();
                }
                if response.is_body_finished() || !response.decode_more().ok()? {
                    break;
                }
            }
        }
        Some((
            body,
            response.is_body_finished(),
            response.trailers().to_vec(),
        ))
    }
}

/// Any bytes as headers of the PROXY protocol: one that is taken says what was written.
#[cfg(feature = "proxy")]
pub fn proxy_header(data: &[u8]) {
    use crawlgate::internals::edge::{parse_v1, parse_v2};
    if let Ok(Some(client)) = parse_v1(data) {
        let text = std::str::from_utf8(data).expect("text");
        let words: Vec<&str> = text.trim_end().split(' ').collect();
        assert_eq!((words.len(), words[0]), (6, "PROXY"));
        assert_eq!(words[2].parse(), Ok(client.ip()));
        assert_eq!(words[4].parse(), Ok(client.port()));
        assert_eq!(words[1] == "TCP4", client.is_ipv4());
    }
    if let [command, family, rest @ ..] = data
        && let Ok(Some(client)) = parse_v2(*command, *family, rest)
    {
        assert_eq!(*command, 0x21);
        let (address, port) = match client.ip() {
            std::net::IpAddr::V4(address) => (address.octets().to_vec(), 8),
            std::net::IpAddr::V6(address) => (address.octets().to_vec(), 32),
        };
        assert!(rest.starts_with(&address));
        assert_eq!(rest[port..port + 2], client.port().to_be_bytes());
    }
}

/// Any bytes as a key directory: each key is called by its thumbprint, and the keys written again
/// are read alike.
#[cfg(feature = "proxy")]
pub fn key_directory(data: &[u8]) {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use crawlgate::internals::identity::{read_keys, thumbprint};
    let Ok(keys) = read_keys(data) else { return };
    assert!((1..=64).contains(&keys.len()));
    let mut written = Vec::new();
    for key in &keys {
        assert_eq!(key.bytes.len(), 32);
        assert_eq!(key.names[0], thumbprint(&key.bytes));
        let mut json = serde_json::json!({"kty": "OKP", "crv": "Ed25519", "x": URL_SAFE_NO_PAD.encode(&key.bytes)});
        for (name, value) in [
            ("kid", key.names.get(1).map(|name| name.as_str().into())),
            ("nbf", key.not_before.map(Into::into)),
            ("exp", key.expires.map(Into::into)),
        ] {
            if let Some(value) = value {
                let value: serde_json::Value = value;
                json[name] = value;
            }
        }
        written.push(json);
    }
    let written = serde_json::json!({ "keys": written }).to_string();
    // Escapes may make a set longer than any that is read, and times far ahead are taken for
    // milliseconds again.
    let is_near = |time: &Option<i64>| time.is_none_or(|time| time <= 100_000_000_000);
    let are_near = keys
        .iter()
        .all(|key| is_near(&key.not_before) && is_near(&key.expires));
    if written.len() < 64 * 1024 && are_near {
        assert_eq!(read_keys(written.as_bytes()), Ok(keys));
    }
}

/// Any lines as host, target, Signature-Agent and Signature-Input of a request, which is then
/// signed as RFC 9421 section 2.5 has it, by a plain reader: what is verified is bound to this host
/// and this agent.
#[cfg(feature = "proxy")]
pub fn signature(data: &[u8]) {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use crawlgate::internals::heads::SignatureFields;
    use crawlgate::internals::identity::{
        PublicKey, SignedRequest, VerifiedSignature, verify_signature,
    };
    use ring::signature::{Ed25519KeyPair, KeyPair as _};
    const NOW: i64 = 1_800_000_000;
    const ORIGIN: &str = "https://agent.example";
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let lines: Vec<&str> = text.splitn(4, '\n').collect();
    let [host, target, agent, input] = lines[..] else {
        return;
    };
    let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).expect("a key");
    let bytes = pair.public_key().as_ref().to_vec();
    let keys = [PublicKey {
        bytes,
        names: vec!["key".to_owned()],
        not_before: None,
        expires: None,
    }];
    let params = input.strip_prefix("sig1=").unwrap_or(input);
    let base = plain_base(host, target, agent, params).unwrap_or_default();
    let signature = format!("sig1=:{}:", STANDARD.encode(pair.sign(base.as_bytes())));
    let fields = SignatureFields {
        input,
        signature: &signature,
        agent,
    };
    let ask = |host: &str, origin: &str, now: i64| {
        let (host, target) = (host.as_bytes(), target.as_bytes());
        let signed = SignedRequest {
            host,
            target,
            method: b"GET",
            user_agent: b"Agent/1.0",
            fields,
        };
        verify_signature(&signed, origin, &keys, Timestamp(now))
    };
    let Ok(VerifiedSignature { expires, .. }) = ask(host, ORIGIN, NOW) else {
        return;
    };
    assert!(
        expires.0 > NOW
            && params.contains("tag=\"web-bot-auth\"")
            && agent.to_ascii_lowercase().contains(ORIGIN)
    );
    for (host, origin, now) in [
        (format!("x{host}").as_str(), ORIGIN, NOW),
        (host, "https://other.example", NOW),
        (host, "https://agent.exampl", NOW),
        (host, ORIGIN, expires.0),
        (host, ORIGIN, NOW + 90_000),
        (host, ORIGIN, NOW - 200_000),
    ] {
        assert!(ask(host, origin, now).is_err(), "{host} {origin} {now}");
    }
}

/// What is signed, as a reader of plain text has it; `None` for what it does not understand.
#[cfg(feature = "proxy")]
fn plain_base(host: &str, target: &str, agent: &str, params: &str) -> Option<String> {
    let list = params.strip_prefix('(')?.split_once(')')?.0;
    let authority = host.to_ascii_lowercase();
    let authority = authority
        .strip_suffix(":443")
        .or(authority.strip_suffix(":80"))
        .unwrap_or(&authority);
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut base = String::new();
    for name in list.split(' ') {
        let value = match name {
            "\"@authority\"" => authority.to_owned(),
            "\"@method\"" => "GET".to_owned(),
            "\"@scheme\"" => "https".to_owned(),
            "\"@target-uri\"" => format!("https://{authority}{target}"),
            "\"@request-target\"" => target.to_owned(),
            "\"@path\"" => path.to_owned(),
            "\"@query\"" => format!("?{query}"),
            "\"user-agent\"" => "Agent/1.0".to_owned(),
            "\"signature-agent\"" => agent.trim().to_owned(),
            "\"signature-agent\";key=\"a\"" => agent.trim().strip_prefix("a=")?.to_owned(),
            _ => return None,
        };
        base.push_str(&format!("{name}: {value}\n"));
    }
    Some(format!("{base}\"@signature-params\": {params}"))
}

/// Any bytes as an origin's response: its head ends in one place, and a plain reader of lines sees
/// the same end of its body.
#[cfg(feature = "proxy")]
pub fn origin_response(data: &[u8]) {
    use crawlgate::internals::edge::{ResponseFraming, parse_response_head};
    let read = |bytes: &[u8], is_head| parse_response_head(bytes, is_head, |parsed| parsed.head);
    let Ok(Some(head)) = read(data, false) else {
        return;
    };
    assert_eq!(
        read(&data[..head.length], false),
        Ok(Some(head)),
        "what follows is no part of it"
    );
    assert_eq!(
        read(&data[..head.length - 1], false),
        Ok(None),
        "it is complete before its end"
    );
    let of_head = read(data, true).expect("as proper").expect("as complete");
    assert_eq!(
        (of_head.framing, of_head.length),
        (ResponseFraming::None, head.length)
    );
    let values = |name: &[u8]| -> Vec<Vec<u8>> {
        let lines = data[..head.length].split(|byte| *byte == b'\n').skip(1);
        let fields = lines.filter_map(|line| {
            let colon = line.iter().position(|byte| *byte == b':')?;
            line[..colon]
                .eq_ignore_ascii_case(name)
                .then(|| line[colon + 1..].trim_ascii().to_ascii_lowercase())
        });
        fields.collect()
    };
    let (lengths, codings) = (values(b"content-length"), values(b"transfer-encoding"));
    match head.framing {
        ResponseFraming::None => assert!(matches!(head.status.as_u16(), 204 | 304)),
        ResponseFraming::Length(length) => {
            assert!(codings.is_empty() && lengths.len() == 1);
            let digits = std::str::from_utf8(&lengths[0]).expect("digits");
            assert_eq!(digits.parse(), Ok(length));
        }
        ResponseFraming::Chunked => assert!(lengths.is_empty() && codings == [b"chunked"]),
        ResponseFraming::UntilClose => assert!(lengths.is_empty() && codings.is_empty()),
    }
}

/// The case of the seeds, whose private key nobody has.
#[cfg(feature = "proxy")]
const CASE: &[u8] = include_bytes!("../seeds/evidence_case/whole.tar");
#[cfg(feature = "proxy")]
const CASE_KEY: &str = include_str!("../evidence.vkey");

/// Any bytes as a sitemap: its URLs stand in the text one after the other, and are read again from
/// a list of them.
#[cfg(feature = "proxy")]
pub fn sitemap(data: &[u8]) {
    let Ok(sitemap) = crawlgate::internals::sitemap::Sitemap::parse(data) else {
        return;
    };
    let mut end = 0;
    for listed in &sitemap.urls {
        assert!(end <= listed.range.start && sitemap.text.get(listed.range.clone()).is_some());
        end = listed.range.end;
    }
    let urls: Vec<String> = sitemap.urls.into_iter().map(|listed| listed.url).collect();
    if urls.is_empty()
        || urls
            .iter()
            .any(|url| !url.starts_with("http") || url.contains('\n'))
    {
        return;
    }
    let again = crawlgate::internals::sitemap::Sitemap::parse(urls.join("\n").as_bytes());
    let again = again.expect("a list of URLs").urls.into_iter();
    assert_eq!(again.map(|listed| listed.url).collect::<Vec<_>>(), urls);
}

/// The path of a file of a known case in the first line, then other bytes for it; or a whole
/// archive: every change is noticed, and in files that the chains cover without the manifest too.
#[cfg(feature = "proxy")]
pub fn evidence_case(data: &[u8]) {
    use crawlgate::internals::evidence::{VerifyKey, verify_case};
    let key = [VerifyKey::parse(CASE_KEY).expect("the key of the seeds")];
    // The page of the known case was made by an older build, with other words.
    let verify = |archive: &[u8]| {
        let mut found = verify_case(archive, &key);
        found.faults.retain(|fault| fault.id != "page-differs");
        found
    };
    let replaced = data.split(|byte| *byte == b'\n').next().and_then(|path| {
        let (header, content) = file_of(CASE, path)?;
        Some((path, header, content))
    });
    let Some((path, header, content)) = replaced else {
        assert_eq!(
            verify(data).faults.is_empty(),
            data == CASE,
            "another archive holds"
        );
        return;
    };
    let fresh = data.get(path.len() + 1..).unwrap_or_default();
    let mut archive = CASE[..header].to_vec();
    archive.extend(resized(&CASE[header..header + 512], fresh.len()));
    archive.extend(fresh);
    archive.resize(archive.len().next_multiple_of(512), 0);
    archive.extend(&CASE[(header + 512 + content.len()).next_multiple_of(512)..]);
    let found = verify(&archive);
    if fresh == content {
        assert!(found.faults.is_empty(), "{:?}", found.faults);
        return;
    }
    assert!(
        !found.faults.is_empty(),
        "a changed {} holds",
        String::from_utf8_lossy(path)
    );
    // What is only shown, and what may be withdrawn, line by line.
    let is_shown = [b"report.html".as_slice(), b"case.json", b"manifest.txt"].contains(&path);
    let known: Vec<&[u8]> = content.split_inclusive(|byte| *byte == b'\n').collect();
    let is_shorter = fresh
        .split_inclusive(|byte| *byte == b'\n')
        .all(|line| known.contains(&line));
    let proofs =
        |bytes: &[u8]| serde_json::from_slice::<Vec<serde_json::Value>>(bytes).unwrap_or_default();
    let has_fewer = fresh.starts_with(b"[")
        && proofs(fresh)
            .iter()
            .all(|proof| proofs(content).contains(proof));
    let may_lack = match path {
        b"personal.jsonl" | b"proofs.jsonl" => is_shorter,
        _ => path.ends_with(b".json") && has_fewer,
    };
    let faults: usize = found.logs.iter().map(|log| log.faults.len()).sum();
    assert!(
        is_shown || may_lack || faults > 1,
        "only the manifest notices a changed {}",
        String::from_utf8_lossy(path)
    );
}

/// Where the header of a file in an archive begins, and its content.
#[cfg(feature = "proxy")]
fn file_of<'a>(archive: &'a [u8], path: &[u8]) -> Option<(usize, &'a [u8])> {
    let mut at = 0;
    while !path.is_empty() && archive.get(at)? != &0 {
        let header = &archive[at..at + 512];
        let size = usize::from_str_radix(std::str::from_utf8(&header[124..135]).ok()?, 8).ok()?;
        if header[..100].split(|byte| *byte == 0).next() == Some(path) {
            return Some((at, &archive[at + 512..at + 512 + size]));
        }
        at += (512 + size).next_multiple_of(512);
    }
    None
}

/// The header of a file with another size.
#[cfg(feature = "proxy")]
fn resized(header: &[u8], size: usize) -> Vec<u8> {
    let mut header = header.to_vec();
    header[124..135].copy_from_slice(format!("{size:011o}").as_bytes());
    header[148..156].copy_from_slice(b"        ");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header
}

/// Any bytes as a response of an authority for timestamps: what is read of it stands in it, and no
/// byte may be missing or follow.
#[cfg(feature = "proxy")]
pub fn timestamp(data: &[u8]) {
    use crawlgate::internals::evidence::parse_timestamp_response;
    let Some(stamp) = parse_timestamp_response(data) else {
        return;
    };
    let hash = stamp.hash.0;
    let places: Vec<usize> = (0..data.len())
        .filter(|place| data[*place..].starts_with(&hash))
        .collect();
    let mut time = stamp.time.into_bytes();
    time.retain(u8::is_ascii_digit);
    assert!(!places.is_empty() && data.windows(time.len()).any(|bytes| bytes == time));
    assert_eq!(
        parse_timestamp_response(&data[..data.len() - 1]),
        None,
        "the last byte is missing"
    );
    assert_eq!(
        parse_timestamp_response(&[data, b"\0"].concat()),
        None,
        "a byte follows"
    );
    let others = places.iter().map(|place| {
        let mut other = data.to_vec();
        other[*place] ^= 1;
        parse_timestamp_response(&other)
    });
    assert!(
        others
            .into_iter()
            .any(|other| other.is_none_or(|other| other.hash.0 != hash)),
        "it is of another hash"
    );
}
