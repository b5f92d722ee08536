//! The command `state`: writes a backup of the state directory into one file. crawlgate may keep
//! running meanwhile.

use super::default_paths::StateFlag;
use super::{Result, print_message};
use std::path::PathBuf;

/// Back up the state directory into one file, while crawlgate runs or not
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// `backup` writes a copy, with all that is committed
    action: StateAction,
    /// The copy, a new file
    file: PathBuf,
    #[command(flatten)]
    state: StateFlag,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum StateAction {
    Backup,
}

const EXAMPLES: &str = "\
Examples:
  crawlgate state backup /var/backups/crawlgate-2026-11-22.db
  crawlgate state backup state.db --state /var/lib/crawlgate

To restore: stop crawlgate, remove state.db, state.db-wal and state.db-shm from the state directory, copy the backup there
as state.db, give it to the user of crawlgate, and start crawlgate.

Exit codes: 0 fine, 2 wrong usage, 3 the state cannot be read, or the file cannot be written.";

/// Copies the state into a file, and prints the size of the copy.
pub fn run(arguments: &Arguments) -> Result {
    let StateAction::Backup = arguments.action;
    let directory = arguments.state.path_or_default()?;
    let bytes = crate::state::back_up(&directory, &arguments.file)?;
    print_message(&format!(
        "{}: {} from {}",
        arguments.file.display(),
        crate::numbers::byte_size(bytes),
        directory.display()
    ));
    Ok(())
}
