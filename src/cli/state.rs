//! The command `state`: writes a backup of the state directory into one file. crawlgate may keep
//! running meanwhile.

use super::Result;
use super::control::StateFlag;
use std::path::PathBuf;

/// Back up the state directory to one file, even while crawlgate runs
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  crawlgate state backup /var/backups/crawlgate-2026-11-22.db
  crawlgate state backup state.db --state /var/lib/crawlgate

To restore:
  1. Stop crawlgate.
  2. Remove state.db, state.db-wal and state.db-shm from the state directory.
  3. Copy the backup there as state.db, owned by the user of crawlgate.
  4. Start crawlgate.

Exit codes: 0 fine, 2 wrong usage, 3 the state cannot be read or the backup cannot be written.")]
pub struct Arguments {
    /// What to do
    action: StateAction,
    /// The backup, a new file
    file: PathBuf,
    #[command(flatten)]
    state: StateFlag,
}

#[derive(Clone, clap::ValueEnum)]
enum StateAction {
    Backup,
}

/// Copies the state into a file, and prints the size of the copy.
pub fn run(arguments: &Arguments) -> Result {
    let StateAction::Backup = arguments.action;
    let directory = arguments.state.path_or_default()?;
    let bytes = crate::state::back_up(&directory, &arguments.file)?;
    print_message!(
        "backed up {} to {} ({})",
        directory.display(),
        arguments.file.display(),
        crate::numbers::byte_size(bytes)
    );
    Ok(())
}
