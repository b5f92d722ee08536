//! [`Settings`]: how the server runs, from `crawlgate.yaml` and flags: listeners, origins, limits,
//! logs. The rules for crawlers are not here but in policies. [`read`] decodes the text of the file
//! and takes defaults for what it leaves out; it opens no other file and no socket. Commands then
//! set the fields for which there are flags, so a flag overrides the file. [`Settings::settle`]
//! checks that there is something to serve, and adds the default listener.

mod acme;
mod address;
mod client_address;
mod decisions;
mod decode;
mod evidence;
mod identity;
mod limits;
mod listen;
mod origin;
mod origin_index;
mod origins;
mod store;
mod values;

pub use acme::{AcmeSettings, ChallengeChoice};
pub use client_address::ClientAddress;
pub use decisions::{DecisionSettings, ListenAddress};
pub use decode::read;
pub use evidence::EvidenceSettings;
pub use identity::{IdentitySettings, ListSettings};
pub use limits::Limits;
pub use listen::{CertificateFiles, ListenSettings, TlsSettings};
pub use origin::{
    Balance, Ejection, HealthSettings, OriginSettings, OriginTimeouts, OriginTls, PlaceSettings,
    ServerSettings, TlsFile,
};
pub use origin_index::OriginIndex;
pub use store::{StoreSettings, StoreUrl};

use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;
use strum::{EnumString, VariantNames};

/// The JSON Schema of `crawlgate.yaml`, for editors. It refuses nothing that [`read`] accepts, but
/// for a bare `true` or `false` as a name.
pub const SCHEMA: &str = include_str!("settings.schema.json");

/// Everything the server is started with.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Addresses to serve on.
    pub listen: Vec<ListenSettings>,
    /// The decision service; none when absent.
    pub decisions: Option<DecisionSettings>,
    /// Where requests go, by host. Empty where there is nothing but the decision service.
    pub origins: Vec<OriginSettings>,
    /// The policy directory.
    pub policies: PathBuf,
    /// Whether it may be missing: the operator did not name it, and without a policy the origin's
    /// own robots.txt is observed.
    pub policies_may_be_missing: bool,
    /// The admin listener; none when absent.
    pub admin: Option<SocketAddr>,
    /// The control socket; none when absent.
    pub control: Option<PathBuf>,
    /// The state directory; nothing is remembered when absent.
    pub state: Option<PathBuf>,
    /// Peers whose forwarding headers are believed.
    pub trusted_proxies: Vec<IpNet>,
    /// The field in which they name their client.
    pub client_address: ClientAddress,
    /// Where proof of a claimed crawler comes from.
    pub identity: IdentitySettings,
    /// Where clients of certificate authorities write their challenges; the origin answers when
    /// absent.
    pub acme_webroot: Option<PathBuf>,
    /// Bounds on requests and connections.
    pub limits: Limits,
    /// How long the process before answers requests after an upgrade.
    pub upgrade_drain: Duration,
    /// The logs.
    pub logs: Logs,
    /// Whether requests that need little take the lane past Pingora's proxy.
    pub lane: bool,
    /// How much of a client's address the history keeps.
    pub history_addresses: AddressDetail,
    /// The log that third parties can check; none when absent.
    pub evidence: Option<EvidenceSettings>,
    /// How much of a client's address it keeps.
    pub evidence_addresses: AddressDetail,
    /// Where several instances meet; none when absent.
    pub store: Option<StoreSettings>,
    /// Worker threads; the number of cores when absent.
    pub threads: Option<usize>,
    /// Refuse to start on a last good copy.
    pub strict: bool,
    /// Hosts that did not exist before, so that no crawler has a cached robots.txt of them: those
    /// of the demo.
    pub new_hosts: Vec<String>,
    /// The file of a developer's clock.
    pub clock: Option<PathBuf>,
    /// The ports that a developer's authority asks, in place of 80 and 443.
    pub acme_ports: Option<(u16, u16)>,
}

/// What holds where neither the file nor a flag says anything. Places that depend on the machine
/// are absent.
impl Default for Settings {
    fn default() -> Settings {
        Settings {
            listen: Vec::new(),
            decisions: None,
            origins: Vec::new(),
            policies: "policies".into(),
            policies_may_be_missing: true,
            admin: Some(local(9090)),
            control: None,
            state: None,
            trusted_proxies: Vec::new(),
            client_address: ClientAddress::default(),
            identity: IdentitySettings::default(),
            acme_webroot: None,
            limits: Limits::DEFAULT,
            upgrade_drain: Duration::from_secs(600),
            logs: Logs::default(),
            lane: true,
            history_addresses: AddressDetail::Network,
            evidence: None,
            evidence_addresses: AddressDetail::Full,
            store: None,
            threads: None,
            strict: false,
            new_hosts: Vec::new(),
            clock: None,
            acme_ports: None,
        }
    }
}

