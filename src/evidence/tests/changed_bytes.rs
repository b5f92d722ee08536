//! Tests that change single bytes of a case (an excerpt of the evidence log, as one file): every
//! change is detected.

use super::{CaseFixture, file_lines};
use crate::evidence::examine::{examine_logs, read_log_keys};
use crate::evidence::manifest;
use crate::evidence::note::VerifyKey;
use crate::evidence::tar::CaseFiles;
use crate::evidence::verify::verify_case;
use proptest::prelude::*;
use std::sync::LazyLock;

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn changed_byte_of_a_case_is_detected(place in any::<prop::sample::Index>(), change in 1u8..=255) {
        static CASE: LazyLock<(Vec<u8>, VerifyKey)> = LazyLock::new(|| {
            let case = CaseFixture::with_everything();
            (case.archive.clone(), case.log.key.verify_key())
        });
        let (archive, key) = &*CASE;
        let mut changed = archive.clone();
        let place = place.index(changed.len());
        changed[place] ^= change;
        prop_assert!(!verify_case(&changed, std::slice::from_ref(key)).faults.is_empty(), "byte {}", place);
    }
}

/// Changes every byte of every file but the long scripts. The check of the manifest compares a line
/// for each file, so only the line of the changed file is computed.
#[test]
fn changed_byte_is_detected_by_the_manifest() {
    let case = CaseFixture::with_everything();
    let (mut files, key) = (case.files(), case.log.key.verify_key());
    assert_eq!(manifest::check_manifest(&files, &key), Ok(files.len() - 1));
    let mut note = files.remove(manifest::MANIFEST_FILE).expect("the manifest");
    let signed = key
        .open_note(str::from_utf8(&note).expect("text"))
        .expect("signed")
        .to_owned();
    files.retain(|path, _| !path.starts_with("check."));
    for (path, bytes) in &mut files {
        assert!(signed.contains(&manifest::manifest_line(path, bytes)));
        for place in 0..bytes.len() {
            bytes[place] ^= 1 << (place % 8);
            assert!(
                !signed.contains(&manifest::manifest_line(path, bytes)),
                "{path}: byte {place}"
            );
            bytes[place] ^= 1 << (place % 8);
        }
    }
    for place in 0..note.len() {
        note[place] ^= 1 << (place % 8);
        let changed = [(manifest::MANIFEST_FILE.to_owned(), note.clone())].into();
        let fault = manifest::check_manifest(&changed, &key).expect_err("it was changed");
        assert_eq!(fault.id, "manifest-unsigned", "byte {place}");
        note[place] ^= 1 << (place % 8);
    }
}

/// The owner of the key may sign the manifest anew. Then chains, proofs and hashes detect each change,
/// except in `case.json` and the scripts.
#[test]
fn changed_byte_is_detected_without_the_manifest() {
    let case = CaseFixture::one_request();
    let (files, key) = (case.files(), case.log.key.verify_key());
    let has = |path: &str| files.keys().any(|file| file.starts_with(path));
    assert!(has("lists/") && has("checkpoints/") && file_lines(&files, "proofs.jsonl").len() == 1);
    let covered = |path: &str| {
        !["report.html", "manifest.txt", "case.json"].contains(&path) && !path.starts_with("check.")
    };
    let positions = |(path, bytes): (_, &Vec<u8>)| {
        (0..bytes.len())
            .map(move |place| (path, place))
            .collect::<Vec<_>>()
    };
    let places: Vec<(&String, usize)> = files
        .iter()
        .filter(|(path, _)| covered(path))
        .flat_map(positions)
        .collect();
    let check = |places: &[(&String, usize)]| {
        let mut changed: CaseFiles = files.clone();
        for (path, place) in places {
            let byte = |changed: &mut CaseFiles| {
                changed.get_mut(*path).expect("the file")[*place] ^= 1 << (place % 8)
            };
            byte(&mut changed);
            assert!(
                !examine_logs(&[(&changed, &key)])[0].faults.is_empty(),
                "{path}: byte {place}"
            );
            byte(&mut changed);
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
fn changed_byte_of_a_key_change_is_detected() {
    let case = CaseFixture::with_everything();
    let (mut files, key) = (case.files(), case.log.key.verify_key());
    let length = files["keys/000001.note"].len();
    for place in 0..length {
        let byte = |files: &mut CaseFiles| {
            files.get_mut("keys/000001.note").expect("the file")[place] ^= 1 << (place % 8)
        };
        byte(&mut files);
        assert!(read_log_keys(&files, &key).is_err(), "byte {place}");
        byte(&mut files);
    }
}
