//! [`keep`] feeds the history: it hands the counts and samples since the last call to the state store. It reads the counters of
//! the metrics, so that requests do nothing for the history.

use super::instance::Instance;
use crate::state::StateStore;
use crate::state::history::{Counts, HistoryBatch, Sample};
use crate::telemetry::Event;
use crate::time::Timestamp;
use std::collections::BTreeMap;

/// Hands over what is new.
pub fn keep(instance: &Instance, store: &StateStore) {
    let now = Timestamp::from(instance.clock.now());
    let mut batch = HistoryBatch::default();
    let mut counts: BTreeMap<(String, String, String), Counts> = BTreeMap::new();
    instance.metrics.requests.each_new(|[site, crawler, identity, kind, action], requests| {
        let key = (site.to_string(), crawler.to_string(), identity.to_string());
        counts.entry(key).or_default().add(kind, action, requests);
    });
    instance.metrics.identity.each_new(|[crawler, outcome], requests| batch.identity(now, crawler, outcome, requests));
    for ((site, crawler, identity), counts) in &counts {
        batch.requests(now, (site, crawler, identity), counts);
    }
    for (name, requests) in instance.traffic.take_unlisted() {
        batch.unlisted(now, &name, requests);
    }
    for event in instance.events.take_samples() {
        batch.sample(sample(&event));
    }
    if !batch.is_empty() {
        store.put_history(batch, now);
    }
}

fn sample(event: &Event) -> Sample {
    Sample {
        at: Timestamp::from(event.time),
        site: event.site.clone(),
        crawler: event.crawler.clone(),
        kind: event.kind.into(),
        rule: event.rule.clone().unwrap_or_default(),
        source: event.rule_source.clone().unwrap_or_default(),
        client: event.kept_address.map(|address| address.to_string()).unwrap_or_default(),
        identity: event.identity.into(),
        method: event.method.clone(),
        host: event.host.clone(),
        target: event.target.clone(),
        user_agent: event.user_agent.clone().unwrap_or_default(),
        action: event.would.map_or_else(|| event.action.to_owned(), |would| format!("would_{would}")),
        status: event.status,
        version: event.version.clone(),
    }
}
