//! [`fetch_timestamps`] gets RFC 3161 timestamps for checkpoints (signed summaries of the evidence
//! log) from timestamp authorities. A timestamp shows a third party that the checkpoint existed at
//! that time. The call blocks its thread, and follows no redirects.

use super::{DatabaseError, Hash, OpenEvidenceLog, format_time, timestamp};
use crate::download::{client_config, read_body};
use std::error::Error;
use std::time::{Duration, SystemTime};
use ureq::Agent;

/// Older checkpoints get no timestamps any more: they would prove little.
const MAX_CHECKPOINT_AGE: Duration = Duration::from_secs(7 * 86_400);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The most bytes of a response with its certificates.
const MAX_RESPONSE: usize = 64 * 1024;

/// Why a checkpoint has no timestamp.
#[derive(Debug, thiserror::Error)]
pub enum TimestampError {
    /// The log cannot be read or written.
    #[error("the evidence log cannot be used: {0}")]
    Database(#[from] DatabaseError),
    /// An authority gave none.
    #[error("{url}: {error}")]
    Authority {
        url: String,
        error: Box<dyn Error + Send + Sync>,
    },
}

/// Gets and stores the timestamps that checkpoints of the last seven days lack. An authority that
/// fails is not asked again in this call.
///
/// # Errors
/// The first failure. The other authorities were asked all the same.
pub fn fetch_timestamps(log: &mut OpenEvidenceLog, now: SystemTime) -> Result<(), TimestampError> {
    let since = format_time(
        now.checked_sub(MAX_CHECKPOINT_AGE)
            .unwrap_or(SystemTime::UNIX_EPOCH),
    );
    let mut failed = Vec::new();
    let mut first = Ok(());
    for (number, note, url) in log.database.missing_timestamps(&since)? {
        if failed.contains(&url) {
            continue;
        }
        match request_timestamp(&url, Hash::digest(&[note.as_bytes()])) {
            Ok(response) => {
                log.database
                    .write(|log| log.store_timestamp(number, &url, &response))?;
            }
            Err(error) => {
                failed.push(url.clone());
                first = first.and(Err(TimestampError::Authority { url, error }));
            }
        }
    }
    first
}

/// The response of an authority with a timestamp of this hash. Its signature is not checked.
///
/// # Errors
/// The authority does not answer in time, or with something else.
fn request_timestamp(url: &str, hash: Hash) -> Result<Vec<u8>, Box<dyn Error + Send + Sync>> {
    let client = client_config(REQUEST_TIMEOUT)
        .http_status_as_error(true)
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .build();
    let answer = Agent::new_with_config(client)
        .post(url)
        .header("content-type", "application/timestamp-query")
        .send(timestamp::timestamp_request(hash).as_slice())?;
    let response = read_body(answer.into_body(), MAX_RESPONSE)
        .map_err(|error| format!("the response broke off: {error}"))?;
    let is_of_it =
        timestamp::parse_timestamp_response(&response).is_some_and(|stamp| stamp.hash == hash);
    if is_of_it {
        Ok(response)
    } else {
        Err("the response is not a timestamp of the checkpoint, or lacks the certificate of its signer".into())
    }
}
