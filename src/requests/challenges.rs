//! [`Challenges`]: files by which an authority's client (certbot, acme.sh) proves that a host is the operator's (RFC 8555
//! section 8.3). The client writes them into a directory, and they are served from there.

use crate::heads::origin_form;
use crate::verdict::acme_token;
use std::io::Read;
use std::path::PathBuf;

/// The longest file: a token, a dot and the hash of a key.
const LONGEST: usize = 1024;

/// The directory of the files, which a client calls its webroot.
#[derive(Clone, Debug)]
pub struct Challenges {
    /// It holds `.well-known/acme-challenge/`.
    pub webroot: PathBuf,
}

impl Challenges {
    /// The file that a request asks for: `None` where it asks for none, `Some(None)` where there is no such file.
    pub fn file(&self, method: &[u8], target: &[u8]) -> Option<Option<Vec<u8>>> {
        let target = origin_form(target);
        let token = acme_token(method, &target)?;
        Some(std::str::from_utf8(token).ok().and_then(|token| self.read(token)))
    }

    fn read(&self, token: &str) -> Option<Vec<u8>> {
        let path = self.webroot.join(".well-known/acme-challenge").join(token);
        let file = std::fs::File::open(path).ok()?;
        let mut content = Vec::new();
        file.take(LONGEST as u64 + 1).read_to_end(&mut content).ok()?;
        (content.len() <= LONGEST).then_some(content)
    }
}
