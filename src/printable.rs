//! Makes foreign text (file names, lines of robots.txt, fields of requests) harmless before a
//! terminal, a log or the runner of a CI job reads it. Commands print through a
//! [`SanitizingWriter`]. [`printable`] is for a text within a line.

use OutputStyle::*;
use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;

/// Whether a character moves a cursor, ends a line or changes the direction of writing: Unicode's
/// control characters, `Bidi_Control`, and the separators of lines and paragraphs.
pub fn is_hidden(c: char) -> bool {
    let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}')
}

/// The text with U+FFFD in place of hidden characters, so that it stays on one line.
pub fn printable(text: &[u8]) -> String {
    String::from_utf8_lossy(text)
        .chars()
        .map(|c| if is_hidden(c) { '\u{fffd}' } else { c })
        .collect()
}

/// [`printable`] for the name of a source: a file, whose name anybody chooses who proposes a policy,
/// or a URL. `***` stands for the user and password of a URL.
pub fn printable_path(path: impl AsRef<Path>) -> String {
    let name = printable(path.as_ref().as_os_str().as_encoded_bytes());
    let Some((scheme, rest)) = name.split_once("://") else {
        return name;
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    match authority.rfind('@') {
        Some(at) => format!("{scheme}://***{}", &rest[at..]),
        None => name,
    }
}

/// The beginning of a text: at most so many bytes, whole characters.
pub fn truncate(text: &str, max_bytes: usize) -> &str {
    let mut end = text.len().min(max_bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The beginning of a text: at most so many characters, and `...` if that is not all.
pub fn clip(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// A message for a person, without the numbers that Rust puts behind errors of the system:
/// ` (os error 2)`.
pub fn without_error_numbers(text: &str) -> Cow<'_, str> {
    let Some((before, rest)) = text.split_once(" (os error ") else {
        return Cow::Borrowed(text);
    };
    let after = rest.split_once(')').map_or("", |(_, after)| after);
    Cow::Owned(format!("{before}{}", without_error_numbers(after)))
}

/// Parts in one line, with a separator between them.
pub fn join(parts: impl IntoIterator<Item: ToString>, separator: &str) -> String {
    parts
        .into_iter()
        .map(|part| part.to_string())
        .collect::<Vec<_>>()
        .join(separator)
}

/// Joins the first `max` parts by commas, and adds how many more there are.
pub fn join_first(parts: impl IntoIterator<Item: ToString>, max: usize) -> String {
    let mut parts = parts.into_iter();
    let mut named = join(parts.by_ref().take(max), ", ");
    let more = parts.count();
    if more > 0 {
        named.push_str(&format!(", and {more} more"));
    }
    named
}

/// Who reads the lines of a [`SanitizingWriter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputStyle {
    /// A person, perhaps by the log of a job.
    Text {
        /// Whether sequences that set colours pass. The foreign parts of such a text must be
        /// [`printable`] already.
        colours: bool,
    },
    /// The runner of a CI job: lines that begin with `::` are crawlgate's own commands.
    WorkflowCommands,
    /// A program. Hidden characters are escaped, so nothing is lost.
    Json,
}

/// Writes whole lines without hidden characters and without commands to the runner of a CI job.
#[derive(Debug)]
pub struct SanitizingWriter<W: Write> {
    out: W,
    style: OutputStyle,
    /// The line whose end was not written yet.
    pending: Vec<u8>,
}

impl<W: Write> SanitizingWriter<W> {
    /// A writer in front of `out`.
    pub fn new(out: W, style: OutputStyle) -> SanitizingWriter<W> {
        SanitizingWriter {
            out,
            style,
            pending: Vec::new(),
        }
    }

    /// Sanitizes and writes the pending bytes, also an incomplete line.
    fn write_pending(&mut self) -> io::Result<()> {
        let pending = std::mem::take(&mut self.pending);
        let text = String::from_utf8_lossy(&pending);
        let text = match self.style {
            Text { .. } => without_error_numbers(&text),
            WorkflowCommands | Json => text,
        };
        let lines: String = text
            .split_inclusive('\n')
            .map(|line| self.style.sanitized(line))
            .collect();
        // In one piece, so that no line of another thread stands between these.
        self.out.write_all(lines.as_bytes())
    }
}

impl<W: Write> Write for SanitizingWriter<W> {
    /// Accepts all bytes and writes the whole lines. The rest waits for the end of its line, a
    /// flush, or the drop of the writer.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let whole = memchr::memrchr(b'\n', bytes).map_or(0, |end| end + 1);
        self.pending.extend_from_slice(&bytes[..whole]);
        if whole > 0 {
            self.write_pending()?;
        }
        self.pending.extend_from_slice(&bytes[whole..]);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write_pending()?;
        self.out.flush()
    }
}

impl<W: Write> Drop for SanitizingWriter<W> {
    fn drop(&mut self) {
        let _ = self.write_pending();
    }
}

impl OutputStyle {
    /// Sanitizes a line of UTF-8 in place.
    pub fn sanitize(self, line: &mut Vec<u8>) {
        if !is_plain_line(line) {
            *line = self
                .sanitized(&String::from_utf8_lossy(line))
                .into_owned()
                .into_bytes();
        }
    }

    /// The line without hidden characters (other than line end and tab) and without commands to the
    /// runner of a CI job. They become U+FFFD, or `\u` escapes in JSON. Sequences that set colours
    /// stay where the style allows them.
    fn sanitized(self, line: &str) -> Cow<'_, str> {
        if is_plain_line(line.as_bytes()) {
            return Cow::Borrowed(line);
        }
        let mut out = String::with_capacity(line.len());
        let mut rest = line;
        while let Some(c) = rest.chars().next() {
            let colour = colour_sequence_len(rest).filter(|_| self == Text { colours: true });
            let (shown, after) = rest.split_at(colour.unwrap_or(c.len_utf8()));
            rest = after;
            match self {
                _ if colour.is_some() || !is_hidden(c) || matches!(c, '\n' | '\t') => out += shown,
                Json => out += &format!("\\u{:04x}", u32::from(c)),
                Text { .. } | WorkflowCommands => out.push('\u{fffd}'),
            }
        }
        Cow::Owned(self.escape_commands(&out))
    }

    /// A line without commands to the runner of a CI job. GitHub's runner obeys `::NAME` at the
    /// beginning of a line, after blanks, and `##[NAME` everywhere (actions/runner,
    /// `ActionCommand.cs`), that of Azure `##vso[`. A `::NAME` stays in JSON, and where crawlgate
    /// writes such commands itself.
    fn escape_commands(self, line: &str) -> String {
        let bracket = if self == Json { "\\u005b" } else { "\u{fffd}" };
        let line = line
            .replace("##[", &format!("##{bracket}"))
            .replace("##vso[", &format!("##vso{bracket}"));
        let text = line.trim_start();
        let is_command = text
            .strip_prefix("::")
            .is_some_and(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()));
        match self {
            Text { .. } if is_command => line.replacen(':', "\u{fffd}", 1),
            _ => line,
        }
    }
}

