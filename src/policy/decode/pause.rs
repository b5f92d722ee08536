//! `pause`: when, for whom, and what they are told.

use super::enforcement::retry_after;
use crate::policy::model::{Audience, PausePolicy, PauseTime};
use crate::time::{Recurrence, Zone};
use crate::yaml::{Decoder, Fields, Node, nearest};
use std::time::Duration;

/// Half an hour: long enough for a deployment, short enough to come back the same night.
const DEFAULT_RETRY_AFTER: Duration = Duration::from_secs(1_800);
/// A site with more has another problem; each of them is looked at for each request.
const MAX_PAUSES: usize = 50;

pub fn pauses(node: &Node, decoder: &mut Decoder<'_>) -> Vec<PausePolicy> {
    let items = decoder.one_or_many_maps(node, "a pause, or a list of pauses");
    if items.len() > MAX_PAUSES {
        decoder.error("bad-value", node.span, format!("more than {MAX_PAUSES} pauses"));
        return Vec::new();
    }
    items.iter().filter_map(|item| pause(item, decoder)).collect()
}

fn pause(node: &Node, decoder: &mut Decoder<'_>) -> Option<PausePolicy> {
    let mut fields =
        decoder.fields(node, "a map: audience, from, until, daily, weekly, zone, retry_after, robots_txt")?;
    let audiences = [("crawlers", Audience::Crawlers), ("everyone", Audience::Everyone)];
    let audience =
        fields.take("audience").and_then(|node| decoder.word(node, &audiences, "an audience")).unwrap_or_default();
    let once = once(&mut fields, decoder);
    let recurring = recurring(&mut fields, decoder);
    let retry = fields.take("retry_after").and_then(|node| retry_after(node, decoder)).unwrap_or(DEFAULT_RETRY_AFTER);
    let words = [("serve", false), ("pause", true)];
    let pause_robots_txt =
        fields.take("robots_txt").and_then(|node| decoder.word(node, &words, "serve or pause")).unwrap_or(false);
    fields.finish(decoder);
    if recurring.is_some() && once != (PauseTime::Once { from: None, until: None }) {
        decoder.error("bad-value", node.span, "a pause that recurs has no `from` and no `until`").help =
            Some("write two pauses: a list has one for each".into());
    }
    Some(PausePolicy {
        audience,
        time: recurring.unwrap_or(once),
        retry_after: retry,
        pause_robots_txt,
        span: node.span,
    })
}

fn once(fields: &mut Fields<'_>, decoder: &mut Decoder<'_>) -> PauseTime {
    let from = fields.take("from").and_then(|node| decoder.timestamp(node));
    let until_node = fields.take("until");
    let until = until_node.and_then(|node| decoder.timestamp(node));
    if let (Some(from), Some(until), Some(node)) = (from, until, until_node)
        && until <= from
    {
        decoder.error("bad-value", node.span, "the pause ends before it begins");
    }
    PauseTime::Once { from, until }
}

/// `daily: "02:00-03:00"` or `weekly: "Sun 02:00-03:00"`, and `zone`.
fn recurring(fields: &mut Fields<'_>, decoder: &mut Decoder<'_>) -> Option<PauseTime> {
    let zone_node = fields.take("zone");
    let zone = zone_node.and_then(|node| zone(node, decoder));
    let (daily, weekly) = (fields.take("daily"), fields.take("weekly"));
    let Some((node, is_weekly)) = weekly.map(|node| (node, true)).or(daily.map(|node| (node, false))) else {
        if let Some(node) = zone_node {
            decoder.error("without-effect", node.span, "`zone` has no effect without `daily` or `weekly`").help =
                Some("`from` and `until` have their zone in them: `2026-12-01T02:00:00+01:00`".into());
        }
        return None;
    };
    if daily.is_some() && weekly.is_some() {
        decoder.error("bad-value", node.span, "a pause is `daily` or `weekly`").help =
            Some("write two pauses: a list has one for each".into());
    }
    let example = if is_weekly { "`weekly: \"Sun 02:00-03:00\"`" } else { "`daily: \"02:00-03:00\"`" };
    let text = decoder.text(node, "a span of time")?;
    let recurrence = Recurrence::parse(text, is_weekly, zone.unwrap_or(Zone::UTC));
    if recurrence.is_none() {
        let message = format!("`{}` is no span of the {}", text.escape_debug(), if is_weekly { "week" } else { "day" });
        decoder.error("bad-value", node.span, message).help = Some(format!(
            "write {example}, two different times from 00:00 to 23:59; the second may be on the next day"
        ));
    }
    recurrence.map(PauseTime::Recurring)
}

fn zone(node: &Node, decoder: &mut Decoder<'_>) -> Option<Zone> {
    let name = decoder.text(node, "the name of a time zone")?;
    let zone = Zone::from_name(name);
    if zone.is_none() {
        let help = match nearest(name, Zone::names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "write a name of the IANA database, such as `Europe/Berlin` or `UTC`".to_owned(),
        };
        decoder.error("bad-value", node.span, format!("there is no time zone `{}`", name.escape_debug())).help =
            Some(help);
    }
    zone
}
