//! Tests of log files that are renamed, removed or only partly written: which lines the file has,
//! and how many lines are counted as lost.

use super::*;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

const LINE: &str = "{\"n\":1}\n";

fn open_log(path: &Path) -> LogFile {
    let mut log = LogFile::new("log", path);
    write_lines(&mut log, "");
    log
}

fn read_text(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).expect("read")
}

fn write_lines(log: &mut LogFile, lines: &str) {
    log.write_lines(lines.as_bytes()).expect("written");
}

#[test]
fn removed_renamed_or_replaced_file_is_created_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let (path, moved) = (directory.path().join("log"), directory.path().join("moved"));
    let mut log = open_log(&path);
    write_lines(&mut log, LINE);
    fs::remove_file(&path).expect("removed");
    write_lines(&mut log, LINE);
    assert_eq!(read_text(&path), LINE);
    fs::rename(&path, &moved).expect("renamed");
    write_lines(&mut log, &LINE.repeat(2));
    assert_eq!(
        (read_text(&path), read_text(&moved)),
        (LINE.repeat(2), LINE.into())
    );
    fs::remove_file(&path)
        .and_then(|()| fs::write(&path, "theirs\n"))
        .expect("replaced");
    write_lines(&mut log, LINE);
    assert_eq!(read_text(&path), format!("theirs\n{LINE}"));
    // logrotate empties a file with `copytruncate`.
    write_lines(&mut log, &LINE.repeat(5));
    fs::File::options()
        .write(true)
        .open(&path)
        .and_then(|file| file.set_len(0))
        .expect("emptied");
    write_lines(&mut log, &LINE.repeat(7));
    assert_eq!(read_text(&path), LINE.repeat(7));
}

#[test]
fn new_and_rotated_files_are_closed_to_others() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("log");
    let mut log = open_log(&path);
    for _ in 0..2 {
        let mode = fs::metadata(&path).expect("a file").mode();
        assert_eq!(mode & 0o137, 0, "{mode:o}");
        fs::rename(&path, directory.path().join("moved")).expect("renamed");
        log.reopen().expect("opened again");
    }
}

#[test]
fn lines_are_lost_while_the_directory_is_missing() {
    let directory = tempfile::tempdir().expect("a directory");
    let (logs, moved) = (
        directory.path().join("logs"),
        directory.path().join("moved"),
    );
    let path = logs.join("log");
    fs::create_dir(&logs).expect("made");
    let mut log = open_log(&path);
    write_lines(&mut log, LINE);
    fs::rename(&logs, &moved).expect("moved");
    let lost = log
        .write_lines(LINE.repeat(3).as_bytes())
        .expect_err("its path cannot be opened");
    assert_eq!((lost.lines, lost.error.kind()), (3, ErrorKind::NotFound));
    assert_eq!(read_text(moved.join("log")), LINE);
    fs::create_dir(&logs).expect("made");
    write_lines(&mut log, LINE);
    assert_eq!(read_text(&path), LINE);
}

#[test]
fn torn_line_is_ended_before_the_next() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("log");
    fs::write(&path, format!("{LINE}{{\"torn")).expect("written");
    let mut log = open_log(&path);
    write_lines(&mut log, LINE);
    assert_eq!(read_text(&path), format!("{LINE}{{\"torn\n{LINE}"));
    // And before the file is opened again, so that the old and the new file can be read as one.
    let old = directory.path().join("log.1");
    log.append(b"{\"to").expect("written");
    fs::rename(&path, &old).expect("renamed");
    log.reopen().expect("opened again");
    assert!(read_text(&old).ends_with("{\"to\n"));
    write_lines(&mut log, LINE);
    assert_eq!(read_text(&path), LINE);
}

/// A socket that is not read takes a part of a write and then nothing, as a full disk does.
#[test]
fn partial_write_counts_the_missing_lines() {
    let directory = tempfile::tempdir().expect("a directory");
    let lines: String = (0..200_000)
        .map(|number| format!("{{\"number\":{number:06}}}\n"))
        .collect();
    let (mut reader, writer) = UnixStream::pair().expect("a pair");
    writer
        .set_nonblocking(true)
        .and_then(|()| reader.set_nonblocking(true))
        .expect("set");
    let file = File::from(OwnedFd::from(writer));
    let mut log = LogFile {
        file: Some(file),
        ..open_log(&directory.path().join("log"))
    };
    let mut read_written = || {
        let mut text = Vec::new();
        assert_eq!(
            reader
                .read_to_end(&mut text)
                .expect_err("it is still open")
                .kind(),
            ErrorKind::WouldBlock
        );
        String::from_utf8(text).expect("ASCII")
    };

    let lost = log
        .append_lines(lines.as_bytes())
        .expect_err("more than it holds");
    assert_eq!(lost.error.kind(), ErrorKind::WouldBlock);
    let there = read_written();
    assert!(!there.is_empty() && lines.starts_with(&there));
    // A line that lacks only its end is not lost.
    let parts: Vec<&str> = there.lines().filter(|line| line.len() == 17).collect();
    assert_eq!(parts.len() as u64 + lost.lines, 200_000);

    log.append_lines(LINE.as_bytes()).expect("there is room");
    assert_eq!(read_written(), format!("\n{LINE}"));
}

#[test]
fn pipe_and_device_are_written_like_a_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("pipe");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&path)
            .status()
            .expect("mkfifo")
            .success()
    );
    let mut reader = fs::File::options()
        .read(true)
        .write(true)
        .open(&path)
        .expect("opened");
    let mut log = open_log(&path);
    write_lines(&mut log, &LINE.repeat(8));
    let mut text = [0; 64];
    reader.read_exact(&mut text).expect("read");
    assert_eq!(text, *LINE.repeat(8).as_bytes());

    let mut log = open_log(Path::new("/dev/full"));
    let lost = log
        .write_lines(LINE.repeat(3).as_bytes())
        .expect_err("full");
    assert_eq!((lost.lines, lost.error.kind()), (3, ErrorKind::StorageFull));
    let retried = log.write_lines(b"").expect_err("still full");
    assert_eq!(
        (retried.lines, retried.error.kind()),
        (0, ErrorKind::StorageFull)
    );
}

#[test]
fn fifo_without_reader_is_an_error_at_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let fifo = directory.path().join("log");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .expect("mkfifo")
            .success()
    );
    let lost = LogFile::new("log", &fifo)
        .write_lines(LINE.as_bytes())
        .expect_err("it has no reader");
    assert_eq!(lost.lines, 1);
    let _reader =
        crate::files::open_nonblocking(fs::File::options().read(true), &fifo).expect("a reader");
    write_lines(&mut open_log(&fifo), LINE);
}
