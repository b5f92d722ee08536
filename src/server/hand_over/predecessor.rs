//! What a new process does after an upgrade until the previous process ends. The previous process
//! still answers its last requests, and reports each robots.txt that it serves to a crawler. The
//! new process records each such answer as if it were its own.

use super::{UpgradeCoordinator, UpgradeRefusal};
use crate::facts::{AnyFact, Fact};
use crate::locks::lock;
use crate::server::ServerError;
use crate::server::service_manager::notify_ready;
use crate::threads::spawn;
use crate::upgrade::{PendingTakeover, Predecessor, SuccessorMessage};
use crate::upkeep::Instance;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::Release;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// The limit for the previous process to end when it is asked to.
const END_TIMEOUT: Duration = Duration::from_secs(10);

impl UpgradeCoordinator {
    /// Makes sure that the previous process has ended. With `may_end_it`, asks it to end and waits
    /// at most `END_TIMEOUT`. Refuses if it still runs.
    pub fn end_predecessor(&self, may_end_it: bool) -> Result<(), UpgradeRefusal> {
        let predecessor = lock(&self.predecessor);
        let Some(channel) = &*predecessor else {
            return Ok(());
        };
        if !may_end_it {
            return Err(self.draining_refusal());
        }
        // An error means that it has just ended, which is noticed soon.
        let _ = channel.send(&SuccessorMessage::EndNow, &[]);
        let waited = self
            .has_ended
            .wait_timeout_while(predecessor, END_TIMEOUT, |left| left.is_some());
        let (predecessor, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if predecessor.is_some() {
            Err(self.draining_refusal())
        } else {
            Ok(())
        }
    }

    fn draining_refusal(&self) -> UpgradeRefusal {
        let finding = self.services.operations.predecessor_finding();
        UpgradeRefusal::Draining(finding.map_or_else(String::new, |finding| finding.message))
    }

    /// Notifies the previous process, if there is one, that the logs were rotated, because it writes
    /// to them, too.
    pub fn notify_log_rotation(&self) {
        if let Some(channel) = &*lock(&self.predecessor) {
            // An error means that it has ended and writes nothing more.
            let _ = channel.send(&SuccessorMessage::LogsRotated, &[]);
        }
    }

    /// Follows the previous process to its end, in a thread of its own: the ledger records which
    /// robots.txt that process serves, and how it ended. When that process accepts no connections
    /// any more, this one takes over its control socket (`control_lock`). Call it before any
    /// listener accepts connections.
    pub fn follow_predecessor(
        self: &Arc<UpgradeCoordinator>,
        successor: PendingTakeover,
        control_lock: Option<OwnedFd>,
    ) -> Result<(), ServerError> {
        let predecessor = successor.wait_to_serve()?;
        self.services.store.commit_take_over()?;
        let channel = predecessor.channel.try_clone();
        let channel = channel.map_err(ServerError::from_io("cannot talk to the old process"))?;
        *lock(&self.predecessor) = Some(channel);
        self.shares_listeners.store(true, Release);
        let upgrades = self.clone();
        let started = spawn("predecessor", move || {
            upgrades.follow_to_end(predecessor, control_lock);
        });
        started.map(drop).map_err(ServerError::from_io(
            "cannot start the thread for the old process",
        ))
    }

    /// Handles the messages of the previous process, which still answers its last requests: serves
    /// alone after the first one, and records the copies of robots.txt that it served. Returns when
    /// it says farewell, or when its channel ends: then every crawler counts as served with every
    /// version that was published meanwhile.
    fn follow_to_end(
        self: &Arc<UpgradeCoordinator>,
        predecessor: Predecessor,
        control_lock: Option<OwnedFd>,
    ) {
        let Instance {
            ledger,
            behaviours,
            sites,
            clock,
            ..
        } = &*self.services.instance;
        let operations = &self.services.operations;
        let cut_off = predecessor.follow(
            |drain| {
                let drain = drain.unwrap_or(self.services.settings.upgrade_drain);
                let until = clock.moment().now.plus(drain);
                operations.set_predecessor_until(Some(until));
                self.shares_listeners.store(false, Release);
                notify_ready();
                self.control.take_over(control_lock, self.commands());
                if let Some(channel) = &*lock(&self.predecessor) {
                    // The previous process waits for this message.
                    let _ = channel.send(&SuccessorMessage::CommandsAnswered, &[]);
                }
            },
            |Fact { at, fact, .. }| match fact {
                AnyFact::ServedVersion(served) => {
                    ledger.record_predecessor_served(&sites.snapshot(), &served, at)
                }
                AnyFact::ClientMark(mark) => behaviours
                    .marked_clients
                    .add_peer_mark(mark, clock.moment()),
                _ => {}
            },
        );
        ledger.record_predecessor_end(&sites.snapshot(), cut_off == Some(0), clock.moment().now);
        match cut_off {
            Some(0) => {
                tracing::info!(
                    predecessor = "answered",
                    "upgrade: the old process has answered its last request"
                )
            }
            Some(connections) => tracing::info!(
                predecessor = "cut_off",
                connections,
                "upgrade: the old process has cut off its last connections"
            ),
            None => tracing::warn!(
                predecessor = "lost",
                "upgrade: the old process ended without notice; crawlgate assumes that every crawler was served what \
                 was published meanwhile"
            ),
        }
        operations.set_predecessor_until(None);
        *lock(&self.predecessor) = None;
        self.has_ended.notify_all();
    }
}
