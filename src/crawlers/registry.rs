//! The registry: what is known of each crawler, with the source and date of each fact, read from `registry.yaml`.

use super::identify::{Marks, TokenMarks};
use super::{Claim, records};
use crate::yaml::{Diagnostics, Source};
use std::sync::LazyLock;
use std::time::Duration;

/// Place in [`Registry::crawlers`]. Stable while the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CrawlerIndex(pub u16);

/// What a crawler is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Purpose {
    Search,
    Training,
    Assistant,
    Archive,
    Seo,
    Preview,
    Monitoring,
    Feed,
    Advertising,
    Security,
    Tool,
    Other,
}

impl Purpose {
    /// All of them, in the order of the documentation.
    pub const ALL: [Purpose; 12] = [
        Purpose::Search,
        Purpose::Training,
        Purpose::Assistant,
        Purpose::Archive,
        Purpose::Seo,
        Purpose::Preview,
        Purpose::Monitoring,
        Purpose::Feed,
        Purpose::Advertising,
        Purpose::Security,
        Purpose::Tool,
        Purpose::Other,
    ];

    /// Its name in policies, metrics and reports.
    pub fn name(self) -> &'static str {
        match self {
            Purpose::Search => "search",
            Purpose::Training => "training",
            Purpose::Assistant => "assistant",
            Purpose::Archive => "archive",
            Purpose::Seo => "seo",
            Purpose::Preview => "preview",
            Purpose::Monitoring => "monitoring",
            Purpose::Feed => "feed",
            Purpose::Advertising => "advertising",
            Purpose::Security => "security",
            Purpose::Tool => "tool",
            Purpose::Other => "other",
        }
    }

    /// The purpose of this name.
    pub fn from_name(name: &str) -> Option<Purpose> {
        Purpose::ALL.into_iter().find(|purpose| purpose.name() == name)
    }
}

/// Which rules bind a crawler, by its operator's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Binds {
    /// Follows `*` when no group names it.
    Star,
    /// Only a group that names it.
    Named,
    /// robots.txt is ignored.
    Never,
    /// Nothing is said: treated as `Star`.
    Unknown,
}

/// One record of the registry.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Crawler {
    /// Stable identifier, the label in metrics.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Who runs it.
    pub operator: String,
    /// What it is for.
    pub purpose: Purpose,
    /// robots.txt product tokens, most specific first: it obeys the first that has a group. Empty for most tools.
    pub tokens: Vec<String>,
    /// How its user agent is recognised (see `identify.rs`). Empty for a policy token, which makes no requests.
    pub marks: Vec<String>,
    /// Strings near its marks that are somebody else; examples for tests.
    pub must_not_match: Vec<String>,
    /// One example of its user agent.
    pub user_agent: Option<String>,
    /// What binds it.
    pub binds: Binds,
    /// Whether it honours Crawl-delay; `None` is unknown.
    pub crawl_delay: Option<bool>,
    /// How long it is documented to keep a robots.txt; `None` is unknown.
    #[serde(skip)]
    pub robots_cache: Option<Duration>,
    /// The cache of robots.txt that it shares with others, when it is documented to share one.
    pub shares_cache: Option<String>,
    /// Suffixes of its hosts in reverse DNS, as recorded.
    pub rdns: Vec<String>,
    /// Autonomous systems, as recorded.
    pub asn: Vec<String>,
    /// Where its addresses are published, as recorded.
    pub ips: Vec<String>,
    /// Its Web Bot Auth origin, as recorded.
    pub signs: Option<String>,
    /// The operator's page.
    pub doc: Option<String>,
    /// Where the facts are from, and when they were read.
    pub source: String,
    /// What else matters.
    pub note: Option<String>,
}

/// All known crawlers.
#[derive(Debug)]
pub struct Registry {
    crawlers: Vec<Crawler>,
    marks: Marks,
    /// How long each of them is documented to keep a robots.txt, or anyone whose cache it shares.
    kept: Vec<Duration>,
}

impl Registry {
    /// The registry that comes with crawlgate; read once.
    pub fn builtin() -> &'static Registry {
        static BUILTIN: LazyLock<Registry> = LazyLock::new(|| {
            let source = Source { name: "registry.yaml".into(), text: include_str!("registry.yaml").into() };
            // The file is part of the program: a test reads it, as it reads the program.
            Registry::new(
                records::read(&source).expect("the registry that comes with crawlgate is tested to be readable"),
            )
        });
        &BUILTIN
    }

    /// This registry with records of your own, in the form of `registry.yaml`; a record with the id of one that is here
    /// takes its place. `examples/own_crawler.rs` shows it.
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
        let marks = Marks::new(&crawlers);
        let kept = crawlers.iter().map(|crawler| longest_kept(crawler, &crawlers)).collect();
        Registry { crawlers, marks, kept }
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

    /// The cache in which a crawler keeps robots.txt (its own id when it shares none), and how long it is documented to
    /// keep it there; zero when nothing is said.
    pub fn robots_cache(&self, index: CrawlerIndex) -> (&str, Duration) {
        let crawler = self.get(index);
        let kept = self.kept.get(usize::from(index.0)).copied().unwrap_or_default();
        (crawler.shares_cache.as_deref().unwrap_or(&crawler.id), kept)
    }

    /// The longest that any crawler is documented to keep a robots.txt.
    pub fn longest_robots_cache(&self) -> Duration {
        self.kept.iter().max().copied().unwrap_or_default()
    }

    /// The record with this id, name or first token, without regard to case.
    pub fn find(&self, name: &str) -> Option<CrawlerIndex> {
        let matches = |crawler: &Crawler| {
            let token = crawler.tokens.first().is_some_and(|token| token.eq_ignore_ascii_case(name));
            token || crawler.id.eq_ignore_ascii_case(name) || crawler.name.eq_ignore_ascii_case(name)
        };
        let index = self.crawlers.iter().position(matches)?;
        u16::try_from(index).ok().map(CrawlerIndex)
    }

    /// Product tokens with blanks in them, which a parser of robots.txt must know to read whole.
    pub fn tokens_with_blanks(&self) -> Vec<&str> {
        let tokens = self.crawlers().iter().flat_map(|crawler| &crawler.tokens);
        tokens.map(String::as_str).filter(|token| token.contains(' ')).collect()
    }

    /// Whom a user agent claims to be: [`Claim::Known`], [`Claim::Other`] or [`Claim::Nobody`]. Does not allocate.
    ///
    /// ```
    /// use crawlgate::crawlers::{Claim, Registry};
    /// let registry = Registry::builtin();
    /// assert_eq!(registry.identify(b"GPTBot/1.2"), Claim::Known(registry.find("GPTBot").unwrap()));
    /// assert_eq!(registry.identify(b"Mozilla/5.0 (Linux; Android 10; CUBOT J9) Chrome/88.0 Safari/537.36"), Claim::Nobody);
    /// ```
    pub fn identify(&self, user_agent: &[u8]) -> Claim {
        self.marks.identify(user_agent, None)
    }

    /// The same, with the tokens that a site's policy names and the registry does not know.
    pub fn identify_with(&self, user_agent: &[u8], tokens: &TokenMarks) -> Claim {
        self.marks.identify(user_agent, Some(tokens))
    }
}

fn longest_kept(crawler: &Crawler, all: &[Crawler]) -> Duration {
    let shares = |other: &&Crawler| crawler.shares_cache.is_some() && other.shares_cache == crawler.shares_cache;
    let others = all.iter().filter(shares).filter_map(|other| other.robots_cache);
    crawler.robots_cache.into_iter().chain(others).max().unwrap_or_default()
}
