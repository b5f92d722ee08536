//! [`Upgrades`]: the part of the server in an upgrade, in which another process takes over. It
//! starts an upgrade when `crawlgate upgrade` asks for it, and passes listeners and state to the
//! next process step by step. If the server itself took over from another process,
//! [`Upgrades::follow`] follows that process to its end. The messages between the processes are in
//! `upgrade`.

use super::ServerError;
use super::rooms::Rooms;
use super::service_manager::{serving, tell};
use super::sockets::{Control, Passable};
use super::stop::Stop;
use crate::admin::control::{Commands, ControlSocket, Upgrade};
use crate::admin::{UpgradeReport, UpgradeRequest};
use crate::facts::{AnyFact, Fact, Subscriber};
use crate::locks::lock;
use crate::settings::ListenAddress;
use crate::state::StoreHealth;
use crate::threads::spawn;
use crate::upgrade::{
    Channel, FromPredecessor, FromSuccessor, Handed, Memory, NextProcess, Predecessor, Program,
    Successor, UpgradeError,
};
use crate::upkeep::{Instance, keep_everything};
use sd_notify::NotifyState;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long the next process may check everything.
const STARTING: Duration = Duration::from_secs(60);
/// How long the process before may take to end when it is told to.
const ENDING: Duration = Duration::from_secs(10);

/// Why there is no upgrade. This process goes on.
#[derive(Debug, thiserror::Error)]
pub enum UpgradeRefusal {
    /// No service manager would follow the next process.
    #[error(
        "no service manager follows the next process (there is no NOTIFY_SOCKET); crawlgate goes on. Replace the container \
         instead, or give --unsupervised if nothing waits for process {}",
        std::process::id()
    )]
    Unsupervised,
    /// Another upgrade is going on.
    #[error("an upgrade is going on; crawlgate goes on with it")]
    Busy,
    /// The process before has not ended.
    #[error(
        "the process before still answers requests, at most `upgrade.drain` long; crawlgate goes on. Try again later, or \
         give --now to end it"
    )]
    Draining,
    /// Facts would be lost.
    #[error("the state directory cannot be written: {0}; crawlgate goes on. Mend that first")]
    State(StoreHealth),
    /// A step failed.
    #[error("{0}\ncrawlgate goes on as before")]
    Failed(#[from] UpgradeError),
}

/// What the running server needs to hand over.
pub struct Upgrades {
    program: Program,
    pub rooms: Arc<Rooms>,
    /// The control socket.
    pub control: Control,
    /// Whether another process may take the place of this one.
    is_replaceable: bool,
    pub stop: Arc<Stop>,
    /// The listeners, with descriptors for another process. Empty once that has them, or this one
    /// stops.
    pub listeners: Arc<Mutex<Vec<Passable>>>,
    /// The process before, while it still answers requests.
    predecessor: Mutex<Option<Channel>>,
    /// Told when it has ended.
    has_ended: Condvar,
    /// Whether the process before accepts connections, too.
    shares_listeners: AtomicBool,
    /// One upgrade at a time.
    one: Mutex<()>,
    /// The thread that tells the next process which robots.txt is served.
    relay: Mutex<Option<JoinHandle<()>>>,
    /// The process that serves in place of this one. Set once, at the end of the one upgrade that
    /// succeeds: nothing undoes it.
    next: OnceLock<NextProcess>,
}

/// Tells the next process what happens here.
struct Relay(Sender<Fact>);

impl Subscriber for Relay {
    fn notify(&self, fact: &Fact) {
        // The thread that tells it has ended where the next process is gone.
        let _ = self.0.send(fact.clone());
    }
}

impl Upgrades {
    /// Prepares for upgrades. None begins before [`Upgrades::serve_control`]. `control` is the
    /// control socket, if this process has it already.
    pub fn new(
        rooms: Arc<Rooms>,
        stop: Arc<Stop>,
        listeners: Vec<Passable>,
        control: Option<ControlSocket>,
        is_replaceable: bool,
    ) -> Result<Arc<Upgrades>, ServerError> {
        let program =
            Program::of_this_process().map_err(ServerError::io("cannot say which program runs"))?;
        Ok(Arc::new(Upgrades {
            program,
            control: Control::new(rooms.settings.control.clone(), control),
            rooms,
            is_replaceable,
            stop,
            listeners: Arc::new(Mutex::new(listeners)),
            predecessor: Mutex::default(),
            has_ended: Condvar::new(),
            shares_listeners: AtomicBool::new(false),
            one: Mutex::default(),
            relay: Mutex::default(),
            next: OnceLock::new(),
        }))
    }

