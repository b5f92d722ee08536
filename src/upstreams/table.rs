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
    /// Backups get requests only where no other server is up. Where none at all is up, all are
    /// tried.
    pub fn new(all: Vec<Arc<Server>>) -> Table {
        let up = |is_backup: bool| {
            all.iter()
                .filter(move |server| server.entry.is_backup == is_backup && server.is_up())
                .cloned()
                .collect()
        };
        let (mut usable, mut spare): (Vec<_>, Vec<_>) = (up(false), up(true));
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

    /// The server for a request. `turn` is a different number for each request.
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

    /// The better of two servers drawn at random: fewer requests in flight for its weight.
    fn less_loaded(&self, turn: usize) -> Option<&Arc<Server>> {
        let (drawn, count) = (mix(turn as u64), self.usable.len());
        let one = (drawn >> 32) as usize % count;
        // Another one than the first.
        let other = (one + 1 + (drawn & 0xffff_ffff) as usize % (count - 1)) % count;
        let (one, other) = (&self.usable[one], &self.usable[other]);
        let load = |server: &Server, weight: u16| (server.in_flight() + 1) * usize::from(weight);
        let is_less = load(other, one.entry.weight) < load(one, other.entry.weight);
        Some(if is_less { other } else { one })
    }

    /// Rendezvous hashing: a server that goes takes only its own clients along.
    fn kept_by(&self, client: IpAddr) -> Option<&Arc<Server>> {
        let client = of_client(client);
        let drawn = |server: &Arc<Server>| mix(client ^ server.hash);
        if self.has_equal_weights {
            return self.usable.iter().max_by_key(|server| drawn(server));
        }
        // Weighted as in Schindelhauer and Schomaker (2005).
        let score = |server: &Arc<Server>| {
            let share = (drawn(server) >> 11) as f64 / (1_u64 << 53) as f64;
            f64::from(server.entry.weight) / -share.max(f64::MIN_POSITIVE).ln()
        };
        self.usable
            .iter()
            .max_by(|one, other| score(one).total_cmp(&score(other)))
    }

    /// The server for another attempt: the next usable one after the failed one, else a backup.
    pub fn after(&self, failed: &Arc<Server>) -> Option<&Arc<Server>> {
        let of_all =
            |server: &Arc<Server>| self.all.iter().position(|other| Arc::ptr_eq(other, server));
        let failed_place = of_all(failed);
        let is_other = |server: &&Arc<Server>| !Arc::ptr_eq(server, failed);
        let behind = |server: &&Arc<Server>| of_all(server) > failed_place;
        let others = || self.usable.iter().filter(is_other);
        let next = others().find(behind).or_else(|| others().next());
        next.or_else(|| self.spare.iter().find(is_other))
    }

    /// An ejected server for another attempt, or one on trial.
    pub fn ejected(&self, failed: &Arc<Server>) -> Option<&Arc<Server>> {
        let is_ejected = |server: &Server| !server.is_up() && !server.state().is_down();
        self.all
            .iter()
            .find(|server| !Arc::ptr_eq(server, failed) && is_ejected(server))
    }
}

/// Smooth weighted turns: each of `weights` as often as its weight says, spread as evenly as can
/// be.
fn turns(weights: &[u16]) -> Vec<u16> {
    let divisor = weights.iter().copied().fold(0, common_divisor).max(1);
    let weights: Vec<i64> = weights
        .iter()
        .map(|weight| i64::from(weight / divisor))
        .collect();
    let total: i64 = weights.iter().sum();
    let mut credit = vec![0; weights.len()];
    let turn = |_| {
        credit
            .iter_mut()
            .zip(&weights)
            .for_each(|(credit, weight)| *credit += weight);
        // Of equal ones the first.
        let best = (0..credit.len()).rev().max_by_key(|place| credit[*place])?;
        credit[best] -= total;
        u16::try_from(best).ok()
    };
    (0..total).filter_map(turn).collect()
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
