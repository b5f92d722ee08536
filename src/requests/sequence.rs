//! [`Requests`]: the steps that every request goes through before it is sent to the origin, the
//! same for HTTP/1, HTTP/2, the middleware and the decision service. In this order: a malformed
//! head is refused, a certificate authority gets the file of its challenge (ACME), a request that
//! should use https is redirected, and every other request is judged by the policy. It is then
//! answered or forwarded.

use super::buffer_space::BufferSpace;
use super::challenges::Challenges;
use super::connection::Connection;
use super::head::RequestHead;
use super::mistake::Mistake;
use super::request_id::request_id;
use super::ticket::{Shared, Ticket};
use super::unread::UnreadHead;
use crate::answers::{Answer, Answers, Rejection, Ruling, challenge, redirect, rejection};
use crate::clock::Clock;
use crate::forwarding::{Client, Forwarded};
use crate::heads::{ForwardingFields, is_request_id, trace_id};
use crate::judge::{Judge, Recorder};
use crate::record::{Arrival, CountedAction, Judgement, RequestFacts};
use crate::settings::{ClientAddress, Limits};
use crate::telemetry::Metrics;
use crate::time::Timestamp;
use crate::verdict::{Action, Explanation, ResponseFacts};
use ipnet::IpNet;
use std::sync::Arc;
use std::time::Instant;

/// Whether there is a certificate for the host of a `Host` field value.
pub type IsEncrypted = Arc<dyn Fn(&[u8]) -> bool + Send + Sync>;

/// The settings for the requests of a listener.
#[derive(Default)]
pub struct RequestSettings {
    /// Peers whose forwarding fields are believed.
    pub trusted_proxies: Vec<IpNet>,
    /// The field in which they name their client: one for the process.
    pub client_address: ClientAddress,
    /// The challenges of authorities.
    pub challenges: Challenges,
    /// Whether a host can be reached over https. Without this, every host can. Requests for other
    /// hosts are not redirected.
    pub is_encrypted: Option<IsEncrypted>,
    /// Bounds on heads.
    pub limits: Limits,
    /// Whether the clients are proxies that ask for decisions: they get a refusal for a malformed
    /// head.
    pub is_for_proxies: bool,
}

/// See the top of this file. All listeners of a process share its parts.
pub struct Requests {
    shared: Arc<Shared>,
    answers: Arc<Answers>,
    settings: RequestSettings,
}

/// The next step of a request.
#[expect(
    clippy::large_enum_variant,
    reason = "it is taken apart at once, and a box would be an allocation"
)]
pub enum Next {
    /// The request gets this answer.
    Answer(Answer),
    /// The request goes to the origin: see [`Ticket::forward`].
    Forward,
}

impl Requests {
    /// The sequence with this judge and this recorder.
    pub fn new(
        judge: Arc<Judge>,
        recorder: Arc<Recorder>,
        clock: Clock,
        settings: RequestSettings,
    ) -> Arc<Requests> {
        let space = BufferSpace::new(&settings.limits, recorder.metrics.clone());
        let client_address = settings.client_address.clone();
        let shared = Arc::new(Shared {
            judge,
            recorder,
            clock,
            space,
            client_address,
            limits: settings.limits,
        });
        Arc::new(Requests {
            shared,
            answers: Arc::default(),
            settings,
        })
    }

    /// The sequence with other settings, but the same prepared answers and space in buffers.
    pub fn with(&self, settings: RequestSettings) -> Arc<Requests> {
        Arc::new(Requests {
            shared: self.shared.clone(),
            answers: self.answers.clone(),
            settings,
        })
    }

