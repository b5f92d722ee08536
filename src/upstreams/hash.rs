//! [`stable_hash`], [`mix_bits`] and [`hash_client`]: hashes that are the same in each process, so
//! that several instances of crawlgate send a client to the same server. The hashes have no secret
//! key, because a client gains nothing by a collision.

use std::net::IpAddr;

/// FNV-1a, spread by [`mix_bits`].
pub fn stable_hash(bytes: &[u8]) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in bytes {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    mix_bits(hash)
}

/// The last step of splitmix64 (Steele, Lea and Flood 2014).
pub fn mix_bits(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// The hash of a client's address; of the /64 alone for IPv6, because a client changes the rest
/// (RFC 8981).
pub fn hash_client(client: IpAddr) -> u64 {
    match client {
        IpAddr::V4(address) => stable_hash(&address.octets()),
        IpAddr::V6(address) => stable_hash(&address.octets()[..8]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_network_hash_alike() {
        let hash_of = |address: &str| hash_client(address.parse().expect("an address"));
        assert_eq!(hash_of("2001:db8::1"), hash_of("2001:db8::2"));
        assert_ne!(hash_of("2001:db8::1"), hash_of("2001:db8:0:1::1"));
        assert_ne!(hash_of("192.0.2.1"), hash_of("192.0.2.2"));
    }

    #[test]
    fn hashes_are_the_same_in_each_version() {
        assert_eq!(stable_hash(b"127.0.0.1:3000"), 0x29b7_d76c_ece2_2347);
        assert_eq!(mix_bits(1), 0x5692_161d_100b_05e5);
    }
}
