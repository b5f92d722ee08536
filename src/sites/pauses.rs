//! [`Pauses`]: the times in which crawlers get 503. These are the planned pauses of policies, and
//! those that an operator switches on at run time, which outrank them.
//!
//! A planned pause is first seen, then in force, then over or ended by an operator. If it names no
//! beginning, it begins when crawlgate first sees it. The store keeps when it was first seen and
//! ended, so that it does not begin again.

use crate::facts::{Fact, Pause, PauseEvent, StoredFacts};
use crate::hash::Hash;
use crate::policy::Site;
use crate::policy::model::{Audience, PausePolicy, PauseTime};
use crate::policy::planned_pause::{DEFAULT_PAUSE, LONG_PAUSE, planned_pauses};
use crate::policy::site::ActivePause;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// For so long a planned pause stays noted after its policy is gone, in case the policy comes back.
/// Also the longest pause of run time.
const REMEMBERED: Duration = Duration::from_secs(31 * 86_400);
/// Retry-After in seconds where an operator names none.
const RETRY_AFTER: u32 = 1_800;

/// A pause asked for at run time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PauseRequest {
    /// The site; all sites when absent.
    pub site: Option<String>,
    /// Which clients it stops.
    pub audience: Audience,
    /// How long, in seconds; 12 hours when absent. Beyond 36 hours needs `long`.
    pub seconds: Option<u64>,
    /// Retry-After in seconds; half an hour when absent.
    pub retry_after: Option<u32>,
    /// Whether robots.txt is answered 503 as well, for at most 12 hours.
    pub robots_txt: bool,
    /// Says that more than 36 hours are meant.
    pub long: bool,
}

/// Why a pause cannot be set or ended.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PauseError {
    /// It would end at once.
    #[error("a pause lasts at least a second; to end one, resume")]
    Empty,
    /// It is long, and the operator did not say that this is meant.
    #[error(
        "a pause of more than 36 hours costs places in search results; add `--long` if it is meant"
    )]
    Long,
    /// No policy is in force.
    #[error("there is no site to pause: no policy is in force")]
    NoSite,
    /// The site does not exist.
    #[error("there is no site `{site}`; the sites are: {}", .sites.join(", "))]
    UnknownSite {
        /// The name that the operator gave.
        site: String,
        /// The sites that there are.
        sites: Vec<String>,
    },
}

impl PauseError {
    /// Its id.
    pub fn id(&self) -> &'static str {
        match self {
            PauseError::Empty => "empty-pause",
            PauseError::Long => "long-pause",
            PauseError::NoSite => "no-site",
            PauseError::UnknownSite { .. } => "unknown-site",
        }
    }
}

/// The site of a planned pause, and a digest of what the pause says: it is the same pause as long
/// as it says the same.
type PlanKey = (String, String);

/// The pauses of all sites.
#[derive(Clone, Debug, Default)]
pub struct Pauses {
    /// Those that were switched on at run time, by site.
    switched: BTreeMap<String, ActivePause>,
    /// When a policy with this planned pause was first in force; also of one that recurs.
    first_seen: BTreeMap<PlanKey, Timestamp>,
    /// When an operator ended the planned pause.
    ended: BTreeMap<PlanKey, Timestamp>,
}

impl Pauses {
    /// The pauses of the records that an earlier process stored: switched on, first seen, and
    /// ended.
    pub fn remembered(facts: &StoredFacts) -> Pauses {
        let mut pauses = Pauses::default();
        for (_, pause) in &facts.pauses {
            let site = pause.site.clone();
            let key = (site.clone(), pause.plan.clone());
            match pause.event {
                PauseEvent::Switched => drop(pauses.switched.insert(site, active(pause))),
                PauseEvent::FirstSeen => drop(pauses.first_seen.insert(key, pause.since)),
                PauseEvent::Ended => drop(pauses.ended.insert(key, pause.since)),
            }
        }
        pauses
    }

