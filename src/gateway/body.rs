//! Pages that are rewritten on their way (`html` of a policy): which they are, what that changes about request and
//! response, and the bytes through `crate::html`.
//!
//! The origin is asked for whole pages without a coding, on the paths that may be pages only. Whether a response is
//! rewritten is settled before Pingora frames it (pingora-proxy 0.9.1 makes a response without length chunked between
//! the two response filters); what its metas say is known when its X-Robots-Tag is. Must not know how a page is read.

use super::Gateway;
use super::ctx::RequestContext;
use super::response::content_types;
use crate::html::{self, Outcome, Page};
use crate::indexing::{Tags, parse_lines};
use crate::judge::origin_form;
use crate::policy::compiled::HtmlRules;
use crate::policy::model::OriginTags;
use crate::robots::TargetScratch;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use pingora_core::Result;
use pingora_http::{RequestHeader, ResponseHeader};

const X_ROBOTS_TAG: HeaderName = HeaderName::from_static("x-robots-tag");
const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// Fields that speak of the octets as the origin sent them (RFC 9530, RFC 9110 section 14.3).
const OF_THE_OCTETS: [HeaderName; 5] = [
    header::ACCEPT_RANGES,
    HeaderName::from_static("content-md5"),
    HeaderName::from_static("digest"),
    HeaderName::from_static("content-digest"),
    HeaderName::from_static("repr-digest"),
];

/// Names of files that are no pages: they keep their codings and ranges.
const NO_PAGES: [&str; 58] = [
    "7z", "apk", "atom", "avi", "avif", "bin", "bmp", "bz2", "css", "csv", "dmg", "doc", "docx", "eot", "epub", "exe",
    "flac", "gif", "gz", "ico", "iso", "jpeg", "jpg", "js", "json", "m4a", "m4v", "map", "mjs", "mkv", "mov", "mp3",
    "mp4", "mpeg", "msi", "odt", "ogg", "ogv", "otf", "pdf", "png", "pptx", "rar", "rss", "svg", "tar", "tgz", "tif",
    "tiff", "ttf", "txt", "wasm", "wav", "webm", "webp", "woff", "woff2", "zip",
];

/// How far the body of a response is to be rewritten.
#[derive(Debug, Default)]
pub(super) enum Body {
    /// It passes as it is: so every one does whose site does not ask for anything else.
    #[default]
    AsItIs,
    /// A page was asked for, whole and without a coding.
    Asked,
    /// The response is one that can be rewritten; its fields say so already.
    Framed,
    /// It is being rewritten.
    Rewriting(Box<Page>),
}

/// Asks the origin for what can be rewritten. Called again when another server is tried.
pub(super) fn ask(request: &mut RequestHeader, original: &RequestHeader, ctx: &mut RequestContext) -> Result<()> {
    let Some(rules) = rules(ctx) else { return Ok(()) };
    if !may_be_page(original, rules) {
        return Ok(());
    }
    request.insert_header(header::ACCEPT_ENCODING, "identity")?;
    // A part of the page as it was is no part of the page as it will be.
    request.remove_header(&header::RANGE);
    request.remove_header(&header::IF_RANGE);
    ctx.body = Body::Asked;
    Ok(())
}

fn rules(ctx: &RequestContext) -> Option<&HtmlRules> {
    ctx.judged()?.1.site.html.as_ref()
}

fn may_be_page(request: &RequestHeader, rules: &HtmlRules) -> bool {
    if !matches!(request.method, Method::GET | Method::HEAD)
        || says(&request.headers, &header::CACHE_CONTROL, NO_TRANSFORM)
    {
        return false;
    }
    let target = origin_form(request.raw_path());
    if has_other_name(&target) || asked_for_as_other(&request.headers) {
        return false;
    }
    !rules.asks_path() || rules.applies(TargetScratch::default().normalise(&target))
}

fn has_other_name(target: &[u8]) -> bool {
    let path = target.split(|octet| matches!(octet, b'?' | b'#')).next().unwrap_or_default();
    let name = path.rsplit(|octet| *octet == b'/').next().unwrap_or_default();
    let Some(dot) = name.iter().rposition(|octet| *octet == b'.') else { return false };
    NO_PAGES.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(&name[dot + 1..]))
}

