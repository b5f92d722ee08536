//! `man`: prints the manual, one page for each command. Usage and options come from clap; exit codes, files, the
//! environment and examples are in this file.

use super::{Failure, Result};
use clap::{Command, CommandFactory};
use clap_mangen::roff::{Roff, bold, roman};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Print the manual page, or write one page per command into a directory
#[derive(Debug, clap::Args)]
#[command(after_help = "To read it without installing: crawlgate man | man -l -")]
pub struct Arguments {
    /// Write crawlgate.1, crawlgate-run.1 and so on into this directory, and print their names
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// The exit codes of every command.
const EXIT_CODES: &[(&str, &str)] = &[
    ("0", "Fine."),
    ("1", "Findings: a policy is invalid, a test failed, a site was rejected, no policy is for the host."),
    ("2", "Wrong usage."),
    ("3", "Could not: a file, the network, or no running crawlgate."),
];

const FILES: &[(&str, &str)] = &[
    ("policies/*.yaml", "The policies, one file per site, unless --policies names another directory."),
    ("crawlgate.yaml", "The settings of the server. crawlgate reads none unless --config names it."),
    (
        "control.sock, crawlgate.sock",
        "The control socket: in $RUNTIME_DIRECTORY, $XDG_RUNTIME_DIR, /run/crawlgate if that directory exists, or the \
         state directory.",
    ),
    (
        "/var/lib/crawlgate",
        "The state directory: $STATE_DIRECTORY, this one if it exists, \
         $XDG_STATE_HOME/crawlgate, or ~/.local/state/crawlgate.",
    ),
];

const ENVIRONMENT: &[(&str, &str)] = &[
    ("NO_COLOR", "No colours, even to a terminal."),
    ("RUST_LOG", "The level of log messages on standard error: RUST_LOG=debug."),
];

/// Commands to begin with.
const FIRST: &[&str] = &[
    "crawlgate demo",
    "crawlgate check policies",
    "crawlgate run --origin http://127.0.0.1:3000 --listen 0.0.0.0:80",
    "crawlgate explain --host shop.example --user-agent GPTBot /cart/",
    "crawlgate pause --site shop --for 2h",
];

/// Commands of the pages, which their second word names.
const EXAMPLES: &[&str] = &[
    "crawlgate run --origin http://127.0.0.1:3000",
    "crawlgate run --config /etc/crawlgate/crawlgate.yaml --strict",
    "crawlgate decide --policies policies",
    "crawlgate decide --listen unix:/run/crawlgate/decide.sock --listen 127.0.0.1:9180",
    "crawlgate instances",
    "crawlgate instances forget ID",
    "crawlgate export nginx --policies policies --output /etc/nginx/crawlgate",
    "crawlgate demo",
    "crawlgate demo --listen 127.0.0.1:0 --admin 127.0.0.1:0",
    "crawlgate check",
    "crawlgate check policies/shop.yaml --deny-warnings",
    "crawlgate check --format github policies",
    "crawlgate render --host shop.example --policies policies",
    "crawlgate explain --host shop.example --user-agent GPTBot /cart/",
    "crawlgate explain --host shop.example --user-agent Googlebot --type application/pdf --json /report.pdf",
    "crawlgate tester robots.txt --agent Googlebot --agent GPTBot /cart/ '/search?q=a'",
    "crawlgate tester robots.txt --agent Googlebot-Image --literal /images/",
    "crawlgate tester https://shop.example --agent Bingbot https://shop.example/cart/",
    "crawlgate import https://shop.example -o policies/shop.yaml",
    "crawlgate import robots.txt --purposes",
    "crawlgate audit --robots robots.txt access.log access.log.1.gz",
    "crawlgate audit --policies policies --html report.html access.log",
    "crawlgate diff old.txt robots.txt",
    "crawlgate diff ../main/policies policies --format markdown",
    "crawlgate diff robots.txt policies/shop.yaml --log access.log",
    "crawlgate crawlers --purpose training",
    "crawlgate crawlers GPTBot",
    "crawlgate pause --site shop --for 2h --retry-after 30m",
    "crawlgate pause --everyone --for 10m",
    "crawlgate resume --site shop",
    "crawlgate reload --json",
    "crawlgate upgrade",
    "crawlgate upgrade --now",
    "crawlgate status",
    "crawlgate status --control /run/crawlgate/control.sock",
    "crawlgate report",
    "crawlgate report --since 30d --html report.html",
    "crawlgate state backup /var/backups/crawlgate.db",
    "crawlgate evidence status",
    "crawlgate evidence export --site shop --crawler gptbot --from 2026-11-01 --to 2026-12-01 -o case.tar",
    "crawlgate evidence verify case.tar --key log.vkey",
    "crawlgate evidence forget --address 203.0.113.9",
    "crawlgate traps",
    "crawlgate traps --release 203.0.113.9",
    "crawlgate schema > policies/policy.schema.json",
    "crawlgate schema settings",
    "crawlgate completions bash",
    "crawlgate man --dir /usr/local/share/man/man1",
];

/// The commands on the page of a command. A test reads each of them as the command line would.
fn examples(command: &str) -> Vec<&'static str> {
    if command == "crawlgate" {
        return FIRST.to_vec();
    }
    EXAMPLES.iter().copied().filter(|example| example.split(' ').nth(1) == Some(command)).collect()
}

