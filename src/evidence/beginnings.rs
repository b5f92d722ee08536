//! Whether the chains of a case begin early enough: [`check_beginnings`]. The hashes tie each entry to the one before it, and the
//! last checkpoint covers the end. The beginning could be cut off, with a publication in it that allowed everything.

use super::case::LONGEST_COPY;
use super::documents::CHAINS;
use super::entry::{Link, time_text};
use super::findings::Findings;
use std::time::SystemTime;

/// What a checkpoint covers of a chain.
pub struct Covered<'c> {
    /// The file of the chain.
    pub file: &'static str,
    /// The time of the checkpoint.
    pub time: &'c str,
    /// How many entries the chain had.
    pub entries: u64,
}

/// Checks that each chain has all entries since the beginning of its time. Entries that the log deleted for their age, by its
/// own word, cannot be in a case.
pub fn check_beginnings(chains: &[Vec<Link>; 3], covered: &[Covered<'_>], findings: &mut Findings) {
    let Some(beginnings) = beginnings(&findings.from) else {
        return findings.faults.push("case.json does not say from which time on".into());
    };
    let deleted_before = chains[2].iter().filter_map(deleted_before).max();
    for ((chain, file), since) in chains.iter().zip(CHAINS).zip(&beginnings) {
        let Some(first) = chain.first().map(|link| &link.entry) else { continue };
        let is_covered = |covered: &Covered<'_>| {
            covered.file == file && covered.time < since.as_str() && covered.entries >= first.number
        };
        if first.number == 0 || first.time < *since || covered.iter().any(is_covered) {
            continue;
        }
        let missing = format!("{file} lacks {} entries from before {}", first.number, first.time);
        match deleted_before {
            Some(before) => findings.unknown.push(format!(
                "{missing}: the log deleted those from before {before} for their age; whether later ones were left out"
            )),
            None => findings.faults.push(format!(
                "{missing}: entries since {since} were left out, and the log does not say that it deleted any"
            )),
        }
    }
}

/// Since when a case has to have each chain.
fn beginnings(from: &str) -> Option<[String; 3]> {
    let moment = SystemTime::from(chrono::DateTime::parse_from_rfc3339(from).ok()?);
    let published_since = time_text(moment.checked_sub(LONGEST_COPY).unwrap_or(SystemTime::UNIX_EPOCH));
    (time_text(moment) == from).then(|| [from.to_owned(), published_since.clone(), published_since])
}

/// Up to which moment the log deleted entries, by this one.
fn deleted_before(link: &Link) -> Option<&str> {
    let is_deletion = link.entry.kind == "gap" && link.entry.text("reason") == Some("too_old");
    link.entry.text("before").filter(|_| is_deletion)
}
