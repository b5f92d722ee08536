//! [`FollowedSite`]: a site whose policy reads the origin's file, with the state of its copy. It
//! may take over a copy from another site.

use crate::origin::robots::{FetchState, FetchedCopy, StoredCopy};
use crate::policy::origin::{OriginCopyState, OriginFile};
use crate::policy::site::SiteEntry;
use crate::sites::{PATIENCE, Served, asked_by, is_no_policy};
use crate::time::Timestamp;
use std::sync::Arc;

/// The remedy for a default site: crawlgate does not know which host name the origin expects.
const REMEDY: &str = "is the site another host's? Name `hosts` in a policy, or with the origin in crawlgate.yaml, and crawlgate \
                      asks for that host; or write the rules in a policy";

/// A followed site.
pub struct FollowedSite {
    pub fetch: FetchState,
    /// The policy of the last fetch: another policy may accept a file that this one held back.
    pub policy: Arc<str>,
    /// Whether the site is a default site.
    pub is_default_site: bool,
    /// Its hosts as patterns.
    pub hosts: Vec<String>,
    /// Whether the next fetch must not be conditional, because the copy may be of another host.
    pub is_unconditional: bool,
    /// Whether a fetch is running.
    pub is_asked: bool,
    /// The state that was logged last.
    pub reported: Option<(OriginCopyState, Served, Option<String>)>,
}

impl FollowedSite {
    /// Follows a site from now on; its first fetch is due at once. `unused` is the stored copy with
    /// the name of the site, `copies` are those of all sites, from which it may take over one.
    pub fn new(
        name: &str,
        entry: &SiteEntry,
        unused: Option<&StoredCopy>,
        copies: &[FetchState],
        now: Timestamp,
    ) -> FollowedSite {
        let stored = unused.map(|copy| &copy.fetch);
        let mut fetch = fetch_state_of(stored, copies, entry, now);
        let is_unconditional = stored != Some(&fetch);
        if unused.is_some_and(|copy| copy.left_at.is_some()) {
            fetch.mark_unasked();
        }
        fetch.due = now;
        let policy = &entry.site.policy;
        let site = FollowedSite {
            fetch,
            policy: policy.source.text.clone(),
            is_default_site: is_no_policy(policy),
            hosts: policy
                .hosts
                .iter()
                .map(|host| host.value.to_string())
                .collect(),
            is_unconditional,
            is_asked: false,
            reported: None,
        };
        site.warn_of_shared_file(name, entry);
        site
    }

    /// Warns if this is a default site for several hosts, which then use one robots.txt.
    fn warn_of_shared_file(&self, name: &str, entry: &SiteEntry) {
        let is_for_several =
            self.hosts.len() > 1 || self.hosts.iter().any(|host| host.starts_with('*'));
        if let Some(host) =
            asked_by(&entry.site.policy).filter(|_| self.is_default_site && is_for_several)
        {
            tracing::warn!(
                site = name,
                hosts = %self.hosts.join(", "),
                %host,
                "there is no policy: these hosts go by one robots.txt, the one of `host`. If they have different files, write an origin or a policy for each."
            );
        }
    }

    /// The copy of the site, as it is stored while a site uses it.
    pub fn to_stored(&self) -> StoredCopy {
        let default_site_hosts = self.is_default_site.then(|| self.hosts.clone());
        StoredCopy {
            fetch: self.fetch.clone(),
            default_site_hosts,
            left_at: None,
        }
    }

    /// Called after the policy changed: makes the next fetch due at once and unconditional. The
    /// site may be for another host now, and use that host's copy or none. Returns whether the
    /// state of the copy changed, so that it has to be stored.
    pub fn follow_policy(
        &mut self,
        entry: &SiteEntry,
        copies: &[FetchState],
        now: Timestamp,
    ) -> bool {
        self.policy = entry.site.policy.source.text.clone();
        self.is_unconditional = true;
        let fetch = fetch_state_of(Some(&self.fetch), copies, entry, now);
        let is_changed = fetch != self.fetch;
        self.fetch = fetch;
        self.fetch.due = now;
        is_changed
    }

