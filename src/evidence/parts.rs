//! The layout of files in a case, that is an excerpt of one evidence log or several, as one
//! archive. [`join`] puts the files of the logs into one set, and [`read_logs`] takes them apart
//! again. A case of one log has its files at the top. A case of several logs has the files of each
//! log below `logs/1/`, `logs/2/` and so on, each complete by itself, and one report beside them.

use super::{Files, tar};
use std::collections::BTreeMap;

/// The report beside several logs, and in each.
pub const REPORT: &str = "report.html";

/// A file is no case.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum NotACase {
    /// It is no archive.
    #[error("this is no archive as crawlgate writes it: its structure was changed")]
    NoArchive,
    /// A file of the archive is not that of a log.
    #[error("{0} belongs to no log of the case")]
    Stray(String),
}

impl NotACase {
    /// Its id.
    pub fn id(&self) -> &'static str {
        match self {
            NotACase::NoArchive => "no-archive",
            NotACase::Stray(_) => "stray-file",
        }
    }
}

/// The files of a case. One log has its files at the top, and then `report` is not used; several
/// logs have theirs below `logs/1/`, `logs/2/` and so on, with `report` beside them.
pub fn join(logs: Vec<Files>, report: String) -> Files {
    let mut logs = logs;
    if logs.len() == 1 {
        return logs.remove(0);
    }
    let mut all: Files = [(REPORT.to_owned(), report.into_bytes())].into();
    for (number, files) in (1..).zip(logs) {
        all.extend(
            files
                .into_iter()
                .map(|(path, bytes)| (format!("logs/{number}/{path}"), bytes)),
        );
    }
    all
}

/// The files of each log of a case.
///
/// # Errors
/// The octets are no archive, a file belongs to no log, or a log is missing.
pub fn read_logs(archive: &[u8]) -> Result<Vec<Files>, NotACase> {
    split(tar::read(archive).ok_or(NotACase::NoArchive)?)
}

/// Takes the files of a case apart, by log: undoes `join`. The report beside several logs is left
/// out.
fn split(files: Files) -> Result<Vec<Files>, NotACase> {
    if !files.keys().any(|path| path.starts_with("logs/")) {
        return Ok(vec![files]);
    }
    let mut logs: BTreeMap<usize, Files> = BTreeMap::new();
    for (path, bytes) in files {
        if path == REPORT {
            continue;
        }
        let part = path
            .strip_prefix("logs/")
            .and_then(|rest| rest.split_once('/'));
        let part =
            part.and_then(|(number, file)| Some((number.parse::<usize>().ok()?, number, file)));
        // One spelling of a number alone.
        match part.filter(|(number, text, _)| *number > 0 && number.to_string() == *text) {
            Some((number, _, file)) => drop(
                logs.entry(number)
                    .or_default()
                    .insert(file.to_owned(), bytes),
            ),
            None => return Err(NotACase::Stray(path)),
        }
    }
    match logs
        .keys()
        .zip(1..)
        .find(|(number, expected)| **number != *expected)
    {
        Some((number, _)) => Err(NotACase::Stray(format!("logs/{number}/"))),
        None => Ok(logs.into_values().collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(name: &str) -> Files {
        [("case.json".to_owned(), name.as_bytes().to_vec())].into()
    }

    #[test]
    fn logs_are_read_as_they_were_joined() {
        for logs in [
            vec![log("a")],
            vec![log("a"), log("b")],
            (0..12).map(|_| log("a")).collect(),
        ] {
            assert_eq!(split(join(logs.clone(), "page".into())), Ok(logs));
        }
    }

    #[test]
    fn files_of_no_log_are_refused() {
        for path in [
            "more.txt",
            "logs/x/a",
            "logs/02/a",
            "logs/0/a",
            "logs/4/a",
            "logs/2",
            "keys/1.note",
        ] {
            let mut files = join(vec![log("a"), log("b")], String::new());
            files.insert(path.to_owned(), Vec::new());
            assert!(split(files).is_err(), "{path}");
        }
    }
}
