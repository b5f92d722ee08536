//! Examples of user agents of people: [`browsers`], and [`lookalikes`] that resemble crawlers. [`stands_in_browsers`]
//! finds tokens that would take people for crawlers.

use super::{Claim, Registry, SiteMarkers};

/// User agents of people's browsers.
const BROWSERS: [&str; 6] = [
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36 Edg/141.0.0.0",
    "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Safari/605.1.15",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Mobile/15E148 Safari/604.1",
    "Mozilla/5.0 (Linux; Android 10; K; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/141.0.0.0 Mobile Safari/537.36 OPR/90.0",
    "Mozilla/5.0 (compatible; MSIE 10.0; Windows NT 6.2; Trident/6.0; SamsungBrowser/28.0; CrOS x86_64)",
];

/// Examples of user agents of people's browsers.
pub fn browsers() -> impl Iterator<Item = &'static str> {
    BROWSERS.into_iter()
}

/// Whether the token would take people's browsers for its crawler.
pub fn stands_in_browsers(token: &str, registry: &Registry) -> bool {
    let alone = SiteMarkers::new(vec![token.to_owned()]);
    BROWSERS.iter().any(|browser| registry.identify_with(browser.as_bytes(), &alone) == Claim::Token(0))
}

/// User agents of people that look like those of crawlers: none of them may be taken for a bot.
pub fn lookalikes() -> impl Iterator<Item = &'static str> {
    include_str!("humans.txt").lines()
}
