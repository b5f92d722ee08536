//! [`JudgeWorkspace`]: memory that a thread reuses between requests, so that judging needs no lock
//! and no allocation. Its [`ClaimCache`] stores which crawler each recent user agent claims to be,
//! because few user agents send nearly all requests. The cache is bounded, and is emptied when the
//! policies change, because a changed policy may name other crawlers.

use crate::crawlers::Claim;
use crate::policy::Snapshot;
use crate::verdict::DecisionScratch;
use ahash::RandomState;
use std::cell::RefCell;
use std::sync::{Arc, Weak};

thread_local! {
    /// The workspace of this thread. Judging runs to its end on one thread.
    pub static WORKSPACE: RefCell<JudgeWorkspace> = RefCell::default();
}

/// The reused memory of a thread.
#[derive(Default)]
pub struct JudgeWorkspace {
    /// The claims of recent user agents.
    pub claims: ClaimCache,
    /// The buffers of a decision.
    pub scratch: DecisionScratch,
}

/// The number of slots of the cache.
const SLOTS: usize = 1 << 10;
/// The most bytes of a cached user agent, so that a cache takes at most half a megabyte.
const MAX_USER_AGENT: usize = 512;

/// A hash table of the claims of recent user agents.
#[derive(Default)]
pub struct ClaimCache {
    /// The snapshot of the claims. Weak, so that the cache does not keep the policies in memory.
    snapshot: Weak<Snapshot>,
    hasher: RandomState,
    /// Empty until the first claim. Of the user agents with the same slot, the last is stored.
    slots: Vec<ClaimSlot>,
}

#[derive(Clone, Default)]
struct ClaimSlot {
    /// The index of the site; `None` for a host that no site claims.
    site: Option<usize>,
    user_agent: Vec<u8>,
    /// `None` in an unused slot.
    claim: Option<Claim>,
}

impl ClaimCache {
    /// The claim of a user agent on a site of the snapshot (`None`: on a host of no site), from the
    /// cache or else by `identify`. A user agent that is too long for the cache is identified each
    /// time. Another snapshot than the last one empties the cache.
    pub fn get_or_identify(
        &mut self,
        snapshot: &Arc<Snapshot>,
        site: Option<usize>,
        user_agent: &[u8],
        identify: impl FnOnce() -> Claim,
    ) -> Claim {
        if user_agent.len() > MAX_USER_AGENT {
            return identify();
        }
        if Weak::as_ptr(&self.snapshot) != Arc::as_ptr(snapshot) {
            self.snapshot = Arc::downgrade(snapshot);
            self.slots.clear();
            self.slots.resize(SLOTS, ClaimSlot::default());
        }
        let slot = self.hasher.hash_one((site, user_agent)) as usize % SLOTS;
        let slot = &mut self.slots[slot];
        match slot.claim {
            Some(claim) if slot.site == site && slot.user_agent == user_agent => claim,
            _ => {
                let claim = identify();
                slot.user_agent.clear();
                slot.user_agent.reserve_exact(user_agent.len());
                slot.user_agent.extend_from_slice(user_agent);
                slot.site = site;
                slot.claim = Some(claim);
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
    fn user_agent_is_identified_once_by_site_and_snapshot() {
        let (one, other) = (Arc::new(Snapshot::default()), Arc::new(Snapshot::default()));
        let identified = Cell::new(0);
        let mut claims = ClaimCache::default();
        let mut ask = |snapshot: &Arc<Snapshot>, site: usize, user_agent: &[u8], claim| {
            claims.get_or_identify(snapshot, site.into(), user_agent, || {
                identified.set(identified.get() + 1);
                claim
            })
        };
        assert_eq!(
            ask(&one, 0, b"GPTBot/1.2", Claim::UnknownBot),
            Claim::UnknownBot
        );
        assert_eq!(
            ask(&one, 0, b"GPTBot/1.2", Claim::Tool),
            Claim::UnknownBot,
            "known again"
        );
        assert_eq!(
            ask(&one, 0, b"GPTBot/1.3", Claim::Tool),
            Claim::Tool,
            "another string"
        );
        assert_eq!(
            ask(&one, 1, b"GPTBot/1.2", Claim::PolicyToken(3)),
            Claim::PolicyToken(3),
            "another site's tokens"
        );
        assert_eq!(
            ask(&other, 0, b"GPTBot/1.2", Claim::Visitor),
            Claim::Visitor,
            "another snapshot"
        );
        assert_eq!(
            ask(&other, 0, b"", Claim::Tool),
            Claim::Tool,
            "no user agent at all"
        );
        assert_eq!(ask(&other, 0, b"", Claim::Visitor), Claim::Tool);
        assert_eq!(identified.get(), 5);
    }

    #[test]
    fn cache_is_bounded_and_skips_long_user_agents() {
        let snapshot = Arc::new(Snapshot::default());
        let mut claims = ClaimCache::default();
        for number in 0..100_000_u32 {
            let user_agent = format!("flood/{number}");
            let claim = Claim::PolicyToken((number % 1_000) as u16);
            assert_eq!(
                claims.get_or_identify(&snapshot, Some(0), user_agent.as_bytes(), || claim),
                claim
            );
        }
        let long = vec![b'a'; MAX_USER_AGENT + 1];
        assert_eq!(
            claims.get_or_identify(&snapshot, Some(0), &long, || Claim::UnknownBot),
            Claim::UnknownBot
        );
        assert_eq!(
            claims.get_or_identify(&snapshot, Some(0), &long, || Claim::Tool),
            Claim::Tool
        );
        assert_eq!(claims.slots.len(), SLOTS);
        let kept: usize = claims
            .slots
            .iter()
            .map(|slot| slot.user_agent.capacity())
            .sum();
        assert!(kept <= SLOTS * MAX_USER_AGENT, "{kept}");
        let used = claims
            .slots
            .iter()
            .filter(|slot| slot.claim.is_some())
            .count();
        assert!(
            used > SLOTS * 9 / 10,
            "strings that differ in the end alone spread over {used} slots"
        );
    }
}
