//! [`Shapes::of`] tells the [`Shape`] of a user agent that is in no list: that of a browser, an
//! app, a program on a desktop, or none. A string without a shape is a program's. The words are in
//! `shape_words.rs`.

use super::address::{is_in_address, words_outside_addresses};
use super::octets::{contains, ends_with, words};
use super::shape_words::{BROWSER_WORDS, FETCHER_ENDINGS, TOOL_ENDINGS, section};
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

/// The kind of program that sends a user agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shape {
    /// None of those below.
    None,
    /// A program on a desktop or a server.
    Desktop,
    /// An app on a device that people use, or one that is known by its name.
    App,
    /// A browser.
    Browser,
}

/// The findings about the words of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words {
    /// The shape.
    pub shape: Shape,
    /// Whether it names a tool.
    pub names_tool: bool,
}

/// A word with what may stand around it.
#[derive(Debug)]
struct Word {
    /// The shape that it means; else it is a tool's name.
    shape: Option<Shape>,
    at_start: bool,
    begins: bool,
    ends: bool,
}

impl Word {
    /// A word of the lists in `shape_words.rs`: `^` in front binds it to the beginning of the
    /// string, and a `*` lets letters go on at that side. `shape` is `None` for the name of a tool,
    /// behind which letters may always go on.
    fn new(shape: Option<Shape>, written: &str) -> Word {
        Word {
            shape,
            at_start: written.starts_with('^'),
            begins: !written.starts_with('*'),
            ends: !written.ends_with('*') && shape.is_some(),
        }
    }

    /// Whether the word found at `start..end` is a whole word there, as far as it has to be one. A
    /// `%20` before it is a blank.
    fn stands(&self, text: &[u8], start: usize, end: usize) -> bool {
        let (before, after) = text.split_at(start);
        let follows_letter =
            before.last().is_some_and(u8::is_ascii_alphanumeric) && !ends_with(before, b"%20");
        let goes_on = text[end - 1].is_ascii_alphabetic()
            && after.get(end - start).is_some_and(u8::is_ascii_alphabetic);
        !(self.at_start && start > 0 || self.begins && follows_letter || self.ends && goes_on)
    }
}

/// All words, ready to be found in one pass.
#[derive(Debug)]
pub struct Shapes {
    automaton: Option<AhoCorasick>,
    words: Vec<Word>,
}

impl Shapes {
    pub fn new() -> Shapes {
        let lists = [
            (Some(Shape::Browser), "[engines]"),
            (Some(Shape::Desktop), "[desktops]"),
            (Some(Shape::App), "[systems]"),
            (None, "[tools]"),
        ];
        let mut words = Vec::new();
        let mut texts = Vec::new();
        for (shape, heading) in lists {
            for word in section(heading) {
                words.push(Word::new(shape, word));
                texts.push(word.trim_matches(['*', '^']));
            }
        }
        let automaton = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(texts);
        Shapes {
            automaton: automaton.ok(),
            words,
        }
    }

    /// The shape of a user agent, and whether it names a tool. Of several shapes the last of
    /// `Shape` counts: a browser before an app before a desktop. Words of addresses do not count:
    /// `https://www.joesbrewery.com`.
    pub fn of(&self, text: &[u8]) -> Words {
        let mut words = Words {
            shape: Shape::None,
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
                .shape
                .map_or(words.names_tool, |shape| words.shape >= shape);
            if is_known
                || !word.stands(text, found.start(), found.end())
                || is_in_address(text, found.start())
            {
                continue;
            }
            match word.shape {
                Some(shape) => words.shape = shape,
                None => words.names_tool = true,
            }
        }
        words
    }
}

/// The names of tools, for the pass that finds markers.
pub fn tool_names() -> impl Iterator<Item = &'static str> {
    section("[tools]")
}

/// The words that bots end their names with.
pub const BOT_ENDINGS: [&[u8]; 4] = [b"bot", b"crawler", b"spider", b"scraper"];

