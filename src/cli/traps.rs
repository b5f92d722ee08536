//! `traps`: who stepped into one, and letting go.

use super::{Failure, control, print_json};
use crate::admin::control::{Request, Response};
use crate::ledger::Mark;
use std::io::Write;
use std::net::IpAddr;

/// List the addresses that asked for a trap, or release one
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Forget the marks of this address (of IPv6, of its /64)
    #[arg(long, value_name = "ADDRESS")]
    release: Option<IpAddr>,
    /// For a program
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    control: control::Socket,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let request = match arguments.release {
        Some(address) => Request::Release { address },
        None => Request::Traps,
    };
    let (marks, released) = match arguments.control.ask(&request)? {
        Response::Marks { marks } => (marks, false),
        Response::Released { marks } => (marks, true),
        _ => return Err(control::unexpected()),
    };
    if released && marks.is_empty() {
        return Err(Failure::Found("this address is not marked".into()));
    }
    if arguments.json {
        return print_json(&marks);
    }
    let mut out = std::io::stdout().lock();
    if marks.is_empty() {
        return Ok(writeln!(out, "nobody is marked")?);
    }
    for mark in &marks {
        writeln!(out, "{}{}", if released { "released: " } else { "" }, line(mark))?;
    }
    Ok(())
}

fn line(mark: &Mark) -> String {
    let length = if mark.address.is_ipv6() { "/64" } else { "" };
    format!("{}{length}  {}  {}  since {}, until {}", mark.address, mark.crawler, mark.site, mark.since, mark.until)
}
