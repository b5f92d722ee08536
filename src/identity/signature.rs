//! [`verify_signature`] verifies the signature of a [`SignedRequest`] by Web Bot Auth, a profile of
//! HTTP Message Signatures (RFC 9421, draft-ietf-webbotauth). It supports only Ed25519, and only
//! the components (parts of a request) that such signatures cover. This module is built only with
//! the feature `signatures`.

use super::keys::PublicKey;
use super::signed::SignatureProblem::{self, *};
use super::signed::{SignedRequest, VerifiedSignature};
use super::{IdentityClaim, IdentityEffects, IdentityVerifier, ProofMeans};
use crate::crawlers::starts_with_ignore_case;
use crate::heads::SignatureFields;
use crate::record::SignatureProof;
use crate::time::Timestamp;
use ring::signature::{ED25519, UnparsedPublicKey};
use sfv::{BareItem, Dictionary, InnerList, Item, ListEntry, Parser, SerializeValue};
use std::time::Duration;

const SIGNATURE_TAG: &str = "web-bot-auth";
const AGENT_FIELD: &str = "signature-agent";
/// The most signatures of a request that are verified with a key.
const MAX_VERIFIED: usize = 2;
/// For all signature fields together, because parsing takes time.
const MAX_FIELD_BYTES: usize = 8 * 1024;
/// The most components that a signature may cover.
const MAX_COMPONENTS: usize = 16;
const MAX_CLOCK_SKEW: Duration = Duration::from_secs(60);
/// From `created` on, as the draft recommends.
const MAX_SIGNATURE_AGE: Duration = Duration::from_secs(86_400);

