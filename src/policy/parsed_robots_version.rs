//! [`ParsedRobotsVersion`]: an earlier robots.txt of a site, parsed. Requests are judged by this
//! file, too, while crawlers may still have it in their caches. Parsing needs only the bytes of the
//! file, not the policy.

use super::site::{
    GroupBinding, RobotsVersionId, crawler_names, find_binding, unregistered_tokens,
};
use crate::crawlers::{Claim, Crawler, Registry, RobotsObedience, SiteMarkers};
use crate::robots::{
    AgentLine, Dialect, DialectRules, GroupMatcher, RobotsDocument, RobotsFile, RuleGroup, RuleSet,
};
use Claim::*;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

/// A robots.txt that is ready for verdicts.
#[derive(Debug)]
pub struct ParsedRobotsVersion {
    /// Its id.
    pub version: RobotsVersionId,
    /// Its bytes.
    pub body: Arc<[u8]>,
    /// Its groups as RFC 9309 reads them.
    pub matcher: GroupMatcher,
    /// The groups for Google's crawlers as Google's library reads them; `None` where it reads the
    /// same.
    pub google: Option<GroupMatcher>,
    /// The crawl delay of each group.
    pub delays: Vec<Option<Duration>>,
    /// The tokens in it that the registry does not know.
    pub tokens: SiteMarkers,
}

impl ParsedRobotsVersion {
    /// Parses a file as RFC 9309 says and as Google's library does.
    pub fn parse(body: Arc<[u8]>, registry: &Registry) -> ParsedRobotsVersion {
        let file = RobotsFile::parse(body.clone());
        let reading = DialectRules::new(&file, Dialect::Rfc9309, &registry.tokens_with_blanks());
        let document = RobotsDocument {
            groups: groups_of_reading(&reading, |_| true),
            ..RobotsDocument::default()
        };
        let agents = document
            .groups
            .iter()
            .flat_map(|group| &group.agents)
            .map(String::as_str);
        ParsedRobotsVersion {
            version: RobotsVersionId::from_body(&body),
            body,
            matcher: GroupMatcher::new(&document),
            google: google_matcher(&file, &reading, registry),
            delays: document
                .groups
                .iter()
                .map(|group| group.crawl_delay)
                .collect(),
            tokens: SiteMarkers::new(unregistered_tokens(agents, registry)),
        }
    }

    /// The rules that Google's library applies to one of Google's crawlers; `None` where no group
    /// binds it.
    pub fn google_rules(&self, crawler: &Crawler, binds: RobotsObedience) -> Option<&RuleSet> {
        let matcher = self.google.as_ref().unwrap_or(&self.matcher);
        let group = find_binding(matcher, crawler_names(crawler), binds)
            .0
            .group()?;
        Some(matcher.rules(group))
    }

    /// The group that binds a claim. [`Claim::PolicyToken`] is an index of
    /// [`ParsedRobotsVersion::tokens`].
    pub fn binding(
        &self,
        registry: &Registry,
        claim: Claim,
        binds: RobotsObedience,
    ) -> GroupBinding {
        match claim {
            Visitor => GroupBinding::NoRules,
            UnknownBot | Tool => find_binding(&self.matcher, std::iter::empty(), binds).0,
            Known(index) => {
                find_binding(&self.matcher, crawler_names(registry.get(index)), binds).0
            }
            PolicyToken(index) => {
                find_binding(&self.matcher, self.tokens.token(index).into_iter(), binds).0
            }
        }
    }
}

/// The groups for Google's crawlers and for `*` as Google's library reads them; `None` where they
/// equal those of `rfc`, the reading by RFC 9309.
fn google_matcher(
    file: &RobotsFile,
    rfc: &DialectRules,
    registry: &Registry,
) -> Option<GroupMatcher> {
    let known: HashSet<String> = registry
        .crawlers()
        .iter()
        .filter(|crawler| crawler.reading == Dialect::Google)
        .flat_map(crawler_names)
        .map(str::to_ascii_lowercase)
        .collect();
    let is_google =
        |agent: &AgentLine| agent.star || known.contains(&agent.token.to_ascii_lowercase());
    let google = groups_of_reading(&DialectRules::new(file, Dialect::Google, &[]), is_google);
    (google != groups_of_reading(rfc, is_google)).then(|| {
        GroupMatcher::new(&RobotsDocument {
            groups: google,
            ..RobotsDocument::default()
        })
    })
}

/// The groups of a reading, with only the wanted agents. Agents that the same groups name share a
/// group, with the rules of these groups and their shortest Crawl-delay (RFC 9309 section 2.2.1).
fn groups_of_reading(
    reading: &DialectRules,
    is_wanted: impl Fn(&AgentLine) -> bool,
) -> Vec<RuleGroup> {
    let mut places: HashMap<&[usize], usize> = HashMap::new();
    let mut groups: Vec<RuleGroup> = Vec::new();
    let agents = reading.first_agent_lines();
    for agent in agents.filter(|agent| !agent.token.is_empty() && is_wanted(agent)) {
        let (_, union) = reading.groups_for(agent.token.as_bytes());
        let place = *places.entry(union).or_insert_with(|| {
            groups.push(RuleGroup {
                rules: reading
                    .groups_at(union)
                    .flat_map(|part| &part.rules)
                    .map(|line| line.rule.clone())
                    .collect(),
                crawl_delay: reading
                    .groups_at(union)
                    .filter_map(|part| part.crawl_delay)
                    .min(),
                ..RuleGroup::default()
            });
            groups.len() - 1
        });
        groups[place].agents.push(agent.token.clone());
    }
    groups
}
