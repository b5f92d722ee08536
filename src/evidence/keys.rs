//! [`Keys`]: the keys that signed an evidence log, in order. All have the same name, that of the
//! log. Each change of the key has a note, which the old and the new key signed. It gives the
//! number of the first checkpoint (signed summary of the log) that the new key signs. So a third
//! party that trusts any one of the keys can verify all others.

use super::{Checkpoint, SigningKey, VerifyKey};
use crate::finding::Finding;

/// A change of the key.
#[derive(Debug)]
struct Change {
    number: u64,
    /// The first checkpoint that the new key signs.
    from: u64,
    old: VerifyKey,
    new: VerifyKey,
    time: String,
}

impl Change {
    fn text(&self) -> String {
        let Change {
            number,
            from,
            old,
            new,
            time,
        } = self;
        let log = &old.name;
        let old = old.line();
        let new = new.line();
        format!(
            "crawlgate-evidence-key\nlog {log}\nnumber {number}\nfrom {from}\nold {old}\nnew {new}\ntime {time}\n"
        )
    }

    /// Reads a note about a change of the key. `None` unless it is spelled as `Change::text`
    /// writes it, both keys signed it, and they have the same name.
    fn read(note: &str) -> Option<Change> {
        let change = Change {
            number: field(note, "number")?.parse().ok()?,
            from: field(note, "from")?.parse().ok()?,
            old: VerifyKey::parse(field(note, "old")?).ok()?,
            new: VerifyKey::parse(field(note, "new")?).ok()?,
            time: field(note, "time")?.to_owned(),
        };
        let text = change.text();
        let is_signed = [&change.old, &change.new]
            .into_iter()
            .all(|key| key.open(note) == Some(&text));
        (is_signed && change.old.name == change.new.name).then_some(change)
    }
}

/// The value in the line of a note that begins with a name.
fn field<'n>(note: &'n str, name: &str) -> Option<&'n str> {
    note.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
}

/// The note that the key `new` follows the key `old`, signed by both. `number` is the number of the
/// change, from 1; `from` is the number of the first checkpoint that the new key signs.
pub fn change_note(
    number: u64,
    from: u64,
    old: &SigningKey,
    new: &SigningKey,
    time: &str,
) -> String {
    let change = Change {
        number,
        from,
        old: old.verify_key(),
        new: new.verify_key(),
        time: time.to_owned(),
    };
    let text = change.text();
    let signatures = [old, new]
        .map(|key| key.sign(&text))
        .map(|note| note[text.len() + 1..].to_owned());
    format!("{text}\n{}", signatures.concat())
}

/// The keys of a log, each with the number of the first checkpoint that it signs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys(Vec<(u64, VerifyKey)>);

impl Keys {
    /// The keys that the notes about changes name, the oldest first, each with the number of the
    /// first checkpoint that it signs. Without notes the trusted key is the only one.
    ///
    /// # Errors
    /// `key-change`: a note is not signed by both keys, or does not follow the one before.
    /// `other-key`: the trusted key is none of the keys.
    pub fn read<'n>(
        trusted: &VerifyKey,
        notes: impl IntoIterator<Item = &'n str>,
    ) -> Result<Keys, Finding> {
        let mut keys: Vec<(u64, VerifyKey)> = Vec::new();
        for (number, note) in (1..).zip(notes) {
            let change = Change::read(note).filter(|change| {
                let last = keys.last();
                change.number == number
                    && last.is_none_or(|(from, key)| *from <= change.from && *key == change.old)
            });
            let change = change.ok_or_else(|| {
                Finding::new(
                    "key-change",
                    format!(
                        "the change of the key number {number} was not signed by both keys, or does not follow the one before"
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
            Ok(Keys(keys))
        } else {
            Err(Finding::new(
                "other-key",
                format!(
                    "the key that was given is none of the log: {}",
                    trusted.line()
                ),
            ))
        }
    }

    /// The key that signs now.
    pub fn last(&self) -> Option<&VerifyKey> {
        self.0.last().map(|(_, key)| key)
    }

    /// How often the key was changed.
    pub fn changes(&self) -> usize {
        self.0.len().saturating_sub(1)
    }

    /// Reads a checkpoint. `None` unless it was signed by the key that signs checkpoints of its
    /// number.
    pub fn checkpoint(&self, note: &str) -> Option<Checkpoint> {
        self.0.iter().find_map(|(_, key)| {
            let checkpoint = Checkpoint::read(key.open(note)?)?;
            let of_its_time = self
                .0
                .iter()
                .rev()
                .find(|(from, _)| *from <= checkpoint.number);
            of_its_time
                .is_some_and(|(_, of_its_time)| of_its_time == key)
                .then_some(checkpoint)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_leads_to_all_keys_and_a_change_needs_both_signatures() {
        let first = SigningKey::fresh().expect("a key");
        let second = first.successor().expect("a key");
        let third = first.successor().expect("a key");
        let notes = [
            change_note(1, 5, &first, &second, "t"),
            change_note(2, 9, &second, &third, "u"),
        ];
        let of = |trusted: &SigningKey, notes: &[String]| {
            Keys::read(&trusted.verify_key(), notes.iter().map(String::as_str))
        };
        for key in [&first, &second, &third] {
            let keys = of(key, &notes).expect("the keys");
            assert_eq!(
                (keys.changes(), keys.last()),
                (2, Some(&third.verify_key()))
            );
        }
        let other = SigningKey::fresh().expect("a key");
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
