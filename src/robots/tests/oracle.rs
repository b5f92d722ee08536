//! Compares the robots.txt parser with two naive implementations (oracles), on random files and
//! URLs. The oracles share no code with the parser. One works byte by byte, like the C++ code of
//! Google's library. The other follows the text of RFC 9309.

use crate::robots::{Dialect, DialectRules, RobotsFile};
use proptest::collection::vec;
use proptest::prelude::*;

pub const SPACED: [&str; 2] = ["Sogou web spider", "Foo b"];

/// Whether the URL may be fetched, and the line that decided or 0.
type OracleVerdict = (bool, usize);

// ---- what both parsers do
// --------------------------------------------------------------------------------------------

/// A string of C: what comes before the first NUL.
fn c_string(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

fn strip_blanks(mut text: &[u8]) -> &[u8] {
    let blank = |byte: Option<&u8>| byte.is_some_and(|byte| b" \t\n\x0B\x0C\r".contains(byte));
    while blank(text.first()) {
        text = &text[1..];
    }
    while blank(text.last()) {
        text = &text[..text.len() - 1];
    }
    text
}

/// Feeds lines with their numbers, as a buffer of fixed size takes them in.
fn for_each_line(file: &[u8], mut on_line: impl FnMut(usize, &[u8])) {
    const MAX_LINE: usize = 2083 * 8 - 1;
    let (mut buffer, mut number, mut mark, mut after_cr) = (Vec::new(), 0, 0, false);
    for &byte in file {
        if mark < 3 {
            if byte == [0xEF, 0xBB, 0xBF][mark] {
                mark += 1;
                continue;
            }
            mark = 3;
        }
        if byte == b'\n' || byte == b'\r' {
            if !(buffer.is_empty() && after_cr && byte == b'\n') {
                number += 1;
                on_line(number, &buffer);
            }
            buffer.clear();
            after_cr = byte == b'\r';
        } else if buffer.len() < MAX_LINE {
            buffer.push(byte);
        }
    }
    on_line(number + 1, &buffer);
}

/// Key and value.
fn split_key_value(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = c_string(line);
    let line = strip_blanks(line.split(|byte| *byte == b'#').next()?);
    let separator = match line.iter().position(|byte| *byte == b':') {
        Some(colon) => colon,
        None => {
            let words: Vec<_> = line
                .split(|byte| b" \t".contains(byte))
                .filter(|word| !word.is_empty())
                .collect();
            if words.len() != 2 {
                return None;
            }
            words[0].len()
        }
    };
    let key = strip_blanks(&line[..separator]);
    (!key.is_empty()).then(|| (key, strip_blanks(&line[separator + 1..])))
}

#[derive(PartialEq)]
enum OracleKey {
    Agent,
    Allow,
    Disallow,
    Other,
}

/// What a key says, and whether more stands behind it.
fn parse_oracle_key(key: &[u8]) -> (OracleKey, bool) {
    let known = [
        (OracleKey::Agent, "user-agent useragent user+agent"),
        (OracleKey::Allow, "allow"),
        (
            OracleKey::Disallow,
            "disallow dissallow dissalow disalow diasllow disallaw",
        ),
    ];
    let key = String::from_utf8_lossy(key).to_ascii_lowercase();
    for (said, spellings) in known {
        for spelling in spellings
            .split(' ')
            .map(|spelling| spelling.replace('+', " "))
        {
            if key.starts_with(&spelling) {
                return (said, key != spelling);
            }
        }
    }
    (OracleKey::Other, false)
}

/// Keeps the list of places in the path up to which the pattern may have matched.
fn naive_matches(path: &[u8], pattern: &[u8]) -> bool {
    let mut places = vec![0];
    for (index, &sign) in pattern.iter().enumerate() {
        if sign == b'$' && index + 1 == pattern.len() {
            return places.contains(&path.len());
        }
        match sign {
            b'*' => places = (places[0]..=path.len()).collect(),
            _ => {
                places.retain(|place| path.get(*place) == Some(&sign));
                places.iter_mut().for_each(|place| *place += 1);
            }
        }
        if places.is_empty() {
            return false;
        }
    }
    true
}

// ---- Google's library
// --------------------------------------------------------------------------------------------------

/// The best priority so far and its line; a priority below 0 is none.
#[derive(Clone, Copy)]
struct BestRule(i64, usize);

impl BestRule {
    const NONE: BestRule = BestRule(-1, 0);

    fn offer(&mut self, priority: i64, line: usize) {
        if priority > self.0 {
            *self = BestRule(priority, line);
        }
    }
}

struct GoogleOracle<'a> {
    token: &'a [u8],
    path: Vec<u8>,
    in_named: bool,
    in_star: bool,
    ever_named: bool,
    rule_seen: bool,
    /// By whether it is of a group that names the token.
    allow: [BestRule; 2],
    disallow: [BestRule; 2],
}

