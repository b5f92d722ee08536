//! [`ListenSettings`]: the section `listen` of `crawlgate.yaml`. It has the addresses to serve on,
//! with TLS, HTTP/2, the PROXY protocol and redirects to https.

use super::acme::{AcmeSettings, decode_acme};
use super::values::{DAY, decode_address, decode_path, duration_within};
use crate::yaml::{MapFields, NodeReader};
use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::time::Duration;

/// An address to serve on.
#[derive(Clone, Debug, PartialEq)]
pub struct ListenSettings {
    /// The address.
    pub address: SocketAddr,
    /// TLS; clear text when absent.
    pub tls: Option<TlsSettings>,
    /// Whether each connection begins with a header of the PROXY protocol.
    pub proxy_protocol: bool,
    /// Whether HTTP/2 is spoken beside HTTP/1.
    pub speaks_http2: bool,
    /// Redirects all requests to https.
    pub redirect: Option<RedirectSettings>,
}

/// A redirect of all requests to https.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedirectSettings {
    /// The port that clients see; the one of the first TLS listener when absent.
    pub port: Option<NonZeroU16>,
}

impl From<SocketAddr> for ListenSettings {
    fn from(address: SocketAddr) -> ListenSettings {
        ListenSettings {
            address,
            tls: None,
            proxy_protocol: false,
            speaks_http2: true,
            redirect: None,
        }
    }
}

/// TLS of a listener.
#[derive(Clone, Debug, PartialEq)]
pub struct TlsSettings {
    /// The certificates. Clients without a host, or with an unknown one, get the first. There may be
    /// none if there is `acme`.
    pub certificates: Vec<CertificateFiles>,
    /// Automatic certificates. All listeners that have it have the same settings.
    pub acme: Option<AcmeSettings>,
    /// Whether TLS 1.2 is spoken, beside 1.3.
    pub allows_tls12: bool,
    /// Strict-Transport-Security; none when absent.
    pub hsts: Option<HstsSettings>,
}

/// A certificate and its key, in PEM.
#[derive(Clone, Debug, PartialEq)]
pub struct CertificateFiles {
    /// The certificate, followed by those of the authorities up to a known one.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// Strict-Transport-Security (RFC 6797).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HstsSettings {
    /// How long a browser uses https only.
    pub max_age: Duration,
    /// Whether this includes subdomains.
    pub subdomains: bool,
}

impl HstsSettings {
    /// The value of the field.
    pub fn header_value(self) -> String {
        let subdomains = if self.subdomains {
            "; includeSubDomains"
        } else {
            ""
        };
        format!("max-age={}{subdomains}", self.max_age.as_secs())
    }
}

/// An address, a list of addresses, or maps with `address` and more. Reports and leaves out an
/// address that is listed twice; port 0 may be repeated. All `acme` must be the same.
pub fn decode_listeners(node: NodeReader<'_>) -> Vec<ListenSettings> {
    let mut found: Vec<ListenSettings> = Vec::new();
    for item in node.one_or_many("an address and port, like 0.0.0.0:80") {
        let value = if item.is_map() {
            item.decode_map("a listener", decode_listener).flatten()
        } else {
            decode_address(item).map(ListenSettings::from)
        };
        let Some(value) = value else { continue };
        let address = value.address;
        if address.port() != 0 && found.iter().any(|other| other.address == address) {
            item.error(
                "duplicate-address",
                format!("\"{address}\" is listed twice"),
            );
            continue;
        }
        found.push(value);
    }
    let mut acme_settings = found
        .iter()
        .filter_map(|listener| listener.tls.as_ref()?.acme.as_ref());
    if let Some(first) = acme_settings.next()
        && acme_settings.any(|other| other != first)
    {
        node.error_with_help(
            "bad-value",
            "the listeners have different values of \"acme\"",
            "write the same \"acme\" for all of them: crawlgate has one account and one set of \
             certificates",
        );
    }
    found
}

