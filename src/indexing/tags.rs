//! [`Tags`]: directives by [`Scope`], for every crawler or for one.

use super::directive::{CACHED, EMBEDDED};
use super::{Directives, Flag};

/// The crawlers that a line is for. Unscoped sorts first: it is emitted first (a sticky scope would
/// swallow it otherwise).
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
        if name == "*" {
            Scope::All
        } else {
            Scope::Bot(name.to_ascii_lowercase().into())
        }
    }
}

/// Directives by scope: at most one set per scope, in the order of emission.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tags {
    scopes: Vec<(Scope, Directives)>,
}

impl Tags {
    /// Adds directives to those of a scope; of each kind the most restrictive stays. Without
    /// directives nothing is added.
    pub fn add(&mut self, scope: Scope, directives: &Directives) {
        if directives.is_empty() {
            return;
        }
        match self.scopes.binary_search_by(|(have, _)| have.cmp(&scope)) {
            Ok(index) => self.scopes[index].1.extend(directives),
            Err(index) => self.scopes.insert(index, (scope, directives.clone())),
        }
    }

    /// Adds the directives of another source: per scope united, the most restrictive value wins. A
    /// directive that softens a stricter one stays only where both sources say so, or the other
    /// does not say the stricter one. That is indexifembedded beside noindex, for every bot, and
    /// nocache beside noarchive, for Bing, which then obeys nocache alone.
    pub fn merge(&mut self, other: &Tags) {
        let both = [&*self, other];
        let scopes = [Scope::All]
            .into_iter()
            .chain(both.into_iter().flat_map(Tags::named));
        let embedded = scopes.map(|scope| (scope, EMBEDDED));
        let cached = (Scope::Bot("bingbot".into()), CACHED);
        let mut softer: Vec<(Scope, Flag)> = Vec::new();
        for (scope, pair) in embedded.chain([cached]) {
            if both.iter().any(|tags| tags.to(&scope).is_unsoftened(pair)) {
                softer.push((scope, pair.1));
            }
        }
        for (scope, directives) in &other.scopes {
            self.add(scope.clone(), directives);
        }
        for (scope, flag) in softer {
            let said = self
                .scopes
                .iter_mut()
                .filter(|(have, _)| *have == Scope::All || *have == scope);
            said.for_each(|(_, directives)| directives.remove(flag));
        }
        self.scopes.retain(|(_, directives)| !directives.is_empty());
    }

    /// Removes from `said`, which another source says in `scope`, each directive that softens what
    /// these tags say without softening it: indexifembedded, and nocache for Bing.
    /// [`merge`](Tags::merge) removes the same ones. This function is for a source that comes in
    /// pieces, whose other scopes are not known yet.
    pub(crate) fn harden(&self, scope: &Scope, said: &mut Directives) {
        let is_for_all = *scope == Scope::All;
        let others = self.named().filter(|_| is_for_all);
        let mut bots = std::iter::once(scope.clone()).chain(others);
        if bots.any(|bot| self.to(&bot).is_unsoftened(EMBEDDED)) {
            said.remove(EMBEDDED.1);
        }
        let bing = Scope::Bot("bingbot".into());
        if (is_for_all || *scope == bing) && self.to(&bing).is_unsoftened(CACHED) {
            said.remove(CACHED.1);
        }
    }

    /// The scopes of bots.
    fn named(&self) -> impl Iterator<Item = Scope> + '_ {
        self.scopes
            .iter()
            .map(|(scope, _)| scope.clone())
            .filter(|scope| *scope != Scope::All)
    }

    /// The directives of exactly one scope, without those for every bot; `None` where it has none.
    pub(crate) fn of(&self, scope: &Scope) -> Option<&Directives> {
        self.iter()
            .find(|(have, _)| *have == scope)
            .map(|(_, said)| said)
    }

    /// The directives that bind the bots of a scope: for one bot also those for every bot.
    fn to(&self, scope: &Scope) -> Directives {
        match scope {
            Scope::Bot(name) => self.effective(name),
            Scope::All => self.of(scope).cloned().unwrap_or_default(),
        }
    }

    /// Scopes and their directives, unscoped first, then by name.
    pub fn iter(&self) -> impl Iterator<Item = (&Scope, &Directives)> {
        self.scopes
            .iter()
            .map(|(scope, directives)| (scope, directives))
    }

    /// The directives that bind a bot, as Google computes them: the unscoped ones and those of its
    /// own scope, united.
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
