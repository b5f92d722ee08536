//! [`Registry`]: the table of all known crawlers, from `registry.yaml`. It identifies the crawler
//! that a `User-Agent` claims to be.

use super::crawler::{Crawler, CrawlerIndex};
use super::identify::{RegistryMarkers, SiteMarkers};
use super::{Claim, registry_file};
use crate::yaml::{Diagnostics, SourceFile};
use std::sync::LazyLock;
use std::time::Duration;

/// All known crawlers.
#[derive(Debug)]
pub struct Registry {
    crawlers: Vec<Crawler>,
    markers: RegistryMarkers,
    /// How long each crawler, or any that shares its cache, is documented to cache a robots.txt.
    cache_times: Vec<Duration>,
}

impl Registry {
    /// The registry that comes with crawlgate. Parsed once.
    pub fn builtin() -> &'static Registry {
        static BUILTIN: LazyLock<Registry> = LazyLock::new(|| {
            let source = SourceFile {
                name: "registry.yaml".into(),
                text: include_str!("registry.yaml").into(),
            };
            #[expect(clippy::expect_used, reason = "the file is part of the program")]
            let records = registry_file::parse_registry(&source)
                .expect("the registry that comes with crawlgate is tested to be readable");
            Registry::new(records)
        });
        &BUILTIN
    }

    /// This registry with records of your own, in the form of `registry.yaml`. A record replaces the
    /// one with the same id. `examples/own_crawler.rs` shows it.
    ///
    /// # Errors
    /// Everything that is wrong with the records.
    pub fn with_records(&self, records: &SourceFile) -> Result<Registry, Diagnostics> {
        let own = registry_file::parse_registry(records)?;
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
        let markers = RegistryMarkers::new(&crawlers);
        let cache_times = crawlers
            .iter()
            .map(|crawler| longest_cache_time(crawler, &crawlers))
            .collect();
        Registry {
            crawlers,
            markers,
            cache_times,
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

    /// The name of a crawler's robots.txt cache (its id if it shares none), and how long any crawler
    /// of that cache is documented to keep a copy; zero if nothing is documented.
    pub(crate) fn robots_cache(&self, index: CrawlerIndex) -> (&str, Duration) {
        let crawler = self.get(index);
        (
            crawler.shares_cache.as_deref().unwrap_or(&crawler.id),
            self.cache_times[usize::from(index.0)],
        )
    }

    /// The longest documented cache time of all crawlers.
    pub(crate) fn max_robots_cache(&self) -> Duration {
        self.cache_times.iter().max().copied().unwrap_or_default()
    }

    /// The record with this id, name or first token, without regard to case.
    pub fn find(&self, name: &str) -> Option<CrawlerIndex> {
        let index = self
            .crawlers
            .iter()
            .position(|crawler| crawler.has_name(name))?;
        u16::try_from(index).ok().map(CrawlerIndex)
    }

    /// The product tokens of all crawlers.
    pub(crate) fn tokens(&self) -> impl Iterator<Item = &str> {
        let tokens = self.crawlers.iter().flat_map(|crawler| &crawler.tokens);
        tokens.map(String::as_str)
    }

    /// The crawler with this token, id or name, without regard to case.
    pub(crate) fn find_crawler(&self, name: &str) -> Option<&Crawler> {
        self.find(name).map(|index| self.get(index))
    }

    /// Whether a name is the product token of a crawler, without regard to case.
    pub fn has_token(&self, name: &str) -> bool {
        self.tokens().any(|token| token.eq_ignore_ascii_case(name))
    }

    /// Product tokens with blanks in them. A parser of robots.txt must know them, or it cuts them at
    /// the blank.
    pub fn tokens_with_blanks(&self) -> Vec<&str> {
        self.tokens().filter(|token| token.contains(' ')).collect()
    }

    /// The crawler that a user agent claims to be; never [`Claim::PolicyToken`]. Does not allocate.
    ///
    /// ```
    /// use crawlgate::crawlers::{Claim, Registry};
    /// let registry = Registry::builtin();
    /// assert_eq!(registry.identify(b"GPTBot/1.2"), Claim::Known(registry.find("GPTBot").unwrap()));
    /// assert_eq!(registry.identify(b"Mozilla/5.0 (Linux; Android 10; CUBOT J9) Chrome/88.0 Safari/537.36"), Claim::Visitor);
    /// ```
    pub fn identify(&self, user_agent: &[u8]) -> Claim {
        self.markers.identify(user_agent, None)
    }

    /// [`identify`](Registry::identify) with the tokens and markers that a site's policy adds.
    #[doc(hidden)]
    pub fn identify_on_site(&self, user_agent: &[u8], tokens: &SiteMarkers) -> Claim {
        self.markers.identify(user_agent, Some(tokens))
    }
}

/// The longest documented cache time of this crawler and those that share its cache; zero if nothing
/// is documented.
fn longest_cache_time(crawler: &Crawler, all: &[Crawler]) -> Duration {
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
