//! The words that tell the shape of a user agent (`shape.rs`): the lists of `shape_words.txt`, and
//! endings of names. The words are facts about systems, engines and tools, each known from its own
//! documentation.

const WORDS: &str = include_str!("shape_words.txt");

/// The words of a section of `shape_words.txt`, given by its heading: `[tools]`.
pub fn section(heading: &'static str) -> impl Iterator<Item = &'static str> {
    WORDS
        .lines()
        .skip_while(move |line| *line != heading)
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.trim_matches('"'))
}

/// Endings of the names of programs, in a string that has a browser's shape: `LinkChecker`,
/// `CookieHubScan`.
pub const TOOL_ENDINGS: &[&str] = &[
    "crawl",
    "scan",
    "scanner",
    "check",
    "checker",
    "validator",
    "monitor",
    "monitoring",
    "uptime",
    "synthetic",
    "synthetics",
    "preview",
    "fetcher",
    "snapshot",
    "screenshot",
    "thumbnail",
    "thumbnails",
    "thumbnailer",
    "analyzer",
    "analyser",
    "inspector",
    "audit",
    "archiver",
    "verifier",
    "verify",
    "harvester",
    "indexer",
    "finder",
    "seeker",
    "observatory",
    "classifier",
    "sitecrawl",
    "diagnostics",
    "collector",
    "optimizer",
    "watcher",
    "extractor",
    "scanning",
    "survey",
    "tool",
    "translate",
    "transcoder",
    "downloader",
];

/// Endings of the names of apps that fetch what others wrote: `RealPlayer%20Downloader/1750
/// CFNetwork/760.4.2`.
pub const FETCHER_ENDINGS: [&[u8]; 2] = [b"downloader", b"extractor"];

/// The words of engines and browsers behind the device, each before a version. A longer word stands
/// before its beginning.
pub const BROWSER_WORDS: [&[u8]; 12] = [
    // The number at which Chromium stands still.
    b" AppleWebKit/537.36 (KHTML, like Gecko) Chrome/",
    b" Safari/",
    b" AppleWebKit/",
    b" (KHTML, like Gecko)",
    b" Version/",
    // The number at which Safari stands still.
    b" Mobile/15E148",
    b" Mobile",
    b" Chrome/",
    b" Edg/",
    b" OPR/",
    b" Gecko/",
    b" Firefox/",
];
