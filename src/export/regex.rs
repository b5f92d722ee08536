//! Regular expressions that nginx, HAProxy, Caddy and Apache all understand. [`marker_regex`] makes
//! one from a marker (the part of a user agent that identifies a crawler), and [`path_regex`] from
//! a path pattern of robots.txt.

use std::collections::BTreeMap;

/// The longest expression: nginx takes words of up to 4,096 bytes in its configuration, the quotes
/// included.
const MAX_LENGTH: usize = 3_900;

/// One step of a pattern, in the order in which alternatives are written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    Start,
    NoWord,
    Byte(u8),
    Any,
    End,
    NoWordOrEnd,
    RequestStart,
    NoBlanks,
    RequestEnd,
}

/// Alternatives that share their beginnings, so that a regex engine reads these once.
#[derive(Default)]
struct Trie {
    next: BTreeMap<Step, Trie>,
    matches: bool,
}

impl Trie {
    fn add(&mut self, steps: &[Step]) {
        if self.matches {
            return; // A shorter pattern matches already.
        }
        match steps.split_first() {
            Some((step, rest)) => self.next.entry(*step).or_default().add(rest),
            None => {
                self.matches = true;
                self.next.clear();
            }
        }
    }

    fn write(&self, out: &mut String) {
        let several = self.next.len() > 1;
        *out += if several { "(?:" } else { "" };
        for (place, (step, rest)) in self.next.iter().enumerate() {
            *out += if place > 0 { "|" } else { "" };
            step.write(out);
            rest.write(out);
        }
        *out += if several { ")" } else { "" };
    }
}

impl Step {
    fn write(self, out: &mut String) {
        out.push_str(match self {
            Step::Start => "^",
            // Product tokens do not have these characters. Next to a marker they part words.
            Step::NoWord => "(?:^|[^0-9A-Za-z_-])",
            Step::Any => ".*",
            Step::End => "$",
            Step::NoWordOrEnd => "(?:[^0-9A-Za-z_-]|$)",
            // The method, and the host of a target that names it.
            Step::RequestStart => "^[^ ]+ (?:[A-Za-z]+://[^/? ]*)?",
            Step::NoBlanks => "[^ ]*",
            Step::RequestEnd => "(?: |$)",
            Step::Byte(byte) if byte.is_ascii_alphanumeric() || b"/_-=&%~,:@".contains(&byte) => {
                return out.push(byte.into());
            }
            Step::Byte(byte) if b".?+*()|[]^$".contains(&byte) => {
                return out.extend(['\\', byte.into()]);
            }
            // No server, reading the regex out of a file of its own, gives these a meaning. No
            // quotation mark stands in a regex by itself: templates quote it without a look.
            Step::Byte(byte) => return *out += &format!("\\x{byte:02x}"),
        });
    }
}

/// A marker of the registry, which stands by itself: `^x` at the start of the user agent, `=x` all
/// of it, `x` anywhere.
pub fn marker(text: &str) -> Vec<Step> {
    let body = text.trim_start_matches(['^', '=']);
    let start = if body.len() < text.len() {
        Some(Step::Start)
    } else {
        body.starts_with(is_word).then_some(Step::NoWord)
    };
    let end = if text.starts_with('=') {
        Some(Step::End)
    } else {
        body.ends_with(is_word).then_some(Step::NoWordOrEnd)
    };
    // Compared without regard to case: in one case, so that beginnings are shared.
    start
        .into_iter()
        .chain(body.to_ascii_lowercase().bytes().map(Step::Byte))
        .chain(end)
        .collect()
}

fn is_word(character: char) -> bool {
    character.is_ascii_alphanumeric()
}

/// A pattern of robots.txt.
pub fn path(text: &str) -> Vec<Step> {
    let body = text.strip_suffix('$').unwrap_or(text);
    let end = (body.len() < text.len()).then_some(Step::End);
    std::iter::once(Step::Start)
        .chain(body.bytes().map(|byte| match byte {
            b'*' => Step::Any,
            byte => Step::Byte(byte),
        }))
        .chain(end)
        .collect()
}

/// A pattern of robots.txt, as it stands in the first line of a request. The pattern ends before
/// the version.
pub fn request_line(text: &str) -> Vec<Step> {
    let mut steps = path(text);
    for step in &mut steps {
        *step = match *step {
            Step::Start => Step::RequestStart,
            Step::Any => Step::NoBlanks,
            Step::End => Step::RequestEnd,
            other => other,
        };
    }
    steps
}

/// Text as it is.
fn literal(text: &str) -> String {
    regex(&[text.bytes().map(Step::Byte).collect()])
}

/// A marker of a user agent, as one regex.
pub fn marker_regex(text: &str) -> String {
    regex(&[marker(text)])
}

/// A pattern of robots.txt, as one regex.
pub fn path_regex(text: &str) -> String {
    regex(&[path(text)])
}

/// A type like `application/pdf` or `image/*`, at the beginning of a Content-Type.
pub fn media(media: &str) -> String {
    match media.strip_suffix('*') {
        Some(class) => format!("^{}", literal(class)),
        None => format!("^{}(?:;|$)", literal(media)),
    }
}

/// One regex for all of these.
pub fn regex(patterns: &[Vec<Step>]) -> String {
    let mut trie = Trie::default();
    for pattern in patterns {
        trie.add(pattern);
    }
    let mut text = String::new();
    trie.write(&mut text);
    text
}

/// As few regexes as there can be, each short enough for nginx.
pub fn regexes(patterns: &[Vec<Step>]) -> Vec<String> {
    if patterns.is_empty() {
        return Vec::new();
    }
    let text = regex(patterns);
    if text.len() <= MAX_LENGTH || patterns.len() < 2 {
        return vec![text];
    }
    let mut sorted = patterns.to_vec();
    sorted.sort();
    let (left, right) = sorted.split_at(sorted.len() / 2);
    [regexes(left), regexes(right)].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::regex::RegexBuilder;

    fn is_match(steps: Vec<Step>, text: &str) -> bool {
        let regex = RegexBuilder::new(&regex(&[steps]))
            .case_insensitive(true)
            .build()
            .expect("a regex");
        regex.is_match(text)
    }

    #[test]
    fn markers_stand_by_themselves() {
        assert!(is_match(
            marker("Googlebot"),
            "Mozilla/5.0 (compatible; Googlebot/2.1)"
        ));
        assert!(!is_match(marker("Googlebot"), "Googlebot-Image/1.0"));
        assert!(!is_match(marker("bingbot"), "abingbot/2.0"));
        assert!(
            is_match(marker("^Wget/"), "Wget/1.21") && !is_match(marker("^Wget/"), "x Wget/1.21")
        );
        assert!(
            is_match(marker("=Fetcher"), "fetcher") && !is_match(marker("=Fetcher"), "fetcher/2")
        );
    }

    #[test]
    fn patterns_do_not_reach_the_version_of_a_request() {
        assert!(!is_match(request_line("/*1.1"), "GET /x HTTP/1.1"));
        assert!(is_match(request_line("/*1.1"), "GET /x1.1 HTTP/1.1"));
    }

    #[test]
    fn patterns_mean_what_robots_txt_means() {
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
                is_match(path(pattern), target),
                matches,
                "{pattern} {target}"
            );
            for line in [
                format!("GET {target} HTTP/1.1"),
                format!("HEAD http://a.example{target} HTTP/1.1"),
            ] {
                assert_eq!(
                    is_match(request_line(pattern), &line),
                    matches,
                    "{pattern} {line}"
                );
            }
        }
    }
}
