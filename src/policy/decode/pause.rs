//! [`pauses`] decodes the policy section `pause`: planned times in which crawlgate answers
//! crawlers, or everyone, with 503 and Retry-After.

use super::enforcement::retry_after;
use crate::policy::model::{PausePolicy, PauseSchedule};
use crate::time::{Recurrence, Zone};
use crate::yaml::{MapFields, NodeReader, NodeValue, nearest_word};
use std::time::Duration;

/// Long enough for a deployment, short enough that crawlers come back the same night.
const DEFAULT_RETRY_AFTER: Duration = Duration::from_secs(1_800);
/// The most pauses. Each request looks at all of them.
const MAX_PAUSES: usize = 50;

/// Decodes the section: a list of pauses, or a single one.
pub fn pauses(node: NodeReader<'_>) -> Vec<PausePolicy> {
    if matches!(&node.value, NodeValue::Sequence(items) if items.len() > MAX_PAUSES) {
        node.error("bad-value", format!("more than {MAX_PAUSES} pauses"));
        return Vec::new();
    }
    node.decode_maps(
        [
            "a pause, or a list of pauses",
            "a map: audience, from, until, daily, weekly, zone, retry_after, robots_txt",
        ],
        |fields| Some(pause(fields)),
    )
}

/// Decodes one pause. It has `from` and `until`, or it recurs with `daily` or `weekly`.
fn pause(fields: &mut MapFields<'_>) -> PausePolicy {
    let audience = fields
        .variant("audience", "a value of \"audience\"")
        .unwrap_or_default();
    let once = once(fields);
    let recurring = recurring(fields);
    let retry_after = fields
        .get("retry_after", retry_after)
        .unwrap_or(DEFAULT_RETRY_AFTER);
    let pause_robots_txt = fields
        .word(
            "robots_txt",
            &[("serve", false), ("pause", true)],
            "serve or pause",
        )
        .unwrap_or_default();
    fields.report_unknown();
    let has_moments = fields.field("from").or(fields.field("until")).is_some();
    if recurring.is_some() && has_moments {
        fields.decoder.error_with_help(
            "bad-value",
            fields.span,
            "a recurring pause has neither \"from\" nor \"until\"",
            TWO_PAUSES,
        );
    }
    PausePolicy {
        audience,
        schedule: recurring.unwrap_or(once),
        retry_after,
        pause_robots_txt,
        span: fields.span,
    }
}

const TWO_PAUSES: &str = "write two pauses, as a list";

/// Decodes `from` and `until`, both of which may be absent.
fn once(fields: &mut MapFields<'_>) -> PauseSchedule {
    let from = fields.get("from", NodeReader::timestamp);
    let until = fields.located("until", NodeReader::timestamp);
    if let (Some(from), Some(until)) = (from, &until)
        && until.value <= from
    {
        fields
            .decoder
            .error("bad-value", until.span, "the pause ends before it begins");
    }
    PauseSchedule::Once {
        from,
        until: until.map(|until| until.value),
    }
}

/// Decodes `daily: "02:00-03:00"` or `weekly: "Sun 02:00-03:00"`, with `zone`.
fn recurring(fields: &mut MapFields<'_>) -> Option<PauseSchedule> {
    let zone_node = fields.field("zone");
    let zone = fields.get("zone", zone);
    let daily = fields.field("daily");
    let weekly = fields.field("weekly");
    let Some(node) = weekly.or(daily) else {
        if let Some(node) = zone_node {
            node.error_with_help(
                "without-effect",
                "\"zone\" has no effect without \"daily\" or \"weekly\"",
                "\"from\" and \"until\" contain their zone: \"2026-12-01T02:00:00+01:00\"",
            );
        }
        return None;
    };
    if daily.is_some() && weekly.is_some() {
        node.error_with_help(
            "bad-value",
            "a pause cannot have both \"daily\" and \"weekly\"",
            TWO_PAUSES,
        );
    }
    let (span, example) = match weekly {
        Some(_) => ("week", "\"weekly: 'Sun 02:00-03:00'\""),
        None => ("day", "\"daily: '02:00-03:00'\""),
    };
    let text = node.text("a span of time")?;
    let recurrence = Recurrence::parse(text, weekly.is_some(), zone.unwrap_or(Zone::UTC));
    if recurrence.is_none() {
        node.error_with_help(
            "bad-value",
            format!("\"{}\" is not a span of the {span}", text.escape_debug()),
            format!(
                "write {example}: two different times from 00:00 to 23:59. The second may be on \
                 the next day"
            ),
        );
    }
    recurrence.map(PauseSchedule::Recurring)
}

fn zone(node: NodeReader<'_>) -> Option<Zone> {
    let name = node.text("the name of a time zone")?;
    let zone = Zone::from_name(name);
    if zone.is_none() {
        let help = match nearest_word(name, Zone::names()) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => {
                "write a name of the IANA database, such as \"Europe/Berlin\" or \"UTC\"".to_owned()
            }
        };
        node.error_with_help(
            "bad-value",
            format!("there is no time zone \"{}\"", name.escape_debug()),
            help,
        );
    }
    zone
}
