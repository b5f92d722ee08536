//! HTTP/1 on a connection: reads one head after the other, answers what needs no origin, and hands the rest to Pingora,
//! which gives the connection back. The main function is [`serve`]. Must not know what a policy says.
//!
//! A connection is idle, receives a head, or has a request that is answered here or by Pingora; then it is idle again, or
//! over. Only the first two end with a stop.

mod client;

use super::answered::Answered;
use super::connection::Connection;
use super::date::with_date;
use super::desk::{Desk, Way};
use super::door::Door;
use super::head::{MOST_FIELDS, Request, header_map};
use super::lane::{After, Exchange};
use super::linger::{LINGERING, linger};
use super::scan::Scanner;
use super::stops::Stops;
use crate::answers::Answer;
use crate::requests::{Arrival, Framing, Mistake, Received, Respond};
use crate::settings::Limits;
use client::Http1Client;
use http::{HeaderMap, Method};
use pingora_core::apps::HttpServerApp;
use pingora_core::protocols::http::ServerSession;
use pingora_core::server::ShutdownWatch;
use std::io;
use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;
use tokio::io::AsyncWriteExt;

/// What is read on of a proxy's question: more than any proxy lets a head be (Go: 1 MiB). A proxy that cannot read the refusal
/// would let the request pass.
const LINGERING_FOR_PROXIES: usize = 2 * 1024 * 1024;

/// Why there is no head.
enum NoHead {
    /// The client is gone or was idle for too long, or the server stops.
    Over,
    Mistake(Mistake),
}

/// Serves a connection to its end.
pub(super) async fn serve<A>(door: &Door<A>, mut connection: Box<Connection>, mut stops: Stops)
where
    A: HttpServerApp + Send + Sync + 'static,
{
    loop {
        let next = match next_head(&mut connection, door.edge.desk.limits(), &mut stops.closing).await {
            Ok(head) => one(door, connection, head, &stops.leaving).await,
            Err(NoHead::Mistake(mistake)) => {
                refuse(door, &mut connection, mistake).await;
                None
            }
            Err(NoHead::Over) => {
                let _ = connection.shutdown().await;
                None
            }
        };
        match next {
            Some(next) => connection = next,
            None => return,
        }
        connection.set_active(false);
    }
}

/// Where the next head is in what was seen.
async fn next_head(
    connection: &mut Connection,
    limits: &Limits,
    closing: &mut ShutdownWatch,
) -> Result<Range<usize>, NoHead> {
    let mut scanner = Scanner::new(limits);
    let mut has_begun = false;
    connection.set_deadline(limits.idle);
    loop {
        if !connection.seen().is_empty() {
            let is_first = !std::mem::replace(&mut has_begun, true);
            if is_first {
                connection.set_active(true);
            }
            if let Some(head) = scanner.scan(connection.seen()).map_err(NoHead::Mistake)? {
                return Ok(head);
            }
            if is_first {
                connection.set_deadline(limits.head);
            }
        }
        let read = tokio::select! {
            biased;
            read = connection.see() => read,
            // An error means that the sender is gone, and no later stop could arrive.
            _ = closing.wait_for(|closing| *closing), if !has_begun => return Err(NoHead::Over),
        };
        match read {
            Ok(1..) => {}
            Err(error) if error.kind() == io::ErrorKind::TimedOut && has_begun => {
                return Err(NoHead::Mistake(Mistake::HeadTimeout));
            }
            Ok(0) | Err(_) => return Err(NoHead::Over),
        }
    }
}

/// One request. The connection, if it goes on.
async fn one<A>(
    door: &Door<A>,
    mut connection: Box<Connection>,
    head: Range<usize>,
    leaving: &ShutdownWatch,
) -> Option<Box<Connection>>
where
    A: HttpServerApp + Send + Sync + 'static,
{
    let desk = &door.edge.desk;
    let head = connection.take(head);
    if let Some(responder) = &desk.responder {
        return respond(door, connection, (&head, responder), leaving).await;
    }
    let (ticket, way) = desk.decide(&head, &connection.client.behind(door.redirect));
    match way {
        Way::Answer(answer, may_go_on) => {
            let keeps_alive = may_go_on && !*leaving.borrow();
            let answered = Answered::Request(ticket, *answer);
            answer_here(desk, &mut connection, answered, keeps_alive).await.then_some(connection)
        }
        Way::Lane(request) => {
            let Some(lane) = &door.edge.lane else { return None };
            let mut client = Http1Client::new(&mut connection, &head, &request, leaving);
            // In a box, or each connection would have room for it between its requests.
            let after = Box::pin(Exchange::new(lane, &mut client, ticket, *request).run()).await;
            match after {
                After::Whole if client.goes_on().await => Some(connection),
                After::Whole | After::Answered => {
                    linger(&mut connection, LINGERING).await;
                    None
                }
                After::BrokenOff => None,
            }
        }
        Way::Forward(body) => {
            connection.client.hand_on(ticket);
            connection.open_for(head, body);
            forward(door, connection, leaving).await
        }
    }
}

