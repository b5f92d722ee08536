//! [`ChallengeFileSources`]: the files by which a certificate authority checks who controls a host
//! (ACME, RFC 8555 section 8.3). crawlgate makes these files for the certificates that it orders
//! itself. If another ACME client (certbot, acme.sh) makes the files, crawlgate reads them from a
//! directory.

use crate::files::read_file_up_to;
use crate::heads::origin_form;
use crate::verdict::acme_token;
use std::path::PathBuf;
use std::sync::Arc;

/// The most bytes of a file: a token, a dot and the hash of a key.
const MAX_FILE_BYTES: u64 = 1024;

/// The content of the file for a token, if the token belongs to an order of crawlgate's.
pub type OwnChallengeLookup = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// The sources of the files.
#[derive(Default)]
pub struct ChallengeFileSources {
    /// A directory that contains `.well-known/acme-challenge/`. Without one, the origin serves the
    /// files of other ACME clients.
    pub webroot: Option<PathBuf>,
    /// The files for crawlgate's own orders.
    pub own: Option<OwnChallengeLookup>,
}

impl ChallengeFileSources {
    /// Finds the file for a request. `Some(Some(..))` is the content of a file, of an own order or
    /// else of the webroot. `Some(None)` means that no such file exists (404). `None` means that
    /// the request is no challenge, or that the origin has to answer it, because no own order has
    /// the token and there is no webroot.
    pub fn challenge_file(&self, method: &[u8], target: &[u8]) -> Option<Option<Vec<u8>>> {
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
        Some(token.and_then(|token| {
            let path = webroot.join(".well-known/acme-challenge").join(token);
            read_file_up_to(&path, MAX_FILE_BYTES).ok()
        }))
    }
}
