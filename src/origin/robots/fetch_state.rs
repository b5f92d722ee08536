//! What crawlgate knows of an origin's robots.txt, and when it asks for it next: [`FetchState`]. Pure: the moment is an
//! argument. The caller fetches when it is due, reports the [`FetchResult`], and says whether the new copy could be used.
//! Must not know policies or HTTP.
//!
//! Beside the copy in use, the last answer is remembered as [`LastAnswer`]:
//!
//! | from | to | when |
//! |---|---|---|
//! | any | `InUse` | the origin's file is the copy, or was accepted as the new copy |
//! | any but `HeldBack` | `Unasked` | the copy comes from before, and the origin was not asked since |
//! | any | `Failed` | no usable answer |
//! | any | `Gone` | there was a file with rules, and now there is none; believed after ten minutes |
//! | any | `HeldBack` | the new file cannot be used |

use crate::robots::{File, Key, MAX_BYTES, Shape};
use crate::state::taken_as_past;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// Between two fetches that went well, more or less a tenth: well below the day for which crawlers keep theirs.
const REFRESH: Duration = Duration::from_secs(600);
/// After the first failure; twice as long after each further one, up to [`REFRESH`].
const RETRY: Duration = Duration::from_secs(5);
/// How long a file that is gone must stay gone to be believed: a deployment removes files for minutes, not for ten.
const BELIEVED_AFTER: Duration = Duration::from_secs(600);

/// What the status says while the origin was not asked since the copy was taken over.
const UNASKED: &str = "this is the copy that was in use before; the origin has not answered since";

/// A good copy. One without octets stands for an origin that has no such file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copy {
    /// The first 500 KiB, whole lines.
    #[serde(skip)]
    pub bytes: Arc<[u8]>,
    /// Whence it came after redirects.
    pub url: String,
    /// The validators that came with it.
    pub etag: Option<String>,
    /// The same.
    pub last_modified: Option<String>,
    /// When it was fetched.
    pub fetched: Timestamp,
    /// Whether there was a file at all.
    pub exists: bool,
    /// Why there is none, for a person.
    #[serde(default)]
    pub reason: Option<String>,
}

impl Copy {
    /// Whether there is more in it than comments: rules, sitemaps, a licence.
    fn says_something(&self) -> bool {
        File::parse(self.bytes.clone()).lines().iter().any(|line| line.record.is_some())
    }

    /// Whether it says something about anybody.
    fn has_rules(&self) -> bool {
        has_rules(&File::parse(self.bytes.clone()))
    }
}

/// The result of a fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchResult {
    /// A 200 with a body.
    File {
        /// The octets, those beyond 500 KiB perhaps cut off.
        bytes: Vec<u8>,
        /// Whence it came.
        url: String,
        /// ETag.
        etag: Option<String>,
        /// Last-Modified.
        last_modified: Option<String>,
        /// Whether it is said to be HTML.
        html: bool,
    },
    /// 304: what is there is current.
    Unchanged,
    /// 4xx but for 429, or too many redirects: crawlers take it for a site without rules (RFC 9309 section 2.3.1.3).
    Nothing {
        /// Where it was asked for.
        url: String,
        /// Why, for a person.
        reason: String,
    },
    /// 5xx, 429, or no whole answer: crawlers stay away (RFC 9309 section 2.3.1.4).
    Unreachable(FetchFailure),
}

/// Why an origin gave no usable answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum FetchFailure {
    /// The origin redirects to its public name, which is crawlgate's.
    #[error("{url}: redirects lead back to crawlgate itself")]
    LeadsBack {
        /// Where the redirects led.
        url: String,
    },
    /// Anything else, for a person.
    #[error("{0}")]
    Other(String),
}

impl<T: Into<String>> From<T> for FetchFailure {
    fn from(reason: T) -> FetchFailure {
        FetchFailure::Other(reason.into())
    }
}

