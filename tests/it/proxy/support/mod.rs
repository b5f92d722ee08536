//! What the tests of the running binary share: crawlgate in a directory of its own, an origin that
//! can misbehave, and a client that says exactly what it is told to say.

mod browser;
mod client;
pub mod dns;
pub mod http2;
pub mod kinds;
pub mod manager;
pub mod nginx;
mod operator;
mod origin;
pub mod pebble;
pub mod program;
pub mod random;
pub mod redis;
mod time;
mod tls;
pub mod upgrade;

pub use browser::chromium;
pub use client::{Connection, Response};
pub use http2::Http2;
pub use operator::{BINGBOT, BROWSER, GPTBOT, HOST, run, sum_of};
pub use origin::{Origin, Received};
pub use tls::{Authority, TlsConnection};

use crawlgate::internals::facts::OriginCopy;
use crawlgate::internals::state::StateStore;
use crawlgate::time::Timestamp;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long anything may take before a test fails. Generous, because test machines are busy; never
/// waited for in full when things work.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until `condition` gives a value. Looks often at first: most things are there soon.
pub fn eventually<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(
            Instant::now() < deadline,
            "waited {PATIENCE:?} in vain: {what}"
        );
        thread::sleep(pause);
        pause = (pause + Duration::from_micros(250)).min(Duration::from_millis(10));
    }
}

/// How crawlgate is to be started.
pub struct Setup {
    directory: TempDir,
    origins: String,
    listen: String,
    settings: String,
    arguments: Vec<String>,
    environment: Vec<(String, PathBuf)>,
    wrapper: Vec<String>,
    passed: Option<TcpListener>,
    is_policy_directory_named: bool,
    is_output_read: bool,
    command: &'static str,
}

impl Setup {
    /// The decision service alone, without an origin and without a policy.
    pub fn deciding() -> Setup {
        let setup = Setup::before("");
        Setup {
            origins: "decisions: 127.0.0.1:0".into(),
            listen: String::new(),
            command: "decide",
            ..setup
        }
    }

    /// Before an origin (`127.0.0.1:3000`), without a policy.
    pub fn before(origin: impl ToString) -> Setup {
        let directory = tempfile::tempdir().expect("a temporary directory");
        fs::create_dir(directory.path().join("policies")).expect("the policy directory");
        let origins = format!("origins: http://{}", origin.to_string());
        Setup {
            directory,
            origins,
            listen: "127.0.0.1:0".into(),
            settings: String::new(),
            arguments: Vec::new(),
            environment: Vec::new(),
            wrapper: Vec::new(),
            passed: None,
            is_policy_directory_named: true,
            is_output_read: true,
            command: "run",
        }
    }

    /// With the default policy directory, which is not there yet.
    pub fn without_policy_directory(mut self) -> Setup {
        fs::remove_dir(self.policies()).expect("an empty policy directory");
        self.is_policy_directory_named = false;
        self
    }

    /// With a policy file.
    pub fn policy(self, name: &str, text: &str) -> Setup {
        fs::write(self.policies().join(format!("{name}.yaml")), text).expect("a policy file");
        self
    }

    /// With more lines for `crawlgate.yaml`.
    pub fn settings(mut self, lines: &str) -> Setup {
        self.settings.push_str(lines);
        self.settings.push('\n');
        self
    }

    /// With these origins in place of the one.
    pub fn with_origins(mut self, lines: &str) -> Setup {
        self.origins = lines.to_string();
        self
    }

    /// Without a reader of its standard output, once it has said where it listens.
    pub fn unread(mut self) -> Setup {
        self.is_output_read = false;
        self
    }

    /// With more of the command line.
    pub fn argument(mut self, argument: impl ToString) -> Setup {
        self.arguments.push(argument.to_string());
        self
    }

    /// With a variable of the environment that names a file of this text.
    pub fn environment(mut self, variable: &str, text: &str) -> Setup {
        let file = self.directory.path().join(variable);
        fs::write(&file, text).expect("the file of a variable");
        self.environment.push((variable.to_owned(), file));
        self
    }

    /// Started by another program, which becomes crawlgate in the end.
    pub fn under(mut self, wrapper: &[&str]) -> Setup {
        self.wrap(wrapper);
        self
    }

    /// The same from the next start on.
    pub fn wrap(&mut self, wrapper: &[&str]) {
        self.wrapper = wrapper.iter().map(|word| (*word).to_owned()).collect();
    }

    /// Under a service manager that has bound a listener, and keeps it: see systemd's LISTEN_FDS.
    pub fn with_socket(mut self, listener: TcpListener, name: &str) -> Setup {
        self.passed = Some(listener);
        let shell = format!(
            "export LISTEN_FDS=1 LISTEN_PID=$$ LISTEN_FDNAMES={name}; exec \"$@\" 3<&0 </dev/null"
        );
        self.wrapper
            .extend(["sh", "-c", &shell, "sh"].map(str::to_owned));
        self
    }

