//! `instances`: lists the instances of crawlgate that work together through a shared store (Redis
//! or Valkey), or declares that one of them is gone.

use super::{Result, control, fine, show};
use crate::admin::control::{Request, Response};
use crate::admin::{self, StoreStatus};
use crate::peers::{MemberStatus, Standing};
use askama::Template;
use serde_json::json;
use std::fmt::Display;

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

/// Prints the store and the instances in it, and fails if one of its problems needs a person. With
/// `forget` declares an instance gone instead, and prints only that.
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
        let forgotten = json!({ "forgotten": instance });
        let text = format!("instance {instance} counts as gone");
        return show(output.json, &forgotten, text);
    }
    show(output.json, &*store, text(&store))?;
    fine(!store.has_problems())
}

#[derive(Template)]
#[template(path = "instances.txt")]
struct InstancesText<'a> {
    store: &'a StoreStatus,
    members: Vec<&'a MemberStatus>,
}

/// The store and the instances in it, the present ones first.
pub fn text(store: &StoreStatus) -> impl Display {
    let mut members: Vec<&MemberStatus> = store.exchange.members.iter().collect();
    members.sort_by_key(|found| {
        (
            found.standing != Standing::Present,
            &found.member.host,
            &found.member.id,
        )
    });
    InstancesText { store, members }
}
