//! The command line, with one module for each command. [`main`] runs the command and turns its
//! result into an exit code. Results go to standard output, messages to standard error.

/// Returns from the function with a [`Failure`] and a message, which is written as for `format!`.
macro_rules! fail {
    ($kind:ident, $($message:tt)+) => {
        return Err($crate::cli::Failure::$kind(format!($($message)+)))
    };
}

/// Prints a message, which is written as for `format!`, on standard error.
macro_rules! print_message {
    ($($message:tt)+) => {
        $crate::cli::print_message(&format!($($message)+))
    };
}

mod audit;
mod check;
mod completions;
mod control;
mod crawler_proof;
mod crawlers;
mod decide;
mod default_paths;
mod demo;
mod diff;
mod evidence;
mod explain;
mod export;
mod import;
mod init;
mod instances;
mod man;
mod origin_copy;
mod pause;
mod policies;
mod progress;
mod reload;
mod render;
mod report;
mod resume;
mod run;
mod schema;
mod server_flags;
mod shell_words;
mod sources;
mod state;
mod status;
mod tester;
mod traps;
mod upgrade;
mod url_list;

use crate::files::parent_directory;
use crate::printable::{OutputStyle, SanitizingWriter, printable_path};
use crate::yaml::{Diagnostic, SourceFile, nearest_word, strip_http_scheme};
use Failure::*;
use clap::{Parser, Subcommand};
use serde::Serialize;
use std::error::Error;
use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, StdoutLock, Write};
use std::path::Path;
use std::process::ExitCode;

/// Publish the rules of your site for crawlers, see who breaks them, and block those who do
#[derive(Parser)]
#[command(
    name = "crawlgate",
    version,
    disable_help_subcommand = true,
    after_help = "\
Exit codes: 0 fine, 1 findings, 2 wrong usage, 3 failed (file, network, or crawlgate not running)."
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

/// Declares the commands: the name of each, and the module with its `Arguments` and `run`.
macro_rules! commands {
    ($($name:ident: $module:ident,)*) => {
        #[derive(Subcommand)]
        enum Command {
            $($name($module::Arguments),)*
        }

        impl Command {
            fn run(&self) -> Result {
                match self {
                    $(Command::$name(arguments) => $module::run(arguments),)*
                }
            }
        }
    };
}

commands! {
    Run: run,
    Decide: decide,
    Demo: demo,
    Init: init,
    Check: check,
    Render: render,
    Explain: explain,
    Tester: tester,
    Import: import,
    Export: export,
    Audit: audit,
    Diff: diff,
    Crawlers: crawlers,
    Pause: pause,
    Resume: resume,
    Reload: reload,
    Upgrade: upgrade,
    Status: status,
    Instances: instances,
    Report: report,
    State: state,
    Evidence: evidence,
    Traps: traps,
    Schema: schema,
    Completions: completions,
    Man: man,
}

/// The result of a command.
type Result<T = (), E = Failure> = std::result::Result<T, E>;

/// Why a command failed.
#[derive(Debug)]
enum Failure {
    /// There are findings (a policy is invalid, a site was rejected), which were printed already.
    Findings,
    /// There are findings, with a message that was not printed yet.
    FindingsMessage(String),
    /// The arguments make no sense together.
    Usage(String),
    /// A file, the network or the running crawlgate could not be reached.
    Runtime(String),
    /// The message was printed already; the exit code remains.
    Printed(u8),
    /// The reader of our output has closed it (`crawlgate crawlers | head`).
    ClosedPipe,
}

impl Failure {
    /// Prints the message, if there is one. Returns the exit code.
    fn print(self) -> u8 {
        let (code, message) = match self {
            ClosedPipe => (0, None),
            Findings => (1, None),
            FindingsMessage(message) => (1, Some(message)),
            Usage(message) => (2, Some(message)),
            Runtime(message) => (3, Some(message)),
            Printed(code) => (code, None),
        };
        if let Some(message) = message {
            print_message!("crawlgate: {message}");
        }
        code
    }
}

impl<E: Error + 'static> From<E> for Failure {
    /// A broken pipe is [`Failure::ClosedPipe`], every other error [`Failure::Runtime`].
    fn from(error: E) -> Failure {
        let error: &(dyn Error + 'static) = &error;
        let kind = match error.downcast_ref::<serde_json::Error>() {
            Some(error) => error.io_error_kind(),
            None => error.downcast_ref().map(io::Error::kind),
        };
        match kind {
            Some(ErrorKind::BrokenPipe) => ClosedPipe,
            _ => Runtime(error.to_string()),
        }
    }
}

/// Whether a path begins with what may be the name of a host, and hardly that of a file.
fn may_be_host(path: &str) -> bool {
    const ENDINGS: &str = "conf crt csv gz html json jsonl log md pem tsv txt xml yaml yml zst";
    let first = path.split('/').next().unwrap_or_default();
    first.rsplit_once('.').is_some_and(|(_, ending)| {
        ending.ends_with(char::is_alphabetic) && ENDINGS.split(' ').all(|known| known != ending)
    })
}

/// Converts errors of a file: `cannot read FILE: reason`. `act` is `read` (also if
/// the command takes sites), `open`, `write` or `create`.
fn file_failure(act: &'static str, path: &Path) -> impl Fn(io::Error) -> Failure {
    move |error| {
        let name = printable_path(path);
        Runtime(match error.kind() {
            ErrorKind::AlreadyExists => {
                format!("{name} is there already; name another file, or remove it")
            }
            ErrorKind::NotFound if strip_http_scheme(&name).is_some() => {
                format!("{name} is a URL, not a file; download it, and name the file")
            }
            ErrorKind::NotFound if act == "read" && may_be_host(&name) => {
                format!("cannot read {name}: {error}; if this is a site, write https://{name}")
            }
            _ => format!("cannot {act} {name}: {error}"),
        })
    }
}

