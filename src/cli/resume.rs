//! `resume`: ends pauses.

use super::{Failure, control};
use crate::admin::control::{Request, Response};
use std::io::Write;

/// End the pause of one site, or of all sites
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The site [default: all sites]
    #[arg(long)]
    site: Option<String>,
    #[command(flatten)]
    control: control::Socket,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    match arguments.control.ask(&Request::Resume { site: arguments.site.clone() })? {
        Response::Resumed { sites, .. } if sites.is_empty() => Ok(writeln!(std::io::stdout(), "nothing was paused")?),
        Response::Resumed { sites, warnings } => {
            control::warn(&warnings);
            Ok(writeln!(std::io::stdout(), "resumed: {}", sites.join(", "))?)
        }
        _ => Err(control::unexpected()),
    }
}
