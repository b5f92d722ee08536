//! [`UpgradeCoordinator`]: the server's part in an upgrade, in which a new crawlgate process takes
//! over from the running one. The command `crawlgate upgrade` starts an upgrade. The running
//! process then passes its listeners and its state to the new process. The new process calls
//! [`UpgradeCoordinator::follow_predecessor`], which waits until the previous process has ended.
//! The module `upgrade` has the messages between the two processes.

mod predecessor;

use super::ServerError;
use super::service_manager::{notify, notify_ready};
use super::services::Services;
use super::sockets::{ControlEndpoint, PassableListener};
use super::stop::StopHandle;
use crate::admin::control::{ControlRequestHandler, ControlSocket, UpgradeHandler};
use crate::admin::{UpgradeReport, UpgradeRequest};
use crate::facts::{Fact, FactSubscriber};
use crate::locks::lock;
use crate::settings::ListenAddress;
use crate::state::StoreHealth;
use crate::threads::spawn;
use crate::upgrade::{
    HandedOverState, NextProcess, OwnCommandLine, PredecessorMessage, ProcessChannel,
    SuccessorMessage, UpgradeError,
};
use crate::upkeep::store_everything;
use sd_notify::NotifyState;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Acquire};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The limit for the checks of the next process.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Why there is no upgrade. This process continues.
#[derive(Debug, thiserror::Error)]
pub enum UpgradeRefusal {
    /// No service manager would follow the next process.
    #[error(
        "no service manager would follow the new process (NOTIFY_SOCKET is not set), so nothing \
         was upgraded. In a container, replace the container. If you started crawlgate in a shell \
         (process {}), add --unsupervised",
        std::process::id()
    )]
    Unsupervised,
    /// Another upgrade is going on.
    #[error("another upgrade is running; wait until it ends")]
    Busy,
    /// The previous process has not ended.
    #[error(
        "{0} Nothing was upgraded. Try again when that process has ended, or add --now: that process then \
         closes idle connections, and after a second cuts off its open requests"
    )]
    Draining(String),
    /// Facts would be lost.
    #[error("{0} Nothing was upgraded")]
    State(StoreHealth),
    /// A step failed.
    #[error("{0}\nNothing was upgraded: crawlgate goes on as before")]
    Failed(#[from] UpgradeError),
}

/// Hands the running server over to the next process.
pub struct UpgradeCoordinator {
    program: OwnCommandLine,
    pub services: Arc<Services>,
    /// The control socket.
    pub control: ControlEndpoint,
    /// Whether another process may replace this one.
    is_replaceable: bool,
    pub stop: Arc<StopHandle>,
    /// The listeners, with descriptors for the next process. Empty once that has them, or this
    /// process stops.
    pub listeners: Arc<Mutex<Vec<PassableListener>>>,
    /// The previous process, while it still answers requests.
    predecessor: Mutex<Option<ProcessChannel>>,
    /// Notified when the previous process has ended.
    has_ended: Condvar,
    /// Whether the previous process accepts connections, too.
    shares_listeners: AtomicBool,
    /// Held during an upgrade: one at a time.
    upgrade_lock: Mutex<()>,
    /// The thread that reports served copies of robots.txt to the next process.
    relay: Mutex<Option<JoinHandle<()>>>,
    /// The next process, once it serves in place of this one. Set once.
    next: OnceLock<NextProcess>,
}

/// Sends facts of this process to the next one.
struct FactRelay(Sender<Fact>);

impl FactSubscriber for FactRelay {
    fn notify(&self, fact: &Fact) {
        // The relay thread has ended if the next process is gone.
        let _ = self.0.send(fact.clone());
    }
}

impl UpgradeCoordinator {
    /// Prepares for upgrades, which begin when the control socket is served. `control` is the control
    /// socket, if this process has it already.
    pub fn new(
        services: Arc<Services>,
        stop: Arc<StopHandle>,
        listeners: Vec<PassableListener>,
        control: Option<ControlSocket>,
        is_replaceable: bool,
    ) -> Result<Arc<UpgradeCoordinator>, ServerError> {
        let program = OwnCommandLine::current()
            .map_err(ServerError::from_io("cannot find out which program runs"))?;
        Ok(Arc::new(UpgradeCoordinator {
            program,
            control: ControlEndpoint::new(services.settings.control.clone(), control),
            services,
            is_replaceable,
            stop,
            listeners: Arc::new(Mutex::new(listeners)),
            predecessor: Mutex::default(),
            has_ended: Condvar::new(),
            shares_listeners: false.into(),
            upgrade_lock: Mutex::default(),
            relay: Mutex::default(),
            next: OnceLock::new(),
        }))
    }

