//! [`SiteEntry`]: one site in a snapshot (all sites at one moment). It has the compiled policy and
//! the pauses (times in which crawlgate answers 503). It also says since when the present
//! robots.txt and the present X-Robots-Tag rules are in force. [`SupersededVersion`] is an earlier
//! robots.txt that crawlers may still have cached.

use super::{ParsedRobotsVersion, SelectedRules, Site};
use crate::policy::model::PauseAudience;
use crate::time::Timestamp;
use RobotsTxtAnswer::*;
use std::sync::Arc;
use std::time::Duration;

/// An earlier version that crawlers may still have cached.
#[derive(Clone, Debug)]
pub struct SupersededVersion {
    /// The version, parsed.
    pub parsed: Arc<ParsedRobotsVersion>,
    /// Since when it was in force.
    pub since: Timestamp,
    /// When another version replaced it.
    pub superseded_at: Timestamp,
}

/// A pause with fixed times. It may be over, on, or still to come.
#[derive(Clone, Debug, PartialEq)]
pub struct PauseWindow {
    /// Whom it stops.
    pub audience: PauseAudience,
    /// The first second.
    pub from: Timestamp,
    /// The second after the last.
    pub until: Timestamp,
    /// Retry-After in seconds, before it is cut to the time left.
    pub retry_after: u32,
    /// Until when robots.txt answers 503 as well, if the pause is for robots.txt too.
    pub robots_txt_until: Option<Timestamp>,
    /// Switched on by an operator, not by the policy.
    pub at_run_time: bool,
}

impl PauseWindow {
    fn is_on(&self, now: Timestamp) -> bool {
        self.from <= now && now < self.until
    }
}

/// How requests for robots.txt are answered. The snapshot decides it and not the clock of a
/// request, because a 503 must be stored before a crawler receives it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum RobotsTxtAnswer {
    /// The file.
    #[default]
    File,
    /// 503, because of the pause with this index.
    Paused(usize),
    /// 503, because the origin's own file is awaited.
    AwaitsOrigin,
}

impl RobotsTxtAnswer {
    /// Whether it is 503.
    pub fn is_unavailable(self) -> bool {
        self != File
    }
}

/// One site of a snapshot.
#[derive(Clone, Debug)]
pub struct SiteEntry {
    /// The policy in force.
    pub site: Arc<Site>,
    /// Since when its robots.txt is in force (Last-Modified).
    pub since: Timestamp,
    /// Since when its X-Robots-Tag rules are in force.
    pub tag_change_times: TagChangeTimes,
    /// The pauses; of those that are on, the first counts.
    pub pauses: Vec<PauseWindow>,
    /// How robots.txt is answered.
    pub robots_txt: RobotsTxtAnswer,
}

/// When the X-Robots-Tag of pages last changed. A crawler that has cached a page would miss a new
/// noindex in a 304.
#[derive(Clone, Debug, Default)]
pub struct TagChangeTimes {
    /// Since when each rule is in force, by its index in the plan.
    pub since: Vec<Timestamp>,
    /// When the tags of any page may last have changed: a rule was removed, metas are newly written
    /// into pages, or the origin's tags are newly removed.
    pub everywhere: Option<Timestamp>,
}

impl SiteEntry {
    /// For how long after a change of its tags a page is sent whole: crawlers come back within
    /// weeks.
    pub const NEW_TAGS_PERIOD: Duration = Duration::from_secs(30 * 86_400);

    /// A new site without pauses. Its robots.txt is in force since `now`, and answers 503 while the
    /// origin's file is awaited.
    pub fn new(site: Arc<Site>, now: Timestamp) -> SiteEntry {
        let entry = SiteEntry {
            site,
            since: now,
            tag_change_times: TagChangeTimes::default(),
            pauses: Vec::new(),
            robots_txt: File,
        };
        entry.with_pauses(Vec::new(), now)
    }

    /// Sets the pauses, and how robots.txt is answered at `now`: with 503 if the first pause that
    /// is on is for robots.txt too, or if the origin's file is awaited.
    pub fn with_pauses(mut self, pauses: Vec<PauseWindow>, now: Timestamp) -> SiteEntry {
        let paused = pauses
            .iter()
            .position(|pause| pause.is_on(now))
            .filter(|place| {
                pauses[*place]
                    .robots_txt_until
                    .is_some_and(|until| now < until)
            });
        self.robots_txt = match paused {
            Some(place) => Paused(place),
            None if self.site.robots_txt.origin_wait_seconds(now).is_some() => AwaitsOrigin,
            None => File,
        };
        SiteEntry { pauses, ..self }
    }

    /// Sets the pauses without changing how robots.txt is answered. If it is paused by a pause that
    /// is not among them, that pause is added with its time over, so that it stops no page.
    pub fn with_page_pauses(mut self, mut pauses: Vec<PauseWindow>) -> SiteEntry {
        if let Paused(place) = self.robots_txt {
            let answered_by = self.pauses[place].clone();
            let known = pauses.iter().position(|pause| *pause == answered_by);
            self.robots_txt = Paused(known.unwrap_or(pauses.len()));
            if known.is_none() {
                pauses.push(PauseWindow {
                    until: answered_by.from,
                    ..answered_by
                });
            }
        }
        SiteEntry { pauses, ..self }
    }

    /// The first pause that is on at `now`.
    pub fn active_pause(&self, now: Timestamp) -> Option<&PauseWindow> {
        self.pauses.iter().find(|pause| pause.is_on(now))
    }

    /// The times, in no order, at which robots.txt begins or ceases to answer 503. They may be
    /// past.
    pub(super) fn robots_txt_switch_times(&self) -> impl Iterator<Item = Timestamp> {
        self.pauses
            .iter()
            .filter_map(|pause| Some([pause.from, pause.robots_txt_until?.min(pause.until)]))
            .flatten()
            .chain(self.site.robots_txt.awaits_origin_until)
    }

    /// Whether the tags of pages with these rules changed within [`SiteEntry::NEW_TAGS_PERIOD`], so
    /// that crawlers must receive the whole page.
    pub fn has_new_tags(&self, rules: &SelectedRules, now: Timestamp) -> bool {
        let ages = &self.tag_change_times;
        rules
            .iter()
            .filter_map(|selected| ages.since.get(usize::from(selected.rule)))
            .chain(&ages.everywhere)
            .any(|moment| now.since(*moment) < SiteEntry::NEW_TAGS_PERIOD)
    }
}
