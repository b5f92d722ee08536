//! [`ParsedVersion`]: a robots.txt that was published earlier, parsed so that requests can be judged by it. A crawler
//! may still have it cached. It is parsed from its bytes alone, so the policy that it was made from is not needed.

use super::site::{Binding, Version, binding, names, unlisted};
use crate::crawlers::{Binds, Claim, Registry, SiteMarkers};
use crate::robots::{AgentLine, Dialect, Document, File, FileGroup, Group, Key, Matcher, Reading};
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
    /// The crawl delay of each group; a value that is not a number does not count.
    pub delays: Vec<Option<Duration>>,
    /// The tokens in them that the registry does not know.
    pub tokens: SiteMarkers,
}

impl ParsedVersion {
    /// Reads a file, as RFC 9309 says.
    pub fn read(body: Arc<[u8]>, registry: &Registry) -> ParsedVersion {
        let version = Version::of(&body);
        let file = File::parse(body.clone());
        let reading = Reading::new(&file, Dialect::Rfc9309, &registry.tokens_with_blanks());
        let document = Document { groups: groups(&file, &reading), ..Document::default() };
        let agents = document.groups.iter().flat_map(|group| &group.agents).map(String::as_str);
        let tokens = SiteMarkers::new(unlisted(agents, registry));
        let delays = document.groups.iter().map(|group| group.crawl_delay).collect();
        ParsedVersion { version, body, matcher: Matcher::new(&document), delays, tokens }
    }

    /// The group that binds a claim. A token's index is that of [`ParsedVersion::tokens`]; `binds` comes from the
    /// registry or the policy.
    pub fn binding(&self, registry: &Registry, claim: Claim, binds: Binds) -> Binding {
        match claim {
            Claim::Nobody => Binding::NoRules,
            Claim::Other | Claim::Tool => binding(&self.matcher, std::iter::empty(), binds).0,
            Claim::Known(index) => binding(&self.matcher, names(registry.get(index)), binds).0,
            Claim::Token(index) => binding(&self.matcher, self.tokens.token(index).into_iter(), binds).0,
        }
    }
}

/// The groups with their rules; an agent that stands in several groups has the rules of all (RFC 9309 section 2.2.1).
fn groups(file: &File, reading: &Reading) -> Vec<Group> {
    let name = |agent: &AgentLine| if agent.star { "*".to_owned() } else { agent.token.clone() };
    let of_agents = |agents: Vec<String>, group: &FileGroup| Group {
        agents,
        rules: group.rules.iter().map(|line| line.rule.clone()).collect(),
        crawl_delay: delay(file, group),
        ..Group::default()
    };
    let mut seen = HashSet::new();
    if reading.agents().all(|agent| seen.insert(name(agent).to_ascii_lowercase())) {
        let of_all = |group: &FileGroup| of_agents(group.agents.iter().map(name).collect(), group);
        return reading.groups().iter().map(of_all).collect();
    }
    let mut groups: Vec<Group> = Vec::new();
    for group in reading.groups() {
        for agent in group.agents.iter().map(name) {
            let new = of_agents(vec![agent], group);
            match groups.iter_mut().find(|known| known.agents[0].eq_ignore_ascii_case(&new.agents[0])) {
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
    let records = group.others.iter().filter_map(|number| file.record(*number));
    let delays = records.filter(|record| record.key == Key::CrawlDelay);
    let delays = delays.filter_map(|record| Duration::try_from_secs_f64(file.text(&record.value).parse().ok()?).ok());
    delays.min().filter(|delay| !delay.is_zero())
}
