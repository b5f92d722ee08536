//! [`ListRefresher`] keeps the published lists of crawlers' networks and keys up to date, as a job
//! of the scheduler. It fetches each due list from the list's server or a mirror, or reads it from
//! a file. [`PublishedLists::replace_list`] accepts or rejects the list.
//!
//! A list is due about a day after its server last confirmed it. After a failure it is due in about
//! five minutes, then in twice that, up to six hours. A key directory is due sooner when a request
//! has an unknown key. Files are read every minute.

use super::IdentityProofs;
use super::means::{ListIndex, is_directory};
use super::published::{FetchedList, PublishedLists};
use crate::clock::Clock;
use crate::crawlers::MAX_LIST_BYTES;
use crate::download::{client_config, failure_reason, header_text, read_body, with_validators};
use crate::files;
use crate::scheduler::{JobWaker, Scheduler};
use crate::settings::{IdentitySettings, ListSource};
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

const LIST_INTERVAL: Duration = Duration::from_secs(86_400);
const FILE_INTERVAL: Duration = Duration::from_secs(60);
const FIRST_RETRY: Duration = Duration::from_secs(300);
const MAX_RETRY: Duration = Duration::from_secs(6 * 3_600);
const MAX_PARALLEL_FETCHES: usize = 16;
/// The longest wait: the clock may be set in between.
const MAX_IDLE: Duration = Duration::from_secs(5);
const MIN_IDLE: Duration = Duration::from_millis(50);
/// For an update that an operator requested.
const UPDATE_TIMEOUT: Duration = Duration::from_secs(100);
const MAX_REDIRECTS: usize = 5;
/// For a list with all redirects.
const FETCH_TIMEOUT: Duration = Duration::from_secs(20);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The report about the update of one list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListUpdate {
    /// The URL of the list.
    pub url: String,
    /// The result.
    pub result: UpdateResult,
    /// How many networks or keys the list has now.
    pub networks: usize,
    /// New networks.
    pub added: Vec<IpNet>,
    /// Removed networks.
    pub removed: Vec<IpNet>,
    /// Why the update failed. The former list stays in use.
    pub error: Option<String>,
}

/// The result of an update.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UpdateResult {
    /// The list differs from the former one.
    Changed,
    /// The list is the same.
    #[default]
    Unchanged,
    /// The list could not be fetched.
    Unreachable,
    /// The list was fetched and rejected.
    Refused,
    /// The directory or mirror has no copy, and there was none before.
    Absent,
}

impl ListUpdate {
    fn fail(&mut self, result: UpdateResult, error: String) {
        self.result = result;
        self.error = Some(error);
    }
}

impl UpdateResult {
    /// Whether it needs attention.
    pub fn is_failure(self) -> bool {
        matches!(self, UpdateResult::Unreachable | UpdateResult::Refused)
    }
}

/// Updates one list now from where the settings say, or from its own server if lists are off. Records
/// a failure, after which the former list stays.
pub fn update_list(
    lists: &PublishedLists,
    list: ListIndex,
    from: &ListSource,
    now: Timestamp,
) -> ListUpdate {
    let url = lists.url(list).to_owned();
    let known = lists.get(list);
    let validators = known
        .as_deref()
        .map(|known| (known.copy.etag.as_str(), known.copy.last_modified.as_str()));
    let (etag, last_modified) = validators.unwrap_or_default();
    let is_copy = matches!(from, ListSource::Directory(_) | ListSource::Mirror(_));
    let (fetched, checked) = match from {
        ListSource::Directory(directory) => {
            read_list_file(&directory.join(list_file_name(&url)), last_modified, now)
        }
        ListSource::Mirror(mirror) => (
            fetch_list(
                &format!("{mirror}/{}", list_file_name(&url)),
                etag,
                last_modified,
            ),
            now,
        ),
        ListSource::Published | ListSource::Off => (fetch_list(&url, etag, last_modified), now),
    };
    let networks = known.as_ref().map_or(0, |known| known.entry_count());
    let mut result = ListUpdate {
        url,
        networks,
        ..ListUpdate::default()
    };
    match fetched {
        Ok(ListFetch::Unchanged) => lists.record_confirmation(list, checked),
        // An operator's server should have it; a mirror and a directory need not.
        Ok(ListFetch::Absent) if networks == 0 && is_copy => result.result = UpdateResult::Absent,
        Ok(ListFetch::Absent) => {
            let error = if is_copy {
                "its copy is gone"
            } else {
                "its server has none (404 or 410)"
            };
            result.fail(UpdateResult::Unreachable, error.to_owned());
        }
        Err(error) => result.fail(UpdateResult::Unreachable, error),
        Ok(ListFetch::List(fetched)) => match lists.replace_list(list, fetched, checked) {
            Ok(change) => {
                if change.is_changed {
                    result.result = UpdateResult::Changed;
                }
                result.added = change.added;
                result.removed = change.removed;
                result.networks = change.networks;
            }
            Err(error) => result.fail(UpdateResult::Refused, error.to_string()),
        },
    }
    lists.record_update(list, now, result.error.as_deref());
    result
}

