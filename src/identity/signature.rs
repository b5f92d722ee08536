//! [`verify`] verifies the signature of a request ([`Signed`]) by Web Bot Auth, a profile of HTTP Message Signatures (RFC
//! 9421, draft-ietf-webbotauth). Only Ed25519 and the components that such signatures cover are known.

use super::keys::PublicKey;
use crate::heads::SignatureFields;
use crate::time::Timestamp;
use ring::signature::{ED25519, UnparsedPublicKey};
use sfv::{BareItem, Dictionary, InnerList, Item, ListEntry, Parser, SerializeValue};
use std::time::Duration;

/// The parameter `tag` of these signatures.
const TAG: &str = "web-bot-auth";
/// The fields together. Their readers take time that grows with them.
const MAX_OCTETS: usize = 8 * 1024;
/// The most components that a signature covers.
const MAX_COMPONENTS: usize = 16;
/// Clocks may differ by this much.
const SKEW: Duration = Duration::from_secs(60);
/// A signature counts for at most this long after `created`. The draft recommends no more.
const LONGEST: Duration = Duration::from_secs(86_400);

/// A request and its signature.
#[derive(Clone, Copy, Debug)]
pub struct Signed<'a> {
    /// The Host field or `:authority`.
    pub host: &'a [u8],
    /// The request target in origin form.
    pub target: &'a [u8],
    /// GET, HEAD, ...
    pub method: &'a [u8],
    /// The User-Agent field.
    pub user_agent: &'a [u8],
    /// The fields.
    pub fields: SignatureFields<'a>,
}

/// A good signature, as a third party can check it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GoodSignature {
    /// The text that was signed (RFC 9421 section 2.5).
    pub base: String,
    /// The public key, Ed25519.
    pub key: Vec<u8>,
    /// The signature.
    pub octets: Vec<u8>,
}

/// What a signature proves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignatureSays {
    /// The request was signed by the agent.
    Verified {
        /// When the signature expires.
        expires: Timestamp,
        /// The signature, with what was signed.
        signature: GoodSignature,
    },
    /// It is wrong, for this reason.
    Invalid(&'static str),
    /// It proves nothing, for this reason.
    Nothing(&'static str),
    /// Its key is not among those of the agent. The agent may have a new one.
    UnknownKey,
}

use SignatureSays::{Invalid, Nothing};

/// A signature that was read.
struct ReadSignature<'a> {
    covered: &'a InnerList,
    key: &'a str,
    expires: i64,
    octets: &'a [u8],
}

/// Verifies the signature of a request as one of an agent, given by its origin (`https://chatgpt.com`) and its keys.
pub fn verify(signed: &Signed<'_>, origin: &str, keys: &[PublicKey], now: Timestamp) -> SignatureSays {
    let SignatureFields { input, signature, agent } = signed.fields;
    if input.len() + signature.len() + agent.len() > MAX_OCTETS {
        return Nothing("the signature is too long");
    }
    let (Ok(inputs), Ok(signatures)) =
        (Parser::parse_dictionary(input.as_bytes()), Parser::parse_dictionary(signature.as_bytes()))
    else {
        return Invalid("the signature cannot be read");
    };
    let read = match of_bots(&inputs, &signatures, now) {
        Ok(read) => read,
        Err(says) => return says,
    };
    let base = match base(read.covered, signed, origin) {
        Ok(base) => base,
        Err(says) => return says,
    };
    let is_current = |key: &&PublicKey| {
        key.not_before.is_none_or(|from| from <= now.0 + SKEW.as_secs() as i64)
            && key.expires.is_none_or(|until| now.0 < until)
    };
    let named = |key: &&PublicKey| key.names.iter().any(|name| name == read.key);
    let Some(key) = keys.iter().filter(is_current).find(named) else { return SignatureSays::UnknownKey };
    match UnparsedPublicKey::new(&ED25519, &key.octets).verify(base.as_bytes(), read.octets) {
        Ok(()) => {
            let signature = GoodSignature { base, key: key.octets.clone(), octets: read.octets.to_vec() };
            SignatureSays::Verified { expires: Timestamp(read.expires), signature }
        }
        Err(_) => Invalid("the signature does not fit the request"),
    }
}

