//! Signed texts in the format C2SP `signed-note`, with Ed25519: [`SigningKey`] signs, [`VerifyKey`]
//! checks. The evidence log signs its checkpoints, manifests and changes of the key in this way. A
//! public key is one line of text: `NAME+HASH+BASE64`.

use super::{Hash, hex};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};

/// The algorithm octet of Ed25519 in C2SP `signed-note`.
const ALGORITHM: u8 = 1;
/// What stands before the octets of an Ed25519 key in `SubjectPublicKeyInfo` (RFC 8410 section 4).
const SPKI: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];

/// Why a key cannot be used or made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoteError {
    /// A text is no key.
    #[error("this is no key of the form NAME+HASH+BASE64")]
    NoKey,
    /// A key cannot be made.
    #[error("the operating system gives no random numbers")]
    NoRandom,
}

/// The public key of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyKey {
    /// The name of the log.
    pub name: String,
    octets: [u8; 32],
}

impl VerifyKey {
    /// Reads the line of a public key.
    ///
    /// # Errors
    /// It is no Ed25519 key, has no name, or its hash does not fit.
    pub fn parse(line: &str) -> Result<VerifyKey, NoteError> {
        let (name, hash, octets) = parts_of_key(line.trim()).ok_or(NoteError::NoKey)?;
        let key = VerifyKey {
            name: name.to_owned(),
            octets,
        };
        if name.is_empty() || hex(&key.hash()) != hash {
            Err(NoteError::NoKey)
        } else {
            Ok(key)
        }
    }

    /// The public key as one line: `NAME+HASH+BASE64`.
    pub fn line(&self) -> String {
        self.line_of(&self.octets)
    }

    /// A line with the name and the hash of this public key, and these bytes: those of the public
    /// key, or of the private one.
    fn line_of(&self, octets: &[u8]) -> String {
        format!(
            "{}+{}+{}",
            self.name,
            hex(&self.hash()),
            BASE64.encode([&[ALGORITHM], octets].concat())
        )
    }

    /// The key as PEM, for openssl.
    pub fn pem(&self) -> String {
        let encoded = BASE64.encode([SPKI.as_slice(), &self.octets].concat());
        format!("-----BEGIN PUBLIC KEY-----\n{encoded}\n-----END PUBLIC KEY-----\n")
    }

    /// The first 4 bytes of the SHA-256 that C2SP `signed-note` makes of name and key. They stand
    /// before each signature of the key.
    fn hash(&self) -> [u8; 4] {
        let Hash(hash) = Hash::of(&[self.name.as_bytes(), b"\n", &[ALGORITHM], &self.octets]);
        [hash[0], hash[1], hash[2], hash[3]]
    }

    /// The text of a note that this key signed. Other signatures may stand beside it. `None` if the
    /// text is no note, or the key did not sign it.
    pub fn open<'n>(&self, note: &'n str) -> Option<&'n str> {
        let (text, signatures) = parts(note)?;
        let is_signed = signatures.lines().any(|line| {
            let signature = line
                .strip_prefix("\u{2014} ")
                .and_then(|line| line.split_once(' '));
            let Some((_, signature)) = signature.filter(|(name, _)| *name == self.name) else {
                return false;
            };
            let Ok(octets) = BASE64.decode(signature) else {
                return false;
            };
            let key = UnparsedPublicKey::new(&ED25519, self.octets);
            octets.get(..4) == Some(&self.hash())
                && key.verify(text.as_bytes(), &octets[4..]).is_ok()
        });
        is_signed.then_some(text)
    }
}

/// The name, the hash as text, and the 32 bytes of the line of an Ed25519 key. Does not check the
/// hash.
fn parts_of_key(line: &str) -> Option<(&str, &str, [u8; 32])> {
    let (name, rest) = line.split_once('+')?;
    let (hash, key) = rest.split_once('+')?;
    match BASE64.decode(key).ok()?.split_first()? {
        (&ALGORITHM, octets) => Some((name, hash, octets.try_into().ok()?)),
        _ => None,
    }
}

/// The text of a note, with its last newline, and its signature lines. `None` unless the text ends
/// with an empty line and at least one signature follows.
fn parts(note: &str) -> Option<(&str, &str)> {
    let at = note.rfind("\n\n")?;
    let text = &note[..=at];
    let signatures = &note[at + 2..];
    let is_whole =
        signatures.ends_with('\n') && signatures.lines().all(|line| line.starts_with("\u{2014} "));
    (is_whole && !signatures.is_empty()).then_some((text, signatures))
}

