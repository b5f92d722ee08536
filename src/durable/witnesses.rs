//! Two files by which the next start knows whether everything was written: the mark (`complete`) and the stamp
//! (`ledger/alive.json`). It believes what it finds where both are there, so both are taken away while anything is
//! unwritten, whichever part that is, and put back when all of it is written. One of them gone is enough: the directory
//! of the other may be another's, or immutable. Where neither can be taken away, the stamp gets too old.
//!
//! Knows the two files and which parts there are; knows nothing of what is in them.

use crate::time::Timestamp;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What is written for the next start, each by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// What was in force, and when.
    Versions,
    /// What was served to whom.
    Visits,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Written,
    /// Nothing is wrong with it, and it was not written yet.
    Awaited,
    Unwritten,
}

/// The two files. Those of no directory are always there: nothing is to be written.
#[derive(Debug)]
pub struct Witnesses {
    files: Option<Files>,
    known: Mutex<Known>,
}

#[derive(Debug)]
struct Files {
    mark: PathBuf,
    stamp: PathBuf,
}

#[derive(Debug)]
struct Known {
    versions: Standing,
    visits: Standing,
    mark: bool,
    /// The starts that believe the stamp that is there.
    stamp: Option<RangeInclusive<Timestamp>>,
    /// The stamp that is there is from before, and who wants to know of it has not read it yet.
    unread: bool,
}

impl Known {
    fn is_written(&self) -> bool {
        [self.versions, self.visits] == [Standing::Written; 2]
    }
}

impl Witnesses {
    /// Those of a state directory, as they are there now.
    pub fn of(state: Option<&Path>) -> Witnesses {
        let files =
            state.map(|state| Files { mark: state.join("complete"), stamp: state.join("ledger").join("alive.json") });
        // What is in the stamp who wrote it will tell.
        let any_start = Timestamp(i64::MIN)..=Timestamp(i64::MAX);
        let known = Known {
            versions: Standing::Written,
            visits: Standing::Written,
            mark: files.as_ref().is_none_or(|files| files.mark.is_file()),
            stamp: files.as_ref().filter(|files| files.stamp.exists()).map(|_| any_start),
            unread: true,
        };
        Witnesses { files, known: Mutex::new(known) }
    }

    /// Notes that a part was written, or could not be: then both files are taken away, as far as that can be done.
    pub fn note(&self, part: Part, written: bool) {
        let standing = if written { Standing::Written } else { Standing::Unwritten };
        let mut known = self.known();
        *known.crawler_rules(part) = standing;
        self.settle(&mut known);
    }

    fn settle(&self, known: &mut Known) {
        if [known.versions, known.visits].contains(&Standing::Unwritten) {
            self.take_mark(known);
            self.take_stamp(known);
        }
    }

    /// A part is yet to be written for the first time, and the stamp that is there was read, and is believed by these
    /// starts. No mark is put back before.
    pub fn await_first(&self, part: Part, stamp: Option<RangeInclusive<Timestamp>>) {
        let mut known = self.known();
        (known.stamp, known.unread) = (stamp, false);
        if *known.crawler_rules(part) == Standing::Written {
            *known.crawler_rules(part) = Standing::Awaited;
        }
        self.settle(&mut known);
    }

    /// Whether the mark is there.
    pub fn has_mark(&self) -> bool {
        self.known().mark
    }

    /// Whether a stamp is there.
    pub fn has_stamp(&self) -> bool {
        self.known().stamp.is_some()
    }

    /// Takes the mark away, because not everything is known.
    pub fn remove_mark(&self) {
        self.take_mark(&mut self.known());
    }

    /// Puts the mark back once everything is written.
    pub fn put_mark(&self, write: impl FnOnce(&Path) -> bool) {
        let mut known = self.known();
        if let Some(files) = self.files.as_ref().filter(|_| !known.mark && known.is_written()) {
            known.mark = write(&files.mark);
        }
    }

    /// Renews the stamp where everything is written; says whether it was. `believed` are the starts that believe it.
    pub fn put_stamp(&self, believed: RangeInclusive<Timestamp>, write: impl FnOnce(&Path) -> bool) -> bool {
        let mut known = self.known();
        let Some(files) = self.files.as_ref().filter(|_| known.is_written()) else { return false };
        let written = write(&files.stamp);
        if written {
            (known.stamp, known.unread) = (Some(believed), false);
        } else {
            self.take_stamp(&mut known);
        }
        written
    }

    /// Whether a start now would take what is written of the versions for all there were, and be wrong.
    pub fn mislead(&self, now: Timestamp) -> bool {
        let known = self.known();
        known.versions == Standing::Unwritten
            && known.mark
            && known.stamp.as_ref().is_some_and(|believed| believed.contains(&now))
    }

