//! [`decide`] chooses the [`Course`] of a request over HTTP/1: an answer of crawlgate's, forwarding
//! by the lane (`lane`), or forwarding by Pingora's proxy.

use crate::answers::Asked;
use crate::edge::door::{Edge, IN_PINGORA, PINGORA_UPLOAD};
use crate::edge::head::{MOST_FIELDS, Request, header_map};
use crate::edge::lane::{LANE_UPLOAD, LaneRequest, fits};
use crate::requests::{
    Connection, Framing, Mistake, Next, Received, RequestHead, Responded, Ticket, memory_of_head,
};
use std::mem::MaybeUninit;

pub enum Course {
    /// It is answered here. The connection may go on afterwards (true), or has to end.
    Answer(Box<Responded>, bool),
    /// It goes to the origin through the lane.
    Lane(Ticket, Box<LaneRequest>),
    /// It goes to the origin through Pingora, with this body. The client may wait for a 100 before
    /// it sends that (true).
    Forward(Ticket, Framing, bool),
}

/// Reads a whole head, has the request judged, and chooses its course. A head with a mistake is
/// answered with a refusal, after which the connection has to end.
pub fn decide(edge: &Edge, head: &[u8], connection: &Connection<'_>) -> Course {
    course_of(edge, head, connection).unwrap_or_else(|mistake| {
        Course::Answer(
            Box::new(edge.requests.refuse(head, mistake, connection).into()),
            false,
        )
    })
}

fn course_of(edge: &Edge, head: &[u8], connection: &Connection<'_>) -> Result<Course, Mistake> {
    let mut room = [const { MaybeUninit::uninit() }; MOST_FIELDS];
    let request = Request::read(head, &mut room, edge.limits())?;
    let arrival = edge.requests.arrival();
    let has_more = request.framing != Framing::None || request.expects || request.upgrades;
    let may_go_on = !request.closes && !has_more;
    if let Some(responder) = &edge.responder {
        let responded = responder.respond(&Received {
            method: &request.answer_method(),
            target: request.fields.target,
            host: request.fields.host,
            headers: &header_map(request.lines.iter()),
            peer: connection.peer.address,
            http: request.fields.http,
            arrival,
        });
        return Ok(Course::Answer(Box::new(responded), may_go_on));
    }
    let (mut ticket, next) = edge.requests.receive(&request, connection, arrival);
    Ok(match next {
        Next::Answer(answer) => Course::Answer(Box::new((ticket, answer).into()), may_go_on),
        Next::Forward => {
            let lane = edge.lane.as_ref().filter(|_| fits(&request, &ticket));
            let (space, body) = if lane.is_some() {
                (0, LANE_UPLOAD)
            } else {
                (IN_PINGORA, PINGORA_UPLOAD)
            };
            ticket.hold_request(
                memory_of_head(head.len()) + space,
                request.framing.at_most(body),
            );
            if ticket.lacks_space() {
                let method = request.answer_method();
                let headers = request.answer_fields();
                let answer = ticket.forward(*connection).fail(
                    503,
                    &Asked {
                        method: &method,
                        headers: &headers,
                    },
                );
                return Ok(Course::Answer(Box::new((ticket, answer).into()), may_go_on));
            }
            match lane {
                Some(lane) => {
                    let in_lane = LaneRequest::new(
                        &request,
                        &ticket.forward(*connection),
                        lane.origin_host(&ticket),
                    );
                    Course::Lane(ticket, Box::new(in_lane))
                }
                None => Course::Forward(ticket, request.framing, request.expects),
            }
        }
    })
}
