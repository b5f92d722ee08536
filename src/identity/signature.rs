//! [`verify`] verifies the signature of a request ([`Signed`]) by Web Bot Auth, a profile of HTTP
//! Message Signatures (RFC 9421, draft-ietf-webbotauth). Only Ed25519 and the components that such
//! signatures cover are known. The whole file is of the feature `signatures`.

use super::keys::PublicKey;
use super::signed::{SignatureProblem, Signed, VerifiedSignature};
use super::{Claimed, Means, Proofs, ShownSignature, ToDo};
use crate::heads::SignatureFields;
use crate::record::GoodSignature;
use crate::time::Timestamp;
use ring::signature::{ED25519, UnparsedPublicKey};
use sfv::{BareItem, Dictionary, InnerList, Item, ListEntry, Parser, SerializeValue};
use std::time::Duration;

/// The parameter `tag` of these signatures.
const TAG: &str = "web-bot-auth";
/// The field that names agents.
const AGENT: &str = "signature-agent";
/// The most signatures of a request whose mathematics is done.
const MAX_VERIFIED: usize = 2;
/// The fields together. Their readers take time that grows with them.
const MAX_OCTETS: usize = 8 * 1024;
/// The most components that a signature covers.
const MAX_COMPONENTS: usize = 16;
/// Clocks may differ by this much.
const SKEW: Duration = Duration::from_secs(60);
/// A signature counts for at most this long after `created`. The draft recommends no more.
const LONGEST: Duration = Duration::from_secs(86_400);

impl SignatureProblem {
    /// Whether the signature is not wrong: it is another agent's, or of a kind that is not verified
    /// here.
    fn is_of_others(self) -> bool {
        use SignatureProblem::*;
        matches!(
            self,
            TooLong
                | NoTag
                | OtherAgent
                | OtherAlgorithm
                | TooMany
                | CoversTooMuch
                | UnknownComponent
        )
    }
}

impl Proofs {
    /// Checks the signature of a request by the keys of the crawler's agent. A good one that no
    /// other address has shown is put into `to_do`; an unknown key lets `to_do` ask for the
    /// directory.
    ///
    /// # Errors
    /// Why the signature proves nothing; `None` if there is no signature, or no way to check one.
    pub(super) fn check_signature(
        &self,
        claimed: &Claimed<'_>,
        means: &Means,
        now: Timestamp,
        to_do: &mut ToDo,
    ) -> Result<(), Option<SignatureProblem>> {
        let signed = claimed.signed.as_ref().filter(|_| self.uses.signatures);
        let Some(signed) = signed else {
            return Err(None);
        };
        let Some(signer) = &means.signer else {
            return Err(None);
        };
        let Some(address) = claimed.address else {
            return Err(None);
        };
        let known = self.lists.get(signer.directory);
        let keys = known
            .as_ref()
            .map_or(&[][..], |known| known.keys.as_slice());
        let verified = verify(signed, &signer.origin, keys, now);
        if verified == Err(SignatureProblem::UnknownKey) {
            to_do.wants = Some(signer.directory);
        }
        let VerifiedSignature { expires, signature } = verified?;
        if !self.replays.is_first(&signature.octets, address, now) {
            return Err(Some(SignatureProblem::Copied));
        }
        to_do.shown = Some(ShownSignature {
            signature,
            address,
            expires,
        });
        Ok(())
    }
}

/// Verifies the signatures of a request as ones of an agent, given by its origin
/// (`https://chatgpt.com`) and its keys. Each stands for itself, and a good one is enough
/// (draft-ietf-webbotauth-httpsig-protocol-01, "Multiple Signatures").
///
/// # Errors
/// The problem of one signature, if none is good: an unknown key before a wrong signature, and that
/// before one that is not wrong.
pub fn verify(
    signed: &Signed<'_>,
    origin: &str,
    keys: &[PublicKey],
    now: Timestamp,
) -> Result<VerifiedSignature, SignatureProblem> {
    let SignatureFields {
        input,
        signature,
        agent,
    } = signed.fields;
    if input.len() + signature.len() + agent.len() > MAX_OCTETS {
        return Err(SignatureProblem::TooLong);
    }
    let read = |field: &str| {
        Parser::parse_dictionary(field.as_bytes()).map_err(|_| SignatureProblem::Unreadable)
    };
    let verification = Verification {
        signed,
        origin,
        keys,
        now,
        inputs: read(input)?,
        signatures: read(signature)?,
        agents: Parser::parse_dictionary(agent.as_bytes()).unwrap_or_default(),
    };
    let mut problem = SignatureProblem::NoTag;
    let mut left = MAX_VERIFIED;
    for (label, entry) in &verification.inputs {
        let ListEntry::InnerList(covered) = entry else {
            continue;
        };
        if covered.params.get("tag").and_then(BareItem::as_str) != Some(TAG) {
            continue;
        }
        match verification.check(label, covered, &mut left) {
            Ok(verified) => return Ok(verified),
            // A new key is to be fetched, whatever stands beside it. Signatures of other agents say
            // nothing about this one's.
            Err(found) if found == SignatureProblem::UnknownKey || problem.is_of_others() => {
                problem = found
            }
            Err(_) => {}
        }
    }
    Err(problem)
}

