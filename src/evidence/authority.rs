//! [`stamp`] gets RFC 3161 timestamps from timestamp authorities for checkpoints, which are signed
//! summaries of the evidence log. A timestamp shows a third party that the checkpoint existed at
//! that time. [`stamp`] blocks the calling thread, and follows no redirects.

use super::{DatabaseError, Hash, OpenLog, time_text, timestamp};
use crate::download::{client, octets};
use std::error::Error;
use std::time::{Duration, SystemTime};
use ureq::Agent;

/// A checkpoint gets no timestamp that is later: it would say little.
const LATEST: Duration = Duration::from_secs(7 * 86_400);
const TIME: Duration = Duration::from_secs(20);
const CONNECT: Duration = Duration::from_secs(5);
/// Bytes of a response, with certificates in it.
const MAX_RESPONSE: usize = 64 * 1024;

/// Why a checkpoint has no timestamp.
#[derive(Debug, thiserror::Error)]
pub enum StampError {
    /// The log cannot be read or written.
    #[error("cannot use the evidence log: {0}")]
    Database(#[from] DatabaseError),
    /// An authority gives none.
    #[error("{url}: {error}")]
    Authority {
        /// Its URL.
        url: String,
        /// What is wrong.
        error: Box<dyn Error + Send + Sync>,
    },
}

/// Gets the timestamps that checkpoints of the last seven days lack, and stores them. An authority
/// that fails once is not asked again in this call.
///
/// # Errors
/// The first failure; the other authorities were asked all the same.
pub fn stamp(log: &mut OpenLog, now: SystemTime) -> Result<(), StampError> {
    let since = time_text(now.checked_sub(LATEST).unwrap_or(SystemTime::UNIX_EPOCH));
    let mut failed = Vec::new();
    let mut first = Ok(());
    for (number, note, url) in log.database.unstamped(&since)? {
        if failed.contains(&url) {
            continue;
        }
        match ask(&url, Hash::of(&[note.as_bytes()])) {
            Ok(response) => {
                log.database
                    .write(|log| log.keep_timestamp(number, &url, &response))?;
            }
            Err(error) => {
                failed.push(url.clone());
                first = first.and(Err(StampError::Authority { url, error }));
            }
        }
    }
    first
}

/// Asks an authority for a timestamp of this hash. Returns its response as it came.
///
/// # Errors
/// The authority does not answer in time, or answers something else than a timestamp of this hash.
/// The signature in the response is not checked.
fn ask(url: &str, hash: Hash) -> Result<Vec<u8>, Box<dyn Error + Send + Sync>> {
    let client = client(TIME)
        .http_status_as_error(true)
        .timeout_connect(Some(CONNECT))
        .build();
    let answer = Agent::new_with_config(client)
        .post(url)
        .header("content-type", "application/timestamp-query")
        .send(timestamp::request(hash).as_slice())?;
    let response = octets(answer.into_body(), MAX_RESPONSE)
        .map_err(|error| format!("the answer broke off: {error}"))?;
    let is_of_it = timestamp::read(&response).is_some_and(|stamp| stamp.hash == hash);
    if is_of_it {
        Ok(response)
    } else {
        Err("the answer is no timestamp of the checkpoint".into())
    }
}
