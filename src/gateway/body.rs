//! Pages that are rewritten on their way: Pingora's phases, and `forwarding::PageRewrite` in each.
//!
//! Whether a response is rewritten is settled before Pingora frames it (pingora-proxy 0.9.1 makes a response without
//! length chunked between the two response filters).

use super::ctx::RequestContext;
use crate::forwarding::{PageRequest, RewriteEnd};
use bytes::Bytes;
use pingora_http::{RequestHeader, ResponseHeader};

/// Asks the origin for what can be rewritten. Called again when another server is tried.
pub(super) fn ask(request: &mut RequestHeader, original: &RequestHeader, ctx: &mut RequestContext) {
    let mut rewrite = std::mem::take(&mut ctx.body);
    if let Some(page) = page_request(original, ctx) {
        rewrite.ask(request, &page);
    }
    ctx.body = rewrite;
}

/// Settles whether the response is rewritten.
pub(super) fn frame(request: &RequestHeader, response: &mut ResponseHeader, ctx: &mut RequestContext) {
    let mut rewrite = std::mem::take(&mut ctx.body);
    let status = response.status;
    let end = page_request(request, ctx).and_then(|page| rewrite.frame(response, status, &page));
    ctx.body = rewrite;
    count(ctx, end);
}

/// Begins to rewrite. Called when the response has the X-Robots-Tag that the client gets.
pub(super) fn begin(response: &ResponseHeader, ctx: &mut RequestContext) {
    let mut rewrite = std::mem::take(&mut ctx.body);
    rewrite.begin(&response.headers, ctx.judged().and_then(|(_, entry)| entry.site.html.as_ref()));
    ctx.body = rewrite;
}

/// A piece of the body on its way.
pub(super) fn rewrite(body: &mut Option<Bytes>, end_of_stream: bool, ctx: &mut RequestContext) {
    let end = ctx.body.write(body, end_of_stream);
    count(ctx, end);
}

/// The origin broke off in the middle of a page: gives what is still held of it.
pub(super) fn broken_off(ctx: &mut RequestContext) -> Bytes {
    let (held, end) = ctx.body.break_off();
    count(ctx, end);
    held
}

fn page_request<'a>(request: &'a RequestHeader, ctx: &'a RequestContext) -> Option<PageRequest<'a>> {
    let (decision, entry) = ctx.judged()?;
    let (method, target, headers) = (&request.method, request.raw_path(), &request.headers);
    Some(PageRequest { method, target, headers, decision, entry })
}

fn count(ctx: &RequestContext, end: Option<RewriteEnd>) {
    if let (Some(end), Some(ticket)) = (end, &ctx.ticket) {
        ticket.count_page(end);
    }
}
