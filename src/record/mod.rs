//! Records of finished requests, from which logs and counts are made. A [`RequestRecord`] has the
//! request ([`RequestCopy`]), its [`Judgement`], and what was sent ([`SentResponse`]). Every
//! [`Sink`] gets the record. Sinks are the metrics, the access log, the event log and the evidence
//! log. [`RecordField`] lists the fields that a log can show. [`RequestCounts`] is the form of
//! counts that metrics, history, reports and audits have in common. [`CountTable`] counts the
//! requests of a running crawlgate, and [`TopPaths`] the paths that crawlers request most.

mod count_table;
mod counts;
mod field;
mod judgement;
mod names;
mod proxy_path;
mod request;
mod row;
mod top_paths;
mod value;
mod visit;

pub use count_table::{CountTable, CountedRequest, MAX_SERIES, OVERFLOW, truncate_label};
pub use counts::{CountsByIdentity, RULE_BREAKING_KINDS, RequestCounts};
pub use field::{RecordField, SAMPLE_FIELDS};
pub use judgement::{DecidingLine, Judgement, SignatureProof, SiteJudgement};
pub use names::{CountedAction, RecordedKind, ViolationKind, identity_label};
pub use proxy_path::ProxyPath;
pub use request::{ArrivalTimes, RequestCopy};
pub use row::{RecordLine, RecordRow};
pub use top_paths::{DayPaths, PathRequest, TopPaths, TopPathsKey, printable_path};
pub use value::{FieldValue, truncate_field};
pub use visit::{is_part_of_page, is_visit};

use crate::crawlers::{Claim, Registry};
use crate::finding::Finding;
use crate::policy::site::Site;
use crate::robots::TargetScratch;
use crate::verdict::{Action, Identity, claim_label};
use std::sync::Arc;
use std::time::Duration;

/// The crawler label of requests of visitors in metrics.
pub const NO_CRAWLER: &str = "none";

/// A receiver of finished requests: a log, metrics, evidence.
pub trait Sink: Send + Sync {
    /// Records a finished request. Called on the thread of the request, which waits for it.
    fn record(&self, request: &RequestRecord);

    /// Whether records of requests for robots.txt need the client's If-None-Match.
    fn needs_validator(&self) -> bool {
        false
    }

    /// The problem, if requests are not recorded as they should be.
    fn problem(&self) -> Option<Finding> {
        None
    }
}

/// A request with its judgement and its response. It keeps the policies by which it was judged, so
/// that a reload does not change it.
#[derive(Clone)]
pub struct RequestRecord {
    /// Known crawlers.
    pub registry: &'static Registry,
    /// The request.
    pub request: RequestCopy,
    /// The judgement.
    pub judgement: Judgement,
    /// The response.
    pub response: SentResponse,
}

/// What was sent to the client, and how that ended.
#[derive(Clone, Default)]
pub struct SentResponse {
    /// The status; 0 where no response was begun, or where another server sends it.
    pub status: u16,
    /// Bytes of the body.
    pub body_bytes: u64,
    /// From the arrival of the request to the end of the response; zero if no log needs it.
    pub elapsed: Duration,
    /// How long the origin took to send the head of its response; `None` where it sent none.
    pub origin_elapsed: Option<Duration>,
    /// Whether the origin's response permits text and data mining (`tdm-reservation: 0`).
    pub permits_mining: bool,
    /// The address of the server of the origin that the request was last sent to.
    pub server: Option<Arc<str>>,
    /// Whether the client got a complete copy of robots.txt, or a 304 for its own copy.
    pub is_copy: bool,
    /// Why the request ended early.
    pub error: Option<&'static str>,
}

impl RequestRecord {
    /// The record of a new request, without a judgement and a response.
    pub fn unjudged(request: RequestCopy) -> RequestRecord {
        RequestRecord {
            registry: Registry::builtin(),
            request,
            judgement: Judgement::Unjudged(CountedAction::Refuse),
            response: SentResponse::default(),
        }
    }

    /// The judgement about a site; `None` for a host that no site claims, and for a request that
    /// was answered before it was judged.
    pub fn judged(&self) -> Option<&SiteJudgement> {
        self.judgement.judged()
    }

    /// The site of the host.
    pub fn site(&self) -> Option<&Site> {
        self.judged().map(|judged| &*judged.entry().site)
    }

    /// The claimed crawler: the registry's id, the policy's token, `other`, `tool`. `None` for a
    /// visitor, and for a request that was not judged.
    pub fn crawler(&self) -> Option<&str> {
        claim_label(self.judgement.claim()?, self.registry, self.site())
    }

