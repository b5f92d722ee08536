//! Names the files in a case (an excerpt of evidence logs for a third party, as one archive). If a
//! case has one log, the files of the log are at the top of the archive. If a case has several
//! logs, each log has a directory (`logs/1/`, `logs/2/` and so on), and a common report is at the
//! top. [`join_logs`] makes this layout, and [`read_logs`] reads it.

use super::{CaseFiles, tar};
use std::collections::BTreeMap;

use ArchiveError::*;

/// The report of a log, and the common one.
pub const REPORT_FILE: &str = "report.html";

/// The scripts that check a case without crawlgate.
pub const SCRIPTS: [(&str, &str); 2] = [
    ("check.sh", include_str!("scripts/check.sh")),
    ("check.py", include_str!("scripts/check.py")),
];

/// Why a file is not a case.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum ArchiveError {
    /// It is not an archive.
    #[error(
        "this is not a case, or its archive was changed or packed again: use the file as it was exported, or check the unpacked files with check.sh"
    )]
    Malformed,
    /// A file of the archive belongs to no log.
    #[error("{0} belongs to no log of the case")]
    UnknownFile(String),
}

impl ArchiveError {
    pub fn id(&self) -> &'static str {
        match self {
            Malformed => "no-archive",
            UnknownFile(_) => "stray-file",
        }
    }
}

/// `report` is used only for several logs.
pub fn join_logs(mut logs: Vec<CaseFiles>, report: String) -> CaseFiles {
    if logs.len() == 1 {
        return logs.remove(0);
    }
    let mut all: CaseFiles = [(REPORT_FILE.to_owned(), report.into_bytes())].into();
    for (number, files) in (1..).zip(logs) {
        all.extend(
            files
                .into_iter()
                .map(|(path, bytes)| (format!("logs/{number}/{path}"), bytes)),
        );
    }
    all
}

/// The files of a case.
#[derive(Debug, PartialEq)]
pub struct SplitCase {
    /// The files of each log.
    pub logs: Vec<CaseFiles>,
    /// The report of all logs, if each log has a directory.
    pub common_report: Option<Vec<u8>>,
}

/// The files of each log of a case, and the common report.
///
/// # Errors
/// The bytes are not an archive, a file belongs to no log, or a log is missing.
pub fn read_logs(archive: &[u8]) -> Result<SplitCase, ArchiveError> {
    split_logs(tar::read_archive(archive).ok_or(Malformed)?)
}

/// Undoes [`join_logs`].
fn split_logs(mut files: CaseFiles) -> Result<SplitCase, ArchiveError> {
    if !files.keys().any(|path| path.starts_with("logs/")) {
        return Ok(SplitCase {
            logs: vec![files],
            common_report: None,
        });
    }
    let common_report = files.remove(REPORT_FILE);
    let mut by_name: BTreeMap<String, CaseFiles> = BTreeMap::new();
    for (path, bytes) in files {
        let Some((name, file)) = path
            .strip_prefix("logs/")
            .and_then(|rest| rest.split_once('/'))
        else {
            return Err(UnknownFile(path));
        };
        by_name
            .entry(name.to_owned())
            .or_default()
            .insert(file.to_owned(), bytes);
    }
    let logs = (1..)
        .map_while(|number: usize| by_name.remove(&number.to_string()))
        .collect();
    match by_name.into_keys().next() {
        Some(name) => Err(UnknownFile(format!("logs/{name}/"))),
        None => Ok(SplitCase {
            logs,
            common_report,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log_files(name: &str) -> CaseFiles {
        [("case.json".to_owned(), name.as_bytes().to_vec())].into()
    }

    #[test]
    fn joined_logs_are_split_again() {
        for logs in [
            vec![log_files("a")],
            vec![log_files("a"), log_files("b")],
            (0..12).map(|_| log_files("a")).collect(),
        ] {
            let split = SplitCase {
                common_report: (logs.len() > 1).then(|| b"page".to_vec()),
                logs: logs.clone(),
            };
            assert_eq!(split_logs(join_logs(logs, "page".into())), Ok(split));
        }
    }

    #[test]
    fn files_of_no_log_are_rejected() {
        for path in [
            "more.txt",
            "logs/x/a",
            "logs/02/a",
            "logs/0/a",
            "logs/4/a",
            "logs/2",
            "keys/1.note",
        ] {
            let mut files = join_logs(vec![log_files("a"), log_files("b")], String::new());
            files.insert(path.to_owned(), Vec::new());
            assert!(split_logs(files).is_err(), "{path}");
        }
    }
}
