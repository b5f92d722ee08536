//! [`classify_unlisted`] classifies a `User-Agent` that names no known crawler: it belongs to a
//! visitor, a bot or a tool. The words in the `User-Agent` decide. A browser or an app is a visitor
//! unless it calls itself a bot. Any other program is a bot if it calls itself one, otherwise a
//! tool.
//!
//! A browser or an app needs a clear sign to count as a bot: there are phones with names such as
//! `Spider 8`, `M bot 51` and `POWER BOT`, and a visitor who is taken for a bot may be blocked.

use super::Claim;
use super::address::{
    from_last_dot, starts_with_mail_host, starts_with_tld, words_outside_addresses,
};
use super::byte_search::{
    contains_any_ignore_case, contains_ignore_case, ends_with_ignore_case, find_ignore_case,
    is_before_other_program, is_token_byte, starts_with_any_ignore_case, starts_with_ignore_case,
    words, words_by,
};
use super::program_kind::{
    BOT_ENDINGS, ProgramKind, UserAgentTraits, ends_with_bot_word, has_fetcher_word, has_tool_word,
};
use super::visitors::is_visitor_word;
use Claim::*;
use std::ops::Range;

/// The longest name of a bot. Tables that are keyed by such names stay small.
const MAX_NAME: usize = 64;

/// Beginnings and endings of words by which programs call themselves bots.
const BOT_WORD_STEMS: [&[u8]; 5] = [b"bot", b"crawl", b"spider", b"scrap", b"robot"];

/// The claim of a user agent without markers. A string that says it is a bot's is `UnknownBot`, one
/// that names a tool or is unrecognised is `Tool`, and any other is `Visitor`. How strict the rules
/// are depends on the kind of program. An empty string is a tool's.
pub fn classify_unlisted(text: &[u8], traits: UserAgentTraits) -> Claim {
    use ProgramKind::*;

    // Browsers and apps say who they are.
    if text.iter().all(u8::is_ascii_whitespace) {
        return Tool;
    }
    // A string that begins like a browser's is judged as a browser's. An Apple app may have a
    // browser's name: `Safari%20Technology%20Preview/19614 CFNetwork/1474 Darwin/23.0.0`.
    let kind = match traits.kind {
        App | Desktop if starts_with_ignore_case(text, b"mozilla/") => Browser,
        Browser
            if !starts_with_ignore_case(text, b"mozilla/")
                && contains_ignore_case(text, b" cfnetwork/") =>
        {
            App
        }
        kind => kind,
    };
    let declares_bot = match kind {
        Browser => declares_bot(text) || is_bot_in_browser_string(text),
        App if may_be_app_page(text) => {
            has_bot_product_token(text)
                || contains_host_after_plus(text)
                || is_bot_in_app_string(text)
        }
        App => declares_bot(text) || is_bot_in_app_string(text),
        // A visitor's desktop program has no reason to give a contact.
        Desktop => declares_bot(text) || is_bot_in_app_string(text) || contains_contact(text),
        Unrecognised => declares_bot(text) || is_bot_in_unrecognised(text),
    };
    if declares_bot {
        return UnknownBot;
    }
    let is_tool = match kind {
        Browser => traits.names_tool || has_tool_word(text, &device_comment(text)),
        App | Desktop => traits.names_tool || has_fetcher_word(text),
        Unrecognised => true,
    };
    if is_tool { Tool } else { Visitor }
}

/// Whether the string has a `+`, an `@` or `://`. Without one it contains no URL or mail address.
pub fn may_contain_contact(text: &[u8]) -> bool {
    memchr::memchr3_iter(b'+', b'@', b':', text)
        .any(|at| text[at] != b':' || text[at..].starts_with(b"://"))
}

