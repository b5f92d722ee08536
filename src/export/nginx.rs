//! [`write()`] makes the configuration by which nginx itself enforces a policy, without crawlgate:
//! `map`s for the `http` block, and conditions and locations for the `server` block.

use super::regex::{marker_regex, media, path_regex};
use super::rules::{CrawlerClass, ExportedAnswer, Rules, SignalRule, TagCondition, TagRule};
use super::{CHALLENGE, Files, heading};

/// So many variables fit into nginx's table beside those of its own modules. For more, the table
/// has to be larger.
const MANY_VARIABLES: usize = 12;

/// A variable with a dollar sign, which by itself would begin the name of a variable.
const DOLLAR: &str = "${crawlgate_dollar}";

pub fn write(rules: &Rules, directory: &str, files: &mut Files) {
    let (http, server) = parts(rules, directory);
    let http = heading(rules, "the part for `http`") + &http;
    let server = heading(rules, "the part for `server`") + &server;
    files.insert("crawlgate-http.conf".into(), http.into());
    files.insert("crawlgate-server.conf".into(), server.into());
}

/// The parts of a configuration: for `http`, and for `server`.
pub fn parts(rules: &Rules, directory: &str) -> (String, String) {
    let mut http =
        "# The class of the crawler.\nmap $http_user_agent $crawlgate_class {\n    default \"\";\n"
            .to_owned();
    for (class, agent) in rules.markers() {
        http += &format!("    \"~*{}\" c{class};\n", marker_regex(agent));
    }
    http += "}\n\n";
    for (place, list) in rules.lists.iter().enumerate() {
        http += &format!(
            "# Of several rules the first counts: longer patterns stand first.\nmap $request_uri $crawlgate_list{place} {{\n    default 0;\n"
        );
        for rule in list {
            http += &format!(
                "    \"~{}\" {};\n",
                path_regex(&rule.pattern),
                u8::from(!rule.allow)
            );
        }
        http += "}\n\n";
    }
    http += &answer_map(rules);
    for (place, tag) in rules.tags.iter().enumerate() {
        http += &tag_maps(place, tag);
    }
    for (place, signal) in rules.signals.iter().enumerate() {
        http += &signal_maps(place, signal);
    }
    let server = server(rules, directory);
    let variables = http.matches("\nmap ").count();
    if variables > MANY_VARIABLES {
        // nginx warns where its table of variables is too small for them.
        let size = (1024 + 64 * variables).next_power_of_two();
        http += &format!(
            "# Remove this line if `http` sets it elsewhere, to as much or more.\nvariables_hash_max_size {size};\n"
        );
    }
    if http.contains(DOLLAR) || server.contains(DOLLAR) {
        http.insert_str(0, "geo $crawlgate_dollar {\n    default \"$\";\n}\n\n");
    }
    (http, server)
}

/// The name of the answer in place of the page. A map reads a variable when its line counts: paths
/// are compared for crawlers alone.
fn answer_map(rules: &Rules) -> String {
    let mut text = String::new();
    for (place, list, answer) in rules.refusals() {
        if let Some(list) = list {
            text += &format!(
                "map $crawlgate_list{list} $crawlgate_of_c{place} {{\n    default \"\";\n    1       refused{answer};\n}}\n\n"
            );
        }
    }
    let is_for_all = matches!(rules.pause, Some((_, true)));
    let default = if is_for_all { "paused" } else { "\"\"" };
    text += &format!(
        "# The answer in place of the page.\nmap $crawlgate_class $crawlgate_of_class {{\n    default {default};\n"
    );
    for (place, class) in rules.classes.iter().enumerate() {
        let answer = match class {
            _ if is_for_all || class.is_pausable => "paused".to_owned(),
            class if class.is_closed(rules) => format!("refused{}", class.answer),
            CrawlerClass { list: Some(_), .. } => format!("$crawlgate_of_c{place}"),
            _ => "\"\"".to_owned(),
        };
        text += &format!("    c{place} {answer};\n");
    }
    text += &format!(
        "}}\n\n# Certificate authorities request these.\nmap \"$request_method $request_uri\" $crawlgate_of_request {{\n    \
         default $crawlgate_of_class;\n    \"~^(GET|HEAD) {CHALLENGE}(\\?|$)\" \"\";\n}}\n\n"
    );
    text += "# These are never refused.\nmap $uri $crawlgate_answer {\n    default $crawlgate_of_request;\n";
    for file in &rules.files {
        text += &format!("    {} \"\";\n", file.path);
    }
    text += "    \"~^/_crawlgate/\" \"\";\n}\n\n";
    text
}

/// The maps of a line of X-Robots-Tag, where it has conditions.
fn tag_maps(place: usize, tag: &TagRule) -> String {
    let mut text = String::new();
    let (mut variables, mut wanted) = condition(&format!("tag{place}"), &tag.when, &mut text);
    if let Some(unless) = &tag.unless {
        let name = format!("$crawlgate_tag{place}_not");
        let (variables_of, wanted_of) = condition(&format!("not{place}"), unless, &mut text);
        text += &format!(
            "map \"{variables_of}\" {name} {{\n    default 0;\n    \"{wanted_of}\" 1;\n}}\n"
        );
        variables += &name;
        wanted += "0";
    }
    if variables.is_empty() {
        return text;
    }
    for (number, line) in tag.lines.iter().enumerate() {
        text += &format!(
            "map \"{variables}\" $crawlgate_tag{place}_{number} {{\n    default \"\";\n    {wanted} {};\n}}\n\n",
            quoted(line)
        );
    }
    text
}

