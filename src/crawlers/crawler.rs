//! [`Crawler`]: the entry of one crawler in the registry (the table of known crawlers). It records
//! what the crawler's operator documents. [`Purpose`] says what the crawler is for, and
//! [`RobotsObedience`] says which groups of a robots.txt the crawler obeys.

use crate::robots::Dialect;
use std::time::Duration;
use strum::{EnumString, IntoStaticStr, VariantArray, VariantNames};

/// The index of a crawler in [`crate::crawlers::Registry::crawlers`]. Stable while the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CrawlerIndex(pub u16);

/// What a crawler is for.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    serde::Serialize,
    serde::Deserialize,
    EnumString,
    IntoStaticStr,
    VariantArray,
    VariantNames,
)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
#[strum(serialize_all = "lowercase")]
#[non_exhaustive]
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

named!(Purpose);

impl Purpose {
    /// All of them, in the order of the documentation.
    pub const ALL: [Purpose; 12] = *<Purpose as VariantArray>::VARIANTS
        .first_chunk()
        .expect("twelve purposes");
}

/// The groups of a robots.txt that a crawler obeys, as its operator documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, EnumString, VariantNames)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum RobotsObedience {
    /// Obeys `*` when no group names it.
    Star,
    /// Obeys only a group that names it.
    Named,
    /// Ignores robots.txt.
    Never,
    /// The operator does not say: treated as `Star`.
    Unknown,
}

impl RobotsObedience {
    /// Whether the `*` group binds the crawler when no group names it.
    pub(crate) fn follows_star(self) -> bool {
        matches!(self, RobotsObedience::Star | RobotsObedience::Unknown)
    }
}

impl Crawler {
    /// Whether this is its first token, its id or its name, without regard to case. Its other
    /// tokens do not count: it may share them with other crawlers.
    pub fn has_name(&self, name: &str) -> bool {
        let token = self.tokens.first().into_iter();
        token
            .chain([&self.id, &self.name])
            .any(|known| known.eq_ignore_ascii_case(name))
    }

    /// Whether this is one of its tokens, without regard to case.
    pub(crate) fn has_token(&self, name: &str) -> bool {
        let mut tokens = self.tokens.iter();
        tokens.any(|token| token.eq_ignore_ascii_case(name))
    }
}

/// One record of the registry.
#[derive(Clone, Debug, serde::Serialize)]
#[non_exhaustive]
pub struct Crawler {
    /// Stable identifier, the label in metrics.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its operator.
    pub operator: String,
    /// What it is for.
    pub purpose: Purpose,
    /// robots.txt product tokens, most specific first: it obeys the first that has a group. Empty
    /// for most tools.
    pub tokens: Vec<String>,
    /// Products that people name when they mean it: `ChatGPT`.
    pub products: Vec<String>,
    /// The parts of a user agent by which it is known. Empty for a name that is used only in
    /// robots.txt, such as `Google-Extended`: under that name nothing makes requests.
    #[serde(rename = "marks")]
    pub markers: Vec<String>,
    /// Strings near its markers that stand for other programs; examples for tests.
    pub must_not_match: Vec<String>,
    /// One example of its user agent.
    pub user_agent: Option<String>,
    /// The groups that it obeys.
    pub binds: RobotsObedience,
    /// The parser of robots.txt that its operator publishes; RFC 9309 where none is published.
    pub reading: Dialect,
    /// Whether it honours Crawl-delay; `None` is unknown.
    pub crawl_delay: Option<bool>,
    /// How long it is documented to cache a robots.txt; `None` is unknown.
    #[serde(skip)]
    pub robots_cache: Option<Duration>,
    /// The name of the robots.txt cache that it is documented to share with other crawlers.
    pub shares_cache: Option<String>,
    /// Suffixes of its hosts in reverse DNS, as recorded.
    pub rdns: Vec<String>,
    /// Whether its operator documents only reverse DNS, and not that the name resolves back to the
    /// address.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) forward_undocumented: bool,
    /// Autonomous systems, as recorded.
    pub asn: Vec<String>,
    /// Where its addresses are published, as recorded.
    pub ips: Vec<String>,
    /// Its Web Bot Auth origin, as recorded.
    pub signs: Option<String>,
    /// The operator's page.
    pub doc: Option<String>,
    /// Since when its operator no longer names its token, as recorded.
    pub(crate) retired: Option<String>,
    /// Where the facts are from, and when they were read.
    pub source: String,
    /// A note for people.
    pub note: Option<String>,
}
