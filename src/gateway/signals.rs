//! What a site says about the use of its content, on its way out: header lines, `/.well-known/tdmrep.json`, and the
//! answer that asks for a licence (RSL 1.0). Knows no vocabulary: lines come ready from the compiled policy.

use super::ctx::RequestContext;
use http::{HeaderName, header};
use pingora_core::Result;
use pingora_http::ResponseHeader;

const TDM_RESERVATION: HeaderName = HeaderName::from_static("tdm-reservation");

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
}
