//! [`ImportNote`]: what the owner should know about an imported robots.txt. Most notes are about a
//! part that was left out, because a policy cannot express it, or because crawlers do not read it.

/// A note about an import. Its text says what was left out, and why.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum ImportNote {
    /// A finding of the lints about a part that crawlers read differently, or not at all.
    #[error("the policy has only what Google reads here: {0}")]
    Finding(String),
    /// The policy needs an acknowledgement, because it closes the site to Googlebot.
    #[error(
        "these rules keep Googlebot off the whole site. crawlgate does not use the policy until \
         it has the line \"acknowledge: [site_disallowed]\""
    )]
    Acknowledgement,
    /// A group for an invalid token was left out.
    #[error("the group for \"{0}\" is left out: no crawler has this name")]
    Group(String),
    /// A path of so many bytes was left out.
    #[error("a path of {0} bytes is left out: no URL is as long")]
    PathTooLong(usize),
    /// A line was left out: an unknown one, a second Crawl-delay, or one that a policy cannot
    /// express.
    #[error(
        "\"{0}\" is left out: a policy cannot express it, or the group already has such a line"
    )]
    UnknownLine(String),
    /// A part of a signal line was left out.
    #[error(
        "\"{part}\" of \"{line}\" is left out: a policy cannot express it, or the group already \
         has such a line"
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
    #[error("the sitemap \"{0}\" is left out: it is not an absolute URL")]
    Sitemap(String),
    /// A rule before the first group was left out.
    #[error("\"{0}\" is left out: it precedes the first User-agent line")]
    BeforeFirstGroup(String),
}
