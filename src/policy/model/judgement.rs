//! The results of judging a request. [`Verdict`] is what the rules say about the URL. [`Kind`] is
//! what crawlgate calls the request, such as a violation. [`IdentityStatus`] says whether the
//! client is the crawler that it claims to be. A test in a policy names the results that its owner
//! expects. Logs, metrics, reports and pages show results.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray, VariantNames};

/// What the rules say about a URL.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Display,
    EnumString,
    IntoStaticStr,
    VariantNames,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum Verdict {
    /// The rules allow the crawler to fetch the URL.
    Allowed,
    /// The rules disallow it.
    Disallowed,
    /// The crawler's operator says that robots.txt does not bind it.
    NotBound,
    /// The client is no crawler, or the host is not one of the policy's: the rules say nothing.
    #[default]
    NotACrawler,
}

/// What crawlgate calls a request, by the rules and by what it knows of the crawler (see
/// `docs/semantics.md`).
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Display,
    EnumString,
    IntoStaticStr,
    VariantArray,
    VariantNames,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum Kind {
    /// Allowed by the version in force.
    Allowed,
    /// Disallowed now, allowed by a version that the crawler may have cached.
    StaleCopy,
    /// Disallowed by every version that the crawler may have cached.
    Violation,
    /// Disallowed, or sooner than the crawl delay, on a host that crawlgate has not observed for long
    /// enough: the crawler may have cached a robots.txt that crawlgate does not know.
    Unproven,
    /// The URL as sent is allowed, but what it resolves to is disallowed; or only Google's parser
    /// allows it.
    Ambiguous,
    /// The crawler's operator says that the rules do not bind it.
    NotBound,
    /// Allowed, but sooner than the crawl delay permits.
    TooFast,
    /// The client is proven not to be the crawler that it claims to be.
    Impostor,
    /// A request of a trap, or of a client that requested one recently.
    Trapped,
    /// Allowed, but the policy blocks crawlers that are not verified.
    Unverified,
    /// Disallowed, but the policy exempts the crawler: no violation.
    Exempt,
    /// The client is no crawler, or the host is not one of the policy's: the request is not judged.
    #[default]
    NotACrawler,
}

/// What is proven about a claimed identity.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Deserialize,
    Serialize,
    Display,
    EnumString,
    IntoStaticStr,
    VariantArray,
    VariantNames,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum IdentityStatus {
    /// The client is the crawler that it claims to be.
    Verified,
    /// Neither is proven.
    #[default]
    Unverified,
    /// The client is not that crawler.
    Impostor,
}

named!(Verdict, Kind, IdentityStatus);
