//! Which X-Robots-Tag lines a response gets.

use crate::indexing::Tags;
use crate::robots::Target;
use smallvec::SmallVec;

/// The compiled `indexing` rules of a site.
#[derive(Clone, Debug, Default)]
pub struct TagPlan {}

/// What the path of a request already decides: the rules that can still match once status and type are known.
pub type PathRules = SmallVec<[u16; 8]>;

/// What a response gets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TagLines {
    /// As data, to be merged with what the origin says.
    pub tags: Tags,
    /// Ready field values in the order of emission.
    pub lines: Vec<String>,
}

impl TagPlan {
    /// The rules whose conditions on the path hold.
    pub fn for_path(&self, target: Target<'_>) -> PathRules {
        let _ = target;
        todo!()
    }

    /// The rules of `rules` that match a response: the lines, shared and prepared where one rule matches; `None` where
    /// none does. On 304 only when no rule with a type could match (a partial field would replace the stored one, RFC
    /// 9111); never on 1xx.
    pub fn tags(
        &self,
        rules: &PathRules,
        status: u16,
        content_type: Option<&[u8]>,
    ) -> Option<std::sync::Arc<TagLines>> {
        let _ = (rules, status, content_type);
        todo!()
    }
}
