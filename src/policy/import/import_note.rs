//! [`ImportNote`]: what the owner should know about an imported robots.txt, mostly a part that was
//! left out because a policy cannot express it or crawlers do not read it.

/// A note about an import. Its text says what was left out, and why.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum ImportNote {
    /// The file is HTML.
    #[error("this is a page of HTML, not a robots.txt")]
    Html,
    /// The file is in UTF-16.
    #[error("this is UTF-16: no crawler reads a rule in it")]
    Utf16,
    /// The policy needs an acknowledgement, because it closes the site to Googlebot.
    #[error(
        "these rules keep Googlebot off the whole site, so crawlgate refuses the policy until it says \
         `acknowledge: [site_disallowed]`"
    )]
    Acknowledgement,
    /// `--purposes` had no effect.
    #[error(
        "`--purposes` changes nothing: there is no purpose of which the file closes the site to every known crawler; if one \
         is meant, write it, like `purposes: {{ training: disallow }}`"
    )]
    Purposes,
    /// A group for an invalid token was left out.
    #[error(
        "the group for `{0}` is left out: that is no product token, and no crawler is called so"
    )]
    Group(String),
    /// Further names of a User-agent line were left out.
    #[error("`{}` on the line of `{read}` is left out: crawlers read only the first name; add it to `agents` if it is meant", names.join("`, `"))]
    OtherAgents {
        /// The name that crawlers read.
        read: String,
        /// The names that they do not.
        names: Vec<String>,
    },
    /// A path that begins with neither `/` nor `*` was left out.
    #[error("`{0}` matches nothing and is left out: a path begins with `/` or `*`")]
    MatchesNothing(String),
    /// A path of so many bytes was left out.
    #[error("a path of {0} bytes is left out: no URL is as long")]
    PathTooLong(usize),
    /// A second Crawl-delay was left out.
    #[error("`Crawl-delay: {0}` is left out: the token has another one already")]
    SecondCrawlDelay(String),
    /// A Crawl-delay that a policy cannot express was left out.
    #[error("`Crawl-delay: {0}` is left out: a policy takes more than nothing and at most a day")]
    CrawlDelayOutOfRange(String),
    /// An unknown line was left out.
    #[error("`{0}` is left out: a policy cannot say it, or the token has another one already")]
    UnknownLine(String),
    /// A part of a signal line was left out.
    #[error(
        "`{part}` of `{line}` is left out: a policy cannot say it, or the token has another one already"
    )]
    SignalPart {
        /// The part.
        part: String,
        /// The line.
        line: String,
    },
    /// A licence with an invalid URL was left out.
    #[error("the licence is left out: {0}")]
    License(String),
    /// A sitemap without an absolute URL was left out.
    #[error("the sitemap `{0}` is left out: it is no absolute URL")]
    Sitemap(String),
    /// The part beyond 500 KiB was left out.
    #[error("what begins here lies beyond 500 KiB, and crawlers do not read it")]
    BeyondLimit,
    /// A rule before the first group was left out.
    #[error("`{0}` is left out: it stands before the first User-agent")]
    BeforeFirstGroup(String),
}
