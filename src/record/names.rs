//! The values by which requests are counted. [`CountedAction`] is what crawlgate did,
//! [`RecordedKind`] how the request relates to the rules, and [`ViolationKind`] which kind of
//! violation a request is. Each value has a name for metrics and tables. An [`IdentityStatus`] says
//! whether the client is the crawler that it claims to be. Requests of visitors have no identity
//! status.

use crate::verdict::{Action, Decision, IdentityStatus, Kind};
use Kind::*;
use strum::{IntoStaticStr, VariantArray};

/// The action on a request, or the action that enforcement would have taken.
#[derive(Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum CountedAction {
    /// Forwarded.
    Pass,
    /// Answered with the block of the policy.
    Block,
    /// Answered as too fast.
    Slow,
    /// Answered 503 by a pause.
    Pause,
    /// Answered with robots.txt.
    RobotsTxt,
    /// Answered with a demand for a licence.
    License,
    /// Answered with tdmrep.json.
    Tdmrep,
    /// Forwarded; `mode: enforce` would have blocked it.
    WouldBlock,
    /// Forwarded; `mode: enforce` would have slowed it down.
    WouldSlow,
    /// Forwarded; `mode: enforce` would have paused it.
    WouldPause,
    /// Forwarded; `mode: enforce` would have demanded a licence.
    WouldLicense,
    /// Rejected for its head, before it was judged.
    Refuse,
    /// Answered with the file of a challenge of a certificate authority.
    Challenge,
    /// Redirected to https.
    Redirect,
}

named!(CountedAction);

impl CountedAction {
    /// The action on a judged request.
    pub fn from_decision(decision: &Decision) -> CountedAction {
        use Action::*;

        match (decision.action, decision.would) {
            (Pass, Some(Block(_))) => CountedAction::WouldBlock,
            (Pass, Some(Slow { .. })) => CountedAction::WouldSlow,
            (Pass, Some(Pause { .. })) => CountedAction::WouldPause,
            (Pass, Some(License { .. })) => CountedAction::WouldLicense,
            (Pass, _) => CountedAction::Pass,
            (Block(_), _) => CountedAction::Block,
            (Slow { .. }, _) => CountedAction::Slow,
            (Pause { .. }, _) => CountedAction::Pause,
            (RobotsTxt, _) => CountedAction::RobotsTxt,
            (License { .. }, _) => CountedAction::License,
            (Tdmrep, _) => CountedAction::Tdmrep,
        }
    }

    /// Whether the request was forwarded.
    pub(super) fn is_forwarded(self) -> bool {
        use CountedAction::*;

        matches!(
            self,
            Pass | WouldBlock | WouldSlow | WouldPause | WouldLicense
        )
    }
}

/// The kind under which a request is recorded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum RecordedKind {
    /// Its kind.
    Of(Kind),
    /// The policy has `mode: off` for the crawler, so the kind is not recorded.
    Off,
}

impl RecordedKind {
    /// How many there are.
    pub(super) const COUNT: usize = Kind::VARIANTS.len() + 1;

    /// The kind of a judged request.
    pub fn from_decision(decision: &Decision) -> RecordedKind {
        if decision.recorded || decision.kind == NotACrawler {
            RecordedKind::Of(decision.kind)
        } else {
            RecordedKind::Off
        }
    }

    /// All of them, in the order of [`RecordedKind::index`].
    pub fn iter_all() -> impl Iterator<Item = RecordedKind> {
        let kinds = Kind::VARIANTS.iter().copied().map(RecordedKind::Of);
        kinds.chain([RecordedKind::Off])
    }

    /// Its name in metrics, logs and tables.
    pub fn name(self) -> &'static str {
        match self {
            RecordedKind::Of(kind) => kind.name(),
            RecordedKind::Off => "off",
        }
    }

    /// Its index in a list of all.
    pub(super) fn index(self) -> usize {
        match self {
            RecordedKind::Of(kind) => kind as usize,
            RecordedKind::Off => Kind::VARIANTS.len(),
        }
    }
}

impl From<Kind> for RecordedKind {
    fn from(kind: Kind) -> RecordedKind {
        RecordedKind::Of(kind)
    }
}

/// The kind of a request that was blocked or slowed down, or would be under enforcement.
#[derive(Clone, Copy)]
pub enum ViolationKind {
    /// Its kind.
    Of(Kind),
    /// A violation by a crawler that did not fetch robots.txt within the time for which a copy may
    /// be used.
    NeverFetched,
}

impl ViolationKind {
    /// How many there are.
    pub(super) const COUNT: usize = Kind::VARIANTS.len() + 1;

    /// The kind of a judged request.
    pub fn from_decision(decision: &Decision) -> ViolationKind {
        if decision.never_fetched {
            ViolationKind::NeverFetched
        } else {
            ViolationKind::Of(decision.kind)
        }
    }

    /// All of them, in the order of [`ViolationKind::index`].
    pub fn iter_all() -> impl Iterator<Item = ViolationKind> {
        let kinds = Kind::VARIANTS.iter().copied().map(ViolationKind::Of);
        kinds.chain([ViolationKind::NeverFetched])
    }

    /// The kinds that an event can have.
    pub fn event_kinds() -> impl Iterator<Item = ViolationKind> {
        ViolationKind::iter_all().filter(|kind| {
            !matches!(
                kind,
                ViolationKind::Of(Allowed | StaleCopy | Exempt | NotACrawler)
            )
        })
    }

    /// Its name in metrics and queries.
    pub fn name(self) -> &'static str {
        match self {
            ViolationKind::Of(kind) => kind.name(),
            ViolationKind::NeverFetched => "never_fetched",
        }
    }

    /// Its index in a list of all.
    pub(super) fn index(self) -> usize {
        match self {
            ViolationKind::Of(kind) => kind as usize,
            ViolationKind::NeverFetched => Kind::VARIANTS.len(),
        }
    }
}

impl std::fmt::Display for ViolationKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// The name of an identity in metrics and tables: `none` for visitors, who claim nothing.
pub fn identity_label(identity: Option<IdentityStatus>) -> &'static str {
    identity.map_or("none", IdentityStatus::name)
}
