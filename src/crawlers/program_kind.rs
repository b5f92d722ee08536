//! [`ProgramClassifier`] classifies a `User-Agent` that is not in the registry of crawlers. The
//! words in the `User-Agent` decide the client's [`ProgramKind`]: a browser, an app, a desktop
//! program, or unrecognised. The module `program_words` lists these words.

use super::address::{is_in_address, words_outside_addresses};
use super::byte_search::{contains_ignore_case, ends_with_ignore_case, words};
use super::program_words::{BROWSER_WORDS, FETCHER_ENDINGS, TOOL_ENDINGS, word_list};
use ProgramKind::*;
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use std::sync::LazyLock;

/// The kind of program that sends a user agent, the weakest evidence first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProgramKind {
    /// None of those below.
    Unrecognised,
    /// A program on a desktop or a server.
    Desktop,
    /// An app on a device that people use, or one that is known by its name.
    App,
    /// A browser.
    Browser,
}

/// What the words of a user agent tell.
pub struct UserAgentTraits {
    /// The kind of program.
    pub kind: ProgramKind,
    /// Whether it names a tool.
    pub names_tool: bool,
}

/// A word of the lists, with the boundaries that it needs.
#[derive(Debug)]
struct ProgramWord {
    /// The kind of program that it means; `None` for the name of a tool.
    kind: Option<ProgramKind>,
    at_text_start: bool,
    needs_left_boundary: bool,
    needs_right_boundary: bool,
}

impl ProgramWord {
    /// Reads a word of `program_words.txt`. `^` in front binds it to the beginning of the string. A
    /// `*` at a side allows more letters there; behind the name of a tool they are always allowed.
    fn new(kind: Option<ProgramKind>, written: &str) -> ProgramWord {
        ProgramWord {
            kind,
            at_text_start: written.starts_with('^'),
            needs_left_boundary: !written.starts_with('*'),
            needs_right_boundary: !written.ends_with('*') && kind.is_some(),
        }
    }

    /// Whether the word found at `start..end` has the boundaries that it needs. A `%20` before it is
    /// a blank.
    fn is_whole_word_at(&self, text: &[u8], start: usize, end: usize) -> bool {
        let (before, after) = text.split_at(start);
        let follows_letter = before.last().is_some_and(u8::is_ascii_alphanumeric)
            && !ends_with_ignore_case(before, b"%20");
        let goes_on = text[end - 1].is_ascii_alphabetic()
            && after.get(end - start).is_some_and(u8::is_ascii_alphabetic);
        !(self.at_text_start && start > 0
            || self.needs_left_boundary && follows_letter
            || self.needs_right_boundary && goes_on)
    }
}

/// All words, in an automaton that finds them in one pass.
#[derive(Debug)]
pub struct ProgramClassifier {
    automaton: Option<AhoCorasick>,
    words: Vec<ProgramWord>,
}

impl ProgramClassifier {
    pub fn new() -> ProgramClassifier {
        let lists = [
            (Some(Browser), "[engines]"),
            (Some(Desktop), "[desktops]"),
            (Some(App), "[systems]"),
            (None, "[tools]"),
        ];
        let mut words = Vec::new();
        let mut texts = Vec::new();
        for (kind, heading) in lists {
            for word in word_list(heading) {
                words.push(ProgramWord::new(kind, word));
                texts.push(word.trim_matches(['*', '^']));
            }
        }
        let automaton = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(texts);
        ProgramClassifier {
            automaton: automaton.ok(),
            words,
        }
    }

    /// The kind of program of a user agent, and whether it names a tool. Of several kinds the
    /// greatest counts. Words in addresses do not count: `https://www.joesbrewery.com`.
    pub fn classify(&self, text: &[u8]) -> UserAgentTraits {
        let mut traits = UserAgentTraits {
            kind: Unrecognised,
            names_tool: false,
        };
        for found in self
            .automaton
            .iter()
            .flat_map(|automaton| automaton.find_overlapping_iter(text))
        {
            let Some(word) = self.words.get(found.pattern().as_usize()) else {
                continue;
            };
            let is_known = word
                .kind
                .map_or(traits.names_tool, |kind| traits.kind >= kind);
            if is_known
                || !word.is_whole_word_at(text, found.start(), found.end())
                || is_in_address(text, found.start())
            {
                continue;
            }
            match word.kind {
                Some(kind) => traits.kind = kind,
                None => traits.names_tool = true,
            }
        }
        traits
    }
}

/// Endings of the names of bots.
pub const BOT_ENDINGS: [&[u8]; 4] = [b"bot", b"crawler", b"spider", b"scraper"];

/// Whether a text ends in bot, crawler, spider or scraper, without regard to case.
pub fn ends_with_bot_word(token: &[u8]) -> bool {
    BOT_ENDINGS
        .iter()
        .any(|word| ends_with_ignore_case(token, word))
}

