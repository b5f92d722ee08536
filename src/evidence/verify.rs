//! [`verify`] checks a case (an excerpt of the evidence log, as one file) as a third party does: by
//! the octets of the file and the public key of each log in it.

use super::examine::{keys, log_of};
use super::{CaseFindings, Files, Findings, VerifyKey, examine, manifest, named_twice, read_logs};
use crate::finding::Finding;

/// Checks a case by public keys, one for each of its logs. If the case has one log and there is one
/// key, the log is checked by it whatever its name. A file that is no case, a log without a key,
/// and a log that is there twice give one fault and nothing else.
pub fn verify(archive: &[u8], trusted: &[VerifyKey]) -> CaseFindings {
    check(archive, trusted).unwrap_or_else(|fault| CaseFindings {
        faults: vec![fault],
        logs: Vec::new(),
    })
}

/// What was found in each log of a case; or the one fault by which the logs cannot be checked.
fn check(archive: &[u8], trusted: &[VerifyKey]) -> Result<CaseFindings, Finding> {
    let logs = read_logs(archive).map_err(|error| Finding::new(error.id(), error.to_string()))?;
    let mut keyed: Vec<(&Files, &VerifyKey)> = Vec::new();
    for (place, files) in logs.iter().enumerate() {
        let name = log_of(files);
        let of_it = trusted
            .iter()
            .filter(|key| Some(&key.name) == name.as_ref());
        // Of several keys with the name of the log, one that its notes about changes of the key
        // lead to.
        let key = of_it
            .clone()
            .find(|key| keys(files, key).is_ok())
            .or_else(|| of_it.clone().next());
        match (key, trusted, logs.len()) {
            (Some(key), ..) | (None, [key], 1) => keyed.push((files, key)),
            _ => {
                let name = name.unwrap_or_else(|| "without a name".to_owned());
                return Err(Finding::new(
                    "no-key",
                    format!("none of the keys is that of log {}, {name}", place + 1),
                ));
            }
        }
    }
    let mut findings = examine(&keyed);
    for ((files, key), findings) in keyed.iter().zip(&mut findings) {
        check_manifest(files, key, findings);
    }
    if let Some(log) = named_twice(&findings) {
        return Err(Finding::new(
            "log-twice",
            format!("the log {log} is in the case twice"),
        ));
    }
    Ok(CaseFindings::of(findings))
}

/// Checks the manifest by the key that signs now. Puts what holds, or the fault, before the other
/// findings.
fn check_manifest(files: &Files, key: &VerifyKey, findings: &mut Findings) {
    // What is wrong with the keys is among the findings.
    let last = keys(files, key).ok().and_then(|keys| keys.last().cloned());
    match manifest::check(files, last.as_ref().unwrap_or(key)) {
        Ok(covered) => {
            let message =
                format!("the manifest is signed by the key and names all {covered} files");
            findings.holds.insert(0, Finding::new("manifest", message));
        }
        Err(fault) => findings.faults.insert(0, fault),
    }
}
