//! The manifest of a case (an excerpt of the evidence log, as one file): a signed list of all files
//! in it, with a line for each as `sha256sum` writes it. [`add`] makes the manifest, and [`check`]
//! compares the files with it.

use super::{Files, Hash, SigningKey, VerifyKey, text_of};
use crate::finding::Finding;

/// The name of the manifest in the case.
pub const FILE: &str = "manifest.txt";

/// The text of the manifest: a line for each file but the manifest itself.
fn text(files: &Files) -> String {
    let files = files.iter().filter(|(file, _)| *file != FILE);
    files.map(|(file, bytes)| line(file, bytes)).collect()
}

/// The line of a file.
pub fn line(file: &str, bytes: &[u8]) -> String {
    format!("{}  {file}\n", Hash::of(&[bytes]))
}

/// Adds the manifest of all other files, signed by the key, in place of one that is there.
pub fn add(files: &mut Files, key: &SigningKey) {
    let note = key.sign(&text(files));
    files.insert(FILE.to_owned(), note.into_bytes());
}

/// How many files the manifest covers, if these are all files and no other ones. The manifest
/// itself does not count.
///
/// # Errors
/// `manifest-unsigned`: the manifest is missing, or not signed by `key`. `manifest-other-files`:
/// the files are not those of the manifest; the message names the first that differs.
pub fn check(files: &Files, key: &VerifyKey) -> Result<usize, Finding> {
    let signed = text_of(files, FILE).and_then(|note| key.open(note));
    let signed = signed.ok_or_else(|| {
        let message = "manifest.txt is missing, or the key did not sign it";
        Finding::new("manifest-unsigned", message)
    })?;
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
    Err(Finding::new(
        "manifest-other-files",
        format!("manifest.txt does not fit {file}: files were changed, added or removed"),
    ))
}
