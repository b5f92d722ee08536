//! [`ImportNote`]: what the owner should know about an imported robots.txt. Most notes are about a
//! part that was left out, because a policy cannot express it, or because crawlers do not read it.

/// A note about an import. Its text says what was left out, and why.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum ImportNote {
    /// The file is HTML.
    #[error("this is an HTML page, not a robots.txt")]
    Html,
    /// The file is in UTF-16.
    #[error("this is UTF-16: crawlers find no rules in it")]
    Utf16,
    /// The policy needs an acknowledgement, because it closes the site to Googlebot.
    #[error(
        "these rules keep Googlebot off the whole site. crawlgate does not use the policy until \
         it has the line \"acknowledge: [site_disallowed]\""
    )]
    Acknowledgement,
    /// A group for an invalid token was left out.
    #[error("the group for \"{0}\" is left out: no crawler has this name")]
    Group(String),
    /// Further names of a User-agent line were left out.
    #[error("\"{}\" on the line of \"{read}\" is left out: crawlers read only the first name. If \
             it is meant, add it to \"agents\"", names.join("\", \""))]
    OtherAgents {
        /// The name that crawlers read.
        read: String,
        /// The names that they do not.
        names: Vec<String>,
    },
    /// A path that begins with neither `/` nor `*` was left out.
    #[error("\"{0}\" matches nothing and is left out: a path begins with \"/\" or \"*\"")]
    MatchesNothing(String),
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
    /// The part beyond 500 KiB was left out.
    #[error("everything from here on is beyond 500 KiB, and crawlers do not read it")]
    BeyondLimit,
    /// A rule before the first group was left out.
    #[error("\"{0}\" is left out: it precedes the first User-agent line")]
    BeforeFirstGroup(String),
}
