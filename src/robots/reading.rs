//! [`Reading`]: a [`File`] read in one dialect. It has the groups of the file, finds the rules that
//! apply to a token, and gives the verdict on a URL.

use super::dialect::path_of_url;
use super::file::{File, Key, Spelling};
use super::target::TargetScratch;
use super::{Agent, Dialect, MAX_BYTES, Rule, RuleSet};
use std::cell::OnceCell;
use std::collections::HashMap;

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

/// Agents and the rules after them, as they stand in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileGroup {
    /// The User-agent lines, in their order.
    pub agents: Vec<AgentLine>,
    /// The rules, in their order. A rule that a dialect adds (Google's index.htm) has the line of
    /// the one it comes from.
    pub rules: Vec<RuleLine>,
    /// Numbers of the other lines inside the group: Crawl-delay and other extensions.
    pub others: Vec<usize>,
}

/// A file as a dialect reads it, ready for verdicts.
#[derive(Debug)]
pub struct Reading {
    dialect: Dialect,
    groups: Vec<FileGroup>,
    /// Indexes of the groups that name a token, by the token in lower case.
    named: HashMap<Vec<u8>, usize>,
    /// Groups that are read together, each combination once.
    unions: Vec<Union>,
    star: Option<usize>,
    scratch: std::cell::RefCell<TargetScratch>,
}

#[derive(Debug)]
struct Union {
    groups: Vec<usize>,
    /// Prepared when first asked for: a file may have hundreds of groups and be asked about one.
    rules: OnceCell<Prepared>,
}

#[derive(Debug)]
struct Prepared {
    rules: RuleSet,
    /// Lines by rule.
    lines: Vec<usize>,
    /// The first empty Allow, else the first empty Disallow: what Google names when nothing else
    /// matches.
    empty: Option<usize>,
}

/// The kind of groups that bind a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Groups that name the token.
    Named,
    /// `*` groups.
    Star,
    /// No group: the file says nothing about the token.
    Nothing,
}

/// The verdict of a file about a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileVerdict {
    /// Whether it may be fetched.
    pub allowed: bool,
    /// The number of the line that decided; `None` when no rule matched.
    pub line: Option<usize>,
    /// The groups whose rules bind the token.
    pub bound: Bound,
}

