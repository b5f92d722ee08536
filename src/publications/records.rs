//! The entries of a [`PublicationLog`](super::PublicationLog), which records what crawlgate served
//! as robots.txt: which site had which hosts ([`HostTenure`]), what each site published
//! ([`Publication`]), and for which times the log is incomplete ([`LogGaps`]). [`PublishedSite`] is
//! what the log must know about a site that comes into force.

use crate::policy::RobotsVersionId;
use crate::policy::model::HostPattern;
use crate::time::Timestamp;
use std::time::Duration;

/// For how long the log keeps what has ended: crawlers are sent whole pages for 30 days where a host
/// changed its site, and no robots.txt is cached for longer.
pub(super) const RETENTION: Duration = Duration::from_secs(31 * 86_400);

/// A change of what is published. Changes are ordered by their number: two of them may happen
/// within a second, and the clock may be set back between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangePoint {
    /// Its place among all changes.
    pub number: u64,
    /// When it was made.
    pub at: Timestamp,
}

/// The time from one change to another. Without an end it is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeSpan {
    /// The change that began it.
    pub since: ChangePoint,
    /// The change that ended it.
    pub until: Option<ChangePoint>,
}

impl ChangeSpan {
    /// The number of the change that ended it; the largest number while it is open.
    pub fn end(&self) -> u64 {
        self.until.map_or(u64::MAX, |until| until.number)
    }

    /// Whether the change that began it also ended it.
    pub fn is_empty(&self) -> bool {
        self.end() <= self.since.number
    }

    /// The times of its beginning and, if it has one, of its end.
    pub(super) fn moments_mut(&mut self) -> impl Iterator<Item = &mut Timestamp> {
        std::iter::once(&mut self.since.at).chain(self.until.iter_mut().map(|until| &mut until.at))
    }

    /// Whether it ended more than 31 days before `now`.
    pub(super) fn is_expired(&self, now: Timestamp) -> bool {
        self.until
            .is_some_and(|until| now.since(until.at) > RETENTION)
    }
}

/// What a site publishes as robots.txt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublishedRobots {
    /// These bytes.
    Version(RobotsVersionId),
    /// 503, without a robots.txt.
    Unavailable,
    /// Unknown bytes, which may have allowed anything.
    Unknown,
    /// Unknown bytes, and for a part of the time 503.
    UnknownOrUnavailable,
}

impl PublishedRobots {
    /// The version, if it is known.
    pub fn version(self) -> Option<RobotsVersionId> {
        if let PublishedRobots::Version(version) = self {
            Some(version)
        } else {
            None
        }
    }

    /// Whether it was 503, for a part of the time at least.
    pub fn was_unavailable(self) -> bool {
        matches!(
            self,
            PublishedRobots::Unavailable | PublishedRobots::UnknownOrUnavailable
        )
    }
}

/// The time for which the hosts of a pattern belonged to a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostTenure {
    /// The pattern; `None` stands for every other host.
    pub pattern: Option<HostPattern>,
    /// The site's name.
    pub site: String,
    /// The time.
    pub span: ChangeSpan,
}

/// The time for which a site published the same and told crawlers apart in the same way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publication {
    /// The site's name.
    pub site: String,
    /// What it published.
    pub published: PublishedRobots,
    /// How crawlers were told apart: a digest of the names that the registry and the policy know.
    pub identities: u64,
    /// Whether the site had tags or metas for pages.
    pub has_page_tags: bool,
    /// The time.
    pub span: ChangeSpan,
    /// Until then an instance may have served it to any crawler without a record: it ended before
    /// it had reported what it served.
    pub unreported_until: Option<Timestamp>,
}

/// A site as it comes into force, for [`PublicationLog::record`](super::PublicationLog::record).
pub struct PublishedSite<'a> {
    /// Its name.
    pub site: &'a str,
    /// Its hosts; none for every other host.
    pub hosts: Vec<&'a HostPattern>,
    /// See [`Publication::published`].
    pub published: PublishedRobots,
    /// See [`Publication::identities`].
    pub identities: u64,
    /// See [`Publication::has_page_tags`].
    pub has_page_tags: bool,
    /// What the operator declares that its hosts served before crawlgate (`robots.previous`).
    pub declared: Option<DeclaredPreviousRobots>,
}

/// What an operator declares that hosts served before crawlgate (`robots.previous`).
#[derive(Clone, Copy)]
pub enum DeclaredPreviousRobots {
    /// This version.
    Version(RobotsVersionId),
    /// The first known version of the origin's own file; `None` until there is one.
    Origin(Option<RobotsVersionId>),
}

/// The ends of times that a log does not know completely.
#[derive(Clone, Copy, Default)]
pub struct LogGaps {
    /// The latest end of a tenure that was dropped because there were too many: what its hosts
    /// published is unknown.
    pub cut_at: Option<Timestamp>,
    /// When an earlier log was lost: the tags of pages before are unknown.
    pub lost_at: Option<Timestamp>,
    /// The end of the last gap in which other servers may have answered for the hosts, or when the
    /// clock was set.
    pub broken_at: Option<Timestamp>,
}

impl LogGaps {
    pub(super) fn moments_mut(&mut self) -> [&mut Option<Timestamp>; 3] {
        [&mut self.cut_at, &mut self.lost_at, &mut self.broken_at]
    }
}
