//! A case (an excerpt as one file) from the evidence logs of several instances of crawlgate, each
//! of which has its own log.

use super::*;
use crate::evidence::case::{CaseError, read_joined};
use crate::evidence::note::VerifyKey;

/// Two instances: one served the robots.txt, and to the other one came the request.
struct Two {
    _directories: [tempfile::TempDir; 2],
    logs: [OpenLog; 2],
}

impl Two {
    fn new() -> Two {
        let directories = [
            tempfile::tempdir().expect("a directory"),
            tempfile::tempdir().expect("a directory"),
        ];
        let [mut one, mut other] =
            [0, 1].map(|place: usize| open(directories[place].path(), moment(0)).expect("a log"));
        let gptbot = ChainName::of_crawler("shop", "gptbot");
        for log in [&mut one, &mut other] {
            append(
                log,
                &ChainName::of_site("shop"),
                published(STRICT),
                moment(4),
            );
        }
        append(&mut one, &gptbot, served(STRICT, moment(10)), moment(10));
        append(
            &mut other,
            &gptbot,
            request(STRICT, "/private/a", moment(20)),
            moment(20),
        );
        Two {
            _directories: directories,
            logs: [one, other],
        }
    }

    fn keys(&self) -> [VerifyKey; 2] {
        [0, 1].map(|place: usize| self.logs[place].key.verify_key())
    }
}

#[test]
fn a_case_of_several_logs_says_which_instance_served_the_robots_txt() {
    let mut two = Two::new();
    let keys = two.keys();
    let (archive, findings) =
        write_case(&mut two.logs, Vec::new(), &span(), moment(60)).expect("a case");
    assert_eq!(verify(&archive, &keys).faults, Vec::<Finding>::new());
    let request = &findings.logs[1].requests[0];
    assert_eq!(
        request.served_at.as_deref(),
        Some(time_text(moment(10)).as_str())
    );
    assert_eq!(
        (request.served_by.as_deref(), request.rejudged),
        (Some(keys[0].name.as_str()), "disallowed")
    );
    assert!(
        !verify(&archive, &keys[..1]).faults.is_empty(),
        "a log whose key is not given is not trusted"
    );
    let files = tar::read(&archive).expect("files");
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
            verify(&tar::write(&own.collect()), std::slice::from_ref(key)).faults,
            Vec::<Finding>::new()
        );
    }
}

#[test]
fn a_change_in_one_of_several_logs_is_told_with_its_log() {
    let mut two = Two::new();
    let keys = two.keys();
    let (archive, _) = write_case(&mut two.logs, Vec::new(), &span(), moment(60)).expect("a case");
    let mut files = tar::read(&archive).expect("files");
    files
        .get_mut("logs/2/chains/crawler.jsonl")
        .expect("the file")[20] ^= 1;
    let findings = verify(&tar::write(&files), &keys);
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
fn a_case_of_another_machine_is_joined_whole() {
    let mut two = Two::new();
    let keys = two.keys();
    let [here, there] = &mut two.logs;
    let (exported, _) = written(there, &span(), moment(58));
    let join = |log: &mut OpenLog, archive: &[u8]| {
        write_case(
            std::slice::from_mut(log),
            read_joined(archive)?,
            &span(),
            moment(60),
        )
    };
    let (archive, _) = join(here, &exported).expect("a case");
    assert_eq!(verify(&archive, &keys).faults, Vec::<Finding>::new());
    assert_eq!(verify(&archive, &keys).logs.len(), 2);
    assert!(
        matches!(join(here, &archive), Err(CaseError::Other(_))),
        "its own log is in that case already"
    );
    let other_site = CaseSpan {
        site: "blog".into(),
        ..span()
    };
    append(
        there,
        &ChainName::of_crawler("blog", "gptbot"),
        served(STRICT, moment(59)),
        moment(59),
    );
    let (other, _) = written(there, &other_site, moment(60));
    assert!(matches!(join(here, &other), Err(CaseError::Other(_))));
}

#[test]
fn a_log_without_the_crawler_is_part_of_the_case_and_none_alone() {
    let mut two = Two::new();
    let keys = two.keys();
    let late = ChainName::of_crawler("shop", "late");
    append(
        &mut two.logs[1],
        &late,
        request(STRICT, "/private/b", moment(30)),
        moment(30),
    );
    let late = CaseSpan {
        crawler: "late".into(),
        ..span()
    };
    let (archive, _) = write_case(&mut two.logs, Vec::new(), &late, moment(60)).expect("a case");
    let findings = verify(&archive, &keys);
    assert_eq!(findings.faults, Vec::<Finding>::new());
    assert_eq!(
        findings
            .logs
            .iter()
            .map(|log| log.requests.len())
            .collect::<Vec<_>>(),
        [0, 1]
    );
    let nobody = CaseSpan {
        crawler: "nobody".into(),
        ..span()
    };
    assert!(matches!(
        write_case(&mut two.logs, Vec::new(), &nobody, moment(60)),
        Err(CaseError::Nothing { .. })
    ));
}