impl GoogleOracle<'_> {
    fn verdict(file: &[u8], token: &[u8], url: &[u8]) -> OracleVerdict {
        let mut oracle = GoogleOracle {
            token,
            path: c_string(&google_path(url)).to_vec(),
            in_named: false,
            in_star: false,
            ever_named: false,
            rule_seen: false,
            allow: [BestRule::NONE; 2],
            disallow: [BestRule::NONE; 2],
        };
        for_each_line(file, |number, line| {
            let Some((key, value)) = split_key_value(line) else {
                return;
            };
            match parse_oracle_key(key).0 {
                OracleKey::Agent => oracle.apply_agent(value),
                OracleKey::Allow => oracle.apply_allow(number, &google_pattern(value)),
                OracleKey::Disallow => oracle.apply_disallow(number, &google_pattern(value)),
                OracleKey::Other => {}
            }
        });
        let (allow, disallow) = (
            oracle.allow[oracle.ever_named as usize],
            oracle.disallow[oracle.ever_named as usize],
        );
        let line = if disallow.0 > allow.0 {
            disallow.1
        } else {
            allow.1
        };
        (allow.0.max(disallow.0) <= 0 || disallow.0 <= allow.0, line)
    }

    fn apply_agent(&mut self, value: &[u8]) {
        if self.rule_seen {
            (self.in_named, self.in_star, self.rule_seen) = (false, false, false);
        }
        if value == b"*"
            || value.len() > 1 && value[0] == b'*' && b" \t\n\x0B\x0C\r".contains(&value[1])
        {
            self.in_star = true;
            return;
        }
        let mut cut = Vec::new();
        for &byte in value {
            if !(byte.is_ascii_alphabetic() || byte == b'-' || byte == b'_') {
                break;
            }
            cut.push(byte);
        }
        if cut.eq_ignore_ascii_case(self.token) {
            (self.in_named, self.ever_named) = (true, true);
        }
    }

    fn apply_allow(&mut self, line: usize, pattern: &[u8]) {
        if !(self.in_named || self.in_star) {
            return;
        }
        self.rule_seen = true;
        if naive_matches(&self.path, pattern) {
            self.allow[self.in_named as usize].offer(pattern.len() as i64, line);
            return;
        }
        match pattern.iter().rposition(|byte| *byte == b'/') {
            Some(slash) if pattern[slash..].starts_with(b"/index.htm") => {
                self.apply_allow(line, &[&pattern[..=slash], b"$"].concat());
            }
            _ => {}
        }
    }

    fn apply_disallow(&mut self, line: usize, pattern: &[u8]) {
        if !(self.in_named || self.in_star) {
            return;
        }
        self.rule_seen = true;
        if naive_matches(&self.path, pattern) {
            self.disallow[self.in_named as usize].offer(pattern.len() as i64, line);
        }
    }
}

fn google_pattern(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < value.len() {
        let hex = |ahead: usize| value.get(at + ahead).is_some_and(u8::is_ascii_hexdigit);
        if value[at] == b'%' && hex(1) && hex(2) {
            out.extend(value[at..at + 3].to_ascii_uppercase());
            at += 3;
        } else {
            match value[at] {
                byte @ 0x80.. => out.extend(format!("%{byte:02X}").bytes()),
                byte => out.push(byte),
            }
            at += 1;
        }
    }
    out
}

