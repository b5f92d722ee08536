//! [`Page`] rewrites one page, piece by piece as it comes from the origin. Its states:
//!
//! - `Looking`: the first octets are held until it is known whether the page can be read.
//! - `Reading`: robots metas are merged or added in the head.
//! - `Passing`: the rest passes unchanged. A page comes here when it cannot be read, when a tag is
//!   too large or elements are nested too deep, or when nothing more is to be written.

use super::charset::{self, LOOKED_AT};
use super::head::{self, Head, SharedHead};
use super::metas;
use crate::indexing::Tags;
use crate::locks::lock;
use encoding_rs::Encoding;
use lol_html::send::{HtmlRewriter, Settings};
use lol_html::{MemorySettings, Selector};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use strum::IntoStaticStr;

/// How much one reading of a page may hold in memory: the largest tag or comment that can be read,
/// and open elements.
const MEMORY: usize = 256 * 1024;
/// How much is fed at once: it is copied behind what was left over, so it counts as memory.
const PIECE: usize = 16 * 1024;

static EVERY_ELEMENT: LazyLock<Option<Selector>> = LazyLock::new(|| "*".parse().ok());

/// The result of rewriting a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum RewriteResult {
    /// It was read as far as needed.
    #[strum(serialize = "rewritten")]
    Read,
    /// Its encoding cannot be read.
    Encoding,
    /// It begins with no tag: a bare value for a script.
    NotMarkup,
    /// A tag is larger, or elements are nested deeper, than the memory: the rest passed as it is.
    TooLarge,
}

/// One page on its way to the client.
pub struct Page {
    /// The encoding by the Content-Type field.
    label: Option<Box<[u8]>>,
    state: State,
    outcome: RewriteResult,
}

enum State {
    /// The first octets are held until it is known whether the page can be read.
    Looking {
        held: Vec<u8>,
        metas: Tags,
    },
    /// The head is read.
    Reading(Reading, SharedHead),
    Passing,
}

impl Page {
    /// A page whose metas are to say `tags`. `label` is the encoding by the Content-Type field.
    /// `None` when no directive needs a meta.
    pub fn new(tags: &Tags, label: Option<&[u8]>) -> Option<Page> {
        let metas = metas::of_tags(tags);
        (!metas.is_empty()).then(|| Page {
            label: label.map(Box::from),
            state: State::Looking {
                held: Vec::new(),
                metas,
            },
            outcome: RewriteResult::Read,
        })
    }

    /// Takes a piece and returns what can be passed on by now. Nothing is passed on before it is
    /// known whether the page can be read, which takes at most 1,024 bytes.
    pub fn write(&mut self, piece: &[u8]) -> Vec<u8> {
        if let State::Looking { held, .. } = &mut self.state {
            // No more than is looked at: where a piece of input ends must not matter.
            let (looked_at, rest) = piece.split_at(piece.len().min(LOOKED_AT - held.len()));
            held.extend_from_slice(looked_at);
            let is_enough = held.len() >= charset::FIRST && begins(held).is_some();
            if held.len() < LOOKED_AT && !is_enough {
                return Vec::new();
            }
            let mut out = self.begin();
            out.extend(self.feed(rest));
            return out;
        }
        self.feed(piece)
    }

    /// Ends the page: returns what was still held. If the page ends within its head, no metas are
    /// added.
    pub fn end(&mut self) -> Vec<u8> {
        let mut out = if matches!(self.state, State::Looking { .. }) {
            self.begin()
        } else {
            Vec::new()
        };
        if let State::Reading(reading, head) = std::mem::replace(&mut self.state, State::Passing) {
            out.extend(self.close(reading, &head));
        }
        out
    }

    /// Whether what comes now passes as it is.
    pub fn is_passing(&self) -> bool {
        matches!(self.state, State::Passing)
    }

    /// The result so far.
    pub fn outcome(&self) -> RewriteResult {
        self.outcome
    }

    /// Decides by what is held whether the page can be read. Begins to read it, or lets it pass as
    /// it is, and returns what can be passed on. Does nothing if that was decided before.
    fn begin(&mut self) -> Vec<u8> {
        let State::Looking { held, metas } = std::mem::replace(&mut self.state, State::Passing)
        else {
            return Vec::new();
        };
        let label = self.label.as_deref();
        if !charset::can_read(label, &held) {
            self.outcome = RewriteResult::Encoding;
            return held;
        }
        if begins(&held).is_some_and(|first| first != b'<') {
            self.outcome = RewriteResult::NotMarkup;
            return held;
        }
        let Some(every) = EVERY_ELEMENT.as_ref() else {
            return held;
        };
        let head = Head::new(metas, charset::outranks_metas(label, &held));
        let reading = Reading::new(head::with_handlers(settings(), every, &head));
        self.state = State::Reading(reading, head);
        // A byte order mark is no text.
        let mark = Encoding::for_bom(&held).map_or(0, |(_, length)| length);
        let rest = held[mark..].to_vec();
        let mut out = held;
        out.truncate(mark);
        out.extend(self.feed(&rest));
        out
    }

