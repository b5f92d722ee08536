//! An operator who replaces a running crawlgate by another process.

use super::{Gate, Setup, eventually};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{Read, Seek};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Output};

/// The name of the program in the directory of a test.
const PROGRAM: &str = "crawlgate";

/// A next process that speaks with the running one and fails on purpose. `say(x)` sends a message,
/// `hear()` waits for one.
const STAND_IN: &str = r#"exec python3 -c '
import json, os, socket, struct, sys, time
s = socket.socket(fileno=0)
def say(name, **more):
    body = json.dumps(dict(message=name, **more)).encode()
    s.sendall(struct.pack(">I", len(body)) + body)
def bytes(n):
    got = b""
    while len(got) < n:
        part, anc, _, _ = s.recvmsg(n - len(got), socket.CMSG_LEN(64 * 4))
        if not part: sys.exit("the process before has ended")
        got += part
    return got
def hear(name):
    while True:
        message = json.loads(bytes(struct.unpack(">I", bytes(4))[0]))
        if message["message"] == name: return message
hello = hear("hello")
def ready(): say("ready", takes=hello["listeners"], takes_control=True)
"#;

impl Setup {
    /// Started by a name of its own, which can lead to another program later.
    pub fn replaceable(mut self) -> Setup {
        let program = self.policies().with_file_name(PROGRAM);
        symlink(env!("CARGO_BIN_EXE_crawlgate"), &program).expect("a link");
        let words = [
            "sh",
            "-c",
            "shift; exec \"$0\" \"$@\"",
            &program.display().to_string(),
        ];
        self.wrapper.extend(words.map(str::to_owned));
        self
    }
}

impl Gate {
    /// Replaces it; the process that serves then.
    pub fn upgrade(&self) -> u32 {
        let said = self.command(&["upgrade", "--unsupervised", "--json"]);
        let pid = self.noted(&said);
        pid.unwrap_or_else(|| panic!("{}\n{}", text(&said), self.log.text()))
    }

    /// An upgrade that is refused, and why.
    pub fn refused_upgrade(&self, more: &[&str]) -> String {
        let said = self.command(&[&["upgrade", "--json"], more].concat());
        assert_eq!(
            (self.noted(&said), said.status.code()),
            (None, Some(1)),
            "{}",
            text(&said)
        );
        text(&said)
    }

    /// The process that serves, by what `upgrade` says. It ends with the test.
    pub fn noted(&self, said: &Output) -> Option<u32> {
        let report: Value = serde_json::from_slice(&said.stdout).ok()?;
        let pid = u32::try_from(report["pid"].as_u64()?).ok()?;
        self.next
            .lock()
            .expect("nobody panics while noting")
            .extend(Process::of(pid));
        Some(pid)
    }

    /// The next process is this script of the shell.
    pub fn next_is(&self, script: &str) {
        let new = self.path("next");
        fs::write(&new, format!("#!/bin/sh\n{script}\n")).expect("a script");
        fs::set_permissions(&new, fs::Permissions::from_mode(0o755)).expect("a program");
        fs::rename(new, self.path(PROGRAM)).expect("another program");
    }

    /// The next process is a stand-in that says it is ready, and then does this.
    pub fn next_hands_over_and(&self, lines: &str) {
        self.next_is(&format!("{STAND_IN}ready(); {lines}\n'"));
    }

    /// The process that serves.
    pub fn serving(&self) -> u32 {
        let next = self.next.lock().expect("nobody panics while noting");
        next.last()
            .map_or_else(|| self.pid(), |process| process.pid)
    }

    /// How many processes there are: the one that serves, and those before that still answer.
    pub fn living(&self) -> usize {
        let next = self.next.lock().expect("nobody panics while noting");
        let first = Process::of(self.pid());
        next.iter()
            .chain(&first)
            .filter(|process| !process.is_gone())
            .count()
    }

    /// The next process is crawlgate.
    pub fn next_is_crawlgate(&self) {
        fs::remove_file(self.path(PROGRAM)).expect("no program");
        symlink(env!("CARGO_BIN_EXE_crawlgate"), self.path(PROGRAM)).expect("a link");
    }

    /// The settings of the next process: these lines for others.
    pub fn change_settings(&self, lines: &str, others: &str) {
        let file = self.path("crawlgate.yaml");
        let text = fs::read_to_string(&file).expect("settings");
        assert!(text.contains(lines), "{text}");
        fs::write(&file, text.replace(lines, others)).expect("settings");
    }
}

/// What a command said.
pub fn text(output: &Output) -> String {
    [&output.stdout[..], &output.stderr]
        .map(|said| String::from_utf8_lossy(said).into_owned())
        .concat()
}

/// Sends a signal.
pub fn signal(pid: u32, name: &str) {
    let _ = Command::new("kill")
        .args([&format!("-{name}"), &pid.to_string()])
        .stderr(std::process::Stdio::null())
        .status();
}

/// Waits until a process has ended.
pub fn ended(pid: u32) {
    let Some(process) = Process::of(pid) else {
        return;
    };
    eventually("the process ends", || process.is_gone().then_some(()));
}

/// A process that is no child of the test. Its number may be another one's once it has ended, so
/// its file in `/proc` is held open: that stays its own.
pub struct Process {
    pid: u32,
    status: File,
}

impl Process {
    fn of(pid: u32) -> Option<Process> {
        Some(Process {
            pid,
            status: File::open(format!("/proc/{pid}/status")).ok()?,
        })
    }

    /// Its locks are held until the last of its threads is gone, and its first one may be a zombie
    /// before that.
    fn is_gone(&self) -> bool {
        let mut text = String::new();
        let read = (&self.status)
            .rewind()
            .and_then(|()| (&self.status).read_to_string(&mut text));
        let threads =
            || fs::read_dir(format!("/proc/{}/task", self.pid)).map_or(0, Iterator::count);
        read.is_err() || text.contains("State:\tZ") && threads() <= 1
    }

    pub fn kill(&self) {
        if !self.is_gone() {
            signal(self.pid, "KILL");
        }
    }
}
