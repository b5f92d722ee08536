//! [`OriginRules`]: the parts of the origin's robots.txt that crawlgate can publish, with one group
//! for each user-agent token. `merge.rs` merges these groups with those of the policy.
//!
//! The origin's file may contain anything. Lines with unknown keys are left out, except for keys
//! that the policy lists in `robots.origin_keys`. Lines with control characters, and lines with a
//! host that crawlers cannot reach, are left out, too. Lines about the use of the content (such as
//! `Content-Signal`) are left out if the policy has a line with the same key for the whole site.

use super::draft::{SourcedRule, lines_size};
use super::signals::site_signal_keys;
use super::url_rewriter::UrlRewriter;
use super::{CompileError, FEWER_RULES};
use crate::crawlers::Registry;
use crate::policy::model::Policy;
use crate::policy::origin::OriginRobotsTxt;
use crate::policy::site::RuleSource;
use crate::robots::{
    AbsoluteUrl, Dialect, DialectRules, ExtensionLine, KeySpelling, KeyValue, MAX_ROBOTS_BYTES,
    RobotsFile, RobotsKey, RobotsLine,
};
use crate::yaml::{Diagnostic, Located};
use RobotsKey::*;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// The groups of the file that bind a token, united (RFC 9309 section 2.2.1).
#[derive(Default)]
pub struct OriginGroup {
    pub rules: Vec<SourcedRule>,
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
        let mut omitted_lines: HashSet<usize> =
            lines_with_unknown_keys(file, &policy.robots.origin_keys)
                .map(|line| line.number)
                .collect();
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
            rule_count: reading.groups().iter().map(|group| group.rules.len()).sum(),
            ..OriginRules::default()
        };

        let mut size = 0;
        let mut known: HashMap<&[usize], usize> = HashMap::new();
        let agents = reading.first_agent_lines();
        for agent in agents.filter(|agent| !agent.token.is_empty()) {
            let (_, parts) = reading.groups_for(agent.token.as_bytes());
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
            rules
                .tokens
                .insert(place, (agent.token.clone(), group, agent.line));
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
        self.tokens
            .iter()
            .filter(|(_, named, _)| *named == group)
            .map(|(.., line)| *line)
            .min()
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
        let in_groups: HashSet<&usize> = reading
            .groups()
            .iter()
            .flat_map(|group| &group.other_lines)
            .collect();
        for line in file.lines_within_limit() {
            let Some(record) = &line.key_value else {
                continue;
            };
            if record.spelling == KeySpelling::Longer || omitted_lines.contains(&line.number) {
                continue;
            }
            match record.key {
                Sitemap => {
                    let url = escape_non_utf8(file.slice(&record.value));
                    let url = published
                        .rewrite_value(record.key, &url)
                        .unwrap_or_default()
                        .into_owned();
                    if url.is_empty() || !urls.insert(url.clone()) {
                        continue;
                    }
                    // sitemaps.org requires a scheme and a host.
                    let parsed = AbsoluteUrl::parse(url.as_bytes());
                    if parsed.is_some_and(|url| !url.scheme.is_empty()) {
                        self.sitemaps.push(url);
                    } else {
                        self.relative_sitemaps += 1;
                    }
                }
                UserAgent | Allow | Disallow | CrawlDelay => {}
                key if is_host_wide(key) || !in_groups.contains(&line.number) => {
                    let new = published_line(file, record, published);
                    if lines.insert(new.clone()) {
                        self.extensions.push(new);
                    }
                }
                _ => {}
            }
        }
    }
}

/// Bytes as text; those that are not UTF-8 are percent-encoded, as clients do with a URL.
fn escape_non_utf8(bytes: &[u8]) -> String {
    let mut out = String::new();
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        for byte in chunk.invalid() {
            out += &format!("%{byte:02X}");
        }
    }
    out
}

/// Whether lines with this key are for the whole host, in any group (Yandex).
fn is_host_wide(key: RobotsKey) -> bool {
    matches!(key, Host | CleanParam)
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
            record.spelling == KeySpelling::Longer || record.key == Unknown && !is_named
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
        for line in &part.rules {
            if !line.rule.pattern.is_empty() && seen.insert(&line.rule) {
                group
                    .rules
                    .push((line.rule.clone(), RuleSource::Origin(line.line)));
            }
        }
        for &number in &part.other_lines {
            let Some(record) = file.key_value(number) else {
                continue;
            };
            if omitted_lines.contains(&number) || is_host_wide(record.key) {
                continue;
            }
            if record.key == CrawlDelay {
                group.crawl_delay = group.crawl_delay.or_else(|| {
                    let delay = parse_crawl_delay(&file.text(&record.value))?;
                    Some((delay, RuleSource::Origin(number)))
                });
            } else {
                let new = published_line(file, record, urls);
                if lines.insert(new.clone()) {
                    group.extensions.push(new);
                }
            }
        }
    }
    group
}

/// A line as it is published: with blanks for tabs, and with URLs of the site.
fn published_line(file: &RobotsFile, record: &KeyValue, urls: &UrlRewriter<'_>) -> ExtensionLine {
    let value = file.text(&record.value).replace('\t', " ");
    ExtensionLine {
        key: file.text(&record.name).into_owned(),
        value: urls
            .rewrite_value(record.key, &value)
            .unwrap_or_default()
            .into_owned(),
    }
}

/// The lines that name a host which crawlers cannot reach.
fn unpublished_lines(file: &RobotsFile, urls: &UrlRewriter<'_>) -> Vec<usize> {
    let mut unpublished = Vec::new();
    for line in file.lines_within_limit() {
        let Some(record) = &line.key_value else {
            continue;
        };
        let is_rule = matches!(record.key, UserAgent | Allow | Disallow | CrawlDelay);
        let value = escape_non_utf8(file.slice(&record.value));
        if !is_rule && !value.is_empty() && urls.rewrite_value(record.key, &value).is_none() {
            unpublished.push(line.number);
        }
    }
    unpublished
}

/// A Crawl-delay in seconds, of more than zero and at most a day.
fn parse_crawl_delay(text: &str) -> Option<Duration> {
    let seconds: f64 = text.parse().ok()?;
    (seconds > 0.0 && seconds <= 86_400.0).then(|| Duration::from_secs_f64(seconds))
}
