//! The end of every request: it is counted, and written down when somebody wants to read it.

use super::ctx::RequestContext;
use super::heads::host;
use super::{Gateway, behaviour};
use crate::crawlers::{Claim, Registry};
use crate::policy::SiteEntry;
use crate::telemetry::{AccessRecord, UNCLAIMED};
use crate::time::Timestamp;
use crate::verdict::{Action, Decision, Kind, claim_label, rule_place};
use http::{HeaderMap, HeaderName, Version, header};
use pingora_core::Error;
use pingora_proxy::Session;
use std::borrow::Cow;

/// The crawler's label for a person.
const NOBODY: &str = "none";
/// Octets of a field of the log that come from outside: the log does not grow with its input.
const FIELD_LIMIT: usize = 2048;

pub(super) fn record(gateway: &Gateway, session: &Session, error: Option<&Error>, ctx: &RequestContext) {
    // Before it is counted: whoever sees the count may rely on the rest.
    note_copy(gateway, session, ctx);
    count(gateway, session, ctx);
    if gateway.access.enabled() {
        gateway.access.write(&access_record(gateway, session, error, ctx));
    }
}

/// Notes who got which robots.txt: a copy that was written whole, or word that the one it has is good. HEAD gives
/// nobody a copy. A 304 to a date is only sent to whom the ledger knows to have the version in force.
fn note_copy(gateway: &Gateway, session: &Session, ctx: &RequestContext) {
    let request = session.req_header();
    let Some((decision, entry)) = ctx.judged().filter(|(decision, _)| decision.robots_txt) else { return };
    if !ctx.answered || request.method != http::Method::GET {
        return;
    }
    let status = session.response_written().map_or(0, |response| response.status.as_u16());
    let (registry, now) = (gateway.registry, Timestamp::from(gateway.clock.now()));
    match (decision.action, status) {
        (Action::RobotsTxt, 200 | 304) => {
            behaviour::shown(gateway, request, ctx, decision, entry, now);
            gateway.ledger.served(registry, entry, host(request), decision.claim, now);
        }
        (_, 500..) => gateway.ledger.unreachable(registry, entry, host(request), decision.claim, now),
        _ => {}
    }
}

fn count(gateway: &Gateway, session: &Session, ctx: &RequestContext) {
    let metrics = &gateway.metrics;
    let Some((decision, entry)) = ctx.judged() else {
        let action = if ctx.rejection.is_some() { "refuse" } else { "pass" };
        metrics.request(UNCLAIMED, claim_of_unclaimed(gateway, ctx), Kind::NotACrawler.name(), action);
        return;
    };
    let site = entry.site.name.as_str();
    let crawler = crawler_label(gateway.registry, entry, decision.claim);
    metrics.request(site, crawler, decision.recorded_kind(), counted_action(decision));
    if decision.claim != Claim::Nobody {
        metrics.identity(identity_label(gateway.registry, decision.claim), ctx.identity.outcome());
    }
    if decision.robots_txt {
        let status = session.response_written().map_or(0, |response| response.status.as_u16());
        metrics.robots_txt(site, crawler, status, ctx.now().0);
        return;
    }
    // Under `mode: off` nothing is recorded.
    if let Some(kind) = behaviour::violation(decision) {
        metrics.violation(site, crawler, kind);
    }
    if behaviour::is_event(decision) {
        let event = || behaviour::event(gateway, session, ctx, decision, entry);
        gateway.events.record(site, crawler, ctx.arrived, event);
    }
}

/// Tokens of a policy mean nothing where there is no policy; the registry does.
fn claim_of_unclaimed<'a>(gateway: &'a Gateway, ctx: &RequestContext) -> &'a str {
    let claim = ctx.decision.as_ref().map_or(Claim::Nobody, |decision| decision.claim);
    claim_label(claim, gateway.registry, None).unwrap_or(NOBODY)
}

/// The registry's id, the policy's token, `other`, or `none`.
pub(super) fn crawler_label<'a>(registry: &'a Registry, entry: &'a SiteEntry, claim: Claim) -> &'a str {
    claim_label(claim, registry, Some(&entry.site)).unwrap_or(NOBODY)
}

/// The registry's id or `other`: nobody publishes how a token of a policy is proven, and it would outlive its site.
fn identity_label(registry: &Registry, claim: Claim) -> &str {
    claim_label(claim, registry, None).unwrap_or("other")
}

fn access_record<'a>(
    gateway: &'a Gateway,
    session: &'a Session,
    error: Option<&'a Error>,
    ctx: &'a RequestContext,
) -> AccessRecord<'a> {
    let request = session.req_header();
    let judged = ctx.judged();
    AccessRecord {
        time: ctx.arrived,
        client: ctx.client.and_then(|address| gateway.addresses.apply(address)),
        method: bounded(request.method.as_str().as_bytes()),
        host: bounded(host(request)),
        target: bounded(request.raw_path()),
        http: http_version(request.version),
        status: session.response_written().map_or(0, |response| response.status.as_u16()),
        bytes: session.body_bytes_sent() as u64,
        milliseconds: (ctx.started.elapsed().as_secs_f64() * 1e6).round() / 1e3,
        user_agent: field(&request.headers, header::USER_AGENT),
        referer: field(&request.headers, header::REFERER),
        site: judged.map(|(_, entry)| entry.site.name.as_str()),
        crawler: match judged {
            Some((decision, entry)) => {
                (decision.claim != Claim::Nobody).then(|| crawler_label(gateway.registry, entry, decision.claim))
            }
            None => Some(claim_of_unclaimed(gateway, ctx)).filter(|label| *label != NOBODY),
        },
        verdict: judged.map(|(decision, _)| decision.verdict.name()),
        kind: judged.map(|(decision, _)| decision.recorded_kind()),
        never_fetched: judged.is_some_and(|(decision, _)| decision.never_fetched && decision.recorded),
        rule: judged.and_then(|(decision, entry)| rule_place(decision, &entry.site)),
        action: match judged {
            Some((decision, _)) => decision.action.name(),
            None if ctx.rejection.is_some() => "refuse",
            None => "pass",
        },
        would: judged.and_then(|(decision, _)| decision.would.map(Action::name)),
        version: judged.map(|(_, entry)| entry.site.robots_txt.version),
        error: error.map(|error| error.etype().as_str()),
    }
}

pub(super) fn field(headers: &HeaderMap, name: HeaderName) -> Option<Cow<'_, str>> {
    headers.get(name).map(|value| bounded(value.as_bytes()))
}

pub(super) fn bounded(octets: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(&octets[..octets.len().min(FIELD_LIMIT)])
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

/// What was done, or under observation what would have been.
fn counted_action(decision: &Decision) -> &'static str {
    match (decision.action, decision.would) {
        (Action::Pass, Some(Action::Block(_))) => "would_block",
        (Action::Pass, Some(Action::Slow { .. })) => "would_slow",
        (Action::Pass, Some(Action::Pause { .. })) => "would_pause",
        (Action::Pass, Some(Action::License { .. })) => "would_license",
        (action, _) => action.name(),
    }
}
