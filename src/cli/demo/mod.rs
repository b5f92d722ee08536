//! The command `demo`: runs the proxy in front of a built-in sample site, with the example policy,
//! and prints commands to try.

mod guide;
mod origin;
mod site;

use super::shell_words::program_word;
use super::{Failure, Result, print_text, run};
use crate::server::StartMode;
use crate::settings::{
    CertificateFiles, ListenSettings, LogDestination, LogSettings, OriginSettings, ServerAddress,
    Settings, TlsSettings, parse_listen_address,
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
    /// Serve https with a certificate made for the demo [default port: 8443]
    #[arg(long)]
    tls: bool,
    /// The address of dashboard, metrics and status [default: 127.0.0.1:9190, or a free port]
    #[arg(long, value_name = "ADDR", value_parser = parse_listen_address)]
    admin: Option<SocketAddr>,
    /// The policy directory [default: policies with demo.yaml, or a copy of the example policy]
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
    let server = ServerAddress {
        tls: false,
        host: origin.ip().to_string(),
        port: origin.port(),
        socket: None,
    };
    let settings = run::prepare_settings(Settings {
        listen: vec![listen_settings(arguments, temporary.path())?],
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

/// The listener at the address of the flag, else at port 8080 (8443 with `--tls`) or a free one.
/// With `--tls`, creates a certificate.
fn listen_settings(arguments: &Arguments, temporary: &Path) -> Result<ListenSettings> {
    let address = arguments
        .listen
        .unwrap_or_else(|| preferred_address(if arguments.tls { 8443 } else { 8080 }));
    let mut settings = ListenSettings::from(address);
    if arguments.tls {
        settings.tls = Some(TlsSettings {
            certificates: vec![create_certificate(temporary)?],
            acme: None,
            allows_tls12: true,
            hsts: None,
        });
    }
    Ok(settings)
}

/// Writes a self-signed certificate for this machine into the directory.
fn create_certificate(directory: &Path) -> Result<CertificateFiles> {
    let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let made = rcgen::generate_simple_self_signed(names)
        .map_err(|error| Failure::Runtime(format!("cannot make a certificate: {error}")))?;
    let files = CertificateFiles {
        certificate: directory.join("demo.pem"),
        key: directory.join("demo.key"),
    };
    fs::write(&files.certificate, made.cert.pem())?;
    fs::write(&files.key, made.signing_key.serialize_pem())?;
    Ok(files)
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
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    match TcpListener::bind(address) {
        Ok(_) => address,
        Err(_) => SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
    }
}

#[cfg(test)]
mod tests;
