//! [`html`] decodes the policy section `html`: whether crawlgate writes robots metas into HTML
//! pages, and the paths of these pages.

use super::indexing::listed;
use super::patterns::patterns;
use crate::policy::model::HtmlPolicy;
use crate::yaml::{Decoder, Fields, Node};

pub fn html(decoder: &mut Decoder, node: &Node) -> HtmlPolicy {
    const MAP: &str = "a map: meta, paths, not";
    if !node.is_map() {
        // A sequence is refused by `word` as well. YAML 1.1 readers take a bare `off` for false.
        let words = [("off", false), ("false", false), ("meta", true)];
        let meta = decoder.word(node, &words, &format!("off, meta, or {MAP}"));
        return HtmlPolicy {
            meta: meta.unwrap_or_default(),
            ..HtmlPolicy::default()
        };
    }
    decoder.map(node, MAP, fields).unwrap_or_default()
}

fn fields(fields: &mut Fields<'_>) -> HtmlPolicy {
    fields.required("meta", "nothing is asked for here", "write `meta: yes`");
    HtmlPolicy {
        meta: fields.get("meta", Decoder::boolean).unwrap_or_default(),
        paths: listed(fields, "paths", patterns),
        not_paths: fields.get_or_default("not", |decoder, node| {
            if node.is_empty() {
                decoder.error_with_help(
                    "empty-not",
                    node.span,
                    "an empty `not` would exclude everything",
                    "leave `not` out, or say which pages stay as they are: `not: { paths: /api/ }`",
                );
            }
            decoder
                .map(node, "a map: paths", |fields| {
                    listed(fields, "paths", patterns)
                })
                .unwrap_or_default()
        }),
    }
}
