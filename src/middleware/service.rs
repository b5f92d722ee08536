//! [`Gate`]: a tower service that wraps a service of the application. crawlgate judges each request
//! before the application's service gets it. [`GateFuture`] is the future of the response.

use super::body::{BodySource, GateBody};
use super::request::{InFlightRequest, is_grpc};
use super::state::GateState;
use crate::answers::Answer;
use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use tower_service::Service;

/// A service behind the gate: requests that the policy does not let pass never reach it.
#[derive(Clone)]
pub struct Gate<S> {
    pub(super) inner: S,
    pub(super) shared: Arc<GateState>,
}

impl<S: fmt::Debug> fmt::Debug for Gate<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}

impl<S, A, B> Service<Request<A>> for Gate<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    B: Body<Data = Bytes>,
{
    type Response = Response<GateBody<B>>;
    type Error = S::Error;
    type Future = GateFuture<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    /// Has the request judged. If it passes, the inner service gets it; otherwise the response is
    /// crawlgate's own.
    fn call(&mut self, request: Request<A>) -> GateFuture<S::Future> {
        let (mut head, body) = request.into_parts();
        if head.uri.path() == "/robots.txt" {
            self.shared
                .robots_txt_requested
                .store(true, Ordering::Relaxed);
        }
        let (mut call, answer) = InFlightRequest::new(&self.shared, &head);
        let source = match answer {
            Some(answer) => ResponseSource::Answered {
                answer: Some(answer),
                is_grpc: is_grpc(&head),
            },
            None => {
                call.prepare_request(&mut head);
                ResponseSource::Passed {
                    inner: self.inner.call(Request::from_parts(head, body)),
                }
            }
        };
        GateFuture {
            source,
            call: Some(call),
        }
    }
}

pin_project! {
    /// The future of a response of a [`Gate`].
    pub struct GateFuture<F> {
        #[pin]
        source: ResponseSource<F>,
        // Taken when the response is ready.
        call: Option<InFlightRequest>,
    }
}

pin_project! {
    #[project = ResponseSourceProjection]
    enum ResponseSource<F> {
        Answered { answer: Option<Answer>, is_grpc: bool },
        Passed { #[pin] inner: F },
    }
}

impl<F, B, E> Future for GateFuture<F>
where
    F: Future<Output = Result<Response<B>, E>>,
    B: Body<Data = Bytes>,
{
    type Output = Result<Response<GateBody<B>>, E>;

    /// The response: crawlgate's own, or that of the inner service with the policy's fields. An
    /// error of the inner service is passed on.
    ///
    /// # Panics
    /// When it is polled again after it was ready, as every future may.
    #[expect(
        clippy::expect_used,
        reason = "a future that is over must not be polled"
    )]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let ended = "the response was taken already";
        let response = match this.source.project() {
            ResponseSourceProjection::Answered { answer, is_grpc } => {
                let mut call = this.call.take().expect(ended);
                let answer = answer.take().expect(ended);
                let (head, body) = call.own_response(answer, *is_grpc);
                let source = BodySource::Answer { left: body };
                Response::from_parts(head, GateBody { source, call })
            }
            ResponseSourceProjection::Passed { inner } => {
                let response = ready!(inner.poll(context));
                let mut call = this.call.take().expect(ended);
                call.has_failed = response.is_err();
                let (mut head, body) = response?.into_parts();
                let source = if call.finish_response_head(&mut head) {
                    BodySource::Rewritten {
                        body,
                        last_frame: None,
                        is_over: false,
                    }
                } else {
                    BodySource::Whole { body }
                };
                Response::from_parts(head, GateBody { source, call })
            }
        };
        Poll::Ready(Ok(response))
    }
}