impl FetchResult {
    /// What crawlers would make of it: a page of HTML is a file without rules. For a site that has no policy and so
    /// passes on what the origin says; apps of one page answer everything so.
    pub fn as_crawlers_read_it(self) -> FetchResult {
        match self {
            FetchResult::File { bytes, url, html, .. } if is_page(&File::parse(bytes.as_slice()), html) => {
                FetchResult::Nothing {
                    url,
                    reason: "the answer is a page of HTML, which crawlers read as no rules".into(),
                }
            }
            other => other,
        }
    }
}

/// The state of a copy as metrics and the status show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// There is no copy yet, and crawlgate waits for one.
    Awaited,
    /// The copy is what the origin has.
    Current,
    /// The origin has none.
    Absent,
    /// The last good copy is in use, because the origin gives no usable answer.
    Kept,
    /// The origin has another file, which is not used because it would do harm.
    HeldBack,
    /// There was never a copy, and crawlgate no longer waits.
    Missing,
}

impl State {
    /// All of them.
    pub const ALL: [State; 6] =
        [State::Awaited, State::Current, State::Absent, State::Kept, State::HeldBack, State::Missing];

    /// Its name in metrics and in the status.
    pub fn name(self) -> &'static str {
        match self {
            State::Awaited => "awaited",
            State::Current => "current",
            State::Absent => "absent",
            State::Kept => "kept",
            State::HeldBack => "held_back",
            State::Missing => "missing",
        }
    }

    /// The state of this name.
    pub fn named(name: &str) -> Option<State> {
        State::ALL.into_iter().find(|state| state.name() == name)
    }

    /// Whether an operator has to act.
    pub fn is_alarm(self) -> bool {
        matches!(self, State::HeldBack | State::Missing)
    }
}

/// The origin's last answer, where it says something else than the copy in use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LastAnswer {
    /// It said what is in use, or was never asked.
    #[default]
    InUse,
    /// The copy comes from before; the origin was not asked since.
    Unasked,
    /// It gave no usable answer.
    Failed {
        why: FetchFailure,
        /// In a row. Not stored: after a restart the origin is asked often again.
        #[serde(skip)]
        failures: u32,
    },
    /// It says that the file is gone, or that there is nothing in it, and has said nothing else since.
    Gone { since: Timestamp, why: String },
    /// It has a file that cannot be used.
    HeldBack {
        why: String,
        /// When it first said that the file is gone, if it is this that cannot be used.
        gone_since: Option<Timestamp>,
    },
}

impl LastAnswer {
    fn gone_since(&self) -> Option<Timestamp> {
        match self {
            LastAnswer::Gone { since, .. } => Some(*since),
            LastAnswer::HeldBack { gone_since, .. } => *gone_since,
            LastAnswer::InUse | LastAnswer::Unasked | LastAnswer::Failed { .. } => None,
        }
    }

    /// Changes the moment since when the file is gone.
    fn move_gone_since(&mut self, moved: impl Fn(Timestamp) -> Timestamp) {
        match self {
            LastAnswer::Gone { since, .. } => *since = moved(*since),
            LastAnswer::HeldBack { gone_since, .. } => *gone_since = gone_since.map(moved),
            LastAnswer::InUse | LastAnswer::Unasked | LastAnswer::Failed { .. } => {}
        }
    }
}

/// What is known of one site's copy. Everything but `next` and the number of failures survives a restart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchState {
    wanted_since: Timestamp,
    copy: Option<Copy>,
    last_success: Option<Timestamp>,
    #[serde(default)]
    last_answer: LastAnswer,
    #[serde(skip)]
    next: Timestamp,
}

impl FetchState {
    /// Nothing is known; the first fetch is due.
    pub fn new(now: Timestamp) -> FetchState {
        FetchState { wanted_since: now, copy: None, last_success: None, last_answer: LastAnswer::InUse, next: now }
    }

