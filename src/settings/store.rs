//! [`StoreSettings`]: the section `store` of `crawlgate.yaml`. It names the Valkey or Redis server
//! that several instances of crawlgate share. There the instances tell each other which robots.txt
//! each crawler was served.

use super::address::{normalize_host, parse_host_port, url_host};
use super::values::decode_path;
use crate::yaml::NodeReader;
use std::fmt;
use std::path::PathBuf;

const DEFAULT_PREFIX: &str = "crawlgate:";
const DEFAULT_PORT: u16 = 6379;
const MAX_PREFIX: usize = 64;

/// The store that several instances share.
#[derive(Clone, Debug, PartialEq)]
pub struct StoreSettings {
    /// The URL.
    pub url: StoreUrl,
    /// A file with the password, if the URL has none.
    pub password_file: Option<PathBuf>,
    /// A file with the trusted authorities for TLS; the system's roots when absent.
    pub ca: Option<PathBuf>,
    /// The prefix of every key.
    pub prefix: String,
}

/// A parsed URL of Redis.
#[derive(Clone, Debug, PartialEq)]
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

/// A text that must not appear in logs and messages: its `Debug` hides it.
#[derive(Clone, PartialEq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret")
    }
}

/// The URL without user and password.
impl fmt::Display for StoreUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "rediss" } else { "redis" };
        let host = url_host(&self.host);
        write!(
            formatter,
            "{scheme}://{host}:{}/{}",
            self.port, self.database
        )
    }
}

const BAD_SCHEME: &str = "it must begin with \"redis://\", or with \"rediss://\" for TLS";
const BAD_HOST: &str = "its host or port is not valid";
const BAD_CREDENTIALS: &str = "its user or password is not valid; write characters with a meaning \
                               in URLs as %40 for @, %3A for :, %2F for /";
const BAD_DATABASE: &str =
    "only the number of a database may follow the port, as in \"redis://10.0.0.5:6379/0\"";

/// `redis://10.0.0.5`, or `{ url: rediss://user@10.0.0.5:6379/0, password_file: FILE, ca: FILE,
/// prefix: "crawlgate:" }`. Two passwords, a user without one, and `ca` without TLS are mistakes.
pub fn decode_store(node: NodeReader<'_>) -> Option<StoreSettings> {
    if !node.is_map() {
        return Some(StoreSettings {
            url: decode_url(node)?,
            password_file: None,
            ca: None,
            prefix: DEFAULT_PREFIX.into(),
        });
    }
    let store = node.decode_map("a map: url, password_file, ca, prefix", |fields| {
        let url = fields.required_field(
            "url",
            "\"store\" needs \"url\": the address of Valkey or Redis",
            "write \"url: 'redis://10.0.0.5:6379/0'\"",
        );
        let url = url.and_then(decode_url);
        Some(StoreSettings {
            password_file: fields.get("password_file", decode_path),
            ca: fields.get("ca", decode_path),
            prefix: fields
                .get("prefix", decode_prefix)
                .unwrap_or_else(|| DEFAULT_PREFIX.into()),
            url: url?,
        })
    })??;
    let url = &store.url;
    let has_file = store.password_file.is_some();
    if url.password.is_some() && has_file {
        node.error_with_help(
            "bad-value",
            "\"store\" has two passwords: one in \"url\", one in \"password_file\"",
            "remove one of them",
        );
    }
    if url.user.is_some() && url.password.is_none() && !has_file {
        node.error_with_help(
            "missing-field",
            "\"store\" has a user but no password",
            "name a file with the password in \"password_file\"",
        );
    }
    if store.ca.is_some() && !url.tls {
        node.error_with_help(
            "bad-value",
            "\"ca\" is for TLS, but the URL begins with \"redis://\"",
            "write \"rediss://\", or omit \"ca\"",
        );
    }
    Some(store)
}

/// The prefix of every key: 1 to 64 ASCII characters that have no meaning in patterns of keys.
fn decode_prefix(node: NodeReader<'_>) -> Option<String> {
    node.parse_with(
        "a beginning for all keys",
        |text| {
            // A cluster hashes only the part of a key in braces.
            let is_prefix = (1..=MAX_PREFIX).contains(&text.len())
                && text
                    .bytes()
                    .all(|byte| byte.is_ascii_graphic() && !b"*?[]\\{}\"'".contains(&byte));
            is_prefix.then(|| text.to_owned())
        },
        (
            "bad-value",
            "cannot be the beginning of crawlgate's keys",
            "write 1 to 64 letters, digits and marks like \"crawlgate:\" or \"shop-edge:\"",
        ),
    )
}

/// The URL of the store. Messages do not show it: it may have a password.
fn decode_url(node: NodeReader<'_>) -> Option<StoreUrl> {
    parse_store_url(node.text("a URL like redis://10.0.0.5:6379/0")?)
        .map_err(|mistake| {
            node.error_with_help(
                "bad-value",
                format!("this is not a URL of Valkey or Redis: {mistake}"),
                "write \"redis://10.0.0.5:6379/0\", or \"rediss://user@store.example:6379/0\" for \
                 TLS",
            );
        })
        .ok()
}

/// Parses a URL with the scheme `redis`, `rediss` (TLS), `valkey` or `valkeys`. The default port is
/// 6379, and the default database 0.
///
/// # Errors
/// The mistake, for a message.
fn parse_store_url(text: &str) -> Result<StoreUrl, &'static str> {
    let (scheme, rest) = text.split_once("://").ok_or(BAD_SCHEME)?;
    let tls = match scheme.to_ascii_lowercase().as_str() {
        "redis" | "valkey" => false,
        "rediss" | "valkeys" => true,
        _ => return Err(BAD_SCHEME),
    };
    let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
    let (credentials, authority) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (host, port) = parse_host_port(authority).ok_or(BAD_HOST)?;
    if port == Some(0) {
        return Err(BAD_HOST);
    }
    let database = match database {
        "" => 0,
        // `parse` accepts a sign.
        digits if !digits.starts_with('+') => digits.parse().map_err(|_| BAD_DATABASE)?,
        _ => return Err(BAD_DATABASE),
    };
    // `user:password`, `:password` or `user`.
    let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
    if credentials.contains(['?', '#', '@']) || password.contains(':') {
        return Err(BAD_CREDENTIALS);
    }
    Ok(StoreUrl {
        tls,
        host: normalize_host(host).ok_or(BAD_HOST)?,
        port: port.unwrap_or(DEFAULT_PORT),
        user: decode_credential(user)?,
        password: decode_credential(password)?.map(Secret),
        database,
    })
}

fn decode_credential(text: &str) -> Result<Option<String>, &'static str> {
    let text = percent_encoding::percent_decode_str(text).decode_utf8();
    let text = text.map_err(|_| BAD_CREDENTIALS)?;
    Ok((!text.is_empty()).then(|| text.into_owned()))
}
