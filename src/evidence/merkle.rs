//! A Merkle tree as RFC 6962 section 2.1 hashes it. Its leaves are the last entries of all hash
//! chains of the evidence log. [`root`] is one hash over all of them, which each signed checkpoint
//! contains. [`path`] proves that one leaf belongs to the root, without showing the others.

use super::Hash;

/// The hash of a leaf.
pub fn leaf(data: &[u8]) -> Hash {
    Hash::of(&[&[0], data])
}

fn node(left: Hash, right: Hash) -> Hash {
    Hash::of(&[&[1], &left.0, &right.0])
}

/// Where a tree of so many leaves is divided: the largest power of two below the number.
fn split(leaves: usize) -> usize {
    let half = leaves.div_ceil(2);
    half.next_power_of_two()
}

/// The root over these leaves; without leaves the hash of nothing.
pub fn root(leaves: &[Hash]) -> Hash {
    match leaves {
        [] => Hash::of(&[]),
        [one] => *one,
        more => {
            let (left, right) = more.split_at(split(more.len()));
            node(root(left), root(right))
        }
    }
}

/// The hashes that lead from the leaf at this place to the root, the nearest one first. Empty if
/// there is no such leaf, or if it is the only one.
pub fn path(leaves: &[Hash], place: usize) -> Vec<Hash> {
    if leaves.len() < 2 || place >= leaves.len() {
        return Vec::new();
    }
    let at = split(leaves.len());
    let (left, right) = leaves.split_at(at);
    let (mut below, beside) = if place < at {
        (path(left, place), root(right))
    } else {
        (path(right, place - at), root(left))
    };
    below.push(beside);
    below
}

/// The root that follows from a leaf, its place, the number of leaves, and its path. `None` if
/// there is no such place, or the path does not have the length that fits. The caller compares it
/// with the known root.
pub fn root_by_path(leaf: Hash, place: usize, leaves: usize, path: &[Hash]) -> Option<Hash> {
    if place >= leaves {
        return None;
    }
    if leaves == 1 {
        return path.is_empty().then_some(leaf);
    }
    let (beside, below) = path.split_last()?;
    let at = split(leaves);
    if place < at {
        Some(node(root_by_path(leaf, place, at, below)?, *beside))
    } else {
        let right = root_by_path(leaf, place - at, leaves - at, below)?;
        Some(node(*beside, right))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn leaves(number: usize) -> Vec<Hash> {
        (0..number)
            .map(|place| leaf(&place.to_be_bytes()))
            .collect()
    }

    /// The roots that the test vectors of Certificate Transparency have (RFC 6962, as in its
    /// reference implementation).
    #[test]
    fn roots_are_those_of_the_reference() {
        let data: [&[u8]; 8] = [
            b"",
            b"\x00",
            b"\x10",
            b"\x20\x21",
            b"\x30\x31",
            b"\x40\x41\x42\x43",
            b"\x50\x51\x52\x53\x54\x55\x56\x57",
            b"\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f",
        ];
        let leaves = data.map(leaf);
        let expected = [
            "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
            "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
            "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
            "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
            "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
            "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
            "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
            "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
        ];
        for (place, expected) in expected.iter().enumerate() {
            assert_eq!(root(&leaves[..=place]).to_string(), *expected, "{place}");
        }
        assert_eq!(
            root(&[]).to_string(),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }

    proptest! {
        #[test]
        fn each_leaf_is_proven_by_its_path_alone(number in 1usize..70, place in 0usize..70, bit in 0usize..256) {
            let (place, leaves) = (place % number, leaves(number));
            let (path, root) = (path(&leaves, place), root(&leaves));
            prop_assert_eq!(root_by_path(leaves[place], place, number, &path), Some(root));
            let mut other = leaves[place];
            other.0[bit / 8] ^= 1 << (bit % 8);
            prop_assert_ne!(root_by_path(other, place, number, &path), Some(root));
            for beside in (0..number).filter(|beside| *beside != place) {
                prop_assert_ne!(root_by_path(leaves[place], beside, number, &path), Some(root));
            }
        }
    }
}
