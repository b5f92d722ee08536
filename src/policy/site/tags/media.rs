//! What a response may be, by its head: mostly one type, sometimes one of several, or one that only the body tells.
//! Knows nothing of rules.

/// What is known of the type of a response.
#[derive(Clone, Copy, Debug)]
pub enum Media<'a> {
    /// What Content-Type says; of several lines, and in one with commas, several types.
    Said(Option<&'a [u8]>),
    /// Parts of something: its type stands in the body.
    InParts,
}

/// Whether a condition holds for one of the types that a response may have, or for each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    Any,
    Each,
}

impl Extent {
    pub fn opposite(self) -> Extent {
        match self {
            Extent::Any => Extent::Each,
            Extent::Each => Extent::Any,
        }
    }
}

impl<'a> Media<'a> {
    /// RFC 9110 section 15.3.7.2: the parts of a 206 have types of their own, which its head does not tell.
    pub fn of(status: u16, content_type: Option<&'a [u8]>) -> Media<'a> {
        match content_type {
            Some(media) if status == 206 && media_matches("multipart/byteranges", media) => Media::InParts,
            said => Media::Said(said),
        }
    }

    pub fn is_one(self) -> bool {
        match self {
            Media::Said(said) => said.is_none_or(|said| listed(said).nth(1).is_none()),
            Media::InParts => false,
        }
    }

    pub fn is(self, wanted: &[String], extent: Extent) -> bool {
        let is_wanted = |sent: &[u8]| wanted.iter().any(|wanted| media_matches(wanted, sent));
        match self {
            Media::InParts => extent == Extent::Any,
            Media::Said(None) => false,
            Media::Said(Some(said)) => {
                let mut types = listed(said).filter(|part| is_type(part));
                match extent {
                    Extent::Any => types.any(is_wanted),
                    Extent::Each => {
                        let mut types = types.peekable();
                        types.peek().is_some() && types.all(is_wanted)
                    }
                }
            }
        }
    }
}

/// What stands between commas, but for those in a quoted parameter (`boundary="a,b"`, RFC 9110 section 5.6.6). A quote
/// that is never closed is none: it hides no type that stands behind it.
fn listed(said: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(said);
    std::iter::from_fn(move || {
        let part = rest?;
        match comma(part) {
            Some(at) => {
                rest = Some(&part[at + 1..]);
                Some(&part[..at])
            }
            None => rest.take(),
        }
    })
}

fn comma(said: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(octet) = said.get(at) {
        match octet {
            b',' => return Some(at),
            b'"' if at > 0 && said[at - 1] == b'=' => at += quoted(&said[at..]).unwrap_or(1),
            _ => at += 1,
        }
    }
    None
}

/// The length of a quoted string, with its quotes.
fn quoted(said: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        match said.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// What has no slash is none.
fn is_type(part: &[u8]) -> bool {
    part.split(|octet| *octet == b';').next().is_some_and(|media| media.contains(&b'/'))
}

/// `image/png; charset=x` is `image/png` and `image/*`; case does not matter (RFC 9110 section 8.3.1).
fn media_matches(wanted: &str, sent: &[u8]) -> bool {
    let end = sent.iter().position(|byte| *byte == b';').unwrap_or(sent.len());
    let sent = sent[..end].trim_ascii();
    match wanted.strip_suffix('*') {
        Some(prefix) => sent.len() > prefix.len() && sent[..prefix.len()].eq_ignore_ascii_case(prefix.as_bytes()),
        None => sent.eq_ignore_ascii_case(wanted.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn types(said: &str) -> Vec<&str> {
        listed(said.as_bytes()).map(|part| std::str::from_utf8(part).expect("ASCII").trim()).collect()
    }

    #[test]
    fn a_comma_in_quotes_parts_nothing() {
        assert_eq!(types("text/html"), ["text/html"]);
        assert_eq!(types("text/html, application/pdf"), ["text/html", "application/pdf"]);
        for one in [r#"text/html; charset="a, application/pdf""#, r#"text/html; charset="a\", application/pdf""#] {
            assert_eq!(types(one), [one]);
            let media = Media::of(200, Some(one.as_bytes()));
            assert!(media.is_one() && media.is(&["text/html".into()], Extent::Each), "{one}");
            assert!(!media.is(&["application/pdf".into()], Extent::Any), "{one}");
            assert_eq!(types(&format!("{one}, image/png")), [one, "image/png"]);
        }
    }

    #[test]
    fn a_quote_that_opens_nothing_hides_no_type() {
        assert_eq!(types(r#"text/html; x="a, application/pdf"#), [r#"text/html; x="a"#, "application/pdf"]);
        assert_eq!(types(r#"text/"html, application/"pdf"#), [r#"text/"html"#, r#"application/"pdf"#]);
        assert_eq!(types(r#"text/html; x="\"#), [r#"text/html; x="\"#]);
        assert_eq!(types(",\"=\","), ["", "\"=\"", ""]);
    }
}