fn local(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

impl Settings {
    /// Makes relative paths relative to the directory that the file stands in, so that a file means
    /// the same wherever crawlgate is started from.
    pub fn relative_to(mut self, directory: &Path) -> Settings {
        for path in self.paths() {
            *path = directory.join(&*path);
        }
        self
    }

    /// The paths that the file may have.
    fn paths(&mut self) -> Vec<&mut PathBuf> {
        let mut paths = Vec::new();
        for tls in self
            .listen
            .iter_mut()
            .flat_map(|listener| &mut listener.tls)
        {
            for files in &mut tls.certificates {
                paths.extend([&mut files.certificate, &mut files.key]);
            }
        }
        for origin in &mut self.origins {
            for server in &mut origin.servers {
                paths.extend(&mut server.address.socket);
            }
            if let Some(tls) = &mut origin.tls {
                let files = tls.ca.iter_mut().chain(tls.client.iter_mut().flatten());
                paths.extend(files.map(|file| &mut file.path));
            }
        }
        // The default one is that of the directory where crawlgate is started.
        if !self.policies_may_be_missing {
            paths.push(&mut self.policies);
        }
        paths.extend(&mut self.acme_webroot);
        paths.extend(&mut self.control);
        paths.extend(&mut self.state);
        if let Some(decisions) = &mut self.decisions {
            for address in &mut decisions.listen {
                if let ListenAddress::Unix(path) = address {
                    paths.push(path);
                }
            }
        }
        if let ListSettings::Directory(path) = &mut self.identity.lists {
            paths.push(path);
        }
        if let Some(store) = &mut self.store {
            paths.extend(&mut store.password_file);
            paths.extend(&mut store.ca);
        }
        for log in [&mut self.logs.access, &mut self.logs.events.destination] {
            if let LogDestination::File(path) = log {
                paths.push(path);
            }
        }
        paths
    }

    /// Gives the origins a listener on port 8080, for this machine only, where there is none.
    /// Without an origin there is nothing but the decision service. `None` where no origin is
    /// named, and there is a listener or no decision service.
    pub fn settle(mut self) -> Option<Settings> {
        // Two files that mean the same come to the same settings.
        self.origins
            .iter_mut()
            .flat_map(|origin| &mut origin.servers)
            .for_each(|server| server.span = None);
        if self.origins.is_empty() && (self.decisions.is_none() || !self.listen.is_empty()) {
            return None;
        }
        if self.listen.is_empty() && !self.origins.is_empty() {
            self.listen = vec![local(8080).into()];
        }
        Some(self)
    }

    /// Certificates that crawlgate gets by itself, where a listener has them.
    pub fn acme(&self) -> Option<&AcmeSettings> {
        self.listen
            .iter()
            .find_map(|listener| listener.tls.as_ref()?.acme.as_ref())
    }
}

/// Where a server of an origin is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServerAddress {
    /// Whether it speaks TLS.
    pub tls: bool,
    /// A name, or an address (IPv6 without brackets).
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The path of its Unix socket. Then host and port are those of the Host field of a request
    /// without one.
    pub socket: Option<PathBuf>,
}

/// What is written down, and where.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Logs {
    /// The access log.
    pub access: LogDestination,
    /// How it is written.
    pub access_format: AccessFormat,
    /// What crawlers do against the rules.
    pub events: EventSettings,
    /// How much of a client's address is written.
    pub addresses: AddressDetail,
}

/// The log of events.
#[derive(Clone, Debug, PartialEq)]
pub struct EventSettings {
    /// Where it goes.
    pub destination: LogDestination,
    /// Events a second; of more only some are written, and how many were left out.
    pub rate: u32,
}

impl Default for EventSettings {
    fn default() -> EventSettings {
        EventSettings {
            destination: LogDestination::Off,
            rate: 100,
        }
    }
}

/// Where a log goes.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum LogDestination {
    /// Nowhere. Events still reach the admin listener.
    #[default]
    Off,
    /// Standard output.
    Stdout,
    /// Appended to this file.
    File(PathBuf),
}

/// How the access log is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, EnumString, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum AccessFormat {
    /// A JSON object for each request.
    #[default]
    Json,
    /// The Combined format of nginx and Apache.
    Combined,
    /// The Combined format with the host before it, as Apache's `vhost_combined`.
    VhostCombined,
}

/// How much of an address is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, EnumString, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum AddressDetail {
    /// All of it.
    #[default]
    Full,
    /// Its network: IPv4 to /24, IPv6 to /48.
    Network,
    /// None of it.
    None,
}

impl AddressDetail {
    /// The address as it may be written.
    pub fn apply(self, address: IpAddr) -> Option<IpAddr> {
        let length = if address.is_ipv4() { 24 } else { 48 };
        match self {
            AddressDetail::None => None,
            AddressDetail::Full => Some(address),
            AddressDetail::Network => IpNet::new(address, length)
                .ok()
                .map(|network| network.trunc().addr()),
        }
    }
}

#[cfg(test)]
mod tests;
