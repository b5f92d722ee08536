//! [`verify_case`] checks a case (an excerpt of the evidence log, as one file) as a third party
//! does: it needs only the file and the public key of each log in it.

use super::case::SOFTWARE;
use super::case_layout::{REPORT_FILE, SCRIPTS};
use super::examine::{case_text, read_log_keys};
use super::report::render_case_page;
use super::{
    CaseFiles, CaseFindings, LogFindings, VerifyKey, duplicate_log, examine_logs, manifest,
    read_logs,
};
use crate::finding::Finding;

/// Checks a case by public keys, one for each of its logs. A single key is used for a single log
/// whatever its name. If the file is not a case, or a log has no key or is there twice, that is the
/// only fault.
pub fn verify_case(archive: &[u8], trusted: &[VerifyKey]) -> CaseFindings {
    verify_logs(archive, trusted).unwrap_or_else(|fault| CaseFindings {
        faults: vec![fault],
        logs: Vec::new(),
    })
}

/// # Errors
/// The fault by which the logs cannot be checked.
fn verify_logs(archive: &[u8], trusted: &[VerifyKey]) -> Result<CaseFindings, Finding> {
    let case = read_logs(archive).map_err(|error| Finding::new(error.id(), error.to_string()))?;
    let logs = &case.logs;
    let mut keyed: Vec<(&CaseFiles, &VerifyKey)> = Vec::new();
    for (place, files) in logs.iter().enumerate() {
        let name = case_text(files, "log");
        // Of several keys with the name of the log, one that its key changes lead to.
        let key = trusted
            .iter()
            .filter(|key| Some(&key.name) == name.as_ref())
            .min_by_key(|key| read_log_keys(files, key).is_err());
        match (key, trusted, logs.len()) {
            (Some(key), ..) | (None, [key], 1) => keyed.push((files, key)),
            _ => {
                let name = name.unwrap_or_else(|| "without a name".to_owned());
                return Err(Finding::new(
                    "no-key",
                    format!(
                        "the key of log {} ({name}) is missing: add --key",
                        place + 1
                    ),
                ));
            }
        }
    }
    let mut findings = examine_logs(&keyed);
    let together = CaseFindings::from_logs(findings.clone());
    let has_common_report = logs.len() > 1 || case.common_report.is_some();
    for ((files, key), findings) in keyed.iter().zip(&mut findings) {
        // The report of one of several logs was made without the other ones.
        let alone =
            (logs.len() > 1).then(|| CaseFindings::from_logs(examine_logs(&[(*files, *key)])));
        let page = files.get(REPORT_FILE);
        add_page_finding(page, files, alone.as_ref().unwrap_or(&together), findings);
        add_manifest_finding(files, key, findings);
    }
    if has_common_report && let (Some(files), Some(first)) = (logs.first(), findings.first_mut()) {
        add_page_finding(case.common_report.as_ref(), files, &together, first);
    }
    if let Some(log) = duplicate_log(&findings) {
        return Err(Finding::new(
            "log-twice",
            format!("the log {log} is in the case twice"),
        ));
    }
    Ok(CaseFindings::from_logs(findings))
}

/// Makes a page of the case again from its entries (`case`), and compares. `files` are those of the
/// log whose crawlgate made the page; pages of other versions may differ. A case with faults has
/// another page.
fn add_page_finding(
    page: Option<&Vec<u8>>,
    files: &CaseFiles,
    case: &CaseFindings,
    findings: &mut LogFindings,
) {
    if !case.faults.is_empty() {
        return;
    }
    let several = if case.logs.len() > 1 {
        " of all logs"
    } else {
        ""
    };
    let maker = case_text(files, "software").unwrap_or_default();
    if maker != SOFTWARE {
        let message = format!(
            "whether {REPORT_FILE}{several} says what the entries say: it was made by {maker:?}, and this is {SOFTWARE}"
        );
        findings.add_unknown("page-of-other-version", message);
    } else if page.is_some_and(|page| *page == render_case_page(case).into_bytes()) {
        findings.add_check(
            "page",
            format!("{REPORT_FILE}{several} says what the entries say"),
        );
    } else {
        let message = format!(
            "{REPORT_FILE}{several} does not say what the entries say: it was edited, or another build of crawlgate made it"
        );
        findings.add_fault("page-differs", message);
    }
}

/// Checks the manifest by the present key. Inserts the result before the other findings. Warns of
/// scripts that are not those of this version.
fn add_manifest_finding(files: &CaseFiles, key: &VerifyKey, findings: &mut LogFindings) {
    // Faults of the keys are among the findings already.
    let last = read_log_keys(files, key)
        .ok()
        .and_then(|keys| keys.current().cloned());
    match manifest::check_manifest(files, last.as_ref().unwrap_or(key)) {
        Ok(covered) => {
            let message = format!("the key signed the manifest, and the {covered} files match it");
            findings.holds.insert(0, Finding::new("manifest", message));
        }
        Err(fault) => findings.faults.insert(0, fault),
    }
    let mut scripts = SCRIPTS.iter();
    if scripts.any(|(path, own)| files.get(*path).is_some_and(|file| file != own.as_bytes())) {
        findings.add_unknown(
            "other-scripts",
            "whether check.sh and check.py are safe to run: this version of crawlgate has other ones",
        );
    }
}
