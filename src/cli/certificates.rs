//! The certificates of a settings file, as `check` looks at them.

use crate::edge::{CertificateProblem, Certificates};
use crate::settings::SettingsFile;
use crate::time::Timestamp;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::SystemTime;

/// What is wrong with the certificates that a settings file names.
pub(super) fn problems(file: &SettingsFile) -> Vec<CertificateProblem> {
    match Certificates::open(&file.listen, &Arc::default()) {
        Ok((certificates, _)) => {
            let mut problems = certificates.problems(Timestamp::from(SystemTime::now()));
            problems.extend(certificates.uncovered(file.origins.iter().flat_map(|origin| &origin.hosts)));
            problems
        }
        Err(error) => vec![CertificateProblem { is_error: true, text: error.to_string() }],
    }
}

/// One line each.
pub(super) fn print(out: &mut impl Write, problems: &[CertificateProblem]) -> io::Result<()> {
    for CertificateProblem { is_error, text } in problems {
        writeln!(out, "{}: {text}\n", if *is_error { "error" } else { "warning" })?;
    }
    Ok(())
}
