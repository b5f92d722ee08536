//! [`retire`] decodes the policy section `retire`: paths to be taken out of search engines, from
//! when they are `noindex`, and how long after that robots.txt disallows them.

use super::patterns::patterns;
use crate::policy::model::{Defaulted, RetirePolicy};
use crate::yaml::{Fields, Reader};
use std::time::Duration;

/// Search engines come back to most pages within two weeks.
const DEFAULT_DISALLOW_AFTER: Duration = Duration::from_secs(14 * 86_400);

pub fn retire(node: Reader<'_>) -> Vec<RetirePolicy> {
    let wanted = [
        "a list of entries, each with `paths` and `noindex_from`",
        "an entry: paths, noindex_from, disallow_after",
    ];
    node.maps(wanted, entry)
}

/// Decodes one entry. `None` with an error without `paths` or a valid `noindex_from`.
/// `disallow_after` is 14 days unless it is written; zero is an error. Empty `paths` are an error.
fn entry(fields: &mut Fields<'_>) -> Option<RetirePolicy> {
    let paths = fields.get("paths", |node| {
        if node.is_empty() {
            node.error_with_help(
                "empty-condition",
                "`paths` names nothing",
                "say what is retired",
            );
        }
        Some(patterns(node))
    });
    let noindex_from = fields.located("noindex_from", Reader::timestamp);
    let disallow_after = fields.located("disallow_after", |node| {
        node.duration_within(
            Duration::from_millis(1)..=Duration::MAX,
            "the paths would be disallowed before a crawler saw their noindex",
            Some("write how long crawlers have to come by: `14d`"),
        )
    });
    for name in ["paths", "noindex_from"] {
        fields.required(
            name,
            &format!("this entry does not say `{name}`"),
            "write `{ paths: [/old/], noindex_from: 2026-11-20 }`",
        );
    }
    Some(RetirePolicy {
        paths: paths?,
        noindex_from: noindex_from?,
        disallow_after: Defaulted::or(disallow_after, DEFAULT_DISALLOW_AFTER),
        span: fields.span,
    })
}
