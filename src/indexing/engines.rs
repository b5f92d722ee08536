//! [`BOTS`]: crawlers of which their operators document that they look for directives elsewhere
//! than in X-Robots-Tag, with the page and its date. Lints quote it.

/// The documentation of an operator about its crawler and X-Robots-Tag.
#[derive(Clone, Copy, Debug)]
pub struct Bot {
    /// Names by which lines address it, in lower case.
    pub names: &'static [&'static str],
    /// The operator, as a sentence begins.
    pub operator: &'static str,
    /// The places where it looks for directives, as its operator says.
    pub reads: Reads,
    /// The page that says so.
    pub source: &'static str,
    /// The date of that page: a day, a month or a year.
    pub as_of: &'static str,
}

/// The places where a crawler looks for directives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// Its operator speaks of meta tags only.
    Meta,
    /// Its operator speaks of robots.txt only.
    RobotsTxt,
}

/// The bots whose operators document that they look elsewhere.
pub const BOTS: &[Bot] = &[
    Bot {
        names: &["applebot"],
        operator: "Apple",
        reads: Reads::Meta,
        source: "https://support.apple.com/en-us/119829",
        as_of: "2025",
    },
    Bot {
        names: &["gptbot", "oai-searchbot", "chatgpt-user"],
        operator: "OpenAI",
        reads: Reads::RobotsTxt,
        source: "https://developers.openai.com/api/docs/bots",
        as_of: "2026-09",
    },
    Bot {
        names: &["claudebot", "claude-user", "claude-searchbot"],
        operator: "Anthropic",
        reads: Reads::RobotsTxt,
        source: "https://support.claude.com/en/articles/8896518-does-anthropic-crawl-data-from-the-web-and-how-can-site-owners-block-the-crawler",
        as_of: "2026-04",
    },
    Bot {
        names: &["ccbot"],
        operator: "Common Crawl",
        reads: Reads::RobotsTxt,
        source: "https://commoncrawl.org/ccbot",
        as_of: "2026-09",
    },
    Bot {
        names: &["google-extended"],
        operator: "Google",
        reads: Reads::RobotsTxt,
        source: "https://developers.google.com/crawling/docs/crawlers-fetchers/google-common-crawlers#google-extended",
        as_of: "2026-10",
    },
];

/// The entry of `BOTS` for the name by which lines address a bot, without regard to case.
pub fn bot(name: &str) -> Option<&'static Bot> {
    BOTS.iter().find(|bot| {
        bot.names
            .iter()
            .any(|known| known.eq_ignore_ascii_case(name))
    })
}