    /// Takes a piece of a page that has begun, and returns what can be passed on. If the head is
    /// over or cannot be read further, the rest of the page passes as it is.
    fn feed(&mut self, piece: &[u8]) -> Vec<u8> {
        let State::Reading(mut reading, head) = std::mem::replace(&mut self.state, State::Passing)
        else {
            return piece.to_vec();
        };
        let mut out = reading.write(piece);
        // Where the head is over, the rest of its reading is given out, and the rest of the page is
        // not read.
        if reading.is_over() || head::is_done(&head) {
            out.extend(self.close(reading, &head));
        } else {
            self.state = State::Reading(reading, head);
        }
        out
    }

    /// Ends the reading of the head, records why if it could not be read, and returns what was
    /// still held.
    fn close(&mut self, mut reading: Reading, head: &SharedHead) -> Vec<u8> {
        reading.end();
        if reading.too_large {
            self.outcome = RewriteResult::TooLarge;
        } else if lock(head).is_unreadable {
            self.outcome = RewriteResult::Encoding;
        }
        reading.take()
    }
}

/// The first octet that is neither a blank nor of a byte order mark.
fn begins(held: &[u8]) -> Option<u8> {
    let mark = Encoding::for_bom(held).map_or(0, |(_, length)| length);
    held[mark..].trim_ascii_start().first().copied()
}

/// The settings of the HTML rewriter: memory is bounded, and where a page cannot be read the rest
/// passes as it is.
fn settings<'s>() -> Settings<'static, 's> {
    let memory = MemorySettings::new()
        .with_preallocated_parsing_buffer_size(1024)
        .with_max_allowed_memory_usage(MEMORY)
        .with_graceful_bail_out_on_memory_limit_exceeded(true);
    Settings::new_send()
        .with_encoding(charset::transparent())
        .with_memory_settings(memory)
        // Strict, the page would be cut off where it is ambiguous.
        .with_strict(false)
        .with_adjust_charset_on_meta_tag(false)
        .with_graceful_bail_out_on_content_handler_error(true)
}

type Sink = Box<dyn FnMut(&[u8]) + Send>;

/// A rewriter with what it has written. Both are in a mutex because a page must be `Sync`; no lock
/// is ever waited for.
struct Reading {
    rewriter: Option<Box<Mutex<HtmlRewriter<'static, Sink>>>>,
    written: Arc<Mutex<Vec<u8>>>,
    too_large: bool,
}

impl Reading {
    fn new(settings: Settings<'static, '_>) -> Reading {
        let written = Arc::<Mutex<Vec<u8>>>::default();
        let sink: Sink = Box::new({
            let written = written.clone();
            move |bytes: &[u8]| lock(&written).extend_from_slice(bytes)
        });
        let rewriter = Box::new(Mutex::new(HtmlRewriter::new(settings, sink)));
        Reading {
            rewriter: Some(rewriter),
            written,
            too_large: false,
        }
    }

    /// Feeds the rewriter in pieces, and returns what it has written. After an error it has given
    /// out everything that it was given; it is not called again, and the rest passes as it is.
    fn write(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut pieces = bytes.chunks(PIECE);
        while let Some(rewriter) = &mut self.rewriter {
            let Some(piece) = pieces.next() else { break };
            let rewriter = rewriter.get_mut().unwrap_or_else(PoisonError::into_inner);
            if rewriter.write(piece).is_err() {
                self.rewriter = None;
                self.too_large = true;
            }
        }
        pieces.for_each(|piece| lock(&self.written).extend_from_slice(piece));
        self.take()
    }

    /// Takes what the rewriter has written since the last call.
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *lock(&self.written))
    }

    /// Ends the rewriter, if it still runs, so that it writes what it holds.
    fn end(&mut self) {
        if let Some(rewriter) = self.rewriter.take() {
            let rewriter = rewriter
                .into_inner()
                .unwrap_or_else(PoisonError::into_inner);
            self.too_large |= rewriter.end().is_err();
        }
    }

    /// Whether the rewriter has ended, by an error or by `Reading::end`.
    fn is_over(&self) -> bool {
        self.rewriter.is_none()
    }
}
