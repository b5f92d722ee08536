//! `resume`: ends the pause of one site, or of all sites.

use super::{Result, control};
use crate::admin::control::{Request, Response};
use std::io::Write;

/// End the pause of one site, or of all sites
#[derive(clap::Args)]
pub struct Arguments {
    /// The site [default: all sites]
    #[arg(long)]
    site: Option<String>,
    #[command(flatten)]
    control: control::Socket,
}

/// Has the running crawlgate end the pauses of a site, or of every site without one. Prints the
/// sites that were paused, or that none was.
pub fn run(arguments: &Arguments) -> Result {
    let request = Request::Resume {
        site: arguments.site.clone(),
    };
    let Response::Resumed { sites, warnings } = arguments.control.ask(&request)? else {
        return control::unexpected();
    };
    if sites.is_empty() {
        return Ok(writeln!(super::out(false), "nothing was paused")?);
    }
    control::warn(&warnings);
    Ok(writeln!(
        super::out(false),
        "resumed: {}",
        sites.join(", ")
    )?)
}
