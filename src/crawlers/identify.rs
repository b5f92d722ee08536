//! Finds the crawler that a `User-Agent` names. It searches for markers (texts that identify
//! crawlers): the markers of known crawlers ([`RegistryMarkers`]), and the markers that a policy
//! adds ([`SiteMarkers`]). The search ignores case, and finds only whole tokens. A plain substring
//! search would take the visitor with a CUBOT phone for a bot.

use super::Claim::{self, Known, PolicyToken};
use super::byte_search::{is_separate_token, is_separate_word};
use super::crawler::{Crawler, CrawlerIndex, Purpose};
use super::marker_index::MarkerIndex;
use super::program_kind::{
    BROWSER_PREFIX, ProgramClassifier, has_only_browser_words, has_tool_or_bot_ending,
    plain_browser_device_end,
};
use super::program_words::word_list;
use super::unlisted::{self, self_given_name};
use super::visitors::is_visitor_word;
use MarkerScope::*;

/// The most bytes of a user agent that are read. Longer ones are garbage and must not cost more.
const MAX_USER_AGENT_BYTES: usize = 4_096;

/// A marker of a crawler in the registry, and the boundaries that it needs.
#[derive(Debug)]
struct RegistryMarker {
    crawler: u16,
    is_tool: bool,
    at_text_start: bool,
    is_whole: bool,
    begins_word: bool,
    ends_word: bool,
}

impl RegistryMarker {
    /// Whether the marker found at `start..end` counts there: it is a separate word, and at the
    /// beginning of the string or the whole string if it must be.
    fn is_valid_match(&self, text: &[u8], start: usize, end: usize) -> bool {
        if (self.at_text_start || self.is_whole) && start != 0 || self.is_whole && end != text.len()
        {
            return false;
        }
        is_separate_word(text, start, end, self.begins_word, self.ends_word)
    }
}

/// The best marker found: that of a crawler before that of a tool, then the longest.
#[derive(Clone, Copy, Debug, PartialEq)]
struct MarkerMatch {
    named: bool,
    length: usize,
    crawler: u16,
}

/// The result of one scan of a user agent.
#[derive(Debug, Default, PartialEq)]
struct MarkerScanResult {
    best: Option<MarkerMatch>,
    /// The offsets of the two markers of Apple Messages.
    messages: [Option<usize>; 2],
    /// Whether the string may say that it is a bot or a tool.
    is_hinted: bool,
    /// Whether its beginning and end look like those of a plain browser.
    is_plain: bool,
}

/// All markers of a registry.
#[derive(Debug)]
pub struct RegistryMarkers {
    index: MarkerIndex,
    markers: Vec<RegistryMarker>,
    /// The two crawlers that Apple Messages names in the string of a person's own device.
    messages: [Option<u16>; 2],
    programs: ProgramClassifier,
    /// The bytes of [`BROWSER_PREFIX`] in which no marker can begin.
    skipped_prefix: usize,
}

impl RegistryMarkers {
    /// Indexes the markers of these crawlers, and the names of tools. `^` in front of a marker binds
    /// it to the beginning of the string, `=` to the whole string.
    pub fn new(crawlers: &[Crawler]) -> RegistryMarkers {
        let mut texts: Vec<&[u8]> = Vec::new();
        let mut markers = Vec::new();
        for (index, crawler) in (0_u16..).zip(crawlers) {
            for written in &crawler.markers {
                let text = written.trim_start_matches(['=', '^']).as_bytes();
                let Some(first) = text.first() else { continue };
                let last = text[text.len() - 1];
                texts.push(text);
                markers.push(RegistryMarker {
                    crawler: index,
                    is_tool: crawler.purpose == Purpose::Tool,
                    at_text_start: written.starts_with('^'),
                    is_whole: written.starts_with('='),
                    // A marker that begins or ends with a sign (`Nutch-`) is a boundary itself.
                    begins_word: first.is_ascii_alphanumeric(),
                    ends_word: last.is_ascii_alphanumeric(),
                });
            }
        }
        texts.extend(word_list("[tools]").map(|name| name.as_bytes()));
        let messages = ["facebookexternalhit", "twitterbot"].map(|id| {
            let mut numbered = (0_u16..).zip(crawlers);
            let (index, _) = numbered.find(|(_, crawler)| crawler.id == id)?;
            Some(index)
        });
        let skipped_prefix = (0..BROWSER_PREFIX.len())
            .find(|at| texts.iter().any(|text| may_start_in_prefix(text, *at)))
            .unwrap_or(BROWSER_PREFIX.len());
        RegistryMarkers {
            index: MarkerIndex::new(texts),
            markers,
            messages,
            programs: ProgramClassifier::new(),
            skipped_prefix,
        }
    }

