//! [`DialectRules`]: the groups and rules of a parsed robots.txt ([`RobotsFile`]), as one dialect
//! understands them: RFC 9309 or Google's library. [`DialectRules`] finds the groups for a
//! crawler's user-agent token, and decides whether the crawler may fetch a URL.

use super::dialect::url_path;
use super::file::{KeySpelling, RobotsFile, RobotsKey};
use super::target::{TargetScratch, authority_end};
use super::{AgentName, Dialect, MAX_ROBOTS_BYTES, Rule, RuleSet};
use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;
use std::time::Duration;

/// A User-agent line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentLine {
    /// `*`, or the token as the dialect cuts it.
    pub token: String,
    /// Whether it is `*`.
    pub star: bool,
    /// The line's number.
    pub line: usize,
}

/// An Allow or Disallow line of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleLine {
    /// The rule.
    pub rule: Rule,
    /// The line's number.
    pub line: usize,
}

/// A group as it stands in the file: agents, and the rules below them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileGroup {
    /// The User-agent lines, in their order.
    pub agents: Vec<AgentLine>,
    /// The rules, in their order. A rule that the dialect adds (for Google's index.htm) has the
    /// line of its source.
    pub rules: Vec<RuleLine>,
    /// Numbers of the other lines inside the group: Crawl-delay and other extensions.
    pub other_lines: Vec<usize>,
    /// Its shortest Crawl-delay line. A value that is not a number does not count; zero is no
    /// delay.
    pub(crate) crawl_delay: Option<Duration>,
}

/// The rules of a file in one dialect, prepared for verdicts.
#[derive(Debug)]
pub struct DialectRules {
    dialect: Dialect,
    groups: Vec<FileGroup>,
    /// Indexes of the groups that name a token, by the token in lower case.
    named: HashMap<Vec<u8>, usize>,
    /// Combinations of groups that count as one group, each once.
    unions: Vec<GroupUnion>,
    star: Option<usize>,
}

#[derive(Debug)]
struct GroupUnion {
    groups: Vec<usize>,
    /// Compiled on first use: a file may have hundreds of groups, and few are used.
    rules: OnceLock<CompiledRules>,
}

#[derive(Debug)]
struct CompiledRules {
    rules: RuleSet,
    /// The line of each rule.
    lines: Vec<usize>,
    /// The line of the first empty Allow, else of the first empty Disallow. Google reports it if no
    /// rule matches.
    empty: Option<usize>,
}

/// Which groups a crawler with a token obeys: those that name it, the `*` groups, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupMatch {
    /// Groups that name the token.
    Named,
    /// `*` groups.
    Star,
    /// No group of the file is for the token.
    Nothing,
}

/// The verdict of a file about a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileVerdict {
    /// Whether it may be fetched.
    pub allowed: bool,
    /// The number of the line that decided. If no rule matched: the line of an empty Allow or
    /// Disallow, or `None`.
    pub line: Option<usize>,
    /// The groups that the crawler with the token obeys.
    pub bound: GroupMatch,
}

impl FileGroup {
    fn find_crawl_delay(&self, file: &RobotsFile) -> Option<Duration> {
        let lines = self.other_lines.iter();
        let records = lines.filter_map(|number| file.key_value(*number));
        let delays = records.filter(|record| record.key == RobotsKey::CrawlDelay);
        let delays = delays.filter_map(|record| {
            Duration::try_from_secs_f64(file.text(&record.value).parse().ok()?).ok()
        });
        delays.min().filter(|delay| !delay.is_zero())
    }
}

