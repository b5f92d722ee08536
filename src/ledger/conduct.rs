//! What is remembered, asked for one request.

use super::{Pace, Traps};
use crate::crawlers::Registry;
use crate::policy::Snapshot;
use crate::policy::compiled::{Site, Standing};
use crate::verdict::{Asker, Conduct, Decision, Facts, Holdings, Identity, claim_label, conduct_counts, pace};
use std::time::Duration;

/// The memory of how crawlers conduct themselves.
#[derive(Default)]
pub struct Conducts {
    /// Their pace.
    pub pace: Pace,
    /// Who stepped into a trap.
    pub traps: Traps,
}

/// Whom to look up, where there is anything to look up.
struct Subject<'a> {
    site: &'a Site,
    crawler: &'a str,
    standing: Standing,
}

fn subject<'a>(snapshot: &'a Snapshot, registry: &'a Registry, facts: &Facts<'_>, asker: Asker) -> Option<Subject<'a>> {
    let site = &*snapshot.sites().get(asker.site?)?.site;
    let standing = site.standing(asker.claim);
    if !conduct_counts(site, &standing, facts.target) {
        return None;
    }
    Some(Subject { site, crawler: claim_label(asker.claim, registry, Some(site))?, standing })
}

impl Conducts {
    /// How the asker has conducted itself, this request included. `now` is the moment since 1970: the facts have whole
    /// seconds only. Takes a lock for as long as a look into a table takes, and that only where the policy has a crawl
    /// delay for this crawler, or traps.
    pub fn take_in(
        &self,
        snapshot: &Snapshot,
        registry: &Registry,
        facts: &Facts<'_>,
        asker: Asker,
        holdings: &Holdings<'_>,
        now: Duration,
    ) -> Conduct {
        let Some(subject) = subject(snapshot, registry, facts, asker) else { return Conduct::default() };
        let trapped = self.trapped(&subject, facts);
        let paced = if trapped { None } else { pace(registry, facts, asker.claim, subject.site, holdings) };
        let site = &subject.site.name;
        let too_fast = paced.and_then(|delay| self.pace.ask(site, subject.crawler, facts.identity, delay, now));
        Conduct { too_fast, trapped }
    }

    /// The same of a request that is only asked about.
    pub fn look(
        &self,
        snapshot: &Snapshot,
        registry: &Registry,
        facts: &Facts<'_>,
        asker: Asker,
        holdings: &Holdings<'_>,
        now: Duration,
    ) -> Conduct {
        let Some(subject) = subject(snapshot, registry, facts, asker) else { return Conduct::default() };
        let trapped = self.trapped(&subject, facts);
        let paced = if trapped { None } else { pace(registry, facts, asker.claim, subject.site, holdings) };
        let site = &subject.site.name;
        let too_fast = paced.and_then(|delay| self.pace.look(site, subject.crawler, facts.identity, delay, now));
        Conduct { too_fast, trapped }
    }

    fn trapped(&self, subject: &Subject<'_>, facts: &Facts<'_>) -> bool {
        if subject.site.policy.enforcement.traps.is_empty() || facts.identity == Identity::Verified {
            return false;
        }
        let until = |address| self.traps.until(&subject.site.name, subject.crawler, address, facts.now);
        facts.client.and_then(until).is_some()
    }

    /// Marks whoever sprang a trap; verified crawlers are reported only.
    pub fn remember(&self, decision: &Decision, snapshot: &Snapshot, registry: &Registry, facts: &Facts<'_>) {
        let Some(address) = facts.client.filter(|_| decision.sprung && facts.identity != Identity::Verified) else {
            return;
        };
        let Some(site) = decision.site.and_then(|index| snapshot.sites().get(index)).map(|entry| &*entry.site) else {
            return;
        };
        let Some(crawler) = claim_label(decision.claim, registry, Some(site)) else { return };
        let standing = site.standing(decision.claim);
        self.traps.mark(&site.name, crawler, address, facts.now, standing.trapped_for);
    }
}
