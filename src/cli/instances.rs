//! `instances`: the instances of crawlgate that meet in one store, and one of them taken for gone.

use super::{Failure, control, print_json};
use crate::admin::control::{Request, Response};
use crate::admin::{StoreStatus, hindrance, stands};
use crate::exchange::{MemberStatus, Standing};
use std::io::{self, Write};

/// List the instances that share a store, or forget one that will not come back
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Exit codes: 0 fine, 1 an instance does not report or there is no store, 3 no crawlgate answers."
)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Forget>,
    #[command(flatten)]
    output: Output,
}

#[derive(Debug, clap::Args)]
struct Output {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    control: control::Socket,
}

#[derive(Debug, clap::Subcommand)]
enum Forget {
    /// Take an instance for gone that was silent: nothing that it served counts from the present on
    Forget {
        /// Its id, as the list has it
        #[arg(value_name = "ID")]
        instance: String,
        #[command(flatten)]
        output: Output,
    },
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let (request, output) = match &arguments.command {
        None => (Request::Instances, &arguments.output),
        Some(Forget::Forget { instance, output }) => (Request::Forget { instance: instance.clone() }, output),
    };
    let store = match output.control.ask(&request)? {
        Response::Instances(store) => store,
        _ => return Err(control::unexpected()),
    };
    if let Some(Forget::Forget { instance, .. }) = &arguments.command {
        // The list is that of before: an instance counts as gone from the next turn of the exchange on.
        return match output.json {
            true => print_json(&serde_json::json!({ "forgotten": instance })),
            false => Ok(writeln!(io::stdout(), "instance {instance} counts as gone")?),
        };
    }
    match output.json {
        true => print_json(&store)?,
        false => print(&mut io::stdout().lock(), &store)?,
    }
    let is_silent = |member: &MemberStatus| member.standing == Standing::Silent;
    if store.exchange.away.is_some() || store.exchange.members.iter().any(is_silent) {
        return Err(Failure::Findings);
    }
    Ok(())
}

/// The store and the instances in it.
pub(super) fn print(out: &mut impl Write, StoreStatus { url, exchange }: &StoreStatus) -> io::Result<()> {
    writeln!(out, "instances in {url}")?;
    if let Some(away) = &exchange.away {
        writeln!(out, "  the store is away since {}: {}", away.since, away.error)?;
        writeln!(out, "  nothing is known of the other instances since then; the list says how they stood")?;
    }
    if let Some(why) = exchange.accuses_not {
        writeln!(out, "  no request is called a violation: {}", hindrance(why))?;
    }
    if let Some(since) = exchange.announcement_waits_since {
        writeln!(out, "  a change of robots.txt waits for the store since {since}")?;
    }
    if let Some(ahead) = exchange.clock_ahead_ms {
        writeln!(
            out,
            "  this clock is {} ms {} the store's",
            ahead.abs(),
            if ahead < 0 { "behind" } else { "ahead of" }
        )?;
    }
    let mut members: Vec<&MemberStatus> = exchange.members.iter().collect();
    members.sort_by_key(|found| (found.standing != Standing::Present, &found.member.host, &found.member.id));
    for found in members {
        let MemberStatus { member, standing, lag, same_policies, same_crawlers } = found;
        let own = if member.id == exchange.id { " (this one)" } else { "" };
        let differs = match (same_policies, same_crawlers) {
            _ if *standing != Standing::Present => "",
            (true, true) => "",
            (false, _) => ", other policies",
            (true, false) => ", other names of crawlers",
        };
        writeln!(
            out,
            "  {}  {}  {}{own}, reported {lag:.1} s ago, policies {}{differs}, crawlgate {}",
            member.id,
            stands(found, exchange),
            member.host,
            member.policies,
            member.version
        )?;
    }
    Ok(())
}
