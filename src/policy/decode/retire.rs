//! `retire`: paths that go out of search engines, and when.

use super::patterns::patterns;
use crate::policy::model::{Defaulted, RetirePolicy};
use crate::yaml::{Decoder, Located, Node};
use std::time::Duration;

/// Search engines come back to most pages within two weeks.
const DEFAULT_DISALLOW_AFTER: Duration = Duration::from_secs(14 * 86_400);

pub fn retire(node: &Node, decoder: &mut Decoder<'_>) -> Vec<RetirePolicy> {
    let items = decoder.one_or_many_maps(node, "a list of entries, each with `paths` and `noindex_from`");
    items.iter().filter_map(|item| entry(item, decoder)).collect()
}

fn entry(node: &Node, decoder: &mut Decoder<'_>) -> Option<RetirePolicy> {
    let mut fields = decoder.fields(node, "an entry: paths, noindex_from, disallow_after")?;
    let listed = fields.take_with_key("paths");
    let paths = listed.map(|(key, list)| {
        let before = decoder.diagnostics.items.len();
        let paths = patterns(list, decoder);
        if paths.is_empty() && decoder.diagnostics.items.len() == before {
            decoder.error("empty-condition", key.span, "`paths` names nothing").help =
                Some("say what is retired".into());
        }
        paths
    });
    let began = fields.take("noindex_from");
    let noindex_from = began.and_then(|node| decoder.timestamp(node).map(|value| Located { value, span: node.span }));
    let disallow_after = fields.take("disallow_after").and_then(|node| {
        let value = decoder.duration(node)?;
        if value.is_zero() {
            decoder
                .error("bad-value", node.span, "the paths would be disallowed before a crawler saw their noindex")
                .help = Some("write how long crawlers have to come by: `14d`".into());
            return None;
        }
        Some(Defaulted { value, span: Some(node.span) })
    });
    for (name, missing) in [("paths", listed.is_none()), ("noindex_from", began.is_none())] {
        if missing {
            decoder.error("missing-field", node.span, format!("this entry does not say `{name}`")).help =
                Some("write `{ paths: [/old/], noindex_from: 2026-11-20 }`".into());
        }
    }
    fields.finish(decoder);
    Some(RetirePolicy {
        paths: paths?,
        noindex_from: noindex_from?,
        disallow_after: disallow_after.unwrap_or(Defaulted::new(DEFAULT_DISALLOW_AFTER)),
        span: node.span,
    })
}
