//! [`Marks`]: attributes for elements that CSS selectors name, `rel` for links and `data-nosnippet` for elements that
//! are not to be quoted.

use lol_html::Selector;
use lol_html::send::{Element, ElementContentHandlers, Settings};
use std::borrow::Cow;
use std::sync::Arc;

/// The error for a selector that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SelectorError(String);

/// Selectors with their attributes, ready for any number of pages.
#[derive(Debug, Default)]
pub struct Marks {
    links: Vec<(Selector, Arc<[&'static str]>)>,
    nosnippet: Vec<Selector>,
}

impl Marks {
    /// Adds `rel` to the links that a selector names.
    ///
    /// # Errors
    /// When the text is no selector that can be decided while the page passes.
    pub fn link(&mut self, selector: &str, rel: &[&'static str]) -> Result<(), SelectorError> {
        self.links.push((read(selector)?, rel.into()));
        Ok(())
    }

    /// Adds `data-nosnippet` to the elements that a selector names.
    ///
    /// # Errors
    /// When the text is no selector that can be decided while the page passes.
    pub fn nosnippet(&mut self, selector: &str) -> Result<(), SelectorError> {
        self.nosnippet.push(read(selector)?);
        Ok(())
    }

    /// Whether nothing is marked.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty() && self.nosnippet.is_empty()
    }

    pub(super) fn with_handlers<'s>(&'s self, mut settings: Settings<'static, 's>) -> Settings<'static, 's> {
        for (selector, rel) in &self.links {
            let rel = rel.clone();
            let handler = ElementContentHandlers::default().element(move |element: &mut Element<'_, '_>| {
                add_rel(element, &rel);
                Ok(())
            });
            settings = settings.append_element_content_handler((Cow::Borrowed(selector), handler));
        }
        for selector in &self.nosnippet {
            let handler = ElementContentHandlers::default().element(|element: &mut Element<'_, '_>| {
                if !element.has_attribute("data-nosnippet") {
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

fn read(selector: &str) -> Result<Selector, SelectorError> {
    selector.parse().map_err(|error: lol_html::errors::SelectorError| SelectorError(error.to_string()))
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
