//! An origin behind TLS whose certificate comes from an authority that only this system knows:
//! pages are forwarded from it, its robots.txt is read, and both only where the authority is known.

use crate::proxy::support::nginx::Nginx;
use crate::proxy::support::{Setup, eventually};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

/// The certificate of an authority, and the site of `localhost` that it vouches for.
fn authority_and_origin() -> (String, Nginx) {
    let mut authority = CertificateParams::new(Vec::new()).expect("no names");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().expect("a key"))
        .expect("an authority");
    let key = KeyPair::generate().expect("a key");
    let certificate = CertificateParams::new(vec!["localhost".into()])
        .and_then(|params| params.signed_by(&key, &authority))
        .expect("a certificate");
    (
        authority.pem(),
        Nginx::start_tls(&certificate.pem(), &key.serialize_pem()),
    )
}

fn before(origin: &Nginx) -> Setup {
    let port = origin.address.port();
    Setup::before(origin.address)
        .with_origins(&format!("origins: https://localhost:{port}"))
        .policy(
            "site",
            "robots: { origin: merge, groups: { agents: '*', disallow: /ours/ } }\n",
        )
}

#[test]
fn system_authority_is_trusted_for_origins() {
    let (authority, origin) = authority_and_origin();
    origin.write("robots.txt", "User-agent: *\nDisallow: /theirs/\n");
    let gate = before(&origin)
        .environment("SSL_CERT_FILE", &authority)
        .start();
    assert_eq!(gate.get("shop.example", "/about.html", "").status, 200);
    let merged = eventually("the origin's rules", || {
        let answer = gate.get("shop.example", "/robots.txt", "");
        Some(answer.text().to_owned())
            .filter(|text| answer.status == 200 && text.contains("/theirs/"))
    });
    assert!(merged.contains("Disallow: /ours/"), "{merged}");
}

#[test]
fn unknown_authority_is_not_trusted_for_origins() {
    let (_, origin) = authority_and_origin();
    origin.write("robots.txt", "User-agent: *\nDisallow: /theirs/\n");
    let (other, _) = authority_and_origin();
    let gate = before(&origin).environment("SSL_CERT_FILE", &other).start();
    assert_eq!(gate.get("shop.example", "/about.html", "").status, 502);
    gate.log.wait_for("state=\"awaited\"");
    assert_eq!(gate.get("shop.example", "/robots.txt", "").status, 503);
}