/// The last three letters of all endings: for each pair of the last two, a bit for each letter
/// before them.
static LAST_THREE: [u32; 26 * 26] = {
    let mut bits = [0; 26 * 26];
    let mut place = 0;
    while place < TOOL_ENDINGS.len() + BOT_ENDINGS.len() {
        let ending = match place.checked_sub(TOOL_ENDINGS.len()) {
            None => TOOL_ENDINGS[place].as_bytes(),
            Some(place) => BOT_ENDINGS[place],
        };
        let end = ending.len();
        let third = ending[end - 3] - b'a';
        let second = ending[end - 2] - b'a';
        let last = ending[end - 1] - b'a';
        bits[second as usize * 26 + last as usize] |= 1 << third;
        place += 1;
    }
    bits
};

/// Whether the last three letters of a text are those of an ending of tools or bots. A quick test
/// before the endings are compared: most words differ in the last letters.
#[inline]
fn may_end_name(until: &[u8]) -> bool {
    let [.., third, second, last] = *until else {
        return false;
    };
    let [third, second, last] = [third, second, last].map(|byte| (byte | 0x20).wrapping_sub(b'a'));
    if third >= 26 || second >= 26 || last >= 26 {
        return false;
    }
    let bits = LAST_THREE[usize::from(second) * 26 + usize::from(last)];
    bits >> third & 1 == 1
}

/// Whether a text ends in one of the endings of the names of tools, without regard to case.
pub fn ends_like_tool(until: &[u8]) -> bool {
    may_end_name(until)
        && TOOL_ENDINGS
            .iter()
            .any(|ending| ends_with(until, ending.as_bytes()))
}

/// Whether a text ends in one of the endings of the names of tools or of bots, without regard to
/// case.
#[inline]
pub fn ends_like_tool_or_bot(until: &[u8]) -> bool {
    // Bots first: they have few endings, and most strings that get here are theirs.
    may_end_name(until)
        && (BOT_ENDINGS.iter().any(|ending| ends_with(until, ending)) || ends_like_tool(until))
}

/// The beginning of the strings of browsers.
pub const BROWSERS_BEGINNING: &[u8] = b"Mozilla/5.0 (";

/// Where the description of the device ends (behind its bracket), if the string seems to be that of
/// a browser and of nothing else; else `None`. Only its beginning and its last byte are examined: a
/// system that people use, an engine right behind it, and a version at the end.
#[inline]
pub fn device_of_plain_browser(text: &[u8]) -> Option<usize> {
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
    let rest = text.strip_prefix(BROWSERS_BEGINNING)?;
    let close = memchr::memchr(b')', rest)?;
    let device = &rest[..close];
    let after = &rest[close + 1..];
    if !BEGINS.iter().any(|begin| device.starts_with(begin)) {
        return None;
    }
    let end = BROWSERS_BEGINNING.len() + close + 1;
    if after.starts_with(b" Gecko/") || after.starts_with(b" like Gecko") {
        return Some(end);
    }
    let version = after.strip_prefix(b" AppleWebKit/")?;
    // The number at which Chromium stands still.
    if version.starts_with(b"537.36 (KHTML, like Gecko) ") {
        return Some(end);
    }
    let version_end = version
        .iter()
        .position(|byte| *byte == b' ')
        .unwrap_or(version.len());
    version[version_end..]
        .starts_with(b" (KHTML, like Gecko) ")
        .then_some(end)
}

/// Whether a text has only the words of engines and browsers and their versions, or is empty. It
/// then holds no marker, no tool and no bot.
#[inline]
pub fn says_only_browser(mut text: &[u8]) -> bool {
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

/// Whether a word outside the description of the device (`device`) and outside addresses ends as
/// the names of tools do. Never for the view of an app on a phone that shows pages: its name may be
/// `CamScanner` or `QRScanner`.
pub fn has_tool_word(text: &[u8], device: &std::ops::Range<usize>) -> bool {
    let is_apps_view =
        contains(text, b"; wv)") || contains(text, b"mobile/") && !contains(text, b"safari/");
    if is_apps_view {
        return false;
    }
    words_outside_addresses(text)
        .any(|(begin, word)| !device.contains(&begin) && ends_like_tool(word))
}

/// Whether a word of an app's string ends in downloader or extractor.
pub fn has_fetcher_word(text: &[u8]) -> bool {
    words(text).any(|(_, word)| FETCHER_ENDINGS.iter().any(|ending| ends_with(word, ending)))
}
