//! [`write()`] makes the configuration by which Caddy itself enforces a policy, without crawlgate:
//! a snippet that is imported into the site's Caddyfile. A comment at the top of the snippet lists
//! the parts of the policy that Caddy cannot express.

use super::regex::{marker_regex, path, path_regex, regex};
use super::rules::{ExportedAnswer, Rules, SignalRule, TagCondition, TagRule};
use super::{CHALLENGE, Files, heading, listed};
use crate::printable::join;

/// Types that policies name, with their extensions: Caddy does not know the type before the
/// response.
const EXTENSIONS: [(&str, &[&str]); 9] = [
    ("application/pdf", &["pdf"]),
    ("application/msword", &["doc"]),
    ("application/json", &["json"]),
    ("application/zip", &["zip"]),
    ("text/plain", &["txt"]),
    ("text/csv", &["csv"]),
    (
        "image/*",
        &[
            "avif", "bmp", "gif", "ico", "jpeg", "jpg", "jxl", "png", "svg", "tif", "tiff", "webp",
        ],
    ),
    (
        "video/*",
        &["avi", "m4v", "mkv", "mov", "mp4", "mpeg", "ogv", "webm"],
    ),
    ("audio/*", &["aac", "flac", "m4a", "mp3", "ogg", "wav"]),
];

pub fn write(rules: &Rules, directory: &str, files: &mut Files) {
    let mut text = heading(
        rules,
        "a snippet: write `import crawlgate` into the site, within a `route`",
    );
    text += &listed(&left_out(rules));
    text += "(crawlgate) {\n\tmap {header.User-Agent} {crawlgate_class} {\n";
    for (class, agent) in rules.markers() {
        text += &format!(
            "\t\t{} c{class}\n",
            quoted(&format!("~(?i){}", marker_regex(agent)))
        );
    }
    text += "\t\tdefault none\n\t}\n";
    for (place, list) in rules.lists.iter().enumerate() {
        text += &format!("\tmap {{uri}} {{crawlgate_list{place}}} {{\n");
        for rule in list {
            let pattern = quoted(&format!("~{}", path_regex(&rule.pattern)));
            text += &format!(
                "\t\t{pattern} {}\n",
                if rule.allow { "open" } else { "closed" }
            );
        }
        text += "\t\tdefault open\n\t}\n";
    }
    text.extend(rules.tags.iter().enumerate().map(tags));
    for file in &rules.files {
        text += &format!(
            "\thandle {} {{\n\t\theader Cache-Control \"{}\"\n\t\theader Content-Type \"{}\"\n\t\troot * {}\n\t\t\
             rewrite * /{}\n\t\tfile_server\n\t}}\n",
            file.path,
            file.cache_control,
            file.media,
            quoted(directory),
            file.name()
        );
    }
    match &rules.pause {
        None => {}
        Some(answer) if rules.pauses_everyone => text += &responded("paused", answer, ""),
        Some(answer) => {
            text.extend(
                rules
                    .paused()
                    .map(|place| responded(&format!("paused{place}"), answer, &is_of(place))),
            );
        }
    }
    for (place, list, answer) in rules.refusals() {
        let closed =
            list.map(|list| format!("\t\tvars_regexp {{crawlgate_list{list}}} ^closed$\n"));
        // Two `vars` would be alternatives.
        let condition = is_of(place) + &closed.unwrap_or_default();
        text += &responded(&format!("c{place}"), &rules.answers[answer], &condition);
    }
    // Below the answers in place of pages, which have none of them.
    text.extend(rules.signals.iter().enumerate().map(signal));
    text += "}\n";
    files.insert("crawlgate.caddy".into(), text.into());
}

/// The line of a matcher that asks for a class of crawlers.
fn is_of(class: usize) -> String {
    format!("\t\tvars {{crawlgate_class}} c{class}\n")
}

fn responded(name: &str, answer: &ExportedAnswer, condition: &str) -> String {
    let retry_after = answer
        .retry_after
        .map(|seconds| format!("\t\theader Retry-After {seconds}\n"))
        .unwrap_or_default();
    format!(
        "\t@crawlgate_{name} {{\n{condition}\t\tnot {{\n\t\t\tmethod GET HEAD\n\t\t\tpath_regexp \
         `^{CHALLENGE}$`\n\t\t}}\n\t}}\n\thandle @crawlgate_{name} {{\n\t\theader Cache-Control no-store\n{retry_after}\t\trespond {} {}\n\t}}\n",
        quoted(&answer.body),
        answer.status
    )
}

