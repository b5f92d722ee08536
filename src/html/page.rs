//! [`PageRewriter`] rewrites one page, piece by piece as it comes from the origin. Its states:
//!
//! - `Sniffing`: the first bytes are buffered until it is known whether the page can be read.
//! - `InHead`: robots metas are merged or added in the head.
//! - `Passing`: the rest passes unchanged. Either the head is over, or the page cannot be rewritten
//!   (a tag is too large, for example).

use super::charset::{self, MAX_SNIFFED_BYTES};
use super::head::{self, HeadState, SharedHeadState};
use super::metas;
use crate::indexing::RobotsTags;
use crate::locks::lock;
use PageState::*;
use encoding_rs::Encoding;
use lol_html::send::{HtmlRewriter, Settings};
use lol_html::{MemorySettings, Selector};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use strum::IntoStaticStr;

/// The most memory for the parser of a page: its largest tag or comment, and open elements.
const MAX_MEMORY_BYTES: usize = 256 * 1024;
/// The most bytes that the parser gets at once: it copies them behind what was left over.
const MAX_PIECE_BYTES: usize = 16 * 1024;

static EVERY_ELEMENT: LazyLock<Option<Selector>> = LazyLock::new(|| "*".parse().ok());

/// The result of rewriting a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum RewriteResult {
    /// It was rewritten, as far as needed.
    Rewritten,
    /// Its encoding cannot be read.
    Encoding,
    /// It does not begin with a tag: a bare value for a script.
    NotMarkup,
    /// A tag or the open elements need more than the memory. The rest passed unchanged.
    TooLarge,
}

/// One page on its way to the client.
pub struct PageRewriter {
    /// The `charset` of the Content-Type field.
    label: Option<Box<[u8]>>,
    state: PageState,
    outcome: RewriteResult,
}

enum PageState {
    Sniffing {
        buffered: Vec<u8>,
        /// The directives to write.
        metas: RobotsTags,
    },
    InHead(HeadRewriter, SharedHeadState),
    Passing,
}

impl PageRewriter {
    /// Rewrites a page so that its metas have the directives of `tags`. `label` is the `charset` of
    /// the Content-Type field. `None` if no directive needs a meta.
    pub fn new(tags: &RobotsTags, label: Option<&[u8]>) -> Option<PageRewriter> {
        let metas = metas::select_metas(tags);
        (!metas.is_empty()).then(|| PageRewriter {
            label: label.map(Box::from),
            state: Sniffing {
                buffered: Vec::new(),
                metas,
            },
            outcome: RewriteResult::Rewritten,
        })
    }

    /// Takes a piece and returns what can be passed on. Nothing is passed on before it is known
    /// whether the page can be read, which takes at most 1,024 bytes.
    pub fn write(&mut self, piece: &[u8]) -> Vec<u8> {
        if let Sniffing { buffered, .. } = &mut self.state {
            // No more than is sniffed: where a piece of input ends must not matter.
            let (sniffed, rest) =
                piece.split_at(piece.len().min(MAX_SNIFFED_BYTES - buffered.len()));
            buffered.extend_from_slice(sniffed);
            let is_enough = buffered.len() >= charset::BOM_BYTES && first_byte(buffered).is_some();
            if buffered.len() < MAX_SNIFFED_BYTES && !is_enough {
                return Vec::new();
            }
            let mut out = self.finish_encoding_detection();
            out.extend(self.rewrite(rest));
            return out;
        }
        self.rewrite(piece)
    }

    /// Ends the page, and returns what was still buffered. If the page ends within its head, no
    /// metas are added.
    pub fn end(&mut self) -> Vec<u8> {
        let mut out = if matches!(self.state, Sniffing { .. }) {
            self.finish_encoding_detection()
        } else {
            Vec::new()
        };
        if let InHead(rewriter, head) = std::mem::replace(&mut self.state, Passing) {
            out.extend(self.finish_head(rewriter, &head));
        }
        out
    }

    /// Whether the rest passes unchanged.
    pub fn passes_rest_unchanged(&self) -> bool {
        matches!(self.state, Passing)
    }

    /// The result so far.
    pub fn outcome(&self) -> RewriteResult {
        self.outcome
    }

