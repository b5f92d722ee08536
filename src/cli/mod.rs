//! The command line: one file for each command. [`main`] runs the command, and turns its result
//! into an exit code.
//!
//! Results go to standard output, messages to standard error.

mod audit;
mod check;
mod completions;
mod control;
mod crawler_proof;
mod crawlers;
mod decide;
mod demo;
mod diff;
mod evidence;
mod explain;
mod export;
mod import;
mod instances;
mod man;
mod origin_copy;
mod pause;
mod places;
mod policies;
mod progress;
mod reload;
mod render;
mod report;
mod resume;
mod run;
mod schema;
mod server_flags;
mod state;
mod status;
mod tester;
mod traps;
mod upgrade;

use crate::printable::{Printer, Style, printable_path};
use crate::yaml::{Diagnostic, Source};
use clap::{Parser, Subcommand};
use serde::Serialize;
use std::error::Error;
use std::fmt::Display;
use std::io::{self, IsTerminal, StdoutLock, Write};
use std::path::Path;
use std::process::ExitCode;

/// A reverse proxy for crawlers: it publishes one policy as robots.txt and X-Robots-Tag, enforces
/// it, and counts violations
#[derive(Parser)]
#[command(name = "crawlgate", version, disable_help_subcommand = true, after_help = EXIT_CODES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 fine, 1 findings, 2 wrong usage, 3 could not.";

/// Makes the commands out of a list: the name of each, and the module that has its arguments and
/// runs it.
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

/// The result of a command, and of its parts.
type Result<T = (), E = Failure> = std::result::Result<T, E>;

/// Why a command failed.
#[derive(Debug)]
enum Failure {
    /// There are findings: a policy is invalid, a site was rejected. They are already shown.
    Findings,
    /// There are findings, and this message is still to be shown.
    Found(String),
    /// The arguments make no sense together.
    Usage(String),
    /// A file, the network or the running crawlgate could not be reached.
    CouldNot(String),
    /// The reader of our output has closed it (`crawlgate crawlers | head`).
    ClosedPipe,
}

/// An error of a file, the network or the running crawlgate.
impl<E: Error + 'static> From<E> for Failure {
    /// An error of an output whose reader has closed it is `ClosedPipe`; every other one is
    /// `CouldNot` with its text.
    fn from(error: E) -> Failure {
        let error: &(dyn Error + 'static) = &error;
        let kind = match error.downcast_ref::<serde_json::Error>() {
            Some(error) => error.io_error_kind(),
            None => error.downcast_ref().map(io::Error::kind),
        };
        match kind {
            Some(io::ErrorKind::BrokenPipe) => Failure::ClosedPipe,
            _ => Failure::CouldNot(error.to_string()),
        }
    }
}

/// Makes failures of a file: `cannot read FILE: reason`. `act` is `read`, `write` or `create`.
fn cannot(act: &'static str, path: &Path) -> impl Fn(io::Error) -> Failure {
    move |error| Failure::CouldNot(format!("cannot {act} {}: {error}", printable_path(path)))
}

/// Writes a file that must not be there yet, and waits until it is on the disk.
fn write_new(path: &Path, bytes: &[u8]) -> Result {
    let created = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path);
    let written = created.and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()));
    written.map_err(cannot("write", path))
}

/// Runs the command that the arguments name, and shows its failure. Returns the exit code: 0 fine
/// (also if the reader closed the output), 1 findings, 2 wrong usage, 3 could not.
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are no mistakes. A closed pipe needs no message.
            if error.use_stderr() {
                say(&error.render().to_string());
                return ExitCode::from(2);
            }
            let _ = error.print();
            return ExitCode::SUCCESS;
        }
    };
    let (code, message) = match arguments
        .command
        .run()
        .and_then(|()| io::stdout().flush().map_err(Failure::from))
    {
        Ok(()) | Err(Failure::ClosedPipe) => (0, None),
        Err(Failure::Findings) => (1, None),
        Err(Failure::Found(message)) => (1, Some(message)),
        Err(Failure::Usage(message)) => (2, Some(message)),
        Err(Failure::CouldNot(message)) => (3, Some(message)),
    };
    if let Some(message) = message {
        say(&format!("crawlgate: {message}"));
    }
    ExitCode::from(code)
}

/// Prints a message for a person on standard error. A closed standard error is no reason to stop.
fn say(message: &str) {
    print_message(message, false);
}

/// Shows the findings about a file on standard error.
fn say_findings<'a>(source: &Source, findings: impl IntoIterator<Item = &'a Diagnostic>) {
    let colours = colour(&io::stderr());
    findings
        .into_iter()
        .for_each(|finding| print_message(&finding.render(source, colours), colours));
}

/// Prints a message on standard error, without blanks at its end. Colours are kept only with
/// `colours`. A closed standard error is no failure.
fn print_message(message: &str, colours: bool) {
    let mut errors = Printer::new(io::stderr().lock(), Style::Text { colours });
    let _ = writeln!(errors, "{}", message.trim_end());
}

/// Standard output as commands print to it: nothing foreign in a text or in JSON is obeyed by a
/// terminal or a job.
type Out = Printer<StdoutLock<'static>>;

/// Standard output for text, with colours where the caller has made foreign texts
/// [`printable`](crate::printable).
fn out(colours: bool) -> Out {
    Printer::new(io::stdout().lock(), Style::Text { colours })
}

/// Whether a stream takes colours: a terminal does, unless NO_COLOR says otherwise
/// (<https://no-color.org>).
fn colour(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Prints JSON and a newline.
fn print_json(value: &(impl Serialize + ?Sized)) -> Result {
    let mut out = Printer::new(io::stdout().lock(), Style::Json);
    serde_json::to_writer_pretty(&mut out, value)?;
    Ok(writeln!(out)?)
}

/// Prints a result, as JSON for a program or as text for a person.
fn show(json: bool, value: &(impl Serialize + ?Sized), text: impl Display) -> Result {
    if json {
        return print_json(value);
    }
    let mut text = text.to_string();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let mut out = out(false);
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// The result of a command that printed what it found: `Failure::Findings` unless all is fine.
fn fine(is_fine: bool) -> Result {
    if is_fine {
        Ok(())
    } else {
        Err(Failure::Findings)
    }
}

/// The current time. The engine has no clock; commands pass it in.
fn now() -> crate::time::Timestamp {
    std::time::SystemTime::now().into()
}

#[cfg(test)]
mod tests {
    use super::Arguments;
    use clap::CommandFactory;

    #[test]
    fn the_arguments_of_every_command_fit_together() {
        Arguments::command().debug_assert();
    }
}
