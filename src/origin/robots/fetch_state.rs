//! What becomes of the copy of an origin's robots.txt when the origin says something: pure, with the moment as an
//! argument. The caller asks when it is time, tells what was heard, and whether what is to be used could be used.

use crate::robots::{File, Key, MAX_BYTES, Shape};
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

/// Why a copy that a site goes on with is not what the origin has for all that is known.
pub const NOT_ASKED_YET: &str = "this is the copy that was in use before; the origin has not answered since";

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

/// What came of asking.
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
    Unreachable(String),
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

/// How it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// There is no copy yet, and it is waited for.
    Awaited,
    /// The copy is what the origin has.
    Current,
    /// The origin has none.
    Absent,
    /// The last good copy is in use, for the origin says nothing that could be used.
    Kept,
    /// The origin has another file, which would do harm.
    HeldBack,
    /// There was never a copy, and waiting is over.
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

    /// Whether somebody has to look.
    pub fn is_alarm(self) -> bool {
        matches!(self, State::HeldBack | State::Missing)
    }
}

/// The life of one site's copy. What is written down survives a restart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchState {
    wanted_since: Timestamp,
    copy: Option<Copy>,
    last_success: Option<Timestamp>,
    /// When the origin first said that the file is gone, or that there is nothing in it, if it said nothing else since.
    gone_since: Option<Timestamp>,
    #[serde(skip)]
    next: Timestamp,
    #[serde(skip)]
    failures: u32,
    #[serde(default)]
    problem: Option<String>,
    #[serde(default)]
    held_back: bool,
}

impl FetchState {
    /// Nothing is known; the first fetch is due.
    pub fn new(now: Timestamp) -> FetchState {
        FetchState {
            wanted_since: now,
            copy: None,
            last_success: None,
            gone_since: None,
            next: now,
            failures: 0,
            problem: None,
            held_back: false,
        }
    }

    /// Goes on with what a site goes by already, of which nothing else is known. The first fetch is due.
    pub fn going_on(url: String, bytes: Arc<[u8]>, now: Timestamp) -> FetchState {
        let exists = !bytes.is_empty();
        let copy = Copy { bytes, url, etag: None, last_modified: None, fetched: now, exists, reason: None };
        FetchState { copy: Some(copy), problem: Some(NOT_ASKED_YET.into()), ..FetchState::new(now) }
    }

    /// The site was gone for a while, and its origin was not asked.
    pub fn is_back(&mut self) {
        if self.copy.is_some() && !self.held_back {
            self.problem = Some(NOT_ASKED_YET.into());
        }
    }

    /// The clock on the wall was set by so many seconds, or the machine slept: what was lived through since is what it
    /// was. Every moment is told by the clock as it is now, and none is to come but those that are waited for.
    pub fn clock_was_set(&mut self, by: i64, now: Timestamp) {
        let moved = |moment: Timestamp| Timestamp(moment.0.saturating_add(by));
        self.next = moved(self.next);
        self.wanted_since = moved(self.wanted_since);
        self.gone_since = self.gone_since.map(moved);
        // Of a machine that slept they are right as they are.
        if by < 0 {
            self.last_success = self.last_success.map(moved);
            self.copy.iter_mut().for_each(|copy| copy.fetched = moved(copy.fetched));
        }
        self.until(now);
    }

    /// Moments to come are taken for now: they were written by a clock that was wrong, and would be waited for.
    pub(super) fn until(&mut self, now: Timestamp) {
        let past = |moment: Timestamp| moment.min(now);
        self.wanted_since = past(self.wanted_since);
        self.gone_since = self.gone_since.map(past);
        self.last_success = self.last_success.map(past);
        self.copy.iter_mut().for_each(|copy| copy.fetched = past(copy.fetched));
    }

    /// The copy in use.
    pub fn copy(&self) -> Option<&Copy> {
        self.copy.as_ref()
    }

    /// Gives a copy its octets back, which are written down apart from the rest.
    pub(super) fn restore(&mut self, bytes: Vec<u8>) {
        if let Some(copy) = &mut self.copy {
            copy.bytes = bytes.into();
        }
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
        let problem = self.problem.as_ref()?;
        Some(match self.believed_at() {
            Some(moment) => format!("{problem}; believed if it still is so at {moment}"),
            None => problem.clone(),
        })
    }

