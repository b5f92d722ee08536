//! [`html`] decodes the policy section `html`: whether crawlgate writes robots metas into HTML
//! pages, and the paths of these pages.

use super::indexing::listed;
use super::patterns::patterns;
use crate::policy::model::HtmlPolicy;
use crate::yaml::{Fields, Reader};

/// Decodes the section: `off` (or `false`), `meta`, or a map of `meta`, `paths` and `not`. `meta`
/// alone is for all HTML pages. After an error nothing is written into pages.
pub fn html(node: Reader<'_>) -> HtmlPolicy {
    const MAP: &str = "a map: meta, paths, not";
    if !node.is_map() {
        // A sequence is refused by `word` as well. YAML 1.1 readers take a bare `off` for false.
        let words = [("off", false), ("false", false), ("meta", true)];
        let meta = node.word(&words, &format!("off, meta, or {MAP}"));
        return HtmlPolicy {
            meta: meta.unwrap_or_default(),
            ..HtmlPolicy::default()
        };
    }
    node.map(MAP, fields).unwrap_or_default()
}

/// Decodes the map. A missing `meta` is an error, and so is an empty `not`.
fn fields(fields: &mut Fields<'_>) -> HtmlPolicy {
    fields.required("meta", "nothing is asked for here", "write `meta: yes`");
    HtmlPolicy {
        meta: fields.get("meta", Reader::boolean).unwrap_or_default(),
        paths: listed(fields, "paths", patterns),
        not_paths: fields.get_or_default("not", |node| {
            if node.is_empty() {
                node.error_with_help(
                    "empty-not",
                    "an empty `not` would exclude everything",
                    "leave `not` out, or say which pages stay as they are: `not: { paths: /api/ }`",
                );
            }
            node.map("a map: paths", |fields| listed(fields, "paths", patterns))
                .unwrap_or_default()
        }),
    }
}
