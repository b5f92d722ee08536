//! [`attach`] combines the X-Robots-Tag lines of the policy with those of the origin, as the policy
//! says.

use super::head::Head;
use crate::heads::{X_ROBOTS_TAG, joined};
use crate::indexing::place_of;
use crate::policy::SiteEntry;
use crate::policy::model::OriginTags;
use crate::policy::site::{self, Sent, TagLines};
use crate::verdict::Decision;
use http::header;

/// Attaches the tags of the policy to a response with this status. If it is a 304, and the tags
/// depend on the type of the stored page, there must be none: the origin's are removed, too.
pub fn attach(head: &mut impl Head, status: u16, entry: &SiteEntry, decision: &Decision) {
    let plan = &entry.site.tags;
    if plan.is_hidden(&decision.path_rules, status) {
        // The origin's lines alone would stand in the place of what was stored of both (RFC 9111
        // section 3.2).
        head.remove(&X_ROBOTS_TAG);
        return;
    }
    let content_type = joined(head.lines(header::CONTENT_TYPE));
    let ours = plan.tags(&decision.path_rules, status, content_type.as_deref());
    combine(head, ours.as_deref(), entry.site.origin_tags);
}

/// Adds our lines to those of the origin, or replaces these, as `origin_tags` says. Lines that are
/// added come in an order in which those for every crawler are first.
fn combine(head: &mut impl Head, ours: Option<&TagLines>, origin_tags: OriginTags) {
    match site::combine(ours, head.lines(X_ROBOTS_TAG), origin_tags) {
        Sent::Added(lines) => {
            add_lines(head, lines);
            if !lines.is_empty() {
                put_unscoped_first(head);
            }
        }
        Sent::Instead(lines) => {
            head.remove(&X_ROBOTS_TAG);
            add_lines(head, &lines);
        }
    }
}

fn add_lines(head: &mut impl Head, lines: &[String]) {
    for line in lines {
        head.add("X-Robots-Tag", line.as_bytes());
    }
}

/// Puts the lines for every crawler before those for one crawler. Each line stays as it is.
fn put_unscoped_first(head: &mut impl Head) {
    if head.lines(X_ROBOTS_TAG).is_sorted_by_key(place_of) {
        return;
    }
    let mut lines: Vec<Vec<u8>> = head.lines(X_ROBOTS_TAG).map(<[u8]>::to_vec).collect();
    lines.sort_by_key(|line| place_of(line));
    head.remove(&X_ROBOTS_TAG);
    for line in lines {
        head.add("X-Robots-Tag", &line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::indexing::{Directives, Scope, Tags};
    use http::{HeaderMap, HeaderValue};

    fn combined(theirs: &[&str], ours: Option<&str>, origin_tags: OriginTags) -> Vec<String> {
        let mut response = HeaderMap::new();
        for line in theirs {
            response.append(X_ROBOTS_TAG, HeaderValue::from_str(line).unwrap());
        }
        let ours = ours.map(|text| {
            let mut tags = Tags::default();
            tags.add(Scope::All, &Directives::parse(text).unwrap());
            TagLines {
                lines: tags.lines(),
                tags,
                origin_tags: None,
            }
        });
        combine(&mut response, ours.as_ref(), origin_tags);
        let lines = response.get_all(X_ROBOTS_TAG).iter();
        lines
            .map(|line| line.to_str().unwrap().to_string())
            .collect()
    }

    #[test]
    fn keep_adds_our_lines_to_theirs() {
        assert_eq!(
            combined(&["nofollow"], Some("noindex"), OriginTags::Keep),
            ["nofollow", "noindex"]
        );
        assert_eq!(
            combined(&["nofollow"], None, OriginTags::Keep),
            ["nofollow"]
        );
        let scoped = ["googlebot: nofollow", "noarchive, bingbot: nocache", "x: y"];
        assert_eq!(
            combined(&scoped, Some("noindex"), OriginTags::Keep),
            [
                "x: y",
                "noindex",
                "noarchive, bingbot: nocache",
                "googlebot: nofollow"
            ],
            "joined, ours would be for bingbot or googlebot only"
        );
        assert_eq!(combined(&scoped, None, OriginTags::Keep), scoped);
    }

    #[test]
    fn octets_that_are_no_text_are_sent_on_as_they_came() {
        let mut response = HeaderMap::new();
        response.append(
            X_ROBOTS_TAG,
            HeaderValue::from_bytes(b"noindex\xA0, nofollow, f\xE9o").unwrap(),
        );
        let mut tags = Tags::default();
        tags.add(Scope::All, &Directives::parse("noarchive").unwrap());
        let ours = TagLines {
            lines: tags.lines(),
            tags,
            origin_tags: None,
        };
        combine(&mut response, Some(&ours), OriginTags::Merge);
        let lines: Vec<&[u8]> = response.lines(X_ROBOTS_TAG).collect();
        assert_eq!(
            lines,
            [b"noindex\xA0, nofollow, f\xE9o".as_slice(), b"noarchive"]
        );
    }

    #[test]
    fn merge_unites_per_scope_and_the_most_restrictive_value_wins() {
        let merged = combined(
            &["max-snippet: 50", "googlebot: nofollow"],
            Some("max-snippet: 20"),
            OriginTags::Merge,
        );
        assert_eq!(merged, ["max-snippet: 20", "googlebot: nofollow"]);
        assert_eq!(
            combined(&["x: y,  nofollow"], None, OriginTags::Merge),
            ["x: y,  nofollow"]
        );
        assert_eq!(
            combined(&[], Some("noindex"), OriginTags::Merge),
            ["noindex"]
        );
    }

    #[test]
    fn replace_drops_theirs_only_where_a_rule_of_ours_matches() {
        assert_eq!(
            combined(&["nofollow"], Some("noindex"), OriginTags::Replace),
            ["noindex"]
        );
        assert_eq!(
            combined(&["nofollow"], None, OriginTags::Replace),
            ["nofollow"]
        );
    }

    #[test]
    fn a_rule_that_says_it_outranks_the_site() {
        let mut response = HeaderMap::new();
        response.append(X_ROBOTS_TAG, HeaderValue::from_static("noindex"));
        let ours = TagLines {
            origin_tags: Some(OriginTags::Strip),
            ..TagLines::default()
        };
        combine(&mut response, Some(&ours), OriginTags::Keep);
        assert!(!response.contains_key(X_ROBOTS_TAG));
    }

    #[test]
    fn too_many_lines_are_passed_on_whole() {
        let long = "a,".repeat(2_000);
        assert_eq!(
            combined(&[&long], Some("noindex"), OriginTags::Merge),
            [long.as_str(), "noindex"]
        );
    }

    #[test]
    fn strip_never_passes_theirs_on() {
        assert_eq!(
            combined(&["nofollow"], Some("noindex"), OriginTags::Strip),
            ["noindex"]
        );
        assert!(combined(&["nofollow"], None, OriginTags::Strip).is_empty());
    }
}