impl Reading {
    /// Reads a file. `spaced` are the tokens with blanks in them that exist, see
    /// [`Dialect::agent`].
    ///
    /// ```
    /// use crawlgate::robots::{Dialect, File, Reading};
    /// let file = File::parse(*b"User-agent: *\nDisallow: /a\nAllow: /a/b\n");
    /// let reading = Reading::new(&file, Dialect::Rfc9309, &[]);
    /// let verdict = reading.verdict(b"GPTBot", b"https://shop.example/a/%62");
    /// assert_eq!((verdict.allowed, verdict.line), (true, Some(3)));
    /// ```
    pub fn new(file: &File, dialect: Dialect, spaced: &[&str]) -> Reading {
        let groups = groups(file, dialect, spaced);
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
                unions.push(Union {
                    groups: groups.clone(),
                    rules: OnceCell::new(),
                });
                unions.len() - 1
            })
        };
        let star = (!star.is_empty()).then(|| union(star));
        // Over the groups, not over the map, whose order is another one each time.
        let mut named = HashMap::new();
        let agents = groups.iter().flat_map(|group| &group.agents);
        for agent in agents.filter(|agent| !agent.star) {
            let token = agent.token.to_ascii_lowercase().into_bytes();
            if let Some(groups) = by_token.remove(&token) {
                named.insert(token, union(groups));
            }
        }
        Reading {
            dialect,
            groups,
            named,
            unions,
            star,
            scratch: std::cell::RefCell::default(),
        }
    }

    /// The groups as they stand in the file.
    pub fn groups(&self) -> &[FileGroup] {
        &self.groups
    }

    /// The User-agent lines of all groups.
    pub(crate) fn agents(&self) -> impl Iterator<Item = &AgentLine> {
        self.groups.iter().flat_map(|group| &group.agents)
    }

    /// The groups with these indexes.
    pub(crate) fn united(&self, union: &[usize]) -> impl Iterator<Item = &FileGroup> {
        union.iter().filter_map(|&group| self.groups.get(group))
    }

    /// The indexes of the groups whose rules bind a token, and whether they name it or are for `*`.
    /// Empty where no group binds it.
    pub fn binding(&self, token: &[u8]) -> (Bound, &[usize]) {
        match self.union(token) {
            (bound, Some(union)) => (bound, &union.groups),
            (bound, None) => (bound, &[]),
        }
    }

    /// The groups that bind a token: those that name it, without regard to case, else those for
    /// `*`. An empty token has no name in the RFC's reading; Google's library compares even an
    /// empty one.
    fn union(&self, token: &[u8]) -> (Bound, Option<&Union>) {
        // In the RFC a token is never empty; Google's library compares even an empty one.
        let named = (self.dialect == Dialect::Google || !token.is_empty())
            .then(|| self.named.get(token.to_ascii_lowercase().as_slice()))
            .flatten();
        match (named, self.star) {
            (Some(&union), _) => (Bound::Named, self.unions.get(union)),
            (None, Some(union)) => (Bound::Star, self.unions.get(union)),
            (None, None) => (Bound::Nothing, None),
        }
    }

    /// Whether the crawler of this token may fetch a URL (or a path). It may where no rule matches;
    /// for Google the line is then that of an empty Allow or Disallow, if there is one. RFC 9309
    /// always allows `/robots.txt`.
    pub fn verdict(&self, token: &[u8], url: &[u8]) -> FileVerdict {
        let (bound, union) = self.union(token);
        let free = FileVerdict {
            allowed: true,
            line: None,
            bound,
        };
        let Some(union) = union else { return free };
        let path = path_of_url(url);
        let mut scratch = self.scratch.borrow_mut();
        if self.dialect == Dialect::Rfc9309 && scratch.normalise(&path).is_robots_txt() {
            return free;
        }
        let prepared = union.rules.get_or_init(|| self.prepare(&union.groups));
        match prepared
            .rules
            .find(self.dialect.target(&path, &mut scratch))
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

    /// Prepares the rules of the groups with these indexes, as if they were one group.
    fn prepare(&self, union: &[usize]) -> Prepared {
        let rules: Vec<&RuleLine> = self.united(union).flat_map(|group| &group.rules).collect();
        let empty = rules.iter().filter(|line| line.rule.pattern.is_empty());
        // The first, an Allow if there is one.
        let empty = empty.min_by_key(|line| !line.rule.allow);
        Prepared {
            lines: rules.iter().map(|line| line.line).collect(),
            empty: empty.map(|line| line.line),
            rules: RuleSet::new(rules.iter().map(|line| line.rule.clone()).collect()),
        }
    }
}

/// The groups of a file. Only Allow and Disallow close a list of agents (RFC 9309 section 2.2.1 and
/// 2.2.4); rules before the first agent belong to no group. The reading of RFC 9309 leaves out
/// lines beyond 500 KiB, and keys with more behind them.
fn groups(file: &File, dialect: Dialect, spaced: &[&str]) -> Vec<FileGroup> {
    let mut groups: Vec<FileGroup> = Vec::new();
    let mut open = false;
    for line in file.lines() {
        if dialect == Dialect::Rfc9309 && line.text.end > MAX_BYTES {
            break;
        }
        let Some(record) = &line.record else { continue };
        if dialect == Dialect::Rfc9309 && record.spelling == Spelling::Longer {
            continue;
        }
        let value = file.octets(&record.value);
        match (record.key, groups.last_mut()) {
            (Key::UserAgent, last) => {
                let (token, star) = match dialect.agent(value, spaced) {
                    Agent::Star => ("*".to_owned(), true),
                    Agent::Token(token) => (String::from_utf8_lossy(token).into_owned(), false),
                };
                let agent = AgentLine {
                    token,
                    star,
                    line: line.number,
                };
                match last {
                    Some(group) if open => group.agents.push(agent),
                    _ => groups.push(FileGroup {
                        agents: vec![agent],
                        ..FileGroup::default()
                    }),
                }
                open = true;
            }
            (Key::Allow | Key::Disallow, Some(group)) => {
                open = false;
                let allow = record.key == Key::Allow;
                let directory = dialect.directory_of_index(value).filter(|_| allow);
                for pattern in [dialect.pattern(value)].into_iter().chain(directory) {
                    group.rules.push(RuleLine {
                        rule: Rule { allow, pattern },
                        line: line.number,
                    });
                }
            }
            (Key::Sitemap, _) | (_, None) => {}
            (_, Some(group)) => group.others.push(line.number),
        }
    }
    groups
}
