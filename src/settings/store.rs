//! `store` of `crawlgate.yaml`: the Valkey or Redis where several instances meet. Must not know how it is asked.

use super::address::{host_and_port, host_name};
use super::paths::path;
use crate::yaml::{Decoder, Fields, Node, Value};
use percent_encoding::percent_decode_str;
use std::fmt;
use std::path::{Path, PathBuf};

/// What the keys of crawlgate begin with, unless the settings say otherwise.
const PREFIX: &str = "crawlgate:";
const PORT: u16 = 6379;
const LONGEST_PREFIX: usize = 64;

/// Where several instances meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreSettings {
    /// The URL.
    pub url: StoreUrl,
    /// A file with the password, in place of one in the URL.
    pub password_file: Option<PathBuf>,
    /// A file with the authorities that the store's certificate is verified against; the system's roots when absent.
    pub ca: Option<PathBuf>,
    /// What every key begins with.
    pub prefix: String,
}

/// A URL of Redis in its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreUrl {
    /// Whether it speaks TLS.
    pub tls: bool,
    /// A name, or an address (IPv6 without brackets).
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The user; the store's default one when absent.
    pub user: Option<String>,
    /// The password.
    pub password: Option<Secret>,
    /// The number of the database.
    pub database: u16,
}

/// A text that appears in no log and no message.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret")
    }
}

/// The URL without user and password.
impl fmt::Display for StoreUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StoreUrl { host, port, database, .. } = self;
        let scheme = if self.tls { "rediss" } else { "redis" };
        match host.contains(':') {
            true => write!(formatter, "{scheme}://[{host}]:{port}/{database}"),
            false => write!(formatter, "{scheme}://{host}:{port}/{database}"),
        }
    }
}

impl StoreSettings {
    pub(super) fn relative_to(&mut self, directory: &Path) {
        [&mut self.password_file, &mut self.ca].into_iter().flatten().for_each(|path| *path = directory.join(&*path));
    }
}

/// What is wrong with a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum UrlMistake {
    #[error("it begins with `redis://`, or `rediss://` for TLS")]
    Scheme,
    #[error("the host or port cannot be read")]
    Host,
    #[error(
        "the user or password cannot be read; write octets that have a meaning in URLs as %40 for @, %3A for :, %2F for /"
    )]
    Credentials,
    #[error("what follows the port is the number of a database, as in `redis://10.0.0.5:6379/0`")]
    Database,
}

/// `redis://10.0.0.5`, or `{ url: rediss://user@10.0.0.5:6379/0, password_file: FILE, ca: FILE, prefix: "crawlgate:" }`.
pub(super) fn store(node: &Node, decoder: &mut Decoder<'_>) -> Option<StoreSettings> {
    if !matches!(node.value, Value::Mapping(_)) {
        let url = url(node, decoder)?;
        return Some(StoreSettings { url, password_file: None, ca: None, prefix: PREFIX.into() });
    }
    let mut fields = decoder.fields(node, "a map: url, password_file, ca, prefix")?;
    let written = fields.take("url");
    if written.is_none() {
        decoder.error("missing-field", node.span, "`store` needs `url`: where the Valkey or Redis is").help =
            Some("write `url: \"redis://10.0.0.5:6379/0\"`".into());
    }
    let url = written.and_then(|node| url(node, decoder));
    let password_file = file(&mut fields, "password_file", decoder);
    let ca = file(&mut fields, "ca", decoder);
    let prefix = fields.take("prefix").map_or(Some(PREFIX.to_owned()), |node| prefix(node, decoder));
    fields.finish(decoder);
    let (url, place) = (url?, node.span);
    if url.password.is_some() && password_file.is_some() {
        decoder.error("bad-value", place, "`store` has two passwords: one in `url`, one in `password_file`").help =
            Some("leave one of them out".into());
    }
    if url.user.is_some() && url.password.is_none() && password_file.is_none() {
        decoder.error("missing-field", place, "`store` names a user and no password").help =
            Some("name a file with the password in `password_file`".into());
    }
    if ca.is_some() && !url.tls {
        decoder.error("bad-value", place, "`ca` is for TLS, and the URL begins with `redis://`").help =
            Some("write `rediss://`, or leave `ca` out".into());
    }
    Some(StoreSettings { url, password_file, ca, prefix: prefix? })
}

fn file(fields: &mut Fields<'_>, name: &'static str, decoder: &mut Decoder<'_>) -> Option<PathBuf> {
    fields.take(name).and_then(|node| path(node, decoder))
}

fn prefix(node: &Node, decoder: &mut Decoder<'_>) -> Option<String> {
    let text = decoder.text(node, "a text that every key begins with")?;
    // Octets with a meaning in patterns of keys, and braces, which a cluster takes for a part of the key.
    let is_plain = text.bytes().all(|octet| octet.is_ascii_graphic() && !b"*?[]\\{}\"'".contains(&octet));
    if (1..=LONGEST_PREFIX).contains(&text.len()) && is_plain {
        return Some(text.to_owned());
    }
    decoder.error("bad-value", node.span, format!("`{text}` cannot begin the keys of crawlgate")).help =
        Some(format!("write 1 to {LONGEST_PREFIX} letters, digits and marks like `crawlgate:` or `shop-edge:`"));
    None
}

fn url(node: &Node, decoder: &mut Decoder<'_>) -> Option<StoreUrl> {
    let text = decoder.text(node, "a URL like redis://10.0.0.5:6379/0")?;
    // The text is not shown: it may have a password.
    let refuse = |mistake: UrlMistake| {
        decoder.error("bad-value", node.span, format!("this is not the URL of a Valkey or Redis: {mistake}")).help =
            Some("write `redis://10.0.0.5:6379/0`, or `rediss://user@store.example:6379/0` for TLS".into());
    };
    read_url(text).map_err(refuse).ok()
}

fn read_url(text: &str) -> Result<StoreUrl, UrlMistake> {
    let (scheme, rest) = text.split_once("://").ok_or(UrlMistake::Scheme)?;
    let tls = match scheme.to_ascii_lowercase().as_str() {
        "redis" | "valkey" => false,
        "rediss" | "valkeys" => true,
        _ => return Err(UrlMistake::Scheme),
    };
    let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
    let (credentials, authority) = match authority.rsplit_once('@') {
        Some((credentials, authority)) => (Some(credentials), authority),
        None => (None, authority),
    };
    let (host, port) = host_and_port(authority).ok_or(UrlMistake::Host)?;
    let host = host_name(host).ok_or(UrlMistake::Host)?;
    let port = port.unwrap_or(PORT);
    if port == 0 {
        return Err(UrlMistake::Host);
    }
    let database = match database {
        "" => 0,
        digits if digits.bytes().all(|digit| digit.is_ascii_digit()) => {
            digits.parse().map_err(|_| UrlMistake::Database)?
        }
        _ => return Err(UrlMistake::Database),
    };
    let (user, password) = credentials.map_or(Ok((None, None)), read_credentials)?;
    Ok(StoreUrl { tls, host, port, user, password: password.map(Secret), database })
}

/// `user:password`, `:password` or `user`.
fn read_credentials(written: &str) -> Result<(Option<String>, Option<String>), UrlMistake> {
    let read = |text: &str| {
        let text = percent_decode_str(text).decode_utf8().map_err(|_| UrlMistake::Credentials)?;
        Ok((!text.is_empty()).then(|| text.into_owned()))
    };
    let (user, password) = written.split_once(':').unwrap_or((written, ""));
    if written.contains(['?', '#', '@']) || password.contains(':') {
        return Err(UrlMistake::Credentials);
    }
    Ok((read(user)?, read(password)?))
}
