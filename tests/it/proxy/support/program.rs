//! A real server of another make: its own directory, its own port on loopback, gone when dropped.
//! [`Program::start`] starts any, [`nginx`], [`caddy`], [`haproxy`] and [`apache`] write the frame
//! of a configuration, [`deployed`] reads one of `deploy/`.

use super::{Connection, HOST, PATIENCE, Response, eventually};
use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use tempfile::TempDir;

/// A running server.
pub struct Program {
    command: Command,
    child: Child,
    directory: TempDir,
    /// Where it listens.
    pub address: SocketAddr,
}

/// A server before it is started: its address, and the files that it reads.
pub struct Prepared {
    pub directory: TempDir,
    pub address: SocketAddr,
}

impl Prepared {
    /// Writes a file into the directory of the server.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let file = self.directory.path().join(name);
        fs::create_dir_all(file.parent().expect("inside the directory")).expect("a directory");
        fs::write(file, text).expect("a file of the server");
    }

    pub fn path(&self, name: &str) -> String {
        self.directory.path().join(name).display().to_string()
    }

    /// The directory.
    pub fn root(&self) -> String {
        self.directory.path().display().to_string()
    }
}

/// An address that is free and that no other test gets: its port lies below those which a system
/// hands out for port 0 (Linux from 32768 on, others from 49152 on), so that no listener of a test
/// can take it before the program does.
pub fn free_address() -> SocketAddr {
    const PORTS: std::ops::Range<u32> = 12_000..32_000;
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    // Test binaries that run at the same time begin at different places.
    let first = std::process::id().wrapping_mul(997);
    let addresses = PORTS.map(|_| {
        let next =
            first.wrapping_add(TAKEN.fetch_add(1, Ordering::Relaxed)) % (PORTS.end - PORTS.start);
        SocketAddr::from(([127, 0, 0, 1], (PORTS.start + next) as u16))
    });
    let mut free = addresses.filter(|address| TcpListener::bind(address).is_ok());
    free.next().expect("a free port")
}

impl Program {
    /// Starts a program. No server reports a port that the system chose, so one is picked; a server
    /// of the machine may take it in between, and then another one is tried.
    pub fn start(prepare: impl Fn(&Prepared) -> Command) -> Program {
        let mut said = String::new();
        for _ in 0..10 {
            let directory = tempfile::tempdir().expect("a temporary directory");
            let prepared = Prepared {
                directory,
                address: free_address(),
            };
            let log = prepared.directory.path().join("program.log");
            let output = File::create(&log)
                .and_then(|file| Ok((file.try_clone()?, file)))
                .expect("a log");
            let mut command = prepare(&prepared);
            command
                .stdin(Stdio::null())
                .stdout(output.0)
                .stderr(output.1);
            let child = command
                .spawn()
                .unwrap_or_else(|error| panic!("{command:?}: {error}"));
            let mut program = Program {
                command,
                child,
                address: prepared.address,
                directory: prepared.directory,
            };
            if program.is_up() {
                return program;
            }
            said = program.log();
        }
        panic!("the program did not start in {PATIENCE:?}:\n{said}");
    }

    /// Waits until it listens, or has ended.
    fn is_up(&mut self) -> bool {
        eventually("the program listens or ends", || {
            let is_up = TcpStream::connect(self.address).is_ok();
            let has_ended = self
                .child
                .try_wait()
                .expect("the state of the program")
                .is_some();
            (is_up || has_ended).then_some(is_up && !has_ended)
        })
    }

    /// The process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it with no chance to write anything down.
    pub fn kill(&mut self) {
        self.child.kill().expect("a running program");
        self.child.wait().expect("an ended program");
    }

    /// Starts it again, after it has ended, in the same directory at the same address.
    pub fn start_again(&mut self) {
        self.child = self
            .command
            .spawn()
            .expect("a program that was started before");
        assert!(self.is_up(), "{}", self.log());
    }

    /// One request on a connection of its own.
    pub fn ask(&self, method: &str, host: &str, target: &str, headers: &str) -> Response {
        let mut connection = Connection::open(self.address);
        connection.send(&format!(
            "{method} {target} HTTP/1.1\r\nHost: {host}\r\n{headers}Connection: close\r\n\r\n"
        ));
        connection.response(method)
    }

    /// A page as a user agent gets it.
    pub fn fetch_as(&self, agent: &str, target: &str) -> Response {
        self.ask("GET", HOST, target, &format!("User-Agent: {agent}\r\n"))
    }

