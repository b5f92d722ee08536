//! [`Refresher`] keeps published lists up to date. It takes each list from its server, a mirror or
//! a file when it is due, as a job of the scheduler. [`PublishedLists::take`] decides whether a list
//! is believed.
//!
//! A list is due about a day after its server last confirmed it. After a failure it is due in about
//! five minutes, then in twice that, up to six hours. A key directory is due sooner when a request
//! has an unknown key. Files are read every minute.

use super::Proofs;
use super::means::{ListIndex, is_directory};
use super::published::{FetchedList, PublishedLists};
use crate::clock::Clock;
use crate::crawlers::MAX_LIST_BYTES;
use crate::download::{client, conditional, field, octets};
use crate::files;
use crate::scheduler::{Scheduler, Waker};
use crate::settings::{IdentitySettings, ListSettings};
use crate::time::Timestamp;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

const DAY: Duration = Duration::from_secs(86_400);
const FILES: Duration = Duration::from_secs(60);
const FIRST_RETRY: Duration = Duration::from_secs(300);
const LAST_RETRY: Duration = Duration::from_secs(6 * 3_600);
/// The most lists that are fetched at a time.
const AT_ONCE: usize = 16;
/// The longest wait: the clock may be set meanwhile.
const LONGEST: Duration = Duration::from_secs(5);
const SHORTEST: Duration = Duration::from_millis(50);
/// How long an update that an operator asked for may take.
const UPDATE: Duration = Duration::from_secs(100);
const REDIRECTS: usize = 5;
/// The limit for a list with all redirects.
const TIME: Duration = Duration::from_secs(20);
const CONNECT: Duration = Duration::from_secs(5);

/// The update of one list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListUpdate {
    /// Where it is published.
    pub url: String,
    /// The result.
    pub result: UpdateResult,
    /// The number of networks, or of keys, in the list that counts now.
    pub networks: usize,
    /// Networks that are new.
    pub added: Vec<IpNet>,
    /// Networks that are gone.
    pub removed: Vec<IpNet>,
    /// Why the update failed. The former list, if there is one, still counts.
    pub error: Option<String>,
}

/// The result of an update.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UpdateResult {
    /// The list differs from the former one.
    Changed,
    /// The list has not changed.
    #[default]
    Unchanged,
    /// The list could not be fetched, for this reason.
    Unreachable,
    /// The list was fetched, and is not believed.
    Refused,
    /// The directory or the mirror has no copy of it, and there was none before.
    Absent,
}

impl ListUpdate {
    fn fail(&mut self, result: UpdateResult, error: String) {
        self.result = result;
        self.error = Some(error);
    }
}

impl UpdateResult {
    /// Whether the operator has to look at it.
    pub fn is_failure(self) -> bool {
        matches!(self, UpdateResult::Unreachable | UpdateResult::Refused)
    }
}

/// Fetches one list now, from where the settings say, and hands it to `PublishedLists::take`.
/// Returns what became of it; a failure is recorded, and the former list stays. If the list is off
/// in the settings it is fetched from its own server.
pub fn update(
    lists: &PublishedLists,
    list: ListIndex,
    from: &ListSettings,
    now: Timestamp,
) -> ListUpdate {
    let url = lists.url(list).to_owned();
    let known = lists.get(list);
    let validators = known
        .as_deref()
        .map(|known| (known.copy.etag.as_str(), known.copy.last_modified.as_str()));
    let (etag, last_modified) = validators.unwrap_or_default();
    let is_copy = matches!(from, ListSettings::Directory(_) | ListSettings::Mirror(_));
    let (fetched, checked) = match from {
        ListSettings::Directory(directory) => {
            file(&directory.join(file_name(&url)), last_modified, now)
        }
        ListSettings::Mirror(mirror) => (
            fetch(
                &format!("{mirror}/{}", file_name(&url)),
                etag,
                last_modified,
            ),
            now,
        ),
        ListSettings::Published | ListSettings::Off => (fetch(&url, etag, last_modified), now),
    };
    let networks = known.as_ref().map_or(0, |known| known.entries());
    let mut result = ListUpdate {
        url,
        networks,
        ..ListUpdate::default()
    };
    match fetched {
        ListFetch::Unchanged => lists.unchanged(list, checked),
        // An operator's server should have it; a mirror and a directory need not.
        ListFetch::Absent if networks == 0 && is_copy => result.result = UpdateResult::Absent,
        ListFetch::Absent => {
            let error = if is_copy {
                "its copy is gone"
            } else {
                "its server has none (404 or 410)"
            };
            result.fail(UpdateResult::Unreachable, error.to_owned());
        }
        ListFetch::Failed(error) => result.fail(UpdateResult::Unreachable, error),
        ListFetch::List(fetched) => match lists.take(list, fetched, checked) {
            Ok(change) => {
                if change.is_new {
                    result.result = UpdateResult::Changed;
                }
                result.added = change.added;
                result.removed = change.removed;
                result.networks = change.networks;
            }
            Err(error) => result.fail(UpdateResult::Refused, error.to_string()),
        },
    }
    lists.looked_for(list, now, result.error.as_deref());
    result
}

