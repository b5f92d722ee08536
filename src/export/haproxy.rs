//! [`frontend_config`] writes the configuration with which HAProxy enforces a policy without
//! crawlgate: lines for a frontend (`templates/haproxy.conf`), and the files that these lines read.

use super::regex::{path_regex, path_steps, split_regexes};
use super::rules::{ExportedFile, ExportedPolicy, PathRule};
use super::{CHALLENGE_PATH, ConfigFiles};
use askama::Template;

/// The part of a buffer for the head of a response. HAProxy serves only files that fit into the rest.
const HEAD_RESERVE: usize = 4096;
/// The buffer size without `tune.bufsize`.
pub const DEFAULT_BUFFER: usize = 16 * 1024;

#[derive(Template)]
#[template(path = "haproxy.conf")]
struct FrontendConfig<'r> {
    rules: &'r ExportedPolicy,
    buffer: usize,
    directory: &'r str,
    /// The index of a path list, and the extension of its file.
    lists: Vec<(usize, &'static str)>,
}

impl FrontendConfig<'_> {
    /// Whether HAProxy can serve a file: it has to fit into a buffer beside the head.
    fn fits_in_buffer(&self, file: &ExportedFile) -> bool {
        file.body.len() + HEAD_RESERVE <= self.buffer
    }
}

/// The lines for a frontend, and the files that they read. `buffer` is the buffer size in bytes.
pub fn frontend_config(
    rules: &ExportedPolicy,
    buffer: usize,
    directory: &str,
) -> (String, ConfigFiles) {
    let mut files = ConfigFiles::new();
    for (place, answer) in rules.answers.iter().enumerate() {
        files.insert(format!("refused{place}.txt"), answer.body.clone().into());
    }
    if let Some(answer) = &rules.pause {
        files.insert("paused.txt".into(), answer.body.clone().into());
    }
    let map = rules
        .agent_regexes()
        .into_iter()
        .map(|(class, regex)| format!("(?i){regex} c{class}"));
    files.insert("crawlers.map".into(), file_of_lines(map));
    let mut lists = Vec::new();
    for (place, list) in rules.lists.iter().enumerate() {
        for (kind, paths) in list_files(list) {
            if !paths.is_empty() {
                files.insert(format!("list{place}.{kind}"), file_of_lines(paths));
                lists.push((place, kind));
            }
        }
    }
    let frontend = FrontendConfig {
        rules,
        buffer,
        directory,
        lists,
    };
    (frontend.to_string(), files)
}

/// The lines of the files for a list of rules, by file extension. A list with an Allow has one file
/// `map`: regular expressions with `open` or `closed`, of which the first match counts. Other lists
/// are divided by how HAProxy compares: `reg` for patterns with `*`, `str` for those that end with
/// `$`, and `beg` for prefixes, which it finds in a tree.
fn list_files(list: &[PathRule]) -> [(&'static str, Vec<String>); 4] {
    let has_allow = list.iter().any(|rule| rule.allow);
    let mut map = Vec::new();
    let mut prefixes = Vec::new();
    let mut whole = Vec::new();
    let mut wild = Vec::new();
    for PathRule { allow, pattern } in list {
        match pattern.strip_suffix('$') {
            _ if has_allow => {
                let word = if *allow { "open" } else { "closed" };
                map.push(format!("{} {word}", path_regex(pattern)));
            }
            _ if pattern.contains('*') => wild.push(path_steps(pattern)),
            Some(text) => whole.push(text.to_owned()),
            None => prefixes.push(pattern.clone()),
        }
    }
    [
        ("map", map),
        ("beg", prefixes),
        ("str", whole),
        ("reg", split_regexes(&wild)),
    ]
}

fn file_of_lines(items: impl IntoIterator<Item = String>) -> Vec<u8> {
    let lines: String = items.into_iter().map(|item| item + "\n").collect();
    lines.into()
}

/// Escapes a word for single quotes: in double quotes `$` would begin an environment variable.
fn escape_single_quoted(text: &str) -> String {
    text.replace('\'', "'\\''")
}
