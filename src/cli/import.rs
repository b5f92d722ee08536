//! `import`: writes a new policy from the rules and comments of an existing robots.txt.

use super::tester::{RobotsTxt, file, host_of};
use super::{Failure, Result, say, write_new};
use crate::crawlers::Registry;
use crate::policy::decode::parse_host;
use crate::policy::import::{ImportOptions, import};
use crate::printable::printable_path;
use crate::robots::File;
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

/// Makes a policy of a robots.txt. Writes it to the file of `--output`, which must not be there
/// yet, or else prints it. Says on standard error what needs a look, with the line of the
/// robots.txt.
pub fn run(arguments: &Arguments) -> Result {
    let host = host(arguments)?;
    let RobotsTxt { name, bytes, .. } = file(&arguments.file, "import")?;
    let options = ImportOptions {
        host: host.as_deref(),
        purposes: arguments.purposes,
    };
    let imported = import(&File::parse(bytes), &options, Registry::builtin());
    match &arguments.output {
        Some(path) => {
            write_new(path, imported.text.as_bytes())?;
            let path = printable_path(path);
            say(&format!(
                "wrote {path}; check it with `crawlgate check {path}`"
            ));
        }
        None => super::out(false).write_all(imported.text.as_bytes())?,
    }
    for (line, note) in &imported.notes {
        say(&format!("{name}:{line}: {note}"));
    }
    Ok(())
}

/// The host of the policy: that of `--host`, else that of the URL, else none. Fails if the URL has
/// an address, localhost or a port: that is not the name by which clients ask for the site.
fn host(arguments: &Arguments) -> Result<Option<String>> {
    let Some(host) = &arguments.host else {
        return match host_of(&arguments.file) {
            Some(host) if is_local(&host) => Err(Failure::Usage(format!(
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

/// Whether a host is how one machine asks another, and not the public name of a site: an address,
/// this machine, or a name with a port.
pub fn is_local(host: &str) -> bool {
    let Ok(pattern) = parse_host(host) else {
        return false;
    };
    let is_this_machine = pattern.name == "localhost" || pattern.name.ends_with(".localhost");
    pattern.port.is_some() || is_this_machine || pattern.name.parse::<IpAddr>().is_ok()
}
