//! [`open_for_writing`] opens the evidence log for the running crawlgate, and [`open_existing`] for
//! commands. The log's files are the database, the private key, and a count of the processes that
//! have written the log. By the count, `open_for_writing` recognises that an old backup of the
//! database was restored. If the files do not fit together or are damaged, `open_for_writing`
//! renames them and begins a new log.

use super::database::{DATABASE_FILE, LogDamage, LogState};
use super::{DatabaseError, EvidenceDatabase, NoteKeyError, SigningKey, format_time};
use crate::files::read_own_file;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use DatabaseError::*;
use LogDamage::*;
use OpenError::*;

/// The file of the private key.
const KEY_FILE: &str = "evidence.key";
/// The file of the next private key during a key rotation.
const NEXT_KEY_FILE: &str = "evidence.key.new";
/// The number of processes that have written the log. A database with a smaller one is an older
/// copy.
const RUN_COUNT_FILE: &str = "evidence.runs";

/// Why the log was not opened, with the file.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The database cannot be opened.
    #[error("cannot open {file}: {1}", file = .0.display())]
    Database(PathBuf, #[source] DatabaseError),
    /// A file cannot be read, written or renamed.
    #[error("cannot use {file}: {1}", file = .0.display())]
    File(PathBuf, #[source] io::Error),
    /// The key cannot be made or parsed.
    #[error("the key {file} cannot be used: {1}", file = .0.display())]
    Key(PathBuf, #[source] NoteKeyError),
}

/// An evidence log that is open for reading and writing.
pub struct OpenEvidenceLog {
    /// The database.
    pub database: EvidenceDatabase,
    /// The present private key.
    pub key: SigningKey,
    /// The state when it was opened.
    pub state: LogState,
    /// Why a new log began in place of a former one.
    pub former_damage: Option<LogDamage>,
}

/// Opens the log, or begins a new one with a fresh key. If the files do not fit together or are
/// damaged, they are renamed first, and `OpenEvidenceLog::former_damage` says why.
///
/// # Errors
/// See [`OpenError`].
pub fn open_for_writing(directory: &Path, now: SystemTime) -> Result<OpenEvidenceLog, OpenError> {
    let file = directory.join(DATABASE_FILE);
    let key_file = directory.join(KEY_FILE);
    let former_damage = match read_undamaged_log(directory) {
        Ok(log) => return Ok(log),
        Err(NoLog) => None,
        Err(Damaged(because)) => Some(because),
        Err(Sqlite(error)) if is_corrupt_file(&error) => Some(Unreadable),
        Err(source) => return Err(Database(file, source)),
    };
    rename_damaged_files(directory, now).map_err(|source| File(file.clone(), source))?;
    let key = SigningKey::generate().map_err(|source| Key(key_file.clone(), source))?;
    write_owner_only(&key_file, &key.to_line()).map_err(|source| File(key_file, source))?;
    EvidenceDatabase::open(directory, true)
        .and_then(|mut database| {
            database.write(|log| log.insert_log(&key.verify_key().name, &format_time(now)))
        })
        .map_err(|source| Database(file, source))?;
    Ok(OpenEvidenceLog {
        former_damage,
        ..open_existing(directory)?
    })
}

/// Opens an existing log. Does not detect an older copy of the database.
///
/// # Errors
/// There is no log, or it cannot be read, or its key is missing or wrong.
pub fn open_existing(directory: &Path) -> Result<OpenEvidenceLog, OpenError> {
    let file = directory.join(KEY_FILE);
    let of_database = |source| Database(directory.join(DATABASE_FILE), source);
    read_log(directory).map_err(|error| match error {
        Damaged(_) => match read_own_file(&file).map(|text| SigningKey::parse(&text)) {
            Err(source) => File(file, source),
            Ok(Err(source)) => Key(file, source),
            Ok(Ok(_)) => of_database(Damaged(OtherKey)),
        },
        error => of_database(error),
    })
}

/// `DatabaseError::Damaged` if the database or the key is missing while other files are there, the
/// database is an older copy, or the last entry of a chain is damaged.
fn read_undamaged_log(directory: &Path) -> Result<OpenEvidenceLog, DatabaseError> {
    let [has_database, has_key, has_runs] =
        [DATABASE_FILE, KEY_FILE, RUN_COUNT_FILE].map(|name| directory.join(name).exists());
    if !has_database && (has_key || has_runs) {
        return Err(Damaged(DatabaseMissing));
    }
    let log = read_log(directory)?;
    if !log.database.is_whole_at_ends()? {
        return Err(Damaged(Unreadable));
    }
    let runs: Option<u64> = read_own_file(&directory.join(RUN_COUNT_FILE))
        .ok()
        .and_then(|text| text.trim().parse().ok());
    match runs {
        Some(runs) if log.state.run_count < runs => Err(Damaged(OlderCopy)),
        None if log.state.run_count > 1 => Err(Damaged(RunCountMissing)),
        _ => Ok(log),
    }
}

/// `DatabaseError::Damaged` if the private key does not fit the database, `DatabaseError::NoLog`
/// without a database.
fn read_log(directory: &Path) -> Result<OpenEvidenceLog, DatabaseError> {
    if !directory.join(DATABASE_FILE).exists() {
        return Err(NoLog);
    }
    let database = EvidenceDatabase::open(directory, false)?;
    let state = database.state()?.ok_or(NoLog)?;
    let key = read_signing_key(directory, &state.id, database.rotated_key()?.as_deref())
        .ok_or(Damaged(KeyLost))?;
    Ok(OpenEvidenceLog {
        database,
        key,
        state,
        former_damage: None,
    })
}

/// The private key of a log; `None` if no file has it. `rotated` is the present public key if the
/// key was ever rotated. Finishes a rotation that a crash interrupted after the database had the
/// new key: renames the file of the new key.
pub fn read_signing_key(directory: &Path, log: &str, rotated: Option<&str>) -> Option<SigningKey> {
    let read = |name: &str| SigningKey::parse(&read_own_file(&directory.join(name)).ok()?).ok();
    let fits = |key: &SigningKey| {
        let key = key.verify_key();
        key.name == log && rotated.is_none_or(|rotated| key.to_line() == rotated)
    };
    read(KEY_FILE).filter(fits).or_else(|| {
        let next = read(NEXT_KEY_FILE).filter(|key| rotated.is_some() && fits(key));
        // A running command may do the same.
        next.inspect(|_| {
            drop(fs::rename(
                directory.join(NEXT_KEY_FILE),
                directory.join(KEY_FILE),
            ))
        })
        .or_else(|| read(KEY_FILE).filter(fits))
    })
}

/// Writes the next private key beside the present one. It is used once the database has its public
/// key.
///
/// # Errors
/// It cannot be written.
pub fn write_next_key(directory: &Path, key: &SigningKey) -> io::Result<()> {
    let file = directory.join(NEXT_KEY_FILE);
    let _ = fs::remove_file(&file);
    write_owner_only(&file, &key.to_line())?;
    fs::File::open(directory)?.sync_all()
}

fn is_corrupt_file(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    matches!(
        error.sqlite_error_code(),
        Some(DatabaseCorrupt | NotADatabase)
    )
}

/// Appends `.former-` and the time to the names of the log's files.
fn rename_damaged_files(directory: &Path, now: SystemTime) -> io::Result<()> {
    let suffix = format_time(now).replace([':', '.'], "-");
    let journal = format!("{DATABASE_FILE}-wal");
    let memory = format!("{DATABASE_FILE}-shm");
    for name in [
        DATABASE_FILE,
        &journal,
        &memory,
        KEY_FILE,
        NEXT_KEY_FILE,
        RUN_COUNT_FILE,
    ] {
        let former = directory.join(format!("{name}.former-{suffix}"));
        if let Err(error) = fs::rename(directory.join(name), former)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(error);
        }
    }
    Ok(())
}

/// Replaces the file that counts processes, after the database has the same number.
///
/// # Errors
/// It cannot be written.
pub fn write_run_count(directory: &Path, runs: u64) -> io::Result<()> {
    let file = directory.join(RUN_COUNT_FILE);
    let fresh = directory.join(format!("{RUN_COUNT_FILE}.new"));
    let _ = fs::remove_file(&fresh);
    write_owner_only(&fresh, &runs.to_string())?;
    fs::rename(fresh, file)
}

/// Writes a line into a new file that only this user may read.
fn write_owner_only(file: &Path, line: &str) -> io::Result<()> {
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file)?;
    file.write_all(format!("{line}\n").as_bytes())?;
    file.sync_all()
}