/// The parts of a policy that Caddy cannot say, beyond those that no server can: it knows neither
/// type nor status before the response.
fn left_out(rules: &Rules) -> Vec<String> {
    let conditions = || {
        rules
            .tags
            .iter()
            .flat_map(|tag| [Some(&tag.when), tag.unless.as_ref()])
            .flatten()
    };
    let types = conditions()
        .flat_map(|condition| &condition.types)
        .filter(|media| extensions(media).is_none());
    let mut left_out: Vec<String> = types
        .map(|media| format!("X-Robots-Tag for {media}, whose paths have no extension"))
        .collect();
    if conditions().any(|condition| !condition.status.is_empty()) {
        left_out.push("a rule of `indexing` with `status`: its X-Robots-Tag is missing".to_owned());
    }
    if rules.strips_tags {
        left_out.push("`origin_tags: strip`: the application's X-Robots-Tag stays".to_owned());
    }
    left_out
}

fn tags((place, tag): (usize, &TagRule)) -> String {
    let Some(mut conditions) = condition(&tag.when) else {
        return String::new();
    };
    if let Some(unless) = &tag.unless {
        let Some(unless) = condition(unless) else {
            return String::new();
        };
        conditions += &format!("\t\tnot {{\n{unless}\t\t}}\n");
    }
    let mut text = String::new();
    let mut matcher = String::new();
    if !conditions.is_empty() {
        text = format!("\t@crawlgate_tag{place} {{\n{conditions}\t}}\n");
        matcher = format!("@crawlgate_tag{place} ");
    }
    text.extend(
        tag.lines
            .iter()
            .map(|line| format!("\theader {matcher}+X-Robots-Tag {}\n", quoted(line))),
    );
    text
}

/// The lines of a matcher; `None` where Caddy has no matcher for the condition.
fn condition(condition: &TagCondition) -> Option<String> {
    let mut lines = String::new();
    if !condition.status.is_empty() {
        return None;
    }
    if !condition.paths.is_empty() {
        let patterns: Vec<_> = condition
            .paths
            .iter()
            .map(|pattern| path(pattern))
            .collect();
        lines += &format!("\t\tvars_regexp {{uri}} {}\n", quoted(&regex(&patterns)));
    }
    if !condition.types.is_empty() {
        let known = join(
            condition
                .types
                .iter()
                .filter_map(|media| extensions(media))
                .flatten(),
            "|",
        );
        if known.is_empty() {
            return None;
        }
        lines += &format!(
            "\t\tpath_regexp {}\n",
            quoted(&format!("(?i)\\.(?:{known})$"))
        );
    }
    Some(lines)
}

/// The lines of a field about the use of pages. The application's own field is kept.
fn signal((place, signal): (usize, &SignalRule)) -> String {
    let operation = if signal.unless.is_empty() { '+' } else { '?' };
    let value_of = |value: &String| format!("{operation}{} {}", signal.name, quoted(value));
    if let (true, Some(value)) = (signal.paths.is_empty(), signal.otherwise) {
        return format!("\theader {}\n", value_of(&signal.values[value]));
    }
    let mut text = format!("\tmap {{uri}} {{crawlgate_signal{place}}} {{\n");
    for (pattern, value) in &signal.paths {
        text += &format!(
            "\t\t{} v{value}\n",
            quoted(&format!("~{}", path_regex(pattern)))
        );
    }
    let otherwise = signal
        .otherwise
        .map_or_else(|| "none".to_owned(), |value| format!("v{value}"));
    text += &format!("\t\tdefault {otherwise}\n\t}}\n");
    for (number, value) in signal
        .values
        .iter()
        .enumerate()
        .filter(|(_, value)| !value.is_empty())
    {
        let name = format!("@crawlgate_signal{place}_v{number}");
        text += &format!(
            "\t{name} vars {{crawlgate_signal{place}}} v{number}\n\theader {name} {}\n",
            value_of(value)
        );
    }
    text
}

fn extensions(media: &str) -> Option<&'static [&'static str]> {
    EXTENSIONS
        .iter()
        .find(|(known, _)| *known == media)
        .map(|(_, extensions)| *extensions)
}

/// A word of a Caddyfile. Between backticks every sign is itself.
fn quoted(text: &str) -> String {
    if text.contains('`') {
        super::quoted(text)
    } else {
        format!("`{text}`")
    }
}
