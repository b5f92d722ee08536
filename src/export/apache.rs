//! [`write()`] makes the configuration by which Apache httpd itself enforces a policy, without
//! crawlgate: lines for a virtual host, and lines for the `.htaccess` of a site's directory.
//!
//! Both consist of sections (`<If>`) on the request as it came. They use no variables of the
//! environment: in a `.htaccess` none is set before Apache chooses the sections. `req_novary` reads
//! a field without naming it in `Vary`, which would spoil caches. The request line (`THE_REQUEST`)
//! has the path as it was sent, with the query.

use super::regex::{Step, marker, media, regexes, request_line};
use super::rules::{
    CrawlerClass, ExportedAnswer, ExportedFile, Rules, SignalRule, TagCondition, TagRule,
};
use super::{CHALLENGE, Files, heading, listed, quoted};
use crate::printable::join;
use std::cmp::Reverse;

/// Apache reads lines of up to 8,192 bytes from a `.htaccess`. A test has one regular expression of
/// at most half of that.
const LINE: usize = 8_000;
const USER_AGENT: &str = "req_novary('User-Agent')";
const REQUEST: &str = "%{THE_REQUEST}";

pub fn write(rules: &Rules, directory: &str, files: &mut Files) {
    let left_out = listed(&left_out(rules));
    let body = tags(rules) + &signals(rules) + &answers(rules);
    let host = heading(rules, "lines for a `<VirtualHost>`, before its `ProxyPass`");
    let host = host + &left_out + &served_files(rules, directory);
    files.insert("crawlgate.conf".into(), (host + &body).into());
    let place = "lines for the beginning of the site's `.htaccess`; the other files go beside it";
    let own = heading(rules, place) + &left_out + &own_files(rules);
    files.insert("crawlgate.htaccess".into(), (own + &body).into());
}

/// The parts of a policy that do not fit into a line of Apache.
fn left_out(rules: &Rules) -> Vec<String> {
    let tags = rules
        .tags
        .iter()
        .any(|tag| tag.unless.as_ref().is_some_and(is_too_long));
    let answers = rules
        .named_answers()
        .iter()
        .any(|(_, answer)| document(&answer.body).is_none());
    let listed = [
        tags.then_some(
            "a rule of `indexing` with very many paths in `not`: its X-Robots-Tag is missing",
        ),
        answers.then_some("a long body: Apache answers with its own text"),
    ];
    listed.into_iter().flatten().map(str::to_owned).collect()
}

fn is_too_long(condition: &TagCondition) -> bool {
    path_tests(&condition.paths).len() > 1
}

/// The files, served from the directory of the export.
fn served_files(rules: &Rules, directory: &str) -> String {
    let mut text = String::new();
    for file in &rules.files {
        let path = file.path;
        let target = quoted(&format!("{directory}/{}", file.name()));
        text += &format!(
            "<IfModule mod_proxy.c>\n    ProxyPass \"{path}\" \"!\"\n</IfModule>\nAlias \"{path}\" {target}\n\
             <Location \"{path}\">\n    SetHandler none\n    Require all granted\n{}</Location>\n",
            of_file(file)
        );
    }
    text += &format!(
        "<Directory {}>\n    AllowOverride None\n    Require all granted\n</Directory>\n",
        quoted(directory)
    );
    text
}

/// Sections for the files in the site's directory.
fn own_files(rules: &Rules) -> String {
    let section =
        |file: &ExportedFile| format!("<If \"{}\">\n{}</If>\n", is_path(file.path), of_file(file));
    rules.files.iter().map(section).collect()
}

fn of_file(file: &ExportedFile) -> String {
    let media = quoted(file.media);
    let cache_control = field_value(&file.cache_control);
    format!("    ForceType {media}\n    Header set Cache-Control {cache_control}\n")
}

fn is_path(path: &str) -> String {
    format!("%{{REQUEST_URI}} == '{path}'")
}