/// Updates these lists, at most `AT_ONCE` at a time, and waits for all. Returns each with its
/// update; `None` if its thread panicked.
pub fn update_all(
    lists: &PublishedLists,
    wanted: &[ListIndex],
    from: &ListSettings,
    now: Timestamp,
) -> Vec<(ListIndex, Option<ListUpdate>)> {
    let mut updates = Vec::with_capacity(wanted.len());
    for some in wanted.chunks(AT_ONCE) {
        thread::scope(|scope| {
            let mut started = Vec::new();
            for &list in some {
                started.push((list, scope.spawn(move || update(lists, list, from, now))));
            }
            for (list, thread) in started {
                // A thread that panicked has said so.
                updates.push((list, thread.join().ok()));
            }
        });
    }
    updates
}

/// The result of a request for a list.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ListFetch {
    /// A list.
    List(FetchedList),
    /// The list has not changed.
    Unchanged,
    /// There is none, by status 404 or 410 or because the directory has no file for it.
    Absent,
    /// The list could not be fetched.
    Failed(String),
}

/// Requests a list over HTTP. Redirects, size and time are bounded, and the thread is blocked
/// meanwhile. The validators are those of the known list; empty where there is none.
fn fetch(url: &str, etag: &str, last_modified: &str) -> ListFetch {
    let deadline = Instant::now() + TIME;
    let mut url = url.to_owned();
    for _ in 0..=REDIRECTS {
        let left = deadline
            .saturating_duration_since(Instant::now())
            .max(Duration::from_millis(1));
        let agent =
            ureq::Agent::new_with_config(client(left).timeout_connect(Some(CONNECT)).build());
        let request = agent
            .get(&url)
            .header("accept", "application/json, text/plain;q=0.9, */*;q=0.5");
        let response = match conditional(request, Some(etag), Some(last_modified)).call() {
            Ok(response) => response,
            Err(error) => return ListFetch::Failed(error.to_string()),
        };
        match response.status().as_u16() {
            200 => {
                let etag = field(&response, "etag").unwrap_or_default();
                let last_modified = field(&response, "last-modified").unwrap_or_default();
                return match octets(response.into_body(), MAX_LIST_BYTES) {
                    Ok(bytes) => ListFetch::List(FetchedList {
                        bytes,
                        etag,
                        last_modified,
                    }),
                    Err(error) => ListFetch::Failed(format!("the answer broke off: {error}")),
                };
            }
            304 if !(etag.is_empty() && last_modified.is_empty()) => return ListFetch::Unchanged,
            status @ (301 | 302 | 303 | 307 | 308) => {
                let location = field(&response, "location").unwrap_or_default();
                let Some(next) = redirected(&url, &location) else {
                    return ListFetch::Failed(format!(
                        "the Location of the {status} cannot be followed"
                    ));
                };
                url = next;
            }
            404 | 410 => return ListFetch::Absent,
            status => return ListFetch::Failed(format!("the answer is {status}")),
        }
    }
    ListFetch::Failed(format!("more than {REDIRECTS} redirects"))
}

/// The URL that a redirect leads to. `None` if it would lead from https to http, or is neither a
/// whole URL nor a path from the root.
fn redirected(from: &str, location: &str) -> Option<String> {
    let (scheme, rest) = from.split_once("://")?;
    let authority = rest.split('/').next()?;
    if location.starts_with("https://") || scheme == "http" && location.starts_with("http://") {
        return Some(location.to_owned());
    }
    let is_path = location.starts_with('/') && !location.starts_with("//");
    is_path.then(|| format!("{scheme}://{authority}{location}"))
}

/// Reads a file as a server would give it, and returns when it was checked: its time of change, at
/// most `now`, which also stands for `Last-Modified`. Unchanged if that is the known
/// `last_modified`. If the file is missing or unreadable it was checked now.
fn file(path: &Path, last_modified: &str, now: Timestamp) -> (ListFetch, Timestamp) {
    match read_changed_file(path, last_modified, now) {
        Ok(read) => read,
        Err(error) if error.kind() == io::ErrorKind::NotFound => (ListFetch::Absent, now),
        Err(error) => (
            ListFetch::Failed(format!("{}: {error}", path.display())),
            now,
        ),
    }
}

