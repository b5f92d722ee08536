//! [`HeadState`] reads the robots metas (`<meta name="robots">` and those of single bots) in the
//! head of a page, and merges the policy's directives into them. Directives that no meta has are
//! written as new metas where the head ends.
//!
//! As in browsers, the head ends at `</head>`, `<body>`, `</html>`, or the first element or text of
//! the body (HTML standard, section 13.2.6.4.4). A `<noscript>` does not end the head, as in
//! browsers with scripts.
//!
//! New metas are written only into whole documents. A whole document has a doctype, or an element
//! such as `<html>` or `<title>`. Other input may be a fragment, or a bare value that a script
//! fetches as text/html. If the input ends within the head, perhaps in the middle of a tag, no new
//! metas are written.
//!
//! The HTML parser does not report end tags that close nothing. So a stray `</br>`, `</body>` or
//! `</html>` does not end the head here, although it does in browsers.

use super::charset::{is_head_element, meta_encoding};
use super::metas;
use crate::indexing::{Directives, RobotsTags, TagScope, is_bot_name};
use crate::locks::lock;
use lol_html::html_content::{ContentType, Doctype, EndTag, TextChunk, TextType};
use lol_html::send::{DocumentContentHandlers, Element, ElementContentHandlers, Settings};
use lol_html::{HandlerResult, Selector};
use std::borrow::Cow;
use std::sync::{Arc, Mutex};

/// The head of a page as far as it was read. The handlers of one page share it. They run one after
/// the other, so that no lock is contended.
#[derive(Default)]
pub(super) struct HeadState {
    /// The policy's directives for metas.
    ours: RobotsTags,
    /// The directives of the page's metas so far.
    theirs: RobotsTags,
    /// The directives of the page's metas as they are written, with the policy's merged into them.
    written: RobotsTags,
    /// The number of open `<template>`s, whose content is ignored.
    open_templates: usize,
    /// Whether the encoding is known, so that no meta changes it any more.
    is_encoding_known: bool,
    /// Whether a meta declares an encoding that cannot be read.
    pub(super) is_unreadable: bool,
    /// Whether a doctype, or an element that only a whole document has, was seen.
    is_document: bool,
    /// Whether nothing more has to be done: the rest of the page can pass unchanged.
    pub(super) is_done: bool,
}

pub(super) type SharedHeadState = Arc<Mutex<HeadState>>;

impl HeadState {
    /// A head of which nothing is read yet. `ours` are the policy's directives for metas.
    pub(super) fn new(ours: RobotsTags, is_encoding_known: bool) -> SharedHeadState {
        Arc::new(Mutex::new(HeadState {
            ours,
            is_encoding_known,
            ..HeadState::default()
        }))
    }

    /// Ends the head. Returns the elements to write here, perhaps none.
    fn finish(&mut self) -> String {
        self.is_done = true;
        self.missing_directives()
            .into_iter()
            .map(|(scope, missing)| metas::meta_element(metas::meta_name(&scope), &missing))
            .collect()
    }

    /// The directives of the policy that no meta has yet, merged with those of the page's metas, by
    /// scope. Empty unless the page is known to be a whole document.
    fn missing_directives(&self) -> Vec<(TagScope, Directives)> {
        if !self.is_document {
            return Vec::new();
        }
        let mut both = self.theirs.clone();
        both.merge(&self.ours);
        both.iter()
            .filter(|(scope, _)| self.ours.get(scope).is_some())
            .filter_map(|(scope, merged)| {
                let missing = match self.written.get(scope) {
                    Some(written) => merged.difference(written),
                    None => merged.clone(),
                };
                (!missing.is_empty()).then(|| (scope.clone(), missing))
            })
            .collect()
    }

