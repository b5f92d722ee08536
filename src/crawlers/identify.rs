//! [`Markers`] of the registry and [`SiteMarkers`] of a site's policy find the crawler that a user
//! agent names. They search without regard to case, on token boundaries, without allocation. A
//! substring test would take people for crawlers (a CUBOT phone, the Spider 8, ViewSonic) and
//! libraries for the crawlers that they name.

use super::Claim;
use super::crawler::{Crawler, CrawlerIndex, Purpose};
use super::declared::{self, Reason, calls_itself};
use super::octets::{is_token_byte, stands_alone};
use super::people::is_of_people;
use super::shape::{
    BROWSERS_BEGINNING, Shapes, device_of_plain_browser, ends_like_tool_or_bot, says_only_browser,
    tool_names,
};
use super::words::WordIndex;

/// How many octets of a user agent are read. Longer ones are garbage and must not cost more.
const MAX_READ: usize = 4_096;

/// One marker of one record.
#[derive(Debug)]
struct Marker {
    crawler: u16,
    is_tool: bool,
    at_start: bool,
    is_whole: bool,
    begins_word: bool,
    ends_word: bool,
}

impl Marker {
    /// Whether the marker found at `start..end` counts there: at the beginning of the string or as
    /// the whole string if it has to, and as a word by itself (`stands_alone`).
    fn stands(&self, text: &[u8], start: usize, end: usize) -> bool {
        if (self.at_start || self.is_whole) && start != 0 || self.is_whole && end != text.len() {
            return false;
        }
        stands_alone(text, start, end, self.begins_word, self.ends_word)
    }
}

/// The marker that counts: a named crawler's before a tool's, then the longer before the shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Best {
    named: bool,
    length: usize,
    crawler: u16,
}

/// The result of one pass over a user agent.
#[derive(Debug, Default, PartialEq)]
struct Found {
    best: Option<Best>,
    /// Where the two markers of Apple Messages begin.
    messages: [Option<usize>; 2],
    /// Whether the string may say that it is a bot or a tool.
    is_hinted: bool,
    /// Whether its beginning and its end are those of a browser that is nothing else.
    is_plain: bool,
}

/// All markers of a registry.
#[derive(Debug)]
pub struct Markers {
    index: WordIndex,
    markers: Vec<Marker>,
    /// The two that Apple Messages puts into the string of a person's own device.
    messages: [Option<u16>; 2],
    shapes: Shapes,
    /// How much of [`BROWSERS_BEGINNING`] need not be searched: up to where a marker may stand.
    passes: usize,
}

impl Markers {
    /// Prepares the markers of these crawlers: `^` in front of a marker binds it to the beginning
    /// of the string, `=` to the whole string. The names of tools are searched with them.
    pub fn new(crawlers: &[Crawler]) -> Markers {
        let mut texts: Vec<&[u8]> = Vec::new();
        let mut markers = Vec::new();
        for (index, crawler) in (0_u16..).zip(crawlers) {
            for written in &crawler.markers {
                let text = written.trim_start_matches(['=', '^']).as_bytes();
                let Some(first) = text.first() else { continue };
                let last = text[text.len() - 1];
                texts.push(text);
                markers.push(Marker {
                    crawler: index,
                    is_tool: crawler.purpose == Purpose::Tool,
                    at_start: written.starts_with('^'),
                    is_whole: written.starts_with('='),
                    // A marker that begins or ends with a sign (`Nutch-`) is a boundary itself.
                    begins_word: first.is_ascii_alphanumeric(),
                    ends_word: last.is_ascii_alphanumeric(),
                });
            }
        }
        texts.extend(tool_names().map(|name| name.as_bytes()));
        let messages = ["facebookexternalhit", "twitterbot"].map(|id| {
            let mut numbered = (0_u16..).zip(crawlers);
            let (index, _) = numbered.find(|(_, crawler)| crawler.id == id)?;
            Some(index)
        });
        let passes = (0..BROWSERS_BEGINNING.len())
            .find(|at| texts.iter().any(|text| may_stand_in_beginning(text, *at)))
            .unwrap_or(BROWSERS_BEGINNING.len());
        Markers {
            index: WordIndex::new(texts),
            markers,
            messages,
            shapes: Shapes::new(),
            passes,
        }
    }

    /// The most markers that one place of a user agent has to be compared with.
    #[cfg(test)]
    pub fn most_at_one_place(&self) -> usize {
        self.index.most_at_one_place()
    }

