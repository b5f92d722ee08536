//! [`ServerFlags`]: the flags that `run` and `decide` share. A flag overrides the setting in
//! `crawlgate.yaml`.

use super::{Failure, Result, places, policies};
use crate::server::Beginning;
use crate::settings::{
    self, LogDestination, OriginSettings, ServerAddress, ServerSettings, Settings,
};
use crate::yaml::{Diagnostic, Diagnostics, Source};
use std::error::Error;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

#[derive(clap::Args)]
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
    clock: Option<PathBuf>,
    /// For development: the ports that a test authority asks in place of 80 and 443, like
    /// `5002,5001`; only on loopback
    #[arg(long, value_name = "PORTS", hide = true, value_parser = two_ports)]
    acme_ports: Option<(u16, u16)>,
    /// Take over from the running crawlgate that has started this one
    #[arg(long, hide = true)]
    successor: bool,
}

/// Reads two ports with a comma between them: of the http challenge, then of the tls-alpn one.
fn two_ports(written: &str) -> Result<(u16, u16), &'static str> {
    let ports = written
        .split_once(',')
        .and_then(|(http, tls)| http.parse().ok().zip(tls.parse().ok()));
    ports.ok_or("write two ports, like 5002,5001")
}

impl ServerFlags {
    /// Whether the server begins on its own, or as the successor of the running process that has
    /// started it. Fails if a successor gets no greeting of that process.
    pub fn beginning(&self) -> Result<Beginning> {
        if !self.successor {
            return Ok(Beginning::Replaceable);
        }
        Ok(Beginning::Next(Box::new(
            crate::upgrade::Successor::greeted()?,
        )))
    }

    /// The settings of the file or the defaults, with the flags in place of what they name.
    /// `servers`, if there are any, replace all origins by one for every host. Prints the findings
    /// about the file on standard error, and fails if it has a mistake.
    pub fn settings(&self, servers: &[ServerAddress]) -> Result<Settings> {
        let mut settings = self
            .config
            .as_deref()
            .map_or_else(|| Ok(defaults()), settings_file)?;
        if !servers.is_empty() {
            settings.origins = vec![OriginSettings::of(servers.to_vec())];
        }
        if let Some(policies) = self.policies.clone() {
            settings.policies = policies;
            settings.policies_may_be_missing = false;
        }
        if let Some(OrOff(admin)) = self.admin {
            settings.admin = admin;
        }
        for (said, place) in [
            (&self.control, &mut settings.control),
            (&self.state, &mut settings.state),
        ] {
            if let Some(OrOff(said)) = said {
                place.clone_from(said);
            }
        }
        if let Some(path) = &self.access_log {
            settings.logs.access = if path.as_os_str() == "-" {
                LogDestination::Stdout
            } else {
                LogDestination::File(path.clone())
            };
        }
        settings.strict |= self.strict;
        settings.clock.clone_from(&self.clock);
        settings.acme_ports = self.acme_ports;
        Ok(settings)
    }
}

/// The settings without a file: the general defaults, and the places for control socket and state
/// on this machine.
pub fn defaults() -> Settings {
    Settings {
        control: places::control_to_serve(),
        state: places::state(),
        ..Settings::default()
    }
}

/// A value, or `off`.
#[derive(Clone)]
struct OrOff<T>(Option<T>);

/// Reads a value, or `off`, which is `OrOff(None)`. An empty value is an error.
fn or_off<T>(written: &str) -> Result<OrOff<T>, Box<dyn Error + Send + Sync>>
where
    T: FromStr<Err: Error + Send + Sync + 'static>,
{
    match written {
        "off" => Ok(OrOff(None)),
        "" => Err("the value is empty".into()),
        written => Ok(OrOff(Some(written.parse()?))),
    }
}

/// Reads a settings file, makes its paths relative to its directory, and checks sockets and TLS
/// files of its origins. There are settings only where it has no mistake. Fails if it cannot be
/// read.
pub fn read_settings(path: &Path) -> Result<(Source, Diagnostics, Option<Settings>)> {
    let (source, mut diagnostics) = policies::read_source(path)?;
    let directory = path.parent().unwrap_or(Path::new(""));
    let mut settings = None;
    if !diagnostics.has_errors() {
        (settings, diagnostics) = settings::read(&source, directory, defaults());
    }
    for origin in settings.iter().flat_map(|settings| &settings.origins) {
        for server in &origin.servers {
            diagnostics.items.extend(too_long_socket(server));
        }
        let Some(tls) = &origin.tls else { continue };
        if let Err(error) = crate::upstreams::ServerTls::open(tls) {
            let finding = Diagnostic::error("bad-file", error.file.span, error.to_string());
            diagnostics.push(
                finding.help("write the path of a file in PEM, relative to the settings file"),
            );
        }
    }
    let is_usable = !diagnostics.has_errors();
    Ok((source, diagnostics, settings.filter(|_| is_usable)))
}

/// The mistake that the socket of a server cannot be named: no system call can name one with a
/// longer path (unix(7)).
fn too_long_socket(server: &ServerSettings) -> Option<Diagnostic> {
    let socket = server.address.socket.as_ref()?;
    std::os::unix::net::SocketAddr::from_pathname(socket).err()?;
    let finding = Diagnostic::error(
        "bad-origin",
        server.span.unwrap_or_default(),
        format!(
            "{} is too long for a socket, which has at most 107 octets",
            server.address.url()
        ),
    );
    Some(finding.help("write a shorter path; one that is not absolute begins at the settings file"))
}

/// The settings of a file; its findings go to standard error. Fails if it has a mistake.
pub fn settings_file(path: &Path) -> Result<Settings> {
    let (source, diagnostics, settings) = read_settings(path)?;
    super::say_findings(&source, &diagnostics.items);
    settings
        .ok_or_else(|| Failure::Found(format!("cannot use the settings file {}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::ServerFlags;
    use clap::Parser;

    #[derive(Parser)]
    struct Given {
        #[command(flatten)]
        flags: ServerFlags,
    }

    #[test]
    fn what_the_flags_say_goes_over_the_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("crawlgate.yaml");
        let text = "origins: http://127.0.0.1:3000\nadmin: 127.0.0.1:1\nstate: state\npolicies: sites\nstrict: yes\n";
        std::fs::write(&file, text).expect("a file");
        let config = file.to_str().expect("a path");
        let given = Given::parse_from([
            "run",
            "--config",
            config,
            "--admin",
            "off",
            "--policies",
            "others",
        ]);
        let settings = given
            .flags
            .settings(&[])
            .map_err(|error| format!("{error:?}"))
            .expect("settings");
        assert_eq!(
            (settings.admin, settings.strict, settings.origins.len()),
            (None, true, 1)
        );
        assert_eq!(settings.state, Some(directory.path().join("state")));
        assert_eq!(
            (settings.policies, settings.policies_may_be_missing),
            ("others".into(), false)
        );
    }
}
