//! Tests of the TLS certificates: which one a client gets, and what happens when the files change.

use super::*;
use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, date_time_ymd};
use std::fs;
use std::path::Path;

const NOW: Timestamp = Timestamp(1_750_000_000);

/// Writes a certificate for these names that is valid in these years, and its key.
fn write(directory: &Path, file: &str, names: &[&str], years: (i32, i32)) -> CertificateFiles {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).expect("names");
    params.not_before = date_time_ymd(years.0, 1, 1);
    params.not_after = date_time_ymd(years.1, 1, 1);
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).expect("a key");
    let certificate = params.self_signed(&key).expect("a certificate");
    let files = CertificateFiles {
        certificate: directory.join(format!("{file}.pem")),
        key: directory.join(format!("{file}.key")),
    };
    fs::write(&files.certificate, certificate.pem()).expect("written");
    fs::write(&files.key, key.serialize_pem()).expect("written");
    files
}

/// The first name of the certificate that a client gets.
fn chosen(set: &ListenerCertificates, name: Option<&str>) -> String {
    let key = set
        .choose_certificate(name.map(certificate_name).as_deref())
        .expect("a certificate");
    let files = set.from_files.lock().expect("unpoisoned");
    let file = files
        .iter()
        .find(|file| file.certificate.key.cert == key.cert)
        .expect("one of the certificates");
    file.first_name().to_owned()
}

#[test]
fn certificate_is_chosen_by_name_wildcard_then_first() {
    let directory = tempfile::tempdir().expect("a directory");
    let files = [
        write(directory.path(), "first", &["first.example"], (2000, 2100)),
        write(
            directory.path(),
            "shop",
            &["shop.example", "*.shop.example"],
            (2000, 2100),
        ),
        write(
            directory.path(),
            "blog",
            &["blog.shop.example"],
            (2000, 2100),
        ),
        write(
            directory.path(),
            "idna",
            &["xn--mnchen-3ya.example", "*.XN--mnchen-3ya.example"],
            (2000, 2100),
        ),
    ];
    let set = ListenerCertificates::open(&files, None).expect("certificates");
    for (name, first) in [
        (None, "first.example"),
        (Some("other.example"), "first.example"),
        (Some("SHOP.example"), "shop.example"),
        (Some("www.shop.example"), "shop.example"),
        (Some("a.b.shop.example"), "first.example"),
        (Some("blog.shop.example"), "blog.shop.example"),
        (Some("shop.example."), "shop.example"),
        (Some("WWW.Shop.Example."), "shop.example"),
        (Some("Blog.shop.example."), "blog.shop.example"),
        (Some("XN--MNCHEN-3YA.example."), "xn--mnchen-3ya.example"),
        (Some("www.xn--mnchen-3ya.example"), "xn--mnchen-3ya.example"),
    ] {
        assert_eq!(chosen(&set, name), first, "{name:?}");
    }
}

#[test]
fn renewed_files_are_used_unless_they_are_bad() {
    let directory = tempfile::tempdir().expect("a directory");
    let files = write(directory.path(), "a", &["a.example"], (2000, 2100));
    let set = Arc::new(
        ListenerCertificates::open(std::slice::from_ref(&files), None).expect("a certificate"),
    );
    let certificates = CertificateStore {
        sets: vec![set.clone()],
        acme: None,
    };
    let metrics = Metrics::new();
    let in_use = || {
        set.choose_certificate(None)
            .expect("a certificate")
            .cert
            .clone()
    };
    let refused = || certificates.reload_changed_files(NOW, &metrics);
    let before = in_use();
    assert!(refused() == 0 && in_use() == before);

    write(directory.path(), "a", &["a.example"], (2001, 2100));
    assert_eq!(refused(), 0);
    let renewed = in_use();
    assert!(renewed != before);

    let other = write(directory.path(), "b", &["a.example"], (2000, 2100));
    fs::copy(&other.key, &files.key).expect("copied");
    assert!(
        refused() == 1 && in_use() == renewed,
        "a key of another certificate"
    );
    write(directory.path(), "a", &["a.example"], (2000, 2001));
    assert!(refused() == 1 && in_use() == renewed, "expired");
    fs::remove_file(&files.certificate).expect("removed");
    assert!(refused() == 1 && in_use() == renewed, "gone");

    write(directory.path(), "a", &["a.example"], (2003, 2099));
    assert!(refused() == 0 && in_use() != renewed);
    let until = format!(
        "crawlgate_certificate_not_after_timestamp_seconds{{name=\"a.example\"}} {}",
        4_070_908_800_i64
    );
    assert!(metrics.render().contains(&until), "{}", metrics.render());
}

#[test]
fn dates_that_clients_refuse_are_problems() {
    let directory = tempfile::tempdir().expect("a directory");
    let problems = |years| {
        let files = write(directory.path(), "a", &["a.example"], years);
        let set = Arc::new(ListenerCertificates::open(&[files], None).expect("a certificate"));
        let problems = CertificateStore {
            sets: vec![set],
            acme: None,
        }
        .problems(NOW);
        problems
            .iter()
            .map(|problem| problem.id)
            .collect::<Vec<_>>()
    };
    assert_eq!(problems((2000, 2100)), []);
    assert_eq!(problems((2000, 2001)), [CertificateFault::Expired]);
    assert_eq!(problems((2090, 2100)), [CertificateFault::NotYetValid]);
}

#[test]
fn unusable_files_have_different_errors() {
    let directory = tempfile::tempdir().expect("a directory");
    let good = write(directory.path(), "good", &["a.example"], (2000, 2100));
    let other = write(directory.path(), "other", &["a.example"], (2000, 2100));
    let open = |certificate: &Path, key: &Path| {
        let files = CertificateFiles {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
        };
        FileCertificate::open(&files).expect_err("refused")
    };
    let nothing = directory.path().join("nothing.pem");
    let missing = open(&nothing, &good.key);
    assert!(matches!(missing, CertificateError::ReadFailed { .. }));
    let without_certificate = open(&good.key, &good.key);
    assert!(matches!(
        without_certificate,
        CertificateError::NoCertificate(_)
    ));
    let without_key = open(&good.certificate, &good.certificate);
    assert!(matches!(without_key, CertificateError::NoKey(_)));
    let with_other_key = open(&good.certificate, &other.key);
    assert!(matches!(
        with_other_key,
        CertificateError::KeyMismatch { .. }
    ));
    fs::write(
        &nothing,
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    )
    .expect("written");
    let malformed = open(&nothing, &good.key);
    assert!(matches!(malformed, CertificateError::Malformed(_)));
}
