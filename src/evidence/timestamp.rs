//! RFC 3161 timestamps of checkpoints (signed summaries of the evidence log). [`timestamp_request`]
//! makes a request in DER, and [`parse_timestamp_response`] reads a response. The signature of a
//! response is not checked here, but by the script `check.sh`, with openssl and the certificate of
//! the timestamp authority.

use super::Hash;
use chrono::NaiveDateTime;
use x509_parser::der_parser::asn1_rs::{Any, FromDer};
use x509_parser::parse_x509_certificate;

/// The content of a timestamp by an authority.
#[derive(Debug, PartialEq)]
pub struct AuthorityTimestamp {
    /// The hash that has the timestamp.
    pub hash: Hash,
    /// `2026-11-23T07:00:00Z`, without a fraction.
    pub time: String,
    /// The subject of the certificate whose key signed it: `CN=Timestamp Responder, O=...`.
    pub authority: String,
}

/// `1.2.840.113549.1.7.2`, signed data.
const SIGNED_DATA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x02];
/// `1.2.840.113549.1.9.16.1.4`, the content of a timestamp.
const TST_INFO: &[u8] = &[
    0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x10, 0x01, 0x04,
];
/// SHA-256 without parameters, as an `AlgorithmIdentifier`.
const SHA256: &[u8] = &[
    0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01, 0x05, 0x00,
];

const INTEGER: u8 = 0x02;
const OCTET_STRING: u8 = 0x04;
const OBJECT_IDENTIFIER: u8 = 0x06;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const CONTEXT_0: u8 = 0xa0;

/// A request in DER: version 1, the hash, and `certReq`.
pub fn timestamp_request(hash: Hash) -> Vec<u8> {
    let imprint = [SHA256, &[OCTET_STRING, 32], &hash.0].concat();
    let imprint = [&[SEQUENCE, 49], imprint.as_slice()].concat();
    [
        &[SEQUENCE, 57, INTEGER, 1, 1],
        imprint.as_slice(),
        &[0x01, 1, 0xff],
    ]
    .concat()
}

/// `None` if no timestamp was granted, it is not of a SHA-256, it lacks its signer's certificate, or
/// it cannot be read. Does not check the signature.
pub fn parse_timestamp_response(response: &[u8]) -> Option<AuthorityTimestamp> {
    let mut response = DerElements(only_element(response, SEQUENCE)?);
    let mut status = DerElements(response.next_content(SEQUENCE)?);
    // `granted` or `grantedWithMods`.
    if !matches!(status.next_content(INTEGER)?, [0 | 1]) {
        return None;
    }
    let mut content = DerElements(response.next_content(SEQUENCE)?);
    if content.next_content(OBJECT_IDENTIFIER)? != SIGNED_DATA {
        return None;
    }
    let mut signed = DerElements(only_element(content.next_content(CONTEXT_0)?, SEQUENCE)?);
    signed.next_content(INTEGER)?;
    signed.next_content(SET)?;
    let mut inner = DerElements(signed.next_content(SEQUENCE)?);
    if inner.next_content(OBJECT_IDENTIFIER)? != TST_INFO {
        return None;
    }
    let mut info = DerElements(only_element(
        only_element(inner.next_content(CONTEXT_0)?, OCTET_STRING)?,
        SEQUENCE,
    )?);
    info.next_content(INTEGER)?;
    info.next_content(OBJECT_IDENTIFIER)?;
    let mut imprint = DerElements(info.next_content(SEQUENCE)?);
    let algorithm = imprint.next_content(SEQUENCE)?;
    let hash = Hash::from_bytes(imprint.next_content(OCTET_STRING)?)?;
    info.next_content(INTEGER)?;
    let time = str::from_utf8(info.next_content(GENERALIZED_TIME)?).ok()?;
    let time = NaiveDateTime::parse_from_str(time.get(..14)?, "%Y%m%d%H%M%S").ok()?;
    let authority = signer_name(signed)?;
    algorithm
        .starts_with(&SHA256[2..13])
        .then(|| AuthorityTimestamp {
            hash,
            time: time.format("%Y-%m-%dT%H:%M:%SZ").to_string(),
            authority,
        })
}

/// The subject of the certificate that the signer names by its serial number. `signed` is the
/// rest of the signed data, from the certificates on. `None` if that certificate is not there.
fn signer_name(mut signed: DerElements<'_>) -> Option<String> {
    let mut certificates = signed.next_content(CONTEXT_0)?;
    let mut signer = DerElements(only_element(signed.next_content(SET)?, SEQUENCE)?);
    signer.next_content(INTEGER)?;
    let mut issued = DerElements(signer.next_content(SEQUENCE)?);
    issued.next_content(SEQUENCE)?;
    let serial = issued.next_content(INTEGER)?;
    while let Ok((rest, certificate)) = parse_x509_certificate(certificates) {
        if certificate.raw_serial() == serial {
            return Some(certificate.subject().to_string());
        }
        certificates = rest;
    }
    None
}

/// The content of the only element, which must have this tag.
fn only_element(bytes: &[u8], tag: u8) -> Option<&[u8]> {
    let mut der = DerElements(bytes);
    let content = der.next_content(tag)?;
    der.0.is_empty().then_some(content)
}

/// Consecutive DER elements.
struct DerElements<'a>(&'a [u8]);

impl<'a> DerElements<'a> {
    /// The content of the next element; `None` if it has another tag or is malformed. Skips it in any
    /// case.
    fn next_content(&mut self, tag: u8) -> Option<&'a [u8]> {
        let found = *self.0.first()?;
        let (rest, element) = Any::from_der(self.0).ok()?;
        self.0 = rest;
        (found == tag).then_some(element.data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openssl_reads_a_request() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("request.tsq");
        let hash = Hash::digest(&[b"a checkpoint"]);
        std::fs::write(&file, timestamp_request(hash)).expect("written");
        let openssl = std::process::Command::new("openssl")
            .args(["ts", "-query", "-text", "-in"])
            .arg(&file)
            .output();
        let said = String::from_utf8_lossy(&openssl.expect("openssl").stdout).into_owned();
        assert!(
            said.contains("Hash Algorithm: sha256") && said.contains("Certificate required: yes"),
            "{said}"
        );
        assert_eq!(timestamp_request(hash).len(), 59);
    }

    #[test]
    fn malformed_responses_are_rejected() {
        for bytes in [
            b"".as_slice(),
            b"\x30",
            b"\x30\x80",
            b"\x30\x84\xff\xff\xff\xff",
            b"\x30\x05\x30\x03\x02\x01\x02",
        ] {
            assert_eq!(parse_timestamp_response(bytes), None);
        }
    }
}
