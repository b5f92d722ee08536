//! [`DOCUMENTED_BOTS`]: the crawlers that ignore the response header X-Robots-Tag, as the
//! documentation of their operators says. The table also says where each crawler reads directives
//! instead. The lints (checks) of a policy quote this table.

/// What an operator documents about its crawler and directives.
#[derive(Debug)]
pub struct DocumentedBot {
    /// Names by which X-Robots-Tag addresses it, in lower case.
    pub names: &'static [&'static str],
    /// The operator, as at the beginning of a sentence.
    pub operator: &'static str,
    /// Where it takes directives from.
    pub directive_source: DirectiveSource,
    /// The page of the documentation.
    pub source_url: &'static str,
    /// The date of that page: a day, a month or a year.
    pub as_of: &'static str,
}

/// Where a crawler takes directives from, instead of X-Robots-Tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectiveSource {
    /// Meta tags of pages.
    Meta,
    /// robots.txt.
    RobotsTxt,
}

/// The documented bots, one entry for each page of documentation.
pub const DOCUMENTED_BOTS: &[DocumentedBot] = &[
    DocumentedBot {
        names: &["applebot"],
        operator: "Apple",
        directive_source: DirectiveSource::Meta,
        source_url: "https://support.apple.com/en-us/119829",
        as_of: "2025",
    },
    DocumentedBot {
        names: &["gptbot", "oai-searchbot", "chatgpt-user"],
        operator: "OpenAI",
        directive_source: DirectiveSource::RobotsTxt,
        source_url: "https://developers.openai.com/api/docs/bots",
        as_of: "2026-09",
    },
    DocumentedBot {
        names: &["claudebot", "claude-user", "claude-searchbot"],
        operator: "Anthropic",
        directive_source: DirectiveSource::RobotsTxt,
        source_url: "https://support.claude.com/en/articles/8896518-does-anthropic-crawl-data-from-the-web-and-how-can-site-owners-block-the-crawler",
        as_of: "2026-04",
    },
    DocumentedBot {
        names: &["ccbot"],
        operator: "Common Crawl",
        directive_source: DirectiveSource::RobotsTxt,
        source_url: "https://commoncrawl.org/ccbot",
        as_of: "2026-09",
    },
    DocumentedBot {
        names: &["google-extended"],
        operator: "Google",
        directive_source: DirectiveSource::RobotsTxt,
        source_url: "https://developers.google.com/crawling/docs/crawlers-fetchers/google-common-crawlers#google-extended",
        as_of: "2026-10",
    },
];

/// The entry for a bot's name, without regard to case.
pub fn find_bot(name: &str) -> Option<&'static DocumentedBot> {
    DOCUMENTED_BOTS.iter().find(|bot| {
        bot.names
            .iter()
            .any(|known| known.eq_ignore_ascii_case(name))
    })
}
