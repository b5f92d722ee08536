//! The command `demo`: runs the proxy in front of a built-in sample site, with the example policy,
//! and prints commands to try.

mod guide;
mod origin;
mod site;

use super::shell_words::program_word;
use super::{Result, print_text, run};
use crate::server::StartMode;
use crate::settings::{
    LogDestination, LogSettings, OriginServerAddress, OriginSettings, Settings,
    parse_listen_address,
};
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

/// Run the proxy in front of a sample site, and print what to try
#[derive(clap::Args)]
pub struct Arguments {
    /// The address to listen on [default: 127.0.0.1:8080, or a free port]
    #[arg(long, value_name = "ADDR", value_parser = parse_listen_address)]
    listen: Option<SocketAddr>,
    /// The address of dashboard, metrics and status [default: 127.0.0.1:9190, or a free port]
    #[arg(long, value_name = "ADDR", value_parser = parse_listen_address)]
    admin: Option<SocketAddr>,
    /// The policy directory [default: policies if it has demo.yaml, else a copy of the example policy]
    #[arg(long, value_name = "DIR")]
    policies: Option<PathBuf>,
    /// For development: a file that sets the clock, like `elapsed 25h` or `set -2h`
    #[arg(long, value_name = "FILE", hide = true)]
    clock: Option<PathBuf>,
}

/// Runs the sample site and the proxy in front of it until the process is stopped. All files are in
/// a temporary directory, which is removed at the end.
pub fn run(arguments: &Arguments) -> Result {
    let origin = origin::start_origin()?;
    let temporary = tempfile::Builder::new()
        .prefix("crawlgate-demo-")
        .tempdir()?;
    let policies = policy_directory(arguments, temporary.path())?;
    let control = temporary.path().join("control.sock");
    let access_log = temporary.path().join("access.log");
    let server = OriginServerAddress {
        tls: false,
        host: origin.ip().to_string(),
        port: origin.port(),
        socket: None,
    };
    let listen = arguments.listen.unwrap_or_else(|| preferred_address(8080));
    let settings = run::prepare_settings(Settings {
        listen: vec![listen.into()],
        origins: vec![OriginSettings::with_servers([server])],
        policies: policies.clone(),
        policies_may_be_missing: false,
        admin: Some(arguments.admin.unwrap_or_else(|| preferred_address(9190))),
        control: Some(control.clone()),
        state: Some(temporary.path().join("state")),
        logs: LogSettings {
            access: LogDestination::File(access_log.clone()),
            ..LogSettings::default()
        },
        strict: true,
        // The site is new with the demo: no crawler can have a copy of another robots.txt.
        new_hosts: ["127.0.0.1", "localhost", "::1"].map(String::from).to_vec(),
        clock: arguments.clock.clone(),
        ..Settings::default()
    })?;
    let outcome = run::run_server(settings, StartMode::Alone, |bound| {
        let guide = guide::Guide {
            bound,
            policies: &policies,
            control: &control,
            access_log: &access_log,
            program: program_word(),
        };
        // A closed output is no reason to stop serving.
        let _ = print_text(guide);
    });
    // Dropping it would hide errors.
    temporary.close()?;
    outcome
}

/// The policy directory: that of the flag, else `policies` of a checkout, else a new directory with
/// a copy of the example policy.
fn policy_directory(arguments: &Arguments, temporary: &Path) -> Result<PathBuf> {
    if let Some(directory) = &arguments.policies {
        return Ok(directory.clone());
    }
    let checkout = Path::new("policies");
    if checkout.join("demo.yaml").is_file() {
        return Ok(checkout.to_owned());
    }
    let copy = temporary.join("policies");
    fs::create_dir(&copy)?;
    fs::write(copy.join("demo.yaml"), site::POLICY)?;
    Ok(copy)
}

/// This port on loopback, or port 0 (any free one) if it is taken.
fn preferred_address(port: u16) -> SocketAddr {
    let is_free = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
    SocketAddr::from((Ipv4Addr::LOCALHOST, if is_free { port } else { 0 }))
}

#[cfg(test)]
mod tests;
