//! [`TopPaths`]: the paths that each crawler requested most today, counted in bounded memory. There
//! is one [`TopKSketch`] for each site, crawler and identity (such as verified or impostor). The
//! counts are stored in the state database once a minute. At a restart, the counts of the same day
//! are read back.

use super::truncate_label;
use crate::bounded::PrehashedKeys;
use crate::heads::{origin_form, path_of};
use crate::locks::lock;
use crate::sketch::{CountedKey, TopKSketch};
use crate::time::Timestamp;
use crate::verdict::IdentityStatus;
use ahash::RandomState;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Mutex;

/// The most paths of one crawler on one site.
const MAX_PATHS: usize = 256;
/// The most paths of all crawlers.
const MAX_ALL_PATHS: usize = 32_768;
/// The most bytes of a path.
const MAX_PATH_BYTES: usize = 200;
const DAY: i64 = 86_400;
/// How many seconds changed paths wait before they are taken.
const TAKE_EVERY: i64 = 60;

/// Whose paths they are. Impostors have their own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TopPathsKey {
    /// The name of the site.
    pub site: Box<str>,
    /// The crawler's label.
    pub crawler: Box<str>,
    /// What is proven of the name.
    pub identity: IdentityStatus,
}

/// A request of a crawler for a path.
pub struct PathRequest<'a> {
    /// The name of the site.
    pub site: &'a str,
    /// The crawler's label.
    pub crawler: &'a str,
    /// What is proven of the name.
    pub identity: IdentityStatus,
    /// The request target as sent.
    pub target: &'a [u8],
    /// When it came.
    pub time: Timestamp,
}

/// The paths of one crawler on one site and one day.
#[derive(Debug, PartialEq, Eq)]
pub struct DayPaths {
    /// The beginning of the day, UTC.
    pub day: Timestamp,
    /// Whose they are.
    pub owner: TopPathsKey,
    /// Each path with its requests and their possible error.
    pub paths: Vec<CountedKey>,
}

/// The most requested paths of all crawlers.
#[derive(Default)]
pub struct TopPaths {
    hasher: RandomState,
    today: Mutex<TodayPaths>,
}

#[derive(Default)]
struct TodayPaths {
    /// Days since 1970.
    day: i64,
    /// By the hash of the owner.
    groups: HashMap<u64, PathSketch, PrehashedKeys>,
    /// The number of paths of all groups.
    paths: usize,
    /// The paths of the day before, until they are taken.
    ended: Vec<DayPaths>,
    /// When paths were last taken.
    taken: Timestamp,
}

struct PathSketch {
    owner: TopPathsKey,
    sketch: TopKSketch,
    /// A request was counted since the history took the paths.
    is_changed: bool,
}

impl TopPaths {
    /// Counts a request for a target, without its query. A new path that finds all counters taken
    /// takes the place of the crawler's least requested one. A crawler that finds all of them taken
    /// at its first request is not counted that day.
    pub fn count(&self, request: &PathRequest<'_>) {
        let site = truncate_label(request.site);
        let crawler = truncate_label(request.crawler);
        let path = printable_path(request.target);
        let hash = self.hash(site, crawler, request.identity);
        let mut today = lock(&self.today);
        today.begin_day(request.time);
        let has_space = today.paths < MAX_ALL_PATHS;
        let TodayPaths { groups, paths, .. } = &mut *today;
        if !has_space && !groups.contains_key(&hash) {
            return;
        }
        let group = groups.entry(hash).or_insert_with(|| PathSketch {
            owner: TopPathsKey {
                site: site.into(),
                crawler: crawler.into(),
                identity: request.identity,
            },
            sketch: TopKSketch::new(MAX_PATHS),
            is_changed: false,
        });
        let before = group.sketch.len();
        group.sketch.add(&path, has_space);
        *paths += group.sketch.len() - before;
        group.is_changed = true;
    }

    fn hash(&self, site: &str, crawler: &str, identity: IdentityStatus) -> u64 {
        self.hasher.hash_one((site, crawler, identity as u8))
    }

    /// Continues the paths of today that a former run stored. Ignores those of other days.
    pub fn restore(&self, stored: Vec<DayPaths>, now: Timestamp) {
        let mut today = lock(&self.today);
        today.begin_day(now);
        for DayPaths { day, owner, paths } in stored {
            if day.0 != today.day * DAY || today.paths + paths.len() > MAX_ALL_PATHS {
                continue;
            }
            let hash = self.hash(&owner.site, &owner.crawler, owner.identity);
            let sketch = TopKSketch::from_keys(MAX_PATHS, paths);
            today.paths += sketch.len();
            let group = PathSketch {
                owner,
                sketch,
                is_changed: false,
            };
            if let Some(replaced) = today.groups.insert(hash, group) {
                today.paths -= replaced.sketch.len();
            }
        }
    }

