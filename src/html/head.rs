//! The head of a page: robots metas that are there are merged, the others are written where the head ends.
//!
//! A meta stands in the head as long as nothing of the body was seen (HTML standard, section 13.2.6.4.4: what is no
//! content of a head ends it, its end tag or not, its start tag or not). So what the page itself says is read first,
//! and what is missing is written before `</head>`, `<body>`, `</html>`, or the first element or text of the body,
//! whichever comes first. A `<noscript>` may end the head for parsers without scripting and not for others: from it on
//! the page is held, and what is missing is written before it once the head is over. At the mere end of the input
//! nothing is written where that is: it may be the middle of a tag, a comment or a title. Nor is anything written where
//! nothing shows that this is a document: many a piece of markup or bare value is sent to scripts as text/html, and
//! would not be what they expect.
//!
//! End tags that close nothing are not shown by the reader: `</br>`, `</body>` and `</html>` would end the head too.

use super::charset::{by_meta, is_of_head};
use super::metas;
use super::noscript;
use super::output::Output;
use crate::indexing::{Directives, Scope, Tags, is_bots_name};
use lol_html::html_content::{Comment, ContentType, Doctype, EndTag, StreamingHandlerSink, TextChunk, TextType};
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
    output: Output,
    hold: Hold,
}

/// How much of a page is held at least from a `<noscript>` on. A head that goes on longer gets its metas without what
/// the page says later.
const HELD: usize = 64 * 1024;
/// How much is held at most, and a piece of input more: end tags that close nothing are not shown by the reader, and
/// there can be any number of them.
const MOST_HELD: usize = 2 * HELD;

/// Whether the page is held from a `<noscript>` on.
#[derive(Debug)]
enum Hold {
    /// There was none that ends the head.
    No,
    /// It began here, and this is in it by now.
    Open { start: usize, content: String },
    /// It began here, and ends the head for parsers without scripting.
    Ends { start: usize },
    /// It was too long ago.
    Over,
}

pub(super) type SharedHead = Arc<Mutex<Head>>;

impl Head {
    pub(super) fn new(ours: Tags, encoding_known: bool, output: Output) -> SharedHead {
        let (theirs, written) = (Tags::default(), Tags::default());
        let (templates, document, done, hold) = (0, false, false, Hold::No);
        let head = Head { ours, theirs, written, templates, encoding_known, document, done, output, hold };
        Arc::new(Mutex::new(head))
    }

    /// The head is over: gives what is to be written here.
    fn finish(&mut self) -> String {
        self.done = true;
        if matches!(self.hold, Hold::Ends { .. }) {
            self.close();
            return String::new();
        }
        self.hold = Hold::Over;
        self.missing().into_iter().map(|(scope, missing)| metas::element(metas::name(&scope), &missing)).collect()
    }

    /// No more comes of this page, or none that can be read: what is held goes out, with the metas that belong before
    /// it.
    fn close(&mut self) {
        if let Hold::Ends { .. } = std::mem::replace(&mut self.hold, Hold::Over) {
            let missing = self.missing();
            self.write_held(missing);
        }
    }

    /// Holds no longer than to what begins here. Whatever the pieces of input are, metas before it count and others do
    /// not.
    fn come_to(&mut self, here: usize) {
        let (Hold::Open { start, .. } | Hold::Ends { start }) = self.hold else { return };
        if here > start + HELD {
            self.hold = Hold::Over;
            // What softens ours has its time when all that the page says is known.
            let unsoftened = |(scope, missing): (Scope, Directives)| (scope, missing.unsoftened());
            let missing = self.missing().into_iter().map(unsoftened).filter(|(_, missing)| !missing.is_empty());
            self.write_held(missing.collect());
        }
    }

    fn write_held(&mut self, missing: Vec<(Scope, Directives)>) {
        let mut metas = String::new();
        for (scope, missing) in missing {
            metas.push_str(&metas::element(metas::name(&scope), &missing));
            self.written.add(scope, &missing);
        }
        self.output.release(&metas);
    }

    /// A `<noscript>` is over.
    fn leave_noscript(&mut self) {
        let Hold::Open { start, content } = &self.hold else { return };
        if noscript::leaves_head(content) {
            self.hold = Hold::No;
            self.output.release("");
        } else {
            self.hold = Hold::Ends { start: *start };
        }
    }

    /// What no meta says yet.
    fn missing(&self) -> Vec<(Scope, Directives)> {
        if !self.document {
            return Vec::new();
        }
        let mut both = self.theirs.clone();
        both.merge(&self.ours);
        let of_ours = both.iter().filter(|(scope, _)| self.ours.of(scope).is_some());
        let missing = of_ours.filter_map(|(scope, said)| {
            let missing = match self.written.of(scope) {
                Some(written) => said.beyond(written),
                None => said.clone(),
            };
            (!missing.is_empty()).then(|| (scope.clone(), missing))
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
        if ours.is_some() && matches!(self.hold, Hold::Ends { .. }) {
            // What it says is written before what is held, where everybody takes it into the head.
            element.remove();
            self.theirs.add(scope, &theirs);
            return;
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

fn lock(head: &SharedHead) -> MutexGuard<'_, Head> {
    head.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Nothing more is read of the page for its head.
pub(super) fn close(head: &SharedHead) {
    lock(head).close();
}

/// To be asked after each piece of input: what is held has an end, whatever the page is made of.
pub(super) fn bound(head: &SharedHead) {
    let mut head = lock(head);
    if head.output.held() > MOST_HELD {
        head.come_to(usize::MAX);
    }
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
        .comments({
            let head = head.clone();
            move |comment: &mut Comment<'_>| {
                lock(&head).come_to(comment.source_location().bytes().start);
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
    head.come_to(element.source_location().bytes().start);
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
                    head.come_to(end.source_location().bytes().start);
                    end.before(&head.finish(), ContentType::Html);
                }
                Ok(())
            }))
        }
        "meta" => {
            head.meta(element);
            Ok(())
        }
        "noscript" if matches!(head.hold, Hold::No) => {
            head.hold = Hold::Open { start: element.source_location().bytes().start, content: String::new() };
            let output = head.output.clone();
            // When this is written, all that is before it has been.
            element.streaming_before(Box::new(move |_: &mut StreamingHandlerSink<'_>| {
                output.hold();
                Ok(())
            }));
            let shared = shared.clone();
            element.on_end_tag(Box::new(move |end: &mut EndTag<'_>| {
                let mut head = lock(&shared);
                head.come_to(end.source_location().bytes().start);
                head.leave_noscript();
                Ok(())
            }))
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
    if head.done {
        return;
    }
    head.come_to(text.source_location().bytes().start);
    if let Hold::Open { content, .. } = &mut head.hold {
        content.push_str(text.as_str());
    }
    if head.templates > 0 || text.text_type() != TextType::Data {
        return;
    }
    let blank = |sign: char| matches!(sign, '\t' | '\n' | '\x0C' | '\r' | ' ');
    let Some(place) = text.as_str().find(|sign| !blank(sign)) else { return };
    // Right before it, so that it does not matter where a piece of input ends.
    text.as_mut_str().insert_str(place, &head.finish());
}
