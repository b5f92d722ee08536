//! [`ResponseMedia`]: the media types (Content-Type) that a response may have. Rules for
//! X-Robots-Tag can be limited to some types. Most responses have one type. A response with several
//! Content-Type lines may have any of the types in these lines. The type of a multipart 206 counts
//! as unknown, because the types of its parts are only in its body.

use ResponseMedia::*;
/// The media types that a response may have.
#[derive(Clone, Copy)]
pub enum ResponseMedia<'a> {
    /// Those of its Content-Type, joined with commas: mostly one, or none.
    Listed(&'a [u8]),
    /// Unknown, because it is a multipart 206.
    Multipart,
}

impl<'a> ResponseMedia<'a> {
    /// Reads the types of a response. The parts of a multipart 206 have types of their own (RFC
    /// 9110 section 15.3.7.2).
    #[inline]
    pub fn new(status: u16, content_type: Option<&'a [u8]>) -> ResponseMedia<'a> {
        let listed = content_type.unwrap_or_default();
        let is_in_parts = status == 206
            && media_essence(listed)
                .is_some_and(|sent| media_matches("multipart/byteranges", sent));
        if is_in_parts {
            Multipart
        } else {
            Listed(listed)
        }
    }

    /// Whether the response may have one of the wanted types.
    #[inline]
    pub fn may_match(self, wanted: &[String]) -> bool {
        match self {
            Multipart => true,
            Listed(content_type) => media_types(content_type).any(|sent| matches_any(wanted, sent)),
        }
    }

    /// Whether the response certainly has a wanted type: all of its types are wanted.
    pub fn always_matches(self, wanted: &[String]) -> bool {
        match self {
            Multipart => false,
            Listed(content_type) => {
                let mut types = media_types(content_type).peekable();
                types.peek().is_some() && types.all(|sent| matches_any(wanted, sent))
            }
        }
    }
}

fn media_types(content_type: &[u8]) -> impl Iterator<Item = &[u8]> {
    content_type
        .split(|byte| *byte == b',')
        .filter_map(media_essence)
}

/// A media type without its parameters; `None` for a text without a slash.
fn media_essence(content_type: &[u8]) -> Option<&[u8]> {
    let end = memchr::memchr(b';', content_type).unwrap_or(content_type.len());
    Some(content_type[..end].trim_ascii()).filter(|sent| sent.contains(&b'/'))
}

fn matches_any(wanted: &[String], sent: &[u8]) -> bool {
    wanted.iter().any(|wanted| media_matches(wanted, sent))
}

/// Whether a media type is `wanted`, which may be `image/*`. Case does not matter.
fn media_matches(wanted: &str, sent: &[u8]) -> bool {
    match wanted.strip_suffix('*') {
        Some(prefix) => {
            sent.len() > prefix.len()
                && sent[..prefix.len()].eq_ignore_ascii_case(prefix.as_bytes())
        }
        None => sent.eq_ignore_ascii_case(wanted.as_bytes()),
    }
}