    /// Answers the clients of the control socket from now on, if this process has it. An operator
    /// may ask for an upgrade then (`crawlgate upgrade`).
    pub fn serve_control(self: &Arc<Upgrades>) -> Result<(), ServerError> {
        self.control.serve(self.commands())
    }

    fn commands(self: &Arc<Upgrades>) -> Commands {
        let upgrades = self.clone();
        let upgrade: Upgrade = Box::new(move |request| Ok(upgrades.upgrade(request)?));
        Commands {
            operations: self.rooms.operations.clone(),
            upgrade: Some(upgrade).filter(|_| self.is_replaceable),
        }
    }

    /// Starts the next process, hands over to it, and begins to leave. Refuses, and goes on as
    /// before, if another upgrade is going on, no service manager would follow the next process,
    /// the process before still answers requests, the state cannot be written, or a step fails.
    fn upgrade(
        self: &Arc<Upgrades>,
        request: UpgradeRequest,
    ) -> Result<UpgradeReport, UpgradeRefusal> {
        let Ok(_one) = self.one.try_lock() else {
            return Err(UpgradeRefusal::Busy);
        };
        if self.next.get().is_some() {
            return Err(UpgradeRefusal::Busy);
        }
        if !request.unsupervised && std::env::var_os("NOTIFY_SOCKET").is_none() {
            return Err(UpgradeRefusal::Unsupervised);
        }
        self.end_predecessor(request.now)?;
        if let health @ (StoreHealth::Failing { .. } | StoreHealth::Unusable { .. }) =
            self.rooms.store.health()
        {
            return Err(UpgradeRefusal::State(health));
        }
        tracing::info!("upgrade: starting {}", self.program.path.display());
        let began = Instant::now();
        let next = self.hand_over().inspect_err(|error| {
            tracing::error!("upgrade: {error}; crawlgate goes on as before")
        })?;
        let before = std::process::id();
        let pid = next.pid();
        tracing::info!("upgrade: process {pid} serves in place of process {before}");
        self.leave(next);
        Ok(UpgradeReport {
            before,
            pid,
            milliseconds: began.elapsed().as_millis() as u64,
        })
    }

    /// To be called when every listener accepts connections: marks this process as ready, and tells
    /// the process before, or if there is none the service manager.
    pub fn serves(&self) {
        self.rooms.operations.set_ready(true);
        match &*lock(&self.predecessor) {
            Some(channel) => {
                if let Err(error) = channel.send(&FromSuccessor::Serving, &[]) {
                    tracing::warn!(%error, "the process before cannot be told that this one serves");
                }
            }
            None => serving(),
        }
    }

    /// Whether no other process accepts connections.
    pub fn is_alone(&self) -> bool {
        !self.shares_listeners.load(Ordering::Acquire)
    }

