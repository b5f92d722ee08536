//! `pause`: when, for whom, and what they are told.

use super::enforcement::retry_after;
use crate::policy::model::{Audience, PausePolicy};
use crate::yaml::{Decoder, Node};
use std::time::Duration;

/// Half an hour: long enough for a deployment, short enough to come back the same night.
const DEFAULT_RETRY_AFTER: Duration = Duration::from_secs(1_800);

pub fn pause(node: &Node, decoder: &mut Decoder<'_>) -> Option<PausePolicy> {
    let mut fields = decoder.fields(node, "a map: audience, from, until, retry_after, robots_txt")?;
    let audiences = [("crawlers", Audience::Crawlers), ("everyone", Audience::Everyone)];
    let audience =
        fields.take("audience").and_then(|node| decoder.word(node, &audiences, "an audience")).unwrap_or_default();
    let from = fields.take("from").and_then(|node| decoder.timestamp(node));
    let until_node = fields.take("until");
    let until = until_node.and_then(|node| decoder.timestamp(node));
    if let (Some(from), Some(until), Some(node)) = (from, until, until_node)
        && until <= from
    {
        decoder.error("bad-value", node.span, "the pause ends before it begins");
    }
    let retry = fields.take("retry_after").and_then(|node| retry_after(node, decoder)).unwrap_or(DEFAULT_RETRY_AFTER);
    let words = [("serve", false), ("pause", true)];
    let pause_robots_txt =
        fields.take("robots_txt").and_then(|node| decoder.word(node, &words, "serve or pause")).unwrap_or(false);
    fields.finish(decoder);
    Some(PausePolicy { audience, from, until, retry_after: retry, pause_robots_txt, span: node.span })
}
