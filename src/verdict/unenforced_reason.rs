//! [`UnenforcedReason`]: why crawlgate lets a request pass although it breaks the rules, for
//! example because the policy only observes. A site owner who wants to block unknown bots can add a
//! line to the policy: [`enforce_token_line`] for one bot, or [`ENFORCE_ALL_LINE`] for all.

use super::decision::Decision;
use crate::policy::model::EnforcementMode;
use crate::policy::site::Site;
use strum::IntoStaticStr;

/// Why a request passed that enforcement of its crawler would block, slow down or pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum UnenforcedReason {
    /// The mode of the crawler is `observe`.
    Mode,
    /// No line of the policy names the bot, and neither does the registry, or not with a purpose.
    Unlisted,
    /// The policy says `unverified: observe`, and the crawler is not verified.
    Unverified,
}

named!(UnenforcedReason);

impl UnenforcedReason {
    /// Why a request with this decision passes; `None` if enforcement would let it pass too.
    pub fn from_decision(decision: &Decision, site: &Site) -> Option<UnenforcedReason> {
        decision.would?;
        let rules = site.crawler_rules(decision.claim);
        Some(match (rules.unlisted, rules.mode) {
            (true, _) => UnenforcedReason::Unlisted,
            (false, EnforcementMode::Enforce) => UnenforcedReason::Unverified,
            (false, _) => UnenforcedReason::Mode,
        })
    }
}

/// The line for a policy under which this unknown bot is blocked.
pub fn enforce_token_line(token: &str) -> String {
    format!("enforcement: {{ agents: {{ {token}: enforce }} }}")
}

/// The line for a policy under which all unknown bots are blocked.
pub const ENFORCE_ALL_LINE: &str = "enforcement: { purposes: { other: enforce } }";
