//! The command `run`: starts the proxy. [`prepare_settings`] completes the settings, and
//! [`run_server`] runs the server with them. The commands `decide` and `demo` use both.

use super::server_flags::{ServerFlags, check_own_listeners};
use super::{Failure, Result, default_paths, file_failure};
use crate::server::{self, BoundAddresses, ServerError, StartMode};
use crate::settings::{OriginServerAddress, Settings, parse_listen_address};
use askama::Template;
use ipnet::IpNet;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// Run the proxy in front of your site
#[derive(clap::Args)]
#[command(after_help = "\
Give --origin or --config. Flags override the settings file.

Examples:
  crawlgate run --origin http://127.0.0.1:3000
  crawlgate run --config crawlgate.yaml

Exit codes: 0 stopped, 1 mistakes in settings or policies, 2 wrong usage, 3 failed.")]
pub struct Arguments {
    /// Your web server (the origin), like http://127.0.0.1:3000; several share the requests
    #[arg(long, value_name = "URL", value_parser = OriginServerAddress::parse)]
    origin: Vec<OriginServerAddress>,
    /// The address to listen on; may be repeated [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR", value_parser = parse_listen_address)]
    listen: Vec<SocketAddr>,
    /// The network of a proxy in front; crawlgate takes the client address from its
    /// X-Forwarded-For; may be repeated
    #[arg(long, value_name = "CIDR", value_parser = parse_network)]
    trusted_proxy: Vec<IpNet>,
    /// Worker threads [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    #[command(flatten)]
    server: ServerFlags,
}

/// Parses a network, or an address as a network of one address.
pub fn parse_network(written: &str) -> Result<IpNet, &'static str> {
    crate::crawlers::parse_network(written).ok_or("write a network, like 10.0.0.0/8, or an address")
}

/// Runs the proxy until it is stopped. Flags override the settings file.
pub fn run(arguments: &Arguments) -> Result {
    let mut settings = arguments.server.load_settings(&arguments.origin)?;
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
    let settings = prepare_settings(settings)?;
    run_server(settings, arguments.server.start_mode()?, |_| {})
}

/// Completes the settings, creates the directory of the default control socket, and starts the log
/// of the process. Fails if there is nothing to serve.
pub fn prepare_settings(settings: Settings) -> Result<Settings> {
    let nowhere = "there is no origin to forward requests to; give --origin URL, or --config FILE with origins in it";
    let settings = settings.finalize().ok_or(Failure::Usage(nowhere.into()))?;
    let own = settings
        .control
        .as_deref()
        .filter(|control| default_paths::control_socket_to_serve().as_deref() == Some(control));
    if let Some(directory) = own.and_then(Path::parent) {
        // Only the owner may enter, because a client of the socket can pause sites.
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(file_failure("create", directory))?;
    }
    crate::telemetry::init_tracing(server::LOG_FILTER);
    Ok(settings)
}

/// Runs the server until it is stopped. Once it listens, prints its addresses and calls
/// `on_listening`. Unusable policies are a finding, and so is an origin that is a listener.
pub fn run_server(
    settings: Settings,
    start_mode: StartMode,
    on_listening: impl FnOnce(&BoundAddresses),
) -> Result {
    if let Some(finding) = check_own_listeners(&settings) {
        return Err(Failure::FindingsMessage(finding.message));
    }
    let outcome = server::run(settings, start_mode, |bound| {
        // One write, so that no line of the log comes between these. A closed standard output is no
        // reason not to serve.
        let _ = super::print_text(ListeningText { bound });
        on_listening(bound);
    });
    outcome.map_err(|error| match error {
        ServerError::Policies(crate::sites::StartError::Policies(findings)) => {
            Failure::FindingsMessage(findings)
        }
        other => other.into(),
    })
}

/// Where the server listens, a line each.
#[derive(Template)]
#[template(path = "listening.txt")]
struct ListeningText<'a> {
    bound: &'a BoundAddresses,
}
