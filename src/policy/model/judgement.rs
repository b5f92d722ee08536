//! The words for the judgement of a request: [`Verdict`], [`Kind`] and [`KnownIdentity`]. The tests
//! of a policy expect them, and logs, metrics, reports and pages show them.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray, VariantNames};

/// The verdict of the rules about a URL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[derive(Display, EnumString, IntoStaticStr, VariantNames)]
#[allow(missing_docs)]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum Verdict {
    Allowed,
    Disallowed,
    NotBound,
    #[default]
    NotACrawler,
}

/// The kind of a request, as far as it can be known (see `docs/semantics.md`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[derive(Display, EnumString, IntoStaticStr, VariantArray, VariantNames)]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum Kind {
    /// Allowed by the version in force.
    Allowed,
    /// Disallowed now, allowed by a version that the crawler may have cached.
    StaleCopy,
    /// Disallowed by every version that the crawler may have cached.
    Violation,
    /// Disallowed, or sooner than the crawl delay, on a host that is not observed for long enough:
    /// the crawler may have cached an unknown version.
    Unproven,
    /// Only what the path resolves to is disallowed.
    Ambiguous,
    /// Its operator says the rules do not bind it.
    NotBound,
    /// Against no rule, but sooner than the crawl delay lets it come.
    TooFast,
    /// Proven not to be the crawler that it says it is.
    Impostor,
    /// It requests a trap, or the client did recently.
    Trapped,
    /// Against no rule, but the policy refuses crawlers that are not verified.
    Unverified,
    /// Disallowed, but the policy exempts the crawler: no violation.
    Exempt,
    /// Not judged.
    #[default]
    NotACrawler,
}

/// What is proven of the name that a crawler gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
#[derive(Display, EnumString, IntoStaticStr, VariantArray, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum KnownIdentity {
    /// It is the crawler.
    Verified,
    /// Nothing is proven.
    #[default]
    Unverified,
    /// It is not the crawler.
    Impostor,
}

named!(Verdict, Kind, KnownIdentity);
