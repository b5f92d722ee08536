//! [`PassReason`]: the reason why crawlgate lets a request pass although it breaks the rules.
//! [`line_for_one`] and [`LINE_FOR_ALL`] are lines of a policy that let an unlisted bot be refused.

use super::decision::Decision;
use crate::policy::model::Mode;
use crate::policy::site::Site;
use strum::IntoStaticStr;

/// The reason why a request with a `would` was let pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum PassReason {
    /// The mode of the crawler is `observe`.
    Mode,
    /// No line of the policy names the bot, and neither does the registry, or not with a purpose.
    Unlisted,
    /// The policy says `unverified: observe`, and the crawler is not verified.
    Unverified,
}

named!(PassReason);

impl PassReason {
    /// The reason why a request that is against the rules passes by this decision; `None` where
    /// `would` is empty, so that `mode: enforce` would do nothing else.
    pub fn of(decision: &Decision, site: &Site) -> Option<PassReason> {
        decision.would?;
        let rules = site.crawler_rules(decision.claim);
        Some(match (rules.unlisted, rules.mode) {
            (true, _) => PassReason::Unlisted,
            (false, Mode::Enforce) => PassReason::Unverified,
            (false, Mode::Off | Mode::Observe) => PassReason::Mode,
        })
    }
}

/// The line of a policy that lets an unlisted bot be refused.
pub fn line_for_one(token: &str) -> String {
    format!("enforcement: {{ agents: {{ {token}: enforce }} }}")
}

/// The line of a policy that lets all unlisted bots be refused.
pub const LINE_FOR_ALL: &str = "enforcement: { purposes: { other: enforce } }";
