//! [`of_page`] finds the character encoding of an HTML page. Only pages in an encoding that is compatible with ASCII
//! can be rewritten (not in UTF-16, for example).

use crate::locks::lock;
use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use lol_html::html_content::{EndTag, TextChunk, TextType};
use lol_html::send::{DocumentContentHandlers, ElementContentHandlers, Settings};
use lol_html::{AsciiCompatibleEncoding, HtmlRewriter, Selector};
use std::borrow::Cow;
use std::sync::{Arc, Mutex};

/// How many octets of a page are searched for its encoding before any of it is passed on: as many as browsers search
/// (HTML standard, section 13.2.3.2).
pub(super) const LOOKED_AT: usize = 1024;

/// Whether pages whose Content-Type field has this label can be read. An unknown label says nothing: browsers search
/// the page then.
pub fn is_readable(label: Option<&[u8]>) -> bool {
    label.and_then(Encoding::for_label).is_none_or(|encoding| AsciiCompatibleEncoding::new(encoding).is_some())
}

/// The encoding of a page by the start of it; `None` when it cannot be read. A byte order mark outranks the field, the
/// field outranks the page's own meta. Only undeclared UTF-16 has a NUL in its first octets.
pub(super) fn of_page(label: Option<&[u8]>, start: &[u8]) -> Option<AsciiCompatibleEncoding> {
    if start.iter().take(FIRST).any(|octet| *octet == 0) {
        return None;
    }
    let encoding = match Encoding::for_bom(start) {
        Some((encoding, _)) => encoding,
        None => label.and_then(Encoding::for_label).or_else(|| Declared::in_start(start).encoding).unwrap_or(UTF_8),
    };
    AsciiCompatibleEncoding::new(encoding)
}

/// How many octets tell a byte order mark and UTF-16.
pub(super) const FIRST: usize = 4;

/// Whether the start of a page settles its encoding, so that none of it need be held any longer: a byte order mark, the
/// field or a meta says it, or the head is over without one.
pub(super) fn is_known(label: Option<&[u8]>, start: &[u8]) -> bool {
    outranks_metas(label, start) || {
        let declared = Declared::in_start(start);
        declared.over || declared.encoding.is_some()
    }
}

/// Whether an encoding is known that outranks the page's metas.
pub(super) fn outranks_metas(label: Option<&[u8]>, start: &[u8]) -> bool {
    Encoding::for_bom(start).is_some() || label.and_then(Encoding::for_label).is_some()
}

/// An encoding that gives every octet back: text that is decoded and written again stays the same, whatever its real
/// encoding is.
pub(super) fn transparent() -> AsciiCompatibleEncoding {
    AsciiCompatibleEncoding::new(WINDOWS_1252).unwrap_or_else(AsciiCompatibleEncoding::utf_8)
}

/// The encoding that a head declares.
#[derive(Clone, Copy, Default)]
struct Declared {
    /// The encoding of the first meta that declares one.
    encoding: Option<&'static Encoding>,
    /// Whether the head is over: later metas do not count.
    over: bool,
}

impl Declared {
    /// Reads the head as far as it goes in the start of a page.
    fn in_start(start: &[u8]) -> Declared {
        let found: Arc<Mutex<Declared>> = Arc::default();
        let Ok(every) = "*".parse::<Selector>() else { return Declared::default() };
        let elements = ElementContentHandlers::default().element({
            let found = found.clone();
            move |element: &mut lol_html::send::Element<'_, '_>| {
                let mut declared = lock(&found);
                match element.tag_name().as_str() {
                    "meta" if !declared.over && declared.encoding.is_none() => {
                        declared.encoding = by_meta(|name| element.get_attribute(name));
                    }
                    name => declared.over |= !is_of_head(name),
                }
                if element.tag_name() == "head" {
                    let found = found.clone();
                    element.on_end_tag(Box::new(move |_: &mut EndTag<'_>| {
                        lock(&found).over = true;
                        Ok(())
                    }))?;
                }
                Ok(())
            }
        });
        let text = DocumentContentHandlers::default().text({
            let found = found.clone();
            move |text: &mut TextChunk<'_>| {
                lock(&found).over |= text.text_type() == TextType::Data && !text.as_str().trim_ascii().is_empty();
                Ok(())
            }
        });
        let settings = Settings::new_send()
            .append_element_content_handler((Cow::Owned(every), elements))
            .append_document_content_handler(text)
            .with_encoding(transparent())
            .with_adjust_charset_on_meta_tag(false)
            .with_strict(false);
        let mut reader = HtmlRewriter::new(settings, |_: &[u8]| ());
        // An error leaves what was found before it.
        let _ = reader.write(start);
        *lock(&found)
    }
}

/// Whether an element can stand in the head (HTML standard, section 13.2.6.4.4). A template can, but what is in it
/// counts as the body here: the page does not wait for its end.
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

/// `<meta charset=x>` and `<meta http-equiv=content-type content="text/html; charset=x">`. UTF-16 in a page that can be
/// read is UTF-8 (HTML standard, section 13.2.3.2).
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