    /// The metrics that count requests.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.shared.recorder.metrics
    }

    /// The settings.
    pub fn settings(&self) -> &RequestSettings {
        &self.settings
    }

    /// An arrival at this moment.
    pub fn arrival(&self) -> Arrival {
        let started = Instant::now();
        let (arrived, lived) = self.shared.clock.read(started);
        Arrival {
            arrived,
            started,
            lived,
        }
    }

    /// Refuses bytes that are a malformed or incomplete head, as far as they can be read: see
    /// [`Requests::refuse_head`].
    pub fn refuse(
        &self,
        octets: &[u8],
        mistake: Mistake,
        connection: &Connection<'_>,
    ) -> (Ticket, Answer) {
        self.refuse_head(&UnreadHead::new(octets), mistake, connection)
    }

    /// Refuses a head for this mistake. Returns the ticket by which the request is recorded, and
    /// the answer. The metrics count the refusal.
    pub fn refuse_head(
        &self,
        head: &impl RequestHead,
        mistake: Mistake,
        connection: &Connection<'_>,
    ) -> (Ticket, Answer) {
        let mut ticket = self.open(head, connection, self.arrival());
        ticket.refuse(mistake);
        let answer = self.rejection(mistake, head, &ticket);
        (ticket, connection.with_hsts(answer))
    }

    /// Takes a request through the sequence: its head is checked, challenges and redirects are
    /// answered, every other one is judged. Returns its ticket and whether it is answered or
    /// forwarded. Called once for a request, because judging counts it.
    pub fn receive<H: RequestHead>(
        &self,
        head: &H,
        connection: &Connection<'_>,
        arrival: Arrival,
    ) -> (Ticket, Next) {
        let mut ticket = self.open(head, connection, arrival);
        match self.find(head, &mut ticket, connection) {
            Some(answer) => {
                ticket.note_answer(head);
                (ticket, Next::Answer(connection.with_hsts(answer)))
            }
            None => (ticket, Next::Forward),
        }
    }

    /// The answer that a request would get now (`None`: it would pass), and the action (`None`: no
    /// site has its host). Changes and records nothing: for a request that was received before, and
    /// that a proxy asks about a second time.
    pub fn look(
        &self,
        head: &impl RequestHead,
        connection: &Connection<'_>,
        arrival: Arrival,
    ) -> (Option<Answer>, Option<Action>) {
        let (request, _) = self.copy(head, connection, arrival);
        let judgement = self.shared.judge.look(&request);
        let action = judgement.judged().map(|judged| judged.decision.action);
        (self.answer(&judgement, head, request.now()), action)
    }

    /// The decision that a request would get now, its reasons, and what would be added to this
    /// response. Changes and records nothing.
    pub fn explain(
        &self,
        head: &impl RequestHead,
        connection: &Connection<'_>,
        response: &ResponseFacts<'_>,
    ) -> Explanation {
        let (request, _) = self.copy(head, connection, self.arrival());
        self.shared.judge.explain(&request, response)
    }

    /// The ticket of a request that is not judged yet.
    fn open(
        &self,
        head: &impl RequestHead,
        connection: &Connection<'_>,
        arrival: Arrival,
    ) -> Ticket {
        let (request, forwarded) = self.copy(head, connection, arrival);
        Ticket::new(self.shared.clone(), request, forwarded)
    }

    /// Copies what judging and recording need of a head, and finds the client. Takes the request's
    /// id over from a trusted proxy, or makes one. Returns as well what a trusted proxy says in
    /// `Forwarded`, if that is believed.
    #[inline]
    fn copy(
        &self,
        head: &impl RequestHead,
        connection: &Connection<'_>,
        arrival: Arrival,
    ) -> (RequestFacts, Option<Box<Forwarded>>) {
        let fields = head.fields();
        let peer = connection.peer;
        let made;
        let given = fields
            .request_id
            .filter(|id| peer.is_trusted && is_request_id(id));
        let id = match given {
            Some(given) => given,
            None => {
                made = request_id();
                &made
            }
        };
        let trace = fields
            .traceparent
            .map(|traceparent| trace_id(traceparent).unwrap_or_default());
        let field = &self.shared.client_address;
        let trusted = &self.settings.trusted_proxies;
        let client = Client::find(peer, || head.values(&field.0), field, trusted);
        let mut request = RequestFacts::copy(&fields, id, trace, arrival);
        request.tls = connection.tls;
        request.client = client.address;
        request.logged = client.logged;
        request.proxies = client.proxies;
        request.unread = match client.address {
            Some(_) if !peer.is_trusted => fields.forwarding,
            None if client.is_unread => fields.forwarding.other_addresses(field.0.as_str()),
            _ => ForwardingFields::default(),
        };
        (request, client.forwarded)
    }

    /// The sequence itself: sets in the ticket what was found, and returns the answer (`None`: the
    /// request passes). In this order, the first that applies: a mistake in the head, the file of a
    /// challenge, a redirect to https (if the host has a certificate), the judgement.
    fn find<H: RequestHead>(
        &self,
        head: &H,
        ticket: &mut Ticket,
        connection: &Connection<'_>,
    ) -> Option<Answer> {
        if let Some(mistake) = head.mistake(&self.settings.limits) {
            ticket.refuse(mistake);
            return Some(self.rejection(mistake, head, ticket));
        }
        let method = ticket.method();
        let host = ticket.host();
        let target = ticket.target();
        if let Some(file) = self.settings.challenges.file(method, target) {
            ticket.set_judgement(Judgement::Unjudged(CountedAction::Challenge));
            return Some(head.asked(|asked| challenge(file, asked)));
        }
        let redirect_to = connection.redirect.filter(|_| {
            self.settings
                .is_encrypted
                .as_ref()
                .is_none_or(|is| is(host))
        });
        if let Some(location) = redirect_to.and_then(|to| to.location(method, host, target))
            && let Some(answer) = head.asked(|asked| redirect(&location, asked))
        {
            ticket.set_judgement(Judgement::Unjudged(CountedAction::Redirect));
            return Some(answer);
        }
        let judgement = self
            .shared
            .recorder
            .timed(|| self.shared.judge.judge(ticket.request()));
        ticket.set_judgement(judgement);
        self.answer(ticket.judgement(), head, ticket.request().now())
    }

    /// The answer to a mistake, with the request's id; the same one for every mistake where proxies
    /// ask for decisions. The metrics count it.
    fn rejection(&self, mistake: Mistake, head: &impl RequestHead, ticket: &Ticket) -> Answer {
        self.shared
            .recorder
            .metrics
            .request_rejected(mistake.name());
        let reason = if self.settings.is_for_proxies {
            Rejection::Unreadable
        } else {
            mistake.rejection()
        };
        head.asked(|asked| rejection(reason, asked))
            .named(ticket.request().id())
    }

    /// The answer that a judgement asks for; `None` if the request passes, and if no site has its
    /// host. `now` is when the request arrived.
    fn answer(
        &self,
        judgement: &Judgement,
        head: &impl RequestHead,
        now: Timestamp,
    ) -> Option<Answer> {
        let judged = judgement
            .judged()
            .filter(|judged| judged.decision.action != Action::Pass)?;
        let ruling = Ruling::new(judged, self.shared.judge.registry, now);
        head.asked(|asked| self.answers.answer(&ruling, asked))
    }
}
