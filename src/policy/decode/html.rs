//! `html`: what is written into pages, and into which.

use super::indexing::listed;
use super::patterns::patterns;
use crate::policy::model::{HtmlPolicy, LinkPolicy, LinkRel};
use crate::yaml::{Decoder, Located, Node, Value};

/// Each is asked of every element of every page.
const MAX_SELECTORS: usize = 50;
const MAX_SELECTOR: usize = 500;

pub fn html(node: &Node, decoder: &mut Decoder<'_>) -> HtmlPolicy {
    let mut html = HtmlPolicy::default();
    if !matches!(node.value, Value::Mapping(_)) {
        // A sequence is refused by `word` as well. YAML 1.1 readers take a bare `off` for false.
        let words = [("off", false), ("false", false), ("meta", true)];
        html.meta =
            decoder.word(node, &words, "off, meta, or a map: meta, links, nosnippet, paths, not").unwrap_or(false);
        return html;
    }
    let Some(mut fields) = decoder.fields(node, "a map: meta, links, nosnippet, paths, not") else { return html };
    if !["meta", "links", "nosnippet"].into_iter().any(|name| fields.take(name).is_some()) {
        decoder.error("empty-html", node.span, "nothing is asked for here").help =
            Some("write `html: meta`, or what is to be marked: `html: { nosnippet: [.price] }`".into());
    }
    html.meta = fields.take("meta").and_then(|node| decoder.boolean(node)).unwrap_or(false);
    html.links = listed(&mut fields, "links", links, decoder);
    html.nosnippet = listed(&mut fields, "nosnippet", selectors, decoder);
    html.paths = listed(&mut fields, "paths", patterns, decoder);
    if let Some(node) = fields.take("not")
        && let Some(mut fields) = decoder.fields(node, "a map: paths")
    {
        if node.is_null() || matches!(&node.value, Value::Mapping(entries) if entries.is_empty()) {
            decoder.error("empty-not", node.span, "an empty `not` would exclude everything").help =
                Some("leave `not` out, or say which pages stay as they are: `not: { paths: /api/ }`".into());
        }
        html.not_paths = listed(&mut fields, "paths", patterns, decoder);
        fields.finish(decoder);
    }
    fields.finish(decoder);
    let selectors = html.nosnippet.len() + html.links.iter().map(|links| links.select.len()).sum::<usize>();
    if selectors > MAX_SELECTORS {
        decoder.error("too-many-selectors", node.span, format!("there are {selectors} selectors here")).help =
            Some(format!("at most {MAX_SELECTORS}: give what is meant a class of its own, and select that"));
    }
    html
}

fn links(node: &Node, decoder: &mut Decoder<'_>) -> Vec<LinkPolicy> {
    let items = decoder.one_or_many_maps(node, "a list of links, each with `select` and `rel`");
    items.iter().filter_map(|item| link(item, decoder)).collect()
}

fn link(node: &Node, decoder: &mut Decoder<'_>) -> Option<LinkPolicy> {
    let mut fields = decoder.fields(node, "a map: select, rel")?;
    let (has_select, has_rel) = (fields.take("select").is_some(), fields.take("rel").is_some());
    let select = listed(&mut fields, "select", selectors, decoder);
    let rel = listed(&mut fields, "rel", words, decoder);
    fields.finish(decoder);
    for (has, field, example) in [(has_select, "select", "\".comments a\""), (has_rel, "rel", "[nofollow, ugc]")] {
        if !has {
            decoder.error("missing-field", node.span, format!("`{field}` is missing")).help =
                Some(format!("write `{field}: {example}`"));
        }
    }
    Some(LinkPolicy { select, rel })
}

fn words(node: &Node, decoder: &mut Decoder<'_>) -> Vec<LinkRel> {
    let words = [LinkRel::Nofollow, LinkRel::Ugc, LinkRel::Sponsored].map(|rel| (rel.name(), rel));
    let items = decoder.one_or_many(node, "words: nofollow, ugc, sponsored");
    items.iter().filter_map(|item| decoder.word(item, &words, "a word for search engines")).collect()
}

fn selectors(node: &Node, decoder: &mut Decoder<'_>) -> Vec<Located<String>> {
    let written = decoder.texts(node, "a list of CSS selectors");
    written.into_iter().filter(|selector| check_selector(selector, decoder)).collect()
}

fn check_selector(selector: &Located<String>, decoder: &mut Decoder<'_>) -> bool {
    let text = &selector.value;
    if text.len() > MAX_SELECTOR {
        decoder.error("bad-selector", selector.span, format!("this selector has {} characters", text.len())).help =
            Some(format!("at most {MAX_SELECTOR}"));
        return false;
    }
    let Some(why) = refused(text) else { return true };
    decoder.error("bad-selector", selector.span, format!("`{text}` cannot be used as a selector: {why}")).help = Some(
        "a page is read once, from its start: write tags, `#id`, `.class`, `[attribute=value]`, `a b`, `a > b`, \
         `:not(...)` and `:nth-child(...)`"
            .into(),
    );
    false
}

/// Why a selector cannot be used. The engine alone rewrites no pages and has no reader of selectors: there they are
/// texts.
#[cfg(feature = "html")]
fn refused(selector: &str) -> Option<String> {
    crate::html::Marks::default().nosnippet(selector).err().map(|error| error.to_string())
}

#[cfg(not(feature = "html"))]
fn refused(selector: &str) -> Option<String> {
    selector.trim().is_empty().then(|| "it is empty".into())
}
