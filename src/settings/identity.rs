//! [`IdentitySettings`]: the section `identity` of `crawlgate.yaml`. It says how crawlgate may
//! verify that a client is the crawler that it claims to be: by published lists of networks, by DNS
//! or by signatures.

use super::section::section;
use crate::yaml::{MapFields, NodeReader, NodeValue};
use ListSource::{Directory, Mirror, Off, Published};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

section! {
    /// How the identity of crawlers may be proven.
    #[derive(Clone, Debug, PartialEq)]
    IdentitySettings {
        /// Whether crawlgate may send requests to servers and DNS.
        "outgoing" => outgoing: bool = false, NodeReader::boolean;
        /// The source of published lists of networks.
        "lists" => lists: ListSource = Published, decode_lists;
        /// The name servers; the system's when empty.
        "resolvers" => resolvers: Vec<SocketAddr> = Vec::new(), |node| Some(decode_resolvers(node));
        /// Whether signatures of requests are verified.
        "signatures" => signatures: bool = true, NodeReader::boolean;
    }
}

/// The source of published lists of networks.
#[derive(Clone, Debug, PartialEq)]
pub enum ListSource {
    /// No lists are used.
    Off,
    /// The servers of the operators, if outgoing requests are allowed.
    Published,
    /// A server with copies: `URL/openai.com/gptbot.json`.
    Mirror(String),
    /// The files of a directory.
    Directory(PathBuf),
}

/// The text is not a source of lists.
#[derive(Debug, thiserror::Error)]
#[error("\"{0}\" is neither a directory nor a URL with http or https")]
pub struct ListSourceError(String);

impl FromStr for ListSource {
    type Err = ListSourceError;

    /// `yes`, `no`, a directory, or the URL of a mirror.
    fn from_str(text: &str) -> Result<ListSource, ListSourceError> {
        match text.to_ascii_lowercase().as_str() {
            "yes" | "true" | "on" => return Ok(Published),
            "no" | "false" | "off" => return Ok(Off),
            _ => {}
        }
        match text.split_once("://") {
            Some(("http" | "https", rest)) if !rest.is_empty() => {
                Ok(Mirror(text.trim_end_matches('/').to_owned()))
            }
            None if !text.is_empty() && !text.contains('\0') => Ok(Directory(PathBuf::from(text))),
            _ => Err(ListSourceError(text.to_owned())),
        }
    }
}

impl IdentitySettings {
    /// Whether published lists can prove crawlers: outgoing requests are allowed, or a directory has
    /// the lists.
    pub fn can_prove(&self) -> bool {
        self.outgoing || matches!(self.lists, Directory(_))
    }
}

/// `identity: { outgoing: yes, lists: yes, resolvers: [system] }`. Reports a mirror without
/// `outgoing`, which would never be used.
pub fn decode_identity(fields: &mut MapFields<'_>) -> IdentitySettings {
    let settings = IdentitySettings::decode(fields);
    if let (Some(node), Mirror(_), false) =
        (fields.field("lists"), &settings.lists, settings.outgoing)
    {
        let message =
            "\"lists\" names a server, but without \"outgoing: yes\" crawlgate never asks it";
        let help = "add \"outgoing: yes\", or name a directory";
        node.error_with_help("mirror-without-outgoing", message, help);
    }
    settings
}

/// `yes`, `no`, a directory, or the URL of a mirror.
fn decode_lists(node: NodeReader<'_>) -> Option<ListSource> {
    match node
        .text("yes, no, a directory, or a URL")?
        .parse::<ListSource>()
    {
        Ok(Directory(path)) => Some(Directory(node.decoder.directory.join(path))),
        Ok(lists) => Some(lists),
        Err(error) => {
            node.error("bad-path", error.to_string());
            None
        }
    }
}

/// Addresses of name servers with the default port 53, or `system` alone, which gives an empty list.
/// Reports and leaves out mistakes.
pub fn decode_resolvers(node: NodeReader<'_>) -> Vec<SocketAddr> {
    let wanted = "a list of name servers, like 9.9.9.9, or \"system\"";
    let items: Vec<NodeReader<'_>> = node.one_or_many(wanted).collect();
    if let [only] = items.as_slice()
        && matches!(&only.value, NodeValue::Scalar { text, .. } if text == "system")
    {
        return Vec::new();
    }
    let addresses = items.into_iter().filter_map(|item| {
        item.parse_with(
            wanted,
            |text| {
                text.parse()
                    .or_else(|_| text.parse().map(|address| SocketAddr::new(address, 53)))
                    .ok()
            },
            (
                "bad-address",
                "is not the address of a name server",
                "write addresses, like 9.9.9.9 or 127.0.0.1:5353, or only \"system\"",
            ),
        )
    });
    addresses.collect()
}
