//! [`Refusal`]: why a store cannot be used as it is. [`of_error`] tells that from a store that is away.

use crate::exchange::StoreError;
use crate::settings::StoreUrl;
use redis::{ErrorKind, RedisError, ServerErrorKind};
use std::path::PathBuf;

/// Why a store cannot be used as it is. It needs a person.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    /// It deletes keys when its memory is full.
    #[error(
        "the store at {url} deletes keys when its memory is full (`maxmemory-policy {policy}`), and crawlgate would accuse \
         crawlers of what it then does not know; crawlgate does not use it. Set `maxmemory-policy noeviction`"
    )]
    Evicts { url: String, policy: String },
    /// It is older than crawlgate needs.
    #[error("the store at {url} is Redis {version}; crawlgate does not use it. Install Redis 6.2 or later, or Valkey")]
    TooOld { url: String, version: String },
    /// It is one of several servers that share keys.
    #[error(
        "the store at {url} is a node of a cluster; crawlgate does not use it. Name one server, or the address of one with a \
         replica that takes its place"
    )]
    Cluster { url: String },
    /// It is a replica of another server.
    #[error(
        "the store at {url} is a replica and takes nothing; crawlgate does not use it. Name the primary server in `store`"
    )]
    Replica { url: String },
    /// It refuses the user or the password.
    #[error(
        "the store at {url} refuses the user or the password ({reason}); crawlgate does not use it. Mend `store` of \
         crawlgate.yaml, or the user in the store"
    )]
    Password { url: String, reason: String },
    /// The user may not do what is needed.
    #[error(
        "the store at {url} does not let this user do what crawlgate needs ({reason}); crawlgate does not use it. \
         docs/instances.md has the line for its access list"
    )]
    Rights { url: String, reason: String },
    /// Other keys have the names of crawlgate's.
    #[error(
        "the key `{key}` in the store at {url} is not crawlgate's; crawlgate does not use the store. Choose another `prefix` \
         or another database for `store` in crawlgate.yaml"
    )]
    Foreign { url: String, key: String },
    /// Its memory or its disk is full.
    #[error(
        "the store at {url} takes nothing ({reason}); crawlgate goes on without it. Give it more memory (`maxmemory`) or \
         space on its disk"
    )]
    Full { url: String, reason: String },
    /// A file of the settings cannot be read.
    #[error("cannot read {} of `store`: {reason}; crawlgate goes on without the store. Mend the file", path.display())]
    File { path: PathBuf, reason: String },
}

impl From<Refusal> for StoreError {
    fn from(refusal: Refusal) -> StoreError {
        match refusal {
            Refusal::Evicts { .. } => StoreError::Evicts(refusal.to_string()),
            _ => StoreError::Unusable(refusal.to_string()),
        }
    }
}

/// What an error of the client means: a store that cannot be used as it is, or one that is away.
pub(super) fn of_error(error: &RedisError, url: &StoreUrl) -> StoreError {
    let reason =
        || error.detail().map_or_else(|| error.to_string(), |detail| format!("{}: {detail}", error.category()));
    let url = url.to_string();
    let refusal = match (error.kind(), error.code()) {
        (ErrorKind::AuthenticationFailed, _) | (_, Some("WRONGPASS" | "NOAUTH")) => {
            Refusal::Password { url, reason: reason() }
        }
        (ErrorKind::Server(ServerErrorKind::NoPerm), _) => Refusal::Rights { url, reason: reason() },
        (ErrorKind::Server(ServerErrorKind::ReadOnly), _) => Refusal::Replica { url },
        (_, Some("OOM" | "MISCONF")) => Refusal::Full { url, reason: reason() },
        _ => return StoreError::Away(format!("the store at {url} does not answer: {}", reason())),
    };
    refusal.into()
}