impl DialectRules {
    /// Reads the groups of a file. `spaced_tokens` are the known tokens with blanks in them
    /// (`Sogou web spider`), as `Registry::tokens_with_blanks` gives them. A crawler of your own has
    /// none: write `&[]`. The Google dialect ignores them.
    ///
    /// With [`Dialect::Rfc9309`], only lines within the first [`MAX_ROBOTS_BYTES`] (500 KiB) count
    /// (RFC 9309 section 2.5). Compare with the length of [`RobotsFile::bytes`].
    ///
    /// ```
    /// use crawlgate::robots::{Dialect, DialectRules, RobotsFile};
    /// let file = RobotsFile::parse(*b"User-agent: *\nDisallow: /a\nAllow: /a/b\n");
    /// let rules = DialectRules::new(&file, Dialect::Rfc9309, &[]);
    /// let verdict = rules.verdict(b"GPTBot", b"https://shop.example/a/%62");
    /// assert_eq!((verdict.allowed, verdict.line), (true, Some(3)));
    /// ```
    pub fn new(file: &RobotsFile, dialect: Dialect, spaced_tokens: &[&str]) -> DialectRules {
        let groups = collect_groups(file, dialect, spaced_tokens);
        let mut by_token: HashMap<Vec<u8>, Vec<usize>> = HashMap::new();
        let mut star = Vec::new();
        for (index, group) in groups.iter().enumerate() {
            for agent in &group.agents {
                let list = if agent.star {
                    &mut star
                } else {
                    by_token
                        .entry(agent.token.to_ascii_lowercase().into_bytes())
                        .or_default()
                };
                if list.last() != Some(&index) {
                    list.push(index);
                }
            }
        }
        let mut unions = Vec::new();
        let mut known: HashMap<Vec<usize>, usize> = HashMap::new();
        let mut union = |groups: Vec<usize>| {
            *known.entry(groups).or_insert_with_key(|groups| {
                unions.push(GroupUnion {
                    groups: groups.clone(),
                    rules: OnceLock::new(),
                });
                unions.len() - 1
            })
        };
        let star = (!star.is_empty()).then(|| union(star));
        // Over the groups and not over the map, whose order is random.
        let mut named = HashMap::new();
        let agents = groups.iter().flat_map(|group| &group.agents);
        for agent in agents.filter(|agent| !agent.star) {
            let token = agent.token.to_ascii_lowercase().into_bytes();
            if let Some(groups) = by_token.remove(&token) {
                named.insert(token, union(groups));
            }
        }
        DialectRules {
            dialect,
            groups,
            named,
            unions,
            star,
        }
    }

    /// The groups as they stand in the file.
    pub fn groups(&self) -> &[FileGroup] {
        &self.groups
    }

    /// The User-agent lines of all groups.
    pub(crate) fn agent_lines(&self) -> impl Iterator<Item = &AgentLine> {
        self.groups.iter().flat_map(|group| &group.agents)
    }

    /// The first line of each token, in the order of the file.
    pub(crate) fn first_agent_lines(&self) -> impl Iterator<Item = &AgentLine> {
        let mut seen = HashSet::new();
        self.agent_lines()
            .filter(move |agent| seen.insert(agent.token.to_ascii_lowercase()))
    }

    /// The groups with these indexes.
    pub(crate) fn groups_at(&self, union: &[usize]) -> impl Iterator<Item = &FileGroup> {
        union.iter().filter_map(|&group| self.groups.get(group))
    }

    /// The indexes of the groups that bind a token, and how. Empty where no group binds it.
    pub fn groups_for(&self, token: &[u8]) -> (GroupMatch, &[usize]) {
        match self.union_for(token) {
            (bound, Some(union)) => (bound, &union.groups),
            (bound, None) => (bound, &[]),
        }
    }

    /// The shortest Crawl-delay of the groups that bind a token. Many crawlers ignore Crawl-delay:
    /// [`Crawler::crawl_delay`](crate::crawlers::Crawler::crawl_delay) says what is known.
    ///
    /// ```
    /// use crawlgate::robots::{Dialect, DialectRules, RobotsFile};
    /// use std::time::Duration;
    /// let file = RobotsFile::parse(*b"User-agent: bingbot\nCrawl-delay: 1.5\nDisallow: /a\n");
    /// let rules = DialectRules::new(&file, Dialect::Rfc9309, &[]);
    /// assert_eq!(rules.crawl_delay(b"bingbot"), Some(Duration::from_millis(1_500)));
    /// assert_eq!(rules.crawl_delay(b"GPTBot"), None);
    /// ```
    pub fn crawl_delay(&self, token: &[u8]) -> Option<Duration> {
        let (_, groups) = self.groups_for(token);
        self.groups_at(groups)
            .filter_map(|group| group.crawl_delay)
            .min()
    }

    /// The groups that bind a token: those that name it, without regard to case, else those for
    /// `*`.
    fn union_for(&self, token: &[u8]) -> (GroupMatch, Option<&GroupUnion>) {
        // In the RFC a token is never empty; Google's library compares even an empty one.
        let named = (self.dialect == Dialect::Google || !token.is_empty())
            .then(|| self.named.get(token.to_ascii_lowercase().as_slice()))
            .flatten();
        match (named, self.star) {
            (Some(&union), _) => (GroupMatch::Named, self.unions.get(union)),
            (None, Some(union)) => (GroupMatch::Star, self.unions.get(union)),
            (None, None) => (GroupMatch::Nothing, None),
        }
    }

