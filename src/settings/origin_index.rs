//! [`OriginIndex`] finds the origin (the web servers behind crawlgate) for the host and path of a
//! request. An exact host counts first, then the longest wildcard, then the origins that name no
//! host. Among the origins of one host pattern, the longest path prefix counts. If no prefix fits
//! the path, the next wider host pattern is tried.

use super::OriginSettings;
use crate::robots::Authority;
use ahash::AHashMap;
use smallvec::SmallVec;
use std::cmp::Reverse;

/// A name of 255 bytes (RFC 1035 section 2.3.4) has no more dots.
const MAX_DOTS: usize = 127;

/// Maps host patterns and path prefixes to indexes of origins.
#[derive(Default)]
pub struct OriginIndex {
    exact: AHashMap<Vec<u8>, PathOrigins>,
    /// By `.shop.example` for `*.shop.example`.
    wildcards: AHashMap<Vec<u8>, PathOrigins>,
    others: PathOrigins,
}

/// The origins of one host pattern by path prefix, the longest first. The empty prefix fits every
/// path.
#[derive(Default)]
struct PathOrigins(SmallVec<[(Box<[u8]>, usize); 1]>);

impl PathOrigins {
    /// Adds the paths of an origin. Of two equal paths the first one wins.
    fn add(&mut self, origin: &OriginSettings, place: usize) {
        let paths = origin.paths.iter().map(|path| path.as_bytes().into());
        let every = origin.paths.is_empty().then(Box::default);
        self.0.extend(paths.chain(every).map(|path| (path, place)));
        // A stable sort: of two equal paths the first one wins.
        self.0.sort_by_key(|(path, _)| Reverse(path.len()));
    }

    /// The origin with the longest prefix of this path.
    fn find(&self, path: &[u8]) -> Option<usize> {
        self.0
            .iter()
            .find(|(beginning, _)| path.starts_with(beginning))
            .map(|(_, place)| *place)
    }
}

impl OriginIndex {
    /// Of two origins with the same pattern and path the first one wins.
    pub fn new(origins: &[OriginSettings]) -> OriginIndex {
        let mut index = OriginIndex::default();
        for (place, origin) in origins.iter().enumerate() {
            if origin.hosts.is_empty() {
                index.others.add(origin, place);
            }
            for pattern in &origin.hosts {
                let pattern = pattern.to_ascii_lowercase();
                let paths = match pattern.strip_prefix('*') {
                    Some(suffix) => index.wildcards.entry(suffix.into()),
                    None => index.exact.entry(pattern.into()),
                };
                paths.or_default().add(origin, place);
            }
        }
        index
    }

    /// The index of the origin for a Host (in any case, with or without a port and a final dot) and
    /// a request target.
    pub fn find(&self, host: &[u8], target: &[u8]) -> Option<usize> {
        let path = crate::heads::origin_form(target);
        if self.exact.is_empty() && self.wildcards.is_empty() {
            return self.others.find(&path);
        }
        let lower: SmallVec<[u8; 128]> = host.iter().map(u8::to_ascii_lowercase).collect();
        self.find_by_name(&lower, &path)
            .or_else(|| self.find_by_name(Authority::parse(&lower).name, &path))
            .or_else(|| self.others.find(&path))
    }

    /// The origin by exact name, else by the longest wildcard that has a path which fits.
    fn find_by_name(&self, name: &[u8], path: &[u8]) -> Option<usize> {
        let exact = self.exact.get(name).and_then(|paths| paths.find(path));
        let dots = memchr::memchr_iter(b'.', name).take(MAX_DOTS);
        let mut dots = dots.filter(|dot| *dot > 0);
        exact.or_else(|| dots.find_map(|dot| self.wildcards.get(&name[dot..])?.find(path)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::OriginServerAddress;
    use super::*;

    fn origin(hosts: &[&str], paths: &[&str]) -> OriginSettings {
        let server = OriginServerAddress::parse("http://127.0.0.1:8080").expect("a URL");
        let strings = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
        OriginSettings {
            hosts: strings(hosts),
            paths: strings(paths),
            ..OriginSettings::with_servers([server])
        }
    }

    #[test]
    fn exact_host_wins_over_wildcard() {
        let index = OriginIndex::new(&[
            origin(&["*.example"], &[]),
            origin(&["shop.example"], &[]),
            origin(&["*.shop.example"], &[]),
            origin(&[], &[]),
        ]);
        for (host, place) in [
            ("shop.example", 1),
            ("SHOP.example.:443", 1),
            ("a.shop.example", 2),
            ("blog.example:80", 0),
            (".example", 3),
            ("", 3),
            ("[::1]:80", 3),
        ] {
            assert_eq!(index.find(host.as_bytes(), b"/"), Some(place), "{host}");
        }
    }

    #[test]
    fn host_without_origin_has_none() {
        let index = OriginIndex::new(&[origin(&["shop.example"], &[])]);
        assert_eq!(index.find(b"blog.example", b"/"), None);
    }

    #[test]
    fn longest_path_prefix_wins_in_any_order() {
        let index = OriginIndex::new(&[
            origin(&["shop.example"], &["/api/"]),
            origin(&["shop.example"], &[]),
            origin(&["shop.example"], &["/api/v2/", "/static/"]),
            origin(&[], &["/status"]),
        ]);
        for (target, place) in [
            ("/api/v1/a", Some(0)),
            ("/api/v2/a", Some(2)),
            ("/static/logo.png", Some(2)),
            ("/api", Some(1)),
            ("/API/v2/a", Some(1)),
            ("http://shop.example/api/v2/a", Some(2)),
            ("*", Some(1)),
        ] {
            assert_eq!(
                index.find(b"shop.example", target.as_bytes()),
                place,
                "{target}"
            );
        }
        assert_eq!(index.find(b"blog.example", b"/status/1"), Some(3));
        assert_eq!(index.find(b"blog.example", b"/"), None);
    }

    #[test]
    fn host_without_matching_path_uses_wider_pattern() {
        let index = OriginIndex::new(&[
            origin(&["shop.example"], &["/api/"]),
            origin(&["*.example"], &["/static/"]),
            origin(&[], &[]),
        ]);
        let found = |target: &str| index.find(b"shop.example", target.as_bytes());
        assert_eq!(
            (found("/api/a"), found("/static/a"), found("/")),
            (Some(0), Some(1), Some(2))
        );
    }
}