    /// The identity of the client; `None` if it claims no crawler. Where no site has the host, nothing
    /// is verified.
    pub fn identity(&self) -> Option<Identity> {
        let is_crawler = self.judgement.claim()? != Claim::Visitor;
        is_crawler.then(|| {
            self.judged()
                .map_or(Identity::Unverified, |judged| judged.identity)
        })
    }

    /// Whether a crawler for AI training got a page for which the site publishes a reservation: in a
    /// header, in `tdmrep.json`, or in the crawler's group of robots.txt. A crawler that no group binds
    /// can read that of `*`. Licences and TDM policies are no such pages. Not with `mode: off`.
    pub fn has_reserved_page(&self) -> bool {
        let Some(judged) = self.judged() else {
            return false;
        };
        let site = &judged.entry().site;
        let rules = site.crawler_rules(judged.decision.claim);
        let group = rules.binding.group().or(site.matcher.star_group());
        let response = &self.response;
        let mut scratch = TargetScratch::default();
        // The status is 0 where another server sends the page, or, with an error, where nobody does.
        rules.trains
            && judged.decision.recorded
            && !response.permits_mining
            && matches!(
                (response.status, response.error),
                (0, None) | (200..=299, _)
            )
            && matches!(self.request.method(), b"GET" | b"POST")
            && site
                .signals
                .reserves_training(scratch.normalise(self.request.target()), group)
    }

    /// The name of the action.
    pub fn action(&self) -> &'static str {
        match &self.judgement {
            Judgement::Unjudged(action) => action.name(),
            Judgement::Unclaimed { .. } => Action::Pass.name(),
            Judgement::Judged(judged) => judged.decision.action.name(),
        }
    }

    /// A copy with the kind `unproven`, because it is not known what peers served.
    #[must_use]
    pub fn with_unproven_kind(&self) -> RequestRecord {
        let mut record = self.clone();
        if let Judgement::Judged(judged) = &self.judgement {
            record.judgement = Judgement::Judged(judged.with_unproven_kind());
        }
        record
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heads::HeadFields;
    use crate::policy::{SiteEntry, Snapshot};
    use crate::time::Timestamp;
    use crate::verdict::{CachedVersions, DecisionScratch, decide, load_site};
    use crate::yaml::SourceFile;
    use std::time::SystemTime;

    impl RequestRecord {
        /// A request of GPTBot to `shop.example`, judged by this policy.
        pub fn for_test(policy: &str, method: &[u8], target: &str) -> RequestRecord {
            let registry = Registry::builtin();
            let source = SourceFile {
                name: "shop.yaml".into(),
                text: policy.into(),
            };
            let site = load_site("shop", &source, registry).0.expect("a policy");
            let snapshot = Snapshot::new(vec![SiteEntry::new(site, Timestamp(0))], 1);
            let head = HeadFields {
                method,
                host: b"shop.example",
                target: target.as_bytes(),
                user_agent: Some(b"GPTBot/1.2"),
                ..HeadFields::default()
            };
            let request = RequestCopy::for_test(&head, None, SystemTime::UNIX_EPOCH);
            let mut record = RequestRecord::unjudged(request);
            let decision = decide(
                &snapshot,
                registry,
                &record.request.to_facts(target.as_bytes()),
                &CachedVersions::default(),
                &mut DecisionScratch::default(),
            );
            let decision = decision.expect("a site");
            let judged = SiteJudgement::for_test(decision, Arc::new(snapshot));
            record.judgement = Judgement::Judged(judged);
            record
        }
    }

    #[test]
    fn reserved_page_counts_only_if_it_was_sent() {
        for (method, status, error, counts) in [
            (&b"GET"[..], 200, None, true),
            (b"POST", 204, None, true),
            (b"GET", 200, Some("client-closed"), true),
            (b"GET", 0, None, true),
            (b"GET", 0, Some("client-closed"), false),
            (b"GET", 404, None, false),
            (b"HEAD", 200, None, false),
            (b"OPTIONS", 204, None, false),
        ] {
            let policy = "robots: { origin: replace }\ntdm: { reservation: yes }\n";
            let mut record = RequestRecord::for_test(policy, method, "/story");
            record.response.status = status;
            record.response.error = error;
            let found = record.has_reserved_page();
            assert_eq!(found, counts, "{method:?} {status} {error:?}");
        }
    }
}
