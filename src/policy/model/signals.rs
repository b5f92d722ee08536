//! What a policy says about the use of the site's content, for example for AI training:
//! [`SiteSignals`], [`GroupSignals`] and [`TdmRule`] (text and data mining). `compile/signals`
//! turns them into lines of robots.txt and header lines.

use crate::yaml::{Located, SourceSpan};
use SignalCategory::*;
use std::collections::BTreeMap;
use strum::{EnumString, IntoStaticStr, VariantNames};

/// The statements of the section `robots`, for the whole site.
#[derive(Clone, Debug)]
pub struct SiteSignals {
    /// Content-Signal of the groups that have none of their own.
    pub content_signal: Option<ContentSignal>,
    /// Content-Usage of all groups and of the header.
    pub content_usage: Vec<ContentUsageRule>,
    /// Licences. The first that covers a path counts.
    pub licenses: Vec<LicensePolicy>,
    pub placement: SignalPlacement,
}

/// The statements of one group.
#[derive(Clone, Debug)]
pub struct GroupSignals {
    /// Content-Signal, in place of the site's.
    pub content_signal: Option<ContentSignal>,
    /// Content-Usage, which outranks the site's for the same path.
    pub content_usage: Vec<ContentUsageRule>,
    /// Licences for these crawlers.
    pub licenses: Vec<Located<String>>,
}

/// Where signals are published.
#[derive(Clone, Debug, Default, PartialEq, EnumString, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum SignalPlacement {
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
    /// All categories, in the order in which they are published.
    pub const ALL: [SignalCategory; 3] = [Search, AiInput, AiTrain];

    /// The nearest category of the AIPREF vocabulary.
    pub fn usage_category(self) -> &'static str {
        match self {
            Search => "search",
            AiInput => "ai-use",
            AiTrain => "train-ai",
        }
    }
}

/// A value of `content_signal`. An absent category is neither granted nor restricted.
#[derive(Clone, Debug)]
pub struct ContentSignal {
    /// Whether each named category is granted, in the order of [`SignalCategory::ALL`].
    pub values: BTreeMap<SignalCategory, Located<bool>>,
    /// How far the content may be used: one of [`USES`].
    pub extent: Option<&'static str>,
    /// The whole map.
    pub span: SourceSpan,
}

/// The values of `use`, which Cloudflare writes beside the categories.
pub const USES: [&str; 3] = ["immediate", "reference", "full"];

impl ContentSignal {
    /// The value for a category.
    pub fn get(&self, category: SignalCategory) -> Option<Located<bool>> {
        self.values.get(&category).copied()
    }
}

/// The categories of draft-ietf-aipref-vocab-08, in the order in which they are published.
pub const USAGE_CATEGORIES: [&str; 3] = ["train-ai", "ai-use", "search"];

/// One rule of `content_usage`.
#[derive(Clone, Debug)]
pub struct ContentUsageRule {
    /// Patterns that begin with `/`; empty for the whole site.
    pub paths: Vec<Located<String>>,
    /// Whether each named category is granted, those of the vocabulary first.
    pub values: Vec<(Located<String>, bool)>,
    /// The whole rule.
    pub span: SourceSpan,
}

/// An RSL licence.
#[derive(Clone, Debug)]
pub struct LicensePolicy {
    /// The absolute URL of the licence.
    pub url: Located<String>,
    /// Patterns of the paths that it covers; empty for the whole site.
    pub paths: Vec<Located<String>>,
}

/// The answer to a crawler that sends no licence token for a path that a licence covers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum UnlicensedAnswer {
    /// The page, as if there were no licence.
    Pass,
    /// 401, or 402.
    Refuse(u16),
}

/// One rule of `tdm`. The first that matches a path counts.
#[derive(Clone, Debug)]
pub struct TdmRule {
    /// Patterns; empty for the whole site.
    pub paths: Vec<Located<String>>,
    /// Whether the right of text and data mining is reserved.
    pub reserved: bool,
    /// The absolute URL of the terms for a licence.
    pub policy: Option<Located<String>>,
    /// The whole rule.
    pub span: SourceSpan,
}