    /// Makes sure that the process before has ended. If it has not, `may_end_it` allows telling it
    /// to end, and to wait for that at most `ENDING`. Refuses if it still runs.
    fn end_predecessor(&self, may_end_it: bool) -> Result<(), UpgradeRefusal> {
        let predecessor = lock(&self.predecessor);
        let Some(channel) = &*predecessor else {
            return Ok(());
        };
        if !may_end_it {
            return Err(UpgradeRefusal::Draining);
        }
        // One that has just ended is noticed soon.
        let _ = channel.send(&FromSuccessor::End, &[]);
        let waited = self
            .has_ended
            .wait_timeout_while(predecessor, ENDING, |left| left.is_some());
        let (predecessor, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if predecessor.is_some() {
            Err(UpgradeRefusal::Draining)
        } else {
            Ok(())
        }
    }

    /// Step 4, when the next process serves: gives it the state, the control socket and the
    /// listeners, tells the service manager, and stops accepting connections. From then on a thread
    /// does what the next process asks for: reopening the logs, or ending.
    fn leave(self: &Arc<Upgrades>, next: NextProcess) {
        tell(&[NotifyState::MainPid(next.pid())]);
        self.rooms.store.pass_on();
        if let Some(control) = self.control.socket().filter(|_| next.takes_control) {
            control.pass_on();
        }
        lock(&self.listeners).clear();
        // Before the last connection can end: then it is looked for. It is set once: one upgrade at
        // a time, and none after it.
        let next = self.next.get_or_init(|| next);
        self.stop.leave();
        if let Err(error) = next.leave_to_it() {
            tracing::warn!(%error, "upgrade: the next process serves, and does not say that commands reach it");
        }
        let Ok(heard) = next.channel.try_clone() else {
            return;
        };
        let upgrades = self.clone();
        let started = spawn("next-process", move || upgrades.obey(&heard));
        if let Err(error) = started {
            tracing::warn!(%error, "upgrade: the next process is not heard; it cannot end this one before `upgrade.drain`");
        }
    }

    /// Does what the next process asks for, as long as it lives.
    fn obey(&self, next: &Channel) {
        while let Ok((message, _)) = next.receive::<FromSuccessor>(None) {
            match message {
                FromSuccessor::Reopen => {
                    self.rooms.instance.reopen_logs();
                }
                FromSuccessor::End => self.stop.now("an upgrade"),
                // Late, or of a later version.
                _ => {}
            }
        }
    }

    /// Tells the process before, if there is one, that the logs were rotated: it writes to them,
    /// too.
    pub fn tell_of_rotation(&self) {
        if let Some(channel) = &*lock(&self.predecessor) {
            // One that has just ended writes nothing more.
            let _ = channel.send(&FromSuccessor::Reopen, &[]);
        }
    }

    /// Closes the listeners. Tells the next process, if there is one, that this one has served its
    /// last request and cuts off `cut_off` connections. Returns whether there is a next process.
    pub fn farewell(&self, cut_off: usize) -> bool {
        lock(&self.listeners).clear();
        let Some(next) = self.next.get() else {
            return false;
        };
        // It is told that this process leaves first.
        let _over = lock(&self.one);
        self.rooms.instance.ledger.take_back();
        self.end_relay();
        if let Err(error) = next
            .channel
            .send(&FromPredecessor::Farewell { cut_off }, &[])
        {
            tracing::warn!(%error, "upgrade: the next process is gone");
        }
        true
    }

    /// Whether the next process has taken this socket in the file system over. False without one.
    pub fn was_passed(&self, path: &Path) -> bool {
        self.next
            .get()
            .is_some_and(|next| next.took(&ListenAddress::Unix(path.to_owned())))
    }

    /// Follows the process before to its end, in a thread of its own: the ledger learns which
    /// robots.txt that process serves, and how it ended. When that process accepts no connection
    /// any more, this one is alone and takes over its control socket (`control_lock`). To be called
    /// before any listener accepts.
    pub fn follow(
        self: &Arc<Upgrades>,
        successor: Successor,
        control_lock: Option<OwnedFd>,
    ) -> Result<(), ServerError> {
        let predecessor = successor.opened()?;
        self.rooms.store.settle()?;
        let channel = predecessor.channel.try_clone();
        let channel = channel.map_err(ServerError::io("cannot speak with the process before"))?;
        *lock(&self.predecessor) = Some(channel);
        self.shares_listeners.store(true, Ordering::Release);
        let upgrades = self.clone();
        let started = spawn("predecessor", move || {
            upgrades.follow_to_end(predecessor, control_lock);
        });
        started.map(drop).map_err(ServerError::io(
            "cannot start the thread for the process before",
        ))
    }

    /// Follows the messages of the process before, which still answers its last requests: serves from
    /// its first word on, and counts the copies of robots.txt that it says it served. Returns when it
    /// takes leave, or when its channel ends without that: then every crawler counts as served with
    /// what was published meanwhile.
    fn follow_to_end(
        self: &Arc<Upgrades>,
        predecessor: Predecessor,
        control_lock: Option<OwnedFd>,
    ) {
        let Instance {
            ledger,
            behaviours,
            sites,
            clock,
            ..
        } = &*self.rooms.instance;
        let cut_off = predecessor.follow(
            || {
                self.shares_listeners.store(false, Ordering::Release);
                serving();
                self.control.take_over(control_lock, self.commands());
                if let Some(channel) = &*lock(&self.predecessor) {
                    // It waits no longer than it must.
                    let _ = channel.send(&FromSuccessor::Settled, &[]);
                }
            },
            |Fact { at, fact, .. }| match fact {
                AnyFact::Served(served) => ledger.record_served(&sites.snapshot(), &served, at),
                AnyFact::Mark(mark) => behaviours.traps.marked_elsewhere(mark, clock.moment()),
                _ => {}
            },
        );
        ledger.predecessor_ended(&sites.snapshot(), cut_off == Some(0), clock.moment().now);
        match cut_off {
            Some(0) => {
                tracing::info!(
                    predecessor = "answered",
                    "upgrade: the process before has answered its last request"
                )
            }
            Some(connections) => tracing::info!(
                predecessor = "cut_off",
                connections,
                "upgrade: the process before has cut off its last connections"
            ),
            None => tracing::warn!(
                predecessor = "lost",
                "upgrade: the process before ended without a farewell; every crawler counts as served what was \
                 published meanwhile"
            ),
        }
        *lock(&self.predecessor) = None;
        self.has_ended.notify_all();
    }

    /// Waits for the end of the thread that tells the next process which robots.txt is served, if
    /// it runs. Its sender has to be gone, or it does not end.
    fn end_relay(&self) {
        if let Some(relay) = lock(&self.relay).take() {
            // A thread that panicked has said so.
            let _ = relay.join();
        }
    }

    /// Steps 1 to 3: starts the next process and hands over to it. It serves then, and so does this
    /// one. After an error the next process has ended, and this one has everything back.
    fn hand_over(&self) -> Result<NextProcess, UpgradeError> {
        let program = &self.program;
        let mut next = NextProcess::start(program).map_err(|source| UpgradeError::Start {
            program: program.path.display().to_string(),
            source,
        })?;
        let listeners = lock(&self.listeners)
            .iter()
            .map(|(passed, _)| passed.name.clone())
            .collect();
        let hello = FromPredecessor::Hello {
            listeners,
            state: self.rooms.settings.state.clone(),
            control: self.control.path.clone(),
        };
        if let Err(source) = next.get_ready(&hello, STARTING) {
            return Err(UpgradeError::NotReady {
                source,
                output: next.end(),
            });
        }
        let passed = self.listeners_of(&next).map_err(UpgradeError::State)?;
        let closed = next
            .channel
            .try_clone()
            .and_then(|channel| self.close_state(channel));
        let handed = match closed {
            Ok(handed) => handed,
            Err(error) => {
                next.end();
                self.take_back(false);
                return Err(UpgradeError::State(error));
            }
        };
        let mut has_gone = false;
        if let Err(source) = next.open(&passed, handed, &mut has_gone) {
            let output = next.end();
            self.take_back(has_gone);
            return Err(UpgradeError::NotOpened { source, output });
        }
        Ok(next)
    }

    /// The listeners that the next process takes over, each with a descriptor.
    fn listeners_of(&self, next: &NextProcess) -> io::Result<Vec<Passable>> {
        let listeners = lock(&self.listeners);
        let taken = listeners
            .iter()
            .filter(|(passed, _)| next.took(&passed.name));
        taken
            .map(|(passed, descriptor)| Ok((passed.clone(), descriptor.try_clone()?)))
            .collect()
    }

    /// Writes and closes everything that one process alone may have open. From now on the next
    /// process is told over the channel which robots.txt is served. After an error everything stays
    /// open.
    fn close_state(&self, next: Channel) -> io::Result<Handed> {
        let (tell, told) = channel();
        let relay = spawn("relay", move || {
            for fact in told {
                if let Err(error) = next.send(&FromPredecessor::Happened { fact }, &[]) {
                    return tracing::debug!(%error, "the next process cannot be told what happens");
                }
            }
        })?;
        *lock(&self.relay) = Some(relay);
        // It takes no copy any more when the relay has ended.
        self.rooms.instance.ledger.hand_over(Arc::new(Relay(tell)));
        keep_everything(&self.rooms.instance, &self.rooms.store);
        // The next process is this instance in the eyes of others.
        if let Some(peers) = &self.rooms.peers {
            peers.exchange.stop();
        }
        self.rooms.evidence.hand_over();
        let state = self.rooms.store.hand_over().map_err(io::Error::other)?;
        let control = self.control.socket();
        let control = control.map(|control| control.share_lock()).transpose()?;
        let lived = self.rooms.instance.clock.moment().lived;
        let memory = Memory {
            lived: lived.as_millis() as u64,
            behaviours: Some(self.rooms.instance.behaviours.pass(lived)),
            servers: self.rooms.upstreams.pass(),
            questions: self
                .rooms
                .acme
                .as_ref()
                .and_then(|acme| serde_json::to_value(acme.hand_over()).ok())
                .unwrap_or_default(),
        };
        Ok(Handed {
            state,
            control: control.flatten(),
            memory,
        })
    }

    /// Undoes [`Upgrades::close_state`], also after it has failed. The next process has ended. If
    /// it may have answered requests (`may_have_served`), what was published and served before
    /// counts as unknown.
    fn take_back(&self, may_have_served: bool) {
        self.rooms.instance.ledger.take_back();
        self.end_relay();
        if let Some(acme) = &self.rooms.acme {
            acme.take_back();
        }
        if let Err(error) = self.rooms.store.take_back() {
            tracing::error!(
                "{error}; facts wait in memory, and the next start will treat this run as crashed"
            );
        }
        self.rooms.evidence.reopen();
        let peers = self.rooms.peers.as_ref();
        if let Some(Err(error)) = peers.map(|peers| peers.exchange.resume()) {
            tracing::error!(
                "{error}; crawlgate exchanges nothing with other instances. Start it again"
            );
        }
        if may_have_served {
            // What it has published and served is in no table of this process.
            self.rooms.store.distrust();
            let now = self.rooms.instance.clock.moment().now;
            self.rooms.instance.sites.history_was_broken(now);
            self.rooms.instance.ledger.begin_anew(now);
        }
    }
}
