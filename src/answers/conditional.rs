//! Conditional requests (RFC 9110 section 13) for the files that crawlgate serves: if the client's
//! copy is current, the answer is 304. [`is_not_modified`] compares the entity tag, or the date if
//! the client sends no entity tag. [`matches_etag`] compares the entity tag alone.

use crate::heads::list_members;
use crate::time::Timestamp;
use http::{HeaderMap, header};

/// Whether GET or HEAD is answered 304. `If-None-Match` outranks `If-Modified-Since` (RFC 9110
/// section 13.2.2).
///
/// `since` is the date of the version in force; `None` if another version that the client may have
/// has the same date. The client's date must equal it, as section 13.1.3 lets an origin server
/// require. A later date proves nothing: it comes from the file of another site, or from a clock
/// that was set back since.
pub fn is_not_modified(headers: &HeaderMap, etag: &str, since: Option<Timestamp>) -> bool {
    if headers.contains_key(header::IF_NONE_MATCH) {
        return matches_etag(headers, etag);
    }
    headers
        .get(header::IF_MODIFIED_SINCE)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| Timestamp::from_http_date(value.trim()))
        .is_some_and(|copy| since == Some(copy))
}

/// Whether `If-None-Match` has this entity tag (with its quotes), by weak comparison (RFC 9110
/// section 8.8.3.2). `*` names no copy, so it gets the whole file, although section 13.1.2 asks for
/// 304. A 304 would let a crawler keep a superseded robots.txt, and the ledger would record that it
/// was served the current one.
pub fn matches_etag(headers: &HeaderMap, etag: &str) -> bool {
    headers
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .flat_map(|line| list_members(line.as_bytes()))
        .any(|member| member.strip_prefix(b"W/").unwrap_or(member) == etag.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    const ETAG: &str = "\"abc\"";

    fn is_fresh(fields: &[(header::HeaderName, &'static str)]) -> bool {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(name, HeaderValue::from_static(value));
        }
        is_not_modified(&headers, ETAG, Some(Timestamp(784_111_777)))
    }

    #[test]
    fn entity_tag_matches_weakly_in_a_list() {
        for value in [
            "\"abc\"",
            "W/\"abc\"",
            "\"x\", W/\"abc\"",
            "\"a,b\" , \"abc\"",
        ] {
            assert!(is_fresh(&[(header::IF_NONE_MATCH, value)]), "{value}");
        }
        for value in [
            "\"abd\"",
            "abc",
            "\"abc",
            "",
            "\"x\" \"abc\"",
            "W/",
            "\"x\",",
            "w/\"abc\"",
            "*",
            " * ",
        ] {
            assert!(!is_fresh(&[(header::IF_NONE_MATCH, value)]), "{value}");
        }
    }

    #[test]
    fn lists_over_several_lines_are_one_list() {
        assert!(is_fresh(&[
            (header::IF_NONE_MATCH, "\"x\""),
            (header::IF_NONE_MATCH, "\"abc\"")
        ]));
    }

    #[test]
    fn date_counts_only_without_an_entity_tag() {
        let (same, earlier) = (
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:36 GMT",
        );
        let later = "Sun, 06 Nov 1994 08:49:38 GMT";
        assert!(is_fresh(&[(header::IF_MODIFIED_SINCE, same)]));
        assert!(!is_fresh(&[(header::IF_MODIFIED_SINCE, earlier)]));
        assert!(
            !is_fresh(&[(header::IF_MODIFIED_SINCE, later)]),
            "it is another file's"
        );
        assert!(!is_fresh(&[(header::IF_MODIFIED_SINCE, "yesterday")]));
        let mut headers = HeaderMap::new();
        headers.insert(header::IF_MODIFIED_SINCE, HeaderValue::from_static(same));
        assert!(
            !is_not_modified(&headers, ETAG, None),
            "the date is that of several versions"
        );
        assert!(!is_fresh(&[
            (header::IF_NONE_MATCH, "\"x\""),
            (header::IF_MODIFIED_SINCE, same)
        ]));
        assert!(!is_fresh(&[]));
    }
}
