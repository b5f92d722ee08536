//! [`Recorder`] records the outcome of each request in metrics, event log, evidence log and access
//! log. With other instances a violation waits until they have confirmed it ([`Others`]).

use super::evidence;
use super::request::{cut, text};
use super::{Judge, Judged, Judgement, Others, Outcome, RequestFacts, Settled, origin_form};
use crate::crawlers::{Claim, Registry, calls_itself};
use crate::evidence::Evidence;
use crate::identity::Proofs;
use crate::indexing::parse_lines;
use crate::policy::{Site, SiteEntry};
use crate::record::{CountedAction, CountedRequest, RecordedKind, ViolationKind};
use crate::robots::seconds;
use crate::settings::AddressDetail;
use crate::telemetry::{AccessLog, AccessRecord, Event, Events, Metrics, Traffic, UNCLAIMED};
use crate::verdict::{
    Action, Decision, Identity, Kind, KnownIdentity, PassReason, claim_label, group_place,
    rule_place,
};
use std::cell::Cell;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The crawler's label for a person.
const NOBODY: &str = "none";
/// What a bot is called that does not say its name.
const NO_NAME: &str = "(no name)";
/// One of so many requests of a thread is timed, beginning with the first.
const TIMED: u32 = 16;

thread_local! {
    static REQUESTS: Cell<u32> = const { Cell::new(0) };
}

/// The opened logs.
pub struct Logs {
    /// A line for each request.
    pub access: AccessLog,
    /// A record of each request against the rules.
    pub events: Events,
    /// The log that third parties can check.
    pub evidence: Evidence,
    /// How much of a client's address is written.
    pub addresses: AddressDetail,
    /// How much of it the history keeps.
    pub kept_addresses: AddressDetail,
}

impl Logs {
    /// No logs at all. Addresses, which then nothing writes, are not shortened.
    pub fn off() -> Logs {
        Logs {
            access: AccessLog::off(),
            events: Events::off(),
            evidence: Evidence::off(),
            addresses: AddressDetail::Full,
            kept_addresses: AddressDetail::Full,
        }
    }
}

/// Records requests.
pub struct Recorder {
    registry: &'static Registry,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// What proved crawlers, for the evidence.
    proofs: Arc<Proofs>,
    /// What points at a mistake in the setup. Apart from the rest, which requests only read: each
    /// request writes it.
    traffic: Arc<Traffic>,
    /// Other instances, which must confirm a violation before it is recorded.
    others: OnceLock<Arc<Others>>,
    pub(super) logs: Logs,
}

impl Recorder {
    /// A recorder that writes into these.
    pub fn new(
        registry: &'static Registry,
        metrics: Arc<Metrics>,
        proofs: Arc<Proofs>,
        traffic: Arc<Traffic>,
        logs: Logs,
    ) -> Recorder {
        Recorder {
            registry,
            metrics,
            proofs,
            traffic,
            others: OnceLock::new(),
            logs,
        }
    }

    /// Sets the other instances in front of the same sites. To be called once, before the first
    /// request; a second call changes nothing.
    pub fn go_by(&self, others: Arc<Others>) {
        let _ = self.others.set(others);
    }

    /// Runs `judge` and returns its result. Measures the time of every 16th call of a thread,
    /// beginning with the first, for the metrics: two looks at the clock take as long as half of
    /// judging.
    #[inline]
    pub fn timed<T>(&self, judge: impl FnOnce() -> T) -> T {
        let number = REQUESTS.get();
        REQUESTS.set(number.wrapping_add(1));
        let began = number.is_multiple_of(TIMED).then(Instant::now);
        let judged = judge();
        if let Some(began) = began {
            self.metrics.decision.observe(began.elapsed().as_secs_f64());
        }
        judged
    }

    /// Whether evidence is kept.
    pub fn keeps_evidence(&self) -> bool {
        self.logs.evidence.is_on()
    }

    /// How long a request has taken that began at `began`; zero if the access log is off, which
    /// alone needs it.
    pub fn elapsed(&self, began: Instant) -> Duration {
        if self.logs.access.enabled() {
            began.elapsed()
        } else {
            Duration::ZERO
        }
    }

