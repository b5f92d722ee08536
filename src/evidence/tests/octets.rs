//! Every changed octet of a case (an excerpt of the evidence log, as one file) is noticed.

use super::{Case, lines};
use crate::evidence::examine::{examine, keys};
use crate::evidence::manifest;
use crate::evidence::note::VerifyKey;
use crate::evidence::tar::Files;
use crate::evidence::verify::verify;
use proptest::prelude::*;
use std::sync::LazyLock;

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn each_changed_octet_of_a_case_is_noticed(place in any::<prop::sample::Index>(), change in 1u8..=255) {
        static CASE: LazyLock<(Vec<u8>, VerifyKey)> = LazyLock::new(|| {
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

/// Every octet of every file that the manifest covers, and of the manifest. Its line of a file is
/// all that the check of the manifest compares, so no other file has to be read again.
#[test]
fn each_changed_octet_of_a_file_is_noticed_by_the_manifest() {
    let case = Case::rich();
    let (mut files, key) = (case.files(), case.log.key.verify_key());
    assert_eq!(manifest::check(&files, &key), Ok(files.len() - 1));
    let mut note = files.remove(manifest::FILE).expect("the manifest");
    let signed = key
        .open(str::from_utf8(&note).expect("text"))
        .expect("signed")
        .to_owned();
    for (path, bytes) in &mut files {
        assert!(signed.contains(&manifest::line(path, bytes)));
        for place in 0..bytes.len() {
            bytes[place] ^= 1 << (place % 8);
            assert!(
                !signed.contains(&manifest::line(path, bytes)),
                "{path}: octet {place}"
            );
            bytes[place] ^= 1 << (place % 8);
        }
    }
    for place in 0..note.len() {
        note[place] ^= 1 << (place % 8);
        let changed = [(manifest::FILE.to_owned(), note.clone())].into();
        let fault = manifest::check(&changed, &key).expect_err("it was changed");
        assert_eq!(fault.id, "manifest-unsigned", "octet {place}");
        note[place] ^= 1 << (place % 8);
    }
}

/// Who has the key signs the manifest anew. Then the chains, proofs and hashes notice each octet,
/// but those of the file that says what the case is about.
#[test]
fn each_changed_octet_of_a_file_is_noticed_without_the_manifest() {
    let case = Case::small();
    let (files, key) = (case.files(), case.log.key.verify_key());
    let has = |path: &str| files.keys().any(|file| file.starts_with(path));
    assert!(has("lists/") && has("checkpoints/") && lines(&files, "proofs.jsonl").len() == 1);
    let covered = |path: &str| !["report.html", "manifest.txt", "case.json"].contains(&path);
    let octets = |(path, bytes): (_, &Vec<u8>)| {
        (0..bytes.len())
            .map(move |place| (path, place))
            .collect::<Vec<_>>()
    };
    let places: Vec<(&String, usize)> = files
        .iter()
        .filter(|(path, _)| covered(path))
        .flat_map(octets)
        .collect();
    let check = |places: &[(&String, usize)]| {
        let mut changed: Files = files.clone();
        for (path, place) in places {
            let octet = |changed: &mut Files| {
                changed.get_mut(*path).expect("the file")[*place] ^= 1 << (place % 8)
            };
            octet(&mut changed);
            assert!(
                !examine(&[(&changed, &key)])[0].faults.is_empty(),
                "{path}: octet {place}"
            );
            octet(&mut changed);
        }
    };
    std::thread::scope(|scope| {
        let part = places
            .len()
            .div_ceil(std::thread::available_parallelism().map_or(1, usize::from));
        places
            .chunks(part)
            .for_each(|places| drop(scope.spawn(|| check(places))));
    });
}

#[test]
fn each_changed_octet_of_a_change_of_the_key_is_noticed() {
    let case = Case::rich();
    let (mut files, key) = (case.files(), case.log.key.verify_key());
    let length = files["keys/000001.note"].len();
    for place in 0..length {
        let octet = |files: &mut Files| {
            files.get_mut("keys/000001.note").expect("the file")[place] ^= 1 << (place % 8)
        };
        octet(&mut files);
        assert!(keys(&files, &key).is_err(), "octet {place}");
        octet(&mut files);
    }
}