    /// [`TopPaths::take_changed`] once a minute and after the end of a day; otherwise nothing.
    pub fn take_due(&self, now: Timestamp) -> Vec<DayPaths> {
        let mut today = lock(&self.today);
        today.begin_day(now);
        // Also if the clock was set back.
        let is_due = !(0..TAKE_EVERY).contains(&(now.0 - today.taken.0));
        if is_due || !today.ended.is_empty() {
            today.take_changed(now)
        } else {
            Vec::new()
        }
    }

    /// Takes the paths of each crawler that requested one since the last call, all of that day.
    pub fn take_changed(&self, now: Timestamp) -> Vec<DayPaths> {
        let mut today = lock(&self.today);
        today.begin_day(now);
        today.take_changed(now)
    }

    /// Removes the paths of sites that are not kept.
    pub fn remove_sites(&self, keep: &dyn Fn(&str) -> bool) {
        let mut today = lock(&self.today);
        today.groups.retain(|_, group| keep(&group.owner.site));
        today.paths = today.groups.values().map(|group| group.sketch.len()).sum();
    }
}

impl TodayPaths {
    /// Ends the day before if `now` is on a later one. A clock that was set back counts on.
    fn begin_day(&mut self, now: Timestamp) {
        let day = now.0.div_euclid(DAY);
        if day <= self.day {
            return;
        }
        let ended = Timestamp(self.day * DAY);
        let groups = self.groups.drain().map(|(_, group)| group);
        // Of one day alone, so they are bounded even if the history takes none.
        self.ended = groups
            .filter(|group| group.is_changed)
            .map(|group| group.day_paths(ended))
            .collect();
        self.paths = 0;
        self.day = day;
    }

    fn take_changed(&mut self, now: Timestamp) -> Vec<DayPaths> {
        let day = Timestamp(self.day * DAY);
        let mut taken = std::mem::take(&mut self.ended);
        for group in self.groups.values_mut().filter(|group| group.is_changed) {
            group.is_changed = false;
            taken.push(group.day_paths(day));
        }
        if !taken.is_empty() {
            self.taken = now;
        }
        taken
    }
}

impl PathSketch {
    fn day_paths(&self, day: Timestamp) -> DayPaths {
        DayPaths {
            day,
            owner: self.owner.clone(),
            paths: self.sketch.iter().collect(),
        }
    }
}

