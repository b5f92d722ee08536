//! Checks that a client is the crawler that its user agent names. [`IdentityVerifier::evaluate`]
//! looks the client's address up in published lists and in DNS answers, and verifies signatures.
//! The result is an [`IdentityFinding`]. No request waits for the network: background threads fetch
//! lists and ask DNS (feature `proxy`).

mod explanation;
mod keys;
mod means;
mod names;
#[cfg(not(feature = "signatures"))]
mod no_signature;
mod published;
mod replays;
#[cfg(feature = "signatures")]
mod signature;
mod signed;
mod table;

#[cfg(feature = "proxy")]
pub mod refresh;
#[cfg(feature = "proxy")]
pub mod reverse_dns;

pub use means::{ListId, ProofMeans, RegistryProofMeans, is_directory};
pub use names::{DnsQueue, ReverseDnsResult, ReverseDnsTable};
pub use published::{ListFailure, ListMembership, ParsedList, PublishedLists};
#[cfg(all(feature = "internals", feature = "signatures"))]
pub use signature::verify_signature;
pub use signed::{SignatureProblem, SignedRequest, VerifiedSignature};
#[cfg(feature = "internals")]
pub use {
    keys::{PublicKey, read_keys, thumbprint},
    means::HostPattern,
    table::NetworkTable,
};

use replays::SignatureReplayCache;

use crate::crawlers::{Claim, Registry};
use crate::facts::StoredFacts;
use crate::record::SignatureProof;
use crate::state::StateStore;
use crate::time::Timestamp;
use crate::verdict::{Identity, IdentityDoubt, ProofKind, is_public_address};
use Identity::{Impostor, Pending, Verified};
use ListMembership::*;
use ReverseDnsResult::*;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The identity of a client, and its proof.
#[derive(Default)]
pub struct IdentityFinding {
    /// The identity.
    pub identity: Identity,
    /// Its proof.
    pub proof: ProofKind,
    /// Why the signature of the request proves nothing; `None` without a signature.
    pub signature: Option<SignatureProblem>,
    /// Why the identity is open although crawlgate has proofs for this crawler.
    pub doubt: Option<IdentityDoubt>,
}

impl IdentityFinding {
    fn new(identity: Identity, proof: ProofKind) -> IdentityFinding {
        IdentityFinding {
            identity,
            proof,
            ..IdentityFinding::default()
        }
    }

    /// What the signature of a request proves, in words. Only for requests that have one.
    pub fn signature_text(&self) -> &'static str {
        match (self.signature, self.proof) {
            (Some(problem), _) => problem.into(),
            (None, ProofKind::Signature) => "it proves the crawler",
            (None, _) => {
                "not checked: the address decides, the client is unknown, or there are no keys of this crawler"
            }
        }
    }
}

/// What [`IdentityVerifier::apply`] does once the request counts.
#[derive(Default)]
pub struct IdentityEffects {
    /// The address to queue for DNS.
    dns_address: Option<IpAddr>,
    /// The key directory to fetch again: the request has an unknown key.
    wanted_directory: Option<ListId>,
    /// The good signature of the request, and the address that sent it.
    signature: Option<(VerifiedSignature, IpAddr)>,
}

impl IdentityEffects {
    /// Takes out the good signature of the request, if it has one.
    pub fn take_good_signature(&mut self) -> Option<SignatureProof> {
        self.signature.take().map(|(shown, _)| shown.signature)
    }
}

/// A request that claims to come from a crawler.
#[derive(Clone, Copy)]
pub struct IdentityClaim<'a> {
    /// The claimed crawler.
    pub claim: Claim,
    /// The address of the client; `None` if it is not known.
    pub address: Option<IpAddr>,
    /// Whether the address may prove an impostor. False if it may be that of an undeclared proxy.
    pub may_accuse: bool,
    /// The identity by the networks of the policy.
    pub by_policy: Identity,
    /// The request with its signature, if it has one.
    pub signed: Option<SignedRequest<'a>>,
}

/// The kinds of proof in use, beside reverse DNS.
#[derive(Default)]
pub struct ProofMethods {
    /// Published lists of networks.
    pub lists: bool,
    /// Signatures of requests.
    pub signatures: bool,
}

/// The lists, DNS answers and signatures that prove crawlers.
pub struct IdentityVerifier {
    /// How the registry says that each crawler can be proven.
    pub means: RegistryProofMeans,
    /// The published lists.
    pub lists: PublishedLists,
    /// The host names of addresses.
    pub names: ReverseDnsTable,
    replays: SignatureReplayCache,
    methods: ProofMethods,
    /// How many addresses found the DNS queue full.
    dropped_lookups: AtomicU64,
}

