//! [`Explanation`]: crawlgate's decision about a request with all reasons, for the command
//! `crawlgate explain`. With `--json` the command prints this struct as it is; `render` writes it
//! as text. `verdict/report` fills it in.

use super::decision::{ActionKind, RobotsReadings};
use super::identity::{Identity, IdentityDoubt, ProofStatement};
use super::unenforced_reason::UnenforcedReason;
use super::{CachedVersionsBasis, Kind, Verdict};
use crate::policy::model::EnforcementMode;
use crate::time::{Timestamp, rfc3339};
use crate::yaml::SourceSpan;
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
    /// The hosts of the site that crawlers have requested, if none has requested this one yet. Only
    /// a running crawlgate knows them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) requested_hosts: Option<BTreeSet<String>>,
    pub identity: Identity,
    /// The address would make it an impostor, but the network list verified no visit lately.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) suspended: bool,
    /// The proof of the identity, as in events.
    pub proof: &'static str,
    /// Why a crawler that can be proven here is not verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) doubt: Option<IdentityDoubt>,
    /// Whether the address of the client is known.
    #[serde(skip)]
    pub(super) has_address: bool,
    /// The statement of each means of proof about the address.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) evidence: Vec<ProofStatement>,
    pub group: Option<GroupReport>,
    pub rule: Option<RuleReport>,
    pub verdict: Verdict,
    /// The readings of robots.txt behind the verdict.
    pub(crate) readings: RobotsReadings,
    pub kind: Kind,
    /// A violation by a crawler that did not fetch robots.txt here within the time for which a copy
    /// may be used.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub never_fetched: bool,
    /// For a request that does not count: how well the cached copies are known, as in events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) history: Option<CachedVersionsBasis>,
    /// Until when, at the latest, requests like this one do not count.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "rfc3339")]
    pub(crate) older_until: Option<Timestamp>,
    pub action: ActionReport,
    /// The mode that applies to this request.
    #[serde(skip)]
    pub(super) mode: EnforcementMode,
    /// Why enforcement did not act.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) observed: Option<UnenforcedReason>,
    /// Lines for the policy, under each of which the unknown bot is blocked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub to_enforce: Vec<String>,
    /// The crawl delay that binds the crawler, unless a request that comes sooner is treated like
    /// this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) crawl_delay: Option<CrawlDelayReport>,
    pub x_robots_tag: Vec<String>,
    /// Lines of the origin that are not passed on, nor contained in a line of the policy.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) taken_away: Vec<String>,
    /// Whether the lines depend on the content type of the response.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) tags_depend_on_type: bool,
    /// Why they are not passed on.
    #[serde(skip)]
    pub(super) removal_reason: &'static str,
    /// Header lines about the use of the content, as they are sent.
    pub signals: Vec<String>,
    /// The directives of these lines for search engines, for each bot in them, and for any other
    /// bot (`*`).
    pub effective: Vec<EffectiveReport>,
    /// The version of robots.txt by which the request was judged.
    pub version: Option<String>,
    /// Until when robots.txt is answered 503, because there is no copy of the origin's own.
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
    /// The crawler is a name for robots.txt only, and makes no requests.
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
    pub(super) span: Option<SourceSpan>,
}

/// A crawl delay, and what becomes of a request that comes sooner.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct CrawlDelayReport {
    /// In seconds, as robots.txt writes it.
    pub seconds: String,
    /// `file:line:column`.
    pub source: String,
    /// It binds only a crawler that has fetched the version in force, because others may use a
    /// version that is not known.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub only_after_fetch: bool,
    /// The action on a request that comes sooner.
    pub action: ActionReport,
    /// Why enforcement does not act on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed: Option<UnenforcedReason>,
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
    /// What is done.
    pub kind: ActionKind,
    /// The status of the answer; `None` if the request passes.
    pub status: Option<u16>,
    /// The seconds of Retry-After.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u32>,
    /// What enforcement of this crawler would do, if the request is only observed. Only in an
    /// explanation: an [`EngineDecision`](crate::EngineDecision) has it beside its action.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub would: Option<Box<ActionReport>>,
}