    /// Takes over the copy that a site already uses, of which nothing else is known. The first fetch is due.
    pub fn going_on(url: String, bytes: Arc<[u8]>, now: Timestamp) -> FetchState {
        let exists = !bytes.is_empty();
        let copy = Copy { bytes, url, etag: None, last_modified: None, fetched: now, exists, reason: None };
        FetchState { copy: Some(copy), last_answer: LastAnswer::Unasked, ..FetchState::new(now) }
    }

    /// The site was gone for a while, and its origin was not asked.
    pub fn is_back(&mut self) {
        if self.copy.is_some() && !matches!(self.last_answer, LastAnswer::HeldBack { .. }) {
            self.last_answer = LastAnswer::Unasked;
        }
    }

    /// The wall clock was set by so many seconds, or the machine slept. Time spans stay as long as they were: every
    /// stored moment moves with the clock, and none but the next fetch lies in the future.
    pub fn clock_was_set(&mut self, by: i64, now: Timestamp) {
        let moved = |moment: Timestamp| Timestamp(moment.0.saturating_add(by));
        self.next = moved(self.next);
        self.wanted_since = moved(self.wanted_since);
        self.last_answer.move_gone_since(moved);
        // After a sleep of the machine these moments are right as they are.
        if by < 0 {
            self.last_success = self.last_success.map(moved);
            self.copy.iter_mut().for_each(|copy| copy.fetched = moved(copy.fetched));
        }
        self.take_as_past(now);
    }

    /// Takes moments that lie ahead as now: a clock that was wrong noted them, and crawlgate would wait for them.
    pub(super) fn take_as_past(&mut self, now: Timestamp) {
        let past = |moment: Timestamp| taken_as_past(moment, now);
        self.wanted_since = past(self.wanted_since);
        self.last_answer.move_gone_since(past);
        self.last_success = self.last_success.map(past);
        self.copy.iter_mut().for_each(|copy| copy.fetched = past(copy.fetched));
    }

    /// The copy in use.
    pub fn copy(&self) -> Option<&Copy> {
        self.copy.as_ref()
    }

    /// Gives the copy its bytes back, which are stored apart from the rest. Returns whether the bytes can be its own:
    /// where there is no copy, there are none.
    pub(super) fn restore(&mut self, bytes: Arc<[u8]>) -> bool {
        match &mut self.copy {
            Some(copy) => copy.bytes = bytes,
            None => return bytes.is_empty(),
        }
        true
    }

    /// Since when a file is wanted.
    pub fn wanted_since(&self) -> Timestamp {
        self.wanted_since
    }

    /// When the origin last said something that is in use.
    pub fn last_success(&self) -> Option<Timestamp> {
        self.last_success
    }

    /// What is wrong, for a person.
    pub fn problem(&self) -> Option<String> {
        match &self.last_answer {
            LastAnswer::InUse => None,
            LastAnswer::Unasked => Some(UNASKED.into()),
            LastAnswer::Failed { why, .. } => Some(why.to_string()),
            LastAnswer::Gone { since, why } => {
                Some(format!("{why}; believed if it still is so at {}", since.plus(BELIEVED_AFTER)))
            }
            LastAnswer::HeldBack { why, .. } => Some(why.clone()),
        }
    }

    /// Whether the copy comes from before, and the origin was not asked since.
    pub fn is_unasked(&self) -> bool {
        self.last_answer == LastAnswer::Unasked
    }

    /// Whether the origin's redirects lead back to crawlgate.
    pub fn leads_back(&self) -> bool {
        matches!(self.last_answer, LastAnswer::Failed { why: FetchFailure::LeadsBack { .. }, .. })
    }

    /// When crawlgate believes that there are no rules any more, while that is what the origin says.
    pub fn believed_at(&self) -> Option<Timestamp> {
        match self.last_answer {
            LastAnswer::Gone { since, .. } => Some(since.plus(BELIEVED_AFTER)),
            _ => None,
        }
    }

