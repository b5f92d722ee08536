//! [`FetchState`]: crawlgate's copy of one origin's robots.txt, the origin's last answer, and the
//! time of the next fetch. When a fetch is due, the caller fetches the file and applies the
//! [`FetchResult`]. If the result has a new file, the caller accepts the file as the new copy, or
//! holds it back because it cannot be used. The module reads no clock: callers pass the time.
//!
//! The last answer is a [`LastAnswer`]:
//!
//! | from | to | when |
//! |---|---|---|
//! | any | `InUse` | the origin's file is the copy, or was accepted as the new copy |
//! | none | `Unasked` | the site takes over the copy of another site, and the origin was not asked since |
//! | any | `Failed` | no usable answer |
//! | any | `Gone` | there was a file with rules, and now there is none; believed after ten minutes |
//! | any | `HeldBack` | the new file cannot be used |

use super::fetch_result::{FetchFailure, FetchResult, find_defect, truncate_body};
use crate::facts::clamp_to_now;
use crate::policy::origin::OriginCopyState;
use crate::robots::{MAX_ROBOTS_BYTES, RobotsFile, RobotsKey};
use crate::time::Timestamp;
use LastAnswer::{Failed, Gone, HeldBack, InUse, Unasked};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

use FetchResult::*;
use OriginCopyState::*;

/// The time between two successful fetches, give or take a tenth. Crawlers may cache a robots.txt
/// for a day.
const REFRESH: Duration = Duration::from_secs(600);
/// The wait after the first failure. Each further failure doubles it, up to [`REFRESH`].
const FIRST_RETRY: Duration = Duration::from_secs(5);
/// How long the origin must answer that a file is gone before crawlgate believes it. A deployment
/// may remove files for a shorter time.
const REMOVAL_BELIEVED_AFTER: Duration = Duration::from_secs(600);

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
    /// Since this moment the origin answers that there is no file, or a file without rules.
    Gone { since: Timestamp, why: String },
    /// The origin's new file, or its absence, cannot be used.
    HeldBack {
        why: String,
        /// When the origin first answered that the file is gone, if that is held back.
        gone_since: Option<Timestamp>,
    },
}

impl LastAnswer {
    /// When the origin first answered that the file is gone, if that is its last answer.
    fn gone_since_mut(&mut self) -> Option<&mut Timestamp> {
        match self {
            Gone { since, .. } => Some(since),
            HeldBack { gone_since, .. } => gone_since.as_mut(),
            InUse | Unasked | Failed { .. } => None,
        }
    }
}

/// A copy of an origin's robots.txt. A copy without bytes stands for an origin that has none.
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
    /// For a person: why there is no file, or that it was truncated.
    pub reason: Option<String>,
}

impl FetchedCopy {
    /// Whether it has more than comments, such as rules, sitemaps or a licence.
    pub fn has_records(&self) -> bool {
        RobotsFile::parse(self.bytes.clone())
            .lines()
            .iter()
            .any(|line| line.key_value.is_some())
    }

    /// Whether it has a group of rules.
    pub fn has_rules(&self) -> bool {
        has_rules(&RobotsFile::parse(self.bytes.clone()))
    }
}

/// Whether the file has a `User-agent` line, which begins a group of rules.
fn has_rules(file: &RobotsFile) -> bool {
    file.lines().iter().any(|line| {
        line.key_value
            .as_ref()
            .is_some_and(|record| record.key == RobotsKey::UserAgent)
    })
}

