//! `listen` decoded.

use super::super::acme::acme;
use super::super::{CertificateFiles, Hsts, ListenSettings, RedirectSettings, TlsSettings};
use super::{HOUR, address, duration, later, list, path};
use crate::yaml::{Decoder, Node, Value};
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::time::Duration;

const YEAR: Duration = Duration::from_secs(366 * 86_400);

/// An address, a list of them, or maps with `address` and more.
pub(super) fn listen(node: &Node, decoder: &mut Decoder<'_>) -> Vec<ListenSettings> {
    let mut found: Vec<ListenSettings> = Vec::new();
    for item in list(node, decoder, "an address and port, like 0.0.0.0:80") {
        let value = match &item.value {
            Value::Mapping(_) => listener(item, decoder),
            _ => address(item, decoder).map(ListenSettings::from),
        };
        let Some(value) = value else { continue };
        let (address, port) = (value.address, value.address.port());
        if port != 0 && found.iter().any(|other| other.address == address) {
            decoder.error("duplicate-address", item.span, format!("`{address}` is listed twice"));
            continue;
        }
        found.push(value);
    }
    let mut said = found.iter().filter_map(|listener| listener.tls.as_ref()?.acme.as_ref());
    if let Some(first) = said.next()
        && said.any(|other| other != first)
    {
        decoder.error("bad-value", node.span, "the listeners say different things in `acme`").help =
            Some("write the same `acme` at each of them: crawlgate has one account and one set of certificates".into());
    }
    found
}

fn listener(node: &Node, decoder: &mut Decoder<'_>) -> Option<ListenSettings> {
    let mut fields = decoder.fields(node, "a listener")?;
    let address = match fields.take("address") {
        Some(node) => address(node, decoder),
        None => {
            decoder.error("missing-field", node.span, "a listener needs an `address`");
            None
        }
    };
    let tls = fields.take("tls").and_then(|node| tls(node, decoder));
    let proxy_protocol = fields.take("proxy_protocol").and_then(|node| decoder.boolean(node)).unwrap_or(false);
    let said = fields.take_with_key("redirect");
    fields.finish(decoder);
    if let (Some((key, _)), true) = (said, tls.is_some()) {
        decoder.error("bad-value", key.span, "a listener with `tls` is where `redirect: https` leads to").help =
            Some("put `redirect: https` on the listener for port 80".into());
    }
    let redirect = said.and_then(|(_, node)| redirect(node, decoder));
    Some(ListenSettings { address: address?, tls, proxy_protocol, redirect })
}

/// `https`, or `{ to: https, port: 8443 }`.
fn redirect(node: &Node, decoder: &mut Decoder<'_>) -> Option<RedirectSettings> {
    const TO: &[(&str, ())] = &[("https", ())];
    if !matches!(node.value, Value::Mapping(_)) {
        decoder.word(node, TO, "where to lead requests")?;
        return Some(RedirectSettings { port: None });
    }
    let mut fields = decoder.fields(node, "a map: to, port")?;
    let to = match fields.take("to") {
        Some(node) => decoder.word(node, TO, "where to lead requests"),
        None => {
            decoder.error("missing-field", node.span, "a redirect needs a `to`").help =
                Some("write `to: https`".into());
            None
        }
    };
    let port = fields.take("port");
    let port = port.and_then(|node| decoder.integer(node, 1..=65_535, "the port that clients see"));
    fields.finish(decoder);
    to?;
    Some(RedirectSettings { port: port.and_then(|port| NonZeroU16::new(u16::try_from(port).ok()?)) })
}

fn tls(node: &Node, decoder: &mut Decoder<'_>) -> Option<TlsSettings> {
    let mut fields = decoder.fields(node, "a map: certificates, acme, min_version, hsts")?;
    later(&mut fields, &["client"], decoder);
    let certificates: Vec<CertificateFiles> = match fields.take("certificates") {
        Some(node) => list(node, decoder, "a list of maps with `cert` and `key`")
            .iter()
            .filter_map(|item| certificate(item, decoder))
            .collect(),
        None => Vec::new(),
    };
    let acme = fields.take("acme").and_then(|node| acme(node, decoder));
    let versions = [("1.2", true), ("1.3", false)];
    let allows_tls12 = fields.take("min_version").and_then(|node| decoder.word(node, &versions, "a version of TLS"));
    let hsts = fields.take("hsts").and_then(|node| hsts(node, decoder));
    fields.finish(decoder);
    if certificates.is_empty() && acme.is_none() {
        decoder.error("missing-field", node.span, "`tls` needs `certificates` or `acme`").help =
            Some("write `certificates: [{ cert: fullchain.pem, key: privkey.pem }]`, or `acme: yes`".into());
        return None;
    }
    Some(TlsSettings { certificates, acme, allows_tls12: allows_tls12.unwrap_or(true), hsts })
}

fn certificate(node: &Node, decoder: &mut Decoder<'_>) -> Option<CertificateFiles> {
    let mut fields = decoder.fields(node, "a map: cert, key")?;
    let mut file = |name, decoder: &mut Decoder<'_>| -> Option<PathBuf> {
        match fields.take(name) {
            Some(node) => path(node, decoder),
            None => {
                decoder.error("missing-field", node.span, format!("a certificate needs `{name}`: a file in PEM"));
                None
            }
        }
    };
    let (certificate, key) = (file("cert", decoder), file("key", decoder));
    fields.finish(decoder);
    Some(CertificateFiles { certificate: certificate?, key: key? })
}

/// A duration, or a map with more to say.
fn hsts(node: &Node, decoder: &mut Decoder<'_>) -> Option<Hsts> {
    let mut hsts = Hsts { max_age: Duration::ZERO, subdomains: false };
    if !matches!(node.value, Value::Mapping(_)) {
        duration(node, Duration::ZERO..=YEAR * 2, &mut hsts.max_age, decoder);
        return Some(hsts);
    }
    let mut fields = decoder.fields(node, "a map: max_age, subdomains")?;
    hsts.max_age = HOUR;
    match fields.take("max_age") {
        Some(node) => duration(node, Duration::ZERO..=YEAR * 2, &mut hsts.max_age, decoder),
        None => {
            decoder.error("missing-field", node.span, "`hsts` needs `max_age`, like `180d`");
        }
    }
    hsts.subdomains = fields.take("subdomains").and_then(|node| decoder.boolean(node)).unwrap_or(false);
    fields.finish(decoder);
    Some(hsts)
}