    /// Records the outcome of a request that was judged. With other instances a record that accuses
    /// a crawler waits until they have confirmed it (`Recorder::settle`); if there is no room for
    /// it, it is written as `unproven`. Also remembers the tags of a site's front page.
    pub fn record(&self, request: &RequestFacts<'_>, judgement: &Judgement, outcome: &Outcome<'_>) {
        if let Some(judged) = judgement.judged() {
            watch_front_page(request, judged, outcome);
        }
        let accusing = judgement.judged().filter(|judged| judged.accuses());
        let Some((judged, others)) = accusing.zip(self.others.get()) else {
            return self.write(request, judgement, outcome);
        };
        if !others.wait(request, judged, outcome) {
            self.write(request, &Judgement::Judged(judged.unproven()), outcome);
        }
    }

    /// Writes the records that need not wait any longer, and returns how many were confirmed,
    /// refuted and not confirmed in time. `confirmed` is the last entry of the log that all other
    /// instances have read, `lived` the elapsed time. A confirmed request is judged once more;
    /// others are written as `unproven`.
    pub fn settle(&self, confirmed: Option<u64>, lived: Duration, judge: &Judge) -> Settled {
        let mut settled = Settled::default();
        let Some(others) = self.others.get() else {
            return settled;
        };
        for (is_confirmed, record) in others.take(confirmed, lived) {
            let request = record.request.map(|octets| &**octets);
            let judged = if is_confirmed {
                judge.judged_again(&request, &record.judged)
            } else {
                None
            };
            match &judged {
                Some(judged) if judged.accuses() => settled.confirmed += 1,
                Some(_) => settled.refuted += 1,
                None => settled.unconfirmed += 1,
            }
            let judged = judged.unwrap_or_else(|| record.judged.unproven());
            self.write(
                &request,
                &Judgement::Judged(judged),
                &record.outcome.map(|octets| &**octets),
            );
        }
        settled
    }

    /// Writes the record of a judged request now, into the metrics, the traffic and the logs. A
    /// request for a host of no site counts as forwarded under its claim, and is in no event log.
    fn write(&self, request: &RequestFacts<'_>, judgement: &Judgement, outcome: &Outcome<'_>) {
        self.traffic.requests.add(request.lived);
        if !request.unread.is_empty() {
            if request.client.is_some() {
                self.metrics.undeclared_proxy.inc();
            }
            self.traffic
                .unread(request.client, request.unread, request.lived);
        }
        match judgement {
            Judgement::Unclaimed { claim, .. } => {
                self.traffic.unclaimed(request.host, request.lived);
                let crawler = claim_label(*claim, self.registry, None).unwrap_or(NOBODY);
                self.metrics.counts.count(&CountedRequest {
                    crawler,
                    identity: known_identity(*claim, Identity::Unverified),
                    ..unjudged(CountedAction::Pass, outcome)
                });
            }
            Judgement::Judged(judged) => self.count(request, judged, outcome),
        }
        self.log(request, Ok(judgement), outcome);
    }

    /// Records a request that was answered before it was judged.
    pub fn record_unjudged(
        &self,
        request: &RequestFacts<'_>,
        action: CountedAction,
        outcome: &Outcome<'_>,
    ) {
        self.metrics.counts.count(&unjudged(action, outcome));
        self.log(request, Err(action.name()), outcome);
    }

    /// Counts a request to a site in the metrics. Records it in the event log and the evidence log
    /// if it was refused or would be, and in the evidence log if a crawler got a copy of
    /// robots.txt.
    fn count(&self, request: &RequestFacts<'_>, judged: &Judged, outcome: &Outcome<'_>) {
        let metrics = &self.metrics;
        let evidence = &self.logs.evidence;
        let decision = &judged.decision;
        let entry = judged.entry();
        let site = entry.site.name.as_str();
        let crawler = crawler_label(self.registry, entry, decision.claim);
        metrics.counts.count(&CountedRequest {
            site,
            crawler,
            identity: known_identity(decision.claim, judged.identity),
            kind: RecordedKind::from_decision(decision),
            action: CountedAction::from_decision(decision),
            violation: violation(decision),
            status: outcome.status,
            bytes: outcome.body_octets,
            origin_milliseconds: 0,
        });
        if decision.claim != Claim::Nobody {
            let outcome = judged.identity.outcome(judged.doubt);
            // The registry's id or `other`. No operator publishes how a token of a policy is
            // proven, and the label would outlive the site.
            metrics.identity.count([
                claim_label(decision.claim, self.registry, None).unwrap_or("other"),
                outcome.name(),
            ]);
        }
        if decision.claim == Claim::Other {
            self.traffic
                .unlisted(calls_itself(request.user_agent.unwrap_or_default()).unwrap_or(NO_NAME));
        }
        if decision.robots_txt {
            // A client that left before the end has not got it.
            let served = outcome.error.is_none().then_some(request.now().0);
            metrics.robots_txt(site, crawler, outcome.status, served);
            if outcome.is_copy && decision.claim != Claim::Nobody && evidence.is_on() {
                evidence.record(site, crawler, request.arrived, || {
                    evidence::served(evidence, &self.proofs, request, judged, outcome)
                });
            }
            return;
        }
        // Under `mode: off` nothing is recorded.
        if is_event(decision) {
            self.logs.events.record(site, crawler, request.arrived, || {
                self.event(request, judged, outcome)
            });
            if evidence.is_on() {
                evidence.record(site, crawler, request.arrived, || {
                    let event = self.event(request, judged, outcome);
                    evidence::request(
                        evidence,
                        self.registry,
                        &self.proofs,
                        request,
                        judged,
                        &event,
                    )
                });
            }
        }
    }

