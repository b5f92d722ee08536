//! [`AcmeScheduler`] starts the attempts to get and to renew TLS certificates. Its thread checks
//! every second which hosts need a certificate. At most [`MAX_ATTEMPTS`] attempts run at once; a
//! host whose last attempt failed comes after the others. No attempt runs during an upgrade (while
//! a new process takes over).

use super::attempt::{AcmeContext, AttemptOutcome, FinishedAttempt, OrderAttempt};
use super::authority::AuthorityClient;
use super::certificate::IssuedCertificate;
use super::failure::OrderError;
use super::issued::IssuedCertificates;
use super::progress::HostProgress;
use super::reach::ChallengeEndpoints;
use super::renewal;
use super::storage::AcmeStorage;
use crate::clock::Clock;
use crate::edge::AcmeCertificates;
use crate::files::absolute_path;
use crate::locks::lock;
use crate::settings::AcmeSettings;
use crate::telemetry::{AcmeHostStatus, CertificateStatus, FailedOrder, Metrics, OrderFailureKind};
use crate::threads::spawn;
use crate::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{self, JoinSet};

const CHECK_INTERVAL: Duration = Duration::from_secs(1);
const MAX_ATTEMPTS: usize = 8;
/// How long a hand-over waits until all attempts are cancelled. A slow disk can delay them.
const PAUSE_TIMEOUT: Duration = Duration::from_secs(2);
const SECONDS_PER_DAY: i64 = 86_400;

/// Gets and renews the certificates of the hosts that the settings or policies name.
pub struct AcmeScheduler {
    shared: Arc<AcmeContext>,
    hosts: Mutex<BTreeMap<String, HostState>>,
    metrics: Arc<Metrics>,
    is_retry_requested: AtomicBool,
    /// Commands to the thread; `None` before it is started.
    thread: Mutex<Option<UnboundedSender<SchedulerCommand>>>,
}

/// A command to the thread.
enum SchedulerCommand {
    /// Cancel all attempts, start no others, and confirm it.
    Pause(Sender<()>),
    /// Start attempts again.
    Resume,
}

/// A host that should have a certificate.
struct HostState {
    progress: HostProgress,
    /// Its attempt, while one runs.
    attempt: Option<task::Id>,
}

impl AcmeScheduler {
    /// Takes the stored certificates of this authority into use. Sends no request and writes nothing.
    /// `state` is the state directory.
    pub fn open(
        settings: &AcmeSettings,
        reachable: ChallengeEndpoints,
        state: &Path,
        issued: Arc<IssuedCertificates>,
        clock: Clock,
        metrics: Arc<Metrics>,
    ) -> Arc<AcmeScheduler> {
        let storage = AcmeStorage::new(state, &settings.directory);
        for certificate in storage.read_certificates() {
            issued.insert(certificate);
        }
        Arc::new(AcmeScheduler {
            shared: Arc::new(AcmeContext {
                settings: settings.clone(),
                storage,
                issued,
                account_lock: tokio::sync::Mutex::default(),
                clock,
                reachable,
            }),
            hosts: Mutex::default(),
            metrics,
            is_retry_requested: AtomicBool::new(false),
            thread: Mutex::default(),
        })
    }

