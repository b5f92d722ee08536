//! [`ServerFlags`]: the command-line flags that `run` and `decide` share. A flag overrides the
//! setting in `crawlgate.yaml`.

use super::{Failure, Result, default_paths, sources};
use crate::files::absolute_path;
use crate::policy::lint::FileFindings;
use crate::printable::printable_path;
use crate::server::StartMode;
use crate::settings::{
    self, AddressError, LogDestination, OriginServerAddress, OriginSettings, ServerSettings,
    Settings,
};
use crate::yaml::{Diagnostic, Severity};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
pub struct ServerFlags {
    /// The address of dashboard, metrics and status, or off [default: 127.0.0.1:9190]
    #[arg(long, value_name = "ADDR", value_parser = parse_admin)]
    admin: Option<ValueOrOff<SocketAddr>>,
    /// The control socket for commands like status and pause, or off
    #[arg(long, value_name = "PATH", value_parser = parse_path)]
    control: Option<ValueOrOff<PathBuf>>,
    /// The policy directory [default: policies]
    #[arg(long, value_name = "DIR")]
    policies: Option<PathBuf>,
    /// The directory for everything that must survive a restart, or off
    #[arg(long, value_name = "DIR", value_parser = parse_path)]
    state: Option<ValueOrOff<PathBuf>>,
    /// The settings file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The file for the access log, or - for standard output
    #[arg(long, value_name = "PATH")]
    access_log: Option<PathBuf>,
    /// Do not start if any policy is broken
    #[arg(long)]
    strict: bool,
    /// For development: a file that sets the clock, like `elapsed 25h` or `set -2h`; only on loopback
    #[arg(long, value_name = "FILE", hide = true)]
    clock: Option<PathBuf>,
    /// For development: the ports that a test authority asks in place of 80 and 443, like
    /// `5002,5001`; only on loopback
    #[arg(long, value_name = "PORTS", hide = true, value_parser = parse_port_pair)]
    acme_ports: Option<(u16, u16)>,
    /// Take over from the running crawlgate that has started this one
    #[arg(long, hide = true)]
    successor: bool,
}

/// Parses two ports separated by a comma: for the http and the tls-alpn challenge.
fn parse_port_pair(written: &str) -> Result<(u16, u16), &'static str> {
    let ports = written
        .split_once(',')
        .and_then(|(http, tls)| http.parse().ok().zip(tls.parse().ok()));
    ports.ok_or("write two ports, like 5002,5001")
}

impl ServerFlags {
    /// How the server starts: on its own, or as the successor of the running process. Fails if a
    /// successor gets no greeting from that process.
    pub fn start_mode(&self) -> Result<StartMode> {
        if !self.successor {
            return Ok(StartMode::Replaceable);
        }
        Ok(StartMode::Successor(Box::new(
            crate::upgrade::PendingTakeover::from_stdin()?,
        )))
    }

