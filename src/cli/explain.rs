//! The command `explain`: shows how crawlgate would treat one HTTP request, and why. By default it
//! computes the answer from the policy files; with `--live` it asks the running crawlgate.

use super::{
    Result, control, findings_failure_unless, now, origin_copy, policies, print_json, print_result,
};
use crate::admin::ExplainRequest;
use crate::admin::control::{ControlRequest, ControlResponse};
use crate::crawlers::Registry;
use crate::heads::likely_content_type;
use crate::policy::Snapshot;
use crate::policy::lint::nearest_token;
use crate::robots::{escape_url, url_path};
use crate::verdict::{
    CachedVersions, CachedVersionsBasis, Explanation, Identity, Kind, RequestFacts, RequestToJudge,
    ResponseFacts, SiteClaim, explain_request, explain_unclaimed, identity_by_policy,
};
use std::io::Write;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

const IMPOSTOR_HINT: &str = "\
A running crawlgate calls this an impostor only if these networks verified another visit within seven days. Until then the
request is not verified. With --live the running crawlgate answers.";

const LIVE_HINT: &str = "\
This is from the policy files alone, without the lists of addresses that operators publish. With --live the running
crawlgate answers. It also knows what the crawler may have cached, and until when. If an older robots.txt (such as that of
robots.previous) allows the URL, the crawler is not blocked before that time.";

/// Explain what crawlgate does with a request, and which line of the policy decides
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  crawlgate explain --host shop.example --user-agent GPTBot /prices
  crawlgate explain --live --host shop.example --user-agent GPTBot --ip 203.0.113.5 /prices

Exit codes: 0 fine, 1 no policy is for the host, 2 wrong usage, 3 failed.")]
pub struct Arguments {
    /// The host, like shop.example [default: that of the URL]
    #[arg(long)]
    host: Option<String>,
    /// A user agent, or the name or token of a crawler, like GPTBot
    #[arg(long, value_name = "UA")]
    user_agent: String,
    /// The address of the client, to verify it by the networks of the policy
    #[arg(long)]
    ip: Option<IpAddr>,
    /// The content type of the response, for its X-Robots-Tag [default: guessed from the path]
    #[arg(long = "type", value_name = "TYPE")]
    content_type: Option<String>,
    /// The status of the response, for its X-Robots-Tag
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u16).range(200..=599))]
    status: u16,
    /// The robots.txt that the crawler has cached [default: unknown]
    #[arg(long, value_parser = ["none", "current"], conflicts_with = "live")]
    cached: Option<String>,
    /// An X-Robots-Tag that the origin sends, like "googlebot: noindex"; may be repeated
    #[arg(long = "origin-tag", value_name = "LINE")]
    origin_tags: Vec<String>,
    /// The policy directory [default: policies, or as in --config]
    #[arg(long, value_name = "DIR", conflicts_with = "live")]
    policies: Option<PathBuf>,
    /// Ask the running crawlgate, which also knows what the crawler may have cached
    #[arg(long, conflicts_with_all = ["origin_robots", "state"])]
    live: bool,
    #[command(flatten)]
    control: control::ControlFlag,
    #[command(flatten)]
    origin: origin_copy::OriginFlags,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The URL, or a path with its query, like "/search?q=a"
    #[arg(value_name = "URL", value_parser = parse_url)]
    url: RequestedUrl,
}

/// The URL or path of a request.
#[derive(Clone)]
struct RequestedUrl {
    /// `None` for a path.
    host: Option<String>,
    /// Path and query, as a crawler sends them.
    target: String,
}

/// Parses an http(s) URL, or a path with its query.
fn parse_url(written: &str) -> Result<RequestedUrl, &'static str> {
    let host = super::url_host(written);
    let target = match host {
        Some(_) => String::from_utf8_lossy(&url_path(written.as_bytes())).into_owned(),
        None if written.starts_with('/') => {
            let (path, _fragment) = written.split_once('#').unwrap_or((written, ""));
            path.to_owned()
        }
        None => return Err("write a path that begins with /, or a URL with https://"),
    };
    Ok(RequestedUrl {
        host,
        target: escape_url(&target),
    })
}

