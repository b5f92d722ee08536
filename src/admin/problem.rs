//! [`Problem`]: something about the running crawlgate that needs the operator's attention, such as
//! a rejected policy file. The command `status`, the dashboard's page of health and the metrics
//! show all problems.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use strum::{IntoStaticStr, VariantArray};

/// Something that needs attention.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Problem {
    /// The kind of the problem.
    pub problem: ProblemKind,
    /// The site, the origin or the file; none if several have the problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The id of the finding, for a warning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finding: Option<Cow<'static, str>>,
    /// What happened, what crawlgate does, and what an operator can do.
    pub message: String,
}

/// The kinds of problems.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ProblemKind {
    /// A warning about the policy directory, the state directory or a log.
    Warning,
    /// A policy file is not in force as it stands.
    PolicyRejected,
    /// A policy file is gone; its last good policy stays in force.
    PolicyRemoved,
    /// An origin fails or answers with errors.
    OriginFailing,
    /// Verified search crawlers are turned away from an origin.
    SearchTurnedAway,
    /// Connections were not accepted, or requests not sent to an origin, because crawlgate may open
    /// no more files.
    FileLimit,
    /// Requests are for hosts without an origin.
    NoOrigin,
    /// Most requests, or many for one name, are for hosts that no policy names.
    UnclaimedHosts,
    /// Most requests come through a proxy that `trusted_proxies` does not name.
    UndeclaredProxy,
    /// Trusted proxies send the client's address in another field than `client_address`.
    ClientAddress,
    /// A proxy sends its origin's own robots.txt instead of crawlgate's.
    BypassedFile,
    /// The settings file is not what crawlgate was started with, or has mistakes.
    Settings,
    /// Crawlers come through a proxy, and the policy does not say whether it is a cache.
    BehindCache,
    /// The robots.txt of an origin cannot be used.
    OriginRobots,
    /// The origin sends the front page of a production site with noindex.
    FrontPageNoindex,
    /// Visitors of sites get 503, because of a pause for everyone.
    PausedForEveryone,
    /// The networks that a policy lists for a crawler verify no request.
    IdentitySuspended,
    /// Published lists of networks or keys could not be fetched or used for more than a day.
    IdentityLists,
    /// A certificate of a listener is rejected by clients or will be soon, or its renewal failed; or
    /// a changed file for TLS to an origin cannot be used.
    Certificate,
    /// The shared store through which several instances exchange facts cannot be reached or used.
    Store,
    /// Another instance does not report or has other policies, or the clock is off.
    Instances,
}

named!(ProblemKind);

impl Problem {
    /// A problem without a subject.
    pub fn new(problem: ProblemKind, message: String) -> Problem {
        Problem {
            problem,
            subject: None,
            finding: None,
            message,
        }
    }

    /// A problem of a site, an origin or a file.
    pub fn about(problem: ProblemKind, subject: &str, message: String) -> Problem {
        Problem {
            subject: Some(subject.to_owned()),
            ..Problem::new(problem, message)
        }
    }
}
