//! `export`: writes a policy as configuration of nginx, HAProxy, Caddy or Apache httpd, for sites
//! that do not run crawlgate.

use super::{Failure, Result, cannot, origin_copy, policies, say};
use crate::crawlers::Registry;
use crate::export::{Rules, Server, export};
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
    server: Server,
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
    origin: origin_copy::OriginFrom,
}

/// Writes the configuration of one site into the directory, and prints the names of the files. Says
/// on standard error what the server cannot do. The site must be named if there are several files.
pub fn run(arguments: &Arguments) -> Result {
    let loaded = policies::load(
        std::slice::from_ref(&arguments.policies),
        &arguments.origin.read()?,
    )?;
    policies::report(&loaded, true);
    let mut sites = policies::sites(&loaded);
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
        return Err(Failure::Found(format!(
            "no valid policy{name} in {}",
            arguments.policies.display()
        )));
    };
    fs::create_dir_all(&arguments.output)?;
    // Servers are started from elsewhere.
    let directory = arguments.output.canonicalize()?;
    let mut out = super::out(false);
    let rules = Rules::of(site, Registry::builtin());
    for (name, bytes) in export(&rules, arguments.server, &directory.display().to_string()) {
        let file = directory.join(name);
        fs::write(&file, bytes).map_err(cannot("write", &file))?;
        writeln!(out, "{}", file.display())?;
    }
    for left_out in &rules.left_out {
        say(&format!("not exported: {left_out}"));
    }
    Ok(())
}
