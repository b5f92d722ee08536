//! [`ListenSettings`]: a listener, which is an address with the protocols that it speaks.
//! [`listen`] decodes the listeners of the settings.

use super::acme::{AcmeSettings, acme};
use super::values::{DAY, address, list, path, within};
use crate::yaml::{Fields, Reader};
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
    /// Whether requests are led to https, and where.
    pub redirect: Option<RedirectSettings>,
}

/// Where a listener leads its requests to: https.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// The certificates. The first one is for clients that name no host, or one that no certificate
    /// has. There may be none where there is `acme`.
    pub certificates: Vec<CertificateFiles>,
    /// Certificates that crawlgate gets by itself. All listeners that have it say the same.
    pub acme: Option<AcmeSettings>,
    /// Whether TLS 1.2 is spoken, beside 1.3.
    pub allows_tls12: bool,
    /// Strict-Transport-Security; none when absent.
    pub hsts: Option<Hsts>,
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
pub struct Hsts {
    /// How long a browser asks over https only.
    pub max_age: Duration,
    /// Whether the hosts below this one are meant, too.
    pub subdomains: bool,
}

impl Hsts {
    /// The value of the field.
    pub fn value(self) -> String {
        let subdomains = if self.subdomains {
            "; includeSubDomains"
        } else {
            ""
        };
        format!("max-age={}{subdomains}", self.max_age.as_secs())
    }
}

/// An address, a list of them, or maps with `address` and more. An address that is listed twice is
/// a mistake and left out (port 0 may be repeated). All listeners with `acme` must say the same in
/// it.
pub(super) fn listen(node: Reader<'_>) -> Vec<ListenSettings> {
    let mut found: Vec<ListenSettings> = Vec::new();
    for item in list(node, "an address and port, like 0.0.0.0:80") {
        let value = if item.is_map() {
            item.map("a listener", listener).flatten()
        } else {
            address(item).map(ListenSettings::from)
        };
        let Some(value) = value else { continue };
        let address = value.address;
        if address.port() != 0 && found.iter().any(|other| other.address == address) {
            item.error("duplicate-address", format!("`{address}` is listed twice"));
            continue;
        }
        found.push(value);
    }
    let mut said = found
        .iter()
        .filter_map(|listener| listener.tls.as_ref()?.acme.as_ref());
    if let Some(first) = said.next()
        && said.any(|other| other != first)
    {
        node.error_with_help("bad-value",
            "the listeners say different things in `acme`",
            "write the same `acme` at each of them: crawlgate has one account and one set of certificates",
        );
    }
    found
}

/// A map with `address`, `tls`, `proxy_protocol`, `http2` and `redirect`. `redirect` excludes
/// `tls`. `None` without a valid address.
fn listener(fields: &mut Fields<'_>) -> Option<ListenSettings> {
    fields.required("address", "a listener needs an `address`", None);
    let address = fields.get("address", address);
    let tls = fields.get("tls", tls);
    if let Some((key, _)) = fields.take_with_key("redirect")
        && tls.is_some()
    {
        key.error_with_help(
            "bad-value",
            "a listener with `tls` is where `redirect: https` leads to",
            "put `redirect: https` on the listener for port 80",
        );
    }
    Some(ListenSettings {
        tls,
        proxy_protocol: fields
            .get("proxy_protocol", Reader::boolean)
            .unwrap_or_default(),
        speaks_http2: fields.get("http2", Reader::boolean).unwrap_or(true),
        redirect: fields.get("redirect", redirect),
        address: address?,
    })
}

/// `https`, or `{ to: https, port: 8443 }`. `port` is the one that clients see.
fn redirect(node: Reader<'_>) -> Option<RedirectSettings> {
    if !node.is_map() {
        node.one_of(&["https"], "where to lead requests")?;
        return Some(RedirectSettings { port: None });
    }
    node.map("a map: to, port", |fields| {
        fields.required("to", "a redirect needs a `to`", "write `to: https`");
        fields.word("to", &[("https", ())], "where to lead requests");
        let port = fields.integer("port", 1..=65_535, "the port that clients see");
        RedirectSettings {
            port: port.and_then(NonZeroU16::new),
        }
    })
}

/// A map with `certificates`, `acme`, `min_version` and `hsts`. `None`, with an error, if it has
/// neither certificates nor `acme`.
fn tls(node: Reader<'_>) -> Option<TlsSettings> {
    let tls = node.map("a map: certificates, acme, min_version, hsts", |fields| {
        TlsSettings {
            certificates: fields.get_or_default("certificates", |node| {
                list(node, "a list of maps with `cert` and `key`")
                    .into_iter()
                    .filter_map(certificate)
                    .collect()
            }),
            acme: fields.get("acme", acme),
            allows_tls12: fields
                .word(
                    "min_version",
                    &[("1.2", true), ("1.3", false)],
                    "a version of TLS",
                )
                .unwrap_or(true),
            hsts: fields.get("hsts", hsts),
        }
    })?;
    let has_some = !tls.certificates.is_empty() || tls.acme.is_some();
    if !has_some {
        node.error_with_help(
            "missing-field",
            "`tls` needs `certificates` or `acme`",
            "write `certificates: [{ cert: fullchain.pem, key: privkey.pem }]`, or `acme: yes`",
        );
    }
    has_some.then_some(tls)
}

/// `{ cert: FILE, key: FILE }`; both are needed.
fn certificate(node: Reader<'_>) -> Option<CertificateFiles> {
    let [certificate, key] = files(node, "a certificate", path)?;
    Some(CertificateFiles {
        certificate: certificate?,
        key: key?,
    })
}

/// Reads `{ cert: FILE, key: FILE }`, each file by `read`. A missing one is an error that says that
/// `name` needs it, and `None` in the result.
pub(super) fn files<T>(
    node: Reader<'_>,
    name: &str,
    read: fn(Reader<'_>) -> Option<T>,
) -> Option<[Option<T>; 2]> {
    node.map("a map: cert, key", |fields| {
        ["cert", "key"].map(|field| {
            fields.required(
                field,
                &format!("{name} needs `{field}`: a file in PEM"),
                None,
            );
            fields.get(field, read)
        })
    })
}

/// A duration up to two years, or a map with `max_age` and `subdomains`.
fn hsts(node: Reader<'_>) -> Option<Hsts> {
    let max_age = within(Duration::ZERO..=2 * 366 * DAY);
    if !node.is_map() {
        return Some(Hsts {
            max_age: max_age(node)?,
            subdomains: false,
        });
    }
    node.map("a map: max_age, subdomains", |fields| {
        fields.required("max_age", "`hsts` needs `max_age`, like `180d`", None);
        Hsts {
            max_age: fields.get("max_age", max_age).unwrap_or_default(),
            subdomains: fields
                .get("subdomains", Reader::boolean)
                .unwrap_or_default(),
        }
    })
}
