//! [`RequestMetrics`]: the sink that counts requests in the metrics and in [`Traffic`].

use super::{Metrics, Traffic, UNCLAIMED};
use crate::crawlers::{Claim, calls_itself};
use crate::record::{Judged, Judgement, NO_CRAWLER, RequestRecord, Sink};
use crate::verdict::{Action, Decision, Identity, Kind, claim_label};
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
        let identity = record.identity().map_or(NO_CRAWLER, Identity::name);
        metrics.requests.count([
            site,
            crawler,
            identity,
            decision.recorded_kind(),
            counted_action(decision),
        ]);
        if decision.claim != Claim::Nobody {
            // The registry's id or `other`. No operator publishes how a token of a policy is
            // proven, and the label would outlive the site.
            metrics.identity.count([
                claim_label(decision.claim, record.registry, None).unwrap_or("other"),
                judged.identity.outcome(judged.doubt),
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
        } else if let Some(kind) = violation(decision) {
            metrics.violations.count([site, crawler, identity, kind]);
        }
    }
}

impl Sink for RequestMetrics {
    /// Counts a request. One for a host of no site counts as forwarded under its claim.
    fn record(&self, record: &RequestRecord) {
        let (crawler, identity) = match &record.judgement {
            Judgement::Judged(judged) => {
                self.count_traffic(record);
                return self.count_judged(record, judged);
            }
            Judgement::Unclaimed { claim, .. } => {
                self.count_traffic(record);
                let host = record.request.host();
                self.traffic.unclaimed(host, record.request.arrival.lived);
                let identity = if *claim == Claim::Nobody {
                    NO_CRAWLER
                } else {
                    Identity::Unverified.name()
                };
                (record.crawler().unwrap_or(NO_CRAWLER), identity)
            }
            Judgement::Unjudged(_) => (NO_CRAWLER, NO_CRAWLER),
        };
        self.metrics.requests.count([
            UNCLAIMED,
            crawler,
            identity,
            Kind::NotACrawler.name(),
            record.action(),
        ]);
    }
}

/// The kind under which the request counts as a violation; `None` if it is no event. No violations
/// either: a path that only its resolved form disallows, rules that the operator never promised to
/// follow, and a missing proof.
fn violation(decision: &Decision) -> Option<&'static str> {
    let counts = !matches!(
        decision.kind,
        Kind::Ambiguous | Kind::NotBound | Kind::Unverified
    );
    let name = if decision.never_fetched {
        "never_fetched"
    } else {
        decision.kind.name()
    };
    (decision.is_event() && counts).then_some(name)
}

/// The action by which the request counts: what was done, or `would_...` for what would have been
/// done without observation.
fn counted_action(decision: &Decision) -> &'static str {
    match (decision.action, decision.would) {
        (Action::Pass, Some(Action::Block(_))) => "would_block",
        (Action::Pass, Some(Action::Slow { .. })) => "would_slow",
        (Action::Pass, Some(Action::Pause { .. })) => "would_pause",
        (Action::Pass, Some(Action::License { .. })) => "would_license",
        (action, _) => action.name(),
    }
}
