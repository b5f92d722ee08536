//! Labels for logs, metrics and reports: the names of crawlers ([`claim_label`], [`crawler_name`]),
//! and the positions of rules in a policy file ([`rule_place`], [`group_place`]).

use super::decision::Decision;
use crate::crawlers::{Claim, Registry};
use crate::policy::SiteEntry;
use crate::policy::site::{RuleSource, Site};
use crate::yaml::Span;

/// The crawler that a person means by `agent`, on a site or without one. See [`Site::claim_of`].
pub fn claim_of(agent: &str, registry: &Registry, site: Option<&Site>) -> Claim {
    match (site, registry.find(agent)) {
        (Some(site), _) => site.claim_of(agent, registry),
        (None, Some(index)) => Claim::Known(index),
        (None, None) => registry.identify(agent.as_bytes()),
    }
}

/// The label of a claim: the registry's id, the policy's token, `other` or `tool`; `None` for a
/// person, and for a token without the site whose token it is.
pub fn claim_label<'a>(
    claim: Claim,
    registry: &'a Registry,
    site: Option<&'a Site>,
) -> Option<&'a str> {
    match claim {
        Claim::Nobody => None,
        Claim::Other => Some("other"),
        Claim::Tool => Some("tool"),
        Claim::Known(index) => Some(&registry.get(index).id),
        Claim::Token(index) => site.and_then(|site| site.tokens.token(index)),
    }
}

/// Where the rule that decided is written: `file:line:column` of the policy, or a line of the
/// origin's file. `None` where no rule decided.
pub fn rule_place(decision: &Decision, site: &Site) -> Option<String> {
    let deciding = decision.rule?;
    let (_, source) = site.rule(deciding.group, deciding.rule?)?;
    Some(source_place(source, site).0)
}

/// Where the group that applied, and its crawl delay, is written: see `rule_place`. `None` where no
/// group applied.
pub fn group_place(decision: &Decision, site: &Site) -> Option<String> {
    let source = site.group_sources.get(usize::from(decision.rule?.group))?;
    Some(source_place(source, site).0)
}

/// `file:line:column` of a source in the policy, with its span there. For a line of the origin's
/// file it is that file and line, for staging the policy's name, both without a span.
pub fn source_place(source: &RuleSource, site: &Site) -> (String, Option<Span>) {
    let file = &site.policy.source.name;
    match source {
        RuleSource::Policy(span) | RuleSource::Purpose(span) => {
            (format!("{file}:{}:{}", span.line, span.column), Some(*span))
        }
        RuleSource::Staging => (format!("{file} (environment: staging)"), None),
        RuleSource::Origin(line) => (
            site.origin
                .as_ref()
                .map_or_else(|| "the origin".to_owned(), |origin| origin.place(*line)),
            None,
        ),
    }
}

/// The name by which a crawler knows itself: its token, else its name. `this crawler` for a claim
/// without a name.
pub fn crawler_name(registry: &Registry, entry: &SiteEntry, claim: Claim) -> String {
    match claim {
        Claim::Known(index) => {
            let crawler = registry.get(index);
            crawler.tokens.first().unwrap_or(&crawler.name).clone()
        }
        Claim::Token(_) => claim_label(claim, registry, Some(&entry.site))
            .unwrap_or_default()
            .to_owned(),
        Claim::Other | Claim::Tool | Claim::Nobody => "this crawler".to_owned(),
    }
}
