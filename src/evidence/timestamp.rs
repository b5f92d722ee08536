//! RFC 3161 timestamps of checkpoints, which are signed summaries of the evidence log: `request`
//! makes the request as DER, and [`read`] reads the [`Stamp`] out of a response. The signature of a
//! response is not checked here: the program openssl does it, with the certificate of the timestamp
//! authority.

use super::Hash;
use x509_parser::der_parser::asn1_rs::{Any, FromDer};

/// What a response says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The hash that was stamped.
    pub hash: Hash,
    /// When, as the authority says: `20261123070000Z`.
    pub time: String,
}

impl Stamp {
    /// The time as `2026-11-23T07:00:00Z`, without a fraction. A time of another form is returned
    /// as it is.
    pub fn shown(&self) -> String {
        let seconds = self.time.get(..14).unwrap_or_default();
        let moment = chrono::NaiveDateTime::parse_from_str(seconds, "%Y%m%d%H%M%S");
        moment.map_or_else(
            |_| self.time.clone(),
            |moment| moment.format("%Y-%m-%dT%H:%M:%SZ").to_string(),
        )
    }
}

/// `1.2.840.113549.1.7.2`, signed data.
const SIGNED_DATA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x02];
/// `1.2.840.113549.1.9.16.1.4`, what a timestamp says.
const TST_INFO: &[u8] = &[
    0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x10, 0x01, 0x04,
];
/// SHA-256 without parameters, as an `AlgorithmIdentifier`.
const SHA256: &[u8] = &[
    0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01, 0x05, 0x00,
];

const INTEGER: u8 = 0x02;
const OCTETS: u8 = 0x04;
const OBJECT: u8 = 0x06;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const CONTEXT_0: u8 = 0xa0;

/// The request: version 1, the hash, and the wish for the authority's certificate.
pub fn request(hash: Hash) -> Vec<u8> {
    let imprint = [SHA256, &[OCTETS, 32], &hash.0].concat();
    let imprint = [&[SEQUENCE, 49], imprint.as_slice()].concat();
    [
        &[SEQUENCE, 57, INTEGER, 1, 1],
        imprint.as_slice(),
        &[0x01, 1, 0xff],
    ]
    .concat()
}

/// The hash and the time of the timestamp in a response; `None` if no timestamp was granted, it is
/// not of a SHA-256, or it cannot be read. Checks no signature.
pub fn read(response: &[u8]) -> Option<Stamp> {
    let mut response = Der(whole(response, SEQUENCE)?);
    let mut status = Der(response.take(SEQUENCE)?);
    // Granted, or granted with changes.
    if !matches!(status.take(INTEGER)?, [0 | 1]) {
        return None;
    }
    let mut content = Der(response.take(SEQUENCE)?);
    if content.take(OBJECT)? != SIGNED_DATA {
        return None;
    }
    let mut signed = Der(whole(content.take(CONTEXT_0)?, SEQUENCE)?);
    signed.take(INTEGER)?;
    signed.take(SET)?;
    let mut inner = Der(signed.take(SEQUENCE)?);
    if inner.take(OBJECT)? != TST_INFO {
        return None;
    }
    let mut info = Der(whole(whole(inner.take(CONTEXT_0)?, OCTETS)?, SEQUENCE)?);
    info.take(INTEGER)?;
    info.take(OBJECT)?;
    let mut imprint = Der(info.take(SEQUENCE)?);
    let algorithm = imprint.take(SEQUENCE)?;
    let hash = Hash::from_octets(imprint.take(OCTETS)?)?;
    info.take(INTEGER)?;
    let time = str::from_utf8(info.take(GENERALIZED_TIME)?).ok()?;
    let is_sha256 = algorithm.starts_with(&SHA256[2..13]);
    is_sha256.then(|| Stamp {
        hash,
        time: time.to_owned(),
    })
}

/// The content of an element that has this tag and is all that there is.
fn whole(octets: &[u8], tag: u8) -> Option<&[u8]> {
    let mut der = Der(octets);
    let content = der.take(tag)?;
    der.0.is_empty().then_some(content)
}

/// Elements, one after the other.
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// The content of the next element. `None` if it does not have this tag (it is passed over all
    /// the same), or does not fit.
    fn take(&mut self, tag: u8) -> Option<&'a [u8]> {
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
    fn a_request_is_one_that_openssl_reads() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("request.tsq");
        let hash = Hash::of(&[b"a checkpoint"]);
        std::fs::write(&file, request(hash)).expect("written");
        let openssl = std::process::Command::new("openssl")
            .args(["ts", "-query", "-text", "-in"])
            .arg(&file)
            .output();
        let said = String::from_utf8_lossy(&openssl.expect("openssl").stdout).into_owned();
        assert!(
            said.contains("Hash Algorithm: sha256") && said.contains("Certificate required: yes"),
            "{said}"
        );
        assert_eq!(request(hash).len(), 59);
    }

    #[test]
    fn what_is_no_response_is_refused() {
        for octets in [
            b"".as_slice(),
            b"\x30",
            b"\x30\x80",
            b"\x30\x84\xff\xff\xff\xff",
            b"\x30\x05\x30\x03\x02\x01\x02",
        ] {
            assert_eq!(read(octets), None);
        }
    }
}
