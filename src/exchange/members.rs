//! [`Members`]: the other instances of crawlgate that this one knows, by id. A run of an instance
//! is the time from its start to its stop. [`Members::logs`] computes which robots.txt files each
//! run published, and when.

use super::{
    Clocks, GONE_AFTER, Identity, KEPT, Member, Merged, Position, Standing, codec, seconds,
};
use crate::facts::AnyFact;
use crate::publications::{Change, Gaps, Publication, PublicationLog, Tenure, next_number};
use crate::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// Publications that ended so shortly before the last report of a run may have been served after
/// it.
const SLACK: i64 = 60;

#[derive(Clone, Debug)]
struct Heard {
    member: Member,
    /// The entry by which its run was first heard of.
    first: Position,
}

/// The other instances by their ids.
#[derive(Clone, Debug, Default)]
pub struct Members(BTreeMap<String, Heard>);

impl Members {
    /// Takes in the state of an instance, unless a newer state or a newer run of it is known.
    /// Returns whether that changes anything for others: it is another run, or the instance has
    /// left, come back or settled elsewhere. `position` is the entry that told it; zero if it comes
    /// from the sets.
    pub fn heard_of(&mut self, member: Member, position: Position) -> bool {
        let known = self.0.get_mut(&member.id);
        match known {
            Some(known) if known.member.run == member.run => {
                // The sets may be newer than the log that is read after them, and the log newer
                // than the sets.
                if (member.reported, member.heard) < (known.member.reported, known.member.heard)
                    && member.settled == known.member.settled
                {
                    return false;
                }
                let changed = known.member.has_left != member.has_left
                    || known.member.settled != member.settled;
                known.member = member;
                changed
            }
            Some(known) if known.member.joined > member.joined => false,
            _ => {
                self.0.insert(
                    member.id.clone(),
                    Heard {
                        member,
                        first: position,
                    },
                );
                true
            }
        }
    }

    /// All members.
    pub fn all(&self) -> impl Iterator<Item = &Member> {
        self.0.values().map(|heard| &heard.member)
    }

    /// Whether all members that `is_there` selects have told what they served before the entry at
    /// `position` was written, in the store `settled`. One whose run was first heard of after that
    /// entry had served nothing.
    pub fn have_heard(
        &self,
        position: Position,
        settled: &Identity,
        is_there: impl Fn(&String) -> bool,
    ) -> bool {
        self.0
            .iter()
            .filter(|(id, _)| is_there(id))
            .all(|(_, Heard { member, first })| {
                member.settled.as_ref() == Some(settled)
                    && (*first > position || member.heard >= position)
            })
    }

    /// Runs whose publications a later run told again as its own: of other instances, and `own`,
    /// the run before of this instance.
    pub fn continued(&self, own: Option<&str>) -> BTreeSet<String> {
        let others = self.all().filter_map(|member| member.continues.as_deref());
        others.chain(own).map(str::to_owned).collect()
    }

    /// The ids of members that last reported more than 25 hours (`GONE_AFTER`) before a moment.
    pub fn over(&self, before: i64) -> Vec<String> {
        let before = before.saturating_sub(seconds(GONE_AFTER));
        self.all()
            .filter(|member| member.reported < before)
            .map(|member| member.id.clone())
            .collect()
    }

    /// Forgets members.
    pub fn forget(&mut self, ids: &[String]) {
        self.0.retain(|id, _| !ids.contains(id));
    }

    /// What each run published, a log for each. Runs that a later run told again (`continued`) are
    /// left out. What a run that ended had in force is superseded by its end; if it ended without a
    /// goodbye, it may have served that to any crawler until then.
    pub fn logs(
        &self,
        facts: &Merged,
        continued: &BTreeSet<String>,
        clocks: Clocks,
        standing: impl Fn(&Member) -> Standing,
    ) -> Vec<PublicationLog> {
        let mut runs: BTreeMap<&str, RunLog> = BTreeMap::new();
        for (key, _, value) in facts.starting_with("") {
            match codec::read(key, value, clocks) {
                Some((run, AnyFact::Publication(publication))) => {
                    runs.entry(run).or_default().publications.push(publication);
                }
                Some((run, AnyFact::Tenure(tenure))) => {
                    runs.entry(run).or_default().tenures.push(tenure);
                }
                _ => {}
            }
        }
        let mut logs = Vec::new();
        for (run, mut log) in runs {
            if continued.contains(run) {
                continue;
            }
            if let Some(ended) = self.ended(run, clocks, &standing) {
                ended.close(&mut log);
            }
            logs.push(PublicationLog::remembered(
                log.tenures,
                log.publications,
                BTreeMap::new(),
                Gaps::default(),
                Vec::new(),
            ));
        }
        logs.retain(|log| !log.is_empty());
        logs
    }

    /// How a run ended; `None` while it goes on. A run of an unknown instance counts as ended now,
    /// one that a later run of its instance replaced when that one joined, and one that is gone 25
    /// hours after its last report.
    fn ended(
        &self,
        run: &str,
        clocks: Clocks,
        standing: &impl Fn(&Member) -> Standing,
    ) -> Option<Ended> {
        let Some(Heard { member, .. }) = run
            .split('.')
            .next()
            .and_then(|instance| self.0.get(instance))
        else {
            // Nothing is known of it but that it may have served until now.
            return Some(Ended {
                at: clocks.to_own(clocks.now()),
                unreported_since: Some(Timestamp(i64::MIN)),
            });
        };
        let reported = clocks.to_own(member.reported);
        if member.run != run {
            let at = clocks.to_own(member.joined);
            return Some(Ended {
                at,
                unreported_since: Some(Timestamp(at.0.saturating_sub(seconds(KEPT)))),
            });
        }
        match standing(member) {
            Standing::Present | Standing::Silent => None,
            Standing::Left => Some(Ended {
                at: reported,
                unreported_since: None,
            }),
            Standing::Gone => {
                let gone = member.reported.saturating_add(seconds(GONE_AFTER));
                let unreported_since = Some(Timestamp(reported.0.saturating_sub(SLACK)));
                Some(Ended {
                    at: clocks.to_own(gone.min(clocks.now())),
                    unreported_since,
                })
            }
        }
    }
}

/// What a run told of its publications.
#[derive(Default)]
struct RunLog {
    tenures: Vec<Tenure>,
    publications: Vec<Publication>,
}

/// How a run ended.
struct Ended {
    at: Timestamp,
    /// Since when what was in force may have been served without a word of it.
    unreported_since: Option<Timestamp>,
}

impl Ended {
    /// Ends all tenures and publications that are open, by one more change of the log. Those that
    /// were in force since the run last reported count as unreported until the end.
    fn close(&self, log: &mut RunLog) {
        let end = Change {
            number: next_number(&log.tenures, &log.publications),
            at: self.at,
        };
        for Publication {
            span,
            unreported_until,
            ..
        } in &mut log.publications
        {
            let until = span.until.map(|until| until.at);
            if self
                .unreported_since
                .is_some_and(|since| until.is_none_or(|until| until >= since))
            {
                *unreported_until = (*unreported_until).max(Some(self.at));
            }
            span.until.get_or_insert(end);
        }
        for tenure in &mut log.tenures {
            tenure.span.until.get_or_insert(end);
        }
    }
}
