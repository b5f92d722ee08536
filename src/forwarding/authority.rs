//! [`give_client_authority`]: an origin that wants its own Host writes it into the URLs of its
//! responses. In the fields that send a client elsewhere, it becomes the host that the client asked
//! for.

use super::head::Head;
use crate::robots::{AbsoluteUrl, Authority};
use http::{HeaderName, header};

/// Fields of which the value is a URL, or ends with one.
const FIELDS: [(&str, HeaderName); 3] = [
    ("Location", header::LOCATION),
    ("Content-Location", header::CONTENT_LOCATION),
    ("Refresh", HeaderName::from_static("refresh")),
];

/// The origin's host, and the client's in its place.
#[derive(Clone, Copy, Debug)]
pub struct Authorities<'a> {
    /// The Host that the origin got, with its port if it has one.
    pub origins: &'a str,
    /// The Host that the client sent.
    pub clients: &'a [u8],
    /// The scheme that the client uses, if it is known.
    pub scheme: Option<&'static str>,
}

/// Writes the client's host into Location, Content-Location and Refresh of a response, if they have
/// the origin's. The scheme stays: an origin may redirect to https. But if the client's host has a
/// port, the scheme becomes the client's too, because a port speaks one scheme.
pub fn give_client_authority(head: &mut impl Head, authorities: &Authorities<'_>) {
    for (written, name) in FIELDS {
        let value = head
            .lines(name)
            .next()
            .and_then(|value| authorities.rewritten(value));
        if let Some(value) = value {
            head.set(written, &value);
        }
    }
}

impl Authorities<'_> {
    /// The value of a field with the client's host. `None` if it has no absolute URL of the
    /// origin's host, or the client named no host. What is before the URL and behind its host
    /// stays. So does the scheme, unless the client's host has a port: then it is the client's, if
    /// that is known.
    fn rewritten(&self, value: &[u8]) -> Option<Vec<u8>> {
        let (before, url) = value.split_at(begin_of_url(value));
        let url = AbsoluteUrl::read(url)?;
        let default_port = if url.scheme.is_empty() {
            self.default_port()
        } else {
            url.default_port()?
        };
        let is_origins = url
            .authority
            .is(&Authority::read(self.origins.as_bytes()), default_port);
        if !is_origins || self.clients.is_empty() {
            return None;
        }
        let has_port = Authority::read(self.clients).port.is_some();
        let scheme = self
            .scheme
            .map(str::as_bytes)
            .filter(|_| has_port && !url.scheme.is_empty());
        let scheme = scheme.unwrap_or(url.scheme);
        let colon: &[u8] = if scheme.is_empty() { b"" } else { b":" };
        Some([before, scheme, colon, b"//", self.clients, url.rest].concat())
    }

    /// The port of a URL without scheme and port: that of the client's scheme, 80 if that is
    /// unknown.
    fn default_port(&self) -> &'static [u8] {
        if self.scheme == Some("https") {
            b"443"
        } else {
            b"80"
        }
    }
}

/// Where the URL in the value begins: behind `url=` in a Refresh such as `5;
/// url=https://a.example/`, else at the beginning; white space and quotes are passed over.
fn begin_of_url(value: &[u8]) -> usize {
    let named = value
        .windows(4)
        .position(|part| part.eq_ignore_ascii_case(b"url="))
        .filter(|place| {
            // A URL has its own `url=` behind a `?`.
            value[..*place]
                .iter()
                .all(|byte| byte.is_ascii_digit() || b".;, \t".contains(byte))
        });
    let begin = named.map_or(0, |place| place + 4);
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

    fn given(name: &'static str, value: &'static str, authorities: Authorities<'_>) -> String {
        let mut head = HeaderMap::from_iter([(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        )]);
        give_client_authority(&mut head, &authorities);
        head[name].to_str().expect("text").to_owned()
    }

    const PLATFORM: Authorities<'static> = Authorities {
        origins: "app-1.platform.example",
        clients: b"shop.example",
        scheme: Some("http"),
    };

    #[test]
    fn url_of_the_origin_becomes_the_clients_with_its_scheme() {
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
            assert_eq!(given("location", theirs, PLATFORM), ours, "{theirs}");
            assert_eq!(
                given("content-location", theirs, PLATFORM),
                ours,
                "{theirs}"
            );
        }
    }

    #[test]
    fn refresh_has_its_url_behind_the_time() {
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
            assert_eq!(given("refresh", theirs, PLATFORM), ours, "{theirs}");
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
            assert_eq!(given("location", theirs, PLATFORM), theirs);
        }
        let without_host = Authorities {
            clients: b"",
            ..PLATFORM
        };
        assert_eq!(
            given("location", "http://app-1.platform.example/", without_host),
            "http://app-1.platform.example/"
        );
    }

    #[test]
    fn ports_and_ipv6_addresses_are_compared_and_written() {
        let own = Authorities {
            origins: "[::1]:8080",
            clients: b"[2001:db8::2]:81",
            scheme: Some("http"),
        };
        assert_eq!(
            given("location", "http://[::1]:8080/a", own),
            "http://[2001:db8::2]:81/a"
        );
        assert_eq!(given("location", "http://[::1]/a", own), "http://[::1]/a");
        let own = Authorities {
            origins: "app:443",
            ..PLATFORM
        };
        assert_eq!(
            given("location", "https://app/a", own),
            "https://shop.example/a"
        );
    }

    #[test]
    fn port_of_the_client_takes_its_scheme_along() {
        let with_port = Authorities {
            clients: b"shop.example:8080",
            ..PLATFORM
        };
        let theirs = "https://app-1.platform.example/a";
        assert_eq!(
            given("location", theirs, with_port),
            "http://shop.example:8080/a"
        );
        let behind_a_proxy = Authorities {
            scheme: None,
            ..with_port
        };
        assert_eq!(
            given("location", theirs, behind_a_proxy),
            "https://shop.example:8080/a"
        );
    }
}
