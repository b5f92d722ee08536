//! What a `<noscript>` in a head does to parsers without scripting.
//!
//! With scripting its content is text. Without, it is markup, and all but a few elements end the head there and then
//! (HTML standard, section 13.2.6.4.5): a picture that counts visitors makes a body, and what comes after it stands in
//! that.

use super::charset::transparent;
use lol_html::html_content::{TextChunk, TextType};
use lol_html::send::{DocumentContentHandlers, Element, ElementContentHandlers, Settings};
use lol_html::{HtmlRewriter, Selector};
use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, LazyLock};

static EVERY_ELEMENT: LazyLock<Option<Selector>> = LazyLock::new(|| "*".parse().ok());

/// Read behind the content. Where it is not read as an element, a comment or the like is open that only a parser with
/// scripting takes to end here.
const LAST: &str = "x-last";

/// Whether a head goes on after a `<noscript>` with this content, with scripting and without.
pub(super) fn leaves_head(content: &str) -> bool {
    let Some(every) = EVERY_ELEMENT.as_ref() else { return false };
    // The one end tag that is no mere mistake.
    if content.to_ascii_lowercase().contains("</br") {
        return false;
    }
    let (others, last): (Arc<AtomicBool>, Arc<AtomicBool>) = Default::default();
    let elements = ElementContentHandlers::default().element({
        let (others, last) = (others.clone(), last.clone());
        move |element: &mut Element<'_, '_>| {
            match element.tag_name().as_str() {
                "basefont" | "bgsound" | "link" | "meta" | "noframes" | "style" => {}
                LAST => last.store(true, Relaxed),
                _ => others.store(true, Relaxed),
            }
            Ok(())
        }
    });
    let text = DocumentContentHandlers::default().text({
        let others = others.clone();
        move |text: &mut TextChunk<'_>| {
            let is_said = text.text_type() == TextType::Data && !text.as_str().trim_ascii().is_empty();
            others.fetch_or(is_said, Relaxed);
            Ok(())
        }
    });
    let settings = Settings::new_send()
        .append_element_content_handler((Cow::Borrowed(every), elements))
        .append_document_content_handler(text)
        .with_encoding(transparent())
        .with_adjust_charset_on_meta_tag(false)
        .with_strict(false);
    let mut reader = HtmlRewriter::new(settings, |_: &[u8]| ());
    let read = reader.write(content.as_bytes()).and_then(|()| reader.write(format!("<{LAST}>").as_bytes()));
    read.is_ok() && last.load(Relaxed) && !others.load(Relaxed)
}

#[cfg(test)]
mod tests {
    use super::leaves_head;

    #[test]
    fn what_belongs_into_a_head_leaves_it_one() {
        for content in [
            "",
            " \n",
            "<link rel=stylesheet href=a.css>",
            "\n<style>p > b::before { content: '<p>' }</style>\n<!-- <p> --><META name=x>",
            "<noframes><p>x</p></noframes>",
            "</p>",
        ] {
            assert!(leaves_head(content), "{content}");
        }
        for content in [
            "<img src=x>",
            "<style>p{}</style><iframe></iframe>",
            "text",
            "&nbsp;",
            "<!-- open",
            "<style>p{}",
            "<link href=\"",
            "<",
            "</br>",
            "<svg>",
            "<noscript>",
        ] {
            assert!(!leaves_head(content), "{content}");
        }
    }
}
