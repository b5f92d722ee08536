//! The thread that asks DNS about addresses of clients. [`queue`] makes the queue of addresses, [`start`] starts the
//! thread. At most 16 addresses are asked about at a time, and about twenty a second.

use super::Proofs;
use super::names::Queue;
use super::verify::{Confirmation, confirm};
use crate::clock::Clock;
use crate::dns::Dns;
use crate::telemetry::Metrics;
use crate::threads::spawn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{Receiver, channel};

/// The most addresses that wait. crawlgate asks about an address beyond that when it comes again.
const WAITING: usize = 1_024;
/// The most addresses that are asked about at a time.
const AT_ONCE: usize = 16;
/// The pause after the start of each: twenty a second at most.
const PACE: Duration = Duration::from_millis(50);

/// A queue, and its end for the thread.
pub fn queue() -> (Queue, Receiver<IpAddr>) {
    let (sender, receiver) = channel(WAITING);
    (Box::new(move |address| sender.try_send(address).is_ok()), receiver)
}

/// Starts the thread. It asks these name servers; without any, those of the system.
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
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let run = move || {
        runtime.block_on(async move {
            match Dns::new(&servers) {
                Ok(dns) => serve(proofs, Arc::new(dns), queue, clock, metrics).await,
                Err(error) => tracing::error!("cannot ask DNS: {error}; no crawler is proven by reverse DNS"),
            }
        });
    };
    spawn("reverse-dns", run).map(drop)
}

async fn serve(proofs: Arc<Proofs>, dns: Arc<Dns>, mut queue: Receiver<IpAddr>, clock: Clock, metrics: Arc<Metrics>) {
    let at_once = Arc::new(Semaphore::new(AT_ONCE));
    while let Some(address) = queue.recv().await {
        let Ok(permit) = at_once.clone().acquire_owned().await else { return };
        let (proofs, dns, clock, metrics) = (proofs.clone(), dns.clone(), clock.clone(), metrics.clone());
        tokio::spawn(async move {
            let is_wanted = |name: &str| proofs.means.is_host_of_any(name);
            let confirmation = confirm(&dns, address, &is_wanted, &mut |_| ()).await;
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
