//! [`OriginRules`]: the parts of the origin's robots.txt that crawlgate can publish, with one group
//! for each user-agent token. `merge.rs` merges these groups with those of the policy.
//!
//! The origin's file may contain anything. Lines with unknown keys are left out, except for keys
//! that the policy lists in `robots.origin_keys`. Lines with control characters, and lines with a
//! host that crawlers cannot reach, are left out, too. Lines about the use of the content (such as
//! `Content-Signal`) are left out if the policy has a line with the same key for the whole site.

use super::draft::lines_size;
use super::signals::site_signal_keys;
use super::url_rewriter::UrlRewriter;
use super::{CompileError, FEWER_RULES};
use crate::crawlers::Registry;
use crate::policy::model::Policy;
use crate::policy::origin::OriginRobotsTxt;
use crate::policy::site::RuleSource;
use crate::robots::{
    AbsoluteUrl, Dialect, DialectRules, ExtensionLine, KeySpelling, KeyValue, MAX_ROBOTS_BYTES,
    RobotsFile, RobotsKey, RobotsLine, Rule,
};
use crate::yaml::{Diagnostic, Located};
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// The groups of the file that bind a token, united (RFC 9309 section 2.2.1).
#[derive(Default)]
pub struct OriginGroup {
    pub rules: Vec<(Rule, RuleSource)>,
    pub crawl_delay: Option<(Duration, RuleSource)>,
    pub extensions: Vec<ExtensionLine>,
}

/// The origin's robots.txt, without the lines that are not published.
#[derive(Default)]
pub struct OriginRules {
    /// The URL or path of the file, for messages.
    location: String,
    pub groups: Vec<OriginGroup>,
    /// Each token as it is written, its group, and the line that names it. `*` comes first.
    pub tokens: Vec<(String, usize, usize)>,
    pub sitemaps: Vec<String>,
    /// Sitemaps that are not absolute URLs. They cannot be completed: the origin's own address must
    /// not be published.
    pub relative_sitemaps: usize,
    /// Lines that belong to no group.
    pub extensions: Vec<ExtensionLine>,
    /// Keys of lines that were left out because the policy has its own.
    pub omitted_keys: Vec<&'static str>,
    /// How many lines with unknown keys were left out.
    pub unknown_lines: usize,
    /// Lines that were left out because they name a host that crawlers cannot reach.
    pub unpublished_lines: Vec<usize>,
    /// The number of rules in the file.
    pub rule_count: usize,
}

/// The most bytes of all united groups: a file that names each token in many groups would grow with
/// the square of its size.
const MAX_UNITED: usize = 4 * MAX_ROBOTS_BYTES;

impl OriginRules {
    /// Reads the origin's file, up to the size that every crawler reads.
    ///
    /// # Errors
    /// When the united groups of all tokens have more than `MAX_UNITED` bytes.
    pub fn parse(
        origin: &OriginRobotsTxt,
        policy: &Policy,
        registry: &Registry,
    ) -> Result<OriginRules, CompileError> {
        let file = &origin.file;
        let unknown = lines_with_unknown_keys(file, &policy.robots.origin_keys);
        let mut omitted_lines: HashSet<usize> = unknown.map(|line| line.number).collect();
        let unknown_lines = omitted_lines.len();
        omitted_lines.extend(lines_with_control_characters(file));
        let urls = UrlRewriter {
            policy,
            internal: &origin.internal,
        };
        let unpublished_lines = unpublished_lines(file, &urls);
        omitted_lines.extend(&unpublished_lines);
        let reading = DialectRules::new(file, Dialect::Rfc9309, &registry.tokens_with_blanks());
        let mut rules = OriginRules {
            location: origin.location.clone(),
            unknown_lines,
            unpublished_lines,
            ..OriginRules::default()
        };
        rules.rule_count = reading.groups().iter().map(|group| group.rules.len()).sum();
        let mut size = 0;
        let mut known: HashMap<&[usize], usize> = HashMap::new();
        let agents = reading.first_agent_lines();
        for agent in agents.filter(|agent| !agent.token.is_empty()) {
            let token = &agent.token;
            let (_, parts) = reading.groups_for(token.as_bytes());
            let group = *known.entry(parts).or_insert_with(|| {
                let group = if size > MAX_UNITED {
                    OriginGroup::default()
                } else {
                    unite_groups(file, &reading, parts, &omitted_lines, &urls)
                };
                size += lines_size(&group.rules, &group.extensions);
                rules.groups.push(group);
                rules.groups.len() - 1
            });
            let place = if agent.star { 0 } else { rules.tokens.len() };
            let named = (token.clone(), group, agent.line);
            rules.tokens.insert(place, named);
        }
        if size > MAX_UNITED {
            return Err(rules.too_large_error());
        }
        rules.read_global_lines(file, &reading, &omitted_lines, &urls);
        rules.omitted_keys = rules.remove_keys(&site_signal_keys(policy));
        Ok(rules)
    }

