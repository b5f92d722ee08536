//! The configuration of Caddy: a snippet to import into a site.

use super::regex::{marker, path, regex};
use super::rules::{ExportedAnswer, Rules, TagRule};
use super::{Files, heading};
use std::fmt::Write as _;

/// Extensions of types that policies name, where the type is not known before the response.
const EXTENSIONS: [(&str, &[&str]); 9] = [
    ("application/pdf", &["pdf"]),
    ("application/msword", &["doc"]),
    ("application/json", &["json"]),
    ("application/zip", &["zip"]),
    ("text/plain", &["txt"]),
    ("text/csv", &["csv"]),
    ("image/*", &["avif", "bmp", "gif", "ico", "jpeg", "jpg", "jxl", "png", "svg", "tif", "tiff", "webp"]),
    ("video/*", &["avi", "m4v", "mkv", "mov", "mp4", "mpeg", "ogv", "webm"]),
    ("audio/*", &["aac", "flac", "m4a", "mp3", "ogg", "wav"]),
];

pub(super) fn write(rules: &Rules, directory: &str, files: &mut Files) {
    let mut text = heading(rules, "a snippet: write `import crawlgate` into the site, within a `route`");
    let typed = rules.tags.iter().flat_map(|tag| &tag.types);
    for media in typed.filter(|media| extensions(media).is_none()) {
        let _ = writeln!(text, "# - X-Robots-Tag for {media}: Caddy knows no type before the response");
    }
    text.push_str("(crawlgate) {\n\tmap {header.User-Agent} {crawlgate_class} {\n");
    for (class, agent) in rules.markers() {
        let _ = writeln!(text, "\t\t{} c{class}", quoted(&format!("~(?i){}", regex(&[marker(agent)]))));
    }
    text.push_str("\t\tdefault none\n\t}\n");
    for (place, list) in rules.lists.iter().enumerate() {
        let _ = writeln!(text, "\tmap {{uri}} {{crawlgate_list{place}}} {{");
        for rule in list {
            let pattern = quoted(&format!("~{}", regex(&[path(&rule.pattern)])));
            let _ = writeln!(text, "\t\t{pattern} {}", if rule.allow { "open" } else { "closed" });
        }
        text.push_str("\t\tdefault open\n\t}\n");
    }
    for (place, tag) in rules.tags.iter().enumerate() {
        text.push_str(&tags(place, tag));
    }
    let _ = write!(
        text,
        "\thandle /robots.txt {{\n\t\theader Cache-Control \"{}\"\n\t\theader Content-Type \"text/plain; \
         charset=utf-8\"\n\t\troot * {}\n\t\tfile_server\n\t}}\n",
        rules.robots_cache,
        quoted(directory)
    );
    pause(rules, &mut text);
    for (place, class) in rules.classes.iter().enumerate() {
        let Some(list) = class.list else { continue };
        let closed = match class.is_closed(rules) {
            true => String::new(),
            false => format!("\t\tvars_regexp {{crawlgate_list{list}}} ^closed$\n"),
        };
        // Two `vars` would be alternatives.
        let condition = format!("\t\tvars {{crawlgate_class}} c{place}\n{closed}");
        text.push_str(&responded(&format!("crawlgate_c{place}"), &rules.answers[class.answer], &condition));
    }
    text.push_str("}\n");
    files.insert("crawlgate.caddy".into(), text.into());
}

fn pause(rules: &Rules, text: &mut String) {
    let Some((answer, is_for_all)) = &rules.pause else { return };
    if *is_for_all {
        text.push_str(&responded("crawlgate_paused", answer, ""));
        return;
    }
    let paused = rules.classes.iter().enumerate().filter(|(_, class)| class.is_pausable);
    for (place, _) in paused {
        let condition = format!("\t\tvars {{crawlgate_class}} c{place}\n");
        text.push_str(&responded(&format!("crawlgate_paused{place}"), answer, &condition));
    }
}

fn responded(name: &str, answer: &ExportedAnswer, condition: &str) -> String {
    let retry_after =
        answer.retry_after.map(|seconds| format!("\t\theader Retry-After {seconds}\n")).unwrap_or_default();
    format!(
        "\t@{name} {{\n{condition}\t\tnot path /.well-known/acme-challenge/*\n\t}}\n\thandle @{name} {{\n\t\theader \
         Cache-Control no-store\n{retry_after}\t\trespond {} {}\n\t}}\n",
        quoted(&answer.body),
        answer.status
    )
}

fn tags(place: usize, tag: &TagRule) -> String {
    let mut conditions = String::new();
    if !tag.paths.is_empty() {
        let patterns: Vec<_> = tag.paths.iter().map(|pattern| path(pattern)).collect();
        let _ = writeln!(conditions, "\t\tvars_regexp {{uri}} {}", quoted(&regex(&patterns)));
    }
    if !tag.types.is_empty() {
        let known: Vec<&str> = tag.types.iter().filter_map(|media| extensions(media)).flatten().copied().collect();
        if known.is_empty() {
            return String::new();
        }
        let _ = writeln!(conditions, "\t\tpath_regexp {}", quoted(&format!("(?i)\\.(?:{})$", known.join("|"))));
    }
    let mut text = String::new();
    let matcher = match conditions.is_empty() {
        true => String::new(),
        false => {
            let _ = writeln!(text, "\t@crawlgate_tag{place} {{\n{conditions}\t}}");
            format!("@crawlgate_tag{place} ")
        }
    };
    for line in &tag.lines {
        let _ = writeln!(text, "\theader {matcher}+X-Robots-Tag {}", quoted(line));
    }
    text
}

fn extensions(media: &str) -> Option<&'static [&'static str]> {
    EXTENSIONS.iter().find(|(known, _)| *known == media).map(|(_, extensions)| *extensions)
}

/// A word of a Caddyfile. Between backticks every sign is itself.
fn quoted(text: &str) -> String {
    match text.contains('`') {
        false => format!("`{text}`"),
        true => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}
