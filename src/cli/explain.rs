//! `explain`: shows how crawlgate would treat a request, and why. It computes the answer from the
//! policy files, or asks the running crawlgate with `--live`.

use super::{Failure, Result, cannot, control, fine, now, origin_copy, policies, print_json, show};
use crate::admin::LiveQuestion;
use crate::admin::control::{Request, Response};
use crate::crawlers::Registry;
use crate::files;
use crate::heads::likely_type;
use crate::policy::{ParsedVersion, Snapshot, SupersededVersion};
use crate::time::Timestamp;
use crate::verdict::{
    CachedVersions, Case, Claimant, Explanation, Facts, HistoryBasis, Identity, Kind,
    ResponseFacts, explain_for, identity_by_policy, report_unclaimed,
};
use std::io::Write;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// Without a running crawlgate it is unknown whether the list has verified a visit.
const ONLY_WHERE_VERIFIED: &str = "\
A running crawlgate reports an impostor only if these networks verified a visit within seven days. Otherwise it treats the
request as unverified. Use --live to ask the running crawlgate.";

const ASK_THE_RUNNING_ONE: &str = "\
This answer knows no visits. Use --live to ask the running crawlgate, which knows what the crawler may have cached, until
when, and what `robots.previous` says.";

/// Explain one request: crawler, group, rule with its line, verdict, action, X-Robots-Tag
#[derive(clap::Args)]
pub struct Arguments {
    /// The host of the request
    #[arg(long)]
    host: String,
    /// A user agent, or the token or name of a crawler, like GPTBot
    #[arg(long, value_name = "UA")]
    user_agent: String,
    /// The address of the client
    #[arg(long)]
    ip: Option<IpAddr>,
    /// The content type of the response, for tags that depend on it [default: by the ending of the
    /// path]
    #[arg(long = "type", value_name = "TYPE")]
    content_type: Option<String>,
    /// The status of the response, for tags that depend on it
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u16).range(200..=599))]
    status: u16,
    /// The robots.txt that the crawler has cached: `none`, `current`, or a file [default: unknown]
    #[arg(long, value_name = "HELD", conflicts_with = "live")]
    held: Option<String>,
    /// A line of X-Robots-Tag that the origin sends, like `googlebot: noindex`; may be repeated
    #[arg(long = "origin-tag", value_name = "LINE")]
    origin_tags: Vec<String>,
    /// The policy directory
    #[arg(
        long,
        value_name = "DIR",
        default_value = "policies",
        conflicts_with = "live"
    )]
    policies: PathBuf,
    /// Ask the running crawlgate, which knows cached versions, crawl rates and marks
    #[arg(long, conflicts_with_all = ["origin_robots", "state"])]
    live: bool,
    #[command(flatten)]
    control: control::Socket,
    #[command(flatten)]
    origin: origin_copy::OriginFrom,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Path and query, as sent
    target: String,
}

impl Arguments {
    /// The type of the response: that of the flag, else the one that the path's extension suggests.
    fn content_type(&self) -> &str {
        self.content_type
            .as_deref()
            .unwrap_or_else(|| likely_type(self.target.as_bytes()))
    }
}

/// Explains the request by the policy files, or asks the running crawlgate with `--live`. Without
/// `--held` the crawler may have any version that was published lately. Fails if no site has the
/// host.
pub fn run(arguments: &Arguments) -> Result {
    if !arguments.target.starts_with('/') {
        return Err(Failure::Usage(format!(
            "`{}` is not a path; write a path that begins with `/`, and the host in --host",
            arguments.target
        )));
    }
    if arguments.live {
        return ask_the_running_one(arguments);
    }
    let now = now();
    let snapshot = policies::for_host(
        &arguments.policies,
        &arguments.host,
        &arguments.origin.read()?,
        now,
    )?;
    let registry = Registry::builtin();
    let mut facts = Facts {
        host: arguments.host.as_bytes(),
        target: arguments.target.as_bytes(),
        method: b"GET",
        user_agent: arguments.user_agent.as_bytes(),
        client: arguments.ip.map(|address| address.to_canonical()),
        identity: Identity::Unverified,
        now,
    };
    let content_type = Some(arguments.content_type());
    let response = ResponseFacts {
        status: arguments.status,
        content_type,
        origin_tags: &arguments.origin_tags,
    };
    let cached = superseded(arguments.held.as_deref(), registry, now)?;
    let explanation = match Claimant::named(&snapshot, registry, &facts) {
        None => report_unclaimed(registry, &facts, &response),
        Some(claimant) => {
            facts.identity = identity_by_policy(&claimant.entry.site, &facts, claimant.claim, true);
            let cached_versions = match arguments.held.as_deref() {
                None => CachedVersions::of_anyone(claimant, now),
                Some(held) => CachedVersions {
                    versions: cached.as_slice(),
                    cached: u64::from(cached.is_some()),
                    basis: HistoryBasis::Observed,
                    was_served: held != "none",
                    ..CachedVersions::default()
                },
            };
            explain_for(
                &Case {
                    registry,
                    facts,
                    claimant,
                    cached_versions,
                },
                &response,
            )
        }
    };
    print(arguments, &explanation, &snapshot)
}

/// Prints the explanation as JSON or text, with a hint where only the running crawlgate knows more.
/// Fails if no site has the host.
fn print(arguments: &Arguments, explanation: &Explanation, snapshot: &Snapshot) -> Result {
    let claimed = explanation.site.is_some();
    if arguments.json {
        print_json(explanation)?;
        return fine(claimed);
    }
    let colour = super::colour(&std::io::stdout());
    let mut out = super::out(colour);
    out.write_all(explanation.to_text(snapshot, colour).as_bytes())?;
    if explanation.identity == Identity::Impostor {
        writeln!(out, "\n{}", ONLY_WHERE_VERIFIED)?;
    }
    if !claimed {
        let policies = arguments.policies.display();
        let host = &arguments.host;
        return Err(Failure::Found(format!(
            "no policy in {policies} is for {host}"
        )));
    }
    if explanation.kind == Kind::Unproven && arguments.held.is_none() {
        writeln!(out, "\n{ASK_THE_RUNNING_ONE}")?;
    }
    Ok(())
}

/// The robots.txt of the file that `--held` names, as a version that was superseded now. `None` for
/// `none`, `current`, and without the flag.
fn superseded(
    held: Option<&str>,
    registry: &Registry,
    now: Timestamp,
) -> Result<Option<SupersededVersion>> {
    let Some(file) = held.filter(|held| !matches!(*held, "none" | "current")) else {
        return Ok(None);
    };
    let text = files::read_argument(file.as_ref(), files::MAX_BYTES)
        .map_err(cannot("read", file.as_ref()))?;
    Ok(Some(SupersededVersion {
        parsed: Arc::new(ParsedVersion::read(text.into(), registry)),
        since: now,
        superseded_at: now,
    }))
}

/// Asks the running crawlgate and prints its answer. Fails if no site has the host.
fn ask_the_running_one(arguments: &Arguments) -> Result {
    let question = LiveQuestion {
        host: arguments.host.clone(),
        target: arguments.target.clone(),
        user_agent: arguments.user_agent.clone(),
        ip: arguments.ip,
        content_type: Some(arguments.content_type().to_owned()),
        status: arguments.status,
        origin_tags: arguments.origin_tags.clone(),
        colour: !arguments.json && super::colour(&std::io::stdout()),
    };
    let Response::Explained(answer) = arguments.control.ask(&Request::Explain(question))? else {
        return control::unexpected();
    };
    show(arguments.json, &answer.explanation, &answer.text)?;
    fine(!answer.explanation["site"].is_null())
}
