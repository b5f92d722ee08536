//! `schema`: prints the JSON Schema of policies or of settings, by which an editor completes and
//! checks these files.
//!
//! A schema rejects nothing that crawlgate accepts, except a bare `true` or `false` in place of a
//! name. `check` finds more mistakes than a schema. Where a setting is a path or `off`, the schemas
//! propose `false` instead: editors insert `off` in quotes, and crawlgate reads a quoted `off` as a
//! path. `tests/it/proxy/cli/schema.rs` compares the schemas with the code that reads the files.

use super::Result;
use crate::{policy, settings};
use std::io::{self, Write};

/// Print the JSON Schema of policies or settings, for editors
#[derive(clap::Args)]
#[command(
    after_help = "Write it to a file, and name that file in the first line of a policy:\n  \
                        # yaml-language-server: $schema=policy.schema.json"
)]
pub struct Arguments {
    /// The kind of file
    #[arg(value_name = "FILE", value_enum, default_value_t = Kind::Policy)]
    kind: Kind,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Kind {
    /// A policy, policies/shop.yaml
    Policy,
    /// The server's own settings, crawlgate.yaml
    Settings,
}

/// Prints the JSON schema of policies or of settings.
pub fn run(arguments: &Arguments) -> Result {
    let schema = match arguments.kind {
        Kind::Policy => policy::SCHEMA,
        Kind::Settings => settings::SCHEMA,
    };
    Ok(io::stdout().lock().write_all(schema.as_bytes())?)
}
