//! Finding marks in a user agent: without regard to case, on token boundaries, without allocation.
//!
//! Knows user agents as bytes; knows no request. A substring test would take people for crawlers (a CUBOT phone, the
//! Spider 8, ViewSonic) and libraries for the crawlers that they name.

use super::Claim;
use super::crawler::{Crawler, CrawlerIndex, Purpose};
use super::declared::{self, names_somebody_else};
use super::octets::is_token_byte;
use super::words::WordIndex;
use aho_corasick::{AhoCorasick, AhoCorasickKind};

/// What is read of a user agent: longer ones are garbage, and garbage must not cost more.
const MAX_READ: usize = 4_096;

/// Shorter tokens of a policy are never looked for: two letters stand in the strings of too many people.
const MIN_TOKEN: usize = 3;

/// Up to this many bytes of tokens a site has the faster automaton; it takes about 256 bytes a byte.
const MAX_FAST_TOKENS: usize = 128;

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
    let inside_word = before && start > 0 && is_token_byte(text[start - 1])
        || after && text.get(end).is_some_and(|&next| is_token_byte(next));
    !inside_word && !names_somebody_else(&text[..start])
}

/// The mark that counts: a named crawler's before a tool's, then the longer before the shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Best {
    named: bool,
    length: usize,
    crawler: u16,
}

/// What one pass over a user agent finds.
#[derive(Debug, Default)]
struct Found {
    best: Option<Best>,
    /// Where the two marks of Apple Messages begin.
    messages: [Option<usize>; 2],
    /// Whether the string may say that it is a bot.
    hinted: bool,
}

/// All marks of a registry.
#[derive(Debug)]
pub struct Marks {
    index: WordIndex,
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
        let find =
            |id: &str| crawlers.iter().position(|crawler| crawler.id == id).and_then(|index| u16::try_from(index).ok());
        Marks { index: WordIndex::new(patterns), marks, messages: [find("facebookexternalhit"), find("twitterbot")] }
    }

    /// The most marks that a single place of a user agent has to be compared with.
    #[cfg(test)]
    pub fn most_at_one_place(&self) -> usize {
        self.index.most_at_one_place()
    }

    /// Whom a user agent claims to be, by the marks and by the tokens of a site.
    pub fn identify(&self, user_agent: &[u8], tokens: Option<&TokenMarks>) -> Claim {
        let mut text = &user_agent[..user_agent.len().min(MAX_READ)];
        let mut found = self.scan(text);
        if let Some(preview) = preview_of_messages(text, found.messages) {
            text = &text[..preview];
            found = self.scan(text);
        }
        let token = tokens.and_then(|tokens| tokens.find(text));
        match (found.best, token) {
            (Some(best), Some((_, length))) if best.named && best.length >= length => {
                Claim::Known(CrawlerIndex(best.crawler))
            }
            (_, Some((claim, _))) => claim,
            (Some(best), None) => Claim::Known(CrawlerIndex(best.crawler)),
            (None, None) if found.hinted && declared::says_bot(text) => Claim::Other,
            (None, None) => Claim::Nobody,
        }
    }

    fn scan(&self, text: &[u8]) -> Found {
        let mut found = Found::default();
        let mut hinted = false;
        let each = |place: u16, start: usize, end: usize| {
            let Some(mark) = self.marks.get(usize::from(place)).filter(|mark| mark.stands(text, start, end)) else {
                return;
            };
            for (first, crawler) in found.messages.iter_mut().zip(self.messages) {
                if crawler == Some(mark.crawler) {
                    first.get_or_insert(start);
                }
            }
            let candidate = Best { named: !mark.tool, length: end - start, crawler: mark.crawler };
            if found.best.is_none_or(|best| (candidate.named, candidate.length) > (best.named, best.length)) {
                found.best = Some(candidate);
            }
        };
        self.index.find(text, each, |end| hinted |= declared::is_hint(&text[..end]));
        found.hinted = hinted || text.contains(&b'+');
        found
    }
}

