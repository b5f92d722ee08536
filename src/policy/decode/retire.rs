//! [`retire`] decodes the policy section `retire`: paths that the site takes out of search engines.
//! Each entry says when the `noindex` of its paths begins, and how much later robots.txt disallows
//! the paths.

use super::patterns::patterns;
use crate::policy::model::RetirePolicy;
use crate::yaml::{MapFields, NodeReader};
use std::time::Duration;

/// Search engines crawl most pages again within two weeks.
const DEFAULT_DISALLOW_AFTER: Duration = Duration::from_secs(14 * 86_400);

pub fn retire(node: NodeReader<'_>) -> Vec<RetirePolicy> {
    node.decode_maps(
        [
            "a list of entries, each with \"paths\" and \"noindex_from\"",
            "an entry: paths, noindex_from, disallow_after",
        ],
        retire_entry,
    )
}

/// Decodes one entry. `None` without `paths` and a valid `noindex_from`.
fn retire_entry(fields: &mut MapFields<'_>) -> Option<RetirePolicy> {
    let paths = fields.get("paths", |node| {
        if node.is_empty() {
            node.error_with_help(
                "empty-condition",
                "\"paths\" is empty",
                "name the paths that are retired",
            );
        }
        Some(patterns(node))
    });
    let noindex_from = fields.located("noindex_from", NodeReader::timestamp);
    let disallow_after = fields.get("disallow_after", |node| {
        node.duration_within(
            Duration::from_millis(1)..=Duration::MAX,
            "the paths would be disallowed before crawlers see their noindex",
            Some("give crawlers time to come by, like \"14d\""),
        )
    });
    for name in ["paths", "noindex_from"] {
        fields.required_field(
            name,
            &format!("this entry has no \"{name}\""),
            "write \"{ paths: [/old/], noindex_from: 2026-11-20 }\"",
        );
    }
    Some(RetirePolicy {
        paths: paths?,
        noindex_from: noindex_from?,
        disallow_after: disallow_after.unwrap_or(DEFAULT_DISALLOW_AFTER),
        span: fields.span,
    })
}
