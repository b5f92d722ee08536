//! Who is asking, as far as it can be proven, and how it has conducted itself: what the decision is asked with beside
//! the request itself; and afterwards the event that is evidence of it.

use super::Gateway;
use super::ctx::RequestContext;
use super::heads::host;
use super::logging::{bounded, crawler_label, field};
use crate::answers::rule_line;
use crate::policy::SiteEntry;
use crate::robots::seconds;
use crate::telemetry::Event;
use crate::time::Timestamp;
use crate::verdict::{Action, Decision, Facts, Identity, Kind, chosen, group_place, rule_place};
use http::header;
use pingora_http::RequestHeader;
use pingora_proxy::Session;

/// Fields by which a proxy says for whom it speaks. From a peer that nobody declared they prove nothing, but that the
/// address may be that of a proxy.
const FORWARDING: [&str; 7] =
    ["x-forwarded-for", "forwarded", "x-real-ip", "true-client-ip", "cf-connecting-ip", "fastly-client-ip", "via"];

/// Whether the client's address may speak against it: a proxy that nobody declared may stand in between.
pub(super) fn may_accuse(request: &RequestHeader, ctx: &RequestContext) -> bool {
    ctx.peer_trusted || !FORWARDING.iter().any(|name| request.headers.contains_key(*name))
}

/// Notes who was shown the version in force, and what proved that: a delay and a trap may depend on it.
pub(super) fn shown(
    gateway: &Gateway,
    request: &RequestHeader,
    ctx: &RequestContext,
    decision: &Decision,
    entry: &SiteEntry,
    now: Timestamp,
) {
    let (client, identity) = (ctx.client, ctx.identity);
    let facts =
        Facts { host: host(request), target: b"/robots.txt", method: b"GET", user_agent: b"", client, identity, now };
    gateway.behaviours.served(gateway.registry, entry, decision.claim, &facts);
}

/// Whether it is written down: what is refused, or would be.
pub(super) fn is_event(decision: &Decision) -> bool {
    let refused = |action: Action| matches!(action, Action::Block(_) | Action::Slow { .. });
    refused(decision.action) || decision.would.is_some_and(refused)
}

/// The kind under which it counts as a violation; what only the resolved path disallows, what nobody promised, and what
/// is merely not proven is none.
pub(super) fn violation(decision: &Decision) -> Option<&'static str> {
    let kind = decision.kind;
    let counts = !matches!(kind, Kind::Ambiguous | Kind::NotBound | Kind::Unverified);
    let name = if decision.never_fetched { "never_fetched" } else { kind.name() };
    (is_event(decision) && counts).then_some(name)
}

/// What there is to say of a request that is against the rules. Nothing in it grows with what the client sends.
pub(super) fn event(
    gateway: &Gateway,
    session: &Session,
    ctx: &RequestContext,
    decision: &Decision,
    entry: &SiteEntry,
) -> Event {
    let request = session.req_header();
    let site = &entry.site;
    let group = decision.rule.and_then(|rule| site.document.groups.get(usize::from(rule.group)));
    let rule = decision.rule.and_then(|rule| group?.rules.get(usize::try_from(rule.rule?).ok()?));
    let too_fast = [Some(decision.action), decision.would].iter().any(|it| matches!(it, Some(Action::Slow { .. })));
    let delay = group.filter(|_| too_fast).and_then(|group| group.crawl_delay);
    let retry_after = match (decision.action, decision.would) {
        (Action::Slow { retry_after, .. }, _) | (_, Some(Action::Slow { retry_after, .. })) => Some(retry_after),
        _ => None,
    };
    Event {
        time: ctx.arrived,
        site: site.name.clone(),
        crawler: crawler_label(gateway.registry, entry, decision.claim).to_owned(),
        identity: ctx.identity.name(),
        proof: if matches!(ctx.identity, Identity::Verified | Identity::Impostor) { "networks" } else { "none" },
        client: ctx.client.and_then(|address| gateway.addresses.apply(address)),
        method: bounded(request.method.as_str().as_bytes()).into_owned(),
        host: bounded(host(request)).into_owned(),
        target: bounded(request.raw_path()).into_owned(),
        user_agent: field(&request.headers, header::USER_AGENT).map(|value| value.into_owned()),
        verdict: decision.verdict.name(),
        kind: decision.kind.name(),
        never_fetched: decision.never_fetched,
        rule: delay.map(|delay| format!("Crawl-delay: {}", seconds(delay))).or_else(|| rule.map(rule_line)),
        rule_source: if delay.is_some() { group_place(decision, site) } else { rule_place(decision, site) },
        version: site.robots_txt.version.to_string(),
        held: chosen(&entry.held, ctx.held).map(|held| held.former.version.to_string()).collect(),
        action: decision.action.name(),
        would: decision.would.map(Action::name),
        status: session.response_written().map_or(0, |response| response.status.as_u16()),
        retry_after,
        left_out: 0,
    }
}
