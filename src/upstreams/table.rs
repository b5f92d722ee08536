//! [`ServerTable`]: the servers of one origin that may get requests now. [`ServerTable::choose`]
//! selects a server for a request, without a lock or an allocation. The table is rebuilt when a
//! server is added, is removed or changes its state.

use super::hash::{hash_client, mix_bits};
use super::server::Server;
use crate::settings::LoadBalancing;
use std::net::IpAddr;
use std::sync::Arc;

/// Servers to choose from.
#[derive(Default)]
pub struct ServerTable {
    /// Every address, whatever its state.
    pub all: Vec<Arc<Server>>,
    /// The servers that requests go to.
    pub usable: Vec<Arc<Server>>,
    /// Backups that are up and not needed.
    pub spare: Vec<Arc<Server>>,
    /// One round of turns: indexes into `usable`.
    turns: Vec<u16>,
}

impl ServerTable {
    /// The usable servers are those that are up, without backups; else the backups that are up; else
    /// all.
    pub fn new(all: Vec<Arc<Server>>) -> ServerTable {
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
        ServerTable {
            turns: turn_order(&weights),
            all,
            usable,
            spare,
        }
    }

    /// The server for a request; `None` if there is no server. `turn` is a different number for each
    /// request. A client without an address gets a server by turns if `balance` is by client.
    pub fn choose(
        &self,
        balance: LoadBalancing,
        turn: usize,
        client: Option<IpAddr>,
    ) -> Option<&Arc<Server>> {
        match (balance, client) {
            _ if self.usable.len() <= 1 => self.usable.first(),
            (LoadBalancing::Client, Some(client)) => self.sticky_server(client),
            (LoadBalancing::LeastRequests, _) => self.less_loaded(turn),
            _ => {
                let index = self.turns.get(turn % self.turns.len().max(1))?;
                self.usable.get(usize::from(*index))
            }
        }
    }

    /// The better of two servers drawn by the hash of `turn`: the one with fewer requests in flight
    /// for its weight. Needs two usable servers.
    fn less_loaded(&self, turn: usize) -> Option<&Arc<Server>> {
        let drawn = mix_bits(turn as u64);
        let count = self.usable.len();
        let index = (drawn >> 32) as usize % count;
        // Never the same server twice.
        let offset = 1 + (drawn & 0xffff_ffff) as usize % (count - 1);
        let one = &self.usable[index];
        let other = &self.usable[(index + offset) % count];
        // `a / b < c / d`, without a division.
        let load_of_other = (other.in_flight() + 1) * usize::from(one.entry.weight);
        let load_of_one = (one.in_flight() + 1) * usize::from(other.entry.weight);
        Some(if load_of_other < load_of_one {
            other
        } else {
            one
        })
    }

    /// The server that this client always gets, by rendezvous hashing: if a server is removed, only
    /// its own clients move. A server gets clients in proportion to its weight.
    fn sticky_server(&self, client: IpAddr) -> Option<&Arc<Server>> {
        let client = hash_client(client);
        self.usable.iter().max_by(|one, other| {
            rendezvous_score(one, client).total_cmp(&rendezvous_score(other, client))
        })
    }

    /// The server for another attempt: the next usable one after the failed one, else the first
    /// usable one, else a spare backup. `None` if there is no other.
    pub fn next_after(&self, failed: &Arc<Server>) -> Option<&Arc<Server>> {
        let index = self
            .all
            .iter()
            .position(|server| Arc::ptr_eq(server, failed));
        let (before, behind) = self.all.split_at(index.map_or(0, |index| index + 1));
        behind
            .iter()
            .chain(before)
            .filter(|server| self.usable.iter().any(|usable| Arc::ptr_eq(usable, server)))
            .chain(&self.spare)
            .find(|server| !Arc::ptr_eq(server, failed))
    }

    /// The first other server that is ejected or on trial, for another attempt.
    pub fn excluded_other(&self, failed: &Arc<Server>) -> Option<&Arc<Server>> {
        self.all.iter().find(|server| {
            !Arc::ptr_eq(server, failed) && !server.is_up() && !server.state().is_down()
        })
    }
}

/// The preference of a server for a client: rendezvous hashing with weights, as in Schindelhauer and
/// Schomaker (2005).
fn rendezvous_score(server: &Server, client: u64) -> f64 {
    let share = (mix_bits(client ^ server.address_hash) >> 11) as f64 / (1_u64 << 53) as f64;
    f64::from(server.entry.weight) / -share.max(f64::MIN_POSITIVE).ln()
}

/// One round of turns, as indexes into `weights`: each index as often as its weight, spread as
/// evenly as possible.
fn turn_order(weights: &[u16]) -> Vec<u16> {
    let total: i64 = weights.iter().copied().map(i64::from).sum();
    let mut credit = vec![0; weights.len()];
    let mut turns = Vec::new();
    for _ in 0..total {
        for (credit, weight) in credit.iter_mut().zip(weights) {
            *credit += i64::from(*weight);
        }
        // Of equal credits the first.
        let best = (0..credit.len()).rev().max_by_key(|index| credit[*index]);
        if let Some(best) = best {
            credit[best] -= total;
            turns.extend(u16::try_from(best));
        }
    }
    turns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_follow_weights_and_are_spread() {
        assert_eq!(turn_order(&[1]), [0]);
        assert_eq!(turn_order(&[2, 2, 2]), [0, 1, 2, 0, 1, 2]);
        assert_eq!(turn_order(&[5, 1, 1]), [0, 0, 1, 0, 2, 0, 0]);
        assert_eq!(turn_order(&[]), Vec::<u16>::new());
        let many = turn_order(&[100, 99]);
        assert_eq!(many.iter().filter(|index| **index == 0).count(), 100);
    }
}
