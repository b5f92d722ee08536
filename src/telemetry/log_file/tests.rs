use super::*;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

const LINE: &str = "{\"n\":1}\n";

fn opened(path: &Path, limit: u64, keep: u32) -> LogFile {
    LogFile::open("log", path, Some(Rotation { limit, keep })).expect("opened")
}

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).expect("read")
}

fn write(log: &mut LogFile, lines: &str) {
    log.write_lines(lines.as_bytes(), false).expect("written");
}

#[test]
fn a_file_makes_way_at_its_size_and_a_line_that_is_longer_has_one_of_its_own() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("log");
    let numbered = |number: u32| directory.path().join(format!("log.{number}"));
    let mut log = opened(&path, 20, 2);
    write(&mut log, &LINE.repeat(3));
    assert_eq!((read(&path), read(numbered(1))), (LINE.into(), LINE.repeat(2)));
    let long = format!("{}\n", "x".repeat(30));
    write(&mut log, &format!("{long}{LINE}"));
    assert_eq!((read(&path), read(numbered(1)), read(numbered(2))), (LINE.into(), long, LINE.into()));
    assert!(!numbered(3).exists() && log.stuck().is_none());
}

#[test]
fn a_file_that_was_removed_renamed_or_replaced_is_made_anew() {
    let directory = tempfile::tempdir().expect("a directory");
    let (path, moved) = (directory.path().join("log"), directory.path().join("moved"));
    let mut log = opened(&path, 64, 2);
    write(&mut log, LINE);
    fs::remove_file(&path).expect("removed");
    write(&mut log, LINE);
    assert_eq!(read(&path), LINE);
    fs::rename(&path, &moved).expect("renamed");
    write(&mut log, &LINE.repeat(2));
    assert_eq!((read(&path), read(&moved)), (LINE.repeat(2), LINE.into()));
    fs::remove_file(&path).and_then(|()| fs::write(&path, "theirs\n")).expect("replaced");
    write(&mut log, LINE);
    assert_eq!(read(&path), format!("theirs\n{LINE}"));
    // What was emptied has room again.
    write(&mut log, &LINE.repeat(5));
    fs::File::options().write(true).open(&path).and_then(|file| file.set_len(0)).expect("emptied");
    write(&mut log, &LINE.repeat(7));
    assert_eq!(read(&path), LINE.repeat(7));
    assert!(!directory.path().join("log.1").exists());
}

#[test]
fn lines_before_an_asked_for_reopening_belong_into_the_old_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let (path, moved) = (directory.path().join("log"), directory.path().join("moved"));
    let mut log = opened(&path, 1_000, 2);
    fs::rename(&path, &moved).expect("renamed");
    log.write_lines(LINE.as_bytes(), true).expect("written");
    log.reopen().expect("opened again");
    write(&mut log, "new\n");
    assert_eq!((read(&moved).as_str(), read(&path).as_str()), (LINE, "new\n"));
}

#[test]
fn lines_before_a_reopening_belong_into_the_new_file_where_the_old_one_was_removed() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("log");
    let mut log = opened(&path, 1_000, 2);
    write(&mut log, LINE);
    fs::remove_file(&path).expect("removed");
    log.write_lines(b"before\n", true).expect("written");
    log.reopen().expect("opened again");
    write(&mut log, "after\n");
    assert_eq!(read(&path), "before\nafter\n");
    // Where that cannot be, they are counted.
    fs::remove_file(&path).and_then(|()| fs::create_dir(&path)).expect("in the way");
    assert_eq!(log.write_lines(LINE.repeat(3).as_bytes(), true).expect_err("nobody could read it").lines, 3);
}

#[test]
fn a_file_that_cannot_make_way_grows_on_until_it_can() {
    let directory = tempfile::tempdir().expect("a directory");
    let (path, older) = (directory.path().join("log"), directory.path().join("log.1"));
    fs::create_dir(&older).expect("in the way");
    let mut log = opened(&path, 20, 1);
    write(&mut log, &LINE.repeat(5));
    write(&mut log, LINE);
    assert_eq!(read(&path), LINE.repeat(6));
    assert!(log.stuck().is_some());
    fs::remove_dir(&older).expect("out of the way");
    write(&mut log, LINE);
    assert_eq!((read(&path), read(&older)), (LINE.into(), LINE.repeat(6)));
    assert!(log.stuck().is_none());
}

