//! README and the tutorial do what they say. A test runs each of their commands, top to bottom, in
//! one directory, and compares what it prints with what the page shows.
//!
//! A block `sh` is run, and a block `text` behind it is its output, where `...` stands for any
//! lines. A block `yaml` that begins with the comment of a file name becomes that file. Servers run
//! until the end. Each server gets a free port in place of the one on the page. With `UPDATE_DOCS=1`
//! the page gets the real output.

use crate::proxy::support::nginx::Nginx;
use crate::proxy::support::program::free_address;
use crate::proxy::support::{Authority, BROWSER, Origin, eventually, read};
use regex::Regex;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::thread;
use tempfile::TempDir;

/// The ports on the pages: crawlgate's, the origin's and the admin listener's.
const PORTS: [&str; 3] = ["8080", "3000", "9190"];

/// A fenced block of a page.
struct Block {
    language: String,
    text: String,
    /// Whether nothing but blank lines stand between it and the block before.
    follows_directly: bool,
}

fn page_path(page: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(page)
}

fn blocks(page: &str) -> Vec<Block> {
    let text = read(&page_path(page));
    let parts: Vec<&str> = text.split("```").collect();
    let pairs = parts.chunks_exact(2);
    pairs
        .map(|pair| {
            let (language, text) = pair[1].split_once('\n').expect("a line below the fence");
            Block {
                language: language.to_owned(),
                text: text.to_owned(),
                follows_directly: pair[0].trim().is_empty(),
            }
        })
        .collect()
}

fn updates_pages() -> bool {
    std::env::var_os("UPDATE_DOCS").is_some()
}

/// Puts an output in the place of the one on the page. If the page leaves out the end, it goes on
/// to leave out what is behind the same number of lines.
fn update_page(page: &str, shown: &str, output: &str) {
    let middle = shown.strip_suffix("...\n").unwrap_or(shown);
    assert!(
        !middle.contains("...\n"),
        "{page}: lines are left out in the middle, so update it by hand"
    );
    let output = match shown.strip_suffix("...\n") {
        Some(lines) => {
            let kept: Vec<&str> = output.lines().take(lines.lines().count()).collect();
            kept.join("\n") + "\n...\n"
        }
        None => output.to_owned(),
    };
    let text = read(&page_path(page));
    let text = text.replacen(
        &format!("```text\n{shown}"),
        &format!("```text\n{output}"),
        1,
    );
    fs::write(page_path(page), text).expect("the page");
}

/// The text without what differs from run to run: dates, addresses, hashes, sizes, line breaks.
fn comparable(text: &str) -> String {
    static CHANGING: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(concat!(
            r"\d{1,2} [A-Z][a-z]{2} \d{4}(, \d\d:\d\d)?",
            r"|\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?Z?)?)?",
            r"|127\.0\.0\.1:\d+|\b[0-9a-f]{16}\b|\b\d+ s\b",
            r"|[\d.,]+ (bytes?|B|KiB|MiB)\b|\d+ %",
        ))
        .expect("an expression")
    });
    let text = CHANGING.replace_all(text, "#");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether an output has the parts of the page in their order.
fn matches(output: &str, page: &str) -> bool {
    let output = comparable(output);
    let mut rest = output.as_str();
    let parts: Vec<String> = page.split("...\n").map(comparable).collect();
    for (index, part) in parts.iter().enumerate() {
        let Some(place) = rest.find(part.as_str()) else {
            return false;
        };
        if index == 0 && place > 0 {
            return false;
        }
        rest = &rest[place + part.len()..];
    }
    rest.is_empty() || parts.last().is_some_and(String::is_empty)
}

