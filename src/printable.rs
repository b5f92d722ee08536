//! Makes foreign text harmless before a terminal, a log or the runner of a job reads it: file
//! names, lines of robots.txt, fields of requests. A [`Printer`] does so with everything that is
//! printed. [`printable`] is for a text within a line.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;

/// Whether a character moves a cursor, ends a line or turns the direction of writing. (Unicode's
/// control characters, its `Bidi_Control`, and the separators of lines and paragraphs.)
pub fn is_hidden(sign: char) -> bool {
    let turns = matches!(sign, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || sign.is_control() || matches!(sign, '\u{2028}' | '\u{2029}' | '\u{feff}')
}

/// A text on one line, with U+FFFD in place of characters that are hidden.
pub fn printable(text: &[u8]) -> String {
    String::from_utf8_lossy(text)
        .chars()
        .map(|sign| if is_hidden(sign) { '\u{fffd}' } else { sign })
        .collect()
}

/// [`printable`] for the name of a file. Anybody who proposes a policy chooses its name.
pub fn printable_path(path: &Path) -> String {
    printable(path.as_os_str().as_encoded_bytes())
}

/// The beginning of a text: at most so many bytes, whole characters.
pub fn cut(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Parts in one line, with a separator between them.
pub fn join(parts: impl IntoIterator<Item: ToString>, separator: &str) -> String {
    parts
        .into_iter()
        .map(|part| part.to_string())
        .collect::<Vec<_>>()
        .join(separator)
}

/// What reads the lines of a [`Printer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// A person, perhaps by the log of a job.
    Text {
        /// Whether sequences that set colours pass. The foreign parts of such a text must be
        /// [`printable`] already.
        colours: bool,
    },
    /// The runner of a job: lines that begin with `::` are crawlgate's own commands.
    WorkflowCommands,
    /// A program. What is hidden is escaped, and so not lost.
    Json,
}

/// Writes whole lines, and makes them harmless.
#[derive(Debug)]
pub struct Printer<W: Write> {
    out: W,
    style: Style,
    /// What has no end of line yet.
    pending: Vec<u8>,
}

impl<W: Write> Printer<W> {
    /// A printer that writes to `out`.
    pub fn new(out: W, style: Style) -> Printer<W> {
        Printer {
            out,
            style,
            pending: Vec::new(),
        }
    }

    /// Writes what is pending, made harmless, also if it has no end of line yet.
    fn write_pending(&mut self) -> io::Result<()> {
        let pending = std::mem::take(&mut self.pending);
        let text = String::from_utf8_lossy(&pending);
        let lines: String = text
            .split_inclusive('\n')
            .map(|line| self.style.harmless(line))
            .collect();
        // In one piece, so that no line of another thread stands between these.
        self.out.write_all(lines.as_bytes())
    }
}

impl<W: Write> Write for Printer<W> {
    /// Takes all bytes in, writes the whole lines, and keeps the rest until its line ends, or until
    /// a flush or the end of the printer.
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

impl<W: Write> Drop for Printer<W> {
    fn drop(&mut self) {
        let _ = self.write_pending();
    }
}

impl Style {
    /// Makes a line of UTF-8 harmless in its place.
    pub fn make_harmless(self, line: &mut Vec<u8>) {
        if !is_harmless(line) {
            *line = self
                .harmless(&String::from_utf8_lossy(line))
                .into_owned()
                .into_bytes();
        }
    }

    /// The line without what its reader would obey: hidden characters (other than line end and tab)
    /// and commands to the runner of a job. They become U+FFFD, or `\u` escapes in JSON. Sequences
    /// that set colours stay where the style lets them pass.
    fn harmless(self, line: &str) -> Cow<'_, str> {
        if is_harmless(line.as_bytes()) {
            return Cow::Borrowed(line);
        }
        let mut out = String::with_capacity(line.len());
        let mut rest = line;
        while let Some(sign) = rest.chars().next() {
            let colour = colour_sequence(rest).filter(|_| self == Style::Text { colours: true });
            let (shown, after) = rest.split_at(colour.unwrap_or(sign.len_utf8()));
            rest = after;
            match self {
                _ if colour.is_some() || !is_hidden(sign) || matches!(sign, '\n' | '\t') => {
                    out += shown
                }
                Style::Json => out += &format!("\\u{:04x}", u32::from(sign)),
                Style::Text { .. } | Style::WorkflowCommands => out.push('\u{fffd}'),
            }
        }
        Cow::Owned(self.without_commands(&out))
    }

    /// A line without commands to the runner of a job. GitHub's runner obeys `::NAME` at the
    /// beginning of a line, after blanks, and `##[NAME` everywhere (actions/runner,
    /// `ActionCommand.cs`), that of Azure `##vso[`. A `::NAME` stays in JSON, and where crawlgate
    /// writes such commands itself.
    fn without_commands(self, line: &str) -> String {
        let bracket = if self == Style::Json {
            "\\u005b"
        } else {
            "\u{fffd}"
        };
        let line = line
            .replace("##[", &format!("##{bracket}"))
            .replace("##vso[", &format!("##vso{bracket}"));
        let text = line.trim_start();
        let is_command = text
            .strip_prefix("::")
            .is_some_and(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()));
        match self {
            Style::Text { .. } if is_command => line.replacen(':', "\u{fffd}", 1),
            _ => line,
        }
    }
}

