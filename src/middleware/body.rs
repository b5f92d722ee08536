//! [`GateBody`]: the body of a response of the gate (crawlgate inside an application). It is an
//! answer of crawlgate's, or the body of the application, as it came or rewritten. The request is
//! recorded when the body is dropped.

use super::call::Call;
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
        // The request that is recorded when the body is dropped.
        pub(super) call: Call,
    }
}

pin_project! {
    #[project = SourceProjection]
    pub(super) enum BodySource<B: Body> {
        Answer { left: Bytes },
        Whole { #[pin] body: B },
        Rewritten {
            #[pin]
            body: B,
            // What follows the last piece of the page: trailers or an error.
            held: Option<Result<Frame<Bytes>, B::Error>>,
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
            SourceProjection::Answer { left } => {
                let piece = std::mem::take(left);
                this.call.is_due = false;
                (!piece.is_empty()).then(|| Ok(Frame::data(piece)))
            }
            SourceProjection::Whole { body } => ready!(body.poll_frame(context)),
            SourceProjection::Rewritten {
                body,
                held,
                is_over,
            } => {
                ready!(poll_page(body, held, is_over, this.call, context))
            }
        };
        if let Some(piece) = frame
            .as_ref()
            .and_then(|frame| frame.as_ref().ok()?.data_ref())
        {
            this.call.octets += piece.len() as u64;
        }
        Poll::Ready(frame)
    }

    /// Whether nothing follows. For a page that is rewritten, only when `held` was taken, too.
    fn is_end_stream(&self) -> bool {
        match &self.source {
            BodySource::Answer { left } => left.is_empty(),
            BodySource::Whole { body } => body.is_end_stream(),
            BodySource::Rewritten { held, is_over, .. } => *is_over && held.is_none(),
        }
    }

    /// The length that is left, as far as it is known; of a page that is rewritten it is not.
    fn size_hint(&self) -> SizeHint {
        match &self.source {
            BodySource::Answer { left } => SizeHint::with_exact(left.len() as u64),
            BodySource::Whole { body } => body.size_hint(),
            BodySource::Rewritten { .. } => SizeHint::default(),
        }
    }
}

/// The next piece of a page that is rewritten, and at last what the application sent after its last
/// piece (trailers, an error): that waits in `held` until all that is held of the page was sent.
fn poll_page<B: Body<Data = Bytes>>(
    mut body: Pin<&mut B>,
    held: &mut Option<Result<Frame<Bytes>, B::Error>>,
    is_over: &mut bool,
    call: &mut Call,
    context: &mut Context<'_>,
) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
    while !*is_over {
        let written = match ready!(body.as_mut().poll_frame(context))
            .map(|frame| frame.map(Frame::into_data))
        {
            Some(Ok(Ok(piece))) => call.rewrite(Some(piece)),
            Some(Ok(Err(trailers))) => {
                *is_over = true;
                *held = Some(Ok(trailers));
                call.rewrite(None)
            }
            Some(Err(error)) => {
                *is_over = true;
                *held = Some(Err(error));
                Some(call.break_off())
            }
            None => {
                *is_over = true;
                call.rewrite(None)
            }
        };
        if let Some(piece) = written.filter(|piece| !piece.is_empty()) {
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
    }
    Poll::Ready(held.take())
}
