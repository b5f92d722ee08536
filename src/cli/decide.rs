//! `decide`: the decision service without a proxy of its own.

use super::Failure;
use super::run::{OrOff, network, or_off, serve, settings_file, settled};
use crate::settings::{
    AccessDestination, DecisionAddress, DecisionSettings, OriginSettings, OriginTimeouts, ServerAddress, SettingsFile,
};
use crate::telemetry::start_tracing;
use ipnet::IpNet;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Answer the questions of a proxy in front: may this request pass?
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The proxy keeps its own connections to the origin. docs/behind-your-proxy.md has a page for each proxy."
)]
pub struct Arguments {
    /// The address to answer on, or `unix:PATH` [default: 127.0.0.1:9180]; may be repeated
    #[arg(long, value_name = "ADDR")]
    listen: Vec<DecisionAddress>,
    /// A network of proxies that may ask [default: this machine]; may be repeated
    #[arg(long, value_name = "CIDR", value_parser = network)]
    trusted: Vec<IpNet>,
    /// The origin, for policies that read its robots.txt; no request is forwarded to it
    #[arg(long, value_name = "URL", value_parser = ServerAddress::parse)]
    origin: Vec<ServerAddress>,
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
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut file = arguments.config.as_deref().map(settings_file).transpose()?.unwrap_or_default();
    // Nothing is forwarded, whatever the file says for `run`.
    file.listen.clear();
    let mut decisions = file.decisions.take().flatten().unwrap_or_else(|| {
        let local = SocketAddr::from(([127, 0, 0, 1], 9180));
        DecisionSettings::local(vec![DecisionAddress::Tcp(local)])
    });
    if !arguments.listen.is_empty() {
        decisions.listen.clone_from(&arguments.listen);
    }
    if !arguments.trusted.is_empty() {
        decisions.trusted.clone_from(&arguments.trusted);
    }
    let mut settings = settled(said(arguments, decisions), file)?;
    settings.listen.clear();
    settings.clock.clone_from(&arguments.clock);
    start_tracing(crate::server::LOG_FILTER, false);
    serve(settings, |_| {})
}

fn said(arguments: &Arguments, decisions: DecisionSettings) -> SettingsFile {
    let origins = match arguments.origin.as_slice() {
        [] => Vec::new(),
        servers => {
            vec![OriginSettings { hosts: Vec::new(), servers: servers.to_vec(), timeouts: OriginTimeouts::default() }]
        }
    };
    SettingsFile {
        decisions: Some(Some(decisions)),
        origins,
        policies: arguments.policies.clone(),
        admin: arguments.admin.clone().map(|said| said.0),
        control: arguments.control.clone().map(|said| said.0),
        state: arguments.state.clone().map(|said| said.0),
        access: arguments.access_log.as_ref().map(|path| match path.as_os_str() == "-" {
            true => AccessDestination::Stdout,
            false => AccessDestination::File(path.clone()),
        }),
        strict: arguments.strict.then_some(true),
        ..SettingsFile::default()
    }
}