    /// When to ask next.
    pub fn due(&self) -> Timestamp {
        self.next
    }

    /// Something changed that may let a file through: asks at once.
    pub fn ask_now(&mut self, now: Timestamp) {
        self.next = now;
    }

    /// The ETag and the Last-Modified to ask with. While another answer than the copy's is weighed, what counts is
    /// whether it is given again, so the question is plain.
    pub fn validators(&self) -> (Option<&str>, Option<&str>) {
        match self.copy.as_ref().filter(|copy| copy.exists) {
            Some(copy) => (copy.etag.as_deref(), copy.last_modified.as_deref()),
            None => (None, None),
        }
    }

    /// The state. `patience` is how long crawlgate waits for a first copy.
    pub fn state(&self, patience: Duration, now: Timestamp) -> State {
        match (&self.copy, &self.last_answer) {
            (_, LastAnswer::HeldBack { .. }) => State::HeldBack,
            (None, _) if now.since(self.wanted_since) < patience => State::Awaited,
            (None, _) => State::Missing,
            (Some(copy), LastAnswer::InUse) if copy.exists => State::Current,
            (Some(_), LastAnswer::InUse) => State::Absent,
            (Some(_), LastAnswer::Unasked | LastAnswer::Failed { .. } | LastAnswer::Gone { .. }) => State::Kept,
        }
    }

    /// Takes the result of a fetch. Returns the copy that is to be used from now on, if it changes:
    /// [`accept`](FetchState::accept) or [`hold_back`](FetchState::hold_back) must follow. `jitter` is a number from 0 to
    /// 1, so that many sites do not ask together.
    pub fn answered(&mut self, result: FetchResult, now: Timestamp, jitter: f64) -> Option<Copy> {
        let refresh = REFRESH.mul_f64(0.9 + 0.2 * jitter.clamp(0.0, 1.0));
        match result {
            FetchResult::Unreachable(why) => self.fail(why, now, jitter),
            FetchResult::Unchanged if self.copy.is_none() => {
                self.fail("the answer is 304, and there is nothing to compare with".into(), now, jitter)
            }
            FetchResult::Unchanged => {
                self.succeed(now, refresh);
                None
            }
            FetchResult::Nothing { url, reason } => {
                self.next = now.plus(refresh);
                let (etag, last_modified) = (None, None);
                let reason = Some(reason);
                let none =
                    Copy { bytes: Arc::default(), url, etag, last_modified, fetched: now, exists: false, reason };
                self.gone(none, now)
            }
            FetchResult::File { mut bytes, url, etag, last_modified, html } => {
                cut(&mut bytes);
                let file = File::parse(bytes);
                if let Some(reason) = garbage(&file, html) {
                    return self.fail(format!("{url}: {reason}").into(), now, jitter);
                }
                self.next = now.plus(refresh);
                let bytes = file.bytes().clone();
                let new = Copy { bytes, url, etag, last_modified, fetched: now, exists: true, reason: None };
                self.found(new, &file, now, refresh)
            }
        }
    }

    /// The origin has no file.
    fn gone(&mut self, none: Copy, now: Timestamp) -> Option<Copy> {
        match &self.copy {
            Some(copy) if copy.says_something() => {
                let reason = none.reason.clone().unwrap_or_default();
                self.weigh(none, &reason, now)
            }
            _ => Some(none),
        }
    }

    /// The origin has a file.
    fn found(&mut self, new: Copy, file: &File, now: Timestamp, refresh: Duration) -> Option<Copy> {
        match &self.copy {
            // A new date is no new file. A file from another URL is new: the caller compiles it with its URL.
            Some(copy) if copy.exists && copy.bytes == new.bytes && copy.url == new.url => {
                self.copy = Some(new);
                self.succeed(now, refresh);
                None
            }
            Some(copy) if copy.has_rules() && !has_rules(file) => {
                self.weigh(new, "there is no rule in the file any more", now)
            }
            _ => {
                // There is a file, whether it can be used or not: an earlier absence does not count for the next one.
                self.last_answer = LastAnswer::InUse;
                Some(new)
            }
        }
    }

