//! [`declared`] classifies a user agent that is in no list by what it says about itself. A string
//! with the shape of a browser or an app is a person's unless it says otherwise. The rules for such
//! strings are strict: phones are called `Spider 8`, `M bot 51` and `POWER BOT`, and a person who
//! is taken for a bot may be refused. Any other string is a program's: a bot's if it says so,
//! otherwise a tool's. [`reason`] says why.

use super::Claim;
use super::address::{ends_host, host_end, is_mail_host, words_outside_addresses};
use super::octets::{
    begins_with, begins_with_any, contains, contains_any, ends_with, find, is_token_byte,
    names_another_program, words, words_of,
};
use super::people::is_of_people;
use super::shape::{BOT_ENDINGS, Shape, Words, has_fetcher_word, has_tool_word};
use std::ops::Range;
use strum::IntoStaticStr;

/// No bot's name is longer, and what is remembered by it stays small.
const MAX_NAME: usize = 64;

/// Parts of the names of programs that call themselves bots.
const STEMS: [&[u8]; 5] = [b"bot", b"crawl", b"spider", b"scrap", b"robot"];

/// The claim of a user agent that is in no list. `words` are its shape and whether it names a tool.
/// A string that says it is a bot's is `Other`, one that names a tool or has no shape is `Tool`,
/// and any other is `Nobody`, a person's. How strictly it is read depends on its shape. An empty
/// string is a tool's: browsers and apps say who they are.
pub fn declared(text: &[u8], words: Words) -> Claim {
    // Browsers and apps say who they are.
    if text.iter().all(u8::is_ascii_whitespace) {
        return Claim::Tool;
    }
    // A string that begins as browsers' do is judged as a browser's. An app of Apple's systems may
    // have a browser's name: `Safari%20Technology%20Preview/19614 CFNetwork/1474 Darwin/23.0.0`.
    let shape = match words.shape {
        Shape::App | Shape::Desktop if begins_with(text, b"mozilla/") => Shape::Browser,
        Shape::Browser if !begins_with(text, b"mozilla/") && contains(text, b" cfnetwork/") => {
            Shape::App
        }
        shape => shape,
    };
    let says_bot = match shape {
        Shape::Browser => says_bot(text) || is_bot_in_browser(text),
        Shape::App if is_apps_page(text) => {
            says_bots_name(text) || names_host_of_bot(text) || is_bot_in_app(text)
        }
        Shape::App => says_bot(text) || is_bot_in_app(text),
        // A person's program on a desktop has no reason to say where it can be reached.
        Shape::Desktop => says_bot(text) || is_bot_in_app(text) || names_contact(text),
        Shape::None => says_bot(text) || is_bot_alone(text),
    };
    if says_bot {
        return Claim::Other;
    }
    let is_tool = match shape {
        Shape::Browser => {
            words.names_tool || adds_to_engine(text) || has_tool_word(text, &device_part(text))
        }
        Shape::App | Shape::Desktop => words.names_tool || has_fetcher_word(text),
        Shape::None => true,
    };
    if is_tool { Claim::Tool } else { Claim::Nobody }
}

/// The reason for the claim of a user agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
pub enum Reason {
    #[strum(serialize = "a marker of the registry stands in it")]
    Marker,
    #[strum(serialize = "a word of it is a bot's name")]
    BotsName,
    #[strum(serialize = "it names a page, a host or a mail address")]
    Contact,
    #[strum(serialize = "it says `compatible; Name` as bots do")]
    Compatible,
    #[strum(serialize = "it is empty")]
    Empty,
    #[strum(serialize = "it names a program that tests, watches or renders pages")]
    NamesTool,
    #[strum(serialize = "it names neither a browser nor a system that people use")]
    NoShape,
    #[strum(serialize = "a program added itself to a browser's string")]
    AddedToBrowser,
    #[strum(serialize = "it is a browser's string")]
    Browser,
    #[strum(serialize = "it names a system that people use")]
    System,
}

impl Reason {
    /// The reason in words for people.
    pub fn in_words(self) -> &'static str {
        self.into()
    }
}

