//! [`Workspace`]: memory that one thread keeps between requests, so that judging a request needs no
//! lock and no allocation. Its [`Claims`] are a small table that caches which crawler each user
//! agent claims to be: few user agents send nearly all requests, and a look-up costs a fraction of
//! identifying one. The table is bounded, and is emptied when the policies change, because another
//! policy may have other tokens.

use crate::crawlers::Claim;
use crate::policy::Snapshot;
use crate::verdict::Scratch;
use ahash::RandomState;
use std::cell::RefCell;
use std::sync::{Arc, Weak};

thread_local! {
    /// Judging runs to its end on one thread.
    static WORKSPACE: RefCell<Workspace> = RefCell::default();
}

/// What a thread keeps.
#[derive(Default)]
pub struct Workspace {
    /// The claims of the user agents that came last.
    pub claims: Claims,
    /// The memory of a decision.
    pub scratch: Scratch,
}

/// Calls `run` with the workspace of this thread.
///
/// # Panics
/// `run` calls this function again.
#[inline]
pub fn with_workspace<T>(run: impl FnOnce(&mut Workspace) -> T) -> T {
    WORKSPACE.with_borrow_mut(run)
}

/// Places of the table.
const PLACES: usize = 1 << 10;
/// Longer user agents are not kept, so that a table takes at most half a megabyte.
const LONGEST: usize = 512;

/// The claims of the user agents that came last.
#[derive(Debug, Default)]
pub struct Claims {
    /// The snapshot of the claims. The table does not keep it alive.
    snapshot: Weak<Snapshot>,
    hasher: RandomState,
    /// Empty until the first claim. Each user agent has one place; of those that share a place the
    /// last stands there.
    places: Vec<Place>,
}

#[derive(Clone, Debug, Default)]
struct Place {
    /// Which site's tokens it was identified with; `None` on a host that no site claims.
    site: Option<usize>,
    user_agent: Vec<u8>,
    /// `None` in a place that was never taken.
    claim: Option<Claim>,
}

impl Claims {
    /// The claim of a user agent on a site of the snapshot (`None`: on a host of no site). Takes it
    /// from the table, or calls `identify` and puts the result there. A user agent that is too long
    /// for the table is identified each time. Another snapshot than the last one empties the table.
    pub fn claim(
        &mut self,
        snapshot: &Arc<Snapshot>,
        site: Option<usize>,
        user_agent: &[u8],
        identify: impl FnOnce() -> Claim,
    ) -> Claim {
        if user_agent.len() > LONGEST {
            return identify();
        }
        if Weak::as_ptr(&self.snapshot) != Arc::as_ptr(snapshot) {
            self.snapshot = Arc::downgrade(snapshot);
            self.places.clear();
            self.places.resize(PLACES, Place::default());
        }
        let place = self.hasher.hash_one((site, user_agent)) as usize % PLACES;
        let place = &mut self.places[place];
        match place.claim {
            Some(claim) if place.site == site && place.user_agent == user_agent => claim,
            _ => {
                let claim = identify();
                place.user_agent.clear();
                place.user_agent.reserve_exact(user_agent.len());
                place.user_agent.extend_from_slice(user_agent);
                place.site = site;
                place.claim = Some(claim);
                claim
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_user_agent_is_identified_once_for_each_site_and_snapshot() {
        let (one, other) = (Arc::new(Snapshot::default()), Arc::new(Snapshot::default()));
        let identified = Cell::new(0);
        let mut claims = Claims::default();
        let mut ask = |snapshot: &Arc<Snapshot>, site: usize, user_agent: &[u8], claim| {
            claims.claim(snapshot, site.into(), user_agent, || {
                identified.set(identified.get() + 1);
                claim
            })
        };
        assert_eq!(ask(&one, 0, b"GPTBot/1.2", Claim::Other), Claim::Other);
        assert_eq!(
            ask(&one, 0, b"GPTBot/1.2", Claim::Tool),
            Claim::Other,
            "known again"
        );
        assert_eq!(
            ask(&one, 0, b"GPTBot/1.3", Claim::Tool),
            Claim::Tool,
            "another string"
        );
        assert_eq!(
            ask(&one, 1, b"GPTBot/1.2", Claim::Token(3)),
            Claim::Token(3),
            "another site's tokens"
        );
        assert_eq!(
            ask(&other, 0, b"GPTBot/1.2", Claim::Nobody),
            Claim::Nobody,
            "another snapshot"
        );
        assert_eq!(
            ask(&other, 0, b"", Claim::Tool),
            Claim::Tool,
            "no user agent at all"
        );
        assert_eq!(ask(&other, 0, b"", Claim::Nobody), Claim::Tool);
        assert_eq!(identified.get(), 5);
    }

    #[test]
    fn a_flood_of_strings_stays_in_the_table_and_long_ones_out_of_it() {
        let snapshot = Arc::new(Snapshot::default());
        let mut claims = Claims::default();
        for number in 0..100_000_u32 {
            let user_agent = format!("flood/{number}");
            let claim = Claim::Token((number % 1_000) as u16);
            assert_eq!(
                claims.claim(&snapshot, Some(0), user_agent.as_bytes(), || claim),
                claim
            );
        }
        let long = vec![b'a'; LONGEST + 1];
        assert_eq!(
            claims.claim(&snapshot, Some(0), &long, || Claim::Other),
            Claim::Other
        );
        assert_eq!(
            claims.claim(&snapshot, Some(0), &long, || Claim::Tool),
            Claim::Tool
        );
        assert_eq!(claims.places.len(), PLACES);
        let kept: usize = claims
            .places
            .iter()
            .map(|place| place.user_agent.capacity())
            .sum();
        assert!(kept <= PLACES * LONGEST, "{kept}");
        let used = claims
            .places
            .iter()
            .filter(|place| place.claim.is_some())
            .count();
        assert!(
            used > PLACES * 9 / 10,
            "strings that differ in the end alone spread over {used} places"
        );
    }
}
