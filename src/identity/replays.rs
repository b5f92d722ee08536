//! [`SignatureReplayCache`]: a bounded table of request signatures (Web Bot Auth), each with the
//! address that used it first. Until a signature expires, it proves nothing about requests from
//! other addresses, because another client may have copied it.

use crate::bounded::{BoundedTable, Expires};
use crate::time::Timestamp;
use std::net::IpAddr;

/// The first use of a signature.
#[derive(Clone, Copy)]
struct SignatureUse {
    address: IpAddr,
    expires: Timestamp,
}

impl Expires for SignatureUse {
    type Time = Timestamp;

    fn expires_at(&self) -> Timestamp {
        self.expires
    }
}

/// The first use of each signature.
#[derive(Default)]
pub struct SignatureReplayCache(BoundedTable<SignatureUse>);

impl SignatureReplayCache {
    /// Whether no other address has used a signature that has not expired. `signature` is the decoded
    /// value: its field can be written in many ways.
    pub fn is_first_use(&self, signature: &[u8], address: IpAddr, now: Timestamp) -> bool {
        self.0
            .get_with(self.0.hash(signature), |shown| {
                (shown.expires > now).then_some(shown.address)
            })
            .is_none_or(|shown| shown == address)
    }

    /// Records the use of a signature that expires at `expires`. False, without a change, if another
    /// address used it first and it has not expired.
    pub fn record_use(
        &self,
        signature: &[u8],
        address: IpAddr,
        expires: Timestamp,
        now: Timestamp,
    ) -> bool {
        let shown = self.0.try_update(self.0.hash(signature), now, |known| {
            match known.filter(|known| known.expires > now) {
                Some(known) if known.address != address => Err(()),
                known => Ok(known.copied().unwrap_or(SignatureUse { address, expires })),
            }
        });
        shown.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::SignatureReplayCache;
    use crate::time::Timestamp;
    use std::net::IpAddr;

    #[test]
    fn signature_counts_for_its_first_address() {
        let replays = SignatureReplayCache::default();
        let (one, other): (IpAddr, IpAddr) = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
        let is_first = |address, now| replays.is_first_use(b"signature", address, Timestamp(now));
        let remember = |address, now| {
            replays.record_use(b"signature", address, Timestamp(300), Timestamp(now))
        };
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
