//! The command `pause`: makes the running crawlgate answer crawlers with 503 for a while. Visitors
//! still get pages, unless `--everyone` is given.

use super::{Result, control};
use crate::admin::control::{ControlRequest, ControlResponse};
use crate::policy::model::PauseAudience;
use crate::sites::PauseRequest;
use std::time::Duration;

/// Answer crawlers with 503 and Retry-After for a while
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  crawlgate pause --for 45m --site shop

Exit codes: 0 paused, 1 the site is missing or unknown, or the pause is too long, 2 wrong usage, 3 failed.")]
pub struct Arguments {
    /// The site; needed if there are several, unless --all is given
    #[arg(long)]
    site: Option<String>,
    /// Pause all sites; this replaces the pauses of single sites, also longer ones
    #[arg(long, conflicts_with = "site")]
    all: bool,
    /// How long, like 45m or 2h [default: 12h]
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_pause_duration, allow_hyphen_values = true)]
    length: Option<Duration>,
    /// Pause visitors too
    #[arg(long)]
    everyone: bool,
    /// When crawlers may come back (Retry-After) [default: 30m]
    #[arg(long, value_name = "DURATION", value_parser = parse_pause_duration)]
    retry_after: Option<Duration>,
    /// Answer robots.txt with 503 too, so that crawlers stop completely
    #[arg(long)]
    robots_txt: bool,
    /// Allow more than 36 hours; search engines drop pages after two days of 503
    #[arg(long)]
    long: bool,
    #[command(flatten)]
    control: control::ControlFlag,
}

/// Parses a duration of at least one second: `45m`, `1h30m`.
fn parse_pause_duration(written: &str) -> Result<Duration, &'static str> {
    let duration = crate::yaml::parse_duration(written)?;
    if duration.as_secs() > 0 {
        Ok(duration)
    } else {
        Err("write at least 1s")
    }
}

/// Makes the running crawlgate pause one site or all. Prints the end of the pause, and warnings on
/// standard error.
pub fn run(arguments: &Arguments) -> Result {
    let audience = if arguments.everyone {
        PauseAudience::Everyone
    } else {
        PauseAudience::Crawlers
    };
    let request = ControlRequest::Pause(PauseRequest {
        site: arguments.site.clone(),
        all: arguments.all,
        audience,
        seconds: arguments.length.map(|length| length.as_secs()),
        retry_after: arguments
            .retry_after
            .map(|length| crate::yaml::saturating_u32(length.as_secs())),
        robots_txt: arguments.robots_txt,
        long: arguments.long,
    });
    let ControlResponse::Paused { until, warnings } = arguments.control.send(&request)? else {
        return control::unexpected_response();
    };
    control::print_warnings(&warnings);
    let site = arguments.site.as_deref().unwrap_or("every site");
    super::print_text(format!(
        "{site} is paused for {} until {until}; \"crawlgate resume\" ends all pauses, \"crawlgate resume --site SITE\" one",
        audience.name()
    ))
}