/// Refuses what was seen, which is no head, and ends the connection.
async fn refuse<A>(door: &Door<A>, connection: &mut Connection, mistake: Mistake) {
    let seen = connection.take(0..connection.seen().len());
    refuse_octets(door, connection, (&seen, mistake)).await;
}

async fn refuse_octets<A>(door: &Door<A>, connection: &mut Connection, (octets, mistake): (&[u8], Mistake)) {
    let desk = &door.edge.desk;
    let (ticket, answer) = desk.requests.refuse(octets, mistake, &connection.client.behind(door.redirect));
    answer_here(desk, connection, Answered::Request(ticket, answer), false).await;
}

/// Sends an answer, and says whether the connection goes on.
async fn answer_here(desk: &Desk, connection: &mut Connection, answered: Answered, keeps_alive: bool) -> bool {
    let keeps_alive = keeps_alive && !answered.answer().closes();
    let is_sent = write(connection, answered.answer(), keeps_alive).await;
    answered.record(is_sent);
    if is_sent && !keeps_alive {
        let most = if desk.responder.is_some() { LINGERING_FOR_PROXIES } else { LINGERING };
        linger(connection, most).await;
    }
    is_sent && keeps_alive
}

/// Writes an answer, and says whether all of it was written.
async fn write(connection: &mut Connection, answer: &Answer, keeps_alive: bool) -> bool {
    let mut octets = Vec::new();
    with_date(|date| answer.write_http1(date, keeps_alive, &mut octets));
    let written = async {
        connection.write_all(&octets).await?;
        connection.flush().await
    };
    match written.await {
        Ok(()) => true,
        Err(error) => {
            tracing::debug!(%error, "the client left before its answer was written");
            false
        }
    }
}

/// One request to a door that answers by itself. The connection, if it goes on.
async fn respond<A>(
    door: &Door<A>,
    mut connection: Box<Connection>,
    (head, responder): (&[u8], &Arc<dyn Respond>),
    leaving: &ShutdownWatch,
) -> Option<Box<Connection>> {
    let desk = &door.edge.desk;
    let heard = match Heard::read(desk, head) {
        Ok(heard) => heard,
        Err(mistake) => {
            refuse_octets(door, &mut connection, (head, mistake)).await;
            return None;
        }
    };
    let responded = responder.respond(&heard.received(connection.client.peer.address));
    let keeps_alive = heard.keeps_alive && !*leaving.borrow();
    let answered = Answered::Question(responder.clone(), responded);
    answer_here(desk, &mut connection, answered, keeps_alive).await.then_some(connection)
}

/// A request for a door that answers by itself.
struct Heard<'b> {
    method: Method,
    target: &'b [u8],
    host: &'b [u8],
    headers: HeaderMap,
    is_http10: bool,
    keeps_alive: bool,
    arrival: Arrival,
}

impl<'b> Heard<'b> {
    fn read(desk: &Desk, head: &'b [u8]) -> Result<Heard<'b>, Mistake> {
        let mut room = [httparse::EMPTY_HEADER; MOST_FIELDS];
        let (request, fields) = Request::read(head, &mut room, desk.limits())?;
        let has_more = request.framing != Framing::None || request.expects || request.upgrades;
        Ok(Heard {
            // `Request::read` has checked it.
            method: Method::from_bytes(request.method).unwrap_or_default(),
            target: request.target,
            host: request.host,
            headers: header_map(fields),
            is_http10: request.is_http10,
            keeps_alive: !request.closes && !has_more,
            arrival: desk.requests.arrival(),
        })
    }

    fn received(&self, peer: Option<IpAddr>) -> Received<'_> {
        Received {
            method: &self.method,
            target: self.target,
            host: self.host,
            headers: &self.headers,
            peer,
            http: if self.is_http10 { "1.0" } else { "1.1" },
            arrival: self.arrival,
        }
    }
}

/// Hands a request to Pingora. The connection, if it goes on.
async fn forward<A>(door: &Door<A>, connection: Box<Connection>, leaving: &ShutdownWatch) -> Option<Box<Connection>>
where
    A: HttpServerApp + Send + Sync + 'static,
{
    let mut session = ServerSession::new_http1(connection);
    session.set_keepalive(Some(door.edge.desk.limits().idle.as_secs().max(1)));
    let (stream, _) = door.edge.app.process_new_http(session, leaving).await?.consume();
    let connection = stream.into_any().downcast::<Connection>().ok()?;
    connection.is_request_over().then_some(connection)
}
