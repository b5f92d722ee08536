//! The command `import`: writes a new policy from the rules and comments of an existing robots.txt.

use super::tester::{NamedRobotsTxt, read_robots_txt, url_host};
use super::{Failure, Result, print_message, write_new_file};
use crate::crawlers::Registry;
use crate::policy::decode::parse_host;
use crate::policy::import::{ImportOptions, import};
use crate::printable::printable_path;
use crate::robots::RobotsFile;
use std::io::Write;
use std::net::IpAddr;
use std::path::PathBuf;

/// Write a policy with the rules and comments of an existing robots.txt
#[derive(clap::Args)]
pub struct Arguments {
    /// A file, `-` for standard input, or the http(s) URL of a file or of a site
    #[arg(value_name = "FILE")]
    file: String,
    /// Write the policy to this file, which must not exist yet, instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The host by which clients ask for the site [default: the host of the URL; needed for an
    /// address, localhost or a port]
    #[arg(long)]
    host: Option<String>,
    /// Write `purposes` where the file closes the site to every known crawler of a purpose
    #[arg(long)]
    purposes: bool,
}

/// Makes a policy from a robots.txt, and writes it to the new file of `--output`, or else prints it.
/// Prints notes about lines that need attention on standard error.
pub fn run(arguments: &Arguments) -> Result {
    let host = policy_host(arguments)?;
    let NamedRobotsTxt { name, bytes, .. } = read_robots_txt(&arguments.file, "import")?;
    let options = ImportOptions {
        host: host.as_deref(),
        purposes: arguments.purposes,
    };
    let imported = import(&RobotsFile::parse(bytes), &options, Registry::builtin());
    match &arguments.output {
        Some(path) => {
            write_new_file(path, imported.text.as_bytes())?;
            let path = printable_path(path);
            print_message(&format!(
                "wrote {path}; check it with `crawlgate check {path}`"
            ));
        }
        None => super::stdout_printer(false).write_all(imported.text.as_bytes())?,
    }
    for (line, note) in &imported.notes {
        print_message(&format!("{name}:{line}: {note}"));
    }
    Ok(())
}

/// The host of the policy: that of `--host`, else that of the URL. Fails if the URL has an address,
/// localhost or a port, which is not the public name of a site.
fn policy_host(arguments: &Arguments) -> Result<Option<String>> {
    let Some(host) = &arguments.host else {
        return match url_host(&arguments.file) {
            Some(host) if is_local_host(&host) => Err(Failure::Usage(format!(
                "{host} is not the name that clients ask for, so that the policy would be for no request of theirs; give \
                 the name: --host shop.example"
            ))),
            host => Ok(host),
        };
    };
    match parse_host(host) {
        Ok(_) => Ok(Some(host.clone())),
        Err(error) => Err(Failure::Usage(format!(
            "--host: {}; {}",
            error.message, error.help
        ))),
    }
}

/// Whether a host is not the public name of a site: an address, localhost, or a name with a port.
pub fn is_local_host(host: &str) -> bool {
    let Ok(pattern) = parse_host(host) else {
        return false;
    };
    let is_this_machine = pattern.name == "localhost" || pattern.name.ends_with(".localhost");
    pattern.port.is_some() || is_this_machine || pattern.name.parse::<IpAddr>().is_ok()
}
