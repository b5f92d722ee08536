//! [`hash`], [`mix`] and [`of_client`]: hashes that are the same in each process, so that several
//! crawlgates send a client to the same server. The hashes have no secret key, because a client
//! gains nothing by a collision.

use std::net::IpAddr;

/// FNV-1a, spread by [`mix`].
pub fn hash(octets: &[u8]) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for octet in octets {
        hash = (hash ^ u64::from(*octet)).wrapping_mul(0x0100_0000_01b3);
    }
    mix(hash)
}

/// The finish of splitmix64 (Steele, Lea and Flood 2014).
pub fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// The hash of a client's address; of the /64 alone for IPv6, because a client changes the rest
/// (RFC 8981).
pub fn of_client(client: IpAddr) -> u64 {
    match client {
        IpAddr::V4(address) => hash(&address.octets()),
        IpAddr::V6(address) => hash(&address.octets()[..8]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_of_one_network_are_one() {
        let of = |address: &str| of_client(address.parse().expect("an address"));
        assert_eq!(of("2001:db8::1"), of("2001:db8::2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
    }

    #[test]
    fn hashes_stay_what_they_are() {
        assert_eq!(hash(b"127.0.0.1:3000"), 0x29b7_d76c_ece2_2347);
        assert_eq!(mix(1), 0x5692_161d_100b_05e5);
    }
}