impl SignatureProblem {
    /// Whether the signature is of another agent, or of a kind that is not verified here.
    fn is_of_other_kind(self) -> bool {
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

impl IdentityVerifier {
    /// Checks the signature of a request by the keys of the crawler's agent. `effects` gets a good one
    /// that no other address has used, or the key directory of an unknown key.
    ///
    /// # Errors
    /// Why the signature proves nothing; `None` if there is none, or it cannot be checked.
    pub fn check_signature(
        &self,
        claimed: &IdentityClaim<'_>,
        means: &ProofMeans,
        now: Timestamp,
        effects: &mut IdentityEffects,
    ) -> Result<(), Option<SignatureProblem>> {
        let signed = claimed.signed.as_ref().filter(|_| self.methods.signatures);
        let (Some(signed), Some(signer), Some(address)) = (signed, &means.signer, claimed.address)
        else {
            return Err(None);
        };
        let known = self.lists.get(signer.directory);
        let keys = known
            .as_ref()
            .map_or(&[][..], |known| known.keys.as_slice());
        let verified = verify_signature(signed, &signer.origin, keys, now);
        if verified == Err(UnknownKey) {
            effects.wanted_directory = Some(signer.directory);
        }
        let verified = verified?;
        let signature = &verified.signature.bytes;
        if !self.replays.is_first_use(signature, address, now) {
            return Err(Some(Copied));
        }
        effects.signature = Some((verified, address));
        Ok(())
    }
}

/// Verifies that an agent, with this origin (`https://chatgpt.com`) and these keys, signed a request.
/// One good signature is enough (draft-ietf-webbotauth-httpsig-protocol-01, "Multiple Signatures").
///
/// # Errors
/// The problem of one signature: an unknown key before a wrong signature, and that before a signature
/// of another kind.
pub fn verify_signature(
    signed: &SignedRequest<'_>,
    origin: &str,
    keys: &[PublicKey],
    now: Timestamp,
) -> Result<VerifiedSignature, SignatureProblem> {
    let SignatureFields {
        input,
        signature,
        agent,
    } = signed.fields;
    if input.len() + signature.len() + agent.len() > MAX_FIELD_BYTES {
        return Err(TooLong);
    }
    let read = |field: &str| Parser::parse_dictionary(field.as_bytes()).map_err(|_| Unreadable);
    let verification = SignatureVerifier {
        signed,
        origin,
        keys,
        now,
        inputs: read(input)?,
        signatures: read(signature)?,
        agents: Parser::parse_dictionary(agent.as_bytes()).unwrap_or_default(),
    };
    let mut problem = NoTag;
    let mut left = MAX_VERIFIED;
    for (label, entry) in &verification.inputs {
        let ListEntry::InnerList(covered) = entry else {
            continue;
        };
        if covered.params.get("tag").and_then(BareItem::as_str) != Some(SIGNATURE_TAG) {
            continue;
        }
        match verification.verify_one(label, covered, &mut left) {
            Ok(verified) => return Ok(verified),
            // An unknown key has precedence, so that it is fetched.
            Err(found) if found == UnknownKey || problem.is_of_other_kind() => problem = found,
            Err(_) => {}
        }
    }
    Err(problem)
}

/// The parsed signature fields of a request, and what they are verified with.
struct SignatureVerifier<'a> {
    signed: &'a SignedRequest<'a>,
    origin: &'a str,
    keys: &'a [PublicKey],
    now: Timestamp,
    inputs: Dictionary,
    signatures: Dictionary,
    /// The members of Signature-Agent; none if it is a string or a bare URL.
    agents: Dictionary,
}

impl SignatureVerifier<'_> {
    /// Verifies one signature. `left` is how many more may be verified with a known key.
    ///
    /// # Errors
    /// Why the signature is not good.
    fn verify_one(
        &self,
        label: &str,
        covered: &InnerList,
        left: &mut usize,
    ) -> Result<VerifiedSignature, SignatureProblem> {
        if !is_within_origin(&self.agent_url(label, covered)?, self.origin) {
            return Err(OtherAgent);
        }
        let [created, expires, key, alg] =
            ["created", "expires", "keyid", "alg"].map(|name| covered.params.get(name));
        let created = created.and_then(BareItem::as_int).ok_or(MissingParameter)?;
        let expires = expires.and_then(BareItem::as_int).ok_or(MissingParameter)?;
        let key = key.and_then(BareItem::as_str).ok_or(MissingParameter)?;
        if alg
            .and_then(BareItem::as_str)
            .is_some_and(|alg| alg != "ed25519")
        {
            return Err(OtherAlgorithm);
        }
        let now = self.now.0;
        let skew = MAX_CLOCK_SKEW.as_secs() as i64;
        if created > now.saturating_add(skew) {
            return Err(NotYetValid);
        }
        if expires <= now
            || expires < created
            || now.saturating_sub(created) > MAX_SIGNATURE_AGE.as_secs() as i64 + skew
        {
            return Err(Expired);
        }
        let bytes = match self.signatures.get(label) {
            Some(ListEntry::Item(Item {
                bare_item: BareItem::ByteSeq(bytes),
                ..
            })) => bytes,
            _ => return Err(NoSignature),
        };
        let key = self
            .keys
            .iter()
            .filter(|known| {
                known.not_before.is_none_or(|from| from <= now + skew)
                    && known.expires.is_none_or(|until| now < until)
            })
            .find(|known| known.names.iter().any(|name| name == key))
            .ok_or(UnknownKey)?;
        *left = left.checked_sub(1).ok_or(TooMany)?;
        let base = self.signature_base(covered)?;
        let verified = UnparsedPublicKey::new(&ED25519, &key.bytes).verify(base.as_bytes(), bytes);
        verified.map_err(|_| Mismatch)?;
        let signature = SignatureProof {
            base,
            key: key.bytes.clone(),
            bytes: bytes.clone(),
        };
        Ok(VerifiedSignature {
            expires: Timestamp(expires),
            signature,
        })
    }

    /// The URL of the signing agent: the covered member of Signature-Agent with the label of the
    /// signature, without parameters (draft-ietf-webbotauth-httpsig-protocol-01, "Signature-Agent").
    /// A label may change on the way (RFC 9421 section 7.2.5), so without such a member the only
    /// covered one counts. So do a string, the form of earlier drafts, and a bare URL.
    ///
    /// # Errors
    /// Why the signature names no agent.
    fn agent_url(&self, label: &str, covered: &InnerList) -> Result<String, SignatureProblem> {
        let items: Vec<&Item> = covered
            .items
            .iter()
            .filter(|item| item.bare_item.as_str() == Some(AGENT_FIELD))
            .collect();
        if !self.agents.is_empty() && items.iter().any(|item| member_key(item).is_none()) {
            return Err(CoversWholeAgent);
        }
        let own = items.iter().find(|item| member_key(item) == Some(label));
        let only = items.first().filter(|_| {
            items.len() == 1
                && !self.agents.get(label).is_some_and(
                    |entry| matches!(entry, ListEntry::Item(item) if item.params.is_empty()),
                )
        });
        let item = own.or(only).ok_or(AgentNotCovered)?;
        if let Some(key) = member_key(item) {
            return match self.agents.get(key) {
                Some(ListEntry::Item(Item {
                    bare_item: BareItem::String(url),
                    params,
                })) if params.is_empty() => Ok(url.clone()),
                _ => Err(NoAgentMember),
            };
        }
        let field = self.signed.fields.agent.trim();
        let quoted = Parser::parse_item(field.as_bytes()).ok();
        Ok(quoted
            .and_then(|item| item.bare_item.as_str().map(str::to_owned))
            .unwrap_or_else(|| field.to_owned()))
    }

