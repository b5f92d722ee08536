//! A case of one log or of several: [`write_case`]. Each instance of crawlgate has a log of its own. Logs on this machine are
//! opened; of another machine, the case that was exported there is taken whole ([`read_joined`]): a log is never copied, because
//! the copy would sign other checkpoints than the log itself.

use super::case::{CaseSpan, ExportError, export, nothing};
use super::examine::examine;
use super::findings::CaseFindings;
use super::manifest;
use super::note::VerifyKey;
use super::opening::OpenLog;
use super::parts::{REPORT, Stray, join, split};
use super::report;
use super::tar::{self, Files, NotAnArchive};
use std::time::SystemTime;

/// Why there is no case.
#[derive(Debug, thiserror::Error)]
pub enum ComposeError {
    /// A log has none.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// A file to join is no archive.
    #[error(transparent)]
    NoArchive(#[from] NotAnArchive),
    /// A file to join has other files in it.
    #[error(transparent)]
    Stray(#[from] Stray),
    /// A log to join has no key.
    #[error("log {0} of it has no key that can be read")]
    NoKey(usize),
    /// It is about something else.
    #[error("the logs are not of one case: {0}")]
    Other(String),
}

/// A log of a case that another machine exported.
pub struct Joined {
    files: Files,
    key: VerifyKey,
}

/// The logs of a case that was exported elsewhere. Their keys are taken from the case: whoever verifies it has their own.
///
/// # Errors
/// The file is no case.
pub fn read_joined(archive: &[u8]) -> Result<Vec<Joined>, ComposeError> {
    let mut joined = Vec::new();
    for (number, files) in (1..).zip(split(tar::read(archive)?)?) {
        let key = files.get("key.vkey").and_then(|key| VerifyKey::parse(std::str::from_utf8(key).ok()?).ok());
        joined.push(Joined { key: key.ok_or(ComposeError::NoKey(number))?, files });
    }
    Ok(joined)
}

/// The octets of a case, and what its check finds.
///
/// # Errors
/// See [`ComposeError`].
pub fn write_case(
    logs: &mut [OpenLog],
    joined: Vec<Joined>,
    span: &CaseSpan,
    now: SystemTime,
) -> Result<(Vec<u8>, CaseFindings), ComposeError> {
    let (mut parts, mut alone, mut has_crawler) = (Vec::new(), CaseFindings::default(), !joined.is_empty());
    for log in &mut *logs {
        let (exported, key) = (export(log, span, now)?, log.key.verify_key());
        has_crawler |= exported.has_crawler;
        let mut files = exported.files;
        alone = CaseFindings::of(examine(&[(&files, &key)]));
        files.insert(REPORT.to_owned(), report::page(&alone).into_bytes());
        manifest::add(&mut files, &log.key);
        parts.push(Joined { files, key });
    }
    // One log of several may have nothing of the crawler: it says so.
    if !has_crawler && let Some(log) = logs.first() {
        return Err(nothing(&log.database, span).into());
    }
    parts.extend(joined);
    let findings = match parts.as_slice() {
        [_] => alone,
        several => CaseFindings::of(examine(&several.iter().map(|part| (&part.files, &part.key)).collect::<Vec<_>>())),
    };
    are_of_one_case(&findings)?;
    let page = report::page(&findings);
    Ok((tar::write(&join(parts.into_iter().map(|part| part.files).collect(), page)), findings))
}

/// Different logs of one crawler on one site.
fn are_of_one_case(findings: &CaseFindings) -> Result<(), ComposeError> {
    for (place, log) in findings.logs.iter().enumerate() {
        let first = &findings.logs[0];
        if (&log.site, &log.crawler) != (&first.site, &first.crawler) {
            let other =
                format!("one is about {} on {}, one about {} on {}", first.crawler, first.site, log.crawler, log.site);
            return Err(ComposeError::Other(other));
        }
        if findings.logs[..place].iter().any(|before| before.log == log.log) {
            return Err(ComposeError::Other(format!("the log {} is there twice", log.log)));
        }
    }
    Ok(())
}
