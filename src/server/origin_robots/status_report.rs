//! How it stands with the origins' files, for the status and, where it is news, for the log.

use super::OriginRobots;
use crate::origin::robots::{LOOP, NOT_ASKED_YET, State};
use crate::sites::{OriginRobotsStatus, PATIENCE, Served};
use crate::time::Timestamp;
use std::collections::BTreeMap;

/// What helps where there is no policy: without one nobody knows by which name the origin wants to be asked.
const REMEDY: &str = "is the site another host's? Name `hosts` in a policy, or with the origin in crawlgate.yaml, and that host is \
                      asked for; or write the rules in a policy";

impl OriginRobots {
    /// Brings the status up to date, and says in the log what is news.
    pub(super) fn tell(&mut self, now: Timestamp) {
        let mut reports = BTreeMap::new();
        let snapshot = self.live.snapshot();
        for (site, watched) in &mut self.sites {
            let (life, state) = (&watched.life, watched.life.state(PATIENCE, now));
            let said = life.problem().or_else(|| life.copy().and_then(|copy| copy.reason.clone()));
            // Whoever answers, and not as the site, may want another name; whoever is down wants none.
            let unnamed = watched.hosts.is_empty() && life.copy().is_some_and(|copy| !copy.exists);
            let helps = |said: &str| watched.no_policy && (unnamed || said.ends_with(LOOP));
            let problem = said.map(|said| if helps(&said) { format!("{said}; {REMEDY}") } else { said });
            let Some(entry) = snapshot.site_named(site).map(|index| &snapshot.sites()[index]) else { continue };
            let (served, unavailable_until) = Served::of(&entry.site, now);
            reports.insert(
                site.clone(),
                OriginRobotsStatus {
                    state: state.name().into(),
                    url: life.copy().map(|copy| copy.url.clone()),
                    last_success: life.last_success(),
                    problem: problem.clone(),
                    served,
                    unavailable_until,
                    believed_at: life.believed_at(),
                },
            );
            let news = Some((state, served, problem.clone()));
            if watched.told == news {
                continue;
            }
            let reason = problem.unwrap_or_default();
            let meanwhile = match (served, watched.no_policy) {
                (Served::WithOrigin, _) => "the last good copy stays",
                (Served::Unavailable, _) => "ours is answered 503 for up to an hour",
                (Served::WithoutOrigin, true) => "there is no policy: all is allowed",
                (Served::WithoutOrigin, false) => "the policy stands alone",
            };
            match state {
                State::Absent if watched.no_policy => {
                    tracing::warn!(%site, %reason, "the origin has no robots.txt, and there is no policy: all is allowed");
                }
                State::Current | State::Absent => {
                    tracing::info!(%site, state = state.name(), "the origin's robots.txt is known");
                }
                // Not asked yet.
                State::Awaited | State::Missing if reason.is_empty() => {}
                State::Kept if reason == NOT_ASKED_YET => {}
                State::Kept if life.believed_at().is_some() => {
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
            watched.told = news;
        }
        self.live.report_origins(reports);
    }
}
