//! [`lint_file`] checks a robots.txt file in any state, even HTML or UTF-16. Some lints check
//! policies and files alike. They read a [`LintSubject`], which can be made from a policy or from a
//! file. The lints in this module are only for files.

use super::catalogue as lints;
use super::dialects::{MAX_COMPARED, common_spelling_help, report_disagreement, sample_urls};
use super::subject::{LintSubject, SubjectGroup};
use crate::crawlers::{Purpose, Registry};
use crate::policy::agent_names::names_on_one_line;
use crate::policy::decode::parse_host;
use crate::printable::join;
use crate::robots::{
    Dialect, DialectRules, FileFormat, KeyValue, MAX_ROBOTS_BYTES, RobotsFile, RobotsKey,
    RobotsLine, differs_for_google,
};
use crate::yaml::{Diagnostics, Located, SourceFile, SourceSpan, saturating_u32};
use FileFormat::*;
use std::ops::Range;

mod lines;
mod signal_lines;

/// The findings, and the text that they point into.
pub struct FileFindings {
    /// The file as text, with `?` for each byte that is not UTF-8, so that places stay right.
    pub source: SourceFile,
    /// In the order of the file.
    pub diagnostics: Diagnostics,
}

/// Checks a file. `name` is its name in findings, `host` its host, if it is known. HTML and UTF-16
/// get one finding about the whole file. Of each kind only the first few findings are listed.
///
/// ```
/// use crawlgate::{crawlers::Registry, internals::policy::lint::lint_file, robots::RobotsFile};
/// let file = RobotsFile::parse(*b"User-agent: *\nDisallow: private/\n");
/// let lints = lint_file("robots.txt", &file, None, Registry::builtin());
/// assert_eq!(lints.diagnostics.items[0].id, "path-without-slash");
/// ```
pub fn lint_file(
    name: &str,
    file: &RobotsFile,
    host: Option<&str>,
    registry: &Registry,
) -> FileFindings {
    let source = SourceFile {
        name: name.into(),
        text: printable_text(file).into(),
    };
    let spaced = registry.tokens_with_blanks();
    let reading = DialectRules::new(file, Dialect::Rfc9309, &spaced);
    let mut found = Diagnostics::default();
    lint_whole_file(file, &mut found);
    if file.shape() != Text {
        return FileFindings {
            source,
            diagnostics: found,
        };
    }
    let lines = file.lines_within_limit();
    lines.for_each(|line| lines::lint_line(file, line, &mut found));
    lint_rules_outside_groups(file, &reading, &mut found);
    lint_glued_groups(file, &reading, registry, &mut found);
    lint_crawl_delays(file, &reading, registry, &mut found);
    lint_names_on_one_line(file, &reading, registry, &mut found);
    super::lint_subject(&build_subject(file, &reading, host), registry, &mut found);
    lint_disagreements(
        file,
        &reading,
        &DialectRules::new(file, Dialect::Google, &spaced),
        &mut found,
    );
    found.sort();
    let mut diagnostics = Diagnostics::default();
    super::add_limited(found, &mut diagnostics);
    FileFindings {
        source,
        diagnostics,
    }
}

/// The file as text of the same length in bytes, with `?` for each byte that is not UTF-8. A lone
/// carriage return, which ends a line for crawlers, becomes a line feed.
fn printable_text(file: &RobotsFile) -> String {
    let mut bytes = file.bytes().to_vec();
    for line in file.lines() {
        if let [end @ b'\r', rest @ ..] = &mut bytes[line.text.end..]
            && rest.first() != Some(&b'\n')
        {
            *end = b'\n';
        }
    }
    bytes
        .utf8_chunks()
        .map(|chunk| chunk.valid().to_owned() + &"?".repeat(chunk.invalid().len()))
        .collect()
}

/// The place of a part of a line; `range` counts bytes from the start of the file.
fn span_of_range(file: &RobotsFile, line: &RobotsLine, range: &Range<usize>) -> SourceSpan {
    let before = file.slice(&(line.text.start..range.start));
    SourceSpan {
        start: range.start,
        end: range.end,
        line: saturating_u32(line.number),
        column: saturating_u32(String::from_utf8_lossy(before).chars().count() + 1),
    }
}

/// The place of the key and value of a line, else of the whole line.
fn span_of_line(file: &RobotsFile, number: usize) -> SourceSpan {
    let Some(line) = file.line(number) else {
        return SourceSpan::default();
    };
    span_of_range(
        file,
        line,
        &line
            .key_value
            .as_ref()
            .map_or(line.text.clone(), KeyValue::whole),
    )
}

