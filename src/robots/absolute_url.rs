//! [`AbsoluteUrl`]: a URL with a host, split into its scheme, its [`Authority`] (host and port) and
//! the rest. It works on bytes, because origins send URLs that are not UTF-8.

/// A URL with a host: `https://shop.example/a`, or without the scheme `//shop.example/a`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AbsoluteUrl<'a> {
    /// As it is written, without the colon; empty if there is none.
    pub scheme: &'a [u8],
    /// Host and port.
    pub authority: Authority<'a>,
    /// Path, query and fragment.
    pub rest: &'a [u8],
}

/// A host with or without a port: `shop.example`, `[2001:db8::1]:8080`. A user name is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Authority<'a> {
    /// The name or address, without the brackets of IPv6 and without a final dot.
    pub name: &'a [u8],
    /// The port, if one is written.
    pub port: Option<&'a [u8]>,
}

impl<'a> AbsoluteUrl<'a> {
    /// Splits a URL. `None` if it has no `//` with a host, or text before `//` that is not a scheme
    /// with a colon.
    pub fn parse(url: &'a [u8]) -> Option<AbsoluteUrl<'a>> {
        let slashes = url.windows(2).position(|pair| pair == b"//")?;
        let scheme = match &url[..slashes] {
            b"" => b"",
            before => before.strip_suffix(b":")?,
        };
        let after = &url[slashes + 2..];
        let is_scheme = scheme.iter().enumerate().all(|(place, byte)| match place {
            0 => byte.is_ascii_alphabetic(),
            _ => byte.is_ascii_alphanumeric() || b"+-.".contains(byte),
        });
        let end = after
            .iter()
            .position(|byte| b"/?#\\\"'".contains(byte))
            .unwrap_or(after.len());
        let authority = Authority::parse(&after[..end]);
        (is_scheme && !authority.name.is_empty()).then_some(AbsoluteUrl {
            scheme,
            authority,
            rest: &after[end..],
        })
    }

    /// The port of its scheme; `None` if it is neither http nor https.
    pub fn default_port(&self) -> Option<&'static [u8]> {
        match self.scheme.to_ascii_lowercase().as_slice() {
            b"http" => Some(b"80"),
            b"https" => Some(b"443"),
            _ => None,
        }
    }
}

impl<'a> Authority<'a> {
    /// Splits host and port. A user name before `@`, the brackets of IPv6 and a final dot are
    /// dropped; an empty port counts as none. Nothing else is checked.
    pub fn parse(authority: &'a [u8]) -> Authority<'a> {
        let after_user = authority
            .iter()
            .rposition(|byte| *byte == b'@')
            .map_or(0, |at| at + 1);
        let authority = &authority[after_user..];
        let colon = authority
            .iter()
            .rposition(|byte| *byte == b':')
            .filter(|colon| !authority[*colon..].contains(&b']'));
        let (name, port) = match colon {
            Some(colon) => (&authority[..colon], Some(&authority[colon + 1..])),
            None => (authority, None),
        };
        let name = name
            .strip_prefix(b"[")
            .and_then(|name| name.strip_suffix(b"]"))
            .unwrap_or(name);
        Authority {
            name: name.strip_suffix(b".").unwrap_or(name),
            port: port.filter(|port| !port.is_empty()),
        }
    }

    /// Whether host and port are the same. A missing port is `default_port`.
    pub fn is_same_as(&self, other: &Authority<'_>, default_port: &[u8]) -> bool {
        self.name.eq_ignore_ascii_case(other.name)
            && self.port.unwrap_or(default_port) == other.port.unwrap_or(default_port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_is_split_into_scheme_host_port_and_rest() {
        for (url, parts) in [
            (
                "https://shop.example/a?b",
                ("https", "shop.example", None, "/a?b"),
            ),
            (
                "HTTP://Shop.example.:81?b",
                ("HTTP", "Shop.example", Some("81"), "?b"),
            ),
            ("http://[::1]:80", ("http", "::1", Some("80"), "")),
            ("http://[::1]/", ("http", "::1", None, "/")),
            ("//a:/x", ("", "a", None, "/x")),
            ("ftp://user:word@a/", ("ftp", "a", None, "/")),
        ] {
            let read = AbsoluteUrl::parse(url.as_bytes()).expect(url);
            let text = |bytes| std::str::from_utf8(bytes).expect("text");
            let port = read.authority.port.map(text);
            assert_eq!(
                (
                    text(read.scheme),
                    text(read.authority.name),
                    port,
                    text(read.rest)
                ),
                parts,
                "{url}"
            );
        }
        for url in [
            "",
            "/a",
            "/a//b",
            "shop.example/a",
            "https:/a",
            "https:///a",
            "mailto:a@b",
            "1a://b",
            "a b://c",
        ] {
            assert_eq!(AbsoluteUrl::parse(url.as_bytes()), None, "{url}");
        }
    }

    #[test]
    fn missing_port_defaults_to_scheme_port() {
        let is_same = |one: &str, other: &str| {
            Authority::parse(one.as_bytes()).is_same_as(&Authority::parse(other.as_bytes()), b"443")
        };
        assert!(is_same("a", "A:443") && is_same("a:443", "a") && is_same("a:80", "a:80"));
        assert!(!is_same("a", "a:80") && !is_same("a", "b") && !is_same("a:", "a:1"));
    }
}
