//! [`open`] opens the evidence log in its directory: the database, the private key, and a file that
//! counts the processes that wrote the log. If these do not fit together (a restored backup, a lost
//! key, a damaged file), it renames the files and begins a new log. [`open_existing`] opens the log
//! for a command.

use super::database::{Damage, FILE, LogState};
use super::{DatabaseError, EvidenceDatabase, NoteError, SigningKey, time_text};
use crate::files::read_own;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The private key.
const KEY: &str = "evidence.key";
/// The next private key, while it takes the place of the present one.
const NEXT_KEY: &str = "evidence.key.new";
/// How many processes have written the log. A database with a smaller number is an older copy.
const RUNS: &str = "evidence.runs";

/// Why there is no log: the file, and what is wrong with it.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The database cannot be opened.
    #[error("cannot open {file}: {1}", file = .0.display())]
    Database(PathBuf, #[source] DatabaseError),
    /// A file cannot be read, written or renamed.
    #[error("cannot use {file}: {1}", file = .0.display())]
    File(PathBuf, #[source] io::Error),
    /// The key cannot be made, or its file has none.
    #[error("the key {file} cannot be used: {1}", file = .0.display())]
    Key(PathBuf, #[source] NoteError),
}

/// The opened log.
pub struct OpenLog {
    /// The database.
    pub database: EvidenceDatabase,
    /// The key.
    pub key: SigningKey,
    /// The state of the log when it was opened.
    pub state: LogState,
    /// Why a new log began beside an older one, if it did.
    pub begun_anew: Option<Damage>,
}

/// Opens the log for the process that writes it. If there is none, a new one begins with a fresh
/// key. If the files do not fit together or are damaged, they are renamed first, and
/// `OpenLog::begun_anew` says why.
///
/// # Errors
/// See [`OpenError`].
pub fn open(directory: &Path, now: SystemTime) -> Result<OpenLog, OpenError> {
    let file = directory.join(FILE);
    let key_file = directory.join(KEY);
    let begun_anew = match read_whole(directory) {
        Ok(log) => return Ok(log),
        Err(DatabaseError::NoLog) => None,
        Err(DatabaseError::Damaged(because)) => Some(because),
        Err(DatabaseError::Sqlite(error)) if is_damaged(&error) => Some(Damage::Unreadable),
        Err(source) => return Err(OpenError::Database(file, source)),
    };
    set_aside(directory, now).map_err(|source| OpenError::File(file.clone(), source))?;
    let key = SigningKey::fresh().map_err(|source| OpenError::Key(key_file.clone(), source))?;
    write_private(&key_file, &key.line()).map_err(|source| OpenError::File(key_file, source))?;
    EvidenceDatabase::open(directory, true)
        .and_then(|mut database| {
            database.write(|log| log.begin_log(&key.verify_key().name, &time_text(now)))
        })
        .map_err(|source| OpenError::Database(file, source))?;
    Ok(OpenLog {
        begun_anew,
        ..open_existing(directory)?
    })
}

/// Opens a log that is there, for a command. Makes no new log, and does not notice an older copy of
/// the database.
///
/// # Errors
/// There is no log, or it cannot be read; if its key is missing or wrong, the error says that.
pub fn open_existing(directory: &Path) -> Result<OpenLog, OpenError> {
    let file = directory.join(KEY);
    let of_database = |source| OpenError::Database(directory.join(FILE), source);
    read(directory).map_err(|error| match error {
        DatabaseError::Damaged(_) => match read_own(&file).map(|text| SigningKey::parse(&text)) {
            Err(source) => OpenError::File(file, source),
            Ok(Err(source)) => OpenError::Key(file, source),
            Ok(Ok(_)) => of_database(DatabaseError::Damaged(Damage::OtherKey)),
        },
        error => of_database(error),
    })
}

/// The log, if it is whole. [`DatabaseError::Damaged`] says why a new one is to begin: the database
/// is gone while other files are there, its key was lost, or by the file that counts processes it
/// is an older copy.
fn read_whole(directory: &Path) -> Result<OpenLog, DatabaseError> {
    let [has_database, has_key, has_runs] =
        [FILE, KEY, RUNS].map(|name| directory.join(name).exists());
    if !has_database && (has_key || has_runs) {
        return Err(DatabaseError::Damaged(Damage::Gone));
    }
    let log = read(directory)?;
    let runs: Option<u64> = read_own(&directory.join(RUNS))
        .ok()
        .and_then(|text| text.trim().parse().ok());
    match runs {
        Some(runs) if log.state.runs < runs => Err(DatabaseError::Damaged(Damage::OlderCopy)),
        None if log.state.runs > 1 => Err(DatabaseError::Damaged(Damage::NoRuns)),
        _ => Ok(log),
    }
}

/// The log as its files have it. `DatabaseError::Damaged` if the private key does not fit to the
/// database, `DatabaseError::NoLog` if there is no database.
fn read(directory: &Path) -> Result<OpenLog, DatabaseError> {
    if !directory.join(FILE).exists() {
        return Err(DatabaseError::NoLog);
    }
    let database = EvidenceDatabase::open(directory, false)?;
    let state = database.state()?.ok_or(DatabaseError::NoLog)?;
    let key = read_key(directory, &state.id, database.changed_key()?.as_deref());
    let key = key.ok_or(DatabaseError::Damaged(Damage::KeyLost))?;
    Ok(OpenLog {
        database,
        key,
        state,
        begun_anew: None,
    })
}

/// The private key of a log; `None` if no file has it. `changed` is the public key that signs now,
/// if the key was ever changed. If a crash broke a change off after the database named the new key,
/// the change is finished: its file takes the place of the old key.
pub fn read_key(directory: &Path, log: &str, changed: Option<&str>) -> Option<SigningKey> {
    let read = |name: &str| SigningKey::parse(&read_own(&directory.join(name)).ok()?).ok();
    let fits = |key: &SigningKey| {
        let key = key.verify_key();
        key.name == log && changed.is_none_or(|changed| key.line() == changed)
    };
    read(KEY).filter(fits).or_else(|| {
        let next = read(NEXT_KEY).filter(|key| changed.is_some() && fits(key));
        // The command may be about to do the same.
        next.inspect(|_| drop(fs::rename(directory.join(NEXT_KEY), directory.join(KEY))))
            .or_else(|| read(KEY).filter(fits))
    })
}

/// Writes the next private key beside the present one, in place of one that was left there. It
/// counts once the database names it.
///
/// # Errors
/// It cannot be written.
pub fn write_next_key(directory: &Path, key: &SigningKey) -> io::Result<()> {
    let file = directory.join(NEXT_KEY);
    let _ = fs::remove_file(&file);
    write_private(&file, &key.line())?;
    fs::File::open(directory)?.sync_all()
}

fn is_damaged(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    matches!(
        error.sqlite_error_code(),
        Some(DatabaseCorrupt | NotADatabase)
    )
}

/// Renames the files of the log that are there: their names end with `.former-` and the time.
fn set_aside(directory: &Path, now: SystemTime) -> io::Result<()> {
    let suffix = time_text(now).replace([':', '.'], "-");
    let journal = format!("{FILE}-wal");
    let memory = format!("{FILE}-shm");
    for name in [FILE, &journal, &memory, KEY, NEXT_KEY, RUNS] {
        match fs::rename(
            directory.join(name),
            directory.join(format!("{name}.former-{suffix}")),
        ) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Writes how many processes have written the log into the file that counts them, in one step.
/// Called after the database says the same.
///
/// # Errors
/// It cannot be written.
pub fn write_runs(directory: &Path, runs: u64) -> io::Result<()> {
    let file = directory.join(RUNS);
    let fresh = directory.join(format!("{RUNS}.new"));
    let _ = fs::remove_file(&fresh);
    write_private(&fresh, &runs.to_string())?;
    fs::rename(fresh, file)
}

/// Writes a line into a new file, for this user alone.
fn write_private(file: &Path, line: &str) -> io::Result<()> {
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file)?;
    file.write_all(format!("{line}\n").as_bytes())?;
    file.sync_all()
}
