//! [`html`] decodes the policy section `html`: what crawlgate writes into HTML pages for search engines (robots metas,
//! words of `rel`, `data-nosnippet`), and the paths of these pages.

use super::indexing::listed;
use super::patterns::patterns;
use crate::policy::model::{HtmlPolicy, LinkPolicy, LinkRel};
use crate::yaml::{Decoder, Fields, Located, Node};

/// The most selectors: each is compared with every element of every page.
const MAX_SELECTORS: usize = 50;
const MAX_SELECTOR: usize = 500;

pub fn html(decoder: &mut Decoder, node: &Node) -> HtmlPolicy {
    const MAP: &str = "a map: meta, links, nosnippet, paths, not";
    if !node.is_map() {
        // A sequence is refused by `word` as well. YAML 1.1 readers take a bare `off` for false.
        let words = [("off", false), ("false", false), ("meta", true)];
        let meta = decoder.word(node, &words, &format!("off, meta, or {MAP}")).unwrap_or(false);
        return HtmlPolicy { meta, ..HtmlPolicy::default() };
    }
    let html = decoder.map(node, MAP, fields).unwrap_or_default();
    let selectors = html.nosnippet.len() + html.links.iter().map(|links| links.select.len()).sum::<usize>();
    if selectors > MAX_SELECTORS {
        decoder.error_with_help(
            "too-many-selectors",
            node.span,
            format!("there are {selectors} selectors here"),
            format!("at most {MAX_SELECTORS}: give what is meant a class of its own, and select that"),
        );
    }
    html
}

fn fields(fields: &mut Fields<'_>) -> HtmlPolicy {
    if !["meta", "links", "nosnippet"].into_iter().any(|name| fields.take(name).is_some()) {
        fields.decoder.error_with_help(
            "empty-html",
            fields.span,
            "nothing is asked for here",
            "write `html: meta`, or what is to be marked: `html: { nosnippet: [.price] }`",
        );
    }
    HtmlPolicy {
        meta: fields.get("meta", Decoder::boolean).unwrap_or(false),
        links: listed(fields, "links", links),
        nosnippet: listed(fields, "nosnippet", selectors),
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
            decoder.map(node, "a map: paths", |fields| listed(fields, "paths", patterns)).unwrap_or_default()
        }),
    }
}

fn links(decoder: &mut Decoder, node: &Node) -> Vec<LinkPolicy> {
    decoder.maps(node, ["a list of links, each with `select` and `rel`", "a map: select, rel"], |fields| {
        let (select, rel) = (listed(fields, "select", selectors), listed(fields, "rel", words));
        fields.finish();
        for (name, example) in [("select", "\".comments a\""), ("rel", "[nofollow, ugc]")] {
            fields.required(name, &format!("`{name}` is missing"), &*format!("write `{name}: {example}`"));
        }
        Some(LinkPolicy { select, rel })
    })
}

fn words(decoder: &mut Decoder, node: &Node) -> Vec<LinkRel> {
    let items = decoder.one_or_many(node, "words: nofollow, ugc, sponsored");
    items.iter().filter_map(|item| decoder.variant(item, "a word for search engines")).collect()
}

fn selectors(decoder: &mut Decoder, node: &Node) -> Vec<Located<String>> {
    decoder.checked(node, "a list of CSS selectors", check_selector)
}

fn check_selector(decoder: &mut Decoder, selector: &Located<String>) -> bool {
    let text = &selector.value;
    let (message, help) = if text.len() > MAX_SELECTOR {
        (format!("this selector has {} characters", text.len()), format!("at most {MAX_SELECTOR}"))
    } else if let Some(why) = refused(text) {
        let help = "a page is read once, from its start: write tags, `#id`, `.class`, `[attribute=value]`, `a b`, \
                    `a > b`, `:not(...)` and `:nth-child(...)`";
        (format!("`{text}` cannot be used as a selector: {why}"), help.into())
    } else {
        return true;
    };
    decoder.error_with_help("bad-selector", selector.span, message, help);
    false
}

/// The reason why a selector cannot be used. The engine alone rewrites no pages and cannot read selectors: it takes any
/// text.
#[cfg(feature = "html")]
fn refused(selector: &str) -> Option<String> {
    crate::html::Marks::default().nosnippet(selector).err().map(|error| error.to_string())
}

#[cfg(not(feature = "html"))]
fn refused(selector: &str) -> Option<String> {
    selector.trim().is_empty().then(|| "it is empty".into())
}