#[test]
fn a_directory_that_is_gone_loses_lines_until_it_is_back_and_one_that_was_moved_loses_none() {
    let directory = tempfile::tempdir().expect("a directory");
    let (logs, moved) = (directory.path().join("logs"), directory.path().join("moved"));
    let path = logs.join("log");
    fs::create_dir(&logs).expect("made");
    let mut log = opened(&path, 20, 4);
    write(&mut log, LINE);
    fs::rename(&logs, &moved).expect("moved");
    write(&mut log, &LINE.repeat(4));
    assert_eq!(read(moved.join("log")), LINE.repeat(5));
    assert!(log.stuck().is_some());
    fs::remove_dir_all(&moved).expect("removed");
    let lost = log.write_lines(LINE.repeat(3).as_bytes(), false).expect_err("nobody could read it");
    assert_eq!((lost.lines, lost.error.kind()), (3, ErrorKind::NotFound));
    fs::create_dir(&logs).expect("made");
    write(&mut log, LINE);
    assert_eq!(read(&path), LINE);
    assert!(log.stuck().is_none());
}

#[test]
fn a_torn_line_is_ended_before_the_next() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("log");
    fs::write(&path, format!("{LINE}{{\"torn")).expect("written");
    let mut log = opened(&path, 1_000, 1);
    write(&mut log, LINE);
    assert_eq!(read(&path), format!("{LINE}{{\"torn\n{LINE}"));
    // And before the file makes way, so that both can be read as one.
    log.append(b"{\"to").expect("written");
    log.rotate().expect("made way");
    assert!(read(directory.path().join("log.1")).ends_with("{\"to\n"));
    write(&mut log, LINE);
    assert_eq!(read(&path), LINE);
}

/// A socket that nobody reads is full as a disk may be: it takes a part of what it is given, and then nothing.
#[test]
fn of_what_is_written_in_part_the_rest_is_counted_to_the_line() {
    let directory = tempfile::tempdir().expect("a directory");
    let lines: String = (0..200_000).map(|number| format!("{{\"number\":{number:06}}}\n")).collect();
    let (mut reader, writer) = UnixStream::pair().expect("a pair");
    writer.set_nonblocking(true).and_then(|()| reader.set_nonblocking(true)).expect("set");
    let file = File::from(OwnedFd::from(writer));
    let mut log = LogFile { file, ..opened(&directory.path().join("log"), u64::MAX, 0) };
    let mut read = || {
        let mut text = Vec::new();
        assert_eq!(reader.read_to_end(&mut text).expect_err("it is still open").kind(), ErrorKind::WouldBlock);
        String::from_utf8(text).expect("ASCII")
    };

    let lost = log.write_lines(lines.as_bytes(), true).expect_err("more than it holds");
    assert_eq!(lost.error.kind(), ErrorKind::WouldBlock);
    let there = read();
    assert!(!there.is_empty() && lines.starts_with(&there));
    // Of a line that lacks but its end nothing is lost.
    let parts: Vec<&str> = there.lines().filter(|line| line.len() == 17).collect();
    assert_eq!(parts.len() as u64 + lost.lines, 200_000);

    let torn = if there.ends_with('\n') { "" } else { "\n" };
    log.write_lines(LINE.as_bytes(), true).expect("there is room");
    assert_eq!(read(), format!("{torn}{LINE}"));
}

#[test]
fn a_pipe_or_a_device_makes_way_for_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().expect("mkfifo").success());
    let mut reader = fs::File::options().read(true).write(true).open(&path).expect("opened");
    let mut log = opened(&path, 10, 1);
    write(&mut log, &LINE.repeat(8));
    let mut text = [0; 64];
    reader.read_exact(&mut text).expect("read");
    assert_eq!(text, *LINE.repeat(8).as_bytes());
    assert!(!directory.path().join("pipe.1").exists() && log.stuck().is_none());

    let mut log = opened(Path::new("/dev/full"), u64::MAX, 1);
    let lost = log.write_lines(LINE.repeat(3).as_bytes(), false).expect_err("full");
    assert_eq!((lost.lines, lost.error.kind()), (3, ErrorKind::StorageFull));
}
