//! The command `man`: prints the manual, one page for each command. Usage and options come from
//! clap; exit codes, files and the environment are in `man.roff`.

use super::{Result, file_failure};
use clap::{Command, CommandFactory};
use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

/// Print the manual, or write a page for each command to a directory
#[derive(clap::Args)]
#[command(after_help = "To read it:\n  crawlgate man | man -l -")]
pub struct Arguments {
    /// Write crawlgate.1, crawlgate-run.1 and so on to this directory
    #[arg(long)]
    dir: Option<PathBuf>,
}

/// The sections of the program's page that do not come from clap.
const SECTIONS: &[u8] = include_bytes!("man.roff");

/// Prints the page of the program, or with `--dir` writes the pages of the program and of all
/// commands into that directory.
pub fn run(arguments: &Arguments) -> Result {
    let mut command = super::Arguments::command();
    command.build();
    let page = program_page(&command)?;
    let Some(directory) = &arguments.dir else {
        return Ok(io::stdout().lock().write_all(&page)?);
    };
    fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(command, directory))
        .and_then(|()| fs::write(directory.join("crawlgate.1"), &page))
        .map_err(file_failure("write pages to", directory))
}

/// Renders the page of the program.
fn program_page(command: &Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    page.extend_from_slice(SECTIONS);
    Ok(page)
}
