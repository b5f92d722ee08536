//! Character encodings of HTML pages. Only pages in an encoding that is compatible with ASCII can
//! be rewritten (not in UTF-16, for example).

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use lol_html::AsciiCompatibleEncoding;

/// How many octets of a page are held at the most until its first tag is there.
pub(super) const LOOKED_AT: usize = 1024;

/// Whether pages can be read whose Content-Type field names this encoding: one that is compatible
/// with ASCII. True for an unknown or missing label, which says nothing: browsers search the page
/// then.
pub fn is_readable(label: Option<&[u8]>) -> bool {
    label
        .and_then(Encoding::for_label)
        .is_none_or(Encoding::is_ascii_compatible)
}

/// Whether a page can be read, by what outranks its metas: a byte order mark, then the encoding of
/// the Content-Type field. Not with a NUL in its first bytes, which only undeclared UTF-16 has.
pub(super) fn can_read(label: Option<&[u8]>, start: &[u8]) -> bool {
    let is_readable = match Encoding::for_bom(start) {
        Some((encoding, _)) => encoding.is_ascii_compatible(),
        None => is_readable(label),
    };
    is_readable && !start.iter().take(FIRST).any(|octet| *octet == 0)
}

/// How many octets tell a byte order mark and UTF-16.
pub(super) const FIRST: usize = 4;

/// Whether a byte order mark, or a known encoding in the Content-Type field, outranks the page's
/// metas.
pub(super) fn outranks_metas(label: Option<&[u8]>, start: &[u8]) -> bool {
    Encoding::for_bom(start).is_some() || label.and_then(Encoding::for_label).is_some()
}

/// An encoding that gives every octet back: text that is decoded and written again stays the same,
/// whatever its real encoding is.
pub(super) fn transparent() -> AsciiCompatibleEncoding {
    AsciiCompatibleEncoding::new(WINDOWS_1252).unwrap_or_else(AsciiCompatibleEncoding::utf_8)
}

/// Whether an element can stand in the head (HTML standard, section 13.2.6.4.4). A template can,
/// but what is in it counts as the body here: the page does not wait for its end.
pub(super) fn is_of_head(name: &str) -> bool {
    matches!(
        name,
        "html"
            | "head"
            | "base"
            | "basefont"
            | "bgsound"
            | "link"
            | "meta"
            | "noframes"
            | "noscript"
            | "script"
            | "style"
            | "template"
            | "title"
    )
}

/// The encoding that a meta names, by its attributes: `<meta charset=x>` or
/// `<meta http-equiv=content-type content="text/html; charset=x">`. `None` if it names none that is
/// known. UTF-16 in a page that can be read is UTF-8 (HTML standard, section 13.2.3.2).
pub(super) fn by_meta(attribute: impl Fn(&str) -> Option<String>) -> Option<&'static Encoding> {
    let label = attribute("charset").or_else(|| {
        let equivalent = attribute("http-equiv")?;
        equivalent
            .eq_ignore_ascii_case("content-type")
            .then(|| attribute("content"))?
            .and_then(|content| parameter(&content))
    })?;
    let encoding = Encoding::for_label(label.as_bytes())?;
    let wide = [encoding_rs::UTF_16BE, encoding_rs::UTF_16LE].contains(&encoding);
    Some(if wide { UTF_8 } else { encoding })
}

/// The value behind `charset=`, in quotes or not.
fn parameter(content: &str) -> Option<String> {
    let lower = content.to_ascii_lowercase();
    let place = lower.find("charset")? + "charset".len();
    let value = lower[place..].trim_start().strip_prefix('=')?.trim_start();
    let value = match value.chars().next()? {
        quote @ ('"' | '\'') => value[1..].split(quote).next()?,
        _ => value.split([';', ' ', '\t', '\n']).next()?,
    };
    Some(value.trim().to_owned())
}