/// Reads a file if its time of change is another than `last_modified`; with that time.
fn read_changed_file(
    path: &Path,
    last_modified: &str,
    now: Timestamp,
) -> io::Result<(ListFetch, Timestamp)> {
    let changed = Timestamp::from(fs::metadata(path)?.modified()?).min(now);
    let date = changed.to_http_date();
    if date == last_modified {
        return Ok((ListFetch::Unchanged, changed));
    }
    let fetched = FetchedList {
        bytes: files::read_file(path, MAX_LIST_BYTES as u64)?,
        etag: String::new(),
        last_modified: date,
    };
    Ok((ListFetch::List(fetched), changed))
}

/// Where the copy of a list is, below a directory or a mirror: `openai.com/gptbot.json`.
pub fn file_name(url: &str) -> &str {
    url.trim_start_matches("https://").trim_end_matches('/')
}

/// Asks for an update of all lists.
pub struct UpdateHandle {
    requests: SyncSender<SyncSender<Vec<ListUpdate>>>,
    job: Waker,
}

impl UpdateHandle {
    /// Updates all lists now and waits for it. `None` if that takes too long, if the scheduler has
    /// ended, or if another such request waits already.
    pub fn update(&self) -> Option<Vec<ListUpdate>> {
        let (done, updates) = sync_channel(1);
        self.requests.try_send(done).ok()?;
        self.job.wake();
        updates.recv_timeout(UPDATE).ok()
    }
}

/// Updates lists when they are due.
pub struct Refresher {
    proofs: Arc<Proofs>,
    from: ListSettings,
    clock: Clock,
    due: Vec<Due>,
    random: RandomState,
}

struct Due {
    list: ListIndex,
    at: Timestamp,
    tried: Timestamp,
    failures: u32,
}

impl Refresher {
    /// Plans the updates of lists from where the settings say, and of key directories if signatures
    /// are verified; of none if neither servers nor files may be read. A list that is known is due
    /// about a day after its last check; files and unknown lists are due at once.
    pub fn new(proofs: Arc<Proofs>, settings: &IdentitySettings, clock: Clock) -> Refresher {
        let random = RandomState::new();
        let from = settings.lists.clone();
        let is_file = matches!(from, ListSettings::Directory(_));
        let mut due = Vec::new();
        for (list, url) in proofs.lists.all() {
            let is_used = if is_directory(url) {
                settings.signatures
            } else {
                from != ListSettings::Off
            };
            if !is_used || !(settings.outgoing || is_file) {
                continue;
            }
            let known = proofs.lists.get(list).filter(|_| !is_file);
            let at = known.map_or(Timestamp(i64::MIN), |known| {
                known.copy.checked.plus(spread(&random, list, DAY))
            });
            due.push(Due {
                list,
                at,
                tried: Timestamp(i64::MIN),
                failures: 0,
            });
        }
        Refresher {
            proofs,
            from,
            clock,
            due,
            random,
        }
    }

    /// Updates lists from now on when they are due, and all of them for each request. `None` if no
    /// list is planned.
    pub fn start(mut self, scheduler: &Scheduler) -> Option<UpdateHandle> {
        if self.due.is_empty() {
            return None;
        }
        let (requests, received) = sync_channel::<SyncSender<_>>(1);
        let job = scheduler.add("network-lists", move |_| {
            match received.try_recv() {
                // The command that asked may have ended.
                Ok(done) => drop(done.send(self.update(true))),
                Err(_) => drop(self.update(false)),
            }
            Some(self.idle_for())
        });
        Some(UpdateHandle { requests, job })
    }

    /// The time until a list is due, at least `SHORTEST` and at most `LONGEST`.
    fn idle_for(&self) -> Duration {
        let now = self.clock.moment().now;
        let next = self.due.iter().map(|due| due.at.since(now)).min();
        next.unwrap_or(LONGEST).clamp(SHORTEST, LONGEST)
    }

    /// Updates the lists that are due or wanted, or all. Plans their next updates, logs what is
    /// news, and returns every update.
    fn update(&mut self, all: bool) -> Vec<ListUpdate> {
        let now = self.clock.moment().now;
        let wanted: Vec<ListIndex> = self
            .due
            .iter()
            .filter(|due| all || due.at <= now || self.is_wanted(due, now))
            .map(|due| due.list)
            .collect();
        let mut updates = Vec::new();
        let mut news = Vec::new();
        for (list, update) in update_all(&self.proofs.lists, &wanted, &self.from, now) {
            if self.settle(list, update.as_ref(), now) {
                news.extend(update.clone());
            }
            updates.extend(update);
        }
        tell(&news);
        updates
    }