/// Adds the maps of a condition. Returns their variables, and the value that these have together
/// where the condition holds.
fn condition(name: &str, condition: &TagCondition, text: &mut String) -> (String, String) {
    let paths = condition
        .paths
        .iter()
        .map(|pattern| format!("\"~{}\"", path_regex(pattern)))
        .collect();
    let types = condition
        .types
        .iter()
        .map(|kind| format!("\"~*{}\"", media(kind)))
        .collect();
    let status = condition.status.iter().map(|(first, last)| {
        if first == last {
            first.to_string()
        } else {
            format!("\"~^{}\"", first / 100)
        }
    });
    let asked: [(&str, &str, Vec<String>); 3] = [
        ("path", "$request_uri", paths),
        ("type", "$sent_http_content_type", types),
        ("status", "$status", status.collect()),
    ];
    let mut variables = String::new();
    for (kind, source, tests) in asked.iter().filter(|(_, _, tests)| !tests.is_empty()) {
        let variable = format!("$crawlgate_{name}_{kind}");
        let tests: String = tests
            .iter()
            .map(|test| format!("    {test} 1;\n"))
            .collect();
        *text += &format!("map {source} {variable} {{\n    default 0;\n{tests}}}\n");
        variables += &variable;
    }
    let wanted = "1".repeat(variables.matches('$').count());
    (variables, wanted)
}

/// The maps of a field about the use of pages: its value by path, and no value where the
/// application sends the field.
fn signal_maps(place: usize, signal: &SignalRule) -> String {
    let otherwise = match signal.otherwise {
        Some(value) => literal_value(&signal.values[value]),
        None => "\"\"".to_owned(),
    };
    let mut text =
        format!("map $request_uri $crawlgate_signal{place}_path {{\n    default {otherwise};\n");
    for (pattern, value) in &signal.paths {
        let value = literal_value(&signal.values[*value]);
        text += &format!("    \"~{}\" {value};\n", path_regex(pattern));
    }
    let theirs: String = signal
        .unless
        .iter()
        .map(|name| format!("$upstream_http_{}", name.replace('-', "_")))
        .collect();
    text += &format!(
        "}}\nmap \"{theirs}\" $crawlgate_signal{place} {{\n    default \"\";\n    \"\" \
         $crawlgate_signal{place}_path;\n}}\n\n"
    );
    text
}

/// The part for `server`: tags, answers and files.
fn server(rules: &Rules, directory: &str) -> String {
    let mut tags = String::new();
    for (place, tag) in rules.tags.iter().enumerate() {
        for (number, line) in tag.lines.iter().enumerate() {
            let value = if tag.when.is_empty() && tag.unless.is_none() {
                quoted(line)
            } else {
                format!("$crawlgate_tag{place}_{number}")
            };
            tags += &format!("add_header X-Robots-Tag {value} always;\n");
        }
    }
    let mut text = format!(
        "# A location with an `add_header` of its own loses these: repeat them there.\n{tags}"
    );
    if rules.strips_tags {
        text += "# The application's own; a location with a `proxy_hide_header` of its own has to repeat it.\n\
                 proxy_hide_header X-Robots-Tag;\nfastcgi_hide_header X-Robots-Tag;\n";
    }
    for (place, signal) in rules.signals.iter().enumerate() {
        text += &format!(
            "add_header {} $crawlgate_signal{place} always;\n",
            signal.name
        );
    }
    let tags: String = tags.lines().map(|line| format!("    {line}\n")).collect();
    text += "\nif ($crawlgate_answer) {\n    rewrite ^ /_crawlgate/$crawlgate_answer last;\n}\n\n";
    for (name, answer) in rules.named_answers() {
        text += &location(&name, answer, &tags);
    }
    for file in &rules.files {
        text += &format!(
            "location = {} {{\n    types {{ }}\n    default_type \"{}\";\n    alias {};\n    add_header Cache-Control \
             \"{}\";\n{tags}}}\n",
            file.path,
            file.media,
            quoted(&format!("{directory}/{}", file.name())),
            file.cache_control
        );
    }
    text
}

/// The location that gives an answer.
fn location(name: &str, answer: &ExportedAnswer, tags: &str) -> String {
    let mut text = format!(
        "location = /_crawlgate/{name} {{\n    internal;\n    default_type \"text/plain; charset=utf-8\";\n    \
         add_header Cache-Control no-store always;\n{tags}"
    );
    if let Some(seconds) = answer.retry_after {
        text += &format!("    add_header Retry-After {seconds} always;\n");
    }
    text + &format!(
        "    return {} {};\n}}\n\n",
        answer.status,
        literal_value(&answer.body)
    )
}

/// A string without variables.
fn literal_value(text: &str) -> String {
    quoted(text).replace('$', DOLLAR)
}

/// A string in an nginx configuration.
fn quoted(text: &str) -> String {
    super::quoted(text).replace('\n', "\\n")
}
