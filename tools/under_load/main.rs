//! A running crawlgate before servers that are busy, or that come and go.
//!
//! ```sh
//! cargo build --release --bin crawlgate --example under_load
//! target/release/examples/under_load people-first               # people beside a crawl, and beside HAProxy's `maxconn`
//! target/release/examples/under_load flapping --seconds 600     # a server that is gone every other second
//! ```
//!
//! Both print a table in Markdown. It is for Linux: clients have addresses of their own in
//! 127.0.0.0/8, and memory and descriptors come from /proc. `people-first` needs HAProxy.

mod client;
mod flapping;
mod people;
mod program;
mod server;

use std::io;
use std::process::ExitCode;
use std::time::Duration;

const USAGE: &str = "usage: under_load people-first [--seconds 8] | flapping [--seconds 600]";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let seconds = |text: &str| {
        text.parse()
            .ok()
            .filter(|seconds| *seconds > 0)
            .map(Duration::from_secs)
    };
    let done = match words[..] {
        ["people-first"] => people::run(Duration::from_secs(8)),
        ["flapping"] => flapping::run(Duration::from_secs(600)),
        [name @ ("people-first" | "flapping"), "--seconds", text] => match seconds(text) {
            Some(time) if name == "flapping" => flapping::run(time),
            Some(time) => people::run(time),
            None => Err(io::Error::other(format!(
                "`{text}` is no number of seconds"
            ))),
        },
        _ => Err(io::Error::other(USAGE)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}
