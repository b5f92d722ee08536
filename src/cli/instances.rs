//! The command `instances`: lists the instances of crawlgate that share a store (Redis or Valkey).
//! `instances forget` declares that an instance is gone for good, so that the other instances no
//! longer wait for its reports.

use super::{Result, control, findings_failure_unless, print_result};
use crate::admin::control::{ControlRequest, ControlResponse};
use crate::admin::{self, StoreStatus};
use crate::peers::{MemberState, MemberStatus};
use askama::Template;
use serde_json::json;
use std::fmt::Display;

/// List the instances that share a store, or forget one that is gone
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Exit codes: 0 fine, 1 something needs attention or there is no store, 2 wrong usage, 3 crawlgate is not running."
)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<InstancesCommand>,
    #[command(flatten)]
    output: control::ControlOutputFlags,
}

#[derive(clap::Subcommand)]
enum InstancesCommand {
    /// Treat a silent instance as gone: what it served no longer counts
    Forget {
        /// The id in the list
        #[arg(value_name = "ID")]
        instance: String,
        #[command(flatten)]
        output: control::ControlOutputFlags,
    },
}

/// Prints the store and its instances, and fails if there are problems. With `forget`, declares an
/// instance gone, and prints only that.
pub fn run(arguments: &Arguments) -> Result {
    let (request, output) = match &arguments.command {
        None => (ControlRequest::Instances, &arguments.output),
        Some(InstancesCommand::Forget { instance, output }) => (
            ControlRequest::Forget {
                instance: instance.clone(),
            },
            output,
        ),
    };
    let ControlResponse::Instances(store) = output.control.send(&request)? else {
        return control::unexpected_response();
    };
    if let Some(InstancesCommand::Forget { instance, .. }) = &arguments.command {
        // The response still lists it: it counts as gone from the next turn of the exchange on.
        let forgotten = json!({ "forgotten": instance });
        let text = format!("instance {instance} is treated as gone");
        return print_result(output.json, &forgotten, text);
    }
    print_result(output.json, &*store, instances_text(&store))?;
    findings_failure_unless(store.problems().is_empty())
}

#[derive(Template)]
#[template(path = "instances.txt")]
struct InstancesText<'a> {
    store: &'a StoreStatus,
    members: Vec<&'a MemberStatus>,
}

/// The store and its instances, present ones first, as text.
pub fn instances_text(store: &StoreStatus) -> impl Display {
    let mut members: Vec<&MemberStatus> = store.exchange.members.iter().collect();
    members.sort_by_key(|found| {
        (
            found.standing != MemberState::Present,
            &found.member.host,
            &found.member.id,
        )
    });
    InstancesText { store, members }
}
