//! Signed texts in the format C2SP `signed-note`, with Ed25519 keys: [`SigningKey`] signs,
//! [`VerifyKey`] checks. The evidence log uses this format for its checkpoints, manifests and key
//! changes. A public key is one line of text: `NAME+HASH+BASE64`.

use super::{Hash, hex};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};

use NoteKeyError::*;

/// The algorithm byte of Ed25519 in C2SP `signed-note`.
const ALGORITHM: u8 = 1;
/// The bytes before an Ed25519 key in `SubjectPublicKeyInfo` (RFC 8410 section 4).
const SPKI_PREFIX: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];

/// Why a key cannot be used or made.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum NoteKeyError {
    /// The text is not a key.
    #[error("this is not a key: a key looks like NAME+HASH+BASE64")]
    NoKey,
    /// The system gives no random numbers.
    #[error("the operating system has no random numbers")]
    NoRandom,
}

/// The public key of a log.
#[derive(Clone, Debug, PartialEq)]
pub struct VerifyKey {
    /// The name of the log.
    pub name: String,
    bytes: [u8; 32],
}

impl VerifyKey {
    /// # Errors
    /// It is not an Ed25519 key, has no name, or its hash is wrong.
    pub fn parse(line: &str) -> Result<VerifyKey, NoteKeyError> {
        let (name, hash, bytes) = parse_key_line(line.trim()).ok_or(NoKey)?;
        let key = VerifyKey {
            name: name.to_owned(),
            bytes,
        };
        let is_key = !name.is_empty() && hex(&key.key_hash()) == hash;
        is_key.then_some(key).ok_or(NoKey)
    }

    /// `NAME+HASH+BASE64`.
    pub fn to_line(&self) -> String {
        self.line_with_bytes(&self.bytes)
    }

    /// The line of the public or the private key, by its bytes. Both have the hash of the public key.
    fn line_with_bytes(&self, bytes: &[u8]) -> String {
        format!(
            "{}+{}+{}",
            self.name,
            hex(&self.key_hash()),
            BASE64.encode([&[ALGORITHM], bytes].concat())
        )
    }

    /// The key as PEM, for openssl.
    pub fn to_pem(&self) -> String {
        let encoded = BASE64.encode([SPKI_PREFIX.as_slice(), &self.bytes].concat());
        format!("-----BEGIN PUBLIC KEY-----\n{encoded}\n-----END PUBLIC KEY-----\n")
    }

    /// The first 4 bytes of the SHA-256 over name and key, as in C2SP `signed-note`. Signatures begin
    /// with it.
    fn key_hash(&self) -> [u8; 4] {
        let Hash(hash) = Hash::digest(&[self.name.as_bytes(), b"\n", &[ALGORITHM], &self.bytes]);
        [hash[0], hash[1], hash[2], hash[3]]
    }

    /// The text of a note; `None` unless this key signed it. It may have other signatures, too.
    pub fn open_note<'n>(&self, note: &'n str) -> Option<&'n str> {
        let (text, signatures) = split_note(note)?;
        let is_signed = signatures.lines().any(|line| {
            let signature = line
                .strip_prefix("\u{2014} ")
                .and_then(|line| line.split_once(' '));
            let Some((_, signature)) = signature.filter(|(name, _)| *name == self.name) else {
                return false;
            };
            let Ok(bytes) = BASE64.decode(signature) else {
                return false;
            };
            let key = UnparsedPublicKey::new(&ED25519, self.bytes);
            bytes.get(..4) == Some(&self.key_hash())
                && key.verify(text.as_bytes(), &bytes[4..]).is_ok()
        });
        is_signed.then_some(text)
    }
}

/// The name, the unchecked hash, and the 32 bytes of an Ed25519 key.
fn parse_key_line(line: &str) -> Option<(&str, &str, [u8; 32])> {
    let (name, rest) = line.split_once('+')?;
    let (hash, key) = rest.split_once('+')?;
    match BASE64.decode(key).ok()?.split_first()? {
        (&ALGORITHM, bytes) => Some((name, hash, bytes.try_into().ok()?)),
        _ => None,
    }
}

/// The text of a note with its last newline, and its signature lines, of which there is at least one.
pub fn split_note(note: &str) -> Option<(&str, &str)> {
    let at = note.rfind("\n\n")?;
    let text = &note[..=at];
    let signatures = &note[at + 2..];
    let is_whole =
        signatures.ends_with('\n') && signatures.lines().all(|line| line.starts_with("\u{2014} "));
    (is_whole && !signatures.is_empty()).then_some((text, signatures))
}

