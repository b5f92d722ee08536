//! [`AuthorityParts`] connects `acme` with the running server: it gives `acme` the settings and the
//! hosts, the request path the answers to challenges, and the status certificates and orders.

use super::ServerError;
use crate::acme::{Acme, Issued, Ports, Reachable};
use crate::admin::{CertificatesSource, Operations};
use crate::edge::Certificates;
use crate::policy::Snapshot;
use crate::requests::{IsEncrypted, OwnFiles};
use crate::settings::Settings;
use crate::upkeep::Instance;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

/// The ports that authorities connect to.
const PORTS: Ports = Ports { http: 80, tls: 443 };

/// The parts that exist before the other rooms are opened.
pub struct AuthorityParts {
    issued: Arc<Issued>,
    pub certificates: Arc<Certificates>,
    /// The state directory; `None` without `acme`.
    state: Option<PathBuf>,
}

impl AuthorityParts {
    /// The parts for these settings. Without `acme` in the settings they do nothing.
    ///
    /// # Errors
    /// The settings have `acme` and no state directory.
    pub fn new(
        settings: &Settings,
        issued: Arc<Issued>,
        certificates: Arc<Certificates>,
    ) -> Result<AuthorityParts, ServerError> {
        let state = settings.acme().and_then(|_| settings.state.clone());
        if settings.acme().is_some() && state.is_none() {
            return Err(ServerError::WithoutState("acme"));
        }
        Ok(AuthorityParts {
            issued,
            certificates,
            state,
        })
    }

    /// Answers the open challenges of the process before, as its `acme` passed them.
    pub fn answer_passed(&self, questions: serde_json::Value) {
        if let Ok(questions) = serde_json::from_value(questions) {
            self.issued.answer_passed(questions);
        }
    }

    /// The files by which crawlgate answers http challenges; `None` without `acme`.
    pub fn own_files(&self) -> Option<OwnFiles> {
        let issued = self.state.as_ref().map(|_| self.issued.clone())?;
        Some(Arc::new(move |token| issued.file(token)))
    }

    /// A function that says whether there is a certificate for a host (the value of a Host field,
    /// with or without a port): crawlgate redirects no request to https before. `None` without
    /// `acme`: then every request may be redirected.
    pub fn is_encrypted(&self) -> Option<IsEncrypted> {
        let certificates = self.state.as_ref().map(|_| self.certificates.clone())?;
        Some(Arc::new(move |host| {
            let (name, _) = crate::policy::site::name_and_port(host);
            std::str::from_utf8(name).is_ok_and(|name| certificates.has(&name.to_ascii_lowercase()))
        }))
    }

    /// Opens `acme`: stored certificates are in use from now on. Sends no request and writes
    /// nothing. `None` if the settings have no `acme`.
    pub fn open(&self, settings: &Settings, instance: &Instance) -> Option<Arc<Acme>> {
        let (said, state) = settings.acme().zip(self.state.as_deref())?;
        let ports = settings
            .acme_ports
            .map_or(PORTS, |(http, tls)| Ports { http, tls });
        let has_clear_text = settings
            .listen
            .iter()
            .any(|listener| listener.tls.is_none());
        Some(Acme::open(
            said,
            Reachable {
                ports,
                has_clear_text,
            },
            state,
            self.issued.clone(),
            instance.clock.clone(),
            instance.metrics.clone(),
        ))
    }

    /// Returns the certificates and the orders for the status.
    pub fn source(&self, acme: Option<Arc<Acme>>) -> CertificatesSource {
        let certificates = self.certificates.clone();
        Box::new(move |now| {
            let mut all = certificates.status(now);
            let Some(acme) = &acme else {
                return (all, Vec::new());
            };
            all.extend(acme.certificates(now));
            (all, acme.orders())
        })
    }

    /// Starts the thread that gets certificates. It waits until this process is ready and alone
    /// accepts connections (`Upgrades::is_alone`): an authority connects at once. It asks for the
    /// hosts that `acme` names, or else for those of the policies, without those that have a
    /// certificate from files.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(
        &self,
        acme: &Arc<Acme>,
        settings: &Settings,
        operations: Arc<Operations>,
        is_alone: impl Fn() -> bool + Send + 'static,
    ) -> Result<(), ServerError> {
        let named = settings.acme().and_then(|said| said.hosts.clone());
        let certificates = self.certificates.clone();
        let started = acme.start(move || {
            if !operations.is_ready() || !is_alone() {
                return None;
            }
            let mut hosts = match &named {
                Some(named) => named.iter().cloned().collect(),
                None => of_policies(&operations.instance.sites.snapshot()),
            };
            hosts.retain(|host| !certificates.has_file_for(host));
            Some(hosts)
        });
        started.map_err(ServerError::io(
            "cannot start the thread for certificates of an authority",
        ))
    }
}

/// The hosts of all policies that an authority may issue for: whole names with a dot, without their
/// port; no wildcards and no addresses.
fn of_policies(snapshot: &Snapshot) -> BTreeSet<String> {
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
