//! `pause`: crawlers are asked to come back later; people do not notice.

use super::{Failure, control};
use crate::admin::control::{Request, Response};
use crate::policy::model::Audience;
use crate::sites::PauseRequest;
use crate::yaml::parse_duration;
use std::io::Write;
use std::time::Duration;

/// Ask crawlers to come back later: 503 with Retry-After, until it ends or is ended with `resume`
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Only this site; all of them otherwise
    #[arg(long)]
    site: Option<String>,
    /// How long, like 45m or 2h [default: 12h]
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    length: Option<Duration>,
    /// Pause people as well
    #[arg(long)]
    everyone: bool,
    /// What Retry-After says [default: 30m]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    retry_after: Option<Duration>,
    /// Answer robots.txt with 503 too: crawlers then stop altogether
    #[arg(long)]
    robots_txt: bool,
    /// More than 36 hours are meant, though search engines drop pages that stay away for two days
    #[arg(long)]
    long: bool,
    #[command(flatten)]
    control: control::Socket,
}

fn duration(written: &str) -> Result<Duration, String> {
    match parse_duration(written) {
        Some(duration) if duration.as_secs() > 0 => Ok(duration),
        Some(_) => Err("this is less than a second".into()),
        None => Err("write `30s`, `45m`, `2h` or `1h30m`".into()),
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let request = Request::Pause(PauseRequest {
        site: arguments.site.clone(),
        audience: if arguments.everyone { Audience::Everyone } else { Audience::Crawlers },
        seconds: arguments.length.map(|length| length.as_secs()),
        retry_after: arguments.retry_after.map(|length| u32::try_from(length.as_secs()).unwrap_or(u32::MAX)),
        robots_txt: arguments.robots_txt,
        long: arguments.long,
    });
    match arguments.control.ask(&request)? {
        Response::Paused { until } => {
            let site = arguments.site.as_deref().unwrap_or("every site");
            let whom = if arguments.everyone { "everyone" } else { "crawlers" };
            Ok(writeln!(std::io::stdout(), "{site} is paused for {whom} until {until}; `crawlgate resume` ends it")?)
        }
        _ => Err(control::unexpected()),
    }
}
