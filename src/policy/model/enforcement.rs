//! [`Enforcement`] and [`PausePolicy`]: two checked sections of a policy. `enforcement` says what
//! happens to requests against the rules, and `pause` plans times in which crawlgate answers
//! crawlers with 503.

use super::{Defaulted, Unlicensed};
use crate::crawlers::Purpose;
use crate::time::{Recurrence, Timestamp};
use crate::yaml::{Located, Span};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;
use strum::{Display, EnumString, IntoStaticStr, VariantNames};

/// The treatment of requests against the rules.
#[derive(Clone, Debug)]
pub struct Enforcement {
    /// The fields for the site.
    pub site: EnforcementFields,
    /// Per purpose.
    pub purposes: BTreeMap<Purpose, EnforcementFields>,
    /// Per crawler (token, id or name as written); these outrank the purpose, per field.
    pub agents: Vec<(Located<String>, EnforcementFields)>,
    /// How long a crawler may use a cached robots.txt.
    pub grace: Defaulted<Duration>,
    /// Patterns that no crawler is to request: published as Disallow in every group.
    pub traps: Vec<Located<String>>,
    /// Crawlers (token, id or name as written) that are never refused.
    pub exempt: Vec<Located<String>>,
    /// The cache that answers robots.txt before crawlgate, so that the versions that crawlers
    /// fetched are unknown. `None` where the policy says nothing.
    pub behind_cache: Option<BehindCache>,
}

impl Enforcement {
    /// The fields for a crawler that is named so.
    pub fn of_agent(&self, name: &str) -> Option<&EnforcementFields> {
        let mut agents = self.agents.iter();
        let (_, fields) = agents.find(|(agent, _)| agent.eq_ignore_ascii_case(name))?;
        Some(fields)
    }

    /// Whether a crawler that is named so is never refused.
    pub fn is_exempt(&self, name: &str) -> bool {
        let mut exempt = self.exempt.iter();
        exempt.any(|agent| agent.eq_ignore_ascii_case(name))
    }
    /// The crawlers that the section names, under `agents` and then under `exempt`. One in both
    /// comes twice.
    pub fn named(&self) -> impl Iterator<Item = &Located<String>> {
        self.agents
            .iter()
            .map(|(agent, _)| agent)
            .chain(&self.exempt)
    }
}

/// How long a cache before crawlgate may go on answering with a robots.txt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BehindCache {
    /// There is no cache.
    No,
    /// As long as `max_age` lets it.
    AsLongAsMaxAge,
    /// This long, whatever `max_age` is.
    For(Duration),
}

/// Fields that can be said per site, purpose and agent. An absent field comes from the next wider
/// section.
#[derive(Clone, Debug, Default)]
pub struct EnforcementFields {
    /// Off, observe or enforce.
    pub mode: Option<Mode>,
    /// The answer to what is disallowed.
    pub disallowed: Option<AnswerPolicy>,
    /// The answer to what only the resolved path disallows.
    pub ambiguous: Option<AnswerPolicy>,
    /// The answer to what comes faster than the crawl delay; its Retry-After is computed.
    pub too_fast: Option<AnswerPolicy>,
    /// The answer to an impostor: a client that is proven not to be the crawler it claims to be.
    pub impostor: Option<AnswerPolicy>,
    /// The answer to a client that requested a trap.
    pub trapped: Option<AnswerPolicy>,
    /// For how long the client stays marked.
    pub trapped_for: Option<Duration>,
    /// The treatment of crawlers whose claim is not proven.
    pub unverified: Option<Located<Unverified>>,
    /// The answer to a request without a licence token.
    pub unlicensed: Option<Located<Unlicensed>>,
}

/// The treatment of crawlers whose claim is neither proven nor disproven.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum Unverified {
    /// They are treated as what they say they are.
    #[default]
    AsClaimed,
    /// They are observed, whatever the mode is.
    Observe,
    /// They are refused.
    Refuse,
}

/// How far enforcement goes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, IntoStaticStr,
)]
#[strum(serialize_all = "lowercase")]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Requests pass, and only that a crawler came is recorded.
    Off,
    /// Requests pass, and the answer that enforcement would give is recorded.
    #[default]
    Observe,
    /// Requests against the rules get their answer.
    Enforce,
}

/// An answer in place of the page. An absent field comes from the next wider section.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerPolicy {
    /// 4xx or 5xx.
    pub status: Option<u16>,
    /// Retry-After.
    pub retry_after: Option<Duration>,
    /// The body; crawlgate's own when absent.
    pub body: Option<String>,
}

/// A planned pause.
#[derive(Clone, Debug)]
pub struct PausePolicy {
    /// The clients that it stops.
    pub audience: Audience,
    /// When it is on.
    pub time: PauseTime,
    /// Retry-After.
    pub retry_after: Duration,
    /// Whether robots.txt is answered 503 as well.
    pub pause_robots_txt: bool,
    /// The whole section.
    pub span: Span,
}

/// When a planned pause is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PauseTime {
    /// Once.
    Once {
        /// When it begins; at once when absent.
        from: Option<Timestamp>,
        /// When it ends; 12 hours after it came into force when absent.
        until: Option<Timestamp>,
    },
    /// Each day or each week.
    Recurring(Recurrence),
}

impl PauseTime {
    /// Whether it comes again.
    pub fn recurs(self) -> bool {
        matches!(self, PauseTime::Recurring(_))
    }
}

impl fmt::Display for PauseTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, until) = match self {
            PauseTime::Recurring(recurrence) => return recurrence.fmt(f),
            PauseTime::Once { from, until } => (from, until),
        };
        match from {
            Some(from) => write!(f, "from {from} ")?,
            None => f.write_str("at once ")?,
        }
        match until {
            Some(until) => write!(f, "until {until}"),
            None => f.write_str("for 12 hours"),
        }
    }
}

/// The clients that a pause stops.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    serde::Serialize,
    serde::Deserialize,
    Display,
    EnumString,
    IntoStaticStr,
    VariantNames,
)]
#[strum(serialize_all = "lowercase")]
#[serde(rename_all = "lowercase")]
pub enum Audience {
    /// Crawlers; people, monitoring and tools pass.
    #[default]
    Crawlers,
    /// Everyone.
    Everyone,
}

named!(Mode, Audience);
