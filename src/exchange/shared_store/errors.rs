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
pub fn replica_error(url: &StoreUrl) -> StoreError {
    unusable_store_error(
        "replica",
        format!(
            "the store at {url} is a replica and accepts no writes; crawlgate does not use it. Name the primary \
             server in \"store\""
        ),
    )
}

/// A file of the settings cannot be read.
pub fn unreadable_file(path: &Path, reason: impl Display) -> StoreError {
    unusable_store_error(
        "unreadable-file",
        format!(
            "cannot read {} of \"store\": {reason}; crawlgate goes on without the store. Fix the file",
            path.display()
        ),
    )
}

/// A store that answered and cannot be used as it is.
pub fn unusable_store_error(id: &'static str, message: String) -> StoreError {
    StoreError::Unusable(Finding::new(id, message))
}

/// Classifies an error of the connection: `Unusable` until an operator changes something
/// (password, permissions, replica, memory), otherwise `Away`.
pub fn from_redis_error(error: &RedisError, url: &StoreUrl) -> StoreError {
    let reason = error.detail().map_or_else(
        || error.to_string(),
        |detail| format!("{}: {detail}", error.category()),
    );
    match (error.kind(), error.code()) {
        (ErrorKind::AuthenticationFailed, _) | (_, Some("WRONGPASS" | "NOAUTH")) => {
            unusable_store_error(
                "wrong-password",
                format!(
                    "the store at {url} rejects the user or the password ({reason}); crawlgate does not use it. Fix \
                 \"store\" in crawlgate.yaml, or the user in the store"
                ),
            )
        }
        (ErrorKind::Server(ServerErrorKind::NoPerm), _) => unusable_store_error(
            "no-permission",
            format!(
                "the store at {url} does not allow this user what crawlgate needs ({reason}); crawlgate does not use \
                 it. The access list for it is in instances.md of the documentation"
            ),
        ),
        (ErrorKind::Server(ServerErrorKind::ReadOnly), _) => replica_error(url),
        (_, Some("OOM" | "MISCONF")) => unusable_store_error(
            "store-full",
            format!(
                "the store at {url} accepts no writes ({reason}); crawlgate goes on without it. Give it more memory \
                 (maxmemory) or disk space"
            ),
        ),
        _ => StoreError::Away(format!("the store at {url} does not answer: {reason}")),
    }
}
