//! [`Replays`]: a bounded table of the signatures that came with requests. A signature counts only
//! for the address that used it first, until it expires, because another client may have copied it.

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

/// The signatures, with the addresses that showed them first.
#[derive(Debug, Default)]
pub struct Replays(Bounded<Shown>);

impl Replays {
    /// Whether no other address has shown a signature that is still good. `signature` is what was
    /// decoded: the field that carries it can be written in many ways.
    pub fn is_first(&self, signature: &[u8], address: IpAddr, now: Timestamp) -> bool {
        self.0
            .look(self.0.hash(signature), |shown| {
                (shown.expires > now).then_some(shown.address)
            })
            .is_none_or(|shown| shown == address)
    }

    /// Remembers that this address showed a signature that is good until `expires`. False, and
    /// nothing changes, if another address showed it before and it is still good.
    pub fn remember(
        &self,
        signature: &[u8],
        address: IpAddr,
        expires: Timestamp,
        now: Timestamp,
    ) -> bool {
        let shown = self.0.change(self.0.hash(signature), now, |known| {
            match known.filter(|known| known.expires > now) {
                Some(known) if known.address != address => Err(()),
                known => Ok(known.copied().unwrap_or(Shown { address, expires })),
            }
        });
        shown.is_ok()
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
        let is_first = |address, now| replays.is_first(b"signature", address, Timestamp(now));
        let remember =
            |address, now| replays.remember(b"signature", address, Timestamp(300), Timestamp(now));
        assert!(is_first(other, 0), "a look leaves no trace");
        assert!(
            is_first(one, 0),
            "both may look before either is remembered"
        );
        assert!(
            remember(one, 0) && !remember(other, 0),
            "one of them is first"
        );
        assert!(remember(one, 5) && !remember(other, 5));
        assert!(is_first(one, 10) && !is_first(other, 10));
        assert!(
            is_first(other, 300) && remember(other, 300),
            "it is good no more"
        );
    }
}
