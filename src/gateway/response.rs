//! The origin's answer on its way to the client: the policy's tags and signals, and what HTTP/1.0 needs.

use super::Gateway;
use super::answers::append_lines;
use super::ctx::RequestContext;
use super::signals;
use crate::indexing::place_of;
use crate::policy::compiled::{self, Sent, TagLines};
use crate::policy::model::OriginTags;
use http::{HeaderMap, HeaderName, HeaderValue, Version, header};
use pingora_core::Result;
use pingora_http::ResponseHeader;
use pingora_proxy::Session;
use std::borrow::Cow;

const X_ROBOTS_TAG: HeaderName = HeaderName::from_static("x-robots-tag");

pub(super) fn filter(
    gateway: &Gateway,
    session: &mut Session,
    response: &mut ResponseHeader,
    ctx: &mut RequestContext,
) -> Result<()> {
    // Early hints and the like are no answer (Pingora shows them here too); a switch of protocols has no page to tag.
    if response.status.is_informational() {
        return Ok(());
    }
    if let Some(asked) = ctx.asked_origin {
        gateway.metrics.upstream(response.status.as_u16(), asked.elapsed().as_secs_f64());
    }
    if session.is_process_shutting_down() {
        session.set_keepalive(None);
    }
    if response.version == Version::HTTP_10 {
        // A proxy answers in its own version, whatever the origin's (RFC 9112 section 2.3). Where Pingora makes a body
        // chunked it says so, elsewhere (HEAD, or with a length) it would not.
        response.set_version(Version::HTTP_11);
    }
    if session.req_header().version == Version::HTTP_10 {
        response.remove_header(&header::TRANSFER_ENCODING);
    }
    attach_tags(response, ctx)?;
    signals::attach(response, ctx)?;
    Ok(())
}

fn attach_tags(response: &mut ResponseHeader, ctx: &RequestContext) -> Result<()> {
    // A host that no site claims is forwarded untouched.
    let Some((decision, entry)) = ctx.judged() else { return Ok(()) };
    let (plan, status) = (&entry.site.tags, response.status.as_u16());
    if plan.is_hidden(&decision.path_rules, status) {
        // What the origin says alone would stand in the place of what was stored of both (RFC 9111 section 3.2).
        response.remove_header(&X_ROBOTS_TAG);
        return Ok(());
    }
    let content_type = content_types(&response.headers);
    let ours = plan.tags(&decision.path_rules, status, content_type.as_deref());
    combine(response, ours.as_deref(), entry.site.origin_tags)
}

/// What the response is said to be, which should be one type. Of several lines crawlers and browsers take this or that
/// one: they are joined, as lines of one field are (RFC 9110 section 5.3).
pub(super) fn content_types(headers: &HeaderMap) -> Option<Cow<'_, [u8]>> {
    let mut lines = headers.get_all(header::CONTENT_TYPE).iter().map(HeaderValue::as_bytes);
    let first = Cow::Borrowed(lines.next()?);
    Some(lines.fold(first, |joined, line| Cow::Owned([&joined, b", ".as_slice(), line].concat())))
}

fn combine(response: &mut ResponseHeader, ours: Option<&TagLines>, origin_tags: OriginTags) -> Result<()> {
    let theirs = response.headers.get_all(X_ROBOTS_TAG).iter().map(HeaderValue::as_bytes);
    match compiled::combine(ours, theirs, origin_tags) {
        Sent::Added(lines) => {
            append_lines(response, lines)?;
            if lines.is_empty() { Ok(()) } else { unscoped_first(response) }
        }
        Sent::Instead(lines) => {
            response.remove_header(&X_ROBOTS_TAG);
            append_lines(response, &lines)
        }
    }
}

