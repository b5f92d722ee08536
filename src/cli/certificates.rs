//! The certificates of a settings file, as `check` looks at them.

use super::{Failure, server_flags};
use crate::edge::{CertificateProblem, Certificates};
use crate::time::Timestamp;
use std::io::{self, Write};
use std::path::Path;
use std::time::SystemTime;

/// What is wrong with the certificates that this settings file names.
pub(super) fn problems(settings: &Path) -> Result<Vec<CertificateProblem>, Failure> {
    let file = server_flags::settings_file(settings)?;
    Ok(match Certificates::open(&file.listen) {
        Ok((certificates, _)) => {
            let mut problems = certificates.problems(Timestamp::from(SystemTime::now()));
            problems.extend(certificates.uncovered(file.origins.iter().flat_map(|origin| &origin.hosts)));
            problems
        }
        Err(error) => vec![CertificateProblem { is_error: true, text: error.to_string() }],
    })
}

/// One line each.
pub(super) fn print(problems: &[CertificateProblem]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for CertificateProblem { is_error, text } in problems {
        writeln!(out, "{}: {text}\n", if *is_error { "error" } else { "warning" })?;
    }
    Ok(())
}
