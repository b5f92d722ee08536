//! [`read_keys`] reads a key directory of Web Bot Auth: the public keys (JSON Web Keys) with which
//! a crawler signs its requests. It skips keys other than Ed25519 (RFC 8037).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use sha2::{Digest, Sha256};

/// The largest key directory that is read.
const MAX_BYTES: usize = 64 * 1024;
/// The most keys of one directory that are used.
const MAX_KEYS: usize = 64;
/// The test key of RFC 9421 appendix B.1.4, whose private half is public.
const TEST_KEY: &str = "JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs";
/// Larger times are milliseconds: some directories write them.
const MAX_SECONDS: i64 = 100_000_000_000;

/// Why a text is no key directory.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyDirectoryError {
    /// It is longer than any directory.
    #[error("it is longer than {MAX_BYTES} bytes")]
    TooLong,
    /// It is not a set of JSON Web Keys.
    #[error("it is not a set of JSON Web Keys: {0}")]
    NotASet(String),
    /// No key in it can be used.
    #[error("it has no Ed25519 key")]
    NoKey,
}

/// A public key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey {
    /// Its 32 bytes.
    pub bytes: Vec<u8>,
    /// The values of `keyid` that name it: its thumbprint (RFC 7638), and its `kid` if it has one.
    pub names: Vec<String>,
    /// In seconds since 1970.
    pub not_before: Option<i64>,
    /// In seconds since 1970.
    pub expires: Option<i64>,
}

#[derive(Deserialize)]
struct KeySet {
    keys: Vec<serde_json::Value>,
}

#[derive(Deserialize)]
struct JsonWebKey {
    kty: String,
    crv: String,
    x: String,
    kid: Option<String>,
    nbf: Option<i64>,
    exp: Option<i64>,
}

/// The keys of a directory: the usable ones among its first `MAX_KEYS`.
///
/// # Errors
/// It is no directory, or has no key that can be used.
pub fn read_keys(bytes: &[u8]) -> Result<Vec<PublicKey>, KeyDirectoryError> {
    if bytes.len() > MAX_BYTES {
        return Err(KeyDirectoryError::TooLong);
    }
    let set: KeySet = serde_json::from_slice(bytes)
        .map_err(|error| KeyDirectoryError::NotASet(error.to_string()))?;
    let keys: Vec<PublicKey> = set
        .keys
        .into_iter()
        .take(MAX_KEYS)
        .filter_map(parse_public_key)
        .collect();
    if keys.is_empty() {
        Err(KeyDirectoryError::NoKey)
    } else {
        Ok(keys)
    }
}

/// Reads one key. `None` for a key of another kind, a damaged one, or the public test key of RFC
/// 9421: such a key must not make the whole directory unusable.
fn parse_public_key(value: serde_json::Value) -> Option<PublicKey> {
    let key: JsonWebKey = serde_json::from_value(value).ok()?;
    if key.kty != "OKP" || key.crv != "Ed25519" || key.x == TEST_KEY {
        return None;
    }
    let bytes = URL_SAFE_NO_PAD
        .decode(&key.x)
        .ok()
        .filter(|bytes| bytes.len() == 32)?;
    Some(PublicKey {
        names: [thumbprint(&bytes)].into_iter().chain(key.kid).collect(),
        bytes,
        not_before: key.nbf.map(to_seconds),
        expires: key.exp.map(to_seconds),
    })
}

fn to_seconds(time: i64) -> i64 {
    if time > MAX_SECONDS {
        time / 1_000
    } else {
        time
    }
}

/// The name of a key by RFC 7638 and RFC 8037 appendix A.3.
pub fn thumbprint(key: &[u8]) -> String {
    let json = format!(
        "{{\"crv\":\"Ed25519\",\"kty\":\"OKP\",\"x\":\"{}\"}}",
        URL_SAFE_NO_PAD.encode(key)
    );
    URL_SAFE_NO_PAD.encode(Sha256::digest(json))
}

#[cfg(test)]
mod tests {
    use super::{KeyDirectoryError, TEST_KEY, URL_SAFE_NO_PAD, read_keys, thumbprint};
    use base64::Engine as _;

    #[test]
    fn thumbprint_matches_rfc_8037() {
        let key = URL_SAFE_NO_PAD
            .decode("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo")
            .expect("a key");
        assert_eq!(
            thumbprint(&key),
            "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"
        );
    }

    #[test]
    fn keys_of_other_kinds_are_skipped() {
        let set = "{\"keys\": [{\"kty\": \"AKP\", \"alg\": \"ML-DSA-44\"}, {\"kty\": \"RSA\", \"n\": \"AQAB\"}, {\"kty\": \"OKP\", \
                   \"crv\": \"Ed25519\", \"x\": \"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\", \"kid\": \"k\", \"exp\": \
                   1800000000000}]}";
        let keys = read_keys(set.as_bytes()).expect("keys");
        assert_eq!(
            (keys.len(), keys[0].names[1].as_str(), keys[0].expires),
            (1, "k", Some(1_800_000_000))
        );
        let test_key = format!(
            "{{\"keys\": [{{\"kty\": \"OKP\", \"crv\": \"Ed25519\", \"x\": \"{TEST_KEY}\"}}]}}"
        );
        assert_eq!(
            read_keys(test_key.as_bytes()),
            Err(KeyDirectoryError::NoKey)
        );
        assert!(matches!(
            read_keys(b"<html>"),
            Err(KeyDirectoryError::NotASet(_))
        ));
        assert_eq!(read_keys(&[b' '; 70_000]), Err(KeyDirectoryError::TooLong));
    }
}