/// Path, parameters and query; two slashes at the beginning are passed over.
fn google_path(url: &[u8]) -> Vec<u8> {
    let from = |start: usize, wanted: &dyn Fn(&[u8]) -> bool| {
        (start..url.len()).find(|place| wanted(&url[*place..]))
    };
    let begins = |rest: &[u8]| b"/?;".contains(&rest[0]);
    let start = if url.starts_with(b"//") { 2 } else { 0 };
    let early = from(start, &begins).unwrap_or(usize::MAX);
    let after_scheme = match from(start, &|rest| rest.starts_with(b"://")) {
        Some(scheme) if early >= scheme => scheme + 3,
        _ => start,
    };
    let Some(path) = from(after_scheme, &begins) else {
        return b"/".to_vec();
    };
    let hash = from(start, &|rest| rest[0] == b'#').unwrap_or(url.len());
    if hash < path {
        return b"/".to_vec();
    }
    let slash: &[u8] = if url[path] == b'/' { b"" } else { b"/" };
    [slash, &url[path..hash]].concat()
}

/// Path and query. A URL without a scheme and without a slash at its beginning is a path.
fn rfc_path(url: &[u8]) -> Vec<u8> {
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
    if is_absolute || url.starts_with(b"/") {
        return google_path(url);
    }
    let path = url.split(|byte| *byte == b'#').next().unwrap_or_default();
    [b"/", path].concat()
}

// ---- RFC 9309
// ----------------------------------------------------------------------------------------------------------

/// Section 2.2.2: unreserved bytes decoded, what is no character of a URL encoded, escapes in
/// upper case. A `*` or `$` of a URL, raw or escaped, is what a rule means by its escape (figure
/// 6): one character, 1 or 2 here. Decoding must not make an escape that was not there.
fn rfc_normal_form(text: &[u8], url: bool) -> Vec<u8> {
    let mut parts: Vec<Vec<u8>> = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let hex = text
            .get(at + 1..at + 3)
            .filter(|hex| text[at] == b'%' && hex.iter().all(u8::is_ascii_hexdigit));
        let value = hex
            .map(|hex| u8::from_str_radix(&String::from_utf8_lossy(hex), 16).expect("hex digits"));
        let byte = value.unwrap_or(text[at]);
        at += if value.is_some() { 3 } else { 1 };
        let unreserved = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        if url && b"*$".contains(&byte) {
            parts.push(vec![if byte == b'*' { 1 } else { 2 }]);
            continue;
        }
        let raw = match value {
            Some(_) => {
                let stray = |back: usize| {
                    parts
                        .len()
                        .checked_sub(back)
                        .is_some_and(|place| parts[place] == b"%")
                };
                let digit = parts
                    .last()
                    .is_some_and(|part| part.len() == 1 && part[0].is_ascii_hexdigit());
                unreserved && !(byte.is_ascii_hexdigit() && (stray(1) || digit && stray(2)))
            }
            None => byte == b'%' || byte.is_ascii_graphic() && byte != b'#',
        };
        parts.push(if raw {
            vec![byte]
        } else {
            format!("%{byte:02X}").into_bytes()
        });
    }
    parts.concat()
}

/// A `$` that is not at the end is a character, as the escapes of `*` and `$` are.
fn rfc_matches(path: &[u8], pattern: &[u8]) -> bool {
    let (body, end) = match pattern.strip_suffix(b"$") {
        Some(body) => (body, &b"$"[..]),
        None => (pattern, &b""[..]),
    };
    let mut literal = Vec::new();
    let mut rest = body;
    while let [first, after @ ..] = rest {
        (rest, _) = match rest {
            [b'%', b'2', b'A', after @ ..] => (after, literal.push(1)),
            [b'%', b'2', b'4', after @ ..] | [b'$', after @ ..] => (after, literal.push(2)),
            _ => (after, literal.push(*first)),
        };
    }
    naive_matches(path, &[&literal, end].concat())
}

/// `None` is everybody.
fn rfc_agent(value: &[u8]) -> Option<Vec<u8>> {
    let blank = |byte: &u8| b" \t\n\x0B\x0C\r".contains(byte);
    if value == b"*" || value.len() > 1 && value[0] == b'*' && blank(&value[1]) {
        return None;
    }
    let ends = |rest: &[u8]| {
        rest.first()
            .is_none_or(|byte| blank(byte) || b"/,;".contains(byte))
    };
    let without_stars = |mut rest: &[u8]| {
        while let [b'*', more @ ..] = rest {
            rest = more;
        }
        ends(rest)
    };
    let value = value.to_ascii_lowercase();
    let known: Vec<String> = SPACED
        .iter()
        .map(|token| token.to_ascii_lowercase())
        .collect();
    let spaced = known.iter().filter(|token| {
        value
            .strip_prefix(token.as_bytes())
            .is_some_and(without_stars)
    });
    let end = match spaced.map(String::len).max() {
        Some(length) => length,
        None => {
            let mut end = (0..value.len())
                .find(|place| ends(&value[*place..]))
                .unwrap_or(value.len());
            while end > 0 && value[end - 1] == b'*' {
                end -= 1;
            }
            end
        }
    };
    Some(value[..end].to_vec())
}

