//! The end of every request: it is counted, and written down when somebody wants to read it.

use super::Gateway;
use super::ctx::RequestContext;
use super::request::host;
use crate::crawlers::{Claim, Registry};
use crate::policy::SiteEntry;
use crate::policy::compiled::RuleSource;
use crate::telemetry::AccessRecord;
use crate::verdict::{Action, Decision, Kind, Verdict};
use http::{HeaderMap, HeaderName, Version, header};
use pingora_core::Error;
use pingora_proxy::Session;

/// The site's label for hosts that no site claims, and for requests that were refused unjudged.
const UNCLAIMED: &str = "unclaimed";
/// The crawler's label for a person.
const NOBODY: &str = "none";
/// Octets of a field of the log that come from outside: the log does not grow with its input.
const FIELD_LIMIT: usize = 2048;

pub(super) fn record(gateway: &Gateway, session: &Session, error: Option<&Error>, ctx: &RequestContext) {
    count(gateway, session, ctx);
    if gateway.access.enabled() {
        gateway.access.write(access_record(gateway, session, error, ctx));
    }
}

fn count(gateway: &Gateway, session: &Session, ctx: &RequestContext) {
    let metrics = &gateway.metrics;
    let Some((decision, entry)) = ctx.judged() else {
        let action = if ctx.refusal.is_some() { "refuse" } else { "pass" };
        metrics.request(UNCLAIMED, claim_of_unclaimed(gateway, ctx), kind_name(Kind::NotACrawler), action);
        return;
    };
    let site = entry.site.name.as_str();
    let crawler = crawler_label(gateway.registry, entry, decision.claim);
    metrics.request(site, crawler, kind_name(decision.kind), counted_action(decision));
    if ctx.robots_txt {
        let status = session.response_written().map_or(0, |response| response.status.as_u16());
        metrics.robots_txt(site, crawler, status, ctx.now().0);
    } else if decision.kind == Kind::Unproven {
        // Disallowed by every copy that it may hold. What only the resolved path disallows is never called a violation.
        metrics.violation(site, crawler, kind_name(decision.kind));
    }
}

/// Tokens of a policy mean nothing where there is no policy; the registry does.
fn claim_of_unclaimed<'a>(gateway: &'a Gateway, ctx: &RequestContext) -> &'a str {
    match ctx.decision.as_ref().map(|decision| decision.claim) {
        Some(Claim::Known(index)) => &gateway.registry.get(index).id,
        Some(Claim::Other) => "other",
        Some(Claim::Token(_) | Claim::Nobody) | None => NOBODY,
    }
}

/// The registry's id, the policy's token, `other`, or `none`.
fn crawler_label<'a>(registry: &'a Registry, entry: &'a SiteEntry, claim: Claim) -> &'a str {
    match claim {
        Claim::Known(index) => &registry.get(index).id,
        Claim::Token(index) => entry.site.tokens.tokens().get(usize::from(index)).map_or("other", String::as_str),
        Claim::Other => "other",
        Claim::Nobody => NOBODY,
    }
}

/// The name by which a crawler knows itself: its token, else its name.
pub(super) fn crawler_name(registry: &Registry, entry: &SiteEntry, claim: Claim) -> String {
    match claim {
        Claim::Known(index) => {
            let crawler = registry.get(index);
            crawler.tokens.first().unwrap_or(&crawler.name).clone()
        }
        Claim::Token(_) => crawler_label(registry, entry, claim).to_string(),
        Claim::Other | Claim::Nobody => "this crawler".to_string(),
    }
}

