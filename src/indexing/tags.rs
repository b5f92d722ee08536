//! [`RobotsTags`]: the directives of X-Robots-Tag by [`TagScope`], which is every crawler or a
//! named one. Tags from several sources are merged so that the result is as restrictive as each
//! source.

use super::Directives;
use super::directive::{ARCHIVE_SOFTENER, INDEX_SOFTENER};
use TagScope::*;
use std::collections::BTreeMap;

/// The crawlers that a line is for. `All` sorts and is emitted first: in a joined line it would
/// belong to the bot named before it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TagScope {
    /// Every crawler: a line without a bot's name, `*` in a policy.
    All,
    /// One crawler, in lower case.
    Bot(Box<str>),
}

impl TagScope {
    /// The scope of a bot's name, or of `*`.
    pub fn from_name(name: &str) -> TagScope {
        if name == "*" {
            All
        } else {
            Bot(name.to_ascii_lowercase().into())
        }
    }
}

/// Directives by scope: one set per scope at most, in the order of emission.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RobotsTags {
    scopes: BTreeMap<TagScope, Directives>,
}

impl RobotsTags {
    /// Adds directives to a scope. Of each kind the most restrictive value stays.
    pub fn add(&mut self, scope: TagScope, directives: &Directives) {
        if !directives.is_empty() {
            self.scopes.entry(scope).or_default().extend(directives);
        }
    }

    /// Adds the directives of another source. In each scope the most restrictive value wins. A
    /// directive that softens a stricter one (`indexifembedded` beside `noindex` for every bot,
    /// `nocache` beside `noarchive` for Bing) is dropped if one source has the stricter one without
    /// it.
    pub fn merge(&mut self, other: &RobotsTags) {
        let ours = self.clone();
        for (scope, directives) in &mut self.scopes {
            other.remove_softeners_from(scope, directives);
        }
        self.scopes.retain(|_, directives| !directives.is_empty());
        for (scope, directives) in &other.scopes {
            let mut directives = directives.clone();
            ours.remove_softeners_from(scope, &mut directives);
            self.add(scope.clone(), &directives);
        }
    }

    /// Removes from the directives of another source in `scope` those that would soften a directive
    /// of these tags.
    pub(crate) fn remove_softeners_from(&self, scope: &TagScope, directives: &mut Directives) {
        let is_for_all = *scope == All;
        let others = self.bot_scopes().filter(|_| is_for_all);
        let mut bots = std::iter::once(scope.clone()).chain(others);
        if bots.any(|bot| self.directives_for(&bot).lacks_softener(INDEX_SOFTENER)) {
            directives.remove(INDEX_SOFTENER.1);
        }
        let bing = Bot("bingbot".into());
        if (is_for_all || *scope == bing)
            && self.directives_for(&bing).lacks_softener(ARCHIVE_SOFTENER)
        {
            directives.remove(ARCHIVE_SOFTENER.1);
        }
    }

    /// The scopes of bots.
    fn bot_scopes(&self) -> impl Iterator<Item = TagScope> + '_ {
        let scopes = self.scopes.keys().cloned();
        scopes.filter(|scope| *scope != All)
    }

    /// The directives of exactly this scope, without those for every bot.
    pub(crate) fn get(&self, scope: &TagScope) -> Option<&Directives> {
        self.scopes.get(scope)
    }

    /// The directives that bind the bots of a scope: those of one bot include those for every bot.
    fn directives_for(&self, scope: &TagScope) -> Directives {
        match scope {
            Bot(name) => self.effective(name),
            All => self.get(scope).cloned().unwrap_or_default(),
        }
    }

    /// Scopes and their directives, unscoped first, then by name.
    pub fn iter(&self) -> impl Iterator<Item = (&TagScope, &Directives)> {
        self.scopes.iter()
    }

    /// The directives that bind a bot, as Google computes them: those for every bot and its own.
    pub fn effective(&self, bot: &str) -> Directives {
        let mut directives = Directives::default();
        for (scope, scoped) in &self.scopes {
            match scope {
                All => directives.extend(scoped),
                Bot(name) if name.eq_ignore_ascii_case(bot) => directives.extend(scoped),
                Bot(_) => {}
            }
        }
        directives
    }

    /// Whether there are no directives.
    pub fn is_empty(&self) -> bool {
        self.scopes.is_empty()
    }
}
