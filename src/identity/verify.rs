//! [`confirm`]: forward-confirmed reverse DNS of one address. It asks DNS for the names of the address. Each name that is
//! a host of a crawler has to lead back to the address.

use crate::dns::{Dns, DnsAnswer};
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// The most names of one address. The address of an honest crawler has one.
const MOST_NAMES: usize = 8;

/// What DNS said of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Confirmation {
    /// A definite answer: the names that are of a crawler and lead back to the address, and the time to live of the answer.
    Definite(Vec<String>, Duration),
    /// No definite answer, for this reason.
    Failed(String),
}

/// One question and its answer, for people.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Step {
    /// The question.
    pub asked: String,
    /// The answer.
    pub said: String,
    /// How long it took.
    pub milliseconds: u64,
}

impl Step {
    /// A question that was asked since `began`.
    pub fn new(asked: String, said: String, began: Instant) -> Step {
        Step { asked, said, milliseconds: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX) }
    }
}

/// Asks for the names of an address and for their addresses. `is_wanted` says which names are hosts of a crawler: no
/// other name is looked up, because the owner of an address chooses its names. `note` gets each step.
pub async fn confirm(
    dns: &Dns,
    address: IpAddr,
    is_wanted: &(dyn Fn(&str) -> bool + Send + Sync),
    note: &mut (dyn FnMut(Step) + Send),
) -> Confirmation {
    let began = Instant::now();
    let names = dns.names_of(address).await;
    note(Step::new(format!("reverse DNS of {address}"), said(&names), began));
    let (names, mut ttl) = match names {
        DnsAnswer::Records(names, ttl) => (names, ttl),
        DnsAnswer::Nothing(ttl) => return Confirmation::Definite(Vec::new(), ttl),
        DnsAnswer::Failed(error) => return Confirmation::Failed(error),
    };
    if names.len() > MOST_NAMES {
        return Confirmation::Failed(format!("the address has {} names", names.len()));
    }
    let (mut confirmed, mut failure) = (Vec::new(), None);
    for name in names.iter().map(|name| name.strip_suffix('.').unwrap_or(name)).filter(|name| is_wanted(name)) {
        let began = Instant::now();
        let addresses = dns.addresses_of(name, address).await;
        note(Step::new(format!("addresses of {name}"), said(&addresses), began));
        match addresses {
            DnsAnswer::Records(addresses, of_addresses) => {
                ttl = ttl.min(of_addresses);
                if addresses.contains(&address) {
                    confirmed.push(name.to_ascii_lowercase());
                }
            }
            DnsAnswer::Nothing(of_nothing) => ttl = ttl.min(of_nothing),
            DnsAnswer::Failed(error) => failure = Some(error),
        }
    }
    match failure {
        Some(error) if confirmed.is_empty() => Confirmation::Failed(error),
        _ => Confirmation::Definite(confirmed, ttl),
    }
}

fn said<T: ToString>(answer: &DnsAnswer<T>) -> String {
    match answer {
        DnsAnswer::Records(records, _) => records.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        DnsAnswer::Nothing(_) => "nothing".to_owned(),
        DnsAnswer::Failed(error) => format!("no answer: {error}"),
    }
}
