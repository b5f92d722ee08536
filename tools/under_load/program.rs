//! Programs under load: crawlgate, built beside this example, and HAProxy.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long a program may take to start.
const START: Duration = Duration::from_secs(20);

/// A running program; it is killed when this is dropped.
pub struct Program {
    child: Child,
    pub address: SocketAddr,
    _directory: TempDir,
}

impl Program {
    /// crawlgate with these origins.
    pub fn crawlgate(origins: &str) -> io::Result<Program> {
        let binary = std::env::current_exe()?
            .ancestors()
            .nth(2)
            .unwrap_or(Path::new(""))
            .join("crawlgate");
        if !binary.exists() {
            return Err(io::Error::other(format!(
                "{} is missing: cargo build --bin crawlgate",
                binary.display()
            )));
        }
        Program::start("crawlgate.yaml", |address, file| {
            let settings = format!(
                "listen: {address}\norigins: {origins}\npolicies: policies\nadmin: off\ncontrol: off\nstate: off\n"
            );
            let mut command = Command::new(&binary);
            command.args(["run", "--config"]).arg(file);
            (settings, command)
        })
    }

    /// HAProxy before a server that it gives so many requests at once.
    pub fn haproxy(server: SocketAddr, places: usize) -> io::Result<Program> {
        let binary = ["/usr/sbin/haproxy", "/usr/local/sbin/haproxy"].map(PathBuf::from);
        let binary = binary
            .into_iter()
            .find(|path| path.exists())
            .unwrap_or("haproxy".into());
        Program::start("haproxy.cfg", |address, file| {
            let configuration = format!(
                "global\n    maxconn 2000\ndefaults\n    mode http\n    http-reuse always\n    timeout connect 5s\n    \
                 timeout client 60s\n    timeout server 60s\n    timeout queue 60s\nfrontend site\n    bind {address}\n    \
                 default_backend origin\nbackend origin\n    server origin {server} maxconn {places}\n"
            );
            let mut command = Command::new(&binary);
            command.args(["-db", "-f"]).arg(file);
            (configuration, command)
        })
    }

    fn start(
        name: &str,
        prepare: impl Fn(SocketAddr, &Path) -> (String, Command),
    ) -> io::Result<Program> {
        let directory = tempfile::tempdir()?;
        fs::create_dir(directory.path().join("policies"))?;
        // Free a moment ago.
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let file = directory.path().join(name);
        let (text, mut command) = prepare(address, &file);
        fs::write(&file, text)?;
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let child = child.map_err(|error| {
            io::Error::other(format!("{}: {error}", command.get_program().display()))
        })?;
        let mut program = Program {
            child,
            address,
            _directory: directory,
        };
        let began = Instant::now();
        while TcpStream::connect(address).is_err() {
            if program.child.try_wait()?.is_some() || began.elapsed() > START {
                return Err(io::Error::other(format!(
                    "{} does not start",
                    command.get_program().display()
                )));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(program)
    }

    /// Its resident memory in KiB.
    pub fn resident(&self) -> io::Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        number.ok_or_else(|| io::Error::other("/proc does not say how much memory is resident"))
    }

    /// Its open files.
    pub fn descriptors(&self) -> io::Result<usize> {
        Ok(fs::read_dir(format!("/proc/{}/fd", self.child.id()))?.count())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
