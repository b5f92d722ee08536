//! Pauses: the planned one of a policy, and those switched at run time, which outrank it. Both end.

use super::reload::Sites;
use crate::policy::Site;
use crate::policy::model::{Audience, PausePolicy};
use crate::policy::planned_pause::{DEFAULT_PAUSE, LONG_PAUSE, planned_pause};
use crate::policy::site::ActivePause;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A pause asked for at run time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PauseRequest {
    /// The site; all sites when absent.
    pub site: Option<String>,
    /// Whom it stops.
    #[serde(default)]
    pub audience: Audience,
    /// How long, in seconds; 12 hours when absent. Beyond 36 hours needs `long`.
    pub seconds: Option<u64>,
    /// Retry-After in seconds; half an hour when absent.
    pub retry_after: Option<u32>,
    /// Whether robots.txt is answered 503 as well, for at most 12 hours.
    #[serde(default)]
    pub robots_txt: bool,
    /// Says that more than 36 hours are meant.
    #[serde(default)]
    pub long: bool,
}

/// Why a pause cannot be set.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0}")]
pub struct PauseError(pub String);

/// A pause as it is remembered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switched {
    audience: Audience,
    from: Timestamp,
    until: Timestamp,
    retry_after: u32,
    robots_txt: bool,
}

/// What is remembered of pauses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Remembered {
    /// Switched at run time, by site.
    pub switched: BTreeMap<String, Switched>,
    /// When a policy with a planned pause was first in force, by site and what the pause says.
    pub first_seen: BTreeMap<String, Timestamp>,
    /// Planned pauses that were ended by hand, by site and what they say.
    pub ended: BTreeMap<String, Timestamp>,
}

impl Remembered {
    /// The pauses of a site, the one that counts first. Notes when a planned one first came into force.
    pub fn of(&self, site: &Site) -> Vec<ActivePause> {
        let switched = self.switched.get(&site.name).map(|pause| ActivePause {
            audience: pause.audience,
            from: pause.from,
            until: pause.until,
            retry_after: pause.retry_after,
            robots_txt_until: pause.robots_txt.then(|| pause.from.plus(DEFAULT_PAUSE)),
            at_run_time: true,
        });
        let planned = site.policy.pause.as_ref().and_then(|pause| self.planned(site, pause));
        switched.into_iter().chain(planned).collect()
    }

    fn planned(&self, site: &Site, pause: &PausePolicy) -> Option<ActivePause> {
        let key = key(&site.name, pause);
        if self.ended.contains_key(&key) {
            return None;
        }
        // One that was to begin before anybody knew of it begins when it is known: it would be over otherwise, unseen.
        let from = pause.from.max(self.first_seen.get(&key).copied())?;
        planned_pause(&site.policy, from)
    }

    /// Notes a policy's pause that came into force now.
    pub fn note(&mut self, site: &Site, now: Timestamp) {
        if let Some(pause) = &site.policy.pause {
            self.first_seen.entry(key(&site.name, pause)).or_insert(now);
        }
    }

    /// Drops what is over, so that the file does not grow. What is noted of a pause stays as long as a policy in force
    /// holds it, or it would begin anew; otherwise for a month, for the policy that comes back.
    pub fn prune<'a>(&mut self, in_force: impl Iterator<Item = &'a Site>, now: Timestamp) {
        let month = Duration::from_secs(31 * 86_400);
        let planned: BTreeSet<String> =
            in_force.filter_map(|site| Some(key(&site.name, site.policy.pause.as_ref()?))).collect();
        self.switched.retain(|_, pause| now < pause.until);
        for noted in [&mut self.first_seen, &mut self.ended] {
            noted.retain(|key, since| planned.contains(key) || now.since(*since) < month);
        }
    }
}

/// A planned pause is the same one as long as it says the same.
fn key(site: &str, pause: &PausePolicy) -> String {
    let said = format!("{:?}", PausePolicy { span: Default::default(), ..pause.clone() });
    let digest = Sha256::digest(said.as_bytes());
    format!("{site}/{}", digest[..8].iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

impl Sites {
    pub(super) fn pause(&mut self, request: &PauseRequest, now: Timestamp) -> Result<Timestamp, PauseError> {
        let names = self.named(request.site.as_deref())?;
        let length = request.seconds.map_or(DEFAULT_PAUSE, Duration::from_secs);
        if length.is_zero() {
            return Err(PauseError("a pause lasts at least a second; to end one, resume".into()));
        }
        if length > LONG_PAUSE && !request.long {
            return Err(PauseError(
                "a pause of more than 36 hours costs places in search results: say `long` if it is meant".into(),
            ));
        }
        let until = now.plus(length.min(Duration::from_secs(31 * 86_400)));
        for name in names {
            let retry_after = request.retry_after.unwrap_or(1_800).max(1);
            let pause =
                Switched { audience: request.audience, from: now, until, retry_after, robots_txt: request.robots_txt };
            self.memory.pauses.switched.insert(name, pause);
        }
        self.remember(now);
        Ok(until)
    }

    pub(super) fn resume(&mut self, site: Option<&str>, now: Timestamp) -> Result<Vec<String>, PauseError> {
        let names = self.named(site)?;
        let mut resumed = Vec::new();
        for name in names {
            let planned = self
                .site(&name)
                .and_then(|site| Some((self.memory.pauses.planned(&site, site.policy.pause.as_ref()?)?, site)));
            let mut was_paused = self.memory.pauses.switched.remove(&name).is_some_and(|pause| now < pause.until);
            if let Some((_, site)) = planned.filter(|(pause, _)| pause.from <= now && now < pause.until)
                && let Some(pause) = &site.policy.pause
            {
                self.memory.pauses.ended.insert(key(&name, pause), now);
                was_paused = true;
            }
            if was_paused {
                resumed.push(name);
            }
        }
        self.remember(now);
        Ok(resumed)
    }

    fn named(&self, site: Option<&str>) -> Result<Vec<String>, PauseError> {
        let names = self.names();
        match site {
            None if names.is_empty() => Err(PauseError("there is no site to pause: no policy is in force".into())),
            None => Ok(names),
            Some(site) if names.iter().any(|name| name == site) => Ok(vec![site.to_owned()]),
            Some(site) => Err(PauseError(format!("there is no site `{site}`; the sites are: {}", names.join(", ")))),
        }
    }
}