    /// The crawler that a user agent claims to be, by the markers of the registry and by those of a
    /// site. A marker of the site wins over one of the registry, unless that is at least as long
    /// and no tool's. Without any marker the string itself decides (`declared`). Only the first
    /// `MAX_READ` bytes are read. In a string of Apple Messages, what stands before the crawlers'
    /// names decides.
    pub fn identify(&self, user_agent: &[u8], tokens: Option<&SiteMarkers>) -> Claim {
        let mut text = &user_agent[..user_agent.len().min(MAX_READ)];
        let mut found = self.found(text);
        if let Some(preview) = preview_of_messages(text, found.messages) {
            text = &text[..preview];
            found = self.found(text);
        }
        let token = tokens.and_then(|tokens| {
            tokens.find(text, || {
                found.best.is_none() && self.without_marker(text, &found) == Claim::Nobody
            })
        });
        match (found.best, token) {
            (Some(best), Some((_, length))) if best.named && best.length >= length => {
                Claim::Known(CrawlerIndex(best.crawler))
            }
            (_, Some((claim, _))) => claim,
            (Some(best), None) => Claim::Known(CrawlerIndex(best.crawler)),
            (None, None) => self.without_marker(text, &found),
        }
    }

    /// The claim of a user agent in which no marker stands: `Nobody` at once if it is plainly a
    /// browser's without any hint of a bot, else what it says of itself.
    fn without_marker(&self, text: &[u8], found: &Found) -> Claim {
        if found.is_plain && !found.is_hinted {
            return Claim::Nobody;
        }
        declared::declared(text, self.shapes.of(text))
    }

    /// The claim by the markers of the registry alone, and its reason.
    pub fn explain(&self, user_agent: &[u8]) -> (Claim, Reason) {
        let text = &user_agent[..user_agent.len().min(MAX_READ)];
        let claim = self.identify(text, None);
        (claim, declared::reason(text, self.shapes.of(text), claim))
    }

    /// What one pass finds in a user agent. Of a plain browser's string only the parts are searched
    /// in which a marker can stand.
    fn found(&self, text: &[u8]) -> Found {
        let device = device_of_plain_browser(text);
        // Most strings differ only in the device: what stands behind it need not be searched.
        let until = device
            .filter(|end| says_only_browser(&text[*end..]))
            .unwrap_or(text.len());
        let from = if device.is_some() { self.passes } else { 0 };
        Found {
            is_plain: device.is_some(),
            ..self.scan(text, from, until)
        }
    }

    /// Finds the markers that begin at `from` or later in the text before `until`, and whether the
    /// string may say that it is a bot or a tool.
    fn scan(&self, text: &[u8], from: usize, until: usize) -> Found {
        let mut found = Found::default();
        let mut is_hinted = false;
        self.index.find(
            &text[..until],
            from,
            |place, start, end| {
                // The names of tools come after all markers.
                let Some(marker) = self.markers.get(usize::from(place)) else {
                    found.is_hinted = true;
                    return;
                };
                if !marker.stands(text, start, end) {
                    return;
                }
                for (first, crawler) in found.messages.iter_mut().zip(self.messages) {
                    if crawler == Some(marker.crawler) {
                        first.get_or_insert(start);
                    }
                }
                let named = !marker.is_tool;
                let length = end - start;
                let best = found.best;
                if best.is_none_or(|best| (named, length) > (best.named, best.length)) {
                    found.best = Some(Best {
                        named,
                        length,
                        crawler: marker.crawler,
                    });
                }
            },
            |end| {
                is_hinted = is_hinted || ends_like_tool_or_bot(&text[..end]);
            },
        );
        // Behind a browser that adds nothing, no word has to be looked into.
        found.is_hinted |= is_hinted
            || declared::may_name_contact(&text[..until])
            || until == text.len() && declared::has_hint_inside_word(text);
        found
    }
}

/// Whether a marker may begin at this place of `BROWSERS_BEGINNING`: as far as that goes on, it has
/// the letters of the marker.
fn may_stand_in_beginning(marker: &[u8], at: usize) -> bool {
    let beginning = &BROWSERS_BEGINNING[at..];
    let length = marker.len().min(beginning.len());
    beginning[..length].eq_ignore_ascii_case(&marker[..length])
}

/// Where Apple Messages names other companies' crawlers in the string of a person's own device:
/// `... Safari/601.2.4 facebookexternalhit/1.1 Facebot Twitterbot/1.0`. What stands before is the
/// device's own. `None` unless both crawlers are named behind a `Safari/`. `messages` are the
/// places of their markers.
fn preview_of_messages(text: &[u8], messages: [Option<usize>; 2]) -> Option<usize> {
    let [Some(facebook), Some(twitter)] = messages else {
        return None;
    };
    let preview = facebook.min(twitter);
    text[..preview]
        .windows(7)
        .any(|window| window.eq_ignore_ascii_case(b"safari/"))
        .then_some(preview)
}

/// What a site's policy adds to the markers of the registry, ready to be found in user agents:
/// tokens that the registry does not know, and markers that the owner wrote. A token is published
/// for crawlers to read, and never matches a person's user agent; a marker matches wherever it
/// stands. Tokens of one or two letters, and generic ones (`bot`), are never looked for.
#[derive(Clone, Debug, Default)]
pub struct SiteMarkers {
    tokens: Vec<String>,
    markers: Vec<SiteMarker>,
    index: Option<WordIndex>,
}

/// What a text found in a user agent means.
#[derive(Clone, Copy, Debug)]
struct SiteMarker {
    claim: Claim,
    matches: Matches,
}

