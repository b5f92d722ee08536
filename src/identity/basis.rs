//! [`Basis`]: everything that a finding rests on, for records that a third party can check. [`Proofs::basis`] collects it
//! from what is known at the moment.

use super::published::KnownList;
use super::{ListIndex, NamesSay, Proofs};
use crate::crawlers::Claim;
use crate::time::Timestamp;
use crate::verdict::{Identity, Proof};
use ipnet::IpNet;
use std::net::IpAddr;
use std::sync::Arc;

/// A published list that counted.
#[derive(Clone, Debug)]
pub struct ListBasis {
    /// Where it is published.
    pub url: String,
    /// The list.
    pub list: Arc<KnownList>,
    /// The network in it that has the address; `None` where the address is outside.
    pub network: Option<IpNet>,
}

/// What a finding rests on.
#[derive(Clone, Debug, Default)]
pub struct Basis {
    /// The lists: the one that has the address, or all, where none has it. The key directory of a signature.
    pub lists: Vec<ListBasis>,
    /// The name that the address has, which leads back to it, and when DNS said so.
    pub name: Option<(String, Timestamp)>,
    /// The first and the last answer of DNS without such a name.
    pub no_name: Option<(Timestamp, Timestamp)>,
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

impl Proofs {
    /// What a finding about a claim rests on, by what is known now. `None` where the networks of a policy decided, and where
    /// what is known now would not lead to the finding any more.
    pub fn basis(&self, claim: Claim, found: (Identity, Proof), address: IpAddr, now: Timestamp) -> Option<Basis> {
        let Claim::Known(crawler) = claim else { return None };
        let (means, (identity, proof)) = (self.means.get(crawler)?, found);
        let is_verified = identity == Identity::Verified;
        let mut basis = Basis::default();
        if proof == Proof::Signature {
            basis.lists.extend(self.list_basis(means.signer.as_ref()?.directory, address));
            return Some(basis);
        }
        if matches!(proof, Proof::List | Proof::ListAndReverseDns) {
            let lists = means.lists.iter().filter_map(|list| self.list_basis(*list, address));
            basis.lists = lists.filter(|list| list.network.is_some() == is_verified).collect();
            let needed = if is_verified { 1 } else { means.lists.len() };
            if basis.lists.len() < needed || needed == 0 {
                return None;
            }
        }
        if matches!(proof, Proof::ReverseDns | Proof::ListAndReverseDns) {
            match self.names.say(means, address, now) {
                NamesSay::Confirmed { name, at } if is_verified => basis.name = Some((name, at)),
                NamesSay::Refuted { first, last } if !is_verified => basis.no_name = Some((first, last)),
                _ => return None,
            }
        }
        matches!(proof, Proof::List | Proof::ReverseDns | Proof::ListAndReverseDns).then_some(basis)
    }

    fn list_basis(&self, list: ListIndex, address: IpAddr) -> Option<ListBasis> {
        let known = self.lists.get(list)?;
        Some(ListBasis { url: self.lists.url(list).to_owned(), network: known.table.network_of(address), list: known })
    }
}
