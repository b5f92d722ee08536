//! The command `schema`: prints the JSON Schema of policies or of settings, with which editors
//! check and complete these files. A schema accepts every file that crawlgate accepts, except one
//! with an unquoted `true` or `false` where a name is expected.
//!
//! Some settings are a path or `off`. For these settings the schema proposes `false`, which means
//! the same as `off`. If the schema proposed `off`, editors would insert `"off"` in quotes, and
//! crawlgate would read this as a path. The test `tests/it/proxy/cli/schema.rs` compares the
//! schemas with the code that reads the files.

use super::Result;
use crate::{policy, settings};

/// Print the JSON Schema of policies or settings, for editors
#[derive(clap::Args)]
#[command(
    after_help = "Write it to a file, and name the file in the first line of a policy:\n  \
                        # yaml-language-server: $schema=policy.schema.json"
)]
pub struct Arguments {
    /// The kind of file
    #[arg(value_name = "FILE", value_enum, default_value_t = SchemaKind::Policy)]
    kind: SchemaKind,
}

#[derive(Clone, clap::ValueEnum)]
enum SchemaKind {
    /// A policy, policies/shop.yaml
    Policy,
    /// The settings, crawlgate.yaml
    Settings,
}

/// Prints the JSON schema of policies or of settings.
pub fn run(arguments: &Arguments) -> Result {
    let schema = match arguments.kind {
        SchemaKind::Policy => policy::SCHEMA,
        SchemaKind::Settings => settings::SCHEMA,
    };
    super::print_bytes(schema.as_bytes())
}
