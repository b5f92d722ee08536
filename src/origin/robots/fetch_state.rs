//! [`FetchState`]: the copy of one origin's robots.txt, the origin's last answer, and the time of
//! the next fetch. It reads no clock: the moment is an argument. The caller fetches when a fetch is
//! due, reports the [`FetchResult`], and says whether it accepted the new copy.
//!
//! The last answer is a [`LastAnswer`]:
//!
//! | from | to | when |
//! |---|---|---|
//! | any | `InUse` | the origin's file is the copy, or was accepted as the new copy |
//! | any but `HeldBack` | `Unasked` | the copy is from an earlier time, and the origin was not asked since |
//! | any | `Failed` | no usable answer |
//! | any | `Gone` | there was a file with rules, and now there is none; believed after ten minutes |
//! | any | `HeldBack` | the new file cannot be used |

use super::fetch_result::{FetchFailure, FetchResult, cut, defect};
use crate::facts::{Fact, OriginCopy, taken_as_past};
use crate::hash::Hash;
use crate::policy::origin::OriginCopyState;
use crate::robots::{File, Key};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Between two successful fetches, give or take a tenth. Crawlers may cache a robots.txt for a day.
const REFRESH: Duration = Duration::from_secs(600);
/// After the first failure. Each further failure doubles it, up to [`REFRESH`].
const RETRY: Duration = Duration::from_secs(5);
/// How long the origin must say that a file is gone before crawlgate believes it. A deployment
/// removes files for less.
const BELIEVED_AFTER: Duration = Duration::from_secs(600);

/// What the status says while the origin was not asked since the copy was taken over.
const UNASKED: &str = "this is the copy that was in use before; the origin has not answered since";

/// The origin's last answer, compared with the copy in use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LastAnswer {
    /// The answer is the copy in use. Also the state before the first answer.
    InUse,
    /// The copy was taken over, and the origin was not asked since.
    Unasked,
    /// The origin gave no usable answer.
    Failed {
        why: FetchFailure,
        /// Failures in a row. Not stored: after a restart the origin is asked often again.
        #[serde(skip)]
        failures: u32,
    },
    /// The origin says since this moment that there is no file, or that the file has no rules.
    Gone { since: Timestamp, why: String },
    /// The origin's new file, or its absence, cannot be used.
    HeldBack {
        why: String,
        /// When it first said that the file is gone, if that is what cannot be used.
        gone_since: Option<Timestamp>,
    },
}

impl LastAnswer {
    /// When the origin first said that the file is gone, if its last answer is that.
    fn gone_since(&mut self) -> Option<&mut Timestamp> {
        match self {
            LastAnswer::Gone { since, .. } => Some(since),
            LastAnswer::HeldBack { gone_since, .. } => gone_since.as_mut(),
            LastAnswer::InUse | LastAnswer::Unasked | LastAnswer::Failed { .. } => None,
        }
    }
}

/// A copy that can be used. One without bytes stands for an origin that has no robots.txt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchedCopy {
    /// The first 500 KiB, whole lines.
    #[serde(skip)]
    pub bytes: Arc<[u8]>,
    /// Its URL, after redirects.
    pub url: String,
    /// The `ETag` of the answer.
    pub etag: Option<String>,
    /// The `Last-Modified` of the answer.
    pub last_modified: Option<String>,
    /// When it was fetched.
    pub fetched: Timestamp,
    /// Whether the origin has a file.
    pub exists: bool,
    /// For a person: why there is none, or that not all of it is read.
    pub reason: Option<String>,
}

impl FetchedCopy {
    /// Whether it has more than comments: rules, sitemaps, a licence.
    pub fn has_records(&self) -> bool {
        File::parse(self.bytes.clone())
            .lines()
            .iter()
            .any(|line| line.record.is_some())
    }

    /// Whether it has a group of rules.
    pub fn has_rules(&self) -> bool {
        has_rules(&File::parse(self.bytes.clone()))
    }
}

/// Whether a line is `User-agent`, with which a group of rules begins.
fn has_rules(file: &File) -> bool {
    file.lines().iter().any(|line| {
        line.record
            .as_ref()
            .is_some_and(|record| record.key == Key::UserAgent)
    })
}

