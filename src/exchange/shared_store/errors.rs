//! Errors of the Redis or Valkey server that several crawlgate instances share.
//! [`from_redis_error`] decides whether an operator must fix the error ([`StoreError::Unusable`]),
//! or whether it will end by itself ([`StoreError::Away`]).

use crate::exchange::StoreError;
use crate::finding::Finding;
use crate::settings::StoreUrl;
use redis::{ErrorKind, RedisError, ServerErrorKind};
use std::fmt::Display;
use std::path::Path;

/// The server is a replica of another one.
pub(super) fn replica_error(url: &StoreUrl) -> StoreError {
    unusable(
        "replica",
        format!(
            "the store at {url} is a replica and takes nothing; crawlgate does not use it. Name the primary server in `store`"
        ),
    )
}

/// A file of the settings cannot be read.
pub(super) fn unreadable_file(path: &Path, reason: impl Display) -> StoreError {
    unusable(
        "unreadable-file",
        format!(
            "cannot read {} of `store`: {reason}; crawlgate goes on without the store. Mend the file",
            path.display()
        ),
    )
}

/// A store that answered and cannot be used as it is.
pub(super) fn unusable(id: &'static str, message: String) -> StoreError {
    StoreError::Unusable(Finding::new(id, message))
}

/// Classifies an error of the connection: `Unusable` until an operator changes something
/// (password, permissions, replica, memory), otherwise `Away`.
pub(super) fn from_redis_error(error: &RedisError, url: &StoreUrl) -> StoreError {
    let reason = error.detail().map_or_else(
        || error.to_string(),
        |detail| format!("{}: {detail}", error.category()),
    );
    match (error.kind(), error.code()) {
        (ErrorKind::AuthenticationFailed, _) | (_, Some("WRONGPASS" | "NOAUTH")) => unusable(
            "wrong-password",
            format!(
                "the store at {url} refuses the user or the password ({reason}); crawlgate does not use it. Mend `store` of \
             crawlgate.yaml, or the user in the store"
            ),
        ),
        (ErrorKind::Server(ServerErrorKind::NoPerm), _) => unusable(
            "no-permission",
            format!(
                "the store at {url} does not let this user do what crawlgate needs ({reason}); crawlgate does not use it. \
             docs/instances.md has the line for its access list"
            ),
        ),
        (ErrorKind::Server(ServerErrorKind::ReadOnly), _) => replica_error(url),
        (_, Some("OOM" | "MISCONF")) => unusable(
            "store-full",
            format!(
                "the store at {url} takes nothing ({reason}); crawlgate goes on without it. Give it more memory (`maxmemory`) \
             or space on its disk"
            ),
        ),
        _ => StoreError::Away(format!("the store at {url} does not answer: {reason}")),
    }
}
