//! The archive in which a case (an excerpt of the evidence log) is one file: a tar of plain files,
//! as POSIX ustar, by [`write`] and [`read`]. A set of files has exactly one archive, so even a
//! changed octet of a header is noticed.

use std::collections::BTreeMap;

/// Files by their path.
pub type Files = BTreeMap<String, Vec<u8>>;

const BLOCK: usize = 512;

/// The file at this path as text; `None` if there is none, or it is not UTF-8.
pub fn text_of<'f>(files: &'f Files, path: &str) -> Option<&'f str> {
    str::from_utf8(files.get(path)?).ok()
}

/// The archive of these files, sorted by path. Paths are shorter than 100 octets.
pub fn write(files: &Files) -> Vec<u8> {
    let mut archive = Vec::new();
    for (path, content) in files {
        archive.extend(header(path, content.len()));
        archive.extend(content);
        archive.resize(archive.len().next_multiple_of(BLOCK), 0);
    }
    archive.resize(archive.len() + 2 * BLOCK, 0);
    archive
}

/// The header of a file. Only the first 99 bytes of a path are written.
fn header(path: &str, size: usize) -> [u8; BLOCK] {
    let mut header = [0; BLOCK];
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
    let sum: u32 = header.iter().map(|octet| u32::from(*octet)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header
}

/// The files of an archive. `None` for all that [`write`] does not write: another header, order or
/// padding, or bytes after the end.
pub fn read(archive: &[u8]) -> Option<Files> {
    let mut files = Files::new();
    let mut rest = archive;
    loop {
        let (found, after) = rest.split_at_checked(BLOCK)?;
        if found == [0; BLOCK] {
            return (after == [0; BLOCK]).then_some(files);
        }
        let name = found[..100]
            .split(|octet| *octet == 0)
            .next()
            .unwrap_or_default();
        let name = str::from_utf8(name).ok()?;
        let size = usize::from_str_radix(str::from_utf8(&found[124..135]).ok()?, 8).ok()?;
        let (content, after) = after.split_at_checked(size.checked_next_multiple_of(BLOCK)?)?;
        let (content, padding) = content.split_at(size);
        let is_next = files
            .last_key_value()
            .is_none_or(|(last, _)| last.as_str() < name);
        if !is_next || found != header(name, size) || padding.iter().any(|byte| *byte != 0) {
            return None;
        }
        files.insert(name.to_owned(), content.to_vec());
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn files() -> Files {
        [("a.txt", "one"), ("chains/b.jsonl", ""), ("c", "three\n")]
            .map(|(path, content)| (path.to_owned(), content.as_bytes().to_vec()))
            .into()
    }

    #[test]
    fn an_archive_is_read_by_tar() {
        let directory = tempfile::tempdir().expect("a directory");
        let archive = directory.path().join("case.tar");
        std::fs::write(&archive, write(&files())).expect("written");
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
    fn archive_that_is_not_in_order_or_goes_on_is_refused() {
        let archive = write(&files());
        assert_eq!(read(&archive), Some(files()));
        let entry = |path: &str| [&header(path, 1)[..], b"x", &[0; BLOCK - 1]].concat();
        let end = [0; 2 * BLOCK];
        assert!(read(&[&entry("a")[..], &entry("b"), &end].concat()).is_some());
        for wrong in [
            [&entry("b")[..], &entry("a"), &end].concat(),
            [&entry("a")[..], &entry("a"), &end].concat(),
            [&archive[..], &[0; BLOCK]].concat(),
            archive[..archive.len() - BLOCK].to_vec(),
        ] {
            assert_eq!(read(&wrong), None);
        }
    }

    proptest! {
        #[test]
        fn each_changed_octet_is_refused_or_changes_a_file(place in 0usize..5_000, change in 1u8..=255) {
            let mut archive = write(&files());
            let place = place % archive.len();
            archive[place] ^= change;
            prop_assert!(read(&archive) != Some(files()));
        }
    }
}