fn rfc_allows(file: &[u8], token: &[u8], url: &[u8]) -> bool {
    struct RfcGroup {
        agents: Vec<Option<Vec<u8>>>,
        rules: Vec<(bool, Vec<u8>)>,
    }
    let mut sections: Vec<RfcGroup> = Vec::new();
    for_each_line(file, |_, line| {
        let Some((key, value)) = split_key_value(line) else {
            return;
        };
        match parse_oracle_key(key) {
            (OracleKey::Other, _) | (_, true) => {}
            (OracleKey::Agent, _) => {
                if sections
                    .last()
                    .is_none_or(|section| !section.rules.is_empty())
                {
                    sections.push(RfcGroup {
                        agents: vec![],
                        rules: vec![],
                    });
                }
                sections
                    .last_mut()
                    .expect("just pushed")
                    .agents
                    .push(rfc_agent(value));
            }
            (said, _) => {
                if let Some(section) = sections.last_mut() {
                    section
                        .rules
                        .push((said == OracleKey::Allow, rfc_normal_form(value, false)));
                }
            }
        }
    });
    let path = rfc_normal_form(&rfc_path(url), true);
    if path.split(|byte| *byte == b'?').next() == Some(b"/robots.txt") {
        return true;
    }
    let of = |agent: Option<Vec<u8>>| -> Vec<&RfcGroup> {
        sections
            .iter()
            .filter(|section| section.agents.contains(&agent))
            .collect()
    };
    let named = if token.is_empty() {
        vec![]
    } else {
        of(Some(token.to_ascii_lowercase()))
    };
    let binding = if named.is_empty() { of(None) } else { named };
    let matching = binding
        .iter()
        .flat_map(|section| &section.rules)
        .filter(|(_, pattern)| rfc_matches(&path, pattern));
    // The longest, Allow before Disallow. An empty one is no rule.
    let best = matching
        .filter(|(_, pattern)| !pattern.is_empty())
        .max_by_key(|(allow, pattern)| (pattern.len(), *allow));
    best.is_none_or(|(allow, _)| *allow)
}

// ---- generators
// --------------------------------------------------------------------------------------------------------

fn any_of(of: &'static [&'static [u8]]) -> impl Strategy<Value = &'static [u8]> {
    prop::sample::select(of)
}

fn any_pieces(of: &'static [&'static [u8]], most: usize) -> impl Strategy<Value = Vec<u8>> {
    vec(any_of(of), 0..=most).prop_map(|pieces| pieces.concat())
}

