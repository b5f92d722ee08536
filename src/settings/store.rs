//! [`StoreSettings`]: `store` of `crawlgate.yaml`, the Valkey or Redis server through which several
//! instances of crawlgate tell each other what they served to which crawler.

use super::address::{host_and_port, host_name};
use super::values::path;
use crate::yaml::Reader;
use std::fmt;
use std::path::PathBuf;

/// What the keys of crawlgate begin with, unless the settings say otherwise.
const PREFIX: &str = "crawlgate:";
const PORT: u16 = 6379;
const MAX_PREFIX: usize = 64;

/// Where several instances meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreSettings {
    /// The URL.
    pub url: StoreUrl,
    /// A file with the password, in place of one in the URL.
    pub password_file: Option<PathBuf>,
    /// A file with the authorities that the store's certificate is verified against; the system's
    /// roots when absent.
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
        formatter.write_str(if self.tls { "rediss://" } else { "redis://" })?;
        if self.host.contains(':') {
            write!(formatter, "[{}]", self.host)?;
        } else {
            formatter.write_str(&self.host)?;
        }
        write!(formatter, ":{}/{}", self.port, self.database)
    }
}

/// What can be wrong with a URL.
const SCHEME: &str = "it begins with `redis://`, or `rediss://` for TLS";
const HOST: &str = "the host or port cannot be read";
const CREDENTIALS: &str = "the user or password cannot be read; write octets that have a meaning in URLs as %40 for @, \
                           %3A for :, %2F for /";
const DATABASE: &str =
    "what follows the port is the number of a database, as in `redis://10.0.0.5:6379/0`";

/// `redis://10.0.0.5`, or `{ url: rediss://user@10.0.0.5:6379/0, password_file: FILE, ca: FILE,
/// prefix: "crawlgate:" }`. Two passwords, a user without one, and `ca` without TLS are mistakes.
pub(super) fn store(node: Reader<'_>) -> Option<StoreSettings> {
    if !node.is_map() {
        return Some(StoreSettings {
            url: url(node)?,
            password_file: None,
            ca: None,
            prefix: PREFIX.into(),
        });
    }
    let store = node.map("a map: url, password_file, ca, prefix", |fields| {
        fields.required(
            "url",
            "`store` needs `url`: where the Valkey or Redis is",
            "write `url: \"redis://10.0.0.5:6379/0\"`",
        );
        let url = fields.get("url", url);
        Some(StoreSettings {
            password_file: fields.get("password_file", path),
            ca: fields.get("ca", path),
            prefix: fields
                .get("prefix", prefix)
                .unwrap_or_else(|| PREFIX.into()),
            url: url?,
        })
    })??;
    let url = &store.url;
    let has_file = store.password_file.is_some();
    if url.password.is_some() && has_file {
        node.error_with_help(
            "bad-value",
            "`store` has two passwords: one in `url`, one in `password_file`",
            "leave one of them out",
        );
    }
    if url.user.is_some() && url.password.is_none() && !has_file {
        node.error_with_help(
            "missing-field",
            "`store` names a user and no password",
            "name a file with the password in `password_file`",
        );
    }
    if store.ca.is_some() && !url.tls {
        node.error_with_help(
            "bad-value",
            "`ca` is for TLS, and the URL begins with `redis://`",
            "write `rediss://`, or leave `ca` out",
        );
    }
    Some(store)
}

/// What every key begins with: 1 to 64 ASCII characters, without those that have a meaning in
/// patterns of keys.
fn prefix(node: Reader<'_>) -> Option<String> {
    node.parsed(
        "a text that every key begins with",
        |text| {
            // Bytes with a meaning in patterns of keys, and braces, which a cluster takes for a
            // part of the key, are refused.
            let is_prefix = (1..=MAX_PREFIX).contains(&text.len())
                && text
                    .bytes()
                    .all(|byte| byte.is_ascii_graphic() && !b"*?[]\\{}\"'".contains(&byte));
            is_prefix.then(|| text.to_owned())
        },
        (
            "bad-value",
            "cannot begin the keys of crawlgate",
            "write 1 to 64 letters, digits and marks like `crawlgate:` or `shop-edge:`",
        ),
    )
}

/// The URL of the store. A mistake is reported without the text, which may have a password.
fn url(node: Reader<'_>) -> Option<StoreUrl> {
    let text = node.text("a URL like redis://10.0.0.5:6379/0")?;
    read_url(text)
        .map_err(|mistake| {
            // The text is not shown: it may have a password.
            node.error_with_help(
                "bad-value",
                format!("this is not the URL of a Valkey or Redis: {mistake}"),
                "write `redis://10.0.0.5:6379/0`, or `rediss://user@store.example:6379/0` for TLS",
            );
        })
        .ok()
}

/// Reads `redis`, `rediss` (TLS), `valkey` or `valkeys`, user and password, host, port (6379
/// without one) and the number of the database (0 without one).
///
/// # Errors
/// What is wrong, for a message.
fn read_url(text: &str) -> Result<StoreUrl, &'static str> {
    let (scheme, rest) = text.split_once("://").ok_or(SCHEME)?;
    let tls = match scheme.to_ascii_lowercase().as_str() {
        "redis" | "valkey" => false,
        "rediss" | "valkeys" => true,
        _ => return Err(SCHEME),
    };
    let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
    let (credentials, authority) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (host, port) = host_and_port(authority).ok_or(HOST)?;
    if port == Some(0) {
        return Err(HOST);
    }
    let database = match database {
        "" => 0,
        // A sign would be read as a part of the number.
        digits if !digits.starts_with('+') => digits.parse().map_err(|_| DATABASE)?,
        _ => return Err(DATABASE),
    };
    // `user:password`, `:password` or `user`.
    let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
    if credentials.contains(['?', '#', '@']) || password.contains(':') {
        return Err(CREDENTIALS);
    }
    Ok(StoreUrl {
        tls,
        host: host_name(host).ok_or(HOST)?,
        port: port.unwrap_or(PORT),
        user: read_credential(user)?,
        password: read_credential(password)?.map(Secret),
        database,
    })
}

fn read_credential(text: &str) -> Result<Option<String>, &'static str> {
    let text = percent_encoding::percent_decode_str(text).decode_utf8();
    let text = text.map_err(|_| CREDENTIALS)?;
    Ok((!text.is_empty()).then(|| text.into_owned()))
}
