//! [`CrawlRates`] detects crawlers that request faster than their crawl delay allows. It uses the
//! generic cell rate algorithm (ITU-T I.371), which [`gcra`] implements. All requests of a verified
//! crawler to a host count together. Requests of an unverified crawler count separately for each
//! address, because any client can use the crawler's name.

use super::host_table::HostKey;
use super::marked_clients::client_network;
use crate::bounded::{BoundedTable, Expires};
use crate::verdict::Identity;
use std::net::IpAddr;
use std::time::Duration;

/// The most that a request may come too soon, at most a quarter of the delay. Networks deliver
/// steady requests at slightly uneven times.
const MAX_TOLERANCE: Duration = Duration::from_secs(1);

/// Decides whether a request comes too soon. `last` is the result for the previous request; `None`
/// for the first one. Returns when this request was due, or an error with how long it must wait.
/// After exactly that wait it is in time.
///
/// A crawler that keeps its delay never comes too soon, whenever it begins and whatever the delay
/// was before.
///
/// ```
/// use crawlgate::internals::ledger::gcra;
/// use std::time::Duration;
/// let (second, delay) = (Duration::from_secs, Duration::from_secs(10));
/// let last = gcra(None, second(100), delay).unwrap();
/// assert_eq!(gcra(Some(last), second(103), delay), Err(second(6)), "a second early is let pass");
/// assert!(gcra(Some(last), second(109), delay).is_ok());
/// assert!(gcra(Some(last), second(107), second(7)).is_ok(), "the delay is shorter by now");
/// ```
pub fn gcra(last: Option<Duration>, now: Duration, delay: Duration) -> Result<Duration, Duration> {
    let tolerance = (delay / 4).min(MAX_TOLERANCE);
    let expected = last.map_or(now, |last| last.saturating_add(delay));
    expected
        .saturating_sub(tolerance)
        .checked_sub(now)
        .filter(|wait| !wait.is_zero())
        .map_or(Ok(expected.max(now)), Err)
}

/// The client and the host that a crawl rate is for.
#[derive(Clone)]
pub struct RateKey<'a> {
    /// The site and the host (see `site_host_key`), because a robots.txt and its delay are for a
    /// host.
    pub place: HostKey,
    /// The claimed identity.
    pub crawler: &'a str,
    /// What is proven of the claim.
    pub identity: Identity,
    /// The address of the client.
    pub address: Option<IpAddr>,
}

/// The last request in time of a crawler.
struct RateState {
    /// When it was due.
    due_at: Duration,
    /// When the delay after it ends.
    delay_ends: Duration,
}

impl Expires for RateState {
    type Time = Duration;

    fn expires_at(&self) -> Duration {
        self.delay_ends
    }
}

/// The crawl rate of each crawler on each host, and of each address if the client is not verified.
/// A crawler whose state was dropped from the full table may come too soon once.
#[derive(Default)]
pub struct CrawlRates(BoundedTable<RateState>);

impl CrawlRates {
    /// Counts a request, and returns `None`, if it is in time. Otherwise returns for how long it
    /// comes too soon, and does not count it. `now` is the elapsed time.
    pub fn count_request(
        &self,
        party: RateKey<'_>,
        delay: Duration,
        now: Duration,
    ) -> Option<Duration> {
        let taken_in = self.0.try_update(self.hash_key(party), now, |last| {
            let at = gcra(last.map(|last| last.due_at), now, delay)?;
            Ok(RateState {
                due_at: at,
                delay_ends: at.saturating_add(delay),
            })
        });
        taken_in.err()
    }

    /// Undoes the last counted request, which counted for this `delay`: the next one may come as
    /// early as that one. Of two simultaneous requests this may undo the other one, which is
    /// lenient.
    pub fn undo_request(&self, party: RateKey<'_>, delay: Duration, now: Duration) {
        let hash = self.hash_key(party);
        let before = self.0.get_with(hash, |last| last.due_at.checked_sub(delay));
        match before {
            Some(at) => self.0.insert(
                hash,
                RateState {
                    due_at: at,
                    delay_ends: at.saturating_add(delay),
                },
                now,
            ),
            // No request before it matters.
            None => self.0.remove(hash),
        }
    }

    /// Returns how long a request would have to wait, without counting it. `None` if it would be in
    /// time.
    pub fn check_request(
        &self,
        party: RateKey<'_>,
        delay: Duration,
        now: Duration,
    ) -> Option<Duration> {
        self.0.get_with(self.hash_key(party), |last| {
            gcra(Some(last.due_at), now, delay).err()
        })
    }

    /// The number of states.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The hash of the place and the crawler; for a client that is not verified also of its address
    /// (of IPv6 the /64).
    fn hash_key(&self, party: RateKey<'_>) -> u64 {
        // A verified crawler is one client at all its addresses. Other clients under the same name
        // are told apart by their address.
        let verified = party.identity == Identity::Verified;
        let address = party.address.filter(|_| !verified).map(client_network);
        self.0.hash((party.place, party.crawler, verified, address))
    }
}