/// Whether the string of a browser is a bot's: it has a contact, `compatible; Name` behind the
/// browser, or a word that ends in bot, crawler or spider where browsers have their products.
fn is_bot_in_browser_string(text: &[u8]) -> bool {
    let comment = first_comment(text);
    let is_phone = !device_comment(text).is_empty()
        || starts_with_any_ignore_case(
            &text[comment.start..],
            &[b"iphone", b"ipad", b"ipod", b"midp"],
        );
    let is_explorer =
        contains_ignore_case(text, b"msie ") || contains_ignore_case(text, b"trident/");
    let contains_contact = if is_phone {
        // Phone apps add the page of their maker, and every comment may name the model:
        // `(Linux; Android 9; X20 PRO) ... Instagram 237.0 (28/9; CUBOT; X20 PRO)`.
        contains_ignore_case(text, b"+http") || contains_host(text, starts_with_tld_and_path)
    } else if is_explorer || contains_ignore_case(text, b"; u; ") {
        // Shops and providers put their names into the comment of Internet Explorer, and add-ons
        // theirs into the string of old Firefox: `Supplied by Tesco.net`, `Ant.com Toolbar 1.6`.
        contains_contact(text)
            || contains_host(text, starts_with_tld_and_path)
            || contains_any_ignore_case(text, &[b" www.", b"(www."])
            || is_explorer && contains_host(&text[comment.end..], starts_with_tld)
    } else {
        contains_contact(text) || contains_host(text, starts_with_tld)
    };
    if contains_contact
        || contains_host_after_plus(text)
        || has_compatible_program(text, comment.start)
    {
        return true;
    }
    has_bot_name_word(text, is_phone)
}

/// Whether the string of an app is a bot's: a word outside of addresses is a bot's name, or the first
/// comment begins with `compatible;` and has a URL.
fn is_bot_in_app_string(text: &[u8]) -> bool {
    const PHONES: [&[u8]; 5] = [b"andr", b"iphone", b"ipad", b"mobile", b"midp"];
    let comment = &text[first_comment(text)];
    starts_with_ignore_case(comment, b"compatible;") && contains_url(comment)
        || has_bot_name_word(text, contains_any_ignore_case(text, &PHONES))
}

/// Whether a word outside of addresses is a bot's name. Words in the comments of a phone do not
/// count, because a model may be called anything, nor do words behind `like`.
fn has_bot_name_word(text: &[u8], is_phone: bool) -> bool {
    words_outside_addresses(text).any(|(begin, word)| {
        is_bot_name_word(word)
            && !(is_phone && is_inside_brackets(&text[..begin]))
            && !is_before_other_program(&text[..begin])
    })
}

/// Whether a part of a word ends like the name of a bot: `Baiduspider-ads`, `RankBotEU`,
/// `Luminator-robots`. A part ends before a sign, a digit or a capital letter; a plural counts.
fn is_bot_name_word(word: &[u8]) -> bool {
    (1..=word.len()).any(|end| {
        let (until, after) = word.split_at(end);
        let after = after.strip_prefix(b"s").unwrap_or(after);
        let is_product_end = after.first().is_none_or(|next| {
            !next.is_ascii_alphabetic()
                || next.is_ascii_uppercase() && until.last().is_some_and(u8::is_ascii_lowercase)
        });
        is_product_end && ends_with_bot_word(until)
    })
}

/// Whether the string has a host behind a `+`, as crawlers give their page: `+probely.com/sos`.
fn contains_host_after_plus(text: &[u8]) -> bool {
    memchr::memchr_iter(b'+', text).any(|at| {
        let begins_word = at == 0 || matches!(text[at - 1], b' ' | b'(' | b';');
        begins_word && starts_with_mail_host(&text[at + 1..])
    })
}

/// Whether a bracket, round or square, is open at the end of `before`.
fn is_inside_brackets(before: &[u8]) -> bool {
    before.iter().fold(0, |depth, byte| match byte {
        b'(' | b'[' => depth + 1,
        b')' | b']' => depth - 1,
        _ => depth,
    }) > 0
}

