//! [`ProxyPathStates`] says whether a cache in front of crawlgate may answer requests for
//! robots.txt, so that crawlgate does not see them. A proxy path is a chain of trusted proxies
//! through which requests reach a host.
//!
//! Each proxy path of a host is in one of these states:
//! - perhaps cached: nothing is known, or only one crawler was served a robots.txt through the
//!   path.
//! - not cached: crawlgate served the same version to two different crawlers within one `max_age`.
//!   A cache would have answered the second one. This state is stored with the host.

use crate::policy::RobotsVersionId;
use crate::record::ProxyPath;
use crate::time::Timestamp;
use std::time::Duration;

/// The most paths of one host. Beyond it, one that is perhaps cached is removed.
pub const MAX_PATHS: usize = 16;

/// The state of one path.
pub struct ProxyPathState {
    path: ProxyPath,
    /// The last fetch through the path while it is perhaps cached; `None` if it is not cached.
    last: Option<LastFetch>,
}

struct LastFetch {
    crawler: Box<str>,
    version: RobotsVersionId,
    at: Timestamp,
}

/// The states of all paths to a host.
#[derive(Default)]
pub struct ProxyPathStates(Vec<ProxyPathState>);

impl ProxyPathStates {
    /// Whether it is known that no cache is on a path.
    pub fn is_uncached(&self, path: ProxyPath) -> bool {
        self.0
            .iter()
            .any(|known| known.path == path && known.last.is_none())
    }

    /// The paths without a cache.
    pub fn uncached_paths(&self) -> impl Iterator<Item = ProxyPath> {
        self.0
            .iter()
            .filter(|known| known.last.is_none())
            .map(|known| known.path)
    }

    /// Records that no cache is on a path. In a full table it replaces a path that is perhaps
    /// cached, or is dropped if there is none.
    pub fn set_uncached(&mut self, path: ProxyPath) {
        self.0.retain(|known| known.path != path);
        self.add(ProxyPathState { path, last: None });
    }

    /// Records that a crawler was served a version through a path at `at`. Returns whether that
    /// shows that no cache is on it: another crawler was served the same version through it less
    /// than `max_age` before. Also false if that was known already.
    pub fn record_fetch(
        &mut self,
        path: ProxyPath,
        crawler: &str,
        version: RobotsVersionId,
        max_age: Duration,
        at: Timestamp,
    ) -> bool {
        let fetch = LastFetch {
            crawler: crawler.into(),
            version,
            at,
        };
        let Some(known) = self.0.iter_mut().find(|known| known.path == path) else {
            self.add(ProxyPathState {
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

    /// Adds a new path. If there are `MAX_PATHS`, removes the first one that is perhaps cached, or
    /// drops the new path if there is none.
    fn add(&mut self, new: ProxyPathState) {
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

    const V1: RobotsVersionId = RobotsVersionId([1; 8]);
    const V2: RobotsVersionId = RobotsVersionId([2; 8]);
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
            let mut paths = ProxyPathStates::default();
            assert!(!paths.record_fetch(path(1), "google", V1, HOUR, Timestamp(0)));
            assert_eq!(
                paths.record_fetch(path(1), crawler, version, HOUR, Timestamp(at)),
                shows,
                "{crawler} at {at}"
            );
            assert_eq!(paths.is_uncached(path(1)), shows);
        }
    }

    #[test]
    fn two_crawlers_through_different_proxies_show_nothing() {
        let mut paths = ProxyPathStates::default();
        assert!(!paths.record_fetch(path(1), "google", V1, HOUR, Timestamp(0)));
        assert!(!paths.record_fetch(path(2), "bingbot", V1, HOUR, Timestamp(1)));
        let [near, far] = [IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 9])];
        assert_ne!(ProxyPath::from_addresses([near, far]), path(1));
        assert_eq!(ProxyPath::parse(&path(1).to_string()), Some(path(1)));
    }

    #[test]
    fn flood_of_paths_keeps_the_known_ones() {
        let mut paths = ProxyPathStates::default();
        paths.record_fetch(path(1), "google", V1, HOUR, Timestamp(0));
        assert!(paths.record_fetch(path(1), "bingbot", V1, HOUR, Timestamp(1)));
        for last in 2..=255 {
            paths.record_fetch(path(last), "google", V1, HOUR, Timestamp(2));
        }
        assert!(paths.0.len() == MAX_PATHS && paths.is_uncached(path(1)));
    }
}
