//! Writes and reads the file of a case (an excerpt of the evidence log for a third party): a tar
//! archive of plain files, as POSIX ustar. [`write_archive`] always writes the same bytes for the
//! same files. [`read_archive`] reads the files, writes them again, and rejects the archive if the
//! bytes differ. So it detects every change of a tar header. A change inside a file is detected by
//! `manifest`, a signed list of the hashes of all files.

use std::collections::BTreeMap;

/// The files of a case by path.
pub type CaseFiles = BTreeMap<String, Vec<u8>>;

const BLOCK_SIZE: usize = 512;

/// `None` if the file is missing or not UTF-8.
pub fn file_text<'f>(files: &'f CaseFiles, path: &str) -> Option<&'f str> {
    str::from_utf8(files.get(path)?).ok()
}

/// Paths must be shorter than 100 bytes.
pub fn write_archive(files: &CaseFiles) -> Vec<u8> {
    let mut archive = Vec::new();
    for (path, content) in files {
        archive.extend(file_header(path, content.len()));
        archive.extend(content);
        archive.resize(archive.len().next_multiple_of(BLOCK_SIZE), 0);
    }
    archive.resize(archive.len() + 2 * BLOCK_SIZE, 0);
    archive
}

/// The ustar header of a file. Longer paths are cut to 99 bytes.
fn file_header(path: &str, size: usize) -> [u8; BLOCK_SIZE] {
    let mut header = [0; BLOCK_SIZE];
    for (place, field) in [
        (0, &path.as_bytes()[..path.len().min(99)]),
        (100, b"0000644\0"),
        (108, b"0000000\0"),
        (116, b"0000000\0"),
        (124, format!("{size:011o}\0").as_bytes()),
        (136, b"00000000000\0"),
        (148, b"        "),
        (156, b"0"),
        (257, b"ustar\x0000"),
    ] {
        header[place..place + field.len()].copy_from_slice(field);
    }
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header
}

/// `None` for everything that [`write_archive`] does not write: another header, order or padding, or
/// bytes after the end.
pub fn read_archive(archive: &[u8]) -> Option<CaseFiles> {
    let mut files = CaseFiles::new();
    let mut rest = archive;
    while let Some((header, after)) = rest.split_at_checked(BLOCK_SIZE)
        && header[0] != 0
    {
        let name = header[..100].split(|byte| *byte == 0).next()?;
        let name = str::from_utf8(name).ok()?;
        let size = usize::from_str_radix(str::from_utf8(&header[124..135]).ok()?, 8).ok()?;
        files.insert(name.to_owned(), after.get(..size)?.to_vec());
        rest = after.get(size.checked_next_multiple_of(BLOCK_SIZE)?..)?;
    }
    (write_archive(&files) == archive).then_some(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample_files() -> CaseFiles {
        [("a.txt", "one"), ("chains/b.jsonl", ""), ("c", "three\n")]
            .map(|(path, content)| (path.to_owned(), content.as_bytes().to_vec()))
            .into()
    }

    #[test]
    fn tar_reads_an_archive() {
        let directory = tempfile::tempdir().expect("a directory");
        let archive = directory.path().join("case.tar");
        std::fs::write(&archive, write_archive(&sample_files())).expect("written");
        let tar = std::process::Command::new("tar")
            .arg("-xf")
            .arg(&archive)
            .arg("-C")
            .arg(directory.path())
            .status();
        assert!(tar.expect("tar").success());
        assert_eq!(
            std::fs::read(directory.path().join("c")).expect("a file"),
            b"three\n"
        );
        assert_eq!(
            std::fs::read(directory.path().join("chains/b.jsonl")).expect("a file"),
            b""
        );
    }

    #[test]
    fn unordered_or_longer_archive_is_rejected() {
        let archive = write_archive(&sample_files());
        assert_eq!(read_archive(&archive), Some(sample_files()));
        let entry = |path: &str| [&file_header(path, 1)[..], b"x", &[0; BLOCK_SIZE - 1]].concat();
        let end = [0; 2 * BLOCK_SIZE];
        assert!(read_archive(&[&entry("a")[..], &entry("b"), &end].concat()).is_some());
        for wrong in [
            [&entry("b")[..], &entry("a"), &end].concat(),
            [&entry("a")[..], &entry("a"), &end].concat(),
            [&archive[..], &[0; BLOCK_SIZE]].concat(),
            archive[..archive.len() - BLOCK_SIZE].to_vec(),
        ] {
            assert_eq!(read_archive(&wrong), None);
        }
    }

    proptest! {
        #[test]
        fn changed_byte_is_rejected_or_changes_a_file(place in 0usize..5_000, change in 1u8..=255) {
            let mut archive = write_archive(&sample_files());
            let place = place % archive.len();
            archive[place] ^= change;
            prop_assert!(read_archive(&archive) != Some(sample_files()));
        }
    }
}
