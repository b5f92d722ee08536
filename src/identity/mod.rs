//! [`Proofs`]: proof that a crawler is the one that its user agent claims. It looks an address up
//! in published lists and in the answers of reverse DNS, and verifies signatures. The result is an
//! [`IdentityFinding`]. No request waits for a server or for DNS: background threads ask them
//! (feature `proxy`).

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

pub use means::{KnownMeans, ListIndex, Means, is_directory};
pub use names::{AddressNames, NamesSay, Queue};
pub use published::{KnownList, ListFailure, ListsSay, PublishedLists};
#[cfg(all(feature = "internals", feature = "signatures"))]
pub use signature::verify;
pub use signed::{SignatureProblem, Signed};
#[cfg(feature = "internals")]
pub use {
    keys::{PublicKey, read_keys, thumbprint},
    means::HostPattern,
    signed::VerifiedSignature,
    table::NetworkTable,
};

use replays::Replays;

use crate::crawlers::{Claim, CrawlerIndex, Registry};
use crate::facts::StoredFacts;
use crate::record::GoodSignature;
use crate::state::StateStore;
use crate::time::Timestamp;
use crate::verdict::{Doubt, Evidence, Identity, Proof, is_public};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is proven of a claim, and by what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IdentityFinding {
    /// What is proven.
    pub identity: Identity,
    /// What the identity rests on.
    pub proof: Proof,
    /// Why the signature of the request proves nothing, if it has one.
    pub signature: Option<SignatureProblem>,
    /// Why nothing is proven of a crawler that can be proven here.
    pub doubt: Option<Doubt>,
}

impl IdentityFinding {
    fn new(identity: Identity, proof: Proof) -> IdentityFinding {
        IdentityFinding {
            identity,
            proof,
            signature: None,
            doubt: None,
        }
    }

    /// The words for the signature of a request that has one: why it proves nothing, that it proves
    /// the crawler, or that it was not checked.
    pub fn of_signature(&self) -> &'static str {
        match (self.signature, self.proof) {
            (Some(problem), _) => problem.into(),
            (None, Proof::Signature) => "it proves the crawler",
            (None, _) => {
                "not checked: the address decides, the client is unknown, or there are no keys of this crawler"
            }
        }
    }
}

/// What a finding rests on.
#[derive(Clone, Debug, Default)]
pub struct Basis {
    /// The lists: the one that has the address, or all, where none has it. The key directory of a
    /// signature.
    pub lists: Vec<Arc<KnownList>>,
    /// The name that the address has, which leads back to it, and when DNS said so.
    pub name: Option<(String, Timestamp)>,
    /// The first and the last answer of DNS without such a name.
    pub no_name: Option<(Timestamp, Timestamp)>,
}

/// What a look at a claim leaves to do.
#[derive(Debug, Default)]
pub struct ToDo {
    /// An address that DNS can be asked about.
    asks: Option<IpAddr>,
    /// A key directory that may have a new key.
    wants: Option<ListIndex>,
    /// A good signature.
    shown: Option<ShownSignature>,
}

impl ToDo {
    /// Takes out the good signature of the request, if it has one.
    pub fn take_signature(&mut self) -> Option<GoodSignature> {
        self.shown.take().map(|shown| shown.signature)
    }
}

/// A signature, the address that showed it, and until when it is good.
#[derive(Debug)]
struct ShownSignature {
    signature: GoodSignature,
    address: IpAddr,
    expires: Timestamp,
}

/// A claim from an address.
#[derive(Clone, Copy, Debug)]
pub struct Claimed<'a> {
    /// The crawler.
    pub claim: Claim,
    /// Where the request comes from; `None` where that is not known, which proves nothing.
    pub address: Option<IpAddr>,
    /// Whether the address may prove an impostor. It may not where it may be that of an undeclared
    /// proxy.
    pub may_accuse: bool,
    /// What the networks of the policy say.
    pub by_policy: Identity,
    /// The request with its signature, if it has one.
    pub signed: Option<Signed<'a>>,
}

/// The kinds of proof that are used, beside reverse DNS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    /// Published lists of networks.
    pub lists: bool,
    /// Signatures of requests.
    pub signatures: bool,
}

/// Everything that is known for proving crawlers.
pub struct Proofs {
    /// What the registry says.
    pub means: KnownMeans,
    /// The published lists.
    pub lists: PublishedLists,
    /// What reverse DNS said.
    pub names: AddressNames,
    replays: Replays,
    uses: Uses,
    left_out: AtomicU64,
}

