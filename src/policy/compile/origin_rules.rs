//! [`OriginRules`]: the origin's robots.txt, with one group for each user-agent token in it. The
//! group unites all groups of the file that apply to that token by RFC 9309. `merge.rs` merges
//! these groups with those of the policy.
//!
//! Lines other than rules, sitemaps and Crawl-delay are copied if crawlgate knows their key or the
//! policy lists it (`robots.origin_keys`). Lines with any other key are left out and counted,
//! because an origin may answer with anything, and crawlgate would publish it. Also left out are
//! lines whose key the policy states itself for the whole site (`leave_out`), and lines with
//! control characters in their values.

use super::budget::TooMuch;
use super::draft::{octets_of_lines, octets_of_rule};
use super::published_urls::PublishedUrls;
use super::signals::said_keys;
use crate::crawlers::Registry;
use crate::policy::model::Policy;
use crate::policy::origin::OriginFile;
use crate::policy::site::RuleSource;
use crate::robots::{
    Dialect, Extension, File, Key, Line, MAX_BYTES, Reading, Record, Rule, Spelling,
};
use crate::yaml::Located;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// All groups that bind one token, united.
#[derive(Default)]
pub struct OriginGroup {
    pub rules: Vec<(Rule, RuleSource)>,
    pub crawl_delay: Option<Duration>,
    pub extensions: Vec<Extension>,
}

/// The whole file.
#[derive(Default)]
pub struct OriginRules {
    pub groups: Vec<OriginGroup>,
    /// Tokens as they are written, in the order of the file: their groups, and the lines that name
    /// them.
    pub tokens: Vec<(String, usize, usize)>,
    /// The group of `*`, and its line.
    pub star: Option<(usize, usize)>,
    pub sitemaps: Vec<String>,
    /// Sitemaps that are not absolute URLs. The public address of the file is not known here, and
    /// the origin's own address must not be published.
    pub relative_sitemaps: Vec<String>,
    /// Lines that belong to no group.
    pub extensions: Vec<Extension>,
    /// Keys of lines that were left out. See [`OriginRules::leave_out`].
    pub left_out: Vec<&'static str>,
    /// How many lines were left out because neither crawlgate nor the policy knows their keys.
    pub unknown: usize,
    /// Lines that are left out because they name a host that crawlers cannot reach.
    pub unpublished_lines: Vec<usize>,
    /// Lines with a rule in the whole file.
    pub rules: usize,
}

/// The most octets of the groups of all tokens together: a file in which each token is named in
/// many groups would grow with the square of its size.
const MAX_UNITED: usize = 4 * MAX_BYTES;

impl OriginRules {
    /// Reads the origin's file: a group for each token, the lines for the whole file, and what is
    /// left out. Only the part of the file that every crawler reads counts.
    ///
    /// # Errors
    /// When the united groups of all tokens have more than `MAX_UNITED` bytes.
    pub fn read(
        origin: &OriginFile,
        policy: &Policy,
        registry: &Registry,
    ) -> Result<OriginRules, TooMuch> {
        let file = &origin.file;
        let unknown = unknown_keys(file, &policy.robots.origin_keys);
        let mut left_out: HashSet<usize> = unknown.map(|line| line.number).collect();
        let unknown = left_out.len();
        left_out.extend(lines_with_control_characters(file));
        let urls = PublishedUrls {
            policy,
            internal: &origin.internal,
        };
        let unpublished_lines = unpublished_lines(file, &urls);
        left_out.extend(&unpublished_lines);
        let reading = Reading::new(file, Dialect::Rfc9309, &registry.tokens_with_blanks());
        let mut rules = OriginRules {
            unknown,
            unpublished_lines,
            ..OriginRules::default()
        };
        rules.rules = reading.groups().iter().map(|group| group.rules.len()).sum();
        let mut size = 0;
        let mut seen = HashSet::new();
        let mut known: HashMap<Vec<usize>, usize> = HashMap::new();
        for agent in reading.agents() {
            // No token is empty: for an empty one the reading gives the groups that bind every
            // crawler.
            let token = if agent.star { "" } else { agent.token.as_str() };
            if (token.is_empty() && !agent.star) || !seen.insert(token.to_ascii_lowercase()) {
                continue;
            }
            let (_, parts) = reading.binding(token.as_bytes());
            let group = *known.entry(parts.to_vec()).or_insert_with_key(|parts| {
                // Beyond the limit nothing is kept: the file is not used.
                let group = if size > MAX_UNITED {
                    OriginGroup::default()
                } else {
                    united(file, &reading, parts, &left_out, &urls)
                };
                size += group
                    .rules
                    .iter()
                    .map(|(rule, _)| octets_of_rule(rule))
                    .sum::<usize>();
                size += octets_of_lines(&group.extensions);
                rules.groups.push(group);
                rules.groups.len() - 1
            });
            if agent.star {
                rules.star = Some((group, agent.line))
            } else {
                rules.tokens.push((agent.token.clone(), group, agent.line))
            }
        }
        if size > MAX_UNITED {
            return Err(rules.too_much());
        }
        rules.whole_file(file, &reading, &left_out, &urls);
        rules.left_out = rules.leave_out(&said_keys(policy));
        Ok(rules)
    }