/// Tests of a text, of which one holds where a pattern matches.
fn tests(text: &str, patterns: &[Vec<Step>], flags: &str) -> Vec<String> {
    regexes(patterns)
        .iter()
        .map(|regex| format!("{text} =~ m#{regex}#{flags}"))
        .collect()
}

fn path_tests<T: AsRef<str>>(patterns: &[T]) -> Vec<String> {
    let patterns: Vec<_> = patterns
        .iter()
        .map(|pattern| request_line(pattern.as_ref()))
        .collect();
    tests(REQUEST, &patterns, "")
}

fn tags(rules: &Rules) -> String {
    let mut text = String::new();
    if rules.strips_tags {
        text += "Header unset X-Robots-Tag\nHeader always unset X-Robots-Tag\n";
    }
    for TagRule {
        when,
        unless,
        lines,
    } in &rules.tags
    {
        let mut tests = condition(when);
        if let Some(unless) = unless {
            if is_too_long(unless) {
                continue;
            }
            let paths = (!unless.paths.is_empty()).then(|| path_tests(&unless.paths));
            let all: Vec<String> = paths
                .into_iter()
                .flatten()
                .chain(condition(unless))
                .collect();
            tests.push(if all.is_empty() {
                "false".to_owned()
            } else {
                format!("!({})", all.join(" && "))
            });
        }
        let test = if tests.is_empty() {
            String::new()
        } else {
            format!(" \"expr={}\"", tests.join(" && "))
        };
        let line = |line: &String| {
            format!(
                "Header always add X-Robots-Tag {}{test}\n",
                field_value(line)
            )
        };
        let lines: String = lines.iter().map(line).collect();
        if when.paths.is_empty() {
            text += &lines;
        } else {
            let mut chain = Chain::default();
            chain.when_any(&path_tests(&when.paths), &indented(&lines));
            text += &chain.0;
        }
    }
    text
}

/// The tests of type and status, which are known when fields are written, each in brackets.
fn condition(condition: &TagCondition) -> Vec<String> {
    let mut tests = Vec::new();
    if !condition.types.is_empty() {
        let each = join(condition.types.iter().map(|kind| media(kind)), "|");
        tests.push(format!("%{{CONTENT_TYPE}} =~ m#{each}#i"));
    }
    if !condition.status.is_empty() {
        let status = |(first, last): &(u16, u16)| {
            if first == last {
                format!("%{{REQUEST_STATUS}} -eq {first}")
            } else {
                format!("%{{REQUEST_STATUS}} -ge {first} && %{{REQUEST_STATUS}} -le {last}")
            }
        };
        tests.push(join(condition.status.iter().map(status), " || "));
    }
    tests.into_iter().map(|test| format!("({test})")).collect()
}

/// Fields about use, for what no section of [`answers`] answers. A field that another one's absence
/// asks for is written last: it would hide that the application sent none.
fn signals(rules: &Rules) -> String {
    let mut signals: Vec<&SignalRule> = rules.signals.iter().collect();
    signals.sort_by_key(|signal| Reverse(signal.unless.len()));
    let mut text = String::new();
    for signal in signals {
        let mut chain = Chain::default();
        chain.when(&is_file(rules), "");
        let absent = join(
            signal
                .unless
                .iter()
                .map(|name| format!("-z resp('{name}')")),
            " && ",
        );
        let absent = if absent.is_empty() {
            absent
        } else {
            format!(" \"expr={absent}\"")
        };
        let field = |value: usize| match signal.values[value].as_str() {
            "" => String::new(),
            value => format!(
                "    Header always add {} {}{absent}\n",
                signal.name,
                field_value(value)
            ),
        };
        for (pattern, value) in &signal.paths {
            chain.when_any(&path_tests(&[pattern]), &field(*value));
        }
        if let Some(value) = signal.otherwise {
            chain.otherwise(&field(value));
        }
        text += &chain.0;
    }
    text
}

