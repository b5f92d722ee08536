//! Tests of the proofs of identity in a case (an excerpt of the evidence log, as one file).

use super::*;
use crate::evidence::summary::{IdentityAssurance, case_summary};

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
    let part = "the address is in the network 203.0.113.0/24";
    assert!(page.contains(part), "{page}");
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

/// The basis and the client of a request with this proof.
fn basis_with(proof: NewEntry) -> (IdentityAssurance, Option<String>) {
    let directory = tempfile::tempdir().expect("a directory");
    let mut log = sample_log(directory.path());
    append_proven_request(&mut log, &mut WrittenProofs::default(), proof, time_at(51));
    let (_, findings) = export_case(&mut log, &sample_scope(), time_at(60));
    assert_eq!(findings.faults, Vec::<Finding>::new());
    let proof = &findings.proofs[0];
    let basis = IdentityAssurance::from_request(findings.requests.last().expect("it"), &findings);
    for (found, is_there) in [
        (&findings.holds, proof.is_complete),
        (&findings.unknown, !proof.is_complete),
    ] {
        let has_id = finding_ids(found)
            .iter()
            .any(|id| ["proofs", "incomplete-proofs"].contains(id));
        assert_eq!(has_id, is_there, "{found:?}");
    }
    (basis, proof.client.clone())
}

#[test]
fn proof_without_its_address_is_the_sites_word() {
    let with = |address: Option<&str>, client: &[&str]| {
        let mut proof = proof_by_list();
        proof.data.remove("address");
        proof
            .data
            .extend(address.map(|address| ("address".to_owned(), address.into())));
        proof.personal = client
            .iter()
            .map(|client| ("client", (*client).to_owned()))
            .collect();
        basis_with(proof)
    };
    let address = "203.0.113.5".to_owned();
    assert_eq!(
        with(Some("whole"), &["203.0.113.5"]),
        (IdentityAssurance::Proven, Some(address))
    );
    for (kept, shown) in [
        ("203.0.113.0", "203.0.113.0/24"),
        ("2001:db8:1::", "2001:db8:1::/48"),
    ] {
        assert_eq!(
            with(Some("network"), &[kept]),
            (IdentityAssurance::Asserted, Some(shown.to_owned()))
        );
    }
    assert_eq!(with(None, &[]), (IdentityAssurance::Asserted, None));
    // It was deleted.
    assert_eq!(
        with(Some("whole"), &[]),
        (IdentityAssurance::Asserted, None)
    );
    let signed = proof_by_signature(SIGNED_BASE);
    assert_eq!(basis_with(signed), (IdentityAssurance::Proven, None));
}

#[test]
fn list_that_the_site_supplied_is_named() {
    for (obtained, is_supplied) in [("fetched", false), ("mirror", false), ("directory", true)] {
        let mut proof = proof_by_list();
        let lists = proof.data["lists"].as_array_mut().expect("a list");
        lists[0]["obtained"] = obtained.into();
        let directory = tempfile::tempdir().expect("a directory");
        let mut log = sample_log(directory.path());
        append_proven_request(&mut log, &mut WrittenProofs::default(), proof, time_at(51));
        let (_, findings) = export_case(&mut log, &sample_scope(), time_at(60));
        let unknown = finding_ids(&findings.unknown);
        assert_eq!(unknown.contains(&"supplied-lists"), is_supplied);
        let [_, identity, _] = case_summary(&CaseFindings::from_logs(vec![findings]));
        assert_eq!(identity.contains("The site supplied the copy"), is_supplied);
    }
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
