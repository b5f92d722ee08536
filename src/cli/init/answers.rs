//! What the command `init` must know from the owner of a site, such as its host and its origin. The
//! values come from flags; for a missing flag, `init` asks in the terminal.

use crate::cli::import::is_local_host;
use crate::cli::{Failure, Result};
use crate::policy::decode::parse_host;
use crate::settings::OriginServerAddress;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

/// Parses the name of a site, and converts it to the form that clients send. Fails for an address,
/// localhost, a port, and a pattern of names.
pub fn parse_site_host(written: &str) -> Result<String, String> {
    let host = parse_host(written).map_err(|error| format!("{}; {}", error.message, error.help))?;
    if is_local_host(written) {
        return Err(format!(
            "{written} is not the name that visitors use. Give the name: --host shop.example"
        ));
    }
    if host.wildcard {
        return Err(format!(
            "{written} has no robots.txt. Give one name: --host {}",
            host.name
        ));
    }
    Ok(host.name)
}

/// The hosts of the flags, else one that the owner types.
pub fn hosts_or_ask(hosts: &[String]) -> Result<Vec<String>> {
    if !hosts.is_empty() {
        return Ok(hosts.to_vec());
    }
    Ok(vec![ask(
        "The name that visitors use, like shop.example: ",
        "--host",
        parse_site_host,
    )?])
}

/// The origin of the flag, else one that the owner types.
pub fn origin_or_ask(origin: Option<&OriginServerAddress>) -> Result<OriginServerAddress> {
    let question = "The server of the site, like http://127.0.0.1:3000: ";
    origin
        .cloned()
        .map_or_else(|| ask(question, "--origin", OriginServerAddress::parse), Ok)
}

/// Whether the owner says in a terminal that robots.txt did not change for a day.
pub fn confirm_unchanged() -> Result<bool> {
    if !io::stdin().is_terminal() {
        return Ok(false);
    }
    let answer = read_answer("Was robots.txt the same for 24 hours, also in your CDN? [y/N] ")?;
    Ok(answer.is_some_and(|answer| matches!(&*answer.to_ascii_lowercase(), "y" | "yes")))
}

/// Asks until the answer is valid. Fails without a terminal, and at the end of the input.
fn ask<T, E: Display>(question: &str, flag: &str, parse: fn(&str) -> Result<T, E>) -> Result<T> {
    while io::stdin().is_terminal()
        && let Some(answer) = read_answer(question)?
    {
        match parse(&answer) {
            Ok(value) => return Ok(value),
            Err(error) => print_message!("{error}"),
        }
    }
    Err(Failure::Usage(format!(
        "{flag} is missing. Write: crawlgate init --host shop.example --origin http://127.0.0.1:3000"
    )))
}

/// Prints a question and reads a line. `None` at the end of the input.
fn read_answer(question: &str) -> Result<Option<String>> {
    let mut errors = io::stderr();
    write!(errors, "{question}")?;
    errors.flush()?;
    let mut line = String::new();
    Ok((io::stdin().read_line(&mut line)? > 0).then(|| line.trim().to_owned()))
}