    /// The record for the event log of a request against the rules. Its texts are cut, so that
    /// nothing in it grows with what the client sends.
    fn event(&self, request: &RequestFacts<'_>, judged: &Judged, outcome: &Outcome<'_>) -> Event {
        let Judged {
            decision, identity, ..
        } = judged;
        let entry = judged.entry();
        let site = &entry.site;
        let (rule, rule_source) = rule(decision, site);
        Event {
            time: request.arrived,
            site: site.name.clone(),
            crawler: crawler_label(self.registry, entry, decision.claim).to_owned(),
            calls_itself: match decision.claim {
                Claim::Other | Claim::Tool => {
                    calls_itself(request.user_agent.unwrap_or_default()).map(str::to_owned)
                }
                Claim::Known(_) | Claim::Token(_) | Claim::Nobody => None,
            },
            identity: identity.name(),
            proof: judged.proof.name(),
            signature: judged.signature,
            doubt: judged.doubt.map(Into::into),
            client: request.logged_as(self.logs.addresses),
            kept_address: request.logged_as(self.logs.kept_addresses),
            method: text(request.method),
            host: text(request.host),
            target: text(request.target),
            user_agent: request.user_agent.map(text),
            verdict: decision.verdict.name(),
            readings: decision.readings.name(),
            kind: decision.kind.name(),
            never_fetched: decision.never_fetched,
            rule,
            rule_source,
            version: site.robots_txt.version.to_string(),
            history: judged.basis.into(),
            older_until: judged.older_until,
            held: judged
                .cached_versions(request.host)
                .map(|version| version.to_string())
                .collect(),
            action: decision.action.name(),
            would: decision.would.map(Action::name),
            status: outcome.status,
            retry_after: decision.slowed_for(),
            request_id: text(outcome.request_id),
            trace_id: outcome.trace_id.map(text),
            left_out: 0,
        }
    }

    /// Writes a line into the access log, if it is on. `Err` is the action of a request that was
    /// not judged.
    fn log(
        &self,
        request: &RequestFacts<'_>,
        judgement: Result<&Judgement, &'static str>,
        outcome: &Outcome<'_>,
    ) {
        if self.logs.access.enabled() {
            self.logs
                .access
                .write(&self.access_record(request, judgement, outcome));
        }
    }

    /// The line for the access log, with texts cut to a bounded length. For a request that was not
    /// judged (`Err`, with its action) or whose host no site has, the fields about the site are
    /// empty.
    fn access_record<'a, 'o: 'a>(
        &'a self,
        request: &'a RequestFacts<'a>,
        judgement: Result<&'a Judgement, &'static str>,
        outcome: &'a Outcome<'o>,
    ) -> AccessRecord<'a> {
        let judged = judgement.ok().and_then(Judgement::judged);
        let decision = judged.map(|judged| &judged.decision);
        let site = judged.map(|judged| &*judged.entry().site);
        let (rule, rule_source) = decision
            .zip(site)
            .map(|(decision, site)| rule(decision, site))
            .unwrap_or_default();
        AccessRecord {
            time: request.arrived,
            client: request.logged_as(self.logs.addresses),
            method: cut(request.method),
            host: cut(request.host),
            target: cut(request.target),
            http: outcome.http,
            tls: outcome.tls,
            status: outcome.status,
            bytes: outcome.body_octets,
            milliseconds: (outcome.elapsed.as_secs_f64() * 1e6).round() / 1e3,
            user_agent: request.user_agent.map(cut),
            referer: outcome.referer.map(cut),
            site: site.map(|site| site.name.as_str()),
            crawler: judgement
                .ok()
                .and_then(|judgement| claim_label(judgement.claim(), self.registry, site)),
            identity: judged
                .filter(|judged| judged.decision.claim != Claim::Nobody)
                .map(|judged| judged.identity.name()),
            doubt: judged.and_then(|judged| judged.doubt).map(Into::into),
            verdict: decision.map(|decision| decision.verdict.name()),
            kind: decision.map(|decision| RecordedKind::from_decision(decision).name()),
            older_until: judged.and_then(|judged| judged.older_until),
            never_fetched: decision
                .is_some_and(|decision| decision.never_fetched && decision.recorded),
            rule,
            rule_source,
            action: match judgement {
                Ok(_) => decision
                    .map_or(Action::Pass, |decision| decision.action)
                    .name(),
                Err(action) => action,
            },
            would: decision.and_then(|decision| decision.would.map(Action::name)),
            observed: decision
                .zip(site)
                .and_then(|(decision, site)| Some(PassReason::of(decision, site)?.name())),
            version: site.map(|site| site.robots_txt.version),
            request_id: cut(outcome.request_id),
            trace_id: outcome.trace_id.map(cut),
            error: outcome.error,
        }
    }
}

