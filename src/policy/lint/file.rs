//! [`lint_file`] checks a robots.txt as it was found, in any state.

use super::agents::{invisible_sign, is_invisible};
use super::catalogue as lints;
use super::readings::{MAX_COMPARED, report, spelled_for_both, urls_of};
use super::subject::{Subject, SubjectGroup, SubjectRule};
use crate::crawlers::{Purpose, Registry};
use crate::policy::agent_names::names_on_one_line;
use crate::policy::decode::parse_host;
use crate::printable::join;
use crate::robots::{
    Dialect, File, Key, Line, LineEnd, MAX_BYTES, Oddity, Reading, Record, Shape, Spelling,
    is_read_otherwise,
};
use crate::yaml::{Diagnostics, Severity, Source, Span};
use std::collections::HashSet;
use std::ops::Range;

mod signal_lines;

/// The findings, and the text that they point into.
#[derive(Debug)]
pub struct FileLints {
    /// The file as text: what is not UTF-8 is `?`, octet by octet, so that places stay right.
    pub source: Source,
    /// In the order of the file.
    pub diagnostics: Diagnostics,
}

/// Checks a file. `name` is its name in findings, `host` the host that it is for, where it is
/// known. A page of HTML and UTF-16 get one finding about the whole. At most three findings of a
/// kind are listed, unless they are errors; the last of them has the number of the others.
///
/// ```
/// use crawlgate::{crawlers::Registry, internals::policy::lint::lint_file, robots::File};
/// let file = File::parse(*b"User-agent: *\nDisallow: private/\n");
/// let lints = lint_file("robots.txt", &file, None, Registry::builtin());
/// assert_eq!(lints.diagnostics.items[0].id, "path-without-slash");
/// ```
pub fn lint_file(name: &str, file: &File, host: Option<&str>, registry: &Registry) -> FileLints {
    let source = Source {
        name: name.into(),
        text: text_of(file).into(),
    };
    let spaced = registry.tokens_with_blanks();
    let reading = Reading::new(file, Dialect::Rfc9309, &spaced);
    let mut found = Diagnostics::default();
    whole(file, &mut found);
    // In a page of HTML or in UTF-16 no line needs a finding of its own.
    if file.shape() != Shape::Text {
        return FileLints {
            source,
            diagnostics: found,
        };
    }
    let lines = file.lines_read();
    lines.for_each(|line| each_line(file, line, &mut found));
    rules_outside(file, &reading, &mut found);
    signal_lines::opposed(file, &reading, &mut found);
    glued_groups(file, &reading, registry, &mut found);
    delays(file, &reading, registry, &mut found);
    several_agents(file, &reading, registry, &mut found);
    let subject = subject(file, &reading, host);
    super::lint_subject(&subject, registry, &mut found);
    disagreements(
        file,
        &reading,
        &Reading::new(file, Dialect::Google, &spaced),
        &mut found,
    );
    found.sort();
    let mut diagnostics = Diagnostics::default();
    super::add_limited(found, &mut diagnostics);
    FileLints {
        source,
        diagnostics,
    }
}

/// The file as text of the same length in bytes: `?` stands for each byte that is not UTF-8, and a
/// line feed for a lone carriage return, which is a line end to crawlers but not to what shows
/// places.
fn text_of(file: &File) -> String {
    let mut octets = file.bytes().to_vec();
    // An old Mac's line ends are lines to crawlers; what shows places knows only the other kinds.
    for line in file.lines().iter().filter(|line| line.end == LineEnd::Cr) {
        octets[line.text.end] = b'\n';
    }
    octets
        .utf8_chunks()
        .map(|chunk| chunk.valid().to_owned() + &"?".repeat(chunk.invalid().len()))
        .collect()
}

/// The place of a part of a line: `range` counts bytes from the start of the file, and the column
/// counts characters from 1.
fn span(file: &File, line: &Line, range: &Range<usize>) -> Span {
    let before = file.octets(&(line.text.start..range.start));
    Span {
        start: range.start,
        end: range.end,
        line: u32::try_from(line.number).unwrap_or(u32::MAX),
        column: u32::try_from(String::from_utf8_lossy(before).chars().count() + 1)
            .unwrap_or(u32::MAX),
    }
}

/// The place of the record (key and value) of this line, else of the whole line. An unknown number
/// gives the empty span.
fn span_of_line(file: &File, number: usize) -> Span {
    let Some(line) = file.line(number) else {
        return Span::default();
    };
    span(
        file,
        line,
        &line
            .record
            .as_ref()
            .map_or(line.text.clone(), Record::whole),
    )
}

