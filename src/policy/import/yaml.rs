//! Writes pieces of YAML for an imported policy: texts ([`yaml_scalar`]), lists of them
//! ([`yaml_list`]) and comments. A YAML reader gets the same texts back.

use crate::printable::{is_hidden, join, printable};
use crate::yaml::is_plain_word;

/// The text with U+FFFD for line breaks and other invisible characters.
pub fn one_line(text: &str) -> String {
    printable(text.as_bytes())
}

/// Adds a line `# ...` for each comment.
pub fn write_comments(out: &mut String, indent: &str, comments: &[String]) {
    for comment in comments {
        let blank = if comment.is_empty() { "" } else { " " };
        *out += &format!("{indent}#{blank}{comment}\n");
    }
}

/// A YAML list of these texts, in one line.
pub fn yaml_list(items: &[String]) -> String {
    format!(
        "[{}]",
        join(items.iter().map(|item| yaml_scalar(item)), ", ")
    )
}

/// A YAML scalar of this text: bare where that is safe, as in paths, names and URLs, otherwise in
/// double quotes.
pub fn yaml_scalar(text: &str) -> String {
    let bare = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && is_plain_word(text, text.len(), "/._-~+=%")
        && !matches!(
            text.to_ascii_lowercase().as_str(),
            "true" | "false" | "yes" | "no" | "on" | "off" | "null" | "y" | "n"
        );
    let url = text.starts_with("http")
        && is_plain_word(text, text.len(), "/._-~+=%:?")
        && !text.ends_with(':');
    if bare || url {
        return text.to_owned();
    }
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if is_hidden(c) => out += &format!("\\u{:04X}", u32::from(c)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
