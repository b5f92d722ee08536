//! `run`: runs the proxy. The other commands that serve, `decide` and `demo`, use [`settled`] and [`serve`] as well.

use super::server_flags::ServerFlags;
use super::{Failure, cannot, places};
use crate::crawlers::read_network;
use crate::server::{self, Beginning, Bound, ServerError};
use crate::settings::{Defaults, ListenSettings, ServerAddress, Settings, SettingsFile};
use crate::sites::StartError;
use crate::telemetry::start_tracing;
use ipnet::IpNet;
use std::fs::DirBuilder;
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// Run the proxy
#[derive(Debug, clap::Args)]
#[command(after_help = "Flags outrank the settings file. --origin or --config is required.")]
pub struct Arguments {
    /// The origin, like http://127.0.0.1:3000; may be repeated: the origins take turns
    #[arg(long, value_name = "URL", value_parser = ServerAddress::parse)]
    origin: Vec<ServerAddress>,
    /// The address to listen on [default: 127.0.0.1:8080]; may be repeated
    #[arg(long, value_name = "ADDR")]
    listen: Vec<SocketAddr>,
    /// A network of proxies whose X-Forwarded-For counts; may be repeated
    #[arg(long, value_name = "CIDR", value_parser = network)]
    trusted_proxy: Vec<IpNet>,
    /// Worker threads [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    #[command(flatten)]
    server: ServerFlags,
}

pub(super) fn network(written: &str) -> Result<IpNet, &'static str> {
    read_network(written).ok_or("write a network, like 10.0.0.0/8, or an address")
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let flags = SettingsFile {
        listen: arguments.listen.iter().copied().map(ListenSettings::from).collect(),
        trusted_proxies: (!arguments.trusted_proxy.is_empty()).then(|| arguments.trusted_proxy.clone()),
        threads: arguments.threads.map(usize::from),
        ..arguments.server.said(&arguments.origin)
    };
    let mut settings = settled(flags, arguments.server.file()?)?;
    settings.clock.clone_from(&arguments.server.clock);
    settings.acme_ports = arguments.server.acme_ports;
    start_tracing(crate::server::LOG_FILTER, false);
    serve(settings, arguments.server.beginning()?, |_| {})
}

/// Flags over a settings file, with the defaults of this machine.
pub(super) fn settled(flags: SettingsFile, file: SettingsFile) -> Result<Settings, Failure> {
    let own_control = flags.control.is_none() && file.control.is_none();
    let defaults = Defaults { control: places::control_to_serve(), state: places::state() };
    let settings = flags
        .over(file)
        .settle(defaults)
        .map_err(|error| Failure::Usage(format!("{error}; give --origin URL, or --config FILE with `origins`")))?;
    if own_control && let Some(directory) = settings.control.as_deref().and_then(Path::parent) {
        private_directory(directory)?;
    }
    Ok(settings)
}

/// Runs the server. Prints where it listens, then calls `more`.
pub fn serve(settings: Settings, beginning: Beginning, more: impl FnOnce(&Bound)) -> Result<(), Failure> {
    let outcome = server::run(settings, beginning, |bound| {
        // A closed standard output is no reason not to serve.
        let admin = bound.admin.iter().map(|address| format!("admin on http://{address}\n"));
        let decisions = bound.decisions.iter().map(|address| format!("decisions on {address}\n"));
        let listening = bound.urls().map(|url| format!("listening on {url}\n"));
        let lines: String = listening.chain(decisions).chain(admin).collect();
        // In one piece, so that no line of the log stands between these.
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(lines.as_bytes()).and_then(|()| out.flush());
        drop(out);
        more(bound);
    });
    outcome.map_err(|error| match error {
        ServerError::Policies(StartError::Policies(findings)) => Failure::Found(findings),
        other => other.into(),
    })
}

/// Creates the default directory of the control socket. Only its owner may enter: a client of the socket can pause sites.
fn private_directory(path: &Path) -> Result<(), Failure> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(cannot("create", path))
}
