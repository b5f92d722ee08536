//! The command `decide`: runs only the decision service, which tells another reverse proxy (such as
//! nginx, Caddy or HAProxy) whether a request may pass. In this mode crawlgate forwards no
//! requests.

use super::Result;
use super::run::{parse_network, prepare_settings, run_server};
use super::server_flags::ServerFlags;
use crate::settings::{DecisionSettings, ListenAddress, OriginServerAddress};
use ipnet::IpNet;
use std::net::SocketAddr;

/// Run as a decision service for your own proxy (nginx, Caddy, HAProxy, Traefik, Envoy)
#[derive(clap::Args)]
#[command(
    after_help = "For each request your proxy asks crawlgate. If the request may pass, the proxy forwards it.

Examples:
  crawlgate decide --listen unix:/run/crawlgate/decide.sock
  crawlgate decide --origin http://127.0.0.1:3000 --listen 0.0.0.0:9180 --trusted 10.0.0.0/8

Exit codes: 0 stopped, 1 mistakes in settings or policies, 2 wrong usage, 3 failed."
)]
pub struct Arguments {
    /// The address to answer on, or unix:PATH; may be repeated [default: 127.0.0.1:9180]
    #[arg(long, value_name = "ADDR")]
    listen: Vec<ListenAddress>,
    /// The network of a proxy that may ask; may be repeated [default: this machine]
    #[arg(long, value_name = "CIDR", value_parser = parse_network)]
    trusted: Vec<IpNet>,
    /// Your web server, for policies that use its robots.txt; no request is forwarded to it
    #[arg(long, value_name = "URL", value_parser = OriginServerAddress::parse)]
    origin: Vec<OriginServerAddress>,
    #[command(flatten)]
    server: ServerFlags,
}

/// Runs the decision service, without the listeners of the settings and without the default
/// listener.
pub fn run(arguments: &Arguments) -> Result {
    let mut settings = arguments.server.load_settings(&arguments.origin)?;
    settings.listen.clear();
    let decisions = settings.decisions.get_or_insert_with(|| {
        let local = SocketAddr::from(([127, 0, 0, 1], 9180));
        DecisionSettings::local(vec![ListenAddress::Tcp(local)])
    });
    if !arguments.listen.is_empty() {
        decisions.listen.clone_from(&arguments.listen);
    }
    if !arguments.trusted.is_empty() {
        decisions.trusted.clone_from(&arguments.trusted);
    }
    let mut settings = prepare_settings(settings)?;
    settings.listen.clear();
    run_server(settings, arguments.server.start_mode()?, |_| {})
}
