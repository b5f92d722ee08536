//! One question to one origin, and what is heard: run in a thread of its own, knows no other site.

use crate::origin::robots::{FetchResult, Question, Target, ask};
use crate::policy::Policy;
use std::sync::Arc;

/// One site to be asked for.
pub struct Errand {
    pub(super) site: String,
    pub(super) target: Option<Target>,
    pub(super) etag: Option<String>,
    pub(super) last_modified: Option<String>,
    pub(super) policy: Arc<Policy>,
}

/// What came of it.
pub struct Answer {
    pub(super) site: String,
    pub(super) heard: FetchResult,
    /// The policy that it was asked for.
    pub(super) policy: Arc<str>,
}

impl Errand {
    /// Asks. Blocks until there is an answer, for 20 seconds at most.
    pub fn run(self) -> Answer {
        let heard = match &self.target {
            None => FetchResult::Unreachable("no origin of the settings is for this site".into()),
            Some(target) => ask(&Question {
                target,
                etag: self.etag.as_deref(),
                last_modified: self.last_modified.as_deref(),
                is_own: &|host| is_own(&self.policy, target, host),
            }),
        };
        Answer { site: self.site, heard, policy: self.policy.source.text.clone() }
    }
}

/// Whether a host that a redirect names is the site itself. A site for every host has the one that was asked for.
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
