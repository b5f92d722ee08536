//! [`GateBody`]: the body of a response when crawlgate runs inside an application. It is the body
//! of an answer that crawlgate makes itself, or the application's body, unchanged or rewritten.
//! When the body is dropped, the request is over and goes to metrics and logs.

use super::request::InFlightRequest;
use BodySource::*;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

pin_project! {
    /// The body of a response behind the gate.
    pub struct GateBody<B: Body> {
        #[pin]
        pub(super) source: BodySource<B>,
        // Records the request when the body is dropped.
        pub(super) call: InFlightRequest,
    }
}

pin_project! {
    #[project = BodySourceProjection]
    pub(super) enum BodySource<B: Body> {
        Answer { left: Bytes },
        Whole { #[pin] body: B },
        Rewritten {
            #[pin]
            body: B,
            // The last frame after the page: trailers or an error.
            last_frame: Option<Result<Frame<Bytes>, B::Error>>,
            is_over: bool,
        },
    }
}

impl<B: Body> fmt::Debug for GateBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GateBody").finish_non_exhaustive()
    }
}

impl<B: Body<Data = Bytes>> Body for GateBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    /// The next frame of the body; its data is counted for the record. An answer of crawlgate's
    /// comes in one piece.
    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.project();
        let frame = match this.source.project() {
            BodySourceProjection::Answer { left } => {
                let piece = std::mem::take(left);
                this.call.answer_pending = false;
                (!piece.is_empty()).then(|| Ok(Frame::data(piece)))
            }
            BodySourceProjection::Whole { body } => ready!(body.poll_frame(context)),
            BodySourceProjection::Rewritten {
                body,
                last_frame,
                is_over,
            } => {
                ready!(poll_page(body, last_frame, is_over, this.call, context))
            }
        };
        this.call.has_failed |= matches!(frame, Some(Err(_)));
        if let Some(piece) = frame
            .as_ref()
            .and_then(|frame| frame.as_ref().ok()?.data_ref())
        {
            this.call.bytes += piece.len() as u64;
        }
        Poll::Ready(frame)
    }

    /// Whether no frame follows. For a rewritten page, `last_frame` must be taken, too.
    fn is_end_stream(&self) -> bool {
        match &self.source {
            Answer { left } => left.is_empty(),
            Whole { body } => body.is_end_stream(),
            Rewritten {
                last_frame,
                is_over,
                ..
            } => *is_over && last_frame.is_none(),
        }
    }

    /// The remaining length, if it is known; that of a rewritten page is not.
    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Answer { left } => SizeHint::with_exact(left.len() as u64),
            Whole { body } => body.size_hint(),
            Rewritten { .. } => SizeHint::default(),
        }
    }
}

/// The next piece of a rewritten page, and at last the frame after the page (trailers, an error),
/// which waits in `last_frame` until the whole page was sent.
fn poll_page<B: Body<Data = Bytes>>(
    mut body: Pin<&mut B>,
    last_frame: &mut Option<Result<Frame<Bytes>, B::Error>>,
    is_over: &mut bool,
    call: &mut InFlightRequest,
    context: &mut Context<'_>,
) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
    while !*is_over {
        let written = match ready!(body.as_mut().poll_frame(context))
            .map(|frame| frame.map(Frame::into_data))
        {
            Some(Ok(Ok(piece))) => call.rewrite_piece(Some(piece)),
            Some(Ok(Err(trailers))) => {
                *is_over = true;
                *last_frame = Some(Ok(trailers));
                call.rewrite_piece(None)
            }
            Some(Err(error)) => {
                *is_over = true;
                *last_frame = Some(Err(error));
                Some(call.end_page_early())
            }
            None => {
                *is_over = true;
                call.rewrite_piece(None)
            }
        };
        if let Some(piece) = written.filter(|piece| !piece.is_empty()) {
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
    }
    Poll::Ready(last_frame.take())
}