impl IdentityVerifier {
    /// Begins with the lists and answers in the state store. `queue` takes addresses for reverse
    /// DNS; without it DNS is not asked. A build without the feature `signatures` logs a warning and
    /// verifies none.
    pub fn new(
        registry: &Registry,
        facts: &StoredFacts,
        store: &StateStore,
        mut methods: ProofMethods,
        queue: Option<DnsQueue>,
    ) -> IdentityVerifier {
        if methods.signatures && cfg!(not(feature = "signatures")) {
            tracing::warn!(
                "this crawlgate is built without its feature \"signatures\": no signature of a request is checked"
            );
            methods.signatures = false;
        }
        let means = RegistryProofMeans::from_registry(registry);
        IdentityVerifier {
            lists: PublishedLists::new(&means, &facts.network_lists, store.clone()),
            names: ReverseDnsTable::new(queue, &facts.address_proofs, store.clone()),
            means,
            replays: SignatureReplayCache::default(),
            methods,
            dropped_lookups: 0.into(),
        }
    }

    /// Without lists, DNS and signatures: the networks of the policy decide alone.
    pub fn with_policy_networks_only(registry: &Registry) -> IdentityVerifier {
        IdentityVerifier::new(
            registry,
            &StoredFacts::default(),
            &StateStore::in_memory_only().0,
            ProofMethods::default(),
            None,
        )
    }

    /// Whether a list, DNS or a signature in use here can prove a claim.
    pub fn can_prove(&self, claim: Claim) -> bool {
        self.usable_means(claim).is_some()
    }

    /// How a claim can be proven; `None` if no such means is in use, or it is not a crawler of the
    /// registry.
    fn usable_means(&self, claim: Claim) -> Option<&ProofMeans> {
        let Claim::Known(crawler) = claim else {
            return None;
        };
        let means = self.means.get(crawler)?;
        let by_list = self.methods.lists && !means.lists.is_empty();
        let by_signature = self.methods.signatures && means.signer.is_some();
        (by_list || by_signature || self.uses_dns_for(means)).then_some(means)
    }

    /// Whether DNS is asked for this crawler: it has host names, and DNS is in use.
    fn uses_dns_for(&self, means: &ProofMeans) -> bool {
        self.names.is_enabled() && !means.hosts.is_empty()
    }

    /// The finding about a claim, and the effects for [`IdentityVerifier::apply`]. Changes nothing. DNS
    /// is asked about a public address unless a list, the policy or a signature verified it.
    pub fn evaluate(
        &self,
        claimed: &IdentityClaim<'_>,
        now: Timestamp,
    ) -> (IdentityFinding, IdentityEffects) {
        let mut effects = IdentityEffects::default();
        let finding = self.find_identity(claimed, now, &mut effects);
        let Some(means) = self.usable_means(claimed.claim) else {
            return (finding, effects);
        };
        let needs_dns = finding.identity != Verified || finding.proof == ProofKind::ReverseDns;
        effects.dns_address = claimed
            .address
            .filter(|address| needs_dns && self.uses_dns_for(means) && is_public_address(*address));
        (finding, effects)
    }

    /// Queues the address for DNS and requests the key directory. Counts an address that found the
    /// queue full.
    pub fn apply(&self, effects: IdentityEffects, now: Timestamp) {
        if effects
            .dns_address
            .is_some_and(|address| self.names.enqueue(address, now))
        {
            self.dropped_lookups.fetch_add(1, Relaxed);
        }
        if let Some(list) = effects.wanted_directory {
            self.lists.request_fetch(list);
        }
    }

    /// Records which address sent the good signature of a request. False if another address sent it
    /// since the evaluation: then it proves nothing. True without a signature.
    pub fn record_signature(&self, effects: &IdentityEffects, now: Timestamp) -> bool {
        effects.signature.as_ref().is_none_or(|(shown, address)| {
            self.replays
                .record_use(&shown.signature.bytes, *address, shown.expires, now)
        })
    }

