//! Changes to a case (an excerpt of the evidence log, as one file) by somebody who has the private
//! key, and so can sign the list of its files (the manifest) anew: the check finds each change.

use super::*;
use crate::evidence::canonical::canonical;
use crate::evidence::entry::{Entry, hash_of};

const CRAWLER: &str = "chains/crawler.jsonl";

/// The same entries in another form, each with the hash of the one before it again.
fn relinked(lines: &[String], mut change: impl FnMut(usize, &mut Entry)) -> Vec<String> {
    let (mut previous, mut relinked): (Option<Hash>, Vec<String>) = (None, Vec::new());
    for (place, line) in lines.iter().enumerate() {
        let mut entry = Entry::read(line).expect("an entry");
        change(place, &mut entry);
        entry.previous = previous.unwrap_or(entry.previous);
        previous = Some(hash_of(&entry.line()));
        relinked.push(entry.line());
    }
    relinked
}

#[test]
fn a_shortened_chain_is_noticed() {
    let faults = Case::new().forged(|files| {
        let all = lines(files, CRAWLER);
        put(files, CRAWLER, &all[..all.len() - 1]);
    });
    assert!(!faults.is_empty());
}

#[test]
fn a_removed_entry_is_noticed_though_all_others_are_linked_anew() {
    let faults = Case::new().forged(|files| {
        let mut all = lines(files, CRAWLER);
        all.remove(1);
        let relinked = relinked(&all, |place, entry| entry.number = place as u64);
        put(files, CRAWLER, &relinked);
    });
    assert!(!faults.is_empty());
}

#[test]
fn an_added_entry_is_noticed() {
    let faults = Case::new().forged(|files| {
        let mut all = lines(files, CRAWLER);
        all.push(all[all.len() - 1].clone());
        let relinked = relinked(&all, |place, entry| entry.number = place as u64);
        put(files, CRAWLER, &relinked);
    });
    assert!(!faults.is_empty());
}

#[test]
fn a_changed_entry_is_noticed_by_the_checkpoints() {
    let faults = Case::new().forged(|files| {
        let all = lines(files, CRAWLER);
        let relinked = relinked(&all, |place, entry| {
            if place == 1 {
                entry.data.insert("identity".into(), "impostor".into());
            }
        });
        put(files, CRAWLER, &relinked);
    });
    assert!(!faults.is_empty());
}

#[test]
fn an_entry_dated_before_a_checkpoint_that_does_not_cover_it_is_noticed() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut log = log(directory.path());
    // The holder of the key writes an entry by hand, with a time from before the checkpoint.
    let gptbot = ChainName::of_crawler("shop", "gptbot");
    append(
        &mut log,
        &gptbot,
        request(STRICT, "/private/d", moment(35)),
        moment(55),
    );
    let connection =
        rusqlite::Connection::open(directory.path().join("evidence.db")).expect("the file");
    let (id, number, line): (i64, i64, String) = connection
        .query_row(
            "SELECT chain, number, line FROM entries WHERE kind = 'request' ORDER BY number DESC LIMIT 1",
            [],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )
        .expect("the entry");
    let mut entry = Entry::read(&line).expect("an entry");
    entry.time = time_text(moment(50));
    let as_if = entry.line();
    let head = hash_of(&as_if);
    connection
        .execute(
            "UPDATE entries SET line = ?1 WHERE chain = ?2 AND number = ?3",
            (&as_if, id, number),
        )
        .expect("forged");
    connection
        .execute(
            "UPDATE chains SET head = ?1 WHERE id = ?2",
            (head.0.as_slice(), id),
        )
        .expect("forged");
    let (_, findings) = written(&mut log, &span(), moment(60));
    assert!(
        findings.faults.is_empty(),
        "later than the checkpoint, it cannot be told: {:?}",
        findings.faults
    );
    entry.time = time_text(moment(39));
    let last = |connection: &rusqlite::Connection, entry: &Entry| {
        connection
            .execute(
                "UPDATE entries SET line = ?1 WHERE chain = ?2 AND number = ?3",
                (entry.line(), id, number),
            )
            .expect("forged");
        connection
            .execute(
                "UPDATE chains SET head = ?1 WHERE id = ?2",
                (hash_of(&entry.line()).0.as_slice(), id),
            )
            .expect("forged");
    };
    last(&connection, &entry);
    // Before it, an entry of 50 stands; the forger dates that one back too.
    let before: String = connection
        .query_row(
            "SELECT line FROM entries WHERE chain = ?1 AND number = ?2",
            (id, number - 1),
            |row| row.get(0),
        )
        .expect("the entry before");
    let mut before = Entry::read(&before).expect("an entry");
    before.time = time_text(moment(38));
    entry.previous = hash_of(&before.line());
    connection
        .execute(
            "UPDATE entries SET line = ?1 WHERE chain = ?2 AND number = ?3",
            (before.line(), id, number - 1),
        )
        .expect("forged");
    last(&connection, &entry);
    let far = CaseSpan {
        to: moment(100),
        ..span()
    };
    let (_, findings) = written(&mut log, &far, moment(100));
    assert!(
        findings
            .faults
            .iter()
            .any(|fault| fault.contains("other side of a checkpoint")),
        "{:?}",
        findings.faults
    );
}