    /// The most markers that are compared at one offset of a user agent.
    #[cfg(test)]
    pub fn max_markers_per_slot(&self) -> usize {
        self.index.max_markers_per_slot()
    }

    /// The crawler that a user agent claims to be, by the markers of the registry and of a site. A
    /// marker of the site wins over one of the registry, unless that is at least as long and no
    /// tool's. Without any marker the string itself decides (`unlisted`). In a string of Apple
    /// Messages only the text before the crawlers' names counts.
    pub fn identify(&self, user_agent: &[u8], tokens: Option<&SiteMarkers>) -> Claim {
        let mut text = &user_agent[..user_agent.len().min(MAX_USER_AGENT_BYTES)];
        let mut found = self.scan(text);
        if let Some(preview) = apple_messages_preview(text, found.messages) {
            text = &text[..preview];
            found = self.scan(text);
        }
        let token = tokens.and_then(|tokens| {
            tokens.find_claim(text, || {
                found.best.is_none() && self.classify_without_marker(text, &found) == Claim::Visitor
            })
        });
        match (found.best, token) {
            (Some(best), Some((_, length))) if best.named && best.length >= length => {
                Known(CrawlerIndex(best.crawler))
            }
            (_, Some((claim, _))) => claim,
            (Some(best), None) => Known(CrawlerIndex(best.crawler)),
            (None, None) => self.classify_without_marker(text, &found),
        }
    }

    /// The claim of a user agent without markers: `Visitor` at once for a plain browser without any
    /// hint of a bot, else by its words.
    fn classify_without_marker(&self, text: &[u8], found: &MarkerScanResult) -> Claim {
        if found.is_plain && !found.is_hinted {
            return Claim::Visitor;
        }
        unlisted::classify_unlisted(text, self.programs.classify(text))
    }

    /// Scans a user agent. In a plain browser's string only the parts that can contain a marker are
    /// scanned.
    fn scan(&self, text: &[u8]) -> MarkerScanResult {
        let device = plain_browser_device_end(text);
        // Most strings differ only in the device: the text behind it need not be searched.
        let until = device
            .filter(|end| has_only_browser_words(&text[*end..]))
            .unwrap_or(text.len());
        let from = if device.is_some() {
            self.skipped_prefix
        } else {
            0
        };
        MarkerScanResult {
            is_plain: device.is_some(),
            ..self.scan_range(text, from, until)
        }
    }

    /// Scans `text[from..until]` for markers, and for hints of a bot or a tool.
    fn scan_range(&self, text: &[u8], from: usize, until: usize) -> MarkerScanResult {
        let mut found = MarkerScanResult::default();
        let mut is_hinted = false;
        self.index.scan(
            &text[..until],
            from,
            |place, start, end| {
                // The names of tools come after all markers.
                let Some(marker) = self.markers.get(usize::from(place)) else {
                    found.is_hinted = true;
                    return;
                };
                if !marker.is_valid_match(text, start, end) {
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
                    found.best = Some(MarkerMatch {
                        named,
                        length,
                        crawler: marker.crawler,
                    });
                }
            },
            |end| {
                is_hinted = is_hinted || has_tool_or_bot_ending(&text[..end]);
            },
        );
        // A plain browser has no words behind `until` that could be a hint.
        found.is_hinted |= is_hinted
            || unlisted::may_contain_contact(&text[..until])
            || until == text.len() && unlisted::has_bot_word_part(text);
        found
    }
}

/// Whether a marker may begin at this offset of `BROWSER_PREFIX`: the rest of the prefix agrees with
/// the marker.
fn may_start_in_prefix(marker: &[u8], at: usize) -> bool {
    let beginning = &BROWSER_PREFIX[at..];
    let length = marker.len().min(beginning.len());
    beginning[..length].eq_ignore_ascii_case(&marker[..length])
}

/// The offset at which Apple Messages begins to name other companies' crawlers in the string of a
/// person's own device: `... Safari/601.2.4 facebookexternalhit/1.1 Facebot Twitterbot/1.0`. `None`
/// unless both are named behind a `Safari/`. `messages` are the offsets of their markers.
fn apple_messages_preview(text: &[u8], messages: [Option<usize>; 2]) -> Option<usize> {
    let [Some(facebook), Some(twitter)] = messages else {
        return None;
    };
    let preview = facebook.min(twitter);
    text[..preview]
        .windows(7)
        .any(|window| window.eq_ignore_ascii_case(b"safari/"))
        .then_some(preview)
}

