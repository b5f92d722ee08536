//! [`RequestPipeline`]: the steps of every request before it is sent to the origin, in this order.
//! A malformed head is rejected. A certificate authority gets the file of its challenge (ACME). A
//! request that should use https is redirected. Every other request is judged by the policy, and
//! then answered or forwarded.

use super::buffer_budget::{BufferBudget, LOG_INTERVAL};
use super::challenge_files::ChallengeFileSources;
use super::connection_facts::ConnectionFacts;
use super::head::RequestHead;
use super::head_error::HeadError;
use super::partial_head::PartialHead;
use super::request_id::new_request_id;
use super::ticket::{RequestServices, Ticket};
use crate::answers::{
    Answer, AnswerCache, AnswerContext, Rejection, challenge_answer, redirect_answer,
    rejection_answer,
};
use crate::clock::Clock;
use crate::forwarding::{CDN_LOOP, ForwardedElement, LOOP_NAME, ResolvedClient};
use crate::heads::{ForwardingFieldSet, is_request_id, trace_id};
use crate::judge::{Judge, Recorder};
use crate::printable::printable;
use crate::record::{ArrivalTimes, CountedAction, Judgement, RequestCopy};
use crate::settings::{ClientAddressField, Limits};
use crate::telemetry::{LogThrottle, Metrics};
use crate::time::Timestamp;
use crate::verdict::{Action, Explanation, ResponseFacts};
use ipnet::IpNet;
use std::sync::Arc;
use std::time::Instant;

/// How often a request may have come through crawlgate: instances may stand behind each other.
const MAX_PASSES: usize = 3;

/// Whether there is a certificate for the host of a `Host` field value.
pub type HasCertificate = Arc<dyn Fn(&[u8]) -> bool + Send + Sync>;

/// The settings for the requests of a listener.
#[derive(Default)]
pub struct RequestSettings {
    /// Peers whose forwarding fields are believed.
    pub trusted_proxies: Vec<IpNet>,
    /// The field in which they name their client: one for the process.
    pub client_address: ClientAddressField,
    /// The challenges of certificate authorities.
    pub challenges: ChallengeFileSources,
    /// Whether a host can be reached over https. Without this, every host can. Requests for other
    /// hosts are not redirected.
    pub has_certificate: Option<HasCertificate>,
    /// Bounds on heads.
    pub limits: Limits,
    /// Whether the clients are proxies that ask for decisions. They get 403 for a malformed head.
    pub is_for_proxies: bool,
}

/// The steps of requests, with the settings of a listener. All listeners of a process share its
/// services.
pub struct RequestPipeline {
    shared: Arc<RequestServices>,
    settings: RequestSettings,
}

impl RequestPipeline {
    /// A pipeline with this judge and this recorder.
    pub fn new(
        judge: Arc<Judge>,
        recorder: Arc<Recorder>,
        clock: Clock,
        settings: RequestSettings,
    ) -> Arc<RequestPipeline> {
        let buffers = BufferBudget::new(&settings.limits, recorder.metrics.clone());
        let client_address = settings.client_address.clone();
        let shared = Arc::new(RequestServices {
            judge,
            recorder,
            clock,
            answers: AnswerCache::default(),
            buffers,
            client_address,
            limits: settings.limits,
            loops: LogThrottle::default(),
        });
        Arc::new(RequestPipeline { shared, settings })
    }

    /// A pipeline with other settings that shares everything else: cached answers, buffers.
    pub fn with_settings(&self, settings: RequestSettings) -> Arc<RequestPipeline> {
        Arc::new(RequestPipeline {
            shared: self.shared.clone(),
            settings,
        })
    }

