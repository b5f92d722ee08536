//! Finding marks in a user agent: without regard to case, on token boundaries, without allocation.
//!
//! Knows user agents as bytes; knows no request. A substring test would take people for crawlers (a CUBOT phone, the
//! Spider 8, ViewSonic) and libraries for the crawlers that they name.

use super::{Claim, Crawler, CrawlerIndex, Purpose};
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

/// What is read of a user agent: longer ones are garbage, and garbage must not cost more.
const MAX_READ: usize = 4_096;

/// Shorter tokens stand in too many user agents of people (`Code`, `LCC` are already long for this).
const MIN_TOKEN: usize = 3;

/// The characters of a product token: next to a mark they make it part of another word.
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// One mark of one record.
#[derive(Debug)]
struct Mark {
    crawler: u16,
    tool: bool,
    at_start: bool,
    whole: bool,
    before: bool,
    after: bool,
}

impl Mark {
    /// Whether the mark found at `start..end` stands by itself.
    fn stands(&self, text: &[u8], start: usize, end: usize) -> bool {
        if (self.at_start || self.whole) && start != 0 || self.whole && end != text.len() {
            return false;
        }
        stands_alone(text, start, end, self.before, self.after)
    }
}

fn stands_alone(text: &[u8], start: usize, end: usize, before: bool, after: bool) -> bool {
    if before && start > 0 && is_token_byte(text[start - 1]) || after && end < text.len() && is_token_byte(text[end]) {
        return false;
    }
    // `FreshRSS/1.2 (like Googlebot)` is FreshRSS.
    !ends_with_word(&text[..start], b"like ") && !ends_with_word(&text[..start], b"following ")
}

fn ends_with_word(text: &[u8], word: &[u8]) -> bool {
    text.len() >= word.len() && text[text.len() - word.len()..].eq_ignore_ascii_case(word)
}

/// Words at the end of which an unlisted user agent may say that it is a bot; they follow the marks in the automaton.
const BOT_WORDS: [&str; 3] = ["bot", "crawler", "spider"];

/// All marks of a registry.
#[derive(Debug)]
pub struct Marks {
    automaton: AhoCorasick,
    marks: Vec<Mark>,
    /// The two that Apple Messages puts into the string of a person's own device.
    messages: [Option<u16>; 2],
}

impl Marks {
    pub fn new(crawlers: &[Crawler]) -> Marks {
        let mut patterns: Vec<&str> = Vec::new();
        let mut marks = Vec::new();
        for (index, crawler) in crawlers.iter().enumerate() {
            for mark in &crawler.marks {
                let whole = mark.starts_with('=');
                let at_start = mark.starts_with('^');
                let text = mark.trim_start_matches(['=', '^']);
                let (Some(first), Some(last), Ok(crawler_index)) =
                    (text.bytes().next(), text.bytes().last(), u16::try_from(index))
                else {
                    continue;
                };
                patterns.push(text);
                marks.push(Mark {
                    crawler: crawler_index,
                    tool: crawler.purpose == Purpose::Tool,
                    at_start,
                    whole,
                    // A mark that begins or ends with a sign (`Nutch-`) is a boundary itself.
                    before: first.is_ascii_alphanumeric(),
                    after: last.is_ascii_alphanumeric(),
                });
            }
        }
        patterns.extend(BOT_WORDS);
        // A DFA: built once, and every browser's request is read by it.
        let automaton = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::DFA))
            .build(&patterns)
            .expect("a few thousand short marks fit an automaton");
        let find =
            |id: &str| crawlers.iter().position(|crawler| crawler.id == id).and_then(|index| u16::try_from(index).ok());
        Marks { automaton, marks, messages: [find("facebookexternalhit"), find("twitterbot")] }
    }

    /// The mark that counts: a named crawler's before a tool's, the longer before the shorter.
    pub fn identify(&self, user_agent: &[u8], tokens: Option<&TokenMarks>) -> Claim {
        let text = &user_agent[..user_agent.len().min(MAX_READ)];
        let mut best: Option<(bool, usize, u16)> = None;
        let mut messages = [false; 2];
        let mut said = Said::Nothing;
        for found in self.automaton.find_overlapping_iter(text) {
            let Some(mark) = self.marks.get(found.pattern().as_usize()) else {
                said = said.max(Said::by_word(text, found.start(), found.end()));
                continue;
            };
            if !mark.stands(text, found.start(), found.end()) {
                continue;
            }
            for (seen, crawler) in messages.iter_mut().zip(self.messages) {
                *seen |= crawler == Some(mark.crawler);
            }
            let length = found.end() - found.start();
            if best.is_none_or(|(named, longest, _)| (!mark.tool, length) > (named, longest)) {
                best = Some((!mark.tool, length, mark.crawler));
            }
        }
        // `Safari/601.2.4 facebookexternalhit/1.1 Facebot Twitterbot/1.0`: a preview on the sender's own device.
        if messages == [true, true] && contains(text, b"safari/") {
            best = None;
            if tokens.is_none_or(|tokens| tokens.find(text).is_none()) {
                return Claim::Nobody;
            }
        }
        let token = tokens.and_then(|tokens| tokens.find(text));
        match (best, token) {
            (Some((true, length, crawler)), token) if token.is_none_or(|(_, theirs)| theirs <= length) => {
                Claim::Known(CrawlerIndex(crawler))
            }
            (_, Some((index, _))) => Claim::Token(index),
            (Some((_, _, crawler)), None) => Claim::Known(CrawlerIndex(crawler)),
            (None, None) if declares_itself(text, said) => Claim::Other,
            (None, None) => Claim::Nobody,
        }
    }
}

