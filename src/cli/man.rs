//! The command `man`: prints the manual page of crawlgate, or writes one page for each command into
//! a directory. Usage and options come from clap; `man.roff` has the sections about exit codes,
//! files and the environment.

use super::{Result, file_failure};
use clap::CommandFactory;
use std::fs;
use std::path::PathBuf;

/// Print the manual, or write a page for each command to a directory
#[derive(clap::Args)]
#[command(after_help = "To read it:\n  crawlgate man | man -l -")]
pub struct Arguments {
    /// Write crawlgate.1, crawlgate-run.1 and so on to this directory
    #[arg(long)]
    dir: Option<PathBuf>,
}

/// Prints the page of the program, or with `--dir` writes the pages of the program and of all
/// commands into that directory.
pub fn run(arguments: &Arguments) -> Result {
    let mut command = super::Arguments::command();
    command.build();
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    // The sections that do not come from clap.
    page.extend_from_slice(include_bytes!("man.roff"));
    let Some(directory) = &arguments.dir else {
        return super::print_bytes(&page);
    };
    fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(command, directory))
        .and_then(|()| fs::write(directory.join("crawlgate.1"), &page))
        .map_err(file_failure("write pages to", directory))
}