/// Reports what the whole file is about: HTML or UTF-16, no rule at all, or a size beyond what
/// crawlers read.
fn whole(file: &File, found: &mut Diagnostics) {
    let unreadable = match file.shape() {
        Shape::Text => None,
        Shape::Html => Some((
            "a page of HTML",
            "answer /robots.txt with text/plain, or with 404 if there is none",
        )),
        Shape::Utf16 => Some(("UTF-16", "save it as UTF-8")),
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
            "there is no rule in this file: crawlers may fetch everything",
            "if that is meant, say it: `User-agent: *` and an empty `Disallow:`",
        ),
        None => {}
    }
    if file.bytes().len() > MAX_BYTES {
        let first = file
            .lines()
            .iter()
            .find(|line| line.text.end > MAX_BYTES)
            .map_or(1, |line| line.number);
        found.push(
            lints::FILE_TOO_LARGE
                .at(
                    span_of_line(file, first),
                    format!(
                        "the file has {} KiB; crawlers read 500",
                        file.bytes().len() / 1024
                    ),
                )
                .label("from here on nothing counts")
                .help("use fewer, wider patterns"),
        );
    }
}

/// Reports the oddities of one line, its invisible characters, `#` in its path, and what its key
/// and signals say. A misspelt key (`Typo`) is reported with the key.
fn each_line(file: &File, line: &Line, found: &mut Diagnostics) {
    for oddity in &line.oddities {
        let (lint, message, help) = match oddity {
            Oddity::TooLong => {
                let length = line.text.len();
                (
                    lints::LINE_TOO_LONG,
                    format!("this line has {length} octets; what is beyond 16,663 is not read"),
                    "write one rule per line",
                )
            }
            Oddity::Nul => (
                lints::UNREADABLE_OCTETS,
                "a NUL octet: what follows it in the line is not read".into(),
                "remove it",
            ),
            Oddity::NotUtf8 => (
                lints::UNREADABLE_OCTETS,
                "this line is not UTF-8".into(),
                "save the file as UTF-8, or percent-encode what is not ASCII",
            ),
            Oddity::StrayBom => (
                lints::UNREADABLE_OCTETS,
                "a byte order mark in the middle of the file spoils its line".into(),
                "remove it; two files were probably put together",
            ),
            Oddity::NoRecord => (
                lints::NO_RECORD,
                "this line is neither `key: value` nor a comment".into(),
                "begin it with `#` if it is a comment",
            ),
            Oddity::MissingColon => (
                lints::MISSING_COLON,
                "there is no colon; Google supplies it, others may not".into(),
                "write `key: value`",
            ),
            Oddity::Typo => continue,
        };
        found.push(lint.at(span_of_line(file, line.number), message).help(help));
    }
    invisible_ends(file, line, found);
    hash_in_path(file, line, found);
    signal_lines::lint(file, line, found);
    each_record(file, line, found);
}

/// Reports a key, or the path of a rule, that begins or ends with an invisible character. Inside of
/// a path it may be meant. A line with oddities is passed over.
fn invisible_ends(file: &File, line: &Line, found: &mut Diagnostics) {
    let Some(record) = line.record.as_ref().filter(|_| line.oddities.is_empty()) else {
        return;
    };
    let is_rule = matches!(record.key, Key::Allow | Key::Disallow);
    for (what, part) in [
        ("key", Some(&record.name)),
        ("path", Some(&record.value).filter(|_| is_rule)),
    ] {
        let text = part.map(|part| file.text(part)).unwrap_or_default();
        let mut ends = [text.chars().next(), text.chars().next_back()]
            .into_iter()
            .flatten();
        if let Some(sign) = ends.find(|sign| is_invisible(*sign)) {
            invisible_sign(
                lints::UNREADABLE_OCTETS,
                what,
                sign,
                span_of_line(file, line.number),
                found,
            );
        }
    }
}

/// Reports a path that goes on behind a `#`, without a blank on either side: crawlers read what
/// stands before it, and take the rest for a comment.
fn hash_in_path(file: &File, line: &Line, found: &mut Diagnostics) {
    let Some((record, comment)) = line.record.as_ref().zip(line.comment.as_ref()) else {
        return;
    };
    let path = file.text(&record.value);
    let rest = file
        .octets(comment)
        .first()
        .is_some_and(|octet| octet.is_ascii_graphic() && *octet != b'#');
    let is_path = matches!(record.key, Key::Allow | Key::Disallow) && path.starts_with(['/', '*']);
    // A comment has a blank on one of its sides.
    if is_path && rest && record.value.end + 1 == comment.start {
        let whole = file.text(&(record.value.start..comment.end));
        lints::HASH_IN_PATH.report(
            found,
            span_of_line(file, line.number),
            format!("`{}` is read as `{path}`", whole.trim_end()),
            "`#` begins a comment, and crawlers send no part of a URL behind it: write the path without it",
        );
    }
}