    /// The settings of the file or the defaults, overridden by the flags. `servers`, if there are
    /// any, replace all origins by one for every host. Prints the findings about the file, and fails
    /// if it has mistakes.
    pub fn load_settings(&self, servers: &[OriginServerAddress]) -> Result<Settings> {
        let mut settings = self
            .config
            .as_deref()
            .map_or_else(|| Ok(default_settings()), load_settings_file)?;
        if !servers.is_empty() {
            settings.origins = vec![OriginSettings::with_servers(servers.to_vec())];
        }
        if let Some(policies) = self.policies.clone() {
            settings.policies = policies;
            settings.policies_may_be_missing = false;
        }
        if let Some(ValueOrOff(admin)) = self.admin {
            settings.admin = admin;
        }
        for (flag, setting) in [
            (&self.control, &mut settings.control),
            (&self.state, &mut settings.state),
        ] {
            if let Some(ValueOrOff(value)) = flag {
                setting.clone_from(value);
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

/// The settings without a file, with the default paths of this machine.
pub fn default_settings() -> Settings {
    Settings {
        control: default_paths::control_socket_to_serve(),
        state: default_paths::state_directory(),
        ..Settings::default()
    }
}

/// `None` for `off`.
#[derive(Clone)]
struct ValueOrOff<T>(Option<T>);

/// Parses a path or `off`.
fn parse_path(written: &str) -> Result<ValueOrOff<PathBuf>, &'static str> {
    match written {
        "off" => Ok(ValueOrOff(None)),
        "" => Err("write a path, or off"),
        path => Ok(ValueOrOff(Some(path.into()))),
    }
}

/// Parses an address or `off`.
fn parse_admin(written: &str) -> Result<ValueOrOff<SocketAddr>, AddressError> {
    if written == "off" {
        return Ok(ValueOrOff(None));
    }
    Ok(ValueOrOff(Some(settings::parse_listen_address(written)?)))
}

/// Decodes a settings file, without a look at the files that it names. Fails if it cannot be read.
fn decode_settings_file(path: &Path) -> Result<(FileFindings, Option<Settings>)> {
    let mut file = sources::read_source(path)?;
    let directory = path.parent().unwrap_or(Path::new(""));
    let mut settings = None;
    if !file.diagnostics.has_errors() {
        (settings, file.diagnostics) =
            settings::decode_settings(&file.source, directory, default_settings());
    }
    Ok((file, settings))
}

/// Reads a settings file, and checks sockets and TLS files of its origins, and directories of logs. Returns no settings if
/// the file has mistakes. Fails if it cannot be read.
pub fn read_settings_file(path: &Path) -> Result<(FileFindings, Option<Settings>)> {
    let (mut file, settings) = decode_settings_file(path)?;
    let findings = &mut file.diagnostics.items;
    if let Some(Settings { logs, .. }) = &settings {
        findings.extend(check_log_directory("access", &logs.access));
        findings.extend(check_log_directory("events", &logs.events.destination));
    }
    for origin in settings.iter().flat_map(|settings| &settings.origins) {
        findings.extend(origin.servers.iter().filter_map(check_socket_length));
        if let Some(tls) = &origin.tls
            && let Err(error) = crate::upstreams::ServerTls::open(tls)
        {
            let finding = Diagnostic::error("bad-file", error.file.span, error.to_string());
            findings.push(
                finding.help("write the path of a file in PEM, relative to the settings file"),
            );
        }
    }
    let is_usable = !file.diagnostics.has_errors();
    Ok((file, settings.filter(|_| is_usable)))
}

/// The warning about a log whose directory does not exist.
fn check_log_directory(name: &str, log: &LogDestination) -> Option<Diagnostic> {
    let LogDestination::File(path) = log else {
        return None;
    };
    let path = absolute_path(path);
    let directory = path.parent().filter(|directory| !directory.is_dir())?;
    Some(warning(
        "missing-directory",
        &format!(
            "the directory of \"{name}\" in \"logs\", {}, does not exist here",
            printable_path(directory)
        ),
        "create it on the machine where crawlgate runs. Until then the log's lines are lost",
    ))
}

/// A warning about a file as a whole.
pub fn warning(id: &'static str, message: &str, help: &str) -> Diagnostic {
    Diagnostic {
        severity: Severity::Warning,
        ..Diagnostic::whole_file(id, message).help(help)
    }
}

/// The finding about a socket path that is too long for a system call (unix(7)).
fn check_socket_length(server: &ServerSettings) -> Option<Diagnostic> {
    let socket = server.address.socket.as_ref()?;
    std::os::unix::net::SocketAddr::from_pathname(socket).err()?;
    let finding = Diagnostic::error(
        "bad-origin",
        server.span.unwrap_or_default(),
        format!(
            "{} is too long for a socket, which has at most 107 bytes",
            server.address.url()
        ),
    );
    Some(finding.help("write a shorter path; one that is not absolute begins at the settings file"))
}

/// The finding about an origin that is a listener of crawlgate.
pub fn check_own_listeners(settings: &Settings) -> Option<Diagnostic> {
    let mut servers = settings.origins.iter().flat_map(|origin| &origin.servers);
    let server = servers.find(|server| {
        settings
            .listen
            .iter()
            .any(|listener| server.address.is_at(listener.address))
    })?;
    let message = format!(
        "\"crawlgate run\" listens on {} itself, so it would send each request to itself. Give the address of the web \
         server behind crawlgate as the origin",
        server.address.url()
    );
    let span = server.span.unwrap_or_default();
    Some(Diagnostic::error("bad-origin", span, message))
}

/// The settings of a file. Prints its findings, and fails if it has mistakes.
pub fn load_settings_file(path: &Path) -> Result<Settings> {
    let (file, settings) = read_settings_file(path)?;
    let settings = settings.ok_or_else(|| unusable_file(path, &file))?;
    super::print_findings(&file.source, &file.diagnostics.items);
    Ok(Settings {
        file: Some(file.source),
        ..settings
    })
}

/// The settings of a file, for a command that may not be allowed to read the keys that it names.
/// Prints mistakes, and fails if there are any.
pub fn load_settings_alone(path: &Path) -> Result<Settings> {
    let (file, settings) = decode_settings_file(path)?;
    settings.ok_or_else(|| unusable_file(path, &file))
}

/// The control socket of a settings file; `None` for `off`. Other mistakes are a warning, and do not
/// stop the command. Fails if mistakes hide which socket the file names, and prints them.
pub fn load_control(path: &Path) -> Result<Option<PathBuf>> {
    let (file, settings) = decode_settings_file(path)?;
    let control = settings.map(|settings| settings.control).or_else(|| {
        print_message!(
            "warning: {0} has mistakes. This command uses only its control socket. To see the mistakes, run \"crawlgate \
             check --config {0}\". If the socket is the wrong one, name the right one with --control PATH",
            path.display()
        );
        let directory = path.parent().unwrap_or(Path::new(""));
        settings::decode_control(&file.source, directory, default_settings().control)
    });
    control.ok_or_else(|| unusable_file(path, &file))
}

/// Prints the mistakes in a file, and returns the failure.
fn unusable_file(path: &Path, file: &FileFindings) -> Failure {
    super::print_findings(&file.source, &file.diagnostics.items);
    Failure::FindingsMessage(format!("cannot use the settings file {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::{ServerFlags, check_own_listeners, read_settings_file};
    use crate::settings::{OriginServerAddress, OriginSettings, Settings};
    use clap::Parser;
    use std::net::SocketAddr;

    #[derive(Parser)]
    struct TestArguments {
        #[command(flatten)]
        flags: ServerFlags,
    }

    #[test]
    fn log_without_directory_is_a_warning() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("crawlgate.yaml");
        let ids = |log: &str| -> Vec<_> {
            let text = format!("origins: http://127.0.0.1:3000\nlogs: {{ access: {log} }}\n");
            std::fs::write(&file, text).expect("a file");
            let (found, settings) = read_settings_file(&file)
                .map_err(|error| format!("{error:?}"))
                .expect("read");
            assert!(settings.is_some());
            found.diagnostics.items.iter().map(|item| item.id).collect()
        };
        assert_eq!(ids("access.log"), Vec::<&str>::new());
        assert_eq!(ids("nowhere/access.log"), ["missing-directory"]);
    }

    #[test]
    fn origin_at_a_listener_is_a_mistake() {
        let with = |listen: &[&str], origin: &str| Settings {
            listen: listen
                .iter()
                .map(|address| address.parse::<SocketAddr>().expect("an address").into())
                .collect(),
            origins: vec![OriginSettings::with_servers([OriginServerAddress::parse(
                origin,
            )
            .expect("a server")])],
            ..Settings::default()
        };
        let default = with(&[], "http://127.0.0.1:8080");
        let served = default.clone().finalize().expect("an origin");
        for (settings, is_mistake) in [
            (served, true),
            // As "crawlgate decide" runs.
            (default, false),
            (
                with(&["0.0.0.0:80", "0.0.0.0:81"], "http://localhost:81"),
                true,
            ),
            (with(&["0.0.0.0:80"], "http://localhost:8080"), false),
        ] {
            let finding = check_own_listeners(&settings);
            assert_eq!(finding.is_some(), is_mistake, "{settings:?}");
        }
    }

    #[test]
    fn flags_override_settings_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("crawlgate.yaml");
        let text = "origins: http://127.0.0.1:3000\nadmin: 127.0.0.1:1\nstate: state\npolicies: sites\nstrict: yes\n";
        std::fs::write(&file, text).expect("a file");
        let config = file.to_str().expect("a path");
        let arguments = TestArguments::parse_from([
            "run",
            "--config",
            config,
            "--admin",
            "off",
            "--policies",
            "others",
        ]);
        let settings = arguments
            .flags
            .load_settings(&[])
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
