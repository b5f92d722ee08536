//! The judgement: facts of a request in, a decision out. Pure: neither allocates, locks, nor reads a clock.

mod behaviour;
mod decide;
mod explain;
mod load;
mod suite;

pub use behaviour::{Behaviour, Claimant, behaviour_counts, identity_by_policy};
pub use decide::{decide, decide_for, pace};
pub use explain::{
    ActionReport, EffectiveReport, Explanation, Question, claim_label, claim_of, claimant_of, explain, explain_for,
    explain_response, group_place, report, rule_place,
};
pub use load::{load, load_at, load_with_origin};
pub use suite::{TestFailure, ask, host_of, run_tests, user_agent_of};

use crate::crawlers::Claim;
use crate::policy::compiled::{Held, PathRules, PathSignals, SiteEntry};
use crate::robots::TargetScratch;
use crate::time::Timestamp;
use std::net::IpAddr;

/// What is known of a request. Borrowed bytes as they came.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The Host field or `:authority`, with its port if it has one.
    pub host: &'a [u8],
    /// Path and query as sent.
    pub target: &'a [u8],
    /// GET, HEAD, ...
    pub method: &'a [u8],
    /// The User-Agent field; empty when absent.
    pub user_agent: &'a [u8],
    /// Where the request comes from, trusted proxies peeled off.
    pub client: Option<IpAddr>,
    /// What is proven about the claim.
    pub identity: Identity,
    /// When it arrived.
    pub now: Timestamp,
}

/// What is proven about a claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Identity {
    /// Neither way.
    #[default]
    Unverified,
    /// It is who it says it is.
    Verified,
    /// It is not.
    Impostor,
    /// It would be, but the list of addresses that says so never verified anybody lately: treated as not verified.
    #[serde(rename = "unverified")]
    Suspended,
}

/// What a crawler may hold of a site's robots.txt, besides the version in force: the versions that it was served on
/// this host within the time that it may go by a copy. The default is what is known without a ledger: nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Holdings<'a> {
    /// Superseded versions, as the snapshot's entry has them.
    pub versions: &'a [Held],
    /// Which of them it may hold, a bit each, the first the lowest.
    pub held: u64,
    /// It may hold a version whose rules are not known any more: that counts as allowing.
    pub forgotten: bool,
    /// Whether it was served any version at all.
    pub fetched: bool,
    /// Whether it itself was served the version in force on this host. Never of bots that no list knows, who share a
    /// name, nor behind a cache.
    pub in_force: bool,
    /// Whether the host was watched without a gap for the whole time, so that nothing it holds is unknown.
    pub watched: bool,
}

impl<'a> Holdings<'a> {
    /// What anyone may hold of a site when nobody knows who was served what: every version in force within the grace
    /// time.
    pub fn of_anyone(entry: &'a SiteEntry, now: Timestamp) -> Holdings<'a> {
        let within = |moment: Timestamp| now.since(moment) <= entry.site.grace;
        let held = bits(&entry.held, |held| within(held.superseded_at));
        Holdings { versions: &entry.held, held, forgotten: entry.forgotten.is_some_and(within), ..Holdings::default() }
    }

    /// The superseded versions that it may hold.
    pub fn former(&self) -> impl Iterator<Item = &'a Held> {
        chosen(self.versions, self.held)
    }
}

/// The versions whose bits are set: [`bits`] the other way round.
pub fn chosen(versions: &[Held], bits: u64) -> impl Iterator<Item = &Held> {
    versions.iter().take(64).enumerate().filter(move |(place, _)| bits >> place & 1 == 1).map(|(_, held)| held)
}

/// A bit for each of the first 64 versions that a condition holds for.
pub fn bits(versions: &[Held], mut condition: impl FnMut(&Held) -> bool) -> u64 {
    let mut bits = 0;
    for (place, held) in versions.iter().take(64).enumerate() {
        bits |= u64::from(condition(held)) << place;
    }
    bits
}

/// Memory that `decide` writes into; one per worker or request, reused.
#[derive(Debug, Default)]
pub struct Scratch {
    /// For the normalised target.
    pub target: TargetScratch,
    /// For the decoded path.
    pub decoded: Vec<u8>,
}

impl Identity {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Identity::Unverified | Identity::Suspended => "unverified",
            Identity::Verified => "verified",
            Identity::Impostor => "impostor",
        }
    }

    /// What is counted of it: a finding that is suspended has a name of its own.
    pub fn outcome(self) -> &'static str {
        match self {
            Identity::Suspended => "suspended",
            _ => self.name(),
        }
    }
}

impl Verdict {
    /// Its name in reports and tests.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Allowed => "allowed",
            Verdict::Disallowed => "disallowed",
            Verdict::NotBound => "not_bound",
            Verdict::NotACrawler => "not_a_crawler",
        }
    }
}

