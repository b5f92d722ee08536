//! Verifies crawlers by forward-confirmed reverse DNS. [`confirm_address`] asks DNS for the names
//! of one address. A name that belongs to a crawler counts only if it resolves to the same address.
//! [`lookup_queue`] makes the queue of addresses to look up. [`start_lookups`] starts the thread
//! that looks them up, at most 16 at a time and twenty a second.

use super::names::{DnsQueue, ReverseDnsNames};
use super::{IdentityVerifier, RegistryProofMeans};
use crate::clock::Clock;
use crate::dns::{DnsAnswer, DnsResolver};
use crate::printable::join;
use crate::telemetry::Metrics;
use crate::threads::spawn;
use DnsAnswer::{Failed, NotFound, Records};
use std::fmt::Display;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{Receiver, channel};

/// The most names of one address. Those of real crawlers have one.
const MAX_NAMES: usize = 8;
/// More addresses are dropped until their next request.
const MAX_QUEUED: usize = 1_024;
const MAX_PARALLEL_LOOKUPS: usize = 16;
/// The pause after the start of each lookup.
const LOOKUP_INTERVAL: Duration = Duration::from_millis(50);

/// A definite answer of DNS about an address: the host names of crawlers, and the time to live.
/// Without a definite answer, the reason.
pub type DnsConfirmation = Result<(ReverseDnsNames, Duration), String>;

/// A query and its answer, for people.
#[derive(serde::Serialize)]
pub struct DnsQueryStep {
    /// The query.
    pub asked: String,
    /// The answer.
    pub said: String,
    /// The duration.
    pub milliseconds: u64,
}

impl DnsQueryStep {
    /// A query that began at `began`.
    pub fn new(asked: String, said: String, began: Instant) -> DnsQueryStep {
        DnsQueryStep {
            asked,
            said,
            milliseconds: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        }
    }
}

/// Asks DNS for the names of an address, and for the addresses of each name that is a host of a
/// crawler. Other names are not resolved, because the owner of an address chooses its names.
/// `on_step` gets each query. The result is `Failed` if the address has more than `MAX_NAMES` names,
/// or if a lookup failed and no other name is confirmed.
pub async fn confirm_address(
    dns: &DnsResolver,
    address: IpAddr,
    means: &RegistryProofMeans,
    on_step: &mut (dyn FnMut(DnsQueryStep) + Send),
) -> DnsConfirmation {
    let began = Instant::now();
    let names = dns.reverse_lookup(address).await;
    on_step(DnsQueryStep::new(
        format!("reverse DNS of {address}"),
        answer_text(&names),
        began,
    ));
    let (names, mut ttl) = match names {
        Records(names, ttl) => (names, ttl),
        NotFound(ttl) => return Ok((ReverseDnsNames::default(), ttl)),
        Failed(error) => return Err(error),
    };
    if names.len() > MAX_NAMES {
        return Err(format!("the address has {} names", names.len()));
    }
    let mut found = ReverseDnsNames::default();
    let mut failure = None;
    for name in names
        .iter()
        .map(|name| name.strip_suffix('.').unwrap_or(name))
        .filter(|name| means.is_host_of_any(name))
    {
        let began = Instant::now();
        let addresses = dns.lookup_addresses(name, address).await;
        on_step(DnsQueryStep::new(
            format!("addresses of {name}"),
            answer_text(&addresses),
            began,
        ));
        match addresses {
            Records(addresses, of_addresses) => {
                ttl = ttl.min(of_addresses);
                if addresses.contains(&address) {
                    found.confirmed.push(name.to_ascii_lowercase());
                }
            }
            NotFound(of_nothing) => {
                ttl = ttl.min(of_nothing);
                if means.may_lack_forward_record(name) {
                    found.without_forward.push(name.to_ascii_lowercase());
                }
            }
            Failed(error) => failure = Some(error),
        }
    }
    match failure {
        Some(error) if found.confirmed.is_empty() => Err(error),
        _ => Ok((found, ttl)),
    }
}

fn answer_text<T: Display>(answer: &DnsAnswer<T>) -> String {
    match answer {
        Records(records, _) => join(records, ", "),
        NotFound(_) => "nothing".to_owned(),
        Failed(error) => format!("no answer: {error}"),
    }
}

/// The queue of addresses, and its other end for [`start_lookups`].
pub fn lookup_queue() -> (DnsQueue, Receiver<IpAddr>) {
    let (sender, receiver) = channel(MAX_QUEUED);
    (
        Box::new(move |address| sender.try_send(address).is_ok()),
        receiver,
    )
}

/// Starts the thread that asks DNS about the addresses of the queue. It asks these name servers, or
/// those of the system if there are none, records the answers in the table of `proofs`, and counts
/// them. It ends when the queue is dropped, or DNS cannot be set up.
///
/// # Errors
/// The thread or its runtime cannot be started.
pub fn start_lookups(
    proofs: Arc<IdentityVerifier>,
    servers: Vec<SocketAddr>,
    mut queue: Receiver<IpAddr>,
    clock: Clock,
    metrics: Arc<Metrics>,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    spawn("reverse-dns", move || {
        runtime.block_on(async move {
            let dns = match DnsResolver::new(&servers) {
                Ok(dns) => Arc::new(dns),
                Err(error) => {
                    return tracing::error!(
                        "cannot ask DNS: {error}; reverse DNS verifies no crawler"
                    );
                }
            };
            let at_once = Arc::new(Semaphore::new(MAX_PARALLEL_LOOKUPS));
            while let Some(address) = queue.recv().await {
                let Ok(permit) = at_once.clone().acquire_owned().await else {
                    return;
                };
                let proofs = proofs.clone();
                let dns = dns.clone();
                let clock = clock.clone();
                let metrics = metrics.clone();
                tokio::spawn(async move {
                    let confirmation =
                        confirm_address(&dns, address, &proofs.means, &mut |_| ()).await;
                    let now = clock.moment().now;
                    let outcome = match confirmation {
                        Ok((names, ttl)) => {
                            proofs.names.record_answer(address, names, ttl, now);
                            "answered"
                        }
                        Err(_) => {
                            proofs.names.record_failure(address, now);
                            "failed"
                        }
                    };
                    metrics.proofs.lookups.with_label_values(&[outcome]).inc();
                    drop(permit);
                });
                tokio::time::sleep(LOOKUP_INTERVAL).await;
            }
        });
    })
    .map(drop)
}