fn access_record(gateway: &Gateway, session: &Session, error: Option<&Error>, ctx: &RequestContext) -> AccessRecord {
    let request = session.req_header();
    let judged = ctx.judged();
    AccessRecord {
        time: chrono::DateTime::<chrono::Utc>::from(ctx.arrived).format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string(),
        client: ctx.client.and_then(|address| gateway.addresses.apply(address)).map(|address| address.to_string()),
        method: bounded(request.method.as_str().as_bytes()),
        host: bounded(host(request)),
        target: bounded(request.raw_path()),
        http: http_version(request.version),
        status: session.response_written().map_or(0, |response| response.status.as_u16()),
        bytes: session.body_bytes_sent() as u64,
        milliseconds: (ctx.started.elapsed().as_secs_f64() * 1e6).round() / 1e3,
        user_agent: field(&request.headers, header::USER_AGENT),
        referer: field(&request.headers, header::REFERER),
        site: judged.map(|(_, entry)| entry.site.name.clone()),
        crawler: match judged {
            Some((decision, entry)) => (decision.claim != Claim::Nobody)
                .then(|| crawler_label(gateway.registry, entry, decision.claim).to_string()),
            None => Some(claim_of_unclaimed(gateway, ctx)).filter(|label| *label != NOBODY).map(str::to_string),
        },
        verdict: judged.map(|(decision, _)| verdict_name(decision.verdict)),
        kind: judged.map(|(decision, _)| kind_name(decision.kind)),
        rule: judged.and_then(|(decision, entry)| rule_place(entry, decision)),
        action: match judged {
            Some((decision, _)) => action_name(decision.action),
            None if ctx.refusal.is_some() => "refuse",
            None => "pass",
        },
        would: judged.and_then(|(decision, _)| decision.would.map(action_name)),
        version: judged.map(|(_, entry)| entry.site.robots_txt.version.to_string()),
        error: error.map(|error| error.etype().as_str().to_string()),
    }
}

fn field(headers: &HeaderMap, name: HeaderName) -> Option<String> {
    headers.get(name).map(|value| bounded(value.as_bytes()))
}

fn bounded(octets: &[u8]) -> String {
    String::from_utf8_lossy(&octets[..octets.len().min(FIELD_LIMIT)]).into_owned()
}

/// `file:line:column` of the rule, or of the group when it has no rule that matches.
fn rule_place(entry: &SiteEntry, decision: &Decision) -> Option<String> {
    let rule = decision.rule?;
    let group = usize::from(rule.group);
    let source = match rule.rule {
        Some(rule) => entry.site.rule_sources.get(group)?.get(usize::try_from(rule).ok()?)?,
        None => entry.site.group_sources.get(group)?,
    };
    match source {
        RuleSource::Policy(span) | RuleSource::Purpose(span) => {
            Some(format!("{}:{}:{}", entry.site.policy.source.name, span.line, span.column))
        }
        RuleSource::Staging => Some("environment: staging".to_string()),
    }
}

fn http_version(version: Version) -> &'static str {
    match version {
        Version::HTTP_09 => "0.9",
        Version::HTTP_10 => "1.0",
        Version::HTTP_2 => "2",
        Version::HTTP_3 => "3",
        _ => "1.1",
    }
}

fn verdict_name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Allowed => "allowed",
        Verdict::Disallowed => "disallowed",
        Verdict::NotBound => "not_bound",
        Verdict::NotACrawler => "not_a_crawler",
    }
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::NotACrawler => "not_a_crawler",
        Kind::Allowed => "allowed",
        Kind::StaleCopy => "stale_copy",
        Kind::Unproven => "unproven",
        Kind::Ambiguous => "ambiguous",
        Kind::NotBound => "not_bound",
    }
}

fn action_name(action: Action) -> &'static str {
    match action {
        Action::Pass => "pass",
        Action::Block(_) => "block",
        Action::Pause { .. } => "pause",
        Action::RobotsTxt => "robots_txt",
    }
}

/// What was done, or under observation what would have been.
fn counted_action(decision: &Decision) -> &'static str {
    match (decision.action, decision.would) {
        (Action::Pass, Some(Action::Block(_))) => "would_block",
        (Action::Pass, Some(Action::Pause { .. })) => "would_pause",
        (action, _) => action_name(action),
    }
}
