//! [`read`] reads `registry.yaml` into [`Crawler`] records.

use super::crawler::{Binds, Crawler};
use crate::robots::Dialect;
use crate::yaml::{Diagnostics, Fields, Source, Value, values};
use std::time::Duration;

/// Reads all records.
///
/// # Errors
/// Everything that is wrong with the file.
pub fn read(source: &Source) -> Result<Vec<Crawler>, Diagnostics> {
    let (crawlers, diagnostics) = crate::yaml::read(source, "", |_, root| {
        let list = root.filter(|root| matches!(root.value, Value::Sequence(_)));
        Some(
            list.map(|list| list.maps(["a list of records", "a record"], record))
                .unwrap_or_default(),
        )
    });
    crawlers.ok_or(diagnostics)
}

/// Reads one record. `None` if a field that it must have is missing or wrong, which is reported.
fn record(fields: &mut Fields<'_>) -> Option<Crawler> {
    let binds = [
        ("star", Binds::Star),
        ("named", Binds::Named),
        ("never", Binds::Never),
        ("unknown", Binds::Unknown),
    ];
    Some(Crawler {
        id: required(fields, "id")?,
        name: required(fields, "name")?,
        operator: required(fields, "operator")?,
        purpose: fields.variant("purpose", "a purpose")?,
        tokens: texts(fields, "tokens"),
        products: texts(fields, "products"),
        markers: markers(fields),
        must_not_match: texts(fields, "must_not_match"),
        user_agent: text(fields, "ua"),
        binds: fields.word("binds", &binds, "what binds it")?,
        reading: fields
            .word(
                "reading",
                &Dialect::ALL.map(|dialect| (dialect.name(), dialect)),
                "a reading",
            )
            .unwrap_or_default(),
        crawl_delay: match text(fields, "crawl_delay").as_deref() {
            Some("yes") => Some(true),
            Some("no") => Some(false),
            _ => None,
        },
        robots_cache: text(fields, "robots_cache")
            .as_deref()
            .and_then(caching_time),
        shares_cache: text(fields, "shares_cache"),
        rdns: texts(fields, "rdns"),
        forward_undocumented: fields
            .word("forward", &[("undocumented", true)], "the forward record")
            .unwrap_or_default(),
        asn: texts(fields, "asn"),
        ips: texts(fields, "ips"),
        signs: text(fields, "signs").filter(|signs| signs != "none" && signs != "not applicable"),
        doc: text(fields, "doc"),
        source: required(fields, "source")?,
        retired: text(fields, "retired"),
        note: text(fields, "note"),
    })
}

/// The text of a field that every record must have. `None` if it is missing or no text, which is
/// reported.
fn required(fields: &mut Fields<'_>, name: &'static str) -> Option<String> {
    let node = fields.required(name, &format!("this record has no `{name}`"), None)?;
    node.text("text").map(str::to_owned)
}

/// The text of a field; `None` if it is missing, or no text, which is reported.
fn text(fields: &mut Fields<'_>, name: &'static str) -> Option<String> {
    fields.text(name, "text").map(|text| text.value)
}

/// The texts of a field that is a list; none if it is missing.
fn texts(fields: &mut Fields<'_>, name: &'static str) -> Vec<String> {
    let listed = fields.get_or_default(name, |node| node.texts("a list of texts"));
    values(&listed)
}

/// The markers of a record. One of fewer than three characters (without the signs `=` and `^` in
/// front) is reported as a mistake: it stands in too many strings.
fn markers(fields: &mut Fields<'_>) -> Vec<String> {
    let listed = fields.get_or_default("marks", |node| node.texts("a list of texts"));
    for marker in listed
        .iter()
        .filter(|marker| marker.value.trim_start_matches(['=', '^']).len() < 3)
    {
        fields.decoder.error(
            "short-mark",
            marker.span,
            "a mark needs at least three characters, or it stands in too many strings",
        );
    }
    values(&listed)
}

/// The time that a note names: a week for `a week`, else the number of hours before ` h`, as in
/// `up to 72 h`. `None` for any other note.
fn caching_time(note: &str) -> Option<Duration> {
    let hours: u64 = if note.contains("a week") {
        7 * 24
    } else {
        let (before, _) = note.split_once(" h")?;
        before.rsplit(' ').next()?.parse().ok()?
    };
    Some(Duration::from_secs(hours * 3_600))
}
