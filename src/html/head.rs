//! The head of a page: robots metas that are there are merged, the others are written where the head ends.
//!
//! A meta stands in the head as long as nothing of the body was seen (HTML standard, section 13.2.6.4.4: what is no content
//! of a head ends it, its end tag or not, its start tag or not). So what the page itself says is read first, and what is
//! missing is written before `</head>`, `<body>`, `</html>`, or the first element or text of the body, whichever comes
//! first. At the mere end of the input nothing is written: it may be the middle of a tag, a comment or a title. Nor is
//! anything written where nothing shows that this is a document: many a piece of markup or bare value is sent to scripts
//! as text/html, and would not be what they expect.

use super::charset::{by_meta, is_of_head};
use super::metas;
use crate::indexing::{Scope, Tags, is_bots_name};
use lol_html::html_content::{ContentType, Doctype, EndTag, TextChunk, TextType};
use lol_html::send::{DocumentContentHandlers, Element, ElementContentHandlers, Settings};
use lol_html::{HandlerResult, Selector};
use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How far the head has come. Shared by the handlers of one page, which run one after the other: nobody waits.
#[derive(Debug)]
pub(super) struct Head {
    /// What metas are to say.
    ours: Tags,
    /// What the page was seen to say by now.
    theirs: Tags,
    /// What of both stands in the page by now.
    written: Tags,
    /// Open `<template>`s: what they hold is not in the page.
    templates: usize,
    /// Whether the encoding is known from outside, so that the page's own word does not count.
    encoding_known: bool,
    /// Whether a doctype, or an element that only a document has, was seen.
    document: bool,
    /// Nothing more is to be done.
    done: bool,
}

pub(super) type SharedHead = Arc<Mutex<Head>>;

impl Head {
    pub(super) fn new(ours: Tags, encoding_known: bool) -> SharedHead {
        let (theirs, written) = (Tags::default(), Tags::default());
        let head = Head { ours, theirs, written, templates: 0, encoding_known, document: false, done: false };
        Arc::new(Mutex::new(head))
    }

    /// The elements that are still missing, at the end of the head.
    fn finish(&mut self) -> String {
        self.done = true;
        if !self.document {
            return String::new();
        }
        let mut both = self.theirs.clone();
        both.merge(&self.ours);
        let of_ours = both.iter().filter(|(scope, _)| self.ours.of(scope).is_some());
        let missing = of_ours.filter_map(|(scope, said)| {
            let missing = match self.written.of(scope) {
                Some(written) => said.beyond(written),
                None => said.clone(),
            };
            (!missing.is_empty()).then(|| metas::element(metas::name(scope), &missing))
        });
        missing.collect()
    }

    /// A meta of the page: the stricter value of each kind stays.
    fn meta(&mut self, element: &mut Element<'_, '_>) {
        if !self.encoding_known
            && let Some(encoding) = by_meta(|name| element.get_attribute(name))
        {
            // From here on the page cannot be read.
            self.done = !encoding.is_ascii_compatible();
            self.encoding_known = true;
        }
        let Some(name) = element.get_attribute("name") else { return };
        if self.done || element.has_attribute("http-equiv") {
            return;
        }
        let Some(scope) = metas::scope(&name) else { return };
        let ours = self.ours.of(&scope);
        // Whoever is named by us, or is called a crawler: a meta of another kind may say anything.
        if ours.is_none() && scope != Scope::All && !is_bots_name(&name) {
            return;
        }
        // What cannot be read stays as it is, and ours is written besides: crawlers unite them.
        let Some(theirs) = metas::read(&element.get_attribute("content").unwrap_or_default()) else { return };
        let mut merged = theirs.clone();
        self.ours.harden(&scope, &mut merged);
        if let Some(ours) = ours.filter(|_| self.written.of(&scope).is_none()) {
            // Whether what softens ours may be said is known when all that the page says is: at the end of the head.
            merged.extend(&ours.clone().unsoftened());
        }
        let adds = self.written.of(&scope).is_none_or(|written| !merged.beyond(written).is_empty());
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

pub(super) fn lock(head: &SharedHead) -> MutexGuard<'_, Head> {
    head.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the rest of the page can pass as it is.
pub(super) fn is_done(head: &SharedHead) -> bool {
    lock(head).done
}

/// Adds the handlers of a page's head; `every` selects every element.
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
    settings.append_element_content_handler((Cow::Borrowed(every), elements)).append_document_content_handler(around)
}

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
            // The end tag of an element around it, which means nothing within a template, comes here too.
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
    head.document |= matches!(name.as_str(), "html" | "head" | "title" | "meta" | "base" | "body" | "frameset");
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

/// Text that is more than blanks ends the head; the text of titles, styles and scripts is none.
fn at_text(head: &SharedHead, text: &mut TextChunk<'_>) {
    let mut head = lock(head);
    if head.done || head.templates > 0 || text.text_type() != TextType::Data {
        return;
    }
    let blank = |sign: char| matches!(sign, '\t' | '\n' | '\x0C' | '\r' | ' ');
    let Some(place) = text.as_str().find(|sign| !blank(sign)) else { return };
    // Right before it, so that it does not matter where a piece of input ends.
    text.as_mut_str().insert_str(place, &head.finish());
}
