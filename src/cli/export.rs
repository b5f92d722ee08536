//! The command `export`: writes a policy as configuration of nginx, HAProxy, Caddy or Apache httpd,
//! for sites that do not run crawlgate.

use super::{Failure, Result, file_failure, origin_copy, policies, print_message};
use crate::crawlers::Registry;
use crate::export::{ExportTarget, ExportedPolicy, export_config};
use std::fs;
use std::io::Write;
use std::path::PathBuf;

/// Write a policy as configuration of nginx, HAProxy, Caddy or Apache
#[derive(clap::Args)]
#[command(
    after_help = "The files are for sites where nothing new is to run. Export again after each change of the policy."
)]
pub struct Arguments {
    /// The server that the configuration is for
    #[arg(value_enum)]
    server: ExportTarget,
    /// The site; not needed where there is one
    #[arg(long, value_name = "NAME")]
    site: Option<String>,
    /// The directory to write to; the configuration names its files there
    #[arg(long, value_name = "DIR", default_value = "crawlgate-export")]
    output: PathBuf,
    /// The policy directory
    #[arg(long, value_name = "DIR", default_value = "policies")]
    policies: PathBuf,
    #[command(flatten)]
    origin: origin_copy::OriginFlags,
}

/// Writes the configuration of one site, and prints the names of the files, and on standard error
/// the parts of the policy that the server cannot do.
pub fn run(arguments: &Arguments) -> Result {
    let loaded = policies::load_policies(
        std::slice::from_ref(&arguments.policies),
        &arguments.origin.read()?,
    )?;
    policies::print_policy_findings(&loaded, true);
    let mut sites = policies::valid_sites(&loaded);
    let site = match &arguments.site {
        Some(name) => sites.find(|site| site.name == *name),
        None if loaded.len() > 1 => {
            let names: Vec<&str> = loaded.iter().map(|file| file.name.as_str()).collect();
            return Err(Failure::Usage(format!(
                "name the site with --site: {}",
                names.join(", ")
            )));
        }
        None => sites.next(),
    };
    let Some(site) = site else {
        let name = arguments
            .site
            .as_deref()
            .map(|name| format!(" `{name}`"))
            .unwrap_or_default();
        return Err(Failure::FindingsMessage(format!(
            "no valid policy{name} in {}",
            arguments.policies.display()
        )));
    };
    fs::create_dir_all(&arguments.output)?;
    // The server starts in another directory, so it needs absolute paths.
    let directory = arguments.output.canonicalize()?;
    let mut out = super::stdout_printer(false);
    let rules = ExportedPolicy::from_site(site, Registry::builtin());
    for (name, bytes) in export_config(&rules, arguments.server, &directory.display().to_string()) {
        let file = directory.join(name);
        fs::write(&file, bytes).map_err(file_failure("write", &file))?;
        writeln!(out, "{}", file.display())?;
    }
    for left_out in &rules.left_out {
        print_message(&format!("not exported: {left_out}"));
    }
    Ok(())
}
