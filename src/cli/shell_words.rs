//! Quotes words for the shell, in commands that crawlgate prints for the user to paste: the name of
//! the program ([`program_word`]) and paths ([`shell_quote`]).

use std::env;
use std::path::Path;

/// The program as it was called, as a word of the shell.
pub fn program_word() -> String {
    let called = env::args_os().next().unwrap_or_else(|| "crawlgate".into());
    shell_quote(Path::new(&called))
}

/// A path as a word of the shell, in single quotes if it needs them.
pub fn shell_quote(path: &Path) -> String {
    let text = path.display().to_string();
    let mut signs = text.chars();
    let is_plain = signs.all(|sign| sign.is_ascii_alphanumeric() || "-_./+@%:=".contains(sign));
    if is_plain && !text.is_empty() {
        text
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}