/// Whether a line is printable ASCII without anything that looks like a command, as nearly all
/// lines are.
fn is_plain_line(line: &[u8]) -> bool {
    // Without an early return the compiler vectorizes the loop.
    let is_plain = line.iter().fold(true, |is_plain, byte| {
        is_plain & matches!(byte, b' '..=b'~' | b'\n' | b'\t')
    });
    is_plain
        && memchr::memmem::find(line, b"##").is_none()
        && !line.trim_ascii_start().starts_with(b"::")
}

/// The length of the sequence at the beginning of a text that sets colours (ECMA-48, SGR); `None`
/// if the text begins with none.
fn colour_sequence_len(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\x1b[")?;
    let end = parameters.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    parameters[end..]
        .starts_with('m')
        .then_some("\x1b[".len() + end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HIDDEN: [&str; 15] = [
        "\0", "\n", "\u{7f}", "\u{85}", "\u{9b}", "\u{61c}", "\u{200e}", "\u{200f}", "\u{202a}",
        "\u{202e}", "\u{2028}", "\u{2029}", "\u{2066}", "\u{2069}", "\u{feff}",
    ];
    const TEXT: OutputStyle = Text { colours: false };

    fn printed(style: OutputStyle, pieces: &[&str]) -> String {
        let mut out = Vec::new();
        let mut printer = SanitizingWriter::new(&mut out, style);
        pieces
            .iter()
            .for_each(|piece| printer.write_all(piece.as_bytes()).expect("written"));
        drop(printer);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn hidden_characters_are_replaced_and_others_stay() {
        for hidden in HIDDEN {
            assert_eq!(printable(hidden.as_bytes()), "\u{fffd}", "{hidden:?}");
        }
        let shown = "a \u{e9}\u{5d0}\u{200d}\u{202f}\u{2065}\u{206a}";
        assert_eq!(printable(shown.as_bytes()), shown);
        assert_eq!(printable(b"a\xff"), "a\u{fffd}");
        assert_eq!(printable_path("x\n::stop.yaml"), "x\u{fffd}::stop.yaml");
        for (url, shown) in [
            (
                "https://a:b@c@shop.example/x@y",
                "https://***@shop.example/x@y",
            ),
            ("https://shop.example/x@y", "https://shop.example/x@y"),
        ] {
            assert_eq!(printable_path(url), shown);
        }
    }

    #[test]
    fn hidden_characters_are_replaced_or_escaped_by_style() {
        for hidden in HIDDEN.into_iter().filter(|hidden| *hidden != "\n") {
            let line = format!("a{hidden}b\tc\n");
            assert_eq!(printed(TEXT, &[&line]), "a\u{fffd}b\tc\n", "{hidden:?}");
            assert_eq!(
                printed(OutputStyle::WorkflowCommands, &[&line]),
                "a\u{fffd}b\tc\n",
                "{hidden:?}"
            );
        }
        for text in HIDDEN {
            let json =
                serde_json::to_string(&format!("{text} ##[x] ##vso[y] ::z::")).expect("JSON");
            let shown = printed(OutputStyle::Json, &[&json]);
            assert!(
                shown.is_ascii() && !shown.bytes().any(|byte| byte < b' ' || byte == 0x7f),
                "{shown:?}"
            );
            assert!(
                !shown.contains("##[") && !shown.contains("##vso["),
                "{shown:?}"
            );
            assert_eq!(
                serde_json::from_str::<String>(&shown).ok(),
                serde_json::from_str(&json).ok()
            );
        }
    }

    #[test]
    fn error_numbers_are_removed_from_text_only() {
        let line = "a: No such file (os error 2), b: In use (os error 98); c\n";
        assert_eq!(printed(TEXT, &[line]), "a: No such file, b: In use; c\n");
        assert_eq!(printed(OutputStyle::Json, &[line]), line);
        assert_eq!(without_error_numbers("a (os error 2"), "a");
    }

    #[test]
    fn only_colour_sequences_pass_where_allowed() {
        let coloured = OutputStyle::Text { colours: true };
        assert_eq!(
            printed(coloured, &["\x1b[1;31merror\x1b[0m\n"]),
            "\x1b[1;31merror\x1b[0m\n"
        );
        assert_eq!(printed(TEXT, &["\x1b[31mred\n"]), "\u{fffd}[31mred\n");
        for other in [
            "\x1b[2J",
            "\x1b]0;title\x07",
            "\x1b[31",
            "\x1b",
            "\x1b[31\u{9b}m",
        ] {
            assert!(
                !printed(coloured, &[other, "\n"]).contains(['\x1b', '\u{9b}']),
                "{other:?}"
            );
        }
    }

    #[test]
    fn commands_to_a_ci_runner_are_escaped() {
        let is_command = |text: &str| {
            let starts = |line: &str| line.trim_start().starts_with("::");
            text.lines().any(starts) || text.contains("##[") || text.contains("##vso[")
        };
        for text in [
            "::stop-commands::t",
            "  \t::error::e",
            "a\n::add-mask::x",
            "a ##[error]b",
            "\u{9b}##vso[task.x]",
        ] {
            assert!(
                is_command(text) && !is_command(&printed(TEXT, &[text, "\n"])),
                "{text:?}"
            );
        }
        // In pieces, too; and an address stays as it is.
        assert!(!is_command(&printed(TEXT, &["a\n:", ":error::x\n"])));
        assert_eq!(printed(TEXT, &["::1/128\n"]), "::1/128\n");
        assert_eq!(
            printed(OutputStyle::WorkflowCommands, &["::error::x\n"]),
            "::error::x\n"
        );
    }
}
