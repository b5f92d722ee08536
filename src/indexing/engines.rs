//! [`BOTS`]: what the operators of crawlers document about X-Robots-Tag, with the page and its date. Each [`Bot`] says
//! whether a crawler reads the field and which directives it honours. Lints quote it.

use super::Directive;

/// The documentation of an operator about its crawler and X-Robots-Tag.
#[derive(Clone, Copy, Debug)]
pub struct Bot {
    /// Names by which lines address it, in lower case.
    pub names: &'static [&'static str],
    /// The operator, as a sentence begins.
    pub operator: &'static str,
    /// The places where it looks for directives, as its operator says.
    pub reads: Reads,
    /// Directives that its operator says it honours. Empty where there is no list.
    pub honours: &'static [&'static str],
    /// Directives that it did once honour, or that its operator says are not used.
    pub retired: &'static [&'static str],
    /// The page that says so.
    pub source: &'static str,
    /// The date of that page: a day, a month or a year.
    pub as_of: &'static str,
}

/// The places where a crawler looks for directives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// In the header, and in meta tags of HTML.
    Header,
    /// Its operator speaks of meta tags only.
    Meta,
    /// Its operator speaks of robots.txt only.
    RobotsTxt,
}

/// What an operator says about a directive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// Its operator says that it is honoured.
    Honoured,
    /// It was, or its operator says that it is not.
    Retired,
    /// The operator's list does not have it.
    Unlisted,
    /// There is no list.
    Unknown,
}

const GOOGLE: Bot = Bot {
    names: &["googlebot", "googlebot-news", "googlebot-image", "googlebot-video"],
    operator: "Google",
    reads: Reads::Header,
    honours: &[
        "all",
        "noindex",
        "nofollow",
        "nosnippet",
        "indexifembedded",
        "max-snippet",
        "max-image-preview",
        "max-video-preview",
        "notranslate",
        "noimageindex",
        "unavailable_after",
    ],
    retired: &["noarchive", "nocache", "nositelinkssearchbox", "noodp", "noydir"],
    source: "https://developers.google.com/search/docs/crawling-indexing/robots-meta-tag",
    as_of: "2026-03-24",
};

/// The bots whose operators document it: those that read the header first, those that read robots.txt alone last.
pub const BOTS: &[Bot] = &[
    GOOGLE,
    Bot {
        names: &["bingbot", "msnbot"],
        operator: "Bing",
        reads: Reads::Header,
        honours: &[
            "all",
            "noindex",
            "nofollow",
            "noarchive",
            "nocache",
            "nosnippet",
            "max-snippet",
            "max-image-preview",
            "max-video-preview",
        ],
        retired: &["noodp", "noydir"],
        source: "https://www.bing.com/webmasters/help/which-robots-metatags-does-bing-support-5198d240",
        as_of: "2023-09",
    },
    Bot {
        names: &["yandex", "yandexbot"],
        operator: "Yandex",
        reads: Reads::Header,
        honours: &["noindex", "nofollow", "noarchive"],
        retired: &["noodp", "noydir", "noyaca"],
        source: "https://yandex.com/support/webmaster/en/controlling-robot/meta-robots",
        as_of: "2026-09",
    },
    Bot {
        names: &["amazonbot"],
        operator: "Amazon",
        reads: Reads::Header,
        honours: &["noarchive", "noindex", "nofollow"],
        retired: &[],
        source: "https://developer.amazon.com/amazonbot",
        as_of: "2026-04",
    },
    Bot {
        names: &["applebot"],
        operator: "Apple",
        reads: Reads::Meta,
        honours: &["all", "noindex", "nosnippet", "nofollow"],
        retired: &[],
        source: "https://support.apple.com/en-us/119829",
        as_of: "2025",
    },
    Bot {
        names: &["gptbot", "oai-searchbot", "chatgpt-user"],
        operator: "OpenAI",
        reads: Reads::RobotsTxt,
        honours: &[],
        retired: &[],
        source: "https://developers.openai.com/api/docs/bots",
        as_of: "2026-09",
    },
    Bot {
        names: &["claudebot", "claude-user", "claude-searchbot"],
        operator: "Anthropic",
        reads: Reads::RobotsTxt,
        honours: &[],
        retired: &[],
        source: "https://support.claude.com/en/articles/8896518-does-anthropic-crawl-data-from-the-web-and-how-can-site-owners-block-the-crawler",
        as_of: "2026-04",
    },
    Bot {
        names: &["ccbot"],
        operator: "Common Crawl",
        reads: Reads::RobotsTxt,
        honours: &[],
        retired: &[],
        source: "https://commoncrawl.org/ccbot",
        as_of: "2026-09",
    },
    Bot {
        names: &["google-extended"],
        operator: "Google",
        reads: Reads::RobotsTxt,
        honours: &[],
        retired: &[],
        source: "https://developers.google.com/crawling/docs/crawlers-fetchers/google-common-crawlers#google-extended",
        as_of: "2026-10",
    },
];

/// The bot that lines address by a name.
pub fn bot(name: &str) -> Option<&'static Bot> {
    BOTS.iter().find(|bot| bot.names.iter().any(|known| known.eq_ignore_ascii_case(name)))
}

impl Bot {
    /// The operator's support of a directive.
    pub fn support(&self, directive: &Directive) -> Support {
        let name = directive.name();
        match () {
            () if self.honours.contains(&name) => Support::Honoured,
            () if self.retired.contains(&name) => Support::Retired,
            () if self.honours.is_empty() => Support::Unknown,
            () => Support::Unlisted,
        }
    }
}

/// Whether a directive is retired by some and honoured by no crawler that reads the header.
pub fn is_retired_by_all(directive: &Directive) -> bool {
    let readers = || BOTS.iter().filter(|bot| bot.reads == Reads::Header).map(|bot| bot.support(directive));
    readers().any(|support| support == Support::Retired) && !readers().any(|support| support == Support::Honoured)
}
