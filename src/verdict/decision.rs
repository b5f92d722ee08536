//! [`Decision`]: the result of judging one request. It has the [`Verdict`] of the robots.txt rules,
//! the [`Kind`] under which the request is counted (such as a violation), and the [`Action`] that
//! crawlgate takes (such as block).

use crate::crawlers::Claim;
use crate::policy::model::{Kind, Verdict};
use crate::policy::site::{License, PathSignals, SelectedRules, Site};
use strum::IntoStaticStr;

use Action::*;

/// The readings of robots.txt behind a verdict. For a crawler whose operator publishes its parser,
/// that parser's reading counts beside RFC 9309's: a request that only one of them disallows is no
/// violation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum RobotsReadings {
    /// RFC 9309 is the crawler's only reading.
    #[default]
    Rfc9309,
    /// RFC 9309 and Google's published parser say the same.
    Both,
    /// Only RFC 9309 disallows the request.
    OnlyRfc9309,
    /// Only Google's published parser disallows the request.
    OnlyGoogle,
}

/// A rule of the site's document: the group that applied, and the rule that decided, when one did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RuleRef {
    /// Index into `document.groups`.
    pub group: usize,
    /// Index into its rules.
    pub rule: Option<usize>,
}

/// What crawlgate does with a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum ActionKind {
    /// The request passes.
    #[default]
    Pass,
    /// It is answered with the block of the policy.
    Block,
    /// It is blocked because it came too soon.
    Slow,
    /// It is answered with 503, because crawling is paused.
    Pause,
    /// It is answered with the site's robots.txt.
    RobotsTxt,
    /// It is answered with a demand for a licence.
    License,
    /// It is answered with the site's `/.well-known/tdmrep.json`.
    Tdmrep,
}

/// The action on a request, with what its answer needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The request passes.
    Pass,
    /// Answered with the site's `answers[index]`.
    Block(u16),
    /// Blocked because it came too soon.
    Slow {
        /// The index of the answer among the site's.
        answer: u16,
        /// Retry-After in seconds: a crawler that waits that long is in time.
        retry_after: u32,
    },
    /// Answered 503.
    Pause {
        /// Retry-After in seconds.
        retry_after: u32,
    },
    /// The site's robots.txt.
    RobotsTxt,
    /// A demand for a licence.
    License {
        /// 401, or 402.
        status: u16,
    },
    /// The site's `/.well-known/tdmrep.json`.
    Tdmrep,
}

named!(RobotsReadings, ActionKind);

impl Action {
    /// What is done with the request.
    pub fn kind(self) -> ActionKind {
        match self {
            Pass => ActionKind::Pass,
            Block(_) => ActionKind::Block,
            Slow { .. } => ActionKind::Slow,
            Pause { .. } => ActionKind::Pause,
            RobotsTxt => ActionKind::RobotsTxt,
            Action::License { .. } => ActionKind::License,
            Tdmrep => ActionKind::Tdmrep,
        }
    }

    /// The name of its kind.
    pub fn name(self) -> &'static str {
        self.kind().name()
    }
}

/// The judgement of one request to a site. Indexes point into the snapshot that it was made with. A
/// request for a host that no site claims has no decision: it is forwarded untouched.
#[derive(Clone, Debug)]
pub struct Decision {
    /// Index of the site.
    pub site: usize,
    /// The crawler that the user agent claims to be.
    pub claim: Claim,
    /// The verdict of the rules.
    pub verdict: Verdict,
    /// The readings of robots.txt behind the verdict.
    pub readings: RobotsReadings,
    /// The kind of the request.
    pub kind: Kind,
    /// Whether this is a violation by a crawler that did not fetch robots.txt here within the time
    /// for which a copy may be used, although it could have.
    pub never_fetched: bool,
    /// The group and the rule that decided.
    pub rule: Option<RuleRef>,
    /// The action on the request.
    pub action: Action,
    /// The action of `mode: enforce`, where `mode: observe` lets the request pass.
    pub would: Option<Action>,
    /// Whether the request is for a trap that the crawler knew from robots.txt. Its address and
    /// claim are then marked, unless the crawler is verified.
    pub trap_hit: bool,
    /// The tag rules that the path selects.
    pub path_rules: SelectedRules,
    /// The lines about the use of the content at the path.
    pub signals: PathSignals,
    /// Whether the request asks for robots.txt, however the path is spelled.
    pub robots_txt: bool,
    /// Whether the policy wants the request recorded: not with `mode: off`.
    pub recorded: bool,
}

impl Decision {
    /// Whether the request does not count because the crawler may use another robots.txt than the
    /// one in force. False with `mode: off`.
    pub fn is_in_doubt(&self) -> bool {
        self.recorded && matches!(self.kind, Kind::Unproven | Kind::StaleCopy)
    }

    /// The action, and the action of `mode: enforce` under observation.
    fn actions(&self) -> impl Iterator<Item = Action> {
        [self.action].into_iter().chain(self.would)
    }

    /// Whether the request was blocked or slowed down, or would be under enforcement.
    pub fn is_refused(&self) -> bool {
        self.actions()
            .any(|action| matches!(action, Block(_) | Slow { .. }))
    }

    /// The licence that the crawler is asked for, if the policy asks for one.
    pub fn license<'s>(&self, site: &'s Site) -> Option<&'s License> {
        site.signals
            .license(self.signals, self.rule.map(|rule| rule.group))
    }

    /// Whether the request lacks a licence that the policy asks for, also under observation.
    pub fn lacks_license(&self) -> bool {
        self.actions()
            .any(|action| matches!(action, Action::License { .. }))
    }

    /// Whether the request is an event of the logs: it was blocked or slowed down, or lacks a
    /// licence, also under observation. A pause makes no event.
    pub fn is_logged_event(&self) -> bool {
        self.is_refused() || self.lacks_license()
    }

    /// The Retry-After of a request that came too soon, in seconds, also under observation.
    #[cfg(feature = "gate")]
    pub(crate) fn slow_retry_after(&self) -> Option<u32> {
        self.actions().find_map(|action| match action {
            Slow { retry_after, .. } => Some(retry_after),
            _ => None,
        })
    }

    /// The decision for a request that carries a licence token, which is not checked here: a demand
    /// for a licence becomes a pass, in `action` and in `would`. The origin or the licence server
    /// checks the token: a policy holds no keys.
    pub fn with_license_token(mut self) -> Decision {
        if matches!(self.action, Action::License { .. }) {
            self.action = Pass;
        }
        self.would = self
            .would
            .filter(|would| !matches!(would, Action::License { .. }));
        self
    }
}
