//! Whether a user agent that is in no list says by itself that it is a bot.
//!
//! Knows user agents as bytes; knows no list. Strict, because the words alone stand in the strings of people: phones
//! are called `Spider 8`, `M bot 51` and `POWER BOT`, and a person who is taken for a bot may be refused.

use super::octets::{ends_with, is_token_byte};
use std::ops::Range;

/// No bot's name is longer, and what is remembered by it stays small.
const MAX_NAME: usize = 64;

/// The words that bots end their names with.
const WORDS: [&[u8]; 3] = [b"bot", b"crawler", b"spider"];

/// Whether the word that ends here makes the string worth asking [`says_bot`]. A `+` does so, too: `+http` begins with
/// it.
pub fn is_hint(until: &[u8]) -> bool {
    // Most words end in other letters than these, the last letters of the three.
    until.last().is_some_and(|last| matches!(last | 0x20, b't' | b'r'))
        && WORDS.iter().any(|word| ends_with(until, word))
}

/// Whether a token says by itself that it is a bot's.
pub fn is_called_bot(token: &[u8]) -> bool {
    WORDS.iter().any(|word| ends_with(token, word))
}

/// What a bot calls itself: the first word that ends in bot, crawler or spider and is no part of an address, else the
/// word that it begins with, unless that is every browser's. At most 64 octets of it.
pub fn calls_itself(user_agent: &[u8]) -> Option<&str> {
    let words = || user_agent.split(|&byte| !is_token_byte(byte));
    let mut start = 0_usize;
    let mut free = words().filter(|word| {
        let before = start.checked_sub(1).and_then(|at| user_agent.get(at));
        start += word.len() + 1;
        !word.is_empty() && !before.is_some_and(|byte| b"/:@=?&#%.".contains(byte))
    });
    let first = words().next().filter(|word| !word.is_empty() && !word.eq_ignore_ascii_case(b"mozilla"));
    let word = free.find(|word| is_called_bot(word)).or(first)?;
    std::str::from_utf8(&word[..word.len().min(MAX_NAME)]).ok()
}

/// Whether the string says that it is a bot: it names a page the way crawlers do, `+http`, and has not the shape of a
/// browser; or one of its product tokens ends in bot, crawler or spider and has a version right behind it
/// (`FooBot/1.0`), or ends its part of the string with a page or a mail address somewhere after it.
pub fn says_bot(text: &[u8]) -> bool {
    if contains(text, b"+http") && !has_shape_of_browser(text) {
        return true;
    }
    // Found when first asked for: most strings need neither.
    let (mut device, mut contact) = (None, None);
    let mut start = 0;
    for token in text.split(|&byte| !is_token_byte(byte)) {
        let (begin, end) = (start, start + token.len());
        start = end + 1;
        let Some(word) = WORDS.iter().find(|word| ends_with(token, word)) else { continue };
        let (before, after) = (&text[..begin], &text[end..]);
        // Part of an address, or `like FooBot`, which names another program.
        if before.last().is_some_and(|byte| b"/:@=?&#%".contains(byte)) || names_another_program(before) {
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
        // In the device part a model's name may look like anything, so only a bot that gives its page there counts:
        // `(Linux; Android 6.0; FooBot/1.0; +http://foo.example)`.
        let counts = match device.contains(&begin) {
            true => version && *device_has_page,
            false => version || contact.get_or_insert_with(|| last_contact(text)).is_some_and(|contact| contact >= end),
        };
        if counts {
            return true;
        }
    }
    false
}

/// Whether what comes next is named for likeness: `FreshRSS/1.2 (like Googlebot)` is FreshRSS.
pub fn names_another_program(before: &[u8]) -> bool {
    ends_with(before, b"like ") || ends_with(before, b"following ")
}

/// Whether the string has what the strings of people's browsers have.
pub fn has_shape_of_browser(text: &[u8]) -> bool {
    const ENGINES: [&[u8]; 8] =
        [b"chrome/", b"safari/", b"firefox/", b"gecko", b"applewebkit", b"msie ", b"trident/", b"presto/"];
    ENGINES.iter().any(|engine| contains(text, engine))
}

/// The first comment, where it describes a device: `(Linux; Android 10; CUBOT J9)`. Empty where it does not.
fn device_part(text: &[u8]) -> Range<usize> {
    let Some(open) = text.iter().position(|&byte| byte == b'(') else { return 0..0 };
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
    let part = open + 1..close.map_or(text.len(), |close| open + close);
    let comment = &text[part.clone()];
    // The last two stand for browsers of simple phones, which name the model and no system.
    let begins = [&b"linux;"[..], b"linux,", b"mobile;", b"tablet;"];
    if begins.iter().any(|begin| begins_with(comment, begin)) || contains(comment, b"android") { part } else { 0..0 }
}

/// Whether a token is followed by a version: `/1.0`, `/v1`.
fn has_version(after: &[u8]) -> bool {
    match after {
        [b'/', first, ..] if first.is_ascii_digit() => true,
        [b'/', b'v' | b'V', first, ..] => first.is_ascii_digit(),
        _ => false,
    }
}

/// Whether a token ends its part of the string: `FooBot;`, `FooBot)`. Not so `CUBOT J9`.
fn ends_part(after: &[u8]) -> bool {
    matches!(after, [] | [b'/' | b';' | b')' | b',', ..])
}

/// Whether a name is followed by what crawlers put behind theirs: `FooBot (+https://...`, `FooBot http://...`.
fn introduces_itself(after: &[u8]) -> bool {
    let [b' ', rest @ ..] = after else { return false };
    matches!(rest, [b'(' | b'+' | b'-' | b'<', ..]) || begins_with(rest, b"http")
}

fn has_page(text: &[u8]) -> bool {
    contains(text, b"http://") || contains(text, b"https://")
}

/// Where the last page or mail address of the string begins.
fn last_contact(text: &[u8]) -> Option<usize> {
    let page = |at: usize| begins_with(&text[at..], b"http://") || begins_with(&text[at..], b"https://");
    let mail = |at: usize| text[at] == b'@' && at > 0 && is_token_byte(text[at - 1]) && is_mail_host(&text[at + 1..]);
    (0..text.len()).rev().find(|&at| page(at) || mail(at))
}

/// Whether a mail host begins here. The `10.0.4.1853` of `Ecosia ios@10.0.4.1853` is none: a top-level domain has no
/// digits.
fn is_mail_host(text: &[u8]) -> bool {
    let end = text.iter().position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'.' && *byte != b'-');
    let host = &text[..end.unwrap_or(text.len())];
    let mut labels = host.rsplit(|&byte| byte == b'.').skip_while(|label| label.is_empty());
    let top = labels.next().is_some_and(|label| label.len() >= 2 && label.iter().all(u8::is_ascii_alphabetic));
    top && labels.next().is_some_and(|label| !label.is_empty())
}

fn begins_with(text: &[u8], lower: &[u8]) -> bool {
    text.get(..lower.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(lower))
}

fn contains(text: &[u8], lower: &[u8]) -> bool {
    text.windows(lower.len()).any(|window| window.eq_ignore_ascii_case(lower))
}
