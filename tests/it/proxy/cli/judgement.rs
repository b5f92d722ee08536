//! `check`, `check --origin-robots`, `tester`, `import` and a running gate judge a robots.txt
//! alike: whether it is one, and what of the site it closes to search engines.

use crate::proxy::support::{Gate, Origin, Received, Setup, eventually, run};
use crawlgate::crawlers::Registry;
use crawlgate::robots::{Dialect, DialectRules, RobotsFile};
use serde_json::Value;
use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judgement {
    /// Something in place of a robots.txt.
    Page,
    /// A file that keeps Googlebot off the whole site. It is held back.
    Closed,
    /// A file that keeps a search engine off the front page, or off more. It is published.
    PartlyClosed,
    Open,
}
use Judgement::{Closed, Open, Page, PartlyClosed};

const POLICY: &str = "robots: { origin: only }\n";

/// Files of the kinds that were judged differently once.
fn known() -> Vec<(Vec<u8>, Judgement)> {
    let mut files = Vec::new();
    let rules = [
        ("Disallow: /", Closed),
        ("Disallow: /*", Closed),
        ("Disallow: *", Closed),
        ("Disallow: /*$", Closed),
        (
            "Disallow: /\nAllow: /robots.txt\nAllow: /.well-known/",
            Closed,
        ),
        ("Disallow: /\nAllow: /wp-admin/admin-ajax.php", Closed),
        ("Disallow: /$", PartlyClosed),
        ("Disallow: *\nAllow: /a", PartlyClosed),
        ("Disallow: /\nAllow: /blog/", PartlyClosed),
        ("Disallow: /\nAllow: /$", PartlyClosed),
        ("Disallow: /*/\nDisallow: /$", PartlyClosed),
        ("Disallow: /\nAllow: /", Open),
        ("Disallow: /admin/", Open),
        ("Disallow:", Open),
    ];
    for (rules, judgement) in rules {
        let for_bing = if judgement == Closed {
            PartlyClosed
        } else {
            judgement
        };
        files.push((format!("User-agent: *\n{rules}\n"), judgement));
        files.push((
            format!("User-agent: Googlebot\n{rules}\n\nUser-agent: *\nAllow: /\n"),
            judgement,
        ));
        files.push((
            format!("User-agent: bingbot\n{rules}\n\nUser-agent: *\nDisallow: /admin/\n"),
            for_bing,
        ));
        files.push((format!("User-agent: GPTBot\n{rules}\n"), Open));
    }
    for start in [
        "<script>",
        "<html>",
        "<?xml version=\"1.0\"?>",
        "<!DOCTYPE html>",
        "<!-- robots -->",
        "\u{feff}<body>",
    ] {
        files.push((format!("{start}\n"), Page));
        files.push((format!("{start}\nUser-agent: *\n"), Page));
        files.push((format!("{start}\nUser-agent: *\nDisallow: /admin/\n"), Open));
        files.push((format!("{start}\nUser-agent: *\nDisallow: /\n"), Closed));
    }
    for glue in [
        "",
        "\n",
        "# No training.\n",
        "Sitemap: https://a.example/s.xml\n",
        "Crawl-delay: 5\n",
        "welcome to all\n",
    ] {
        files.push((
            format!("User-agent: bingbot\n{glue}User-agent: GPTBot\nDisallow: /\n"),
            PartlyClosed,
        ));
        files.push((
            format!("User-agent: Googlebot\n{glue}User-agent: GPTBot\nDisallow: /\n"),
            Closed,
        ));
    }
    // Google's library cuts a name at the first sign that is no letter.
    for name in ["Googlebot2", "Googlebot.", "Googlebot*", "Googlebot/2.1"] {
        files.push((
            format!("User-agent: *\nDisallow: /admin/\n\nUser-agent: {name}\nDisallow: /\n"),
            Closed,
        ));
    }
    let long = format!(
        "User-agent: bingbot\n{}",
        "Disallow: /some/long/path/of/a/shop/\n".repeat(15_000)
    );
    files.push((format!("{long}Disallow: /\n"), Open));
    files.push(("User-agent: *\u{a0}\nDisallow: /\n".into(), Open));
    files.push(("Sitemap: https://a.example/s.xml\n".into(), Open));
    files.push((String::new(), Open));
    files
        .into_iter()
        .map(|(text, judgement)| (text.into_bytes(), judgement))
        .collect()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// The judgement of the ids of findings.
fn found(ids: &str) -> Judgement {
    let has = |id: &str| ids.contains(&format!("\"{id}\""));
    match () {
        () if has("not-a-robots-txt") => Page,
        () if has("site-closed") || has("site-disallowed") => Closed,
        () if has("site-partly-closed") => PartlyClosed,
        () => Open,
    }
}

fn check(file: &str) -> Judgement {
    found(&said(&run(&["check", "--format", "json", file])))
}

fn check_of_a_policy(policies: &str, file: &str) -> Judgement {
    let output = run(&[
        "check",
        "--format",
        "json",
        policies,
        "--origin-robots",
        file,
    ]);
    // What is no robots.txt is not taken for the origin's.
    if output.status.code() == Some(3) {
        Page
    } else {
        found(&said(&output))
    }
}

/// Whether both search engines may fetch the front page and another one, by the file that is read.
fn verdicts(allowed: impl Fn(&str, &str) -> bool) -> [bool; 4] {
    [
        ("Googlebot", "/"),
        ("Googlebot", "/a/page"),
        ("bingbot", "/"),
        ("bingbot", "/a/page"),
    ]
    .map(|(agent, target)| allowed(agent, target))
}

/// `tester` gives verdicts, and warns of what is no robots.txt.
fn tester(file: &str) -> (bool, [bool; 4]) {
    let output = run(&[
        "tester",
        file,
        "--agent",
        "Googlebot",
        "--agent",
        "bingbot",
        "/",
        "/a/page",
        "--json",
    ]);
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).expect("JSON");
    let allowed = |agent: &str, url: &str| {
        let row = rows
            .iter()
            .find(|row| row["agent"] == agent && row["url"] == url);
        row.expect("a verdict")["allowed"]
            .as_bool()
            .expect("a verdict")
    };
    (!output.stderr.is_empty(), verdicts(allowed))
}

