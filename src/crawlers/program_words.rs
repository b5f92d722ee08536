//! The words by which the module `program_kind` classifies a `User-Agent`. The lists are in
//! `program_words.txt`: names of operating systems, browser engines and tools, taken from their
//! documentation. Endings that are typical for names of tools are in [`TOOL_ENDINGS`].

use std::sync::LazyLock;

const WORD_LISTS: &str = include_str!("program_words.txt");

/// The words of a section of `program_words.txt`, by its heading: `[tools]`.
pub fn word_list(heading: &'static str) -> impl Iterator<Item = &'static str> {
    WORD_LISTS
        .lines()
        .skip_while(move |line| *line != heading)
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.trim_matches('"'))
}

/// Endings of the names of tools within the string of a browser: `LinkChecker`, `CookieHubScan`.
pub static TOOL_ENDINGS: LazyLock<Vec<&str>> =
    LazyLock::new(|| word_list("[tool endings]").collect());

/// Endings of the names of apps that download pages or media: `RealPlayer%20Downloader/1750
/// CFNetwork/760.4.2`.
pub const FETCHER_ENDINGS: [&[u8]; 2] = [b"downloader", b"extractor"];

/// The words of engines and browsers behind the device, each before a version. A longer word comes
/// before its own prefix.
pub const BROWSER_WORDS: [&[u8]; 12] = [
    // The frozen version of Chromium.
    b" AppleWebKit/537.36 (KHTML, like Gecko) Chrome/",
    b" Safari/",
    b" AppleWebKit/",
    b" (KHTML, like Gecko)",
    b" Version/",
    // The frozen build of Safari.
    b" Mobile/15E148",
    b" Mobile",
    b" Chrome/",
    b" Edg/",
    b" OPR/",
    b" Gecko/",
    b" Firefox/",
];
