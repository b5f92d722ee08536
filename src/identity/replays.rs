//! Signatures that were shown: [`Replays`], a bounded table. A signature counts for the address that showed it first, until
//! it expires: it may have been copied. Must not know what a signature covers.

use crate::bounded::{Bounded, Ends};
use crate::time::Timestamp;
use std::net::IpAddr;

#[derive(Clone, Copy, Debug)]
struct Shown {
    address: IpAddr,
    expires: Timestamp,
}

impl Ends for Shown {
    type Moment = Timestamp;

    fn ends(&self) -> Timestamp {
        self.expires
    }
}

/// The table.
#[derive(Debug, Default)]
pub struct Replays(Bounded<Shown>);

impl Replays {
    /// Whether no other address has shown a signature that is good until `expires`. Remembers the address, if it leaves
    /// traces. `signature` is what was decoded: the field that carries it can be written in many ways.
    pub fn is_first(
        &self,
        signature: &[u8],
        address: IpAddr,
        (now, expires): (Timestamp, Timestamp),
        leaves_traces: bool,
    ) -> bool {
        let hash = self.0.hash(signature);
        match self.0.look(hash, |shown| (shown.expires > now).then_some(shown.address)) {
            Some(shown) => shown == address,
            None => {
                if leaves_traces {
                    self.0.insert(hash, Shown { address, expires }, now);
                }
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Replays;
    use crate::time::Timestamp;
    use std::net::IpAddr;

    #[test]
    fn a_signature_belongs_to_the_address_that_showed_it_first() {
        let replays = Replays::default();
        let (one, other): (IpAddr, IpAddr) = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
        let is_first = |address, now, leaves_traces| {
            replays.is_first(b"signature", address, (Timestamp(now), Timestamp(300)), leaves_traces)
        };
        assert!(is_first(other, 0, false), "a look leaves no trace");
        assert!(is_first(one, 0, true) && is_first(one, 10, true));
        assert!(!is_first(other, 10, true) && !is_first(other, 10, false));
    }
}
