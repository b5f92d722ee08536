//! [`GateFuture`]: the response to come.

use super::body::GateBody;
use super::visit::Visit;
use crate::answers::Answer;
use bytes::Bytes;
use http::Response;
use http_body::Body;
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

pin_project! {
    /// The response of a [`Gate`](super::Gate), to come.
    pub struct GateFuture<F> {
        #[pin]
        way: Way<F>,
        // Taken when the response is there.
        visit: Option<Visit>,
    }
}

pin_project! {
    #[project = WayProjection]
    enum Way<F> {
        Answered { answer: Option<Answer>, is_grpc: bool },
        Passed { #[pin] inner: F },
    }
}

impl<F> GateFuture<F> {
    pub(super) fn answered(visit: Visit, answer: Answer, is_grpc: bool) -> GateFuture<F> {
        GateFuture { way: Way::Answered { answer: Some(answer), is_grpc }, visit: Some(visit) }
    }

    pub(super) fn passed(visit: Visit, inner: F) -> GateFuture<F> {
        GateFuture { way: Way::Passed { inner }, visit: Some(visit) }
    }
}

impl<F, B, E> Future for GateFuture<F>
where
    F: Future<Output = Result<Response<B>, E>>,
    B: Body<Data = Bytes>,
{
    type Output = Result<Response<GateBody<B>>, E>;

    /// # Panics
    /// When it is polled again after it was ready, as every future may.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let ended = "the response was taken already";
        let response = match this.way.project() {
            WayProjection::Answered { answer, is_grpc } => {
                let (mut visit, answer) = (this.visit.take().expect(ended), answer.take().expect(ended));
                let (head, body) = visit.answered(answer, *is_grpc);
                Response::from_parts(head, GateBody::answer(visit, body))
            }
            WayProjection::Passed { inner } => {
                let response = ready!(inner.poll(context));
                let mut visit = this.visit.take().expect(ended);
                let (mut head, body) = response?.into_parts();
                let body = match visit.passed(&mut head) {
                    true => GateBody::rewritten(visit, body),
                    false => GateBody::whole(visit, body),
                };
                Response::from_parts(head, body)
            }
        };
        Poll::Ready(Ok(response))
    }
}
