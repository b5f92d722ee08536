//! The same decision with its reasons, as text and as JSON.

use super::Facts;
use crate::crawlers::Registry;
use crate::policy::Snapshot;
use serde::Serialize;

/// What is asked beyond the facts: the response that the tags are for.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The request.
    pub facts: Facts<'a>,
    /// The response's status.
    pub status: u16,
    /// The response's content type.
    pub content_type: Option<&'a str>,
}

/// The answer; serialised as the design's `explain --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct Explanation {
    pub site: Option<String>,
    pub host: String,
    pub target: String,
    pub crawler: Option<CrawlerReport>,
    pub identity: super::Identity,
    pub group: Option<GroupReport>,
    pub rule: Option<RuleReport>,
    pub verdict: super::Verdict,
    pub kind: super::Kind,
    pub action: ActionReport,
    pub x_robots_tag: Vec<String>,
    pub version: Option<String>,
}

#[allow(missing_docs)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CrawlerReport {
    pub id: String,
    pub token: Option<String>,
    pub purpose: &'static str,
}

#[allow(missing_docs)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GroupReport {
    pub agents: Vec<String>,
}

#[allow(missing_docs)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuleReport {
    pub kind: &'static str,
    pub pattern: String,
    pub source: String,
}

#[allow(missing_docs)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ActionReport {
    /// `pass`, `block`, `pause` or `robots_txt`.
    pub kind: &'static str,
    pub status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub would: Option<Box<ActionReport>>,
}

/// Decides and says why.
pub fn explain(snapshot: &Snapshot, registry: &Registry, question: &Question<'_>) -> Explanation {
    let _ = (snapshot, registry, question);
    todo!()
}

impl Explanation {
    /// For a person: several lines, the rule with its place.
    pub fn to_text(&self, snapshot: &Snapshot) -> String {
        let _ = snapshot;
        todo!()
    }
}
