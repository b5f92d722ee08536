//! Words of the shell in commands that are printed to be pasted: the program ([`program_word`]) and
//! paths ([`shell_quote`]).

use std::env;
use std::path::Path;

/// The program as a word of the shell: its bare name if the shell found it in the path, else the
/// path of the binary, relative to the current directory if it is below.
pub fn program_word() -> String {
    let called = env::args_os().next().unwrap_or_default();
    if !called.to_string_lossy().contains('/') {
        return "crawlgate".into();
    }
    let path = env::current_exe().unwrap_or_else(|_| called.into());
    let here = env::current_dir().unwrap_or_default();
    shell_quote(path.strip_prefix(&here).unwrap_or(&path))
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