/// The line of robots.txt that decided, and its place in the policy file: the crawl delay for a
/// request that came too soon, else the rule. Either is `None` where there is none.
fn rule(decision: &Decision, site: &Site) -> (Option<String>, Option<String>) {
    let group = decision
        .rule
        .and_then(|rule| site.document.groups.get(usize::from(rule.group)));
    if let Some(delay) = group
        .filter(|_| decision.slowed_for().is_some())
        .and_then(|group| group.crawl_delay)
    {
        return (
            Some(format!("Crawl-delay: {}", seconds(delay))),
            group_place(decision, site),
        );
    }
    let rule = decision
        .rule
        .and_then(|rule| group?.rules.get(usize::try_from(rule.rule?).ok()?));
    (rule.map(ToString::to_string), rule_place(decision, site))
}

/// Remembers the tags (X-Robots-Tag) of a front page that was forwarded and answered 200, for the
/// metric `crawlgate_site_indexable`. Other requests change nothing.
fn watch_front_page(request: &RequestFacts<'_>, judged: &Judged, outcome: &Outcome<'_>) {
    let front_page = &judged.entry().site.front_page;
    let forwarded = judged.decision.action == Action::Pass;
    let target = origin_form(request.target);
    if forwarded && outcome.status == 200 && front_page.is_at(&target) {
        front_page.saw(
            &target,
            &parse_lines(outcome.x_robots_tag.iter().copied()),
            request.now(),
        );
    }
}

/// Whether the request is recorded as an event: it was blocked or slowed down, or would have been
/// without observation. A pause or a licence makes no event.
fn is_event(decision: &Decision) -> bool {
    is_refusal(decision.action) || decision.would.is_some_and(is_refusal)
}

fn is_refusal(action: Action) -> bool {
    matches!(action, Action::Block(_) | Action::Slow { .. })
}

/// The kind under which the request counts as a violation in the metrics; `None` if it is no event.
/// No violations either: a path that only its resolved form disallows, rules that the operator
/// never promised to follow, and a missing proof.
fn violation(decision: &Decision) -> Option<ViolationKind> {
    let counts = !matches!(
        decision.kind,
        Kind::Ambiguous | Kind::NotBound | Kind::Unverified
    );
    (is_event(decision) && counts).then(|| ViolationKind::from_decision(decision))
}

/// The crawler of a claim for metrics and logs: the registry's id, the policy's token, `other`, or
/// `none` for a person.
fn crawler_label<'a>(registry: &'a Registry, entry: &'a SiteEntry, claim: Claim) -> &'a str {
    claim_label(claim, registry, Some(&entry.site)).unwrap_or(NOBODY)
}

/// What is proven of the name that a request gives; `None` for visitors, who give none.
fn known_identity(claim: Claim, identity: Identity) -> Option<KnownIdentity> {
    (claim != Claim::Nobody).then(|| identity.known())
}

/// A visitor's request for a host of no site, or one that was answered before it was judged.
fn unjudged<'a>(action: CountedAction, outcome: &Outcome<'_>) -> CountedRequest<'a> {
    CountedRequest {
        site: UNCLAIMED,
        crawler: NOBODY,
        identity: None,
        kind: Kind::NotACrawler.into(),
        action,
        violation: None,
        status: outcome.status,
        bytes: outcome.body_octets,
        origin_milliseconds: 0,
    }
}
