//! Tests of the scripts that a case (an excerpt of the evidence log, as one file) contains. With
//! these scripts a third party checks the case without crawlgate.

use super::{
    CaseFixture, STRICT_ROBOTS, append_entry, file_lines, put_lines, request_entry, sample_log,
    sample_scope, time_at,
};
use crate::evidence::ChainName;
use crate::evidence::tar::CaseFiles;
use std::process::Command;

/// The output of the scripts in the case, or of the part that failed.
fn check_by_hand(files: &CaseFiles, key: &str) -> Result<String, String> {
    let directory = tempfile::tempdir().expect("a directory");
    for (path, bytes) in files {
        let path = directory.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        std::fs::write(path, bytes).expect("written");
    }
    let done = Command::new("sh")
        .args(["check.sh", key])
        .current_dir(directory.path())
        .output()
        .expect("sh");
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    if done.status.success() {
        Ok(said)
    } else {
        Err(format!("{said}{}", String::from_utf8_lossy(&done.stderr)))
    }
}

#[test]
fn case_with_proofs_and_two_keys_is_checked_by_hand() {
    let case = CaseFixture::with_everything();
    let files = case.files();
    let last = case.log.key.verify_key().to_line();
    let change = String::from_utf8_lossy(&files["keys/000001.note"]).into_owned();
    let first = change
        .lines()
        .find_map(|line| line.strip_prefix("old "))
        .expect("the first key");
    for key in [first, last.as_str()] {
        let said = check_by_hand(&files, key).expect("the case holds");
        for part in [
            "/private/d disallowed by",
            "203.0.113.0/24",
            "the signature is good",
            "reverse DNS gave crawl.example",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        // The request before the time of the case is left out.
        let requests = case.verify_case(&case.archive).logs[0].requests.len();
        assert_eq!(said.matches(" gptbot: ").count(), requests, "{said}");
    }
    check_by_hand(&files, &CaseFixture::new().log.key.verify_key().to_line())
        .expect_err("the key of another log");
}

#[test]
fn cut_target_and_declared_file_are_named_by_hand() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut log = sample_log(directory.path());
    let target = format!("/private/{}", "a".repeat(2_039));
    let mut request = request_entry(STRICT_ROBOTS, &target, time_at(51));
    request.data.insert("verdict".into(), "disallowed".into());
    request.data.insert("history".into(), "declared".into());
    let gptbot = ChainName::of_crawler("shop", "gptbot");
    append_entry(&mut log, &gptbot, request, time_at(51));
    let case = CaseFixture::export(directory, log, &sample_scope());
    let key = case.log.key.verify_key().to_line();
    let said = check_by_hand(&case.files(), &key).expect("the case holds");
    for part in [
        "the target was cut off and is not judged by",
        "only the site says which robots.txt it had before crawlgate",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn forged_key_proof_or_checkpoint_is_detected_by_hand() {
    let case = CaseFixture::with_everything();
    let key = case.log.key.verify_key().to_line();
    let forged = |change: &dyn Fn(&mut CaseFiles)| {
        let files = case.resigned_files(|files| change(files));
        check_by_hand(&files, &key).expect_err("the case was forged")
    };
    let replace = |files: &mut CaseFiles, path: &str, from: &str, to: &str| {
        let text = String::from_utf8_lossy(&files[path]).into_owned();
        assert!(text.contains(from), "{path} without {from}");
        files.insert(path.to_owned(), text.replacen(from, to, 1).into_bytes());
    };
    forged(&|files| replace(files, "keys/000001.note", "from ", "from 1"));
    forged(&|files| replace(files, "checkpoints/000000.note", "time 2", "time 3"));
    forged(&|files| drop(files.remove("checkpoints/000001.note")));
    forged(&|files| {
        put_lines(
            files,
            "chains/crawler.jsonl",
            &file_lines(files, "chains/crawler.jsonl")[1..4],
        )
    });
    let said = forged(&|files| {
        put_lines(
            files,
            "chains/site.jsonl",
            &file_lines(files, "chains/site.jsonl")[1..],
        )
    });
    assert!(said.contains("shortened at its beginning"), "{said}");
    let said = forged(&|files| {
        let list = files
            .keys()
            .find(|path| path.starts_with("lists/"))
            .expect("a list")
            .clone();
        files.insert(list, b"192.0.2.0/24\n".to_vec());
    });
    assert!(said.contains("AssertionError"), "{said}");
    // What the holder of the key could do after the timestamp.
    forged(&|files| {
        let added = file_lines(files, "chains/crawler.jsonl")
            .pop()
            .expect("an entry");
        files
            .get_mut("chains/crawler.jsonl")
            .expect("the chain")
            .extend(added.as_bytes());
    });
    forged(&|files| {
        let checkpoint = files
            .keys()
            .rfind(|path| path.ends_with(".json") && path.contains('/'));
        let checkpoint = checkpoint.expect("a checkpoint").clone();
        replace(
            files,
            &checkpoint,
            "\"chain\":",
            "\"x\":{\"head\":\"00\"},\"chain\":",
        );
    });
    forged(&|files| {
        let log = files["chains/log.jsonl"].clone();
        files.insert("chains/site.jsonl".to_owned(), log);
    });
}

#[test]
fn withdrawn_target_is_not_judged_by_hand() {
    let case = CaseFixture::with_everything();
    let files =
        case.resigned_files(|files| drop(files.insert("personal.jsonl".to_owned(), Vec::new())));
    let said = check_by_hand(&files, &case.log.key.verify_key().to_line()).expect("the rest holds");
    // The version stands in the line, and no target that is none.
    let mut versions = files
        .keys()
        .filter_map(|file| file.strip_prefix("robots/")?.strip_suffix(".txt"));
    assert!(
        versions.any(|version| said.lines().any(|line| line.ends_with(version)))
            && !said.contains("None disallowed")
            && said.contains("verified by list: not checked"),
        "{said}"
    );
}
