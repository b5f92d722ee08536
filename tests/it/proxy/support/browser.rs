//! A real browser that reaches nothing but this machine.

use std::path::Path;
use std::process::{Command, Stdio};

/// Runs it without a window on a page; its profile is in this directory.
pub fn chromium(directory: &Path, arguments: &[&str], url: &str) -> Vec<u8> {
    let browser = ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(|name| {
            let asked = Command::new(name)
                .arg("--version")
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
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
        .args([
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-default-apps",
        ])
        .args([
            "--disable-extensions",
            "--no-proxy-server",
            "--hide-scrollbars",
            "--window-size=640,600",
        ])
        .arg("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
        .arg(format!("--user-data-dir={}", directory.display()))
        .args(arguments)
        .arg(url)
        .stdin(Stdio::null())
        .output()
        .expect("the browser runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}
