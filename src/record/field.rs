//! [`Field`]: every field that a log, a table or a page shows of a request. A new one is added
//! here: a variant, its description and its value. A sink that lists it writes it.

use super::{Judged, RecordedKind, RequestRecord, Value};
use crate::crawlers::{Claim, calls_itself};
use crate::settings::AddressDetail;
use crate::verdict::{Decision, PassReason};
use strum::{IntoStaticStr, VariantArray};

/// A field of a request. Its name in logs is that of the variant in snake case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
#[allow(missing_docs)]
pub enum Field {
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
    Held,
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
pub const SAMPLE_FIELDS: &[Field] = &[
    Field::Time,
    Field::Site,
    Field::Crawler,
    Field::Kind,
    Field::Rule,
    Field::RuleSource,
    Field::Client,
    Field::Identity,
    Field::Method,
    Field::Host,
    Field::Target,
    Field::UserAgent,
    Field::Action,
    Field::Would,
    Field::Status,
    Field::Version,
];

impl Field {
    /// Its name in logs.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// What it means, in Markdown, for the table in `docs/logs-and-metrics.md`.
    pub fn meaning(self) -> &'static str {
        match self {
            Field::Time => "when the request arrived: RFC 3339, UTC, milliseconds",
            Field::Client => "the address of the client, as much of it as `privacy.logs` says",
            Field::Method => "`GET`, ...",
            Field::Host => "the Host field as sent",
            Field::Target => "the path and query as sent",
            Field::Http => {
                "the version of HTTP: `1.0`, `1.1`, `2`; over TLS the one that ALPN chose"
            }
            Field::Tls => "the version of TLS: `1.2`, `1.3`; `null` in clear text",
            Field::Status => "the status that was sent; 0 if the client left before",
            Field::Bytes => "bytes of the body that were sent",
            Field::Milliseconds => "from the arrival of the request to the end of the response",
            Field::UserAgent => "the User-Agent field",
            Field::Referer => "the Referer field",
            Field::Site => "the site; `null` for a host that no policy claims",
            Field::Crawler => "as the label `crawler`; `null` for people",
            Field::Identity => "of crawlers: `verified`, `unverified` or `impostor`",
            Field::Proof => {
                "what the identity rests on: `networks`, `list`, `reverse_dns`, \
                 `list_and_reverse_dns`, `signature` or `none` \
                 ([identity.md](identity.md#what-was-found))"
            }
            Field::Doubt => {
                "why nothing is proven of a crawler that can be proven here \
                 ([identity.md](identity.md#what-was-found))"
            }
            Field::Signature => {
                "of signed requests: what the signature proves, or why it proves nothing or was \
                 not checked"
            }
            Field::Verdict => {
                "what the rules say: `allowed`, `disallowed`, `not_bound`, `not_a_crawler`"
            }
            Field::Readings => {
                "the [readings of robots.txt](semantics.md#two-readings-of-a-file) behind the \
                 verdict: `rfc9309`, `both`, `only_rfc9309`, `only_google`"
            }
            Field::Kind => {
                "what the request is: see [kinds](semantics.md#kinds); `off` where nothing is \
                 judged"
            }
            Field::OlderUntil => {
                "[until when](semantics.md#until-when) requests like this one, `unproven` or \
                 `stale_copy`, do not count"
            }
            Field::NeverFetched => {
                "`true`: a violation by a crawler that was served no robots.txt on this host \
                 within the time that it may use a copy ([`grace`](policy.md#enforcement))"
            }
            Field::Rule => {
                "the line of robots.txt that decided: `Disallow: /cart/`, `Crawl-delay: 10`"
            }
            Field::RuleSource => {
                "its place in the policy or in the origin's file: `policies/shop.yaml:6:35`"
            }
            Field::Version => "the version of robots.txt in force",
            Field::History => {
                "what `held` rests on: `observed`, `declared` by the policy \
                 ([`robots.previous`](policy.md#robotsprevious)), or `unknown` or \
                 [`perhaps_cached`](semantics.md#perhaps-cached), which accuse no crawler"
            }
            Field::Held => "the other versions that the crawler may have cached",
            Field::Action => "what crawlgate did, as the label `action` without `would_...`",
            Field::Would => "what enforcement would have done, under observation",
            Field::Observed => "why enforcement did not do it: `mode`, `unlisted`, `unverified`",
            Field::RequestId => "[the id of the request](#request-ids-and-traces)",
            Field::TraceId => "the trace of its `traceparent` field",
            Field::CallsItself => "what a bot or program that is in no list calls itself",
            Field::RetryAfter => "seconds to wait, for a request that came too soon",
            Field::LeftOut => "events before this line that were not written, because of `rate`",
            Field::Error => {
                "what ended the request, where it did not end well: why a head or a body was \
                 refused, what the origin did, `WriteError` where the client left or took \
                 nothing before it had the whole response, or `no_response` where it left \
                 before it got a status"
            }
        }
    }

