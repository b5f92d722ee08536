//! What scanners of TLS look for, asked with the client of OpenSSL: old versions, weak ciphers,
//! renegotiation, downgrade, resumption.

use super::https::{Https, before, https};
use crate::proxy::support::Origin;
use std::io::Write;
use std::process::{Command, Stdio};

/// A client waits for its end, and so for the session that comes behind the handshake.
const REQUEST: &str = "GET / HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n";

/// What `openssl s_client` says, given this input, and whether it had a connection.
fn client(https: &Https, arguments: &[&str], input: &str) -> (String, bool) {
    let mut child = Command::new("openssl")
        .args([
            "s_client",
            "-connect",
            &https.gate.address.to_string(),
            "-servername",
            "shop.example",
        ])
        .arg("-CAfile")
        .arg(https.authority_file())
        .args(["-verify_return_error", "-verify_hostname", "shop.example"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("openssl");
    let sent = child
        .stdin
        .take()
        .map(|mut stdin| stdin.write_all(input.as_bytes()));
    // A client whose handshake failed does not wait for its input.
    drop(sent);
    let output = child.wait_with_output().expect("its end");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    let has_cipher = said.contains("Cipher is ") && !said.contains("Cipher is (NONE)");
    (said, has_cipher)
}

#[test]
fn tls_has_forward_secrecy_and_no_compression() {
    let https = https("");
    for (version, key_exchange) in [("-tls1_2", "ECDHE-"), ("-tls1_3", "TLS_")] {
        let (said, is_connected) = client(&https, &[version], "");
        assert!(
            is_connected && said.contains("Verify return code: 0 (ok)"),
            "{version}: {said}"
        );
        let cipher = said
            .split("Cipher is ")
            .nth(1)
            .and_then(|rest| rest.lines().next())
            .unwrap_or_default();
        assert!(cipher.starts_with(key_exchange), "{version}: {cipher}");
        assert!(
            cipher.contains("GCM") || cipher.contains("POLY1305"),
            "{version}: {cipher}"
        );
        assert!(said.contains("Compression: NONE"), "{version}");
    }
    // Data before the handshake could be replayed. The session says whether it may come.
    let (said, _) = client(&https, &["-tls1_3", "-ign_eof"], REQUEST);
    assert!(said.contains("Max Early Data: 0"), "{said}");
}

/// RFC 6066 section 3 forbids the dot, so that clients of good faith cut it; OpenSSL sends what it
/// is given.
#[test]
fn name_with_a_final_dot_in_any_case_gets_its_certificate() {
    let https = https("");
    for name in ["blog.example", "blog.example.", "BLOG.example."] {
        let (said, _) = client(
            &https,
            &["-servername", name, "-verify_hostname", "blog.example"],
            "",
        );
        assert!(
            said.contains("Verify return code: 0 (ok)"),
            "{name}: {said}"
        );
    }
}

#[test]
fn old_versions_and_weak_ciphers_are_refused() {
    let https = https("");
    let weakest = "DEFAULT:@SECLEVEL=0";
    for arguments in [
        ["-tls1", "-cipher", weakest],
        ["-tls1_1", "-cipher", weakest],
        ["-tls1_2", "-cipher", "aNULL:eNULL:@SECLEVEL=0"],
        ["-tls1_2", "-cipher", "kRSA:@SECLEVEL=0"],
        ["-tls1_2", "-cipher", "kDHE:@SECLEVEL=0"],
        [
            "-tls1_2",
            "-cipher",
            "AES128-SHA:AES256-SHA:ECDHE-ECDSA-AES128-SHA:ECDHE-ECDSA-AES256-SHA384:@SECLEVEL=0",
        ],
        ["-tls1_2", "-cipher", "CAMELLIA:ARIA:AESCCM:@SECLEVEL=0"],
    ] {
        let (said, is_connected) = client(&https, &arguments, "");
        assert!(!is_connected, "{arguments:?}: {said}");
        // The server refused it, not the client.
        assert!(said.contains("alert"), "{arguments:?}: {said}");
    }
    assert!(
        client(&https, &["-tls1_2", "-cipher", "DEFAULT"], "").1,
        "the same way, with good ciphers"
    );
}

#[test]
fn renegotiation_and_downgrade_are_refused() {
    // OpenSSL waits for an answer to its wish until the connection ends.
    let origin = Origin::plain();
    let https = before(origin.address, "", "limits: { idle: 1s }", origin);
    let (said, is_connected) = client(&https, &["-tls1_2"], "");
    assert!(
        is_connected && said.contains("Secure Renegotiation IS supported"),
        "{said}"
    );
    // `R` asks for a new handshake.
    let (said, _) = client(&https, &["-tls1_2"], "R\n");
    assert!(
        said.contains("RENEGOTIATING") && said.contains("error"),
        "{said}"
    );
    // A client that says it fell back from TLS 1.3, which both speak, was meddled with (RFC 7507).
    let (said, is_connected) = client(&https, &["-tls1_2", "-fallback_scsv"], "");
    assert!(
        !is_connected && said.contains("inappropriate fallback"),
        "{said}"
    );
}

#[test]
fn sessions_are_resumed_in_both_versions() {
    let https = https("");
    for version in ["-tls1_2", "-tls1_3"] {
        let session = https.directory.path().join("session").display().to_string();
        let (first, _) = client(
            &https,
            &[version, "-ign_eof", "-sess_out", &session],
            REQUEST,
        );
        assert!(
            first.contains("New, ") && first.contains("hello"),
            "{version}: {first}"
        );
        let (second, _) = client(
            &https,
            &[version, "-ign_eof", "-sess_in", &session],
            REQUEST,
        );
        assert!(
            second.contains("Reused, ") && second.contains("hello"),
            "{version}: {second}"
        );
    }
}
