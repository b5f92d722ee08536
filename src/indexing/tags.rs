//! Directives by scope.

use super::Directives;

/// Whom a line is for. Unscoped sorts first: it is emitted first (a sticky scope would swallow it otherwise).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Every crawler: a line without a name, `*` in a policy.
    All,
    /// One crawler, in lower case.
    Bot(Box<str>),
}

/// What is said to whom: at most one set of directives per scope, in the order of emission.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tags {
    scopes: Vec<(Scope, Directives)>,
}

impl Tags {
    /// Adds directives to a scope.
    pub fn add(&mut self, scope: Scope, directives: &Directives) {
        let _ = (scope, directives);
        todo!()
    }

    /// Adds all of `other`: per scope united, the most restrictive value wins.
    pub fn merge(&mut self, other: &Tags) {
        let _ = other;
        todo!()
    }

    /// Scopes and their directives, unscoped first, then by name.
    pub fn iter(&self) -> impl Iterator<Item = (&Scope, &Directives)> {
        self.scopes.iter().map(|(scope, directives)| (scope, directives))
    }

    /// What binds a bot, as Google computes it: the unscoped directives and those of its own scope, united.
    pub fn effective(&self, bot: &str) -> Directives {
        let _ = bot;
        todo!()
    }

    /// Whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        self.scopes.iter().all(|(_, directives)| directives.is_empty())
    }
}
