//! [`OpenConnection`] counts one connection of a client from when it is accepted until it is dropped. Its states:
//!
//! - `idle`: no request is being received or answered. A connection begins so, and returns to it when its last open
//!   request is answered.
//! - `active`: a request is being received or answered. Over HTTP/1.1 it begins with the first octet of the request, over
//!   HTTP/2 with its complete head.

use super::Metrics;
use super::register::Register;
use prometheus::IntGauge;
use std::sync::atomic::{AtomicBool, Ordering};

/// The gauges of idle and of active connections.
pub(super) fn gauges(register: Register<'_>) -> [IntGauge; 2] {
    let gauges = register.gauges(
        "crawlgate_connections",
        "Open connections of clients: active while a request is being received or answered, idle otherwise.",
        &["state"],
    );
    ["idle", "active"].map(|state| gauges.with_label_values(&[state]))
}

impl Metrics {
    /// `crawlgate_connections{state}`: one more connection, idle at first.
    pub fn open_connection(&self) -> OpenConnection {
        self.connections[0].inc();
        OpenConnection { gauges: self.connections.clone(), active: AtomicBool::new(false) }
    }
}

/// One open connection.
#[derive(Debug)]
pub struct OpenConnection {
    /// The gauges of idle and of active connections.
    gauges: [IntGauge; 2],
    active: AtomicBool,
}

impl OpenConnection {
    /// Whether a request is being received or answered from now on.
    pub fn set_active(&self, active: bool) {
        // Read first: it is called for every piece of a request.
        if self.active.load(Ordering::Relaxed) != active && self.active.swap(active, Ordering::Relaxed) != active {
            self.gauges[usize::from(!active)].dec();
            self.gauges[usize::from(active)].inc();
        }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.gauges[usize::from(*self.active.get_mut())].dec();
    }
}
