//! [`LeftOut`]: a part of a robots.txt that an import leaves out, because a policy cannot say it or
//! crawlers do not read it. Its text tells the user of the import what was left out, and why.

/// A part of a robots.txt that an import leaves out, because a policy cannot say it or crawlers do
/// not read it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum LeftOut {
    /// The file is a page.
    #[error("this is a page of HTML, not a robots.txt")]
    Html,
    /// The file is in UTF-16.
    #[error("this is UTF-16: no crawler reads a rule in it")]
    Utf16,
    /// What a policy has to say that keeps Googlebot off the whole site.
    #[error(
        "these rules keep Googlebot off the whole site, so crawlgate refuses the policy until it says \
         `acknowledge: [site_disallowed]`"
    )]
    Acknowledgement,
    /// `purposes`, which were asked for.
    #[error(
        "`--purposes` changes nothing: there is no purpose of which the file closes the site to every known crawler; if one \
         is meant, write it, like `purposes: {{ training: disallow }}`"
    )]
    Purposes,
    /// A group for a token that a policy cannot have.
    #[error(
        "the group for `{0}` is left out: that is no product token, and no crawler is called so"
    )]
    Group(String),
    /// Names behind the first of a User-agent line.
    #[error("`{}` on the line of `{read}` is left out: crawlers read only the first name; add it to `agents` if it is meant", names.join("`, `"))]
    OtherAgents {
        /// The name that crawlers read.
        read: String,
        /// The names that they do not.
        names: Vec<String>,
    },
    /// A path that begins with neither `/` nor `*`.
    #[error("`{0}` matches nothing and is left out: a path begins with `/` or `*`")]
    MatchesNothing(String),
    /// A path with so many octets.
    #[error("a path of {0} octets is left out: no URL is as long")]
    PathTooLong(usize),
    /// A second value of Crawl-delay.
    #[error("`Crawl-delay: {0}` is left out: the token has another one already")]
    SecondCrawlDelay(String),
    /// A value of Crawl-delay that a policy does not take.
    #[error("`Crawl-delay: {0}` is left out: a policy takes more than nothing and at most a day")]
    CrawlDelayOutOfRange(String),
    /// A line of an unknown kind.
    #[error("`{0}` is left out: a policy cannot say it, or the token has another one already")]
    UnknownLine(String),
    /// A part of a line with signals.
    #[error(
        "`{part}` of `{line}` is left out: a policy cannot say it, or the token has another one already"
    )]
    SignalPart {
        /// The part.
        part: String,
        /// The line.
        line: String,
    },
    /// A licence whose URL has this mistake.
    #[error("the licence is left out: {0}")]
    License(String),
    /// A sitemap whose URL is not absolute.
    #[error("the sitemap `{0}` is left out: it is no absolute URL")]
    Sitemap(String),
    /// The rest of the file.
    #[error("what begins here lies beyond 500 KiB, and crawlers do not read it")]
    BeyondLimit,
    /// A rule that belongs to no group.
    #[error("`{0}` is left out: it stands before the first User-agent")]
    BeforeFirstGroup(String),
}