/// The markers of a site's policy: tokens that the registry does not know, and markers that the owner
/// wrote. A token never matches a visitor's user agent; an owner's marker matches anywhere. Tokens of
/// one or two letters, and generic ones (`bot`), are never searched.
#[derive(Debug, Default)]
pub struct SiteMarkers {
    tokens: Vec<String>,
    markers: Vec<SiteMarker>,
    index: Option<MarkerIndex>,
}

/// The claim that a marker means, and the user agents in which it counts.
#[derive(Debug)]
struct SiteMarker {
    claim: Claim,
    matches: MarkerScope,
}

/// The user agents in which a marker of a site counts.
#[derive(Debug)]
enum MarkerScope {
    /// All. For markers that the owner wrote.
    All,
    /// Those of programs, not of visitors.
    Programs,
    /// Those of programs that give it as their own name. For words of visitors' user agents, which
    /// bots imitate: a bot that says it runs on Linux is not called `Linux`.
    OwnName,
}

impl SiteMarkers {
    /// Indexes tokens, each as its own marker. Their index is the one in [`Claim::PolicyToken`].
    pub fn new(tokens: Vec<String>) -> SiteMarkers {
        SiteMarkers::with_markers(tokens, Vec::new())
    }

    /// Indexes tokens, and markers that mean one of the tokens or a crawler of the registry. A token
    /// without a marker is its own.
    pub fn with_markers(tokens: Vec<String>, markers: Vec<(String, Claim)>) -> SiteMarkers {
        let mut texts: Vec<String> = Vec::new();
        let mut prepared: Vec<SiteMarker> = Vec::new();
        for (index, token) in (0..u16::MAX).zip(&tokens) {
            let claim = PolicyToken(index);
            if unlisted::is_generic_bot_name(token.as_bytes())
                || markers.iter().any(|(_, meant)| *meant == claim)
            {
                continue;
            }
            let matches = if is_visitor_word(token.as_bytes()) {
                OwnName
            } else {
                Programs
            };
            texts.push(token.clone());
            prepared.push(SiteMarker { claim, matches });
        }
        for (text, claim) in markers {
            texts.push(text);
            prepared.push(SiteMarker {
                claim,
                matches: All,
            });
        }
        let index =
            (!texts.is_empty()).then(|| MarkerIndex::new(texts.iter().map(String::as_bytes)));
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

    /// The claim of a token of the policy, without regard to case.
    pub fn token_claim(&self, token: &str) -> Option<Claim> {
        let index = self
            .tokens
            .iter()
            .position(|known| known.eq_ignore_ascii_case(token))?;
        u16::try_from(index).ok().map(PolicyToken)
    }

    /// The claim and the length of the longest marker of the site that counts in a user agent; the
    /// first of equal ones. `is_person` tells whether it is a visitor's.
    fn find_claim(&self, text: &[u8], is_person: impl Fn() -> bool) -> Option<(Claim, usize)> {
        let mut best: Option<(Claim, usize)> = None;
        // Computed on first use: few strings have a token.
        let mut person = None;
        self.index.as_ref()?.scan(
            text,
            0,
            |place, start, end| {
                let length = end - start;
                let Some(marker) = self.markers.get(usize::from(place)) else {
                    return;
                };
                if best.is_some_and(|(_, longest)| longest >= length)
                    || !is_separate_token(text, start, end)
                {
                    return;
                }
                let counts = match marker.matches {
                    All => true,
                    Programs => !*person.get_or_insert_with(&is_person),
                    OwnName => {
                        !*person.get_or_insert_with(&is_person)
                            && self_given_name(text).map(str::as_bytes) == Some(&text[start..end])
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
        fn plain_browser_words_hold_no_marker(
            device in "(Windows NT 10\\.0|X11; Linux x86_64|Linux; Android 10; |iPhone; CPU ){1}[a-zA-Z0-9 ;/.:@+_-]{0,30}(; (GPTBot|CUBOT|SiteChecker|Pixel 9|bingbot/2\\.0|Spider 8))?",
            words in proptest::collection::vec(
                "(Chrome/[0-9.]{1,4}|Safari/5|Mobile|Mobile/15E148|Version/1|Firefox/1|Edg/2|OPR/3|\\(KHTML, like Gecko\\)|9|Headless|bot)", 0..6),
        ) {
            let text = format!("Mozilla/5.0 ({device}) AppleWebKit/537.36 (KHTML, like Gecko) {} Safari/537.36", words.join(" "));
            let markers = RegistryMarkers::new(Registry::builtin().crawlers());
            let all = MarkerScanResult { is_plain: true, ..markers.scan_range(text.as_bytes(), 0, text.len()) };
            prop_assert_eq!(markers.scan(text.as_bytes()), all, "{}", text);
        }
    }
}
