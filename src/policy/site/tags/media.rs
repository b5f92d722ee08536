//! [`Media`]: the media types that a response may have, by its status and its Content-Type. Rules
//! for X-Robots-Tag can ask for a type. Most responses have one type. A response with several lines
//! of Content-Type may have any of them, and the parts of a multipart 206 have types that only the
//! body names.

/// The types that a response may have.
#[derive(Clone, Copy, Debug)]
pub enum Media<'a> {
    /// Those of its lines of Content-Type, joined with commas. Mostly one, or none.
    Listed(&'a [u8]),
    /// Parts of a page: their types stand in the body.
    InParts,
}

impl<'a> Media<'a> {
    /// The types that a response with this status and Content-Type may have. The parts of a 206 of
    /// several ranges have types of their own, which its head does not tell (RFC 9110 section
    /// 15.3.7.2).
    #[inline]
    pub fn new(status: u16, content_type: Option<&'a [u8]>) -> Media<'a> {
        let listed = content_type.unwrap_or_default();
        let is_in_parts = status == 206
            && essence(listed).is_some_and(|sent| media_matches("multipart/byteranges", sent));
        if is_in_parts {
            Media::InParts
        } else {
            Media::Listed(listed)
        }
    }

    /// Whether the response may have one of the wanted types. Without a type it has none of them.
    #[inline]
    pub fn may_be(self, wanted: &[String]) -> bool {
        match self {
            Media::InParts => true,
            Media::Listed(said) => types(said).any(|sent| is_one_of(wanted, sent)),
        }
    }

    /// Whether the response has one of the wanted types for certain: each of its types is wanted.
    pub fn is(self, wanted: &[String]) -> bool {
        match self {
            Media::InParts => false,
            Media::Listed(said) => {
                let mut types = types(said).peekable();
                types.peek().is_some() && types.all(|sent| is_one_of(wanted, sent))
            }
        }
    }
}

fn types(said: &[u8]) -> impl Iterator<Item = &[u8]> {
    said.split(|byte| *byte == b',').filter_map(essence)
}

/// A media type without its parameters: `image/png; charset=x` is `image/png`. `None` for what has
/// no slash.
fn essence(said: &[u8]) -> Option<&[u8]> {
    let end = memchr::memchr(b';', said).unwrap_or(said.len());
    Some(said[..end].trim_ascii()).filter(|sent| sent.contains(&b'/'))
}

fn is_one_of(wanted: &[String], sent: &[u8]) -> bool {
    wanted.iter().any(|wanted| media_matches(wanted, sent))
}

/// `image/png` is `image/png` and `image/*`; case does not matter (RFC 9110 section 8.3.1).
fn media_matches(wanted: &str, sent: &[u8]) -> bool {
    match wanted.strip_suffix('*') {
        Some(prefix) => {
            sent.len() > prefix.len()
                && sent[..prefix.len()].eq_ignore_ascii_case(prefix.as_bytes())
        }
        None => sent.eq_ignore_ascii_case(wanted.as_bytes()),
    }
}
