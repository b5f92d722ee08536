//! Merkle trees as in RFC 6962 section 2.1, for the evidence log. The log consists of hash chains,
//! in which each entry has the hash of the entry before it. The leaves of a tree are the last
//! entries of all chains. [`tree_root`] computes the root, which is a part of each checkpoint
//! (signed summary of the log). [`inclusion_path`] proves that one leaf belongs to a root, without
//! showing the other leaves.

use super::Hash;

pub fn leaf_hash(data: &[u8]) -> Hash {
    Hash::digest(&[&[0], data])
}

fn node_hash(left: Hash, right: Hash) -> Hash {
    Hash::digest(&[&[1], &left.0, &right.0])
}

/// The number of leaves in the left subtree: the largest power of two below `leaves`.
fn split_point(leaves: usize) -> usize {
    leaves.div_ceil(2).next_power_of_two()
}

/// Without leaves the hash of nothing.
pub fn tree_root(leaves: &[Hash]) -> Hash {
    match leaves {
        [] => Hash::digest(&[]),
        [one] => *one,
        more => {
            let (left, right) = more.split_at(split_point(more.len()));
            node_hash(tree_root(left), tree_root(right))
        }
    }
}

/// The sibling hashes from the leaf at this index up to the root. Empty if there is no such leaf, or
/// only one.
pub fn inclusion_path(leaves: &[Hash], place: usize) -> Vec<Hash> {
    if leaves.len() < 2 || place >= leaves.len() {
        return Vec::new();
    }
    let at = split_point(leaves.len());
    let (left, right) = leaves.split_at(at);
    let (mut below, beside) = if place < at {
        (inclusion_path(left, place), tree_root(right))
    } else {
        (inclusion_path(right, place - at), tree_root(left))
    };
    below.push(beside);
    below
}

/// The root by a leaf, its index, the number of leaves, and its path, for comparison with the known
/// root. `None` if index or length of the path do not fit.
pub fn root_from_path(leaf: Hash, place: usize, leaves: usize, path: &[Hash]) -> Option<Hash> {
    if place >= leaves {
        return None;
    }
    if leaves == 1 {
        return path.is_empty().then_some(leaf);
    }
    let (beside, below) = path.split_last()?;
    let at = split_point(leaves);
    if place < at {
        Some(node_hash(root_from_path(leaf, place, at, below)?, *beside))
    } else {
        Some(node_hash(
            *beside,
            root_from_path(leaf, place - at, leaves - at, below)?,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample_leaves(number: usize) -> Vec<Hash> {
        (0..number)
            .map(|place| leaf_hash(&place.to_be_bytes()))
            .collect()
    }

    /// The test vectors of the reference implementation of RFC 6962.
    #[test]
    fn roots_match_the_reference() {
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
        let leaves = data.map(leaf_hash);
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
            assert_eq!(
                tree_root(&leaves[..=place]).to_string(),
                *expected,
                "{place}"
            );
        }
        assert_eq!(
            tree_root(&[]).to_string(),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }

    proptest! {
        #[test]
        fn only_the_own_path_proves_a_leaf(number in 1usize..70, place in 0usize..70, bit in 0usize..256) {
            let place = place % number;
            let leaves = sample_leaves(number);
            let path = inclusion_path(&leaves, place);
            let root = tree_root(&leaves);
            prop_assert_eq!(root_from_path(leaves[place], place, number, &path), Some(root));
            let mut other = leaves[place];
            other.0[bit / 8] ^= 1 << (bit % 8);
            prop_assert_ne!(root_from_path(other, place, number, &path), Some(root));
            for beside in (0..number).filter(|beside| *beside != place) {
                prop_assert_ne!(root_from_path(leaves[place], beside, number, &path), Some(root));
            }
        }
    }
}
