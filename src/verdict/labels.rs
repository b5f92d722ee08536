//! Short texts about a request. Two name the crawler that the request claims to come from:
//! [`claim_label`] for logs and metrics, and [`crawler_name`] for the text of the response that
//! this crawler gets. Two give a place in a policy file, such as `shop.yaml:7:18`:
//! [`rule_location`] gives the place of the rule that decided the verdict, and [`source_location`]
//! that of any line.

use super::decision::Decision;
use crate::crawlers::{Claim, Registry};
use crate::policy::SiteEntry;
use crate::policy::site::{RuleSource, Site};
use crate::yaml::SourceSpan;

use Claim::*;
use RuleSource::*;

/// The label of a claim: the registry's id, the policy's token, `other` or `tool`; `None` for a
/// person, and for a token without the site whose token it is.
pub fn claim_label<'a>(
    claim: Claim,
    registry: &'a Registry,
    site: Option<&'a Site>,
) -> Option<&'a str> {
    match claim {
        Visitor => None,
        UnknownBot => Some("other"),
        Tool => Some("tool"),
        Known(index) => Some(&registry.get(index).id),
        PolicyToken(index) => site.and_then(|site| site.tokens.token(index)),
    }
}

/// The location of the rule that decided: `file:line:column` of the policy, or a line of the
/// origin's file. `None` where no rule decided.
pub fn rule_location(decision: &Decision, site: &Site) -> Option<String> {
    let deciding = decision.rule?;
    let (_, source) = site.rule(deciding.group, deciding.rule?)?;
    Some(source_location(source, site).0)
}

/// The line of a robots.txt without a policy that decided, if it is misspelt: other crawlers than
/// Google's may ignore it. A policy publishes no such line.
pub fn misspelt_line(decision: &Decision, site: &Site) -> Option<String> {
    let deciding = decision.rule?;
    match site.rule(deciding.group, deciding.rule?)?.1 {
        Origin(line) if site.policy.hosts.is_empty() => site.origin.as_ref()?.misspelt_line(*line),
        _ => None,
    }
}

/// `file:line:column` of a source in the policy, with its span there. For a line of the defaults or
/// the origin's file it is that file and line, for staging the policy's name, both without a span.
pub fn source_location(source: &RuleSource, site: &Site) -> (String, Option<SourceSpan>) {
    let policy = &site.policy;
    let file = &policy.source.name;
    match source {
        Policy(span) | Purpose(span) => {
            let defaults = policy.defaults.as_ref();
            match defaults.and_then(|defaults| defaults.place(span.line)) {
                Some(place) => (format!("{place}:{}", span.column), None),
                None => (format!("{file}:{}:{}", span.line, span.column), Some(*span)),
            }
        }
        Staging => (format!("{file} (environment: staging)"), None),
        Origin(line) => (
            site.origin.as_ref().map_or_else(
                || "the origin".to_owned(),
                |origin| origin.line_location(*line),
            ),
            None,
        ),
    }
}

/// The name for a crawler in an answer to it: its token, else its name, else `this crawler`.
pub fn crawler_name(registry: &Registry, entry: &SiteEntry, claim: Claim) -> String {
    let name = match claim {
        Known(index) => {
            let crawler = registry.get(index);
            Some(crawler.tokens.first().unwrap_or(&crawler.name).as_str())
        }
        PolicyToken(index) => entry.site.tokens.token(index),
        UnknownBot | Tool | Visitor => None,
    };
    name.unwrap_or("this crawler").to_owned()
}
