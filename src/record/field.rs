//! [`RecordField`]: the fields of a finished request that logs, tables and pages can show, such as
//! its host, its status or the crawler's name. A new field is added here: a variant, its
//! description and its value. Each log or page lists the fields that it shows, for example
//! [`SAMPLE_FIELDS`].

use super::{FieldValue, RecordedKind, RequestRecord, SiteJudgement};
use crate::crawlers::{Claim, self_given_name};
use crate::settings::AddressDetail;
use crate::verdict::{Decision, PassReason};
use strum::{IntoStaticStr, VariantArray};

/// A field of a request. Its name in logs is that of the variant in snake case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, IntoStaticStr, VariantArray)]
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
    CallsItself,
    RetryAfter,
    LeftOut,
    Error,
}

/// The fields of a sample of the history.
pub const SAMPLE_FIELDS: &[RecordField] = &[
    RecordField::Time,
    RecordField::Site,
    RecordField::Crawler,
    RecordField::Kind,
    RecordField::Rule,
    RecordField::RuleSource,
    RecordField::Client,
    RecordField::Identity,
    RecordField::Method,
    RecordField::Host,
    RecordField::Target,
    RecordField::UserAgent,
    RecordField::Action,
    RecordField::Would,
    RecordField::Status,
    RecordField::Version,
];

named!(RecordField);

