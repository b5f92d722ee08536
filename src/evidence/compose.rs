//! [`write_case`] writes a case of one log or of several: each instance of crawlgate has a log of its own. Logs on this machine
//! are opened. From another machine, the case that was exported there is taken whole ([`read_joined`]): a copied log would sign
//! other checkpoints than the log itself.

use super::case::{export, nothing};
use super::parts::{REPORT, join};
use super::{
    CaseFindings, CaseSpan, ExportError, Files, NotAnArchive, OpenLog, Stray, VerifyKey, examine, manifest,
    named_twice, report, split, tar,
};
use std::time::SystemTime;

/// Why there is no case.
#[derive(Debug, thiserror::Error)]
pub enum ComposeError {
    /// A log has no case.
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
    /// The logs are not different logs of one crawler on one site.
    #[error("the logs are not of one case: {0}")]
    Other(String),
}

/// A log of a case that another machine exported.
pub struct Joined {
    files: Files,
    key: VerifyKey,
}

/// The logs of a case that was exported elsewhere. Their keys are taken from the case. A third party that verifies the case
/// uses the keys that it got from the operator.
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

/// Refuses logs of different crawlers or sites, and a log that is there twice.
fn are_of_one_case(findings: &CaseFindings) -> Result<(), ComposeError> {
    let Some(first) = findings.logs.first() else { return Ok(()) };
    for log in &findings.logs {
        if (&log.site, &log.crawler) != (&first.site, &first.crawler) {
            let other =
                format!("one is about {} on {}, one about {} on {}", first.crawler, first.site, log.crawler, log.site);
            return Err(ComposeError::Other(other));
        }
    }
    match named_twice(&findings.logs) {
        Some(log) => Err(ComposeError::Other(format!("the log {log} is there twice"))),
        None => Ok(()),
    }
}
