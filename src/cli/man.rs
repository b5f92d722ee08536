//! `man`: prints the manual, one page for each command. Usage and options come from clap; exit
//! codes, files and the environment are in this file.

use super::{Result, cannot};
use clap::{Command, CommandFactory};
use clap_mangen::roff::{Roff, bold, roman};
use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

/// Print the manual page, or write one page per command into a directory
#[derive(clap::Args)]
#[command(after_help = "To read it without installing: crawlgate man | man -l -")]
pub struct Arguments {
    /// Write crawlgate.1, crawlgate-run.1 and so on into this directory
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// The exit codes of every command.
const EXIT_CODES: &[(&str, &str)] = &[
    ("0", "Fine."),
    (
        "1",
        "Findings: a policy is invalid, a test failed, a site was rejected, no policy is for the host.",
    ),
    ("2", "Wrong usage."),
    (
        "3",
        "Could not: a file, the network, or no running crawlgate.",
    ),
];

const FILES: &[(&str, &str)] = &[
    (
        "policies/*.yaml",
        "The policies, one file per site, unless --policies names another directory.",
    ),
    (
        "crawlgate.yaml",
        "The settings of the server. crawlgate reads none unless --config names it.",
    ),
    (
        "control.sock, crawlgate.sock",
        "The control socket: in $RUNTIME_DIRECTORY, $XDG_RUNTIME_DIR, /run/crawlgate if that directory exists, or the \
         state directory.",
    ),
    (
        "/var/lib/crawlgate",
        "The state directory: $STATE_DIRECTORY, this one if it exists, \
         $XDG_STATE_HOME/crawlgate, or ~/.local/state/crawlgate.",
    ),
];

const ENVIRONMENT: &[(&str, &str)] = &[
    ("NO_COLOR", "No colours, even to a terminal."),
    (
        "RUST_LOG",
        "The level of log messages on standard error: RUST_LOG=debug.",
    ),
];

/// Prints the manual page of the program, or with `--dir` writes this page and those of all
/// commands into that directory, which is made if it is missing.
pub fn run(arguments: &Arguments) -> Result {
    let mut command = super::Arguments::command();
    command.build();
    let page = page(&command)?;
    let Some(directory) = &arguments.dir else {
        return Ok(io::stdout().lock().write_all(&page)?);
    };
    fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(command, directory))
        .and_then(|()| fs::write(directory.join("crawlgate.1"), &page))
        .map_err(cannot("write pages to", directory))
}

/// The page of the program. clap tells the commands and the options; the rest is in this file.
fn page(command: &Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    let mut roff = Roff::new();
    list(&mut roff, "EXIT STATUS", EXIT_CODES);
    list(&mut roff, "FILES", FILES);
    list(&mut roff, "ENVIRONMENT", ENVIRONMENT);
    page.extend(roff.to_roff().into_bytes());
    Ok(page)
}

/// Adds a section with this heading to a manual page: each name in bold, its meaning below it.
fn list(roff: &mut Roff, heading: &str, items: &[(&str, &str)]) {
    roff.control("SH", [heading]);
    for (name, meaning) in items {
        roff.control("TP", []);
        roff.text([bold(*name)]);
        roff.text([roman(*meaning)]);
    }
}
