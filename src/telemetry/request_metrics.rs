//! [`RequestMetrics`] counts each finished request in two places: the Prometheus metrics
//! ([`Metrics`]) and the traffic of the last minutes ([`RecentTraffic`]), which the status for
//! operators shows. The metrics also count visits (visitors that an AI assistant or a search engine
//! sent), and the paths that crawlers request.

use super::{Metrics, RecentTraffic, UNCLAIMED};
use crate::crawlers::{Claim, self_given_name};
use crate::record::{
    CountedAction, CountedRequest, Judgement, NO_CRAWLER, PathRequest, RecordedKind, RequestRecord,
    Sink, SiteJudgement, ViolationKind, is_visit,
};
use crate::referrals::ReferringServices;
use crate::verdict::{CachedVersionsBasis, Decision, Identity, Kind, claim_label};
use std::sync::Arc;

use Kind::*;

/// The name of a bot that does not give its name.
const NO_NAME: &str = "(no name)";

/// Counts requests.
pub struct RequestMetrics {
    /// The metrics that it counts in.
    pub metrics: Arc<Metrics>,
    /// The traffic of the last minutes.
    pub traffic: Arc<RecentTraffic>,
    /// Whether the paths of crawlers are counted.
    pub counts_paths: bool,
}

impl RequestMetrics {
    /// Counts a request that was judged, or for which no site has the host, in the recent traffic.
    fn count_traffic(&self, record: &RequestRecord) {
        let request = &record.request;
        let monotonic = request.arrival.monotonic;
        self.traffic.requests.add(monotonic);
        if !request.unread.is_empty() {
            self.traffic
                .count_unread_fields(request.client, request.unread, monotonic);
        }
    }

    /// Counts a request to a site.
    fn count_judged(&self, record: &RequestRecord, judged: &SiteJudgement) {
        let metrics = &self.metrics;
        let decision = &judged.decision;
        let site = judged.entry().site.name.as_str();
        let crawler = record.crawler().unwrap_or(NO_CRAWLER);
        metrics.counts.count(&CountedRequest {
            site,
            kind: RecordedKind::from_decision(decision),
            basis: judged.basis,
            older_until: judged.older_until,
            action: CountedAction::from_decision(decision),
            violation: violation_kind(decision),
            ..unclaimed_request(record, CountedAction::Pass)
        });
        if decision.claim == Claim::Visitor {
            self.count_visit(record, site);
        } else {
            if self.counts_paths {
                metrics.paths.count(&PathRequest {
                    site,
                    crawler,
                    identity: judged.identity.to_status(),
                    target: record.request.target(),
                    time: record.request.arrived_at(),
                });
            }
            // Not the token of a policy: its series would stay after the site is removed.
            metrics.identity.count([
                claim_label(decision.claim, record.registry, None).unwrap_or("other"),
                judged.identity.outcome(judged.doubt).name(),
            ]);
        }
        if decision.claim == Claim::UnknownBot {
            let agent = record.request.user_agent().unwrap_or_default();
            self.traffic
                .count_unlisted(self_given_name(agent).unwrap_or(NO_NAME));
        }
        if decision.robots_txt {
            // A client that left before the end did not get it.
            let served = record
                .response
                .error
                .is_none()
                .then_some(record.request.arrived_at().0);
            metrics.count_robots_txt(site, crawler, record.response.status, served);
        }
    }

    /// Counts a request of a visitor that a known service sent.
    fn count_visit(&self, record: &RequestRecord, site: &str) {
        let request = &record.request;
        let sent_by = ReferringServices::builtin().referring(
            request.host(),
            request.referer(),
            request.target(),
        );
        if let Some(service) = sent_by
            && is_visit(request.method(), record.response.status, request.target())
        {
            self.metrics.visits.count([site, &service.id]);
        }
    }
}

impl Sink for RequestMetrics {
    /// Counts a request. If no site has the host, it counts as forwarded under its claim.
    fn record(&self, record: &RequestRecord) {
        let counted = match &record.judgement {
            Judgement::Judged(judged) => {
                self.count_traffic(record);
                return self.count_judged(record, judged);
            }
            Judgement::Unclaimed { .. } => {
                self.count_traffic(record);
                self.traffic
                    .count_unclaimed(record.request.host(), record.request.arrival.monotonic);
                unclaimed_request(record, CountedAction::Pass)
            }
            Judgement::Unjudged(action) => unclaimed_request(record, *action),
        };
        self.metrics.counts.count(&counted);
    }
}

/// A request for a host of no site, or one that was answered before it was judged.
fn unclaimed_request(record: &RequestRecord, action: CountedAction) -> CountedRequest<'_> {
    let response = &record.response;
    let origin_elapsed = response.origin_elapsed.unwrap_or_default();
    CountedRequest {
        site: UNCLAIMED,
        crawler: record.crawler().unwrap_or(NO_CRAWLER),
        identity: record.identity().map(Identity::to_status),
        kind: NotACrawler.into(),
        basis: CachedVersionsBasis::default(),
        older_until: None,
        action,
        violation: None,
        status: response.status,
        bytes: response.body_bytes,
        origin_milliseconds: origin_elapsed.as_millis() as u64,
        has_reserved_page: record.has_reserved_page(),
    }
}

/// The kind under which the request counts as a violation; `None` if it was not refused, and for the
/// kinds `ambiguous`, `not_bound` and `unverified`.
fn violation_kind(decision: &Decision) -> Option<ViolationKind> {
    let counts =
        !decision.robots_txt && !matches!(decision.kind, Ambiguous | NotBound | Unverified);
    (counts && decision.is_refused()).then(|| ViolationKind::from_decision(decision))
}
