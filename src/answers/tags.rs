//! The policy's X-Robots-Tag on answers that crawlgate makes itself.

use super::answer::Answer;
use super::field::Field;
use crate::heads::tag_values;
use crate::policy::SiteEntry;
use crate::verdict::Decision;
use http::HeaderValue;

/// Adds the lines that the policy has for the path, and for the status and type of the answer.
pub(super) fn with_tags(answer: Answer, entry: &SiteEntry, decision: &Decision) -> Answer {
    let content_type = answer.field(Field::ContentType).map(HeaderValue::as_bytes);
    match entry.site.tags.tags(&decision.path_rules, answer.status().as_u16(), content_type) {
        Some(tags) => tag_values(&tags.lines).fold(answer, |answer, line| answer.with(Field::XRobotsTag, line)),
        None => answer,
    }
}
