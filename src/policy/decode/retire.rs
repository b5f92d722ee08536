//! [`retire`] decodes the policy section `retire`: paths to be taken out of search engines, from
//! when they are `noindex`, and how long after that robots.txt disallows them.

use super::patterns::patterns;
use crate::policy::model::{Defaulted, RetirePolicy};
use crate::yaml::{Decoder, Fields, Node};
use std::time::Duration;

/// Search engines come back to most pages within two weeks.
const DEFAULT_DISALLOW_AFTER: Duration = Duration::from_secs(14 * 86_400);

pub fn retire(decoder: &mut Decoder, node: &Node) -> Vec<RetirePolicy> {
    let list = "a list of entries, each with `paths` and `noindex_from`";
    decoder.maps(
        node,
        [list, "an entry: paths, noindex_from, disallow_after"],
        entry,
    )
}

fn entry(fields: &mut Fields<'_>) -> Option<RetirePolicy> {
    let listed = fields.take_with_key("paths");
    let paths = listed.map(|(key, list)| {
        let decoder = &mut *fields.decoder;
        let before = decoder.diagnostics.items.len();
        let paths = patterns(decoder, list);
        if paths.is_empty() && decoder.diagnostics.items.len() == before {
            decoder.error_with_help(
                "empty-condition",
                key,
                "`paths` names nothing",
                "say what is retired",
            );
        }
        paths
    });
    let noindex_from = fields.located("noindex_from", Decoder::timestamp);
    let disallow_after = fields.located("disallow_after", |decoder, node| {
        decoder.duration_within(
            node,
            Duration::from_millis(1)..=Duration::MAX,
            "the paths would be disallowed before a crawler saw their noindex",
            Some("write how long crawlers have to come by: `14d`"),
        )
    });
    for name in ["paths", "noindex_from"] {
        let message = format!("this entry does not say `{name}`");
        fields.required(
            name,
            &message,
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
