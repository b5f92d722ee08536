//! What is remembered, asked for one request.

use super::{Pace, Party, Traps};
use crate::crawlers::{Claim, Registry};
use crate::policy::Snapshot;
use crate::policy::compiled::Site;
use crate::verdict::{Asker, Conduct, Decision, Facts, Holdings, Identity, claim_label, conduct_counts, pace};
use std::time::Duration;

/// Longer names are cut.
const MAX_NAME: usize = 64;

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
    /// Its name; none of a bot that no list knows and that does not say what it is called.
    crawler: Option<&'a str>,
}

fn subject<'a>(snapshot: &'a Snapshot, registry: &'a Registry, facts: &Facts<'a>, asker: Asker) -> Option<Subject<'a>> {
    let site = &*snapshot.sites().get(asker.site?)?.site;
    let standing = site.standing(asker.claim);
    if !conduct_counts(site, &standing, facts.target) {
        return None;
    }
    Some(Subject { site, crawler: name(asker.claim, registry, site, facts) })
}

/// Bots that no list knows are told apart by what they call themselves: one that comes from the same address as another
/// answers for itself.
fn name<'a>(claim: Claim, registry: &'a Registry, site: &'a Site, facts: &Facts<'a>) -> Option<&'a str> {
    match claim {
        Claim::Other => product(facts.user_agent),
        _ => claim_label(claim, registry, Some(site)),
    }
}

/// What a bot calls itself: the first word that ends in bot, crawler or spider and is no part of an address, else the word
/// that it begins with, unless that is every browser's.
fn product(user_agent: &[u8]) -> Option<&str> {
    const WORDS: [&[u8]; 3] = [b"bot", b"crawler", b"spider"];
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
    let names_a_bot = |word: &[u8]| {
        let ends =
            |end: &[u8]| word.len().checked_sub(end.len()).is_some_and(|at| word[at..].eq_ignore_ascii_case(end));
        WORDS.iter().any(|end| ends(end))
    };
    let mut start = 0_usize;
    let mut words = user_agent.split(|byte| !is_part(byte)).filter(|word| {
        let before = start.checked_sub(1).and_then(|at| user_agent.get(at));
        start += word.len() + 1;
        !word.is_empty() && !before.is_some_and(|byte| b"/:@=?&#%.".contains(byte))
    });
    let first = user_agent.split(|byte| !is_part(byte)).next();
    let first = first.filter(|word| !word.is_empty() && !word.eq_ignore_ascii_case(b"mozilla"));
    let word = words.find(|word| names_a_bot(word)).or(first)?;
    std::str::from_utf8(&word[..word.len().min(MAX_NAME)]).ok()
}

impl Subject<'_> {
    fn party(&self, facts: &Facts<'_>) -> Party<'_> {
        let crawler = self.crawler.unwrap_or("other");
        Party { site: &self.site.name, crawler, identity: facts.identity, address: facts.client }
    }
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
        let too_fast = paced.and_then(|delay| self.pace.ask(subject.party(facts), delay, now));
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
        let too_fast = paced.and_then(|delay| self.pace.look(subject.party(facts), delay, now));
        Conduct { too_fast, trapped }
    }

    fn trapped(&self, subject: &Subject<'_>, facts: &Facts<'_>) -> bool {
        if subject.site.policy.enforcement.traps.is_empty() || facts.identity == Identity::Verified {
            return false;
        }
        let Some((address, crawler)) = facts.client.zip(subject.crawler) else { return false };
        self.traps.until(&subject.site.name, crawler, address, facts.now).is_some()
    }

    /// Marks whoever sprang a trap; verified crawlers are reported only.
    pub fn remember(&self, decision: &Decision, snapshot: &Snapshot, registry: &Registry, facts: &Facts<'_>) {
        let Some(address) = facts.client.filter(|_| decision.sprung && facts.identity != Identity::Verified) else {
            return;
        };
        let Some(site) = decision.site.and_then(|index| snapshot.sites().get(index)).map(|entry| &*entry.site) else {
            return;
        };
        let Some(crawler) = name(decision.claim, registry, site, facts) else { return };
        let standing = site.standing(decision.claim);
        self.traps.mark(&site.name, crawler, address, facts.now, standing.trapped_for);
    }
}

#[cfg(test)]
mod tests {
    use super::product;

    #[test]
    fn a_bot_is_called_what_it_calls_itself() {
        for (user_agent, name) in [
            ("SomeBot/1.0", Some("SomeBot")),
            ("Mozilla/5.0 (compatible; SomeBot/1; +http://a.example/other-bot)", Some("SomeBot")),
            (
                "Mozilla/5.0 (Linux) AppleWebKit/537.36 (KHTML, like Gecko; a-spider/2.0; +http://a.example)",
                Some("a-spider"),
            ),
            ("Fetcher/2 (+http://a.example/bot)", Some("Fetcher")),
            ("Mozilla/5.0 (+http://a.example)", None),
            ("", None),
        ] {
            assert_eq!(product(user_agent.as_bytes()), name, "{user_agent}");
        }
        assert_eq!(product(&[b'x'; 1_000]).map(str::len), Some(64));
    }
}
