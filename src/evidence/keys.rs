//! [`LogKeys`]: the public keys of one evidence log, in the order in which they were used. When a
//! new key replaces an old one, both keys sign a note about the change. The note names the first
//! checkpoint (signed summary of the log) that the new key signs. So whoever trusts one of the keys
//! can verify all others.

use super::note::split_note;
use super::{Checkpoint, SigningKey, VerifyKey};
use crate::finding::Finding;

/// The content of a note about a key change.
struct KeyChange {
    number: u64,
    /// The first checkpoint that the new key signs.
    from: u64,
    old: VerifyKey,
    new: VerifyKey,
    time: String,
}

impl KeyChange {
    fn to_text(&self) -> String {
        let KeyChange {
            number,
            from,
            old,
            new,
            time,
        } = self;
        let log = &old.name;
        let old = old.to_line();
        let new = new.to_line();
        format!(
            "crawlgate-evidence-key\nlog {log}\nnumber {number}\nfrom {from}\nold {old}\nnew {new}\ntime {time}\n"
        )
    }

    /// Accepts only what `KeyChange::to_text` writes, signed by both keys, which have one name.
    fn parse(note: &str) -> Option<KeyChange> {
        let change = KeyChange {
            number: note_field(note, "number")?.parse().ok()?,
            from: note_field(note, "from")?.parse().ok()?,
            old: VerifyKey::parse(note_field(note, "old")?).ok()?,
            new: VerifyKey::parse(note_field(note, "new")?).ok()?,
            time: note_field(note, "time")?.to_owned(),
        };
        let text = change.to_text();
        let is_signed = [&change.old, &change.new]
            .into_iter()
            .all(|key| key.open_note(note) == Some(&text));
        (is_signed && change.old.name == change.new.name).then_some(change)
    }
}

/// The value of the line `NAME VALUE`.
fn note_field<'n>(note: &'n str, name: &str) -> Option<&'n str> {
    note.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
}

/// The note that the key `new` replaces the key `old`, signed by both. `number` counts the changes
/// from 1; `from` is the first checkpoint that the new key signs.
pub fn key_change_note(
    number: u64,
    from: u64,
    old: &SigningKey,
    new: &SigningKey,
    time: &str,
) -> String {
    let change = KeyChange {
        number,
        from,
        old: old.verify_key(),
        new: new.verify_key(),
        time: time.to_owned(),
    };
    let text = change.to_text();
    let signatures = [old, new]
        .map(|key| key.sign_note(&text))
        .map(|note| note[text.len() + 1..].to_owned());
    format!("{text}\n{}", signatures.concat())
}

/// The keys of a log, each with the number of the first checkpoint that it signs.
#[derive(Debug)]
pub struct LogKeys(Vec<(u64, VerifyKey)>);

impl LogKeys {
    /// Reads the notes about key changes, the oldest first. Without notes the trusted key is the only
    /// one.
    ///
    /// # Errors
    /// `key-change`: a note is not signed by both keys, or does not follow the one before.
    /// `other-key`: the trusted key is none of the keys.
    pub fn from_notes<'n>(
        trusted: &VerifyKey,
        notes: impl IntoIterator<Item = &'n str>,
    ) -> Result<LogKeys, Finding> {
        let mut keys: Vec<(u64, VerifyKey)> = Vec::new();
        for (number, note) in (1..).zip(notes) {
            let change = KeyChange::parse(note).filter(|change| {
                let last = keys.last();
                change.number == number
                    && last.is_none_or(|(from, key)| *from <= change.from && *key == change.old)
            });
            let change = change.ok_or_else(|| {
                Finding::new(
                    "key-change",
                    format!(
                        "key change {number} was not signed by both keys, or does not follow the one before"
                    ),
                )
            })?;
            if keys.is_empty() {
                keys.push((0, change.old));
            }
            keys.push((change.from, change.new));
        }
        if keys.is_empty() {
            keys.push((0, trusted.clone()));
        }
        if keys.iter().any(|(_, key)| key == trusted) {
            Ok(LogKeys(keys))
        } else {
            Err(Finding::new(
                "other-key",
                format!("this key does not belong to the log: {}", trusted.to_line()),
            ))
        }
    }

    pub fn current(&self) -> Option<&VerifyKey> {
        self.0.last().map(|(_, key)| key)
    }

    pub fn change_count(&self) -> usize {
        self.0.len().saturating_sub(1)
    }

    /// Reads a checkpoint. `None` unless the right key for its number signed it.
    pub fn verify_checkpoint(&self, note: &str) -> Option<Checkpoint> {
        let (unchecked, _) = split_note(note)?;
        let number = Checkpoint::parse(unchecked)?.number;
        let (_, key) = self.0.iter().rev().find(|(from, _)| *from <= number)?;
        Checkpoint::parse(key.open_note(note)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_key_leads_to_all_keys_and_changes_need_both() {
        let first = SigningKey::generate().expect("a key");
        let second = first.generate_successor().expect("a key");
        let third = first.generate_successor().expect("a key");
        let notes = [
            key_change_note(1, 5, &first, &second, "t"),
            key_change_note(2, 9, &second, &third, "u"),
        ];
        let of = |trusted: &SigningKey, notes: &[String]| {
            LogKeys::from_notes(&trusted.verify_key(), notes.iter().map(String::as_str))
        };
        for key in [&first, &second, &third] {
            let keys = of(key, &notes).expect("the keys");
            assert_eq!(
                (keys.change_count(), keys.current()),
                (2, Some(&third.verify_key()))
            );
        }
        let other = SigningKey::generate().expect("a key");
        let fault = |trusted, notes: &[String]| of(trusted, notes).expect_err("a fault").id;
        assert_eq!(fault(&other, &notes), "other-key");
        assert_eq!(fault(&first, &notes[1..]), "key-change");
        let whole = &notes[0];
        let lines: Vec<&str> = whole.lines().collect();
        let one_signature = format!("{}\n", lines[..lines.len() - 1].join("\n"));
        assert_eq!(fault(&first, &[one_signature]), "key-change");
        let changed = whole.replace("from 5", "from 6");
        assert_eq!(fault(&first, &[changed]), "key-change");
    }
}
