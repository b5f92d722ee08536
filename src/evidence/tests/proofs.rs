//! Tests of the proofs of identity in a case (an excerpt of the evidence log, as one file).

use super::*;

#[test]
fn proof_is_written_once_and_checked_with_its_requests() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut log = sample_log(directory.path());
    let mut proofs = WrittenProofs::default();
    append_proven_request(&mut log, &mut proofs, proof_by_list(), time_at(51));
    append_proven_request(&mut log, &mut proofs, proof_by_list(), time_at(52));
    // The span begins after the proof, and with a copy of robots.txt, so that it does not reach
    // back to the proof.
    append_entry(
        &mut log,
        &ChainName::of_crawler("shop", "gptbot"),
        served_entry(STRICT_ROBOTS, time_at(53)),
        time_at(53),
    );
    append_proven_request(&mut log, &mut proofs, proof_by_list(), time_at(54));
    let all = export_case(&mut log, &sample_scope(), time_at(60)).1;
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
    assert_eq!(finding_ids(says), ["inside-list"]);
    assert!(says[0].message.contains("203.0.113.0/24"), "{says:?}");

    let late = CaseScope {
        from: time_at(53),
        ..sample_scope()
    };
    let (archive, findings) = export_case(&mut log, &late, time_at(60));
    assert_eq!(
        (findings.faults.len(), findings.proofs[0].requests),
        (0, 1),
        "{:?}",
        findings.faults
    );
    let files = tar::read_archive(&archive).expect("files");
    assert_eq!(file_lines(&files, "proofs.jsonl").len(), 1);
    assert_eq!(
        files[&format!("lists/{}", Hash::digest(&[NETWORK_LIST]))],
        NETWORK_LIST
    );
    let page = String::from_utf8_lossy(&files["report.html"]).into_owned();
    assert!(page.contains(&says[0].message), "{page}");
    let case = CaseFixture {
        _directory: directory,
        log,
        archive,
    };
    assert!(
        !case
            .faults_after(|files| drop(
                files.remove(&format!("lists/{}", Hash::digest(&[NETWORK_LIST])))
            ))
            .is_empty()
    );
    let forged = case.faults_after(|files| {
        let mut all = file_lines(files, "proofs.jsonl");
        all[0] = all[0].replace("verified", "impostor");
        put_lines(files, "proofs.jsonl", &all);
    });
    assert!(!forged.is_empty());
}

#[test]
fn proof_contradicted_by_list_or_signature_is_a_fault() {
    let elsewhere = NewEntry {
        personal: vec![("client", "198.51.100.1".into())],
        ..proof_by_list()
    };
    for (record, faults) in [
        (elsewhere, &["list-contradicts"][..]),
        (proof_by_signature(SIGNED_BASE), &[]),
        (proof_by_signature("another text"), &["wrong-signature"]),
    ] {
        let directory = tempfile::tempdir().expect("a directory");
        let mut log = sample_log(directory.path());
        append_proven_request(&mut log, &mut WrittenProofs::default(), record, time_at(51));
        let (_, findings) = export_case(&mut log, &sample_scope(), time_at(60));
        assert_eq!(finding_ids(&findings.faults), faults);
    }
}