    pub fn commands(self: &Arc<UpgradeCoordinator>) -> ControlRequestHandler {
        let upgrades = self.clone();
        let upgrade: UpgradeHandler = Box::new(move |request| Ok(upgrades.upgrade(request)?));
        ControlRequestHandler {
            operations: self.services.operations.clone(),
            upgrade: Some(upgrade).filter(|_| self.is_replaceable),
        }
    }

    /// Starts the next process, hands over to it, and begins to leave. Refuses, and continues as
    /// before, if another upgrade is running, no service manager would follow the next process, the
    /// previous process still answers requests, the state cannot be written, or a step fails.
    fn upgrade(
        self: &Arc<UpgradeCoordinator>,
        request: UpgradeRequest,
    ) -> Result<UpgradeReport, UpgradeRefusal> {
        use UpgradeRefusal::*;
        let Ok(_one) = self.upgrade_lock.try_lock() else {
            return Err(Busy);
        };
        if self.next.get().is_some() {
            return Err(Busy);
        }
        if !request.unsupervised && std::env::var_os("NOTIFY_SOCKET").is_none() {
            return Err(Unsupervised);
        }
        self.end_predecessor(request.now)?;
        if let health @ (StoreHealth::Failing { .. } | StoreHealth::Unusable { .. }) =
            self.services.store.health()
        {
            return Err(State(health));
        }
        tracing::info!("upgrade: starting {}", self.program.path.display());
        let began = Instant::now();
        let next = self.hand_over().inspect_err(|error| {
            tracing::error!("upgrade: {error}; crawlgate goes on as before")
        })?;
        let before = std::process::id();
        let pid = next.pid();
        tracing::info!("upgrade: process {pid} serves in place of process {before}");
        self.leave_to_successor(next);
        Ok(UpgradeReport {
            before,
            pid,
            milliseconds: began.elapsed().as_millis() as u64,
        })
    }

    /// Call when every listener accepts connections. Marks this process as ready, and notifies the
    /// previous process or, if there is none, the service manager.
    pub fn mark_serving(&self) {
        self.services.operations.set_ready(true);
        match &*lock(&self.predecessor) {
            Some(channel) => {
                if let Err(error) = channel.send(&SuccessorMessage::Serving, &[]) {
                    tracing::warn!(%error, "cannot tell the old process that this one serves");
                }
            }
            None => notify_ready(),
        }
    }

    /// Whether no other process accepts connections.
    pub fn is_alone(&self) -> bool {
        !self.shares_listeners.load(Acquire)
    }

    /// Step 4, when the next process serves: leaves it the state, the control socket and the
    /// listeners, notifies the service manager, and stops accepting connections. From then on a
    /// thread handles the requests of the next process: to reopen the logs, or to end.
    fn leave_to_successor(self: &Arc<UpgradeCoordinator>, next: NextProcess) {
        notify(&[NotifyState::MainPid(next.pid())]);
        self.services.store.transfer_lock();
        if let Some(control) = self.control.socket().filter(|_| next.takes_control) {
            control.hand_over_lock();
        }
        lock(&self.listeners).clear();
        // Set before the last connection can end, which reads it. Only one upgrade succeeds.
        let next = self.next.get_or_init(|| next);
        self.stop.stop_after_upgrade();
        if let Err(error) = next.announce_leaving(self.services.settings.upgrade_drain) {
            tracing::warn!(%error, "upgrade: the new process serves, but did not say whether commands reach it");
        }
        let Ok(channel) = next.channel.try_clone() else {
            return;
        };
        let upgrades = self.clone();
        let started = spawn("next-process", move || upgrades.handle_messages(&channel));
        if let Err(error) = started {
            tracing::warn!(%error, "upgrade: the new process does not answer; it cannot end this one before \
                upgrade.drain is over");
        }
    }

    /// Handles the messages of the next process until it ends.
    fn handle_messages(&self, next: &ProcessChannel) {
        while let Ok((message, _)) = next.receive::<SuccessorMessage>(None) {
            match message {
                SuccessorMessage::LogsRotated => {
                    self.services.instance.reopen_logs();
                }
                SuccessorMessage::EndNow => self.stop.stop_immediately("an upgrade"),
                // A late message, or one of a later version.
                _ => {}
            }
        }
    }

    /// Closes the listeners. Notifies the next process, if there is one, that this one has served
    /// its last request and cuts off `cut_off` connections. Returns whether there is a next process.
    pub fn send_farewell(&self, cut_off: usize) -> bool {
        lock(&self.listeners).clear();
        let Some(next) = self.next.get() else {
            return false;
        };
        // An upgrade in progress finishes first.
        let _over = lock(&self.upgrade_lock);
        self.services.instance.ledger.reclaim();
        self.join_relay_thread();
        if let Err(error) = next
            .channel
            .send(&PredecessorMessage::Farewell { cut_off }, &[])
        {
            tracing::warn!(%error, "upgrade: the new process is gone");
        }
        true
    }

