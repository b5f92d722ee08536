//! [`FetchJob`]: one fetch of a robots.txt from one origin. [`FinishedJob`] is its result.

use crate::origin::robots::{FetchResult, RobotsRequest, Target, ask};
use crate::policy::Policy;
use std::sync::Arc;

/// A fetch that is to run.
pub struct FetchJob {
    pub(super) site: String,
    pub(super) target: Option<Target>,
    /// Whether the settings have an origin. A decision service may have none; the policy is served alone then.
    pub(super) has_origins: bool,
    pub(super) etag: Option<String>,
    pub(super) last_modified: Option<String>,
    pub(super) policy: Arc<Policy>,
}

/// A fetch that is done.
pub struct FinishedJob {
    pub(super) site: String,
    pub(super) result: FetchResult,
    /// The policy in force when the fetch began.
    pub(super) policy: Arc<str>,
}

impl FetchJob {
    /// Fetches the file. Blocks for 20 seconds at most.
    pub fn run(self) -> FinishedJob {
        let result = match &self.target {
            None if !self.has_origins => FetchResult::Nothing {
                url: "/robots.txt".into(),
                reason:
                    "the decision service has no origin: name it with --origin, or write `robots: { origin: replace }`"
                        .into(),
            },
            None => FetchResult::Unreachable("no origin of the settings is for this site".into()),
            Some(target) => ask(&RobotsRequest {
                target,
                etag: self.etag.as_deref(),
                last_modified: self.last_modified.as_deref(),
                is_own: &|host| is_own(&self.policy, target, host),
            }),
        };
        FinishedJob { site: self.site, result, policy: self.policy.source.text.clone() }
    }
}

/// Whether a host that a redirect names is one of the site's own. For a site for every host, only the host of the request
/// is its own.
fn is_own(policy: &Policy, target: &Target, host: &str) -> bool {
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    host.eq_ignore_ascii_case(&target.host)
        || policy.hosts.iter().map(|host| &host.value).any(|pattern| match pattern.wildcard {
            false => name.eq_ignore_ascii_case(&pattern.name),
            true => name
                .len()
                .checked_sub(pattern.name.len() + 1)
                .and_then(|dot| name.get(dot..))
                .is_some_and(|end| end.starts_with('.') && end[1..].eq_ignore_ascii_case(&pattern.name)),
        })
}