/// Browsers say what they fetch something for: a video needs its ranges, whatever it is called, and what a script
/// fetches is data (no crawler reads the metas of that). Other clients say what they accept.
fn asked_for_as_other(headers: &HeaderMap) -> bool {
    let pages: [&[u8]; 6] = [b"document", b"iframe", b"frame", b"embed", b"object", b"fencedframe"];
    let json = |accept: &HeaderValue| accept.as_bytes().trim_ascii().eq_ignore_ascii_case(b"application/json");
    headers.get(SEC_FETCH_DEST).is_some_and(|dest| !pages.contains(&dest.as_bytes()))
        || headers.get(header::ACCEPT).is_some_and(json)
}

/// Settles whether the response is rewritten, and takes away what would not be true of it then.
pub(super) fn frame(
    gateway: &Gateway,
    request: &RequestHeader,
    response: &mut ResponseHeader,
    ctx: &mut RequestContext,
) -> Result<()> {
    if !matches!(ctx.body, Body::Asked) || response.status.is_informational() {
        return Ok(());
    }
    ctx.body = Body::AsItIs;
    // Who asked for a part and got the whole would ask for the next part in the same way.
    if request.headers.contains_key(header::RANGE) {
        response.remove_header(&header::ACCEPT_RANGES);
    }
    if response.status == http::StatusCode::NOT_MODIFIED {
        return as_the_client_has_it(&request.headers, response);
    }
    if !is_whole_page(response) || !has_something_to_say(response, ctx) {
        return Ok(());
    }
    if let Some(why) = cannot_be_rewritten(&response.headers) {
        if let Some((_, entry)) = ctx.judged() {
            gateway.metrics.page(&entry.site.name, why);
        }
        return Ok(());
    }
    response.remove_header(&header::CONTENT_LENGTH);
    for name in &OF_THE_OCTETS {
        response.remove_header(name);
    }
    if let Some(weak) = response.headers.get(header::ETAG).and_then(weakened) {
        response.insert_header(header::ETAG, weak)?;
    }
    // HEAD gets the fields of GET, and no body.
    if request.method != Method::HEAD {
        ctx.body = Body::Framed;
    }
    Ok(())
}

const NO_TRANSFORM: &[u8] = b"no-transform";

/// Whole pages only, in HTML. XHTML is let be: one slip in it and a browser shows nothing but the slip.
fn is_whole_page(response: &ResponseHeader) -> bool {
    let status = response.status.as_u16();
    let headers = &response.headers;
    let is_html = |line: &HeaderValue| {
        let media = line.as_bytes().split(|octet| *octet == b';').next().unwrap_or_default();
        media.trim_ascii().eq_ignore_ascii_case(b"text/html")
    };
    // Of several lines each reader takes its own.
    let mut types = headers.get_all(header::CONTENT_TYPE).iter().peekable();
    (200..300).contains(&status)
        && !matches!(status, 204..=206)
        && types.peek().is_some()
        && types.all(is_html)
        && !headers.contains_key(header::CONTENT_RANGE)
        && headers.get(header::CONTENT_LENGTH).is_none_or(|length| length.as_bytes().trim_ascii() != b"0")
}

/// Why a page has to stay as it is, as a word for metrics.
fn cannot_be_rewritten(headers: &HeaderMap) -> Option<&'static str> {
    let coded = |line: &HeaderValue| {
        let codings = line.as_bytes().split(|octet| *octet == b',').map(<[u8]>::trim_ascii);
        codings.into_iter().any(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case(b"identity"))
    };
    if headers.get_all(header::CONTENT_ENCODING).iter().any(coded) {
        Some("coded")
    } else if says(headers, &header::CACHE_CONTROL, NO_TRANSFORM) {
        Some("no_transform")
    } else if !html::is_readable(charset(content_type(headers))) {
        Some(Outcome::Encoding.name())
    } else {
        None
    }
}

fn content_type(headers: &HeaderMap) -> &[u8] {
    headers.get(header::CONTENT_TYPE).map_or(b"".as_slice(), HeaderValue::as_bytes)
}

/// Whether there will be tags, or there are marks to be made: a page that stays as it is keeps its length too.
fn has_something_to_say(response: &ResponseHeader, ctx: &RequestContext) -> bool {
    let Some((decision, entry)) = ctx.judged() else { return false };
    let Some(rules) = &entry.site.html else { return false };
    let content_type = content_types(&response.headers);
    let content_type = content_type.as_deref();
    let theirs = response.headers.contains_key(X_ROBOTS_TAG) && entry.site.origin_tags != OriginTags::Strip;
    !rules.marks.is_empty()
        || rules.meta
            && (theirs || entry.site.tags.tags(&decision.path_rules, response.status.as_u16(), content_type).is_some())
}