#[rustfmt::skip]
const KEYS: &[&[u8]] = &[
    b"User-agent", b"user-agent", b"User-agent", b"USERAGENT", b"User agent", b"User-agents", b"Allow", b"allow",
    b"Allow", b"Allowed", b"Disallow", b"DISALLOW", b"Disallow", b"Disallow", b"Dissallow", b"dissalow", b"Disalow",
    b"Diasllow", b"disallaw", b"Disallows", b"Disallow all", b"Sitemap", b"Crawl-delay", b"Noindex", b"x", b"",
    b"#", b"Dis\0allow", b"\xEF\xBB\xBFDisallow", b"\xFFAllow",
];
#[rustfmt::skip]
const SEPARATORS: &[&[u8]] = &[
    b":", b": ", b": ", b": ", b" : ", b" ", b"\t", b"  \t ", b"::", b"\0:", b":\0", b":\x0B", b"#:", b"", b": # ",
    b":\n", b":\xC2\xA0",
];
#[rustfmt::skip]
const AGENTS: &[&[u8]] = &[
    b"*", b"*", b"* x", b"*\x0Cx", b"*bot", b"**", b"Foo", b"foo", b"FOO", b"Foo*", b"Foo**", b"Foo/2.1", b"Foo b",
    b"Foo b/1", b"Foo bar", b"Foo, Bar", b"Foo;Bar", b"Foo-Bar", b"Foo_Bar", b"Bar", b"MJ12bot", b"MJ",
    b"360Spider", b"Sogou web spider", b"sogou web spider*", b"Sogou", b"", b"/", b"Foo\0Bar", b"Foo#Bar",
    b"\xC3\xA9", b"Foo\x0BBar", b"*,Foo", b"*/2", b"Foo*b",
];
#[rustfmt::skip]
const TOKENS: &[&[u8]] = &[
    b"Foo", b"Foo", b"foo", b"FOO", b"Bar", b"Other", b"Foo-Bar", b"Foo_Bar", b"MJ12bot", b"MJ", b"360Spider", b"",
    b"*", b"Foo b", b"Foo bar", b"Foo*", b"Foo*b", b"Sogou web spider", b"Sogou", b"*bot", b"Foo\0", b"\xC3\xA9",
    b"bot",
];
#[rustfmt::skip]
const PATHS: &[&[u8]] = &[
    b"/", b"/", b"/", b"a", b"a", b"a", b"b", b"b", b"*", b"*", b"$", b"$", b"%61", b"%41", b"A", b"%", b"%e3",
    b"%E3", b"\xE3", b"\xC3\xA9", b"%2f", b"%2F", b"%2A", b"%24", b"%34", b"4", b"1", b" ", b"%20", b"\t", b"\0",
    b"#", b"?", b";", b":", b"index.html", b"/index.htm", b"robots.txt", b".", b"~", b"%7e", b"{", b"\x0B",
];
#[rustfmt::skip]
const URL_BEGINNINGS: &[&[u8]] = &[
    b"/", b"/", b"/", b"/", b"", b"http://e.example", b"http://e.example/", b"//", b"//e/", b"e/", b"://",
    b"/robots.txt",
];
const LINE_ENDS: &[&[u8]] = &[
    b"\n", b"\n", b"\n", b"\n", b"\r\n", b"\r", b"\r\r", b"\n\n", b"\n\r", b"\r\n\n", b" # c\n",
];
#[rustfmt::skip]
const BEGINNINGS: &[&[u8]] = &[
    b"", b"", b"", b"User-agent: *\n", b"User-agent: Foo\n", b"User-agent: *\n", b"\xEF", b"\xEF\xBB",
    b"\xEF\xBB\xBF", b"\xEF\xBB\xBF\xEF\xBB\xBF", b"\xBB\xBF", b"\xEF\xBF", b"\r", b"\0",
];
#[rustfmt::skip]
const JUNK: &[&[u8]] = &[
    b":", b" ", b"\t", b"#", b"\0", b"\r", b"\n", b"*", b"/", b"$", b"%", b"a", b"\xEF", b"\xBB", b"\xBF", b"\xFF",
    b"Disallow", b"Allow", b"User-agent", b"Foo", b"user agent", b"\x0B", b"\x0C",
];

fn any_path() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        6 => any_pieces(PATHS, 6).prop_map(|rest| [b"/", &rest[..]].concat()),
        1 => any_pieces(PATHS, 4),
        1 => Just(b"/".to_vec()),
    ]
}

fn any_line() -> impl Strategy<Value = Vec<u8>> {
    let rule = (any_of(&[b"Allow", b"Disallow", b"Disallow"]), any_path())
        .prop_map(|(key, path)| [key, b": ", &path].concat());
    let agent = any_of(AGENTS).prop_map(|agent| [b"User-agent: ", agent].concat());
    let odd = (
        any_of(KEYS),
        any_of(SEPARATORS),
        prop_oneof![any_path(), any_of(AGENTS).prop_map(<[u8]>::to_vec)],
    )
        .prop_map(|(key, separator, value)| [key, separator, &value].concat());
    prop_oneof![5 => rule, 2 => agent, 5 => odd, 1 => any_pieces(JUNK, 8)]
}

fn plausible_file() -> impl Strategy<Value = Vec<u8>> {
    (
        any_of(BEGINNINGS),
        vec((any_line(), any_of(LINE_ENDS)), 0..14),
        any::<bool>(),
    )
        .prop_map(|(beginning, lines, last)| {
            let mut file = beginning.to_vec();
            for (line, end) in &lines {
                file.extend([line, *end].concat());
            }
            if last {
                while file.last().is_some_and(|byte| b"\r\n".contains(byte)) {
                    file.pop();
                }
            }
            file
        })
}

