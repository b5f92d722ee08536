//! [`IdentitySettings`]: `identity` of `crawlgate.yaml`, which says how crawlgate may prove that a
//! client is the crawler that it claims to be: by published lists of networks, DNS and signatures.

use crate::yaml::{Fields, Located, Reader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// Where proof of a claimed crawler comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct IdentitySettings {
    /// Whether crawlgate may ask servers and DNS.
    pub outgoing: bool,
    /// Where published lists of networks come from.
    pub lists: ListSettings,
    /// The name servers to ask; those of the system where it is empty.
    pub resolvers: Vec<SocketAddr>,
    /// Whether signatures of requests are verified.
    pub signatures: bool,
}

impl Default for IdentitySettings {
    fn default() -> IdentitySettings {
        IdentitySettings {
            outgoing: false,
            lists: ListSettings::Published,
            resolvers: Vec::new(),
            signatures: true,
        }
    }
}

/// Where published lists of networks come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListSettings {
    /// No lists are used.
    Off,
    /// From where their operators publish them, if outgoing requests are allowed.
    Published,
    /// From a server that has copies: `URL/openai.com/gptbot.json`.
    Mirror(String),
    /// From the files of a directory.
    Directory(PathBuf),
}

/// A text names no place of lists.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is neither a directory nor a URL with http or https")]
pub struct NoListPlace(String);

impl FromStr for ListSettings {
    type Err = NoListPlace;

    /// `yes`, `no`, a directory, or the URL of a mirror.
    fn from_str(text: &str) -> Result<ListSettings, NoListPlace> {
        match text.to_ascii_lowercase().as_str() {
            "yes" | "true" | "on" => return Ok(ListSettings::Published),
            "no" | "false" | "off" => return Ok(ListSettings::Off),
            _ => {}
        }
        match text.split_once("://") {
            Some(("http" | "https", rest)) if !rest.is_empty() => {
                Ok(ListSettings::Mirror(text.trim_end_matches('/').to_owned()))
            }
            None if !text.is_empty() && !text.contains('\0') => {
                Ok(ListSettings::Directory(PathBuf::from(text)))
            }
            _ => Err(NoListPlace(text.to_owned())),
        }
    }
}

impl IdentitySettings {
    /// Whether crawlers can be proven by what their operators publish: outgoing requests are
    /// allowed, or a directory has the lists.
    pub fn proves(&self) -> bool {
        self.outgoing || matches!(self.lists, ListSettings::Directory(_))
    }
}

/// `identity: { outgoing: yes, lists: yes, resolvers: [system] }`. A mirror without `outgoing` is a
/// mistake: it would never be asked.
pub(super) fn identity(fields: &mut Fields<'_>) -> IdentitySettings {
    let mut settings = IdentitySettings::default();
    fields.set("outgoing", &mut settings.outgoing, Reader::boolean);
    fields.set("lists", &mut settings.lists, lists);
    if let (Some(node), ListSettings::Mirror(_), false) =
        (fields.take("lists"), &settings.lists, settings.outgoing)
    {
        let message = "`lists` names a server, and without `outgoing: yes` it is never asked";
        let help = "write `outgoing: yes` beside it, or name a directory";
        node.error_with_help("mirror-without-outgoing", message, help);
    }
    fields.set("signatures", &mut settings.signatures, Reader::boolean);
    settings.resolvers = fields.get_or_default("resolvers", resolvers);
    settings
}

/// `yes`, `no`, a directory, or the URL of a mirror.
fn lists(node: Reader<'_>) -> Option<ListSettings> {
    let text = node.text("yes, no, a directory, or a URL")?;
    match text.parse::<ListSettings>() {
        Ok(ListSettings::Directory(path)) => {
            Some(ListSettings::Directory(node.decoder.directory.join(path)))
        }
        Ok(lists) => Some(lists),
        Err(error) => {
            node.error("bad-path", error.to_string());
            None
        }
    }
}

/// Name servers: addresses (the port is 53 where none is given), or `system` alone, which gives an
/// empty list. A mistake is reported and left out.
pub(super) fn resolvers(node: Reader<'_>) -> Vec<SocketAddr> {
    let written = node.texts("a list of name servers, like 9.9.9.9, or `system`");
    if matches!(&*written, [name] if name.value == "system") {
        return Vec::new();
    }
    let mut addresses = Vec::new();
    for Located { value: text, span } in written {
        let address = text
            .parse()
            .or_else(|_| text.parse().map(|address| SocketAddr::new(address, 53)));
        match address {
            Ok(address) => addresses.push(address),
            Err(_) => node.decoder.error_with_help(
                "bad-address",
                span,
                format!("`{text}` is not the address of a name server"),
                "write addresses, like 9.9.9.9 or 127.0.0.1:5353, or `system` alone",
            ),
        }
    }
    addresses
}
