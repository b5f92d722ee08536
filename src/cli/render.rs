//! The command `render`: prints the robots.txt of a site byte for byte, or its
//! `/.well-known/tdmrep.json` (rights for text and data mining).

use super::{Result, now, origin_copy, policies};
use std::io::{IsTerminal, Write};

/// Print the robots.txt of a host, byte for byte
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  crawlgate render --host shop.example > robots.txt

Exit codes: 0 fine, 1 no policy is for the host, 2 wrong usage, 3 a file cannot be read.")]
pub struct Arguments {
    /// The host, like shop.example
    #[arg(long)]
    host: String,
    /// Print /.well-known/tdmrep.json instead
    #[arg(long)]
    tdmrep: bool,
    #[command(flatten)]
    policies: origin_copy::PolicyFlags,
}

/// Prints the robots.txt of a host, or its `tdmrep.json`. Fails if no site has the host, or if its
/// policy has no `tdm`.
pub fn run(arguments: &Arguments) -> Result {
    let (policies, origins) = arguments.policies.read()?;
    let snapshot = policies::snapshot_for_host(&policies, &arguments.host, &origins, now())?;
    let Some(site) = snapshot.site_for_host(arguments.host.as_bytes()) else {
        fail!(
            FindingsMessage,
            "no policy in {} is for {}",
            policies.display(),
            arguments.host
        );
    };
    let site = &snapshot.sites()[site].site;
    let body = match (arguments.tdmrep, site.signals.tdmrep.as_ref()) {
        (false, _) => &site.robots_txt.body,
        (true, Some(file)) => &file.body,
        (true, None) => {
            fail!(
                FindingsMessage,
                "the policy of {} has no tdm",
                arguments.host
            );
        }
    };
    // A terminal gets only printable text, a file or pipe the exact bytes.
    if std::io::stdout().is_terminal() {
        Ok(super::stdout_printer(false).write_all(body)?)
    } else {
        super::print_bytes(body)
    }
}