fn contains(text: &[u8], lower: &[u8]) -> bool {
    text.windows(lower.len()).any(|window| window.eq_ignore_ascii_case(lower))
}

/// How clearly a word says that its user agent is a bot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Said {
    Nothing,
    /// At the end of its part of the comment, `...; my-spider;`: where the field also names a page or a mail address.
    WithContact,
    /// With a version right behind it, `FooBot/1.0`.
    Clearly,
}

impl Said {
    /// Strict: phones are called `Spider 8`, `M bot 51`, `POWER BOT`.
    fn by_word(text: &[u8], start: usize, end: usize) -> Said {
        let before = &text[..start];
        if ends_with_word(before, b"like ") || ends_with_word(before, b"no") {
            return Said::Nothing;
        }
        match text.get(end) {
            Some(b'/') if text.get(end + 1).is_some_and(u8::is_ascii_digit) => Said::Clearly,
            None | Some(b';' | b')' | b',') => Said::WithContact,
            Some(_) => Said::Nothing,
        }
    }
}

/// Whether an unlisted user agent says that it is a bot: by a word, or, where it is not shaped like a browser's, by naming
/// a page the way crawlers do, `+http`.
fn declares_itself(text: &[u8], said: Said) -> bool {
    let begins = |word: &[u8]| text.len() >= word.len() && text[..word.len()].eq_ignore_ascii_case(word);
    let browser = begins(b"mozilla/") || begins(b"opera/");
    match said {
        Said::Clearly => true,
        Said::WithContact if contains(text, b"http://") || contains(text, b"https://") || text.contains(&b'@') => true,
        Said::WithContact | Said::Nothing => !browser && contains(text, b"+http"),
    }
}

/// Tokens that a policy names and the registry does not know, ready to be found in user agents.
#[derive(Clone, Debug, Default)]
pub struct TokenMarks {
    tokens: Vec<String>,
    automaton: Option<AhoCorasick>,
}

impl TokenMarks {
    /// Prepares tokens. Their index is the one in `Claim::Token`.
    pub fn new(tokens: Vec<String>) -> TokenMarks {
        let automaton = (!tokens.is_empty())
            .then(|| {
                AhoCorasick::builder()
                    .ascii_case_insensitive(true)
                    .kind(Some(AhoCorasickKind::ContiguousNFA))
                    .build(&tokens)
                    .ok()
            })
            .flatten();
        TokenMarks { tokens, automaton }
    }

    /// The tokens, by index.
    pub fn tokens(&self) -> &[String] {
        &self.tokens
    }

    /// The longest token that stands in a user agent, and its length.
    fn find(&self, text: &[u8]) -> Option<(u16, usize)> {
        let mut best: Option<(u16, usize)> = None;
        for found in self.automaton.as_ref()?.find_overlapping_iter(text) {
            let (start, end) = (found.start(), found.end());
            let length = end - start;
            if length < MIN_TOKEN || best.is_some_and(|(_, longest)| longest >= length) {
                continue;
            }
            if stands_alone(text, start, end, is_token_byte(text[start]), is_token_byte(text[end - 1]))
                && let Ok(index) = u16::try_from(found.pattern().as_usize())
            {
                best = Some((index, length));
            }
        }
        best
    }
}
