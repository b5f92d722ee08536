//! [`Settings`]: how the server runs (listeners, origins, limits, logs), from `crawlgate.yaml` and
//! flags. The rules for crawlers are in policies. [`decode_settings`] decodes the text of the file,
//! and opens no other file. Commands then overwrite the fields for which there are flags.
//! [`Settings::finalize`] checks that there is something to serve, and adds the default listener.

mod acme;
mod address;
mod client_address_field;
mod decisions;
mod decode;
mod evidence;
mod identity;
mod limits;
mod listen;
mod origin;
mod origin_index;
mod origins;
mod section;
mod server_health;
mod store;
mod values;

pub use acme::{AcmeSettings, ChallengeChoice};
pub use address::{AddressError, parse_listen_address, url_host};
pub use client_address_field::ClientAddressField;
pub use decisions::{DecisionSettings, ListenAddress};
pub use decode::{decode_control, decode_settings};
pub use evidence::EvidenceSettings;
pub use identity::{IdentitySettings, ListSource};
pub use limits::Limits;
pub use listen::{CertificateFiles, ListenSettings, TlsSettings};
pub use origin::{
    CapacitySettings, LoadBalancing, OriginSettings, OriginTimeouts, OriginTls, ServerSettings,
    TlsFile,
};
pub use origin_index::OriginIndex;
pub use server_health::{EjectionSettings, HealthSettings};
pub use store::{StoreSettings, StoreUrl};

use crate::yaml::SourceFile;
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
    /// The file that the settings were read from; none when absent.
    pub file: Option<SourceFile>,
    /// Addresses to serve on.
    pub listen: Vec<ListenSettings>,
    /// The decision service; none when absent.
    pub decisions: Option<DecisionSettings>,
    /// Where requests go, by host. May be empty if there is a decision service.
    pub origins: Vec<OriginSettings>,
    /// The policy directory.
    pub policies: PathBuf,
    /// Whether it may be missing, because the operator did not name it. Then crawlgate observes the
    /// origin's own robots.txt.
    pub policies_may_be_missing: bool,
    /// The admin listener; none when absent.
    pub admin: Option<SocketAddr>,
    /// Further host names that it answers to.
    pub admin_hosts: Vec<String>,
    /// The control socket; none when absent.
    pub control: Option<PathBuf>,
    /// The state directory; nothing is remembered when absent.
    pub state: Option<PathBuf>,
    /// Proxies whose forwarding headers are believed.
    pub trusted_proxies: Vec<IpNet>,
    /// The field in which they send the address of the client.
    pub client_address: ClientAddressField,
    /// How the identity of crawlers may be proven.
    pub identity: IdentitySettings,
    /// The directory of challenge files that an ACME client writes; without it the origin answers.
    pub acme_webroot: Option<PathBuf>,
    /// Bounds on requests and connections.
    pub limits: Limits,
    /// How long the old process answers its last requests after an upgrade.
    pub upgrade_drain: Duration,
    /// The logs.
    pub logs: LogSettings,
    /// Whether crawlgate forwards most requests itself, without Pingora's proxy.
    pub direct_forwarding: bool,
    /// How much of a client's address the history keeps.
    pub history_addresses: AddressDetail,
    /// Whether the history keeps the paths that crawlers request.
    pub history_paths: bool,
    /// The evidence log; none when absent.
    pub evidence: Option<EvidenceSettings>,
    /// How much of a client's address the evidence log keeps.
    pub evidence_addresses: AddressDetail,
    /// The store that several instances share; none when absent.
    pub store: Option<StoreSettings>,
    /// Worker threads; the number of cores when absent.
    pub threads: Option<usize>,
    /// Whether crawlgate starts only if every policy file is good.
    pub strict: bool,
    /// New hosts, of which no crawler can have a cached robots.txt: the hosts of the demo.
    pub new_hosts: Vec<String>,
    /// For development: the file that sets the clock.
    pub clock: Option<PathBuf>,
    /// For development: the ports that the test authority uses in place of 80 and 443.
    pub acme_ports: Option<(u16, u16)>,
}

/// Without the default paths, which depend on the machine.
impl Default for Settings {
    fn default() -> Settings {
        Settings {
            file: None,
            listen: Vec::new(),
            decisions: None,
            origins: Vec::new(),
            policies: "policies".into(),
            policies_may_be_missing: true,
            admin: Some(loopback_address(9190)),
            admin_hosts: Vec::new(),
            control: None,
            state: None,
            trusted_proxies: Vec::new(),
            client_address: ClientAddressField::default(),
            identity: IdentitySettings::default(),
            acme_webroot: None,
            limits: Limits::default(),
            upgrade_drain: Duration::from_secs(600),
            logs: LogSettings::default(),
            direct_forwarding: true,
            history_addresses: AddressDetail::Network,
            history_paths: true,
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

fn loopback_address(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

impl Settings {
    /// Adds a listener on port 8080 of this machine if there are origins and no listener. `None` if
    /// there is nothing to serve: no origin, and a listener or no decision service.
    pub fn finalize(mut self) -> Option<Settings> {
        self = self.without_places();
        if self.origins.is_empty() && (self.decisions.is_none() || !self.listen.is_empty()) {
            return None;
        }
        Some(self.with_default_listener())
    }

    /// With the listener of [`Settings::finalize`].
    pub fn with_default_listener(mut self) -> Settings {
        if self.listen.is_empty() && !self.origins.is_empty() {
            self.listen = vec![loopback_address(8080).into()];
        }
        self
    }

    /// Without places in the file, so that files with the same meaning give equal settings.
    pub fn without_places(mut self) -> Settings {
        self.origins
            .iter_mut()
            .flat_map(|origin| &mut origin.servers)
            .for_each(|server| server.span = None);
        self
    }

    /// The settings of automatic certificates, which are the same for all listeners.
    pub fn acme(&self) -> Option<&AcmeSettings> {
        self.listen
            .iter()
            .find_map(|listener| listener.tls.as_ref()?.acme.as_ref())
    }
}

/// The address of an origin's server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OriginServerAddress {
    /// Whether it speaks TLS.
    pub tls: bool,
    /// A name, or an address (IPv6 without brackets).
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The path of its Unix socket. Then host and port are for a request without a Host.
    pub socket: Option<PathBuf>,
}

/// The logs about requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LogSettings {
    /// The access log.
    pub access: LogDestination,
    /// The format of the access log.
    pub access_format: AccessFormat,
    /// The log of violations and other events.
    pub events: EventSettings,
    /// How much of a client's address is written.
    pub addresses: AddressDetail,
}

/// The log of events.
#[derive(Clone, Debug, PartialEq)]
pub struct EventSettings {
    /// The destination.
    pub destination: LogDestination,
    /// The most events a second. Further events are only counted.
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

/// The format of the access log.
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
#[derive(Clone, Copy, Debug, Default, PartialEq, EnumString, VariantNames)]
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
    /// The address as it may be written: whole, the first address of its network, or none.
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
