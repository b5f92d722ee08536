//! Forward-confirmed reverse DNS. [`confirm`] asks DNS for the names of one address. Each name that
//! is a host of a crawler has to lead back to the address. [`queue`] makes the queue of addresses,
//! [`start`] starts the thread that asks about them: about at most 16 at a time, and about twenty a
//! second.

use super::names::{FoundNames, Queue};
use super::{KnownMeans, Proofs};
use crate::clock::Clock;
use crate::dns::{Dns, DnsAnswer};
use crate::telemetry::Metrics;
use crate::threads::spawn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{Receiver, channel};

/// The most names of one address. The address of an honest crawler has one.
const MOST_NAMES: usize = 8;
/// The most addresses that wait. crawlgate asks about an address beyond that when it comes again.
const WAITING: usize = 1_024;
/// The most addresses that are asked about at a time.
const AT_ONCE: usize = 16;
/// The pause after the start of each: twenty a second at most.
const PACE: Duration = Duration::from_millis(50);

/// What DNS said of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Confirmation {
    /// A definite answer: the names that are of a crawler, and the time to live of the answer.
    Definite(FoundNames, Duration),
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
        Step {
            asked,
            said,
            milliseconds: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        }
    }
}

/// Asks DNS for the names of an address, and for the addresses of each name. Only names that are
/// hosts of a crawler are looked up, because the owner of an address chooses its names. `note` gets
/// each step. The answer fails if the address has more than `MOST_NAMES` names, or if the look-up
/// of a name failed and no other name leads back.
pub async fn confirm(
    dns: &Dns,
    address: IpAddr,
    means: &KnownMeans,
    note: &mut (dyn FnMut(Step) + Send),
) -> Confirmation {
    let began = Instant::now();
    let names = dns.names_of(address).await;
    note(Step::new(
        format!("reverse DNS of {address}"),
        said(&names),
        began,
    ));
    let (names, mut ttl) = match names {
        DnsAnswer::Records(names, ttl) => (names, ttl),
        DnsAnswer::Nothing(ttl) => return Confirmation::Definite(FoundNames::default(), ttl),
        DnsAnswer::Failed(error) => return Confirmation::Failed(error),
    };
    if names.len() > MOST_NAMES {
        return Confirmation::Failed(format!("the address has {} names", names.len()));
    }
    let mut found = FoundNames::default();
    let mut failure = None;
    for name in names
        .iter()
        .map(|name| name.strip_suffix('.').unwrap_or(name))
        .filter(|name| means.is_host_of_any(name))
    {
        let began = Instant::now();
        let addresses = dns.addresses_of(name, address).await;
        note(Step::new(
            format!("addresses of {name}"),
            said(&addresses),
            began,
        ));
        match addresses {
            DnsAnswer::Records(addresses, of_addresses) => {
                ttl = ttl.min(of_addresses);
                if addresses.contains(&address) {
                    found.confirmed.push(name.to_ascii_lowercase());
                }
            }
            DnsAnswer::Nothing(of_nothing) => {
                ttl = ttl.min(of_nothing);
                if means.may_lack_forward(name) {
                    found.without_forward.push(name.to_ascii_lowercase());
                }
            }
            DnsAnswer::Failed(error) => failure = Some(error),
        }
    }
    match failure {
        Some(error) if found.confirmed.is_empty() => Confirmation::Failed(error),
        _ => Confirmation::Definite(found, ttl),
    }
}

/// An answer in words: its records, `nothing`, or the error.
fn said<T: ToString>(answer: &DnsAnswer<T>) -> String {
    match answer {
        DnsAnswer::Records(records, _) => records
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", "),
        DnsAnswer::Nothing(_) => "nothing".to_owned(),
        DnsAnswer::Failed(error) => format!("no answer: {error}"),
    }
}

/// A queue of at most `WAITING` addresses, and its other end for the thread that asks DNS.
pub fn queue() -> (Queue, Receiver<IpAddr>) {
    let (sender, receiver) = channel(WAITING);
    (
        Box::new(move |address| sender.try_send(address).is_ok()),
        receiver,
    )
}

/// Starts the thread that asks DNS about the addresses of the queue: these name servers, without
/// any those of the system. It ends when the queue is dropped. If DNS cannot be set up, the thread
/// logs that and ends.
///
/// # Errors
/// The thread or its runtime cannot be started.
pub fn start(
    proofs: Arc<Proofs>,
    servers: Vec<SocketAddr>,
    queue: Receiver<IpAddr>,
    clock: Clock,
    metrics: Arc<Metrics>,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    spawn("reverse-dns", move || {
        runtime.block_on(async move {
            match Dns::new(&servers) {
                Ok(dns) => serve(proofs, Arc::new(dns), queue, clock, metrics).await,
                Err(error) => {
                    tracing::error!("cannot ask DNS: {error}; no crawler is proven by reverse DNS")
                }
            }
        });
    })
    .map(drop)
}

/// Asks about each address of the queue, at most `AT_ONCE` at a time and twenty a second, records
/// the answer in the table of `proofs`, and counts it. Returns when the queue is dropped.
async fn serve(
    proofs: Arc<Proofs>,
    dns: Arc<Dns>,
    mut queue: Receiver<IpAddr>,
    clock: Clock,
    metrics: Arc<Metrics>,
) {
    let at_once = Arc::new(Semaphore::new(AT_ONCE));
    while let Some(address) = queue.recv().await {
        let Ok(permit) = at_once.clone().acquire_owned().await else {
            return;
        };
        let proofs = proofs.clone();
        let dns = dns.clone();
        let clock = clock.clone();
        let metrics = metrics.clone();
        tokio::spawn(async move {
            let confirmation = confirm(&dns, address, &proofs.means, &mut |_| ()).await;
            let now = clock.moment().now;
            let outcome = match confirmation {
                Confirmation::Definite(names, ttl) => {
                    proofs.names.answered(address, names, ttl, now);
                    "answered"
                }
                Confirmation::Failed(_) => {
                    proofs.names.failed(address, now);
                    "failed"
                }
            };
            metrics.proofs.lookups.with_label_values(&[outcome]).inc();
            drop(permit);
        });
        tokio::time::sleep(PACE).await;
    }
}