    /// The metrics that count requests.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.shared.recorder.metrics
    }

    /// Records that a connection was not accepted, because the process may open no more files.
    pub fn record_unaccepted(&self) {
        let monotonic = self.shared.clock.moment().monotonic;
        self.shared.recorder.traffic().unaccepted.add(monotonic);
    }

    /// The settings.
    pub fn settings(&self) -> &RequestSettings {
        &self.settings
    }

    /// An arrival at this moment.
    pub fn arrival_now(&self) -> ArrivalTimes {
        let started = Instant::now();
        let (arrived, monotonic) = self.shared.clock.now_and_monotonic_at(started);
        ArrivalTimes {
            arrived,
            started,
            monotonic,
        }
    }

    /// Rejects bytes that are a malformed or incomplete head: see
    /// [`RequestPipeline::reject_head`].
    pub fn reject_bytes(
        &self,
        bytes: &[u8],
        error: HeadError,
        connection: &ConnectionFacts<'_>,
    ) -> (Ticket, Answer) {
        self.reject_head(&PartialHead::new(bytes), error, connection)
    }

    /// Rejects a head because of this error. Returns the ticket, which records the request, and the
    /// answer. The metrics count the rejection.
    pub fn reject_head(
        &self,
        head: &impl RequestHead,
        error: HeadError,
        connection: &ConnectionFacts<'_>,
    ) -> (Ticket, Answer) {
        let mut ticket = self.new_ticket(head, connection, self.arrival_now());
        let answer = self.rejection_answer(error, head, &mut ticket);
        (ticket, connection.with_hsts(answer))
    }

    /// Takes a request through all steps. Returns its ticket, and the answer; without one the
    /// request goes to the origin (see [`Ticket::head_writer`]). To be called once for a request,
    /// because judging counts it.
    pub fn receive<H: RequestHead>(
        &self,
        head: &H,
        connection: &ConnectionFacts<'_>,
        arrival: ArrivalTimes,
    ) -> (Ticket, Option<Answer>) {
        let mut ticket = self.new_ticket(head, connection, arrival);
        let answer = self.run_steps(head, &mut ticket, connection);
        if answer.is_some() {
            ticket.mark_answered(head);
        }
        (ticket, answer.map(|answer| connection.with_hsts(answer)))
    }

    /// The answer that a request would get now (`None`: it would pass), and the action (`None`: no
    /// site has its host). Changes and records nothing: for a request that was received before and
    /// that a proxy asks about again.
    pub fn preview(
        &self,
        head: &impl RequestHead,
        connection: &ConnectionFacts<'_>,
        arrival: ArrivalTimes,
    ) -> (Option<Answer>, Option<Action>) {
        let (request, _) = self.copy_facts(head, connection, arrival);
        let judgement = self.shared.judge.preview(&request);
        let action = judgement.judged().map(|judged| judged.decision.action);
        (
            self.judgement_answer(&judgement, head, request.arrived_at()),
            action,
        )
    }

    /// The decision that a request would get now, its reasons, and what would be added to this
    /// response. Changes and records nothing.
    pub fn explain(
        &self,
        head: &impl RequestHead,
        connection: &ConnectionFacts<'_>,
        response: &ResponseFacts<'_>,
    ) -> Explanation {
        let (request, _) = self.copy_facts(head, connection, self.arrival_now());
        self.shared.judge.explain(&request, response)
    }

    /// Makes the ticket of a request that is not judged yet.
    fn new_ticket(
        &self,
        head: &impl RequestHead,
        connection: &ConnectionFacts<'_>,
        arrival: ArrivalTimes,
    ) -> Ticket {
        let (request, forwarded) = self.copy_facts(head, connection, arrival);
        Ticket::new(self.shared.clone(), request, forwarded)
    }

    /// Copies the parts of a head that judging and recording need, and finds the client. The id of
    /// the request is that of a trusted proxy, or a new one. Also returns the `Forwarded` field of
    /// a trusted proxy.
    #[inline]
    fn copy_facts(
        &self,
        head: &impl RequestHead,
        connection: &ConnectionFacts<'_>,
        arrival: ArrivalTimes,
    ) -> (RequestCopy, Option<Box<ForwardedElement>>) {
        let fields = head.fields();
        let peer = connection.peer;
        let new_id;
        let proxy_id = fields
            .request_id
            .filter(|id| peer.is_trusted && is_request_id(id));
        let id = match proxy_id {
            Some(id) => id,
            None => {
                new_id = new_request_id();
                &new_id
            }
        };
        let trace = fields
            .traceparent
            .map(|traceparent| trace_id(traceparent).unwrap_or_default());
        let field = &self.shared.client_address;
        let trusted = &self.settings.trusted_proxies;
        let client = ResolvedClient::resolve(peer, || head.values(&field.0), field, trusted);
        let mut request = RequestCopy::from_head(&fields, id, trace, arrival);
        request.tls = connection.tls;
        request.client = client.address;
        request.logged = client.logged;
        request.is_peer_unknown = peer.is_unknown();
        // A proxy that asks for a decision does so before its own cache.
        request.proxies = client.proxies.filter(|_| !self.settings.is_for_proxies);
        request.unread = match client.address {
            Some(_) if !peer.is_trusted => fields.forwarding,
            None if client.is_unreadable => {
                fields.forwarding.other_address_fields(field.0.as_str())
            }
            _ => ForwardingFieldSet::default(),
        };
        (request, client.forwarded)
    }

    /// Goes through the steps, sets the result in the ticket, and returns the answer (`None`: the
    /// request passes). The first that applies: an error in the head, a loop, the file of a
    /// challenge, a redirect to https (if the host has a certificate), the judgement.
    fn run_steps<H: RequestHead>(
        &self,
        head: &H,
        ticket: &mut Ticket,
        connection: &ConnectionFacts<'_>,
    ) -> Option<Answer> {
        let error = head.head_error(&self.settings.limits);
        if let Some(error) = error.or_else(|| self.find_loop(head, ticket.host())) {
            return Some(self.rejection_answer(error, head, ticket));
        }
        let method = ticket.method();
        let host = ticket.host();
        let target = ticket.target();
        if let Some(file) = self.settings.challenges.challenge_file(method, target) {
            ticket.set_judgement(Judgement::Unjudged(CountedAction::Challenge));
            return Some(head.answer_with(|request| challenge_answer(file, request)));
        }
        let redirect_to = connection.redirect.filter(|_| {
            self.settings
                .has_certificate
                .as_ref()
                .is_none_or(|is| is(host))
        });
        if let Some(location) = redirect_to.and_then(|to| to.location(method, host, target))
            && let Some(answer) = head.answer_with(|request| redirect_answer(&location, request))
        {
            ticket.set_judgement(Judgement::Unjudged(CountedAction::Redirect));
            return Some(answer);
        }
        let judgement = self
            .shared
            .recorder
            .time_judging(|| self.shared.judge.judge(ticket.request()));
        ticket.set_judgement(judgement);
        self.judgement_answer(ticket.judgement(), head, ticket.request().arrived_at())
    }

    /// The answer to an error in the head, with the request's id. Proxies that ask for decisions
    /// get the same answer to every error. The ticket records it, and the metrics count it.
    fn rejection_answer(
        &self,
        error: HeadError,
        head: &impl RequestHead,
        ticket: &mut Ticket,
    ) -> Answer {
        ticket.set_head_error(error);
        self.shared
            .recorder
            .metrics
            .count_rejected_request(error.name());
        let reason = if self.settings.is_for_proxies {
            Rejection::Unreadable
        } else {
            error.to_rejection()
        };
        head.answer_with(|request| rejection_answer(reason, request))
            .with_request_id(ticket.request().id())
    }

    /// The answer to a judged request; `None` if it passes, and if no site has its host. `now` is
    /// when the request arrived.
    fn judgement_answer(
        &self,
        judgement: &Judgement,
        head: &impl RequestHead,
        now: Timestamp,
    ) -> Option<Answer> {
        let judged = judgement
            .judged()
            .filter(|judged| judged.decision.action != Action::Pass)?;
        let ruling = AnswerContext {
            registry: self.shared.judge.registry,
            judged,
            now,
        };
        head.answer_with(|request| self.shared.answers.answer(&ruling, request))
    }

    /// The error of a request that came through crawlgate too often. It is logged at most once a
    /// minute, because anybody can send such a field.
    fn find_loop(&self, head: &impl RequestHead, host: &[u8]) -> Option<HeadError> {
        head.values(&CDN_LOOP)
            .flat_map(|line| line.windows(LOOP_NAME.len()))
            .filter(|name| *name == LOOP_NAME)
            .nth(MAX_PASSES)?;
        let admitted = self
            .shared
            .loops
            .admit_after(LOG_INTERVAL, self.shared.clock.moment().monotonic);
        if admitted.is_some() {
            tracing::warn!(
                host = %printable(host),
                "a request names crawlgate more than {MAX_PASSES} times in CDN-Loop, so crawlgate answers 508. If the \
                 origin of this host leads back to crawlgate, name the address of the web server behind crawlgate in \
                 \"origins\". Otherwise a client has written this field"
            );
        }
        Some(HeadError::Loop)
    }
}