    /// Whether it may say who a visitor is.
    pub fn is_personal(self) -> bool {
        matches!(
            self,
            Field::Client | Field::Target | Field::UserAgent | Field::Referer
        )
    }

    /// Whether a log leaves it out where there is nothing to say. Every other field is always
    /// there, with `null`.
    pub fn is_optional(self) -> bool {
        matches!(
            self,
            Field::Identity
                | Field::Doubt
                | Field::Signature
                | Field::OlderUntil
                | Field::NeverFetched
                | Field::Observed
                | Field::TraceId
                | Field::CallsItself
                | Field::RetryAfter
                | Field::LeftOut
        )
    }

    /// Its value in a record. `addresses` says how much of the client's address may be shown.
    pub fn value(self, record: &RequestRecord, addresses: AddressDetail) -> Value<'_> {
        let RequestRecord {
            request, response, ..
        } = record;
        match self {
            Field::Time => Value::Time(request.arrival.arrived),
            Field::Client => Value::of(request.logged_as(addresses), Value::Address),
            Field::Method => Value::bytes(request.method()),
            Field::Host => Value::bytes(request.host()),
            Field::Target => Value::bytes(request.target()),
            Field::Http => Value::Word(request.http),
            Field::Tls => Value::of(request.tls, Value::Word),
            Field::Status => Value::Number(response.status.into()),
            Field::Bytes => Value::Number(response.body_bytes),
            Field::Milliseconds => {
                Value::Decimal((response.elapsed.as_secs_f64() * 1e6).round() / 1e3)
            }
            Field::UserAgent => Value::of(request.user_agent(), Value::bytes),
            Field::Referer => Value::of(request.referer(), Value::bytes),
            Field::Site => Value::of(record.site(), |site| Value::text(&site.name)),
            Field::Crawler => Value::of(record.crawler(), Value::text),
            Field::Identity => {
                Value::of(record.identity(), |identity| Value::Word(identity.name()))
            }
            Field::Action => Value::Word(record.action()),
            Field::RequestId => Value::bytes(request.id()),
            Field::TraceId => Value::of(request.trace_id(), Value::bytes),
            Field::Error => Value::of(response.error, Value::Word),
            // The log that leaves events out knows how many.
            Field::LeftOut => Value::Nothing,
            _ => Value::of(record.judged(), |judged| self.of_judged(judged, record)),
        }
    }

    /// The value of a field that only a request to a site has.
    fn of_judged<'r>(self, judged: &'r Judged, record: &'r RequestRecord) -> Value<'r> {
        let Judged { decision, .. } = judged;
        let request = &record.request;
        match self {
            Field::Proof => Value::Word(judged.proof.name()),
            Field::Doubt => Value::of(judged.doubt, |doubt| Value::Word(doubt.into())),
            Field::Signature => Value::of(judged.signature, Value::Word),
            Field::Verdict => Value::Word(decision.verdict.name()),
            Field::Readings => Value::Word(decision.readings.name()),
            Field::Kind => Value::Word(RecordedKind::from_decision(decision).name()),
            Field::OlderUntil => Value::of(judged.older_until, Value::Moment),
            Field::NeverFetched => Value::Flag(decision.never_fetched && decision.recorded),
            Field::Rule => Value::of(judged.rule(), Value::text_of),
            Field::RuleSource => Value::of(judged.rule_place(), Value::text_of),
            Field::Version => Value::Version(judged.entry().site.robots_txt.version),
            Field::History => Value::Word(judged.basis.into()),
            Field::Held => Value::Versions(judged.cached_versions(request.host()).collect()),
            Field::Would => Value::of(decision.would, |would| Value::Word(would.name())),
            Field::Observed => {
                Value::of(PassReason::of(decision, &judged.entry().site), |reason| {
                    Value::Word(reason.name())
                })
            }
            Field::CallsItself => Value::of(named_by_itself(decision, record), Value::text),
            Field::RetryAfter => Value::of(decision.slowed_for(), |seconds| {
                Value::Number(seconds.into())
            }),
            // Those of every request: see `value`.
            _ => Value::Nothing,
        }
    }
}

/// The name that an unlisted bot or a program gives itself; `None` for every other claim.
fn named_by_itself<'r>(decision: &Decision, record: &'r RequestRecord) -> Option<&'r str> {
    match decision.claim {
        Claim::Other | Claim::Tool => calls_itself(record.request.user_agent().unwrap_or_default()),
        Claim::Known(_) | Claim::Token(_) | Claim::Nobody => None,
    }
}
