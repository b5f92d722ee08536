//! `tests`: cases that must hold.

use crate::time::Timestamp;
use crate::yaml::{Located, Span};
use std::net::IpAddr;

/// One case of `tests`.
#[derive(Clone, Debug)]
pub struct PolicyTest {
    /// A product token, a crawler's name, or a whole user agent.
    pub agent: Located<String>,
    /// Path and query.
    pub path: Located<String>,
    /// The host asked for; the site's first when absent.
    pub host: Option<Located<String>>,
    /// The content type of the response.
    pub content_type: Option<String>,
    /// The status of the response; 200 when absent.
    pub status: u16,
    /// The moment of the request; outside any pause when absent.
    pub at: Option<Timestamp>,
    /// Where it comes from.
    pub ip: Option<IpAddr>,
    /// What is proven of the crawler; what the policy's networks say of `ip` when absent.
    pub identity: Option<IdentityByTest>,
    /// What the crawler holds; not known when absent.
    pub held: Option<CachedByTest>,
    /// What must come of it.
    pub expect: Expectation,
    /// The whole case.
    pub span: Span,
}

/// What is proven of the crawler of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum IdentityByTest {
    Unverified,
    Verified,
    Impostor,
}

/// What the crawler of a test holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CachedByTest {
    /// Nothing: it never fetched robots.txt, on a host that was observed all the time.
    Nothing,
    /// The version in force alone.
    InForce,
    /// This robots.txt, which was in force before.
    Superseded(String),
}

/// What a test expects; absent fields are not compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expectation {
    /// `allowed`, `disallowed`, `not_bound`, `not_a_crawler`.
    pub verdict: Option<Located<String>>,
    /// `allowed`, `violation`, `unproven`, `ambiguous`, `not_bound`, ...
    pub kind: Option<Located<String>>,
    /// Whether a violation is one of a crawler that never fetched robots.txt.
    pub never_fetched: Option<Located<bool>>,
    /// `pass`, `block`, `license`, `pause`, `robots_txt`, `tdmrep`.
    pub action: Option<Located<String>>,
    /// The status of an answer that is made here.
    pub answer_status: Option<Located<u16>>,
    /// The X-Robots-Tag lines, in order; an empty list means none.
    pub tag: Option<Vec<Located<String>>>,
    /// The header lines about the use of the content, in order; an empty list means none.
    pub signals: Option<Vec<Located<String>>>,
}