    /// Handles a meta of the page. One that declares an encoding may end the reading. A robots meta
    /// gets the stricter value of each kind, and the first one of a scope the policy's directives
    /// for it; a later one that adds nothing is removed. Other metas, and those that cannot be
    /// parsed, stay as they are.
    fn handle_meta(&mut self, element: &mut Element<'_, '_>) {
        if !self.is_encoding_known
            && let Some(encoding) = meta_encoding(|name| element.get_attribute(name))
        {
            self.is_unreadable = !encoding.is_ascii_compatible();
            self.is_done = self.is_unreadable;
            self.is_encoding_known = true;
        }
        let Some(name) = element.get_attribute("name") else {
            return;
        };
        if self.is_done || element.has_attribute("http-equiv") {
            return;
        }
        let Some(scope) = metas::parse_scope(&name) else {
            return;
        };
        let ours = self.ours.get(&scope);
        // Only names that the policy tags, or that are crawlers'. A meta of another kind may have
        // any content.
        if ours.is_none() && scope != TagScope::All && !is_bot_name(&name) {
            return;
        }
        // A meta that cannot be parsed stays as it is, and the policy's is added: crawlers unite
        // them.
        let Some(theirs) =
            metas::parse_content(&element.get_attribute("content").unwrap_or_default())
        else {
            return;
        };
        let mut merged = theirs.clone();
        self.ours.remove_softeners_from(&scope, &mut merged);
        if let Some(ours) = ours.filter(|_| self.written.get(&scope).is_none()) {
            // Whether a softening directive of ours may be written is known at the end of the head,
            // after all metas of the page.
            merged.extend(&ours.clone().without_softeners());
        }
        let adds = self.written.get(&scope).is_none_or(|written| {
            let mut both = written.clone();
            both.extend(&merged);
            both != *written
        });
        if ours.is_some() && !adds {
            element.remove();
        } else if merged != theirs {
            // The name of this attribute is valid.
            let _ = element.set_attribute("content", &metas::escape_attribute(&merged.to_string()));
        }
        self.theirs.add(scope.clone(), &theirs);
        self.written.add(scope, &merged);
    }
}

/// Adds the handlers that read a page's head to the settings. `every` selects every element.
pub(super) fn add_handlers<'s>(
    settings: Settings<'static, 's>,
    every: &'s Selector,
    head: &SharedHeadState,
) -> Settings<'static, 's> {
    let elements = ElementContentHandlers::default().element({
        let head = head.clone();
        move |element: &mut Element<'_, '_>| handle_element(&head, element)
    });
    let around = DocumentContentHandlers::default()
        .text({
            let head = head.clone();
            move |text: &mut TextChunk<'_>| {
                handle_text(&head, text);
                Ok(())
            }
        })
        .doctype({
            let head = head.clone();
            move |_: &mut Doctype<'_>| {
                lock(&head).is_document = true;
                Ok(())
            }
        });
    settings
        .append_element_content_handler((Cow::Borrowed(every), elements))
        .append_document_content_handler(around)
}

/// Handles an element of the page: counts templates, handles metas, and ends the head at the end
/// tag of the head or the document, or before the first element of the body.
fn handle_element(shared: &SharedHeadState, element: &mut Element<'_, '_>) -> HandlerResult {
    let mut head = lock(shared);
    if head.is_done {
        return Ok(());
    }
    let name = element.tag_name();
    if name == "template" {
        head.open_templates += 1;
        let shared = shared.clone();
        return element.on_end_tag(Box::new(move |end: &mut EndTag<'_>| {
            // The end tag of an element around it also comes here, and means nothing within a
            // template.
            if end.name() == "template" {
                let mut head = lock(&shared);
                head.open_templates = head.open_templates.saturating_sub(1);
            }
            Ok(())
        }));
    }
    if head.open_templates > 0 {
        return Ok(());
    }
    head.is_document |= matches!(
        name.as_str(),
        "html" | "head" | "title" | "meta" | "base" | "body" | "frameset"
    );
    match name.as_str() {
        "html" | "head" => {
            let shared = shared.clone();
            element.on_end_tag(Box::new(move |end: &mut EndTag<'_>| {
                let mut head = lock(&shared);
                if !head.is_done && head.open_templates == 0 {
                    end.before(&head.finish(), ContentType::Html);
                }
                Ok(())
            }))
        }
        "meta" => {
            head.handle_meta(element);
            Ok(())
        }
        name if is_head_element(name) => Ok(()),
        _ => {
            element.before(&head.finish(), ContentType::Html);
            Ok(())
        }
    }
}

/// Ends the head at text other than white space. The text of titles, styles and scripts does not
/// count.
fn handle_text(head: &SharedHeadState, text: &mut TextChunk<'_>) {
    let mut head = lock(head);
    if head.is_done || head.open_templates > 0 || text.text_type() != TextType::Data {
        return;
    }
    let white_space = ['\t', '\n', '\x0C', '\r', ' '];
    let Some(index) = text
        .as_str()
        .find(|character| !white_space.contains(&character))
    else {
        return;
    };
    // Right before the text, so that it does not matter where a piece of input ends.
    text.as_mut_str().insert_str(index, &head.finish());
}
