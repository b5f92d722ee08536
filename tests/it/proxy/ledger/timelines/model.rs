//! What a crawler that keeps to the rules knows: the robots.txt that it read, for how long it goes
//! by it, with whom it shares it. Knows the words of docs/semantics.md, and nothing of how
//! crawlgate remembers.

use super::cast::*;
use crate::proxy::support::BINGBOT;
use crate::proxy::support::random::Random;

pub const DAY: f64 = 86_400.0;
/// Of what the test takes for a certainty; crawlgate counts in seconds, and notes once a minute
/// that somebody came.
pub const MARGIN: f64 = 120.0;
pub const HOSTS: [&str; 2] = [APEX, WWW];
/// A crawler compares a URL with the rules as it is sent, also the one that leads to another path.
pub const ELSEWHERE: &str = "/b/../a/";
pub const PATHS: [&str; 6] = ["/a/", "/b/", TRAP, "/never/", ELSEWHERE, "/"];
/// What nobody who keeps to the rules is called.
pub const ACCUSATIONS: [&str; 4] = ["violation", "too_fast", "trapped", "impostor"];

pub struct Crawler {
    pub agent: &'static str,
    /// Crawlers with the same number share what they fetched.
    pub cache: usize,
    /// For how long it goes by a copy.
    pub keeps: f64,
    pub honours_delay: bool,
    pub address: &'static str,
    /// Of somebody else who takes its name.
    pub forger: &'static str,
}

#[rustfmt::skip]
pub const CRAWLERS: [Crawler; 6] = [
    Crawler { agent: BINGBOT, cache: 0, keeps: DAY, honours_delay: true, address: "203.0.113.1", forger: "192.0.2.1" },
    Crawler { agent: GOOGLEBOT, cache: 1, keeps: DAY, honours_delay: false, address: "203.0.113.2", forger: "192.0.2.2" },
    Crawler { agent: GOOGLE_IMAGES, cache: 1, keeps: DAY, honours_delay: false, address: "203.0.113.3", forger: "192.0.2.3" },
    Crawler { agent: THREE_DAYS, cache: 2, keeps: 3.0 * DAY, honours_delay: false, address: "203.0.113.4", forger: "192.0.2.4" },
    Crawler { agent: A_WEEK, cache: 3, keeps: 7.0 * DAY, honours_delay: true, address: "203.0.113.5", forger: "192.0.2.5" },
    Crawler { agent: "SomeBot/1.0 (+http://some.example/bot)", cache: 4, keeps: DAY, honours_delay: false,
        address: "203.0.113.6", forger: "192.0.2.6" },
];
pub const CACHES: usize = 5;

/// A robots.txt as a crawler reads it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Said {
    pub closed: Vec<String>,
    pub delay: Option<f64>,
}

impl Said {
    /// All of it is for everybody, so that nothing but the keys must be read.
    pub fn read(text: &str) -> Said {
        let values = |key: &'static str| {
            text.lines()
                .filter_map(move |line| line.strip_prefix(key).map(str::trim))
        };
        let mut closed: Vec<String> = values("Disallow:").map(str::to_owned).collect();
        closed.sort();
        Said {
            closed,
            delay: values("Crawl-delay:")
                .next()
                .map(|delay| delay.parse().expect("seconds")),
        }
    }

    pub fn allows(&self, path: &str) -> bool {
        !self
            .closed
            .iter()
            .any(|closed| path.starts_with(closed.as_str()))
    }
}

/// A robots.txt that a crawler holds.
#[derive(Clone)]
pub struct Copy {
    pub said: Said,
    /// Since when it counts as new, and when it was served or heard to be good.
    pub at: f64,
    pub served: f64,
    /// From crawlgate; another server's has none.
    pub validators: Option<(String, String)>,
}

/// A version that crawlgate may take somebody to hold.
pub struct SupersededVersion {
    pub said: Said,
    pub host: usize,
    /// Of all of them when absent.
    pub cache: Option<usize>,
    pub at: f64,
}

pub fn some_rules(random: &mut Random) -> Rules {
    let closed: &[&[&str]] = &[&[], &["/a/"], &["/b/"], &["/a/", "/b/"]];
    let rules = OPEN
        .closing(closed[random.below(4)])
        .delay(["", "60s", "90s", "10m"][random.below(4)]);
    if random.percent(50) {
        rules.trapping(&[TRAP])
    } else {
        rules
    }
}

pub fn said(rules: &Rules) -> Said {
    let delay = ["60s", "90s", "10m"]
        .iter()
        .position(|delay| *delay == rules.delay)
        .map(|at| [60.0, 90.0, 600.0][at]);
    let closed = ["/never/"].iter().chain(rules.closed).chain(rules.traps);
    let mut said = Said {
        closed: closed.map(|path| (*path).to_owned()).collect(),
        delay,
    };
    said.closed.sort();
    said
}