    /// Whether the next process has taken over this Unix socket.
    pub fn was_handed_over(&self, path: &Path) -> bool {
        self.next
            .get()
            .is_some_and(|next| next.takes_over(&ListenAddress::Unix(path.to_owned())))
    }

    /// Waits for the end of the relay thread, if it runs. Its sender must be dropped before.
    fn join_relay_thread(&self) {
        if let Some(relay) = lock(&self.relay).take() {
            // A panic was reported already.
            let _ = relay.join();
        }
    }

    /// Steps 1 to 3: starts the next process and hands over to it. Then both processes serve. After
    /// an error the next process has ended, and this one has everything back.
    fn hand_over(&self) -> Result<NextProcess, UpgradeError> {
        use UpgradeError::*;
        let program = &self.program;
        let mut next = NextProcess::start(program).map_err(|source| Start {
            program: program.path.display().to_string(),
            source,
        })?;
        let listeners = lock(&self.listeners)
            .iter()
            .map(|(passed, _)| passed.name.clone())
            .collect();
        let hello = PredecessorMessage::Hello {
            listeners,
            state: self.services.settings.state.clone(),
            control: self.control.path.clone(),
        };
        if let Err(source) = next.wait_until_ready(&hello, START_TIMEOUT) {
            return Err(NotReady {
                source,
                output: next.kill_and_quote(),
            });
        }
        let passed = self.listeners_for(&next).map_err(State)?;
        let closed = next
            .channel
            .try_clone()
            .and_then(|channel| self.hand_over_state(channel));
        let handed = match closed {
            Ok(handed) => handed,
            Err(error) => {
                next.kill_and_quote();
                self.take_state_back(false);
                return Err(State(error));
            }
        };
        let mut may_have_served = false;
        if let Err(source) = next.pass_everything(&passed, handed, &mut may_have_served) {
            let output = next.kill_and_quote();
            self.take_state_back(may_have_served);
            return Err(NotOpened { source, output });
        }
        Ok(next)
    }

    /// The listeners that the next process takes over, each with a descriptor.
    fn listeners_for(&self, next: &NextProcess) -> io::Result<Vec<PassableListener>> {
        let listeners = lock(&self.listeners);
        let taken = listeners
            .iter()
            .filter(|(passed, _)| next.takes_over(&passed.name));
        taken
            .map(|(passed, descriptor)| Ok((passed.clone(), descriptor.try_clone()?)))
            .collect()
    }

    /// Writes and closes everything that only one process may have open. From now on the relay
    /// thread reports served copies of robots.txt to the next process. After an error everything
    /// stays open.
    fn hand_over_state(&self, next: ProcessChannel) -> io::Result<HandedOverState> {
        let Services {
            instance,
            store,
            evidence,
            peers,
            acme,
            ..
        } = &*self.services;
        let (sender, received) = channel();
        let relay = spawn("relay", move || {
            for fact in received {
                if let Err(error) = next.send(&PredecessorMessage::FactRecorded { fact }, &[]) {
                    return tracing::debug!(%error, "cannot tell the new process what happens");
                }
            }
        })?;
        *lock(&self.relay) = Some(relay);
        // The ledger no longer notifies the relay once that has ended.
        instance.ledger.hand_over(Arc::new(FactRelay(sender)));
        store_everything(instance, store);
        // The next process continues as this instance in the exchange.
        if let Some(peers) = peers {
            peers.exchange.stop();
        }
        if let Some(acme) = acme {
            acme.pause();
        }
        evidence.hand_over();
        let state = store.hand_over().map_err(io::Error::other)?;
        let control = self.control.socket();
        let control = control.map(|control| control.share_lock()).transpose()?;
        Ok(HandedOverState {
            state_lock: state,
            control_lock: control.flatten(),
        })
    }

    /// Undoes [`UpgradeCoordinator::hand_over_state`], also after it has failed. The next process has ended. If
    /// it may have answered requests (`may_have_served`), what was published and served before
    /// counts as unknown.
    fn take_state_back(&self, may_have_served: bool) {
        let Services {
            instance,
            store,
            evidence,
            peers,
            acme,
            ..
        } = &*self.services;
        instance.ledger.reclaim();
        self.join_relay_thread();
        if let Some(acme) = acme {
            acme.resume();
        }
        if let Err(error) = store.reclaim() {
            tracing::error!(
                "{error}; crawlgate keeps new data in memory, and the next start will treat this run as crashed"
            );
        }
        evidence.reopen();
        let peers = peers.as_ref();
        if let Some(Err(error)) = peers.map(|peers| peers.exchange.resume()) {
            tracing::error!(
                "{error}; crawlgate exchanges nothing with other instances. Restart it"
            );
        }
        if may_have_served {
            // What it has published and served is in no table of this process.
            store.mark_incomplete();
            let now = instance.clock.moment().now;
            instance.sites.record_observation_gap(now);
            instance.ledger.restart_observations(now);
        }
    }
}