    /// The pauses of a site around a moment, also ones that are over or have not begun. The pause
    /// of run time comes first; of those in force the first one counts.
    pub fn of(&self, site: &Site, now: Timestamp) -> Vec<ActivePause> {
        self.switched
            .get(&site.name)
            .cloned()
            .into_iter()
            .chain(self.planned(site, now).into_iter().map(|(_, pause)| pause))
            .collect()
    }

    /// The planned pauses of a site around a moment, without those that an operator ended or that
    /// were over before crawlgate first saw them. Each with its section of the policy. None begins
    /// before it was first seen.
    fn planned<'p>(&self, site: &'p Site, now: Timestamp) -> Vec<(&'p PausePolicy, ActivePause)> {
        // A pause whose beginning had passed when crawlgate first saw it begins then: it would be
        // over otherwise, unseen.
        let mut planned = planned_pauses(&site.policy, now, |pause, from| {
            from.max(self.first_seen.get(&key(&site.name, pause)).copied())
        });
        planned.retain_mut(|(plan, pause)| {
            let key = key(&site.name, plan);
            let ended = self.ended.get(&key);
            // What was over before the policy was in force has never been.
            pause.from = self
                .first_seen
                .get(&key)
                .map_or(pause.from, |first| pause.from.max(*first));
            pause.from < pause.until
                && !ended.is_some_and(|ended| pause.from <= *ended && *ended < pause.until)
        });
        planned
    }

    /// Records `now` as the time when the planned pauses of a policy that comes into force were
    /// first seen. A pause that was seen before keeps its time.
    pub fn note(&mut self, site: &Site, now: Timestamp) {
        for pause in &site.policy.pauses {
            self.first_seen.entry(key(&site.name, pause)).or_insert(now);
        }
    }

    /// Switches a pause on for these sites from now on, in place of the one that a site has.
    /// Returns its end: 12 hours from now unless the request says how long, and 31 days at most.
    /// The pause of robots.txt lasts 12 hours.
    ///
    /// # Errors
    /// The pause is empty, or longer than 36 hours without `long`.
    pub fn pause(
        &mut self,
        sites: Vec<String>,
        request: &PauseRequest,
        now: Timestamp,
    ) -> Result<Timestamp, PauseError> {
        let length = request.seconds.map_or(DEFAULT_PAUSE, Duration::from_secs);
        if length.is_zero() {
            return Err(PauseError::Empty);
        }
        if length > LONG_PAUSE && !request.long {
            return Err(PauseError::Long);
        }
        let pause = ActivePause {
            audience: request.audience,
            from: now,
            until: now.plus(length.min(REMEMBERED)),
            retry_after: request.retry_after.unwrap_or(RETRY_AFTER).max(1),
            robots_txt_until: request.robots_txt.then(|| now.plus(DEFAULT_PAUSE)),
            at_run_time: true,
        };
        let until = pause.until;
        for site in sites {
            self.switched.insert(site, pause.clone());
        }
        Ok(until)
    }

    /// Begins a pause that an operator switched on at another instance, in place of the one that
    /// the site has. It ends 31 days after its beginning at the latest.
    pub fn switch_on(&mut self, pause: &Pause) {
        let mut active = active(pause);
        active.until = active.until.min(active.from.plus(REMEMBERED));
        self.switched.insert(pause.site.clone(), active);
    }

    /// What an operator did at `now` with the pauses of a site: switched one on, or ended all.
    pub fn switched(&self, site: &str, now: Timestamp) -> Fact {
        match self.switched.get(site) {
            Some(pause) => Fact::set(pause.from, switched_fact(site, pause)),
            None => Fact::removed(now, Pause::of_plan(site, "", PauseEvent::Switched, now)),
        }
    }

    /// Ends the pause that was switched on for a site, and the planned ones that are in force at
    /// `now`; planned ones that have not begun stay. Returns whether a pause was in force.
    pub fn resume(&mut self, site: &Site, now: Timestamp) -> bool {
        let switched = self
            .switched
            .remove(&site.name)
            .filter(|pause| now < pause.until);
        let mut ended = switched.is_some();
        for (plan, pause) in self.planned(site, now) {
            if pause.from <= now && now < pause.until {
                self.ended.insert(key(&site.name, plan), now);
                ended = true;
            }
        }
        ended
    }

    /// Drops pauses of run time that are over. The records of a planned pause (first seen, ended)
    /// stay as long as a policy in force has it, and for 31 days after their time.
    pub fn prune<'a>(&mut self, in_force: impl Iterator<Item = &'a Site>, now: Timestamp) {
        let planned: BTreeSet<PlanKey> = in_force
            .flat_map(|site| {
                site.policy
                    .pauses
                    .iter()
                    .map(|pause| key(&site.name, pause))
            })
            .collect();
        self.switched.retain(|_, pause| now < pause.until);
        for noted in [&mut self.first_seen, &mut self.ended] {
            noted.retain(|key, since| planned.contains(key) || now.since(*since) < REMEMBERED);
        }
    }

    /// The facts to store.
    pub fn facts(&self) -> Vec<Pause> {
        let switched = self.switched.iter();
        let mut facts: Vec<Pause> = switched
            .map(|(site, pause)| switched_fact(site, pause))
            .collect();
        for (planned, event) in [
            (&self.first_seen, PauseEvent::FirstSeen),
            (&self.ended, PauseEvent::Ended),
        ] {
            let planned = planned.iter();
            facts.extend(planned.map(|((site, plan), at)| Pause::of_plan(site, plan, event, *at)));
        }
        facts
    }
}