    /// Whether the crawler with this token may fetch a URL. `token` is the bare token: `AcmeBot/1.0`
    /// finds no group for `AcmeBot`. Dot segments in `url` are not resolved. `url` is absolute, or a
    /// path that begins with `/`. Without the `/`, [`Dialect::Rfc9309`] reads `cart/1` as `/cart/1`;
    /// [`Dialect::Google`] takes `cart` for a host. A URL that matches no rule is allowed:
    /// [`FileVerdict::line`] is then the line of an empty Allow or Disallow, if there is one. RFC 9309
    /// always allows `/robots.txt`. Rules after the first 500 KiB do not count, see
    /// [`DialectRules::new`].
    pub fn verdict(&self, token: &[u8], url: &[u8]) -> FileVerdict {
        let (bound, union) = self.union_for(token);
        let free = FileVerdict {
            allowed: true,
            line: None,
            bound,
        };
        let Some(union) = union else { return free };
        let path = match self.dialect {
            // A relative URL: normalisation adds the slash.
            Dialect::Rfc9309 if !url.starts_with(b"/") && authority_end(url).is_none() => {
                url.into()
            }
            _ => url_path(url),
        };
        let mut scratch = TargetScratch::default();
        if self.dialect == Dialect::Rfc9309 && scratch.normalise(&path).is_robots_txt() {
            return free;
        }
        let prepared = union
            .rules
            .get_or_init(|| self.compile_rules(&union.groups));
        match prepared
            .rules
            .find(self.dialect.normalise_target(&path, &mut scratch))
        {
            Some(rule) => FileVerdict {
                allowed: prepared
                    .rules
                    .rules()
                    .get(rule)
                    .is_none_or(|rule| rule.allow),
                line: prepared.lines.get(rule).copied(),
                bound,
            },
            None => FileVerdict {
                line: prepared.empty,
                ..free
            },
        }
    }

    /// Compiles the rules of the groups with these indexes as one group.
    fn compile_rules(&self, union: &[usize]) -> CompiledRules {
        let rules: Vec<&RuleLine> = self
            .groups_at(union)
            .flat_map(|group| &group.rules)
            .collect();
        let empty = rules.iter().filter(|line| line.rule.pattern.is_empty());
        // The first, an Allow if there is one.
        let empty = empty.min_by_key(|line| !line.rule.allow);
        CompiledRules {
            lines: rules.iter().map(|line| line.line).collect(),
            empty: empty.map(|line| line.line),
            rules: RuleSet::new(rules.iter().map(|line| line.rule.clone()).collect()),
        }
    }
}

/// The groups of a file. Only Allow and Disallow end a list of agents (RFC 9309 section 2.2.1 and
/// 2.2.4); rules before the first agent belong to no group. The RFC dialect skips lines beyond 500
/// KiB, and longer keys such as `Disallowed`.
fn collect_groups(file: &RobotsFile, dialect: Dialect, spaced_tokens: &[&str]) -> Vec<FileGroup> {
    let mut groups: Vec<FileGroup> = Vec::new();
    let mut in_agent_list = false;
    for line in file.lines() {
        if dialect == Dialect::Rfc9309 && line.text.end > MAX_ROBOTS_BYTES {
            break;
        }
        let Some(record) = &line.key_value else {
            continue;
        };
        if dialect == Dialect::Rfc9309 && record.spelling == KeySpelling::Longer {
            continue;
        }
        let value = file.slice(&record.value);
        match (record.key, groups.last_mut()) {
            (RobotsKey::UserAgent, last) => {
                let (token, star) = match dialect.parse_agent(value, spaced_tokens) {
                    AgentName::Star => ("*".to_owned(), true),
                    AgentName::Token(token) => (String::from_utf8_lossy(token).into_owned(), false),
                };
                let agent = AgentLine {
                    token,
                    star,
                    line: line.number,
                };
                match last {
                    Some(group) if in_agent_list => group.agents.push(agent),
                    _ => groups.push(FileGroup {
                        agents: vec![agent],
                        ..FileGroup::default()
                    }),
                }
                in_agent_list = true;
            }
            (RobotsKey::Allow | RobotsKey::Disallow, Some(group)) => {
                in_agent_list = false;
                let allow = record.key == RobotsKey::Allow;
                let directory = dialect.index_directory_pattern(value).filter(|_| allow);
                for pattern in [dialect.parse_pattern(value)].into_iter().chain(directory) {
                    group.rules.push(RuleLine {
                        rule: Rule { allow, pattern },
                        line: line.number,
                    });
                }
            }
            (RobotsKey::Sitemap, _) | (_, None) => {}
            (_, Some(group)) => group.other_lines.push(line.number),
        }
    }
    for group in &mut groups {
        group.crawl_delay = group.find_crawl_delay(file);
    }
    groups
}