/// Begins to rewrite. Called when the response has the X-Robots-Tag that the client gets.
pub(super) fn begin(response: &ResponseHeader, ctx: &mut RequestContext) {
    if !matches!(ctx.body, Body::Framed) {
        return;
    }
    let page = rules(ctx).and_then(|rules| {
        let lines = response.headers.get_all(X_ROBOTS_TAG).iter().map(HeaderValue::as_bytes);
        let tags = if rules.meta { parse_lines(lines) } else { Tags::default() };
        Page::new(&tags, Some(&rules.marks), charset(content_type(&response.headers)))
    });
    ctx.body = page.map_or(Body::AsItIs, |page| Body::Rewriting(Box::new(page)));
}

/// A piece of the body on its way.
pub(super) fn rewrite(gateway: &Gateway, body: &mut Option<Bytes>, end_of_stream: bool, ctx: &mut RequestContext) {
    let Body::Rewriting(page) = &mut ctx.body else { return };
    if !page.is_passing() {
        let mut written = body.take().map_or_else(Vec::new, |piece| page.write(&piece));
        if end_of_stream {
            written.extend(page.end());
        }
        // What is held for now is no end.
        *body = (!written.is_empty()).then(|| Bytes::from(written));
    }
    if end_of_stream {
        let outcome = page.outcome();
        over(gateway, outcome, ctx);
    }
}

/// The origin broke off in the middle of a page: gives what is still held of it, so that a client gets all that came.
pub(super) fn broken_off(gateway: &Gateway, ctx: &mut RequestContext) -> Bytes {
    let Body::Rewriting(page) = &mut ctx.body else { return Bytes::new() };
    let held = page.end();
    let outcome = page.outcome();
    over(gateway, outcome, ctx);
    Bytes::from(held)
}

fn over(gateway: &Gateway, outcome: Outcome, ctx: &mut RequestContext) {
    ctx.body = Body::AsItIs;
    if let Some((_, entry)) = ctx.judged() {
        gateway.metrics.page(&entry.site.name, outcome.name());
    }
}

/// A 304 speaks of what the client has: the entity tag of a page that was rewritten for it is a weak one. Whoever asks
/// by the date alone does not say which it has, and gets the tag that the page itself would have (RFC 9110 section
/// 15.4.5).
fn as_the_client_has_it(asked: &HeaderMap, response: &mut ResponseHeader) -> Result<()> {
    let Some(weak) = response.headers.get(header::ETAG).and_then(weakened) else { return Ok(()) };
    let has = |line: &HeaderValue| memchr::memmem::find(line.as_bytes(), weak.as_bytes()).is_some();
    let mut lines = asked.get_all(header::IF_NONE_MATCH).iter().peekable();
    if lines.peek().is_none() || lines.any(has) {
        response.insert_header(header::ETAG, weak)?;
    }
    Ok(())
}

/// A strong entity tag made weak (RFC 9110 section 8.8.1: the octets are others, the meaning is the same).
fn weakened(etag: &HeaderValue) -> Option<HeaderValue> {
    let etag = etag.as_bytes().trim_ascii();
    if !etag.starts_with(b"\"") {
        return None;
    }
    HeaderValue::from_bytes(&[b"W/".as_slice(), etag].concat()).ok()
}

/// Whether a list of directives holds this one.
fn says(headers: &HeaderMap, name: &HeaderName, directive: &[u8]) -> bool {
    let lines = headers.get_all(name).iter().map(HeaderValue::as_bytes);
    lines
        .flat_map(|line| line.split(|octet| *octet == b','))
        .any(|said| said.trim_ascii().eq_ignore_ascii_case(directive))
}

/// The `charset` parameter of a media type.
fn charset(content_type: &[u8]) -> Option<&[u8]> {
    content_type.split(|octet| *octet == b';').skip(1).find_map(|parameter| {
        let equals = parameter.iter().position(|octet| *octet == b'=')?;
        let (name, value) = (parameter[..equals].trim_ascii(), parameter[equals + 1..].trim_ascii());
        let value = value.strip_prefix(b"\"").map_or(value, |value| value.strip_suffix(b"\"").unwrap_or(value));
        name.eq_ignore_ascii_case(b"charset").then_some(value)
    })
}

#[cfg(test)]
mod tests;
