//! What a policy says about the use of the site's content (for example for AI training), once it is
//! checked: [`SiteSignals`], [`GroupSignals`] and [`TdmRule`] (text and data mining).
//! `compile/signals.rs` makes lines of robots.txt and headers of them.

use super::Defaulted;
use crate::yaml::{Located, Span};
use strum::{EnumString, IntoStaticStr, VariantNames};

/// The statements for the whole site, in `robots`.
#[derive(Clone, Debug)]
pub struct SiteSignals {
    /// The signal of groups that have none of their own.
    pub content_signal: Option<ContentSignal>,
    /// The rules of groups, and of the header.
    pub content_usage: Vec<ContentUsage>,
    /// Licences. The first that covers a path is the one of that path.
    pub licenses: Vec<LicensePolicy>,
    /// Where signals are written.
    pub emission: Defaulted<Emission>,
}

/// The statements for the crawlers of a group.
#[derive(Clone, Debug, Default)]
pub struct GroupSignals {
    /// The signal in place of the site's.
    pub content_signal: Option<ContentSignal>,
    /// Rules that outrank the site's for the same path.
    pub content_usage: Vec<ContentUsage>,
    /// Licences for these crawlers.
    pub licenses: Vec<Located<String>>,
}

/// Where signals are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, EnumString, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum Emission {
    /// In robots.txt and in headers, each where its draft says.
    #[default]
    All,
    /// In headers only: robots.txt holds nothing that an older validator does not know.
    HeadersOnly,
}

/// A category of contentsignals.org.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum SignalCategory {
    /// A search index: links and short excerpts.
    Search,
    /// Input of a model at the time of an answer.
    AiInput,
    /// Training or fine-tuning.
    AiTrain,
}

named!(SignalCategory);

impl SignalCategory {
    /// In the order in which they are written.
    pub const ALL: [SignalCategory; 3] = [
        SignalCategory::Search,
        SignalCategory::AiInput,
        SignalCategory::AiTrain,
    ];

    /// The nearest category of the AIPREF vocabulary.
    pub fn usage(self) -> &'static str {
        match self {
            SignalCategory::Search => "search",
            SignalCategory::AiInput => "ai-use",
            SignalCategory::AiTrain => "train-ai",
        }
    }
}

/// `content_signal`: what is absent is neither granted nor restricted.
#[derive(Clone, Debug)]
pub struct ContentSignal {
    /// In the order of [`SignalCategory::ALL`].
    pub said: Vec<(SignalCategory, Located<bool>)>,
    /// How far the content may be used: one of [`USES`].
    pub extent: Option<&'static str>,
    /// The whole map.
    pub span: Span,
}

/// The values of `use`, which Cloudflare writes beside the categories.
pub const USES: [&str; 3] = ["immediate", "reference", "full"];

impl ContentSignal {
    /// The value for a category.
    pub fn get(&self, category: SignalCategory) -> Option<Located<bool>> {
        self.said
            .iter()
            .find(|(other, _)| *other == category)
            .map(|(_, said)| *said)
    }
}

/// The categories of draft-ietf-aipref-vocab-08, in the order in which they are written.
pub const USAGE_CATEGORIES: [&str; 3] = ["train-ai", "ai-use", "search"];

/// One rule of `content_usage`.
#[derive(Clone, Debug)]
pub struct ContentUsage {
    /// Patterns that begin with `/`; none is the whole site.
    pub paths: Vec<Located<String>>,
    /// Categories, those of the vocabulary first; what is absent is unknown.
    pub said: Vec<(Located<String>, bool)>,
    /// The whole rule.
    pub span: Span,
}

/// An RSL licence.
#[derive(Clone, Debug)]
pub struct LicensePolicy {
    /// Where the licence is: an absolute URL.
    pub url: Located<String>,
    /// Patterns of what it covers; none is the whole site.
    pub paths: Vec<Located<String>>,
}

/// The answer to a crawler without a licence token where a licence covers the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unlicensed {
    /// The page.
    Pass,
    /// 401, or 402.
    Refuse(u16),
}

/// One rule of `tdm`. The first whose path matches is the one that counts.
#[derive(Clone, Debug)]
pub struct TdmRule {
    /// Patterns; none is the whole site.
    pub paths: Vec<Located<String>>,
    /// Whether the rights of text and data mining are reserved.
    pub reserved: bool,
    /// Where a licence may be had: an absolute URL.
    pub policy: Option<Located<String>>,
    /// The whole rule.
    pub span: Span,
}