/// See the top of this file. All but `due` and the number of failures is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchState {
    /// Since when the site wants a file.
    pub wanted_since: Timestamp,
    copy: Option<FetchedCopy>,
    /// When the origin last gave an answer that is in use.
    pub last_success: Option<Timestamp>,
    last_answer: LastAnswer,
    /// When the next fetch is due.
    #[serde(skip)]
    pub due: Timestamp,
}

impl FetchState {
    /// A state without a copy. The first fetch is due.
    pub fn new(now: Timestamp) -> FetchState {
        FetchState {
            wanted_since: now,
            copy: None,
            last_success: None,
            last_answer: LastAnswer::InUse,
            due: now,
        }
    }

    /// Takes over a copy that a site already uses and of which nothing else is known. Empty bytes
    /// stand for an origin that has no file. The first fetch is due.
    pub fn with_copy(url: String, bytes: Arc<[u8]>, now: Timestamp) -> FetchState {
        let exists = !bytes.is_empty();
        let copy = FetchedCopy {
            bytes,
            url,
            fetched: now,
            exists,
            ..FetchedCopy::default()
        };
        FetchState {
            copy: Some(copy),
            last_answer: LastAnswer::Unasked,
            ..FetchState::new(now)
        }
    }

    /// Records that the origin was not asked while the site was away. Does nothing without a copy,
    /// or if a file is held back.
    pub fn mark_unasked(&mut self) {
        if self.copy.is_some() && !matches!(self.last_answer, LastAnswer::HeldBack { .. }) {
            self.last_answer = LastAnswer::Unasked;
        }
    }

    /// Moves the stored moments by so many seconds, because the wall clock was set or the machine
    /// slept: time spans stay as long as they were. When the clock was set forward, the moments of
    /// the copy and of the last success stay. No moment but that of the next fetch may lie after
    /// `now`.
    pub fn apply_clock_step(&mut self, by: i64, now: Timestamp) {
        let mut moments = vec![&mut self.due, &mut self.wanted_since];
        moments.extend(self.last_answer.gone_since());
        // After a sleep of the machine these moments are right as they are.
        if by < 0 {
            moments.extend(&mut self.last_success);
            moments.extend(self.copy.as_mut().map(|copy| &mut copy.fetched));
        }
        for moment in moments {
            moment.0 = moment.0.saturating_add(by);
        }
        self.take_as_past(now);
    }

    /// Sets moments that lie after `now` to `now`: a clock that was wrong made them, and crawlgate
    /// would wait for them. The next fetch is not one of them.
    fn take_as_past(&mut self, now: Timestamp) {
        let mut moments = vec![&mut self.wanted_since];
        moments.extend(self.last_answer.gone_since());
        moments.extend(&mut self.last_success);
        moments.extend(self.copy.as_mut().map(|copy| &mut copy.fetched));
        for moment in moments {
            *moment = taken_as_past(*moment, now);
        }
    }

    /// The copy in use.
    pub fn copy(&self) -> Option<&FetchedCopy> {
        self.copy.as_ref()
    }

    /// Gives the copy its bytes back, which are stored apart from the rest. Returns false if there
    /// is no copy, and yet there are bytes: then both do not belong together.
    fn restore(&mut self, bytes: Arc<[u8]>) -> bool {
        match &mut self.copy {
            Some(copy) => copy.bytes = bytes,
            None => return bytes.is_empty(),
        }
        true
    }

    /// The problem with the last answer, for a person; `None` if that is in use.
    pub fn problem(&self) -> Option<String> {
        match &self.last_answer {
            LastAnswer::InUse => None,
            LastAnswer::Unasked => Some(UNASKED.into()),
            LastAnswer::Failed { why, .. } => Some(why.to_string()),
            LastAnswer::Gone { since, why } => Some(format!(
                "{why}; believed if it still is so at {}",
                since.plus(BELIEVED_AFTER)
            )),
            LastAnswer::HeldBack { why, .. } => Some(why.clone()),
        }
    }

