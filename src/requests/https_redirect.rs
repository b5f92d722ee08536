//! [`HttpsRedirect`]: the redirect from http to https, for a listener with the setting `redirect:
//! https`. Two kinds of requests are never redirected: those for robots.txt, because crawlers read
//! it for each scheme, and challenges of certificate authorities, which come over http.

use crate::heads::origin_form;
use crate::robots::reaches_robots_txt;
use crate::verdict::is_challenge;

/// A redirect to the listener for https.
#[derive(Clone, Copy)]
pub struct HttpsRedirect {
    /// The port of that listener, unless it is 443.
    pub port: Option<u16>,
}

impl HttpsRedirect {
    /// The URL that a request is redirected to: its host without its port, the port of the https
    /// listener, and its path (`/` where the target has none). `None` for robots.txt, a challenge,
    /// or a request without a host.
    pub fn location(&self, method: &[u8], host: &[u8], target: &[u8]) -> Option<Vec<u8>> {
        let target = origin_form(target);
        if reaches_robots_txt(&target) || is_challenge(method, &target) || host.is_empty() {
            return None;
        }
        let host = match memchr::memrchr(b':', host) {
            Some(colon) if !host.ends_with(b"]") => &host[..colon],
            _ => host,
        };
        let target = if target.starts_with(b"/") {
            target.as_ref()
        } else {
            b"/"
        };
        let port = self.port.map(|port| format!(":{port}")).unwrap_or_default();
        Some([b"https://", host, port.as_bytes(), target].concat())
    }
}