/// Does what a page says.
struct Reader {
    directory: TempDir,
    ports: [String; 3],
    environment: Vec<(&'static str, String)>,
    servers: Vec<Child>,
    seconds_slept: u64,
}

impl Reader {
    fn new() -> Reader {
        let directory = tempfile::tempdir().expect("a temporary directory");
        fs::write(directory.path().join(".clock"), "elapsed 0s").expect("a clock");
        Reader {
            directory,
            ports: [(); 3].map(|()| free_address().port().to_string()),
            environment: Vec::new(),
            servers: Vec::new(),
            seconds_slept: 0,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The address of a port of the pages.
    fn address(&self, port: &str) -> SocketAddr {
        self.with_ports(&format!("127.0.0.1:{port}"))
            .parse()
            .expect("an address")
    }

    fn with_ports(&self, text: &str) -> String {
        let ports = PORTS.iter().zip(&self.ports);
        ports.fold(text.to_owned(), |text, (on_page, free)| {
            let on_page = Regex::new(&format!(r"\b{on_page}\b")).expect("an expression");
            on_page.replace_all(&text, free).into_owned()
        })
    }

    fn read_page(&mut self, page: &str) {
        let blocks = blocks(page);
        let mut commands = 0;
        for (index, block) in blocks.iter().enumerate() {
            let next = blocks.get(index + 1);
            let output = next.filter(|next| next.language == "text" && next.follows_directly);
            let shown = output.map(|next| next.text.as_str());
            match block.language.as_str() {
                "sh" => {
                    let output = self.run(&block.text, shown);
                    if let Some(shown) = shown.filter(|shown| !matches(&output, shown)) {
                        update_page(page, shown, &output);
                    }
                    commands += 1;
                }
                "yaml" => self.write_file(&block.text),
                _ => {}
            }
        }
        assert!(commands > 3, "{page} has {commands} blocks of commands");
    }

    fn write_file(&self, text: &str) {
        let name = text.lines().next().and_then(|line| line.strip_prefix("# "));
        if let Some(name) = name.filter(|name| name.ends_with(".yaml")) {
            fs::write(self.path(name), self.with_ports(text)).expect("a file of the page");
        }
    }

    /// Does what a block says. Returns the output, with the ports of the page.
    fn run(&mut self, commands: &str, expected: Option<&str>) -> String {
        let script = self.with_ports(commands);
        let mut output = String::new();
        if let Some(seconds) = commands.strip_prefix("sleep ") {
            self.let_time_pass(seconds.split_whitespace().next().expect("seconds"));
        } else if commands.starts_with("crawlgate run") {
            let script = format!("exec {} --clock .clock 2>.log", script.trim_end());
            output = self.start_server(&script, self.address("8080"));
        } else if commands.starts_with("python3 -m http.server") {
            self.start_server(&format!("exec {script}"), self.address("3000"));
        } else {
            output = self.run_to_its_end(&script, expected);
        }
        // `init` writes the ports that are its defaults.
        if let Ok(settings) = fs::read_to_string(self.path("crawlgate.yaml")) {
            fs::write(self.path("crawlgate.yaml"), self.with_ports(&settings)).expect("settings");
        }
        let ports = self.ports.iter().zip(PORTS);
        let output = ports.fold(output, |text, (free, on_page)| text.replace(free, on_page));
        if let Some(expected) = expected.filter(|_| !updates_pages()) {
            let is_right = matches(&output, expected);
            assert!(is_right, "{script}\nprints\n{output}\nand not\n{expected}");
        }
        output
    }

    fn shell(&self, script: &str, output: &Path) -> Command {
        let program = Path::new(env!("CARGO_BIN_EXE_crawlgate"));
        let programs = program.parent().expect("its directory").display();
        let path = std::env::var("PATH").unwrap_or_default();
        let file = File::create(output).expect("a file for the output");
        let mut command = Command::new("bash");
        command
            .args(["-e", "-c", script])
            .current_dir(self.directory.path())
            .env("PATH", format!("{programs}:{path}"))
            .env("HOME", self.directory.path())
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stderr(file.try_clone().expect("the same file"))
            .stdout(file);
        command
    }

    /// Runs commands. What only reads is asked again until it is as on the page: requests are
    /// counted a moment after their answer.
    fn run_to_its_end(&self, script: &str, expected: Option<&str>) -> String {
        let file = self.path(".output");
        let reads = ["report", "explain", "status"];
        let only_reads = |command| script.starts_with(&format!("crawlgate {command} "));
        let attempts = if reads.into_iter().any(only_reads) {
            50
        } else {
            1
        };
        let mut output = String::new();
        for _ in 0..attempts {
            let status = self.shell(script, &file).status().expect("bash");
            output = read(&file);
            assert!(
                status.success() || expected.is_some(),
                "{script}\nprints\n{output}"
            );
            if expected.is_none_or(|expected| matches(&output, expected)) {
                break;
            }
        }
        output
    }

    /// Starts a server that runs until the end. Returns what it prints until it listens.
    fn start_server(&mut self, script: &str, address: SocketAddr) -> String {
        let file = self.path(".server");
        let server = self.shell(script, &file).spawn().expect("bash");
        self.servers.push(server);
        eventually("the server listens", || TcpStream::connect(address).ok());
        if !script.contains("crawlgate") {
            return String::new();
        }
        eventually("the addresses of crawlgate", || {
            Some(read(&file)).filter(|output| output.contains("admin on"))
        })
    }

    /// Moves the clock of crawlgate in place of waiting.
    fn let_time_pass(&mut self, seconds: &str) {
        self.seconds_slept += seconds.parse::<u64>().expect("seconds");
        let new = self.path(".new-clock");
        fs::write(&new, format!("elapsed {}s", self.seconds_slept)).expect("a clock");
        fs::rename(new, self.path(".clock")).expect("the clock in its place");
        let moved = format!("elapsed={}", self.seconds_slept);
        eventually("crawlgate's clock moves", || {
            read(&self.path(".log")).contains(&moved).then_some(())
        });
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        for server in &mut self.servers {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

const ROBOTS: &str = "User-agent: *\nDisallow: /cart/\n";

/// Lets the reader's commands reach `shop.example` and `www.shop.example` over http and https, by a
/// proxy for CONNECT. The origin of the site listens where the page says.
fn connect_to_site(reader: &mut Reader) -> Nginx {
    let listener = TcpListener::bind(reader.address("3000")).expect("the origin's port");
    let plain = Origin::on(listener, |request, stream| {
        let is_robots = request.target() == "/robots.txt";
        let body = if is_robots { ROBOTS } else { "hello" };
        let length = body.len();
        let head = format!("Content-Type: text/plain\r\nContent-Length: {length}");
        write!(stream, "HTTP/1.1 200 OK\r\n{head}\r\n\r\n{body}").is_ok()
    });
    let authority = Authority::new();
    let names = ["shop.example", "www.shop.example"];
    authority.certify(reader.directory.path(), ".site", &names, 2100);
    let certificate = read(&reader.path(".site.pem"));
    let tls = Nginx::start_tls(&certificate, &read(&reader.path(".site.key")));
    tls.write("robots.txt", ROBOTS);
    let trusted = reader.path(".authority.pem");
    fs::write(&trusted, authority.pem()).expect("the authority");
    let proxy = start_proxy(plain.address, tls.address);
    reader.environment = vec![
        ("SSL_CERT_FILE", trusted.display().to_string()),
        ("ALL_PROXY", format!("http://{proxy}")),
        ("NO_PROXY", "127.0.0.1".to_owned()),
    ];
    tls
}

/// Starts a proxy that connects each host of the site: port 443 with `tls`, any other with `plain`.
fn start_proxy(plain: SocketAddr, tls: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("its address");
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || connect_client(client, plain, tls));
        }
    });
    address
}

fn connect_client(client: TcpStream, plain: SocketAddr, tls: SocketAddr) -> io::Result<()> {
    let mut reader = BufReader::new(client.try_clone()?);
    let mut head = String::new();
    while reader.read_line(&mut head)? > 2 {}
    let target = head.split(' ').nth(1).unwrap_or_default();
    let server = if target.ends_with(":443") { tls } else { plain };
    let server = TcpStream::connect(server)?;
    (&client).write_all(b"HTTP/1.1 200 Connected\r\n\r\n")?;
    let mut answers = server.try_clone()?;
    let mut to_client = client;
    thread::spawn(move || io::copy(&mut answers, &mut to_client));
    io::copy(&mut reader, &mut &server)?;
    server.shutdown(std::net::Shutdown::Write)
}

/// The requests in the access log that README audits: how many, by whom, for what.
const AUDITED: [(usize, &str, &str); 5] = [
    (40, "Googlebot/2.1", "/shoes/"),
    (31, "Bytespider", "/cart/"),
    (12, "GPTBot/1.3", "/hats/"),
    (5, "PriceWatchBot/1.3", "/cart/"),
    (90, BROWSER, "/shoes/"),
];

fn write_access_log(reader: &Reader) {
    let mut log = String::new();
    for (count, user_agent, target) in AUDITED {
        for second in 0..count {
            let time = format!("20/Nov/2026:10:{:02}:{:02} +0000", second / 60, second % 60);
            log += &format!(
                "203.0.113.9 - - [{time}] \"GET {target}{second} HTTP/1.1\" 200 512 \"-\" \"{user_agent}\"\n"
            );
        }
    }
    fs::write(reader.path("access.log"), log).expect("a log");
}

#[test]
fn every_command_of_readme_does_what_it_shows() {
    let mut reader = Reader::new();
    let _site = connect_to_site(&mut reader);
    write_access_log(&reader);
    reader.read_page("README.md");
}

#[test]
fn every_command_of_the_tutorial_does_what_it_shows() {
    Reader::new().read_page("docs/tutorial.md");
}

#[test]
fn other_dates_and_sizes_match_other_words_do_not() {
    let page = "2 of 3 since 2026-11-29 15:50\n...\n12 bytes\n";
    assert!(matches(
        "2 of 3  since 2027-01-01 00:00\nx\n1,412 bytes\n",
        page
    ));
    assert!(!matches(
        "1 of 3 since 2027-01-01 00:00\n1,412 bytes\n",
        page
    ));
    assert!(!matches("2 of 3 since 2027-01-01 00:00\n", page));
    assert!(!matches(
        "2 of 3 since 2027-01-01 00:00\n1 byte\nmore\n",
        page
    ));
}