    /// Whether the copy was taken over, and the origin was not asked since.
    pub fn is_unasked(&self) -> bool {
        self.last_answer == LastAnswer::Unasked
    }

    /// Whether the origin redirects to crawlgate, or to a place that crawlgate does not follow it
    /// to.
    pub fn is_redirected_away(&self) -> bool {
        let LastAnswer::Failed { why, .. } = &self.last_answer else {
            return false;
        };
        matches!(
            why,
            FetchFailure::LeadsBack { .. } | FetchFailure::LeadsAstray { .. }
        )
    }

    /// When crawlgate will believe that the rules are gone; `None` unless the origin's last answer
    /// says so.
    pub fn believed_at(&self) -> Option<Timestamp> {
        match self.last_answer {
            LastAnswer::Gone { since, .. } => Some(since.plus(BELIEVED_AFTER)),
            _ => None,
        }
    }

    /// The `ETag` and the `Last-Modified` for a conditional request. There are none without a file.
    pub fn validators(&self) -> (Option<&str>, Option<&str>) {
        match self.copy.as_ref().filter(|copy| copy.exists) {
            Some(copy) => (copy.etag.as_deref(), copy.last_modified.as_deref()),
            None => (None, None),
        }
    }

    /// The state of the copy. `patience` is how long crawlgate waits for a first one, from when the
    /// site wanted one: before that time it is `Awaited`, later `Missing`. A file that is held back
    /// comes before everything else.
    pub fn state(&self, patience: Duration, now: Timestamp) -> OriginCopyState {
        match (&self.copy, &self.last_answer) {
            (_, LastAnswer::HeldBack { .. }) => OriginCopyState::HeldBack,
            (None, _) if now.since(self.wanted_since) < patience => OriginCopyState::Awaited,
            (None, _) => OriginCopyState::Missing,
            (Some(copy), LastAnswer::InUse) if copy.exists => OriginCopyState::Current,
            (Some(_), LastAnswer::InUse) => OriginCopyState::Absent,
            (
                Some(_),
                LastAnswer::Unasked | LastAnswer::Failed { .. } | LastAnswer::Gone { .. },
            ) => OriginCopyState::Kept,
        }
    }

    /// Takes the result of a fetch, and sets when the next one is due. Returns a copy that could be
    /// used in place of the present one: then [`accept`](FetchState::accept) or
    /// [`hold_back`](FetchState::hold_back) must follow. `None` if the copy in use stays. `jitter`
    /// is a number from 0 to 1, so that sites do not fetch at the same moment.
    pub fn take_result(
        &mut self,
        result: FetchResult,
        now: Timestamp,
        jitter: f64,
    ) -> Option<FetchedCopy> {
        let refresh = REFRESH.mul_f64(0.9 + 0.2 * jitter.clamp(0.0, 1.0));
        match result {
            FetchResult::Unreachable(why) => self.fail(why, now, jitter),
            FetchResult::Unchanged if self.copy.is_none() => self.fail(
                "the answer is 304, and there is nothing to compare with".into(),
                now,
                jitter,
            ),
            FetchResult::Unchanged => {
                self.succeed(now, refresh);
                None
            }
            FetchResult::Nothing { url, reason } => {
                self.due = now.plus(refresh);
                let none = FetchedCopy {
                    url,
                    fetched: now,
                    reason: Some(reason.clone()),
                    ..FetchedCopy::default()
                };
                if self.copy.as_ref().is_some_and(FetchedCopy::has_records) {
                    self.doubt(none, &reason, now)
                } else {
                    Some(none)
                }
            }
            FetchResult::File {
                mut bytes,
                url,
                etag,
                last_modified,
                html,
            } => {
                let reason = cut(&mut bytes).map(str::to_owned);
                let file = File::parse(bytes);
                if let Some(reason) = defect(&file, html) {
                    return self.fail(format!("{url}: {reason}").into(), now, jitter);
                }
                self.due = now.plus(refresh);
                let bytes = file.bytes().clone();
                let new = FetchedCopy {
                    bytes,
                    url,
                    etag,
                    last_modified,
                    fetched: now,
                    exists: true,
                    reason,
                };
                self.take_file(new, &file, now, refresh)
            }
        }
    }

