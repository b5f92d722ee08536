//! [`Pauses`]: the times in which crawlers get the status 503. Pauses are planned in policies, or
//! switched on by an operator at run time. An operator's pause outranks a planned one.
//!
//! A planned pause ends at its planned time, or earlier if an operator ends it. If the policy names
//! no beginning, the pause begins when crawlgate first reads that policy. The state database keeps
//! when a planned pause was first in a policy and when an operator ended it. So the pause does not
//! begin again after a restart.

use crate::facts::{Fact, PauseEvent, PauseRecord, StoredFacts};
use crate::hash::Hash;
use crate::policy::Site;
use crate::policy::model::{PauseAudience, PausePolicy, PauseSchedule};
use crate::policy::planned_pause::{DEFAULT_PAUSE_LENGTH, LONG_PAUSE, planned_pauses};
use crate::policy::site::PauseWindow;
use crate::printable::join_first;
use crate::time::Timestamp;
use crate::yaml::nearest_word;
use PauseEvent::{Ended, FirstSeen, Switched};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long the records of a planned pause are kept after its policy is gone, in case the policy
/// comes back. Also the longest run time pause.
const RETENTION: Duration = Duration::from_secs(31 * 86_400);
/// Retry-After in seconds where an operator names none.
const RETRY_AFTER: u32 = 1_800;

/// A pause asked for at run time.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PauseRequest {
    /// The site; when absent the only one, or all sites with `all`.
    pub site: Option<String>,
    /// Says that all sites are meant, if there are several.
    pub all: bool,
    /// Which clients it stops.
    pub audience: PauseAudience,
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
#[derive(Debug, thiserror::Error, strum::IntoStaticStr, PartialEq, Eq)]
#[strum(serialize_all = "kebab-case")]
pub enum PauseError {
    /// It would end at once.
    #[error("a pause lasts at least a second. To end one, run \"crawlgate resume\"")]
    EmptyPause,
    /// It is long, and the request does not confirm that.
    #[error(
        "a pause of more than 36 hours can cost places in search results. If you want it so, add --long"
    )]
    LongPause,
    /// No policy is in force.
    #[error("there is no site to pause: no policy is in force")]
    NoSite,
    /// There are several, and the request names none.
    #[error(
        "there are several sites. Name one with --site, or pause all of them with --all. The sites are: {}",
        join_first(.0, 5)
    )]
    SeveralSites(Vec<String>),
    /// The site does not exist.
    #[error("there is no site {site}{}", nearest_sites(site, sites))]
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
        self.into()
    }
}

/// The end of a message about an unknown site: the site that was probably meant, or the first ones.
pub fn nearest_sites(written: &str, sites: &[String]) -> String {
    match nearest_word(written, sites.iter().map(String::as_str)) {
        Some(near) => format!("; did you mean {near}?"),
        None => format!(". The sites are: {}", join_first(sites, 5)),
    }
}

/// The site of a planned pause, and a digest of the fields of the pause.
type PlannedPauseKey = (String, String);

/// The pauses of all sites.
#[derive(Clone, Default)]
pub struct Pauses {
    /// Run time pauses, by site.
    at_run_time: BTreeMap<String, PauseWindow>,
    /// When a policy with this planned pause was first in force.
    first_seen: BTreeMap<PlannedPauseKey, Timestamp>,
    /// When an operator ended the planned pause.
    ended: BTreeMap<PlannedPauseKey, Timestamp>,
}

impl Pauses {
    /// The pauses that an earlier process stored.
    pub fn from_facts(facts: &StoredFacts) -> Pauses {
        let mut pauses = Pauses::default();
        for (_, pause) in &facts.pauses {
            let site = pause.site.clone();
            let key = (site.clone(), pause.plan.clone());
            match pause.event {
                Switched => drop(pauses.at_run_time.insert(site, pause_window(pause))),
                FirstSeen => drop(pauses.first_seen.insert(key, pause.since)),
                Ended => drop(pauses.ended.insert(key, pause.since)),
            }
        }
        pauses
    }

