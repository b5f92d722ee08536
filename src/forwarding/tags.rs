//! [`add_tags`] adds the policy's X-Robots-Tag lines to an origin's response. The policy also says
//! what happens to X-Robots-Tag lines that the origin itself sent. The origin's lines can be kept
//! beside the policy's lines, merged with the policy's lines, replaced by the policy's lines, or
//! removed.

use super::head::EditableHead;
use crate::heads::{X_ROBOTS_TAG, join_lines};
use crate::indexing::line_order;
use crate::policy::SiteEntry;
use crate::policy::model::OriginTagsMode;
use crate::policy::site::{self, TagHeaderEdit, TagLines};
use crate::verdict::Decision;
use http::header;

/// Adds the tags of the policy to a response with this status. If it is a 304, and the tags depend
/// on the type of the stored page, the response must have none: the origin's are removed, too.
pub fn add_tags(head: &mut impl EditableHead, status: u16, entry: &SiteEntry, decision: &Decision) {
    let plan = &entry.site.tags;
    if plan.hides_tags(&decision.path_rules, status) {
        // The origin's lines alone would replace the stored lines of both (RFC 9111 section 3.2).
        head.remove(&X_ROBOTS_TAG);
        return;
    }
    let content_type = join_lines(head.lines(header::CONTENT_TYPE));
    let ours = plan.tags(&decision.path_rules, status, content_type.as_deref());
    combine_tags(head, ours.as_deref(), entry.site.origin_tags);
}

/// Adds our lines to those of the origin, or replaces these, as `origin_tags` says. Added lines for
/// every crawler come before those with a scope.
fn combine_tags(
    head: &mut impl EditableHead,
    ours: Option<&TagLines>,
    origin_tags: OriginTagsMode,
) {
    match site::combine_with_origin(ours, head.lines(X_ROBOTS_TAG), origin_tags) {
        TagHeaderEdit::Add(lines) => {
            add_lines(head, lines);
            if !lines.is_empty() {
                put_unscoped_first(head);
            }
        }
        TagHeaderEdit::Replace(lines) => {
            head.remove(&X_ROBOTS_TAG);
            add_lines(head, &lines);
        }
    }
}

fn add_lines(head: &mut impl EditableHead, lines: &[String]) {
    for line in lines {
        head.add("X-Robots-Tag", line.as_bytes());
    }
}

/// Moves the lines for every crawler before those for one crawler.
fn put_unscoped_first(head: &mut impl EditableHead) {
    if head.lines(X_ROBOTS_TAG).is_sorted_by_key(line_order) {
        return;
    }
    let mut lines: Vec<Vec<u8>> = head.lines(X_ROBOTS_TAG).map(<[u8]>::to_vec).collect();
    lines.sort_by_key(|line| line_order(line));
    head.remove(&X_ROBOTS_TAG);
    for line in lines {
        head.add("X-Robots-Tag", &line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::indexing::{Directives, RobotsTags, TagScope};
    use http::{HeaderMap, HeaderValue};

    fn combined(theirs: &[&str], ours: Option<&str>, origin_tags: OriginTagsMode) -> Vec<String> {
        let mut response = HeaderMap::new();
        for line in theirs {
            response.append(X_ROBOTS_TAG, HeaderValue::from_str(line).unwrap());
        }
        let ours = ours.map(|text| {
            let mut tags = RobotsTags::default();
            tags.add(TagScope::All, &Directives::parse(text).unwrap());
            TagLines {
                lines: tags.lines(),
                tags,
                origin_tags: None,
            }
        });
        combine_tags(&mut response, ours.as_ref(), origin_tags);
        let lines = response.get_all(X_ROBOTS_TAG).iter();
        lines
            .map(|line| line.to_str().unwrap().to_string())
            .collect()
    }

    #[test]
    fn keep_adds_our_lines() {
        assert_eq!(
            combined(&["nofollow"], Some("noindex"), OriginTagsMode::Keep),
            ["nofollow", "noindex"]
        );
        assert_eq!(
            combined(&["nofollow"], None, OriginTagsMode::Keep),
            ["nofollow"]
        );
        let scoped = ["googlebot: nofollow", "noarchive, bingbot: nocache", "x: y"];
        assert_eq!(
            combined(&scoped, Some("noindex"), OriginTagsMode::Keep),
            [
                "x: y",
                "noindex",
                "noarchive, bingbot: nocache",
                "googlebot: nofollow"
            ],
            "joined, ours would be for bingbot or googlebot only"
        );
        assert_eq!(combined(&scoped, None, OriginTagsMode::Keep), scoped);
    }

    #[test]
    fn bytes_that_are_not_utf8_are_kept() {
        let mut response = HeaderMap::new();
        response.append(
            X_ROBOTS_TAG,
            HeaderValue::from_bytes(b"noindex\xA0, nofollow, f\xE9o").unwrap(),
        );
        let mut tags = RobotsTags::default();
        tags.add(TagScope::All, &Directives::parse("noarchive").unwrap());
        let ours = TagLines {
            lines: tags.lines(),
            tags,
            origin_tags: None,
        };
        combine_tags(&mut response, Some(&ours), OriginTagsMode::Merge);
        let lines: Vec<&[u8]> = response.lines(X_ROBOTS_TAG).collect();
        assert_eq!(
            lines,
            [b"noindex\xA0, nofollow, f\xE9o".as_slice(), b"noarchive"]
        );
    }

    #[test]
    fn merge_keeps_the_strictest_value_per_scope() {
        let merged = combined(
            &["max-snippet: 50", "googlebot: nofollow"],
            Some("max-snippet: 20"),
            OriginTagsMode::Merge,
        );
        assert_eq!(merged, ["max-snippet: 20", "googlebot: nofollow"]);
        assert_eq!(
            combined(&["x: y,  nofollow"], None, OriginTagsMode::Merge),
            ["x: y,  nofollow"]
        );
        assert_eq!(
            combined(&[], Some("noindex"), OriginTagsMode::Merge),
            ["noindex"]
        );
    }

    #[test]
    fn replace_drops_theirs_if_a_rule_matches() {
        assert_eq!(
            combined(&["nofollow"], Some("noindex"), OriginTagsMode::Replace),
            ["noindex"]
        );
        assert_eq!(
            combined(&["nofollow"], None, OriginTagsMode::Replace),
            ["nofollow"]
        );
    }

    #[test]
    fn origin_tags_of_a_rule_override_the_site() {
        let mut response = HeaderMap::new();
        response.append(X_ROBOTS_TAG, HeaderValue::from_static("noindex"));
        let ours = TagLines {
            origin_tags: Some(OriginTagsMode::Strip),
            ..TagLines::default()
        };
        combine_tags(&mut response, Some(&ours), OriginTagsMode::Keep);
        assert!(!response.contains_key(X_ROBOTS_TAG));
    }

    #[test]
    fn too_long_lines_are_kept_whole() {
        let long = "a,".repeat(2_000);
        assert_eq!(
            combined(&[&long], Some("noindex"), OriginTagsMode::Merge),
            [long.as_str(), "noindex"]
        );
    }

    #[test]
    fn strip_drops_theirs() {
        assert_eq!(
            combined(&["nofollow"], Some("noindex"), OriginTagsMode::Strip),
            ["noindex"]
        );
        assert!(combined(&["nofollow"], None, OriginTagsMode::Strip).is_empty());
    }
}