/// Reports a misspelt key, or a missing colon, of User-agent, Allow, Disallow and Sitemap lines.
/// Other keys go to `other_key`.
fn each_record(file: &File, line: &Line, found: &mut Diagnostics) {
    let Some(record) = &line.record else { return };
    let name = file.text(&record.name);
    let key = span(file, line, &record.name);
    let proper = match record.key {
        Key::UserAgent => "User-agent",
        Key::Allow => "Allow",
        Key::Disallow => "Disallow",
        Key::Sitemap => "Sitemap",
        _ => return other_key(line, &name, record.key, key, found),
    };
    match record.spelling {
        Spelling::Exact => {}
        // `sitemap https://...`: the first colon is that of the URL.
        Spelling::Longer if name.split_once(' ').is_some_and(|(word, _)| word.eq_ignore_ascii_case(proper)) => {
            lints::MISSING_COLON.report(
                found,
                key,
                format!("there is no colon behind `{proper}`; Google supplies it, others may not"),
                "write `key: value`",
            )
        }
        Spelling::Typo | Spelling::Longer => lints::MISSPELT_KEY.report(
            found,
            key,
            format!("`{name}` is misspelt: Google's library takes it for `{proper}`, others may ignore the line"),
            format!("write `{proper}`"),
        ),
    }
}

/// Reports keys that no crawler reads any more, the retired `Host`, and unknown keys, the last only
/// in a line without oddities.
fn other_key(line: &Line, name: &str, key: Key, span: Span, found: &mut Diagnostics) {
    let (lint, message, help) = match key {
        Key::Noindex => {
            let directive = name.to_ascii_lowercase();
            // Google named noindex, nofollow and crawl-delay when it retired them (Search Central
            // blog, 2019-07-02, "A note on unsupported rules in robots.txt").
            (
                lints::RETIRED_DIRECTIVE,
                format!("no crawler reads `{name}` in robots.txt"),
                format!(
                    "send `X-Robots-Tag: {directive}`, and let crawlers fetch the page, or they will not see it"
                ),
            )
        }
        Key::Host => {
            let lint = lints::RETIRED_DIRECTIVE.with(Severity::Note);
            (
                lint,
                "`Host`: Yandex stopped reading it in 2018".into(),
                "redirect to the main host".into(),
            )
        }
        Key::Unknown if line.oddities.is_empty() => (
            lints::UNKNOWN_DIRECTIVE,
            format!("`{name}` is in no crawler's documentation"),
            "crawlers pass over the line".to_owned(),
        ),
        // A file may have the others; what they are worth is another question.
        _ => return,
    };
    found.push(lint.at(span, message).help(help));
}

/// Reports rules before the first User-agent line (all rules in a file without one): one finding,
/// at the first of them.
fn rules_outside(file: &File, reading: &Reading, found: &mut Diagnostics) {
    let first_agent = reading
        .agents()
        .next()
        .map_or(usize::MAX, |agent| agent.line);
    let mut outside = file
        .lines()
        .iter()
        .take_while(|line| line.number < first_agent)
        .filter(|line| {
            line.record
                .as_ref()
                .is_some_and(|record| matches!(record.key, Key::Allow | Key::Disallow))
        });
    let Some(first) = outside.next() else { return };
    lints::RULE_OUTSIDE_GROUP.report(
        found,
        span_of_line(file, first.number),
        "rules from here on are for no crawler: no User-agent stands above them",
        "write `User-agent: *` above",
    );
}

/// Reports the first Crawl-delay of each group in which every agent is known to ignore it.
fn delays(file: &File, reading: &Reading, registry: &Registry, found: &mut Diagnostics) {
    for group in reading.groups() {
        let delay = group.others.iter().copied().find(|number| {
            file.record(*number)
                .is_some_and(|record| record.key == Key::CrawlDelay)
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
                "remove it, or slow the crawler down by answering 429 or 503 with Retry-After",
            );
        }
    }
}

fn ignores_crawl_delay(token: &str, registry: &Registry) -> bool {
    let mut crawlers = registry.crawlers().iter();
    let crawler = crawlers.find(|crawler| {
        let own = crawler.tokens.first();
        own.is_some_and(|own| own.eq_ignore_ascii_case(token))
    });
    crawler.is_some_and(|crawler| crawler.crawl_delay == Some(false))
}

/// Lines with the names of several crawlers: the rules are for the first only.
fn several_agents(file: &File, reading: &Reading, registry: &Registry, found: &mut Diagnostics) {
    for agent in reading.agents() {
        let Some(record) = file.record(agent.line) else {
            continue;
        };
        let value = file.text(&record.value);
        let Some(names) = names_on_one_line(&value, registry) else {
            continue;
        };
        let lines = join(
            names.iter().map(|name| format!("`User-agent: {name}`")),
            ", ",
        );
        lints::SEVERAL_AGENTS.report(
            found,
            span_of_line(file, agent.line),
            format!(
                "crawlers read only the first name of this line, `{}`",
                agent.token
            ),
            format!("write each name on a line of its own: {lines}"),
        );
    }
}