/// The reason for the claim of a user agent. `words` are its shape and whether it names a tool.
pub fn reason(text: &[u8], words: Words, claim: Claim) -> Reason {
    match claim {
        Claim::Known(_) | Claim::Token(_) => Reason::Marker,
        Claim::Other if words_outside_addresses(text).any(|(_, word)| names_bot(word)) => {
            Reason::BotsName
        }
        Claim::Other
            if names_contact(text) || names_host(text, ends_host) || names_host_of_bot(text) =>
        {
            Reason::Contact
        }
        Claim::Other => Reason::Compatible,
        Claim::Tool if text.trim_ascii().is_empty() => Reason::Empty,
        Claim::Tool if words.names_tool => Reason::NamesTool,
        Claim::Tool if words.shape == Shape::None => Reason::NoShape,
        Claim::Tool => Reason::AddedToBrowser,
        Claim::Nobody if words.shape == Shape::Browser => Reason::Browser,
        Claim::Nobody => Reason::System,
    }
}

/// Whether the string has a `+`, an `@` or `://`, so that it may name a page or an address and is
/// worth a closer look.
pub fn may_name_contact(text: &[u8]) -> bool {
    memchr::memchr3_iter(b'+', b'@', b':', text)
        .any(|at| text[at] != b':' || text[at..].starts_with(b"://"))
}

/// Whether a browser's string is a bot's: it names a contact, `compatible; Name` behind the
/// browser, or a word that ends in bot, crawler or spider where browsers have their products.
fn is_bot_in_browser(text: &[u8]) -> bool {
    let comment = first_comment(text);
    let is_phone = !device_part(text).is_empty()
        || begins_with_any(
            &text[comment.start..],
            &[b"iphone", b"ipad", b"ipod", b"midp"],
        );
    let is_explorer = contains(text, b"msie ") || contains(text, b"trident/");
    let names_contact = if is_phone {
        // Apps of phones add the page of their maker, and every comment may name the model:
        // `(Linux; Android 9; X20 PRO) ... Instagram 237.0 (28/9; CUBOT; X20 PRO)`.
        contains(text, b"+http") || names_host(text, is_page_of_host)
    } else if is_explorer || contains(text, b"; u; ") {
        // Shops and providers put their names into the comment of Internet Explorer, and add-ons
        // theirs into the string of old Firefox: `Supplied by Tesco.net`, `Ant.com Toolbar 1.6`.
        names_contact(text)
            || names_host(text, is_page_of_host)
            || names_www(text)
            || is_explorer && names_host(&text[comment.end..], ends_host)
    } else {
        names_contact(text) || names_host(text, ends_host)
    };
    if names_contact || names_host_of_bot(text) || is_compatible_program(text, &comment) {
        return true;
    }
    has_bots_name(text, is_phone)
}

/// Whether an app's string is a bot's: a word outside of addresses is a bot's name, or the first
/// comment begins with `compatible;` and has a page.
fn is_bot_in_app(text: &[u8]) -> bool {
    const PHONES: [&[u8]; 5] = [b"andr", b"iphone", b"ipad", b"mobile", b"midp"];
    let comment = &text[first_comment(text)];
    begins_with(comment, b"compatible;") && has_page(comment)
        || has_bots_name(text, contains_any(text, &PHONES))
}

/// Whether a word outside of addresses is a bot's name. Words in the comments of a phone do not
/// count, because a model may be called anything, nor do words behind `like`.
fn has_bots_name(text: &[u8], is_phone: bool) -> bool {
    words_outside_addresses(text).any(|(begin, word)| {
        names_bot(word)
            && !(is_phone && is_in_comment(&text[..begin]))
            && !names_another_program(&text[..begin])
    })
}

/// Whether a part of a word ends as bots' names do: `Baiduspider-ads`, `RankBotEU`,
/// `Luminator-robots`. A part ends before a sign, a digit or a capital letter; a plural counts.
fn names_bot(word: &[u8]) -> bool {
    (1..=word.len()).any(|end| {
        let (until, after) = word.split_at(end);
        let after = after.strip_prefix(b"s").unwrap_or(after);
        let ends_part = after.first().is_none_or(|next| {
            !next.is_ascii_alphabetic()
                || next.is_ascii_uppercase() && until.last().is_some_and(u8::is_ascii_lowercase)
        });
        ends_part && is_called_bot(until)
    })
}

/// Whether a word or a comment is a host that begins with `www.`.
fn names_www(text: &[u8]) -> bool {
    contains(text, b" www.") || contains(text, b"(www.")
}

