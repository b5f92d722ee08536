//! [`write()`] makes the configuration of HAProxy: lines for a frontend, and the files that they read.

use super::regex::{marker, marker_regex, media, path, path_regex, regexes};
use super::rules::{ExportedAnswer, ExportedFile, PathRule, Rules, SignalRule, Style, TagCondition, TagRule};
use super::{Files, heading};
use std::fmt::Write as _;

/// How much of a buffer is left for the head: HAProxy answers from memory with a file that fits into a buffer beside
/// its head.
const HEAD: usize = 4096;
/// The size of a buffer, unless `tune.bufsize` says otherwise.
const BUFFER: usize = 16 * 1024;

pub(super) fn write(rules: &Rules, directory: &str, files: &mut Files) {
    let text = heading(rules, "the part for a `frontend`") + &part(rules, (Style::Plain, BUFFER), directory, files);
    files.insert("crawlgate.cfg".into(), text.into());
}

/// The lines for a frontend of a HAProxy with this size of a buffer, and the files that they read.
pub(super) fn part(rules: &Rules, (style, buffer): (Style, usize), directory: &str, files: &mut Files) -> String {
    let mut text = String::new();
    if rules.strips_tags {
        text.push_str("http-response del-header X-Robots-Tag\n");
    }
    for (place, tag) in rules.tags.iter().enumerate() {
        text.push_str(&tags(place, tag));
    }
    for (place, signal) in rules.signals.iter().enumerate() {
        text.push_str(&self::signal(place, signal));
    }
    // Conditions with one name are alternatives.
    text.push_str("acl crawlgate_open path_reg ^/[.]well-known/acme-challenge/[A-Za-z0-9_-]+$\n");
    for file in &rules.files {
        let ExportedFile { path, media, cache_control, body } = file;
        if body.len() + HEAD > buffer {
            let name = file.name();
            let _ =
                writeln!(text, "# {name} does not fit into a buffer: the application has to serve the exported file.");
            let _ = writeln!(text, "acl crawlgate_open path {path}");
            continue;
        }
        let _ = writeln!(
            text,
            "http-request return status 200 content-type \"{media}\" file {} hdr cache-control \"{cache_control}\" if \
             {{ path {path} }}",
            quoted(&format!("{directory}/{}", file.name()))
        );
    }
    text.push_str(&classes(rules, style, directory, files));
    for (place, list) in rules.lists.iter().enumerate() {
        text.push_str(&path_list(place, list, directory, files));
    }
    pause(rules, directory, &mut text, files);
    for (place, list, answer) in rules.refusals() {
        let closed = list.map(|list| format!(" crawlgate_list{list}")).unwrap_or_default();
        let condition = format!("crawlgate_c{place} !crawlgate_open{closed}");
        let name = format!("refused{answer}");
        text.push_str(&returned(&name, &rules.answers[answer], directory, &condition, files));
    }
    text
}

/// Conditions for the classes of crawlers. `req.fhdr`: `hdr` would split user agents at their commas.
fn classes(rules: &Rules, style: Style, directory: &str, files: &mut Files) -> String {
    let mut text = String::new();
    if style == Style::Plain {
        let line = |(class, agent): &(usize, &str)| format!("(?i){} c{class}\n", marker_regex(agent));
        files.insert("crawlers.map".into(), rules.markers().iter().map(line).collect::<String>().into());
        let _ = writeln!(
            text,
            "http-request set-var(txn.crawlgate_class) req.fhdr(user-agent),map_reg({directory}/crawlers.map,none)"
        );
    }
    for (place, class) in rules.classes.iter().enumerate() {
        let test = match style {
            Style::Plain => format!("var(txn.crawlgate_class) -m str c{place}"),
            Style::Compact => {
                let markers: Vec<_> = class.markers.iter().map(|(_, text)| marker(text)).collect();
                files.insert(format!("class{place}.agents"), (regexes(&markers).join("\n") + "\n").into());
                format!("req.fhdr(user-agent) -m reg -i -f {directory}/class{place}.agents")
            }
        };
        let _ = writeln!(text, "acl crawlgate_c{place} {test}");
    }
    text
}

/// The condition that a list disallows the path. Without Allow the order does not matter, and HAProxy finds beginnings
/// in a tree.
fn path_list(place: usize, list: &[PathRule], directory: &str, files: &mut Files) -> String {
    if list.iter().any(|rule| rule.allow) {
        let line =
            |rule: &PathRule| format!("{} {}\n", path_regex(&rule.pattern), if rule.allow { "open" } else { "closed" });
        files.insert(format!("list{place}.map"), list.iter().map(line).collect::<String>().into());
        return format!("acl crawlgate_list{place} pathq,map_reg({directory}/list{place}.map,open) closed\n");
    }
    let (mut prefixes, mut whole, mut wild) = (Vec::new(), Vec::new(), Vec::new());
    for PathRule { pattern, .. } in list {
        match pattern.strip_suffix('$') {
            _ if pattern.contains('*') => wild.push(path(pattern)),
            Some(text) => whole.push(text),
            None => prefixes.push(pattern.as_str()),
        }
    }
    let wild = if wild.is_empty() { String::new() } else { regexes(&wild).join("\n") };
    let mut text = String::new();
    let kinds = [("beg", prefixes.join("\n")), ("str", whole.join("\n")), ("reg", wild)];
    for (kind, lines) in kinds.into_iter().filter(|(_, lines)| !lines.is_empty()) {
        let _ = writeln!(text, "acl crawlgate_list{place} pathq -m {kind} -f {directory}/list{place}.{kind}");
        files.insert(format!("list{place}.{kind}"), (lines + "\n").into());
    }
    text
}

