//! [`AdmissionLimiter`] limits how many connections, or how many bytes in buffers, are in use at
//! one time. There is a limit for each client and one for all clients together. An
//! [`AdmissionPermit`] stands for an admitted connection, or for admitted bytes, and counts until
//! it is dropped.

use crate::ledger::client_network;
use crate::locks::lock;
use LimitReached::*;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};

/// Shards of the counts by client, with a lock each.
const SHARDS: usize = 16;

/// The open amount of each client.
type AddressAmounts = HashMap<IpAddr, usize, ahash::RandomState>;

/// The limit that is reached: for all clients, or for this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitReached {
    /// The limit for all clients together.
    Total,
    /// The limit for one client.
    Address,
}

/// The limits, and the amounts that are open.
pub struct AdmissionLimiter {
    total: AtomicUsize,
    max: usize,
    max_per_address: usize,
    by_address: [Mutex<AddressAmounts>; SHARDS],
}

impl AdmissionLimiter {
    /// A limiter with these limits, in total and for each client.
    pub fn new(max: usize, max_per_address: usize) -> Arc<AdmissionLimiter> {
        Arc::new(AdmissionLimiter {
            total: 0.into(),
            max,
            max_per_address,
            by_address: Default::default(),
        })
    }

    /// Counts an amount as open, until the result is dropped.
    ///
    /// # Errors
    /// The total would be larger than the limit. Nothing is counted then.
    pub fn admit(
        self: &Arc<AdmissionLimiter>,
        amount: usize,
    ) -> Result<AdmissionPermit, LimitReached> {
        if self.total.fetch_add(amount, Relaxed).saturating_add(amount) > self.max {
            self.total.fetch_sub(amount, Relaxed);
            return Err(Total);
        }
        Ok(AdmissionPermit {
            admission: self.clone(),
            amount,
            address: None,
        })
    }

    /// The part of the counts, locked, that this address is in: chosen by its last byte (IPv6: by
    /// the XOR of all bytes).
    fn shard(&self, address: IpAddr) -> MutexGuard<'_, AddressAmounts> {
        let byte = match address {
            IpAddr::V4(address) => address.octets()[3],
            IpAddr::V6(address) => address.octets().iter().fold(0, |sum, byte| sum ^ byte),
        };
        lock(&self.by_address[usize::from(byte) % SHARDS])
    }
}

/// An amount that counts as open until this is dropped.
pub struct AdmissionPermit {
    admission: Arc<AdmissionLimiter>,
    pub(super) amount: usize,
    address: Option<IpAddr>,
}

impl AdmissionPermit {
    /// Counts the amount for this client, too. The addresses of one /64 of IPv6 are one client.
    ///
    /// # Errors
    /// The client would have more than its limit. The amount stays counted in total.
    pub fn admit_address(&mut self, address: IpAddr) -> Result<(), LimitReached> {
        let address = client_network(address);
        let mut counts = self.admission.shard(address);
        let entry = counts.entry(address);
        let before = if let Entry::Occupied(entry) = &entry {
            *entry.get()
        } else {
            0
        };
        if before.saturating_add(self.amount) > self.admission.max_per_address {
            return Err(Address);
        }
        *entry.or_default() += self.amount;
        drop(counts);
        self.address = Some(address);
        Ok(())
    }

    /// Releases a part of the amount, at most all of it.
    pub fn release(&mut self, part: usize) {
        let part = part.min(self.amount);
        self.amount -= part;
        self.admission.total.fetch_sub(part, Relaxed);
        let Some(address) = self.address else { return };
        let mut counts = self.admission.shard(address);
        if let Entry::Occupied(mut entry) = counts.entry(address) {
            *entry.get_mut() -= part;
            if *entry.get() == 0 {
                entry.remove();
            }
        }
    }
}

impl Drop for AdmissionPermit {
    fn drop(&mut self) {
        self.release(self.amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn connections_are_limited_in_total_and_by_client() {
        let admission = AdmissionLimiter::new(4, 2);
        let admit = |text: &str| {
            let mut admitted = admission.admit(1)?;
            admitted.admit_address(address(text)).map(|()| admitted)
        };
        let one = admit("192.0.2.1").ok();
        let other = admit("::ffff:192.0.2.1").ok();
        assert!(one.is_some() && other.is_some());
        assert_eq!(admit("192.0.2.1").err(), Some(Address));
        let six = [admit("2001:db8::1").ok(), admit("2001:db8::ffff:2").ok()];
        assert!(six.iter().all(Option::is_some));
        assert_eq!(admit("198.51.100.1").err(), Some(Total));
        drop(six);
        let six = [admit("2001:db8::1").ok(), admit("2001:db8::2").ok()];
        drop(one);
        assert_eq!(admit("2001:db8::3").err(), Some(Address), "of one /64");
        assert!(admit("2001:db8:0:1::3").is_ok());
        drop((other, six));
        assert_eq!(admission.total.load(Relaxed), 0);
        assert!(
            admission
                .by_address
                .iter()
                .all(|shard| shard.lock().expect("unpoisoned").is_empty())
        );
    }

    #[test]
    fn refused_amount_is_not_counted() {
        let admission = AdmissionLimiter::new(100, 60);
        let admit = |text: &str, amount| {
            let mut admitted = admission.admit(amount)?;
            admitted.admit_address(address(text)).map(|()| admitted)
        };
        let one = admit("192.0.2.1", 60).ok();
        assert_eq!(admit("192.0.2.1", 1).err(), Some(Address));
        assert_eq!(admit("192.0.2.2", 41).err(), Some(Total));
        let other = admit("192.0.2.2", 40).ok();
        assert!(one.is_some() && other.is_some() && admit("192.0.2.3", 1).is_err());
        drop(one);
        let mut one = admit("192.0.2.1", 60).expect("room for it");
        one.release(40);
        assert!(admit("192.0.2.1", 40).is_ok());
        drop((one, other));
        assert_eq!(admission.total.load(Relaxed), 0);
    }
}
