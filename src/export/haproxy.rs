//! [`part`] makes the configuration by which HAProxy itself enforces a policy, without crawlgate:
//! lines for a frontend (`templates/haproxy.conf`), and the files that these lines read.

use super::regex::{path, path_regex, regexes};
use super::rules::{ExportedFile, PathRule, Rules};
use super::{CHALLENGE, Files, text};
use askama::Template;

/// How much of a buffer is left for the head: HAProxy answers from memory with a file that fits
/// into a buffer beside its head.
const HEAD: usize = 4096;
/// The size of a buffer, unless `tune.bufsize` says otherwise.
pub const BUFFER: usize = 16 * 1024;

#[derive(Template)]
#[template(path = "haproxy.conf")]
struct Frontend<'r> {
    rules: &'r Rules,
    buffer: usize,
    directory: &'r str,
    /// The files of the lists of paths, by the place of the list and their extension.
    lists: Vec<(usize, &'static str)>,
}

impl Frontend<'_> {
    /// Whether HAProxy can answer with a file from memory: it has to fit into a buffer beside the
    /// head.
    fn fits(&self, file: &ExportedFile) -> bool {
        file.body.len() + HEAD <= self.buffer
    }
}

/// The lines for a frontend of a HAProxy with this size of a buffer, and the files that they read.
pub fn part(rules: &Rules, buffer: usize, directory: &str) -> (String, Files) {
    let mut files = Files::new();
    for (place, answer) in rules.answers.iter().enumerate() {
        files.insert(format!("refused{place}.txt"), answer.body.clone().into());
    }
    if let Some(answer) = &rules.pause {
        files.insert("paused.txt".into(), answer.body.clone().into());
    }
    let agents = rules.agents().into_iter();
    let map = agents.map(|(class, regex)| format!("(?i){regex} c{class}"));
    files.insert("crawlers.map".into(), lines(map));
    let mut lists = Vec::new();
    for (place, list) in rules.lists.iter().enumerate() {
        for (kind, paths) in paths(list).filter(|(_, paths)| !paths.is_empty()) {
            files.insert(format!("list{place}.{kind}"), lines(paths));
            lists.push((place, kind));
        }
    }
    let frontend = Frontend {
        rules,
        buffer,
        directory,
        lists,
    };
    (text(&frontend), files)
}

/// The lines of the files for a list of rules, by the file's extension. With an Allow in the list:
/// `map`, each pattern as a regular expression with `open` or `closed`, the first that matches
/// counts. Else by how HAProxy compares: `reg` for patterns with `*` (several become one
/// expression), `str` for those that end with `$`, and `beg` for the others, which it finds in a
/// tree. Files that are not needed are empty.
fn paths(list: &[PathRule]) -> impl Iterator<Item = (&'static str, Vec<String>)> {
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
            _ if pattern.contains('*') => wild.push(path(pattern)),
            Some(text) => whole.push(text.to_owned()),
            None => prefixes.push(pattern.clone()),
        }
    }
    [
        ("map", map),
        ("beg", prefixes),
        ("str", whole),
        ("reg", regexes(&wild)),
    ]
    .into_iter()
}

/// The items as a file, each with a line end.
fn lines(items: impl IntoIterator<Item = String>) -> Vec<u8> {
    let lines: String = items.into_iter().map(|item| item + "\n").collect();
    lines.into()
}

/// The text of a word in single quotes: in double quotes `$` would begin a variable of the
/// environment.
fn escaped(text: &str) -> String {
    text.replace('\'', "'\\''")
}
