//! An answer of our own on its way out, by Pingora: over HTTP/2. Over HTTP/1 the edge sends it. Must not know what an answer
//! says.

use crate::answers::Answer;
use pingora_core::Result;
use pingora_http::ResponseHeader;
use pingora_proxy::Session;

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
    let has_no_body = answer.body().is_empty();
    let mut written = session.write_response_header(Box::new(head(&answer)?), has_no_body).await;
    if written.is_ok() && !has_no_body {
        written = session.write_response_body(Some(answer.body().clone()), true).await;
    }
    if let Err(error) = &written {
        tracing::debug!(%error, "the client left before its answer was written");
    }
    Ok(written.is_ok())
}
