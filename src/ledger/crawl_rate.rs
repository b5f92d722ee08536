//! [`CrawlRate`] finds crawlers that request faster than their crawl delay allows, by the generic
//! cell rate algorithm (ITU-T I.371). It keeps one rate for each crawler on each host, and for an
//! unproven crawler one for each of its addresses. A rate is the moment at which the last request
//! was due. [`gcra`] computes from it whether the next request comes too soon. Once the delay after
//! that moment is over, the rate may be forgotten.

use super::observations::Key;
use super::traps::network;
use crate::bounded::{Bounded, Ends, Seed};
use crate::verdict::Identity;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::time::Duration;

/// Networks deliver what was sent at a steady crawl rate a little closer together: a quarter of the
/// delay is let pass, and at most this.
const MAX_TOLERANCE: Duration = Duration::from_secs(1);

/// Whether a request is in time. `last` is when the request before it was due, as this function
/// returned it; `None` for the first request. Returns when this request was due, or for how long it
/// comes too soon. After exactly that long it is in time.
///
/// A crawler that keeps its delay is never refused, whenever it begins and whatever the delay was
/// before. A `last` that lies farther ahead than a request can have put it comes from a clock that
/// was set back, and is ignored.
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
    // One tolerance for a request that came early, one for workers that look at the clock one after
    // the other.
    let farthest = now.saturating_add(tolerance * 2);
    let expected = last
        .filter(|last| *last <= farthest)
        .map_or(now, |last| last.saturating_add(delay));
    match expected
        .saturating_sub(tolerance)
        .checked_sub(now)
        .filter(|wait| !wait.is_zero())
    {
        Some(wait) => Err(wait),
        None => Ok(expected.max(now)),
    }
}

/// The client and the place that a crawl rate is for.
#[derive(Clone, Debug)]
pub struct RateKey<'a> {
    /// The site's name and the host, as the ledger has them: a robots.txt is for a host, and so is
    /// the delay in it.
    pub place: Key,
    /// The claimed identity.
    pub crawler: &'a str,
    /// What is proven of the claim.
    pub identity: Identity,
    /// The address of the client.
    pub address: Option<IpAddr>,
}

/// A request that was in time.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    /// When it was to come at the soonest.
    at: Duration,
    /// When its delay is over.
    over: Duration,
}

impl Ends for Arrival {
    type Moment = Duration;

    fn ends(&self) -> Duration {
        self.over
    }
}

/// The crawl rates of one process for the next one, which counts the time lived through from the
/// same moment on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassedRates {
    seed: Seed,
    /// Hash, and both moments of an arrival in milliseconds.
    arrivals: Vec<(u64, u64, u64)>,
}

/// The crawl rate of every crawler on every host, of each address by itself where the client is not
/// verified. Where there are too many, those whose delay is over are as good as forgotten; of
/// others each may come once too soon.
#[derive(Default)]
pub struct CrawlRate(Bounded<Arrival>);

impl CrawlRate {
    /// Continues the crawl rates of the previous process. `now` is the elapsed time.
    pub fn passed(passed: PassedRates, now: Duration) -> CrawlRate {
        let table = Bounded::seeded(passed.seed);
        for (hash, at, over) in passed.arrivals {
            let arrival = Arrival {
                at: Duration::from_millis(at),
                over: Duration::from_millis(over),
            };
            table.insert(hash, arrival, now);
        }
        CrawlRate(table)
    }

    /// What the next process needs: the arrivals whose delay is not over. Less than a millisecond
    /// of each is left out.
    pub fn pass(&self, now: Duration) -> PassedRates {
        let arrivals = self.0.collect_hashed(|hash, last| {
            let at = last.at.as_millis() as u64;
            (last.over > now).then_some((hash, at, last.over.as_millis() as u64))
        });
        PassedRates {
            seed: self.0.seed(),
            arrivals,
        }
    }

    /// Counts a request, and returns `None`, if it is in time. Otherwise returns for how long it
    /// comes too soon, and does not count it. `now` is the elapsed time.
    pub fn ask(&self, party: RateKey<'_>, delay: Duration, now: Duration) -> Option<Duration> {
        let taken_in = self.0.change(self.hash(party), now, |last| {
            let at = gcra(last.map(|last| last.at), now, delay)?;
            Ok(Arrival {
                at,
                over: at.saturating_add(delay),
            })
        });
        taken_in.err()
    }

    /// Undoes the last counted request, which counted for this `delay`: the next one is in time
    /// from the moment on at which that one was. Of two requests at once this may take back the
    /// other one, which is milder.
    pub fn take_back(&self, party: RateKey<'_>, delay: Duration, now: Duration) {
        let hash = self.hash(party);
        let before = self.0.look(hash, |last| last.at.checked_sub(delay));
        match before {
            Some(at) => self.0.insert(
                hash,
                Arrival {
                    at,
                    over: at.saturating_add(delay),
                },
                now,
            ),
            // No request before it matters.
            None => self.0.remove(hash),
        }
    }

    /// For how long a request would come too soon, without counting it; `None` if it would be in
    /// time.
    pub fn look(&self, party: RateKey<'_>, delay: Duration, now: Duration) -> Option<Duration> {
        self.0.look(self.hash(party), |last| {
            gcra(Some(last.at), now, delay).err()
        })
    }

    /// Crawlers that are remembered.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The hash of the place and the crawler; for a client that is not verified also of its address
    /// (of IPv6 the /64).
    fn hash(&self, party: RateKey<'_>) -> u64 {
        // A verified crawler is one, wherever it comes from. Of every other client only the address
        // tells it from clients under the same name.
        let verified = party.identity == Identity::Verified;
        let address = party.address.filter(|_| !verified).map(network);
        self.0.hash((party.place, party.crawler, verified, address))
    }
}