/// Browsers and systems that browsers name behind `compatible;`.
const COMPATIBLE_BROWSERS: [&[u8]; 12] = [
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

/// Whether `compatible; Name` introduces another program than a browser, behind the beginning of the
/// first comment. Old versions of Internet Explorer repeat their own string in a comment, which does
/// not count.
fn has_compatible_program(text: &[u8], comment_start: usize) -> bool {
    (comment_start + 1..text.len()).any(|at| {
        let before = &text[..at];
        strip_compatible(&text[at..]).is_some_and(|name| {
            matches!(
                name.first(),
                Some(b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'+')
            ) && !starts_with_any_ignore_case(name, &COMPATIBLE_BROWSERS)
                && !before.ends_with(b"Mozilla/4.0 (")
                && !before.ends_with(b"Mozilla/5.0 (")
        })
    })
}

/// The text behind a leading `compatible;`.
fn strip_compatible(text: &[u8]) -> Option<&[u8]> {
    const WORD: &[u8] = b"compatible;";
    starts_with_ignore_case(text, WORD).then(|| text[WORD.len()..].trim_ascii_start())
}

/// Whether a word or a comment begins with a host: `adbeat.com/policy`, `(scope3.com)`. `is_end`
/// accepts the text from the top-level domain on. App ids such as `com.zhiliaoapp.musically` and the
/// pages of browser makers do not count.
fn contains_host(text: &[u8], is_end: impl Fn(&[u8]) -> bool) -> bool {
    let mut hosts = memchr::memchr_iter(b'.', text).filter(|&dot| {
        let label = text[..dot]
            .iter()
            .rev()
            .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'-')
            .count();
        let begin = dot - label;
        let begins = begin == 0 || matches!(text[begin - 1], b' ' | b'(');
        // A document viewer forwards the visitor's string: `(via docs.google.com/viewer)`.
        label >= 3
            && begins
            && text[begin].is_ascii_alphabetic()
            && !ends_with_ignore_case(&text[..begin], b"via ")
    });
    hosts.any(|dot| is_end(from_last_dot(&text[dot..]))) && !contains_browser_maker_page(text)
}

/// Whether a text begins with a common top-level domain of three letters and a path that begins with
/// a letter: `.com/policy`. Strings of phones have many hosts without a path.
fn starts_with_tld_and_path(text: &[u8]) -> bool {
    matches!(text, [_, _, _, _, b'/', first, ..] if first.is_ascii_alphabetic())
        && starts_with_tld(text)
}

/// Whether an unrecognised string is a bot's: a word says so, it has a contact, or it has the form
/// `Mozilla/5.0 (compatible; Name/1.0)`.
fn is_bot_in_unrecognised(text: &[u8]) -> bool {
    let says_so = words_by(text, |byte| byte.is_ascii_alphanumeric()).any(|(begin, word)| {
        let is_bots = starts_with_any_ignore_case(word, &BOT_WORD_STEMS)
            || BOT_ENDINGS
                .iter()
                .chain(&BOT_WORD_STEMS)
                .any(|end| ends_with_ignore_case(word, end));
        is_bots && !is_before_other_program(&text[..begin])
    });
    says_so
        || contains_contact(text)
        || contains_host_after_plus(text)
        || contains_ignore_case(text, b"www.")
        || has_compatible_name(text)
}

/// Whether a name follows some `compatible;`. Proxies replace visitors' strings by `Mozilla/4.0
/// (compatible;)`, which has none.
fn has_compatible_name(text: &[u8]) -> bool {
    (0..text.len()).any(|at| {
        let name = strip_compatible(&text[at..]);
        name.is_some_and(|name| !matches!(name, [] | [b')', ..]))
    })
}

/// Whether the string has a URL or a mail address. Not if `from: ` stands before the last one, or if
/// it is the page of a browser maker.
fn contains_contact(text: &[u8]) -> bool {
    last_contact_start(text).is_some_and(|at| !ends_with_ignore_case(&text[..at], b"from: "))
        && !contains_browser_maker_page(text)
}

/// Whether the string has the page of a browser maker: `QtWeb Internet Browser/3.8.5
/// http://www.QtWeb.net`, `Embedded Web Browser from: http://bsalsa.com/`.
fn contains_browser_maker_page(text: &[u8]) -> bool {
    contains_any_ignore_case(
        text,
        &[
            b"bsalsa.com",
            b"embeddedwb",
            b"qtweb.net",
            b"avantbrowser.com",
        ],
    )
}

/// Whether a word or its part before a sign or a capital letter ends in bot, crawler, spider or
/// scraper, a plural included: `RankBotEU`, `robots`.
pub fn has_bot_word_part(text: &[u8]) -> bool {
    memchr::memchr3_iter(b't', b'r', b's', text).any(|at| {
        let goes_on = text.get(at + 1).is_some_and(u8::is_ascii_lowercase);
        let end = if text[at] == b's' { at } else { at + 1 };
        !goes_on && ends_with_bot_word(&text[..end])
    })
}

/// Words for bots in general, which are no names.
const GENERIC_BOT_NAMES: [&[u8]; 5] = [b"bot", b"crawler", b"spider", b"scraper", b"robot"];