    /// Takes a file that can be read (`file` is `new`, parsed). Returns it as a new copy; `None` if
    /// it is the copy in use, of which only the validators are new, or if it has lost all rules,
    /// which is not believed yet.
    fn take_file(
        &mut self,
        new: FetchedCopy,
        file: &File,
        now: Timestamp,
        refresh: Duration,
    ) -> Option<FetchedCopy> {
        match &self.copy {
            // Other validators alone make no new file. Another URL does: the caller compiles the
            // file with its URL.
            Some(copy) if copy.exists && copy.bytes == new.bytes && copy.url == new.url => {
                self.copy = Some(new);
                self.succeed(now, refresh);
                None
            }
            Some(copy) if copy.has_rules() && !has_rules(file) => {
                self.doubt(new, "there is no rule in the file any more", now)
            }
            _ => {
                // There is a file, whether it can be used or not. An earlier absence does not count
                // for the next one.
                self.last_answer = LastAnswer::InUse;
                Some(new)
            }
        }
    }

    /// Puts the new copy into use. The next fetch stays due when it was.
    pub fn accept(&mut self, copy: FetchedCopy, now: Timestamp) {
        let due = self.due.since(now);
        self.copy = Some(copy);
        self.succeed(now, due);
    }

    /// Records that the new copy would do harm, and why. The copy in use stays.
    pub fn hold_back(&mut self, why: String) {
        self.last_answer = LastAnswer::HeldBack {
            why: bounded(why),
            gone_since: self.last_answer.gone_since().copied(),
        };
    }

    /// Records that the origin's answer is in use. The next fetch is due after `refresh`.
    fn succeed(&mut self, now: Timestamp, refresh: Duration) {
        self.last_success = Some(now);
        self.last_answer = LastAnswer::InUse;
        self.due = now.plus(refresh);
    }

    /// Records that there was no usable answer. The next fetch is due sooner than after a success:
    /// after five seconds, twice as long after each further failure, at most ten minutes, and up to
    /// a fifth more by `jitter`. Returns `None`, as the result of the fetch.
    fn fail(&mut self, why: FetchFailure, now: Timestamp, jitter: f64) -> Option<FetchedCopy> {
        let before = if let LastAnswer::Failed { failures, .. } = self.last_answer {
            failures
        } else {
            0
        };
        let wait = RETRY.saturating_mul(1 << before.min(16)).min(REFRESH);
        // Only longer: moments are whole seconds, so a slightly shorter wait would lose a whole
        // one.
        self.due = now.plus(wait.mul_f64(1.0 + 0.2 * jitter.clamp(0.0, 1.0)));
        let why = match why {
            FetchFailure::LeadsBack { url } => FetchFailure::LeadsBack { url: bounded(url) },
            FetchFailure::LeadsAstray { url, why } => FetchFailure::LeadsAstray {
                url: bounded(url),
                why,
            },
            FetchFailure::Other(reason) => FetchFailure::Other(bounded(reason)),
        };
        self.last_answer = LastAnswer::Failed {
            why,
            failures: before.saturating_add(1),
        };
        None
    }

    /// Takes an answer by which the rules are gone: `nothing` is the copy without rules. Returns it
    /// if the origin has said so for ten minutes, and nothing else in between. Otherwise the copy
    /// in use stays, and the next fetch is due when these ten minutes are over.
    fn doubt(&mut self, nothing: FetchedCopy, reason: &str, now: Timestamp) -> Option<FetchedCopy> {
        let since = self.last_answer.gone_since().map_or(now, |since| *since);
        self.last_answer = LastAnswer::Gone {
            since,
            why: bounded(format!("{}: {reason}", nothing.url)),
        };
        let believed_at = since.plus(BELIEVED_AFTER);
        if now >= believed_at {
            return Some(nothing);
        }
        self.due = believed_at;
        None
    }
}

/// Cuts a text that is logged and stored to 8 KiB, and puts ` [...]` after a text that was cut.
/// Origins choose how long it is.
fn bounded(text: String) -> String {
    const LONGEST: usize = 8 * 1024;
    let beginning = crate::printable::cut(&text, LONGEST);
    if beginning.len() < text.len() {
        format!("{beginning} [...]")
    } else {
        text
    }
}

