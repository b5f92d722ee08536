//! [`FollowedSite`]: a site whose policy includes rules from the origin's own robots.txt. A
//! [`FollowedSite`] has the state of crawlgate's copy of that file. If a new site gets the host of
//! another site, the new site takes over the other site's copy.

use crate::origin::robots::{FetchState, StoredCopy};
use crate::policy::origin::OriginCopyState;
use crate::policy::site::SiteEntry;
use crate::sites::{MAX_ORIGIN_WAIT, ServedRobotsKind, is_default_site_policy};
use crate::time::Timestamp;
use std::sync::Arc;

/// The remedy for a default site: crawlgate does not know which host name the origin expects.
const REMEDY: &str = "if the origin expects another host, name it in \"hosts\" of a policy or of the origin in \
                      crawlgate.yaml; or write the rules in a policy";

/// A followed site.
pub struct FollowedSite {
    pub fetch: FetchState,
    /// The policy of the last fetch: another policy may accept a file that was held back.
    pub policy: Arc<str>,
    /// Whether the site is a default site.
    pub is_default_site: bool,
    /// Its hosts as patterns.
    pub hosts: Vec<String>,
    /// Whether the next fetch must not be conditional, because the copy may be of another host.
    pub is_unconditional: bool,
    /// Whether a fetch is running.
    pub is_fetching: bool,
    /// The state that was logged last.
    pub reported: Option<(OriginCopyState, ServedRobotsKind, Option<String>)>,
}

impl FollowedSite {
    /// Follows a site from now on; its first fetch is due at once. `stored` is its copy of the
    /// previous run. It may take over one of `copies`.
    pub fn new(
        entry: &SiteEntry,
        stored: Option<&FetchState>,
        copies: &[FetchState],
        now: Timestamp,
    ) -> FollowedSite {
        let mut fetch = matching_fetch_state(stored, copies, entry, now);
        let is_unconditional = stored != Some(&fetch);
        fetch.due = now;
        let policy = &entry.site.policy;
        FollowedSite {
            fetch,
            policy: policy.source.text.clone(),
            is_default_site: is_default_site_policy(policy),
            hosts: policy
                .hosts
                .iter()
                .map(|host| host.value.to_string())
                .collect(),
            is_unconditional,
            is_fetching: false,
            reported: None,
        }
    }

    /// The copy for the store.
    pub fn to_stored(&self) -> StoredCopy {
        let default_site_hosts = self.is_default_site.then(|| self.hosts.clone());
        StoredCopy {
            fetch: self.fetch.clone(),
            default_site_hosts,
        }
    }

    /// Sets a changed policy: the next fetch is due at once and unconditional. The site may be for
    /// another host now, and use that host's copy or none. Returns whether the copy changed, so that
    /// it has to be stored.
    pub fn set_policy(&mut self, entry: &SiteEntry, copies: &[FetchState], now: Timestamp) -> bool {
        self.policy = entry.site.policy.source.text.clone();
        self.is_unconditional = true;
        let fetch = matching_fetch_state(Some(&self.fetch), copies, entry, now);
        let is_changed = fetch != self.fetch;
        self.fetch = fetch;
        self.fetch.due = now;
        is_changed
    }

    /// The problem of the origin's file, with a remedy if there is one; `None` without a problem.
    pub fn problem(&self) -> Option<String> {
        let copy = self.fetch.copy();
        let problem = self.fetch.problem().or_else(|| copy?.reason.clone())?;
        // An origin that answers without a file may expect another host. An origin that is down does
        // not answer.
        let is_unnamed = self.hosts.is_empty() && copy.is_some_and(|copy| !copy.exists);
        Some(
            if self.is_default_site && (is_unnamed || self.fetch.is_redirected_away()) {
                format!("{problem}; {REMEDY}")
            } else {
                problem
            },
        )
    }

    /// Logs the state of the file, and what crawlgate serves meanwhile. Logs nothing before the
    /// origin was asked.
    pub fn log_state(&self, site: &str, state: OriginCopyState, served: ServedRobotsKind) {
        use OriginCopyState::*;

        let name = state.name();
        let reason = self.problem().unwrap_or_default();
        let meanwhile = served.words();
        match state {
            Absent if self.is_default_site => {
                tracing::warn!(
                    %site, state = name, %reason,
                    "the origin has no robots.txt, and there is no policy: crawlgate allows everything"
                );
            }
            // Of many sites nobody reads at the start that all is well.
            Current | Absent if matches!(self.reported, None | Some((Awaited, _, None))) => {}
            Current => {
                tracing::info!(%site, state = name, "crawlgate has the origin's robots.txt");
            }
            Absent => tracing::info!(%site, state = name, "the origin has no robots.txt"),
            // The origin was not asked yet.
            Awaited | Missing if reason.is_empty() => {}
            Kept if self.fetch.is_unasked() => {}
            Kept if self.fetch.believed_at().is_some() => {
                tracing::warn!(
                    %site, state = name, %reason,
                    "the origin's robots.txt is gone or has no rules; crawlgate does not believe that yet: \
                     {meanwhile}"
                );
            }
            Awaited | Kept => {
                tracing::warn!(%site, state = name, %reason, "the origin's robots.txt could not be fetched: {meanwhile}");
            }
            HeldBack => {
                tracing::error!(
                    %site, state = name, %reason,
                    "crawlgate does not use the origin's new robots.txt: {meanwhile}"
                );
            }
            Missing => {
                tracing::error!(
                    %site, state = name, %reason,
                    "the origin's robots.txt could not be fetched, and there is no copy of it: {meanwhile}"
                );
            }
        }
    }
}

/// The fetch state for the copy that a site was compiled with: of its `own` state and `others`, the
/// first whose copy has the same bytes, else a new state with this copy.
///
/// A site that was compiled without a copy keeps its own state only if that has no copy either: a
/// copy would be another host's. Otherwise it gets a new state, which waits since the site began to
/// wait.
fn matching_fetch_state(
    own: Option<&FetchState>,
    others: &[FetchState],
    entry: &SiteEntry,
    now: Timestamp,
) -> FetchState {
    let Some(file) = &entry.site.origin else {
        // The site may have waited for longer than this process runs.
        let over = entry.site.robots_txt.awaits_origin_until;
        let since = over.map_or(now, |over| {
            Timestamp(over.0.saturating_sub(MAX_ORIGIN_WAIT.as_secs() as i64)).min(now)
        });
        return own
            .filter(|fetch| fetch.copy().is_none())
            .cloned()
            .unwrap_or_else(|| FetchState::new(since));
    };
    let bytes = file.file.bytes();
    own.into_iter()
        .chain(others)
        .find(|fetch| fetch.copy().is_some_and(|copy| copy.bytes == *bytes))
        .cloned()
        .unwrap_or_else(|| FetchState::with_copy(file.location.clone(), bytes.clone(), now))
}