    /// Starts the thread. `wanted` returns the hosts that should have a certificate; `None` while it is
    /// too early.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(
        self: &Arc<AcmeScheduler>,
        wanted: impl Fn() -> Option<BTreeSet<String>> + Send + 'static,
    ) -> io::Result<()> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(MAX_ATTEMPTS)
            .build()?;
        let (sender, commands) = unbounded_channel();
        let acme = self.clone();
        spawn("acme", move || {
            runtime.block_on(acme.run(wanted, commands));
        })?;
        *lock(&self.thread) = Some(sender);
        Ok(())
    }

    async fn run(
        &self,
        wanted: impl Fn() -> Option<BTreeSet<String>>,
        mut commands: UnboundedReceiver<SchedulerCommand>,
    ) {
        let mut attempts = JoinSet::new();
        let mut is_paused = false;
        loop {
            if let Some(wanted) = wanted().filter(|_| !is_paused) {
                self.start_attempts(wanted, &mut attempts);
            }
            tokio::select! {
                Some(command) = commands.recv() => is_paused = self.run_command(command, &mut attempts).await,
                Some(ended) = attempts.join_next() => self.record_finished(ended),
                () = tokio::time::sleep(CHECK_INTERVAL) => {}
            }
        }
    }

    /// Cancels all attempts, because another process continues the stored orders. A challenge that the
    /// authority checks before that process answers it fails, and the host gets another order. Waits
    /// two seconds at most.
    pub fn pause(&self) {
        let (done, is_done) = channel();
        if self.send_command(SchedulerCommand::Pause(done))
            && is_done.recv_timeout(PAUSE_TIMEOUT).is_err()
        {
            tracing::warn!("this process orders certificates for a moment longer");
        }
    }

    /// Undoes [`AcmeScheduler::pause`].
    pub fn resume(&self) {
        self.send_command(SchedulerCommand::Resume);
    }

    /// False if the thread does not run.
    fn send_command(&self, command: SchedulerCommand) -> bool {
        let thread = lock(&self.thread);
        thread
            .as_ref()
            .is_some_and(|thread| thread.send(command).is_ok())
    }

    /// Runs a command, and returns whether attempts are paused from now on.
    async fn run_command(
        &self,
        command: SchedulerCommand,
        attempts: &mut JoinSet<FinishedAttempt>,
    ) -> bool {
        let SchedulerCommand::Pause(done) = command else {
            return false;
        };
        attempts.shutdown().await;
        // Their progress is read from the files again.
        lock(&self.hosts).clear();
        // The caller may have timed out.
        let _ = done.send(());
        true
    }

    /// Makes the next check end all pauses, except after a rate limit.
    pub fn retry_soon(&self) {
        self.is_retry_requested.store(true, Relaxed);
    }

    fn now(&self) -> Timestamp {
        self.shared.clock.moment().now
    }

    /// Starts an attempt for each due host, up to `MAX_ATTEMPTS` at once: hosts without a failure
    /// first, then by the end of their pause.
    fn start_attempts(&self, wanted: BTreeSet<String>, attempts: &mut JoinSet<FinishedAttempt>) {
        self.update_hosts(&wanted);
        let now = self.now();
        let mut hosts = lock(&self.hosts);
        if self.is_retry_requested.swap(false, Relaxed) {
            for host in hosts.values_mut() {
                if let Some(failure) = &mut host.progress.failure
                    && failure.kind != OrderFailureKind::Limited
                {
                    failure.next = now;
                }
            }
        }
        let mut due: Vec<(&String, &mut HostState)> = hosts
            .iter_mut()
            .filter(|(name, host)| host.attempt.is_none() && self.is_due(name, host, now))
            .collect();
        due.sort_by_key(|(_, host)| host.progress.failure.as_ref().map(|failure| failure.next));
        let free = MAX_ATTEMPTS.saturating_sub(attempts.len());
        for (name, host) in due.into_iter().take(free) {
            if !self.shared.issued.has_certificate(name) {
                tracing::info!(
                    host = name,
                    authority = self.shared.settings.directory,
                    "ordering a certificate"
                );
            }
            let attempt = OrderAttempt {
                shared: self.shared.clone(),
                host: name.clone(),
                progress: host.progress.clone(),
                http: AuthorityClient::new(),
            };
            host.attempt = Some(attempts.spawn(attempt.run()).id());
        }
    }

    /// Adds wanted hosts with their stored progress, and removes other ones without a running attempt.
    /// Logs hosts that begin to wait for a first certificate, and removed hosts whose certificate
    /// stays in use.
    fn update_hosts(&self, wanted: &BTreeSet<String>) {
        let missing = self.shared.issued.set_expected_hosts(wanted);
        if !missing.is_empty() {
            tracing::warn!(
                hosts = ?missing,
                "no certificate yet: https fails for these hosts until the authority issues one; until then http is \
                 served without a redirect"
            );
        }
        let mut hosts = lock(&self.hosts);
        for host in wanted {
            hosts.entry(host.clone()).or_insert_with(|| HostState {
                progress: self.shared.storage.read_progress(host),
                attempt: None,
            });
        }
        hosts.retain(|name, host| {
            let stays = host.attempt.is_some() || wanted.contains(name);
            if !stays && let Some(certificate) = self.shared.issued.get(name) {
                let until = certificate.not_after.to_http_date();
                tracing::warn!(
                    host = name,
                    "this host needs no certificate any more; the current one stays in use until {until}"
                );
            }
            stays
        });
    }

    /// Whether to start an attempt: the host is not paused, and has no certificate, a due renewal, or
    /// an outdated suggestion.
    fn is_due(&self, name: &str, host: &HostState, now: Timestamp) -> bool {
        if host.progress.is_paused(now) {
            return false;
        }
        let Some(certificate) = self.shared.issued.get(name) else {
            return true;
        };
        let suggestion = host.progress.suggestion.as_ref();
        now >= renewal::renewal_time(&certificate, suggestion)
            || renewal::should_ask_suggestion(&certificate, suggestion, now)
    }

    /// Logs and counts a finished attempt, and keeps its progress. `NotDue` is neither logged nor
    /// counted.
    fn record_finished(&self, ended: Result<FinishedAttempt, task::JoinError>) {
        let FinishedAttempt {
            host,
            progress,
            outcome,
        } = match ended {
            Ok(ended) => ended,
            Err(panicked) => return self.record_panic(panicked.id()),
        };
        match &outcome {
            Ok(AttemptOutcome::Obtained) => {
                let certificate = self.shared.issued.get(&host);
                let until = certificate.map(|certificate| certificate.not_after.to_http_date());
                tracing::info!(host, until, "the certificate is stored and in use");
                self.metrics.count_certificate_order("obtained");
            }
            Err(error) => {
                let failure = progress.failure.as_ref();
                let next = failure.map(|failure| failure.next.to_string());
                tracing::warn!(host, next, "no certificate was issued: {error}");
                self.metrics.count_certificate_order(error.kind().name());
            }
            Ok(AttemptOutcome::NotDue) => {}
        }
        if let Some(known) = lock(&self.hosts).get_mut(&host) {
            known.progress = progress;
            known.attempt = None;
        }
    }

    /// Records and counts the failure of the host whose attempt panicked.
    fn record_panic(&self, attempt: task::Id) {
        let now = self.now();
        let mut hosts = lock(&self.hosts);
        if let Some(host) = hosts
            .values_mut()
            .find(|host| host.attempt == Some(attempt))
        {
            host.progress
                .record_failure(&OrderError::Panicked, None, now);
            host.attempt = None;
            self.metrics
                .count_certificate_order(OrderError::Panicked.kind().name());
        }
    }

    /// The status of each host that should have a certificate, for operators.
    pub fn order_statuses(&self) -> Vec<AcmeHostStatus> {
        let now = self.now();
        lock(&self.hosts)
            .iter()
            .map(|(name, host)| self.order_status(name, host, now))
            .collect()
    }

    /// The status of each certificate in use, for operators.
    pub fn certificate_statuses(&self, now: Timestamp) -> Vec<CertificateStatus> {
        self.shared
            .issued
            .all()
            .iter()
            .map(|certificate| certificate_status(certificate, now))
            .collect()
    }

    /// A failed host has a problem if it has no certificate, or one that has expired or whose renewal
    /// is late by a thirtieth of its lifetime.
    fn order_status(&self, name: &str, host: &HostState, now: Timestamp) -> AcmeHostStatus {
        let certificate = self.shared.issued.get(name);
        let renewal = certificate
            .as_ref()
            .map(|found| renewal::renewal_time(found, host.progress.suggestion.as_ref()));
        let failed = host.progress.failure.clone();
        let problem = failed.as_ref().and_then(|failed| {
            let what = match certificate.as_ref().zip(renewal) {
                Some((certificate, renewal)) => {
                    let late = renewal.plus(certificate.lifetime() / 30);
                    if now <= late.min(certificate.not_after) {
                        return None;
                    }
                    let until = certificate.not_after.to_http_date();
                    format!("the certificate of {name} was not renewed and expires on {until}")
                }
                None => format!("{name} has no certificate, so https fails"),
            };
            Some(problem_message(failed, &what))
        });
        AcmeHostStatus {
            host: name.to_owned(),
            not_after: certificate.map(|certificate| certificate.not_after),
            renewal,
            failed,
            problem,
        }
    }
}

/// `what` is wrong, why and how often getting a certificate failed, when crawlgate tries again, and
/// what to do.
fn problem_message(failed: &FailedOrder, what: &str) -> String {
    let FailedOrder {
        reason,
        times,
        next,
        ..
    } = failed;
    let times = if *times == 1 {
        "once".to_owned()
    } else {
        format!("{times} times in a row")
    };
    format!(
        "{what}. The order failed {times}: {reason}. crawlgate tries again at {next}, or on SIGHUP. Fix this cause, \
         or use your own files in \"certificates\""
    )
}

fn certificate_status(certificate: &IssuedCertificate, now: Timestamp) -> CertificateStatus {
    CertificateStatus {
        names: vec![certificate.host.clone()],
        file: absolute_path(&certificate.file).display().to_string(),
        not_after: certificate.not_after,
        days_left: certificate
            .not_after
            .0
            .saturating_sub(now.0)
            .div_euclid(SECONDS_PER_DAY),
        renewed: certificate.obtained,
        refused: None,
        problems: Vec::new(),
    }
}
