//! [`SettingsFile`]: the settings that the file or flags give; flags outrank the file ([`SettingsFile::over`]). What neither
//! gives is absent until [`SettingsFile::settle`] fills in the defaults.

use super::{
    AccessFormat, AddressDetail, DecisionSettings, EventSettings, EvidenceSettings, IdentitySettings, Limits,
    ListenAddress, ListenSettings, LogDestination, Logs, OriginSettings, Settings, StoreSettings, UPGRADE_DRAIN,
};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What was said, by the file or by flags. An outer `None` is "nothing was said"; `Some(None)` is "off".
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct SettingsFile {
    pub listen: Vec<ListenSettings>,
    pub decisions: Option<Option<DecisionSettings>>,
    pub origins: Vec<OriginSettings>,
    pub policies: Option<PathBuf>,
    pub admin: Option<Option<SocketAddr>>,
    pub control: Option<Option<PathBuf>>,
    pub state: Option<Option<PathBuf>>,
    pub trusted_proxies: Option<Vec<ipnet::IpNet>>,
    pub identity: IdentitySettings,
    pub acme_webroot: Option<PathBuf>,
    pub limits: Limits,
    /// `upgrade.drain`.
    pub upgrade_drain: Option<Duration>,
    pub access: Option<LogDestination>,
    /// `logs.access.format`.
    pub access_format: Option<AccessFormat>,
    pub events: EventSettings,
    pub addresses: Option<AddressDetail>,
    pub lane: Option<bool>,
    /// How much of a client's address the history keeps.
    pub history_addresses: Option<AddressDetail>,
    pub evidence: Option<EvidenceSettings>,
    /// How much of a client's address evidence keeps.
    pub evidence_addresses: Option<AddressDetail>,
    pub store: Option<StoreSettings>,
    pub threads: Option<usize>,
    pub strict: Option<bool>,
}

/// The defaults that depend on the machine.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Defaults {
    pub control: Option<PathBuf>,
    pub state: Option<PathBuf>,
}

/// There is nowhere to forward requests to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no origin to forward requests to")]
pub struct NoOrigin;

impl SettingsFile {
    /// Makes relative paths relative to the directory that the file stands in, so that a file means the same wherever
    /// crawlgate is started from.
    pub fn relative_to(mut self, directory: &Path) -> SettingsFile {
        let place = |path: &mut PathBuf| *path = directory.join(&*path);
        for tls in self.listen.iter_mut().filter_map(|listener| listener.tls.as_mut()) {
            for files in &mut tls.certificates {
                place(&mut files.certificate);
                place(&mut files.key);
            }
        }
        let servers = self.origins.iter_mut().flat_map(|origin| &mut origin.servers);
        servers.filter_map(|server| server.address.socket.as_mut()).for_each(place);
        self.origins.iter_mut().filter_map(|origin| origin.tls.as_mut()).for_each(|tls| tls.relative_to(directory));
        [&mut self.policies, &mut self.acme_webroot].into_iter().flatten().for_each(place);
        [&mut self.control, &mut self.state].into_iter().flatten().flatten().for_each(place);
        let decisions = self.decisions.iter_mut().flatten().flat_map(|decisions| &mut decisions.listen);
        for address in decisions {
            if let ListenAddress::Unix(path) = address {
                place(path);
            }
        }
        self.identity.relative_to(directory);
        self.store.iter_mut().for_each(|store| store.relative_to(directory));
        for log in self.access.iter_mut().chain([&mut self.events.destination]) {
            if let LogDestination::File(path) = log {
                place(path);
            }
        }
        self
    }

    /// These settings where they say something, and `file`'s elsewhere. Settings without a flag are the file's.
    pub fn over(self, file: SettingsFile) -> SettingsFile {
        SettingsFile {
            listen: if self.listen.is_empty() { file.listen } else { self.listen },
            decisions: self.decisions.or(file.decisions),
            origins: if self.origins.is_empty() { file.origins } else { self.origins },
            policies: self.policies.or(file.policies),
            admin: self.admin.or(file.admin),
            control: self.control.or(file.control),
            state: self.state.or(file.state),
            trusted_proxies: self.trusted_proxies.or(file.trusted_proxies),
            access: self.access.or(file.access),
            threads: self.threads.or(file.threads),
            strict: self.strict.or(file.strict),
            ..file
        }
    }

    /// Fills in the defaults: port 8080 and the admin listener on 9090, both for this machine only. Without an origin
    /// there is nothing but the decision service.
    ///
    /// # Errors
    /// No origin was named, and there is a listener or no decision service.
    pub fn settle(mut self, defaults: Defaults) -> Result<Settings, NoOrigin> {
        // Two files that mean the same come to the same settings.
        self.origins.iter_mut().flat_map(|origin| &mut origin.servers).for_each(|server| server.span = None);
        let decisions = self.decisions.flatten();
        if self.origins.is_empty() && (decisions.is_none() || !self.listen.is_empty()) {
            return Err(NoOrigin);
        }
        let local = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let listen = match (self.listen.is_empty(), self.origins.is_empty()) {
            (true, false) => vec![local(8080).into()],
            _ => self.listen,
        };
        Ok(Settings {
            listen,
            decisions,
            origins: self.origins,
            policies_may_be_missing: self.policies.is_none(),
            policies: self.policies.unwrap_or_else(|| PathBuf::from("policies")),
            admin: self.admin.unwrap_or(Some(local(9090))),
            control: self.control.unwrap_or(defaults.control),
            state: self.state.unwrap_or(defaults.state),
            trusted_proxies: self.trusted_proxies.unwrap_or_default(),
            identity: self.identity,
            acme_webroot: self.acme_webroot,
            limits: self.limits,
            upgrade_drain: self.upgrade_drain.unwrap_or(UPGRADE_DRAIN),
            logs: Logs {
                access: self.access.unwrap_or(LogDestination::Off),
                access_format: self.access_format.unwrap_or_default(),
                events: self.events,
                addresses: self.addresses.unwrap_or(AddressDetail::Full),
            },
            lane: self.lane.unwrap_or(true),
            history_addresses: self.history_addresses.unwrap_or(AddressDetail::Network),
            evidence: self.evidence,
            evidence_addresses: self.evidence_addresses.unwrap_or(AddressDetail::Full),
            store: self.store,
            threads: self.threads,
            strict: self.strict.unwrap_or(false),
            new_hosts: Vec::new(),
            clock: None,
            acme_ports: None,
        })
    }
}
