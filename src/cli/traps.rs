//! The command `traps`: lists the clients that are marked because they requested a trap (a path
//! that no obedient crawler requests), and releases them.

use super::{Failure, Result, control, print_result};
use crate::admin::control::{ControlRequest, ControlResponse};
use crate::facts::ClientMark;
use crate::printable::join;
use ipnet::IpNet;
use std::net::IpAddr;

/// List the clients that requested a trap, or release one
#[derive(clap::Args)]
pub struct Arguments {
    /// Remove the marks of this address (IPv6: of its /64) or network
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address_or_network)]
    release: Option<IpNet>,
    #[command(flatten)]
    output: control::ControlOutputFlags,
}

/// Parses an address or a network.
fn parse_address_or_network(text: &str) -> Result<IpNet, &'static str> {
    text.parse()
        .or_else(|_| text.parse::<IpAddr>().map(IpNet::from))
        .map_err(|_| "neither an address nor a network like 203.0.113.0/24")
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
    let before = if arguments.release.is_some() {
        "released: "
    } else {
        ""
    };
    if arguments.release.is_some() && marks.is_empty() {
        return Err(Failure::FindingsMessage("no client is marked there".into()));
    }
    let text = if marks.is_empty() {
        "no client is marked".to_owned()
    } else {
        join(
            marks
                .iter()
                .map(|mark| format!("{before}{}", mark_line(mark))),
            "\n",
        )
    };
    print_result(arguments.output.json, &marks, text)
}

/// A marked client in one line. An IPv6 address stands for its /64.
fn mark_line(mark: &ClientMark) -> String {
    let length = if mark.address.is_ipv6() { "/64" } else { "" };
    format!(
        "{}{length}  {}  {}  since {}, until {}",
        mark.address, mark.crawler, mark.site, mark.since, mark.until
    )
}