    /// On this address.
    pub fn listen(mut self, address: SocketAddr) -> Setup {
        self.listen = address.to_string();
        self
    }

    /// On these listeners, as `crawlgate.yaml` has them.
    pub fn listeners(mut self, listeners: &str) -> Setup {
        self.listen = listeners.to_owned();
        self
    }

    /// The policy directory.
    pub fn policies(&self) -> PathBuf {
        self.directory.path().join("policies")
    }

    /// Starts it, without waiting for anything.
    fn spawn(&self) -> Child {
        let directory = self.directory.path();
        let file = directory.join("crawlgate.yaml");
        let policies = match self.is_policy_directory_named {
            true => format!("policies: {}\n", self.policies().display()),
            false => String::new(),
        };
        let listen = match self.listen.as_str() {
            "" => String::new(),
            listen => format!("listen: {listen}\n"),
        };
        let text = format!(
            "{listen}{}\n{policies}admin: 127.0.0.1:0\ncontrol: {}\nstate: {}\n{}",
            self.origins,
            directory.join("control.sock").display(),
            directory.join("state").display(),
            self.settings
        );
        fs::write(&file, text).expect("crawlgate.yaml");
        let binary = env!("CARGO_BIN_EXE_crawlgate").to_owned();
        let mut command = self.wrapper.iter().chain([&binary]);
        let mut process = Command::new(command.next().expect("a program"));
        // The default policy directory is below the working directory.
        if !self.is_policy_directory_named {
            process.current_dir(directory);
        }
        process
            .args(command)
            .args([self.command, "--config"])
            .arg(&file)
            .args(&self.arguments)
            .envs(
                self.environment
                    .iter()
                    .map(|(variable, file)| (variable, file)),
            )
            .env("RUST_LOG", "info")
            .env_remove("NO_COLOR")
            .stdin(match &self.passed {
                Some(listener) => {
                    OwnedFd::from(listener.try_clone().expect("another descriptor")).into()
                }
                None => Stdio::null(),
            })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the crawlgate binary")
    }

    /// Starts it and waits until it says where it listens.
    pub fn start(self) -> Gate {
        let Launched {
            child,
            listening,
            decisions,
            admin,
            log,
        } = self.launch();
        let address = listening
            .iter()
            .chain(&decisions)
            .next()
            .copied()
            .expect("an address");
        Gate {
            child,
            address,
            listening,
            decisions,
            admin,
            log,
            setup: self,
            next: Mutex::default(),
        }
    }

    fn launch(&self) -> Launched {
        let mut child = self.spawn();
        let log = Log::read(child.stderr.take().expect("stderr is piped"));
        let lines = lines(
            child.stdout.take().expect("stdout is piped"),
            self.is_output_read,
        );
        let (mut listening, mut decisions, mut admin) = (Vec::new(), Vec::new(), None);
        while admin.is_none() {
            let Ok(line) = lines.recv_timeout(PATIENCE) else {
                let _ = child.kill();
                panic!("no addresses:\n{}", log.text())
            };
            if let Some((_, said)) = line
                .strip_prefix("listening on ")
                .and_then(|url| url.split_once("://"))
            {
                listening.push(said.trim().parse().expect("an address"));
            } else if let Some(said) = line.strip_prefix("decisions on http://") {
                decisions.push(said.trim().parse().expect("an address"));
            } else if line.starts_with("decisions on unix:") {
                // The test knows where it is.
            } else if let Some(said) = line.strip_prefix("admin on http://") {
                admin = Some(said.trim().parse().expect("an address"));
            }
        }
        Launched {
            child,
            listening,
            decisions,
            admin: admin.expect("said"),
            log,
        }
    }

    /// Starts it where it is expected to fail; what it said on standard error, and its exit code.
    pub fn fail(&self) -> (String, ExitStatus) {
        let mut child = self.spawn();
        let log = Log::read(child.stderr.take().expect("stderr is piped"));
        let status = wait(&mut child);
        (log.finished(), status)
    }
}

/// What was just started.
struct Launched {
    child: Child,
    listening: Vec<SocketAddr>,
    decisions: Vec<SocketAddr>,
    admin: SocketAddr,
    log: Log,
}

/// A running crawlgate; killed when dropped.
pub struct Gate {
    child: Child,
    /// The first listener; that of the decision service where there is no other.
    pub address: SocketAddr,
    /// All listeners, in the order of the settings.
    pub listening: Vec<SocketAddr>,
    /// Where proxies ask for decisions.
    pub decisions: Vec<SocketAddr>,
    pub admin: SocketAddr,
    pub log: Log,
    pub setup: Setup,
    /// Processes that serve in its place.
    next: Mutex<Vec<upgrade::Process>>,
}

impl Gate {
    /// A new connection.
    pub fn connect(&self) -> Connection {
        Connection::open(self.address)
    }