    /// A file in its directory.
    pub fn file(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    /// What it said so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.file("program.log")).unwrap_or_default()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program of the system, which may be where ordinary users do not search.
fn command(name: &str) -> Command {
    let sbin = Path::new("/usr/sbin").join(name);
    Command::new(if sbin.exists() { sbin } else { name.into() })
}

/// A file of `deploy/`, with other words in the place of some. Each of them has to be there.
pub fn deployed(name: &str, words: &[(&str, String)]) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("deploy")
        .join(name);
    let mut text = fs::read_to_string(file).expect("a file of deploy/");
    for (word, other) in words {
        assert!(text.contains(word), "deploy/{name} has no `{word}`");
        text = text.replace(word, other);
    }
    text
}

/// nginx with these lines for `http`.
pub fn nginx(prepared: &Prepared, http: &str) -> Command {
    let root = prepared.root();
    prepared.write(
        "nginx.conf",
        format!(
            "daemon off;\nmaster_process off;\nworker_processes 1;\npid {root}/nginx.pid;\nerror_log stderr warn;\n\
             events {{ worker_connections 1024; }}\nhttp {{\n  access_log off;\n  client_body_temp_path {root}/body;\n  \
             proxy_temp_path {root}/proxy;\n  fastcgi_temp_path {root}/fastcgi;\n  uwsgi_temp_path {root}/uwsgi;\n  \
             scgi_temp_path {root}/scgi;\n{http}\n}}\n"
        ),
    );
    let mut nginx = command("nginx");
    nginx.args([
        "-p",
        &root,
        "-e",
        "stderr",
        "-c",
        &prepared.path("nginx.conf"),
    ]);
    nginx
}

/// Caddy with these sites, without HTTPS.
pub fn caddy(prepared: &Prepared, sites: &str) -> Command {
    let options = "{\n\tadmin off\n\tauto_https off\n\tdefault_bind 127.0.0.1\n}\n";
    prepared.write("Caddyfile", format!("{options}{sites}"));
    let mut caddy = command("caddy");
    caddy.args([
        "run",
        "--adapter",
        "caddyfile",
        "--config",
        &prepared.path("Caddyfile"),
    ]);
    for (variable, directory) in [
        ("HOME", "home"),
        ("XDG_DATA_HOME", "data"),
        ("XDG_CONFIG_HOME", "config"),
    ] {
        caddy.env(variable, prepared.path(directory));
    }
    caddy
}

/// HAProxy with this configuration.
pub fn haproxy(prepared: &Prepared, configuration: &str) -> Command {
    prepared.write("haproxy.cfg", configuration);
    let mut haproxy = command("haproxy");
    haproxy.args(["-db", "-f", &prepared.path("haproxy.cfg")]);
    haproxy
}

/// Apache httpd with these lines for its only host. As root it reads its files as another user.
pub fn apache(prepared: &Prepared, lines: &str) -> Command {
    let (root, address) = (prepared.root(), prepared.address);
    fs::set_permissions(prepared.directory.path(), fs::Permissions::from_mode(0o755))
        .expect("a readable directory");
    let places = [
        "/usr/lib/apache2/modules",
        "/usr/lib64/httpd/modules",
        "/usr/lib/httpd/modules",
        "/usr/lib/apache2",
    ];
    let modules = places
        .map(Path::new)
        .into_iter()
        .find(|place| place.join("mod_headers.so").exists());
    let modules = modules.expect("the modules of Apache");
    let mut load = String::new();
    for name in [
        "mpm_event",
        "unixd",
        "authz_core",
        "alias",
        "dir",
        "headers",
        "mime",
        "proxy",
        "proxy_http",
    ] {
        // Some systems have a part of them in the program.
        let file = modules.join(format!("mod_{name}.so"));
        if file.exists() {
            load.push_str(&format!("LoadModule {name}_module {}\n", file.display()));
        }
    }
    prepared.write(
        "mime.types",
        "text/html html\napplication/pdf pdf\nimage/png png\ntext/plain txt\n",
    );
    prepared.write(
        "httpd.conf",
        format!(
            "{load}ServerRoot {root}\nServerName {HOST}\nListen {address}\nDefaultRuntimeDir {root}\nPidFile {root}/httpd.pid\n\
             ErrorLog /dev/stderr\nLogLevel warn\nUser #65534\nGroup #65534\nTypesConfig {root}/mime.types\n\
             <VirtualHost {address}>\n{lines}\n</VirtualHost>\n"
        ),
    );
    let mut apache = command(if Path::new("/usr/sbin/apache2").exists() {
        "apache2"
    } else {
        "httpd"
    });
    apache.args(["-X", "-f", &prepared.path("httpd.conf")]);
    apache
}

/// Caddy, serving the files of a directory as its file server does by default.
pub fn caddy_with_files(files: &[(&str, &str)]) -> Program {
    Program::start(|prepared| {
        for (name, text) in files {
            prepared.write(&format!("site/{name}"), text);
        }
        let port = prepared.address.port();
        caddy(
            prepared,
            &format!(
                "http://:{port} {{\n\troot * {}\n\tfile_server\n}}\n",
                prepared.path("site")
            ),
        )
    })
}

/// HAProxy, passing connections on as they are to an address; `server` is the rest of the server's
/// line.
pub fn haproxy_passing_on(to: SocketAddr, server: &str) -> Program {
    Program::start(|prepared| {
        let configuration = format!(
            "global\n  maxconn 200\ndefaults\n  mode tcp\n  timeout connect 10s\n  timeout client 30s\n  timeout server 30s\n\
             listen all\n  bind {}\n  option httpchk GET /health\n  http-check expect status 200\n  server one {to} {server}\n",
            prepared.address
        );
        haproxy(prepared, &configuration)
    })
}
