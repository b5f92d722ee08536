//! `acme` in the `tls` of a listener: certificates that crawlgate gets by itself. Must not know how an authority is asked.

use super::address::host_pattern;
use super::identity::resolvers;
use crate::yaml::{Decoder, Fields, Node, Value};
use std::net::SocketAddr;

/// The directory of Let's Encrypt.
const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";

/// Certificates that crawlgate gets by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcmeSettings {
    /// Where the authority writes to.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChallengeChoice {
    /// One way, then the other.
    Any,
    /// It asks for a file on port 80 (RFC 8555 section 8.3).
    Http,
    /// It shakes hands on port 443 (RFC 8737).
    TlsAlpn,
}

/// `yes`, or `{ email: a@shop.example, directory: URL, hosts: [shop.example], challenge: http, resolvers: [9.9.9.9] }`.
pub(super) fn acme(node: &Node, decoder: &mut Decoder<'_>) -> Option<AcmeSettings> {
    let mut settings = AcmeSettings::default();
    if !matches!(node.value, Value::Mapping(_)) {
        return decoder.boolean(node)?.then_some(settings);
    }
    let mut fields = decoder.fields(node, "a map: email, directory, hosts, challenge, resolvers")?;
    settings.email = email(&mut fields, decoder);
    if let Some(directory) = directory(&mut fields, decoder) {
        settings.directory = directory;
    }
    settings.hosts = fields.take("hosts").map(|node| hosts(node, decoder));
    let challenges =
        [("any", ChallengeChoice::Any), ("http", ChallengeChoice::Http), ("tls-alpn", ChallengeChoice::TlsAlpn)];
    let challenge = fields.take("challenge");
    if let Some(challenge) = challenge.and_then(|node| decoder.word(node, &challenges, "a challenge")) {
        settings.challenge = challenge;
    }
    settings.resolvers = resolvers(&mut fields, decoder);
    fields.finish(decoder);
    Some(settings)
}

fn email(fields: &mut Fields<'_>, decoder: &mut Decoder<'_>) -> Option<String> {
    let node = fields.take("email")?;
    let text = decoder.text(node, "an address of e-mail")?;
    let is_plain = text.bytes().all(|octet| octet.is_ascii_graphic() && !b"?,<>\"".contains(&octet));
    let has_both = text.split_once('@').is_some_and(|(name, host)| !name.is_empty() && !host.is_empty());
    if is_plain && has_both && text.matches('@').count() == 1 {
        return Some(text.to_owned());
    }
    decoder.error("bad-value", node.span, format!("`{text}` is not an address of e-mail")).help =
        Some("write `admin@shop.example`, or leave `email` out".into());
    None
}

fn directory(fields: &mut Fields<'_>, decoder: &mut Decoder<'_>) -> Option<String> {
    let node = fields.take("directory")?;
    let text = decoder.text(node, "a URL")?;
    let is_url = text.strip_prefix("https://").is_some_and(|rest| {
        !rest.is_empty() && !rest.starts_with('/') && rest.bytes().all(|octet| octet.is_ascii_graphic())
    });
    if is_url {
        return Some(text.to_owned());
    }
    decoder.error("bad-value", node.span, format!("`{text}` is not the URL of an authority's directory")).help =
        Some(format!("write a URL with https, like {LETS_ENCRYPT}"));
    None
}

fn hosts(node: &Node, decoder: &mut Decoder<'_>) -> Vec<String> {
    let mut hosts: Vec<String> = Vec::new();
    for written in decoder.texts(node, "a list of host names") {
        match host_pattern(&written.value) {
            Some(host) if host.starts_with("*.") => {
                let message = format!("`{host}` is a wildcard: `acme` gets certificates for whole names only");
                decoder.error("bad-host", written.span, message).help =
                    Some("get this certificate with another program, and name its files in `certificates`".into());
            }
            Some(host) if host.parse::<std::net::IpAddr>().is_err() => {
                if hosts.contains(&host) {
                    decoder.error("duplicate-host", written.span, format!("`{host}` is listed twice"));
                } else {
                    hosts.push(host);
                }
            }
            _ => {
                decoder.error("bad-host", written.span, format!("`{}` is not a host name", written.value)).help =
                    Some("write `shop.example`, without scheme and port".into());
            }
        }
    }
    hosts
}
