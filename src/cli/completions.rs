//! The command `completions`: prints a shell script that completes crawlgate's commands, flags and
//! their values.

use super::Result;
use clap::CommandFactory;

/// Print shell completions
#[derive(clap::Args)]
#[command(
    after_help = "For bash:\n  crawlgate completions bash > ~/.local/share/bash-completion/completions/crawlgate"
)]
pub struct Arguments {
    /// The shell
    shell: clap_complete::Shell,
}

/// Prints the script by which a shell completes the command line.
pub fn run(arguments: &Arguments) -> Result {
    // The generators panic when they cannot write, so they write to memory, which always can.
    let mut script = Vec::new();
    clap_complete::generate(
        arguments.shell,
        &mut super::Arguments::command(),
        "crawlgate",
        &mut script,
    );
    super::print_bytes(&script)
}
