//! [`restore_client_host`] puts the host that the client requested into the URLs of response
//! headers (Location, Content-Location, Refresh). crawlgate can send an origin another Host than
//! the client sent. The origin then writes this other Host into redirects. Unchanged, the redirects
//! would lead clients to the wrong host.

use super::head::EditableHead;
use crate::robots::{AbsoluteUrl, Authority};
use http::{HeaderName, header};

/// Fields whose value is a URL, or ends with one.
const FIELDS: [(&str, HeaderName); 3] = [
    ("Location", header::LOCATION),
    ("Content-Location", header::CONTENT_LOCATION),
    ("Refresh", HeaderName::from_static("refresh")),
];

/// Which host is replaced by which.
#[derive(Clone, Copy)]
pub struct HostReplacement<'a> {
    /// The Host that the origin got, with its port if it has one.
    pub origin_host: &'a str,
    /// The Host that the client sent.
    pub client_host: &'a [u8],
    /// The scheme of the client's request, if it is known.
    pub scheme: Option<&'static str>,
}

/// Replaces the origin's host by the client's in Location, Content-Location and Refresh of a
/// response. The scheme stays, because an origin may redirect to https. But if the client's host
/// has a port, the scheme becomes the client's too, because a port has one scheme.
pub fn restore_client_host(head: &mut impl EditableHead, hosts: &HostReplacement<'_>) {
    for (written, name) in FIELDS {
        let value = head
            .lines(name)
            .next()
            .and_then(|value| hosts.with_client_host(value));
        if let Some(value) = value {
            head.set(written, &value);
        }
    }
}

impl HostReplacement<'_> {
    /// The value of a field with the client's host. `None` if it has no absolute URL of the
    /// origin's host, or the client sent no Host.
    fn with_client_host(&self, value: &[u8]) -> Option<Vec<u8>> {
        let (before, url) = value.split_at(url_offset(value));
        let url = AbsoluteUrl::parse(url)?;
        let default_port = if url.scheme.is_empty() {
            self.default_port()
        } else {
            url.default_port()?
        };
        let is_origins = url
            .authority
            .is_same_as(&Authority::parse(self.origin_host.as_bytes()), default_port);
        if !is_origins || self.client_host.is_empty() {
            return None;
        }
        let has_port = Authority::parse(self.client_host).port.is_some();
        let scheme = self
            .scheme
            .map(str::as_bytes)
            .filter(|_| has_port && !url.scheme.is_empty());
        let scheme = scheme.unwrap_or(url.scheme);
        let colon: &[u8] = if scheme.is_empty() { b"" } else { b":" };
        Some([before, scheme, colon, b"//", self.client_host, url.rest].concat())
    }

    /// The port of a URL without scheme and port: that of the client's scheme, or 80.
    fn default_port(&self) -> &'static [u8] {
        if self.scheme == Some("https") {
            b"443"
        } else {
            b"80"
        }
    }
}

/// Where the URL in the value begins: behind `url=` in a Refresh such as `5;
/// url=https://a.example/`, else at the beginning. White space and quotes are skipped.
fn url_offset(value: &[u8]) -> usize {
    let named = value
        .windows(4)
        .position(|part| part.eq_ignore_ascii_case(b"url="))
        .filter(|index| {
            // `url=` may also be in the query of a URL.
            value[..*index]
                .iter()
                .all(|byte| byte.is_ascii_digit() || b".;, \t".contains(byte))
        });
    let begin = named.map_or(0, |index| index + 4);
    begin
        + value[begin..]
            .iter()
            .take_while(|byte| b" \t\"'".contains(byte))
            .count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderMap, HeaderValue};

    fn replaced(name: &'static str, value: &'static str, hosts: HostReplacement<'_>) -> String {
        let mut head = HeaderMap::from_iter([(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        )]);
        restore_client_host(&mut head, &hosts);
        head[name].to_str().expect("text").to_owned()
    }

    const PLATFORM: HostReplacement<'static> = HostReplacement {
        origin_host: "app-1.platform.example",
        client_host: b"shop.example",
        scheme: Some("http"),
    };

    #[test]
    fn origin_host_is_replaced_and_scheme_stays() {
        for (theirs, ours) in [
            (
                "https://app-1.platform.example/login?next=/a",
                "https://shop.example/login?next=/a",
            ),
            ("http://APP-1.platform.example:80/", "http://shop.example/"),
            ("HTTPS://app-1.platform.example:443", "HTTPS://shop.example"),
            (
                "https://app-1.platform.example?a#b",
                "https://shop.example?a#b",
            ),
            ("//app-1.platform.example/a", "//shop.example/a"),
        ] {
            assert_eq!(replaced("location", theirs, PLATFORM), ours, "{theirs}");
            assert_eq!(
                replaced("content-location", theirs, PLATFORM),
                ours,
                "{theirs}"
            );
        }
    }

    #[test]
    fn url_in_refresh_is_replaced() {
        for (theirs, ours) in [
            (
                "5; url=https://app-1.platform.example/a",
                "5; url=https://shop.example/a",
            ),
            (
                "0;URL='http://app-1.platform.example'",
                "0;URL='http://shop.example'",
            ),
            ("5", "5"),
        ] {
            assert_eq!(replaced("refresh", theirs, PLATFORM), ours, "{theirs}");
        }
    }

    #[test]
    fn url_of_another_host_stays() {
        for theirs in [
            "/login",
            "login",
            "",
            "https://other.example/?url=https://app-1.platform.example/",
            "https://app-1.platform.example.other.example/",
            "https://app-1.platform.example:8443/",
            "http://app-1.platform.example:443/",
            "ftp://app-1.platform.example/",
            "mailto:a@app-1.platform.example",
        ] {
            assert_eq!(replaced("location", theirs, PLATFORM), theirs);
        }
        let without_host = HostReplacement {
            client_host: b"",
            ..PLATFORM
        };
        assert_eq!(
            replaced("location", "http://app-1.platform.example/", without_host),
            "http://app-1.platform.example/"
        );
    }

    #[test]
    fn ports_and_ipv6_addresses_are_compared() {
        let own = HostReplacement {
            origin_host: "[::1]:8080",
            client_host: b"[2001:db8::2]:81",
            scheme: Some("http"),
        };
        assert_eq!(
            replaced("location", "http://[::1]:8080/a", own),
            "http://[2001:db8::2]:81/a"
        );
        assert_eq!(
            replaced("location", "http://[::1]/a", own),
            "http://[::1]/a"
        );
        let own = HostReplacement {
            origin_host: "app:443",
            ..PLATFORM
        };
        assert_eq!(
            replaced("location", "https://app/a", own),
            "https://shop.example/a"
        );
    }

    #[test]
    fn port_of_the_client_changes_the_scheme() {
        let with_port = HostReplacement {
            client_host: b"shop.example:8080",
            ..PLATFORM
        };
        let theirs = "https://app-1.platform.example/a";
        assert_eq!(
            replaced("location", theirs, with_port),
            "http://shop.example:8080/a"
        );
        let behind_a_proxy = HostReplacement {
            scheme: None,
            ..with_port
        };
        assert_eq!(
            replaced("location", theirs, behind_a_proxy),
            "https://shop.example:8080/a"
        );
    }
}