fn any_url() -> impl Strategy<Value = Vec<u8>> {
    (any_of(URL_BEGINNINGS), any_pieces(PATHS, 6))
        .prop_map(|(beginning, rest)| [beginning, &rest[..]].concat())
}

pub fn any_file() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![3 => plausible_file(), 1 => any_pieces(JUNK, 60), 1 => vec(any::<u8>(), 0..300)]
}

/// Asks both dialects and both oracles.
fn compare_with_oracles(
    file: &[u8],
    tokens: &[&[u8]],
    urls: &[Vec<u8>],
) -> Result<(), TestCaseError> {
    let parsed = RobotsFile::parse(file);
    let google = DialectRules::new(&parsed, Dialect::Google, &SPACED);
    let rfc = DialectRules::new(&parsed, Dialect::Rfc9309, &SPACED);
    for token in tokens {
        for url in urls {
            let context = || {
                format!(
                    "{:?} {:?}\n{}",
                    token.escape_ascii().to_string(),
                    url.escape_ascii().to_string(),
                    file.escape_ascii()
                )
            };
            let verdict = google.verdict(token, url);
            let answer = (verdict.allowed, verdict.line.unwrap_or(0));
            prop_assert_eq!(
                answer,
                GoogleOracle::verdict(file, token, url),
                "google: {}",
                context()
            );
            prop_assert_eq!(
                rfc.verdict(token, url).allowed,
                rfc_allows(file, token, url),
                "rfc9309: {}",
                context()
            );
        }
    }
    Ok(())
}

pub fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config(3_000))]

    #[test]
    fn verdicts_agree_with_oracles(file in any_file(), tokens in vec(any_of(TOKENS), 1..5), urls in vec(any_url(), 1..6)) {
        compare_with_oracles(&file, &tokens, &urls)?;
    }

    /// The URL is one that the file speaks about: its own rules, with the wildcards taken out.
    #[test]
    fn verdicts_on_own_paths_agree_with_oracles(
        file in plausible_file(), tokens in vec(any_of(TOKENS), 1..3), keep in any::<bool>(),
    ) {
        let parsed = RobotsFile::parse(file.as_slice());
        let records = parsed.lines().iter().filter_map(|line| line.key_value.as_ref());
        let values = records.map(|record| parsed.slice(&record.value));
        let urls: Vec<Vec<u8>> = values
            .map(|value| value.iter().copied().filter(|byte| keep || !b"*$".contains(byte)).collect())
            .collect();
        compare_with_oracles(&file, &tokens, &urls)?;
    }
}

proptest! {
    #![proptest_config(config(300))]

    /// Rules that crowd and many groups of one token, which other indexes answer.
    #[test]
    fn many_rules_agree_with_oracles(
        rules in vec(("(Allow|Disallow): (/|/a|)[ab*/]{0,6}\\$?", 0u8..8), 5..90),
        urls in vec("/[ab/]{0,12}", 1..4),
    ) {
        let mut text = "User-agent: *\n".to_owned();
        for (rule, then) in &rules {
            text.push_str(rule);
            text.push('\n');
            text.push_str(match then { 0 => "User-agent: Foo\n", 1 => "User-agent: *\n", _ => "" });
        }
        let urls: Vec<Vec<u8>> = urls.into_iter().map(String::into_bytes).collect();
        compare_with_oracles(text.as_bytes(), &[b"Foo", b"Bar"], &urls)?;
    }
}

proptest! {
    #![proptest_config(config(60))]

    /// Lines about as long as what is kept of one.
    #[test]
    fn long_lines_agree_with_oracles(
        length in 16_640usize..16_680, end in any_pieces(PATHS, 8), bom in 0usize..=3, more in "(/|a|\\*|%4|1|\\$){0,3}",
    ) {
        let key = b"Disallow: /";
        let filler = "x".repeat(length - key.len());
        let rule = [key, filler.as_bytes(), &end].concat();
        let file = [&b"\xEF\xBB\xBF"[..bom], b"User-agent: *\n", &rule, b"\nAllow: /*1\n"].concat();
        let url = |more: &[u8]| [b"/", filler.as_bytes(), more].concat();
        compare_with_oracles(&file, &[b"Foo"], &[url(&end), url(more.as_bytes()), url(b"")])?;
    }
}
