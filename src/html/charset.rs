//! Decides whether crawlgate can rewrite an HTML page, by the page's character encoding: it must be
//! compatible with ASCII, as UTF-8 is and UTF-16 is not.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use lol_html::AsciiCompatibleEncoding;

/// The most bytes of a page that are buffered until its first tag.
pub(super) const MAX_SNIFFED_BYTES: usize = 1024;

/// Whether a page with this `charset` in Content-Type can be read: it is compatible with ASCII.
/// True for an unknown or missing label: then browsers search the page for one.
pub fn is_readable(label: Option<&[u8]>) -> bool {
    label
        .and_then(Encoding::for_label)
        .is_none_or(Encoding::is_ascii_compatible)
}

/// Whether a page can be read, by what takes precedence over its metas: a byte order mark, then the
/// `charset` of Content-Type. Not with a NUL in its first bytes, which only undeclared UTF-16 has.
pub(super) fn is_page_readable(label: Option<&[u8]>, start: &[u8]) -> bool {
    let is_readable = match Encoding::for_bom(start) {
        Some((encoding, _)) => encoding.is_ascii_compatible(),
        None => is_readable(label),
    };
    is_readable && !start.iter().take(BOM_BYTES).any(|byte| *byte == 0)
}

/// The bytes that show a byte order mark or UTF-16.
pub(super) const BOM_BYTES: usize = 4;

/// Whether a byte order mark, or a known `charset` in Content-Type, takes precedence over the
/// page's metas.
pub(super) fn overrides_metas(label: Option<&[u8]>, start: &[u8]) -> bool {
    Encoding::for_bom(start).is_some() || label.and_then(Encoding::for_label).is_some()
}

/// An encoding in which text that is decoded and encoded again stays the same, whatever its real
/// encoding.
pub(super) fn lossless_encoding() -> AsciiCompatibleEncoding {
    AsciiCompatibleEncoding::new(WINDOWS_1252).unwrap_or_else(AsciiCompatibleEncoding::utf_8)
}

/// Whether an element does not end the head (HTML standard, section 13.2.6.4.4).
pub(super) fn is_head_element(name: &str) -> bool {
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

/// The encoding that a meta declares: `<meta charset=x>` or `<meta http-equiv=content-type
/// content="text/html; charset=x">`. `None` for an unknown one. UTF-16 in a page that can be read
/// is UTF-8 (HTML standard, section 13.2.3.2).
pub(super) fn meta_encoding(
    attribute: impl Fn(&str) -> Option<String>,
) -> Option<&'static Encoding> {
    let label = attribute("charset").or_else(|| {
        attribute("http-equiv")?
            .eq_ignore_ascii_case("content-type")
            .then(|| attribute("content"))?
            .and_then(|content| charset_parameter(&content))
    })?;
    let encoding = Encoding::for_label(label.as_bytes())?;
    let is_utf16 = [encoding_rs::UTF_16BE, encoding_rs::UTF_16LE].contains(&encoding);
    Some(if is_utf16 { UTF_8 } else { encoding })
}

/// The value of `charset=` in a content type.
fn charset_parameter(content: &str) -> Option<String> {
    let lower = content.to_ascii_lowercase();
    let index = lower.find("charset")? + "charset".len();
    let value = lower[index..].trim_start().strip_prefix('=')?.trim_start();
    let value = match value.chars().next()? {
        quote @ ('"' | '\'') => value[1..].split(quote).next()?,
        _ => value.split([';', ' ', '\t', '\n']).next()?,
    };
    Some(value.trim().to_owned())
}
