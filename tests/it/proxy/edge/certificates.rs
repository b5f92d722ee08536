//! Certificates of a running crawlgate: renewal while it serves, and what an operator reads of
//! them.

use super::https::{Https, get, https, listeners};
use crate::proxy::support::{
    Authority, BROWSER, Connection, Origin, Setup, TlsConnection, eventually,
};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

#[test]
fn renewed_certificate_is_taken_and_a_bad_one_refused() {
    let https = https("");
    let shop = || https.certificate("shop.example");
    let (before, blog) = (shop(), https.certificate("blog.example"));
    let mut kept = https.open("shop.example").expect("a connection");
    assert!(get(&mut kept, "shop.example", "/1", BROWSER).starts_with("HTTP/1.1 200"));

    https
        .authority
        .certify(https.directory.path(), "shop", &["shop.example"], 2090);
    https.gate.signal("HUP");
    eventually("the renewed certificate", || {
        (shop() != before).then_some(())
    });
    https.gate.log.wait_for("names=[\"shop.example\"]");
    assert!(
        https.certificate("blog.example") == blog,
        "the other one stays"
    );
    assert!(
        get(&mut kept, "shop.example", "/2", BROWSER).starts_with("HTTP/1.1 200"),
        "a connection goes on"
    );

    let renewed = shop();
    let path = |name: &str| -> PathBuf { https.directory.path().join(name) };
    for (name, what) in [("blog.key", "another key"), ("blog.pem", "no key")] {
        fs::copy(path(name), path("shop.key")).expect("copied");
        https.gate.signal("HUP");
        https
            .gate
            .wait_for_metric("crawlgate_certificates_refused", 1.0);
        assert!(shop() == renewed, "{what}");
    }
    https.gate.log.wait_for("shop.key");
    https
        .authority
        .certify(https.directory.path(), "shop", &["shop.example"], 2001);
    https.gate.signal("HUP");
    https.gate.log.wait_for(" 2001 ");
    assert!(shop() == renewed);
    https
        .authority
        .certify(https.directory.path(), "shop", &["shop.example"], 2095);
    https.gate.signal("HUP");
    https
        .gate
        .wait_for_metric("crawlgate_certificates_refused", 0.0);
    eventually("the renewed certificate", || {
        (shop() != renewed).then_some(())
    });
}

#[test]
fn unusable_certificates_stop_start_and_check() {
    let (authority, directory, origin) = (
        Authority::new(),
        tempfile::tempdir().expect("a directory"),
        Origin::plain(),
    );
    authority.certify(directory.path(), "one", &["a.example"], 2100);
    authority.certify(directory.path(), "other", &["a.example"], 2100);
    fs::copy(
        directory.path().join("other.key"),
        directory.path().join("one.key"),
    )
    .expect("copied");
    let setup = Setup::before(origin.address).listeners(&listeners(directory.path(), &["one"], ""));
    let (said, status) = setup.fail();
    assert_eq!(status.code(), Some(3), "{said}");
    assert!(said.contains("one.key"), "{said}");
    let check = |more: &str| {
        let settings = directory.path().join("crawlgate.yaml");
        let text = format!(
            "listen: {}\norigins: [{{ hosts: [a.example{more}], servers: http://127.0.0.1:1 }}]\n",
            listeners(directory.path(), &["one"], "")
        );
        fs::write(&settings, text).expect("written");
        fs::write(
            directory.path().join("site.yaml"),
            "robots: { origin: replace }\n",
        )
        .expect("written");
        let output = Command::new(env!("CARGO_BIN_EXE_crawlgate"))
            .args(["check", "--json"])
            .arg(directory.path().join("site.yaml"))
            .arg("--config")
            .arg(&settings)
            .output()
            .expect("crawlgate");
        let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let problems = found["certificates"].as_array().cloned();
        let ids = problems.unwrap_or_default().into_iter();
        let ids: Vec<Value> = ids.map(|problem| problem["id"].clone()).collect();
        (output.status.code(), ids)
    };
    assert_eq!(check(""), (Some(1), vec!["unusable".into()]));
    authority.certify(directory.path(), "one", &["a.example"], 2001);
    assert_eq!(check(""), (Some(1), vec!["expired".into()]));
    authority.certify(directory.path(), "one", &["a.example"], 2100);
    assert_eq!(check(""), (Some(0), vec![]));
    authority.certify(directory.path(), "one", &["b.example"], 2100);
    assert_eq!(check(""), (Some(0), vec!["uncovered".into()]));
    let more = ", c.example, d.example, e.example, f.example";
    assert_eq!(check(more), (Some(0), vec!["uncovered".into()]));
}

