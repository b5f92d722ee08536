//! [`attach`] adds the signals of a site to a response: header fields that say how its content may
//! be used, such as Content-Usage, `tdm-reservation` and a Link to the licence.

use super::head::Head;
use crate::policy::SiteEntry;
use crate::verdict::Decision;
use http::{HeaderName, header};

const TDM_RESERVATION: HeaderName = HeaderName::from_static("tdm-reservation");

/// Adds the site's lines to a response of the origin. A field that the origin sends itself stays
/// alone: the origin knows the document, and of two Content-Usage lines the last would win (RFC
/// 9651 section 4.2). A Link is added beside the origin's. If the origin sends tdm-reservation, the
/// site's tdm-policy is left out, too.
pub fn attach(head: &mut impl Head, entry: &SiteEntry, decision: &Decision) {
    let mut fields = entry.site.signals.fields(decision.signals).peekable();
    // Looked up before ours is there, and not for sites that say nothing.
    let origin_reserves = fields.peek().is_some() && head.has(TDM_RESERVATION);
    for (name, value) in fields {
        if name == "Link" {
            add_link(head, value.as_bytes());
        } else if !(origin_sends(head, name) || origin_reserves && name == "tdm-policy") {
            head.set(name, value.as_bytes());
        }
    }
}

fn origin_sends(head: &impl Head, name: &'static str) -> bool {
    HeaderName::from_bytes(name.as_bytes()).is_ok_and(|name| head.has(name))
}

/// Adds a Link beside those of the origin (RFC 8288 section 3), unless the origin itself names this
/// licence.
fn add_link(head: &mut impl Head, value: &[u8]) {
    let target = value
        .split_inclusive(|octet| *octet == b'>')
        .next()
        .unwrap_or_default();
    if !head
        .lines(header::LINK)
        .any(|line| names_license(line, target))
    {
        head.add("Link", value);
    }
}

/// Whether a Link line has this target (`<...>`) with the relation `license`, however the rest is
/// written.
fn names_license(line: &[u8], target: &[u8]) -> bool {
    memchr::memmem::find_iter(line, target).any(|place| {
        let parameters = &line[place + target.len()..];
        // The next link begins with a `<`.
        let end = memchr::memchr(b'<', parameters).unwrap_or(parameters.len());
        let text: Vec<u8> = parameters[..end]
            .iter()
            .filter(|octet| !b" \t\"".contains(octet))
            .copied()
            .collect();
        text.split(|octet| matches!(octet, b';' | b','))
            .any(|parameter| parameter.eq_ignore_ascii_case(b"rel=license"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderMap, HeaderValue};

    #[test]
    fn licence_that_the_origin_names_is_not_named_twice() {
        let ours = "<https://a.example/l.xml>; rel=\"license\"; type=\"application/rsl+xml\"";
        let lines = |theirs: &str| {
            let mut response = HeaderMap::new();
            response.append(header::LINK, HeaderValue::from_str(theirs).unwrap());
            add_link(&mut response, ours.as_bytes());
            response.get_all(header::LINK).iter().count()
        };
        for same in [
            ours,
            "<https://a.example/l.xml>; rel=license",
            "</x>; rel=next, <https://a.example/l.xml> ; type=a; REL=\"license\"",
        ] {
            assert_eq!(lines(same), 1, "{same}");
        }
        for other in [
            "<https://a.example/l.xml>; rel=next, </b>; rel=license",
            "<https://b.example/l.xml>; rel=license",
            "</x>",
        ] {
            assert_eq!(lines(other), 2, "{other}");
        }
    }
}
