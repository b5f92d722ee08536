//! [`decide`] parses the head of an HTTP/1 request, judges the request by the policy, and chooses
//! the [`Handling`]: crawlgate answers the request itself, or the forwarder or Pingora's proxy
//! sends it to the origin.

use crate::edge::context::{EdgeContext, PINGORA_BUFFER_BYTES, PINGORA_UPLOAD_BYTES};
use crate::edge::forwarder::{FORWARDER_UPLOAD_BYTES, OriginRequest, can_be_forwarded_directly};
use crate::edge::http1_head::{Http1RequestHead, MAX_FIELDS, to_header_map};
use crate::requests::{
    BodyFraming, ConnectionFacts, HeadError, OutgoingAnswer, ReceivedRequest, RequestHead, Ticket,
    head_reservation,
};
use std::mem::MaybeUninit;

/// How a request is handled.
pub enum Handling {
    /// crawlgate answers it.
    Answer {
        answer: Box<OutgoingAnswer>,
        may_keep_alive: bool,
    },
    /// The forwarder sends it to the origin.
    Forwarder(Ticket, Box<OriginRequest>),
    /// Pingora's proxy sends it to the origin.
    Pingora {
        ticket: Ticket,
        body: BodyFraming,
        expects_continue: bool,
    },
}

impl Handling {
    fn answer(answer: impl Into<OutgoingAnswer>, may_keep_alive: bool) -> Handling {
        Handling::Answer {
            answer: Box::new(answer.into()),
            may_keep_alive,
        }
    }
}

/// Chooses the handling of the request with this whole head. A malformed head is answered, and the
/// connection has to end.
pub fn decide(edge: &EdgeContext, head: &[u8], connection: &ConnectionFacts<'_>) -> Handling {
    try_decide(edge, head, connection).unwrap_or_else(|error| {
        Handling::answer(edge.requests.reject_bytes(head, error, connection), false)
    })
}

fn try_decide(
    edge: &EdgeContext,
    head: &[u8],
    connection: &ConnectionFacts<'_>,
) -> Result<Handling, HeadError> {
    let mut line_memory = [const { MaybeUninit::uninit() }; MAX_FIELDS];
    let request = Http1RequestHead::parse(head, &mut line_memory, edge.limits())?;
    let arrival = edge.requests.arrival_now();
    let may_have_more =
        request.framing != BodyFraming::None || request.expects_continue || request.wants_upgrade;
    let may_keep_alive = !request.wants_close && !may_have_more;
    if let Some(responder) = &edge.responder {
        let responded = responder.respond(&ReceivedRequest {
            method: &request.answer_method(),
            target: request.fields.target,
            host: request.fields.host,
            headers: &to_header_map(request.lines.iter()),
            peer: connection.peer.address,
            http: request.fields.http,
            arrival,
        });
        return Ok(Handling::answer(responded, may_keep_alive));
    }
    let (mut ticket, answer) = edge.requests.receive(&request, connection, arrival);
    Ok(match answer {
        Some(answer) => Handling::answer((ticket, answer), may_keep_alive),
        None => {
            let forwarder = edge
                .forwarder
                .as_ref()
                .filter(|_| can_be_forwarded_directly(&request, &ticket));
            let (space, body) = if forwarder.is_some() {
                (0, FORWARDER_UPLOAD_BYTES)
            } else {
                (PINGORA_BUFFER_BYTES, PINGORA_UPLOAD_BYTES)
            };
            ticket.reserve_for_request(
                head_reservation(head.len()) + space,
                request.framing.buffered_bytes(body),
            );
            if ticket.lacks_buffer_space() {
                let answer = ticket
                    .head_writer(*connection)
                    .failure_answer(503, &request.answer_fields());
                return Ok(Handling::answer((ticket, answer), may_keep_alive));
            }
            match forwarder {
                Some(forwarder) => {
                    let request_for_origin = OriginRequest::new(
                        &request,
                        &ticket.head_writer(*connection),
                        ticket.origin_host(&forwarder.upstreams),
                    );
                    Handling::Forwarder(ticket, Box::new(request_for_origin))
                }
                None => Handling::Pingora {
                    ticket,
                    body: request.framing,
                    expects_continue: request.expects_continue,
                },
            }
        }
    })
}