/// # Errors
/// The operating system gives none.
pub fn random_bytes<const N: usize>() -> Result<[u8; N], NoteKeyError> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| NoRandom)?;
    Ok(bytes)
}

/// The private key of a log.
pub struct SigningKey {
    name: String,
    seed: [u8; 32],
    pair: Ed25519KeyPair,
}

impl SigningKey {
    /// A new key, named `crawlgate-evidence-` and 16 digits of the SHA-256 of the public key.
    ///
    /// # Errors
    /// The operating system gives no random numbers.
    pub fn generate() -> Result<SigningKey, NoteKeyError> {
        let seed = random_bytes()?;
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).map_err(|_| NoKey)?;
        let hash = Hash::digest(&[pair.public_key().as_ref()]);
        Ok(SigningKey {
            name: format!("crawlgate-evidence-{}", hash.short_hex()),
            seed,
            pair,
        })
    }

    /// A new key with the name of this one.
    ///
    /// # Errors
    /// The operating system gives no random numbers.
    pub fn generate_successor(&self) -> Result<SigningKey, NoteKeyError> {
        Ok(SigningKey {
            name: self.name.clone(),
            ..SigningKey::generate()?
        })
    }

    /// Reads what [`SigningKey::line`] writes.
    ///
    /// # Errors
    /// It is no private key.
    pub fn parse(line: &str) -> Result<SigningKey, NoteKeyError> {
        let (name, hash, seed) = line
            .trim()
            .strip_prefix("PRIVATE+KEY+")
            .and_then(parse_key_line)
            .ok_or(NoKey)?;
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).map_err(|_| NoKey)?;
        let key = SigningKey {
            name: name.to_owned(),
            seed,
            pair,
        };
        let is_key = hex(&key.verify_key().key_hash()) == hash;
        is_key.then_some(key).ok_or(NoKey)
    }

    /// The private key as one line, in the form that Go's `note` package reads.
    pub fn to_line(&self) -> String {
        format!(
            "PRIVATE+KEY+{}",
            self.verify_key().line_with_bytes(&self.seed)
        )
    }

    /// The public key.
    pub fn verify_key(&self) -> VerifyKey {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(self.pair.public_key().as_ref());
        VerifyKey {
            name: self.name.clone(),
            bytes,
        }
    }

    /// Signs a text, which must end with a newline. The note is the text and the signature.
    pub fn sign_note(&self, text: &str) -> String {
        let bytes = [
            self.verify_key().key_hash().as_slice(),
            self.pair.sign(text.as_bytes()).as_ref(),
        ]
        .concat();
        format!("{text}\n\u{2014} {} {}\n", self.name, BASE64.encode(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The key and the note of the documentation of Go's `golang.org/x/mod/sumdb/note`.
    #[test]
    fn note_of_another_implementation_is_opened() {
        let key = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
        let note = "If you think cryptography is the answer to your problem,\n\
                    then you don't know what your problem is.\n\n\
                    \u{2014} PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n";
        let key = VerifyKey::parse(key).expect("a key");
        assert_eq!(
            key.open_note(note).map(|text| text.lines().count()),
            Some(2)
        );
        let private =
            "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz";
        let private = SigningKey::parse(private).expect("a private key");
        assert_eq!(private.verify_key(), key);
        assert_eq!(
            private.sign_note(key.open_note(note).expect("signed")),
            note
        );
    }

    #[test]
    fn keys_survive_their_text_form() {
        let key = SigningKey::generate().expect("a key");
        let read = SigningKey::parse(&key.to_line()).expect("a key");
        assert_eq!(read.verify_key(), key.verify_key());
        assert_eq!(
            VerifyKey::parse(&key.verify_key().to_line()),
            Ok(key.verify_key())
        );
        let other = SigningKey::generate().expect("a key");
        assert_eq!(other.verify_key().open_note(&key.sign_note("a\n")), None);
    }

    proptest! {
        #[test]
        fn changed_byte_of_a_note_is_detected(place in 0usize..200, change in 1u8..=255) {
            let key = SigningKey::parse("PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz");
            let key = key.expect("a key");
            let note = key.sign_note("log\n3\nroot\n");
            let mut bytes = note.clone().into_bytes();
            let place = place % bytes.len();
            bytes[place] ^= change;
            if let Ok(changed) = String::from_utf8(bytes) {
                prop_assert!(key.verify_key().open_note(&changed).is_none());
            }
        }
    }
}