/// The last three letters of all endings: by the last two letters, a bit for each third-last one.
static LAST_THREE_LETTERS: LazyLock<[u32; 26 * 26]> = LazyLock::new(|| {
    let mut bits = [0; 26 * 26];
    let tools = TOOL_ENDINGS.iter().map(|ending| ending.as_bytes());
    for ending in tools.chain(BOT_ENDINGS) {
        if let [.., third, second, last] = *ending {
            let pair = usize::from(second - b'a') * 26 + usize::from(last - b'a');
            bits[pair] |= 1 << (third - b'a');
        }
    }
    bits
});

/// Whether the last three letters of a text are those of some ending. A quick test before the
/// endings are compared.
#[inline]
fn may_end_bot_name(until: &[u8]) -> bool {
    let [.., third, second, last] = *until else {
        return false;
    };
    let [third, second, last] = [third, second, last].map(|byte| (byte | 0x20).wrapping_sub(b'a'));
    if third >= 26 || second >= 26 || last >= 26 {
        return false;
    }
    let bits = LAST_THREE_LETTERS[usize::from(second) * 26 + usize::from(last)];
    bits >> third & 1 == 1
}

/// Whether a text ends like the name of a tool, without regard to case.
pub fn has_tool_ending(until: &[u8]) -> bool {
    may_end_bot_name(until)
        && TOOL_ENDINGS
            .iter()
            .any(|ending| ends_with_ignore_case(until, ending.as_bytes()))
}

/// Whether a text ends like the name of a tool or a bot, without regard to case.
#[inline]
pub fn has_tool_or_bot_ending(until: &[u8]) -> bool {
    // Bots first: they have few endings, and most matches are theirs.
    may_end_bot_name(until) && (ends_with_bot_word(until) || has_tool_ending(until))
}

/// The beginning of a browser's user agent.
pub const BROWSER_PREFIX: &[u8] = b"Mozilla/5.0 (";

/// The end of the device description (behind its bracket) if the string looks like that of a plain
/// browser. Only its beginning and its last byte are examined: a known system, an engine right
/// behind it, and a version at the end.
#[inline]
pub fn plain_browser_device_end(text: &[u8]) -> Option<usize> {
    if !text.last().is_some_and(u8::is_ascii_digit) {
        return None;
    }
    const BEGINS: [&[u8]; 6] = [
        b"Windows NT ",
        b"Macintosh;",
        b"X11;",
        b"Linux; ",
        b"iPhone; CPU ",
        b"iPad; CPU ",
    ];
    let rest = text.strip_prefix(BROWSER_PREFIX)?;
    let close = memchr::memchr(b')', rest)?;
    let device = &rest[..close];
    let after = &rest[close + 1..];
    if !BEGINS.iter().any(|begin| device.starts_with(begin)) {
        return None;
    }
    let end = BROWSER_PREFIX.len() + close + 1;
    if after.starts_with(b" Gecko/") || after.starts_with(b" like Gecko") {
        return Some(end);
    }
    let version = after.strip_prefix(b" AppleWebKit/")?;
    // The frozen version of Chromium.
    if version.starts_with(b"537.36 (KHTML, like Gecko) ") {
        return Some(end);
    }
    let version_end = memchr::memchr(b' ', version)?;
    version[version_end..]
        .starts_with(b" (KHTML, like Gecko) ")
        .then_some(end)
}

/// Whether a text has only the words of engines and browsers with versions, or is empty. Then it
/// contains no marker, tool or bot.
#[inline]
pub fn has_only_browser_words(mut text: &[u8]) -> bool {
    while !text.is_empty() {
        let Some(rest) = BROWSER_WORDS
            .iter()
            .find_map(|word| text.strip_prefix(*word))
        else {
            return false;
        };
        let version = rest
            .iter()
            .take_while(|byte| byte.is_ascii_digit() || **byte == b'.')
            .count();
        text = &rest[version..];
    }
    true
}

/// Whether a word outside of `device` (the device description) and of addresses ends like the name
/// of a tool. Never for the web view of a phone app, which may be called `CamScanner`.
pub fn has_tool_word(text: &[u8], device: &std::ops::Range<usize>) -> bool {
    let is_apps_view = contains_ignore_case(text, b"; wv)")
        || contains_ignore_case(text, b"mobile/") && !contains_ignore_case(text, b"safari/");
    if is_apps_view {
        return false;
    }
    words_outside_addresses(text)
        .any(|(begin, word)| !device.contains(&begin) && has_tool_ending(word))
}

/// Whether a word ends in downloader or extractor.
pub fn has_fetcher_word(text: &[u8]) -> bool {
    words(text).any(|(_, word)| {
        FETCHER_ENDINGS
            .iter()
            .any(|ending| ends_with_ignore_case(word, ending))
    })
}
