//! [`Challenges`]: files by which a host is proven to be the operator's (RFC 8555 section 8.3). They are crawlgate's own, or
//! another client of an authority (certbot, acme.sh) writes them into a directory.

use crate::heads::origin_form;
use crate::verdict::acme_token;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The longest file: a token, a dot and the hash of a key.
const LONGEST: usize = 1024;

/// The content of the file of a token, where crawlgate itself asked for a certificate.
pub type OwnFiles = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Where the files come from.
#[derive(Clone, Default)]
pub struct Challenges {
    /// A directory that holds `.well-known/acme-challenge/`. Without one, the files of other clients are the origin's.
    pub webroot: Option<PathBuf>,
    /// crawlgate's own.
    pub own: Option<OwnFiles>,
}

impl Challenges {
    /// The file that a request asks for: `None` where it asks for none, `Some(None)` where there is no such file.
    pub fn file(&self, method: &[u8], target: &[u8]) -> Option<Option<Vec<u8>>> {
        if self.webroot.is_none() && self.own.is_none() {
            return None;
        }
        let target = origin_form(target);
        let token = std::str::from_utf8(acme_token(method, &target)?).ok();
        if let Some(content) = self.own.as_ref().zip(token).and_then(|(own, token)| own(token)) {
            return Some(Some(content.into_bytes()));
        }
        let webroot = self.webroot.as_deref()?;
        Some(token.and_then(|token| read(webroot, token)))
    }
}

fn read(webroot: &Path, token: &str) -> Option<Vec<u8>> {
    let path = webroot.join(".well-known/acme-challenge").join(token);
    let file = std::fs::File::open(path).ok()?;
    let mut content = Vec::new();
    file.take(LONGEST as u64 + 1).read_to_end(&mut content).ok()?;
    (content.len() <= LONGEST).then_some(content)
}