/// Updates these lists in parallel, and waits for all. An update is `None` if its thread panicked.
pub fn update_lists(
    lists: &PublishedLists,
    wanted: &[ListIndex],
    from: &ListSource,
    now: Timestamp,
) -> Vec<(ListIndex, Option<ListUpdate>)> {
    let mut updates = Vec::with_capacity(wanted.len());
    for some in wanted.chunks(MAX_PARALLEL_FETCHES) {
        thread::scope(|scope| {
            let mut started = Vec::new();
            for &list in some {
                started.push((
                    list,
                    scope.spawn(move || update_list(lists, list, from, now)),
                ));
            }
            for (list, thread) in started {
                // A panic is logged.
                updates.push((list, thread.join().ok()));
            }
        });
    }
    updates
}

/// The result of fetching a list, unless that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ListFetch {
    List(FetchedList),
    Unchanged,
    /// Status 404 or 410, or there is no file.
    Absent,
}

/// Fetches a list over HTTP, with limits for redirects, size and time. The validators are those of
/// the known list, or empty.
fn fetch_list(url: &str, etag: &str, last_modified: &str) -> Result<ListFetch, String> {
    let deadline = Instant::now() + FETCH_TIMEOUT;
    let mut url = url.to_owned();
    for _ in 0..=MAX_REDIRECTS {
        let left = deadline
            .saturating_duration_since(Instant::now())
            .max(Duration::from_millis(1));
        let agent = ureq::Agent::new_with_config(
            client_config(left)
                .timeout_connect(Some(CONNECT_TIMEOUT))
                .build(),
        );
        let request = agent
            .get(&url)
            .header("accept", "application/json, text/plain;q=0.9, */*;q=0.5");
        let response = with_validators(request, Some(etag), Some(last_modified)).call();
        let response = response.map_err(|error| failure_reason(&error))?;
        match response.status().as_u16() {
            200 => {
                let etag = header_text(&response, "etag").unwrap_or_default();
                let last_modified = header_text(&response, "last-modified").unwrap_or_default();
                let bytes = read_body(response.into_body(), MAX_LIST_BYTES)
                    .map_err(|error| format!("the answer was cut off: {error}"))?;
                return Ok(ListFetch::List(FetchedList {
                    bytes,
                    etag,
                    last_modified,
                }));
            }
            304 if !(etag.is_empty() && last_modified.is_empty()) => {
                return Ok(ListFetch::Unchanged);
            }
            status @ (301 | 302 | 303 | 307 | 308) => {
                let location = header_text(&response, "location").unwrap_or_default();
                url = redirect_target(&url, &location)
                    .ok_or_else(|| format!("the Location of the {status} cannot be followed"))?;
            }
            404 | 410 => return Ok(ListFetch::Absent),
            status => return Err(format!("the answer is {status}")),
        }
    }
    Err(format!("more than {MAX_REDIRECTS} redirects"))
}

/// `None` if the redirect leads from https to http, or is neither a whole URL nor an absolute path.
fn redirect_target(from: &str, location: &str) -> Option<String> {
    let (scheme, rest) = from.split_once("://")?;
    let authority = rest.split('/').next()?;
    if location.starts_with("https://") || scheme == "http" && location.starts_with("http://") {
        return Some(location.to_owned());
    }
    let is_path = location.starts_with('/') && !location.starts_with("//");
    is_path.then(|| format!("{scheme}://{authority}{location}"))
}