fn import(file: &str) -> Judgement {
    let output = run(&["import", file, "--host", "shop.example"]);
    let notes = String::from_utf8_lossy(&output.stderr);
    match () {
        () if notes.contains("HTML") || notes.contains("UTF-16") => Page,
        () if String::from_utf8_lossy(&output.stdout)
            .contains("# acknowledge: [site_disallowed]") =>
        {
            Closed
        }
        () => Open,
    }
}

/// What the gate does with the file, and what the file that it serves allows.
fn gate(gate: &Gate, host: &str, state: &str) -> (Judgement, [bool; 4]) {
    let served = gate.get(host, "/robots.txt", "");
    let judgement = match state {
        "held_back" => Closed,
        // A page is no file; what cannot be read at all may become one.
        "absent" | "awaited" => Page,
        "current" => Open,
        other => panic!("{host}: {other}"),
    };
    let is_closed = matches!(state, "held_back" | "awaited");
    assert_eq!(
        served.status,
        if is_closed { 503 } else { 200 },
        "{host}: {state}"
    );
    let reading = DialectRules::new(
        &RobotsFile::parse(served.body),
        Dialect::Rfc9309,
        &Registry::builtin().tokens_with_blanks(),
    );
    let allowed =
        |agent: &str, target: &str| reading.verdict(agent.as_bytes(), target.as_bytes()).allowed;
    (judgement, verdicts(allowed))
}

