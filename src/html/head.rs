//! [`Head`] reads the robots metas (`<meta name="robots">` and those of single bots) in the head of
//! a page, and merges the policy's directives into them. Directives that no meta of the page has
//! are written as new metas where the head ends.
//!
//! Browsers end the head at the first element or text of the body, with or without an end tag (HTML
//! standard, section 13.2.6.4.4). So the page's own metas are read first, and the missing ones are
//! written before `</head>`, `<body>`, `</html>`, or the first element or text of the body,
//! whichever comes first. The content of a `<noscript>` counts as text that does not end the head,
//! as in browsers with scripts. If the input ends within the head, nothing is written: the end may
//! be in the middle of a tag, a comment or a title. Scripts also fetch fragments and bare values as
//! text/html. So metas are written only after a doctype, or an element that only a whole document
//! has.
//!
//! The HTML parser does not report end tags that close nothing. So a stray `</br>`, `</body>` or
//! `</html>` does not end the head here, although it does in browsers.

use super::charset::{by_meta, is_of_head};
use super::metas;
use crate::indexing::{Directives, Scope, Tags, is_bots_name};
use crate::locks::lock;
use lol_html::html_content::{ContentType, Doctype, EndTag, TextChunk, TextType};
use lol_html::send::{DocumentContentHandlers, Element, ElementContentHandlers, Settings};
use lol_html::{HandlerResult, Selector};
use std::borrow::Cow;
use std::sync::{Arc, Mutex};

/// The head as far as it was read. The handlers of one page share it and run one after the other,
/// so no handler waits.
#[derive(Debug)]
pub(super) struct Head {
    /// The directives that the policy wants in metas.
    ours: Tags,
    /// The directives of the page's metas so far.
    theirs: Tags,
    /// The directives of the page's metas as they are sent, with the policy's merged into them.
    written: Tags,
    /// Open `<template>`s: what they hold is not in the page.
    templates: usize,
    /// Whether the encoding is known already, so that a meta does not change it.
    encoding_known: bool,
    /// Whether a meta names an encoding that cannot be read.
    pub(super) is_unreadable: bool,
    /// Whether a doctype, or an element that only a document has, was seen.
    document: bool,
    /// Nothing more is to be done.
    done: bool,
}

pub(super) type SharedHead = Arc<Mutex<Head>>;

impl Head {
    /// A head of which nothing is read yet. `ours` are the directives of the policy for metas;
    /// `encoding_known`: a meta does not change the encoding any more.
    pub(super) fn new(ours: Tags, encoding_known: bool) -> SharedHead {
        Arc::new(Mutex::new(Head {
            ours,
            theirs: Tags::default(),
            written: Tags::default(),
            templates: 0,
            encoding_known,
            is_unreadable: false,
            document: false,
            done: false,
        }))
    }

    /// Ends the head: returns the elements to write at this place, which may be none. From now on
    /// nothing more is done.
    fn finish(&mut self) -> String {
        self.done = true;
        self.missing()
            .into_iter()
            .map(|(scope, missing)| metas::element(metas::name(&scope), &missing))
            .collect()
    }

    /// The directives of the policy that no meta says yet, by scope, as merged with those of the
    /// page's own metas. None unless it is known to be a whole document: a fragment or a bare value
    /// gets no metas.
    fn missing(&self) -> Vec<(Scope, Directives)> {
        if !self.document {
            return Vec::new();
        }
        let mut both = self.theirs.clone();
        both.merge(&self.ours);
        let of_ours = both
            .iter()
            .filter(|(scope, _)| self.ours.of(scope).is_some());
        let missing = of_ours.filter_map(|(scope, said)| {
            let missing = match self.written.of(scope) {
                Some(written) => said.beyond(written),
                None => said.clone(),
            };
            (!missing.is_empty()).then(|| (scope.clone(), missing))
        });
        missing.collect()
    }