/// The signature of Web Bot Auth among those of a request, within its time.
fn of_bots<'a>(
    inputs: &'a Dictionary,
    signatures: &'a Dictionary,
    now: Timestamp,
) -> Result<ReadSignature<'a>, SignatureSays> {
    let tagged = inputs.iter().find_map(|(label, entry)| match entry {
        ListEntry::InnerList(covered) => {
            let tag = covered.params.get("tag").and_then(BareItem::as_str);
            (tag == Some(TAG)).then_some((label, covered))
        }
        ListEntry::Item(_) => None,
    });
    let Some((label, covered)) = tagged else {
        return Err(Nothing("there is no signature with the tag web-bot-auth"));
    };
    let number = |name: &str| covered.params.get(name).and_then(BareItem::as_int);
    let text = |name: &str| covered.params.get(name).and_then(BareItem::as_str);
    let (Some(created), Some(expires), Some(key)) = (number("created"), number("expires"), text("keyid")) else {
        return Err(Invalid("created, expires or keyid is missing"));
    };
    if text("alg").is_some_and(|alg| alg != "ed25519") {
        return Err(Nothing("the algorithm is not Ed25519"));
    }
    let skew = SKEW.as_secs() as i64;
    if created > now.0.saturating_add(skew) {
        return Err(Invalid("the signature is of the future"));
    }
    if expires <= now.0 || expires < created || now.0.saturating_sub(created) > LONGEST.as_secs() as i64 + skew {
        return Err(Invalid("the signature has expired"));
    }
    let octets = match signatures.get(label) {
        Some(ListEntry::Item(Item { bare_item: BareItem::ByteSeq(octets), .. })) => octets,
        _ => return Err(Invalid("there is no signature of this label")),
    };
    Ok(ReadSignature { covered, key, expires, octets })
}

/// The text that was signed (RFC 9421 section 2.5). It has to cover the host and the agent.
fn base(covered: &InnerList, signed: &Signed<'_>, origin: &str) -> Result<String, SignatureSays> {
    let unreadable = Invalid("the signature cannot be read");
    let (mut base, mut names, mut has_host, mut has_agent) = (String::new(), Vec::new(), false, false);
    if covered.items.len() > MAX_COMPONENTS {
        return Err(Nothing("the signature covers too much"));
    }
    for item in &covered.items {
        let (Some(name), Ok(identifier)) = (item.bare_item.as_str(), item.serialize_value()) else {
            return Err(unreadable);
        };
        if names.contains(&identifier) {
            return Err(Invalid("the signature covers a component twice"));
        }
        let value = if name == "signature-agent" {
            let (value, url) = agent(signed.fields.agent, item).ok_or(Invalid("Signature-Agent cannot be read"))?;
            if !is_at(&url, origin) {
                return Err(Nothing("Signature-Agent is not that of the crawler"));
            }
            has_agent = true;
            value
        } else {
            has_host |= matches!(name, "@authority" | "@target-uri");
            let value = if item.params.is_empty() { component(name, signed) } else { None };
            value.ok_or(Nothing("the signature covers a component that crawlgate does not know"))?
        };
        base.push_str(&format!("{identifier}: {value}\n"));
        names.push(identifier);
    }
    if !(has_host && has_agent) {
        return Err(Invalid("the signature does not cover the host and Signature-Agent"));
    }
    let params = vec![ListEntry::InnerList(covered.clone())].serialize_value().map_err(|_| unreadable)?;
    base.push_str(&format!("\"@signature-params\": {params}"));
    Ok(base)
}

/// A derived component (RFC 9421 section 2.2), or a field that is known here. TLS ends at crawlgate or before it, and
/// agents ask for https.
fn component(name: &str, signed: &Signed<'_>) -> Option<String> {
    let text = |octets: &[u8]| String::from_utf8(octets.to_vec()).ok();
    let host = text(signed.host)?.to_ascii_lowercase();
    let authority = [":443", ":80"].iter().find_map(|port| host.strip_suffix(port)).unwrap_or(&host);
    let target = text(signed.target)?;
    let (path, query) = target.split_once('?').map_or((target.as_str(), None), |(path, query)| (path, Some(query)));
    Some(match name {
        "@authority" => authority.to_owned(),
        "@method" => text(signed.method)?,
        "@scheme" => "https".to_owned(),
        "@target-uri" => format!("https://{authority}{target}"),
        "@request-target" => target,
        "@path" => path.to_owned(),
        "@query" => format!("?{}", query.unwrap_or_default()),
        "user-agent" => text(signed.user_agent)?.trim().to_owned(),
        _ => return None,
    })
}

/// The value of Signature-Agent as it is signed, and the URL in it. Three forms are in use: a member of a dictionary
/// (`sig1="https://agent.example"`), a text in quotes, and a bare URL.
fn agent(field: &str, item: &Item) -> Option<(String, String)> {
    let field = field.trim();
    match item.params.get("key") {
        Some(key) if item.params.len() == 1 => match Parser::parse_dictionary(field.as_bytes())
            .ok()?
            .get(key.as_str()?)?
        {
            ListEntry::Item(member) => Some((member.serialize_value().ok()?, member.bare_item.as_str()?.to_owned())),
            ListEntry::InnerList(_) => None,
        },
        Some(_) => None,
        None if item.params.is_empty() => {
            let quoted = Parser::parse_item(field.as_bytes()).ok();
            let quoted = quoted.and_then(|item| item.bare_item.as_str().map(str::to_owned));
            Some((field.to_owned(), quoted.unwrap_or_else(|| field.to_owned())))
        }
        None => None,
    }
}

/// Whether a URL is one of an origin.
fn is_at(url: &str, origin: &str) -> bool {
    let starts = url.get(..origin.len()).is_some_and(|start| start.eq_ignore_ascii_case(origin));
    starts && matches!(url.as_bytes().get(origin.len()), None | Some(b'/'))
}