    /// The networks of the policy, published lists, reverse DNS and a signature prove the crawler, in
    /// this order. Else the client is an impostor if there is an accusation, and its address is public
    /// and may accuse. Else it is `Pending`, with the reason. If no means is in use for the crawler,
    /// the policy decides alone.
    fn find_identity(
        &self,
        claimed: &IdentityClaim<'_>,
        now: Timestamp,
        effects: &mut IdentityEffects,
    ) -> IdentityFinding {
        let proof = match claimed.by_policy {
            Verified | Impostor => ProofKind::Networks,
            _ => ProofKind::None,
        };
        let by_policy = IdentityFinding::new(claimed.by_policy, proof);
        if by_policy.identity == Verified {
            return by_policy;
        }
        let Some(address) = claimed.address else {
            let doubt = Some(IdentityDoubt::ClientUnknown);
            return IdentityFinding {
                doubt,
                ..IdentityFinding::new(Pending, ProofKind::None)
            };
        };
        let Some(means) = self.usable_means(claimed.claim) else {
            return by_policy;
        };
        let lists = if self.methods.lists {
            self.lists.look_up(means, address, now)
        } else {
            Undecided(IdentityDoubt::NoEvidence)
        };
        let asked = self.uses_dns_for(means) && is_public_address(address);
        let names = if asked {
            self.names.look_up(means, address, now)
        } else {
            Unknown
        };
        if lists == Inside {
            return IdentityFinding::new(Verified, ProofKind::List);
        }
        if matches!(names, Confirmed { .. }) {
            return IdentityFinding::new(Verified, ProofKind::ReverseDns);
        }
        let Err(signature) = self.check_signature(claimed, means, now, effects) else {
            return IdentityFinding::new(Verified, ProofKind::Signature);
        };
        let accused = self.accusation(means, by_policy.identity == Impostor, &lists, &names);
        let found = match accused {
            Some(proof) if claimed.may_accuse && is_public_address(address) => {
                IdentityFinding::new(Impostor, proof)
            }
            _ => {
                let is_suspected = lists == Outside && !self.uses_dns_for(means);
                let would_accuse = accused.is_some() || is_suspected && !claimed.may_accuse;
                let doubt = self.doubt_reason(means, address, would_accuse, &lists, &names);
                IdentityFinding {
                    doubt: Some(doubt),
                    ..IdentityFinding::new(Pending, ProofKind::None)
                }
            }
        };
        IdentityFinding { signature, ..found }
    }

    /// Why the identity is open; of several reasons the first below. `would_accuse`: the client would
    /// be an impostor if its address could not be a proxy's.
    fn doubt_reason(
        &self,
        means: &ProofMeans,
        address: IpAddr,
        would_accuse: bool,
        lists: &ListMembership,
        names: &ReverseDnsResult,
    ) -> IdentityDoubt {
        use IdentityDoubt::*;

        if !is_public_address(address) {
            return PrivateAddress;
        }
        if would_accuse {
            return PerhapsProxy;
        }
        match (names, lists) {
            (RefutedOnce { .. }, _) => DnsOneAnswer,
            (Failed { .. }, _) => DnsFailed,
            (NoForward { .. }, _) => DnsNoForward,
            (Unknown, _) if self.uses_dns_for(means) => DnsPending,
            (_, Undecided(doubt)) => *doubt,
            (Unknown, Outside) => DnsNotAsked,
            _ => NoEvidence,
        }
    }

    /// What proves that the address is not the crawler's. If the crawler has host names, a list needs
    /// reverse DNS to agree, except for the owner's own list (`outside_policy`) while DNS is not
    /// asked. Reverse DNS alone is enough if the operator documents it and publishes no list.
    fn accusation(
        &self,
        means: &ProofMeans,
        outside_policy: bool,
        lists: &ListMembership,
        names: &ReverseDnsResult,
    ) -> Option<ProofKind> {
        let is_refuted = matches!(names, Refuted { .. });
        let agrees = is_refuted || means.hosts.is_empty();
        // The owner's own list decides alone where DNS is not asked.
        if outside_policy && (agrees || !self.uses_dns_for(means)) {
            return Some(ProofKind::Networks);
        }
        if *lists == Outside && agrees {
            return Some(if is_refuted {
                ProofKind::ListAndReverseDns
            } else {
                ProofKind::List
            });
        }
        let publishes_lists = !means.lists.is_empty() || means.has_unreadable_lists;
        (is_refuted && means.are_hosts_complete && !publishes_lists)
            .then_some(ProofKind::ReverseDns)
    }

    /// How many addresses found the DNS queue full.
    pub fn dropped_lookups(&self) -> u64 {
        self.dropped_lookups.load(Relaxed)
    }
}

#[cfg(test)]
#[cfg(feature = "signatures")]
mod signature_tests;

#[cfg(test)]
mod tests;
