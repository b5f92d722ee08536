//! [`Explanation`]: a decision with its reasons, in values that `explain --json` prints. `report`
//! fills it in, `render` writes it as text.

use super::decision::Readings;
use super::identity::{Doubt, Evidence, Identity};
use super::pass_reason::PassReason;
use super::{HistoryBasis, Kind, Verdict};
use crate::time::{Timestamp, rfc3339};
use crate::yaml::Span;
use serde::Serialize;
use std::collections::BTreeSet;

/// The response that the tags of an explanation are for.
#[derive(Clone, Copy, Debug)]
pub struct ResponseFacts<'a> {
    /// The origin's status.
    pub status: u16,
    /// The origin's content type.
    pub content_type: Option<&'a str>,
    /// The lines of X-Robots-Tag that the origin sends.
    pub origin_tags: &'a [String],
}

impl Default for ResponseFacts<'_> {
    /// 200, of unknown type, without tags.
    fn default() -> Self {
        ResponseFacts {
            status: 200,
            content_type: None,
            origin_tags: &[],
        }
    }
}

/// A decision with its reasons. Serialised as `explain --json` prints it.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
#[non_exhaustive]
pub struct Explanation {
    pub site: Option<String>,
    pub host: String,
    pub target: String,
    pub crawler: Option<CrawlerReport>,
    /// The hosts of the site that crawlers requested, where none requested this one yet. Only a
    /// running crawlgate knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) requested_hosts: Option<BTreeSet<String>>,
    pub identity: Identity,
    /// It would be an impostor, but for a network list that verified no visit lately.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) suspended: bool,
    /// The proof of the identity, as in events.
    pub proof: &'static str,
    /// Why nothing is proven of a crawler that can be proven here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) doubt: Option<Doubt>,
    /// What each means of proof says about the address.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) evidence: Vec<Evidence>,
    pub group: Option<GroupReport>,
    pub rule: Option<RuleReport>,
    pub verdict: Verdict,
    /// The readings of robots.txt that the verdict rests on.
    pub(crate) readings: Readings,
    pub kind: Kind,
    /// A violation of a crawler that was served no robots.txt here within the time that it may use
    /// a copy.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub never_fetched: bool,
    /// Of a request that does not count, what the knowledge of cached copies rests on, as in
    /// events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) history: Option<HistoryBasis>,
    /// Until when, at the latest, requests like this one do not count.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "rfc3339")]
    pub(crate) older_until: Option<Timestamp>,
    pub action: ActionReport,
    /// Why the action is not what enforcement would do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) observed: Option<PassReason>,
    /// Lines of the policy, each of which lets an unlisted bot be refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub to_enforce: Vec<String>,
    pub x_robots_tag: Vec<String>,
    /// Lines of the origin that are not passed on, nor contained in a line of the policy.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) taken_away: Vec<String>,
    /// The reason why they are not passed on.
    #[serde(skip)]
    pub(super) taken_by: &'static str,
    /// Header lines about the use of the content, as they are sent.
    pub signals: Vec<String>,
    /// The directives of these lines for search engines, for each bot that they name, and for any
    /// other (`*`).
    pub effective: Vec<EffectiveReport>,
    /// The version of robots.txt it was judged by.
    pub version: Option<String>,
    /// Until when robots.txt is answered 503, for want of a copy of the origin's own.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "rfc3339")]
    pub robots_txt_unavailable_until: Option<Timestamp>,
}

#[allow(missing_docs)]
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CrawlerReport {
    pub id: String,
    pub name: String,
    pub operator: Option<String>,
    pub token: Option<String>,
    pub purpose: &'static str,
    /// It is a name for robots.txt, which no request has.
    pub(crate) makes_no_requests: bool,
}

#[allow(missing_docs)]
#[derive(Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct GroupReport {
    pub agents: Vec<String>,
}

#[allow(missing_docs)]
#[derive(Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RuleReport {
    pub kind: &'static str,
    pub pattern: String,
    /// `file:line:column`.
    pub source: String,
    #[serde(skip)]
    pub(super) span: Option<Span>,
}

/// The directives for a bot, as Google computes them: those for all bots and those for this one.
#[allow(missing_docs)]
#[derive(Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct EffectiveReport {
    pub bot: String,
    pub directives: Vec<String>,
}

/// The action on a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ActionReport {
    /// `pass`, `block`, `slow`, `license`, `pause`, `robots_txt` or `tdmrep`.
    pub kind: &'static str,
    /// The status of the answer; none where the request passes.
    pub status: Option<u16>,
    /// The seconds of Retry-After.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u32>,
    /// What `mode: enforce` would do, where `mode: observe` lets the request pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub would: Option<Box<ActionReport>>,
}
