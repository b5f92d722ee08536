//! Makes the regular expressions in exported server configuration. nginx, HAProxy, Caddy and Apache
//! all understand them. [`marker_regex`] makes one from a marker (the part of a user agent that
//! identifies a crawler), and [`path_regex`] from a path pattern of robots.txt. A [`RegexTrie`]
//! combines several patterns in one expression.

use std::collections::BTreeMap;

/// nginx takes words of up to 4,096 bytes with their quotes.
const MAX_LENGTH: usize = 3_900;

/// One part of a pattern. Alternatives are written in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RegexElement {
    Start,
    WordStart,
    Byte(u8),
    Any,
    End,
    WordEnd,
    RequestStart,
    AnyInRequest,
    RequestEnd,
}

/// Patterns as a tree by their beginnings, so that a regex engine compares these once.
#[derive(Default)]
struct RegexTrie {
    next: BTreeMap<RegexElement, RegexTrie>,
    matches: bool,
}

impl RegexTrie {
    fn insert(&mut self, steps: &[RegexElement]) {
        if self.matches {
            return; // A shorter pattern matches already.
        }
        match steps.split_first() {
            Some((step, rest)) => self.next.entry(*step).or_default().insert(rest),
            None => {
                self.matches = true;
                self.next.clear();
            }
        }
    }

    fn write_regex(&self, out: &mut String) {
        let several = self.next.len() > 1;
        *out += if several { "(?:" } else { "" };
        for (place, (step, rest)) in self.next.iter().enumerate() {
            *out += if place > 0 { "|" } else { "" };
            step.write_regex(out);
            rest.write_regex(out);
        }
        *out += if several { ")" } else { "" };
    }
}

impl RegexElement {
    /// Escapes a byte if a server could read it as more than itself.
    fn write_regex(self, out: &mut String) {
        use RegexElement::*;

        out.push_str(match self {
            Start => "^",
            // Anything but the characters of a product token.
            WordStart => "(?:^|[^0-9A-Za-z_-])",
            Any => ".*",
            End => "$",
            WordEnd => "(?:[^0-9A-Za-z_-]|$)",
            // The method, and the origin of an absolute target.
            RequestStart => "^[^ ]+ (?:[A-Za-z]+://[^/? ]*)?",
            AnyInRequest => "[^ ]*",
            RequestEnd => "(?: |$)",
            Byte(byte) if byte.is_ascii_alphanumeric() || b"/_-=&%~,:@".contains(&byte) => {
                return out.push(byte.into());
            }
            Byte(byte) if b".?+*()|[]^$".contains(&byte) => {
                return out.extend(['\\', byte.into()]);
            }
            // No configuration format gives these a meaning. Quotation marks are among them, so
            // templates need not escape a regex.
            Byte(byte) => return *out += &format!("\\x{byte:02x}"),
        });
    }
}

/// A marker of the registry, as a whole word: `^x` at the start of the user agent, `=x` all of it,
/// `x` anywhere.
pub fn marker_steps(text: &str) -> Vec<RegexElement> {
    let body = text.trim_start_matches(['^', '=']);
    let start = if body.len() < text.len() {
        Some(RegexElement::Start)
    } else {
        body.starts_with(is_word_char)
            .then_some(RegexElement::WordStart)
    };
    let end = if text.starts_with('=') {
        Some(RegexElement::End)
    } else {
        body.ends_with(is_word_char)
            .then_some(RegexElement::WordEnd)
    };
    // In lower case, so that beginnings are shared: servers ignore case.
    start
        .into_iter()
        .chain(body.to_ascii_lowercase().bytes().map(RegexElement::Byte))
        .chain(end)
        .collect()
}

fn is_word_char(character: char) -> bool {
    character.is_ascii_alphanumeric()
}

/// A path pattern of robots.txt.
pub fn path_steps(text: &str) -> Vec<RegexElement> {
    let body = text.strip_suffix('$').unwrap_or(text);
    let end = (body.len() < text.len()).then_some(RegexElement::End);
    std::iter::once(RegexElement::Start)
        .chain(body.bytes().map(|byte| match byte {
            b'*' => RegexElement::Any,
            byte => RegexElement::Byte(byte),
        }))
        .chain(end)
        .collect()
}