    /// Handles a meta of the page. One that names an encoding may end the reading. Into a robots
    /// meta the stricter value of each kind is written, and the policy's directives for its scope
    /// into the first one; a later one that adds nothing is removed. Other metas, and those that
    /// cannot be read, stay as they are.
    fn meta(&mut self, element: &mut Element<'_, '_>) {
        if !self.encoding_known
            && let Some(encoding) = by_meta(|name| element.get_attribute(name))
        {
            // From here on the page cannot be read.
            self.is_unreadable = !encoding.is_ascii_compatible();
            self.done = self.is_unreadable;
            self.encoding_known = true;
        }
        let Some(name) = element.get_attribute("name") else {
            return;
        };
        if self.done || element.has_attribute("http-equiv") {
            return;
        }
        let Some(scope) = metas::scope(&name) else {
            return;
        };
        let ours = self.ours.of(&scope);
        // Only names that the policy tags, or that are crawlers'. A meta of another kind may say
        // anything.
        if ours.is_none() && scope != Scope::All && !is_bots_name(&name) {
            return;
        }
        // A meta that cannot be read stays as it is, and the policy's is written besides: crawlers
        // unite them.
        let Some(theirs) = metas::read(&element.get_attribute("content").unwrap_or_default())
        else {
            return;
        };
        let mut merged = theirs.clone();
        self.ours.harden(&scope, &mut merged);
        if let Some(ours) = ours.filter(|_| self.written.of(&scope).is_none()) {
            // Whether what softens ours may be said is known when all that the page says is: at the
            // end of the head.
            merged.extend(&ours.clone().unsoftened());
        }
        let adds = self.written.of(&scope).is_none_or(|written| {
            let mut both = written.clone();
            both.extend(&merged);
            both != *written
        });
        if ours.is_some() && !adds {
            element.remove();
        } else if merged != theirs {
            // The name of this attribute is a good one.
            let _ = element.set_attribute("content", &metas::escaped(&merged.to_string()));
        }
        self.theirs.add(scope.clone(), &theirs);
        self.written.add(scope, &merged);
    }
}

/// Whether the rest of the page can pass as it is.
pub(super) fn is_done(head: &SharedHead) -> bool {
    lock(head).done
}

/// Adds to the settings the handlers that read a page's head: for its elements, its text and its
/// doctype. `every` selects every element.
pub(super) fn with_handlers<'s>(
    settings: Settings<'static, 's>,
    every: &'s Selector,
    head: &SharedHead,
) -> Settings<'static, 's> {
    let elements = ElementContentHandlers::default().element({
        let head = head.clone();
        move |element: &mut Element<'_, '_>| at_element(&head, element)
    });
    let around = DocumentContentHandlers::default()
        .text({
            let head = head.clone();
            move |text: &mut TextChunk<'_>| {
                at_text(&head, text);
                Ok(())
            }
        })
        .doctype({
            let head = head.clone();
            move |_: &mut Doctype<'_>| {
                lock(&head).document = true;
                Ok(())
            }
        });
    settings
        .append_element_content_handler((Cow::Borrowed(every), elements))
        .append_document_content_handler(around)
}

/// Handles an element of the page: counts templates, whose content is passed over, handles metas,
/// and ends the head at the end tag of the head or the document, or before the first element that
/// cannot stand in a head.
fn at_element(shared: &SharedHead, element: &mut Element<'_, '_>) -> HandlerResult {
    let mut head = lock(shared);
    if head.done {
        return Ok(());
    }
    let name = element.tag_name();
    if name == "template" {
        head.templates += 1;
        let shared = shared.clone();
        return element.on_end_tag(Box::new(move |end: &mut EndTag<'_>| {
            // The end tag of an element around it, which means nothing within a template, comes
            // here too.
            if end.name() == "template" {
                let mut head = lock(&shared);
                head.templates = head.templates.saturating_sub(1);
            }
            Ok(())
        }));
    }
    if head.templates > 0 {
        return Ok(());
    }
    head.document |= matches!(
        name.as_str(),
        "html" | "head" | "title" | "meta" | "base" | "body" | "frameset"
    );
    match name.as_str() {
        "html" | "head" => {
            let shared = shared.clone();
            element.on_end_tag(Box::new(move |end: &mut EndTag<'_>| {
                let mut head = lock(&shared);
                if !head.done && head.templates == 0 {
                    end.before(&head.finish(), ContentType::Html);
                }
                Ok(())
            }))
        }
        "meta" => {
            head.meta(element);
            Ok(())
        }
        name if is_of_head(name) => Ok(()),
        _ => {
            element.before(&head.finish(), ContentType::Html);
            Ok(())
        }
    }
}

/// Ends the head at text that is more than blanks. The text of titles, styles and scripts does not
/// count.
fn at_text(head: &SharedHead, text: &mut TextChunk<'_>) {
    let mut head = lock(head);
    if head.done {
        return;
    }
    if head.templates > 0 || text.text_type() != TextType::Data {
        return;
    }
    let blanks = ['\t', '\n', '\x0C', '\r', ' '];
    let Some(place) = text.as_str().find(|sign| !blanks.contains(&sign)) else {
        return;
    };
    // Right before it, so that it does not matter where a piece of input ends.
    text.as_mut_str().insert_str(place, &head.finish());
}
