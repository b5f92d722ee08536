//! [`add_signals`] adds a site's signals to a response: header fields that say how its content may
//! be used, such as Content-Usage, `tdm-reservation` and a Link to the licence.

use super::head::EditableHead;
use crate::policy::SiteEntry;
use crate::verdict::Decision;
use http::{HeaderName, header};

/// The header of TDMRep: `1` reserves the right to text and data mining.
pub const TDM_RESERVATION: HeaderName = HeaderName::from_static("tdm-reservation");

/// Adds the site's signals to a response of the origin. A field that the origin sends itself is not
/// added: the origin knows the document, and of two Content-Usage lines the last would win (RFC
/// 9651 section 4.2). Neither is tdm-policy, if the origin sends tdm-reservation. A Link is added
/// to the origin's.
pub fn add_signals(head: &mut impl EditableHead, entry: &SiteEntry, decision: &Decision) {
    let mut fields = entry.site.signals.fields(decision.signals).peekable();
    // Looked up before ours is added.
    let origin_reserves = fields.peek().is_some() && head.has(TDM_RESERVATION);
    for (name, value) in fields {
        if name == "Link" {
            add_link(head, value.as_bytes());
        } else if !(HeaderName::from_bytes(name.as_bytes()).is_ok_and(|name| head.has(name))
            || origin_reserves && name == "tdm-policy")
        {
            head.set(name, value.as_bytes());
        }
    }
}

/// Adds a Link (RFC 8288 section 3), unless the origin itself links this licence.
fn add_link(head: &mut impl EditableHead, value: &[u8]) {
    let target = value
        .split_inclusive(|byte| *byte == b'>')
        .next()
        .unwrap_or_default();
    if !head
        .lines(header::LINK)
        .any(|line| has_license(line, target))
    {
        head.add("Link", value);
    }
}

/// Whether a Link line has this target (`<...>`) with the relation `license`.
fn has_license(line: &[u8], target: &[u8]) -> bool {
    memchr::memmem::find_iter(line, target).any(|index| {
        let parameters = &line[index + target.len()..];
        // The next link begins with a `<`.
        let end = memchr::memchr(b'<', parameters).unwrap_or(parameters.len());
        let text: Vec<u8> = parameters[..end]
            .iter()
            .filter(|byte| !b" \t\"".contains(byte))
            .copied()
            .collect();
        text.split(|byte| matches!(byte, b';' | b','))
            .any(|parameter| parameter.eq_ignore_ascii_case(b"rel=license"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderMap, HeaderValue};

    #[test]
    fn licence_that_the_origin_links_is_not_added() {
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