    /// The new copy is in use.
    pub fn accept(&mut self, copy: Copy, now: Timestamp) {
        let next = self.next.since(now);
        self.copy = Some(copy);
        self.succeed(now, next);
    }

    /// The new copy would do harm: the copy in use stays.
    pub fn hold_back(&mut self, why: String) {
        self.last_answer = LastAnswer::HeldBack { why: bounded(why), gone_since: self.last_answer.gone_since() };
    }

    fn succeed(&mut self, now: Timestamp, refresh: Duration) {
        self.last_success = Some(now);
        self.last_answer = LastAnswer::InUse;
        self.next = now.plus(refresh);
    }

    fn fail(&mut self, why: FetchFailure, now: Timestamp, jitter: f64) -> Option<Copy> {
        let before = if let LastAnswer::Failed { failures, .. } = self.last_answer { failures } else { 0 };
        let wait = RETRY.saturating_mul(1 << before.min(16)).min(REFRESH);
        // Moments are whole seconds, so a wait that were a little shorter would lose one.
        self.next = now.plus(wait.mul_f64(1.0 + 0.2 * jitter.clamp(0.0, 1.0)));
        let why = match why {
            FetchFailure::LeadsBack { url } => FetchFailure::LeadsBack { url: bounded(url) },
            FetchFailure::Other(reason) => FetchFailure::Other(bounded(reason)),
        };
        self.last_answer = LastAnswer::Failed { why, failures: before.saturating_add(1) };
        None
    }

    /// The rules are gone. Believed if the origin says so again ten minutes later, and nothing else in between.
    fn weigh(&mut self, nothing: Copy, reason: &str, now: Timestamp) -> Option<Copy> {
        let since = self.last_answer.gone_since().unwrap_or(now);
        self.last_answer = LastAnswer::Gone { since, why: bounded(format!("{}: {reason}", nothing.url)) };
        let believed_at = since.plus(BELIEVED_AFTER);
        if now >= believed_at {
            return Some(nothing);
        }
        self.next = believed_at;
        None
    }
}

/// Bounds a text that is logged and stored: an origin can make it as long as it likes.
fn bounded(mut text: String) -> String {
    const LONGEST: usize = 8 * 1024;
    if text.len() > LONGEST {
        let end = (0..=LONGEST).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push_str(" [...]");
    }
    text
}

fn has_rules(file: &File) -> bool {
    file.lines().iter().any(|line| line.record.as_ref().is_some_and(|record| record.key == Key::UserAgent))
}

fn is_page(file: &File, html: bool) -> bool {
    match file.shape() {
        Shape::Html => true,
        Shape::Text => html && file.lines().iter().all(|line| line.record.is_none()),
        Shape::Utf16 => false,
    }
}

/// Why this is no robots.txt, although it could be read as one without rules.
fn garbage(file: &File, html: bool) -> Option<&'static str> {
    match file.shape() {
        Shape::Html => Some("this is a page of HTML, not a robots.txt"),
        Shape::Utf16 => Some("this is UTF-16, which no crawler reads"),
        Shape::Text if file.bytes().contains(&0) && file.lines().iter().all(|line| line.record.is_none()) => {
            Some("this is no text")
        }
        Shape::Text if is_page(file, html) => {
            Some("this is said to be HTML, and there is nothing of a robots.txt in it")
        }
        Shape::Text => None,
    }
}

/// Crawlers read 500 KiB; half a line would be another rule.
fn cut(bytes: &mut Vec<u8>) {
    if bytes.len() > MAX_BYTES {
        bytes.truncate(MAX_BYTES);
        let end = memchr::memrchr2(b'\n', b'\r', bytes).map_or(0, |place| place + 1);
        bytes.truncate(end);
    }
}