/// Whether a name is a word for bots in general: `bot`, `Crawler`.
pub fn is_generic_bot_name(name: &[u8]) -> bool {
    GENERIC_BOT_NAMES
        .iter()
        .any(|word| name.eq_ignore_ascii_case(word))
}

/// The name that a bot gives itself, cut to 64 bytes: the first word outside of addresses that ends
/// in bot, crawler, spider or scraper and has more letters; else the word behind `compatible;`; else
/// the first word unless it is `Mozilla`; else a product that is no browser's; else a generic word.
pub fn self_given_name(user_agent: &[u8]) -> Option<&str> {
    let (_, word) = find_self_given_name(user_agent)?;
    std::str::from_utf8(&word[..word.len().min(MAX_NAME)]).ok()
}

/// The name that a bot gives itself, if it is distinctive. `None` for a part of a name (`Price` of
/// `Price checker (+http://...)`), a generic one (`bot`), and one of more than 64 bytes.
pub fn product_name(user_agent: &[u8]) -> Option<&str> {
    let (begin, word) = find_self_given_name(user_agent)?;
    let after = &user_agent[begin + word.len()..];
    let is_whole =
        ends_with_bot_word(word) || is_product_end(after) || starts_with_introduction(after);
    std::str::from_utf8(word)
        .ok()
        .filter(|_| is_whole && word.len() <= MAX_NAME && !is_generic_bot_name(word))
}

/// The offset and the whole text of [`self_given_name`].
fn find_self_given_name(user_agent: &[u8]) -> Option<(usize, &[u8])> {
    let mut called_bot = name_candidates(user_agent);
    if let Some(found) =
        called_bot.find(|(_, word)| ends_with_bot_word(word) && !is_generic_bot_name(word))
    {
        return Some(found);
    }
    if let Some(found) = find_compatible_name(user_agent)
        && !is_generic_bot_name(found.1)
    {
        return Some(found);
    }
    let first = words(user_agent).find(|(_, word)| !word.is_empty());
    if let Some((0, word)) = first
        && !word.eq_ignore_ascii_case(b"mozilla")
    {
        return first;
    }
    let mut with_version = name_candidates(user_agent);
    with_version
        .find(|(begin, word)| {
            starts_with_version(&user_agent[begin + word.len()..]) && !is_visitor_word(word)
        })
        .or_else(|| name_candidates(user_agent).find(|(_, word)| is_generic_bot_name(word)))
}

/// The words of a user agent, with their offsets, that are no part of an address, a query or an
/// escape.
fn name_candidates(user_agent: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    words(user_agent).filter(|(begin, word)| {
        let before = user_agent[..*begin].last();
        !word.is_empty() && before.is_none_or(|byte| !b"/:@=?&#%.".contains(byte))
    })
}

/// The offset and the text of the name in `compatible; Name/1.0`, by which bots introduce
/// themselves. `None` for `MSIE`: Internet Explorer has the same form.
fn find_compatible_name(text: &[u8]) -> Option<(usize, &[u8])> {
    const INTRODUCTION: &[u8] = b"compatible; ";
    let begin = find_ignore_case(text, INTRODUCTION)? + INTRODUCTION.len();
    let name = text[begin..].split(|&byte| !is_token_byte(byte)).next()?;
    (!name.is_empty() && !name.eq_ignore_ascii_case(b"msie")).then_some((begin, name))
}

/// Whether the string says that it is a bot: it gives its page as crawlers do (`+http`) without a
/// browser's engine, or [`has_bot_product_token`].
pub fn declares_bot(text: &[u8]) -> bool {
    // Podcast players give their page as crawlers do: `Overcast/3.0 (+http://overcast.fm/; iOS
    // podcast app)`.
    (contains_ignore_case(text, b"+http") || contains_host_after_plus(text))
        && !has_browser_engine(text)
        && !contains_ignore_case(text, b"podcast app")
        || has_bot_product_token(text)
}

/// Whether a page in the string may be that of a phone app's maker: the string has a phone's system
/// and no word of bots. `CoolerFM/1.0 iPhone/15 +https://cooler.fm`.
fn may_be_app_page(text: &[u8]) -> bool {
    const PHONES: [&[u8]; 6] = [
        b"android",
        b"iphone",
        b"ipad",
        b"ios/",
        b"ios ",
        b"cfnetwork/",
    ];
    contains_any_ignore_case(text, &PHONES) && !contains_any_ignore_case(text, &BOT_WORD_STEMS)
}

