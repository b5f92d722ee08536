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
use std::path::PathBuf;
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
    /// The settings to start with. Gives the origins a listener on port 8080, for this machine
    /// only, where there is none. Forgets where the file names servers, so that two files with the
    /// same meaning give the same settings. `None` if there is nothing to serve: no origin, and a
    /// listener or no decision service.
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

    /// The settings of certificates that crawlgate gets by itself: those of the first listener that
    /// has any; all others say the same.
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
    /// The address as it may be written: whole, as the first address of its network (/24, of IPv6
    /// /48), or `None`.
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
