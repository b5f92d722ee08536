//! The state of the origins' files, for the status and, when it changes, for the log.

use super::OriginRobots;
use super::followed_site::FollowedSite;
use crate::origin::robots::State;
use crate::sites::{OriginRobotsStatus, PATIENCE, Served};
use crate::time::Timestamp;
use std::collections::BTreeMap;

/// What helps where there is no policy: crawlgate then does not know the name that the origin wants to be asked by.
const REMEDY: &str = "is the site another host's? Name `hosts` in a policy, or with the origin in crawlgate.yaml, and that host is \
                      asked for; or write the rules in a policy";

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
                    state: state.name().into(),
                    url: site.fetch.copy().map(|copy| copy.url.clone()),
                    last_success: site.fetch.last_success(),
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
    /// What is wrong, with a remedy where crawlgate knows one.
    fn problem(&self) -> Option<String> {
        let copy = self.fetch.copy();
        let problem = self.fetch.problem().or_else(|| copy?.reason.clone())?;
        // An origin that answers, but not for this site, may want another name. An origin that is down does not.
        let is_unnamed = self.hosts.is_empty() && copy.is_some_and(|copy| !copy.exists);
        Some(match self.is_default_site && (is_unnamed || self.fetch.leads_back()) {
            true => format!("{problem}; {REMEDY}"),
            false => problem,
        })
    }

    fn log(&self, site: &str, state: State, served: Served) {
        let reason = self.problem().unwrap_or_default();
        let meanwhile = match (served, self.is_default_site) {
            (Served::WithOrigin, _) => "the last good copy stays",
            (Served::Unavailable, _) => "ours is answered 503 for up to an hour",
            (Served::WithoutOrigin, true) => "there is no policy: all is allowed",
            (Served::WithoutOrigin, false) => "the policy stands alone",
        };
        match state {
            State::Absent if self.is_default_site => {
                tracing::warn!(%site, %reason, "the origin has no robots.txt, and there is no policy: all is allowed");
            }
            State::Current | State::Absent => {
                tracing::info!(%site, state = state.name(), "the origin's robots.txt is known");
            }
            // The origin was not asked yet.
            State::Awaited | State::Missing if reason.is_empty() => {}
            State::Kept if self.fetch.is_unasked() => {}
            State::Kept if self.fetch.believed_at().is_some() => {
                tracing::warn!(%site, %reason, "the origin has no rules any more, which is not believed yet: {meanwhile}");
            }
            State::Awaited | State::Kept => {
                tracing::warn!(%site, %reason, "the origin's robots.txt cannot be read: {meanwhile}");
            }
            State::HeldBack => {
                tracing::error!(%site, %reason, "the origin's robots.txt is held back: {meanwhile}");
            }
            State::Missing => {
                tracing::error!(%site, %reason, "the origin's robots.txt cannot be read, and there is no copy of it: {meanwhile}");
            }
        }
    }
}
