//! [`RecordField`]: the fields of a finished request that logs, tables and pages can show, such as
//! the host, the status or the crawler's name. Each log or page has its own list of fields, for
//! example [`SAMPLE_FIELDS`]. To add a field, add a variant and its value here, and describe the
//! field in `docs/logs-and-metrics.md`.

use super::{FieldValue, RecordedKind, RequestRecord, SiteJudgement};
use crate::crawlers::{Claim, self_given_name};
use crate::settings::AddressDetail;
use crate::verdict::{Decision, UnenforcedReason};
use Claim::*;
use strum::{IntoStaticStr, VariantArray};

/// A field of a request. Its name in logs is that of the variant in snake case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
#[allow(missing_docs)]
pub enum RecordField {
    Time,
    Client,
    Method,
    Host,
    Target,
    Http,
    Tls,
    Status,
    Bytes,
    Milliseconds,
    OriginMilliseconds,
    Server,
    UserAgent,
    Referer,
    Site,
    Crawler,
    Identity,
    Proof,
    Doubt,
    Signature,
    Verdict,
    Readings,
    Kind,
    OlderUntil,
    NeverFetched,
    Rule,
    RuleSource,
    Version,
    History,
    Cached,
    Action,
    Would,
    Observed,
    RequestId,
    TraceId,
    LicenseToken,
    Reserved,
    CallsItself,
    RetryAfter,
    LeftOut,
    Error,
}

/// The fields of a sample of the history.
pub const SAMPLE_FIELDS: &[RecordField] = {
    use RecordField::*;
    &[
        Time, Site, Crawler, Kind, Rule, RuleSource, Client, Identity, Method, Host, Target,
        UserAgent, Action, Would, Status, Version,
    ]
};

named!(RecordField);

impl RecordField {
    /// Whether it may identify a visitor.
    pub fn is_personal(self) -> bool {
        matches!(
            self,
            RecordField::Client
                | RecordField::Target
                | RecordField::UserAgent
                | RecordField::Referer
        )
    }

    /// Whether a log leaves it out if it is empty. Every other field is then `null`.
    pub fn is_optional(self) -> bool {
        use RecordField::*;

        matches!(
            self,
            Identity
                | Doubt
                | Signature
                | OlderUntil
                | NeverFetched
                | Observed
                | TraceId
                | LicenseToken
                | Reserved
                | CallsItself
                | RetryAfter
                | LeftOut
                | OriginMilliseconds
                | Server
        )
    }

    /// Its value in a record. `addresses` says how much of the client's address may be shown.
    pub fn value(self, record: &RequestRecord, addresses: AddressDetail) -> FieldValue<'_> {
        self.find_value(record, addresses)
            .unwrap_or(FieldValue::Nothing)
    }

    /// Its value, if the record has one.
    fn find_value(
        self,
        record: &RequestRecord,
        addresses: AddressDetail,
    ) -> Option<FieldValue<'_>> {
        use RecordField::*;

        let RequestRecord {
            request, response, ..
        } = record;
        Some(match self {
            Time => FieldValue::Time(request.arrival.arrived),
            Client => FieldValue::Address(request.address_for_log(addresses)?),
            Method => FieldValue::from_bytes(request.method()),
            Host => FieldValue::from_bytes(request.host()),
            Target => FieldValue::from_bytes(request.target()),
            Http => FieldValue::Word(request.http),
            Tls => FieldValue::Word(request.tls?),
            Status => FieldValue::Number(response.status.into()),
            Bytes => FieldValue::Number(response.body_bytes),
            Milliseconds => FieldValue::from_duration(response.elapsed),
            OriginMilliseconds => FieldValue::from_duration(response.origin_elapsed?),
            Server => FieldValue::from_text(response.server.as_ref()?),
            UserAgent => FieldValue::from_bytes(request.user_agent()?),
            Referer => FieldValue::from_bytes(request.referer()?),
            Site => FieldValue::from_text(&record.site()?.name),
            Crawler => FieldValue::from_text(record.crawler()?),
            Identity => FieldValue::Word(record.identity()?.name()),
            Action => FieldValue::Word(record.action()),
            RequestId => FieldValue::from_bytes(request.id()),
            TraceId => FieldValue::from_bytes(request.trace_id()?),
            LicenseToken => FieldValue::Flag(request.has_license_token),
            Reserved => FieldValue::Flag(record.has_reserved_page()),
            Error => FieldValue::Word(response.error?),
            // The event log adds it.
            LeftOut => return None,
            _ => return self.judged_value(record.judged()?, record),
        })
    }

    /// The value of a field that only a request to a site has.
    fn judged_value<'r>(
        self,
        judged: &'r SiteJudgement,
        record: &'r RequestRecord,
    ) -> Option<FieldValue<'r>> {
        use RecordField::*;

        let SiteJudgement { decision, .. } = judged;
        let request = &record.request;
        Some(match self {
            Proof => FieldValue::Word(judged.proof.name()),
            Doubt => FieldValue::Word(judged.doubt?.into()),
            Signature => FieldValue::Word(judged.signature?),
            Verdict => FieldValue::Word(decision.verdict.name()),
            Readings => FieldValue::Word(decision.readings.name()),
            Kind => FieldValue::Word(RecordedKind::from_decision(decision).name()),
            OlderUntil => FieldValue::Moment(judged.older_until?),
            NeverFetched => FieldValue::Flag(decision.never_fetched && decision.recorded),
            Rule => FieldValue::from_string(judged.rule()?),
            RuleSource => FieldValue::from_string(judged.rule_location()?),
            Version => FieldValue::Version(judged.entry().site.robots_txt.version),
            History => FieldValue::Word(judged.basis.into()),
            Cached => FieldValue::Versions(judged.cached_versions(request.host()).collect()),
            Would => FieldValue::Word(decision.would?.name()),
            Observed => FieldValue::Word(
                UnenforcedReason::from_decision(decision, &judged.entry().site)?.name(),
            ),
            CallsItself => FieldValue::from_text(self_declared_name(decision, record)?),
            RetryAfter => FieldValue::Number(decision.slow_retry_after()?.into()),
            // The fields of every request: see `find_value`.
            _ => return None,
        })
    }
}

/// The name that an unlisted bot or a program gives itself; `None` for every other claim.
fn self_declared_name<'r>(decision: &Decision, record: &'r RequestRecord) -> Option<&'r str> {
    match decision.claim {
        UnknownBot | Tool => self_given_name(record.request.user_agent().unwrap_or_default()),
        Known(_) | PolicyToken(_) | Visitor => None,
    }
}
