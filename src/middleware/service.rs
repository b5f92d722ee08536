//! [`Gate`]: a service behind the gate.

use super::body::GateBody;
use super::future::GateFuture;
use super::shared::Shared;
use super::visit::{Visit, is_grpc};
use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower_service::Service;

/// A service behind the gate: requests that the policy does not let pass never reach it.
#[derive(Clone)]
pub struct Gate<S> {
    pub(super) inner: S,
    pub(super) shared: Arc<Shared>,
}

impl<S: std::fmt::Debug> std::fmt::Debug for Gate<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gate").field("inner", &self.inner).finish_non_exhaustive()
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

    fn call(&mut self, request: Request<A>) -> GateFuture<S::Future> {
        let (mut head, body) = request.into_parts();
        let (mut visit, answer) = Visit::new(&self.shared, &head);
        match answer {
            Some(answer) => GateFuture::answered(visit, answer, is_grpc(&head)),
            None => {
                visit.forward(&mut head);
                GateFuture::passed(visit, self.inner.call(Request::from_parts(head, body)))
            }
        }
    }
}
