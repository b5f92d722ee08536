//! An answer of our own on its way out, by Pingora. Knows connections; must not know what an answer says.

use crate::answers::Answer;
use http::header;
use pingora_core::Result;
use pingora_http::ResponseHeader;
use pingora_proxy::Session;
use std::time::Duration;

/// A request body up to this size is read and thrown away when the request is answered here, so that the connection
/// can go on; a longer one closes it (Pingora 0.9.1).
const DRAINED_BODY: u64 = 64 * 1024;
/// What is read of a longer one while the connection is being closed.
const LINGERING_BODY: usize = 1024 * 1024;
/// How long either may take.
const DRAIN_LIMIT: Duration = Duration::from_secs(2);

/// The head of an answer as Pingora sends it.
pub(super) fn head(answer: &Answer) -> Result<ResponseHeader> {
    let mut head = ResponseHeader::build(answer.status(), Some(12))?;
    for (field, value) in answer.fields() {
        head.append_header(field.written(), value.clone())?;
    }
    Ok(head)
}

/// Sends an answer, and says whether all of it was written. A client that has gone away is no error of ours.
pub(super) async fn send(session: &mut Session, answer: Answer) -> Result<bool> {
    settle_body(session);
    if answer.closes() {
        session.set_keepalive(None);
    }
    let has_no_body = answer.body().is_empty();
    let mut written = session.write_response_header(Box::new(head(&answer)?), has_no_body).await;
    if written.is_ok() && !has_no_body {
        written = session.write_response_body(Some(answer.body().clone()), true).await;
    }
    match written {
        Ok(()) => {
            linger(session).await;
            Ok(true)
        }
        Err(error) => {
            tracing::debug!(%error, "the client left before its answer was written");
            session.set_keepalive(None);
            Ok(false)
        }
    }
}

/// A connection that is closed while the client still sends is reset, and the client may lose the answer. So what it
/// sends is read for a while, when the connection is about to end.
async fn linger(session: &mut Session) {
    let waits = session.req_header().headers.contains_key(header::EXPECT);
    if session.is_http2() || waits || session.get_keepalive().is_some() || session.is_body_done() {
        return;
    }
    let read = async {
        session.as_downstream_mut().finish_body().await?;
        let mut left = LINGERING_BODY;
        while let Some(piece) = session.read_request_body().await? {
            match left.checked_sub(piece.len()) {
                Some(rest) => left = rest,
                None => break,
            }
        }
        Ok::<(), Box<pingora_core::Error>>(())
    };
    // Whatever comes of it, the connection ends now.
    let _ = tokio::time::timeout(DRAIN_LIMIT, read).await;
}

/// What becomes of a request body that no origin will read.
fn settle_body(session: &mut Session) {
    if session.is_http2() || session.is_body_done() {
        return;
    }
    let headers = &session.req_header().headers;
    let length = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.trim().parse::<u64>().ok());
    // After `Expect: 100-continue` the client may leave the body out, and what comes next would be taken for it.
    if length.is_some_and(|length| length <= DRAINED_BODY) && !headers.contains_key(header::EXPECT) {
        session.set_close_on_response_before_downstream_finish(false);
        session.set_total_drain_timeout(Some(DRAIN_LIMIT));
    }
}
