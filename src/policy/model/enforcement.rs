//! Two decoded sections of a policy: `enforcement` ([`Enforcement`]) says what happens to requests
//! that break the rules, and `pause` ([`PausePolicy`]) plans times in which crawlgate answers
//! crawlers with 503.

use super::UnlicensedAnswer;
use crate::crawlers::Purpose;
use crate::time::{Recurrence, Timestamp};
use crate::yaml::{Located, SourceSpan};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;
use strum::{Display, EnumString, IntoStaticStr, VariantNames};

/// The section `enforcement`.
#[derive(Clone, Debug)]
pub struct Enforcement {
    /// The fields of the whole site.
    pub site: EnforcementFields,
    /// The fields of a purpose, which outrank the site's.
    pub purposes: BTreeMap<Purpose, EnforcementFields>,
    /// The fields of a crawler (token, id or name as written), which outrank those of its purpose.
    pub agents: Vec<(Located<String>, EnforcementFields)>,
    /// How long a crawler may use a cached robots.txt.
    pub grace: Located<Duration>,
    /// Patterns of traps: published as Disallow in every group.
    pub traps: Vec<Located<String>>,
    /// Crawlers (token, id or name as written) that are never blocked.
    pub exempt: Vec<Located<String>>,
    /// Whether a cache in front of crawlgate answers robots.txt, so that crawlgate does not see
    /// which version a crawler fetched. `None` where the policy does not say.
    pub behind_cache: Option<FrontCacheLifetime>,
}

impl Enforcement {
    /// The fields of `agents` for this name.
    pub fn agent_fields(&self, name: &str) -> Option<&EnforcementFields> {
        self.agents
            .iter()
            .find(|(agent, _)| agent.eq_ignore_ascii_case(name))
            .map(|(_, fields)| fields)
    }

    /// Whether the section exempts this name.
    pub fn is_exempt(&self, name: &str) -> bool {
        self.exempt
            .iter()
            .any(|agent| agent.eq_ignore_ascii_case(name))
    }

    /// The names under `agents`, then those under `exempt`. A name in both comes twice.
    pub fn named_crawlers(&self) -> impl Iterator<Item = &Located<String>> + Clone {
        self.agents
            .iter()
            .map(|(agent, _)| agent)
            .chain(&self.exempt)
    }
}

/// How long a cache in front of crawlgate may keep a robots.txt.
#[derive(Clone, Debug, PartialEq)]
pub enum FrontCacheLifetime {
    /// There is no cache.
    No,
    /// As long as `max_age` permits.
    AsLongAsMaxAge,
    /// This long, whatever `max_age` is.
    For(Duration),
}

/// The fields that the site, each purpose and each agent can have. An absent field comes from the
/// next wider section.
#[derive(Clone, Debug, Default)]
pub struct EnforcementFields {
    pub mode: Option<EnforcementMode>,
    /// The answer to a disallowed request.
    pub disallowed: Option<AnswerPolicy>,
    /// The answer to a request that only the resolved path disallows.
    pub ambiguous: Option<AnswerPolicy>,
    /// The answer to a request that is too fast; its Retry-After is computed.
    pub too_fast: Option<AnswerPolicy>,
    /// The answer to an impostor: a client that is proven not to be the crawler it claims to be.
    pub impostor: Option<AnswerPolicy>,
    /// The answer to a client that requested a trap.
    pub trapped: Option<AnswerPolicy>,
    /// How long that client stays marked.
    pub trapped_for: Option<Duration>,
    /// How crawlers are treated that are not verified.
    pub unverified: Option<Located<UnverifiedTreatment>>,
    /// The answer to a request without a licence token.
    pub unlicensed: Option<Located<UnlicensedAnswer>>,
}

/// How crawlers are treated whose claimed identity is neither proven nor disproven.
#[derive(Clone, Copy, Debug, Default, PartialEq, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum UnverifiedTreatment {
    /// As what they claim to be.
    #[default]
    AsClaimed,
    /// They are only observed, whatever the mode is.
    Observe,
    /// They are blocked.
    Refuse,
}

/// How far enforcement goes.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    serde::Serialize,
    Display,
    EnumString,
    IntoStaticStr,
    VariantNames,
)]
#[strum(serialize_all = "lowercase")]
#[serde(rename_all = "lowercase")]
pub enum EnforcementMode {
    /// Requests pass; only the crawler's visit is recorded.
    Off,
    /// Requests pass, and the answer that enforcement would give is recorded.
    #[default]
    Observe,
    /// Requests that break the rules get their answer.
    Enforce,
}

/// The answer to a blocked request. An absent field comes from the next wider section.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AnswerPolicy {
    /// 4xx or 5xx.
    pub status: Option<u16>,
    /// Retry-After.
    pub retry_after: Option<Duration>,
    /// The body; crawlgate's own when absent.
    pub body: Option<String>,
}

/// One entry of `pause`.
#[derive(Clone, Debug)]
pub struct PausePolicy {
    /// Whom it stops.
    pub audience: PauseAudience,
    /// When it is on.
    pub schedule: PauseSchedule,
    /// Retry-After.
    pub retry_after: Duration,
    /// Whether robots.txt is answered 503 as well.
    pub pause_robots_txt: bool,
    /// The whole section.
    pub span: SourceSpan,
}

/// When a planned pause is on.
#[derive(Clone, Copy, Debug)]
pub enum PauseSchedule {
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

impl PauseSchedule {
    /// Whether it is daily or weekly.
    pub fn recurs(self) -> bool {
        matches!(self, PauseSchedule::Recurring(_))
    }
}

impl fmt::Display for PauseSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, until) = match self {
            PauseSchedule::Recurring(recurrence) => return recurrence.fmt(f),
            PauseSchedule::Once { from, until } => (from, until),
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

/// Whom a pause stops.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    Display,
    EnumString,
    IntoStaticStr,
    VariantNames,
)]
#[strum(serialize_all = "lowercase")]
#[serde(rename_all = "lowercase")]
pub enum PauseAudience {
    /// Crawlers only: people, monitoring and tools pass.
    #[default]
    Crawlers,
    /// Everyone.
    Everyone,
}

named!(EnforcementMode, PauseAudience);
