//! [`RobotsComparison`] fetches the robots.txt that crawlers get now, for the command `init`. It
//! fetches the file from each host over http and over https, and directly from the origin, and says
//! whether all copies have the same rules. An HTML page or a 4xx response counts as a file without
//! rules, because crawlers treat it so.

use crate::origin::robots::{
    FetchResult, OriginTarget, RobotsRequest, fetch_from_origin, find_defect, truncate_body,
};
use crate::origin::{RobotsFetchOutcome, fetch_robots};
use crate::robots::{MAX_ROBOTS_BYTES, RobotsFile};
use crate::settings::{OriginServerAddress, OriginSettings};
use RobotsAnswer::*;
use std::fmt;
use std::net::ToSocketAddrs;
use std::thread;

/// What all places answered: the first host over https, over http and from the origin, then the
/// other hosts.
pub struct RobotsComparison(Vec<HostRobotsAnswer>);

/// The answer of one place.
struct HostRobotsAnswer {
    host: String,
    url: String,
    is_origin: bool,
    answer: RobotsAnswer,
}

enum RobotsAnswer {
    File(Vec<u8>),
    /// Why crawlers see no rules there.
    NoRules(String),
    /// 5xx or 429: crawlers stay away.
    Failed(u16),
    /// Why there is no answer.
    Unanswered(String),
}

impl RobotsComparison {
    /// Fetches all files at once. If there is one host, also asks the same host with or without
    /// `www.`, and adds that to `hosts` if it answers.
    pub fn fetch(hosts: &mut Vec<String>, origin: &OriginServerAddress) -> RobotsComparison {
        let named = hosts.len();
        if let [host] = hosts.as_slice() {
            let other = other_host(host);
            hosts.push(other);
        }
        let mut copies: Vec<HostRobotsAnswer> = thread::scope(|scope| {
            let mut running = Vec::new();
            for host in hosts.iter() {
                for scheme in ["https", "http"] {
                    running.push(scope.spawn(move || HostRobotsAnswer::from_host(scheme, host)));
                }
                running.push(scope.spawn(move || HostRobotsAnswer::from_origin(host, origin)));
            }
            running
                .into_iter()
                .flat_map(|thread| thread.join().ok())
                .collect()
        });
        let answered: Vec<String> = copies
            .iter()
            .filter(|copy| !copy.is_origin && !matches!(copy.answer, Unanswered(_)))
            .map(|copy| copy.host.clone())
            .collect();
        if hosts.len() > named && !answered.contains(&hosts[named]) {
            hosts.truncate(named);
        }
        copies.retain(|copy| hosts.contains(&copy.host));
        RobotsComparison(copies)
    }

    /// The file that crawlers know: the first one with rules, or an empty file if no place has rules.
    /// `None` if no place gave an answer that crawlers can read.
    pub fn before(&self) -> Option<&[u8]> {
        let files = || self.0.iter().filter_map(|copy| copy.answer.rules());
        files().find(|file| !file.is_empty()).or(files().next())
    }

    /// Whether at least one place answered, and all that answered have the same rules.
    pub fn agrees(&self) -> bool {
        self.before().is_some()
            && self.0.iter().all(|copy| match copy.answer.rules() {
                None => matches!(copy.answer, Unanswered(_)),
                rules => rules == self.before(),
            })
    }

    /// The origin's rules for the first host. `None` without an answer that crawlers can read.
    pub fn origin_rules(&self) -> Option<&[u8]> {
        let origin = self.0.iter().find(|copy| copy.is_origin);
        origin?.answer.rules()
    }

    /// Whether the origin has no rules for the first host, but another place has some.
    pub fn origin_lacks_rules(&self) -> bool {
        let none = Some([].as_slice());
        self.origin_rules() == none && self.before() != none
    }
}

/// A host with `www.`, or without it if it has that.
pub fn other_host(host: &str) -> String {
    let without = host.strip_prefix("www.").map(str::to_owned);
    without.unwrap_or_else(|| format!("www.{host}"))
}

/// A file of the origin, by its path, for a host of the site.
pub fn fetch_origin_file(path: &str, host: &str, origin: &OriginServerAddress) -> FetchResult {
    let target = OriginTarget {
        host: host.to_owned(),
        origin: OriginSettings::with_servers([origin.clone()]),
    };
    fetch_from_origin(&RobotsRequest {
        target: &target,
        path,
        etag: None,
        last_modified: None,
        is_own_host: &|other| other == host,
    })
}

impl HostRobotsAnswer {
    fn from_host(scheme: &str, host: &str) -> HostRobotsAnswer {
        let url = format!("{scheme}://{host}/robots.txt");
        let answer = match fetch_robots(&url) {
            Ok(RobotsFetchOutcome::File { bytes, .. }) => RobotsAnswer::from_body(bytes, false),
            Ok(RobotsFetchOutcome::Unavailable(status)) => NoRules(format!("no file ({status})")),
            Ok(RobotsFetchOutcome::Unreachable(status)) => Failed(status),
            Err(_) if (host, 443).to_socket_addrs().is_err() => {
                Unanswered("the name has no address in DNS".into())
            }
            Err(error) => Unanswered(error.reason),
        };
        HostRobotsAnswer {
            host: host.to_owned(),
            url,
            is_origin: false,
            answer,
        }
    }

    fn from_origin(host: &str, origin: &OriginServerAddress) -> HostRobotsAnswer {
        let answer = match fetch_origin_file("/robots.txt", host, origin) {
            FetchResult::File { bytes, html, .. } => RobotsAnswer::from_body(bytes, html),
            FetchResult::NoFile { reason, .. } => NoRules(format!("no file: {reason}")),
            FetchResult::Unreachable(failure) => Unanswered(failure.reason),
            FetchResult::Unchanged => Unanswered("304 without a file".into()),
        };
        HostRobotsAnswer {
            host: host.to_owned(),
            url: format!("{} for {host}", origin.url()),
            is_origin: true,
            answer,
        }
    }
}

impl RobotsAnswer {
    /// The answer of a body. `is_html`: its media type is HTML.
    fn from_body(mut bytes: Vec<u8>, is_html: bool) -> RobotsAnswer {
        truncate_body(&mut bytes, MAX_ROBOTS_BYTES);
        match find_defect(&RobotsFile::parse(bytes.as_slice()), is_html) {
            Some(defect) => NoRules(format!("{defect}; crawlers read it as no rules")),
            None => File(bytes),
        }
    }

    /// The rules that crawlers read. `None` if there is no answer to read.
    fn rules(&self) -> Option<&[u8]> {
        match self {
            File(bytes) => Some(bytes),
            NoRules(_) => Some(&[]),
            Failed(_) | Unanswered(_) => None,
        }
    }
}

impl fmt::Display for RobotsComparison {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "robots.txt now:")?;
        let width = self.0.iter().map(|copy| copy.url.len()).max().unwrap_or(0);
        for HostRobotsAnswer { url, answer, .. } in &self.0 {
            let text = match answer {
                File(bytes) => crate::numbers::plural_thousands(bytes.len(), "byte"),
                NoRules(why) => why.clone(),
                Failed(status) => format!("failed with {status}; crawlers stay away"),
                Unanswered(why) => format!("could not be fetched: {why}"),
            };
            let differs = match answer.rules() {
                Some(rules) if Some(rules) != self.before() => " (differs)",
                _ => "",
            };
            writeln!(out, "  {url:width$}  {text}{differs}")?;
        }
        Ok(())
    }
}