/// Whether the string names a host the way crawlers name their page, without its scheme:
/// `+probely.com/sos`.
fn names_host_of_bot(text: &[u8]) -> bool {
    memchr::memchr_iter(b'+', text).any(|at| {
        let begins_word = at == 0 || matches!(text[at - 1], b' ' | b'(' | b';');
        begins_word && is_mail_host(&text[at + 1..])
    })
}

/// Whether the text behind `before` stands in brackets, round or square, that `before` left open.
fn is_in_comment(before: &[u8]) -> bool {
    before.iter().fold(0, |depth, byte| match byte {
        b'(' | b'[' => depth + 1,
        b')' | b']' => depth - 1,
        _ => depth,
    }) > 0
}

/// Browsers and systems that browsers name behind `compatible;`.
const COMPATIBLE: [&[u8]; 12] = [
    b"msie",
    b"mozilla",
    b"applewebkit",
    b"firefox",
    b"chrome",
    b"opera",
    b"konqueror",
    b"windows",
    b"iphone",
    b"android",
    b"version",
    b"compatible",
];

/// Whether `compatible; Name` introduces another program than a browser: in a comment behind the
/// first, or in the first (`first`: the place of its text) with a version and before an engine. Old
/// versions of Internet Explorer repeat their own string in a comment, which does not count.
fn is_compatible_program(text: &[u8], first: &Range<usize>) -> bool {
    for at in first.start + 1..text.len() {
        let before = &text[..at];
        if let Some(name) = name_of_compatible(&text[at..])
            && matches!(
                name.first(),
                Some(b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'+')
            )
            && !begins_with_any(name, &COMPATIBLE)
            && !before.ends_with(b"Mozilla/4.0 (")
            && !before.ends_with(b"Mozilla/5.0 (")
        {
            return true;
        }
    }
    let Some(name) = name_of_compatible(&text[first.clone()]) else {
        return false;
    };
    let behind = &text[first.end..];
    let mut octets = name.iter();
    let end = octets.position(|&byte| !is_token_byte(byte));
    (begins_with(behind, b") applewebkit/") || begins_with(behind, b") gecko/"))
        && end.is_some_and(|end| has_version(&name[end..]))
        && !begins_with_any(name, &COMPATIBLE)
}

/// What follows the `compatible;` that a text begins with.
fn name_of_compatible(text: &[u8]) -> Option<&[u8]> {
    const WORD: &[u8] = b"compatible;";
    begins_with(text, WORD).then(|| text[WORD.len()..].trim_ascii_start())
}

/// Whether the string names a host, at the beginning of a word or of a comment:
/// `adbeat.com/policy`, `(scope3.com)`. `is_end` decides by the text from the host's top-level
/// domain on. The names of apps, which stand the other way round (`com.zhiliaoapp.musically`), and
/// the pages of browsers' makers do not count.
fn names_host(text: &[u8], is_end: impl Fn(&[u8]) -> bool) -> bool {
    let mut hosts = memchr::memchr_iter(b'.', text).filter(|&dot| {
        let label = text[..dot]
            .iter()
            .rev()
            .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'-')
            .count();
        let begin = dot - label;
        let begins = begin == 0 || matches!(text[begin - 1], b' ' | b'(');
        // A program that shows documents speaks for the person who reads them: `(via
        // docs.google.com/viewer)`.
        label >= 3
            && begins
            && text[begin].is_ascii_alphabetic()
            && !ends_with(&text[..begin], b"via ")
    });
    hosts.any(|dot| is_end(host_end(&text[dot..]))) && !names_page_of_browser(text)
}

/// Whether a text begins with a common top-level domain of three letters and a path that begins
/// with a letter: `.com/policy`. The string of a phone names many hosts without a path.
fn is_page_of_host(text: &[u8]) -> bool {
    matches!(text, [_, _, _, _, b'/', first, ..] if first.is_ascii_alphabetic()) && ends_host(text)
}

