//! What a site says about the use of its content, on its way out: header lines, `/.well-known/tdmrep.json`, and the
//! answer that asks for a licence (RSL 1.0). Knows no vocabulary: lines come ready from the compiled policy.

use super::answers::{self, Reply};
use super::conditional::same_entity;
use super::ctx::RequestContext;
use super::robots_txt::SharedBody;
use crate::crawlers::Registry;
use crate::policy::SiteEntry;
use crate::policy::compiled::ServedFile;
use crate::verdict::{Decision, crawler_name};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, header};
use pingora_core::Result;
use pingora_http::{RequestHeader, ResponseHeader};

const TDM_RESERVATION: HeaderName = HeaderName::from_static("tdm-reservation");

/// RFC 6750's word for a request that lacks the token, which RSL 1.0 (section 6.3.4) takes over.
const CHALLENGE: &str =
    "License error=\"invalid_request\", error_description=\"Access to this resource requires a valid license\"";

/// Adds the site's lines to what the origin answers. Where the origin says a field itself, its word stands: it knows
/// the document, and two Content-Usage lines would be read as one of which the last wins (RFC 9651 section 4.2).
pub(super) fn attach(response: &mut ResponseHeader, ctx: &RequestContext) -> Result<()> {
    let Some((decision, entry)) = ctx.judged() else { return Ok(()) };
    let origin_reserves = response.headers.contains_key(TDM_RESERVATION);
    for (name, value) in entry.site.signals.fields(decision.signals) {
        if name == "Link" {
            append_link(response, &value)?;
        } else if !(response.headers.contains_key(name) || origin_reserves && name == "tdm-policy") {
            response.insert_header(name, &*value)?;
        }
    }
    Ok(())
}

/// Links stand beside each other (RFC 8288 section 3); a licence that the origin names itself is not named twice.
fn append_link(response: &mut ResponseHeader, value: &str) -> Result<()> {
    let target = value.split_inclusive('>').next().unwrap_or(value);
    if !response.headers.get_all(header::LINK).iter().any(|line| names_license(line.as_bytes(), target.as_bytes())) {
        response.append_header(header::LINK, value)?;
    }
    Ok(())
}

/// Whether a Link line has this target (`<...>`) with the relation `license`, however the rest is written.
fn names_license(line: &[u8], target: &[u8]) -> bool {
    let links = line.windows(target.len()).enumerate().filter(|(_, window)| *window == target);
    links.into_iter().any(|(place, _)| {
        let parameters = &line[place + target.len()..];
        // The next link begins with a `<`.
        let end = parameters.iter().position(|octet| *octet == b'<').unwrap_or(parameters.len());
        let text: Vec<u8> = parameters[..end].iter().filter(|octet| !b" \t\"".contains(octet)).copied().collect();
        text.split(|octet| matches!(octet, b';' | b',')).any(|parameter| parameter.eq_ignore_ascii_case(b"rel=license"))
    })
}

/// Whether the request carries a licence token: `Authorization: License TOKEN`, the scheme in any case (RFC 9110
/// section 11.1). The token is not looked into.
pub(super) fn shows_license_token(request: &RequestHeader) -> bool {
    request.headers.get_all(header::AUTHORIZATION).iter().any(|line| {
        let line = line.as_bytes().trim_ascii();
        let scheme = line.iter().position(|octet| *octet == b' ').unwrap_or(line.len());
        let (scheme, token) = line.split_at(scheme);
        scheme.eq_ignore_ascii_case(b"License") && !token.trim_ascii().is_empty()
    })
}

/// RSL 1.0 section 6.3: the challenge, and the Link that says where the licence is.
pub(super) fn license_wanted(
    status: u16,
    registry: &Registry,
    entry: &SiteEntry,
    decision: &Decision,
    request: &RequestHeader,
) -> Result<Reply> {
    let group = decision.rule.map(|rule| rule.group);
    let license = entry.site.signals.license(decision.signals, group);
    let crawler = crawler_name(registry, entry, decision.claim);
    let mut reply = answers::unlicensed(status, &crawler, license.map_or("", |license| &license.url), request)?;
    reply.header.insert_header(header::WWW_AUTHENTICATE, HeaderValue::from_static(CHALLENGE))?;
    if let Some(license) = license {
        reply.header.insert_header(header::LINK, license.link.as_str())?;
    }
    Ok(reply)
}

/// The file of TDMRep: for everybody, as robots.txt is.
pub(super) fn tdmrep(file: &ServedFile, request: &RequestHeader) -> Result<Reply> {
    if request.method != Method::GET && request.method != Method::HEAD {
        return answers::method_not_allowed("GET, HEAD", request);
    }
    let fresh = same_entity(&request.headers, &file.etag);
    let mut header = ResponseHeader::build(if fresh { 304 } else { 200 }, Some(8))?;
    header.insert_header(header::SERVER, answers::SERVER)?;
    header.insert_header(header::ETAG, file.etag.as_str())?;
    header.insert_header(header::CACHE_CONTROL, file.cache_control.as_str())?;
    if fresh {
        return Ok(Reply { header, body: Bytes::new(), close: false });
    }
    header.insert_header(header::CONTENT_TYPE, "application/json")?;
    header.insert_header(header::CONTENT_LENGTH, file.body.len())?;
    Ok(Reply { header, body: Bytes::from_owner(SharedBody(file.body.clone())), close: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_licence_that_the_origin_names_is_not_named_twice() {
        let ours = "<https://a.example/l.xml>; rel=\"license\"; type=\"application/rsl+xml\"";
        let lines = |theirs: &str| {
            let mut response = ResponseHeader::build(200, None).unwrap();
            response.append_header(header::LINK, theirs).unwrap();
            append_link(&mut response, ours).unwrap();
            response.headers.get_all(header::LINK).iter().count()
        };
        for same in [
            ours,
            "<https://a.example/l.xml>; rel=license",
            "</x>; rel=next, <https://a.example/l.xml> ; type=a; REL=\"license\"",
        ] {
            assert_eq!(lines(same), 1, "{same}");
        }
        for other in
            ["<https://a.example/l.xml>; rel=next, </b>; rel=license", "<https://b.example/l.xml>; rel=license", "</x>"]
        {
            assert_eq!(lines(other), 2, "{other}");
        }
    }

    #[test]
    fn a_token_is_seen_in_any_case_and_nothing_else_is_one() {
        let shows = |lines: &[&'static str]| {
            let mut request = RequestHeader::build("GET", b"/", None).unwrap();
            for line in lines {
                request.append_header(header::AUTHORIZATION, *line).unwrap();
            }
            shows_license_token(&request)
        };
        for line in ["License abc", "license abc", "LICENSE   a.b.c==", " License abc "] {
            assert!(shows(&[line]), "{line:?}");
        }
        for line in ["License", "License ", "Licensed abc", "Bearer abc", "Basic TGljZW5zZQ==", "", "License\tabc"] {
            assert!(!shows(&[line]), "{line:?}");
        }
        assert!(shows(&["Basic abc", "License abc"]));
        assert!(!shows(&[]));
    }
}