    /// One request on a connection of its own: method, host, target, more header lines (each with
    /// its end).
    pub fn ask(&self, method: &str, host: &str, target: &str, headers: &str) -> Response {
        let mut connection = self.connect();
        connection.send(&format!(
            "{method} {target} HTTP/1.1\r\nHost: {host}\r\n{headers}Connection: close\r\n\r\n"
        ));
        connection.response(method)
    }

    /// GET.
    pub fn get(&self, host: &str, target: &str, headers: &str) -> Response {
        self.ask("GET", host, target, headers)
    }

    /// Sends a signal by its name: TERM, HUP, INT.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args([&format!("-{name}"), &self.child.id().to_string()])
            .status();
        assert!(sent.expect("kill").success());
    }

    /// Ends it with a signal, does something while nobody serves, and starts it again in the same
    /// directory.
    pub fn restart(&mut self, signal: &str, meanwhile: impl FnOnce(&Gate)) {
        let serving = self.serving();
        upgrade::signal(serving, signal);
        self.next
            .lock()
            .expect("nobody panics while noting")
            .clear();
        match serving == self.pid() {
            true => drop(self.ended()),
            false => upgrade::ended(serving),
        }
        meanwhile(self);
        self.start_again();
    }

    /// Starts it again after it has ended.
    pub fn start_again(&mut self) {
        let Launched {
            child,
            listening,
            decisions,
            admin,
            log,
        } = self.setup.launch();
        self.address = listening
            .iter()
            .chain(&decisions)
            .next()
            .copied()
            .expect("an address");
        (self.child, self.admin, self.log) = (child, admin, log);
        (self.listening, self.decisions) = (listening, decisions);
    }

    /// Memory that is resident, in KiB.
    pub fn resident(&self) -> u64 {
        let status =
            fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("its status");
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .expect("its memory");
        line.trim().trim_end_matches(" kB").parse().expect("KiB")
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        self.child
            .try_wait()
            .expect("the state of the process")
            .is_none()
    }

    /// Waits until it has ended by itself.
    pub fn ended(&mut self) -> ExitStatus {
        wait(&mut self.child)
    }

    /// Killed with no chance to write anything down, and started again in the same directory.
    pub fn killed_and_started_again(mut self) -> Gate {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let empty = Setup::before("127.0.0.1:0");
        std::mem::replace(&mut self.setup, empty).start()
    }

    /// A file or socket in its directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.setup.directory.path().join(name)
    }

    /// The stored copy of the robots.txt of a site's origin. What is new is stored within about a
    /// second.
    pub fn stored_copy(&self, site: &str) -> Option<OriginCopy> {
        let facts =
            StateStore::read(&self.path("state"), Timestamp(i64::MAX)).expect("a state directory");
        facts
            .origin_copies
            .into_iter()
            .find(|(_, copy)| copy.site == site)
            .map(|(_, copy)| copy)
    }

    /// When the state directory was last written.
    pub fn last_commit(&self) -> Option<i64> {
        let file = rusqlite::Connection::open(self.path("state/state.db")).ok()?;
        file.query_row("SELECT committed FROM run", [], |row| row.get(0))
            .ok()
    }

    /// The process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The control socket.
    pub fn control(&self) -> PathBuf {
        self.path("control.sock")
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.next
            .lock()
            .expect("nobody panics while noting")
            .iter()
            .for_each(upgrade::Process::kill);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn wait(child: &mut Child) -> ExitStatus {
    eventually("the process ends", || {
        child.try_wait().expect("the state of the process")
    })
}

/// What a process says. It is read to its end, or only while somebody listens.
fn lines(stream: impl Read + Send + 'static, to_the_end: bool) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            // A full pipe stops what writes into it.
            if sender.send(line).is_err() && !to_the_end {
                loop {
                    thread::park();
                }
            }
        }
    });
    receiver
}

/// What a process says on standard error, as it comes.
pub struct Log {
    text: Arc<Mutex<String>>,
    reader: thread::JoinHandle<()>,
}

impl Log {
    fn read(stream: impl Read + Send + 'static) -> Log {
        let text = Arc::new(Mutex::new(String::new()));
        let reader = thread::spawn({
            let text = text.clone();
            move || {
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    let mut text = text.lock().expect("nobody panics while writing the log");
                    text.push_str(&line);
                    text.push('\n');
                }
            }
        });
        Log { text, reader }
    }

    /// All of it so far.
    pub fn text(&self) -> String {
        self.text
            .lock()
            .expect("nobody panics while writing the log")
            .clone()
    }

    /// Waits for a line that contains `wanted`.
    pub fn wait_for(&self, wanted: &str) {
        eventually(&format!("`{wanted}` in the log"), || {
            self.text().contains(wanted).then_some(())
        });
    }

    /// All of it, once the process has ended.
    pub fn at_its_end(&self) -> String {
        eventually("the end of the log", || {
            self.reader.is_finished().then(|| self.text())
        })
    }

    fn finished(self) -> String {
        let _ = self.reader.join();
        let text = self
            .text
            .lock()
            .expect("nobody panics while writing the log");
        text.clone()
    }
}

/// The text of a file.
pub fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}
