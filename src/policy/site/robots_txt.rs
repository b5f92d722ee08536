//! [`RobotsTxt`]: the robots.txt that a site serves, with its ETag and Cache-Control. Its rules
//! come from the policy, or from the policy merged with the origin's own robots.txt. [`RuleSource`]
//! says whether a rule comes from the policy or from the origin. [`DroppedRule`] is a rule of
//! the origin that was left out, because a rule of the policy contradicts it.
//! [`PreviousRobotsTxt`] is what the site served before crawlgate.

use super::RobotsVersionId;
use crate::robots::Rule;
use crate::time::Timestamp;
use crate::yaml::SourceSpan;
use std::sync::Arc;

/// The robots.txt of a site, ready to be served.
#[derive(Debug)]
pub struct RobotsTxt {
    /// The bytes.
    pub body: Arc<[u8]>,
    /// Their id.
    pub version: RobotsVersionId,
    /// The strong entity tag, with its quotes.
    pub etag: String,
    /// The Cache-Control value.
    pub cache_control: String,
    /// The origin's file is awaited: until this time 503 is answered in place of these bytes.
    pub awaits_origin_until: Option<Timestamp>,
}

impl RobotsTxt {
    /// How much longer the origin's file is awaited; `None` when these bytes are served.
    pub fn origin_wait_seconds(&self, now: Timestamp) -> Option<u64> {
        self.awaits_origin_until
            .filter(|until| now < *until)
            .map(|until| until.since(now).as_secs())
    }
}

/// The robots.txt from before crawlgate, as the policy declares it.
#[derive(Debug)]
pub enum PreviousRobotsTxt {
    /// These bytes.
    File(Arc<[u8]>),
    /// The origin's own file, as crawlgate first fetches it; `None` until then.
    Origin(Option<Arc<[u8]>>),
}

impl PreviousRobotsTxt {
    /// The bytes, if they are known.
    pub fn bytes(&self) -> Option<&Arc<[u8]>> {
        match self {
            PreviousRobotsTxt::File(bytes) => Some(bytes),
            PreviousRobotsTxt::Origin(bytes) => bytes.as_ref(),
        }
    }
}

/// Where a rule of the served file comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RuleSource {
    /// This place in the policy.
    Policy(SourceSpan),
    /// The stance towards a purpose, at this place in the policy.
    Purpose(SourceSpan),
    /// `environment: staging`.
    Staging,
    /// This line of the origin's own robots.txt.
    Origin(usize),
}

impl RuleSource {
    /// The place in the policy; the beginning of the file for a source elsewhere.
    pub fn span(&self) -> SourceSpan {
        match self {
            RuleSource::Policy(span) | RuleSource::Purpose(span) => *span,
            RuleSource::Staging | RuleSource::Origin(_) => SourceSpan::default(),
        }
    }
}

/// A rule of the origin that the merge leaves out: an Allow that could defeat a Disallow of the
/// policy, or a Disallow of the whole site that an Allow of the policy defeats.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DroppedRule {
    /// The rule.
    pub rule: Rule,
    /// Its line in the origin's file.
    pub line: usize,
    /// The rule of the policy.
    pub by: SourceSpan,
}
