//! `pause`: makes the running crawlgate answer crawlers with 503 for a while. People still get
//! pages, unless `--everyone` is given.

use super::{Result, control};
use crate::admin::control::{Request, Response};
use crate::policy::model::Audience;
use crate::sites::PauseRequest;
use std::io::Write;
use std::time::Duration;

/// Answer crawlers with 503 and Retry-After until the pause ends or `resume` ends it
#[derive(clap::Args)]
pub struct Arguments {
    /// The site [default: all sites]
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
    /// Answer robots.txt with 503, too; crawlers then stop altogether
    #[arg(long)]
    robots_txt: bool,
    /// Allow more than 36 hours, although search engines drop pages that answer 503 for two days
    #[arg(long)]
    long: bool,
    #[command(flatten)]
    control: control::Socket,
}

/// Reads a duration of at least one second, as policies write it: `45m`, `1h30m`.
fn duration(written: &str) -> Result<Duration, &'static str> {
    let duration =
        crate::yaml::parse_duration(written).ok_or("write `30s`, `45m`, `2h` or `1h30m`")?;
    if duration.as_secs() > 0 {
        Ok(duration)
    } else {
        Err("a duration is at least one second")
    }
}

/// Has the running crawlgate pause a site, or every site without one: for crawlers, or with
/// `--everyone` for people, too. Prints until when, and warnings on standard error.
pub fn run(arguments: &Arguments) -> Result {
    let request = Request::Pause(PauseRequest {
        site: arguments.site.clone(),
        audience: if arguments.everyone {
            Audience::Everyone
        } else {
            Audience::Crawlers
        },
        seconds: arguments.length.map(|length| length.as_secs()),
        retry_after: arguments
            .retry_after
            .map(|length| u32::try_from(length.as_secs()).unwrap_or(u32::MAX)),
        robots_txt: arguments.robots_txt,
        long: arguments.long,
    });
    let Response::Paused { until, warnings } = arguments.control.ask(&request)? else {
        return control::unexpected();
    };
    control::warn(&warnings);
    let site = arguments.site.as_deref().unwrap_or("every site");
    let whom = if arguments.everyone {
        "everyone"
    } else {
        "crawlers"
    };
    Ok(writeln!(
        super::out(false),
        "{site} is paused for {whom} until {until}; `crawlgate resume` ends it"
    )?)
}
