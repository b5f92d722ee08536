//! Tests of the entries that prove the identity of a client, in a case (an excerpt of the evidence
//! log, as one file).

use super::*;

#[test]
fn a_proof_is_written_once_and_checked_with_the_requests_that_name_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut log = log(directory.path());
    let mut proofs = WrittenProofs::default();
    append_proven(&mut log, &mut proofs, proof(), moment(51));
    append_proven(&mut log, &mut proofs, proof(), moment(52));
    // The span begins after the proof, and with a copy of robots.txt, so that it does not reach
    // back to the proof.
    append(
        &mut log,
        &ChainName::of_crawler("shop", "gptbot"),
        served(STRICT, moment(53)),
        moment(53),
    );
    append_proven(&mut log, &mut proofs, proof(), moment(54));
    let all = written(&mut log, &span(), moment(60)).1;
    assert_eq!(all.faults, Vec::<Finding>::new());
    let proven: Vec<_> = all
        .requests
        .iter()
        .filter_map(|request| request.proof_entry)
        .collect();
    assert_eq!(
        (proven.len(), all.proofs.len(), all.proofs[0].requests),
        (3, 1, 3)
    );
    assert!(proven.iter().all(|entry| *entry == all.proofs[0].number));
    let says = &all.proofs[0].says;
    assert_eq!(ids(says), ["inside-list"]);
    assert!(says[0].message.contains("203.0.113.0/24"), "{says:?}");

    let late = CaseSpan {
        from: moment(53),
        ..span()
    };
    let (archive, findings) = written(&mut log, &late, moment(60));
    assert_eq!(
        (findings.faults.len(), findings.proofs[0].requests),
        (0, 1),
        "{:?}",
        findings.faults
    );
    let files = tar::read(&archive).expect("files");
    assert_eq!(lines(&files, "proofs.jsonl").len(), 1);
    assert_eq!(files[&format!("lists/{}", Hash::of(&[LIST]))], LIST);
    let page = String::from_utf8_lossy(&files["report.html"]).into_owned();
    assert!(page.contains(&says[0].message), "{page}");
    let case = Case {
        _directory: directory,
        log,
        archive,
    };
    assert!(
        !case
            .forged(|files| drop(files.remove(&format!("lists/{}", Hash::of(&[LIST])))))
            .is_empty()
    );
    let forged = case.forged(|files| {
        let mut all = lines(files, "proofs.jsonl");
        all[0] = all[0].replace("verified", "impostor");
        put(files, "proofs.jsonl", &all);
    });
    assert!(!forged.is_empty());
}

#[test]
fn a_proof_that_its_list_or_signature_does_not_bear_is_a_fault() {
    let elsewhere = Record {
        personal: vec![("client", "198.51.100.1".into())],
        ..proof()
    };
    for (record, faults) in [
        (elsewhere, &["list-contradicts"][..]),
        (proof_by_signature(SIGNED), &[]),
        (proof_by_signature("another text"), &["wrong-signature"]),
    ] {
        let directory = tempfile::tempdir().expect("a directory");
        let mut log = log(directory.path());
        append_proven(&mut log, &mut WrittenProofs::default(), record, moment(51));
        let (_, findings) = written(&mut log, &span(), moment(60));
        assert_eq!(ids(&findings.faults), faults);
    }
}