    /// The error that the file is too much, with its size.
    pub fn too_much(&self) -> TooMuch {
        TooMuch {
            rules: self.rules,
            crawlers: self.tokens.len() + usize::from(self.star.is_some()),
        }
    }

    /// The number of the first line that names a token, or `*`, to which the group with this index
    /// belongs.
    pub fn line_of(&self, group: usize) -> Option<usize> {
        let tokens = self.tokens.iter().map(|(_, group, line)| (*group, *line));
        tokens
            .chain(self.star)
            .filter(|(named, _)| *named == group)
            .map(|(_, line)| line)
            .min()
    }

    /// Leaves out the lines of these keys wherever they stand: the policy has its own, here or as
    /// headers, and two statements would contradict each other. Returns the keys that were found.
    fn leave_out(&mut self, keys: &[&'static str]) -> Vec<&'static str> {
        let mut found = Vec::new();
        let all = self
            .groups
            .iter_mut()
            .map(|group| &mut group.extensions)
            .chain([&mut self.extensions]);
        for extensions in all {
            extensions.retain(|line| {
                let key = keys.iter().find(|key| line.key.eq_ignore_ascii_case(key));
                found.extend(key);
                key.is_none()
            });
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Reads the lines for the whole file: sitemaps, lines before the first group, and those that
    /// are for the whole host wherever they stand (Yandex: `Clean-param` and `Host` are
    /// intersectional). Each is kept once. Lines of `left_out` are passed over, and sitemaps that
    /// are no absolute URLs go into `relative_sitemaps`.
    fn whole_file(
        &mut self,
        file: &File,
        reading: &Reading,
        left_out: &HashSet<usize>,
        published: &PublishedUrls<'_>,
    ) {
        let mut urls = HashSet::new();
        let mut lines = HashSet::new();
        let in_groups: HashSet<usize> = reading
            .groups()
            .iter()
            .flat_map(|group| group.others.iter().copied())
            .collect();
        let lines_read = file.lines_read();
        for line in lines_read.filter(|line| !left_out.contains(&line.number)) {
            let Some(record) = line
                .record
                .as_ref()
                .filter(|record| record.spelling != Spelling::Longer)
            else {
                continue;
            };
            match record.key {
                Key::Sitemap => {
                    let url = in_utf8(file.octets(&record.value));
                    let url = published
                        .value(record.key, &url)
                        .map_or_else(String::new, Cow::into_owned);
                    let list = if is_whole(&url) {
                        &mut self.sitemaps
                    } else {
                        &mut self.relative_sitemaps
                    };
                    if !url.is_empty() && urls.insert(url.clone()) {
                        list.push(url);
                    }
                }
                Key::UserAgent | Key::Allow | Key::Disallow | Key::CrawlDelay => {}
                key if is_of_the_host(key) || !in_groups.contains(&line.number) => {
                    push_new(
                        &mut self.extensions,
                        &mut lines,
                        extension(file, record, published),
                    );
                }
                _ => {}
            }
        }
    }
}

/// Octets as text; those that are not UTF-8 are escaped, as they are in a rule. A client that
/// fetches the URL escapes them too; a replacement character would make it another URL.
fn in_utf8(octets: &[u8]) -> String {
    let mut out = String::with_capacity(octets.len());
    for chunk in octets.utf8_chunks() {
        out.push_str(chunk.valid());
        chunk
            .invalid()
            .iter()
            .for_each(|octet| out.push_str(&format!("%{octet:02X}")));
    }
    out
}

/// Whether a URL has a scheme, `//` and a host: sitemaps.org allows nothing less in a robots.txt.
fn is_whole(url: &str) -> bool {
    url.split_once("://").is_some_and(|(scheme, rest)| {
        scheme.starts_with(|sign: char| sign.is_ascii_alphabetic())
            && scheme
                .chars()
                .all(|sign| sign.is_ascii_alphanumeric() || "+-.".contains(sign))
            && !rest.is_empty()
            && !rest.starts_with('/')
    })
}

/// Whether lines with this key are for the whole host, in whichever group they stand (Yandex).
fn is_of_the_host(key: Key) -> bool {
    matches!(key, Key::Host | Key::CleanParam)
}

/// The lines with keys that neither crawlgate nor a policy knows, or that Google alone takes for
/// one (`Disallowed`).
pub fn unknown_keys<'a>(
    file: &'a File,
    keys: &'a [Located<String>],
) -> impl Iterator<Item = &'a Line> {
    file.lines_read().filter(move |line| {
        line.record.as_ref().is_some_and(|record| {
            let name = file.octets(&record.name);
            let is_named = keys
                .iter()
                .any(|key| name.eq_ignore_ascii_case(key.as_bytes()));
            record.spelling == Spelling::Longer || record.key == Key::Unknown && !is_named
        })
    })
}

/// Numbers of the lines whose value has a control character, which a terminal or a reader might
/// obey. A tab does not count: it stands between the parts of some values.
fn lines_with_control_characters(file: &File) -> impl Iterator<Item = usize> {
    let lines = file.lines_read();
    lines
        .filter(move |line| {
            line.record.as_ref().is_some_and(|record| {
                file.text(&record.value)
                    .contains(|sign: char| sign.is_control() && sign != '\t')
            })
        })
        .map(|line| line.number)
}

/// Unites the groups with the indexes `parts`: their rules and other lines, each once, and the
/// first valid Crawl-delay. Rules with an empty pattern, other lines with a number in `left_out`,
/// and lines for the whole host are not in it.
fn united(
    file: &File,
    reading: &Reading,
    parts: &[usize],
    left_out: &HashSet<usize>,
    urls: &PublishedUrls<'_>,
) -> OriginGroup {
    let mut group = OriginGroup::default();
    let mut seen = HashSet::new();
    let mut lines = HashSet::new();
    for part in reading.united(parts) {
        for line in part
            .rules
            .iter()
            .filter(|line| !line.rule.pattern.is_empty())
        {
            if seen.insert(&line.rule) {
                group
                    .rules
                    .push((line.rule.clone(), RuleSource::Origin(line.line)));
            }
        }
        let others = part
            .others
            .iter()
            .filter(|number| !left_out.contains(number));
        let records = others.filter_map(|&number| file.record(number));
        for record in records.filter(|record| !is_of_the_host(record.key)) {
            if record.key == Key::CrawlDelay {
                group.crawl_delay = group
                    .crawl_delay
                    .or_else(|| delay(&file.text(&record.value)));
            } else {
                push_new(
                    &mut group.extensions,
                    &mut lines,
                    extension(file, record, urls),
                );
            }
        }
    }
    group
}

/// A line as it is published: key as written, tabs in the value replaced by blanks, URLs of the
/// origin by those of the site.
fn extension(file: &File, record: &Record, urls: &PublishedUrls<'_>) -> Extension {
    let value = file.text(&record.value).replace('\t', " ");
    // Lines that are not to be published are left out before.
    let value = urls
        .value(record.key, &value)
        .map_or_else(String::new, Cow::into_owned);
    Extension {
        key: file.text(&record.name).into_owned(),
        value,
    }
}

/// Numbers of the lines that name a host which crawlers cannot reach, in any line but User-agent,
/// Allow, Disallow and Crawl-delay.
fn unpublished_lines(file: &File, urls: &PublishedUrls<'_>) -> Vec<usize> {
    let mut unpublished = Vec::new();
    for line in file.lines_read() {
        let Some(record) = &line.record else { continue };
        let is_rule = matches!(
            record.key,
            Key::UserAgent | Key::Allow | Key::Disallow | Key::CrawlDelay
        );
        let value = in_utf8(file.octets(&record.value));
        if !is_rule && !value.is_empty() && urls.value(record.key, &value).is_none() {
            unpublished.push(line.number);
        }
    }
    unpublished
}

fn push_new(extensions: &mut Vec<Extension>, seen: &mut HashSet<Extension>, new: Extension) {
    if seen.insert(new.clone()) {
        extensions.push(new);
    }
}

/// A Crawl-delay in seconds; `None` for text that is not a number, for zero and less, and for more
/// than a day.
fn delay(text: &str) -> Option<Duration> {
    let seconds = text
        .parse::<f64>()
        .ok()
        .filter(|seconds| *seconds > 0.0 && *seconds <= 86_400.0)?;
    Duration::try_from_secs_f64(seconds).ok()
}
