//! The command `export`: writes a policy as configuration of nginx, HAProxy, Caddy or Apache httpd,
//! for sites that do not run crawlgate.

use super::{Result, file_failure, origin_copy, policies};
use crate::crawlers::Registry;
use crate::export::{ExportTarget, ExportedPolicy, export_config};
use crate::printable::join;
use std::fs;
use std::io::Write;
use std::path::PathBuf;

/// Turn a policy into configuration for nginx, HAProxy, Caddy or Apache
#[derive(clap::Args)]
#[command(
    after_help = "Use this if you cannot run crawlgate. Export again after each change of the policy.

Example:
  crawlgate export nginx --site shop --output /etc/nginx/crawlgate

Exit codes: 0 fine, 1 there is no such policy, 2 wrong usage, 3 a file cannot be read or written."
)]
pub struct Arguments {
    /// The server
    server: ExportTarget,
    /// The site, if there are several
    #[arg(long, value_name = "NAME")]
    site: Option<String>,
    /// The directory to write to; the configuration names files in it
    #[arg(long, value_name = "DIR", default_value = "crawlgate-export")]
    output: PathBuf,
    #[command(flatten)]
    policies: origin_copy::PolicyFlags,
}

/// Writes the configuration of one site, and prints the names of the files, and on standard error
/// the parts of the policy that the server cannot do.
pub fn run(arguments: &Arguments) -> Result {
    let (policies, origins) = arguments.policies.read()?;
    let loaded = policies::load_policies(std::slice::from_ref(&policies), &origins)?;
    policies::print_errors(&loaded);
    let mut sites = policies::valid_sites(&loaded);
    let site = match &arguments.site {
        Some(name) => sites.find(|site| site.name == *name),
        None if loaded.len() > 1 => {
            let names = join(loaded.iter().map(|file| &file.name), ", ");
            fail!(Usage, "name the site with --site: {names}");
        }
        None => sites.next(),
    };
    let Some(site) = site else {
        let name = arguments
            .site
            .as_deref()
            .map(|name| format!(" for {name}"))
            .unwrap_or_default();
        fail!(
            FindingsMessage,
            "no valid policy{name} in {}",
            policies.display()
        );
    };
    origins.print_assumptions([site]);
    // The server starts in another directory, so it needs absolute paths.
    let directory = fs::create_dir_all(&arguments.output)
        .and_then(|()| arguments.output.canonicalize())
        .map_err(file_failure("create", &arguments.output))?;
    let mut out = super::stdout_printer(false);
    let rules = ExportedPolicy::from_site(site, Registry::builtin());
    for (name, bytes) in export_config(&rules, arguments.server, &directory.display().to_string()) {
        let file = directory.join(name);
        fs::write(&file, bytes).map_err(file_failure("write", &file))?;
        writeln!(out, "{}", file.display())?;
    }
    for left_out in &rules.left_out {
        print_message!("not exported: {left_out}");
    }
    Ok(())
}