/// A map with `address`, `tls`, `proxy_protocol`, `http2` and `redirect`. `redirect` excludes
/// `tls`. `None` without a valid address.
fn decode_listener(fields: &mut MapFields<'_>) -> Option<ListenSettings> {
    let address = fields
        .required_field("address", "a listener needs an \"address\"", None)
        .and_then(decode_address);
    let tls = fields.get("tls", decode_tls);
    if let Some((key, _)) = fields.field_with_key("redirect")
        && tls.is_some()
    {
        key.error_with_help(
            "bad-value",
            "a listener with \"tls\" cannot have \"redirect: https\"",
            "put \"redirect: https\" on the listener for port 80",
        );
    }
    Some(ListenSettings {
        tls,
        proxy_protocol: fields
            .get("proxy_protocol", NodeReader::boolean)
            .unwrap_or_default(),
        speaks_http2: fields.get("http2", NodeReader::boolean).unwrap_or(true),
        redirect: fields.get("redirect", decode_redirect),
        address: address?,
    })
}

/// `https`, or `{ to: https, port: 8443 }`. `port` is the one that clients see.
fn decode_redirect(node: NodeReader<'_>) -> Option<RedirectSettings> {
    if !node.is_map() {
        node.word_position(&["https"], "a redirect")?;
        return Some(RedirectSettings { port: None });
    }
    node.decode_map("a map: to, port", |fields| {
        fields.required_field("to", "a redirect needs a \"to\"", "write \"to: https\"");
        fields.word("to", &[("https", ())], "a redirect");
        let port = fields.integer("port", 1..=65_535, "the port that visitors see");
        RedirectSettings {
            port: port.and_then(NonZeroU16::new),
        }
    })
}

/// A map with `certificates`, `acme`, `min_version` and `hsts`. `None`, with an error, if it has
/// neither certificates nor `acme`.
fn decode_tls(node: NodeReader<'_>) -> Option<TlsSettings> {
    let tls = node.decode_map("a map: certificates, acme, min_version, hsts", |fields| {
        TlsSettings {
            certificates: fields.get_or_default("certificates", |node| {
                node.one_or_many("a list of maps with \"cert\" and \"key\"")
                    .filter_map(decode_certificate)
                    .collect()
            }),
            acme: fields.get("acme", decode_acme),
            allows_tls12: fields
                .word(
                    "min_version",
                    &[("1.2", true), ("1.3", false)],
                    "a version of TLS",
                )
                .unwrap_or(true),
            hsts: fields.get("hsts", decode_hsts),
        }
    })?;
    let has_some = !tls.certificates.is_empty() || tls.acme.is_some();
    if !has_some {
        node.error_with_help(
            "missing-field",
            "\"tls\" needs \"certificates\" or \"acme\"",
            "write \"certificates: [{ cert: fullchain.pem, key: privkey.pem }]\", or \"acme: yes\"",
        );
    }
    has_some.then_some(tls)
}

/// `{ cert: FILE, key: FILE }`; both are needed.
fn decode_certificate(node: NodeReader<'_>) -> Option<CertificateFiles> {
    let [certificate, key] = decode_cert_and_key(node, "a certificate", decode_path)?;
    Some(CertificateFiles {
        certificate: certificate?,
        key: key?,
    })
}

/// `{ cert: FILE, key: FILE }`, each file decoded by `decode`. Reports that `name` needs a missing
/// file.
pub fn decode_cert_and_key<T>(
    node: NodeReader<'_>,
    name: &str,
    decode: fn(NodeReader<'_>) -> Option<T>,
) -> Option<[Option<T>; 2]> {
    node.decode_map("a map: cert, key", |fields| {
        ["cert", "key"].map(|field| {
            let message = format!("{name} needs \"{field}\": a PEM file");
            fields
                .required_field(field, &message, None)
                .and_then(decode)
        })
    })
}

/// A duration up to two years, or a map with `max_age` and `subdomains`.
fn decode_hsts(node: NodeReader<'_>) -> Option<HstsSettings> {
    let max_age = duration_within(Duration::ZERO..=2 * 366 * DAY);
    if !node.is_map() {
        return Some(HstsSettings {
            max_age: max_age(node)?,
            subdomains: false,
        });
    }
    node.decode_map("a map: max_age, subdomains", |fields| HstsSettings {
        max_age: fields
            .required_field("max_age", "\"hsts\" needs \"max_age\", like \"180d\"", None)
            .and_then(max_age)
            .unwrap_or_default(),
        subdomains: fields
            .get("subdomains", NodeReader::boolean)
            .unwrap_or_default(),
    })
}
