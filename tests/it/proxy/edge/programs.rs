//! Clients that people use for tests and load: nghttp, h2load and wrk, beside curl in `tls`.

use super::https::{https, said};
use crate::proxy::support::{BROWSER, GPTBOT, Origin, Setup};
use std::process::Command;

#[test]
fn nghttp_gets_pages_and_refusals_on_one_connection() {
    let https = https("");
    let url = |target: &str| format!("https://{}{target}", https.gate.address);
    let nghttp = |agent: &str, more: &[&str]| {
        let mut command = Command::new("nghttp");
        command.args([
            "-n",
            "-v",
            "--no-dep",
            "-H",
            &format!("user-agent: {agent}"),
            "-H",
            ":authority: shop.example",
        ]);
        said(
            &command
                .args(more)
                .args([url("/1"), url("/2"), url("/3")])
                .output()
                .expect("nghttp"),
        )
    };
    let pages = nghttp(BROWSER, &[]);
    assert_eq!(pages.matches(":status: 200").count(), 3, "{pages}");
    let refused = nghttp(GPTBOT, &[]);
    assert_eq!(refused.matches(":status: 403").count(), 3, "{refused}");
    // Padding and a window of the client's own.
    let padded = nghttp(
        BROWSER,
        &[
            "--padding=200",
            "--window-bits=10",
            "--connection-window-bits=12",
        ],
    );
    assert_eq!(padded.matches(":status: 200").count(), 3, "{padded}");
    // A body, and a header block that goes on in CONTINUATION frames.
    let upload = https.directory.path().join("upload");
    std::fs::write(&upload, vec![b'x'; 200_000]).expect("written");
    let uploaded = nghttp(
        BROWSER,
        &["--continuation", "-d", &upload.display().to_string()],
    );
    assert_eq!(uploaded.matches(":status: 200").count(), 3, "{uploaded}");
    assert_eq!(https.origin.last().body.len(), 200_000);
}

#[test]
fn h2load_loses_no_request_over_tls_and_in_clear_text() {
    let https = https("");
    let plain = Setup::before(https.origin.address).start();
    for (url, protocol) in [
        (format!("https://{}/", https.gate.address), "--npn-list=h2"),
        (format!("https://{}/", https.gate.address), "--h1"),
        (format!("http://{}/", plain.address), "--no-tls-proto=h2c"),
    ] {
        let mut command = Command::new("h2load");
        command.args([
            "-n",
            "400",
            "-c",
            "8",
            "-m",
            if protocol == "--h1" { "1" } else { "10" },
            protocol,
        ]);
        let report = said(&command.arg(&url).output().expect("h2load"));
        assert!(
            report.contains("400 succeeded, 0 failed, 0 errored, 0 timeout"),
            "{protocol}: {report}"
        );
        assert!(
            report.contains("status codes: 400 2xx"),
            "{protocol}: {report}"
        );
    }
}

#[test]
fn wrk_loses_no_request() {
    let https = https("");
    let plain = Setup::before(Origin::plain().address).start();
    for url in [
        format!("https://{}/", https.gate.address),
        format!("http://{}/", plain.address),
    ] {
        let mut command = Command::new("wrk");
        command.args([
            "-t",
            "1",
            "-c",
            "8",
            "-d",
            "1s",
            "-H",
            "Host: shop.example",
            &url,
        ]);
        let report = said(&command.output().expect("wrk"));
        assert!(
            !report.contains("Socket errors") && !report.contains("Non-2xx"),
            "{report}"
        );
        assert!(!report.contains("  0 requests in"), "{report}");
    }
}
