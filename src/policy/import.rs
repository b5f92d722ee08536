//! A robots.txt that exists already, as a policy: written as a person would write it, with its comments, and with the
//! same verdict for every token and target.
//!
//! Text in, text out: knows no file system. What a policy cannot say is said in a comment in its place and in the notes.

use super::model::SignalCategory;
use super::{compile, lint, read};
use crate::crawlers::{Purpose, Registry};
use crate::robots::{Dialect, File, FileGroup, Key, Line, MAX_BYTES, Reading, Shape};
use crate::yaml::{Diagnostics, Source};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;
use std::sync::Arc;

/// How to import.
#[derive(Clone, Copy, Debug, Default)]
pub struct ImportOptions<'a> {
    /// The host that the file is for.
    pub host: Option<&'a str>,
    /// Write `purposes` where every crawler of a purpose is shut out whole. New crawlers of it will be, too.
    pub purposes: bool,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Imported {
    /// The policy.
    pub text: String,
    /// What could not be carried over, with the number of its line in the robots.txt.
    pub notes: Vec<(usize, String)>,
}

/// Writes the policy of a robots.txt.
///
/// ```
/// use crawlgate::{crawlers::Registry, policy::import, robots::File};
/// let file = File::parse(*b"# No training, please.\nUser-agent: GPTBot\nUser-agent: CCBot\nDisallow: /\n");
/// let imported = import::import(&file, &import::ImportOptions::default(), Registry::builtin());
/// assert!(imported.text.contains("# No training, please.\n    - agents: [GPTBot, CCBot]\n      disallow: /\n"));
/// ```
pub fn import(file: &File, options: &ImportOptions<'_>, registry: &'static Registry) -> Imported {
    let spaced = registry.tokens_with_blanks();
    let reading = Reading::new(file, Dialect::Rfc9309, &spaced);
    let mut import = Import { file, reading: &reading, notes: Vec::new(), carried: Carried::default() };
    let mut drafts = import.drafts(registry);
    let purposes = if options.purposes { take_purposes(&mut drafts, registry) } else { BTreeMap::new() };
    import.comments(&drafts);
    let mut text = import.text(options, &drafts, &purposes);
    if keeps_search_engines_out(&text, registry) {
        text.push_str("\nacknowledge: [site_disallowed]   # the robots.txt keeps search engines off the whole site\n");
    }
    let mut notes = import.notes;
    notes.sort();
    notes.dedup();
    Imported { text, notes }
}

/// A group of the policy: tokens with the same rules.
struct Draft {
    agents: Vec<String>,
    rules: Vec<DraftRule>,
    crawl_delay: Option<String>,
    /// As a policy writes it.
    content_signal: Option<String>,
    /// The User-agent lines that the comments above it come from.
    agent_lines: Vec<usize>,
    /// Lines of its groups that a policy cannot say.
    left_out: Vec<usize>,
}

struct DraftRule {
    allow: bool,
    /// As it is compared.
    pattern: String,
    /// As it was written, where that can be.
    text: String,
    line: usize,
}

impl Draft {
    fn same_rules(&self, other: &Draft) -> bool {
        let set = |draft: &Draft| -> BTreeSet<(bool, String)> {
            draft.rules.iter().map(|rule| (rule.allow, rule.pattern.clone())).collect()
        };
        self.crawl_delay == other.crawl_delay && self.content_signal == other.content_signal && set(self) == set(other)
    }

    fn shuts_out(&self) -> bool {
        matches!(self.rules.as_slice(), [rule] if !rule.allow && rule.pattern == "/")
            && self.crawl_delay.is_none()
            && self.content_signal.is_none()
    }
}

/// Comments, by where they go.
#[derive(Default)]
struct Carried {
    top: Vec<String>,
    /// Above the group of the agent line.
    above_group: HashMap<usize, Vec<String>>,
    /// Above the rule of the line.
    above_rule: HashMap<usize, Vec<String>>,
    /// Behind the rule of the line.
    behind_rule: HashMap<usize, String>,
    sitemap: HashMap<usize, Vec<String>>,
    bottom: Vec<String>,
}