    /// The error for this file as too large.
    pub fn too_large_error(&self) -> CompileError {
        let message = format!(
            "the origin's robots.txt, {}, cannot be merged: it has too many rules ({}) and tokens \
             ({})",
            self.location,
            self.rule_count,
            self.tokens.len()
        );
        Diagnostic::whole_file("robots-txt-too-large", message)
            .help(FEWER_RULES)
            .into()
    }

    /// The first line that names a token of the group with this index.
    pub fn first_line_of(&self, group: usize) -> Option<usize> {
        let named = self.tokens.iter().filter(|(_, named, _)| *named == group);
        named.map(|(.., line)| *line).min()
    }

    /// Removes all lines with these keys, and returns the keys that were found.
    fn remove_keys(&mut self, keys: &[&'static str]) -> Vec<&'static str> {
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

    /// Reads the lines for the whole host: sitemaps, lines before the first group, and those that
    /// are for the host wherever they are (Yandex: `Clean-param` and `Host` are intersectional).
    /// Each is kept once.
    fn read_global_lines(
        &mut self,
        file: &RobotsFile,
        reading: &DialectRules,
        omitted_lines: &HashSet<usize>,
        published: &UrlRewriter<'_>,
    ) {
        let mut urls = HashSet::new();
        let mut lines = HashSet::new();
        let in_groups: HashSet<usize> = reading
            .groups()
            .iter()
            .flat_map(|group| group.other_lines.iter().copied())
            .collect();
        let lines_within_limit = file.lines_within_limit();
        for line in lines_within_limit.filter(|line| !omitted_lines.contains(&line.number)) {
            let Some(record) = line
                .key_value
                .as_ref()
                .filter(|record| record.spelling != KeySpelling::Longer)
            else {
                continue;
            };
            match record.key {
                RobotsKey::Sitemap => {
                    let url = escape_non_utf8(file.slice(&record.value));
                    let url = published
                        .rewrite_value(record.key, &url)
                        .unwrap_or_default()
                        .into_owned();
                    if url.is_empty() || !urls.insert(url.clone()) {
                        continue;
                    }
                    if is_absolute_url(&url) {
                        self.sitemaps.push(url);
                    } else {
                        self.relative_sitemaps += 1;
                    }
                }
                RobotsKey::UserAgent
                | RobotsKey::Allow
                | RobotsKey::Disallow
                | RobotsKey::CrawlDelay => {}
                key if is_host_wide(key) || !in_groups.contains(&line.number) => {
                    push_new(
                        &mut self.extensions,
                        &mut lines,
                        published_line(file, record, published),
                    );
                }
                _ => {}
            }
        }
    }
}

/// Bytes as text; those that are not UTF-8 are percent-encoded, as clients do with a URL.
fn escape_non_utf8(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        chunk
            .invalid()
            .iter()
            .for_each(|byte| out.push_str(&format!("%{byte:02X}")));
    }
    out
}

/// Whether a URL has a scheme and a host, as sitemaps.org requires.
fn is_absolute_url(url: &str) -> bool {
    AbsoluteUrl::parse(url.as_bytes()).is_some_and(|url| !url.scheme.is_empty())
}

/// Whether lines with this key are for the whole host, in any group (Yandex).
fn is_host_wide(key: RobotsKey) -> bool {
    matches!(key, RobotsKey::Host | RobotsKey::CleanParam)
}

/// The lines with keys that neither crawlgate nor the policy (`keys`) knows, or that only Google's
/// library takes for a known one (`Disallowed`).
pub fn lines_with_unknown_keys<'a>(
    file: &'a RobotsFile,
    keys: &'a [Located<String>],
) -> impl Iterator<Item = &'a RobotsLine> {
    file.lines_within_limit().filter(move |line| {
        line.key_value.as_ref().is_some_and(|record| {
            let name = file.slice(&record.name);
            let is_named = keys
                .iter()
                .any(|key| name.eq_ignore_ascii_case(key.as_bytes()));
            record.spelling == KeySpelling::Longer || record.key == RobotsKey::Unknown && !is_named
        })
    })
}

