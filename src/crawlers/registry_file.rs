//! [`parse_registry`] parses `registry.yaml`, the table of known crawlers, into [`Crawler`]
//! entries.

use super::crawler::Crawler;
use crate::yaml::{Diagnostics, MapFields, NodeReader, SourceFile, located_values};

/// Parses all records.
///
/// # Errors
/// Everything that is wrong with the file.
pub fn parse_registry(source: &SourceFile) -> Result<Vec<Crawler>, Diagnostics> {
    let (crawlers, diagnostics) = crate::yaml::decode_file(source, "", |_, root| {
        let records =
            root.map(|root| root.decode_maps(["a list of records", "a record"], decode_crawler));
        Some(records.unwrap_or_default())
    });
    crawlers.ok_or(diagnostics)
}

/// Decodes one record. `None` if a required field is missing or wrong, which is reported. It reads
/// every field before it returns: a field that it does not read would be reported as unknown.
fn decode_crawler(fields: &mut MapFields<'_>) -> Option<Crawler> {
    let id = fields.required_text("id");
    let name = fields.required_text("name");
    let operator = fields.required_text("operator");
    let purpose = fields.record_field("purpose");
    let purpose = purpose.and_then(|node| node.variant("a purpose"));
    let binds = fields.record_field("binds");
    let binds = binds.and_then(|node| node.variant("a value of \"binds\""));
    let source = fields.required_text("source");
    Some(Crawler {
        tokens: fields.text_list("tokens"),
        products: fields.text_list("products"),
        markers: decode_markers(fields),
        must_not_match: fields.text_list("must_not_match"),
        user_agent: optional_text(fields, "ua"),
        reading: fields.variant("reading", "a reading").unwrap_or_default(),
        crawl_delay: fields.get("crawl_delay", NodeReader::boolean),
        robots_cache: fields.get("robots_cache", NodeReader::duration),
        shares_cache: optional_text(fields, "shares_cache"),
        rdns: fields.text_list("rdns"),
        forward_undocumented: fields
            .word("forward", &[("undocumented", true)], "the forward record")
            .unwrap_or_default(),
        asn: fields.text_list("asn"),
        ips: fields.text_list("ips"),
        signs: optional_text(fields, "signs")
            .filter(|signs| signs != "none" && signs != "not applicable"),
        doc: optional_text(fields, "doc"),
        retired: optional_text(fields, "retired"),
        note: optional_text(fields, "note"),
        id: id?,
        name: name?,
        operator: operator?,
        purpose: purpose?,
        binds: binds?,
        source: source?,
    })
}

/// The text of a field; `None` if it is missing, or no text, which is reported.
fn optional_text(fields: &mut MapFields<'_>, name: &'static str) -> Option<String> {
    fields.text(name, "text").map(|text| text.value)
}

/// The markers of a record. A marker of fewer than three characters (without `=` and `^` in front)
/// is reported: too many user agents contain it.
fn decode_markers(fields: &mut MapFields<'_>) -> Vec<String> {
    let listed = fields.get_or_default("marks", |node| node.texts("a list of texts"));
    for marker in listed
        .iter()
        .filter(|marker| marker.value.trim_start_matches(['=', '^']).len() < 3)
    {
        fields.decoder.error(
            "short-mark",
            marker.span,
            "a marker needs at least three characters: shorter ones are in too many user agents",
        );
    }
    located_values(&listed)
}
