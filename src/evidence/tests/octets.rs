//! Changed octets of a case are noticed.

use super::{Case, lines};
use crate::evidence::examine::examine;
use crate::evidence::tar::Files;
use crate::evidence::verify::verify;
use proptest::prelude::*;
use std::sync::LazyLock;

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn each_changed_octet_of_a_case_is_noticed(place in any::<prop::sample::Index>(), change in 1u8..=255) {
        static CASE: LazyLock<(Vec<u8>, crate::evidence::VerifyKey)> = LazyLock::new(|| {
            let case = Case::rich();
            (case.archive.clone(), case.log.key.verify_key())
        });
        let (archive, key) = &*CASE;
        let mut changed = archive.clone();
        let place = place.index(changed.len());
        changed[place] ^= change;
        prop_assert!(!verify(&changed, std::slice::from_ref(key)).faults.is_empty(), "octet {}", place);
    }
}

/// Without the manifest: the chains, proofs and hashes notice it themselves. One octet of seven, because all take a minute.
#[test]
fn changed_octets_of_covered_files_are_noticed_without_the_manifest() {
    let case = Case::rich();
    let (files, key) = (case.files(), case.log.key.verify_key());
    let has = |path: &str| files.keys().any(|file| file.starts_with(path));
    assert!(has("keys/") && has("lists/") && has("checkpoints/") && !lines(&files, "proofs.jsonl").is_empty());
    let covered = |path: &str| !["report.html", "manifest.txt", "case.json"].contains(&path);
    let places: Vec<(&str, usize)> = files
        .iter()
        .filter(|(path, _)| covered(path))
        // Of each file another seventh of the octets, so that of alike files all are changed.
        .zip((0..7).cycle())
        .flat_map(|((path, bytes), first)| (first..bytes.len()).step_by(7).map(|place| (path.as_str(), place)))
        .collect();
    let check = |places: &[(&str, usize)]| {
        let mut changed: Files = files.clone();
        for (path, place) in places {
            let octet = |changed: &mut Files| changed.get_mut(*path).expect("the file")[*place] ^= 1 << (place % 8);
            octet(&mut changed);
            assert!(!examine(&[(&changed, &key)])[0].faults.is_empty(), "{path}: octet {place}");
            octet(&mut changed);
        }
    };
    std::thread::scope(|scope| {
        let part = places.len().div_ceil(std::thread::available_parallelism().map_or(1, usize::from));
        places.chunks(part).for_each(|places| drop(scope.spawn(|| check(places))));
    });
}