/// Whether a string without any shape is a bot's: one of its words says so, it says where it can be
/// reached, or it has the form in which bots say who they are, `Mozilla/5.0 (compatible;
/// Name/1.0)`.
fn is_bot_alone(text: &[u8]) -> bool {
    let says_so = words_of(text, |byte| byte.is_ascii_alphanumeric()).any(|(begin, word)| {
        let is_bots = begins_with_any(word, &STEMS)
            || BOT_ENDINGS
                .iter()
                .chain(&STEMS)
                .any(|end| ends_with(word, end));
        is_bots && !names_another_program(&text[..begin])
    });
    says_so
        || names_contact(text)
        || names_host_of_bot(text)
        || contains(text, b"www.")
        || introduces_something(text)
}

/// Whether something stands behind `compatible;` anywhere. Proxies send `Mozilla/4.0 (compatible;)`
/// in place of people's strings, which introduces nothing.
fn introduces_something(text: &[u8]) -> bool {
    (0..text.len()).any(|at| {
        let name = name_of_compatible(&text[at..]);
        name.is_some_and(|name| !matches!(name, [] | [b')', ..]))
    })
}

/// Whether something stands behind the engine where browsers have `(KHTML, like Gecko)` alone:
/// `(KHTML, like Gecko; Google Web Preview)`, `(KHTML, like Gecko, Foregenix)`. On phones that is a
/// proxy of a person's browser: `googleweblight`. Old browsers name Safari there, and consoles what
/// films they show.
fn adds_to_engine(text: &[u8]) -> bool {
    const ENGINE: &[u8] = b"(khtml, like gecko";
    let Some(at) = find(text, ENGINE) else {
        return false;
    };
    let rest = &text[at + ENGINE.len()..];
    let added = &rest[..rest
        .iter()
        .position(|&byte| byte == b')')
        .unwrap_or(rest.len())];
    let adds = match added {
        [b';', ..] => true,
        [b',', name @ ..] => !name.contains(&b',') && !contains(name, b"safari"),
        _ => false,
    };
    adds && !contains(text, b"mobile")
}

/// Whether the string names a page or a mail address. Not if `from: ` stands before the last of
/// them, or if the page is that of a browser's maker.
fn names_contact(text: &[u8]) -> bool {
    last_contact(text).is_some_and(|at| !ends_with(&text[..at], b"from: "))
        && !names_page_of_browser(text)
}

/// Whether the string names the page of a browser's maker: `QtWeb Internet Browser/3.8.5
/// http://www.QtWeb.net`, or the component `Embedded Web Browser from: http://bsalsa.com/`.
fn names_page_of_browser(text: &[u8]) -> bool {
    contains_any(
        text,
        &[
            b"bsalsa.com",
            b"embeddedwb",
            b"qtweb.net",
            b"avantbrowser.com",
        ],
    )
}

/// Whether a text ends in bot, crawler, spider or scraper: then [`says_bot`] and the like have to
/// look at the whole string.
pub fn is_hint(until: &[u8]) -> bool {
    // Most words end in other letters than these, the last letters of the four.
    until
        .last()
        .is_some_and(|last| matches!(last | 0x20, b't' | b'r'))
        && is_called_bot(until)
}

/// Whether a part of a word, before a sign or a capital letter, or a plural is such a hint
/// (`is_hint`): `RankBotEU`, `robots`.
pub fn has_hint_inside_word(text: &[u8]) -> bool {
    memchr::memchr3_iter(b't', b'r', b's', text).any(|at| {
        let goes_on = text.get(at + 1).is_some_and(u8::is_ascii_lowercase);
        !goes_on
            && is_hint(if text[at] == b's' {
                &text[..at]
            } else {
                &text[..=at]
            })
    })
}

/// Whether a token ends in bot, crawler, spider or scraper, without regard to case.
pub fn is_called_bot(token: &[u8]) -> bool {
    BOT_ENDINGS.iter().any(|word| ends_with(token, word))
}

/// Words that many bots say of themselves, and that name none.
const GENERIC: [&[u8]; 5] = [b"bot", b"crawler", b"spider", b"scraper", b"robot"];

/// Whether a name is a word for bots in general: `bot`, `Crawler`.
pub fn is_generic(name: &[u8]) -> bool {
    GENERIC.iter().any(|word| name.eq_ignore_ascii_case(word))
}

/// The name that a bot gives itself: the first word outside of addresses that ends in bot, crawler,
/// spider or scraper and has more letters, else the word that `compatible;` introduces, else the
/// word that it begins with, unless that is every browser's, else a product that is no browser's,
/// else the first generic word. At most 64 bytes of it; `None` if it has no such word.
pub fn calls_itself(user_agent: &[u8]) -> Option<&str> {
    let (_, word) = name_of(user_agent)?;
    std::str::from_utf8(&word[..word.len().min(MAX_NAME)]).ok()
}

