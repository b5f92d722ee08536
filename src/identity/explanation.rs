//! Explains why a client address is, or is not, verified as a crawler's.
//! [`IdentityVerifier::explain`] writes sentences for people. [`IdentityVerifier::proof_basis`]
//! returns the published lists and DNS answers themselves, for the evidence log.

use super::{IdentityVerifier, ListId, ParsedList, ReverseDnsResult};
use crate::crawlers::{Claim, CrawlerIndex};
use crate::time::Timestamp;
use crate::verdict::{Identity, ProofKind, ProofStatement, is_public_address};
use std::net::IpAddr;
use std::sync::Arc;

/// The lists and DNS answers that an identity finding rests on.
#[derive(Default)]
pub struct ProofBasis {
    /// The lists that have the address; all lists of the crawler if none has it. For a signature,
    /// the key directory.
    pub lists: Vec<Arc<ParsedList>>,
    /// The forward-confirmed host name of the address, and the time of the DNS answer.
    pub name: Option<(String, Timestamp)>,
    /// The times of the first and the last DNS answer without such a name.
    pub no_name: Option<(Timestamp, Timestamp)>,
}

impl IdentityVerifier {
    /// Explains in words what each list and reverse DNS say about the address now. Empty for a
    /// crawler that crawlgate cannot prove.
    pub fn explain(
        &self,
        crawler: CrawlerIndex,
        address: IpAddr,
        now: Timestamp,
    ) -> Vec<ProofStatement> {
        let Some(means) = self.means.get(crawler) else {
            return Vec::new();
        };
        let mut evidence = Vec::new();
        if self.methods.lists {
            for list in &means.lists {
                evidence.push(self.explain_list(*list, address, now));
            }
        }
        if !is_public_address(address) {
            evidence.push(ProofStatement::new(
                "private-address",
                format!("{address} is not a public address: crawlgate asks no DNS about it, and calls nobody an impostor because of it"),
            ));
        } else if self.uses_dns_for(means) {
            evidence.push(explain_reverse_dns(self.names.look_up(means, address, now)));
        } else if !means.hosts.is_empty() {
            evidence.push(ProofStatement::new(
                "dns-not-asked",
                "reverse DNS: not asked, because identity.outgoing is no in the settings",
            ));
        }
        evidence
    }

    /// What this list says about the address, and when it was checked.
    fn explain_list(&self, list: ListId, address: IpAddr, now: Timestamp) -> ProofStatement {
        let url = self.lists.url(list);
        let Some(known) = self.lists.get(list) else {
            return ProofStatement::new("list-unknown", format!("{url}: not fetched yet"));
        };
        let checked = known.copy.checked;
        if let Some(network) = known.table.network_of(address) {
            let message = format!("{url}: inside {network} (checked {checked})");
            return ProofStatement::new("list-inside", message);
        }
        let age = if known.is_fresh(now) {
            ""
        } else {
            ", too old to prove an impostor"
        };
        if known.table.has_family(address) {
            let message = format!("{url}: outside (checked {checked}{age})");
            ProofStatement::new("list-outside", message)
        } else {
            let message =
                format!("{url}: no networks of this address family (checked {checked}{age})");
            ProofStatement::new("list-other-kind", message)
        }
    }

    /// What a finding rests on. `None` if the networks of a policy decided, if the claim is not a
    /// crawler of the registry, or if the lists and DNS answers have changed since the finding.
    pub fn proof_basis(
        &self,
        claim: Claim,
        found: (Identity, ProofKind),
        address: IpAddr,
        now: Timestamp,
    ) -> Option<ProofBasis> {
        let Claim::Known(crawler) = claim else {
            return None;
        };
        let means = self.means.get(crawler)?;
        let (identity, proof) = found;
        let is_verified = identity == Identity::Verified;
        let mut basis = ProofBasis::default();
        if proof == ProofKind::Signature {
            let directory = means.signer.as_ref()?.directory;
            basis.lists.extend(self.lists.get(directory));
            return Some(basis);
        }
        if matches!(proof, ProofKind::List | ProofKind::ListAndReverseDns) {
            let known = means.lists.iter().filter_map(|list| self.lists.get(*list));
            basis.lists = known
                .filter(|list| list.table.contains(address) == is_verified)
                .collect();
            let needed = if is_verified { 1 } else { means.lists.len() };
            if basis.lists.len() < needed || needed == 0 {
                return None;
            }
        }
        if matches!(proof, ProofKind::ReverseDns | ProofKind::ListAndReverseDns) {
            match self.names.look_up(means, address, now) {
                ReverseDnsResult::Confirmed { name, at } if is_verified => {
                    basis.name = Some((name, at))
                }
                ReverseDnsResult::Refuted { first, last } if !is_verified => {
                    basis.no_name = Some((first, last))
                }
                _ => return None,
            }
        }
        let is_known = !basis.lists.is_empty() || basis.name.is_some() || basis.no_name.is_some();
        is_known.then_some(basis)
    }
}

/// What reverse DNS says about the address.
fn explain_reverse_dns(lookup: ReverseDnsResult) -> ProofStatement {
    use ReverseDnsResult::*;

    let (id, message) = match lookup {
        Confirmed { name, at } => (
            "dns-confirmed",
            format!("{name} resolves to the address ({at})"),
        ),
        Refuted { first, last } => (
            "dns-refuted",
            format!("no name of the crawler in two answers ({first} and {last})"),
        ),
        RefutedOnce { at } => (
            "dns-one-answer",
            format!("no name of the crawler in one answer ({at}); a second one decides"),
        ),
        NoForward { name, at } => (
            "dns-no-forward",
            format!(
                "{name} has no address ({at}), and its operator documents none: that proves nothing"
            ),
        ),
        Failed { at } => (
            "dns-failed",
            format!("no answer at {at}; the next request after a minute asks again"),
        ),
        Unknown => (
            "dns-pending",
            "no answer yet, or it has expired; the next request from this address asks".to_owned(),
        ),
    };
    ProofStatement::new(id, format!("reverse DNS: {message}"))
}
