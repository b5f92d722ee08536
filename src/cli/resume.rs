//! The command `resume`: ends the pause of one site, or of all sites, so that crawlers get pages
//! again.

use super::{Result, control};
use crate::admin::control::{ControlRequest, ControlResponse};
use crate::printable::join_first;

/// End a pause
#[derive(clap::Args)]
#[command(
    after_help = "Exit codes: 0 fine, 1 there is no such site, 2 wrong usage, 3 crawlgate is not running."
)]
pub struct Arguments {
    /// The site [default: all sites]
    #[arg(long)]
    site: Option<String>,
    /// End the pauses of all sites, as without --site
    #[arg(long = "all", conflicts_with = "site")]
    _all: bool,
    #[command(flatten)]
    control: control::ControlFlag,
}

/// Makes the running crawlgate end the pause of one site or of all. Prints the resumed sites.
pub fn run(arguments: &Arguments) -> Result {
    let request = ControlRequest::Resume {
        site: arguments.site.clone(),
    };
    let ControlResponse::Resumed { sites, warnings } = arguments.control.send(&request)? else {
        return control::unexpected_response();
    };
    if sites.is_empty() {
        return super::print_text("nothing is paused");
    }
    control::print_warnings(&warnings);
    super::print_text(format!("resumed: {}", join_first(sites, 5)))
}
