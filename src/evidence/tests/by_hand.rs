//! Checks a case (an excerpt of the evidence log, as one file) without crawlgate, with the commands
//! that the documentation gives.

use super::{Case, lines, put};
use crate::evidence::tar::{self, Files};
use std::process::Command;

/// The blocks of a language in the documentation.
fn documented(language: &str) -> Vec<String> {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/evidence.md"))
        .expect("the page");
    let begin = format!("```{language}\n");
    let blocks = page.split(begin.as_str()).skip(1);
    blocks
        .map(|block| block.split("```").next().expect("a block").to_owned())
        .collect()
}

/// What the part in Python prints.
fn check(files: &Files, key: &str) -> Result<String, String> {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("case.tar"), tar::write(files)).expect("written");
    let shell = documented("sh")
        .into_iter()
        .find(|block| block.starts_with("tar "))
        .expect("the commands");
    let python = documented("python").remove(0);
    let mut said = String::new();
    for (program, script) in [("sh", shell), ("python3", python)] {
        let mut command = Command::new(program);
        let done = command
            .args(["-c", &script])
            .current_dir(directory.path())
            .env("KEY", key)
            .output();
        let done = done.unwrap_or_else(|error| panic!("{program}: {error}"));
        said = String::from_utf8_lossy(&done.stdout).into_owned();
        if !done.status.success() {
            return Err(format!("{said}{}", String::from_utf8_lossy(&done.stderr)));
        }
    }
    Ok(said)
}

#[test]
fn a_case_with_proofs_and_another_key_is_checked_by_hand() {
    let case = Case::rich();
    let (files, last) = (case.files(), case.log.key.verify_key().line());
    let change = String::from_utf8_lossy(&files["keys/000001.note"]).into_owned();
    let first = change
        .lines()
        .find_map(|line| line.strip_prefix("old "))
        .expect("the first key");
    for key in [first, last.as_str()] {
        let said = check(&files, key).expect("the case holds");
        for part in [
            "/private/d disallowed by",
            "203.0.113.0/24",
            "the signature is good",
            "reverse DNS gave crawl.example",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
    check(&files, &Case::new().log.key.verify_key().line()).expect_err("the key of another log");
}

#[test]
fn a_forged_key_proof_or_checkpoint_is_noticed_by_hand() {
    let case = Case::rich();
    let key = case.log.key.verify_key().line();
    let forged = |change: &dyn Fn(&mut Files)| {
        let files = case.signed_anew(|files| change(files));
        check(&files, &key).expect_err("the case was forged")
    };
    let replace = |files: &mut Files, path: &str, from: &str, to: &str| {
        let text = String::from_utf8_lossy(&files[path]).into_owned();
        assert!(text.contains(from), "{path} without {from}");
        files.insert(path.to_owned(), text.replacen(from, to, 1).into_bytes());
    };
    forged(&|files| replace(files, "keys/000001.note", "from ", "from 1"));
    forged(&|files| replace(files, "checkpoints/000000.note", "time 2", "time 3"));
    forged(&|files| drop(files.remove("checkpoints/000001.note")));
    forged(&|files| {
        put(
            files,
            "chains/crawler.jsonl",
            &lines(files, "chains/crawler.jsonl")[1..4],
        )
    });
    let said = forged(&|files| {
        put(
            files,
            "chains/site.jsonl",
            &lines(files, "chains/site.jsonl")[1..],
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
        let added = lines(files, "chains/crawler.jsonl")
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
fn a_target_that_was_withdrawn_is_not_judged_by_hand() {
    let case = Case::rich();
    let files =
        case.signed_anew(|files| drop(files.insert("personal.jsonl".to_owned(), Vec::new())));
    let said = check(&files, &case.log.key.verify_key().line()).expect("the rest holds");
    // The version stands in the line, and no target that is none.
    let mut versions = files
        .keys()
        .filter_map(|file| file.strip_prefix("robots/")?.strip_suffix(".txt"));
    assert!(
        versions.any(|version| said.lines().any(|line| line.ends_with(version)))
            && !said.contains("None disallowed"),
        "{said}"
    );
}