    /// The problem of the origin's file, with a remedy where crawlgate knows one; `None` if there
    /// is no problem.
    pub fn problem(&self) -> Option<String> {
        let copy = self.fetch.copy();
        let problem = self.fetch.problem().or_else(|| copy?.reason.clone())?;
        // An origin that answers, but not for this site, may expect another name. An origin that is
        // down does not.
        let is_unnamed = self.hosts.is_empty() && copy.is_some_and(|copy| !copy.exists);
        Some(
            if self.is_default_site && (is_unnamed || self.fetch.is_redirected_away()) {
                format!("{problem}; {REMEDY}")
            } else {
                problem
            },
        )
    }

    /// Logs the state of the file, and what crawlgate serves meanwhile (`served`). Logs nothing
    /// while the origin was not asked yet.
    pub fn log(&self, site: &str, state: OriginCopyState, served: Served) {
        let name = state.name();
        let reason = self.problem().unwrap_or_default();
        let meanwhile = match (served, self.is_default_site) {
            (Served::WithOrigin, _) => "the last good copy stays in use",
            (Served::Unavailable, _) => "crawlgate answers robots.txt with 503 for up to an hour",
            (Served::WithoutOrigin, true) => "there is no policy, so crawlgate allows everything",
            (Served::WithoutOrigin, false) => "crawlgate serves the policy alone",
        };
        match state {
            OriginCopyState::Absent if self.is_default_site => {
                tracing::warn!(
                    %site, state = name, %reason,
                    "the origin has no robots.txt; there is no policy, so crawlgate allows everything"
                );
            }
            OriginCopyState::Current | OriginCopyState::Absent => {
                tracing::info!(%site, state = name, "the origin's robots.txt is known");
            }
            // The origin was not asked yet.
            OriginCopyState::Awaited | OriginCopyState::Missing if reason.is_empty() => {}
            OriginCopyState::Kept if self.fetch.is_unasked() => {}
            OriginCopyState::Kept if self.fetch.believed_at().is_some() => {
                tracing::warn!(
                    %site, state = name, %reason,
                    "the origin says that its rules are gone; crawlgate does not believe that yet: {meanwhile}"
                );
            }
            OriginCopyState::Awaited | OriginCopyState::Kept => {
                tracing::warn!(%site, state = name, %reason, "cannot read the origin's robots.txt: {meanwhile}");
            }
            OriginCopyState::HeldBack => {
                tracing::error!(
                    %site, state = name, %reason,
                    "crawlgate holds the origin's new robots.txt back: {meanwhile}"
                );
            }
            OriginCopyState::Missing => {
                tracing::error!(
                    %site, state = name, %reason,
                    "cannot read the origin's robots.txt, and there is no copy of it: {meanwhile}"
                );
            }
        }
    }
}

/// The state for the copy that a site was compiled with, so that both have the same copy: of its
/// `own` state and `others`, the first whose copy has the same bytes and URL, else the first with
/// the same bytes, else a new one with this copy. With no state for the copy, the next failure
/// would be stored in its place.
///
/// A site that was compiled without a copy keeps its own state only if that has none either: a copy
/// in it would be another host's. Otherwise it gets a new state, which waits for a file since the
/// site began to wait.
fn fetch_state_of(
    own: Option<&FetchState>,
    others: &[FetchState],
    entry: &SiteEntry,
    now: Timestamp,
) -> FetchState {
    let Some(file) = &entry.site.origin else {
        // The site may have waited for longer than this process runs.
        let over = entry.site.robots_txt.awaits_origin_until;
        let since = over.map_or(now, |over| {
            Timestamp(over.0.saturating_sub(PATIENCE.as_secs() as i64)).min(now)
        });
        return own
            .filter(|fetch| fetch.copy().is_none())
            .cloned()
            .unwrap_or_else(|| FetchState::new(since));
    };
    let fitting = own
        .into_iter()
        .chain(others)
        .filter_map(|fetch| Some((fits(fetch.copy()?, file)?, fetch)));
    // Backwards, because the first of the best counts, and `max_by_key` takes the last.
    match fitting.rev().max_by_key(|(is_same_url, _)| *is_same_url) {
        Some((_, fetch)) => fetch.clone(),
        None => FetchState::with_copy(file.location.clone(), file.file.bytes().clone(), now),
    }
}

/// Whether a copy is the file that a site was compiled with: `None` where the bytes differ, else
/// whether the URL is the same too. Two hosts may have equal files, so the same URL fits better.
fn fits(copy: &FetchedCopy, file: &OriginFile) -> Option<bool> {
    (copy.bytes == *file.file.bytes()).then_some(copy.url == file.location)
}