/// The stored copy of a site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredCopy {
    /// The copy and the state of fetching.
    #[serde(flatten)]
    pub fetch: FetchState,
    /// For a default site: its hosts, which no policy file names. Empty for every host.
    pub default_site_hosts: Option<Vec<String>>,
    /// When the site was removed. It may come back.
    pub left_at: Option<Timestamp>,
}

/// Why a stored copy is not used.
#[derive(Debug, thiserror::Error)]
pub enum DamagedCopy {
    /// The bytes are not those that were stored.
    #[error("its bytes do not have the digest that was stored")]
    Digest,
    /// The state of fetching cannot be decoded.
    #[error("its state cannot be read: {0}")]
    State(#[from] serde_json::Error),
    /// There are bytes, and the state says that there is no copy.
    #[error("its state does not belong to its bytes")]
    OfNoCopy,
}

impl StoredCopy {
    /// This copy as a fact of the state store.
    pub fn fact(&self, site: &str, now: Timestamp) -> Fact {
        let bytes = self
            .fetch
            .copy()
            .map(|copy| copy.bytes.clone())
            .unwrap_or_default();
        // A state that could not be encoded would be read as damaged, and the origin would be asked
        // again.
        let state = serde_json::to_string(self).unwrap_or_default();
        Fact::set(
            now,
            OriginCopy {
                site: site.to_owned(),
                digest: digest(&bytes),
                bytes,
                state,
            },
        )
    }

    /// The fact that removes the copy of a site.
    pub fn removal(site: &str, now: Timestamp) -> Fact {
        let nothing = OriginCopy {
            site: site.to_owned(),
            bytes: Arc::default(),
            digest: String::new(),
            state: String::new(),
        };
        Fact::removed(now, nothing)
    }

    /// Reads a stored copy. Moments that lie ahead are taken as now.
    ///
    /// # Errors
    /// The copy is damaged.
    pub fn read(record: &OriginCopy, now: Timestamp) -> Result<StoredCopy, DamagedCopy> {
        if digest(&record.bytes) != record.digest {
            return Err(DamagedCopy::Digest);
        }
        let mut stored: StoredCopy = serde_json::from_str(&record.state)?;
        if !stored.fetch.restore(record.bytes.clone()) {
            return Err(DamagedCopy::OfNoCopy);
        }
        stored.fetch.take_as_past(now);
        stored.left_at = stored.left_at.map(|moment| taken_as_past(moment, now));
        Ok(stored)
    }

    /// Moves the stored moments, that of the removal too: see [`FetchState::apply_clock_step`].
    pub fn apply_clock_step(&mut self, by: i64, now: Timestamp) {
        self.fetch.apply_clock_step(by, now);
        self.left_at = self
            .left_at
            .map(|moment| taken_as_past(Timestamp(moment.0.saturating_add(by)), now));
    }
}

/// SHA-256, in hexadecimal.
fn digest(bytes: &[u8]) -> String {
    Hash::of(&[bytes]).to_string()
}

/// The copies that the previous run left.
#[derive(Clone, Debug, Default)]
pub struct StoredCopies {
    /// By site.
    pub by_site: BTreeMap<String, StoredCopy>,
    /// Sites whose copy is damaged. It is not used, and the origin is asked again.
    pub damaged: Vec<String>,
}

impl StoredCopies {
    /// Reads the records of the state store. Damaged copies are logged as warnings, and only their
    /// sites are returned.
    pub fn read(records: &[(Timestamp, OriginCopy)], now: Timestamp) -> StoredCopies {
        let mut copies = StoredCopies::default();
        for (_, record) in records {
            let site = record.site.clone();
            match StoredCopy::read(record, now) {
                Ok(stored) => drop(copies.by_site.insert(site, stored)),
                Err(reason) => {
                    tracing::warn!(
                        %site,
                        %reason,
                        "the stored copy of the origin's robots.txt is damaged; crawlgate does not use it and fetches the file again"
                    );
                    copies.damaged.push(site);
                }
            }
        }
        copies
    }
}
