//! Changes to a case (an excerpt of the evidence log, as one file) by somebody who has the private
//! key, and so can sign the list of its files (the manifest) anew: the check finds each change.

use super::*;
use crate::evidence::canonical::canonical;
use crate::evidence::entry::{Entry, hash_of};

const CRAWLER: &str = "chains/crawler.jsonl";

/// The same entries in another form, each with the hash of the one before it again.
fn relinked(lines: &[String], mut change: impl FnMut(usize, &mut Entry)) -> Vec<String> {
    let mut previous: Option<Hash> = None;
    let mut relinked = Vec::new();
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
    assert!(ids(&faults).contains(&"shortened"));
}

#[test]
fn a_removed_entry_is_noticed_though_all_others_are_linked_anew() {
    let faults = Case::new().forged(|files| {
        let mut all = lines(files, CRAWLER);
        all.remove(1);
        let relinked = relinked(&all, |place, entry| entry.number = place as u64);
        put(files, CRAWLER, &relinked);
    });
    assert!(ids(&faults).contains(&"shortened"));
}

#[test]
fn an_added_entry_is_noticed() {
    let faults = Case::new().forged(|files| {
        let mut all = lines(files, CRAWLER);
        all.push(all[all.len() - 1].clone());
        let relinked = relinked(&all, |place, entry| entry.number = place as u64);
        put(files, CRAWLER, &relinked);
    });
    assert!(ids(&faults).contains(&"shortened"));
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
    assert!(ids(&faults).contains(&"shortened"));
}

/// The file of a log, for a forger who has the key.
struct Forger {
    connection: rusqlite::Connection,
    /// The row of the chain with requests.
    chain: i64,
}

impl Forger {
    fn new(directory: &Path) -> Forger {
        let file = directory.join("evidence.db");
        let connection = rusqlite::Connection::open(file).expect("the file");
        let query = "SELECT chain FROM entries WHERE kind = 'request'";
        let chain = connection.query_row(query, [], |row| row.get(0));
        Forger {
            chain: chain.expect("a request"),
            connection,
        }
    }

    fn entry(&self, number: u64) -> Entry {
        let query = "SELECT line FROM entries WHERE chain = ?1 AND number = ?2";
        let line: String = self
            .connection
            .query_row(query, (self.chain, number), |row| row.get(0))
            .expect("the entry");
        Entry::read(&line).expect("an entry")
    }

    fn put(&self, entry: &Entry) {
        let row = "UPDATE entries SET line = ?1 WHERE chain = ?2 AND number = ?3";
        self.connection
            .execute(row, (entry.line(), self.chain, entry.number))
            .expect("forged");
    }

    /// Puts the last entry of the chain.
    fn put_last(&self, entry: &Entry) {
        self.put(entry);
        let head = hash_of(&entry.line());
        let row = "UPDATE chains SET head = ?1 WHERE id = ?2";
        self.connection
            .execute(row, (head.0.as_slice(), self.chain))
            .expect("forged");
    }
}

#[test]
fn an_entry_dated_back_behind_a_checkpoint_is_noticed() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut log = log(directory.path());
    // The holder of the key writes an entry by hand, with a time from before the checkpoint.
    append(
        &mut log,
        &ChainName::of_crawler("shop", "gptbot"),
        request(STRICT, "/private/d", moment(35)),
        moment(55),
    );
    let forger = Forger::new(directory.path());
    let mut last = forger.entry(4);
    last.time = time_text(moment(50));
    forger.put_last(&last);
    let (_, findings) = written(&mut log, &span(), moment(60));
    assert!(
        findings.faults.is_empty(),
        "later than the checkpoint, it cannot be told: {:?}",
        findings.faults
    );
    // Before it, an entry of 50 stands; the forger dates that one back too.
    let mut before = forger.entry(3);
    before.time = time_text(moment(38));
    forger.put(&before);
    last.time = time_text(moment(39));
    last.previous = hash_of(&before.line());
    forger.put_last(&last);
    let far = CaseSpan {
        to: moment(100),
        ..span()
    };
    let (_, findings) = written(&mut log, &far, moment(100));
    assert!(ids(&findings.faults).contains(&"other-side-of-checkpoint"));
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
    assert_eq!(ids(&faults), ["beginning-left-out"]);
    assert!(faults[0].message.contains("chains/site.jsonl"));
}

#[test]
fn a_copy_left_out_at_the_beginning_is_noticed() {
    let faults = Case::new().forged(|files| put(files, CRAWLER, &lines(files, CRAWLER)[1..]));
    // The personal values of the entry are those of none any more.
    assert_eq!(ids(&faults), ["beginning-left-out", "personal-value"]);
    assert!(faults[0].message.contains(CRAWLER));
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
        ids(&faults).contains(&"beginning-left-out")
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
    assert!(ids(&faults).contains(&"checkpoint-without-proof"));
}

#[test]
fn a_checkpoint_that_is_left_out_is_noticed() {
    let faults = Case::new().forged(|files| {
        files.remove("checkpoints/000001.note");
        files.remove("checkpoints/000001.json");
    });
    assert!(!faults.is_empty(), "what the last checkpoint covered");
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
    assert_eq!(ids(&findings.faults), ["allowed-violation"]);
}
