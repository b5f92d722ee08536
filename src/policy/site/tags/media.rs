//! [`Media`]: the types that a response may have, by its head. Mostly it is one type. Several lines of Content-Type
//! give several, and the parts of a 206 have types that only the body tells.

/// The types that a response may have.
#[derive(Clone, Copy, Debug)]
pub enum Media<'a> {
    /// The value of Content-Type. Several lines, or one with commas, are several types.
    Said(Option<&'a [u8]>),
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

/// The types between commas. A comma in a quoted parameter parts them, too: it adds a type and hides none.
fn listed(said: &[u8]) -> impl Iterator<Item = &[u8]> {
    said.split(|octet| *octet == b',')
}

/// Whether this is a media type: one without a slash is not.
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
