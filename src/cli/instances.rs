//! `instances`: lists the instances of crawlgate that work together through a shared store (Redis
//! or Valkey), or declares that one of them is gone.

use super::{Result, control, fine, show};
use crate::admin::control::{Request, Response};
use crate::admin::{StoreStatus, hindrance, reported, stands};
use crate::exchange::{BegunAnew, ExchangeStatus, MemberStatus, Standing};
use serde_json::json;
use std::io::{self, Write};

/// List the instances that share a store, or forget one that will not come back
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Exit codes: 0 fine, 1 the store, an instance or the clock needs a person, or there is no store, 3 no crawlgate answers."
)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Forget>,
    #[command(flatten)]
    output: control::Output,
}

#[derive(clap::Subcommand)]
enum Forget {
    /// Take an instance for gone that was silent: nothing that it served counts from the present on
    Forget {
        /// Its id, as the list has it
        #[arg(value_name = "ID")]
        instance: String,
        #[command(flatten)]
        output: control::Output,
    },
}

pub fn run(arguments: &Arguments) -> Result {
    let (request, output) = match &arguments.command {
        None => (Request::Instances, &arguments.output),
        Some(Forget::Forget { instance, output }) => (
            Request::Forget {
                instance: instance.clone(),
            },
            output,
        ),
    };
    let Response::Instances(store) = output.control.ask(&request)? else {
        return control::unexpected();
    };
    if let Some(Forget::Forget { instance, .. }) = &arguments.command {
        // The list is that of before: an instance counts as gone from the next turn of the exchange
        // on.
        return show(output.json, &json!({ "forgotten": instance }), |out, _| {
            writeln!(out, "instance {instance} counts as gone")
        });
    }
    show(output.json, &*store, print)?;
    fine(!store.has_problems())
}

/// The store and the instances in it.
pub fn print(out: &mut impl Write, store: &StoreStatus) -> io::Result<()> {
    let StoreStatus { url, exchange } = store;
    writeln!(out, "instances in {url}")?;
    if let Some(away) = &exchange.away {
        let word = if away.is_refused { "not used" } else { "away" };
        writeln!(
            out,
            "  the store is {word} since {}: {}",
            away.since, away.error
        )?;
        if exchange.members.len() > 1 {
            writeln!(
                out,
                "  nothing is known of the other instances since then; the list says how they stood"
            )?;
        }
    }
    if let Some(since) = exchange.withholds_robots_txt_since {
        writeln!(out, "  /robots.txt is answered with 503 since {since}")?;
    }
    if let Some(why) = exchange.accuses_not {
        let why = hindrance(why, exchange.away.as_ref());
        writeln!(out, "  no request is called a violation: {why}")?;
    }
    if let Some(BegunAnew { at, until }) = exchange.begun_anew {
        writeln!(
            out,
            "  observation began anew at {at}: the store is not the one that this instance used before\n  \
             until {until} at the latest, no request is a violation that a copy from before may allow"
        )?;
    }
    if let Some(since) = exchange.announcement_waits_since {
        writeln!(
            out,
            "  a change of robots.txt waits for the store since {since}"
        )?;
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
    members.sort_by_key(|found| {
        (
            found.standing != Standing::Present,
            &found.member.host,
            &found.member.id,
        )
    });
    for found in members {
        print_member(out, found, exchange)?;
    }
    Ok(())
}

/// A line about an instance.
fn print_member(
    out: &mut impl Write,
    found: &MemberStatus,
    exchange: &ExchangeStatus,
) -> io::Result<()> {
    let MemberStatus {
        member,
        standing,
        same_policies,
        same_crawlers,
        ..
    } = found;
    let own = if member.id == exchange.id {
        " (this one)"
    } else {
        ""
    };
    let differs = match (standing, same_policies, same_crawlers) {
        (Standing::Present, false, _) => ", other policies",
        (Standing::Present, true, false) => ", other names of crawlers",
        _ => "",
    };
    writeln!(
        out,
        "  {}  {}  {}{own}, {}, policies {}{differs}, crawlgate {}",
        member.id,
        stands(found, exchange),
        member.host,
        reported(found),
        member.policies,
        member.version
    )
}