    /// When it is believed that there are no rules any more, while that is what the origin says.
    pub fn believed_at(&self) -> Option<Timestamp> {
        self.gone_since.filter(|_| !self.held_back).map(|first| first.plus(BELIEVED_AFTER))
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

    /// How it stands. `patience` is how long a first copy is waited for.
    pub fn state(&self, patience: Duration, now: Timestamp) -> State {
        match &self.copy {
            _ if self.held_back => State::HeldBack,
            None if now.since(self.wanted_since) < patience => State::Awaited,
            None => State::Missing,
            Some(_) if self.problem.is_some() => State::Kept,
            Some(copy) if copy.exists => State::Current,
            Some(_) => State::Absent,
        }
    }

    /// The origin said something. What is to be put to use, if anything: [`taken`](FetchState::taken) or
    /// [`held_back`](FetchState::held_back) must follow. `jitter` is a number from 0 to 1, so that many sites do not ask
    /// together.
    pub fn heard(&mut self, heard: FetchResult, now: Timestamp, jitter: f64) -> Option<Copy> {
        let refresh = REFRESH.mul_f64(0.9 + 0.2 * jitter.clamp(0.0, 1.0));
        match heard {
            FetchResult::Unreachable(reason) => self.failed(reason, now, jitter),
            FetchResult::Unchanged if self.copy.is_none() => {
                self.failed("the answer is 304, and there is nothing to compare with".into(), now, jitter)
            }
            FetchResult::Unchanged => {
                self.went_well(now, refresh);
                None
            }
            FetchResult::Nothing { url, reason } => {
                let none = Copy {
                    bytes: Arc::default(),
                    url,
                    etag: None,
                    last_modified: None,
                    fetched: now,
                    exists: false,
                    reason: Some(reason.clone()),
                };
                self.next = now.plus(refresh);
                match &self.copy {
                    Some(copy) if copy.says_something() => self.weigh(none, &reason, now),
                    _ => Some(none),
                }
            }
            FetchResult::File { mut bytes, url, etag, last_modified, html } => {
                cut(&mut bytes);
                let file = File::parse(bytes);
                if let Some(reason) = garbage(&file, html) {
                    return self.failed(format!("{url}: {reason}"), now, jitter);
                }
                let bytes = file.bytes().clone();
                let new = Copy { bytes, url, etag, last_modified, fetched: now, exists: true, reason: None };
                self.next = now.plus(refresh);
                match &self.copy {
                    // A new date is no new file. From another URL it is told apart by whoever compiled it.
                    Some(copy) if copy.exists && copy.bytes == new.bytes && copy.url == new.url => {
                        self.copy = Some(new);
                        self.went_well(now, refresh);
                        None
                    }
                    Some(copy) if copy.has_rules() && !has_rules(&file) => {
                        self.weigh(new, "there is no rule in the file any more", now)
                    }
                    // Whatever becomes of it, there is a file: that there was none before says nothing of the next
                    // time.
                    _ => {
                        self.gone_since = None;
                        Some(new)
                    }
                }
            }
        }
    }

    /// What was to be used is in use.
    pub fn taken(&mut self, copy: Copy, now: Timestamp) {
        let next = self.next.since(now);
        self.copy = Some(copy);
        self.went_well(now, next);
    }

    /// What was to be used would do harm: everything stays as it is.
    pub fn held_back(&mut self, why: String) {
        self.failures = 0;
        self.held_back = true;
        self.problem = Some(bounded(why));
    }

    fn went_well(&mut self, now: Timestamp, refresh: Duration) {
        self.last_success = Some(now);
        self.gone_since = None;
        self.failures = 0;
        self.problem = None;
        self.held_back = false;
        self.next = now.plus(refresh);
    }

    fn failed(&mut self, reason: String, now: Timestamp, jitter: f64) -> Option<Copy> {
        let wait = RETRY.saturating_mul(1 << self.failures.min(16)).min(REFRESH);
        // A little more and never less, or a second would be lost in counting whole ones.
        self.next = now.plus(wait.mul_f64(1.0 + 0.2 * jitter.clamp(0.0, 1.0)));
        self.failures = self.failures.saturating_add(1);
        self.problem = Some(bounded(reason));
        // What it has now is not known.
        self.held_back = false;
        self.gone_since = None;
        None
    }

    /// In place of rules there is nothing: believed when it is said again ten minutes later, and nothing else in
    /// between.
    fn weigh(&mut self, nothing: Copy, reason: &str, now: Timestamp) -> Option<Copy> {
        let first = *self.gone_since.get_or_insert(now);
        self.failures = 0;
        self.held_back = false;
        let believed_at = first.plus(BELIEVED_AFTER);
        if now >= believed_at {
            return Some(nothing);
        }
        self.next = believed_at;
        self.problem = Some(bounded(format!("{}: {reason}", nothing.url)));
        None
    }
}

/// What is said in logs, and kept beside the copy: an origin can make it as long as it likes.
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

/// What is no robots.txt, and would be read as one without rules.
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
