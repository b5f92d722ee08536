//! `state`: writes a backup of the state directory, where crawlgate stores what must outlast a
//! restart. crawlgate may be running meanwhile.

use super::places::StateDirectory;
use super::{Result, say};
use std::path::PathBuf;

/// Back up the state directory into one file, while crawlgate runs or not
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// `backup` writes a copy, with all that is committed
    action: Action,
    /// The copy, a new file
    file: PathBuf,
    #[command(flatten)]
    state: StateDirectory,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Action {
    Backup,
}

const EXAMPLES: &str = "\
Examples:
  crawlgate state backup /var/backups/crawlgate-2026-11-22.db
  crawlgate state backup state.db --state /var/lib/crawlgate

To restore: stop crawlgate, remove state.db, state.db-wal and state.db-shm from the state directory, copy the backup there
as state.db, give it to the user of crawlgate, and start crawlgate.

Exit codes: 0 fine, 2 wrong usage, 3 the state cannot be read, or the file cannot be written.";

/// Copies the state of the directory into a file, and says how large the copy is.
pub fn run(arguments: &Arguments) -> Result {
    let Action::Backup = arguments.action;
    let directory = arguments.state.path()?;
    let octets = crate::state::back_up(&directory, &arguments.file)?;
    say(&format!(
        "{}: {} from {}",
        arguments.file.display(),
        crate::numbers::size(octets),
        directory.display()
    ));
    Ok(())
}
