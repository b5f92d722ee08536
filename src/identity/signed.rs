//! [`SignedRequest`]: a request with the header fields of its signature (Web Bot Auth), which can
//! prove that it comes from a crawler. Verification returns a [`VerifiedSignature`], or a
//! [`SignatureProblem`] that says why the signature proves nothing.

use crate::heads::SignatureFields;
use crate::record::SignatureProof;
use crate::time::Timestamp;
use strum::IntoStaticStr;

/// The parts of a request that a signature may cover, with its signature fields.
#[derive(Clone, Copy)]
pub struct SignedRequest<'a> {
    /// The Host field or `:authority`.
    pub host: &'a [u8],
    /// The request target in origin form.
    pub target: &'a [u8],
    /// GET, HEAD, ...
    pub method: &'a [u8],
    /// The User-Agent field.
    pub user_agent: &'a [u8],
    /// The signature fields.
    pub fields: SignatureFields<'a>,
}

/// A good signature of the crawler's agent.
#[derive(PartialEq, Eq)]
pub struct VerifiedSignature {
    /// When the signature expires.
    pub expires: Timestamp,
    /// The signature, its key and its base.
    pub signature: SignatureProof,
}

/// Why a signature does not prove the crawler. The names are those in the field `signature` of the
/// event log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[allow(missing_docs)]
pub enum SignatureProblem {
    #[strum(serialize = "the signature cannot be read")]
    Unreadable,
    #[strum(serialize = "the signature is too long")]
    TooLong,
    #[strum(serialize = "there is no signature with the tag web-bot-auth")]
    NoTag,
    #[strum(serialize = "the signature covers Signature-Agent as a whole, and not one member")]
    CoversWholeAgent,
    #[strum(serialize = "the signature does not cover Signature-Agent under its label")]
    AgentNotCovered,
    #[strum(serialize = "Signature-Agent has no such member, or one with parameters")]
    NoAgentMember,
    #[strum(serialize = "Signature-Agent is not that of the crawler")]
    OtherAgent,
    #[strum(serialize = "created, expires or keyid is missing")]
    MissingParameter,
    #[strum(serialize = "the algorithm is not Ed25519")]
    OtherAlgorithm,
    #[strum(serialize = "the signature is from the future")]
    NotYetValid,
    #[strum(serialize = "the signature has expired")]
    Expired,
    #[strum(serialize = "there is no signature with this label")]
    NoSignature,
    /// The agent may have a new key.
    #[strum(serialize = "the key is not in the directory of the agent")]
    UnknownKey,
    #[strum(serialize = "the request has too many signatures")]
    TooMany,
    #[strum(serialize = "the signature covers too much")]
    CoversTooMuch,
    #[strum(serialize = "the signature covers a component twice")]
    CoversTwice,
    #[strum(serialize = "the signature covers a component that crawlgate does not know")]
    UnknownComponent,
    #[strum(serialize = "the signature does not cover the host")]
    HostNotCovered,
    #[strum(serialize = "the signature does not match the request")]
    Mismatch,
    /// Found by [`super::IdentityVerifier`] alone: the signature is good, and may be a copy.
    #[strum(serialize = "another address sent the same signature before")]
    Copied,
}