impl Proofs {
    /// Begins with what the state store remembers. `queue` takes addresses for reverse DNS; `None`
    /// asks no DNS. Signatures are used only in a build with the feature `signatures`: without it a
    /// warning says that.
    pub fn new(
        registry: &Registry,
        facts: &StoredFacts,
        store: &StateStore,
        mut uses: Uses,
        queue: Option<Queue>,
    ) -> Proofs {
        if uses.signatures && cfg!(not(feature = "signatures")) {
            tracing::warn!(
                "no signature of a request proves anything: crawlgate is built without its feature `signatures`"
            );
            uses.signatures = false;
        }
        let means = KnownMeans::of(registry);
        Proofs {
            lists: PublishedLists::new(&means, &facts.network_lists, store.clone()),
            names: AddressNames::new(queue, &facts.address_proofs, store.clone()),
            means,
            replays: Replays::default(),
            uses,
            left_out: AtomicU64::new(0),
        }
    }

    /// Proofs where neither lists nor DNS are used: the networks of the policy decide alone.
    pub fn none(registry: &Registry) -> Proofs {
        Proofs::new(
            registry,
            &StoredFacts::default(),
            &StateStore::in_memory_only().0,
            Uses::default(),
            None,
        )
    }

    /// Whether any means in use here can prove a claim, beside the networks of the policy. Only
    /// crawlers of the registry have such means.
    pub fn can_prove(&self, claim: Claim) -> bool {
        self.usable(claim).is_some()
    }

    /// The means of a claim, if any of them is in use here; `None` unless it is a crawler of the
    /// registry.
    fn usable(&self, claim: Claim) -> Option<&Means> {
        let Claim::Known(crawler) = claim else {
            return None;
        };
        let means = self.means.get(crawler)?;
        let by_list = self.uses.lists && !means.lists.is_empty();
        let by_signature = self.uses.signatures && means.signer.is_some();
        (by_list || by_signature || self.asks_dns(means)).then_some(means)
    }

    /// Whether DNS is asked for this crawler: it has host names, and DNS is in use.
    fn asks_dns(&self, means: &Means) -> bool {
        self.names.asks() && !means.hosts.is_empty()
    }

    /// The finding about a claim by what is known now, and what is left to do. Changes nothing:
    /// [`Proofs::take_up`] does the rest. DNS is to be asked about a public address unless a list,
    /// the policy or a signature verified it already.
    pub fn look(&self, claimed: &Claimed<'_>, now: Timestamp) -> (IdentityFinding, ToDo) {
        let mut to_do = ToDo::default();
        let finding = self.find(claimed, now, &mut to_do);
        let Some(means) = self.usable(claimed.claim) else {
            return (finding, to_do);
        };
        let is_verified_by_list = finding.identity == Identity::Verified
            && matches!(
                finding.proof,
                Proof::Networks | Proof::List | Proof::Signature
            );
        to_do.asks = claimed
            .address
            .filter(|address| !is_verified_by_list && self.asks_dns(means) && is_public(*address));
        (finding, to_do)
    }

