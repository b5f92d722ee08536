//! [`examine_logs`] checks the evidence logs in a case (an excerpt of logs, as one file), and adds
//! a finding for each fault. It uses only the files of the logs and their public keys. It does not
//! trust the manifest (a signed list of the files): the owner of the private key could change a
//! file, and sign a new manifest. The submodule `chains` checks log entries and checkpoints (signed
//! summaries of a log), and `contents` checks the other files.

mod chains;
mod contents;

use super::canonical::parse_canonical;
use super::requests::{CaseRobotsEvidence, CheckedLog, RobotsFiles, add_log_findings};
use super::{
    CHAIN_FILES, CaseFiles, CaseScope, LogFindings, LogKeys, VerifyKey, file_text, proofs,
};
use crate::finding::Finding;
use chains::{check_beginnings, check_heads, read_chains, read_checkpoints};
use contents::{check_timestamps, read_documents, read_personal_values};
use serde_json::{Map, Value};

/// Checks the files of each log by its key, without manifest and report. Returns the findings about
/// each log, in the same order. Requests are judged by the robots.txt files and publications of all
/// logs together.
pub fn examine_logs(logs: &[(&CaseFiles, &VerifyKey)]) -> Vec<LogFindings> {
    let mut checked: Vec<CheckedLog> = logs
        .iter()
        .map(|(files, key)| {
            let mut log = CheckedLog::default();
            if let Err(fault) = log.check(files, key) {
                log.findings.faults.push(fault);
            }
            log
        })
        .collect();
    let robots = checked
        .iter_mut()
        .flat_map(|log| std::mem::take(&mut log.robots))
        .collect();
    let all = CaseRobotsEvidence::new(RobotsFiles::new(robots), &checked);
    let mut findings = Vec::new();
    for (log, (files, _)) in checked.into_iter().zip(logs) {
        let mut found = log.findings;
        add_log_findings(&log.chains, &log.personal, &all, &mut found);
        proofs::add_proof_findings(
            &log.chains[0],
            &log.earlier,
            &log.personal,
            files,
            &mut found,
        );
        findings.push(found);
    }
    findings
}

impl CheckedLog {
    /// Checks keys, hashes, numbers and times, and that the files are exactly those that entries
    /// name.
    ///
    /// # Errors
    /// `case.json` or the keys cannot be read. Other faults are added to the findings.
    fn check(&mut self, files: &CaseFiles, key: &VerifyKey) -> Result<(), Finding> {
        let findings = &mut self.findings;
        let unreadable = Finding::new("unreadable-case", "case.json cannot be read");
        let description = case_description(files).ok_or(unreadable)?;
        for (name, value) in [
            ("site", &mut findings.site),
            ("crawler", &mut findings.crawler),
            ("from", &mut findings.from),
            ("to", &mut findings.to),
            ("log", &mut findings.log),
        ] {
            description
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .clone_into(value);
        }
        if findings.log != key.name {
            findings.add_fault(
                "other-log",
                format!(
                    "the case is from the log {}, but the key is that of the log {}",
                    findings.log, key.name
                ),
            );
        }
        let keys = read_log_keys(files, key)?;
        check_key_files(files, &keys, findings);
        let names = CaseScope::chain_names(&findings.site, &findings.crawler);
        self.chains = read_chains(files, &names, key, findings);
        let checkpoints = read_checkpoints(files, &names, &keys, findings);
        for ((chain, name), file) in self.chains.iter().zip(&names).zip(CHAIN_FILES) {
            check_heads(chain, name, &checkpoints, file, findings);
        }
        check_beginnings(&self.chains, &names, &checkpoints, findings);
        check_timestamps(files, &checkpoints, findings);
        self.earlier = proofs::read_earlier_proofs(files, &self.chains[0], findings);
        let entries = || self.chains.iter().flatten().chain(&self.earlier);
        self.personal = read_personal_values(files, entries(), findings);
        self.robots = read_documents(files, entries(), findings);
        Ok(())
    }
}

/// Adds how often the key was changed, and a fault if the key files do not have the present one.
fn check_key_files(files: &CaseFiles, keys: &LogKeys, findings: &mut LogFindings) {
    if keys.change_count() > 0 {
        let times = if keys.change_count() == 1 {
            "once".to_owned()
        } else {
            format!("{} times", keys.change_count())
        };
        findings.add_check(
            "key-changes",
            format!("the key was changed {times}; the old and the new key signed each change"),
        );
    }
    let Some(last) = keys.current() else { return };
    for (file, expected) in [
        ("key.vkey", format!("{}\n", last.to_line())),
        ("key.pem", last.to_pem()),
    ] {
        if files.get(file).map(Vec::as_slice) != Some(expected.as_bytes()) {
            findings.add_fault("key-file", format!("{file} is not the key of the log"));
        }
    }
}

/// A field of `case.json`, unchecked.
pub fn case_text(files: &CaseFiles, field: &str) -> Option<String> {
    Some(case_description(files)?.get(field)?.as_str()?.to_owned())
}

/// The keys of the log by the signed notes in the case. The trusted key must be one of them.
///
/// # Errors
/// As for `LogKeys::from_notes`.
pub fn read_log_keys(files: &CaseFiles, trusted: &VerifyKey) -> Result<LogKeys, Finding> {
    LogKeys::from_notes(
        trusted,
        files
            .iter()
            .filter(|(file, _)| file.starts_with("keys/"))
            .map(|(_, note)| str::from_utf8(note).unwrap_or_default()),
    )
}

/// The fields of `case.json`; `None` if it is missing or not canonical.
fn case_description(files: &CaseFiles) -> Option<Map<String, Value>> {
    parse_canonical(file_text(files, "case.json")?.strip_suffix('\n')?)
}
