//! A real nginx as an origin: its own directory, its own port on loopback, gone when dropped.

use super::eventually;
use super::program::{Program, nginx};
use std::fs;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;

/// A running nginx.
pub struct Nginx {
    program: Program,
    /// Where it listens.
    pub address: SocketAddr,
}

impl Nginx {
    /// Starts nginx with a site of HTML, PDF, PNG, a redirect, a 404, a large file, an upload sink,
    /// and `/socket` proxied as an upgraded connection to `upgrade_backend`.
    pub fn start(upgrade_backend: Option<SocketAddr>) -> Nginx {
        Nginx::start_with(upgrade_backend, None)
    }

    /// The same site over TLS, with a certificate and its key in PEM.
    pub fn start_tls(certificate: &str, key: &str) -> Nginx {
        Nginx::start_with(None, Some((certificate, key)))
    }

    fn start_with(upgrade_backend: Option<SocketAddr>, certificate: Option<(&str, &str)>) -> Nginx {
        let program = Program::start(|prepared| {
            let (root, address) = (prepared.root(), prepared.address);
            write_site(&prepared.directory.path().join("site"));
            let upgrade = upgrade_backend.map_or(String::new(), |backend| {
                format!(
                    "location /socket {{ proxy_pass http://{backend}; proxy_http_version 1.1; \
                     proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; }}"
                )
            });
            let tls = certificate.map_or(String::new(), |(certificate, key)| {
                prepared.write("certificate.pem", certificate);
                prepared.write("key.pem", key);
                format!(
                    "ssl_certificate {root}/certificate.pem; ssl_certificate_key {root}/key.pem;"
                )
            });
            let ssl = if certificate.is_some() { "ssl" } else { "" };
            let http = format!(
                r#"
  client_max_body_size 64m;
  types {{ text/html html; application/pdf pdf; image/png png; text/plain txt; application/byte-stream bin; }}
  server {{
    listen {address} {ssl};
    {tls}
    access_log {root}/access.log;
    root {root}/site;
    location = /old {{ return 301 /index.html; }}
    location = /tagged.html {{ add_header X-Robots-Tag "googlebot: nofollow"; add_header X-Robots-Tag "noarchive"; }}
    location = /forwarded {{ return 200 "$http_x_forwarded_for|$http_x_forwarded_proto|$http_x_forwarded_host|$host"; }}
    location = /upload {{ proxy_pass http://{address}/sink; }}
    location = /sink {{ return 200 "$content_length"; }}
    {upgrade}
  }}
"#
            );
            nginx(prepared, &http)
        });
        Nginx {
            address: program.address,
            program,
        }
    }

    /// Puts a file of the site in its place.
    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.program.file("site").join(name), text).expect("a file of the site");
    }

    /// The paths of nginx's access log: which requests reached the origin.
    ///
    /// nginx answers first and writes its log afterwards, so that the client may look too early. It
    /// does one thing after the other, though: once a request of this function's own is in the log,
    /// so is everything that was answered before.
    pub fn requests(&self) -> Vec<String> {
        const MARK: &str = "/last-line-of-the-log";
        let before = self.logged().iter().filter(|path| *path == MARK).count();
        let mut stream = TcpStream::connect(self.address).expect("nginx accepts");
        write!(stream, "GET {MARK} HTTP/1.0\r\n\r\n").expect("the mark is asked for");
        let mut logged = eventually("the mark is in nginx's log", || {
            let logged = self.logged();
            (logged.iter().filter(|path| *path == MARK).count() > before).then_some(logged)
        });
        logged.retain(|path| path != MARK);
        logged
    }

    fn logged(&self) -> Vec<String> {
        let log = fs::read_to_string(self.program.file("access.log")).unwrap_or_default();
        log.lines()
            .filter_map(|line| line.split('"').nth(1)?.split(' ').nth(1).map(str::to_owned))
            .collect()
    }
}

/// Size of `/large.bin`.
pub const LARGE: usize = 8 * 1024 * 1024;

/// Writes the pages of the site into a directory.
pub fn write_site(root: &Path) {
    let page = |title: &str, links: &[&str]| {
        let list: String = links
            .iter()
            .map(|link| format!("<li><a href=\"{link}\">{link}</a></li>"))
            .collect();
        format!("<!doctype html><title>{title}</title><h1>{title}</h1><ul>{list}</ul>\n")
    };
    let files: [(&str, Vec<u8>); 9] = [
        (
            "index.html",
            page(
                "Home",
                &[
                    "/about.html",
                    "/report.pdf",
                    "/picture.png",
                    "/private/one.html",
                ],
            )
            .into(),
        ),
        (
            "about.html",
            page("About", &["/", "/private/two.html"]).into(),
        ),
        ("tagged.html", page("Tagged", &[]).into()),
        (
            "private/one.html",
            page("One", &["/private/two.html"]).into(),
        ),
        ("private/two.html", page("Two", &[]).into()),
        (
            "robots.txt",
            b"User-agent: *\nDisallow: /about.html\n".to_vec(),
        ),
        ("report.pdf", b"%PDF-1.4\n%%EOF\n".to_vec()),
        ("picture.png", b"\x89PNG\r\n\x1a\n".to_vec()),
        (
            "large.bin",
            (0..LARGE).map(|index| (index % 251) as u8).collect(),
        ),
    ];
    for (name, bytes) in files {
        let file = root.join(name);
        fs::create_dir_all(file.parent().expect("inside the root")).expect("a directory");
        fs::write(file, bytes).expect("a file of the site");
    }
}
