//! [`OriginRobots::report_status`] writes the states of the origins' files into the status, and logs each change.

use super::OriginRobots;
use super::followed_site::FollowedSite;
use crate::policy::origin::OriginCopyState;
use crate::sites::{OriginRobotsStatus, PATIENCE, Served};
use crate::time::Timestamp;
use std::collections::BTreeMap;

/// The remedy for a default site: crawlgate does not know which host name the origin expects.
const REMEDY: &str = "is the site another host's? Name `hosts` in a policy, or with the origin in crawlgate.yaml, and crawlgate \
                      asks for that host; or write the rules in a policy";

impl OriginRobots {
    /// Brings the status up to date, and logs what changed.
    pub(super) fn report_status(&mut self, now: Timestamp) {
        let mut reports = BTreeMap::new();
        let snapshot = self.manager.snapshot();
        for (name, site) in &mut self.followed {
            let Some(entry) = snapshot.site_named(name).map(|place| &snapshot.sites()[place]) else { continue };
            let (served, unavailable_until) = Served::of(&entry.site, now);
            let (state, problem) = (site.fetch.state(PATIENCE, now), site.problem());
            reports.insert(
                name.clone(),
                OriginRobotsStatus {
                    state,
                    url: site.fetch.copy().map(|copy| copy.url.clone()),
                    last_success: site.fetch.last_success,
                    problem: problem.clone(),
                    is_unasked: site.fetch.is_unasked(),
                    served,
                    unavailable_until,
                    believed_at: site.fetch.believed_at(),
                },
            );
            let report = Some((state, served, problem));
            if site.reported != report {
                site.log(name, state, served);
                site.reported = report;
            }
        }
        self.manager.report_origins(reports);
    }
}

impl FollowedSite {
    /// The problem of the origin's file, with a remedy where crawlgate knows one.
    fn problem(&self) -> Option<String> {
        let copy = self.fetch.copy();
        let problem = self.fetch.problem().or_else(|| copy?.reason.clone())?;
        // An origin that answers, but not for this site, may expect another name. An origin that is down does not.
        let is_unnamed = self.hosts.is_empty() && copy.is_some_and(|copy| !copy.exists);
        Some(match self.is_default_site && (is_unnamed || self.fetch.is_redirected_away()) {
            true => format!("{problem}; {REMEDY}"),
            false => problem,
        })
    }

    fn log(&self, site: &str, state: OriginCopyState, served: Served) {
        let (name, reason) = (state.name(), self.problem().unwrap_or_default());
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
