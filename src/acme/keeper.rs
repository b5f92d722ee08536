//! [`Acme`]: whose turn it is. A thread of its own looks once a second which hosts are to have a certificate, and gives some of
//! those that are due their turn, those that never failed first.

use super::failure::FailureKind;
use super::issued::Issued;
use super::progress::Progress;
use super::reach::Ports;
use super::renewal;
use super::storage::Storage;
use super::turn::{Ended, Outcome, Shared, Turn};
use crate::clock::Clock;
use crate::settings::AcmeSettings;
use crate::telemetry::Metrics;
use crate::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// How often the thread looks.
const TICK: Duration = Duration::from_secs(1);
/// So many hosts have their turn at once.
const MOST_TURNS: usize = 8;

/// Gets certificates, and keeps them.
pub struct Acme {
    pub(super) shared: Arc<Shared>,
    pub(super) hosts: Mutex<BTreeMap<String, Host>>,
    metrics: Arc<Metrics>,
    is_hurried: AtomicBool,
}

/// A host that is to have a certificate.
pub(super) struct Host {
    pub(super) progress: Progress,
    pub(super) is_running: bool,
}

/// The running thread. It ends when this is dropped; orders that run go on at the next start.
pub struct AcmeThread {
    _alive: oneshot::Sender<()>,
}

impl Acme {
    /// Takes the stored certificates of this authority into use. Nothing is asked or written yet.
    pub fn open(
        (settings, ports): (&AcmeSettings, Ports),
        state: &Path,
        has_clear_text: bool,
        issued: Arc<Issued>,
        clock: Clock,
        metrics: Arc<Metrics>,
    ) -> Arc<Acme> {
        let storage = Storage::new(state, &settings.directory);
        storage.certificates().into_iter().for_each(|certificate| issued.insert(certificate));
        let settings = settings.clone();
        let shared = Shared {
            settings,
            storage,
            issued,
            accounts: super::account::Accounts::default(),
            clock,
            ports,
            has_clear_text,
        };
        let (shared, is_hurried) = (Arc::new(shared), AtomicBool::new(false));
        Arc::new(Acme { shared, hosts: Mutex::default(), metrics, is_hurried })
    }

    /// Gets certificates from now on for the hosts that `wanted` names, each time it is asked. `None` says that it is too early.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(
        self: &Arc<Acme>,
        wanted: impl Fn() -> Option<BTreeSet<String>> + Send + 'static,
    ) -> io::Result<AcmeThread> {
        let runtime = Builder::new_current_thread().enable_all().max_blocking_threads(MOST_TURNS).build()?;
        let (alive, mut ended) = oneshot::channel();
        let acme = self.clone();
        let work = move || {
            runtime.block_on(async {
                let mut turns = JoinSet::new();
                loop {
                    if let Some(wanted) = wanted() {
                        acme.give_turns(wanted, &mut turns);
                    }
                    tokio::select! {
                        _ = &mut ended => return,
                        Some(ended) = turns.join_next() => acme.note(ended),
                        () = tokio::time::sleep(TICK) => {}
                    }
                }
            });
            // A request to an authority that does not answer must not keep the process.
            runtime.shutdown_background();
        };
        std::thread::Builder::new().name("acme".into()).spawn(work)?;
        Ok(AcmeThread { _alive: alive })
    }

    /// Ends the pauses after failures, but for those that the authority wants.
    pub fn hurry(&self) {
        self.is_hurried.store(true, Ordering::Relaxed);
    }

    pub(super) fn now(&self) -> Timestamp {
        Timestamp::from(self.shared.clock.now())
    }

    pub(super) fn hosts(&self) -> MutexGuard<'_, BTreeMap<String, Host>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give_turns(&self, wanted: BTreeSet<String>, turns: &mut JoinSet<Ended>) {
        self.expect(&wanted);
        let now = self.now();
        let mut hosts = self.hosts();
        if self.is_hurried.swap(false, Ordering::Relaxed) {
            let failures = hosts.values_mut().filter_map(|host| host.progress.failure.as_mut());
            failures.filter(|failure| failure.kind != FailureKind::Limited).for_each(|failure| failure.next = now);
        }
        let mut due: Vec<(&String, &mut Host)> =
            hosts.iter_mut().filter(|(name, host)| !host.is_running && self.is_due(name, host, now)).collect();
        // A host that fails must not keep another one waiting.
        due.sort_by_key(|(_, host)| host.progress.failure.as_ref().map(|failure| failure.next));
        for (name, host) in due.into_iter().take(MOST_TURNS.saturating_sub(turns.len())) {
            host.is_running = true;
            let has_certificate = self.shared.issued.has(name);
            if !has_certificate {
                tracing::info!(host = name, authority = self.shared.settings.directory, "getting a certificate");
            }
            turns.spawn(Turn::new(self.shared.clone(), name.clone(), host.progress.clone()).take());
        }
    }

    /// Notices hosts that came and went.
    fn expect(&self, wanted: &BTreeSet<String>) {
        let missing = self.shared.issued.expect(wanted);
        if !missing.is_empty() {
            tracing::warn!(
                hosts = ?missing,
                "no certificate yet: https fails for these hosts until the authority issued one; http is served meanwhile, \
                 without a redirect"
            );
        }
        let mut hosts = self.hosts();
        for host in wanted {
            if !hosts.contains_key(host) {
                let progress = self.shared.storage.progress(host);
                hosts.insert(host.clone(), Host { progress, is_running: false });
            }
        }
        hosts.retain(|name, host| {
            let stays = host.is_running || wanted.contains(name);
            if !stays && let Some(certificate) = self.shared.issued.get(name) {
                let until = certificate.not_after.to_http_date();
                tracing::warn!(
                    host = name,
                    "no certificate is wanted for this host any more; the present one stays in use until {until}"
                );
            }
            stays
        });
    }

    fn is_due(&self, name: &str, host: &Host, now: Timestamp) -> bool {
        if host.progress.is_paused(now) {
            return false;
        }
        let Some(certificate) = self.shared.issued.get(name) else { return true };
        let suggestion = host.progress.suggestion.as_ref();
        now >= renewal::due(&certificate, suggestion) || renewal::is_to_be_asked(&certificate, suggestion, now)
    }

    fn note(&self, ended: Result<Ended, tokio::task::JoinError>) {
        // A turn that panicked: its host has it again, since its end is not known.
        let Ok(Ended { host, progress, outcome }) = ended else { return };
        match &outcome {
            Outcome::Obtained => {
                let until = self.shared.issued.get(&host).map(|certificate| certificate.not_after.to_http_date());
                tracing::info!(host, until, "the certificate is stored and in use");
                self.metrics.certificate_ordered("obtained");
            }
            Outcome::Failed(error) => {
                let next = progress.failure.as_ref().map(|failure| failure.next.to_string());
                tracing::warn!(host, next, "no certificate: {error}");
                self.metrics.certificate_ordered(error.kind().name());
            }
            Outcome::Asked => {}
        }
        if let Some(known) = self.hosts().get_mut(&host) {
            (known.progress, known.is_running) = (progress, false);
        }
    }
}