struct Import<'a> {
    file: &'a File,
    reading: &'a Reading,
    notes: Vec<(usize, String)>,
    carried: Carried,
}

impl Import<'_> {
    fn note(&mut self, line: usize, message: impl Into<String>) {
        self.notes.push((line, message.into()));
    }

    fn drafts(&mut self, registry: &'static Registry) -> Vec<Draft> {
        match self.file.shape() {
            Shape::Text => {}
            Shape::Html => self.note(1, "this is a page of HTML, not a robots.txt"),
            Shape::Utf16 => self.note(1, "this is UTF-16: no crawler reads a rule in it"),
        }
        let mut tokens: Vec<(String, usize)> = Vec::new();
        for agent in self.reading.groups().iter().flat_map(|group| &group.agents) {
            if !tokens.iter().any(|(token, _)| token.eq_ignore_ascii_case(&agent.token)) {
                tokens.push((agent.token.clone(), agent.line));
            }
        }
        let mut drafts: Vec<Draft> = Vec::new();
        for (token, line) in tokens {
            if let Some(why) = unfit(&token, registry) {
                self.note(line, format!("the group for `{token}` is left out: {why}"));
                continue;
            }
            let draft = self.draft(&token);
            match drafts.iter_mut().find(|other| other.same_rules(&draft)) {
                Some(other) => {
                    other.agents.extend(draft.agents);
                    other.agent_lines.extend(draft.agent_lines);
                    let new = draft.left_out.into_iter().filter(|line| !other.left_out.contains(line));
                    other.left_out.extend(new.collect::<Vec<_>>());
                }
                None => drafts.push(draft),
            }
        }
        drafts
    }

    fn draft(&mut self, token: &str) -> Draft {
        let groups: Vec<FileGroup> = {
            let (_, groups) = self.reading.binding(token.as_bytes());
            groups.iter().filter_map(|&group| self.reading.groups().get(group)).cloned().collect()
        };
        let mut draft = Draft {
            agents: vec![token.to_owned()],
            rules: Vec::new(),
            crawl_delay: None,
            content_signal: None,
            agent_lines: Vec::new(),
            left_out: Vec::new(),
        };
        for group in &groups {
            let named = group.agents.iter().filter(|agent| agent.token.eq_ignore_ascii_case(token));
            draft.agent_lines.extend(named.map(|agent| agent.line));
            for rule in &group.rules {
                let pattern = rule.rule.pattern.as_str();
                let known = |other: &DraftRule| other.allow == rule.rule.allow && other.pattern == pattern;
                if pattern.is_empty() || draft.rules.iter().any(known) {
                    continue;
                }
                match self.written(rule.line, pattern) {
                    Ok(text) => draft.rules.push(DraftRule {
                        allow: rule.rule.allow,
                        pattern: pattern.to_owned(),
                        text,
                        line: rule.line,
                    }),
                    Err(why) => self.note(rule.line, why),
                }
            }
            for &line in &group.others {
                self.other(line, &mut draft);
            }
        }
        draft
    }

    /// How a rule is written in a policy: as in the file where that says the same.
    fn written(&self, line: usize, pattern: &str) -> Result<String, String> {
        if !pattern.starts_with(['/', '*']) {
            return Err(format!("`{pattern}` matches nothing and is left out: a path begins with `/` or `*`"));
        }
        let record = self.file.line(line).and_then(|line| line.record.as_ref());
        let written = record.and_then(|record| std::str::from_utf8(self.file.octets(&record.value)).ok());
        let text = written.filter(|text| text.starts_with(['/', '*']) && !text.chars().any(char::is_control));
        let text = text.filter(|text| text.len() <= super::decode::MAX_PATTERN).unwrap_or(pattern);
        if text.len() > super::decode::MAX_PATTERN {
            return Err(format!("a path of {} octets is left out: no URL is as long", text.len()));
        }
        Ok(text.to_owned())
    }

    fn other(&mut self, number: usize, draft: &mut Draft) {
        let Some((line, record)) = self.file.line(number).and_then(|line| Some((line, line.record.as_ref()?))) else {
            return;
        };
        let value = self.file.text(&record.value);
        if record.key == Key::CrawlDelay {
            match crawl_delay(&value) {
                Some(delay) if draft.crawl_delay.as_ref().is_none_or(|first| *first == delay) => {
                    draft.crawl_delay = Some(delay);
                }
                Some(_) => {
                    self.note(number, format!("`Crawl-delay: {value}` is left out: the token has another one already"))
                }
                None => self.note(
                    number,
                    format!("`Crawl-delay: {value}` is left out: a policy takes more than nothing and at most a day"),
                ),
            }
            return;
        }
        if record.key == Key::License {
            return;
        }
        let said = one_line(&self.file.text(&content(line)));
        if record.key == Key::ContentSignal {
            match content_signal(&value) {
                Some(signal) if draft.content_signal.as_ref().is_none_or(|first| *first == signal) => {
                    draft.content_signal = Some(signal);
                    return;
                }
                Some(_) => self.note(number, format!("`{said}` is left out: the token has another one already")),
                None => self.note(
                    number,
                    format!("`{said}` is left out: a policy knows search, ai-input and ai-train, each yes or no"),
                ),
            }
            draft.left_out.push(number);
            return;
        }
        self.note(number, format!("`{said}` is left out: a policy cannot say it yet"));
        draft.left_out.push(number);
    }

    /// Sorts the comments of the file to what they stand at.
    fn comments(&mut self, drafts: &[Draft]) {
        let rules: BTreeSet<usize> = drafts.iter().flat_map(|draft| &draft.rules).map(|rule| rule.line).collect();
        let agents: BTreeSet<usize> = drafts.iter().flat_map(|draft| draft.agent_lines.iter().copied()).collect();
        let mut waiting: Vec<String> = Vec::new();
        let mut begun = false;
        for line in self.file.lines().iter().take_while(|line| line.text.end <= MAX_BYTES) {
            let comment = line.comment.as_ref().map(|comment| one_line(self.file.text(comment).trim()));
            let Some(record) = &line.record else {
                match comment {
                    Some(comment) => waiting.push(comment),
                    // A block at the top, and then a blank line: it is about the file.
                    None if !begun => self.carried.top.append(&mut waiting),
                    None => {}
                }
                continue;
            };
            begun = true;
            let comment = comment.filter(|comment| !comment.is_empty());
            if rules.contains(&line.number) {
                self.carried.above_rule.insert(line.number, std::mem::take(&mut waiting));
                self.carried.behind_rule.extend(comment.map(|comment| (line.number, comment)));
                continue;
            }
            waiting.extend(comment);
            if agents.contains(&line.number) {
                self.carried.above_group.insert(line.number, std::mem::take(&mut waiting));
            } else if record.key == Key::Sitemap {
                self.carried.sitemap.insert(line.number, std::mem::take(&mut waiting));
            }
        }
        if begun { self.carried.bottom = waiting } else { self.carried.top.append(&mut waiting) }
    }

    fn text(
        &mut self,
        options: &ImportOptions<'_>,
        drafts: &[Draft],
        purposes: &BTreeMap<Purpose, Vec<usize>>,
    ) -> String {
        let mut out = String::new();
        let carried = std::mem::take(&mut self.carried);
        write_comments(&mut out, "", &carried.top);
        if !out.is_empty() {
            out.push('\n');
        }
        let top = out.len();
        if let Some(host) = options.host {
            line(&mut out, format_args!("hosts: [{}]", scalar(host)));
        }
        if !purposes.is_empty() {
            line(&mut out, format_args!("purposes:"));
            for (purpose, lines) in purposes {
                for number in lines {
                    write_comments(&mut out, "  ", carried.above_group.get(number).map_or(&[], Vec::as_slice));
                }
                line(&mut out, format_args!("  {}: disallow", purpose.name()));
            }
        }
        if out.len() > top {
            out.push('\n');
        }
        line(&mut out, format_args!("robots:\n  origin: replace"));
        if !drafts.is_empty() {
            line(&mut out, format_args!("  groups:"));
        }
        let star = drafts.iter().find(|draft| draft.agents.iter().any(|agent| agent == "*"));
        // What stands in two groups of the file has its comments once.
        let mut said = BTreeSet::new();
        for draft in drafts {
            for number in &draft.agent_lines {
                write_comments(&mut out, "    ", carried.above_group.get(number).map_or(&[], Vec::as_slice));
            }
            self.group(&mut out, draft, star, &carried, &mut said);
        }
        self.licenses(&mut out);
        self.sitemaps(&mut out, &carried);
        write_comments(&mut out, "", &carried.bottom);
        out.push_str("\nenforcement:\n  mode: observe   # nothing is refused; metrics and log say what would be\n");
        out
    }

    fn group(
        &self,
        out: &mut String,
        draft: &Draft,
        star: Option<&Draft>,
        carried: &Carried,
        said: &mut BTreeSet<usize>,
    ) {
        line(out, format_args!("    - agents: {}", list(&draft.agents)));
        let extended = star.filter(|star| extends(draft, star));
        if extended.is_some() {
            line(out, format_args!("      extends: \"*\""));
        }
        let inherited =
            |rule: &DraftRule| extended.is_some_and(|star| star.rules.iter().any(|other| same(other, rule)));
        for (key, allow) in [("disallow", false), ("allow", true)] {
            let rules: Vec<&DraftRule> =
                draft.rules.iter().filter(|rule| rule.allow == allow && !inherited(rule)).collect();
            let commented = |rule: &DraftRule| {
                carried.above_rule.get(&rule.line).is_some_and(|comments| !comments.is_empty())
                    || carried.behind_rule.contains_key(&rule.line)
            };
            match rules.as_slice() {
                [] => {}
                [rule] if !commented(rule) => line(out, format_args!("      {key}: {}", scalar(&rule.text))),
                rules => {
                    line(out, format_args!("      {key}:"));
                    for rule in rules {
                        let first = said.insert(rule.line);
                        let above = carried.above_rule.get(&rule.line).filter(|_| first);
                        write_comments(out, "        ", above.map_or(&[], Vec::as_slice));
                        let behind = carried.behind_rule.get(&rule.line).filter(|_| first);
                        let behind = behind.map(|comment| format!("   # {comment}")).unwrap_or_default();
                        line(out, format_args!("        - {}{behind}", scalar(&rule.text)));
                    }
                }
            }
        }
        if draft.rules.is_empty() && extended.is_none() {
            line(out, format_args!("      allow: /"));
        }
        if let Some(delay) = &draft.crawl_delay {
            line(out, format_args!("      crawl_delay: {delay}"));
        }
        if let Some(signal) = &draft.content_signal {
            line(out, format_args!("      content_signal: {signal}"));
        }
        for number in &draft.left_out {
            if let Some(left) = self.file.line(*number) {
                let text = one_line(&self.file.text(&content(left)));
                line(out, format_args!("      # left out: {text}"));
            }
        }
    }

    /// Licences, wherever they stand: RSL has them for the whole file, and who appends one to a file below the last group
    /// means no other.
    fn licenses(&mut self, out: &mut String) {
        let mut urls: Vec<String> = Vec::new();
        for found in self.file.lines().iter().take_while(|line| line.text.end <= MAX_BYTES) {
            let Some(record) = found.record.as_ref().filter(|record| record.key == Key::License) else { continue };
            let url = self.file.text(&record.value).into_owned();
            match super::decode::url_mistake(&url) {
                Some((why, _)) => {
                    self.notes.push((found.number, format!("the licence is left out: {}", one_line(&why))))
                }
                None if !urls.contains(&url) => urls.push(url),
                None => {}
            }
        }
        if !urls.is_empty() {
            line(out, format_args!("  license: {}", list(&urls)));
        }
    }

    fn sitemaps(&mut self, out: &mut String, carried: &Carried) {
        let mut seen = BTreeSet::new();
        let mut head = Some("  sitemaps:");
        let mut notes = Vec::new();
        for sitemap in self.file.lines().iter().take_while(|line| line.text.end <= MAX_BYTES) {
            let Some(record) = sitemap.record.as_ref().filter(|record| record.key == Key::Sitemap) else { continue };
            let url = self.file.text(&record.value).into_owned();
            let rest = ["https://", "http://"].iter().find_map(|scheme| url.strip_prefix(scheme));
            let whole = rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'))
                && !url.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\u{FFFD}');
            if !whole {
                notes.push((
                    sitemap.number,
                    format!("the sitemap `{}` is left out: it is no absolute URL", one_line(&url)),
                ));
                continue;
            }
            if !seen.insert(url.clone()) {
                continue;
            }
            if let Some(head) = head.take() {
                line(out, format_args!("{head}"));
            }
            write_comments(out, "    ", carried.sitemap.get(&sitemap.number).map_or(&[], Vec::as_slice));
            line(out, format_args!("    - {}", scalar(&url)));
        }
        for left in self.file.lines().iter().filter(|line| line.text.end > MAX_BYTES).take(1) {
            notes.push((left.number, "what begins here lies beyond 500 KiB, and crawlers do not read it".to_owned()));
        }
        // Rules that stand before the first agent bind nobody, and are no extension of a group either.
        let first =
            self.reading.groups().first().and_then(|group| group.agents.first()).map_or(usize::MAX, |agent| agent.line);
        for early in self.file.lines().iter().take_while(|line| line.number < first) {
            if let Some(record) = &early.record
                && !matches!(record.key, Key::Sitemap | Key::UserAgent | Key::License | Key::Unknown)
            {
                let text = one_line(&self.file.text(&content(early)));
                notes.push((early.number, format!("`{text}` is left out: it stands before the first User-agent")));
            }
        }
        self.notes.append(&mut notes);
    }
}

