//! [`Challenges`]: the files by which a certificate authority checks who controls a host (RFC 8555
//! section 8.3). crawlgate makes those for its own orders. For another client of an authority
//! (certbot, acme.sh) it reads them from a directory.

use crate::files::read_file;
use crate::heads::origin_form;
use crate::verdict::acme_token;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The longest file: a token, a dot and the hash of a key.
const LONGEST: u64 = 1024;

/// The content of the file for a token, if the token belongs to an order of crawlgate's.
pub type OwnFiles = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// The sources of the files.
#[derive(Default)]
pub struct Challenges {
    /// A directory that holds `.well-known/acme-challenge/`. Without one, the origin has the files
    /// of other clients.
    pub webroot: Option<PathBuf>,
    /// The files for crawlgate's own orders.
    pub own: Option<OwnFiles>,
}

impl Challenges {
    /// The answer to a request for the file of a challenge: `Some(Some(..))` is the file, of an own
    /// order or else of the webroot; `Some(None)` is that there is none (404). `None` if the
    /// request is no challenge, or the origin has to answer it, because no own order has the token
    /// and there is no webroot.
    pub fn file(&self, method: &[u8], target: &[u8]) -> Option<Option<Vec<u8>>> {
        if self.webroot.is_none() && self.own.is_none() {
            return None;
        }
        let target = origin_form(target);
        let token = std::str::from_utf8(acme_token(method, &target)?).ok();
        if let Some(content) = self
            .own
            .as_ref()
            .zip(token)
            .and_then(|(own, token)| own(token))
        {
            return Some(Some(content.into_bytes()));
        }
        let webroot = self.webroot.as_deref()?;
        Some(token.and_then(|token| read(webroot, token)))
    }
}

/// The file of this token in the webroot, if it is there and at most `LONGEST` bytes long.
fn read(webroot: &Path, token: &str) -> Option<Vec<u8>> {
    let path = webroot.join(".well-known/acme-challenge").join(token);
    read_file(&path, LONGEST).ok()
}