/// Reports two User-agent lines of one group with another line between them, also a blank one, that
/// is no rule: they are one group, whatever the owner meant. Comments count only where one of the
/// two is for search and the other is not, because lists of agents often have a comment on each.
fn glued_groups(file: &File, reading: &Reading, registry: &Registry, found: &mut Diagnostics) {
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
            .find(|line| line.record.is_some() || line.comment.is_none());
        // Lists of agents often have a comment on each, so one counts only where a search engine is
        // glued to others.
        if between.is_none() && is_search(one, registry) != is_search(other, registry) {
            between = lines.first();
        }
        let Some(between) = between else { continue };
        let what = match &between.record {
            Some(record) => format!("{} is no rule and closes nothing", file.text(&record.name)),
            None => "this line ends no group".to_owned(),
        };
        found.push(
            lints::GLUED_GROUP
                .at(span_of_line(file, below.line), format!("`{one}` and `{other}` are one group"))
                .label("no new group begins here")
                .related(span_of_line(file, between.number), what)
                .help(format!("write the rules for `{one}` before this line; `Allow: /` if it may fetch everything")),
        );
    }
}

/// Whether a token is `*` or that of a known crawler for search.
fn is_search(token: &str, registry: &Registry) -> bool {
    let crawler = registry.named(token);
    token == "*" || crawler.is_some_and(|crawler| crawler.purpose == Purpose::Search)
}

/// The file as a `Subject`: a group for each set of groups that bind a token, with all tokens that
/// they bind. A `host` that is no host pattern is passed over.
fn subject(file: &File, reading: &Reading, host: Option<&str>) -> Subject {
    let mut unions: Vec<(&[usize], SubjectGroup)> = Vec::new();
    let mut known: HashSet<String> = HashSet::new();
    for agent in reading.agents() {
        if !known.insert(agent.token.to_ascii_lowercase()) {
            continue;
        }
        let (_, union) = reading.binding(agent.token.as_bytes());
        let line = (agent.token.clone(), span_of_line(file, agent.line));
        // Tokens of the same groups have the same rules: looked at once.
        if let Some((_, group)) = unions.iter_mut().find(|(groups, _)| *groups == union) {
            group.agents.push(line);
            continue;
        }
        let rules = reading
            .united(union)
            .flat_map(|group| &group.rules)
            .map(|rule| SubjectRule {
                rule: rule.rule.clone(),
                span: span_of_line(file, rule.line),
            });
        unions.push((
            union,
            SubjectGroup {
                agents: vec![line],
                rules: rules.collect(),
            },
        ));
    }
    let groups = unions.into_iter().map(|(_, group)| group).collect();
    let sitemaps = file.lines_read().filter_map(|line| {
        let record = line
            .record
            .as_ref()
            .filter(|record| record.key == Key::Sitemap)?;
        Some((
            file.text(&record.value).into_owned(),
            span(file, line, &record.value),
        ))
    });
    Subject {
        groups,
        sitemaps: sitemaps.collect(),
        hosts: host
            .and_then(|host| parse_host(host).ok())
            .into_iter()
            .collect(),
        is_policy: false,
    }
}

/// Reports rules about whose URLs the two readings of the file differ, for the first agent of their
/// group. Compares only rules that are not in normal form, or that Google reads otherwise, among
/// the first `MAX_COMPARED`.
fn disagreements(file: &File, rfc: &Reading, google: &Reading, found: &mut Diagnostics) {
    let rules = rfc
        .groups()
        .iter()
        .flat_map(|group| group.rules.iter().map(|rule| (group.agents.first(), rule)));
    for (agent, rule) in rules.take(MAX_COMPARED) {
        let Some(agent) = agent else { continue };
        let Some(record) = file.record(rule.line) else {
            continue;
        };
        let written = file.octets(&record.value);
        let pattern = rule.rule.pattern.as_str();
        // What another rule makes of the URLs of this one is said of that one.
        if written == pattern.as_bytes() && !is_read_otherwise(&rule.rule) {
            continue;
        }
        for url in urls_of(written, pattern) {
            let [by_rfc, by_google] =
                [rfc, google].map(|reading| reading.verdict(agent.token.as_bytes(), &url));
            // Whom Google's library does not know by this token, another lint says.
            let same_group = by_rfc.bound == by_google.bound;
            if same_group && by_rfc.allowed != by_google.allowed && by_rfc.line != by_google.line {
                let help = spelled_for_both(written, pattern);
                report(
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