    /// The pauses of a site around a moment, also ones that are over or have not begun. The run time
    /// pause comes first; of those in force the first one counts.
    pub fn for_site(&self, site: &Site, now: Timestamp) -> Vec<PauseWindow> {
        self.at_run_time
            .get(&site.name)
            .cloned()
            .into_iter()
            .chain(
                self.planned_for_site(site, now)
                    .into_iter()
                    .map(|(_, pause)| pause),
            )
            .collect()
    }

    /// The planned pauses of a site around a moment, each with its section of the policy. Leaves out
    /// pauses that an operator ended or that were over before crawlgate first saw them. None begins
    /// before it was first seen.
    fn planned_for_site<'p>(
        &self,
        site: &'p Site,
        now: Timestamp,
    ) -> Vec<(&'p PausePolicy, PauseWindow)> {
        // A pause whose beginning had passed when crawlgate first saw it begins then. Otherwise it
        // could be over unseen.
        let mut planned = planned_pauses(&site.policy, now, |pause, from| {
            from.max(
                self.first_seen
                    .get(&planned_pause_key(&site.name, pause))
                    .copied(),
            )
        });
        planned.retain_mut(|(plan, pause)| {
            let key = planned_pause_key(&site.name, plan);
            let ended = self.ended.get(&key);
            // A pause that was over before the policy was in force never happened.
            pause.from = self
                .first_seen
                .get(&key)
                .map_or(pause.from, |first| pause.from.max(*first));
            pause.from < pause.until
                && !ended.is_some_and(|ended| pause.from <= *ended && *ended < pause.until)
        });
        planned
    }

    /// Records `now` as the time when the planned pauses of a policy were first seen. A pause that
    /// was seen before keeps its time.
    pub fn record_first_seen(&mut self, site: &Site, now: Timestamp) {
        for pause in &site.policy.pauses {
            self.first_seen
                .entry(planned_pause_key(&site.name, pause))
                .or_insert(now);
        }
    }

    /// Begins a run time pause of these sites, in place of an earlier one. Returns its end: 12 hours
    /// from now unless the request says how long, and 31 days at most. The pause of robots.txt lasts
    /// 12 hours.
    ///
    /// # Errors
    /// The pause is empty, or longer than 36 hours without `long`.
    pub fn pause_sites(
        &mut self,
        sites: Vec<String>,
        request: &PauseRequest,
        now: Timestamp,
    ) -> Result<Timestamp, PauseError> {
        let length = request
            .seconds
            .map_or(DEFAULT_PAUSE_LENGTH, Duration::from_secs);
        if length.is_zero() {
            return Err(PauseError::EmptyPause);
        }
        if length > LONG_PAUSE && !request.long {
            return Err(PauseError::LongPause);
        }
        let pause = PauseWindow {
            audience: request.audience,
            from: now,
            until: now.plus(length.min(RETENTION)),
            retry_after: request.retry_after.unwrap_or(RETRY_AFTER).max(1),
            robots_txt_until: request.robots_txt.then(|| now.plus(DEFAULT_PAUSE_LENGTH)),
            at_run_time: true,
        };
        let until = pause.until;
        for site in sites {
            self.at_run_time.insert(site, pause.clone());
        }
        Ok(until)
    }

    /// Begins a run time pause of another instance, in place of an earlier one. It ends at most 31
    /// days after its beginning.
    pub fn apply_peer_pause(&mut self, pause: &PauseRecord) {
        let mut active = pause_window(pause);
        active.until = active.until.min(active.from.plus(RETENTION));
        self.at_run_time.insert(pause.site.clone(), active);
    }

    /// The fact that an operator just began the run time pause of a site, or ended all pauses.
    pub fn run_time_fact(&self, site: &str, now: Timestamp) -> Fact {
        match self.at_run_time.get(site) {
            Some(pause) => Fact::set(pause.from, run_time_pause_fact(site, pause)),
            None => Fact::removed(now, PauseRecord::for_pause_event(site, "", Switched, now)),
        }
    }

    /// Ends the run time pause of a site, and the planned pauses that are in force at `now`. Returns
    /// whether a pause was in force.
    pub fn resume_site(&mut self, site: &Site, now: Timestamp) -> bool {
        let at_run_time = self.at_run_time.remove(&site.name);
        let mut ended = at_run_time.is_some_and(|pause| now < pause.until);
        for (plan, pause) in self.planned_for_site(site, now) {
            if pause.from <= now && now < pause.until {
                self.ended.insert(planned_pause_key(&site.name, plan), now);
                ended = true;
            }
        }
        ended
    }

    /// Removes run time pauses that are over. The records of a planned pause (first seen, ended) stay
    /// as long as a policy in force has it, and for 31 days after their time.
    pub fn prune<'a>(&mut self, in_force: impl Iterator<Item = &'a Site>, now: Timestamp) {
        let planned: BTreeSet<PlannedPauseKey> = in_force
            .flat_map(|site| {
                site.policy
                    .pauses
                    .iter()
                    .map(|pause| planned_pause_key(&site.name, pause))
            })
            .collect();
        self.at_run_time.retain(|_, pause| now < pause.until);
        for records in [&mut self.first_seen, &mut self.ended] {
            records.retain(|key, since| planned.contains(key) || now.since(*since) < RETENTION);
        }
    }

    /// The facts to store.
    pub fn to_facts(&self) -> Vec<PauseRecord> {
        let mut facts: Vec<PauseRecord> = self
            .at_run_time
            .iter()
            .map(|(site, pause)| run_time_pause_fact(site, pause))
            .collect();
        for (planned, event) in [(&self.first_seen, FirstSeen), (&self.ended, Ended)] {
            facts.extend(
                planned
                    .iter()
                    .map(|((site, plan), at)| PauseRecord::for_pause_event(site, plan, event, *at)),
            );
        }
        facts
    }
}

