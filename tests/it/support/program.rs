//! A real server of another make: its own directory, its own port on loopback, gone when dropped.

use super::eventually;
use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A running server.
pub struct Program {
    child: Child,
    _directory: TempDir,
    /// Where it listens.
    pub address: SocketAddr,
}

impl Program {
    /// Starts it. `prepare` writes its files into a directory and says how it is started on this address.
    pub fn start(prepare: impl Fn(&Path, SocketAddr) -> Command) -> Program {
        // No port can be had but by picking one, and another test may take it in between.
        (0..10).find_map(|_| Program::try_start(&prepare)).expect("the program starts")
    }

    fn try_start(prepare: &impl Fn(&Path, SocketAddr) -> Command) -> Option<Program> {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let address = TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("its address");
        let mut command = prepare(directory.path(), address);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let mut program = Program { child, _directory: directory, address };
        let listens = eventually("the program listens or ends", || {
            let has_ended = program.child.try_wait().expect("the state of the process").is_some();
            (has_ended || TcpStream::connect(address).is_ok()).then_some(!has_ended)
        });
        if !listens {
            let mut said = String::new();
            let _ = program.child.stderr.take().map(|mut stderr| stderr.read_to_string(&mut said));
            eprintln!("{command:?}: {said}");
        }
        listens.then_some(program)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program of the system, which may be where ordinary users do not search.
pub fn program(name: &str) -> Command {
    let sbin = Path::new("/usr/sbin").join(name);
    Command::new(if sbin.exists() { sbin } else { name.into() })
}

/// Caddy, serving the files of a directory as its file server does by default.
pub fn caddy(files: &[(&str, &str)]) -> Program {
    Program::start(|directory, address| {
        let site = directory.join("site");
        for (name, text) in files {
            let file = site.join(name);
            std::fs::create_dir_all(file.parent().expect("inside the site")).expect("a directory");
            std::fs::write(file, text).expect("a file of the site");
        }
        let configuration = format!(
            "{{\n\tadmin off\n\tauto_https off\n}}\nhttp://:{} {{\n\tbind {}\n\troot * {}\n\tfile_server\n}}\n",
            address.port(),
            address.ip(),
            site.display()
        );
        let file = directory.join("Caddyfile");
        std::fs::write(&file, configuration).expect("the configuration");
        let mut caddy = program("caddy");
        caddy.args(["run", "--adapter", "caddyfile", "--config"]).arg(file);
        caddy.env("HOME", directory).env("XDG_DATA_HOME", directory).env("XDG_CONFIG_HOME", directory);
        caddy
    })
}

/// HAProxy, passing connections on as they are to an address; `server` is the rest of the server's line.
pub fn haproxy(to: SocketAddr, server: &str) -> Program {
    Program::start(|directory, address| {
        let configuration = format!(
            "global\n  maxconn 200\ndefaults\n  mode tcp\n  timeout connect 10s\n  timeout client 30s\n  timeout server 30s\n\
             listen all\n  bind {address}\n  option httpchk GET /health\n  http-check expect status 200\n  server one {to} {server}\n"
        );
        let file = directory.join("haproxy.cfg");
        std::fs::write(&file, configuration).expect("the configuration");
        let mut haproxy = program("haproxy");
        haproxy.arg("-db").arg("-f").arg(file);
        haproxy
    })
}
