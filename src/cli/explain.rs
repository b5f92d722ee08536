//! The command `explain`: shows how crawlgate would treat one HTTP request, and why. It computes
//! the answer from the policy files, or with `--live` asks the running crawlgate.

use super::{
    Failure, Result, control, file_failure, findings_unless, now, origin_copy, policies,
    print_json, print_result,
};
use crate::admin::ExplainRequest;
use crate::admin::control::{ControlRequest, ControlResponse};
use crate::crawlers::Registry;
use crate::files;
use crate::heads::likely_content_type;
use crate::policy::{ParsedVersion, Snapshot, SupersededVersion};
use crate::time::Timestamp;
use crate::verdict::{
    CachedVersions, Claimant, Explanation, HistoryBasis, Identity, Kind, RequestFacts,
    RequestToJudge, ResponseFacts, explain_request, explain_unclaimed, identity_by_policy,
};
use std::io::Write;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

const IMPOSTOR_HINT: &str = "\
A running crawlgate reports an impostor only if these networks verified a visit within seven days. Otherwise it treats the
request as unverified. Use --live to ask the running crawlgate.";

const LIVE_HINT: &str = "\
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
    #[arg(long, value_name = "CACHED", conflicts_with = "live")]
    cached: Option<String>,
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
    control: control::ControlFlag,
    #[command(flatten)]
    origin: origin_copy::OriginFlags,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Path and query, as sent
    target: String,
}

impl Arguments {
    /// The type of the response: that of the flag, else that of the path's extension.
    fn content_type(&self) -> &str {
        self.content_type
            .as_deref()
            .unwrap_or_else(|| likely_content_type(self.target.as_bytes()))
    }
}

/// Explains the request. Without `--cached` the crawler may have any version that was published
/// lately. Fails if no site has the host.
pub fn run(arguments: &Arguments) -> Result {
    if !arguments.target.starts_with('/') {
        return Err(Failure::Usage(format!(
            "`{}` is not a path; write a path that begins with `/`, and the host in --host",
            arguments.target
        )));
    }
    if arguments.live {
        return explain_live(arguments);
    }
    let now = now();
    let snapshot = policies::snapshot_for_host(
        &arguments.policies,
        &arguments.host,
        &arguments.origin.read()?,
        now,
    )?;
    let registry = Registry::builtin();
    let mut facts = RequestFacts {
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
    let cached = cached_version(arguments.cached.as_deref(), registry, now)?;
    let explanation = match Claimant::find_by_name(&snapshot, registry, &facts) {
        None => explain_unclaimed(registry, &facts, &response),
        Some(claimant) => {
            facts.identity = identity_by_policy(&claimant.entry.site, &facts, claimant.claim, true);
            let cached_versions = match arguments.cached.as_deref() {
                None => CachedVersions::for_any_crawler(claimant, now),
                Some(name) => CachedVersions {
                    versions: cached.as_slice(),
                    cached: u64::from(cached.is_some()),
                    basis: HistoryBasis::Observed,
                    was_served: name != "none",
                    ..CachedVersions::default()
                },
            };
            explain_request(
                &RequestToJudge {
                    registry,
                    facts,
                    claimant,
                    cached_versions,
                },
                &response,
            )
        }
    };
    print_explanation(arguments, &explanation, &snapshot)
}

/// Prints the explanation, with a hint if the running crawlgate may know more. Fails if no site has
/// the host.
fn print_explanation(
    arguments: &Arguments,
    explanation: &Explanation,
    snapshot: &Snapshot,
) -> Result {
    let claimed = explanation.site.is_some();
    if arguments.json {
        print_json(explanation)?;
        return findings_unless(claimed);
    }
    let colour = super::supports_colour(&std::io::stdout());
    let mut out = super::stdout_printer(colour);
    out.write_all(explanation.to_text(snapshot, colour).as_bytes())?;
    if explanation.identity == Identity::Impostor {
        writeln!(out, "\n{}", IMPOSTOR_HINT)?;
    }
    if !claimed {
        let policies = arguments.policies.display();
        let host = &arguments.host;
        return Err(Failure::FindingsMessage(format!(
            "no policy in {policies} is for {host}"
        )));
    }
    if explanation.kind == Kind::Unproven && arguments.cached.is_none() {
        writeln!(out, "\n{LIVE_HINT}")?;
    }
    Ok(())
}

/// The file of `--cached`, as a version that was superseded now. `None` for `none`, `current`, and
/// without the flag.
fn cached_version(
    cached: Option<&str>,
    registry: &Registry,
    now: Timestamp,
) -> Result<Option<SupersededVersion>> {
    let Some(file) = cached.filter(|cached| !matches!(*cached, "none" | "current")) else {
        return Ok(None);
    };
    let text = files::read_argument(file.as_ref(), files::MAX_FILE_BYTES)
        .map_err(file_failure("read", file.as_ref()))?;
    Ok(Some(SupersededVersion {
        parsed: Arc::new(ParsedVersion::parse(text.into(), registry)),
        since: now,
        superseded_at: now,
    }))
}

/// Prints the explanation of the running crawlgate. Fails if no site has the host.
fn explain_live(arguments: &Arguments) -> Result {
    let question = ExplainRequest {
        host: arguments.host.clone(),
        target: arguments.target.clone(),
        user_agent: arguments.user_agent.clone(),
        ip: arguments.ip,
        content_type: Some(arguments.content_type().to_owned()),
        status: arguments.status,
        origin_tags: arguments.origin_tags.clone(),
        colour: !arguments.json && super::supports_colour(&std::io::stdout()),
    };
    let ControlResponse::Explained(answer) =
        arguments.control.send(&ControlRequest::Explain(question))?
    else {
        return control::unexpected_response();
    };
    print_result(arguments.json, &answer.explanation, &answer.text)?;
    findings_unless(!answer.explanation["site"].is_null())
}
