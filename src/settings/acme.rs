//! [`AcmeSettings`]: the setting `acme` in the `tls` of a listener, by which crawlgate gets
//! certificates by itself from an authority such as Let's Encrypt (RFC 8555).

use super::identity::resolvers;
use crate::yaml::{Located, Reader};
use std::net::SocketAddr;
use strum::{EnumString, VariantNames};

/// The directory of Let's Encrypt.
const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";

/// Certificates that crawlgate gets by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct AcmeSettings {
    /// The address that the authority writes to.
    pub email: Option<String>,
    /// The URL of the authority's directory.
    pub directory: String,
    /// The hosts to get certificates for; those of the policies when absent.
    pub hosts: Option<Vec<String>>,
    /// How the authority may check that a host is the operator's.
    pub challenge: ChallengeChoice,
    /// Name servers to ask where a host leads to; the system's when empty.
    pub resolvers: Vec<SocketAddr>,
}

impl Default for AcmeSettings {
    fn default() -> AcmeSettings {
        AcmeSettings {
            email: None,
            directory: LETS_ENCRYPT.into(),
            hosts: None,
            challenge: ChallengeChoice::Any,
            resolvers: Vec::new(),
        }
    }
}

/// How the authority may check that a host is the operator's.
#[derive(Clone, Copy, Debug, PartialEq, EnumString, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum ChallengeChoice {
    /// By HTTP where a listener is in clear text; otherwise, and after a failure, by TLS.
    Any,
    /// The authority asks for a file on port 80 (RFC 8555 section 8.3).
    Http,
    /// The authority makes a TLS handshake on port 443 (RFC 8737).
    TlsAlpn,
}

/// `yes`, or `{ email: a@shop.example, directory: URL, hosts: [shop.example], challenge: http,
/// resolvers: [9.9.9.9] }`; what is left out has its default. `None` for `no`.
pub(super) fn acme(node: Reader<'_>) -> Option<AcmeSettings> {
    let mut settings = AcmeSettings::default();
    if !node.is_map() {
        return node.boolean()?.then_some(settings);
    }
    node.map(
        "a map: email, directory, hosts, challenge, resolvers",
        |fields| {
            settings.email = fields.get("email", email);
            fields.set("directory", &mut settings.directory, directory);
            settings.hosts = fields.get("hosts", |node| Some(hosts(node)));
            settings.challenge = fields
                .variant("challenge", "a challenge")
                .unwrap_or(settings.challenge);
            settings.resolvers = fields.get_or_default("resolvers", resolvers);
            settings
        },
    )
}

/// An address of e-mail: one `@` with something on both sides, and only ASCII characters that a
/// `mailto` URL can have.
fn email(node: Reader<'_>) -> Option<String> {
    node.parsed(
        "an address of e-mail",
        |text| {
            let (name, host) = text.split_once('@')?;
            let is_plain = text
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && !b"?,<>\"".contains(&byte));
            (is_plain && !name.is_empty() && !host.is_empty() && !host.contains('@'))
                .then(|| text.to_owned())
        },
        (
            "bad-value",
            "is not an address of e-mail",
            "write `admin@shop.example`, or leave `email` out",
        ),
    )
}

/// The URL of an authority's directory: https, a host, and ASCII characters.
fn directory(node: Reader<'_>) -> Option<String> {
    node.parsed(
        "a URL",
        |text| {
            let rest = text.strip_prefix("https://")?;
            let is_url = !rest.is_empty()
                && !rest.starts_with('/')
                && rest.bytes().all(|byte| byte.is_ascii_graphic());
            is_url.then(|| text.to_owned())
        },
        (
            "bad-value",
            "is not the URL of an authority's directory",
            "write a URL with https, like https://acme-v02.api.letsencrypt.org/directory",
        ),
    )
}

/// A list of host names, each once and in lower case. A wildcard, an address and a second mention
/// are mistakes, and are left out.
fn hosts(node: Reader<'_>) -> Vec<String> {
    let mut hosts: Vec<String> = Vec::new();
    for Located {
        value: written,
        span,
    } in node.texts("a list of host names")
    {
        match super::address::host_pattern(&written) {
            Some(host) if host.starts_with("*.") => {
                node.decoder.error_with_help(
                    "bad-host",
                    span,
                    format!("`{host}` is a wildcard: `acme` gets certificates for whole names only"),
                    "get this certificate with another program, and name its files in `certificates`",
                );
            }
            Some(host) if hosts.contains(&host) => {
                node.decoder
                    .error("duplicate-host", span, format!("`{host}` is listed twice"));
            }
            Some(host) if host.parse::<std::net::IpAddr>().is_err() => hosts.push(host),
            _ => node.decoder.error_with_help(
                "bad-host",
                span,
                format!("`{written}` is not a host name"),
                "write `shop.example`, without scheme and port",
            ),
        }
    }
    hosts
}