/// The path of a target in printable ASCII, at most `MAX_PATH_BYTES` of it. Bytes that no URL has
/// are percent-encoded.
pub fn printable_path(target: &[u8]) -> Cow<'_, [u8]> {
    let path = match origin_form(target) {
        Cow::Borrowed(target) => Cow::Borrowed(path_of(target)),
        Cow::Owned(target) => Cow::Owned(path_of(&target).to_vec()),
    };
    if path.len() <= MAX_PATH_BYTES && path.iter().all(u8::is_ascii_graphic) {
        return path;
    }
    let mut shown = Vec::with_capacity(MAX_PATH_BYTES);
    for byte in path.iter() {
        let encoded = format!("%{byte:02X}");
        let bytes = if byte.is_ascii_graphic() {
            std::slice::from_ref(byte)
        } else {
            encoded.as_bytes()
        };
        if shown.len() + bytes.len() > MAX_PATH_BYTES {
            break;
        }
        shown.extend_from_slice(bytes);
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::{DAY, DayPaths, MAX_PATHS, PathRequest, TopPaths, printable_path};
    use crate::time::Timestamp;
    use crate::verdict::IdentityStatus;

    /// The beginning of a day.
    const TODAY: Timestamp = Timestamp(20_000 * DAY);

    fn request<'a>(site: &'a str, target: &'a str, after: i64) -> PathRequest<'a> {
        PathRequest {
            site,
            crawler: "gptbot",
            identity: IdentityStatus::Verified,
            target: target.as_bytes(),
            time: Timestamp(TODAY.0 + after),
        }
    }

    /// Days since today, site, identity, path and requests.
    fn shown(taken: &[DayPaths]) -> Vec<String> {
        let mut lines = Vec::new();
        for DayPaths { day, owner, paths } in taken {
            for path in paths {
                lines.push(format!(
                    "{} {} {} {} {}",
                    (day.0 - TODAY.0) / DAY,
                    owner.site,
                    owner.identity,
                    String::from_utf8_lossy(&path.key),
                    path.count
                ));
            }
        }
        lines.sort();
        lines
    }

    #[test]
    fn frequent_path_is_found_among_a_million() {
        let paths = TopPaths::default();
        for number in 0..1_000_000 {
            let target = format!("/{number}?x={number}");
            paths.count(&request("shop", &target, 0));
            if number % 20 == 0 {
                paths.count(&request("shop", "/often?q", 0));
            }
        }
        let [all] = &paths.take_changed(TODAY)[..] else {
            panic!("one crawler");
        };
        assert_eq!(all.paths.len(), MAX_PATHS);
        let most = all.paths.iter().max_by_key(|path| path.count);
        let most = most.expect("paths");
        assert_eq!(&*most.key, b"/often");
        assert!(
            most.count >= 50_000 && most.count - most.error <= 50_000,
            "{most:?}"
        );
    }

    #[test]
    fn crawlers_beyond_the_bound_of_all_are_left_out() {
        let paths = TopPaths::default();
        let sites: Vec<String> = (0..140).map(|number| number.to_string()).collect();
        for site in &sites {
            for number in 0..MAX_PATHS {
                paths.count(&request(site, &format!("/{number}"), 0));
            }
        }
        let taken = paths.take_changed(TODAY);
        assert_eq!(taken.len(), 128);
        paths.count(&request("0", "/new", 0));
        assert_eq!(paths.take_changed(TODAY)[0].paths.len(), MAX_PATHS);
        paths.remove_sites(&|site| site != "0");
        paths.count(&request("139", "/", 0));
        assert_eq!(shown(&paths.take_changed(TODAY)), ["0 139 verified / 1"]);
    }

    #[test]
    fn changed_paths_are_taken_once_a_minute() {
        let paths = TopPaths::default();
        paths.count(&request("shop", "/a", 0));
        assert_eq!(shown(&paths.take_due(TODAY)), ["0 shop verified /a 1"]);
        paths.count(&request("shop", "/a", 1));
        let at = |after: i64| Timestamp(TODAY.0 + after);
        assert_eq!(paths.take_due(at(59)), []);
        assert_eq!(shown(&paths.take_due(at(60))), ["0 shop verified /a 2"]);
        assert_eq!(paths.take_due(at(200)), []);
        paths.count(&request("shop", "/a", 201));
        assert_eq!(paths.take_changed(at(201)).len(), 1);
    }

    #[test]
    fn day_that_ended_is_taken_with_the_next() {
        let paths = TopPaths::default();
        paths.count(&request("shop", "/a", DAY - 2));
        paths.take_changed(Timestamp(TODAY.0 + DAY - 1));
        paths.count(&request("shop", "/a", DAY - 1));
        paths.count(&request("shop", "/b", DAY));
        let taken = paths.take_due(Timestamp(TODAY.0 + DAY));
        let expected = ["0 shop verified /a 2", "1 shop verified /b 1"];
        assert_eq!(shown(&taken), expected);
        assert_eq!(paths.take_due(Timestamp(TODAY.0 + 9 * DAY)), []);
    }

    #[test]
    fn clock_that_is_set_back_counts_on() {
        let paths = TopPaths::default();
        paths.count(&request("shop", "/a", 0));
        paths.take_changed(TODAY);
        paths.count(&request("shop", "/a", -3 * DAY));
        let taken = paths.take_due(Timestamp(TODAY.0 - 3 * DAY));
        assert_eq!(shown(&taken), ["0 shop verified /a 2"]);
    }

    #[test]
    fn restored_paths_of_today_count_on() {
        let former = TopPaths::default();
        former.count(&request("shop", "/old", -1));
        let mut stored = former.take_changed(TODAY);
        former.count(&request("shop", "/a", 0));
        former.count(&request("shop", "/a", 0));
        stored.extend(former.take_changed(TODAY));
        assert_eq!(stored.len(), 2);
        let paths = TopPaths::default();
        paths.restore(stored, TODAY);
        assert_eq!(paths.take_changed(TODAY), [], "nothing new");
        paths.count(&request("shop", "/a", 1));
        let taken = paths.take_changed(Timestamp(TODAY.0 + 1));
        assert_eq!(shown(&taken), ["0 shop verified /a 3"]);
    }

    #[test]
    fn impostors_and_sites_are_kept_apart() {
        let paths = TopPaths::default();
        paths.count(&request("shop", "/a", 0));
        paths.count(&PathRequest {
            identity: IdentityStatus::Impostor,
            ..request("shop", "/a", 0)
        });
        paths.count(&request("blog", "/a", 0));
        paths.remove_sites(&|site| site == "shop");
        let expected = ["0 shop impostor /a 1", "0 shop verified /a 1"];
        assert_eq!(shown(&paths.take_changed(TODAY)), expected);
    }

    #[test]
    fn path_is_printable_and_bounded() {
        for (target, path) in [
            ("/a/b?c", "/a/b"),
            ("http://shop.example/a?b", "/a"),
            ("/a b\u{202e}\x1b[0m", "/a%20b%E2%80%AE%1B[0m"),
        ] {
            assert_eq!(&*printable_path(target.as_bytes()), path.as_bytes());
        }
        let long = [b"/".as_slice(), &[0xff; 8_192]].concat();
        let path = printable_path(&long);
        assert!(path.len() <= 200 && path.ends_with(b"%FF"));
    }
}
