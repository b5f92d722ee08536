//! [`is_challenge`] recognises challenges: requests by which certificate authorities check who
//! controls a host (ACME). Challenges always pass, and never count as requests of a crawler. If
//! they were blocked, the certificate would not be renewed, and the site would go down weeks later.

use crate::robots::without_query;

/// RFC 8555 section 8.3.
const ACME_DIRECTORY: &[u8] = b"/.well-known/acme-challenge/";
/// CA/Browser Forum Baseline Requirements, section 3.2.2.4.18.
const PKI_DIRECTORY: &[u8] = b"/.well-known/pki-validation/";
/// Authorities send tokens of a few dozen bytes.
const MAX_TOKEN: usize = 256;
/// Authorities name files like `fileauth.txt`, or by a hash.
const MAX_NAME: usize = 128;

/// Whether a request is a challenge. `target` is the path with query. Authorities send GET; HEAD
/// counts, too. The path has exactly one plain segment after the directory of challenges, so that
/// no origin resolves it to another page.
pub fn is_challenge(method: &[u8], target: &[u8]) -> bool {
    acme_token(method, target).is_some() || is_pki_validation(method, target)
}

/// The token of a challenge of ACME_DIRECTORY; `None` for any other request, and for a token that
/// is not 1 to 256 characters of base64url.
pub fn acme_token<'t>(method: &[u8], target: &'t [u8]) -> Option<&'t [u8]> {
    let token = segment_after(ACME_DIRECTORY, method, target)?;
    ((1..=MAX_TOKEN).contains(&token.len()) && token.iter().all(is_base64url)).then_some(token)
}

/// Whether a request is for a file of `pki-validation`: 1 to 128 characters of base64url and dots.
/// The first is no dot, so that the name is no dot segment.
fn is_pki_validation(method: &[u8], target: &[u8]) -> bool {
    let name = segment_after(PKI_DIRECTORY, method, target).unwrap_or_default();
    name.len() <= MAX_NAME
        && name.first().is_some_and(is_base64url)
        && name.iter().all(|byte| is_base64url(byte) || *byte == b'.')
}

/// The path after `prefix`, without the query, if the method is GET or HEAD and the target begins
/// with `prefix`. It may be empty or have slashes: the callers check that it is one segment.
fn segment_after<'t>(prefix: &[u8], method: &[u8], target: &'t [u8]) -> Option<&'t [u8]> {
    let path = target.starts_with(prefix).then(|| without_query(target))?;
    matches!(method, b"GET" | b"HEAD").then(|| &path[prefix.len()..])
}

fn is_base64url(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_segment_below_challenge_path_is_a_challenge() {
        let acme = format!("/.well-known/acme-challenge/{}", "a".repeat(MAX_TOKEN));
        let file = format!("/.well-known/pki-validation/{}", "a".repeat(MAX_NAME));
        for target in [
            "/.well-known/acme-challenge/tok-en_1",
            "/.well-known/acme-challenge/token?a=/../",
            &acme,
            "/.well-known/pki-validation/fileauth.txt",
            "/.well-known/pki-validation/0A1B.txt?a",
            "/.well-known/pki-validation/_a..b",
            &file,
        ] {
            assert!(
                is_challenge(b"GET", target.as_bytes()) && is_challenge(b"HEAD", target.as_bytes()),
                "{target}"
            );
            for method in ["POST", "PUT", "OPTIONS", "get", ""] {
                assert!(
                    !is_challenge(method.as_bytes(), target.as_bytes()),
                    "{method} {target}"
                );
            }
        }
        for (target, token) in [
            ("/.well-known/acme-challenge/a?b", Some("a")),
            (&*file, None),
        ] {
            assert_eq!(
                acme_token(b"GET", target.as_bytes()),
                token.map(str::as_bytes),
                "{target}"
            );
        }
    }

    #[test]
    fn other_path_below_well_known_is_no_challenge() {
        for directory in ["acme-challenge", "pki-validation"] {
            for name in [
                "",
                "?a",
                ".",
                "..",
                ".a",
                "../cart/",
                "..%2fcart/",
                "%61",
                "a/b",
                "a/",
                "/a",
                "a;b",
                "a%00",
                "a\\b",
                "~a",
                "\u{e9}",
                "a b",
                "a#b",
            ] {
                let target = format!("/.well-known/{directory}/{name}");
                assert!(!is_challenge(b"GET", target.as_bytes()), "{target}");
            }
        }
        let long =
            |directory: &str, length| format!("/.well-known/{directory}/{}", "a".repeat(length));
        for target in [
            "/.well-known/acme-challenge/a.txt",
            "/.well-known/security.txt",
            "/.well-known/pki-validation",
            "/.well-known/PKI-validation/a.txt",
            "/.well-known//pki-validation/a.txt",
            "//.well-known/pki-validation/a.txt",
            "/a/.well-known/pki-validation/a.txt",
            &long("acme-challenge", MAX_TOKEN + 1),
            &long("pki-validation", MAX_NAME + 1),
        ] {
            assert!(!is_challenge(b"GET", target.as_bytes()), "{target}");
        }
    }
}
