//! [`write()`] makes the configuration by which HAProxy itself enforces a policy, without
//! crawlgate: lines for a frontend, and the files that these lines read.

use super::regex::{marker, marker_regex, media, path, path_regex, regexes};
use super::rules::{
    ExportedAnswer, ExportedFile, PathRule, Rules, SignalRule, Style, TagCondition, TagRule,
};
use super::{CHALLENGE, Files, heading};
use crate::printable::join;

/// How much of a buffer is left for the head: HAProxy answers from memory with a file that fits
/// into a buffer beside its head.
const HEAD: usize = 4096;
/// The size of a buffer, unless `tune.bufsize` says otherwise.
const BUFFER: usize = 16 * 1024;

pub fn write(rules: &Rules, directory: &str, files: &mut Files) {
    let text = heading(rules, "the part for a `frontend`")
        + &part(rules, (Style::Plain, BUFFER), directory, files);
    files.insert("crawlgate.cfg".into(), text.into());
}

/// The lines for a frontend of a HAProxy with this size of a buffer, and the files that they read.
pub fn part(
    rules: &Rules,
    (style, buffer): (Style, usize),
    directory: &str,
    files: &mut Files,
) -> String {
    let mut text = String::new();
    if rules.strips_tags {
        text += "http-response del-header X-Robots-Tag\n";
    }
    text.extend(rules.tags.iter().enumerate().map(tags));
    text.extend(rules.signals.iter().enumerate().map(signal));
    // Conditions with one name are alternatives.
    text += &format!(
        "http-request set-var(txn.crawlgate_challenge) bool(true) if METH_GET {{ path_reg ^{CHALLENGE}$ }}\n"
    );
    text += "acl crawlgate_open var(txn.crawlgate_challenge) -m bool\n";
    for file in &rules.files {
        let ExportedFile {
            path,
            media,
            cache_control,
            body,
        } = file;
        if body.len() + HEAD > buffer {
            text += &format!(
                "# {} does not fit into a buffer: the application has to serve the exported file.\nacl crawlgate_open path \
                 {path}\n",
                file.name()
            );
            continue;
        }
        text += &format!(
            "http-request return status 200 content-type \"{media}\" file {} hdr cache-control \"{cache_control}\" if \
             {{ path {path} }}\n",
            quoted(&format!("{directory}/{}", file.name()))
        );
    }
    text += &classes(rules, style, directory, files);
    for (place, list) in rules.lists.iter().enumerate() {
        text += &path_list(place, list, directory, files);
    }
    if let Some(answer) = &rules.pause {
        let conditions = if rules.pauses_everyone {
            vec!["!crawlgate_open".to_owned()]
        } else {
            rules
                .paused()
                .map(|place| format!("crawlgate_c{place} !crawlgate_open"))
                .collect()
        };
        for condition in conditions {
            text += &returned("paused", answer, directory, &condition, files);
        }
    }
    for (place, list, answer) in rules.refusals() {
        let closed = list
            .map(|list| format!(" crawlgate_list{list}"))
            .unwrap_or_default();
        let condition = format!("crawlgate_c{place} !crawlgate_open{closed}");
        text += &returned(
            &format!("refused{answer}"),
            &rules.answers[answer],
            directory,
            &condition,
            files,
        );
    }
    text
}

/// Conditions for the classes of crawlers. `req.fhdr`: `hdr` would split user agents at their
/// commas.
fn classes(rules: &Rules, style: Style, directory: &str, files: &mut Files) -> String {
    let mut text = String::new();
    if style == Style::Plain {
        let line =
            |(class, agent): &(usize, &str)| format!("(?i){} c{class}\n", marker_regex(agent));
        files.insert(
            "crawlers.map".into(),
            rules.markers().iter().map(line).collect::<String>().into(),
        );
        text += &format!(
            "http-request set-var(txn.crawlgate_class) req.fhdr(user-agent),map_reg({directory}/crawlers.map,none)\n"
        );
    }
    for (place, class) in rules.classes.iter().enumerate() {
        let test = match style {
            Style::Plain => format!("var(txn.crawlgate_class) -m str c{place}"),
            Style::Compact => {
                let markers: Vec<_> = class.markers.iter().map(|(_, text)| marker(text)).collect();
                files.insert(
                    format!("class{place}.agents"),
                    (regexes(&markers).join("\n") + "\n").into(),
                );
                format!("req.fhdr(user-agent) -m reg -i -f {directory}/class{place}.agents")
            }
        };
        text += &format!("acl crawlgate_c{place} {test}\n");
    }
    text
}

