//! [`RequestMetrics`]: the sink that counts requests in the metrics and in [`Traffic`].

use super::{Metrics, Traffic, UNCLAIMED};
use crate::crawlers::{Claim, calls_itself};
use crate::record::{
    CountedAction, CountedRequest, Judged, Judgement, NO_CRAWLER, RecordedKind, RequestRecord,
    Sink, ViolationKind,
};
use crate::verdict::{Decision, HistoryBasis, Identity, Kind, KnownIdentity, claim_label};
use std::sync::Arc;

/// What a bot is called that does not say its name.
const NO_NAME: &str = "(no name)";

/// Counts requests.
pub struct RequestMetrics {
    metrics: Arc<Metrics>,
    /// What points at a mistake in the setup.
    traffic: Arc<Traffic>,
}

impl RequestMetrics {
    /// The sink that counts in these.
    pub fn new(metrics: Arc<Metrics>, traffic: Arc<Traffic>) -> RequestMetrics {
        RequestMetrics { metrics, traffic }
    }

    /// Counts a request that was judged, or could be but for a site, in the traffic of the last
    /// minutes.
    fn count_traffic(&self, record: &RequestRecord) {
        let request = &record.request;
        let lived = request.arrival.lived;
        self.traffic.requests.add(lived);
        if !request.unread.is_empty() {
            if request.client.is_some() {
                self.metrics.undeclared_proxy.inc();
            }
            self.traffic.unread(request.client, request.unread, lived);
        }
    }

    /// Counts a request to a site.
    fn count_judged(&self, record: &RequestRecord, judged: &Judged) {
        let metrics = &self.metrics;
        let decision = &judged.decision;
        let site = judged.entry().site.name.as_str();
        let crawler = record.crawler().unwrap_or(NO_CRAWLER);
        metrics.counts.count(&CountedRequest {
            site,
            crawler,
            identity: record.identity().map(Identity::known),
            kind: RecordedKind::from_decision(decision),
            basis: judged.basis,
            older_until: judged.older_until,
            action: CountedAction::from_decision(decision),
            violation: violation(decision),
            ..unclaimed(record, CountedAction::Pass)
        });
        if decision.claim != Claim::Nobody {
            // The registry's id or `other`. No operator publishes how a token of a policy is
            // proven, and the label would outlive the site.
            metrics.identity.count([
                claim_label(decision.claim, record.registry, None).unwrap_or("other"),
                judged.identity.outcome(judged.doubt).name(),
            ]);
        }
        if decision.claim == Claim::Other {
            let agent = record.request.user_agent().unwrap_or_default();
            self.traffic
                .unlisted(calls_itself(agent).unwrap_or(NO_NAME));
        }
        if decision.robots_txt {
            // A client that left before the end has not got it.
            let has_got_it = record.response.error.is_none();
            let served = has_got_it.then_some(record.request.now().0);
            metrics.robots_txt(site, crawler, record.response.status, served);
        }
    }
}

impl Sink for RequestMetrics {
    /// Counts a request. One for a host of no site counts as forwarded under its claim.
    fn record(&self, record: &RequestRecord) {
        let counted = match &record.judgement {
            Judgement::Judged(judged) => {
                self.count_traffic(record);
                return self.count_judged(record, judged);
            }
            Judgement::Unclaimed { claim, .. } => {
                self.count_traffic(record);
                let host = record.request.host();
                self.traffic.unclaimed(host, record.request.arrival.lived);
                let is_crawler = *claim != Claim::Nobody;
                CountedRequest {
                    crawler: record.crawler().unwrap_or(NO_CRAWLER),
                    identity: is_crawler.then_some(KnownIdentity::Unverified),
                    ..unclaimed(record, CountedAction::Pass)
                }
            }
            Judgement::Unjudged(action) => unclaimed(record, *action),
        };
        self.metrics.counts.count(&counted);
    }
}

/// A visitor's request for a host of no site, or one that was answered before it was judged.
fn unclaimed(record: &RequestRecord, action: CountedAction) -> CountedRequest<'_> {
    let response = &record.response;
    let origin_elapsed = response.origin_elapsed.unwrap_or_default();
    CountedRequest {
        site: UNCLAIMED,
        crawler: NO_CRAWLER,
        identity: None,
        kind: Kind::NotACrawler.into(),
        basis: HistoryBasis::default(),
        older_until: None,
        action,
        violation: None,
        status: response.status,
        bytes: response.body_bytes,
        origin_milliseconds: origin_elapsed.as_millis() as u64,
    }
}

/// The kind under which the request counts as a violation; `None` if it is no event. No violations
/// either: a path that only its resolved form disallows, rules that the operator never promised to
/// follow, and a missing proof.
fn violation(decision: &Decision) -> Option<ViolationKind> {
    let counts = !decision.robots_txt
        && !matches!(
            decision.kind,
            Kind::Ambiguous | Kind::NotBound | Kind::Unverified
        );
    (counts && decision.is_event()).then(|| ViolationKind::from_decision(decision))
}