/// Creates the directory of a file to write.
fn create_parent(path: &Path) -> Result {
    let directory = parent_directory(path);
    std::fs::create_dir_all(directory).map_err(file_failure("create", directory))
}

/// Writes a file that must not exist yet, and syncs it to the disk. Creates its directory.
fn write_new_file(path: &Path, bytes: &[u8]) -> Result {
    create_parent(path)?;
    std::fs::File::create_new(path)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .map_err(file_failure("write", path))
}

/// Runs the command of the process arguments, and prints its failure. Returns the exit code: 0 fine
/// (also if the reader closed the output), 1 findings, 2 wrong usage, 3 failed.
pub fn main() -> ExitCode {
    match Arguments::try_parse() {
        Ok(arguments) => {
            let done = arguments.command.run();
            let done = done.and_then(|()| Ok(io::stdout().flush()?));
            ExitCode::from(done.err().map_or(0, Failure::print))
        }
        Err(error) if error.use_stderr() => {
            print_message(&error.render().to_string());
            ExitCode::from(2)
        }
        // Help and version are no mistakes. A closed pipe needs no message.
        Err(error) => {
            let _ = error.print();
            ExitCode::SUCCESS
        }
    }
}

/// Prints a message on standard error.
fn print_message(message: &str) {
    write_to_stderr(message, false);
}

/// Prints the findings about a file on standard error.
fn print_findings<'a>(source: &SourceFile, findings: impl IntoIterator<Item = &'a Diagnostic>) {
    let colours = supports_colour(&io::stderr());
    for finding in findings {
        write_to_stderr(&finding.render(source, colours), colours);
    }
}

/// Prints a message on standard error, without trailing blanks. Removes colours unless `colours` is
/// set. A closed standard error is no failure.
fn write_to_stderr(message: &str, colours: bool) {
    let mut errors = SanitizingWriter::new(io::stderr().lock(), OutputStyle::Text { colours });
    let _ = writeln!(errors, "{}", message.trim_end());
}

/// Standard output for text, with foreign texts made harmless for a terminal or a job. With `colours` the caller must make foreign texts
/// [`printable`](crate::printable).
fn stdout_printer(colours: bool) -> SanitizingWriter<StdoutLock<'static>> {
    SanitizingWriter::new(io::stdout().lock(), OutputStyle::Text { colours })
}

/// Whether a stream is a terminal, and NO_COLOR is not set (<https://no-color.org>).
fn supports_colour(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Prints JSON and a newline.
fn print_json(value: &(impl Serialize + ?Sized)) -> Result {
    let mut out = SanitizingWriter::new(io::stdout().lock(), OutputStyle::Json);
    serde_json::to_writer_pretty(&mut out, value)?;
    Ok(writeln!(out)?)
}

/// The result of printing, for a command whose exit code tells findings: it does so also if the
/// reader closed the output (`crawlgate check | head`).
fn ignore_closed_pipe(printed: Result) -> Result {
    match printed {
        Err(ClosedPipe) => Ok(()),
        printed => printed,
    }
}

/// Prints bytes as they are.
fn print_bytes(bytes: &[u8]) -> Result {
    Ok(io::stdout().write_all(bytes)?)
}

/// Prints a result as JSON or as text.
fn print_result(json: bool, value: &(impl Serialize + ?Sized), text: impl Display) -> Result {
    if json {
        return print_json(value);
    }
    print_text(text)
}

/// Prints a text on standard output, with an end of line.
fn print_text(text: impl Display) -> Result {
    let mut text = text.to_string();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let mut out = stdout_printer(false);
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// The result of a command that printed its findings: `Failure::Findings` unless all is fine.
fn findings_failure_unless(is_fine: bool) -> Result {
    if is_fine { Ok(()) } else { Err(Findings) }
}

/// The end of a message about an unknown word: the known word that is probably meant, if there is one.
fn did_you_mean<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    nearest_word(word, known)
        .map(|near| format!("; did you mean {near}?"))
        .unwrap_or_default()
}

/// The current time. The engine has no clock; commands pass it in.
fn now() -> crate::time::Timestamp {
    std::time::SystemTime::now().into()
}

/// The host of an http(s) URL in lower case, with its port if it has one; `None` of anything else.
fn url_host(url: &str) -> Option<String> {
    let authority = strip_http_scheme(url)?.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    (!host.is_empty()).then(|| host.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::{Arguments, Failure, file_failure};
    use clap::CommandFactory;
    use std::io;
    use std::path::Path;

    #[test]
    fn missing_file_that_may_be_a_site_gets_its_url() {
        for (act, path, is_site) in [
            ("read", "shop.example", true),
            ("read", "shop.com.ar/robots.txt", true),
            ("read", "access.log.1", false),
            ("read", "robots.txt", false),
            ("read", "logs/access.log", false),
            ("read", "../shop", false),
            ("write", "report.d/x.html", false),
        ] {
            let failure = file_failure(act, Path::new(path))(io::ErrorKind::NotFound.into());
            let Failure::Runtime(message) = failure else {
                panic!("{path}");
            };
            assert_eq!(
                message.contains(&format!("https://{path}")),
                is_site,
                "{message}"
            );
        }
    }

    #[test]
    fn arguments_of_every_command_are_valid() {
        Arguments::command().debug_assert();
    }
}
