//! A real browser before and after: it finds the metas where metas belong, and shows the page as it was.

#![cfg(feature = "proxy")]

mod support;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use support::{Gate, Origin, Received, Setup};

const POLICY: &str = r#"
robots: { origin: replace }
indexing: [{ paths: [/after/], tags: { "*": [noindex, "max-snippet: 20"], googlebot: nofollow } }]
html: { meta: yes, paths: [/after/], links: [{ select: ".comments a", rel: ugc }], nosnippet: [.price] }
"#;

const ROBOTS: &str = "<meta name=\"robots\" content=\"noindex, max-snippet: 20\">";
const GOOGLEBOT: &str = "<meta name=\"googlebot\" content=\"nofollow\">";

/// Pages by name. All but those of [`WITHOUT_METAS`] are to have both metas in their head.
const PAGES: &[(&str, &str)] = &[
    (
        "ordinary",
        "<!doctype html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n<title>Ordinary</title>\n<style>p { color: #a00; \
         margin: 2em } head + body { background: #eef }</style>\n</head>\n<body>\n<p>One.\n<p class=price>Two €.</p>\n\
         <div class=comments><a href=/x>who</a></div>\n</body>\n</html>\n",
    ),
    ("no-tags-but-a-title", "<!doctype html><title>Bare</title>\n<p>first<p>second"),
    ("text-first", "<!doctype html>\n  just text &amp; nothing else"),
    ("head-not-closed", "<html><head><title>Open</title><link rel=icon href=data:,><body>text</body></html>"),
    (
        "broken-head",
        "<html><head><title>Broken</title><h1>Heading</h1><style>h1 { color: green }</style></head><body>x",
    ),
    (
        "hidden-metas",
        "<!doctype html><head><!-- <meta name=robots content=all> <p> --><noscript><meta name=robots content=all></noscript>\
         <template><p>t</p></template><script>document.title = '<p>' + document.querySelectorAll('p').length</script>\
         </head><svg width=20 height=20><title>s</title><circle r=9 cx=10 cy=10 /></svg><p>x</p>",
    ),
    (
        "misnested",
        "<!doctype html><title>m</title><b><p>x</b>y</p><table><tr><td>z<div>w</table><a href=1>p<a href=2>q",
    ),
    (
        "frames",
        "<html><title>f</title><frameset cols=50%,50%><frame src=about:blank><frame src=about:blank></frameset></html>",
    ),
    ("quirks", "<title>q</title><table height=100%><tr><td>quirks</table>"),
    ("byte-order-mark", "\u{FEFF}<!doctype html><title>é</title><p>ü €</p>"),
    ("own-meta", "<!doctype html><title>o</title><meta name=robots content=\"max-snippet:50\"><p>x</p>"),
    ("fragment", "<p>no document <b class=price>5</b></p>"),
    ("select-and-xmp", "<!doctype html><title>s</title><select><option>1<xmp></select><p>x</p>"),
];

const WITHOUT_METAS: [&str; 1] = ["fragment"];

fn gate() -> (Origin, Gate) {
    let origin = Origin::start(|request: &Received, stream| {
        let page = PAGES.iter().find(|(name, _)| request.target().ends_with(&format!("/{name}")));
        let (status, body) = page.map_or(("404 Not Found", ""), |(_, body)| ("200 OK", *body));
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nCache-Control: no-store\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).is_ok()
    });
    let gate = Setup::before(origin.address).policy("site", POLICY).start();
    (origin, gate)
}

/// Runs the browser; nothing but this machine can be reached from it.
fn chromium(directory: &Path, arguments: &[&str], url: &str) -> Vec<u8> {
    let browser = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| {
        let asked = Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        asked.is_ok_and(|status| status.success())
    });
    let output = Command::new(browser.expect("chromium is installed"))
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-sync",
        ])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-default-apps"])
        .args(["--disable-extensions", "--no-proxy-server", "--hide-scrollbars", "--window-size=640,480"])
        .arg("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
        .arg(format!("--user-data-dir={}", directory.display()))
        .args(arguments)
        .arg(url)
        .stdin(Stdio::null())
        .output()
        .expect("the browser runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn dom(gate: &Gate, path: &str) -> String {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let url = format!("http://{}{path}", gate.address);
    String::from_utf8(chromium(directory.path(), &["--dump-dom"], &url)).expect("UTF-8")
}

/// What the picture shows, file by file.
fn picture(gate: &Gate, path: &str) -> Vec<u8> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("page.png");
    let url = format!("http://{}{path}", gate.address);
    chromium(&directory.path().join("profile"), &[&format!("--screenshot={}", file.display())], &url);
    std::fs::read(file).expect("a picture")
}

#[test]
fn the_document_is_what_it_was_but_for_what_was_written_into_it() {
    let (_origin, gate) = gate();
    for (name, _) in PAGES {
        let before = dom(&gate, &format!("/before/{name}"));
        let after = dom(&gate, &format!("/after/{name}"));
        assert!(before.contains("<head>") && !before.contains(ROBOTS), "{name}: {before}");
        let (head, rest) = after.split_once("</head>").expect("a head");
        if !WITHOUT_METAS.contains(name) {
            // Written by the browser in its own way, from where it found them: once each, in the head.
            for meta in [ROBOTS, GOOGLEBOT] {
                assert_eq!((head.matches(meta).count(), rest.matches(meta).count()), (1, 0), "{name}: {after}");
            }
        }
        let without_ours = after
            .replace(ROBOTS, if *name == "own-meta" { "<meta name=\"robots\" content=\"max-snippet:50\">" } else { "" })
            .replace(GOOGLEBOT, "")
            .replace(" data-nosnippet=\"\"", "")
            .replace(" rel=\"ugc\"", "");
        assert_eq!(without_ours, before, "{name}");
    }
}

#[test]
fn the_page_looks_as_it_did() {
    let (_origin, gate) = gate();
    for name in ["ordinary", "broken-head", "quirks"] {
        let (before, after) = (picture(&gate, &format!("/before/{name}")), picture(&gate, &format!("/after/{name}")));
        assert!(before.len() > 500, "{name}: {} octets of picture", before.len());
        assert!(before == after, "{name} looks otherwise");
    }
    assert!(picture(&gate, "/before/ordinary") != picture(&gate, "/before/quirks"), "pictures tell pages apart");
}