/// The name that a bot gives itself (`calls_itself`), if that tells it from other programs; else
/// `None`: `Price` of `Price checker (+http://...)` is only a part of a name, `bot` is generic, and
/// a name of more than 64 bytes is none.
pub fn product_name(user_agent: &[u8]) -> Option<&str> {
    let (begin, word) = name_of(user_agent)?;
    let after = &user_agent[begin + word.len()..];
    let is_whole = is_called_bot(word) || ends_part(after) || introduces_itself(after);
    std::str::from_utf8(word)
        .ok()
        .filter(|_| is_whole && word.len() <= MAX_NAME && !is_generic(word))
}

/// The name that a bot gives itself, whole, and where it begins: see `calls_itself`.
fn name_of(user_agent: &[u8]) -> Option<(usize, &[u8])> {
    let mut called_bot = free_words(user_agent);
    if let Some(found) = called_bot.find(|(_, word)| is_called_bot(word) && !is_generic(word)) {
        return Some(found);
    }
    if let Some(found) = introduced(user_agent)
        && !is_generic(found.1)
    {
        return Some(found);
    }
    let first = words(user_agent).find(|(_, word)| !word.is_empty());
    if let Some((0, word)) = first
        && !word.eq_ignore_ascii_case(b"mozilla")
    {
        return first;
    }
    let mut with_version = free_words(user_agent);
    with_version
        .find(|(begin, word)| has_version(&user_agent[begin + word.len()..]) && !is_of_people(word))
        .or_else(|| free_words(user_agent).find(|(_, word)| is_generic(word)))
}

/// The words of a user agent that are no part of an address, a query or an escape.
fn free_words(user_agent: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    words(user_agent).filter(|(begin, word)| {
        let before = user_agent[..*begin].last();
        !word.is_empty() && before.is_none_or(|byte| !b"/:@=?&#%.".contains(byte))
    })
}

/// The name in `(compatible; Name/1.0`, which is how bots introduce themselves, and where it
/// begins. `None` for `MSIE`, because Internet Explorer introduces itself so, too.
fn introduced(text: &[u8]) -> Option<(usize, &[u8])> {
    const INTRODUCTION: &[u8] = b"compatible; ";
    let begin = find(text, INTRODUCTION)? + INTRODUCTION.len();
    let name = text[begin..].split(|&byte| !is_token_byte(byte)).next()?;
    (!name.is_empty() && !name.eq_ignore_ascii_case(b"msie")).then_some((begin, name))
}

/// Whether the string says that it is a bot: it names a page the way crawlers do, `+http`, and has
/// not the shape of a browser; or one of its product tokens ends in bot, crawler or spider and has
/// a version right behind it (`FooBot/1.0`), or ends its part of the string with a page or a mail
/// address somewhere after it.
pub fn says_bot(text: &[u8]) -> bool {
    // Podcast players name their page as crawlers do: `Overcast/3.0 (+http://overcast.fm/; iOS
    // podcast app)`.
    (contains(text, b"+http") || names_host_of_bot(text))
        && !has_shape_of_browser(text)
        && !contains(text, b"podcast app")
        || says_bots_name(text)
}

/// Whether a page that the string names may be that of the maker of an app on a phone: it names a
/// phone's system, and has no part of bots' names. `CoolerFM/1.0 iPhone/15 +https://cooler.fm`.
fn is_apps_page(text: &[u8]) -> bool {
    const PHONES: [&[u8]; 6] = [
        b"android",
        b"iphone",
        b"ipad",
        b"ios/",
        b"ios ",
        b"cfnetwork/",
    ];
    contains_any(text, &PHONES) && !contains_any(text, &STEMS)
}