impl Arguments {
    /// The host of the flag or of the URL. Fails without both, and if they differ.
    fn host(&self) -> Result<&str> {
        let in_url = self.url.host.as_deref();
        match self.host.as_deref().or(in_url) {
            Some(host) if in_url.is_none_or(|other| other.eq_ignore_ascii_case(host)) => Ok(host),
            _ => fail!(Usage, "name one host: in the URL, or with --host"),
        }
    }

    /// The type of the response: that of the flag, else that of the path's extension.
    fn content_type(&self) -> &str {
        self.content_type
            .as_deref()
            .unwrap_or_else(|| likely_content_type(self.url.target.as_bytes()))
    }

    /// The known name that is probably meant. Also how to name the type, if the tags depend on it
    /// and it is only guessed.
    fn hints(&self, tags_depend_on_type: bool) -> String {
        let mut hints = String::new();
        if let Some(near) = nearest_token(&self.user_agent, Registry::builtin()) {
            let name = &self.user_agent;
            hints = format!("\nNo known crawler is called \"{name}\". Did you mean {near}?\n");
        }
        if self.content_type.is_none() && tags_depend_on_type {
            let content_type = self.content_type();
            hints += &format!(
                "\nX-Robots-Tag depends on the type of the response. This is for {content_type}, guessed from the path. To \
                 ask for another type, add --type.\n"
            );
        }
        hints
    }
}

/// Explains the request. Without `--cached` the crawler may have any version that was published
/// lately. Fails if no site has the host.
pub fn run(arguments: &Arguments) -> Result {
    let host = arguments.host()?;
    if arguments.live {
        return explain_live(arguments, host);
    }
    let now = now();
    let settings = arguments.control.config.settings()?;
    let origins = arguments.origin.read_or_settings(settings.as_ref())?;
    let settings = settings.unwrap_or_default();
    let policies = arguments.policies.as_ref().unwrap_or(&settings.policies);
    let snapshot = policies::snapshot_for_host(policies, host, &origins, now)?;
    let registry = Registry::builtin();
    let mut facts = RequestFacts {
        host: host.as_bytes(),
        target: arguments.url.target.as_bytes(),
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
    let explanation = match SiteClaim::find_by_name(&snapshot, registry, &facts) {
        None => explain_unclaimed(registry, &facts, &response),
        Some(claimant) => {
            facts.identity = identity_by_policy(&claimant.entry.site, &facts, claimant.claim, true);
            let cached_versions = match arguments.cached.as_deref() {
                None => CachedVersions::for_any_crawler(claimant, now),
                Some(name) => CachedVersions {
                    basis: CachedVersionsBasis::Observed,
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
    print_explanation(arguments, &explanation, &snapshot, policies)
}

/// Prints the explanation, with a hint if the running crawlgate may know more. Fails if no site has
/// the host.
fn print_explanation(
    arguments: &Arguments,
    explanation: &Explanation,
    snapshot: &Snapshot,
    policies: &Path,
) -> Result {
    let claimed = explanation.site.is_some();
    if arguments.json {
        print_json(explanation)?;
        return findings_failure_unless(claimed);
    }
    let colour = super::supports_colour(&std::io::stdout());
    let mut out = super::stdout_printer(colour);
    out.write_all(explanation.to_text(snapshot, colour).as_bytes())?;
    let hints = arguments.hints(explanation.tags_depend_on_type);
    out.write_all(hints.as_bytes())?;
    if explanation.identity == Identity::Impostor {
        writeln!(out, "\n{IMPOSTOR_HINT}")?;
    }
    if !claimed {
        let policies = policies.display();
        let host = arguments.host()?;
        fail!(FindingsMessage, "no policy in {policies} is for {host}");
    }
    if explanation.kind == Kind::Unproven && arguments.cached.is_none()
        || explanation.identity == Identity::Unverified && arguments.ip.is_some()
    {
        writeln!(out, "\n{LIVE_HINT}")?;
    }
    Ok(())
}

/// Prints the explanation of the running crawlgate. Fails if no site has the host.
fn explain_live(arguments: &Arguments, host: &str) -> Result {
    let question = ExplainRequest {
        host: host.to_owned(),
        target: arguments.url.target.clone(),
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
    let hints = arguments.hints(answer.explanation["tags_depend_on_type"] == true);
    print_result(arguments.json, &answer.explanation, answer.text + &hints)?;
    findings_failure_unless(!answer.explanation["site"].is_null())
}
