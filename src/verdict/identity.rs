//! [`Identity`]: whether a client is the crawler that its user agent claims. [`ProofKind`] says how
//! that was proven, and [`IdentityDoubt`] why it could not be proven. [`identity_by_policy`]
//! compares an address with the networks that a policy lists. All other proofs are in the module
//! `crate::identity`.

use super::RequestFacts;
use crate::crawlers::{Claim, is_public_address};
use crate::policy::Site;
use crate::policy::model::IdentityStatus;
use std::net::IpAddr;
use strum::{EnumString, IntoStaticStr};

use Identity::*;

/// The statement of one means of proof about an address.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ProofStatement {
    /// The statement for programs: `list-inside`.
    pub id: &'static str,
    /// The statement with its values, for people.
    pub message: String,
}

impl ProofStatement {
    pub fn new(id: &'static str, message: impl Into<String>) -> ProofStatement {
        ProofStatement {
            id,
            message: message.into(),
        }
    }
}

/// Whether a client is the crawler that it claims to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Identity {
    /// Neither verified nor an impostor.
    #[default]
    Unverified,
    /// Proven to be the crawler.
    Verified,
    /// Proven not to be the crawler.
    Impostor,
    /// It would be an impostor, but the network list that excludes its address verified no visit
    /// lately. Counts as unverified.
    #[serde(rename = "unverified")]
    Suspended,
    /// Not verified yet. The next request may be verified. Counts as unverified.
    #[serde(rename = "unverified")]
    Pending,
}

/// The kind of proof behind a finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ProofKind {
    /// Nothing but the user agent.
    #[default]
    None,
    /// The networks that the policy lists.
    Networks,
    /// The networks that the operator publishes.
    List,
    /// Reverse DNS, and the forward look-up of the name.
    ReverseDns,
    /// A list of networks, and reverse DNS that agrees.
    ListAndReverseDns,
    /// The signature of the request.
    Signature,
}

/// Why a crawler that can be proven here is neither verified nor an impostor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum IdentityDoubt {
    /// The address of the client is not known.
    ClientUnknown,
    /// The address is private.
    PrivateAddress,
    /// The address may be that of a proxy that the settings do not name.
    PerhapsProxy,
    /// Reverse DNS has not answered yet.
    DnsPending,
    /// Reverse DNS was asked, and failed.
    DnsFailed,
    /// Reverse DNS gave no name of the crawler once. A second answer decides.
    DnsOneAnswer,
    /// Reverse DNS gave a name of the crawler that has no address, and its operator documents none.
    DnsNoForward,
    /// A published list was never read.
    ListUnknown,
    /// A published list was not checked for too long.
    ListOld,
    /// The lists have no networks of this kind, IPv4 or IPv6.
    ListOtherKind,
    /// The address is in no list, but only reverse DNS can prove an impostor of this crawler, and
    /// it is not asked here.
    DnsNotAsked,
    /// Neither the address nor a signature proves anything.
    NoEvidence,
    /// It would be an impostor, but the list that excludes its address verified no visit lately.
    Suspended,
}

impl IdentityDoubt {
    /// A sentence for people.
    pub fn description(self) -> &'static str {
        use IdentityDoubt::*;

        match self {
            ClientUnknown => {
                "the client's address is not known. To verify the name, add --ip with that address, not a proxy's"
            }
            PrivateAddress => "the address is private, not public",
            PerhapsProxy => {
                "the address may belong to a proxy that is missing in \"trusted_proxies\""
            }
            DnsPending => "reverse DNS has not answered yet",
            DnsFailed => "reverse DNS failed",
            DnsOneAnswer => "reverse DNS gave no name of this crawler. A second answer decides",
            DnsNoForward => {
                "reverse DNS gave a name of this crawler. The name has no address, but the \
                 operator does not say that it has one"
            }
            ListUnknown => "crawlgate has not read one of the operator's lists yet",
            ListOld => "one of the operator's lists was last checked more than seven days ago",
            ListOtherKind => "the operator's lists have no networks of this kind (IPv4 or IPv6)",
            DnsNotAsked => {
                "suspect: the address is in no list of the operator. Only reverse DNS can decide; \
                 \"identity: { outgoing: yes }\" in crawlgate.yaml asks it"
            }
            NoEvidence => {
                "neither lists nor reverse DNS nor a signature tell anything about this address"
            }
            Suspended => {
                "the address is not one of this crawler. But the list has verified no visit for \
                 seven days, so it may be out of date"
            }
        }
    }
}

/// What a finding is counted as: its [`IdentityStatus`], or why an unverified crawler may be an
/// impostor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum IdentityOutcome {
    /// It is the crawler.
    Verified,
    /// Nothing is proven.
    Unverified,
    /// It is not the crawler.
    Impostor,
    /// It would be an impostor, but the network list that says so verified no visit lately.
    Suspended,
    /// Only reverse DNS could prove an impostor, and it is not asked.
    Suspected,
}

named!(ProofKind, IdentityOutcome);

impl Identity {
    /// What is known of the name: suspended and pending findings are unverified.
    pub(crate) fn to_status(self) -> IdentityStatus {
        match self {
            Unverified | Suspended | Pending => IdentityStatus::Unverified,
            Verified => IdentityStatus::Verified,
            Impostor => IdentityStatus::Impostor,
        }
    }

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        self.to_status().name()
    }

    /// What it is counted as, with the doubt about it.
    pub(crate) fn outcome(self, doubt: Option<IdentityDoubt>) -> IdentityOutcome {
        match (self, doubt) {
            (Suspended, _) => IdentityOutcome::Suspended,
            (_, Some(IdentityDoubt::DnsNotAsked)) => IdentityOutcome::Suspected,
            (Verified, _) => IdentityOutcome::Verified,
            (Impostor, _) => IdentityOutcome::Impostor,
            (Unverified | Pending, _) => IdentityOutcome::Unverified,
        }
    }
}

/// The finding by the networks that the policy lists for the claimed crawler: verified inside of
/// them, impostor outside, unverified where it lists none or the address is unknown. `may_accuse`
/// is `false` where the address may be that of an undeclared proxy: then it proves nothing against
/// any crawler. Nor does an address of a private network.
pub fn identity_by_policy(
    site: &Site,
    facts: &RequestFacts<'_>,
    claim: Claim,
    may_accuse: bool,
) -> Identity {
    let address = facts.client;
    match address.and_then(|address| site.networks.contains_address(claim, address)) {
        Some(true) => Verified,
        Some(false) if may_accuse && address.is_some_and(is_public_address) => Impostor,
        Some(false) | None => Unverified,
    }
}

/// Whether an address is in the networks that the policy lists for a crawler, in words; `None`
/// where it lists none.
pub fn policy_evidence(
    site: &Site,
    claim: Claim,
    address: Option<IpAddr>,
) -> Option<ProofStatement> {
    let is_inside = site.networks.contains_address(claim, address?)?;
    let (id, found) = if is_inside {
        ("policy-inside", "inside")
    } else {
        ("policy-outside", "outside")
    };
    let policy = &site.policy.source.name;
    Some(ProofStatement::new(
        id,
        format!("{found} the networks of this crawler in {policy}"),
    ))
}
