//! [`Media`]: the media types that a response may have, by its status and its Content-Type. Rules
//! for X-Robots-Tag can ask for a type. Most responses have one type. A response with several lines
//! of Content-Type may have any of them, and the parts of a multipart 206 have types that only the
//! body names.

/// The types that a response may have.
#[derive(Clone, Copy, Debug)]
pub enum Media<'a> {
    /// None.
    Unknown,
    /// This one, without its parameters.
    One(&'a [u8]),
    /// Those of several lines of Content-Type, or of one with commas.
    Several(&'a [u8]),
    /// Parts of a page: their types stand in the body.
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
    /// The types that a response with this status and Content-Type may have. The parts of a 206 of
    /// several ranges have types of their own, which its head does not tell (RFC 9110 section
    /// 15.3.7.2). A value without a slash counts as no type.
    #[inline]
    pub fn of(status: u16, content_type: Option<&'a [u8]>) -> Media<'a> {
        match content_type {
            Some(said)
                if status == 206
                    && essence(said)
                        .is_some_and(|sent| media_matches("multipart/byteranges", sent)) =>
            {
                Media::InParts
            }
            None => Media::Unknown,
            Some(said) if memchr::memchr(b',', said).is_some() => Media::Several(said),
            Some(said) => essence(said).map_or(Media::Unknown, Media::One),
        }
    }

    /// Whether only one answer is possible to the question for a type: the type is known, or there
    /// is none.
    pub fn is_one(self) -> bool {
        matches!(self, Media::Unknown | Media::One(_))
    }

    /// Whether one of the types, or each of them, is wanted. Without a type none is; the unknown
    /// types of the parts of a page may be (`Extent::Any`), but not for certain (`Extent::Each`).
    #[inline]
    pub fn is(self, wanted: &[String], extent: Extent) -> bool {
        match self {
            Media::InParts => extent == Extent::Any,
            Media::Unknown => false,
            Media::One(sent) => is_one_of(wanted, sent),
            Media::Several(said) => {
                let mut types = said.split(|octet| *octet == b',').filter_map(essence);
                match extent {
                    Extent::Any => types.any(|sent| is_one_of(wanted, sent)),
                    Extent::Each => {
                        let mut types = types.peekable();
                        types.peek().is_some() && types.all(|sent| is_one_of(wanted, sent))
                    }
                }
            }
        }
    }
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