/// The window of a stored run time pause.
pub fn pause_window(pause: &PauseRecord) -> PauseWindow {
    PauseWindow {
        audience: pause.audience,
        from: pause.since,
        until: pause.until,
        retry_after: pause.retry_after,
        robots_txt_until: pause
            .robots_txt
            .then(|| pause.since.plus(DEFAULT_PAUSE_LENGTH)),
        at_run_time: true,
    }
}

/// The record of a run time pause.
pub fn run_time_pause_fact(site: &str, pause: &PauseWindow) -> PauseRecord {
    PauseRecord {
        audience: pause.audience,
        until: pause.until,
        retry_after: pause.retry_after,
        robots_txt: pause.robots_txt_until.is_some(),
        ..PauseRecord::for_pause_event(site, "", Switched, pause.from)
    }
}

/// The key of a planned pause: its site, and a digest of audience, time, Retry-After in seconds, and
/// whether robots.txt is paused.
fn planned_pause_key(site: &str, pause: &PausePolicy) -> PlannedPauseKey {
    let PausePolicy {
        audience,
        schedule,
        retry_after,
        pause_robots_txt,
        span: _,
    } = pause;
    // The digest is stored, so every version of crawlgate has to write the same text.
    let time = match schedule {
        PauseSchedule::Once { from, until } => {
            let [from, until] =
                [from, until].map(|at| at.map_or_else(String::new, |at| at.0.to_string()));
            format!("{from} {until}")
        }
        PauseSchedule::Recurring(recurrence) => recurrence.to_string(),
    };
    let retry_after = retry_after.as_secs();
    let text = format!("{audience} {time} {retry_after} {pause_robots_txt}");
    (
        site.to_owned(),
        Hash::digest(&[text.as_bytes()]).short_hex(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_of_a_planned_pause_is_stable() {
        let pause = PausePolicy {
            audience: PauseAudience::Everyone,
            schedule: PauseSchedule::Once {
                from: Some(Timestamp(1_000)),
                until: None,
            },
            retry_after: Duration::from_secs(60),
            pause_robots_txt: true,
            span: Default::default(),
        };
        assert_eq!(
            planned_pause_key("shop", &pause),
            ("shop".to_owned(), "cef38aa3276b317e".to_owned())
        );
    }
}
