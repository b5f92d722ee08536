//! [`follow`] follows the process before to its end, while this process serves already. It notes each robots.txt that the
//! process before serves, and takes over the control socket when that process accepts no connection any more.

use super::ServerError;
use super::control_door::ControlDoor;
use super::hand_over::Upgrades;
use super::rooms::Rooms;
use super::service_manager;
use crate::locks::lock;
use crate::threads::spawn;
use crate::upgrade::{Channel, FromSuccessor, Predecessor};
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

/// The call for when every listener accepts connections: it tells the process before, or else the service manager.
pub fn when_serving(predecessor: Arc<OnceLock<Channel>>) -> Box<dyn Fn() + Send + Sync> {
    Box::new(move || match predecessor.get() {
        Some(channel) => {
            if let Err(error) = channel.send(&FromSuccessor::Serving, &[]) {
                tracing::warn!(%error, "the process before cannot be told that this one serves");
            }
        }
        None => service_manager::serving(),
    })
}

/// Follows the process before to its end, in a thread of its own.
pub fn follow(
    predecessor: Predecessor,
    told: &OnceLock<Channel>,
    upgrades: Arc<Upgrades>,
    rooms: &Rooms,
    (control, control_lock): (ControlDoor, Option<OwnedFd>),
) -> Result<(), ServerError> {
    let speaker = || predecessor.channel.try_clone().map_err(ServerError::io("cannot speak with the process before"));
    // It is set once, before any listener accepts.
    let _ = told.set(speaker()?);
    *lock(&upgrades.predecessor) = Some(speaker()?);
    upgrades.shares_listeners.store(true, Ordering::Release);
    let (instance, settled) = (rooms.instance.clone(), speaker()?);
    let of_left = upgrades.clone();
    let work = move || {
        let left = move || {
            of_left.shares_listeners.store(false, Ordering::Release);
            service_manager::serving();
            control.take_over(control_lock);
            // It waits no longer than it must.
            let _ = settled.send(&FromSuccessor::Settled, &[]);
        };
        let served = |copy: &_| instance.ledger.was_served(&instance.sites.snapshot(), copy);
        let cut_off = predecessor.follow(left, served);
        let (snapshot, now) = (instance.sites.snapshot(), instance.clock.moment().now);
        instance.ledger.predecessor_ended(&snapshot, cut_off == Some(0), now);
        match cut_off {
            Some(0) => tracing::info!("upgrade: the process before has answered its last request"),
            Some(connections) => {
                tracing::info!(connections, "upgrade: the process before has cut off its last connections")
            }
            None => tracing::warn!(
                "upgrade: the process before ended without a farewell; every crawler counts as served what was published \
                 meanwhile"
            ),
        }
        upgrades.predecessor_ended();
    };
    spawn("predecessor", work).map(drop).map_err(ServerError::io("cannot start the thread for the process before"))
}
