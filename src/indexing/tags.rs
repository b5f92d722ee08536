//! Directives by scope. Knows no field line and no response.

use super::Directives;

/// Whom a line is for. Unscoped sorts first: it is emitted first (a sticky scope would swallow it otherwise).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Every crawler: a line without a name, `*` in a policy.
    All,
    /// One crawler, in lower case.
    Bot(Box<str>),
}

impl Scope {
    /// The scope of a bot's name, or of `*`.
    pub fn named(name: &str) -> Scope {
        if name == "*" { Scope::All } else { Scope::Bot(name.to_ascii_lowercase().into()) }
    }
}

/// What is said to whom: at most one set of directives per scope, in the order of emission.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tags {
    scopes: Vec<(Scope, Directives)>,
}

impl Tags {
    /// Adds directives to a scope.
    pub fn add(&mut self, scope: Scope, directives: &Directives) {
        if directives.is_empty() {
            return;
        }
        match self.scopes.binary_search_by(|(have, _)| have.cmp(&scope)) {
            Ok(index) => self.scopes[index].1.extend(directives),
            Err(index) => self.scopes.insert(index, (scope, directives.clone())),
        }
    }

    /// Adds all of `other`: per scope united, the most restrictive value wins.
    pub fn merge(&mut self, other: &Tags) {
        for (scope, directives) in &other.scopes {
            self.add(scope.clone(), directives);
        }
    }

    /// Scopes and their directives, unscoped first, then by name.
    pub fn iter(&self) -> impl Iterator<Item = (&Scope, &Directives)> {
        self.scopes.iter().map(|(scope, directives)| (scope, directives))
    }

    /// What binds a bot, as Google computes it: the unscoped directives and those of its own scope, united.
    pub fn effective(&self, bot: &str) -> Directives {
        let mut directives = Directives::default();
        for (scope, said) in &self.scopes {
            match scope {
                Scope::All => directives.extend(said),
                Scope::Bot(name) if name.eq_ignore_ascii_case(bot) => directives.extend(said),
                Scope::Bot(_) => {}
            }
        }
        directives
    }

    /// Whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        self.scopes.is_empty()
    }
}
