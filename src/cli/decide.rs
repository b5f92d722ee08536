//! `decide`: runs the decision service alone, for a proxy in front that asks whether a request may pass.

use super::Failure;
use super::run::{network, serve, settled};
use super::server_flags::ServerFlags;
use crate::settings::{DecisionSettings, ListenAddress, ServerAddress, SettingsFile};
use crate::telemetry::start_tracing;
use ipnet::IpNet;
use std::net::SocketAddr;

/// Answer the questions of a proxy in front: may this request pass?
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The proxy keeps its own connections to the origin. docs/behind-your-proxy.md has a page for each proxy."
)]
pub struct Arguments {
    /// The address to answer on, or `unix:PATH` [default: 127.0.0.1:9180]; may be repeated
    #[arg(long, value_name = "ADDR")]
    listen: Vec<ListenAddress>,
    /// A network of proxies that may ask [default: this machine]; may be repeated
    #[arg(long, value_name = "CIDR", value_parser = network)]
    trusted: Vec<IpNet>,
    /// The origin, for policies that read its robots.txt; no request is forwarded to it
    #[arg(long, value_name = "URL", value_parser = ServerAddress::parse)]
    origin: Vec<ServerAddress>,
    #[command(flatten)]
    server: ServerFlags,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut file = arguments.server.file()?;
    // Nothing is forwarded, whatever the file says for `run`.
    file.listen.clear();
    let mut decisions = file.decisions.take().flatten().unwrap_or_else(|| {
        let local = SocketAddr::from(([127, 0, 0, 1], 9180));
        DecisionSettings::local(vec![ListenAddress::Tcp(local)])
    });
    if !arguments.listen.is_empty() {
        decisions.listen.clone_from(&arguments.listen);
    }
    if !arguments.trusted.is_empty() {
        decisions.trusted.clone_from(&arguments.trusted);
    }
    let flags = SettingsFile { decisions: Some(Some(decisions)), ..arguments.server.said(&arguments.origin) };
    let mut settings = settled(flags, file)?;
    settings.listen.clear();
    settings.clock.clone_from(&arguments.server.clock);
    start_tracing(crate::server::LOG_FILTER, false);
    serve(settings, arguments.server.beginning()?, |_| {})
}