/// The user agents that a text may identify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Matches {
    /// All: the owner wrote it for that.
    All,
    /// Those of programs.
    Programs,
    /// Those of programs that call themselves so. The text stands in the strings of people, which
    /// bots imitate: `Linux` is no name of a bot that says it runs there.
    ItsOwn,
}

impl SiteMarkers {
    /// Prepares tokens, each its own marker. Their index is the one in `Claim::Token`.
    pub fn new(tokens: Vec<String>) -> SiteMarkers {
        SiteMarkers::with_markers(tokens, Vec::new())
    }

    /// Prepares tokens, and markers that mean one of the tokens or a crawler of the registry. A
    /// token that no marker means is its own.
    pub fn with_markers(tokens: Vec<String>, markers: Vec<(String, Claim)>) -> SiteMarkers {
        let mut texts: Vec<String> = Vec::new();
        let mut prepared: Vec<SiteMarker> = Vec::new();
        for (index, token) in (0..u16::MAX).zip(&tokens) {
            let claim = Claim::Token(index);
            if declared::is_generic(token.as_bytes())
                || markers.iter().any(|(_, meant)| *meant == claim)
            {
                continue;
            }
            let matches = if is_of_people(token.as_bytes()) {
                Matches::ItsOwn
            } else {
                Matches::Programs
            };
            texts.push(token.clone());
            prepared.push(SiteMarker { claim, matches });
        }
        for (text, claim) in markers {
            texts.push(text);
            prepared.push(SiteMarker {
                claim,
                matches: Matches::All,
            });
        }
        let index = (!texts.is_empty()).then(|| WordIndex::new(texts.iter().map(String::as_bytes)));
        SiteMarkers {
            tokens,
            markers: prepared,
            index,
        }
    }

    /// The tokens, by index.
    pub fn tokens(&self) -> &[String] {
        &self.tokens
    }

    /// The token of this index.
    pub fn token(&self, index: u16) -> Option<&str> {
        self.tokens.get(usize::from(index)).map(String::as_str)
    }

    /// The claim of a token of the policy, which is found without regard to case; `None` for any
    /// other name.
    pub fn named(&self, token: &str) -> Option<Claim> {
        let index = self
            .tokens
            .iter()
            .position(|known| known.eq_ignore_ascii_case(token))?;
        u16::try_from(index).ok().map(Claim::Token)
    }

    /// The claim that the longest marker of the site in a user agent means, and the length of the
    /// marker; the first of equal ones. A token does not count in a person's user agent
    /// (`is_person`), and one that stands in people's strings counts only as the name that the bot
    /// gives itself.
    fn find(&self, text: &[u8], is_person: impl Fn() -> bool) -> Option<(Claim, usize)> {
        let mut best: Option<(Claim, usize)> = None;
        // Found when first asked for: few strings have a token.
        let mut person = None;
        self.index.as_ref()?.find(
            text,
            0,
            |place, start, end| {
                let length = end - start;
                let Some(marker) = self.markers.get(usize::from(place)) else {
                    return;
                };
                if best.is_some_and(|(_, longest)| longest >= length)
                    || !stands_alone(
                        text,
                        start,
                        end,
                        is_token_byte(text[start]),
                        is_token_byte(text[end - 1]),
                    )
                {
                    return;
                }
                let counts = match marker.matches {
                    Matches::All => true,
                    Matches::Programs => !*person.get_or_insert_with(&is_person),
                    Matches::ItsOwn => {
                        !*person.get_or_insert_with(&is_person)
                            && calls_itself(text).map(str::as_bytes) == Some(&text[start..end])
                    }
                };
                if counts {
                    best = Some((marker.claim, length));
                }
            },
            |_| {},
        );
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crawlers::Registry;
    use proptest::prelude::*;

    proptest! {
        /// What is not searched holds nothing.
        #[test]
        fn a_browsers_own_words_need_no_search(
            device in "(Windows NT 10\\.0|X11; Linux x86_64|Linux; Android 10; |iPhone; CPU ){1}[a-zA-Z0-9 ;/.:@+_-]{0,30}(; (GPTBot|CUBOT|SiteChecker|Pixel 9|bingbot/2\\.0|Spider 8))?",
            words in proptest::collection::vec(
                "(Chrome/[0-9.]{1,4}|Safari/5|Mobile|Mobile/15E148|Version/1|Firefox/1|Edg/2|OPR/3|\\(KHTML, like Gecko\\)|9|Headless|bot)", 0..6),
        ) {
            let text = format!("Mozilla/5.0 ({device}) AppleWebKit/537.36 (KHTML, like Gecko) {} Safari/537.36", words.join(" "));
            let markers = Markers::new(Registry::builtin().crawlers());
            let all = Found { is_plain: true, ..markers.scan(text.as_bytes(), 0, text.len()) };
            prop_assert_eq!(markers.found(text.as_bytes()), all, "{}", text);
        }
    }
}
