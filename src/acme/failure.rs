//! [`OrderError`]: why a host got no certificate from the certificate authority. Its
//! [`OrderFailureKind`] decides how long crawlgate waits before the next attempt.

use super::certificate::CertificateError;
use crate::printable::join;
use crate::telemetry::OrderFailureKind;
use instant_acme::{Error, Problem};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Longer texts of an authority are cut.
const MAX_REASON_CHARS: usize = 500;

/// A file of the state directory cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
pub struct StorageError {
    pub path: PathBuf,
    pub source: io::Error,
}

/// Why a host got no certificate.
#[derive(Debug, thiserror::Error)]
pub enum OrderError {
    /// The host leads to another server, or has no address.
    #[error("{0}")]
    HostNotReached(String),
    /// The authority does not answer, or not by the protocol.
    #[error("the authority cannot be reached: {0}")]
    Unavailable(String),
    /// The authority refuses the order or a check.
    #[error("the authority refused: {0}")]
    Refused(String),
    /// The authority has a rate limit.
    #[error("the authority limits requests: {0}")]
    RateLimited(String),
    /// The authority does not know the account.
    #[error("the authority does not know the account: {0}")]
    UnknownAccount(String),
    /// The authority sent something else than a certificate for the host.
    #[error("the authority's certificate cannot be used: {0}")]
    Certificate(#[from] CertificateError),
    /// The state directory cannot be used.
    #[error("cannot use the state directory: {0}")]
    Storage(#[from] StorageError),
    /// A key or a request cannot be made.
    #[error("cannot create a key or a certificate request: {0}")]
    Key(#[from] rcgen::Error),
    /// The attempt panicked.
    #[error("this is a fault of crawlgate: its log has the details, please report it")]
    Panicked,
}

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);

impl OrderFailureKind {
    /// Its name in the metrics, and the shortest and the longest pause.
    fn name_and_pauses(self) -> (&'static str, Duration, Duration) {
        use OrderFailureKind::*;

        match self {
            Elsewhere => ("elsewhere", MINUTE, 10 * MINUTE),
            Away => ("away", MINUTE, HOUR),
            Refused => ("refused", 20 * MINUTE, DAY),
            Limited => ("limited", HOUR, DAY),
            Own => ("own", MINUTE, HOUR),
        }
    }

    /// Its name in the metrics.
    pub fn name(self) -> &'static str {
        self.name_and_pauses().0
    }

    /// The pause after `times` failures in a row: doubled each time up to the longest one, or the
    /// authority's `Retry-After` within ten seconds and seven days. Authorities limit refusals (Let's
    /// Encrypt: five an hour for a host), but not crawlgate's own checks.
    pub fn pause(self, times: u32, retry_after: Option<Duration>) -> Duration {
        let (_, first, most) = self.name_and_pauses();
        let doubled = first
            .saturating_mul(1_u32 << times.saturating_sub(1).min(16))
            .min(most);
        retry_after.map_or(doubled, |after| after.clamp(MINUTE / 6, 7 * DAY))
    }
}

impl OrderError {
    pub fn kind(&self) -> OrderFailureKind {
        use OrderError::*;

        match self {
            HostNotReached(_) => OrderFailureKind::Elsewhere,
            Unavailable(_) => OrderFailureKind::Away,
            Refused(_) | Certificate(_) | UnknownAccount(_) => OrderFailureKind::Refused,
            RateLimited(_) => OrderFailureKind::Limited,
            Storage(_) | Key(_) | Panicked => OrderFailureKind::Own,
        }
    }
}

impl From<Error> for OrderError {
    fn from(error: Error) -> OrderError {
        match error {
            Error::Api(problem) => error_from_problem(&problem),
            Error::Json(error) => OrderError::Unavailable(format!(
                "its answer does not follow the ACME protocol ({error})"
            )),
            Error::Timeout(_) => OrderError::Unavailable(
                "it takes too long to check the host or to issue the certificate".into(),
            ),
            error => OrderError::Unavailable(one_line_excerpt(&error.to_string())),
        }
    }
}

/// By the type of the problem, else by its status, else `Refused`.
fn error_from_problem(problem: &Problem) -> OrderError {
    use OrderError::*;

    let text = problem_text(problem);
    match problem
        .r#type
        .as_deref()
        .unwrap_or_default()
        .strip_prefix("urn:ietf:params:acme:error:")
        .unwrap_or_default()
    {
        "rateLimited" => RateLimited(text),
        "accountDoesNotExist" => UnknownAccount(text),
        "badNonce" | "serverInternal" => Unavailable(text),
        _ if problem.status.is_some_and(|status| status >= 500) => Unavailable(text),
        _ if problem.status == Some(429) => RateLimited(text),
        _ => Refused(text),
    }
}

/// The details of a problem and its subproblems, or else its type; at most 500 characters.
pub fn problem_text(problem: &Problem) -> String {
    let subproblems = problem.subproblems.iter();
    let more = subproblems.filter_map(|problem| problem.detail.as_ref());
    let details = join(problem.detail.iter().chain(more), "; ");
    if details.is_empty() {
        one_line_excerpt(problem.r#type.as_deref().unwrap_or("no reason given"))
    } else {
        one_line_excerpt(&details)
    }
}

/// The first 500 characters of a text on one line.
pub fn one_line_excerpt(text: &str) -> String {
    let text: String = text
        .chars()
        .take(MAX_REASON_CHARS)
        .map(|sign| if sign.is_control() { ' ' } else { sign })
        .collect();
    text.trim().to_owned()
}
