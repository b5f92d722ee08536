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

    /// The rules that Google's library finds for one of Google's crawlers.
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

/// The groups for Google's crawlers as Google's library reads them, where it reads them otherwise
/// than RFC 9309 says.
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
    let is_same = google == groups(file, rfc, is_google);
    (!is_same).then(|| {
        Matcher::new(&Document {
            groups: google,
            ..Document::default()
        })
    })
}

/// The groups of the agents that are wanted, with their rules; an agent that stands in several
/// groups has the rules of all (RFC 9309 section 2.2.1).
fn groups(file: &File, reading: &Reading, is_wanted: impl Fn(&AgentLine) -> bool) -> Vec<Group> {
    let name = |agent: &AgentLine| {
        if agent.star {
            "*".to_owned()
        } else {
            agent.token.clone()
        }
    };
    let of_agents = |agents: Vec<String>, group: &FileGroup| Group {
        agents,
        rules: group.rules.iter().map(|line| line.rule.clone()).collect(),
        crawl_delay: delay(file, group),
        ..Group::default()
    };
    let wanted = |group: &FileGroup| {
        group
            .agents
            .iter()
            .filter(|agent| is_wanted(agent))
            .map(name)
            .collect::<Vec<_>>()
    };
    let wanted = reading
        .groups()
        .iter()
        .map(|group| (wanted(group), group))
        .filter(|(agents, _)| !agents.is_empty());
    let mut seen = HashSet::new();
    if wanted
        .clone()
        .flat_map(|(agents, _)| agents)
        .all(|agent| seen.insert(agent.to_ascii_lowercase()))
    {
        return wanted
            .map(|(agents, group)| of_agents(agents, group))
            .collect();
    }
    let mut groups: Vec<Group> = Vec::new();
    for (agents, group) in wanted {
        for agent in agents {
            let new = of_agents(vec![agent], group);
            match groups
                .iter_mut()
                .find(|known| known.agents[0].eq_ignore_ascii_case(&new.agents[0]))
            {
                Some(known) => {
                    known.rules.extend(new.rules);
                    known.crawl_delay = known.crawl_delay.into_iter().chain(new.crawl_delay).min();
                }
                None => groups.push(new),
            }
        }
    }
    groups
}

/// The shortest crawl delay of a group; `None` where it is zero.
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
