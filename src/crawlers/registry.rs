//! [`Registry`]: the facts about each known crawler, with their source and date, read from
//! `registry.yaml`. It identifies the crawler that a user agent claims to be.

use super::crawler::{Crawler, CrawlerIndex};
use super::identify::{Markers, SiteMarkers};
use super::{Claim, records};
use crate::yaml::{Diagnostics, Source};
use std::sync::LazyLock;
use std::time::Duration;

/// All known crawlers.
#[derive(Debug)]
pub struct Registry {
    crawlers: Vec<Crawler>,
    markers: Markers,
    /// How long each crawler, or any that shares its cache, is documented to keep a robots.txt.
    kept: Vec<Duration>,
}

impl Registry {
    /// The registry that comes with crawlgate; read once.
    pub fn builtin() -> &'static Registry {
        static BUILTIN: LazyLock<Registry> = LazyLock::new(|| {
            let source = Source {
                name: "registry.yaml".into(),
                text: include_str!("registry.yaml").into(),
            };
            #[expect(clippy::expect_used, reason = "the file is part of the program")]
            let records = records::read(&source)
                .expect("the registry that comes with crawlgate is tested to be readable");
            Registry::new(records)
        });
        &BUILTIN
    }

    /// This registry with records of your own, in the form of `registry.yaml`; a record with the id
    /// of one that is here takes its place. `examples/own_crawler.rs` shows it.
    ///
    /// # Errors
    /// Everything that is wrong with the records.
    pub fn with(&self, records: &Source) -> Result<Registry, Diagnostics> {
        let own = records::read(records)?;
        let mut crawlers = self.crawlers.clone();
        for record in own {
            match crawlers.iter_mut().find(|crawler| crawler.id == record.id) {
                Some(crawler) => *crawler = record,
                None => crawlers.push(record),
            }
        }
        Ok(Registry::new(crawlers))
    }

    pub(super) fn new(crawlers: Vec<Crawler>) -> Registry {
        let markers = Markers::new(&crawlers);
        let kept = crawlers
            .iter()
            .map(|crawler| longest_kept(crawler, &crawlers))
            .collect();
        Registry {
            crawlers,
            markers,
            kept,
        }
    }

    /// All records, in the order of the file; the index is a [`CrawlerIndex`].
    pub fn crawlers(&self) -> &[Crawler] {
        &self.crawlers
    }

    /// A record.
    ///
    /// # Panics
    /// When the index is not one of this registry's.
    pub fn get(&self, index: CrawlerIndex) -> &Crawler {
        &self.crawlers[usize::from(index.0)]
    }

    /// The name of the cache in which a crawler keeps robots.txt (its own id if it shares none),
    /// and how long it, or any crawler that shares the cache, is documented to keep a copy; zero if
    /// nothing is documented.
    pub(crate) fn robots_cache(&self, index: CrawlerIndex) -> (&str, Duration) {
        let crawler = self.get(index);
        let kept = self
            .kept
            .get(usize::from(index.0))
            .copied()
            .unwrap_or_default();
        (crawler.shares_cache.as_deref().unwrap_or(&crawler.id), kept)
    }

    /// The longest that any crawler is documented to keep a robots.txt.
    pub(crate) fn longest_robots_cache(&self) -> Duration {
        self.kept.iter().max().copied().unwrap_or_default()
    }

    /// The record with this id, name or first token, without regard to case.
    pub fn find(&self, name: &str) -> Option<CrawlerIndex> {
        let index = self
            .crawlers
            .iter()
            .position(|crawler| crawler.is_called(name))?;
        u16::try_from(index).ok().map(CrawlerIndex)
    }

    /// The product tokens of all crawlers.
    pub(crate) fn tokens(&self) -> impl Iterator<Item = &str> {
        let tokens = self.crawlers.iter().flat_map(|crawler| &crawler.tokens);
        tokens.map(String::as_str)
    }

    /// The crawler with this token, id or name, without regard to case.
    pub(crate) fn named(&self, name: &str) -> Option<&Crawler> {
        self.crawlers.iter().find(|crawler| crawler.is_called(name))
    }

    /// Whether a name is the product token of a crawler, without regard to case.
    pub fn has_token(&self, name: &str) -> bool {
        self.tokens().any(|token| token.eq_ignore_ascii_case(name))
    }

    /// Product tokens with blanks in them, which a parser of robots.txt must know to read whole.
    pub fn tokens_with_blanks(&self) -> Vec<&str> {
        self.tokens().filter(|token| token.contains(' ')).collect()
    }

    /// The crawler that a user agent claims to be; never [`Claim::Token`]. Does not allocate.
    ///
    /// ```
    /// use crawlgate::crawlers::{Claim, Registry};
    /// let registry = Registry::builtin();
    /// assert_eq!(registry.identify(b"GPTBot/1.2"), Claim::Known(registry.find("GPTBot").unwrap()));
    /// assert_eq!(registry.identify(b"Mozilla/5.0 (Linux; Android 10; CUBOT J9) Chrome/88.0 Safari/537.36"), Claim::Nobody);
    /// ```
    pub fn identify(&self, user_agent: &[u8]) -> Claim {
        self.markers.identify(user_agent, None)
    }

    /// The claim of a user agent, and its reason.
    pub(crate) fn explain(&self, user_agent: &[u8]) -> (Claim, super::declared::Reason) {
        self.markers.explain(user_agent)
    }

    /// [`identify`](Registry::identify) with the tokens and markers that a site's policy adds.
    #[doc(hidden)]
    pub fn identify_with(&self, user_agent: &[u8], tokens: &SiteMarkers) -> Claim {
        self.markers.identify(user_agent, Some(tokens))
    }
}

/// The longest time for which this crawler, or any that shares its cache, is documented to keep a
/// robots.txt; zero if nothing is documented.
fn longest_kept(crawler: &Crawler, all: &[Crawler]) -> Duration {
    let others = all
        .iter()
        .filter(|other| {
            crawler.shares_cache.is_some() && other.shares_cache == crawler.shares_cache
        })
        .filter_map(|other| other.robots_cache);
    crawler
        .robots_cache
        .into_iter()
        .chain(others)
        .max()
        .unwrap_or_default()
}