/// Where Apple Messages names other companies' crawlers in the string of a person's own device:
/// `... Safari/601.2.4 facebookexternalhit/1.1 Facebot Twitterbot/1.0`. What stands before is the device's own.
fn preview_of_messages(text: &[u8], messages: [Option<usize>; 2]) -> Option<usize> {
    let [Some(facebook), Some(twitter)] = messages else { return None };
    let preview = facebook.min(twitter);
    text[..preview].windows(7).any(|window| window.eq_ignore_ascii_case(b"safari/")).then_some(preview)
}

/// What a site's policy adds to the marks of the registry, ready to be found in user agents: tokens that the registry
/// does not know, and other marks of crawlers that it does.
#[derive(Clone, Debug, Default)]
pub struct TokenMarks {
    tokens: Vec<String>,
    /// Whom each mark means.
    claims: Vec<Claim>,
    /// Tokens of this index and later ones are of a file that nobody has checked.
    unchecked: usize,
    automaton: Option<AhoCorasick>,
}

impl TokenMarks {
    /// Prepares tokens, each its own mark. Their index is the one in `Claim::Token`.
    pub fn new(tokens: Vec<String>) -> TokenMarks {
        let claims = 0..u16::try_from(tokens.len()).unwrap_or(u16::MAX);
        let marks = tokens.iter().cloned().zip(claims.map(Claim::Token)).collect();
        TokenMarks::with_marks(tokens, marks)
    }

    /// Prepares tokens, and marks that mean one of them or a crawler of the registry.
    pub fn with_marks(tokens: Vec<String>, marks: Vec<(String, Claim)>) -> TokenMarks {
        let (marks, claims): (Vec<String>, Vec<Claim>) = marks.into_iter().unzip();
        let bytes = marks.iter().map(String::len).fold(0, usize::saturating_add);
        let kind = if bytes <= MAX_FAST_TOKENS { AhoCorasickKind::DFA } else { AhoCorasickKind::ContiguousNFA };
        let automaton = (!marks.is_empty())
            .then(|| AhoCorasick::builder().ascii_case_insensitive(true).kind(Some(kind)).build(&marks).ok())
            .flatten();
        TokenMarks { unchecked: tokens.len(), tokens, claims, automaton }
    }

    /// The same, of which only the first so many tokens are the owner's word. The others may be names of browsers and
    /// apps (TikTok, Vivaldi, Kindle): in a string that has the shape of a browser they count if they end in bot,
    /// crawler or spider, or the string says that it is a bot's.
    pub fn checked_up_to(self, checked: usize) -> TokenMarks {
        TokenMarks { unchecked: checked, ..self }
    }

    /// The tokens, by index.
    pub fn tokens(&self) -> &[String] {
        &self.tokens
    }

    /// Whom the longest mark that stands in a user agent means, and its length.
    fn find(&self, text: &[u8]) -> Option<(Claim, usize)> {
        let mut best: Option<(Claim, usize)> = None;
        // Found when first asked for: few strings have a token.
        let mut is_person = None;
        for found in self.automaton.as_ref()?.find_overlapping_iter(text) {
            let (start, end) = (found.start(), found.end());
            let length = end - start;
            if length < MIN_TOKEN || best.is_some_and(|(_, longest)| longest >= length) {
                continue;
            }
            if stands_alone(text, start, end, is_token_byte(text[start]), is_token_byte(text[end - 1]))
                && let Some(claim) = self.claims.get(found.pattern().as_usize())
            {
                if matches!(claim, Claim::Token(index) if usize::from(*index) >= self.unchecked)
                    && !declared::is_called_bot(&text[start..end])
                    && *is_person
                        .get_or_insert_with(|| declared::has_shape_of_browser(text) && !declared::says_bot(text))
                {
                    continue;
                }
                best = Some((*claim, length));
            }
        }
        best
    }
}
