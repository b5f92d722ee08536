//! [`ParsedVersion`]: a robots.txt that was published earlier, parsed so that requests can be
//! judged by it. A crawler may still have it cached. It is parsed from its bytes alone, so the
//! policy that it was made from is not needed.

use super::site::{Binding, Version, binding, names, unlisted};
use crate::crawlers::{Binds, Claim, Crawler, Registry, SiteMarkers};
use crate::robots::{
    AgentLine, Dialect, Document, File, FileGroup, Group, Key, Matcher, Reading, RuleSet,
};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// The bytes of a version, ready for verdicts.
#[derive(Debug)]
pub struct ParsedVersion {
    /// The version id of the bytes.
    pub version: Version,
    /// The bytes.
    pub body: Arc<[u8]>,
    /// Their groups.
    pub matcher: Matcher,
    /// Their groups as Google's library reads them, those for Google's crawlers alone; `None` where
    /// it reads the same.
    pub google: Option<Matcher>,
    /// The crawl delay of each group; a value that is not a number does not count.
    pub delays: Vec<Option<Duration>>,
    /// The tokens in them that the registry does not know.
    pub tokens: SiteMarkers,
}

impl ParsedVersion {
    /// Reads a file, as RFC 9309 says and as Google's library does.
    pub fn read(body: Arc<[u8]>, registry: &Registry) -> ParsedVersion {
        let version = Version::of(&body);
        let file = File::parse(body.clone());
        let reading = Reading::new(&file, Dialect::Rfc9309, &registry.tokens_with_blanks());
        let document = Document {
            groups: groups(&file, &reading, |_| true),
            ..Document::default()
        };
        let agents = document
            .groups
            .iter()
            .flat_map(|group| &group.agents)
            .map(String::as_str);
        let tokens = SiteMarkers::new(unlisted(agents, registry));
        let delays = document
            .groups
            .iter()
            .map(|group| group.crawl_delay)
            .collect();
        let google = google_matcher(&file, &reading, registry);
        ParsedVersion {
            version,
            body,
            matcher: Matcher::new(&document),
            google,
            delays,
            tokens,
        }
    }

    /// The rules of the group that Google's library finds for one of Google's crawlers, by its
    /// names or by `*` if `binds` lets it follow `*`. `None` where no group binds the crawler.
    pub fn google_rules(&self, crawler: &Crawler, binds: Binds) -> Option<&RuleSet> {
        let matcher = self.google.as_ref().unwrap_or(&self.matcher);
        let group = binding(matcher, names(crawler), binds).0.group()?;
        Some(matcher.rules(usize::from(group)))
    }

    /// The group that binds a claim. A token's index is that of [`ParsedVersion::tokens`]; `binds`
    /// comes from the registry or the policy.
    pub fn binding(&self, registry: &Registry, claim: Claim, binds: Binds) -> Binding {
        match claim {
            Claim::Nobody => Binding::NoRules,
            Claim::Other | Claim::Tool => binding(&self.matcher, std::iter::empty(), binds).0,
            Claim::Known(index) => binding(&self.matcher, names(registry.get(index)), binds).0,
            Claim::Token(index) => {
                binding(&self.matcher, self.tokens.token(index).into_iter(), binds).0
            }
        }
    }
}

/// The groups for Google's crawlers and for `*` as Google's library reads them. `None` where it
/// reads these groups as RFC 9309 does (`rfc` is that reading of the same file).
fn google_matcher(file: &File, rfc: &Reading, registry: &Registry) -> Option<Matcher> {
    let crawlers = registry
        .crawlers()
        .iter()
        .filter(|crawler| crawler.reading == Dialect::Google);
    let known: HashSet<String> = crawlers
        .flat_map(names)
        .map(str::to_ascii_lowercase)
        .collect();
    let is_google =
        |agent: &AgentLine| agent.star || known.contains(&agent.token.to_ascii_lowercase());
    let google = groups(file, &Reading::new(file, Dialect::Google, &[]), is_google);
    if google == groups(file, rfc, is_google) {
        return None;
    }
    Some(Matcher::new(&Document {
        groups: google,
        ..Document::default()
    }))
}

/// The groups of a reading, each with only those of its agents that `is_wanted` accepts; groups
/// without any are left out. If an agent stands in several groups, every agent gets a group of its
/// own with the rules of all its groups and the shortest Crawl-delay (RFC 9309 section 2.2.1).
fn groups(file: &File, reading: &Reading, is_wanted: impl Fn(&AgentLine) -> bool) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut seen = HashSet::new();
    let mut is_each_agent_once = true;
    for group in reading.groups() {
        let mut agents = Vec::new();
        for agent in group.agents.iter().filter(|agent| is_wanted(agent)) {
            let name = if agent.star { "*" } else { &agent.token };
            is_each_agent_once &= seen.insert(name.to_ascii_lowercase());
            agents.push(name.to_owned());
        }
        if !agents.is_empty() {
            groups.push(Group {
                agents,
                rules: group.rules.iter().map(|line| line.rule.clone()).collect(),
                crawl_delay: delay(file, group),
                ..Group::default()
            });
        }
    }
    if is_each_agent_once {
        groups
    } else {
        one_group_for_each_agent(groups)
    }
}

/// Divides groups by their agents, and unites the groups of one agent: it has the rules of all.
fn one_group_for_each_agent(groups: Vec<Group>) -> Vec<Group> {
    let mut united: Vec<Group> = Vec::new();
    for group in groups {
        for agent in group.agents {
            let known = united
                .iter_mut()
                .find(|known| known.agents[0].eq_ignore_ascii_case(&agent));
            match known {
                Some(known) => {
                    known.rules.extend(group.rules.iter().cloned());
                    let delays = known.crawl_delay.into_iter().chain(group.crawl_delay);
                    known.crawl_delay = delays.min();
                }
                None => united.push(Group {
                    agents: vec![agent],
                    rules: group.rules.clone(),
                    crawl_delay: group.crawl_delay,
                    ..Group::default()
                }),
            }
        }
    }
    united
}

/// The shortest Crawl-delay line of a group; values that are not a number do not count. `None`
/// without such a line, and where the shortest is zero.
fn delay(file: &File, group: &FileGroup) -> Option<Duration> {
    let records = group
        .others
        .iter()
        .filter_map(|number| file.record(*number));
    let delays = records.filter(|record| record.key == Key::CrawlDelay);
    let delays = delays.filter_map(|record| {
        Duration::try_from_secs_f64(file.text(&record.value).parse().ok()?).ok()
    });
    delays.min().filter(|delay| !delay.is_zero())
}