impl Kind {
    /// Its name in reports, metrics and tests.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::NotACrawler => "not_a_crawler",
            Kind::Allowed => "allowed",
            Kind::StaleCopy => "stale_copy",
            Kind::Violation => "violation",
            Kind::Unproven => "unproven",
            Kind::Ambiguous => "ambiguous",
            Kind::NotBound => "not_bound",
            Kind::TooFast => "too_fast",
            Kind::Impostor => "impostor",
            Kind::Trapped => "trapped",
            Kind::Unverified => "unverified",
            Kind::Exempt => "exempt",
        }
    }
}

impl Action {
    /// Its name in reports, metrics and tests.
    pub fn name(self) -> &'static str {
        match self {
            Action::Pass => "pass",
            Action::Block(_) => "block",
            Action::Slow { .. } => "slow",
            Action::Pause { .. } => "pause",
            Action::RobotsTxt => "robots_txt",
            Action::License { .. } => "license",
            Action::TdmRep => "tdmrep",
        }
    }
}

/// What the rules say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Verdict {
    Allowed,
    Disallowed,
    NotBound,
    NotACrawler,
}

/// What the request is, as far as it can be known (see `docs/semantics.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Not judged.
    NotACrawler,
    /// Allowed by the version in force.
    Allowed,
    /// Disallowed now, allowed by a version it may hold.
    StaleCopy,
    /// Disallowed by all that it may hold.
    Violation,
    /// Disallowed by all that is known of, on a host that was not watched long enough to know all.
    Unproven,
    /// Only the resolved path is disallowed.
    Ambiguous,
    /// Its operator says the rules do not bind it.
    NotBound,
    /// Allowed, and sooner than the crawl delay lets it come.
    TooFast,
    /// Proven not to be the crawler that it says it is.
    Impostor,
    /// It asks for a trap, or its address did under the same name a while ago.
    Trapped,
    /// Allowed, but the policy refuses who is not verified.
    Unverified,
    /// Disallowed, and the policy lets it all the same: no violation.
    Exempt,
}

/// A rule of the site's document: the group that applied, and the rule that decided, when one did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleRef {
    /// Index into `document.groups`.
    pub group: u16,
    /// Index into its rules.
    pub rule: Option<u32>,
}

/// What is done with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Forwarded.
    Pass,
    /// Answered with the site's `answers[index]`.
    Block(u16),
    /// The same, and told when to come back.
    Slow {
        /// Index of the answer.
        answer: u16,
        /// Retry-After in seconds: who waits that long is in time.
        retry_after: u32,
    },
    /// Answered 503.
    Pause {
        /// Retry-After in seconds.
        retry_after: u32,
    },
    /// The site's robots.txt.
    RobotsTxt,
    /// A licence is asked for.
    License {
        /// 401, or 402.
        status: u16,
    },
    /// The site's `/.well-known/tdmrep.json`.
    TdmRep,
}

/// The judgement of one request. Indexes point into the snapshot it was made with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The site; `None` when no site claims the host: forwarded untouched.
    pub site: Option<usize>,
    /// Who it says it is.
    pub claim: Claim,
    /// What the rules say.
    pub verdict: Verdict,
    /// What that makes the request.
    pub kind: Kind,
    /// A violation of a crawler that was never served robots.txt here, though it could have been.
    pub never_fetched: bool,
    /// Why.
    pub rule: Option<RuleRef>,
    /// What is done.
    pub action: Action,
    /// What enforce would do, where observe does not.
    pub would: Option<Action>,
    /// The request asks for a trap that it could know of: its address and claim are to be marked, unless it is
    /// verified.
    pub trap_hit: bool,
    /// The tag rules that the path selects.
    pub path_rules: PathRules,
    /// What the site says about the use of what is at the path.
    pub signals: PathSignals,
    /// Whether it asks a site for its robots.txt, however that is spelled.
    pub robots_txt: bool,
    /// Whether the policy wants it recorded what a crawler does: not with `mode: off`.
    pub recorded: bool,
}

impl Decision {
    /// What the request was, as far as that is recorded.
    pub fn recorded_kind(&self) -> &'static str {
        if self.recorded || self.kind == Kind::NotACrawler { self.kind.name() } else { "off" }
    }

    /// The same for a request that carries a licence token. Whether the token is good is for the origin to say, or for
    /// the licence server: a policy holds no keys.
    pub fn with_license_token(mut self) -> Decision {
        if matches!(self.action, Action::License { .. }) {
            self.action = Action::Pass;
        }
        self.would = self.would.filter(|would| !matches!(would, Action::License { .. }));
        self
    }
}

#[cfg(test)]
mod holding_tests;
#[cfg(test)]
mod tests;

#[cfg(test)]
mod load_tests;
