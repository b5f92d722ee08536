//! [`Acme`] starts the attempts to get and to renew certificates. Its thread checks once a second
//! which hosts need one. At most [`MOST_ATTEMPTS`] attempts run at once; hosts without a failure
//! come first. No attempt runs while another process takes over in an upgrade.
//!
//! For operators, [`Acme::orders`] returns the status of each host that is to have a certificate,
//! and [`Acme::certificates`] returns the status of each certificate in use.

use super::attempt::{Attempt, Attempted, EndedAttempt, Shared};
use super::certificate::IssuedCertificate;
use super::failure::OrderError;
use super::issued::{Issued, PassedQuestions};
use super::progress::Progress;
use super::reach::Reachable;
use super::renewal;
use super::storage::Storage;
use crate::clock::Clock;
use crate::edge::OrderedCertificates;
use crate::locks::lock;
use crate::settings::AcmeSettings;
use crate::telemetry::{CertificateStatus, FailedOrder, FailureKind, Metrics, OrderStatus};
use crate::threads::spawn;
use crate::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{self, JoinSet};

/// How often the thread checks the hosts.
const TICK: Duration = Duration::from_secs(1);
/// The most attempts that run at once.
const MOST_ATTEMPTS: usize = 8;
/// How long a hand-over waits until all attempts are broken off. A slow disk can delay them.
const HOLDING: Duration = Duration::from_secs(2);
/// Seconds.
const DAY: i64 = 86_400;

pub struct Acme {
    shared: Arc<Shared>,
    hosts: Mutex<BTreeMap<String, Host>>,
    metrics: Arc<Metrics>,
    is_hurried: AtomicBool,
    /// Commands to the thread; `None` before it is started.
    thread: Mutex<Option<UnboundedSender<Command>>>,
}

enum Command {
    /// Break all attempts off, begin no other one, and confirm it.
    Hold(Sender<()>),
    /// Begin attempts again.
    GoOn,
}

/// A host that is to have a certificate.
struct Host {
    progress: Progress,
    /// Its attempt, while one runs.
    attempt: Option<task::Id>,
}

impl Acme {
    /// Makes an `Acme` that is not started, and takes the stored certificates of this authority
    /// into use. Sends no request and writes nothing. `state` is the state directory;
    /// `has_clear_text`: whether a listener speaks clear text, so that the http challenge can be
    /// answered.
    pub fn open(
        settings: &AcmeSettings,
        reachable: Reachable,
        state: &Path,
        issued: Arc<Issued>,
        clock: Clock,
        metrics: Arc<Metrics>,
    ) -> Arc<Acme> {
        let storage = Storage::new(state, &settings.directory);
        for certificate in storage.certificates() {
            issued.insert(certificate);
        }
        Arc::new(Acme {
            shared: Arc::new(Shared {
                settings: settings.clone(),
                storage,
                issued,
                opening: tokio::sync::Mutex::default(),
                clock,
                reachable,
            }),
            hosts: Mutex::default(),
            metrics,
            is_hurried: AtomicBool::new(false),
            thread: Mutex::default(),
        })
    }