/// Random octets.
///
/// # Errors
/// The operating system gives none.
pub fn random<const N: usize>() -> Result<[u8; N], NoteError> {
    let mut octets = [0; N];
    SystemRandom::new()
        .fill(&mut octets)
        .map_err(|_| NoteError::NoRandom)?;
    Ok(octets)
}

/// The private key of a log.
pub struct SigningKey {
    name: String,
    seed: [u8; 32],
    pair: Ed25519KeyPair,
}

impl SigningKey {
    /// A new key. Its name is `crawlgate-evidence-` and the first 16 hexadecimal digits of the
    /// SHA-256 of the public key.
    ///
    /// # Errors
    /// The operating system gives no random numbers.
    pub fn fresh() -> Result<SigningKey, NoteError> {
        let seed = random()?;
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).map_err(|_| NoteError::NoKey)?;
        let hash = Hash::of(&[pair.public_key().as_ref()]);
        Ok(SigningKey {
            name: format!("crawlgate-evidence-{}", hash.short()),
            seed,
            pair,
        })
    }

    /// A new key with the name of this one.
    ///
    /// # Errors
    /// The operating system gives no random numbers.
    pub fn successor(&self) -> Result<SigningKey, NoteError> {
        Ok(SigningKey {
            name: self.name.clone(),
            ..SigningKey::fresh()?
        })
    }

    /// Reads what [`SigningKey::line`] writes.
    ///
    /// # Errors
    /// It is no private key.
    pub fn parse(line: &str) -> Result<SigningKey, NoteError> {
        let key = line
            .trim()
            .strip_prefix("PRIVATE+KEY+")
            .and_then(parts_of_key);
        let (name, hash, seed) = key.ok_or(NoteError::NoKey)?;
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).map_err(|_| NoteError::NoKey)?;
        let key = SigningKey {
            name: name.to_owned(),
            seed,
            pair,
        };
        if hex(&key.verify_key().hash()) == hash {
            Ok(key)
        } else {
            Err(NoteError::NoKey)
        }
    }

    /// The private key as one line, in the form that Go's `note` package reads.
    pub fn line(&self) -> String {
        format!("PRIVATE+KEY+{}", self.verify_key().line_of(&self.seed))
    }

    /// The public key.
    pub fn verify_key(&self) -> VerifyKey {
        let mut octets = [0; 32];
        octets.copy_from_slice(self.pair.public_key().as_ref());
        VerifyKey {
            name: self.name.clone(),
            octets,
        }
    }

    /// Signs a text, which ends with a newline. Returns the note: the text and the signature.
    pub fn sign(&self, text: &str) -> String {
        let signature = self.pair.sign(text.as_bytes());
        let octets = [self.verify_key().hash().as_slice(), signature.as_ref()].concat();
        format!("{text}\n\u{2014} {} {}\n", self.name, BASE64.encode(octets))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The key and the note of the documentation of Go's `golang.org/x/mod/sumdb/note`.
    #[test]
    fn a_note_of_another_implementation_is_opened() {
        let key = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
        let note = "If you think cryptography is the answer to your problem,\n\
                    then you don't know what your problem is.\n\n\
                    \u{2014} PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n";
        let key = VerifyKey::parse(key).expect("a key");
        assert_eq!(key.open(note).map(|text| text.lines().count()), Some(2));
        let private =
            "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz";
        let private = SigningKey::parse(private).expect("a private key");
        assert_eq!(private.verify_key(), key);
        assert_eq!(private.sign(key.open(note).expect("signed")), note);
    }

    #[test]
    fn keys_outlast_their_text() {
        let key = SigningKey::fresh().expect("a key");
        let read = SigningKey::parse(&key.line()).expect("a key");
        assert_eq!(read.verify_key(), key.verify_key());
        assert_eq!(
            VerifyKey::parse(&key.verify_key().line()),
            Ok(key.verify_key())
        );
        let other = SigningKey::fresh().expect("a key");
        assert_eq!(other.verify_key().open(&key.sign("a\n")), None);
    }

    proptest! {
        #[test]
        fn each_changed_octet_of_a_signed_text_is_noticed(place in 0usize..200, change in 1u8..=255) {
            let key = SigningKey::parse("PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz");
            let key = key.expect("a key");
            let note = key.sign("log\n3\nroot\n");
            let mut octets = note.clone().into_bytes();
            let place = place % octets.len();
            octets[place] ^= change;
            if let Ok(changed) = String::from_utf8(octets) {
                prop_assert!(key.verify_key().open(&changed).is_none());
            }
        }
    }
}