/// Whether a line is printable ASCII without anything that looks like a command, as nearly all
/// lines are.
fn is_harmless(line: &[u8]) -> bool {
    // Without a way out of the loop it is done for many bytes at once.
    let is_plain = line.iter().fold(true, |is_plain, byte| {
        is_plain & matches!(byte, b' '..=b'~' | b'\n' | b'\t')
    });
    is_plain
        && memchr::memmem::find(line, b"##").is_none()
        && !line.trim_ascii_start().starts_with(b"::")
}

/// The length of the sequence at the beginning of a text that sets colours (ECMA-48, SGR); `None`
/// if the text begins with none.
fn colour_sequence(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\x1b[")?;
    let end = parameters.find(|sign: char| !sign.is_ascii_digit() && sign != ';')?;
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
    const TEXT: Style = Style::Text { colours: false };

    fn printed(style: Style, pieces: &[&str]) -> String {
        let mut out = Vec::new();
        let mut printer = Printer::new(&mut out, style);
        pieces
            .iter()
            .for_each(|piece| printer.write_all(piece.as_bytes()).expect("written"));
        drop(printer);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn hidden_characters_are_made_visible_and_others_stay() {
        for hidden in HIDDEN {
            assert_eq!(printable(hidden.as_bytes()), "\u{fffd}", "{hidden:?}");
        }
        let shown = "a \u{e9}\u{5d0}\u{200d}\u{202f}\u{2065}\u{206a}";
        assert_eq!(printable(shown.as_bytes()), shown);
        assert_eq!(printable(b"a\xff"), "a\u{fffd}");
        assert_eq!(
            printable_path(Path::new("x\n::stop.yaml")),
            "x\u{fffd}::stop.yaml"
        );
    }

    #[test]
    fn hidden_characters_are_printed_as_their_reader_needs_it() {
        for hidden in HIDDEN.into_iter().filter(|hidden| *hidden != "\n") {
            let line = format!("a{hidden}b\tc\n");
            assert_eq!(printed(TEXT, &[&line]), "a\u{fffd}b\tc\n", "{hidden:?}");
            assert_eq!(
                printed(Style::WorkflowCommands, &[&line]),
                "a\u{fffd}b\tc\n",
                "{hidden:?}"
            );
        }
        for text in HIDDEN {
            let json =
                serde_json::to_string(&format!("{text} ##[x] ##vso[y] ::z::")).expect("JSON");
            let shown = printed(Style::Json, &[&json]);
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
    fn colours_pass_where_they_are_ours_and_nothing_else_does() {
        let coloured = Style::Text { colours: true };
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
    fn commands_to_the_runner_of_a_job_are_none() {
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
            printed(Style::WorkflowCommands, &["::error::x\n"]),
            "::error::x\n"
        );
    }
}
