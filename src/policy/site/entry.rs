//! [`SiteEntry`]: one site at a moment. It has the compiled policy, the pauses (times in which
//! crawlgate answers 503), and the times since which its robots.txt and its X-Robots-Tag rules are
//! in force. [`SupersededVersion`]: a robots.txt that was published earlier and may still be cached
//! by crawlers.

use super::{ParsedVersion, PathRules, Site};
use crate::policy::model::Audience;
use crate::time::Timestamp;
use std::sync::Arc;
use std::time::Duration;

/// A version that was in force and may still be cached.
#[derive(Clone, Debug)]
pub struct SupersededVersion {
    /// The version, parsed.
    pub parsed: Arc<ParsedVersion>,
    /// Since when it was in force.
    pub since: Timestamp,
    /// When another version took its place.
    pub superseded_at: Timestamp,
}

/// A pause with its bounds settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActivePause {
    /// The clients that it stops.
    pub audience: Audience,
    /// First second.
    pub from: Timestamp,
    /// One past the last second.
    pub until: Timestamp,
    /// Retry-After in seconds, before it is cut to the time left.
    pub retry_after: u32,
    /// Until when robots.txt is answered 503 as well, when it is.
    pub robots_txt_until: Option<Timestamp>,
    /// Switched at run time, not by the file.
    pub at_run_time: bool,
}

/// The answer to a request for robots.txt. The snapshot decides it and not the clock of a request,
/// because the state store has to know of a 503 before a crawler receives it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RobotsTxtAnswer {
    /// With the file.
    #[default]
    File,
    /// With 503, because of the pause with this index.
    Paused(usize),
    /// With 503, because the origin's own file is awaited.
    AwaitsOrigin,
}

impl RobotsTxtAnswer {
    /// Whether it is 503.
    pub fn is_unavailable(self) -> bool {
        self != RobotsTxtAnswer::File
    }
}

/// One site at the present moment.
#[derive(Clone, Debug)]
pub struct SiteEntry {
    /// The policy in force.
    pub site: Arc<Site>,
    /// Since when these bytes are in force: Last-Modified.
    pub since: Timestamp,
    /// Since when the rules of the tag plan are in force.
    pub tag_ages: TagAges,
    /// The planned or switched pauses; the first whose time it is counts.
    pub pauses: Vec<ActivePause>,
    /// The answer to a request for robots.txt.
    pub robots_txt: RobotsTxtAnswer,
}

/// Since when the tags of pages are as they are. A 304 hides a new noindex from a crawler that has
/// the page already.
#[derive(Clone, Debug, Default)]
pub struct TagAges {
    /// By the index of the rule in the plan.
    pub since: Vec<Timestamp>,
    /// When the tags of every page may last have changed: a rule was taken away, and its tags may
    /// be remembered for any page; or something is newly written into pages, or the origin's tags
    /// are newly taken away.
    pub everywhere: Option<Timestamp>,
}

impl SiteEntry {
    /// How long crawlers are sent a whole page after its tags changed: they come back within weeks.
    pub const TAGS_NEW_FOR: Duration = Duration::from_secs(30 * 86_400);

    /// A site without a past and without pauses. Its robots.txt is in force since `now`; it is
    /// answered 503 while the origin's file is awaited.
    pub fn new(site: Arc<Site>, now: Timestamp) -> SiteEntry {
        let entry = SiteEntry {
            site,
            since: now,
            tag_ages: TagAges::default(),
            pauses: Vec::new(),
            robots_txt: RobotsTxtAnswer::File,
        };
        entry.with_pauses(Vec::new(), now)
    }

    /// The site with these pauses, and with the answer to robots.txt that they give at `now`: 503
    /// if the first pause that is on pauses robots.txt too and has not come to its limit for that,
    /// or if the origin's file is awaited; else the file.
    pub fn with_pauses(mut self, pauses: Vec<ActivePause>, now: Timestamp) -> SiteEntry {
        let paused = pauses
            .iter()
            .position(|pause| pause.from <= now && now < pause.until)
            .filter(|place| {
                pauses[*place]
                    .robots_txt_until
                    .is_some_and(|until| now < until)
            });
        self.robots_txt = match paused {
            Some(place) => RobotsTxtAnswer::Paused(place),
            None if self.site.robots_txt.awaits_origin(now).is_some() => {
                RobotsTxtAnswer::AwaitsOrigin
            }
            None => RobotsTxtAnswer::File,
        };
        SiteEntry { pauses, ..self }
    }

    /// The site with these pauses, and robots.txt answered as before. If a pause answers it that is
    /// not among them, that pause is added at the end with its time over, so that it stops no page.
    pub fn with_page_pauses(mut self, mut pauses: Vec<ActivePause>) -> SiteEntry {
        if let RobotsTxtAnswer::Paused(place) = self.robots_txt {
            let answered_by = self.pauses[place].clone();
            let known = pauses.iter().position(|pause| *pause == answered_by);
            // A pause that has ended goes last: only robots.txt is still answered by it.
            self.robots_txt = RobotsTxtAnswer::Paused(known.unwrap_or(pauses.len()));
            if known.is_none() {
                pauses.push(ActivePause {
                    until: answered_by.from,
                    ..answered_by
                });
            }
        }
        SiteEntry { pauses, ..self }
    }

    /// The first pause that is on at `now`; its end does not belong to it.
    pub fn pause(&self, now: Timestamp) -> Option<&ActivePause> {
        self.pauses
            .iter()
            .find(|pause| pause.from <= now && now < pause.until)
    }

    /// The planned moments, in no order, at which robots.txt begins or ceases to be answered 503:
    /// of pauses that pause it, and when waiting for the origin's file ends. They may be past.
    pub(super) fn robots_txt_switches(&self) -> impl Iterator<Item = Timestamp> {
        let pauses = self.pauses.iter();
        pauses
            .filter_map(|pause| Some([pause.from, pause.robots_txt_until?.min(pause.until)]))
            .flatten()
            .chain(self.site.robots_txt.awaits_origin_until)
    }

    /// Whether the tags of pages with these rules changed within the last 30 days
    /// (`SiteEntry::TAGS_NEW_FOR`), so that crawlers must be sent the page whole.
    pub fn tags_are_new(&self, rules: &PathRules, now: Timestamp) -> bool {
        let ages = &self.tag_ages;
        let mut changes = rules
            .iter()
            .filter_map(|selected| ages.since.get(usize::from(selected.rule)))
            .chain(&ages.everywhere);
        changes.any(|moment| now.since(*moment) < SiteEntry::TAGS_NEW_FOR)
    }
}