impl RecordField {
    /// What it means, in Markdown, for the table in `docs/logs-and-metrics.md`.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Time => "when the request arrived: RFC 3339, UTC, milliseconds",
            Self::Client => "the address of the client, as much of it as `privacy.logs` allows",
            Self::Method => "`GET`, ...",
            Self::Host => "the Host field as sent",
            Self::Target => "the path and query as sent",
            Self::Http => {
                "the version of HTTP: `1.0`, `1.1`, `2`; over TLS the one that ALPN chose"
            }
            Self::Tls => "the version of TLS: `1.2`, `1.3`; `null` in clear text",
            Self::Status => "the status that was sent; 0 if the client left before",
            Self::Bytes => "bytes of the body that were sent",
            Self::Milliseconds => "from the arrival of the request to the end of the response",
            Self::UserAgent => "the User-Agent field",
            Self::Referer => "the Referer field",
            Self::Site => "the site; `null` for a host that no policy claims",
            Self::Crawler => "as the label `crawler`; `null` for visitors",
            Self::Identity => "of crawlers: `verified`, `unverified` or `impostor`",
            Self::Proof => {
                "what the identity rests on: `networks`, `list`, `reverse_dns`, \
                 `list_and_reverse_dns`, `signature` or `none` \
                 ([identity.md](identity.md#where-to-find-the-result))"
            }
            Self::Doubt => {
                "why a crawler that can be verified here was not \
                 ([identity.md](identity.md#where-to-find-the-result))"
            }
            Self::Signature => {
                "of signed requests: what the signature proves, or why it proves nothing or was \
                 not checked"
            }
            Self::Verdict => {
                "what the rules say: `allowed`, `disallowed`, `not_bound`, `not_a_crawler`"
            }
            Self::Readings => {
                "the [readings of robots.txt](semantics.md#two-readings-of-a-file) behind the \
                 verdict: `rfc9309`, `both`, `only_rfc9309`, `only_google`"
            }
            Self::Kind => {
                "what the request is: see [kinds](semantics.md#kinds); `off` where nothing is \
                 judged"
            }
            Self::OlderUntil => {
                "[until when](semantics.md#until-when) requests like this one, `unproven` or \
                 `stale_copy`, do not count"
            }
            Self::NeverFetched => {
                "`true`: a violation by a crawler that was served no robots.txt on this host \
                 within the time that it may use a copy ([`grace`](policy.md#enforcement))"
            }
            Self::Rule => {
                "the line of robots.txt that decided: `Disallow: /cart/`, `Crawl-delay: 10`"
            }
            Self::RuleSource => {
                "its place in the policy or in the origin's file: `policies/shop.yaml:6:35`"
            }
            Self::Version => "the version of robots.txt in force",
            Self::History => {
                "what `cached` rests on: `observed`, `declared` by the policy \
                 ([`robots.previous`](policy.md#robotsprevious)), or `unknown` or \
                 [`perhaps_cached`](semantics.md#perhaps-cached), which never make a violation"
            }
            Self::Cached => "the other versions that the crawler may have cached",
            Self::Action => "what crawlgate did, as the label `action` without `would_...`",
            Self::Would => "what enforcement would have done, under observation",
            Self::Observed => "why enforcement did not do it: `mode`, `unlisted`, `unverified`",
            Self::RequestId => "[the id of the request](#request-ids-and-traces)",
            Self::TraceId => "the trace of its `traceparent` field",
            Self::CallsItself => "what a bot or program that is in no list calls itself",
            Self::RetryAfter => "seconds to wait, for a request that came too soon",
            Self::LeftOut => "events before this line that were not written, because of `rate`",
            Self::Error => {
                "what ended the request, where it did not end well: why a head or a body was \
                 refused, what the origin did, `WriteError` where the client left or took \
                 nothing before it had the whole response, or `no_response` where it left \
                 before it got a status"
            }
        }
    }

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
        matches!(
            self,
            RecordField::Identity
                | RecordField::Doubt
                | RecordField::Signature
                | RecordField::OlderUntil
                | RecordField::NeverFetched
                | RecordField::Observed
                | RecordField::TraceId
                | RecordField::CallsItself
                | RecordField::RetryAfter
                | RecordField::LeftOut
        )
    }

    /// Its value in a record. `addresses` says how much of the client's address may be shown.
    pub fn value(self, record: &RequestRecord, addresses: AddressDetail) -> FieldValue<'_> {
        let RequestRecord {
            request, response, ..
        } = record;
        match self {
            RecordField::Time => FieldValue::Time(request.arrival.arrived),
            RecordField::Client => {
                FieldValue::from_option(request.address_for_log(addresses), FieldValue::Address)
            }
            RecordField::Method => FieldValue::from_bytes(request.method()),
            RecordField::Host => FieldValue::from_bytes(request.host()),
            RecordField::Target => FieldValue::from_bytes(request.target()),
            RecordField::Http => FieldValue::Word(request.http),
            RecordField::Tls => FieldValue::from_option(request.tls, FieldValue::Word),
            RecordField::Status => FieldValue::Number(response.status.into()),
            RecordField::Bytes => FieldValue::Number(response.body_bytes),
            RecordField::Milliseconds => {
                FieldValue::Decimal((response.elapsed.as_secs_f64() * 1e6).round() / 1e3)
            }
            RecordField::UserAgent => {
                FieldValue::from_option(request.user_agent(), FieldValue::from_bytes)
            }
            RecordField::Referer => {
                FieldValue::from_option(request.referer(), FieldValue::from_bytes)
            }
            RecordField::Site => {
                FieldValue::from_option(record.site(), |site| FieldValue::from_text(&site.name))
            }
            RecordField::Crawler => {
                FieldValue::from_option(record.crawler(), FieldValue::from_text)
            }
            RecordField::Identity => FieldValue::from_option(record.identity(), |identity| {
                FieldValue::Word(identity.name())
            }),
            RecordField::Action => FieldValue::Word(record.action()),
            RecordField::RequestId => FieldValue::from_bytes(request.id()),
            RecordField::TraceId => {
                FieldValue::from_option(request.trace_id(), FieldValue::from_bytes)
            }
            RecordField::Error => FieldValue::from_option(response.error, FieldValue::Word),
            // The event log adds it.
            RecordField::LeftOut => FieldValue::Nothing,
            _ => {
                FieldValue::from_option(record.judged(), |judged| self.judged_value(judged, record))
            }
        }
    }

    /// The value of a field that only a request to a site has.
    fn judged_value<'r>(
        self,
        judged: &'r SiteJudgement,
        record: &'r RequestRecord,
    ) -> FieldValue<'r> {
        let SiteJudgement { decision, .. } = judged;
        let request = &record.request;
        match self {
            RecordField::Proof => FieldValue::Word(judged.proof.name()),
            RecordField::Doubt => {
                FieldValue::from_option(judged.doubt, |doubt| FieldValue::Word(doubt.into()))
            }
            RecordField::Signature => FieldValue::from_option(judged.signature, FieldValue::Word),
            RecordField::Verdict => FieldValue::Word(decision.verdict.name()),
            RecordField::Readings => FieldValue::Word(decision.readings.name()),
            RecordField::Kind => FieldValue::Word(RecordedKind::from_decision(decision).name()),
            RecordField::OlderUntil => {
                FieldValue::from_option(judged.older_until, FieldValue::Moment)
            }
            RecordField::NeverFetched => {
                FieldValue::Flag(decision.never_fetched && decision.recorded)
            }
            RecordField::Rule => FieldValue::from_option(judged.rule(), FieldValue::from_string),
            RecordField::RuleSource => {
                FieldValue::from_option(judged.rule_location(), FieldValue::from_string)
            }
            RecordField::Version => FieldValue::Version(judged.entry().site.robots_txt.version),
            RecordField::History => FieldValue::Word(judged.basis.into()),
            RecordField::Cached => {
                FieldValue::Versions(judged.cached_versions(request.host()).collect())
            }
            RecordField::Would => {
                FieldValue::from_option(decision.would, |would| FieldValue::Word(would.name()))
            }
            RecordField::Observed => FieldValue::from_option(
                PassReason::from_decision(decision, &judged.entry().site),
                |reason| FieldValue::Word(reason.name()),
            ),
            RecordField::CallsItself => {
                FieldValue::from_option(self_declared_name(decision, record), FieldValue::from_text)
            }
            RecordField::RetryAfter => {
                FieldValue::from_option(decision.slow_retry_after(), |seconds| {
                    FieldValue::Number(seconds.into())
                })
            }
            // The fields of every request: see `value`.
            _ => FieldValue::Nothing,
        }
    }
}

/// The name that an unlisted bot or a program gives itself; `None` for every other claim.
fn self_declared_name<'r>(decision: &Decision, record: &'r RequestRecord) -> Option<&'r str> {
    match decision.claim {
        Claim::UnknownBot | Claim::Tool => {
            self_given_name(record.request.user_agent().unwrap_or_default())
        }
        Claim::Known(_) | Claim::PolicyToken(_) | Claim::Visitor => None,
    }
}
