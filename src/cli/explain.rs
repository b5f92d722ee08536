//! `explain`: why a request is treated as it is.

use super::{Failure, now, origin_copy, policies, print_json};
use crate::crawlers::Registry;
use crate::verdict::{Facts, Identity, Question, explain_response};
use std::io::Write;
use std::net::IpAddr;
use std::path::PathBuf;

/// Say why: crawler, group, rule with its line, verdict, action, X-Robots-Tag
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The host that is asked for
    #[arg(long)]
    host: String,
    /// A user agent, or the token or name of a crawler, like GPTBot
    #[arg(long, value_name = "UA")]
    user_agent: String,
    /// The address that the request comes from
    #[arg(long)]
    ip: Option<IpAddr>,
    /// The content type of the response, for tags that depend on it
    #[arg(long = "type", value_name = "TYPE")]
    content_type: Option<String>,
    /// The status of the response, for tags that depend on it
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u16).range(200..=599))]
    status: u16,
    /// A line of X-Robots-Tag that the origin sends, like `googlebot: noindex`; may be repeated
    #[arg(long = "origin-tag", value_name = "LINE")]
    origin_tags: Vec<String>,
    /// The policy directory
    #[arg(long, value_name = "DIR", default_value = "policies")]
    policies: PathBuf,
    #[command(flatten)]
    origin: origin_copy::OriginFrom,
    /// For a program
    #[arg(long)]
    json: bool,
    /// Path and query, as sent
    target: String,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    if !arguments.target.starts_with('/') {
        return Err(Failure::Usage(format!(
            "`{}` is not a path: it begins with `/`; the host goes into --host",
            arguments.target
        )));
    }
    let now = now();
    let snapshot = policies::for_host(&arguments.policies, &arguments.host, &arguments.origin.read()?, now)?;
    let question = Question {
        facts: Facts {
            host: arguments.host.as_bytes(),
            target: arguments.target.as_bytes(),
            method: b"GET",
            user_agent: arguments.user_agent.as_bytes(),
            client: arguments.ip,
            identity: Identity::Unverified,
            now,
        },
        status: arguments.status,
        content_type: arguments.content_type.as_deref(),
    };
    let explanation = explain_response(&snapshot, Registry::builtin(), &question, &arguments.origin_tags);
    if arguments.json {
        return print_json(&explanation);
    }
    let mut out = std::io::stdout().lock();
    let colour = super::colour(&out);
    out.write_all(explanation.to_text(&snapshot, colour).as_bytes())?;
    Ok(())
}
