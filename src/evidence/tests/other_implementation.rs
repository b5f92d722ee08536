//! Tests that crawlgate and another implementation of the C2SP formats can read each other's
//! output. The output is signed notes and checkpoints (signed summaries of the evidence log).

use super::{CaseFixture, file_lines};
use crate::evidence::merkle;
use crate::evidence::note::{SigningKey, VerifyKey};
use serde_json::Value;
use signed_note::{Note, StandardVerifier, VerifierList};
use tlog_tiles::{Checkpoint, Hash, check_record};

/// The text of a note, if all these keys signed it.
fn verified_text(note: &[u8], keys: &[String]) -> Option<Vec<u8>> {
    let known = keys
        .iter()
        .map(|key| Box::new(StandardVerifier::new(key).expect("a key")) as Box<_>)
        .collect();
    let note = Note::from_bytes(note).expect("a note");
    let (verified, _) = note.verify(&VerifierList::new(known)).ok()?;
    (verified.len() == keys.len()).then(|| note.text().to_vec())
}

fn parse_hash(text: &Value) -> Hash {
    let digits = text.as_str().expect("a hash");
    Hash(
        crate::hash::parse_hex(digits)
            .expect("digits")
            .try_into()
            .expect("32 bytes"),
    )
}

#[test]
fn another_implementation_reads_notes_and_checkpoints() {
    let case = CaseFixture::with_everything();
    let files = case.files();
    let last = case.log.key.verify_key().to_line();
    let change = String::from_utf8_lossy(&files["keys/000001.note"]).into_owned();
    let first = change
        .lines()
        .find_map(|line| line.strip_prefix("old "))
        .expect("the first key")
        .to_owned();
    assert!(
        verified_text(change.as_bytes(), &[first.clone(), last.clone()]).is_some(),
        "both keys signed the change"
    );
    assert!(verified_text(&files["manifest.txt"], std::slice::from_ref(&last)).is_some());
    assert!(verified_text(&files["manifest.txt"], std::slice::from_ref(&first)).is_none());

    let from = change
        .lines()
        .find_map(|line| line.strip_prefix("from ")?.parse::<u64>().ok())
        .expect("a number");
    let notes: Vec<_> = files
        .keys()
        .filter(|file| file.starts_with("checkpoints/") && file.ends_with(".note"))
        .collect();
    let mut by_each_key = [0, 0];
    for (file, number) in notes.iter().zip(0u64..) {
        let is_later = number >= from;
        by_each_key[usize::from(is_later)] += 1;
        let text = verified_text(
            &files[*file],
            &[if is_later { &last } else { &first }.clone()],
        )
        .expect("signed");
        let checkpoint = Checkpoint::from_bytes(&text).expect("a checkpoint");
        assert_eq!(checkpoint.origin(), case.log.key.verify_key().name);
        assert_eq!(checkpoint.extension().lines().count(), 3);
        let proofs: Value =
            serde_json::from_slice(&files[&file.replace(".note", ".json")]).expect("JSON");
        for proof in proofs.as_array().expect("a list") {
            let head = serde_json::json!({"chain": proof["chain"], "entries": proof["entries"], "head": proof["head"]});
            let leaf = tlog_tiles::record_hash(head.to_string().as_bytes());
            let path = proof["path"]
                .as_array()
                .expect("a list")
                .iter()
                .map(parse_hash)
                .collect();
            let place = proof["place"].as_u64().expect("a number");
            check_record(&path, checkpoint.size(), *checkpoint.hash(), place, leaf)
                .expect("the head is in the tree");
        }
    }
    assert!(
        by_each_key.iter().all(|notes| *notes > 0),
        "{by_each_key:?}"
    );
    assert!(!file_lines(&files, "proofs.jsonl").is_empty());
}

#[test]
fn notes_and_roots_of_another_implementation_are_read() {
    let key = SigningKey::generate().expect("a key");
    let signer = signed_note::StandardSigner::new(&key.to_line()).expect("our private key");
    let text = "example.com/log\n2\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n";
    let mut note = Note::new(text.as_bytes(), &[]).expect("a text");
    note.add_sigs(&[&signer]).expect("signed");
    let note = String::from_utf8(note.to_bytes()).expect("text");
    assert_eq!(
        (key.verify_key().open_note(&note), key.sign_note(text)),
        (Some(text), note.clone())
    );
    assert_eq!(
        VerifyKey::parse(&key.verify_key().to_line()),
        Ok(key.verify_key())
    );
    let leaf = merkle::leaf_hash(b"a leaf");
    let node = tlog_tiles::node_hash(Hash(leaf.0), Hash(merkle::leaf_hash(b"another").0));
    assert_eq!(
        merkle::tree_root(&[leaf, merkle::leaf_hash(b"another")]).0,
        node.0
    );
}