fn is_file(rules: &Rules) -> String {
    join(rules.files.iter().map(|file| is_path(file.path)), " || ")
}

/// The answers in place of pages.
fn answers(rules: &Rules) -> String {
    let mut chain = Chain::default();
    let is_challenge = format!("{REQUEST} =~ m#^(GET|HEAD) {CHALLENGE}[? ]#");
    chain.when(&format!("{} || {is_challenge}", is_file(rules)), "");
    if let Some(answer) = rules.pause.as_ref().filter(|_| rules.pauses_everyone) {
        chain.otherwise(&answered(answer, rules));
        return chain.0;
    }
    // The class that stands first counts: a run of markers of one class becomes one test.
    let markers = rules.markers();
    for run in markers.chunk_by(|(one, _), (other, _)| one == other) {
        let patterns: Vec<_> = run.iter().map(|(_, text)| marker(text)).collect();
        chain.when_any(
            &tests(USER_AGENT, &patterns, "i"),
            &of_class(&rules.classes[run[0].0], rules),
        );
    }
    chain.0
}

fn of_class(class: &CrawlerClass, rules: &Rules) -> String {
    if let (true, Some(answer)) = (class.is_pausable, &rules.pause) {
        return answered(answer, rules);
    }
    let Some(list) = class.list else {
        return String::new();
    };
    let answer = answered(&rules.answers[class.answer], rules);
    if class.is_closed {
        return answer;
    }
    let mut chain = Chain::default();
    // The rule that stands first counts.
    for run in rules.lists[list].chunk_by(|one, other| one.allow == other.allow) {
        let patterns: Vec<&str> = run.iter().map(|rule| rule.pattern.as_str()).collect();
        chain.when_any(
            &path_tests(&patterns),
            if run[0].allow { "" } else { &answer },
        );
    }
    indented(&chain.0)
}

fn indented(lines: &str) -> String {
    lines.lines().map(|line| format!("    {line}\n")).collect()
}

/// The lines that answer a request. They take away the fields that the virtual host adds to every
/// response.
fn answered(answer: &ExportedAnswer, rules: &Rules) -> String {
    let status = answer.status;
    let mut text = format!("    Redirect {status}\n");
    if let Some(document) = document(&answer.body) {
        text += &format!(
            "    ErrorDocument {status} {document}\n    Header always set Content-Type \"text/plain; charset=utf-8\"\n"
        );
    }
    text += "    Header always set Cache-Control no-store\n";
    if let Some(seconds) = answer.retry_after {
        text += &format!("    Header always set Retry-After {seconds}\n");
    }
    for signal in &rules.signals {
        text += &format!("    Header always unset {}\n", signal.name);
    }
    text
}

/// A chain of `<If>`, `<ElseIf>` and `<Else>`: the first that holds counts.
#[derive(Default)]
struct Chain(String);

impl Chain {
    fn when(&mut self, test: &str, lines: &str) {
        let name = if self.0.is_empty() { "If" } else { "ElseIf" };
        self.0 += &format!("<{name} \"{test}\">\n{lines}</{name}>\n");
    }

    fn when_any(&mut self, tests: &[String], lines: &str) {
        tests.iter().for_each(|test| self.when(test, lines));
    }

    fn otherwise(&mut self, lines: &str) {
        self.0 += &format!("<Else>\n{lines}</Else>\n");
    }
}

/// A text as an error document; `None` where a line has no room for it. Apache reads it as an
/// expression, without line breaks, so each octet but letters, digits and some signs is escaped.
fn document(text: &str) -> Option<String> {
    let mut escaped = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"/ .,-:".contains(&byte) {
            escaped.push(byte.into());
        } else {
            escaped += &format!("%{byte:02x}");
        }
    }
    (escaped.len() < LINE).then(|| format!("\"%{{unescape:{escaped}}}\""))
}

/// The value of a field, in which `%` begins a variable.
fn field_value(text: &str) -> String {
    quoted(&text.replace('%', "%%"))
}