/// Orders the origin's lines and ours, where one is for one bot only; each stays as it is.
fn unscoped_first(response: &mut ResponseHeader) -> Result<()> {
    let place = |line: &HeaderValue| place_of(line.as_bytes());
    if response.headers.get_all(X_ROBOTS_TAG).iter().is_sorted_by_key(place) {
        return Ok(());
    }
    let mut lines: Vec<HeaderValue> = response.headers.get_all(X_ROBOTS_TAG).iter().cloned().collect();
    lines.sort_by_key(place);
    response.remove_header(&X_ROBOTS_TAG);
    for line in lines {
        response.append_header("X-Robots-Tag", line)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::indexing::{Directives, Scope, Tags};

    fn combined(theirs: &[&str], ours: Option<&str>, origin_tags: OriginTags) -> Vec<String> {
        let mut response = ResponseHeader::build(200, None).unwrap();
        for line in theirs {
            response.append_header(X_ROBOTS_TAG, *line).unwrap();
        }
        let ours = ours.map(|text| {
            let mut tags = Tags::default();
            tags.add(Scope::All, &Directives::parse(text).unwrap());
            TagLines { lines: tags.lines(), tags, origin_tags: None }
        });
        combine(&mut response, ours.as_ref(), origin_tags).unwrap();
        let lines = response.headers.get_all(X_ROBOTS_TAG).iter();
        lines.map(|line| line.to_str().unwrap().to_string()).collect()
    }

    #[test]
    fn keep_adds_our_lines_to_theirs() {
        assert_eq!(combined(&["nofollow"], Some("noindex"), OriginTags::Keep), ["nofollow", "noindex"]);
        assert_eq!(combined(&["nofollow"], None, OriginTags::Keep), ["nofollow"]);
        let scoped = ["googlebot: nofollow", "noarchive, bingbot: nocache", "x: y"];
        assert_eq!(
            combined(&scoped, Some("noindex"), OriginTags::Keep),
            ["x: y", "noindex", "noarchive, bingbot: nocache", "googlebot: nofollow"],
            "joined, ours would be for bingbot or googlebot only"
        );
        assert_eq!(combined(&scoped, None, OriginTags::Keep), scoped);
    }

    #[test]
    fn octets_that_are_no_text_are_sent_on_as_they_came() {
        let mut response = ResponseHeader::build(200, None).unwrap();
        response
            .append_header(X_ROBOTS_TAG, HeaderValue::from_bytes(b"noindex\xA0, nofollow, f\xE9o").unwrap())
            .unwrap();
        let mut tags = Tags::default();
        tags.add(Scope::All, &Directives::parse("noarchive").unwrap());
        let ours = TagLines { lines: tags.lines(), tags, origin_tags: None };
        combine(&mut response, Some(&ours), OriginTags::Merge).unwrap();
        let line = response.headers.get(X_ROBOTS_TAG).unwrap().as_bytes();
        let mut members: Vec<&[u8]> = line.split(|octet| *octet == b',').map(<[u8]>::trim_ascii).collect();
        members.sort_unstable();
        assert_eq!(members, [b"f\xE9o".as_slice(), b"noarchive", b"nofollow", b"noindex\xA0"]);
    }

    #[test]
    fn merge_unites_per_scope_and_the_most_restrictive_value_wins() {
        let merged = combined(&["max-snippet: 50", "googlebot: nofollow"], Some("max-snippet: 20"), OriginTags::Merge);
        assert_eq!(merged, ["max-snippet: 20", "googlebot: nofollow"]);
        assert_eq!(combined(&["x: y,  nofollow"], None, OriginTags::Merge), ["x: y,  nofollow"]);
        assert_eq!(combined(&[], Some("noindex"), OriginTags::Merge), ["noindex"]);
    }

    #[test]
    fn replace_drops_theirs_only_where_a_rule_of_ours_matches() {
        assert_eq!(combined(&["nofollow"], Some("noindex"), OriginTags::Replace), ["noindex"]);
        assert_eq!(combined(&["nofollow"], None, OriginTags::Replace), ["nofollow"]);
    }

    #[test]
    fn a_rule_that_says_it_outranks_the_site() {
        let mut response = ResponseHeader::build(200, None).unwrap();
        response.append_header(X_ROBOTS_TAG, "noindex").unwrap();
        let ours = TagLines { origin_tags: Some(OriginTags::Strip), ..TagLines::default() };
        combine(&mut response, Some(&ours), OriginTags::Keep).unwrap();
        assert!(!response.headers.contains_key(X_ROBOTS_TAG));
    }

    #[test]
    fn more_than_anybody_means_is_passed_on_whole() {
        let long = "a,".repeat(2_000);
        assert_eq!(combined(&[&long], Some("noindex"), OriginTags::Merge), [long.as_str(), "noindex"]);
    }

    #[test]
    fn strip_never_passes_theirs_on() {
        assert_eq!(combined(&["nofollow"], Some("noindex"), OriginTags::Strip), ["noindex"]);
        assert!(combined(&["nofollow"], None, OriginTags::Strip).is_empty());
    }
}