/// Why a token of a file can stand in no policy.
fn unfit(token: &str, registry: &'static Registry) -> Option<&'static str> {
    if token == "*" {
        None
    } else if !super::decode::is_token(token) {
        Some("that is no product token, and no crawler is called so")
    } else if lint::stands_in_browsers(token, registry) {
        Some("it stands in the user agents of people's browsers, who would be taken for a crawler")
    } else {
        None
    }
}

fn same(one: &DraftRule, other: &DraftRule) -> bool {
    one.allow == other.allow && one.pattern == other.pattern
}

/// Whether a group is that of `*` and more. One rule in common is a coincidence.
fn extends(draft: &Draft, star: &Draft) -> bool {
    !std::ptr::eq(draft, star)
        && star.rules.len() > 1
        && draft.rules.len() > star.rules.len()
        && (star.crawl_delay.is_none() || draft.crawl_delay.is_some())
        && (star.content_signal.is_none() || draft.content_signal.is_some())
        && star.rules.iter().all(|rule| draft.rules.iter().any(|other| same(rule, other)))
}

/// Takes out the tokens of purposes of which every crawler is shut out whole.
fn take_purposes(drafts: &mut Vec<Draft>, registry: &'static Registry) -> BTreeMap<Purpose, Vec<usize>> {
    let mut taken = BTreeMap::new();
    for purpose in Purpose::ALL {
        let crawlers = registry.crawlers().iter().filter(|crawler| crawler.purpose == purpose);
        let tokens: Vec<&String> = crawlers.filter_map(|crawler| crawler.tokens.first()).collect();
        let shut_out = |token: &&String| {
            drafts
                .iter()
                .any(|draft| draft.shuts_out() && draft.agents.iter().any(|agent| agent.eq_ignore_ascii_case(token)))
        };
        if tokens.is_empty() || !tokens.iter().all(shut_out) {
            continue;
        }
        let mut lines = Vec::new();
        for draft in drafts.iter_mut().filter(|draft| draft.shuts_out()) {
            let before = draft.agents.len();
            draft.agents.retain(|agent| !tokens.iter().any(|token| token.eq_ignore_ascii_case(agent)));
            if draft.agents.is_empty() && before > 0 {
                lines.append(&mut draft.agent_lines);
            }
        }
        drafts.retain(|draft| !draft.agents.is_empty());
        taken.insert(purpose, lines);
    }
    taken
}

/// Whether the policy would be refused for keeping search engines out: the file did so before, and is meant.
fn keeps_search_engines_out(text: &str, registry: &'static Registry) -> bool {
    let source = Source { name: "import".into(), text: text.into() };
    let Some(site) = read("import", &source).0.and_then(|policy| compile(Arc::new(policy), registry).ok()) else {
        return false;
    };
    let mut findings = Diagnostics::default();
    lint::lint(&site, registry, &mut findings);
    findings.items.iter().any(|finding| finding.id == "site-disallowed")
}

/// A duration of the policy, above nothing and up to a day.
fn crawl_delay(value: &str) -> Option<String> {
    let milliseconds = value.parse::<f64>().ok()? * 1_000.0;
    if !(1.0..=86_400_000.0).contains(&milliseconds) || milliseconds.fract() != 0.0 {
        return None;
    }
    let milliseconds = milliseconds as u64;
    Some(match milliseconds % 1_000 {
        0 => format!("{}s", milliseconds / 1_000),
        _ => format!("{milliseconds}ms"),
    })
}

/// `search=yes,ai-train=no` as a policy writes it; nothing where part of it would be lost.
fn content_signal(value: &str) -> Option<String> {
    let mut said: Vec<(SignalCategory, &str)> = Vec::new();
    for part in value.split(',') {
        let (name, word) = part.split_once('=')?;
        let is = |category: &SignalCategory| category.name().eq_ignore_ascii_case(name.trim());
        let category = SignalCategory::ALL.into_iter().find(is)?;
        let word = ["yes", "no"].into_iter().find(|known| known.eq_ignore_ascii_case(word.trim()))?;
        if said.iter().any(|(other, _)| *other == category) {
            return None;
        }
        said.push((category, word));
    }
    said.sort_by_key(|(category, _)| *category);
    let said: Vec<String> = said.iter().map(|(category, word)| format!("{}: {word}", category.name())).collect();
    Some(format!("{{ {} }}", said.join(", ")))
}

/// A line without its comment.
fn content(line: &Line) -> std::ops::Range<usize> {
    match &line.record {
        Some(record) => record.name.start..record.value.end.max(record.name.end),
        None => line.text.clone(),
    }
}

fn one_line(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{FEFF}' | '\u{85}') { '\u{FFFD}' } else { c }
        })
        .collect()
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to a String does not fail");
    out.push('\n');
}

fn write_comments(out: &mut String, indent: &str, comments: &[String]) {
    for comment in comments {
        let blank = if comment.is_empty() { "" } else { " " };
        line(out, format_args!("{indent}#{blank}{comment}"));
    }
}

fn list(items: &[String]) -> String {
    let items: Vec<String> = items.iter().map(|item| scalar(item)).collect();
    format!("[{}]", items.join(", "))
}

/// A YAML scalar that is read as this text, bare where nothing in it could be taken for something else.
fn scalar(text: &str) -> String {
    let bare = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-~+=%".contains(c))
        && !matches!(
            text.to_ascii_lowercase().as_str(),
            "true" | "false" | "yes" | "no" | "on" | "off" | "null" | "y" | "n"
        );
    let url = text.starts_with("http")
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-~+=%:?".contains(c))
        && !text.ends_with(':');
    if bare || url {
        return text.to_owned();
    }
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{FEFF}' | '\u{85}') => {
                write!(out, "\\u{:04X}", u32::from(c)).expect("writing to a String does not fail");
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
