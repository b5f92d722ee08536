//! [`AcmeServices`] connects the module `acme` (automatic certificates) with the running server.
//! The server passes the settings and the hosts to `acme`. The request pipeline gets from `acme`
//! the answers to an authority's challenges. The status for operators gets the state of
//! certificates and of their orders.

use super::ServerError;
use crate::acme::{AcmeScheduler, ChallengeEndpoints, IssuedCertificates};
use crate::admin::{CertificateStatusFn, Operations};
use crate::edge::CertificateStore;
use crate::policy::Snapshot;
use crate::requests::{HasCertificate, OwnChallengeLookup};
use crate::settings::Settings;
use crate::upkeep::Instance;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

/// The ports that authorities connect to, in clear text and over TLS.
const PORTS: (u16, u16) = (80, 443);

/// The certificates and challenges, which exist before the other services are opened.
pub struct AcmeServices {
    issued: Arc<IssuedCertificates>,
    pub certificates: Arc<CertificateStore>,
    /// The state directory; `None` without `acme`.
    state: Option<PathBuf>,
}

impl AcmeServices {
    /// The parts for these settings. Without `acme` in the settings they do nothing.
    ///
    /// # Errors
    /// The settings have `acme` and no state directory.
    pub fn new(
        settings: &Settings,
        issued: Arc<IssuedCertificates>,
        certificates: Arc<CertificateStore>,
    ) -> Result<AcmeServices, ServerError> {
        let state = settings.acme().and_then(|_| settings.state.clone());
        if settings.acme().is_some() && state.is_none() {
            return Err(ServerError::WithoutState("acme"));
        }
        Ok(AcmeServices {
            issued,
            certificates,
            state,
        })
    }

    /// The files by which crawlgate answers http challenges; `None` without `acme`.
    pub fn challenge_files(&self) -> Option<OwnChallengeLookup> {
        let issued = self.state.as_ref().map(|_| self.issued.clone())?;
        Some(Arc::new(move |token| issued.challenge_file(token)))
    }

    /// A function that checks whether there is a certificate for a host (the value of a Host field,
    /// with or without a port): crawlgate redirects no request to https before. `None` without
    /// `acme`: then every request may be redirected.
    pub fn has_certificate(&self) -> Option<HasCertificate> {
        let certificates = self.state.as_ref().map(|_| self.certificates.clone())?;
        Some(Arc::new(move |host| {
            let (name, _) = crate::policy::site::split_host_port(host);
            std::str::from_utf8(name)
                .is_ok_and(|name| certificates.has_certificate(&name.to_ascii_lowercase()))
        }))
    }

    /// Opens `acme`: stored certificates are in use from now on. Sends no request and writes
    /// nothing. `None` if the settings have no `acme`.
    pub fn open_acme(
        &self,
        settings: &Settings,
        instance: &Instance,
    ) -> Option<Arc<AcmeScheduler>> {
        let (acme_settings, state) = settings.acme().zip(self.state.as_deref())?;
        let (http, tls) = settings.acme_ports.unwrap_or(PORTS);
        let has_clear_text = settings
            .listen
            .iter()
            .any(|listener| listener.tls.is_none());
        Some(AcmeScheduler::open(
            acme_settings,
            ChallengeEndpoints {
                http,
                tls,
                has_clear_text,
            },
            state,
            self.issued.clone(),
            instance.clock.clone(),
            instance.metrics.clone(),
        ))
    }

    /// Returns the certificates and the orders for the status.
    pub fn certificate_source(&self, acme: Option<Arc<AcmeScheduler>>) -> CertificateStatusFn {
        let certificates = self.certificates.clone();
        Box::new(move |now| {
            let mut all = certificates.status(now);
            let Some(acme) = &acme else {
                return (all, Vec::new());
            };
            all.extend(acme.certificate_statuses(now));
            (all, acme.order_statuses())
        })
    }

    /// Starts the thread that gets certificates. It waits until this process is ready and alone
    /// accepts connections (`UpgradeCoordinator::is_alone`): an authority connects at once. It asks for the
    /// hosts that `acme` names, or else for those of the policies, without those that have a
    /// certificate from files.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start_orders(
        &self,
        acme: &Arc<AcmeScheduler>,
        settings: &Settings,
        operations: Arc<Operations>,
        is_alone: impl Fn() -> bool + Send + 'static,
    ) -> Result<(), ServerError> {
        let named = settings
            .acme()
            .and_then(|acme_settings| acme_settings.hosts.clone());
        let certificates = self.certificates.clone();
        let started = acme.start(move || {
            if !operations.is_ready() || !is_alone() {
                return None;
            }
            let mut hosts = match &named {
                Some(named) => named.iter().cloned().collect(),
                None => policy_hosts(&operations.instance.sites.snapshot()),
            };
            hosts.retain(|host| !certificates.has_file_certificate(host));
            Some(hosts)
        });
        started.map_err(ServerError::from_io(
            "cannot start the thread for automatic certificates",
        ))
    }
}

/// The hosts of all policies that an authority may issue for: whole names with a dot, without their
/// port; no wildcards and no addresses.
fn policy_hosts(snapshot: &Snapshot) -> BTreeSet<String> {
    let hosts = snapshot
        .sites()
        .iter()
        .flat_map(|entry| &entry.site.policy.hosts)
        .map(|host| &host.value);
    let hosts = hosts.filter(|host| {
        !host.wildcard && host.name.contains('.') && host.name.parse::<std::net::IpAddr>().is_err()
    });
    hosts.map(|host| host.name.clone()).collect()
}