/// The states of the sites whose origin was asked.
fn asked(running: &Gate) -> HashMap<String, String> {
    let status: Value =
        serde_json::from_slice(&running.command(&["status", "--json"]).stdout).expect("JSON");
    let sites = status["sites"].as_array().expect("sites").iter();
    let answered = sites.filter(|site| {
        let robots = &site["origin_robots"];
        robots["state"] != "awaited" || !robots["problem"].is_null()
    });
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    answered
        .map(|site| (text(&site["site"]), text(&site["origin_robots"]["state"])))
        .collect()
}

#[test]
fn file_is_judged_alike_by_every_command_and_by_the_gate() {
    let zoo = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/zoo");
    let mut paths: Vec<PathBuf> = fs::read_dir(zoo)
        .expect("files")
        .map(|entry| entry.expect("a file").path())
        .collect();
    paths.sort();
    let zoo = paths
        .into_iter()
        .map(|path| (fs::read(path).expect("a file"), None));
    let files: Vec<_> = known()
        .into_iter()
        .map(|(bytes, judgement)| (bytes, Some(judgement)))
        .chain(zoo)
        .collect();
    assert!(files.len() >= 100, "{}", files.len());

    let directory = tempfile::tempdir().expect("a directory");
    let policies = directory.path().join("policies");
    fs::create_dir(&policies).expect("a directory");
    fs::write(policies.join("site.yaml"), POLICY).expect("a policy");
    let policies = policies.to_str().expect("UTF-8");

    let host = |place: usize| format!("f{place}.example");
    let by_host: HashMap<String, Vec<u8>> = files
        .iter()
        .enumerate()
        .map(|(place, (bytes, _))| (host(place), bytes.clone()))
        .collect();
    let by_host = Arc::new(by_host);
    let origin = Origin::start(move |request: &Received, stream| {
        let body = request
            .field("host")
            .and_then(|host| by_host.get(host))
            .cloned()
            .unwrap_or_default();
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(&[head.as_bytes(), &body].concat()).is_ok()
    });
    let mut setup = Setup::before(origin.address);
    for place in 0..files.len() {
        setup = setup.policy(
            &format!("f{place}"),
            &format!("hosts: [{}]\n{POLICY}", host(place)),
        );
    }
    let running = setup.start();
    let mut states = HashMap::new();
    while states.len() < files.len() {
        let known = states.len();
        states = eventually("one more origin was asked", || {
            let states = asked(&running);
            (states.len() > known).then_some(states)
        });
    }

    for (place, (bytes, expected)) in files.iter().enumerate() {
        let file = directory.path().join(format!("{place}.txt"));
        fs::write(&file, bytes).expect("a file");
        let file = file.to_str().expect("UTF-8");
        let shown = || {
            format!(
                "{place}: {}",
                String::from_utf8_lossy(&bytes[..bytes.len().min(300)])
            )
        };
        let judgement = check(file);
        if let Some(expected) = expected {
            assert_eq!(judgement, *expected, "check of {}", shown());
        }
        assert_eq!(
            check_of_a_policy(policies, file),
            judgement,
            "check --origin-robots of {}",
            shown()
        );
        // What is published is open to them.
        let published = if judgement == PartlyClosed {
            Open
        } else {
            judgement
        };
        assert_eq!(import(file), published, "import of {}", shown());
        let (warns, allowed) = tester(file);
        // Crawlers read no more than 500 KiB.
        let is_cut = bytes.len() > 500 * 1024;
        assert_eq!(warns, judgement == Page || is_cut, "tester of {}", shown());
        match judgement {
            Closed => assert_eq!(allowed[..2], [false; 2], "tester of {}", shown()),
            PartlyClosed => assert_ne!(allowed, [true; 4], "tester of {}", shown()),
            Page => assert_eq!(allowed, [true; 4], "tester of {}", shown()),
            Open => assert_eq!([allowed[0], allowed[2]], [true; 2], "tester of {}", shown()),
        }
        let (by_gate, served) = gate(&running, &host(place), &states[&format!("f{place}")]);
        assert_eq!(by_gate, published, "the gate about {}", shown());
        if published == Open {
            assert_eq!(served, allowed, "the gate about {}", shown());
        }
    }
}