/// A path pattern of robots.txt for the request line, where it must not match the version.
pub fn request_line_steps(text: &str) -> Vec<RegexElement> {
    let mut steps = path_steps(text);
    for step in &mut steps {
        *step = match *step {
            RegexElement::Start => RegexElement::RequestStart,
            RegexElement::Any => RegexElement::AnyInRequest,
            RegexElement::End => RegexElement::RequestEnd,
            other => other,
        };
    }
    steps
}

fn literal_regex(text: &str) -> String {
    alternatives_regex(&[text.bytes().map(RegexElement::Byte).collect()])
}

pub fn marker_regex(text: &str) -> String {
    alternatives_regex(&[marker_steps(text)])
}

pub fn path_regex(text: &str) -> String {
    alternatives_regex(&[path_steps(text)])
}

/// For a Content-Type of the type `application/pdf` or `image/*`.
pub fn media_type_regex(media: &str) -> String {
    match media.strip_suffix('*') {
        Some(class) => format!("^{}", literal_regex(class)),
        None => format!("^{}(?:;|$)", literal_regex(media)),
    }
}

/// One regex that matches any of the patterns.
pub fn alternatives_regex(patterns: &[Vec<RegexElement>]) -> String {
    let mut trie = RegexTrie::default();
    for pattern in patterns {
        trie.insert(pattern);
    }
    let mut text = String::new();
    trie.write_regex(&mut text);
    text
}

/// As few regexes as possible, each short enough for nginx. One matches where a pattern does.
pub fn split_regexes(patterns: &[Vec<RegexElement>]) -> Vec<String> {
    if patterns.is_empty() {
        return Vec::new();
    }
    let text = alternatives_regex(patterns);
    if text.len() <= MAX_LENGTH || patterns.len() < 2 {
        return vec![text];
    }
    let mut sorted = patterns.to_vec();
    sorted.sort();
    let (left, right) = sorted.split_at(sorted.len() / 2);
    [split_regexes(left), split_regexes(right)].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::regex::RegexBuilder;

    fn is_match(steps: Vec<RegexElement>, text: &str) -> bool {
        let regex = RegexBuilder::new(&alternatives_regex(&[steps]))
            .case_insensitive(true)
            .build()
            .expect("a regex");
        regex.is_match(text)
    }

    #[test]
    fn markers_match_whole_words() {
        assert!(is_match(
            marker_steps("Googlebot"),
            "Mozilla/5.0 (compatible; Googlebot/2.1)"
        ));
        assert!(!is_match(marker_steps("Googlebot"), "Googlebot-Image/1.0"));
        assert!(!is_match(marker_steps("bingbot"), "abingbot/2.0"));
        assert!(
            is_match(marker_steps("^Wget/"), "Wget/1.21")
                && !is_match(marker_steps("^Wget/"), "x Wget/1.21")
        );
        assert!(
            is_match(marker_steps("=Fetcher"), "fetcher")
                && !is_match(marker_steps("=Fetcher"), "fetcher/2")
        );
    }

    #[test]
    fn patterns_do_not_match_the_http_version() {
        assert!(!is_match(request_line_steps("/*1.1"), "GET /x HTTP/1.1"));
        assert!(is_match(request_line_steps("/*1.1"), "GET /x1.1 HTTP/1.1"));
    }

    #[test]
    fn patterns_match_as_in_robots_txt() {
        for (pattern, target, matches) in [
            ("/a", "/abc?d", true),
            ("/a$", "/abc", false),
            ("/*.pdf$", "/x/y.pdf", true),
            ("/*.pdf$", "/x/y.pdf?z", false),
            ("/*?s=", "/p?s=1", true),
            ("/a.b", "/aXb", false),
            ("/$x", "/$x", true),
        ] {
            assert_eq!(
                is_match(path_steps(pattern), target),
                matches,
                "{pattern} {target}"
            );
            for line in [
                format!("GET {target} HTTP/1.1"),
                format!("HEAD http://a.example{target} HTTP/1.1"),
            ] {
                assert_eq!(
                    is_match(request_line_steps(pattern), &line),
                    matches,
                    "{pattern} {line}"
                );
            }
        }
    }
}
