//! The configuration of nginx: maps for `http`, conditions and locations for `server`.

use super::regex::{literal, marker, path, regex, regexes};
use super::rules::{CrawlerClass, ExportedAnswer, Rules, Style, TagRule};
use super::{Files, heading};
use std::fmt::Write as _;

pub(super) fn write(rules: &Rules, style: Style, directory: &str, files: &mut Files) {
    let (http, server) = parts(rules, style, directory);
    let http = heading(rules, "the part for `http`") + &http;
    let server = heading(rules, "the part for `server`") + &server;
    files.insert("crawlgate-http.conf".into(), http.into());
    files.insert("crawlgate-server.conf".into(), server.into());
}

pub(super) fn parts(rules: &Rules, style: Style, directory: &str) -> (String, String) {
    let mut http = String::new();
    if rules.named_answers().iter().any(|(_, answer)| answer.body.contains('$')) {
        http.push_str("geo $crawlgate_dollar {\n    default \"$\";\n}\n\n");
    }
    http.push_str("# The class of the crawler.\nmap $http_user_agent $crawlgate_class {\n    default \"\";\n");
    for (class, regex) in agents(rules, style) {
        let _ = writeln!(http, "    \"~*{regex}\" c{class};");
    }
    http.push_str("}\n\n");
    for (place, list) in rules.lists.iter().enumerate() {
        let _ = writeln!(
            http,
            "# Of several rules the first counts: longer patterns stand first.\nmap $request_uri $crawlgate_list{place} {{\n    default 0;"
        );
        let has_allow = list.iter().any(|rule| rule.allow);
        if style == Style::Compact && !has_allow {
            let patterns: Vec<_> = list.iter().map(|rule| path(&rule.pattern)).collect();
            for regex in regexes(&patterns) {
                let _ = writeln!(http, "    \"~{regex}\" 1;");
            }
        } else {
            for rule in list {
                let _ = writeln!(http, "    \"~{}\" {};", regex(&[path(&rule.pattern)]), u8::from(!rule.allow));
            }
        }
        http.push_str("}\n\n");
    }
    http.push_str(&answer_map(rules));
    for (place, tag) in rules.tags.iter().enumerate() {
        http.push_str(&tag_maps(place, tag));
    }
    (http, server(rules, directory))
}

/// Regular expressions for user agents, each with its class, in the order in which they count.
fn agents(rules: &Rules, style: Style) -> Vec<(usize, String)> {
    if style == Style::Plain {
        return rules.markers().into_iter().map(|(class, text)| (class, regex(&[marker(text)]))).collect();
    }
    let of_class = |(place, class): (usize, &CrawlerClass)| {
        let markers: Vec<_> = class.markers.iter().map(|(_, text)| marker(text)).collect();
        regexes(&markers).into_iter().map(move |regex| (place, regex)).collect::<Vec<_>>()
    };
    rules.classes.iter().enumerate().flat_map(of_class).collect()
}

/// The name of the answer in place of the page. A map reads a variable when its line counts: paths are compared for
/// crawlers alone.
fn answer_map(rules: &Rules) -> String {
    let mut text = String::new();
    for (place, class) in rules.classes.iter().enumerate() {
        let Some(list) = class.list.filter(|_| !class.is_closed(rules)) else { continue };
        let _ = writeln!(
            text,
            "map $crawlgate_list{list} $crawlgate_of_c{place} {{\n    default \"\";\n    1       refused{};\n}}\n",
            class.answer
        );
    }
    let is_for_all = matches!(rules.pause, Some((_, true)));
    let default = if is_for_all { "paused" } else { "\"\"" };
    let _ = writeln!(
        text,
        "# The answer in place of the page.\nmap $crawlgate_class $crawlgate_of_class {{\n    default {default};"
    );
    for (place, class) in rules.classes.iter().enumerate() {
        let answer = match class {
            _ if is_for_all || class.is_pausable => "paused".to_owned(),
            class if class.is_closed(rules) => format!("refused{}", class.answer),
            CrawlerClass { list: Some(_), .. } => format!("$crawlgate_of_c{place}"),
            _ => "\"\"".to_owned(),
        };
        let _ = writeln!(text, "    c{place} {answer};");
    }
    text.push_str(
        "}\n\n# These are never refused.\nmap $uri $crawlgate_answer {\n    default $crawlgate_of_class;\n    \
         /robots.txt \"\";\n    \"~^/\\.well-known/acme-challenge/\" \"\";\n    \"~^/_crawlgate/\" \"\";\n}\n\n",
    );
    text
}

