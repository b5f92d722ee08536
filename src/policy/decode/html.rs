//! [`html`] decodes the policy section `html`: whether crawlgate writes robots meta tags into HTML
//! pages, and the paths of these pages.

use super::indexing::condition_list;
use super::patterns::patterns;
use crate::policy::model::HtmlPolicy;
use crate::yaml::{MapFields, NodeReader};

/// Decodes the section: `off`, `meta` (for all HTML pages), or a map of `meta`, `paths` and `not`.
pub fn html(node: NodeReader<'_>) -> HtmlPolicy {
    const MAP: &str = "a map with meta, paths or not";
    if !node.is_map() {
        let meta = node.word(
            &[("off", false), ("meta", true)],
            &format!("off, meta, or {MAP}"),
        );
        return HtmlPolicy {
            meta: meta.unwrap_or_default(),
            ..HtmlPolicy::default()
        };
    }
    node.decode_map(MAP, fields).unwrap_or_default()
}

/// Decodes the map.
fn fields(fields: &mut MapFields<'_>) -> HtmlPolicy {
    fields.required_field("meta", "this rule does nothing", "write \"meta: yes\"");
    HtmlPolicy {
        meta: fields.get("meta", NodeReader::boolean).unwrap_or_default(),
        paths: condition_list(fields, "paths", patterns),
        not_paths: fields.get_or_default("not", |node| {
            if node.is_empty() {
                node.error_with_help(
                    "empty-not",
                    "an empty \"not\" would exclude everything",
                    "omit \"not\", or name the pages that stay as they are: \"not: { paths: /api/ \
                     }\"",
                );
            }
            node.decode_map("a map: paths", |fields| {
                condition_list(fields, "paths", patterns)
            })
            .unwrap_or_default()
        }),
    }
}
