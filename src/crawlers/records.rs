//! `registry.yaml` into records. Knows the file's fields; knows no user agent.

use super::crawler::{Binds, Crawler, Purpose};
use crate::yaml::{Decoder, Diagnostics, Document, Fields, Node, Source, Value};
use std::time::Duration;

/// Reads all records.
///
/// # Errors
/// Everything that is wrong with the file.
pub fn read(source: &Source) -> Result<Vec<Crawler>, Diagnostics> {
    let mut diagnostics = Diagnostics::default();
    let document = Document::parse(source, &mut diagnostics);
    let mut crawlers = Vec::new();
    if let Some(Node { value: Value::Sequence(items), .. }) = document.and_then(|document| document.root) {
        let mut decoder = Decoder { diagnostics: &mut diagnostics };
        crawlers = items.iter().filter_map(|item| record(item, &mut decoder)).collect();
    }
    if diagnostics.has_errors() { Err(diagnostics) } else { Ok(crawlers) }
}

fn record(node: &Node, decoder: &mut Decoder<'_>) -> Option<Crawler> {
    let mut fields = decoder.fields(node, "a record")?;
    let purposes = Purpose::ALL.map(|purpose| (purpose.name(), purpose));
    let binds = [("star", Binds::Star), ("named", Binds::Named), ("never", Binds::Never), ("unknown", Binds::Unknown)];
    let crawler = Crawler {
        id: required(&mut fields, "id", decoder)?,
        name: required(&mut fields, "name", decoder)?,
        operator: required(&mut fields, "operator", decoder)?,
        purpose: fields.take("purpose").and_then(|node| decoder.word(node, &purposes, "a purpose"))?,
        tokens: texts(&mut fields, "tokens", decoder),
        products: texts(&mut fields, "products", decoder),
        markers: markers(&mut fields, decoder),
        must_not_match: texts(&mut fields, "must_not_match", decoder),
        user_agent: text(&mut fields, "ua", decoder),
        binds: fields.take("binds").and_then(|node| decoder.word(node, &binds, "what binds it"))?,
        crawl_delay: match text(&mut fields, "crawl_delay", decoder).as_deref() {
            Some("yes") => Some(true),
            Some("no") => Some(false),
            _ => None,
        },
        robots_cache: text(&mut fields, "robots_cache", decoder).as_deref().and_then(caching_time),
        shares_cache: text(&mut fields, "shares_cache", decoder),
        rdns: texts(&mut fields, "rdns", decoder),
        asn: texts(&mut fields, "asn", decoder),
        ips: texts(&mut fields, "ips", decoder),
        signs: text(&mut fields, "signs", decoder).filter(|signs| signs != "none" && signs != "not applicable"),
        doc: text(&mut fields, "doc", decoder),
        source: required(&mut fields, "source", decoder)?,
        note: text(&mut fields, "note", decoder),
    };
    fields.finish(decoder);
    Some(crawler)
}

fn required(fields: &mut Fields<'_>, name: &'static str, decoder: &mut Decoder<'_>) -> Option<String> {
    let found = text(fields, name, decoder);
    if found.is_none() {
        decoder.error("missing-field", fields.span(), format!("this record has no `{name}`"));
    }
    found
}

fn text(fields: &mut Fields<'_>, name: &'static str, decoder: &mut Decoder<'_>) -> Option<String> {
    fields.take(name).and_then(|node| decoder.text(node, "text")).map(str::to_owned)
}

fn texts(fields: &mut Fields<'_>, name: &'static str, decoder: &mut Decoder<'_>) -> Vec<String> {
    let listed = fields.take(name).map(|node| decoder.texts(node, "a list of texts")).unwrap_or_default();
    listed.into_iter().map(|located| located.value).collect()
}

/// A shorter marker stands in too many strings.
fn markers(fields: &mut Fields<'_>, decoder: &mut Decoder<'_>) -> Vec<String> {
    let listed = fields.take("marks").map(|node| decoder.texts(node, "a list of texts")).unwrap_or_default();
    for marker in listed.iter().filter(|marker| marker.value.trim_start_matches(['=', '^']).len() < 3) {
        let message = "a mark needs at least three characters, or it stands in too many strings";
        decoder.error("short-mark", marker.span, message);
    }
    listed.into_iter().map(|located| located.value).collect()
}

/// The time that a note such as `up to 72 h` or `up to a week` names.
fn caching_time(note: &str) -> Option<Duration> {
    let hours = |hours: u64| Duration::from_secs(hours * 3_600);
    if note.contains("a week") {
        return Some(hours(7 * 24));
    }
    let (before, _) = note.split_once(" h")?;
    before.rsplit(' ').next()?.parse().ok().map(hours)
}
