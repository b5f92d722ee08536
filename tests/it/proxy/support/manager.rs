//! A stand-in for a service manager: the socket that services report to (systemd's NOTIFY_SOCKET).

use super::{PATIENCE, Setup};
use std::os::unix::net::UnixDatagram;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// What a service reports, message by message. It is read as it comes: a service waits where the
/// system holds too much.
pub struct Manager {
    directory: TempDir,
    messages: Receiver<Vec<u8>>,
}

impl Manager {
    pub fn new() -> Manager {
        let directory = tempfile::tempdir().expect("a directory");
        let socket = UnixDatagram::bind(directory.path().join("notify")).expect("a socket");
        let (read, messages) = channel();
        thread::spawn(move || {
            let mut message = [0; 4096];
            while let Ok(length) = socket.recv(&mut message) {
                if read.send(message[..length].to_vec()).is_err() {
                    return;
                }
            }
        });
        Manager {
            directory,
            messages,
        }
    }

    /// crawlgate as a service of this manager, with more variables.
    pub fn runs(&self, setup: Setup, variables: &[&str]) -> Setup {
        let socket = format!(
            "NOTIFY_SOCKET={}",
            self.directory.path().join("notify").display()
        );
        let mut wrapper = vec!["env", &socket];
        wrapper.extend(variables);
        setup.under(&wrapper)
    }

    /// The next message, as lines.
    pub fn next(&self) -> Vec<String> {
        let message = self.messages.recv_timeout(PATIENCE).expect("a message");
        String::from_utf8_lossy(&message)
            .lines()
            .map(str::to_owned)
            .collect()
    }

    /// Whether nothing comes for longer than the services of the tests are silent.
    pub fn is_quiet(&self) -> bool {
        self.messages
            .recv_timeout(Duration::from_millis(600))
            .is_err()
    }

    /// Waits for a message with this line.
    pub fn wait_for(&self, line: &str) -> Vec<String> {
        let end = Instant::now() + PATIENCE;
        let mut seen = Vec::new();
        while Instant::now() < end {
            let message = self.next();
            if message.iter().any(|said| said == line) {
                return message;
            }
            seen.push(message);
        }
        panic!("no `{line}`: {seen:?}")
    }
}