/// A request whose signatures are verified.
struct Verification<'a> {
    signed: &'a Signed<'a>,
    origin: &'a str,
    keys: &'a [PublicKey],
    now: Timestamp,
    inputs: Dictionary,
    signatures: Dictionary,
    /// The members of Signature-Agent: none where it is a text or a bare URL.
    agents: Dictionary,
}

impl Verification<'_> {
    /// Verifies one signature. `left` counts how many more may be verified: only a signature by a
    /// known key costs more than reading, and lowers it.
    ///
    /// # Errors
    /// Why the signature is not good.
    fn check(
        &self,
        label: &str,
        covered: &InnerList,
        left: &mut usize,
    ) -> Result<VerifiedSignature, SignatureProblem> {
        if !is_at(&self.agent(label, covered)?, self.origin) {
            return Err(SignatureProblem::OtherAgent);
        }
        let [created, expires, key, alg] =
            ["created", "expires", "keyid", "alg"].map(|name| covered.params.get(name));
        let missing = SignatureProblem::MissingParameter;
        let created = created.and_then(BareItem::as_int).ok_or(missing)?;
        let expires = expires.and_then(BareItem::as_int).ok_or(missing)?;
        let key = key.and_then(BareItem::as_str).ok_or(missing)?;
        if alg
            .and_then(BareItem::as_str)
            .is_some_and(|alg| alg != "ed25519")
        {
            return Err(SignatureProblem::OtherAlgorithm);
        }
        let now = self.now.0;
        let skew = SKEW.as_secs() as i64;
        if created > now.saturating_add(skew) {
            return Err(SignatureProblem::NotYetValid);
        }
        if expires <= now
            || expires < created
            || now.saturating_sub(created) > LONGEST.as_secs() as i64 + skew
        {
            return Err(SignatureProblem::Expired);
        }
        let octets = match self.signatures.get(label) {
            Some(ListEntry::Item(Item {
                bare_item: BareItem::ByteSeq(octets),
                ..
            })) => octets,
            _ => return Err(SignatureProblem::NoSignature),
        };
        let key = self
            .keys
            .iter()
            .filter(|known| {
                known.not_before.is_none_or(|from| from <= now + skew)
                    && known.expires.is_none_or(|until| now < until)
            })
            .find(|known| known.names.iter().any(|name| name == key))
            .ok_or(SignatureProblem::UnknownKey)?;
        *left = left.checked_sub(1).ok_or(SignatureProblem::TooMany)?;
        let base = self.base(covered)?;
        let verified =
            UnparsedPublicKey::new(&ED25519, &key.octets).verify(base.as_bytes(), octets);
        verified.map_err(|_| SignatureProblem::Mismatch)?;
        let signature = GoodSignature {
            base,
            key: key.octets.clone(),
            octets: octets.clone(),
        };
        Ok(VerifiedSignature {
            expires: Timestamp(expires),
            signature,
        })
    }

    /// The URL of the agent that a signature names: the member of Signature-Agent that it covers
    /// under its own label, unless the member has parameters
    /// (draft-ietf-webbotauth-httpsig-protocol-01, "Signature-Agent"). A label may change on the
    /// way (RFC 9421 section 7.2.5), so without a member of this label the only covered one counts.
    /// So does a text in quotes, the form of earlier drafts, and a bare URL.
    ///
    /// # Errors
    /// Why the signature names no agent.
    fn agent(&self, label: &str, covered: &InnerList) -> Result<String, SignatureProblem> {
        let items: Vec<&Item> = covered
            .items
            .iter()
            .filter(|item| item.bare_item.as_str() == Some(AGENT))
            .collect();
        if !self.agents.is_empty() && items.iter().any(|item| key(item).is_none()) {
            return Err(SignatureProblem::CoversWholeAgent);
        }
        let own = items.iter().find(|item| key(item) == Some(label));
        let only = items.first().filter(|_| {
            items.len() == 1
                && !self.agents.get(label).is_some_and(
                    |entry| matches!(entry, ListEntry::Item(item) if item.params.is_empty()),
                )
        });
        let item = own.or(only).ok_or(SignatureProblem::AgentNotCovered)?;
        if let Some(key) = key(item) {
            return match self.agents.get(key) {
                Some(ListEntry::Item(Item {
                    bare_item: BareItem::String(url),
                    params,
                })) if params.is_empty() => Ok(url.clone()),
                _ => Err(SignatureProblem::NoAgentMember),
            };
        }
        let field = self.signed.fields.agent.trim();
        let quoted = Parser::parse_item(field.as_bytes()).ok();
        Ok(quoted
            .and_then(|item| item.bare_item.as_str().map(str::to_owned))
            .unwrap_or_else(|| field.to_owned()))
    }

    /// The text that was signed (RFC 9421 section 2.5).
    ///
    /// # Errors
    /// The signature cannot be read, covers a component twice, too many or unknown ones, or not the
    /// host.
    fn base(&self, covered: &InnerList) -> Result<String, SignatureProblem> {
        let unreadable = SignatureProblem::Unreadable;
        let mut base = String::new();
        let mut names = Vec::new();
        let mut has_host = false;
        if covered.items.len() > MAX_COMPONENTS {
            return Err(SignatureProblem::CoversTooMuch);
        }
        for item in &covered.items {
            let name = item.bare_item.as_str().ok_or(unreadable)?;
            let identifier = item.serialize_value().map_err(|_| unreadable)?;
            if names.contains(&identifier) {
                return Err(SignatureProblem::CoversTwice);
            }
            has_host |= matches!(name, "@authority" | "@target-uri");
            let value = self.value(name, item);
            let value = value.ok_or(SignatureProblem::UnknownComponent)?;
            base.push_str(&format!("{identifier}: {value}\n"));
            names.push(identifier);
        }
        if !has_host {
            return Err(SignatureProblem::HostNotCovered);
        }
        let params = vec![ListEntry::InnerList(covered.clone())]
            .serialize_value()
            .map_err(|_| unreadable)?;
        base.push_str(&format!("\"@signature-params\": {params}"));
        Ok(base)
    }

    /// The value of a covered component. A signature may cover one member of another field (RFC
    /// 9421 section 4.3). `None` for a component that is not known here, or one with other
    /// parameters.
    fn value(&self, name: &str, item: &Item) -> Option<String> {
        match key(item) {
            Some(key) if item.params.len() == 1 => {
                let members = match name {
                    AGENT => &self.agents,
                    "signature-input" => &self.inputs,
                    "signature" => &self.signatures,
                    _ => return None,
                };
                vec![members.get(key)?.clone()].serialize_value().ok()
            }
            None if item.params.is_empty() && name == AGENT => {
                Some(self.signed.fields.agent.trim().to_owned())
            }
            None if item.params.is_empty() => component(name, self.signed),
            _ => None,
        }
    }
}

fn text(octets: &[u8]) -> Option<String> {
    String::from_utf8(octets.to_vec()).ok()
}

/// The value of a derived component (RFC 9421 section 2.2), or of a field that is known here;
/// `None` for any other. The scheme is always https: TLS ends at crawlgate or before it, and agents
/// ask for https. A usual port is left out of the host.
fn component(name: &str, signed: &Signed<'_>) -> Option<String> {
    let host = text(signed.host)?.to_ascii_lowercase();
    let authority = [":443", ":80"]
        .iter()
        .find_map(|port| host.strip_suffix(port))
        .unwrap_or(&host);
    let target = text(signed.target)?;
    let (path, query) = target
        .split_once('?')
        .map_or((target.as_str(), None), |(path, query)| (path, Some(query)));
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

/// The member of a dictionary that a component stands for; `None` if it stands for a whole field.
fn key(item: &Item) -> Option<&str> {
    item.params.get("key").and_then(BareItem::as_str)
}

/// Whether a URL is the origin itself or one below it. Compares the origin without case.
fn is_at(url: &str, origin: &str) -> bool {
    let starts = url
        .get(..origin.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(origin));
    starts && matches!(url.as_bytes().get(origin.len()), None | Some(b'/'))
}
