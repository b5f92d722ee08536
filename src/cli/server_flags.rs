//! [`ServerFlags`]: the flags that `run` and `decide` share. A flag outranks its setting in `crawlgate.yaml`.

use super::{Failure, policies, say};
use crate::server::Beginning;
use crate::settings::{self, LogDestination, OriginSettings, ServerAddress, SettingsFile};
use crate::upgrade::Successor;
use crate::upstreams::ServerTls;
use crate::yaml::{Diagnostic, Diagnostics, Source};
use std::fmt::Display;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

#[derive(Debug, clap::Args)]
pub struct ServerFlags {
    /// The address of metrics and status [default: 127.0.0.1:9090], or `off`
    #[arg(long, value_name = "ADDR", value_parser = or_off::<SocketAddr>)]
    admin: Option<OrOff<SocketAddr>>,
    /// The control socket, or `off`
    #[arg(long, value_name = "PATH", value_parser = or_off::<PathBuf>)]
    control: Option<OrOff<PathBuf>>,
    /// The policy directory [default: policies]
    #[arg(long, value_name = "DIR")]
    policies: Option<PathBuf>,
    /// The directory for everything that outlasts a restart, or `off`
    #[arg(long, value_name = "DIR", value_parser = or_off::<PathBuf>)]
    state: Option<OrOff<PathBuf>>,
    /// The settings file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The file for the access log; `-` is standard output
    #[arg(long, value_name = "PATH")]
    access_log: Option<PathBuf>,
    /// Do not start with a broken policy, even if there is a last good copy
    #[arg(long)]
    strict: bool,
    /// For development: a file that sets the clock, like `lived 25h` or `set -2h`; only on loopback
    #[arg(long, value_name = "FILE", hide = true)]
    pub(super) clock: Option<PathBuf>,
    /// For development: the ports that a test authority asks in place of 80 and 443, like `5002,5001`; only on loopback
    #[arg(long, value_name = "PORTS", hide = true, value_parser = two_ports)]
    pub(super) acme_ports: Option<(u16, u16)>,
    /// Take over from the running crawlgate that has started this one
    #[arg(long, hide = true)]
    successor: bool,
}

fn two_ports(written: &str) -> Result<(u16, u16), &'static str> {
    let ports = written.split_once(',').and_then(|(http, tls)| http.parse().ok().zip(tls.parse().ok()));
    ports.ok_or("write two ports, like 5002,5001")
}

impl ServerFlags {
    /// Whether the server begins on its own or in place of a running process.
    pub(super) fn beginning(&self) -> Result<Beginning, Failure> {
        if !self.successor {
            return Ok(Beginning::Replaceable);
        }
        Ok(Beginning::Next(Box::new(Successor::greeted()?)))
    }

    /// The settings file; empty where none is named.
    pub(super) fn file(&self) -> Result<SettingsFile, Failure> {
        Ok(self.config.as_deref().map(settings_file).transpose()?.unwrap_or_default())
    }

    /// The flags as settings, with these servers as the origin.
    pub(super) fn said(&self, servers: &[ServerAddress]) -> SettingsFile {
        SettingsFile {
            origins: (!servers.is_empty()).then(|| OriginSettings::of(servers.to_vec())).into_iter().collect(),
            policies: self.policies.clone(),
            admin: self.admin.clone().map(|said| said.0),
            control: self.control.clone().map(|said| said.0),
            state: self.state.clone().map(|said| said.0),
            access: self.access_log.as_ref().map(|path| match path.as_os_str() == "-" {
                true => LogDestination::Stdout,
                false => LogDestination::File(path.clone()),
            }),
            strict: self.strict.then_some(true),
            ..SettingsFile::default()
        }
    }
}

/// A value, or `off`.
#[derive(Clone, Debug)]
struct OrOff<T>(Option<T>);

fn or_off<T: FromStr<Err: Display>>(written: &str) -> Result<OrOff<T>, String> {
    match written {
        "off" => Ok(OrOff(None)),
        "" => Err("the value is empty".to_owned()),
        written => written.parse().map(|value| OrOff(Some(value))).map_err(|error| format!("{error}")),
    }
}

/// A settings file as it was read. Without a mistake it has values.
pub(super) struct ReadSettings {
    pub(super) source: Source,
    pub(super) diagnostics: Diagnostics,
    pub(super) file: Option<SettingsFile>,
}

pub(super) fn read_settings(path: &Path) -> Result<ReadSettings, Failure> {
    let (source, mut diagnostics) = policies::read_source(path)?;
    let mut file = None;
    if !diagnostics.has_errors() {
        (file, diagnostics) = settings::read(&source);
    }
    let directory = path.parent().unwrap_or(Path::new(""));
    let mut file = file.map(|file| file.relative_to(directory));
    let servers = file.iter().flat_map(|file| &file.origins).flat_map(|origin| &origin.servers);
    for server in servers.filter(|server| server.has_unusable_socket()) {
        let message = format!("{} is too long for a socket, which has at most 107 octets", server.address.url());
        let finding = Diagnostic::error("bad-origin", server.span.unwrap_or_default(), message);
        diagnostics.push(finding.help("write a shorter path; one that is not absolute begins at the settings file"));
    }
    for tls in file.iter().flat_map(|file| &file.origins).filter_map(|origin| origin.tls.as_ref()) {
        if let Err(error) = ServerTls::open(tls) {
            let finding = Diagnostic::error("bad-file", error.span, error.to_string());
            diagnostics.push(finding.help("write the path of a file in PEM, relative to the settings file"));
        }
    }
    if diagnostics.has_errors() {
        file = None;
    }
    Ok(ReadSettings { source, diagnostics, file })
}

/// The values of a settings file; its mistakes go to standard error.
pub(super) fn settings_file(path: &Path) -> Result<SettingsFile, Failure> {
    let ReadSettings { source, diagnostics, file } = read_settings(path)?;
    let colour = super::colour(&std::io::stderr());
    for finding in &diagnostics.items {
        say(&finding.render(&source, colour));
    }
    file.ok_or_else(|| Failure::Found(format!("cannot use the settings file {}", path.display())))
}
