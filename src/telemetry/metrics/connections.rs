//! Connections of clients, by what happens on them. [`OpenConnection`] counts one connection from when it is accepted
//! until it is dropped. Its states:
//!
//! - `idle`: no request is being received or answered. A connection begins so, and returns to it when its last open
//!   request is answered.
//! - `active`: a request is being received or answered. Over HTTP/1.1 it begins with the first octet of the request, over
//!   HTTP/2 with its complete head.

use super::Metrics;
use super::register::Register;
use prometheus::IntGauge;
use std::sync::atomic::{AtomicBool, Ordering};

/// The gauge of each state.
#[derive(Clone, Debug)]
pub(super) struct ConnectionGauges {
    idle: IntGauge,
    active: IntGauge,
}

impl ConnectionGauges {
    pub(super) fn new(register: Register<'_>) -> ConnectionGauges {
        let gauges = register.gauges(
            "crawlgate_connections",
            "Open connections of clients: active while a request is being received or answered, idle otherwise.",
            &["state"],
        );
        ConnectionGauges { idle: gauges.with_label_values(&["idle"]), active: gauges.with_label_values(&["active"]) }
    }

    fn of(&self, active: bool) -> &IntGauge {
        if active { &self.active } else { &self.idle }
    }
}

impl Metrics {
    /// `crawlgate_connections{state}`: one more connection, idle at first.
    pub fn open_connection(&self) -> OpenConnection {
        self.connections.idle.inc();
        OpenConnection { gauges: self.connections.clone(), active: AtomicBool::new(false) }
    }
}

/// One open connection.
#[derive(Debug)]
pub struct OpenConnection {
    gauges: ConnectionGauges,
    active: AtomicBool,
}

impl OpenConnection {
    /// Whether a request is being received or answered from now on.
    pub fn set_active(&self, active: bool) {
        // Read first: it is called for every piece of a request.
        if self.active.load(Ordering::Relaxed) != active && self.active.swap(active, Ordering::Relaxed) != active {
            self.gauges.of(!active).dec();
            self.gauges.of(active).inc();
        }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.gauges.of(*self.active.get_mut()).dec();
    }
}
