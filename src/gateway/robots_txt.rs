//! The answer to `/robots.txt` (as in `docs/semantics.md`): the same bytes for everybody, with validators.

use super::answers::{self, Reply};
use super::conditional::not_modified;
use crate::policy::SiteEntry;
use crate::time::Timestamp;
use bytes::Bytes;
use http::{Method, header};
use pingora_core::Result;
use pingora_http::{RequestHeader, ResponseHeader};
use std::sync::Arc;

/// While the origin's own file is awaited: crawlers that hear 503 stay away and come again (RFC 9309 section 2.3.1.4).
const RETRY_AFTER: u32 = 60;

/// `in_force` says whether the ledger knows that the client was served the version in force on this host: a date alone
/// says that its copy is good to nobody else, for it may have it from another site's file.
pub(super) fn reply(entry: &SiteEntry, request: &RequestHeader, now: Timestamp, in_force: bool) -> Result<Reply> {
    if request.method != Method::GET && request.method != Method::HEAD {
        return answers::method_not_allowed("GET, HEAD", request);
    }
    let file = &entry.site.robots_txt;
    if let Some(seconds) = file.awaits_origin(now) {
        return answers::awaited(u32::try_from(seconds).unwrap_or(u32::MAX).clamp(1, RETRY_AFTER), request);
    }
    let date = Some(entry.since).filter(|_| in_force && entry.is_told_by_its_date());
    let fresh = not_modified(&request.headers, &file.etag, date);
    let mut header = ResponseHeader::build(if fresh { 304 } else { 200 }, Some(10))?;
    header.insert_header(header::SERVER, answers::SERVER)?;
    header.insert_header(header::ETAG, file.etag.as_str())?;
    header.insert_header(header::LAST_MODIFIED, entry.since.to_http_date())?;
    header.insert_header(header::CACHE_CONTROL, file.cache_control.as_str())?;
    if fresh {
        return Ok(Reply { header, body: Bytes::new(), close: false });
    }
    header.insert_header(header::CONTENT_TYPE, "text/plain; charset=utf-8")?;
    header.insert_header(header::CONTENT_LENGTH, file.body.len())?;
    Ok(Reply { header, body: Bytes::from_owner(SharedBody(file.body.clone())), close: false })
}

/// The bytes of the snapshot, sent without being copied.
pub(super) struct SharedBody(pub(super) Arc<[u8]>);

impl AsRef<[u8]> for SharedBody {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}