/// Reports HTML and UTF-16, a file without rules, and one that is larger than crawlers read.
fn lint_whole_file(file: &RobotsFile, found: &mut Diagnostics) {
    let unreadable = match file.shape() {
        Text => None,
        Html => Some((
            "an HTML page",
            "answer /robots.txt with text/plain, or with 404 if there is none",
        )),
        Utf16 => Some(("UTF-16", "save the file as UTF-8")),
    };
    match unreadable {
        Some((what, help)) => {
            lints::NOT_A_ROBOTS_TXT.report(
                found,
                None,
                format!("this is {what}: crawlers find no rules in it and may fetch everything"),
                help,
            );
        }
        None if !file.has_rule() => lints::EMPTY_FILE.report(
            found,
            None,
            "this file has no rules: crawlers may fetch everything",
            "if that is meant, write \"User-agent: *\" and an empty \"Disallow:\"",
        ),
        None => {}
    }
    if file.bytes().len() > MAX_ROBOTS_BYTES {
        let first = file
            .lines()
            .iter()
            .find(|line| line.text.end > MAX_ROBOTS_BYTES)
            .map_or(1, |line| line.number);
        found.push(
            lints::FILE_TOO_LARGE
                .finding(
                    span_of_line(file, first),
                    format!(
                        "the file has {} KiB; crawlers read 500",
                        file.bytes().len() / 1024
                    ),
                )
                .label("crawlers ignore everything from here on")
                .help("use fewer, wider patterns"),
        );
    }
}

/// Reports the first rule before the first User-agent line.
fn lint_rules_outside_groups(file: &RobotsFile, reading: &DialectRules, found: &mut Diagnostics) {
    let first_agent = reading
        .agent_lines()
        .next()
        .map_or(usize::MAX, |agent| agent.line);
    let mut outside = file
        .lines()
        .iter()
        .take_while(|line| line.number < first_agent)
        .filter(|line| {
            line.key_value
                .as_ref()
                .is_some_and(|record| matches!(record.key, RobotsKey::Allow | RobotsKey::Disallow))
        });
    let Some(first) = outside.next() else { return };
    lints::RULE_OUTSIDE_GROUP.report(
        found,
        span_of_line(file, first.number),
        "these rules apply to no crawler: no User-agent line precedes them",
        "write \"User-agent: *\" above them",
    );
}

/// Reports the Crawl-delay of groups whose agents all ignore it.
fn lint_crawl_delays(
    file: &RobotsFile,
    reading: &DialectRules,
    registry: &Registry,
    found: &mut Diagnostics,
) {
    for group in reading.groups() {
        let delay = group.other_lines.iter().copied().find(|number| {
            file.key_value(*number)
                .is_some_and(|record| record.key == RobotsKey::CrawlDelay)
        });
        let Some(delay) = delay else { continue };
        let is_ignored_by_all = group
            .agents
            .iter()
            .all(|agent| !agent.star && ignores_crawl_delay(&agent.token, registry));
        if is_ignored_by_all {
            let agents = join(
                group.agents.iter().map(|agent| &agent.token).take(3),
                " and ",
            );
            lints::CRAWL_DELAY_IGNORED.report(
                found,
                span_of_line(file, delay),
                format!("Crawl-delay is ignored by {agents}"),
                "remove it. To slow these crawlers down, answer 429 or 503 with Retry-After",
            );
        }
    }
}

fn ignores_crawl_delay(token: &str, registry: &Registry) -> bool {
    let crawler = registry.find_crawler(token);
    crawler.is_some_and(|crawler| crawler.crawl_delay == Some(false))
}

/// Reports User-agent lines with several names, of which crawlers read only the first.
fn lint_names_on_one_line(
    file: &RobotsFile,
    reading: &DialectRules,
    registry: &Registry,
    found: &mut Diagnostics,
) {
    for agent in reading.agent_lines() {
        let Some(record) = file.key_value(agent.line) else {
            continue;
        };
        let value = file.text(&record.value);
        let Some(names) = names_on_one_line(&value, registry) else {
            continue;
        };
        let lines = join(
            names.iter().map(|name| format!("\"User-agent: {name}\"")),
            ", ",
        );
        lints::SEVERAL_AGENTS.report(
            found,
            span_of_line(file, agent.line),
            format!(
                "crawlers read only the first name of this line, \"{}\"",
                agent.token
            ),
            format!("write each name on its own line: {lines}"),
        );
    }
}