/// The condition that a list disallows the path. Without Allow the order does not matter, and
/// HAProxy finds beginnings in a tree.
fn path_list(place: usize, list: &[PathRule], directory: &str, files: &mut Files) -> String {
    if list.iter().any(|rule| rule.allow) {
        let line = |rule: &PathRule| {
            format!(
                "{} {}\n",
                path_regex(&rule.pattern),
                if rule.allow { "open" } else { "closed" }
            )
        };
        files.insert(
            format!("list{place}.map"),
            list.iter().map(line).collect::<String>().into(),
        );
        return format!(
            "acl crawlgate_list{place} pathq,map_reg({directory}/list{place}.map,open) closed\n"
        );
    }
    let mut prefixes = Vec::new();
    let mut whole = Vec::new();
    let mut wild = Vec::new();
    for PathRule { pattern, .. } in list {
        match pattern.strip_suffix('$') {
            _ if pattern.contains('*') => wild.push(path(pattern)),
            Some(text) => whole.push(text),
            None => prefixes.push(pattern.as_str()),
        }
    }
    let wild = if wild.is_empty() {
        String::new()
    } else {
        regexes(&wild).join("\n")
    };
    let mut text = String::new();
    let kinds = [
        ("beg", prefixes.join("\n")),
        ("str", whole.join("\n")),
        ("reg", wild),
    ];
    for (kind, lines) in kinds.into_iter().filter(|(_, lines)| !lines.is_empty()) {
        text += &format!(
            "acl crawlgate_list{place} pathq -m {kind} -f {directory}/list{place}.{kind}\n"
        );
        files.insert(format!("list{place}.{kind}"), (lines + "\n").into());
    }
    text
}

fn returned(
    name: &str,
    answer: &ExportedAnswer,
    directory: &str,
    condition: &str,
    files: &mut Files,
) -> String {
    let file = format!("{name}.txt");
    let retry_after = answer
        .retry_after
        .map(|seconds| format!(" hdr retry-after {seconds}"))
        .unwrap_or_default();
    let line = format!(
        "http-request return status {} content-type \"text/plain; charset=utf-8\" file {} hdr cache-control \
         no-store{retry_after} if {condition}\n",
        answer.status,
        quoted(&format!("{directory}/{file}"))
    );
    files.insert(file, answer.body.clone().into());
    line
}

fn tags((place, tag): (usize, &TagRule)) -> String {
    let mut text = String::new();
    let mut tests = condition(&format!("tag{place}"), &tag.when, &mut text);
    if let Some(unless) = &tag.unless {
        // A line can ask for all of several conditions, and not for the opposite of that.
        let variable = format!("txn.crawlgate_out{place}");
        let unless = condition(&format!("not{place}"), unless, &mut text);
        text += &format!("http-after-response set-var({variable}) bool(true) if{unless}\n");
        tests += &format!(" !{{ var({variable}) -m bool }}");
    }
    let test = if tests.is_empty() { "" } else { " if" };
    for line in &tag.lines {
        text += &format!(
            "http-after-response add-header X-Robots-Tag {}{test}{tests}\n",
            quoted(line)
        );
    }
    text
}

/// The tests of a condition. The path is gone when the response comes, so its result is kept in a
/// variable.
fn condition(name: &str, condition: &TagCondition, text: &mut String) -> String {
    let mut tests = String::new();
    if !condition.paths.is_empty() {
        for pattern in &condition.paths {
            let pattern = quoted(&path_regex(pattern));
            *text += &format!(
                "http-request set-var(txn.crawlgate_{name}) bool(true) if {{ pathq -m reg {pattern} }}\n"
            );
        }
        tests += &format!(" {{ var(txn.crawlgate_{name}) -m bool }}");
    }
    if !condition.types.is_empty() {
        let each = join(condition.types.iter().map(|kind| media(kind)), "|");
        tests += &format!(" {{ res.fhdr(content-type) -i -m reg {} }}", quoted(&each));
    }
    if !condition.status.is_empty() {
        let each = join(
            condition
                .status
                .iter()
                .map(|(first, last)| format!("{first}:{last}")),
            " ",
        );
        tests += &format!(" {{ status -m int {each} }}");
    }
    tests
}

/// The lines of a field about the use of pages. A variable has the place of the value; the line
/// that counts sets it last. The application's own field is kept.
fn signal((place, signal): (usize, &SignalRule)) -> String {
    let variable = format!("txn.crawlgate_signal{place}");
    let mut text = String::new();
    if let Some(value) = signal.otherwise {
        text += &format!("http-request set-var({variable}) int({value})\n");
    }
    for (pattern, value) in signal.paths.iter().rev() {
        let pattern = quoted(&path_regex(pattern));
        text += &format!(
            "http-request set-var({variable}) int({value}) if {{ pathq -m reg {pattern} }}\n"
        );
    }
    let theirs: String = signal
        .unless
        .iter()
        .map(|name| format!(" !{{ res.hdr({name}) -m found }}"))
        .collect();
    for (value, text_of) in signal
        .values
        .iter()
        .enumerate()
        .filter(|(_, value)| !value.is_empty())
    {
        text += &format!(
            "http-response add-header {} {} if {{ var({variable}) -m int {value} }}{theirs}\n",
            signal.name,
            quoted(&text_of.replace('%', "%%"))
        );
    }
    text
}

/// A word in an HAProxy configuration. Single quotes: in double quotes `$` would begin a variable
/// of the environment.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
