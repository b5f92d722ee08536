//! [`Challenges`]: files by which an authority's client (certbot, acme.sh) proves that a host is the operator's (RFC 8555
//! section 8.3). The client writes them into a directory, and they are served from there.

use super::head::Request;
use std::io::Read;
use std::path::PathBuf;

/// The paths of challenges.
pub(super) const PATH: &[u8] = b"/.well-known/acme-challenge/";
/// The longest token, and the longest file: a token, a dot and the hash of a key.
const LONGEST: usize = 1024;

/// The directory of the files, which a client calls its webroot.
#[derive(Clone, Debug)]
pub struct Challenges {
    /// It holds `.well-known/acme-challenge/`.
    pub webroot: PathBuf,
}

impl Challenges {
    /// The file that a request asks for: `None` where it asks for none, `Some(None)` where there is no such file.
    pub fn file(&self, request: &Request<'_>) -> Option<Option<Vec<u8>>> {
        let token = request.path().strip_prefix(PATH)?;
        Some(std::str::from_utf8(token).ok().filter(|token| is_token(token)).and_then(|token| self.read(token)))
    }

    fn read(&self, token: &str) -> Option<Vec<u8>> {
        let path = self.webroot.join(".well-known/acme-challenge").join(token);
        let file = std::fs::File::open(path).ok()?;
        let mut content = Vec::new();
        file.take(LONGEST as u64 + 1).read_to_end(&mut content).ok()?;
        (content.len() <= LONGEST).then_some(content)
    }
}

/// Letters and digits of base64url, so no way out of the directory.
fn is_token(token: &str) -> bool {
    let is_of_base64url = |octet: u8| octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'_');
    !token.is_empty() && token.len() <= 256 && token.bytes().all(is_of_base64url)
}
