//! [`AcmeSettings`]: the setting `acme` in the `tls` section of a listener, for automatic
//! certificates from an authority such as Let's Encrypt (RFC 8555).

use super::address::normalize_host;
use super::identity::decode_resolvers;
use super::section::section;
use super::values::decode_distinct;
use crate::yaml::NodeReader;
use std::net::{IpAddr, SocketAddr};
use strum::{EnumString, VariantNames};

/// The directory of Let's Encrypt.
const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";

section! {
    /// How to get automatic certificates.
    #[derive(Clone, Debug, PartialEq)]
    AcmeSettings {
        /// The operator's address, for the authority.
        "email" => email: Option<String> = None, |node| decode_email(node).map(Some);
        /// The URL of the authority's directory.
        "directory" => directory: String = LETS_ENCRYPT.into(), decode_directory_url;
        /// The hosts; `None` for the hosts of the policies.
        "hosts" => hosts: Option<Vec<String>> = None, |node| Some(Some(decode_host_names(node)));
        /// How the authority may validate a host.
        "challenge" => challenge: ChallengeChoice = ChallengeChoice::Any, |node| node.variant("a value of \"challenge\"");
        /// The name servers that look hosts up; the system's when empty.
        "resolvers" => resolvers: Vec<SocketAddr> = Vec::new(), |node| Some(decode_resolvers(node));
    }
}

/// How the authority may validate a host.
#[derive(Clone, Copy, Debug, PartialEq, EnumString, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum ChallengeChoice {
    /// By HTTP where a listener is in clear text; otherwise, and after a failure, by TLS.
    Any,
    /// The authority requests a file on port 80 (RFC 8555 section 8.3).
    Http,
    /// The authority makes a TLS handshake on port 443 (RFC 8737).
    TlsAlpn,
}

/// `yes`, or `{ email: a@shop.example, directory: URL, hosts: [shop.example], challenge: http,
/// resolvers: [9.9.9.9] }` with defaults for missing fields. `None` for `no`.
pub fn decode_acme(node: NodeReader<'_>) -> Option<AcmeSettings> {
    if !node.is_map() {
        return node.boolean()?.then(AcmeSettings::default);
    }
    node.decode_map(
        "a map: email, directory, hosts, challenge, resolvers",
        AcmeSettings::decode,
    )
}

/// An e-mail address with one `@`, and only ASCII characters that a `mailto` URL can have.
fn decode_email(node: NodeReader<'_>) -> Option<String> {
    node.parse_with(
        "an e-mail address",
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
            "is not an e-mail address",
            "write \"admin@shop.example\", or omit \"email\"",
        ),
    )
}

/// The URL of an authority's directory: https, a host, and ASCII characters.
fn decode_directory_url(node: NodeReader<'_>) -> Option<String> {
    node.parse_with(
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
            "is not the directory URL of a certificate authority",
            "write a URL with https, like https://acme-v02.api.letsencrypt.org/directory",
        ),
    )
}

/// A list of distinct host names, in lower case, without wildcards and addresses.
fn decode_host_names(node: NodeReader<'_>) -> Vec<String> {
    decode_distinct(
        node,
        ["a list of host names", "duplicate-host"],
        |text| {
            let host = normalize_host(text)?;
            host.parse::<IpAddr>().is_err().then_some(host)
        },
        (
            "bad-host",
            "is not the full name of a host",
            "write \"shop.example\", without scheme, port and \"*\". Get a certificate for \
             \"*.shop.example\" with another program, and name its files in \"certificates\"",
        ),
    )
}
