//! `traps`: lists the clients that are marked because they requested a trap (a path that no
//! obedient crawler requests), and releases them.

use super::{Failure, Result, control, show};
use crate::admin::control::{Request, Response};
use crate::facts::Mark;
use crate::printable::join;
use ipnet::IpNet;
use std::net::IpAddr;

/// List the clients that requested a trap, or release one
#[derive(clap::Args)]
pub struct Arguments {
    /// Remove the marks of this address (IPv6: of its /64) or network
    #[arg(long, value_name = "ADDRESS", value_parser = address_or_network)]
    release: Option<IpNet>,
    #[command(flatten)]
    output: control::Output,
}

/// An address, or a network as the list has it.
fn address_or_network(text: &str) -> Result<IpNet, &'static str> {
    text.parse()
        .or_else(|_| text.parse::<IpAddr>().map(IpNet::from))
        .map_err(|_| "neither an address nor a network like 203.0.113.0/24")
}

/// Prints the clients that the running crawlgate has marked, or with `--release` unmarks those of
/// an address or network and prints them. Fails if none is marked there.
pub fn run(arguments: &Arguments) -> Result {
    let request = match arguments.release {
        Some(network) => Request::Release {
            address: network.addr(),
            prefix_length: network.prefix_len(),
        },
        None => Request::Traps,
    };
    let (Response::Marks { marks } | Response::Released { marks }) =
        arguments.output.control.ask(&request)?
    else {
        return control::unexpected();
    };
    let before = if arguments.release.is_some() {
        "released: "
    } else {
        ""
    };
    if arguments.release.is_some() && marks.is_empty() {
        return Err(Failure::Found("no client is marked there".into()));
    }
    let text = if marks.is_empty() {
        "no client is marked".to_owned()
    } else {
        join(
            marks.iter().map(|mark| format!("{before}{}", line(mark))),
            "\n",
        )
    };
    show(arguments.output.json, &marks, text)
}

/// A marked client in a line: its address (IPv6 as a network of 64 bits), crawler, site, and since
/// and until when it is marked.
fn line(mark: &Mark) -> String {
    let length = if mark.address.is_ipv6() { "/64" } else { "" };
    format!(
        "{}{length}  {}  {}  since {}, until {}",
        mark.address, mark.crawler, mark.site, mark.since, mark.until
    )
}
