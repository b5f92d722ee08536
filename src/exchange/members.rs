//! [`ExchangeMembers`]: a table, by id, of the other crawlgate instances that use the same store.
//! [`ExchangeMembers::publication_logs`] computes which robots.txt files these instances published,
//! and when. The result has one list for each run (the time from the start of an instance to its
//! stop).

use super::{
    FACT_RETENTION, LogPosition, MAX_NAME, MEMBER_GONE_AFTER, Member, MemberState, MergedFacts,
    StoreClockOffset, StoreIdentity, codec, whole_seconds,
};
use crate::facts::AnyFact;
use crate::publications::{ChangePoint, Publication, PublicationLog, next_change_number};
use crate::time::Timestamp;
use MemberState::{Gone, Left, Present, Silent};
use std::collections::{BTreeMap, BTreeSet};

/// Publications that ended less than this many seconds before the last report of a run may have
/// been served after it.
const REPORT_SLACK: i64 = 60;

struct ExchangeMember {
    member: Member,
    /// The log entry in which its run first appeared.
    first_entry: LogPosition,
}

/// The peers by their ids.
#[derive(Default)]
pub struct ExchangeMembers(BTreeMap<String, ExchangeMember>);

impl ExchangeMembers {
    /// Records the state of a peer, unless a newer state or a newer run of it is known. Returns
    /// whether that changes its publications: it is another run, or the peer left, came back or
    /// settled in another store. `position` is its log entry; zero if the state comes from the
    /// sets. Ignores a member that is longer than `MAX_NAME`: no instance is, and it would be kept.
    pub fn update(&mut self, member: Member, position: LogPosition) -> bool {
        if format!("{member:?}").len() > MAX_NAME {
            return false;
        }
        let known = self.0.get_mut(&member.id);
        match known {
            Some(known) if known.member.run == member.run => {
                // The sets may be newer than the log that is read after them, and the log newer
                // than the sets.
                if (member.reported, member.read_position)
                    < (known.member.reported, known.member.read_position)
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
                    ExchangeMember {
                        member,
                        first_entry: position,
                    },
                );
                true
            }
        }
    }

    /// Iterates over all peers.
    pub fn iter(&self) -> impl Iterator<Item = &Member> {
        self.0.values().map(|known| &known.member)
    }

    /// Whether all peers that `is_there` selects have reported what they served before the entry at
    /// `position` was written, in the store `settled`. A run that first appeared after that entry
    /// had served nothing.
    pub fn have_read(
        &self,
        position: LogPosition,
        settled: &StoreIdentity,
        is_there: impl Fn(&String) -> bool,
    ) -> bool {
        self.0.iter().filter(|(id, _)| is_there(id)).all(
            |(
                _,
                ExchangeMember {
                    member,
                    first_entry,
                },
            )| {
                member.settled.as_ref() == Some(settled)
                    && (*first_entry > position || member.read_position >= position)
            },
        )
    }

    /// Runs whose publications a later run reported again as its own: those of peers, and `own`,
    /// the previous run of this instance.
    pub fn continued_runs(&self, own: Option<&str>) -> BTreeSet<String> {
        self.iter()
            .filter_map(|member| member.continues.as_deref())
            .chain(own)
            .map(str::to_owned)
            .collect()
    }

    /// The ids of peers that last reported more than 25 hours (`MEMBER_GONE_AFTER`) before a
    /// moment.
    pub fn expired_ids(&self, before: i64) -> Vec<String> {
        let before = before.saturating_sub(whole_seconds(MEMBER_GONE_AFTER));
        self.iter()
            .filter(|member| member.reported < before)
            .map(|member| member.id.clone())
            .collect()
    }

    /// Removes peers.
    pub fn remove(&mut self, ids: &[String]) {
        self.0.retain(|id, _| !ids.contains(id));
    }

    /// Computes the publication log of each run from the facts. Skips runs that a later run
    /// reported again (`continued`). A run that ended closes its publications at its end. If it
    /// ended without leaving in order, it may have served them to any crawler until then.
    pub fn publication_logs(
        &self,
        facts: &MergedFacts,
        continued: &BTreeSet<String>,
        clocks: StoreClockOffset,
        standing: impl Fn(&Member) -> MemberState,
    ) -> Vec<PublicationLog> {
        let mut runs: BTreeMap<&str, PublicationLog> = BTreeMap::new();
        for fact in facts.iter() {
            match codec::decode_fact(&fact.key, &fact.value, clocks) {
                Some((run, AnyFact::Publication(publication))) => {
                    runs.entry(run).or_default().publications.push(publication);
                }
                Some((run, AnyFact::HostTenure(tenure))) => {
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
            if let Some(ended) = self.run_end(run, clocks, &standing) {
                ended.end_open_records(&mut log);
            }
            logs.push(PublicationLog::from_stored(
                log.tenures,
                log.publications,
                log.declared,
                log.gaps,
                log.jumps,
            ));
        }
        logs.retain(|log| !log.is_empty());
        logs
    }

    /// How a run ended; `None` while it continues. A run of an unknown instance counts as ended
    /// now. One that a later run of its instance replaced ended when that run joined. One that is
    /// gone ended 25 hours after its last report.
    fn run_end(
        &self,
        run: &str,
        clocks: StoreClockOffset,
        standing: &impl Fn(&Member) -> MemberState,
    ) -> Option<RunEnd> {
        let Some(ExchangeMember { member, .. }) = run
            .split('.')
            .next()
            .and_then(|instance| self.0.get(instance))
        else {
            // Its instance is unknown, so it may have served until now.
            return Some(RunEnd {
                at: clocks.to_own(clocks.now()),
                unreported_since: Some(Timestamp(i64::MIN)),
            });
        };
        let reported = clocks.to_own(member.reported);
        if member.run != run {
            let at = clocks.to_own(member.joined);
            let since = at.0.saturating_sub(whole_seconds(FACT_RETENTION));
            return Some(RunEnd {
                at,
                unreported_since: Some(Timestamp(since)),
            });
        }
        match standing(member) {
            Present | Silent => None,
            Left => Some(RunEnd {
                at: reported,
                unreported_since: None,
            }),
            Gone => {
                let gone = member
                    .reported
                    .saturating_add(whole_seconds(MEMBER_GONE_AFTER));
                let unreported_since = Some(Timestamp(reported.0.saturating_sub(REPORT_SLACK)));
                Some(RunEnd {
                    at: clocks.to_own(gone.min(clocks.now())),
                    unreported_since,
                })
            }
        }
    }
}

/// How a run ended.
struct RunEnd {
    at: Timestamp,
    /// Since when the versions in force may have been served without a report.
    unreported_since: Option<Timestamp>,
}

impl RunEnd {
    /// Closes all open tenures and publications with one more change of the log. Those that were in
    /// force after the last report count as unreported until the end.
    fn end_open_records(&self, log: &mut PublicationLog) {
        let end = ChangePoint {
            number: next_change_number(&log.tenures, &log.publications),
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