/// Reads a list from a file, and returns when it was confirmed: its modification time, at most `now`,
/// which stands for `Last-Modified`, too. A missing file was confirmed now.
fn read_list_file(
    path: &Path,
    last_modified: &str,
    now: Timestamp,
) -> (Result<ListFetch, String>, Timestamp) {
    match read_changed_file(path, last_modified, now) {
        Ok((read, confirmed)) => (Ok(read), confirmed),
        Err(error) if error.kind() == io::ErrorKind::NotFound => (Ok(ListFetch::Absent), now),
        Err(error) => (Err(format!("{}: {error}", path.display())), now),
    }
}

/// `Unchanged` if the modification time is `last_modified`.
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
        bytes: files::read_file_up_to(path, MAX_LIST_BYTES as u64)?,
        etag: String::new(),
        last_modified: date,
    };
    Ok((ListFetch::List(fetched), changed))
}

/// The path of a list's copy in a directory or mirror: `openai.com/gptbot.json`.
pub fn list_file_name(url: &str) -> &str {
    url.trim_start_matches("https://").trim_end_matches('/')
}

/// A handle for updates of all lists that an operator requests.
pub struct ListUpdateHandle {
    requests: SyncSender<SyncSender<Vec<ListUpdate>>>,
    job: JobWaker,
}

impl ListUpdateHandle {
    /// Updates all lists now and waits for it. `None` after a timeout, if the scheduler has ended, or if
    /// another such update waits.
    pub fn update_now(&self) -> Option<Vec<ListUpdate>> {
        let (done, updates) = sync_channel(1);
        self.requests.try_send(done).ok()?;
        self.job.wake();
        updates.recv_timeout(UPDATE_TIMEOUT).ok()
    }
}

/// The plan of updates.
pub struct ListRefresher {
    proofs: Arc<IdentityProofs>,
    from: ListSource,
    clock: Clock,
    planned: Vec<PlannedUpdate>,
    random: RandomState,
}

/// When a list is to be updated.
struct PlannedUpdate {
    list: ListIndex,
    due_at: Timestamp,
    last_try: Timestamp,
    /// Failures in a row.
    failures: u32,
}

impl ListRefresher {
    /// Plans the updates of the lists in use. Known lists are due about a day after their last check,
    /// files and unknown lists at once.
    pub fn new(
        proofs: Arc<IdentityProofs>,
        settings: &IdentitySettings,
        clock: Clock,
    ) -> ListRefresher {
        let random = RandomState::new();
        let from = settings.lists.clone();
        let is_file = matches!(from, ListSource::Directory(_));
        let mut planned = Vec::new();
        for (list, url) in proofs.lists.all() {
            let is_used = if is_directory(url) {
                settings.signatures
            } else {
                from != ListSource::Off
            };
            if !is_used || !(settings.outgoing || is_file) {
                continue;
            }
            let known = proofs.lists.get(list).filter(|_| !is_file);
            let due_at = known.map_or(Timestamp(i64::MIN), |known| {
                known
                    .copy
                    .checked
                    .plus(jittered(&random, list, LIST_INTERVAL))
            });
            planned.push(PlannedUpdate {
                list,
                due_at,
                last_try: Timestamp(i64::MIN),
                failures: 0,
            });
        }
        ListRefresher {
            proofs,
            from,
            clock,
            planned,
            random,
        }
    }

    /// Updates due lists from now on, and all lists on request. `None` if no list is planned.
    pub fn start(mut self, scheduler: &Scheduler) -> Option<ListUpdateHandle> {
        if self.planned.is_empty() {
            return None;
        }
        let (requests, received) = sync_channel::<SyncSender<_>>(1);
        let job = scheduler.add("network-lists", move |_| {
            match received.try_recv() {
                // The client may have given up.
                Ok(done) => drop(done.send(self.update_due(true))),
                Err(_) => drop(self.update_due(false)),
            }
            Some(self.time_until_due())
        });
        Some(ListUpdateHandle { requests, job })
    }

    fn time_until_due(&self) -> Duration {
        let now = self.clock.moment().now;
        let next = self.planned.iter().map(|due| due.due_at.since(now)).min();
        next.unwrap_or(MAX_IDLE).clamp(MIN_IDLE, MAX_IDLE)
    }

