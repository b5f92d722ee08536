//! The manifest of a case (an excerpt of the evidence log, as one file): a signed list of all its
//! files in the format of `sha256sum`. [`add_manifest`] makes it, [`check_manifest`] compares the
//! files with it.

use super::{CaseFiles, Hash, SigningKey, VerifyKey, file_text};
use crate::finding::Finding;

pub const MANIFEST_FILE: &str = "manifest.txt";

/// A line for each file except the manifest.
fn manifest_text(files: &CaseFiles) -> String {
    files
        .iter()
        .filter(|(file, _)| *file != MANIFEST_FILE)
        .map(|(file, bytes)| manifest_line(file, bytes))
        .collect()
}

pub fn manifest_line(file: &str, bytes: &[u8]) -> String {
    format!("{}  {file}\n", Hash::digest(&[bytes]))
}

/// Adds or replaces the signed manifest of all other files.
pub fn add_manifest(files: &mut CaseFiles, key: &SigningKey) {
    files.insert(
        MANIFEST_FILE.to_owned(),
        key.sign_note(&manifest_text(files)).into_bytes(),
    );
}

/// Checks that the manifest covers exactly these files, and returns their number without itself.
///
/// # Errors
/// `manifest-unsigned`: the manifest is missing, or not signed by `key`. `manifest-other-files`:
/// the files are not those of the manifest; the message names the first that differs.
pub fn check_manifest(files: &CaseFiles, key: &VerifyKey) -> Result<usize, Finding> {
    let signed = file_text(files, MANIFEST_FILE)
        .and_then(|note| key.open_note(note))
        .ok_or_else(|| {
            Finding::new(
                "manifest-unsigned",
                "manifest.txt is missing, or the key did not sign it",
            )
        })?;
    let found = manifest_text(files);
    if found == signed {
        return Ok(files.len() - 1);
    }
    let file = found
        .lines()
        .zip(signed.lines())
        .find(|(found, signed)| found != signed)
        .and_then(|(found, _)| found.split_once("  "))
        .map_or("the files", |(_, file)| file);
    Err(Finding::new(
        "manifest-other-files",
        format!("manifest.txt does not match {file}: files were changed, added or removed"),
    ))
}