/// A pause that was switched on, as it counts.
pub fn active(pause: &Pause) -> ActivePause {
    ActivePause {
        audience: pause.audience,
        from: pause.since,
        until: pause.until,
        retry_after: pause.retry_after,
        robots_txt_until: pause.robots_txt.then(|| pause.since.plus(DEFAULT_PAUSE)),
        at_run_time: true,
    }
}

/// The fact that a pause was switched on.
pub fn switched_fact(site: &str, pause: &ActivePause) -> Pause {
    Pause {
        audience: pause.audience,
        until: pause.until,
        retry_after: pause.retry_after,
        robots_txt: pause.robots_txt_until.is_some(),
        ..Pause::of_plan(site, "", PauseEvent::Switched, pause.from)
    }
}

/// The site and a digest of all that a planned pause says: audience, time, Retry-After in seconds,
/// and whether robots.txt is paused.
fn key(site: &str, pause: &PausePolicy) -> PlanKey {
    let PausePolicy {
        audience,
        time,
        retry_after,
        pause_robots_txt,
        span: _,
    } = pause;
    // The digest is stored: its text is fixed here, and no other version of crawlgate may write it
    // otherwise.
    let time = match time {
        PauseTime::Once { from, until } => {
            let [from, until] =
                [from, until].map(|at| at.map_or_else(String::new, |at| at.0.to_string()));
            format!("{from} {until}")
        }
        PauseTime::Recurring(recurrence) => recurrence.to_string(),
    };
    let retry_after = retry_after.as_secs();
    let audience = match audience {
        Audience::Everyone => "everyone",
        Audience::Crawlers => "crawlers",
    };
    let said = format!("{audience} {time} {retry_after} {pause_robots_txt}");
    (site.to_owned(), Hash::of(&[said.as_bytes()]).short())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_of_a_planned_pause_is_the_one_that_is_stored() {
        let pause = PausePolicy {
            audience: Audience::Everyone,
            time: PauseTime::Once {
                from: Some(Timestamp(1_000)),
                until: None,
            },
            retry_after: Duration::from_secs(60),
            pause_robots_txt: true,
            span: Default::default(),
        };
        assert_eq!(
            key("shop", &pause),
            ("shop".to_owned(), "cef38aa3276b317e".to_owned())
        );
    }
}