    /// Whether a request asked for keys that may be new, and the last try is five minutes ago.
    fn is_wanted(&self, due: &Due, now: Timestamp) -> bool {
        self.proofs.lists.is_wanted(due.list) && now >= due.tried.plus(FIRST_RETRY)
    }

    /// Plans the next update of a list by the result of this one (`None`: its thread panicked):
    /// after a minute for files, after a day, or sooner after a failure. Returns whether it is
    /// worth a log line: a failing file is read every minute, and logged once.
    fn settle(&mut self, list: ListIndex, update: Option<&ListUpdate>, now: Timestamp) -> bool {
        let is_file = matches!(self.from, ListSettings::Directory(_));
        let Some(due) = self.due.iter_mut().find(|due| due.list == list) else {
            return false;
        };
        let succeeded = update.is_some_and(|update| !update.result.is_failure());
        due.tried = now;
        due.failures = if succeeded { 0 } else { due.failures + 1 };
        let wait = match (is_file, due.failures) {
            (true, _) => FILES,
            (false, 0) => DAY,
            (false, failures) => (FIRST_RETRY * 2u32.pow((failures - 1).min(10))).min(LAST_RETRY),
        };
        due.at = now.plus(spread(&self.random, list, wait));
        !is_file || due.failures <= 1
    }
}

/// A time between nine and eleven tenths of this one, so that servers are not asked by everybody at
/// once.
fn spread(random: &RandomState, list: ListIndex, time: Duration) -> Duration {
    let part = (random.hash_one(list) % 1_000) as f64 / 5_000.0;
    time.mul_f64(0.9 + part)
}

/// Logs what changed. Lists that could not be fetched are one line, because an outage concerns all
/// lists.
fn tell(updates: &[ListUpdate]) {
    for update in updates {
        let url = &update.url;
        let error = update.error.as_deref().unwrap_or_default();
        match update.result {
            UpdateResult::Changed => {
                tracing::info!(
                    url,
                    networks = update.networks,
                    added = update.added.len(),
                    removed = update.removed.len(),
                    "a list of networks changed"
                );
            }
            UpdateResult::Refused => {
                tracing::warn!(
                    url,
                    "a list of networks is not believed: {error}; crawlgate keeps the former list"
                );
            }
            UpdateResult::Unchanged | UpdateResult::Unreachable | UpdateResult::Absent => {}
        }
    }
    let unreachable: Vec<&ListUpdate> = updates
        .iter()
        .filter(|update| update.result == UpdateResult::Unreachable)
        .collect();
    if let Some(first) = unreachable.first() {
        tracing::warn!(
            lists = unreachable.len(),
            "cannot read lists of networks, the first is {}: {}; crawlgate goes by the former lists and tries again",
            first.url,
            first.error.as_deref().unwrap_or_default()
        );
    }
}

#[cfg(test)]
mod tests {
    use super::{RandomState, file_name, redirected, spread};
    use crate::identity::ListIndex;
    use std::time::Duration;

    #[test]
    fn copies_are_named_after_the_url() {
        assert_eq!(
            file_name("https://openai.com/gptbot.json"),
            "openai.com/gptbot.json"
        );
        assert_eq!(
            file_name("https://www.cloudflare.com/ips-v4/"),
            "www.cloudflare.com/ips-v4"
        );
    }

    #[test]
    fn lists_are_due_at_different_times() {
        let random = RandomState::new();
        let times: std::collections::BTreeSet<Duration> = (0..50)
            .map(|list| spread(&random, ListIndex(list), Duration::from_secs(1_000)))
            .collect();
        assert!(times.len() > 20);
        assert!(
            times
                .iter()
                .all(|time| (900..=1_100).contains(&time.as_secs()))
        );
    }

    #[test]
    fn redirects_never_leave_tls() {
        let to = |from: &str, location: &str| redirected(from, location).unwrap_or_default();
        assert_eq!(to("https://a.example/x", "/y"), "https://a.example/y");
        assert_eq!(
            to("https://a.example/x", "https://b.example/y"),
            "https://b.example/y"
        );
        assert_eq!(to("https://a.example/x", "http://b.example/y"), "");
        assert_eq!(
            to("http://a.example/x", "http://b.example/y"),
            "http://b.example/y"
        );
        for refused in ["//b.example/y", "y", "", "file:///etc/passwd"] {
            assert_eq!(to("https://a.example/x", refused), "", "{refused}");
        }
    }
}
