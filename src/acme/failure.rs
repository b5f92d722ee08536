//! [`OrderError`]: the reason why a host got no certificate. Its [`FailureKind`] decides how long
//! crawlgate waits before the next attempt.

use super::certificate::CertificateError;
use crate::telemetry::FailureKind;
use instant_acme::{Error, Problem};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Longer problems of an authority are cut.
const LONGEST: usize = 500;

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
    /// The host leads to another server, or nowhere.
    #[error("{0}")]
    Elsewhere(String),
    /// The authority does not answer, or not as it should.
    #[error("the authority cannot be asked: {0}")]
    Away(String),
    /// The authority says no.
    #[error("the authority refuses: {0}")]
    Refused(String),
    /// The authority says that there were too many requests.
    #[error("the authority limits requests: {0}")]
    Limited(String),
    /// The authority does not know the account.
    #[error("the authority does not know the account: {0}")]
    NoAccount(String),
    /// What the authority sent is no certificate for the host.
    #[error("the certificate of the authority cannot be used: {0}")]
    Certificate(#[from] CertificateError),
    /// The state directory cannot be used.
    #[error("cannot use the state directory: {0}")]
    Storage(#[from] StorageError),
    /// A key or a request cannot be made.
    #[error("cannot make a key or a request for a certificate: {0}")]
    Key(#[from] rcgen::Error),
    /// A mistake in crawlgate.
    #[error("crawlgate made a mistake, which its log shows; report it")]
    Broken,
}

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);

impl FailureKind {
    /// Its name in the metrics, and the pauses after the first failure in a row and after many.
    fn described(self) -> (&'static str, Duration, Duration) {
        match self {
            FailureKind::Elsewhere => ("elsewhere", MINUTE, 10 * MINUTE),
            FailureKind::Away => ("away", MINUTE, HOUR),
            FailureKind::Refused => ("refused", 20 * MINUTE, DAY),
            FailureKind::Limited => ("limited", HOUR, DAY),
            FailureKind::Own => ("own", MINUTE, HOUR),
        }
    }

    /// Its name in the metrics.
    pub fn name(self) -> &'static str {
        self.described().0
    }

    /// The pause after `times` failures in a row: doubled each time up to the longest one of the
    /// kind, or the authority's `Retry-After` within ten seconds and seven days. It is long after a
    /// refusal, because an authority limits them (Let's Encrypt: five an hour for a host). It is
    /// short after crawlgate's own check, which no authority counts.
    pub fn pause(self, times: u32, retry_after: Option<Duration>) -> Duration {
        let (_, first, most) = self.described();
        let doubled = first
            .saturating_mul(1_u32 << times.saturating_sub(1).min(16))
            .min(most);
        // An authority may not keep a host waiting for ever.
        retry_after.map_or(doubled, |after| after.clamp(MINUTE / 6, 7 * DAY))
    }
}

impl OrderError {
    pub fn kind(&self) -> FailureKind {
        match self {
            OrderError::Elsewhere(_) => FailureKind::Elsewhere,
            OrderError::Away(_) => FailureKind::Away,
            OrderError::Refused(_) | OrderError::Certificate(_) | OrderError::NoAccount(_) => {
                FailureKind::Refused
            }
            OrderError::Limited(_) => FailureKind::Limited,
            OrderError::Storage(_) | OrderError::Key(_) | OrderError::Broken => FailureKind::Own,
        }
    }
}

impl From<Error> for OrderError {
    fn from(error: Error) -> OrderError {
        match error {
            Error::Api(problem) => of_problem(&problem),
            Error::Json(error) => OrderError::Away(format!("its answer is not of ACME ({error})")),
            Error::Timeout(_) => OrderError::Away("it takes too long to check or to issue".into()),
            error => OrderError::Away(cut(&error.to_string())),
        }
    }
}

/// The failure that a problem document means: by its type, else by its status (5xx: `Away`, 429:
/// `Limited`), else `Refused`.
fn of_problem(problem: &Problem) -> OrderError {
    let text = text(problem);
    let kind = problem.r#type.as_deref().unwrap_or_default();
    match kind
        .strip_prefix("urn:ietf:params:acme:error:")
        .unwrap_or_default()
    {
        "rateLimited" => OrderError::Limited(text),
        "accountDoesNotExist" => OrderError::NoAccount(text),
        "badNonce" | "serverInternal" => OrderError::Away(text),
        _ if problem.status.is_some_and(|status| status >= 500) => OrderError::Away(text),
        _ if problem.status == Some(429) => OrderError::Limited(text),
        _ => OrderError::Refused(text),
    }
}

/// The text of a problem for people: its detail and the details of its subproblems; without any,
/// its type. Cut to 500 characters.
pub fn text(problem: &Problem) -> String {
    let details = problem
        .subproblems
        .iter()
        .filter_map(|problem| problem.detail.as_deref());
    let details: Vec<&str> = problem
        .detail
        .as_deref()
        .into_iter()
        .chain(details)
        .collect();
    if details.is_empty() {
        cut(problem.r#type.as_deref().unwrap_or("without a reason"))
    } else {
        cut(&details.join("; "))
    }
}

/// The first 500 characters of a text, with a space for each control character (so on one line),
/// and without space at both ends.
pub fn cut(text: &str) -> String {
    let text: String = text
        .chars()
        .take(LONGEST)
        .map(|sign| if sign.is_control() { ' ' } else { sign })
        .collect();
    text.trim().to_owned()
}