    /// Does what a look left to do: queues the address for DNS, and asks for a key directory to be
    /// fetched again. Counts an address that found no place in the queue (`Proofs::left_out`).
    pub fn take_up(&self, to_do: ToDo, now: Timestamp) {
        if to_do
            .asks
            .is_some_and(|address| self.names.ask(address, now))
        {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(list) = to_do.wants {
            self.lists.want(list);
        }
    }

    /// Records which address showed the good signature of a request. False if another address has
    /// shown the same one since the look: the signature proves nothing then. True without a
    /// signature.
    pub fn record_signature(&self, to_do: &ToDo, now: Timestamp) -> bool {
        to_do.shown.as_ref().is_none_or(|shown| {
            self.replays
                .remember(&shown.signature.octets, shown.address, shown.expires, now)
        })
    }

    /// The finding about a claim. The networks of the policy, published lists, reverse DNS and a
    /// signature prove the crawler, in this order. Otherwise the client is an impostor if something
    /// refutes it (`Proofs::accusation`) and its address is public and may accuse. Else it is
    /// `Pending`, with the reason. Without a known address, or a means that is in use, the policy
    /// decides alone.
    fn find(&self, claimed: &Claimed<'_>, now: Timestamp, to_do: &mut ToDo) -> IdentityFinding {
        let by_policy = match claimed.by_policy {
            identity @ (Identity::Verified | Identity::Impostor) => {
                IdentityFinding::new(identity, Proof::Networks)
            }
            identity => IdentityFinding::new(identity, Proof::None),
        };
        if by_policy.identity == Identity::Verified {
            return by_policy;
        }
        let Some(address) = claimed.address else {
            let doubt = Some(Doubt::ClientUnknown);
            return IdentityFinding {
                doubt,
                ..IdentityFinding::new(Identity::Pending, Proof::None)
            };
        };
        let Some(means) = self.usable(claimed.claim) else {
            return by_policy;
        };
        let lists = if self.uses.lists {
            self.lists.say(means, address, now)
        } else {
            ListsSay::Nothing(Doubt::NoEvidence)
        };
        let asked = self.asks_dns(means) && is_public(address);
        let names = if asked {
            self.names.say(means, address, now)
        } else {
            NamesSay::Nothing
        };
        if matches!(lists, ListsSay::Inside(_)) {
            return IdentityFinding::new(Identity::Verified, Proof::List);
        }
        if matches!(names, NamesSay::Confirmed { .. }) {
            return IdentityFinding::new(Identity::Verified, Proof::ReverseDns);
        }
        let Err(signature) = self.check_signature(claimed, means, now, to_do) else {
            return IdentityFinding::new(Identity::Verified, Proof::Signature);
        };
        let accused = self.accusation(
            means,
            by_policy.identity == Identity::Impostor,
            &lists,
            &names,
        );
        let found = match accused {
            Some(proof) if claimed.may_accuse && is_public(address) => {
                IdentityFinding::new(Identity::Impostor, proof)
            }
            _ => {
                let is_suspected = lists == ListsSay::Outside && !self.asks_dns(means);
                let would_accuse = accused.is_some() || is_suspected && !claimed.may_accuse;
                let doubt = self.doubt(means, address, would_accuse, &lists, &names);
                IdentityFinding {
                    doubt: Some(doubt),
                    ..IdentityFinding::new(Identity::Pending, Proof::None)
                }
            }
        };
        IdentityFinding { signature, ..found }
    }

    /// Why nothing is proven of a crawler that can be proven here. `would_accuse` says that the
    /// client would be an impostor if its address could not be a proxy's. Of several reasons the
    /// first below wins.
    fn doubt(
        &self,
        means: &Means,
        address: IpAddr,
        would_accuse: bool,
        lists: &ListsSay,
        names: &NamesSay,
    ) -> Doubt {
        if !is_public(address) {
            return Doubt::PrivateAddress;
        }
        if would_accuse {
            return Doubt::PerhapsProxy;
        }
        match (names, lists) {
            (NamesSay::Doubted { .. }, _) => Doubt::DnsOneAnswer,
            (NamesSay::Failed { .. }, _) => Doubt::DnsFailed,
            (NamesSay::NoForward { .. }, _) => Doubt::DnsNoForward,
            (NamesSay::Nothing, _) if self.asks_dns(means) => Doubt::DnsPending,
            (_, ListsSay::Nothing(doubt)) => *doubt,
            (NamesSay::Nothing, ListsSay::Outside) => Doubt::DnsNotAsked,
            _ => Doubt::NoEvidence,
        }
    }

    /// What proves that the address is not the crawler's, if anything does. A list needs reverse
    /// DNS to agree if the crawler has host names; only the owner's own list (`outside_policy`)
    /// decides alone while DNS is not asked. Reverse DNS alone is enough if the operator documents
    /// it and publishes no list.
    fn accusation(
        &self,
        means: &Means,
        outside_policy: bool,
        lists: &ListsSay,
        names: &NamesSay,
    ) -> Option<Proof> {
        let is_refuted = matches!(names, NamesSay::Refuted { .. });
        let agrees = is_refuted || means.hosts.is_empty();
        // The owner's own list decides alone where DNS is not asked.
        if outside_policy && (agrees || !self.asks_dns(means)) {
            return Some(Proof::Networks);
        }
        if *lists == ListsSay::Outside && agrees {
            return Some(if is_refuted {
                Proof::ListAndReverseDns
            } else {
                Proof::List
            });
        }
        let publishes_lists = !means.lists.is_empty() || means.has_other_lists;
        (is_refuted && means.hosts_are_whole && !publishes_lists).then_some(Proof::ReverseDns)
    }

    /// How many times an address was not put into the queue for DNS, because too many waited.
    pub fn left_out(&self) -> u64 {
        self.left_out.load(Ordering::Relaxed)
    }

    /// Explains a finding in words, a line for each means: what it says about the address now.
    /// Empty for a crawler without means.
    pub fn evidence(
        &self,
        crawler: CrawlerIndex,
        address: IpAddr,
        now: Timestamp,
    ) -> Vec<Evidence> {
        let Some(means) = self.means.get(crawler) else {
            return Vec::new();
        };
        let mut evidence = Vec::new();
        if self.uses.lists {
            for list in &means.lists {
                evidence.push(self.list_evidence(*list, address, now));
            }
        }
        if !is_public(address) {
            evidence.push(Evidence::new(
                "private-address",
                format!("{address} is no address of the public network: it accuses nobody"),
            ));
        } else if self.asks_dns(means) {
            evidence.push(names_evidence(self.names.say(means, address, now)));
        } else if !means.hosts.is_empty() {
            evidence.push(Evidence::new(
                "dns-not-asked",
                "reverse DNS: not asked, for `identity.outgoing` of the settings is no",
            ));
        }
        evidence
    }

    /// A line for people: what this list says about the address, and when it was checked.
    fn list_evidence(&self, list: ListIndex, address: IpAddr, now: Timestamp) -> Evidence {
        let url = self.lists.url(list);
        let Some(known) = self.lists.get(list) else {
            return Evidence::new("list-unknown", format!("{url}: not known yet"));
        };
        let checked = known.copy.checked;
        if let Some(network) = known.table.network_of(address) {
            let message = format!("{url}: inside {network} (checked {checked})");
            return Evidence::new("list-inside", message);
        }
        let age = if known.is_fresh(now) {
            ""
        } else {
            ", too old to accuse"
        };
        if known.table.covers_kind_of(address) {
            let message = format!("{url}: outside (checked {checked}{age})");
            Evidence::new("list-outside", message)
        } else {
            let message =
                format!("{url}: it has no networks of this kind (checked {checked}{age})");
            Evidence::new("list-other-kind", message)
        }
    }

    /// What a finding about a claim rests on, by what is known now. `None` if the networks of a
    /// policy decided, if the claim is no crawler of the registry, and if what is known now would
    /// not lead to the finding any more.
    pub fn basis(
        &self,
        claim: Claim,
        found: (Identity, Proof),
        address: IpAddr,
        now: Timestamp,
    ) -> Option<Basis> {
        let Claim::Known(crawler) = claim else {
            return None;
        };
        let means = self.means.get(crawler)?;
        let (identity, proof) = found;
        let is_verified = identity == Identity::Verified;
        let mut basis = Basis::default();
        if proof == Proof::Signature {
            let directory = means.signer.as_ref()?.directory;
            basis.lists.extend(self.lists.get(directory));
            return Some(basis);
        }
        if matches!(proof, Proof::List | Proof::ListAndReverseDns) {
            let known = means.lists.iter().filter_map(|list| self.lists.get(*list));
            basis.lists = known
                .filter(|list| list.table.contains(address) == is_verified)
                .collect();
            let needed = if is_verified { 1 } else { means.lists.len() };
            if basis.lists.len() < needed || needed == 0 {
                return None;
            }
        }
        if matches!(proof, Proof::ReverseDns | Proof::ListAndReverseDns) {
            match self.names.say(means, address, now) {
                NamesSay::Confirmed { name, at } if is_verified => basis.name = Some((name, at)),
                NamesSay::Refuted { first, last } if !is_verified => {
                    basis.no_name = Some((first, last))
                }
                _ => return None,
            }
        }
        let is_known = !basis.lists.is_empty() || basis.name.is_some() || basis.no_name.is_some();
        is_known.then_some(basis)
    }
}

#[cfg(test)]
#[cfg(feature = "signatures")]
mod signature_tests;

/// What reverse DNS says, as evidence.
fn names_evidence(says: NamesSay) -> Evidence {
    let (id, said) = match says {
        NamesSay::Confirmed { name, at } => (
            "dns-confirmed",
            format!("{name} leads back to the address ({at})"),
        ),
        NamesSay::Refuted { first, last } => (
            "dns-refuted",
            format!("no name of the crawler, by two answers ({first} and {last})"),
        ),
        NamesSay::Doubted { at } => (
            "dns-one-answer",
            format!("no name of the crawler, by one answer ({at}); a second one decides"),
        ),
        NamesSay::NoForward { name, at } => (
            "dns-no-forward",
            format!(
                "{name} has no address ({at}), and its operator documents none: that decides nothing"
            ),
        ),
        NamesSay::Failed { at } => (
            "dns-failed",
            format!(
                "no answer to the question of {at}; the next request after a minute asks again"
            ),
        ),
        NamesSay::Nothing => (
            "dns-pending",
            "no answer yet; a request from the address asks".to_owned(),
        ),
    };
    Evidence::new(id, format!("reverse DNS: {said}"))
}

#[cfg(test)]
mod tests;
