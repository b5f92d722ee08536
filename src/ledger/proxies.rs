//! [`KnownPath`]: what a host knows of a path through trusted proxies ([`ProxyPath`]): whether one
//! of its proxies may be a cache that answers robots.txt in crawlgate's place.
//!
//! A path is in one of these states:
//! - perhaps cached: nothing is known, or one crawler was served a robots.txt through it;
//! - not cached: two different crawlers were served the same version within one `max_age`. A cache
//!   would have answered the second. This is remembered with the host.

use crate::policy::Version;
use crate::record::ProxyPath;
use crate::time::Timestamp;
use std::time::Duration;

/// Paths remembered for one host. Beyond that, one that is perhaps cached makes room.
pub const MAX_PATHS: usize = 16;

/// What a host knows of a path.
#[derive(Debug)]
pub struct KnownPath {
    path: ProxyPath,
    /// The crawler that was served last, while the path is perhaps cached; `None` where it is not
    /// cached.
    last: Option<LastFetch>,
}

#[derive(Debug)]
struct LastFetch {
    crawler: Box<str>,
    version: Version,
    at: Timestamp,
}

/// The paths of a host.
#[derive(Debug, Default)]
pub struct KnownPaths(Vec<KnownPath>);

impl KnownPaths {
    /// Whether it is known that no cache is on a path.
    pub fn is_uncached(&self, path: ProxyPath) -> bool {
        self.0
            .iter()
            .any(|known| known.path == path && known.last.is_none())
    }

    /// The paths without a cache.
    pub fn uncached(&self) -> impl Iterator<Item = ProxyPath> {
        self.0
            .iter()
            .filter(|known| known.last.is_none())
            .map(|known| known.path)
    }

    /// Remembers that no cache is on a path, if there is room (`MAX_PATHS`): a path that is perhaps
    /// cached makes room, one without a cache does not.
    pub fn set_uncached(&mut self, path: ProxyPath) {
        self.0.retain(|known| known.path != path);
        self.add(KnownPath { path, last: None });
    }

    /// Records that a crawler was served a version through a path at `at`. Returns whether that
    /// shows that no cache is on it: less than `max_age` before, another crawler was served the
    /// same version through it. False as well if that was known already.
    pub fn record(
        &mut self,
        path: ProxyPath,
        crawler: &str,
        version: Version,
        max_age: Duration,
        at: Timestamp,
    ) -> bool {
        let fetch = LastFetch {
            crawler: crawler.into(),
            version,
            at,
        };
        let Some(known) = self.0.iter_mut().find(|known| known.path == path) else {
            self.add(KnownPath {
                path,
                last: Some(fetch),
            });
            return false;
        };
        let Some(last) = &known.last else {
            return false;
        };
        let is_uncached = last.crawler != fetch.crawler
            && last.version == version
            && at >= last.at
            && at.since(last.at) < max_age;
        known.last = (!is_uncached).then_some(fetch);
        is_uncached
    }

    /// Adds a path that is not there. If there are `MAX_PATHS`, the first one that is perhaps
    /// cached goes; if none is, the new path is dropped.
    fn add(&mut self, new: KnownPath) {
        if self.0.len() >= MAX_PATHS
            && let Some(place) = self.0.iter().position(|known| known.last.is_some())
        {
            self.0.remove(place);
        }
        if self.0.len() < MAX_PATHS {
            self.0.push(new);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    const V1: Version = Version([1; 8]);
    const V2: Version = Version([2; 8]);
    const HOUR: Duration = Duration::from_secs(3_600);

    fn path(last: u8) -> ProxyPath {
        ProxyPath::from_addresses([IpAddr::from([10, 0, 0, last])])
    }

    #[test]
    fn two_crawlers_within_one_max_age_show_a_path_without_cache() {
        for (crawler, version, at, shows) in [
            ("bingbot", V1, 3_599, true),
            ("bingbot", V1, 3_600, false),
            ("google", V1, 10, false),
            ("bingbot", V2, 10, false),
            ("bingbot", V1, -1, false),
        ] {
            let mut paths = KnownPaths::default();
            assert!(!paths.record(path(1), "google", V1, HOUR, Timestamp(0)));
            assert_eq!(
                paths.record(path(1), crawler, version, HOUR, Timestamp(at)),
                shows,
                "{crawler} at {at}"
            );
            assert_eq!(paths.is_uncached(path(1)), shows);
        }
    }

    #[test]
    fn two_crawlers_through_different_proxies_show_nothing() {
        let mut paths = KnownPaths::default();
        assert!(!paths.record(path(1), "google", V1, HOUR, Timestamp(0)));
        assert!(!paths.record(path(2), "bingbot", V1, HOUR, Timestamp(1)));
        let [near, far] = [IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 9])];
        assert_ne!(ProxyPath::from_addresses([near, far]), path(1));
        assert_eq!(ProxyPath::parse(&path(1).to_string()), Some(path(1)));
    }

    #[test]
    fn flood_of_paths_forgets_none_that_is_known() {
        let mut paths = KnownPaths::default();
        paths.record(path(1), "google", V1, HOUR, Timestamp(0));
        assert!(paths.record(path(1), "bingbot", V1, HOUR, Timestamp(1)));
        for last in 2..=255 {
            paths.record(path(last), "google", V1, HOUR, Timestamp(2));
        }
        assert!(paths.0.len() == MAX_PATHS && paths.is_uncached(path(1)));
    }
}