    /// The signature base (RFC 9421 section 2.5).
    ///
    /// # Errors
    /// The signature cannot be read, covers a component twice, too many or unknown ones, or not the
    /// host.
    fn signature_base(&self, covered: &InnerList) -> Result<String, SignatureProblem> {
        let mut base = String::new();
        let mut names = Vec::new();
        let mut has_host = false;
        if covered.items.len() > MAX_COMPONENTS {
            return Err(CoversTooMuch);
        }
        for item in &covered.items {
            let name = item.bare_item.as_str().ok_or(Unreadable)?;
            let identifier = item.serialize_value().map_err(|_| Unreadable)?;
            if names.contains(&identifier) {
                return Err(CoversTwice);
            }
            has_host |= matches!(name, "@authority" | "@target-uri");
            let value = self.component_value(name, item).ok_or(UnknownComponent)?;
            base.push_str(&format!("{identifier}: {value}\n"));
            names.push(identifier);
        }
        if !has_host {
            return Err(HostNotCovered);
        }
        let params = vec![ListEntry::InnerList(covered.clone())]
            .serialize_value()
            .map_err(|_| Unreadable)?;
        base.push_str(&format!("\"@signature-params\": {params}"));
        Ok(base)
    }

    /// The value of a covered component, which may be one member of a signature field (RFC 9421
    /// section 4.3). `None` for an unknown component or parameter.
    fn component_value(&self, name: &str, item: &Item) -> Option<String> {
        match member_key(item) {
            Some(key) if item.params.len() == 1 => {
                let members = match name {
                    AGENT_FIELD => &self.agents,
                    "signature-input" => &self.inputs,
                    "signature" => &self.signatures,
                    _ => return None,
                };
                vec![members.get(key)?.clone()].serialize_value().ok()
            }
            None if item.params.is_empty() && name == AGENT_FIELD => {
                Some(self.signed.fields.agent.trim().to_owned())
            }
            None if item.params.is_empty() => derived_component(name, self.signed),
            _ => None,
        }
    }
}

fn to_utf8(bytes: &[u8]) -> Option<String> {
    String::from_utf8(bytes.to_vec()).ok()
}

/// The value of a derived component (RFC 9421 section 2.2) or of `user-agent`. The scheme is always
/// https: TLS ends at crawlgate or before it. Default ports are left out of the host.
fn derived_component(name: &str, signed: &SignedRequest<'_>) -> Option<String> {
    let host = to_utf8(signed.host)?.to_ascii_lowercase();
    let authority = [":443", ":80"]
        .iter()
        .find_map(|port| host.strip_suffix(port))
        .unwrap_or(&host);
    let target = to_utf8(signed.target)?;
    let (path, query) = target
        .split_once('?')
        .map_or((target.as_str(), None), |(path, query)| (path, Some(query)));
    Some(match name {
        "@authority" => authority.to_owned(),
        "@method" => to_utf8(signed.method)?,
        "@scheme" => "https".to_owned(),
        "@target-uri" => format!("https://{authority}{target}"),
        "@request-target" => target,
        "@path" => path.to_owned(),
        "@query" => format!("?{}", query.unwrap_or_default()),
        "user-agent" => to_utf8(signed.user_agent)?.trim().to_owned(),
        _ => return None,
    })
}

/// The key of a dictionary member; `None` for a whole field.
fn member_key(item: &Item) -> Option<&str> {
    item.params.get("key").and_then(BareItem::as_str)
}

/// Whether a URL is the origin or below it. Ignores case in the origin.
fn is_within_origin(url: &str, origin: &str) -> bool {
    starts_with_ignore_case(url.as_bytes(), origin.as_bytes())
        && matches!(url.as_bytes().get(origin.len()), None | Some(b'/'))
}