#[test]
fn a_robots_txt_that_is_left_out_or_changed_is_noticed() {
    let lenient = format!("robots/{}.txt", Hash::of(&[LENIENT]));
    let case = Case::new();
    assert!(
        case.files().contains_key(&lenient),
        "published in the window before the request"
    );
    assert!(!case.forged(|files| drop(files.remove(&lenient))).is_empty());
    assert!(
        !case
            .forged(|files| drop(files.insert(lenient.clone(), STRICT.to_vec())))
            .is_empty()
    );
}

#[test]
fn a_publication_left_out_at_the_beginning_is_noticed() {
    let case = Case::new();
    let lenient = format!("robots/{}.txt", Hash::of(&[LENIENT]));
    let faults = case.forged(|files| {
        put(
            files,
            "chains/site.jsonl",
            &lines(files, "chains/site.jsonl")[1..],
        );
        files.remove(&lenient);
    });
    assert!(
        faults
            .iter()
            .any(|fault| fault.starts_with("chains/site.jsonl lacks 1 entries")),
        "{faults:?}"
    );
}

#[test]
fn a_copy_left_out_at_the_beginning_is_noticed() {
    let faults = Case::new().forged(|files| put(files, CRAWLER, &lines(files, CRAWLER)[1..]));
    assert!(
        faults
            .iter()
            .any(|fault| fault.starts_with("chains/crawler.jsonl lacks 1 entries")),
        "{faults:?}"
    );
}

/// The window begins after the first entries: one of them, or a checkpoint, shows that those of the
/// window are complete.
#[test]
fn a_later_window_begins_with_an_entry_from_before_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut log = log(directory.path());
    let late = CaseSpan {
        from: moment(25),
        ..span()
    };
    let (archive, findings) = written(&mut log, &late, moment(60));
    assert_eq!((findings.faults, findings.requests.len()), (Vec::new(), 2));
    let files = tar::read(&archive).expect("files");
    let case = Case {
        _directory: directory,
        log,
        archive,
    };
    let all = lines(&files, CRAWLER);
    assert_eq!(all.len(), 4, "back to the copy that was served before");
    let lacks = |number: usize| {
        let faults = case.forged(|files| put(files, CRAWLER, &all[number..]));
        faults.iter().any(|fault| fault.contains(" lacks "))
    };
    // Entries from before the window may be missing, those of the window may not.
    assert_eq!([1, 2, 3].map(lacks), [false, true, true]);
}

#[test]
fn a_checkpoint_without_the_proof_of_a_chain_is_noticed() {
    let faults = Case::new().forged(|files| {
        let proofs = String::from_utf8_lossy(&files["checkpoints/000000.json"]).into_owned();
        let mut proofs: Vec<Value> = serde_json::from_str(&proofs).expect("JSON");
        proofs.retain(|proof| proof["chain"]["crawler"] != "gptbot");
        files.insert(
            "checkpoints/000000.json".into(),
            format!("{}\n", canonical(&Value::from(proofs))).into_bytes(),
        );
    });
    assert!(
        faults.iter().any(|fault| fault.contains("no proof")),
        "{faults:?}"
    );
}

#[test]
fn a_checkpoint_that_is_left_out_is_noticed() {
    let faults = Case::new().forged(|files| {
        files.remove("checkpoints/000001.note");
        files.remove("checkpoints/000001.json");
    });
    assert!(!faults.is_empty());
}

#[test]
fn a_violation_that_a_robots_txt_of_the_case_allows_is_a_fault() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut log = log(directory.path());
    append(
        &mut log,
        &ChainName::of_crawler("shop", "gptbot"),
        request(STRICT, "/public", moment(55)),
        moment(55),
    );
    let (_, findings) = written(&mut log, &span(), moment(60));
    assert_eq!(
        findings.requests.last().map(|request| request.rejudged),
        Some("allowed")
    );
    assert_eq!(findings.faults.len(), 1, "{:?}", findings.faults);
}