/// The certificates of `crawlgate status --json`, its problems, and its exit code.
fn status(https: &Https) -> (Value, Vec<Value>, Option<i32>) {
    let output = https.gate.command(&["status", "--json"]);
    let status: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let problems = status["problems"].as_array().expect("problems").clone();
    (
        status["certificates"].clone(),
        problems,
        output.status.code(),
    )
}

#[test]
fn renewal_of_one_certificate_under_traffic_costs_no_connection() {
    let https = https("");
    let (stop, served) = (AtomicBool::new(false), AtomicUsize::new(0));
    let names = ["shop.example", "blog.example"];
    let before = names.map(|name| https.certificate(name));
    let ask = |connection: &mut TlsConnection, name: &str| {
        let page = get(connection, name, "/page", BROWSER);
        assert!(page.starts_with("HTTP/1.1 200"), "{name}: {page}");
        served.fetch_add(1, Ordering::Relaxed);
    };
    thread::scope(|scope| {
        for name in names {
            // One client keeps its connection all the time, the other opens a new one for each
            // request.
            scope.spawn(|| {
                let mut kept = https.open(name).expect("a connection");
                while !stop.load(Ordering::Relaxed) {
                    ask(&mut kept, name);
                }
            });
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    ask(&mut https.open(name).expect("a new connection"), name);
                }
            });
        }
        let traffic = |count: usize| {
            let until = served.load(Ordering::Relaxed) + count;
            eventually("requests", || {
                (served.load(Ordering::Relaxed) >= until).then_some(())
            });
        };
        traffic(50);
        let mut last = before[0].clone();
        for year in [2080, 2090] {
            https
                .authority
                .certify(https.directory.path(), "shop", &["shop.example"], year);
            https.gate.signal("HUP");
            last = eventually("the renewed certificate", || {
                Some(https.certificate(names[0])).filter(|now| *now != last)
            });
            traffic(50);
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(
        https.certificate(names[1]) == before[1],
        "the other one stays"
    );
}

#[test]
fn status_shows_certificates_and_the_refused_renewal() {
    let https = https("");
    let (certificates, problems, code) = status(&https);
    assert_eq!((problems.len(), code), (0, Some(0)), "{problems:?}");
    let shop = &certificates[0];
    assert_eq!(
        shop["names"],
        serde_json::json!(["shop.example", "*.shop.example"])
    );
    assert_eq!(shop["not_after"], "2100-01-01T00:00:00Z");
    assert!(
        shop["days_left"].as_i64() > Some(20_000)
            && shop["file"]
                .as_str()
                .is_some_and(|file| file.ends_with("shop.pem"))
    );
    assert!(
        shop["renewed"].is_null() && shop["refused"].is_null(),
        "{shop}"
    );
    assert_eq!(
        certificates[1]["names"],
        serde_json::json!(["blog.example"])
    );

    https
        .authority
        .certify(https.directory.path(), "shop", &["shop.example"], 2090);
    https.gate.signal("HUP");
    eventually("the renewal", || {
        status(&https).0[0]["renewed"].is_string().then_some(())
    });
    fs::write(https.directory.path().join("shop.pem"), "no certificate").expect("written");
    https.gate.signal("HUP");
    let (certificates, problems, code) = eventually("the refusal", || {
        Some(status(&https)).filter(|status| status.0[0]["refused"].is_object())
    });
    assert_eq!(
        certificates[0]["not_after"], "2090-01-01T00:00:00Z",
        "the former one stays"
    );
    assert!(
        certificates[0]["refused"]["reason"]
            .as_str()
            .is_some_and(|reason| reason.contains("shop.pem"))
    );
    assert_eq!(
        (problems.len(), problems[0]["problem"].as_str(), code),
        (1, Some("certificate"), Some(1))
    );
    let text = String::from_utf8(https.gate.command(&["status"]).stdout).expect("text");
    for line in [
        "problem (certificate): ",
        "  shop.example\n",
        "    valid until: 2090-01-01",
        "    rejected:    a renewal at ",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    https
        .gate
        .wait_for_metric("crawlgate_problems{problem=\"certificate\"}", 1.0);
    let mut admin = Connection::open(https.gate.admin);
    admin.send("GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let page = admin.response("GET").text().to_owned();
    for part in [
        ">shop.example</th>",
        "shop.pem",
        "2090-01-01",
        " days</td>",
        "id=\"certificate\"",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }

    // The start takes an expired certificate, and says so.
    https
        .authority
        .certify(https.directory.path(), "shop", &["shop.example"], 2001);
    let mut https = https;
    https.gate.restart("TERM", |_| {});
    let (certificates, problems, code) = status(&https);
    assert!(
        certificates[0]["days_left"].as_i64() < Some(0),
        "{certificates}"
    );
    assert_eq!(
        (problems[0]["problem"].as_str(), code),
        (Some("certificate"), Some(1))
    );
}
