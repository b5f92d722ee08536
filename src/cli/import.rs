//! The command `import`: writes a new policy from the rules and comments of an existing robots.txt.

use super::tester::read_robots_txt;
use super::url_host;
use super::{Result, write_new_file};
use crate::audit::DatedRobotsTxt;
use crate::crawlers::Registry;
use crate::policy::decode::parse_host;
use crate::policy::import::import;
use crate::printable::printable_path;
use crate::robots::RobotsFile;
use std::net::IpAddr;
use std::path::PathBuf;

/// Turn a robots.txt into a policy with the same rules and comments
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  crawlgate import https://shop.example -o policies/shop.yaml
  crawlgate import robots.txt --host shop.example

Exit codes: 0 fine, 2 wrong usage, 3 a file or URL cannot be read or written.")]
pub struct Arguments {
    /// A file, the http(s) URL of a file or site, or - for standard input
    file: String,
    /// Write the policy to this new file [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The name that visitors use, like shop.example [default: the host of the URL]
    #[arg(long)]
    host: Option<String>,
}

/// Makes a policy from a robots.txt, and writes it to the new file of `--output`, or else prints it.
/// Prints notes about lines that need attention on standard error.
pub fn run(arguments: &Arguments) -> Result {
    let host = policy_host(arguments)?;
    let DatedRobotsTxt { name, bytes, .. } = read_robots_txt(&arguments.file, "import")?;
    let imported = import(
        &RobotsFile::parse(bytes),
        host.as_deref(),
        Registry::builtin(),
    );
    match &arguments.output {
        Some(path) => {
            write_new_file(path, imported.text.as_bytes())?;
            let path = printable_path(path);
            print_message!("wrote {path}. Check it: crawlgate check {path}");
        }
        None => super::print_text(&imported.text)?,
    }
    for (line, note) in &imported.notes {
        print_message!("{name}:{line}: {note}");
    }
    Ok(())
}

/// The host of the policy: that of `--host`, else that of the URL. Fails if the URL has an address,
/// localhost or a port, which is not the public name of a site.
fn policy_host(arguments: &Arguments) -> Result<Option<String>> {
    match (&arguments.host, url_host(&arguments.file)) {
        (Some(host), _) => match parse_host(host) {
            Ok(_) => Ok(Some(host.clone())),
            Err(error) => fail!(Usage, "--host: {}; {}", error.message, error.help),
        },
        (None, Some(host)) if is_local_host(&host) => fail!(
            Usage,
            "{host} is not the name that visitors use. Give the name: --host shop.example"
        ),
        (None, host) => Ok(host),
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