/// Reports two User-agent lines of one group with another line between them that is no rule: the
/// owner probably meant two groups. A comment between them counts only if one of the two is a
/// search engine, because lists of agents often have a comment on each.
fn lint_glued_groups(
    file: &RobotsFile,
    reading: &DialectRules,
    registry: &Registry,
    found: &mut Diagnostics,
) {
    let pairs = reading
        .groups()
        .iter()
        .flat_map(|group| group.agents.windows(2));
    for pair in pairs {
        let [above, below] = pair else { continue };
        let one = &above.token;
        let other = &below.token;
        if one.eq_ignore_ascii_case(other) {
            continue;
        }
        let lines = file.lines().get(above.line..below.line - 1);
        let lines = lines.unwrap_or_default();
        let mut between = lines
            .iter()
            .find(|line| line.key_value.is_some() || line.comment.is_none());
        if between.is_none()
            && is_search_crawler(one, registry) != is_search_crawler(other, registry)
        {
            between = lines.first();
        }
        let Some(between) = between else { continue };
        let what = match &between.key_value {
            Some(record) => format!(
                "{} is not a rule and does not end a list of crawlers",
                file.text(&record.name)
            ),
            None => "this line does not end the group".to_owned(),
        };
        found.push(
            lints::GLUED_GROUP
                .finding(
                    span_of_line(file, below.line),
                    format!("\"{one}\" and \"{other}\" are one group"),
                )
                .label("this line does not begin a new group")
                .related(span_of_line(file, between.number), what)
                .help(format!(
                    "write the rules for \"{one}\" before this line; \"Allow: /\" if it may fetch \
                     everything"
                )),
        );
    }
}

/// Whether a token is `*` or that of a known crawler for search.
fn is_search_crawler(token: &str, registry: &Registry) -> bool {
    let crawler = registry.find_crawler(token);
    token == "*" || crawler.is_some_and(|crawler| crawler.purpose == Purpose::Search)
}

/// The file as a [`LintSubject`], with one group for all tokens that the same groups bind.
fn build_subject(file: &RobotsFile, reading: &DialectRules, host: Option<&str>) -> LintSubject {
    let mut unions: Vec<(&[usize], SubjectGroup)> = Vec::new();
    for agent in reading.first_agent_lines() {
        let (_, union) = reading.groups_for(agent.token.as_bytes());
        let name = Located {
            value: agent.token.clone(),
            span: span_of_line(file, agent.line),
        };
        if let Some((_, group)) = unions.iter_mut().find(|(groups, _)| *groups == union) {
            group.agents.push(name);
            continue;
        }
        let rules = reading
            .groups_at(union)
            .flat_map(|group| &group.rules)
            .map(|rule| Located {
                value: rule.rule.clone(),
                span: span_of_line(file, rule.line),
            });
        unions.push((
            union,
            SubjectGroup {
                agents: vec![name],
                rules: rules.collect(),
            },
        ));
    }
    let groups = unions.into_iter().map(|(_, group)| group).collect();
    let sitemaps = file.lines_within_limit().filter_map(|line| {
        let record = line
            .key_value
            .as_ref()
            .filter(|record| record.key == RobotsKey::Sitemap)?;
        Some(Located {
            value: file.text(&record.value).into_owned(),
            span: span_of_range(file, line, &record.value),
        })
    });
    LintSubject {
        groups,
        sitemaps: sitemaps.collect(),
        hosts: host
            .and_then(|host| parse_host(host).ok())
            .into_iter()
            .collect(),
        is_policy: false,
    }
}

/// Reports rules with a sample URL about which the two readings of the file differ, for the first
/// agent of their group.
fn lint_disagreements(
    file: &RobotsFile,
    rfc: &DialectRules,
    google: &DialectRules,
    found: &mut Diagnostics,
) {
    let rules = rfc
        .groups()
        .iter()
        .flat_map(|group| group.rules.iter().map(|rule| (group.agents.first(), rule)));
    for (agent, rule) in rules.take(MAX_COMPARED) {
        let Some(agent) = agent else { continue };
        let Some(record) = file.key_value(rule.line) else {
            continue;
        };
        let written = file.slice(&record.value);
        let pattern = rule.rule.pattern.as_str();
        if written == pattern.as_bytes() && !differs_for_google(&rule.rule) {
            continue;
        }
        for url in sample_urls(written, pattern) {
            let [by_rfc, by_google] =
                [rfc, google].map(|reading| reading.verdict(agent.token.as_bytes(), &url));
            let same_group = by_rfc.bound == by_google.bound;
            if same_group && by_rfc.allowed != by_google.allowed && by_rfc.line != by_google.line {
                let help = common_spelling_help(written, pattern);
                report_disagreement(
                    &url,
                    by_rfc.allowed,
                    span_of_line(file, rule.line),
                    help,
                    found,
                );
                break;
            }
        }
    }
}
