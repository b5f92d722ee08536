//! The manifest of a case (an excerpt of the evidence log, as one file): a signed list of all files
//! in it, with a line for each as `sha256sum` writes it. [`add`] makes the manifest, and [`check`]
//! compares the files with it.

use super::{Files, Hash, SigningKey, VerifyKey, text_of};

/// The name of the manifest in the case.
pub const FILE: &str = "manifest.txt";

/// What is wrong with the files of a case.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManifestFault {
    /// There is no manifest that the key signed.
    #[error("manifest.txt is missing, or the key did not sign it")]
    Unsigned,
    /// The files are not those of the manifest.
    #[error("manifest.txt does not fit {0}: files were changed, added or removed")]
    OtherFiles(String),
}

impl ManifestFault {
    /// Its id.
    pub fn id(&self) -> &'static str {
        match self {
            ManifestFault::Unsigned => "manifest-unsigned",
            ManifestFault::OtherFiles(_) => "manifest-other-files",
        }
    }
}

fn text(files: &Files) -> String {
    let files = files.iter().filter(|(file, _)| *file != FILE);
    files.map(|(file, bytes)| line(file, bytes)).collect()
}

/// The line of a file.
pub fn line(file: &str, bytes: &[u8]) -> String {
    format!("{}  {file}\n", Hash::of(&[bytes]))
}

/// Adds the manifest.
pub fn add(files: &mut Files, key: &SigningKey) {
    let note = key.sign(&text(files));
    files.insert(FILE.to_owned(), note.into_bytes());
}

/// How many files the manifest covers, if these are all files and no other ones.
///
/// # Errors
/// See [`ManifestFault`].
pub fn check(files: &Files, key: &VerifyKey) -> Result<usize, ManifestFault> {
    let note = text_of(files, FILE).ok_or(ManifestFault::Unsigned)?;
    let signed = key.open(note).map_err(|_| ManifestFault::Unsigned)?;
    let found = text(files);
    if found == signed {
        return Ok(files.len() - 1);
    }
    let differing = found
        .lines()
        .zip(signed.lines())
        .find(|(found, signed)| found != signed);
    let file = differing
        .and_then(|(found, _)| found.split_once("  "))
        .map_or("the files", |(_, file)| file);
    Err(ManifestFault::OtherFiles(file.to_owned()))
}
