//! The certificate of the demo. It is self-signed.

use crate::cli::Failure;
use crate::settings::CertificateFiles;
use std::fs;
use std::path::Path;

/// Makes a certificate for this machine, and writes it to this directory.
pub(super) fn make(directory: &Path) -> Result<CertificateFiles, Failure> {
    let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let made = rcgen::generate_simple_self_signed(names)
        .map_err(|error| Failure::CouldNot(format!("cannot make a certificate: {error}")))?;
    let files = CertificateFiles { certificate: directory.join("demo.pem"), key: directory.join("demo.key") };
    fs::write(&files.certificate, made.cert.pem())?;
    fs::write(&files.key, made.signing_key.serialize_pem())?;
    Ok(files)
}
