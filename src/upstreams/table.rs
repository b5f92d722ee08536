//! [`Table`]: the servers of an origin that requests may go to now. [`Table::choose`] selects one
//! of them, without a lock or an allocation. The table is made anew when a server comes, goes or
//! changes its state.

use super::hash::{mix, of_client};
use super::server::Server;
use crate::settings::Balance;
use std::net::IpAddr;
use std::sync::Arc;

/// Servers to choose from.
#[derive(Default)]
pub struct Table {
    /// Every address, whatever its state.
    pub all: Vec<Arc<Server>>,
    /// The servers that requests go to.
    pub usable: Vec<Arc<Server>>,
    /// Backups that are up and not needed.
    pub spare: Vec<Arc<Server>>,
    /// The order of turns: places in `usable`.
    turns: Vec<u16>,
    has_equal_weights: bool,
}

impl Table {
    /// Chooses, of all addresses, those that requests go to: the servers that are up, without
    /// backups; if there is none, the backups that are up; if there is none either, all.
    pub fn new(all: Vec<Arc<Server>>) -> Table {
        let up = all.iter().filter(|server| server.is_up()).cloned();
        let (mut spare, mut usable): (Vec<_>, Vec<_>) =
            up.partition(|server| server.entry.is_backup);
        if usable.is_empty() {
            usable = std::mem::take(&mut spare);
        }
        if usable.is_empty() {
            usable.clone_from(&all);
        }
        let weights: Vec<u16> = usable.iter().map(|server| server.entry.weight).collect();
        let has_equal_weights = weights.windows(2).all(|pair| pair[0] == pair[1]);
        Table {
            turns: turns(&weights),
            all,
            usable,
            spare,
            has_equal_weights,
        }
    }

    /// The server for a request; `None` if there is no address. `turn` is a different number for
    /// each request. A client without an address gets a server by turns where `balance` is by
    /// client.
    pub fn choose(
        &self,
        balance: Balance,
        turn: usize,
        client: Option<IpAddr>,
    ) -> Option<&Arc<Server>> {
        match (balance, client) {
            _ if self.usable.len() <= 1 => self.usable.first(),
            (Balance::Client, Some(client)) => self.kept_by(client),
            (Balance::LeastRequests, _) => self.less_loaded(turn),
            (Balance::RoundRobin | Balance::Client, _) => {
                let place = self.turns.get(turn % self.turns.len().max(1))?;
                self.usable.get(usize::from(*place))
            }
        }
    }

    /// The better of two servers drawn by the hash of `turn`: the one with fewer requests in flight
    /// for its weight. Needs two usable servers.
    fn less_loaded(&self, turn: usize) -> Option<&Arc<Server>> {
        let drawn = mix(turn as u64);
        let count = self.usable.len();
        let place = (drawn >> 32) as usize % count;
        // Any but the first.
        let behind = 1 + (drawn & 0xffff_ffff) as usize % (count - 1);
        let one = &self.usable[place];
        let other = &self.usable[(place + behind) % count];
        // `a / b < c / d`, without a division.
        let load_of_other = (other.in_flight() + 1) * usize::from(one.entry.weight);
        let load_of_one = (one.in_flight() + 1) * usize::from(other.entry.weight);
        Some(if load_of_other < load_of_one {
            other
        } else {
            one
        })
    }

    /// The server that this client always gets, by rendezvous hashing: a server that goes takes
    /// only its own clients along. A server gets clients in proportion to its weight.
    fn kept_by(&self, client: IpAddr) -> Option<&Arc<Server>> {
        let client = of_client(client);
        let servers = self.usable.iter();
        if self.has_equal_weights {
            return servers.max_by_key(|server| mix(client ^ server.hash));
        }
        servers.max_by(|one, other| score(one, client).total_cmp(&score(other, client)))
    }

    /// The server for another attempt: the next usable one behind the failed one, else the first
    /// usable one, else a spare backup. `None` if there is no other.
    pub fn after(&self, failed: &Arc<Server>) -> Option<&Arc<Server>> {
        let place = self
            .all
            .iter()
            .position(|server| Arc::ptr_eq(server, failed));
        let (before, behind) = self.all.split_at(place.map_or(0, |place| place + 1));
        behind
            .iter()
            .chain(before)
            .filter(|server| self.usable.iter().any(|usable| Arc::ptr_eq(usable, server)))
            .chain(&self.spare)
            .find(|server| !Arc::ptr_eq(server, failed))
    }

    /// The first other server that is ejected or on trial, for another attempt.
    pub fn ejected(&self, failed: &Arc<Server>) -> Option<&Arc<Server>> {
        self.all.iter().find(|server| {
            !Arc::ptr_eq(server, failed) && !server.is_up() && !server.state().is_down()
        })
    }
}

/// How much a server is preferred for a client: rendezvous hashing with weights, as in
/// Schindelhauer and Schomaker (2005).
fn score(server: &Server, client: u64) -> f64 {
    let share = (mix(client ^ server.hash) >> 11) as f64 / (1_u64 << 53) as f64;
    f64::from(server.entry.weight) / -share.max(f64::MIN_POSITIVE).ln()
}

/// One round of turns, as places in `weights`: each place as often as its weight says (divided by
/// the greatest common divisor), spread as evenly as can be.
fn turns(weights: &[u16]) -> Vec<u16> {
    let divisor = weights.iter().copied().fold(0, common_divisor).max(1);
    let weights: Vec<i64> = weights
        .iter()
        .map(|weight| i64::from(weight / divisor))
        .collect();
    let total: i64 = weights.iter().sum();
    let mut credit = vec![0; weights.len()];
    let mut turns = Vec::new();
    for _ in 0..total {
        for (credit, weight) in credit.iter_mut().zip(&weights) {
            *credit += weight;
        }
        // Of equal ones the first.
        let best = (0..credit.len()).rev().max_by_key(|place| credit[*place]);
        if let Some(best) = best {
            credit[best] -= total;
            turns.extend(u16::try_from(best));
        }
    }
    turns
}

fn common_divisor(one: u16, other: u16) -> u16 {
    if other == 0 {
        one
    } else {
        common_divisor(other, one % other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_follow_weights_and_are_spread() {
        assert_eq!(turns(&[1]), [0]);
        assert_eq!(turns(&[2, 2, 2]), [0, 1, 2]);
        assert_eq!(turns(&[5, 1, 1]), [0, 0, 1, 0, 2, 0, 0]);
        assert_eq!(turns(&[]), Vec::<u16>::new());
        let many = turns(&[100, 99]);
        assert_eq!(many.iter().filter(|place| **place == 0).count(), 100);
    }
}
