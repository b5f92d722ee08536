//! Tests of cases (excerpts as one file) that join the evidence logs of several crawlgate
//! instances.

use super::*;
use crate::evidence::case::{CaseError, read_exported_logs};
use crate::evidence::note::VerifyKey;

/// The logs of two instances: one served the robots.txt, the other one got the request.
struct TwoInstances {
    _directories: [tempfile::TempDir; 2],
    logs: [OpenEvidenceLog; 2],
}

impl TwoInstances {
    fn new() -> TwoInstances {
        let directories = [
            tempfile::tempdir().expect("a directory"),
            tempfile::tempdir().expect("a directory"),
        ];
        let [mut one, mut other] = [0, 1].map(|place: usize| {
            open_for_writing(directories[place].path(), time_at(0)).expect("a log")
        });
        let gptbot = ChainName::of_crawler("shop", "gptbot");
        for log in [&mut one, &mut other] {
            append_entry(
                log,
                &ChainName::of_site("shop"),
                published_entry(STRICT_ROBOTS),
                time_at(4),
            );
        }
        append_entry(
            &mut one,
            &gptbot,
            served_entry(STRICT_ROBOTS, time_at(10)),
            time_at(10),
        );
        append_entry(
            &mut other,
            &gptbot,
            request_entry(STRICT_ROBOTS, "/private/a", time_at(20)),
            time_at(20),
        );
        TwoInstances {
            _directories: directories,
            logs: [one, other],
        }
    }

    fn public_keys(&self) -> [VerifyKey; 2] {
        [0, 1].map(|place: usize| self.logs[place].key.verify_key())
    }
}

#[test]
fn case_of_several_logs_names_the_serving_instance() {
    let mut two = TwoInstances::new();
    let keys = two.public_keys();
    let (archive, findings) =
        build_case(&mut two.logs, Vec::new(), &sample_scope(), time_at(60)).expect("a case");
    assert_eq!(verify_case(&archive, &keys).faults, Vec::<Finding>::new());
    let request = &findings.logs[1].requests[0];
    assert_eq!(
        request.served_at.as_deref(),
        Some(format_time(time_at(10)).as_str())
    );
    assert_eq!(
        (request.served_by.as_deref(), request.rejudged),
        (Some(keys[0].name.as_str()), "disallowed")
    );
    assert!(
        !verify_case(&archive, &keys[..1]).faults.is_empty(),
        "a log whose key is not given is not trusted"
    );
    let files = tar::read_archive(&archive).expect("files");
    let page = String::from_utf8_lossy(&files["report.html"]).into_owned();
    assert!(keys.iter().all(|key| page.contains(&key.name)) && page.contains("/private/a"));
    // Each log is a whole case, for the check by hand.
    for (number, key) in (1..).zip(&keys) {
        let own = files.iter().filter_map(|(path, bytes)| {
            Some((
                path.strip_prefix(&format!("logs/{number}/"))?.to_owned(),
                bytes.clone(),
            ))
        });
        assert_eq!(
            verify_case(
                &tar::write_archive(&own.collect()),
                std::slice::from_ref(key)
            )
            .faults,
            Vec::<Finding>::new()
        );
    }
}

#[test]
fn fault_in_one_of_several_logs_names_its_log() {
    let mut two = TwoInstances::new();
    let keys = two.public_keys();
    let (archive, _) =
        build_case(&mut two.logs, Vec::new(), &sample_scope(), time_at(60)).expect("a case");
    let mut files = tar::read_archive(&archive).expect("files");
    files
        .get_mut("logs/2/chains/crawler.jsonl")
        .expect("the file")[20] ^= 1;
    let findings = verify_case(&tar::write_archive(&files), &keys);
    assert!(findings.logs[0].faults.is_empty() && !findings.logs[1].faults.is_empty());
    assert!(
        findings
            .faults
            .iter()
            .all(|fault| fault.message.starts_with("log 2: ")),
        "{:?}",
        findings.faults
    );
}

#[test]
fn case_of_another_machine_is_joined() {
    let mut two = TwoInstances::new();
    let keys = two.public_keys();
    let [here, there] = &mut two.logs;
    let (exported, _) = export_case(there, &sample_scope(), time_at(58));
    let join = |log: &mut OpenEvidenceLog, archive: &[u8]| {
        build_case(
            std::slice::from_mut(log),
            read_exported_logs(archive)?,
            &sample_scope(),
            time_at(60),
        )
    };
    let (archive, _) = join(here, &exported).expect("a case");
    assert_eq!(verify_case(&archive, &keys).faults, Vec::<Finding>::new());
    assert_eq!(verify_case(&archive, &keys).logs.len(), 2);
    assert!(
        matches!(join(here, &archive), Err(CaseError::Mismatch(_))),
        "its own log is in that case already"
    );
    let other_site = CaseScope {
        site: "blog".into(),
        ..sample_scope()
    };
    append_entry(
        there,
        &ChainName::of_crawler("blog", "gptbot"),
        served_entry(STRICT_ROBOTS, time_at(59)),
        time_at(59),
    );
    let (other, _) = export_case(there, &other_site, time_at(60));
    assert!(matches!(join(here, &other), Err(CaseError::Mismatch(_))));
}

#[test]
fn changed_common_report_is_detected() {
    let mut two = TwoInstances::new();
    let keys = two.public_keys();
    let (archive, _) =
        build_case(&mut two.logs, Vec::new(), &sample_scope(), time_at(60)).expect("a case");
    let mut files = tar::read_archive(&archive).expect("files");
    for page in [Some(b"edited".to_vec()), None] {
        match page {
            Some(page) => drop(files.insert("report.html".to_owned(), page)),
            None => drop(files.remove("report.html")),
        }
        let findings = verify_case(&tar::write_archive(&files), &keys);
        assert_eq!(finding_ids(&findings.faults), ["page-differs"]);
    }
}

#[test]
fn logs_without_the_crawler_are_in_the_case() {
    let mut two = TwoInstances::new();
    let keys = two.public_keys();
    let late = ChainName::of_crawler("shop", "late");
    append_entry(
        &mut two.logs[1],
        &late,
        request_entry(STRICT_ROBOTS, "/private/b", time_at(30)),
        time_at(30),
    );
    let late = CaseScope {
        crawler: "late".into(),
        ..sample_scope()
    };
    let (archive, _) = build_case(&mut two.logs, Vec::new(), &late, time_at(60)).expect("a case");
    let findings = verify_case(&archive, &keys);
    assert_eq!(findings.faults, Vec::<Finding>::new());
    assert_eq!(
        findings
            .logs
            .iter()
            .map(|log| log.requests.len())
            .collect::<Vec<_>>(),
        [0, 1]
    );
    let nobody = CaseScope {
        crawler: "nobody".into(),
        ..sample_scope()
    };
    let (_, findings) =
        build_case(&mut two.logs, Vec::new(), &nobody, time_at(60)).expect("a case");
    for log in &findings.logs {
        assert!(log.faults.is_empty() && log.requests.is_empty() && !log.published.is_empty());
    }
}
