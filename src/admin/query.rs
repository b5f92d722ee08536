//! The query of a request to the read API: what is asked for by a name that is none, or with a value that cannot be
//! meant, is refused, lest somebody takes the answer to another question for the one to theirs.

use std::borrow::Cow;

/// Parameters by name, each once.
#[derive(Debug)]
pub struct Query<'q>(Vec<(Cow<'q, str>, Cow<'q, str>)>);

impl<'q> Query<'q> {
    /// Reads what stands behind the `?`; only these names are known.
    ///
    /// # Errors
    /// What is wrong with it, a line for each mistake.
    pub fn read(query: &'q str, known: &[&str]) -> Result<Query<'q>, String> {
        let (mut read, mut wrong): (Query<'q>, String) = (Query(Vec::new()), String::new());
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decoded(name), decoded(value));
            let mistake = if !known.contains(&&*name) {
                match known {
                    [] => format!("unknown parameter `{}`: this endpoint takes none", shown(&name)),
                    _ => format!("unknown parameter `{}`: this endpoint takes {}", shown(&name), known.join(", ")),
                }
            } else if value.is_empty() {
                format!("`{name}` has no value")
            } else if read.get(&name).is_some() {
                format!("`{name}` is given twice")
            } else {
                read.0.push((name, value));
                continue;
            };
            wrong.push_str(&mistake);
            wrong.push('\n');
        }
        if wrong.is_empty() { Ok(read) } else { Err(wrong) }
    }

    /// The value of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }

    /// Whether a value is the one that was asked for, if one was.
    pub fn wants(&self, name: &str, value: &str) -> bool {
        self.get(name).is_none_or(|wanted| wanted == value)
    }

    /// A number within these bounds.
    ///
    /// # Errors
    /// It is none.
    pub fn number(&self, name: &str, bounds: std::ops::RangeInclusive<usize>) -> Result<Option<usize>, String> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let number = value.parse().ok().filter(|number| bounds.contains(number));
        let (least, most) = (bounds.start(), bounds.end());
        let wrong = || format!("`{name}` is `{}`; expected a number from {least} to {most}\n", shown(value));
        number.map(Some).ok_or_else(wrong)
    }

    /// One of these words.
    ///
    /// # Errors
    /// It is none of them.
    pub fn word(&self, name: &str, words: &[&str]) -> Result<Option<&str>, String> {
        match self.get(name) {
            Some(value) if !words.contains(&value) => {
                Err(format!("`{name}` is `{}`; expected one of {}\n", shown(value), words.join(", ")))
            }
            value => Ok(value),
        }
    }
}

/// An error repeats no more of what somebody sent than a person needs, and nothing that a terminal would obey.
pub fn shown(text: &str) -> String {
    text.chars().take(40).map(|sign| if sign.is_control() { '\u{fffd}' } else { sign }).collect()
}

/// `%XX` and `+`, as forms and most clients write them (WHATWG URL, application/x-www-form-urlencoded). A `%` that
/// begins no octet stands for itself.
fn decoded(text: &str) -> Cow<'_, str> {
    if !text.contains(['%', '+']) {
        return Cow::Borrowed(text);
    }
    let (mut octets, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let [first, after @ ..] = rest {
        let hex = |digit: &u8| char::from(*digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let octet = match after {
            [high, low, ..] if *first == b'%' => hex(high).zip(hex(low)).map(|(high, low)| high << 4 | low),
            _ => None,
        };
        let (octet, length) = match octet {
            Some(octet) => (octet, 3),
            None => (if *first == b'+' { b' ' } else { *first }, 1),
        };
        octets.push(octet);
        rest = &rest[length..];
    }
    Cow::Owned(String::from_utf8_lossy(&octets).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_as_clients_write_them() {
        let query = Query::read("&site=my+shop%21&kind=%c3%a4&limit=100%&", &["site", "kind", "limit"]).expect("read");
        assert_eq!((query.get("site"), query.get("kind")), (Some("my shop!"), Some("ä")));
        assert_eq!((query.get("limit"), query.get("crawler")), (Some("100%"), None));
        assert!(query.wants("site", "my shop!") && !query.wants("site", "shop") && query.wants("crawler", "any"));
        assert!(Query::read("", &[]).is_ok());
    }

    #[test]
    fn every_mistake_is_said() {
        let wrong = Query::read("sites=a&limit&site=a&site=b\u{1b}&%00=x", &["site", "limit"]).expect_err("mistakes");
        assert_eq!(wrong.lines().count(), 4, "{wrong}");
        assert!(wrong.contains("unknown parameter `sites`: this endpoint takes site, limit"), "{wrong}");
        assert!(wrong.contains("`limit` has no value") && wrong.contains("`site` is given twice"), "{wrong}");
        assert!(!wrong.contains(['\u{1b}', '\0']), "{wrong:?}");
        let query = Query::read("limit=1001&kind=nonsense", &["limit", "kind"]).expect("read");
        assert!(query.number("limit", 1..=1_000).expect_err("too many").contains("from 1 to 1000"));
        assert!(query.word("kind", &["one", "two"]).expect_err("none of them").contains("one of one, two"));
        for limit in ["-1", "abc", "", "1e3", "99999999999999999999999"] {
            let text = format!("limit={limit}");
            let refused = Query::read(&text, &["limit"]).and_then(|query| query.number("limit", 1..=500));
            assert!(refused.is_err(), "{limit}");
        }
    }
}
