//! One request as everything after its answer sees it. A [`RequestRecord`] is made when the request
//! arrives ([`RequestFacts`]), gets its [`Judgement`], and at the end what was sent
//! ([`SentResponse`]). It is then given to every [`Sink`]: metrics, access log, event log,
//! evidence, and what an application adds. A sink is a list of [`Field`]s and a place to write
//! them. [`Counts`] are the numbers of requests that metrics, history, reports and audits share;
//! [`CountTable`] counts the requests of a running crawlgate.

mod count_table;
mod counts;
mod field;
mod judgement;
mod names;
mod proxy_path;
mod request;
mod row;
mod value;

pub use count_table::{CountTable, CountedRequest, MAX_SERIES, OVERFLOW, cut_label};
pub use counts::{ByIdentity, Counts};
pub use field::{Field, SAMPLE_FIELDS};
pub use judgement::{GoodSignature, Judged, Judgement};
pub use names::{CountedAction, RecordedKind, ViolationKind, identity_name};
pub use proxy_path::ProxyPath;
pub use request::{Arrival, RequestFacts};
pub use row::{Line, Row};
pub use value::{Value, cut, time_with_milliseconds};

use crate::crawlers::{Claim, Registry};
use crate::finding::Finding;
use crate::policy::Site;
use crate::verdict::{Action, Identity, claim_label};
use std::time::Duration;

/// The label of metrics for a visitor: who claims to be no crawler.
pub const NO_CRAWLER: &str = "none";

/// Where finished requests go.
pub trait Sink: Send + Sync {
    /// Takes a finished request in. Called on the thread of the request, which waits for it.
    fn record(&self, request: &RequestRecord);

    /// Whether records of requests for robots.txt need the client's If-None-Match.
    fn needs_validator(&self) -> bool {
        false
    }

    /// Why requests are not recorded as they should be; `None` while all is well.
    fn problem(&self) -> Option<Finding> {
        None
    }
}

/// Everything known of a request once its answer is written. It holds the snapshot and the versions
/// that the request was judged by, so that a reload changes nothing of it.
#[derive(Clone, Debug)]
pub struct RequestRecord {
    /// Known crawlers.
    pub registry: &'static Registry,
    /// What the client sent.
    pub request: RequestFacts,
    /// What was decided.
    pub judgement: Judgement,
    /// What was sent.
    pub response: SentResponse,
}

/// What was sent to the client, and how that ended.
#[derive(Clone, Debug, Default)]
pub struct SentResponse {
    /// The status; 0 where no response was begun, or where another server sends it.
    pub status: u16,
    /// Bytes of the body.
    pub body_bytes: u64,
    /// From the arrival of the request to the end of the response; zero if no log has it.
    pub elapsed: Duration,
    /// How long the origin took to send the head of its response; `None` where it sent none.
    pub origin_elapsed: Option<Duration>,
    /// Whether the client got a whole copy of robots.txt, or was told that its own copy is current.
    pub is_copy: bool,
    /// The error that ended the request.
    pub error: Option<&'static str>,
}

impl RequestRecord {
    /// The record of a request that arrives: nothing is decided, and nothing was sent.
    pub fn unjudged(request: RequestFacts) -> RequestRecord {
        RequestRecord {
            registry: Registry::builtin(),
            request,
            judgement: Judgement::Unjudged(CountedAction::Refuse),
            response: SentResponse::default(),
        }
    }

    /// The judgement about a site; `None` for a host that no site claims, and for a request that
    /// was answered before it was judged.
    pub fn judged(&self) -> Option<&Judged> {
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

    /// What is known of the claimed name; `None` where no crawler is claimed, or no site has the
    /// host.
    pub fn identity(&self) -> Option<Identity> {
        let judged = self.judged()?;
        (judged.decision.claim != Claim::Nobody).then_some(judged.identity)
    }

    /// The word for what crawlgate did.
    pub fn action(&self) -> &'static str {
        match &self.judgement {
            Judgement::Unjudged(action) => action.name(),
            Judgement::Unclaimed { .. } => Action::Pass.name(),
            Judgement::Judged(judged) => judged.decision.action.name(),
        }
    }

    /// The same record as `unproven`: it is not known what other instances served.
    #[must_use]
    pub fn unproven(&self) -> RequestRecord {
        let mut record = self.clone();
        if let Judgement::Judged(judged) = &self.judgement {
            record.judgement = Judgement::Judged(judged.unproven());
        }
        record
    }
}
