//! The command `traps`. A trap is a path that no obedient crawler requests; crawlgate marks a
//! client that requests one. The command lists the marked clients, and can remove their marks.

use super::{Result, control, print_result};
use crate::admin::control::{ControlRequest, ControlResponse};
use crate::facts::ClientMark;
use askama::Template;
use ipnet::IpNet;

/// List the clients that requested a trap, or release them
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  crawlgate traps --release 203.0.113.0/24

Exit codes: 0 fine, 1 no such client is marked, 2 wrong usage, 3 crawlgate is not running.")]
pub struct Arguments {
    /// Release this address (IPv6: its /64) or network
    #[arg(long, value_name = "ADDRESS", value_parser = super::run::parse_network)]
    release: Option<IpNet>,
    #[command(flatten)]
    output: control::ControlOutputFlags,
}

/// Prints the marked clients, or with `--release` removes the marks in a network and prints them.
/// Fails if none is marked there.
pub fn run(arguments: &Arguments) -> Result {
    let request = match arguments.release {
        Some(network) => ControlRequest::Release {
            address: network.addr(),
            prefix_length: network.prefix_len(),
        },
        None => ControlRequest::Traps,
    };
    let (ControlResponse::Marks { marks } | ControlResponse::Released { marks }) =
        arguments.output.control.send(&request)?
    else {
        return control::unexpected_response();
    };
    let is_released = arguments.release.is_some();
    if is_released && marks.is_empty() {
        fail!(FindingsMessage, "no client there is marked");
    }
    let text = MarkedClientsText {
        marks: &marks,
        is_released,
    };
    print_result(arguments.output.json, &marks, text)
}

#[derive(Template)]
#[template(path = "traps.txt")]
struct MarkedClientsText<'a> {
    marks: &'a [ClientMark],
    is_released: bool,
}