pub fn run(arguments: &Arguments) -> Result {
    let mut command = super::Arguments::command();
    command.build();
    match &arguments.dir {
        None => Ok(io::stdout().lock().write_all(&page(&command)?)?),
        Some(directory) => write_all(&command, directory),
    }
}

fn write_all(command: &Command, directory: &Path) -> Result {
    let failed = |path: &Path, error: io::Error| Failure::CouldNot(format!("{}: {error}", path.display()));
    fs::create_dir_all(directory).map_err(|error| failed(directory, error))?;
    let mut out = super::out(false);
    for command in std::iter::once(command).chain(command.get_subcommands()) {
        let path = directory.join(format!("{}.1", full_name(command)));
        fs::write(&path, page(command)?).map_err(|error| failed(&path, error))?;
        writeln!(out, "{}", path.display())?;
    }
    Ok(())
}

/// `crawlgate-run` for `run`.
fn full_name(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

/// The page of a command that was built.
fn page(command: &Command) -> io::Result<Vec<u8>> {
    let main = full_name(command) == "crawlgate";
    // What clap prints after the help and its version become sections of ours.
    let plain = command
        .clone()
        .after_help(None::<&str>)
        .version(None::<&str>)
        .subcommand_help_heading("COMMANDS")
        .subcommand_value_name("COMMAND");
    let plain = if main { plain } else { without_actions(plain) };
    let mut page = Vec::new();
    clap_mangen::Man::new(plain)
        .source(concat!("crawlgate ", env!("CARGO_PKG_VERSION")))
        .manual("crawlgate")
        .render(&mut page)?;

    let mut roff = Roff::new();
    if let Some(note) = command.get_after_help().filter(|_| !main) {
        roff.control("SH", ["NOTES"]);
        for line in note.to_string().lines() {
            roff.control("PP", []);
            roff.text([roman(line.trim())]);
        }
    }
    command.get_subcommands().filter(|_| !main).for_each(|action| tell_action(&mut roff, action));
    let examples = examples(command.get_name());
    if !examples.is_empty() {
        roff.control("SH", ["EXAMPLES"]);
        roff.control("EX", []);
        for example in examples {
            roff.text([roman(example)]);
        }
        roff.control("EE", []);
    }
    list(&mut roff, "EXIT STATUS", EXIT_CODES);
    if main {
        list(&mut roff, "FILES", FILES);
        list(&mut roff, "ENVIRONMENT", ENVIRONMENT);
    } else {
        roff.control("SH", ["SEE ALSO"]);
        roff.text([bold("crawlgate"), roman("(1)")]);
    }
    page.extend(roff.to_roff().into_bytes());
    Ok(page)
}

/// Actions of a command have no pages of their own: they stand on its page.
fn without_actions(command: Command) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|action| action.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| command.mut_subcommand(name, |action| action.hide(true)))
}

/// What an action of a command does, and its options.
fn tell_action(roff: &mut Roff, action: &Command) {
    let text = |styled: Option<&clap::builder::StyledStr>| styled.map(ToString::to_string).unwrap_or_default();
    roff.control("SH", [action.get_name().to_uppercase().as_str()]);
    roff.text([roman(text(action.get_about()))]);
    for argument in action.get_arguments().filter(|argument| !argument.is_hide_set()) {
        item(roff, argument.to_string(), text(argument.get_help()));
    }
}

fn list(roff: &mut Roff, heading: &str, items: &[(&str, &str)]) {
    roff.control("SH", [heading]);
    items.iter().for_each(|(name, meaning)| item(roff, *name, *meaning));
}

fn item(roff: &mut Roff, name: impl Into<String>, meaning: impl Into<String>) {
    roff.control("TP", []);
    roff.text([bold(name)]);
    roff.text([roman(meaning)]);
}

#[cfg(test)]
mod tests {
    use super::super::Arguments;
    use super::examples;
    use clap::{CommandFactory, Parser};

    #[test]
    fn the_examples_of_every_page_are_accepted() {
        let command = Arguments::command();
        let names = command.get_subcommands().map(|command| command.get_name().to_owned());
        for name in names.chain(["crawlgate".to_owned()]) {
            assert!(!examples(&name).is_empty(), "`{name}` has no example");
            for example in examples(&name) {
                let words = example.split(" > ").next().unwrap_or_default().split(' ');
                let parsed = Arguments::try_parse_from(words);
                assert!(parsed.is_ok(), "{example}: {}", parsed.expect_err("an error"));
            }
        }
    }
}