/// The maps of a line of X-Robots-Tag, where it has conditions.
fn tag_maps(place: usize, tag: &TagRule) -> String {
    let mut text = String::new();
    let mut conditions = String::new();
    if !tag.paths.is_empty() {
        let _ = writeln!(text, "map $request_uri $crawlgate_tag{place}_path {{\n    default 0;");
        for pattern in &tag.paths {
            let _ = writeln!(text, "    \"~{}\" 1;", regex(&[path(pattern)]));
        }
        text.push_str("}\n");
        let _ = write!(conditions, "${{crawlgate_tag{place}_path}}");
    }
    if !tag.types.is_empty() {
        let _ = writeln!(text, "map $sent_http_content_type $crawlgate_tag{place}_type {{\n    default 0;");
        for media in &tag.types {
            let _ = match media.strip_suffix('*') {
                Some(class) => writeln!(text, "    \"~*^{}\" 1;", literal(class)),
                None => writeln!(text, "    \"~*^{}(?:;|$)\" 1;", literal(media)),
            };
        }
        text.push_str("}\n");
        let _ = write!(conditions, "${{crawlgate_tag{place}_type}}");
    }
    if conditions.is_empty() {
        return text;
    }
    let wanted = "1".repeat(conditions.matches('$').count());
    for (number, line) in tag.lines.iter().enumerate() {
        let _ = writeln!(
            text,
            "map \"{conditions}\" $crawlgate_tag{place}_{number} {{\n    default \"\";\n    {wanted} {};\n}}\n",
            quoted(line)
        );
    }
    text
}

fn server(rules: &Rules, directory: &str) -> String {
    let mut text = String::from("# A location with an `add_header` of its own loses these: repeat them there.\n");
    let mut tags = String::new();
    for (place, tag) in rules.tags.iter().enumerate() {
        for (number, line) in tag.lines.iter().enumerate() {
            let value = match tag.paths.is_empty() && tag.types.is_empty() {
                true => quoted(line),
                false => format!("$crawlgate_tag{place}_{number}"),
            };
            let _ = writeln!(tags, "add_header X-Robots-Tag {value} always;");
        }
    }
    text.push_str(&tags);
    let tags: String = tags.lines().map(|line| format!("    {line}\n")).collect();
    text.push_str("\nif ($crawlgate_answer) {\n    rewrite ^ /_crawlgate/$crawlgate_answer last;\n}\n\n");
    for (name, answer) in rules.named_answers() {
        text.push_str(&location(&name, answer, &tags));
    }
    let _ = write!(
        text,
        "location = /robots.txt {{\n    types {{ }}\n    default_type \"text/plain; charset=utf-8\";\n    \
         alias {};\n    add_header Cache-Control \"{}\";\n{tags}}}\n",
        quoted(&format!("{directory}/robots.txt")),
        rules.robots_cache
    );
    text
}

fn location(name: &str, answer: &ExportedAnswer, tags: &str) -> String {
    let mut text = format!(
        "location = /_crawlgate/{name} {{\n    internal;\n    default_type \"text/plain; charset=utf-8\";\n    \
         add_header Cache-Control no-store always;\n{tags}"
    );
    if let Some(seconds) = answer.retry_after {
        let _ = writeln!(text, "    add_header Retry-After {seconds} always;");
    }
    let body = quoted(&answer.body).replace('$', "${crawlgate_dollar}");
    let _ = writeln!(text, "    return {} {body};\n}}\n", answer.status);
    text
}

/// A string in an nginx configuration.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}