/// Whether a product token ends in bot, crawler, spider or scraper and has a version behind it
/// (`FooBot/1.0`), or ends its part of the string with a URL or mail address somewhere after it. In
/// the description of a device only a token with a version counts.
fn has_bot_product_token(text: &[u8]) -> bool {
    // Computed on first use: most strings need neither.
    let mut device = None;
    let mut contact = None;
    for (begin, token) in words(text) {
        let end = begin + token.len();
        let Some(word) = BOT_ENDINGS
            .iter()
            .find(|word| ends_with_ignore_case(token, word))
        else {
            continue;
        };
        let before = &text[..begin];
        let after = &text[end..];
        // Part of an address, or `like FooBot`, which names another program.
        if before.last().is_some_and(|byte| b"/:@=?&#%".contains(byte))
            || is_before_other_program(before)
        {
            continue;
        }
        let version = starts_with_version(after);
        let ends =
            is_product_end(after) || token.len() > word.len() && starts_with_introduction(after);
        if !version && !ends {
            continue;
        }
        let (device, device_has_page) = device.get_or_insert_with(|| {
            let part = device_comment(text);
            (part.clone(), contains_url(&text[part]))
        });
        // In the device part a model may have any name, but has no version: `(Linux; Android 6.0;
        // FooBot/1.0)`. Cubot is a maker of phones: such a name counts only with a URL.
        let counts = if device.contains(&begin) {
            version && (*device_has_page || !ends_with_ignore_case(token, b"cubot"))
        } else {
            version
                || contact
                    .get_or_insert_with(|| last_contact_start(text))
                    .is_some_and(|contact| contact >= end)
        };
        if counts {
            return true;
        }
    }
    false
}

/// Whether the string has a word of a browser's engine, without regard to case.
pub fn has_browser_engine(text: &[u8]) -> bool {
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
    contains_any_ignore_case(text, &ENGINES)
}

/// The range of the first comment if it describes a device: it begins with `Linux`, `Mobile` or
/// `Tablet`, or contains Android, as in `(Linux; Android 10; CUBOT J9)`. Else an empty range.
fn device_comment(text: &[u8]) -> Range<usize> {
    let part = first_comment(text);
    let comment = &text[part.clone()];
    // The last two are for browsers of simple phones, which give the model and no system.
    let is_device =
        starts_with_any_ignore_case(comment, &[b"linux;", b"linux,", b"mobile;", b"tablet;"]);
    if is_device || contains_ignore_case(comment, b"android") {
        part
    } else {
        0..0
    }
}

/// The range of the text in the first round brackets, nested ones included; up to the end of the
/// string if they are not closed. An empty range without brackets.
fn first_comment(text: &[u8]) -> Range<usize> {
    let Some(open) = memchr::memchr(b'(', text) else {
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

/// Whether a text begins with a version: `/1.0`, `/v1`.
fn starts_with_version(after: &[u8]) -> bool {
    match after {
        [b'/', first, ..] if first.is_ascii_digit() => true,
        [b'/', b'v' | b'V', first, ..] => first.is_ascii_digit(),
        _ => false,
    }
}

/// Whether the text behind a token ends its part of the string, as in `FooBot;`, `FooBot)`, or at
/// the end of the string. Not in `CUBOT J9`.
fn is_product_end(after: &[u8]) -> bool {
    matches!(after, [] | [b'/' | b';' | b')' | b',', ..])
}

/// Whether a text begins like the one that crawlers put behind their name: `FooBot (+https://...`,
/// `FooBot http://...`.
fn starts_with_introduction(after: &[u8]) -> bool {
    let [b' ', rest @ ..] = after else {
        return false;
    };
    matches!(rest, [b'(' | b'+' | b'-' | b'<', ..]) || starts_with_ignore_case(rest, b"http")
}

fn contains_url(text: &[u8]) -> bool {
    contains_any_ignore_case(text, &[b"http://", b"https://"])
}

/// The offset of the last URL or mail address.
fn last_contact_start(text: &[u8]) -> Option<usize> {
    (0..text.len()).rev().find(|&at| {
        starts_with_any_ignore_case(&text[at..], &[b"http://", b"https://"])
            || text[at] == b'@'
                && at > 0
                && is_token_byte(text[at - 1])
                && starts_with_mail_host(&text[at + 1..])
    })
}