/// Whether a product token of the string is a bot's name, as [`says_bot`] says: with a version
/// behind it, or at the end of its part with a page or mail address after it. Within the
/// description of a device only a token with a version counts.
fn says_bots_name(text: &[u8]) -> bool {
    // Found when first asked for: most strings need neither.
    let mut device = None;
    let mut contact = None;
    for (begin, token) in words(text) {
        let end = begin + token.len();
        let Some(word) = BOT_ENDINGS.iter().find(|word| ends_with(token, word)) else {
            continue;
        };
        let before = &text[..begin];
        let after = &text[end..];
        // Part of an address, or `like FooBot`, which names another program.
        if before.last().is_some_and(|byte| b"/:@=?&#%".contains(byte))
            || names_another_program(before)
        {
            continue;
        }
        let version = has_version(after);
        let ends = ends_part(after) || token.len() > word.len() && introduces_itself(after);
        if !version && !ends {
            continue;
        }
        let (device, device_has_page) = device.get_or_insert_with(|| {
            let part = device_part(text);
            (part.clone(), has_page(&text[part]))
        });
        // In the device part a model's name may look like anything, but has no version: `(Linux;
        // Android 6.0; FooBot/1.0)`. Cubot is a maker of phones: what ends so counts only with a
        // page.
        let counts = if device.contains(&begin) {
            version && (*device_has_page || !ends_with(token, b"cubot"))
        } else {
            version
                || contact
                    .get_or_insert_with(|| last_contact(text))
                    .is_some_and(|contact| contact >= end)
        };
        if counts {
            return true;
        }
    }
    false
}

/// Whether the string has a word of the engines of people's browsers, without regard to case.
pub fn has_shape_of_browser(text: &[u8]) -> bool {
    const ENGINES: [&[u8]; 8] = [
        b"chrome/",
        b"safari/",
        b"firefox/",
        b"gecko",
        b"applewebkit",
        b"msie ",
        b"trident/",
        b"presto/",
    ];
    contains_any(text, &ENGINES)
}

/// The place of the first comment's text, if it describes a device: it begins with `Linux`,
/// `Mobile` or `Tablet`, or names Android, as in `(Linux; Android 10; CUBOT J9)`. Else an empty
/// range.
fn device_part(text: &[u8]) -> Range<usize> {
    let part = first_comment(text);
    let comment = &text[part.clone()];
    // The last two stand for browsers of simple phones, which name the model and no system.
    let is_device = begins_with_any(comment, &[b"linux;", b"linux,", b"mobile;", b"tablet;"]);
    if is_device || contains(comment, b"android") {
        part
    } else {
        0..0
    }
}

/// The place of the text in the first round brackets, with brackets inside; up to the end of the
/// string if they are not closed. An empty range without brackets.
fn first_comment(text: &[u8]) -> Range<usize> {
    let Some(open) = text.iter().position(|&byte| byte == b'(') else {
        return 0..0;
    };
    let mut depth = 0_usize;
    let close = text[open..].iter().position(|&byte| {
        // Comments nest: `(Linux; Android 11; moto g power (2022))`.
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    open + 1..close.map_or(text.len(), |close| open + close)
}

/// Whether a token is followed by a version: `/1.0`, `/v1`.
fn has_version(after: &[u8]) -> bool {
    match after {
        [b'/', first, ..] if first.is_ascii_digit() => true,
        [b'/', b'v' | b'V', first, ..] => first.is_ascii_digit(),
        _ => false,
    }
}

/// Whether a token ends its part of the string, by the text behind it: `FooBot;`, `FooBot)`, or the
/// end of the string. Not so `CUBOT J9`.
fn ends_part(after: &[u8]) -> bool {
    matches!(after, [] | [b'/' | b';' | b')' | b',', ..])
}

/// Whether a name is followed by what crawlers put behind theirs: `FooBot (+https://...`, `FooBot
/// http://...`.
fn introduces_itself(after: &[u8]) -> bool {
    let [b' ', rest @ ..] = after else {
        return false;
    };
    matches!(rest, [b'(' | b'+' | b'-' | b'<', ..]) || begins_with(rest, b"http")
}

fn has_page(text: &[u8]) -> bool {
    contains(text, b"http://") || contains(text, b"https://")
}

/// Where the last page or mail address of the string begins.
fn last_contact(text: &[u8]) -> Option<usize> {
    (0..text.len()).rev().find(|&at| {
        let is_page = begins_with(&text[at..], b"http://") || begins_with(&text[at..], b"https://");
        is_page
            || text[at] == b'@'
                && at > 0
                && is_token_byte(text[at - 1])
                && is_mail_host(&text[at + 1..])
    })
}