    /// Updates the due and the requested lists, or all, and plans their next updates.
    fn update_due(&mut self, all: bool) -> Vec<ListUpdate> {
        let now = self.clock.moment().now;
        let wanted: Vec<ListIndex> = self
            .planned
            .iter()
            .filter(|due| all || due.due_at <= now || self.is_requested(due, now))
            .map(|due| due.list)
            .collect();
        let mut updates = Vec::new();
        let mut news = Vec::new();
        for (list, update) in update_lists(&self.proofs.lists, &wanted, &self.from, now) {
            if self.plan_next(list, update.as_ref(), now) {
                news.extend(update.clone());
            }
            updates.extend(update);
        }
        log_updates(&news);
        updates
    }

    /// Whether a request has an unknown key, and the last try is five minutes ago.
    fn is_requested(&self, due: &PlannedUpdate, now: Timestamp) -> bool {
        self.proofs.lists.is_fetch_requested(due.list) && now >= due.last_try.plus(FIRST_RETRY)
    }

    /// Plans the next update of a list after this one (`None`: its thread panicked). Returns whether
    /// to log it: a failing file is read every minute, and logged once.
    fn plan_next(&mut self, list: ListIndex, update: Option<&ListUpdate>, now: Timestamp) -> bool {
        let is_file = matches!(self.from, ListSource::Directory(_));
        let Some(due) = self.planned.iter_mut().find(|due| due.list == list) else {
            return false;
        };
        let succeeded = update.is_some_and(|update| !update.result.is_failure());
        due.last_try = now;
        due.failures = if succeeded { 0 } else { due.failures + 1 };
        let wait = match (is_file, due.failures) {
            (true, _) => FILE_INTERVAL,
            (false, 0) => LIST_INTERVAL,
            (false, failures) => (FIRST_RETRY * 2u32.pow((failures - 1).min(10))).min(MAX_RETRY),
        };
        due.due_at = now.plus(jittered(&self.random, list, wait));
        !is_file || due.failures <= 1
    }
}

/// A duration between 0.9 and 1.1 of this one, so that instances do not ask servers at once.
fn jittered(random: &RandomState, list: ListIndex, time: Duration) -> Duration {
    let part = (random.hash_one(list) % 1_000) as f64 / 5_000.0;
    time.mul_f64(0.9 + part)
}

/// Logs changed and rejected lists. Unreachable lists are one line, because an outage concerns all.
fn log_updates(updates: &[ListUpdate]) {
    use UpdateResult::*;

    for update in updates {
        let url = &update.url;
        let error = update.error.as_deref().unwrap_or_default();
        match update.result {
            Changed => {
                tracing::info!(
                    url,
                    networks = update.networks,
                    added = update.added.len(),
                    removed = update.removed.len(),
                    "a list of networks changed"
                );
            }
            Refused => {
                tracing::warn!(
                    url,
                    "a new list of networks is not used: {error}; crawlgate keeps the old list"
                );
            }
            Unchanged | Unreachable | Absent => {}
        }
    }
    let unreachable: Vec<&ListUpdate> = updates
        .iter()
        .filter(|update| update.result == Unreachable)
        .collect();
    if let Some(first) = unreachable.first() {
        tracing::warn!(
            lists = unreachable.len(),
            "cannot read some lists of networks. The first is {}: {}. crawlgate uses the old lists and tries again",
            first.url,
            first.error.as_deref().unwrap_or_default()
        );
    }
}

#[cfg(test)]
mod tests {
    use super::{RandomState, jittered, list_file_name, redirect_target};
    use crate::identity::ListIndex;
    use std::time::Duration;

    #[test]
    fn copies_are_named_by_url() {
        assert_eq!(
            list_file_name("https://openai.com/gptbot.json"),
            "openai.com/gptbot.json"
        );
        assert_eq!(
            list_file_name("https://www.cloudflare.com/ips-v4/"),
            "www.cloudflare.com/ips-v4"
        );
    }

    #[test]
    fn lists_are_due_at_different_times() {
        let random = RandomState::new();
        let times: std::collections::BTreeSet<Duration> = (0..50)
            .map(|list| jittered(&random, ListIndex(list), Duration::from_secs(1_000)))
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
        let to = |from: &str, location: &str| redirect_target(from, location).unwrap_or_default();
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
