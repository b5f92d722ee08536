//! `run`: runs the proxy. [`settled`] completes the settings, and [`serve`] runs the server with
//! them. The other commands that serve, `decide` and `demo`, use both.

use super::server_flags::ServerFlags;
use super::{Failure, Result, cannot, places};
use crate::server::{self, Beginning, Bound, ServerError};
use crate::settings::{ServerAddress, Settings};
use ipnet::IpNet;
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// Run the proxy
#[derive(clap::Args)]
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

/// Reads a network, or an address as a network of it alone.
pub fn network(written: &str) -> Result<IpNet, &'static str> {
    crate::crawlers::read_network(written).ok_or("write a network, like 10.0.0.0/8, or an address")
}

/// Runs the proxy by the settings, until it is stopped. `--listen`, `--trusted-proxy` and
/// `--threads` replace what the settings file says.
pub fn run(arguments: &Arguments) -> Result {
    let mut settings = arguments.server.settings(&arguments.origin)?;
    if !arguments.listen.is_empty() {
        settings.listen = arguments
            .listen
            .iter()
            .map(|address| (*address).into())
            .collect();
    }
    if !arguments.trusted_proxy.is_empty() {
        settings
            .trusted_proxies
            .clone_from(&arguments.trusted_proxy);
    }
    settings.threads = arguments.threads.map(usize::from).or(settings.threads);
    let settings = settled(settings)?;
    serve(settings, arguments.server.beginning()?, |_| {})
}

/// Completes the settings to serve by, makes the directory of the control socket if that is the
/// default one, and starts the log of the process. Fails if there is nothing to serve.
pub fn settled(settings: Settings) -> Result<Settings> {
    let nowhere = "there is no origin to forward requests to; give --origin URL, or --config FILE with `origins`";
    let settings = settings.settle().ok_or(Failure::Usage(nowhere.into()))?;
    let own = settings
        .control
        .as_deref()
        .filter(|control| places::control_to_serve().as_deref() == Some(control));
    if let Some(directory) = own.and_then(Path::parent) {
        // Only its owner may enter: a client of the socket can pause sites.
        let created = std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory);
        created.map_err(cannot("create", directory))?;
    }
    crate::telemetry::start_tracing(server::LOG_FILTER, false);
    Ok(settings)
}

/// Runs the server until it is stopped. Once it listens, prints where, and then calls `more`.
/// Policies that cannot be used are a finding.
pub fn serve(settings: Settings, beginning: Beginning, more: impl FnOnce(&Bound)) -> Result {
    let outcome = server::run(settings, beginning, |bound| {
        // A closed standard output is no reason not to serve.
        let admin = bound
            .admin
            .iter()
            .map(|address| format!("admin on http://{address}\n"));
        let decisions = bound
            .decisions
            .iter()
            .map(|address| format!("decisions on {address}\n"));
        let listening = bound.urls().map(|url| format!("listening on {url}\n"));
        let lines: String = listening.chain(decisions).chain(admin).collect();
        // In one piece, so that no line of the log stands between these.
        let mut out = super::out(false);
        let _ = out.write_all(lines.as_bytes()).and_then(|()| out.flush());
        drop(out);
        more(bound);
    });
    outcome.map_err(|error| match error {
        ServerError::Policies(crate::sites::StartError::Policies(findings)) => {
            Failure::Found(findings)
        }
        other => other.into(),
    })
}
