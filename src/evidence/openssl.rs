//! [`verify_stamps`] checks the signatures of the timestamps in a case (an excerpt of the evidence log, as one file).
//! It runs the program `openssl`, which a third party can use for the same check.

use super::{CaseFindings, Files, Findings, NotACase, read_logs, timestamp};
use std::path::Path;
use std::{fs, io};

/// What stays unknown while no authority was given.
pub const UNCHECKED: &str =
    "whether the authorities signed the timestamps: `verify --tsa-ca PEM` checks it with the program openssl";

/// Why the signatures cannot be checked.
#[derive(Debug, thiserror::Error)]
pub enum StampCheckError {
    /// There is no such program.
    #[error(
        "cannot run `{COMMAND}`: {0}; no signature of a timestamp was checked. Install openssl, or leave --tsa-ca out and run \
         this command elsewhere"
    )]
    NoProgram(io::Error),
    /// The files for openssl cannot be written.
    #[error("cannot write the files for openssl: {0}")]
    Files(#[from] io::Error),
    /// The file is no case.
    #[error(transparent)]
    NotACase(#[from] NotACase),
}

const COMMAND: &str = "openssl ts -verify -data checkpoints/NUMBER.note -in timestamps/NUMBER-N.tsr -CAfile PEM";

/// Checks the signature of each timestamp of a case by the certificates of authorities, as of the time that it says: a
/// certificate may have expired since.
///
/// # Errors
/// See [`StampCheckError`].
pub fn verify_stamps(
    archive: &[u8],
    authorities: &Path,
    mut findings: CaseFindings,
) -> Result<CaseFindings, StampCheckError> {
    if findings.logs.is_empty() {
        return Ok(findings);
    }
    for (files, findings) in read_logs(archive)?.iter().zip(&mut findings.logs) {
        verify_log(files, authorities, findings)?;
    }
    Ok(CaseFindings::of(findings.logs))
}

fn verify_log(files: &Files, authorities: &Path, findings: &mut Findings) -> Result<(), StampCheckError> {
    let directory = tempfile::tempdir()?;
    let (note, response) = (directory.path().join("note"), directory.path().join("tsr"));
    for (file, octets) in files.iter().filter(|(file, _)| file.starts_with("timestamps/")) {
        let covered = file.replace("timestamps/", "checkpoints/");
        let covered = covered.rsplit_once('-').map(|(path, _)| format!("{path}.note")).unwrap_or_default();
        // A timestamp of something else is a fault already.
        let (Some(stamp), Some(text)) = (timestamp::read(octets), files.get(&covered)) else { continue };
        fs::write(&note, text)?;
        fs::write(&response, octets)?;
        let mut command = std::process::Command::new("openssl");
        command.args(["ts", "-verify", "-data"]).arg(&note).arg("-in").arg(&response);
        command.arg("-CAfile").arg(authorities);
        if let Some(seconds) = stamp.seconds() {
            command.arg("-attime").arg(seconds.to_string());
        }
        let done = command.output().map_err(StampCheckError::NoProgram)?;
        if done.status.success() {
            findings.holds.push(format!("{file} is signed by an authority of --tsa-ca, says openssl"));
        } else {
            let said = String::from_utf8_lossy(&done.stderr);
            let said =
                said.lines().filter(|line| !line.starts_with("Using configuration")).collect::<Vec<_>>().join("; ");
            findings.faults.push(format!("{file} is not signed by an authority of --tsa-ca, says openssl: {said}"));
        }
    }
    findings.unknown.retain(|unknown| unknown != UNCHECKED);
    Ok(())
}