/// The state of fetching one origin's robots.txt. All but `due` and the number of failures is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchState {
    /// Since when the site needs a file.
    pub wanted_since: Timestamp,
    copy: Option<FetchedCopy>,
    /// When the origin last gave an answer that was accepted.
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
            last_answer: InUse,
            due: now,
        }
    }

    /// A state with a copy that a site already uses. Empty bytes stand for an origin that has no
    /// file. The first fetch is due.
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
            last_answer: Unasked,
            ..FetchState::new(now)
        }
    }

    /// Call after the wall clock was set by so many seconds, or the machine slept. Moves the stored
    /// moments by as much, so that time spans stay as long as they were. If the clock was set
    /// forward, the moments of the copy and of the last success stay. Moments later than `now` become
    /// `now`, except that of the next fetch.
    pub fn apply_clock_step(&mut self, by: i64, now: Timestamp) {
        let mut moments = vec![&mut self.due, &mut self.wanted_since];
        moments.extend(self.last_answer.gone_since_mut());
        // After a sleep of the machine these moments are correct.
        if by < 0 {
            moments.extend(&mut self.last_success);
            moments.extend(self.copy.as_mut().map(|copy| &mut copy.fetched));
        }
        for moment in moments {
            moment.0 = moment.0.saturating_add(by);
        }
        self.clamp_to(now);
    }

    /// Sets moments later than `now` to `now`, except that of the next fetch. They come from a wrong
    /// clock, and crawlgate would wait for them.
    pub fn clamp_to(&mut self, now: Timestamp) {
        let mut moments = vec![&mut self.wanted_since];
        moments.extend(self.last_answer.gone_since_mut());
        moments.extend(&mut self.last_success);
        moments.extend(self.copy.as_mut().map(|copy| &mut copy.fetched));
        for moment in moments {
            *moment = clamp_to_now(*moment, now);
        }
    }

    /// The copy in use.
    pub fn copy(&self) -> Option<&FetchedCopy> {
        self.copy.as_ref()
    }

    /// Restores the bytes of the copy, which are stored separately.
    pub fn restore_bytes(&mut self, bytes: Arc<[u8]>) {
        if let Some(copy) = &mut self.copy {
            copy.bytes = bytes;
        }
    }

    /// The problem with the last answer, for a person; `None` if it was accepted.
    pub fn problem(&self) -> Option<String> {
        match &self.last_answer {
            InUse | Unasked => None,
            Failed { why, .. } => Some(why.to_string()),
            Gone { since, why } => Some(format!(
                "{why}; crawlgate drops its copy if that is still so at {}",
                since.plus(REMOVAL_BELIEVED_AFTER)
            )),
            HeldBack { why, .. } => Some(why.clone()),
        }
    }

    /// Whether the copy was taken over, and the origin was not asked since.
    pub fn is_unasked(&self) -> bool {
        self.last_answer == Unasked
    }

    /// Whether the origin redirects to crawlgate, or to a URL that crawlgate does not follow.
    pub fn is_redirected_away(&self) -> bool {
        matches!(&self.last_answer, Failed { why, .. } if why.is_redirect)
    }

    /// Whether the last fetch failed because a server gave no answer at all.
    pub fn is_server_down(&self) -> bool {
        matches!(&self.last_answer, Failed { why, .. } if why.is_server_down)
    }

    /// When crawlgate will believe that the rules are gone; `None` unless that is the origin's last
    /// answer.
    pub fn believed_at(&self) -> Option<Timestamp> {
        match self.last_answer {
            Gone { since, .. } => Some(since.plus(REMOVAL_BELIEVED_AFTER)),
            _ => None,
        }
    }

    /// The `ETag` and the `Last-Modified` for a conditional request; none without a file.
    pub fn validators(&self) -> (Option<&str>, Option<&str>) {
        match self.copy.as_ref().filter(|copy| copy.exists) {
            Some(copy) => (copy.etag.as_deref(), copy.last_modified.as_deref()),
            None => (None, None),
        }
    }

    /// The state of the copy. Without a copy it is `Awaited` until `patience` after the site first
    /// needed one, later `Missing`. `HeldBack` takes precedence over everything else.
    pub fn state(&self, patience: Duration, now: Timestamp) -> OriginCopyState {
        match (&self.copy, &self.last_answer) {
            (_, HeldBack { .. }) => OriginCopyState::HeldBack,
            (None, _) if now.since(self.wanted_since) < patience => Awaited,
            (None, _) => Missing,
            (Some(copy), InUse) if copy.exists => Current,
            (Some(_), InUse) => Absent,
            (Some(_), Unasked | Failed { .. } | Gone { .. }) => Kept,
        }
    }

    /// Applies the result of a fetch, and sets when the next one is due. Returns a new copy to
    /// replace the present one: then [`accept`](FetchState::accept) or
    /// [`record_held_back`](FetchState::record_held_back) must follow. `None` if the present copy stays. `jitter`
    /// is a number from 0 to 1, so that sites do not fetch at the same moment.
    pub fn apply_result(
        &mut self,
        result: FetchResult,
        now: Timestamp,
        jitter: f64,
    ) -> Option<FetchedCopy> {
        let refresh = REFRESH.mul_f64(0.9 + 0.2 * jitter.clamp(0.0, 1.0));
        match result {
            Unreachable(why) => self.record_failure(why, now, jitter),
            Unchanged if self.copy.is_none() => self.record_failure(
                "the answer is 304, and there is nothing to compare with".into(),
                now,
                jitter,
            ),
            Unchanged => {
                self.record_success(now, refresh);
                None
            }
            NoFile { url, reason } => {
                self.due = now.plus(refresh);
                let none = FetchedCopy {
                    url,
                    fetched: now,
                    reason: Some(reason.clone()),
                    ..FetchedCopy::default()
                };
                if self.copy.as_ref().is_some_and(FetchedCopy::has_records) {
                    self.record_removal(none, &reason, now)
                } else {
                    Some(none)
                }
            }
            File {
                mut bytes,
                url,
                etag,
                last_modified,
                html,
            } => {
                let reason = truncate_body(&mut bytes, MAX_ROBOTS_BYTES).map(str::to_owned);
                let file = RobotsFile::parse(bytes);
                if let Some(reason) = find_defect(&file, html) {
                    return self.record_failure(format!("{url}: {reason}").into(), now, jitter);
                }
                self.due = now.plus(refresh);
                let new = FetchedCopy {
                    bytes: file.bytes().clone(),
                    url,
                    etag,
                    last_modified,
                    fetched: now,
                    exists: true,
                    reason,
                };
                self.apply_file(new, &file, now, refresh)
            }
        }
    }

    /// Applies a readable file (`file` is `new`, parsed). Returns it as a new copy; `None` if only
    /// its validators are new, or if it has lost all rules, which is not believed yet.
    fn apply_file(
        &mut self,
        new: FetchedCopy,
        file: &RobotsFile,
        now: Timestamp,
        refresh: Duration,
    ) -> Option<FetchedCopy> {
        match &self.copy {
            // New validators alone make no new copy. A new URL does, because the caller compiles the
            // file with its URL.
            Some(copy) if copy.exists && copy.bytes == new.bytes && copy.url == new.url => {
                self.copy = Some(new);
                self.record_success(now, refresh);
                None
            }
            Some(copy) if copy.has_rules() && !has_rules(file) => {
                self.record_removal(new, "the file has no rules any more", now)
            }
            _ => {
                // There is a file, so an earlier absence does not count for the next one.
                self.last_answer = InUse;
                Some(new)
            }
        }
    }

    /// Makes this the present copy. The time of the next fetch stays.
    pub fn accept(&mut self, copy: FetchedCopy, now: Timestamp) {
        let due = self.due.since(now);
        self.copy = Some(copy);
        self.record_success(now, due);
    }

    /// Records that the new copy would do harm, and why. The present copy stays.
    pub fn record_held_back(&mut self, why: String) {
        self.last_answer = HeldBack {
            why: truncate_text(why),
            gone_since: self.last_answer.gone_since_mut().copied(),
        };
    }

    /// Records that the origin's answer was accepted. The next fetch is due after `refresh`.
    fn record_success(&mut self, now: Timestamp, refresh: Duration) {
        self.last_success = Some(now);
        self.last_answer = InUse;
        self.due = now.plus(refresh);
    }

    /// Records that there was no usable answer. The next fetch is due after five seconds, twice as
    /// long after each further failure, at most ten minutes, and up to a fifth more by `jitter`.
    /// Returns `None`, as the result of the fetch.
    fn record_failure(
        &mut self,
        mut why: FetchFailure,
        now: Timestamp,
        jitter: f64,
    ) -> Option<FetchedCopy> {
        let before = if let Failed { failures, .. } = self.last_answer {
            failures
        } else {
            0
        };
        let wait = FIRST_RETRY.saturating_mul(1 << before.min(16)).min(REFRESH);
        // Only longer: moments are whole seconds, so a slightly shorter wait would lose a second.
        self.due = now.plus(wait.mul_f64(1.0 + 0.2 * jitter.clamp(0.0, 1.0)));
        why.reason = truncate_text(why.reason);
        self.last_answer = Failed {
            why,
            failures: before.saturating_add(1),
        };
        None
    }

    /// Records an answer by which the rules are gone: `nothing` is the copy without rules. Returns
    /// it if all answers of the last ten minutes were the same. Otherwise the present copy stays, and
    /// the next fetch is due when these ten minutes are over.
    fn record_removal(
        &mut self,
        nothing: FetchedCopy,
        reason: &str,
        now: Timestamp,
    ) -> Option<FetchedCopy> {
        let since = self
            .last_answer
            .gone_since_mut()
            .map_or(now, |since| *since);
        self.last_answer = Gone {
            since,
            why: truncate_text(format!("{}: {reason}", nothing.url)),
        };
        let believed_at = since.plus(REMOVAL_BELIEVED_AFTER);
        if now >= believed_at {
            return Some(nothing);
        }
        self.due = believed_at;
        None
    }
}

/// Truncates a text from an origin to 8 KiB, and marks that by ` [...]`, because it is logged and
/// stored.
fn truncate_text(text: String) -> String {
    const MAX_TEXT_BYTES: usize = 8 * 1024;
    let beginning = crate::printable::truncate(&text, MAX_TEXT_BYTES);
    if beginning.len() < text.len() {
        format!("{beginning} [...]")
    } else {
        text
    }
}
