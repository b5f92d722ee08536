//! [`Marks`] adds attributes to the elements of a page that the policy selects by CSS selectors: `rel` to links, and
//! `data-nosnippet` to elements that search engines are not to quote.

use lol_html::Selector;
use lol_html::errors::SelectorError;
use lol_html::send::{Element, ElementContentHandlers, Settings};
use std::borrow::Cow;
use std::sync::Arc;

/// Selectors with their attributes, ready for any number of pages: `rel` with these words, or `data-nosnippet`.
#[derive(Debug, Default)]
pub struct Marks(Vec<(Selector, Option<Arc<[&'static str]>>)>);

impl Marks {
    /// Adds `rel` to the links that a selector names.
    ///
    /// # Errors
    /// When the text is no selector that can be decided while the page passes.
    pub fn link(&mut self, selector: &str, rel: &[&'static str]) -> Result<(), SelectorError> {
        self.0.push((selector.parse()?, Some(rel.into())));
        Ok(())
    }

    /// Adds `data-nosnippet` to the elements that a selector names.
    ///
    /// # Errors
    /// When the text is no selector that can be decided while the page passes.
    pub fn nosnippet(&mut self, selector: &str) -> Result<(), SelectorError> {
        self.0.push((selector.parse()?, None));
        Ok(())
    }

    /// Whether nothing is marked.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn with_handlers<'s>(&'s self, mut settings: Settings<'static, 's>) -> Settings<'static, 's> {
        for (selector, rel) in &self.0 {
            let rel = rel.clone();
            let handler = ElementContentHandlers::default().element(move |element: &mut Element<'_, '_>| {
                if let Some(rel) = &rel {
                    add_rel(element, rel);
                } else if !element.has_attribute("data-nosnippet") {
                    // The name of this attribute is a good one.
                    let _ = element.set_attribute("data-nosnippet", "");
                }
                Ok(())
            });
            settings = settings.append_element_content_handler((Cow::Borrowed(selector), handler));
        }
        settings
    }
}

/// Adds the words that are missing. The `rel` of a `<link>` tells a browser what to load and is left alone.
fn add_rel(element: &mut Element<'_, '_>, rel: &[&'static str]) {
    if !matches!(element.tag_name().as_str(), "a" | "area" | "form") {
        return;
    }
    let mut value = element.get_attribute("rel").unwrap_or_default();
    let has = |value: &str, word: &str| value.split_ascii_whitespace().any(|have| have.eq_ignore_ascii_case(word));
    let mut changed = false;
    for word in rel {
        if !has(&value, word) {
            if !value.is_empty() {
                value.push(' ');
            }
            value.push_str(word);
            changed = true;
        }
    }
    if changed {
        let _ = element.set_attribute("rel", &value);
    }
}
