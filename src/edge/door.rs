//! [`Edge`]: what all listeners of the proxy share. [`Door`]: one of them.

use super::desk::Desk;
use super::lane::Lane;
use super::notices::Notices;
use super::tls::TlsListener;
use crate::forwarding::is_trusted;
use crate::requests::{Admission, Admitted, Full, Redirect};
use crate::telemetry::Metrics;
use async_trait::async_trait;
use pingora_core::apps::{HttpServerApp, ReusedHttpStream};
use pingora_core::protocols::http::ServerSession;
use pingora_core::server::ShutdownWatch;
use std::net::IpAddr;
use std::sync::Arc;

/// What all listeners share.
pub struct Edge<A> {
    pub(super) app: Arc<A>,
    pub(super) desk: Desk,
    pub(super) lane: Option<Lane>,
    pub(super) notices: Notices,
    pub(super) admission: Arc<Admission>,
    pub(super) metrics: Arc<Metrics>,
}

impl<A> Edge<A> {
    /// In front of an application: what is not answered at the desk and does not fit the lane goes there.
    pub fn new(app: Arc<A>, desk: Desk, lane: Option<Lane>) -> Edge<A> {
        let metrics = desk.requests.metrics().clone();
        Edge {
            admission: Admission::new(desk.limits().connections, desk.limits().connections_per_address),
            notices: Notices::new(metrics.clone()),
            app,
            desk: Desk { has_lane: lane.is_some(), ..desk },
            lane,
            metrics,
        }
    }

    /// Counts a connection of this client. A proxy that is trusted speaks for many clients.
    pub(super) fn admit(&self, admitted: &mut Admitted, client: IpAddr) -> Result<(), Full> {
        if is_trusted(client, &self.desk.requests.settings().trusted_proxies) {
            Ok(())
        } else {
            admitted.admit_address(client)
        }
    }
}

/// One listener.
pub struct Door<A> {
    /// What all listeners share.
    pub edge: Arc<Edge<A>>,
    /// TLS; clear text without it.
    pub tls: Option<TlsListener>,
    /// Whether each connection begins with a header of the PROXY protocol.
    pub proxy_protocol: bool,
    /// Whether requests are led to https.
    pub redirect: Option<Redirect>,
}

/// The application behind a door that answers every request by itself: no request goes there.
pub struct NoApp;

#[async_trait]
impl HttpServerApp for NoApp {
    async fn process_new_http(
        self: &Arc<Self>,
        _session: ServerSession,
        _stop: &ShutdownWatch,
    ) -> Option<ReusedHttpStream> {
        None
    }
}
