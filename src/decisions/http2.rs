//! The service over HTTP/2, as an application of Pingora's: reads one request of a stream, and writes its answer.

use super::service::Decisions;
use crate::answers::Answer;
use crate::heads;
use crate::requests::{Arrival, ClientConnection, Received, Respond, Responded};
use async_trait::async_trait;
use pingora_core::Result;
use pingora_core::apps::{HttpServerApp, ReusedHttpStream};
use pingora_core::protocols::http::ServerSession;
use pingora_core::server::ShutdownWatch;
use pingora_http::{RequestHeader, ResponseHeader};
use std::net::IpAddr;
use std::sync::Arc;

#[async_trait]
impl HttpServerApp for Decisions {
    async fn process_new_http(
        self: &Arc<Self>,
        mut session: ServerSession,
        _shutdown: &ShutdownWatch,
    ) -> Option<ReusedHttpStream> {
        if !matches!(session.read_request().await, Ok(true)) {
            return None;
        }
        let head = session.req_header().clone();
        let responded = self.respond(&received(&head, peer(&session), self.requests().arrival()));
        let is_whole = match write(&mut session, &responded).await {
            Ok(()) => true,
            Err(error) => {
                tracing::debug!(%error, "the proxy left before its answer was written");
                false
            }
        };
        self.written(responded, is_whole);
        if let Err(error) = session.finish().await {
            tracing::debug!(%error, "a stream of a proxy did not end as it should");
        }
        None
    }
}

fn received(head: &RequestHeader, peer: Option<IpAddr>, arrival: Arrival) -> Received<'_> {
    Received {
        method: &head.method,
        target: head.raw_path(),
        host: heads::host(&head.headers, head.uri.authority().map(http::uri::Authority::as_str)),
        headers: &head.headers,
        peer,
        http: "2",
        arrival,
    }
}

/// The other end, as the edge knows it.
fn peer(session: &ServerSession) -> Option<IpAddr> {
    let digest = session.digest()?.proxy_digest.as_ref()?;
    digest.user_data.as_ref()?.downcast_ref::<Arc<ClientConnection>>()?.peer.address
}

async fn write(session: &mut ServerSession, responded: &Responded) -> Result<()> {
    let answer = &responded.answer;
    let body = answer.body().clone();
    session.write_response_header(Box::new(head(answer)?)).await?;
    session.write_response_body(body, true).await
}

fn head(answer: &Answer) -> Result<ResponseHeader> {
    let mut head = ResponseHeader::build(answer.status(), Some(12))?;
    for (field, value) in answer.fields() {
        head.append_header(field.written(), value.clone())?;
    }
    Ok(head)
}