fn pause(rules: &Rules, directory: &str, text: &mut String, files: &mut Files) {
    let Some((answer, is_for_all)) = &rules.pause else { return };
    let conditions: Vec<String> = match is_for_all {
        true => vec!["!crawlgate_open".to_owned()],
        false => rules.paused().map(|place| format!("crawlgate_c{place} !crawlgate_open")).collect(),
    };
    for condition in conditions {
        text.push_str(&returned("paused", answer, directory, &condition, files));
    }
}

fn returned(name: &str, answer: &ExportedAnswer, directory: &str, condition: &str, files: &mut Files) -> String {
    let file = format!("{name}.txt");
    let retry_after = answer.retry_after.map(|seconds| format!(" hdr retry-after {seconds}")).unwrap_or_default();
    let line = format!(
        "http-request return status {} content-type \"text/plain; charset=utf-8\" file {} hdr cache-control \
         no-store{retry_after} if {condition}\n",
        answer.status,
        quoted(&format!("{directory}/{file}"))
    );
    files.insert(file, answer.body.clone().into());
    line
}

fn tags(place: usize, tag: &TagRule) -> String {
    let mut text = String::new();
    let mut tests = condition(&format!("tag{place}"), &tag.when, &mut text);
    if let Some(unless) = &tag.unless {
        // A line can ask for all of several conditions, and not for the opposite of that.
        let variable = format!("txn.crawlgate_out{place}");
        let unless = condition(&format!("not{place}"), unless, &mut text);
        let _ = writeln!(text, "http-after-response set-var({variable}) bool(true) if{unless}");
        let _ = write!(tests, " !{{ var({variable}) -m bool }}");
    }
    for line in &tag.lines {
        let tests = if tests.is_empty() { String::new() } else { format!(" if{tests}") };
        let _ = writeln!(text, "http-after-response add-header X-Robots-Tag {}{tests}", quoted(line));
    }
    text
}

/// The tests of a condition. The path is gone when the response comes, so its result is kept in a variable.
fn condition(name: &str, condition: &TagCondition, text: &mut String) -> String {
    let mut tests = String::new();
    if !condition.paths.is_empty() {
        for pattern in &condition.paths {
            let pattern = quoted(&path_regex(pattern));
            let _ =
                writeln!(text, "http-request set-var(txn.crawlgate_{name}) bool(true) if {{ pathq -m reg {pattern} }}");
        }
        let _ = write!(tests, " {{ var(txn.crawlgate_{name}) -m bool }}");
    }
    if !condition.types.is_empty() {
        let each: Vec<String> = condition.types.iter().map(|kind| media(kind)).collect();
        let _ = write!(tests, " {{ res.fhdr(content-type) -i -m reg {} }}", quoted(&each.join("|")));
    }
    if !condition.status.is_empty() {
        let each: Vec<String> = condition.status.iter().map(|(first, last)| format!("{first}:{last}")).collect();
        let _ = write!(tests, " {{ status -m int {} }}", each.join(" "));
    }
    tests
}

/// The lines of a field about the use of pages. A variable has the place of the value; the line that counts sets it
/// last. The application's own field is kept.
fn signal(place: usize, signal: &SignalRule) -> String {
    let variable = format!("txn.crawlgate_signal{place}");
    let mut text = String::new();
    if let Some(value) = signal.otherwise {
        let _ = writeln!(text, "http-request set-var({variable}) int({value})");
    }
    for (pattern, value) in signal.paths.iter().rev() {
        let pattern = quoted(&path_regex(pattern));
        let _ = writeln!(text, "http-request set-var({variable}) int({value}) if {{ pathq -m reg {pattern} }}");
    }
    let theirs: String = signal.unless.iter().map(|name| format!(" !{{ res.hdr({name}) -m found }}")).collect();
    for (value, text_of) in signal.values.iter().enumerate().filter(|(_, value)| !value.is_empty()) {
        let _ = writeln!(
            text,
            "http-response add-header {} {} if {{ var({variable}) -m int {value} }}{theirs}",
            signal.name,
            quoted(&text_of.replace('%', "%%"))
        );
    }
    text
}

/// A word in an HAProxy configuration. Single quotes: in double quotes `$` would begin a variable of the environment.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
