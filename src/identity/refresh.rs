//! [`ListRefresher`] keeps the published lists of crawlers' networks and keys up to date, as a job
//! of the scheduler. It fetches each due list from the list's server or a mirror, or reads it from
//! a file. [`PublishedLists::replace_list`] accepts or rejects the list.
//!
//! A list is due about a day after its server last confirmed it. After a failure the list is due in
//! about five minutes. Each further failure doubles this delay, up to six hours. A key directory is
//! due sooner when a request has an unknown key. Files are read every minute.

use super::IdentityVerifier;
use super::means::{ListId, is_directory};
use super::published::{FetchedList, PublishedLists};
pub use super::published::{ListUpdateReport, ListUpdateResult};
use crate::clock::Clock;
use crate::crawlers::MAX_LIST_BYTES;
use crate::download::{client_config, failure_reason, header_text, read_body, with_validators};
use crate::facts::NetworkList;
use crate::files;
use crate::scheduler::{JobWaker, Scheduler};
use crate::settings::{IdentitySettings, ListSource};
use crate::time::Timestamp;
use ListFetchResult::*;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

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
const MAX_REDIRECTS: u32 = 5;
/// For a list with all redirects.
const FETCH_TIMEOUT: Duration = Duration::from_secs(20);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Updates one list now from where the settings say, or from its own server if lists are off. Records
/// a failure, after which the former list stays.
pub fn update_list(
    lists: &PublishedLists,
    list: ListId,
    from: &ListSource,
    now: Timestamp,
) -> ListUpdateReport {
    use ListSource::*;
    let url = lists.url(list).to_owned();
    let known = lists.get(list);
    let former = known.as_deref().map(|known| &known.copy);
    let is_copy = matches!(from, Directory(_) | Mirror(_));
    let fetched = match from {
        Directory(directory) => read_list_file(&directory.join(list_file_name(&url)), former, now),
        Mirror(mirror) => fetch_list(&format!("{mirror}/{}", list_file_name(&url)), former, now),
        Published | Off => fetch_list(&url, former, now),
    };
    let networks = known.as_ref().map_or(0, |known| known.entry_count());
    let mut result = ListUpdateReport {
        url,
        networks,
        ..ListUpdateReport::default()
    };
    match fetched {
        Ok(Unchanged(checked)) => lists.record_confirmation(list, checked),
        // An operator's server should have it; a mirror and a directory need not.
        Ok(Absent) if networks == 0 && is_copy => result.result = ListUpdateResult::Absent,
        Ok(Absent) => {
            let error = if is_copy {
                "its copy is gone"
            } else {
                "its server has none (404 or 410)"
            };
            result.fail(ListUpdateResult::Unreachable, error.to_owned());
        }
        Err(error) => result.fail(ListUpdateResult::Unreachable, error),
        Ok(List(fetched)) => match lists.replace_list(list, fetched) {
            Ok(update) => result = update,
            Err(error) => result.fail(ListUpdateResult::Refused, error.to_string()),
        },
    }
    lists.record_update(list, now, result.error.as_deref());
    result
}

/// Updates these lists in parallel, and waits for all. An update is `None` if its thread panicked.
pub fn update_lists(
    lists: &PublishedLists,
    wanted: &[ListId],
    from: &ListSource,
    now: Timestamp,
) -> Vec<(ListId, Option<ListUpdateReport>)> {
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
enum ListFetchResult {
    List(FetchedList),
    /// The former list was confirmed at this moment.
    Unchanged(Timestamp),
    /// Status 404 or 410, or there is no file.
    Absent,
}

/// Fetches a list over HTTP, with limits for redirects, size and time. A list with an https URL
/// is never fetched over http.
fn fetch_list(
    url: &str,
    former: Option<&NetworkList>,
    now: Timestamp,
) -> Result<ListFetchResult, String> {
    let config = client_config(FETCH_TIMEOUT)
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .max_redirects(MAX_REDIRECTS)
        .max_redirects_will_error(true)
        .https_only(url.starts_with("https:"));
    let request = ureq::Agent::new_with_config(config.build())
        .get(url)
        .header("accept", "application/json, text/plain;q=0.9, */*;q=0.5");
    let etag = former.map(|former| former.etag.as_str());
    let last_modified = former.map(|former| former.last_modified.as_str());
    let response = with_validators(request, etag, last_modified).call();
    let response = response.map_err(|error| failure_reason(&error))?;
    match response.status().as_u16() {
        200 => Ok(List(FetchedList {
            etag: header_text(&response, "etag").unwrap_or_default(),
            last_modified: header_text(&response, "last-modified").unwrap_or_default(),
            bytes: read_body(response.into_body(), MAX_LIST_BYTES)
                .map_err(|error| format!("the answer was cut off: {error}"))?,
            checked: now,
        })),
        304 if [etag, last_modified]
            .iter()
            .flatten()
            .any(|known| !known.is_empty()) =>
        {
            Ok(Unchanged(now))
        }
        404 | 410 => Ok(Absent),
        status => Err(format!("the answer is {status}")),
    }
}

/// Reads a list from a file. It was confirmed at its modification time, at most `now`, which stands
/// for `Last-Modified`, too.
fn read_list_file(
    path: &Path,
    former: Option<&NetworkList>,
    now: Timestamp,
) -> Result<ListFetchResult, String> {
    match read_changed_file(path, former, now) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Absent),
        read => read.map_err(|error| format!("{}: {error}", path.display())),
    }
}