/// The lines whose value has a control character other than a tab.
fn lines_with_control_characters(file: &RobotsFile) -> impl Iterator<Item = usize> {
    file.lines_within_limit()
        .filter(move |line| {
            line.key_value.as_ref().is_some_and(|record| {
                file.text(&record.value)
                    .contains(|sign: char| sign.is_control() && sign != '\t')
            })
        })
        .map(|line| line.number)
}

/// Unites the groups with the indexes `parts`: their rules and other lines, each once, and the
/// first valid Crawl-delay.
fn unite_groups(
    file: &RobotsFile,
    reading: &DialectRules,
    parts: &[usize],
    omitted_lines: &HashSet<usize>,
    urls: &UrlRewriter<'_>,
) -> OriginGroup {
    let mut group = OriginGroup::default();
    let mut seen = HashSet::new();
    let mut lines = HashSet::new();
    for part in reading.groups_at(parts) {
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
            .other_lines
            .iter()
            .filter(|number| !omitted_lines.contains(number));
        let records = others.filter_map(|&number| Some((number, file.key_value(number)?)));
        for (number, record) in records.filter(|(_, record)| !is_host_wide(record.key)) {
            if record.key == RobotsKey::CrawlDelay {
                group.crawl_delay = group.crawl_delay.or_else(|| {
                    let delay = parse_crawl_delay(&file.text(&record.value))?;
                    Some((delay, RuleSource::Origin(number)))
                });
            } else {
                push_new(
                    &mut group.extensions,
                    &mut lines,
                    published_line(file, record, urls),
                );
            }
        }
    }
    group
}

/// A line as it is published: with blanks for tabs, and with URLs of the site.
fn published_line(file: &RobotsFile, record: &KeyValue, urls: &UrlRewriter<'_>) -> ExtensionLine {
    let value = file.text(&record.value).replace('\t', " ");
    let value = urls
        .rewrite_value(record.key, &value)
        .unwrap_or_default()
        .into_owned();
    ExtensionLine {
        key: file.text(&record.name).into_owned(),
        value,
    }
}

/// The lines that name a host which crawlers cannot reach.
fn unpublished_lines(file: &RobotsFile, urls: &UrlRewriter<'_>) -> Vec<usize> {
    let mut unpublished = Vec::new();
    for line in file.lines_within_limit() {
        let Some(record) = &line.key_value else {
            continue;
        };
        let is_rule = matches!(
            record.key,
            RobotsKey::UserAgent | RobotsKey::Allow | RobotsKey::Disallow | RobotsKey::CrawlDelay
        );
        let value = escape_non_utf8(file.slice(&record.value));
        if !is_rule && !value.is_empty() && urls.rewrite_value(record.key, &value).is_none() {
            unpublished.push(line.number);
        }
    }
    unpublished
}

fn push_new(
    extensions: &mut Vec<ExtensionLine>,
    seen: &mut HashSet<ExtensionLine>,
    new: ExtensionLine,
) {
    if seen.insert(new.clone()) {
        extensions.push(new);
    }
}

/// A Crawl-delay in seconds, of more than zero and at most a day.
fn parse_crawl_delay(text: &str) -> Option<Duration> {
    let seconds = text
        .parse::<f64>()
        .ok()
        .filter(|seconds| *seconds > 0.0 && *seconds <= 86_400.0)?;
    Duration::try_from_secs_f64(seconds).ok()
}