    /// Decides by the first bytes whether the page can be read, starts to read it or lets it pass,
    /// and returns what can be passed on. Only the first call does something.
    fn finish_encoding_detection(&mut self) -> Vec<u8> {
        let Sniffing { buffered, metas } = std::mem::replace(&mut self.state, Passing) else {
            return Vec::new();
        };
        let label = self.label.as_deref();
        if !charset::is_page_readable(label, &buffered) {
            self.outcome = RewriteResult::Encoding;
            return buffered;
        }
        if first_byte(&buffered).is_some_and(|first| first != b'<') {
            self.outcome = RewriteResult::NotMarkup;
            return buffered;
        }
        let Some(every) = EVERY_ELEMENT.as_ref() else {
            return buffered;
        };
        let head = HeadState::new(metas, charset::overrides_metas(label, &buffered));
        let rewriter = HeadRewriter::new(head::add_handlers(rewriter_settings(), every, &head));
        self.state = InHead(rewriter, head);
        // A byte order mark is not text.
        let mark = Encoding::for_bom(&buffered).map_or(0, |(_, length)| length);
        let rest = buffered[mark..].to_vec();
        let mut out = buffered;
        out.truncate(mark);
        out.extend(self.rewrite(&rest));
        out
    }

    /// Rewrites a piece after the sniffing, and returns what can be passed on. When the head is
    /// over, or cannot be read further, the rest of the page passes unchanged.
    fn rewrite(&mut self, piece: &[u8]) -> Vec<u8> {
        let InHead(mut rewriter, head) = std::mem::replace(&mut self.state, Passing) else {
            return piece.to_vec();
        };
        let mut out = rewriter.write(piece);
        if rewriter.rewriter.is_none() || lock(&head).is_done {
            out.extend(self.finish_head(rewriter, &head));
        } else {
            self.state = InHead(rewriter, head);
        }
        out
    }

    /// Ends the rewriting of the head, records why if it could not be read, and returns what was
    /// still buffered.
    fn finish_head(&mut self, mut rewriter: HeadRewriter, head: &SharedHeadState) -> Vec<u8> {
        rewriter.end();
        if rewriter.is_too_large {
            self.outcome = RewriteResult::TooLarge;
        } else if lock(head).is_unreadable {
            self.outcome = RewriteResult::Encoding;
        }
        rewriter.take_output()
    }
}

/// The first byte that is neither white space nor of a byte order mark.
fn first_byte(buffered: &[u8]) -> Option<u8> {
    let mark = Encoding::for_bom(buffered).map_or(0, |(_, length)| length);
    buffered[mark..].trim_ascii_start().first().copied()
}

/// The settings of the parser: its memory is bounded, and after an error the rest passes unchanged.
fn rewriter_settings<'s>() -> Settings<'static, 's> {
    let memory = MemorySettings::new()
        .with_preallocated_parsing_buffer_size(1024)
        .with_max_allowed_memory_usage(MAX_MEMORY_BYTES)
        .with_graceful_bail_out_on_memory_limit_exceeded(true);
    Settings::new_send()
        .with_encoding(charset::lossless_encoding())
        .with_memory_settings(memory)
        // A strict parser would cut the page off where it is ambiguous.
        .with_strict(false)
        .with_adjust_charset_on_meta_tag(false)
        .with_graceful_bail_out_on_content_handler_error(true)
}

type Sink = Box<dyn FnMut(&[u8]) + Send>;

/// The parser of a page's head, with its output. Both are in a mutex because a page must be `Sync`;
/// no lock is ever contended.
struct HeadRewriter {
    /// `None` after its end.
    rewriter: Option<Box<Mutex<HtmlRewriter<'static, Sink>>>>,
    output: Arc<Mutex<Vec<u8>>>,
    is_too_large: bool,
}

impl HeadRewriter {
    fn new(settings: Settings<'static, '_>) -> HeadRewriter {
        let output = Arc::<Mutex<Vec<u8>>>::default();
        let sink: Sink = Box::new({
            let output = output.clone();
            move |bytes: &[u8]| lock(&output).extend_from_slice(bytes)
        });
        HeadRewriter {
            rewriter: Some(Box::new(Mutex::new(HtmlRewriter::new(settings, sink)))),
            output,
            is_too_large: false,
        }
    }

    /// Feeds the parser in pieces, and returns its output. After an error the parser has written
    /// everything that it got, and the rest passes unchanged.
    fn write(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut pieces = bytes.chunks(MAX_PIECE_BYTES);
        while let Some(rewriter) = &mut self.rewriter {
            let Some(piece) = pieces.next() else { break };
            if rewriter
                .get_mut()
                .unwrap_or_else(PoisonError::into_inner)
                .write(piece)
                .is_err()
            {
                self.rewriter = None;
                self.is_too_large = true;
            }
        }
        pieces.for_each(|piece| lock(&self.output).extend_from_slice(piece));
        self.take_output()
    }

    /// The output since the last call.
    fn take_output(&self) -> Vec<u8> {
        std::mem::take(&mut *lock(&self.output))
    }

    /// Ends the parser, if it still runs, so that it writes what it has buffered.
    fn end(&mut self) {
        if let Some(rewriter) = self.rewriter.take() {
            self.is_too_large |= rewriter
                .into_inner()
                .unwrap_or_else(PoisonError::into_inner)
                .end()
                .is_err();
        }
    }
}