/// `Unchanged` if the modification time is that of the former list.
fn read_changed_file(
    path: &Path,
    former: Option<&NetworkList>,
    now: Timestamp,
) -> io::Result<ListFetchResult> {
    let checked = Timestamp::from(fs::metadata(path)?.modified()?).min(now);
    let last_modified = checked.to_http_date();
    if former.is_some_and(|former| former.last_modified == last_modified) {
        return Ok(Unchanged(checked));
    }
    Ok(List(FetchedList {
        bytes: files::read_file_up_to(path, MAX_LIST_BYTES as u64)?,
        etag: String::new(),
        last_modified,
        checked,
    }))
}

/// The path of a list's copy in a directory or mirror: `openai.com/gptbot.json`.
pub fn list_file_name(url: &str) -> &str {
    url.trim_start_matches("https://").trim_end_matches('/')
}

/// A handle for updates of all lists that an operator requests.
pub struct ListUpdateHandle {
    requests: SyncSender<SyncSender<Vec<ListUpdateReport>>>,
    job: JobWaker,
}

impl ListUpdateHandle {
    /// Updates all lists now and waits for it. `None` after a timeout, if the scheduler has ended, or if
    /// another such update waits.
    pub fn update_now(&self) -> Option<Vec<ListUpdateReport>> {
        let (done, updates) = sync_channel(1);
        self.requests.try_send(done).ok()?;
        self.job.wake();
        updates.recv_timeout(UPDATE_TIMEOUT).ok()
    }
}

/// The plan of updates.
pub struct ListRefresher {
    proofs: Arc<IdentityVerifier>,
    from: ListSource,
    clock: Clock,
    planned: Vec<PlannedUpdate>,
    random: RandomState,
}

/// When a list is to be updated.
struct PlannedUpdate {
    list: ListId,
    due_at: Timestamp,
    last_try: Timestamp,
    /// Failures in a row.
    failures: u32,
}

impl ListRefresher {
    /// Plans the updates of the lists in use. Known lists are due about a day after their last check,
    /// files and unknown lists at once.
    pub fn new(
        proofs: Arc<IdentityVerifier>,
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
    fn update_due(&mut self, all: bool) -> Vec<ListUpdateReport> {
        let now = self.clock.moment().now;
        let wanted: Vec<ListId> = self
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
    fn plan_next(
        &mut self,
        list: ListId,
        update: Option<&ListUpdateReport>,
        now: Timestamp,
    ) -> bool {
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
fn jittered(random: &RandomState, list: ListId, time: Duration) -> Duration {
    let part = (random.hash_one(list) % 1_000) as f64 / 5_000.0;
    time.mul_f64(0.9 + part)
}

/// Logs changed and rejected lists. Unreachable lists are one line, because an outage concerns all.
fn log_updates(updates: &[ListUpdateReport]) {
    use ListUpdateResult::*;

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
    let unreachable: Vec<&ListUpdateReport> = updates
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
    use super::{RandomState, jittered, list_file_name};
    use crate::identity::ListId;
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
            .map(|list| jittered(&random, ListId(list), Duration::from_secs(1_000)))
            .collect();
        assert!(times.len() > 20);
        assert!(
            times
                .iter()
                .all(|time| (900..=1_100).contains(&time.as_secs()))
        );
    }
}
