//! [`RobotsTxt`]: the file that a site serves, with its ETag and Cache-Control. [`RuleSource`]: the
//! source of a rule in it, for example a place in the policy or a line of the origin's robots.txt.
//! [`LeftOut`]: an Allow of the origin's robots.txt that was left out of the file.
//! [`DeclaredPrevious`]: the robots.txt that the site served before crawlgate.

use super::Version;
use crate::robots::Pattern;
use crate::time::Timestamp;
use crate::yaml::Span;
use std::sync::Arc;

/// The file as it is served.
#[derive(Debug)]
pub struct RobotsTxt {
    /// The bytes.
    pub body: Arc<[u8]>,
    /// The version id of the bytes.
    pub version: Version,
    /// The strong entity tag, with its quotes.
    pub etag: String,
    /// The Cache-Control value.
    pub cache_control: String,
    /// The origin's file is still awaited: until this moment these bytes are not served.
    pub awaits_origin_until: Option<Timestamp>,
}

impl RobotsTxt {
    /// For how many seconds the origin's file is still waited for; `None` when these bytes are
    /// served.
    pub fn awaits_origin(&self, now: Timestamp) -> Option<u64> {
        self.awaits_origin_until
            .filter(|until| now < *until)
            .map(|until| until.since(now).as_secs())
    }
}

/// The robots.txt from before crawlgate, where the operator says what it was.
#[derive(Debug)]
pub enum DeclaredPrevious {
    /// These bytes.
    File(Arc<[u8]>),
    /// The origin's own file as crawlgate first reads it; `None` until then.
    Origin(Option<Arc<[u8]>>),
}

impl DeclaredPrevious {
    /// The bytes, where they are known.
    pub fn bytes(&self) -> Option<&Arc<[u8]>> {
        match self {
            DeclaredPrevious::File(bytes) => Some(bytes),
            DeclaredPrevious::Origin(bytes) => bytes.as_ref(),
        }
    }
}

/// The source of a rule of the served file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RuleSource {
    /// Written in the policy, here.
    Policy(Span),
    /// Follows from the stance towards a purpose, here.
    Purpose(Span),
    /// Follows from `environment: staging`.
    Staging,
    /// Written in the origin's own robots.txt, in the line of this number.
    Origin(usize),
}

impl RuleSource {
    /// The place in the policy; the beginning of the file for a source elsewhere.
    pub fn span(&self) -> Span {
        match self {
            RuleSource::Policy(span) | RuleSource::Purpose(span) => *span,
            RuleSource::Staging | RuleSource::Origin(_) => Span::default(),
        }
    }
}

/// An Allow of the origin that is not in the file, because it could defeat a Disallow of the
/// policy.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LeftOut {
    /// What it allows.
    pub allow: Pattern,
    /// Where it stands in the origin's file.
    pub line: usize,
    /// The Disallow that it could defeat.
    pub disallow: Span,
}