    /// Starts the thread. It calls `wanted` at each check for the hosts that are to have a
    /// certificate; `None` says that it is too early.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(
        self: &Arc<Acme>,
        wanted: impl Fn() -> Option<BTreeSet<String>> + Send + 'static,
    ) -> io::Result<()> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(MOST_ATTEMPTS)
            .build()?;
        let (tell, commands) = unbounded_channel();
        let acme = self.clone();
        spawn("acme", move || {
            runtime.block_on(acme.run(wanted, commands));
        })?;
        *lock(&self.thread) = Some(tell);
        Ok(())
    }

    async fn run(
        &self,
        wanted: impl Fn() -> Option<BTreeSet<String>>,
        mut commands: UnboundedReceiver<Command>,
    ) {
        let mut attempts = JoinSet::new();
        let mut is_held = false;
        loop {
            if let Some(wanted) = wanted().filter(|_| !is_held) {
                self.begin_attempts(wanted, &mut attempts);
            }
            tokio::select! {
                Some(command) = commands.recv() => is_held = self.obey(command, &mut attempts).await,
                Some(ended) = attempts.join_next() => self.note(ended),
                () = tokio::time::sleep(TICK) => {}
            }
        }
    }

    /// Breaks all attempts off, because another process goes on with the stored orders, and returns
    /// the answers to the open challenges. Both processes answer them: the authority may reach
    /// either. Waits two seconds at most; then the attempts may still go on for a moment.
    pub fn hand_over(&self) -> PassedQuestions {
        let (done, is_done) = channel();
        if self.tell(Command::Hold(done)) && is_done.recv_timeout(HOLDING).is_err() {
            tracing::warn!("orders of certificates go on for a moment in this process as well");
        }
        self.shared.issued.pass()
    }

    /// Undoes [`Acme::hand_over`].
    pub fn take_back(&self) {
        self.tell(Command::GoOn);
    }

    /// Sends a command to the thread. Returns whether there is one to take it.
    fn tell(&self, command: Command) -> bool {
        let thread = lock(&self.thread);
        thread
            .as_ref()
            .is_some_and(|thread| thread.send(command).is_ok())
    }

    /// Obeys a command and returns whether attempts are held from now on. `Hold` breaks all
    /// attempts off, keeps the answers to their challenges, forgets the hosts, and confirms.
    async fn obey(&self, command: Command, attempts: &mut JoinSet<EndedAttempt>) -> bool {
        let Command::Hold(done) = command else {
            return false;
        };
        let open = self.shared.issued.pass();
        attempts.shutdown().await;
        // An attempt that is broken off takes its answers with it; these put them back.
        self.shared.issued.answer_passed(open);
        // What their attempts have stored is read again when they have another one.
        self.hosts().clear();
        // A caller that waits no more has said so.
        let _ = done.send(());
        true
    }

    /// Has the next check end the pauses after failures, but for those that the authority wants
    /// (`Limited`).
    pub fn hurry(&self) {
        self.is_hurried.store(true, Ordering::Relaxed);
    }

    fn now(&self) -> Timestamp {
        self.shared.clock.moment().now
    }

    fn hosts(&self) -> MutexGuard<'_, BTreeMap<String, Host>> {
        lock(&self.hosts)
    }

    /// Begins an attempt for each wanted host that is due and has none, up to `MOST_ATTEMPTS`
    /// running ones: hosts without a failure first, then by the end of their pause. Ends pauses
    /// before if [`Acme::hurry`] was called.
    fn begin_attempts(&self, wanted: BTreeSet<String>, attempts: &mut JoinSet<EndedAttempt>) {
        self.expect(&wanted);
        let now = self.now();
        let mut hosts = self.hosts();
        if self.is_hurried.swap(false, Ordering::Relaxed) {
            for host in hosts.values_mut() {
                if let Some(failure) = &mut host.progress.failure
                    && failure.kind != FailureKind::Limited
                {
                    failure.next = now;
                }
            }
        }
        let mut due: Vec<(&String, &mut Host)> = hosts
            .iter_mut()
            .filter(|(name, host)| host.attempt.is_none() && self.is_due(name, host, now))
            .collect();
        // A host that fails must not keep another one waiting.
        due.sort_by_key(|(_, host)| host.progress.failure.as_ref().map(|failure| failure.next));
        let free = MOST_ATTEMPTS.saturating_sub(attempts.len());
        for (name, host) in due.into_iter().take(free) {
            if !self.shared.issued.has(name) {
                tracing::info!(
                    host = name,
                    authority = self.shared.settings.directory,
                    "getting a certificate"
                );
            }
            let attempt = Attempt::new(self.shared.clone(), name.clone(), host.progress.clone());
            host.attempt = Some(attempts.spawn(attempt.run()).id());
        }
    }

    /// Brings the table of hosts up to date: adds wanted hosts with their stored progress, and
    /// removes those that are no longer wanted and have no running attempt. Logs the hosts that
    /// begin to wait for a first certificate, and those removed whose certificate stays in use.
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
                hosts.insert(
                    host.clone(),
                    Host {
                        progress,
                        attempt: None,
                    },
                );
            }
        }
        hosts.retain(|name, host| {
            let stays = host.attempt.is_some() || wanted.contains(name);
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

    /// Whether an attempt is to begin for a host: it is not paused, and it has no certificate, its
    /// renewal is due, or it is time to ask for a suggestion.
    fn is_due(&self, name: &str, host: &Host, now: Timestamp) -> bool {
        if host.progress.is_paused(now) {
            return false;
        }
        let Some(certificate) = self.shared.issued.get(name) else {
            return true;
        };
        let suggestion = host.progress.suggestion.as_ref();
        now >= renewal::due(&certificate, suggestion)
            || renewal::is_to_be_asked(&certificate, suggestion, now)
    }

    /// Logs and counts the end of an attempt, and keeps its progress in the table of hosts. An
    /// attempt without a due certificate is neither logged nor counted.
    fn note(&self, ended: Result<EndedAttempt, task::JoinError>) {
        let EndedAttempt {
            host,
            progress,
            outcome,
        } = match ended {
            Ok(ended) => ended,
            Err(broken) => return self.note_broken(broken.id()),
        };
        match &outcome {
            Ok(Attempted::Obtained) => {
                let until = self
                    .shared
                    .issued
                    .get(&host)
                    .map(|certificate| certificate.not_after.to_http_date());
                tracing::info!(host, until, "the certificate is stored and in use");
                self.metrics.certificate_ordered("obtained");
            }
            Err(error) => {
                let next = progress
                    .failure
                    .as_ref()
                    .map(|failure| failure.next.to_string());
                tracing::warn!(host, next, "no certificate: {error}");
                self.metrics.certificate_ordered(error.kind().name());
            }
            Ok(Attempted::Asked) => {}
        }
        if let Some(known) = self.hosts().get_mut(&host) {
            known.progress = progress;
            known.attempt = None;
        }
    }

    /// Records the failure `Broken` for the host whose attempt panicked, and counts it. The log has
    /// the panic already.
    fn note_broken(&self, attempt: task::Id) {
        let now = self.now();
        let mut hosts = self.hosts();
        if let Some(host) = hosts
            .values_mut()
            .find(|host| host.attempt == Some(attempt))
        {
            host.progress.fail(&OrderError::Broken, None, now);
            host.attempt = None;
            self.metrics
                .certificate_ordered(OrderError::Broken.kind().name());
        }
    }

    /// The status of each host that is to have a certificate.
    pub fn orders(&self) -> Vec<OrderStatus> {
        let now = self.now();
        self.hosts()
            .iter()
            .map(|(name, host)| self.order(name, host, now))
            .collect()
    }

    /// The status of each certificate of the authority in use.
    pub fn certificates(&self, now: Timestamp) -> Vec<CertificateStatus> {
        self.shared
            .issued
            .all()
            .iter()
            .map(|certificate| status(certificate, now))
            .collect()
    }

    /// The status of a host. It has a problem if the last attempt failed and the host has no
    /// certificate, or one that has expired or whose renewal is late by a thirtieth of its
    /// lifetime.
    fn order(&self, name: &str, host: &Host, now: Timestamp) -> OrderStatus {
        let certificate = self.shared.issued.get(name);
        let renewal = certificate
            .as_ref()
            .map(|found| renewal::due(found, host.progress.suggestion.as_ref()));
        let failed = host.progress.failure.clone();
        let problem = failed.as_ref().and_then(|failed| {
            let what = match certificate.as_ref().zip(renewal) {
                Some((certificate, renewal)) => {
                    // Two thirds of its life are over, and a tenth of the rest, too.
                    let late = renewal.plus(certificate.lifetime() / 30);
                    if now <= late.min(certificate.not_after) {
                        return None;
                    }
                    let until = certificate.not_after.to_http_date();
                    format!("the certificate of {name} is not renewed and ends on {until}")
                }
                None => format!("{name} has no certificate: https fails for it"),
            };
            Some(said(failed, &what))
        });
        OrderStatus {
            host: name.to_owned(),
            not_after: certificate
                .as_ref()
                .map(|certificate| certificate.not_after),
            renewal,
            failed,
            problem,
        }
    }
}

/// The message of a problem: `what` is wrong, why and how often getting a certificate failed, when
/// crawlgate tries again, and what to do.
fn said(failed: &FailedOrder, what: &str) -> String {
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
        "{what}. Getting one failed {times}: {reason}. crawlgate tries again at {next}, or on SIGHUP. Mend what the reason says, \
         or name files in `certificates`"
    )
}

/// The status of a certificate, with its absolute path. It never has a refused renewal or problems.
fn status(certificate: &IssuedCertificate, now: Timestamp) -> CertificateStatus {
    CertificateStatus {
        names: vec![certificate.host.clone()],
        file: std::path::absolute(&certificate.file).unwrap_or_else(|_| certificate.file.clone()),
        not_after: certificate.not_after,
        days_left: certificate
            .not_after
            .0
            .saturating_sub(now.0)
            .div_euclid(DAY),
        renewed: certificate.obtained,
        refused: None,
        problems: Vec::new(),
    }
}