    fn take_mark(&self, known: &mut Known) {
        known.mark &= self.files.as_ref().is_some_and(|files| !is_taken(&files.mark));
    }

    fn take_stamp(&self, known: &mut Known) {
        if !known.unread && self.files.as_ref().is_none_or(|files| is_taken(&files.stamp)) {
            known.stamp = None;
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn crawler_rules(&mut self, part: Part) -> &mut Standing {
        match part {
            Part::Versions => &mut self.versions,
            Part::Visits => &mut self.visits,
        }
    }
}

/// Takes a file away; says whether it is gone.
fn is_taken(file: &Path) -> bool {
    match fs::remove_file(file) {
        Ok(()) => {
            // So that it does not come back with the power. Where that cannot be done, a crash of crawlgate alone is
            // told all the same.
            let _ = file.parent().map(File::open).map(|directory| directory.and_then(|directory| directory.sync_all()));
            true
        }
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
}

#[cfg(test)]
mod tests {
    use super::{Part, Witnesses};
    use crate::time::Timestamp;
    use std::fs;
    use std::path::Path;

    fn written() -> (tempfile::TempDir, Witnesses) {
        let directory = tempfile::tempdir().expect("a directory");
        fs::create_dir(directory.path().join("ledger")).expect("made");
        let witnesses = Witnesses::of(Some(directory.path()));
        put(&witnesses);
        assert!(witnesses.has_mark() && witnesses.has_stamp());
        (directory, witnesses)
    }

    fn put(witnesses: &Witnesses) {
        let write = |file: &Path| fs::write(file, "there").is_ok();
        witnesses.put_stamp(Timestamp(95)..=Timestamp(120), write);
        witnesses.put_mark(write);
    }

    /// So that it cannot be taken away.
    fn hold(file: &Path) {
        fs::remove_file(file).and_then(|()| fs::create_dir_all(file.join("held"))).expect("held");
    }

    #[test]
    fn whichever_part_is_unwritten_both_files_go_and_neither_is_back_before_all_is_written() {
        for (one, other) in [(Part::Versions, Part::Visits), (Part::Visits, Part::Versions)] {
            let (directory, witnesses) = written();
            witnesses.note(one, false);
            witnesses.note(other, true);
            put(&witnesses);
            assert!(
                !directory.path().join("complete").exists() && !directory.path().join("ledger/alive.json").exists()
            );
            witnesses.note(one, true);
            put(&witnesses);
            assert!(directory.path().join("complete").exists() && directory.path().join("ledger/alive.json").exists());
        }
    }

    #[test]
    fn one_of_them_gone_is_enough_and_where_neither_goes_the_stamp_gets_too_old() {
        for (held, misleads) in [
            (vec!["complete"], false),
            (vec!["ledger/alive.json"], false),
            (vec!["complete", "ledger/alive.json"], true),
        ] {
            let (directory, witnesses) = written();
            held.iter().for_each(|file| hold(&directory.path().join(file)));
            assert!(!witnesses.mislead(Timestamp(100)), "everything is written");
            witnesses.note(Part::Versions, false);
            assert_eq!(witnesses.mislead(Timestamp(100)), misleads, "{held:?}");
            assert!(!witnesses.mislead(Timestamp(121)), "{held:?}");
            // A clock that was set back makes a stamp of what is to come.
            assert!(!witnesses.mislead(Timestamp(94)), "{held:?}");
        }
    }

    #[test]
    fn what_is_awaited_takes_nothing_away_and_puts_nothing_back() {
        let (directory, witnesses) = written();
        witnesses.await_first(Part::Visits, None);
        witnesses.note(Part::Versions, true);
        assert!(witnesses.has_mark() && directory.path().join("ledger/alive.json").exists());
        witnesses.remove_mark();
        put(&witnesses);
        assert!(!witnesses.has_mark());
        witnesses.note(Part::Visits, true);
        put(&witnesses);
        assert!(witnesses.has_mark());
    }

    #[test]
    fn a_stamp_from_before_is_read_before_it_is_taken_away() {
        let (directory, _) = written();
        let stamp = directory.path().join("ledger/alive.json");
        let witnesses = Witnesses::of(Some(directory.path()));
        witnesses.note(Part::Versions, false);
        assert!(!witnesses.has_mark() && stamp.exists());
        witnesses.await_first(Part::Visits, Some(Timestamp(95)..=Timestamp(120)));
        assert!(!witnesses.has_stamp() && !stamp.exists());
    }

    #[test]
    fn without_a_directory_nothing_is_missing() {
        let witnesses = Witnesses::of(None);
        witnesses.note(Part::Versions, true);
        assert!(witnesses.has_mark() && !witnesses.mislead(Timestamp(0)));
    }
}
