//! [`Desk`]: what becomes of a request over HTTP/1: it is answered here, or goes to the origin through the lane or Pingora.
//! Borrows the head; must not know connections.

use super::head::{MOST_FIELDS, ReadHead, Request};
use super::lane::{LaneRequest, fits};
use crate::answers::Answer;
use crate::requests::{Connection, Framing, Mistake, Next, Requests, Respond, Ticket};
use crate::settings::Limits;
use std::sync::Arc;

/// Fields that most heads have room with.
const USUAL_FIELDS: usize = 32;

/// What all requests share.
pub struct Desk {
    /// The sequence that every request goes through.
    pub requests: Arc<Requests>,
    /// Answers every request, in its place. Then only trusted proxies may connect.
    pub responder: Option<Arc<dyn Respond>>,
    /// Whether requests that fit the lane take it.
    pub has_lane: bool,
}

/// What becomes of a request.
pub enum Way {
    /// It is answered here; afterwards the connection may go on, or has to end.
    Answer(Box<Answer>, bool),
    /// It goes to the origin through the lane.
    Lane(Box<LaneRequest>),
    /// It goes to the origin through Pingora, with this body.
    Forward(Framing),
}

impl Desk {
    /// Bounds on heads and connections.
    pub fn limits(&self) -> &Limits {
        &self.requests.settings().limits
    }

    /// Decides about a whole head.
    pub fn decide(&self, head: &[u8], connection: &Connection<'_>) -> (Ticket, Way) {
        // Room for most heads: to clear that of the largest one would cost as much as to read most.
        let decided = match self.decide_within::<USUAL_FIELDS>(head, connection) {
            Err(Mistake::TooManyFields) => self.decide_within::<MOST_FIELDS>(head, connection),
            decided => decided,
        };
        decided.unwrap_or_else(|mistake| {
            let (ticket, answer) = self.requests.refuse(head, mistake, connection);
            (ticket, Way::Answer(Box::new(answer), false))
        })
    }

    fn decide_within<const ROOM: usize>(
        &self,
        head: &[u8],
        connection: &Connection<'_>,
    ) -> Result<(Ticket, Way), Mistake> {
        let mut room = [httparse::EMPTY_HEADER; ROOM];
        let (request, fields) = Request::read(head, &mut room, self.limits())?;
        let read = ReadHead { request: &request, fields };
        let (ticket, next) = self.requests.receive(&read, connection, self.requests.arrival());
        let way = match next {
            Next::Answer(answer) => {
                let has_more = request.framing != Framing::None || request.expects || request.upgrades;
                Way::Answer(Box::new(answer), !request.closes && !has_more)
            }
            Next::Forward if self.has_lane && fits(&request, &ticket) => {
                Way::Lane(Box::new(LaneRequest::new(&read, &ticket.forward(*connection))))
            }
            Next::Forward => Way::Forward(request.framing),
        };
        Ok((ticket, way))
    }
}
