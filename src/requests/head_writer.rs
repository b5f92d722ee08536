//! [`HeadWriter`] writes the HTTP heads that leave crawlgate as a reverse proxy: the head of a
//! request for the origin, and the head of the origin's response for the client. If the origin
//! fails, `HeadWriter` makes the answer that the client gets instead.

use super::connection_facts::ConnectionFacts;
use super::ticket::Ticket;
use crate::answers::{Answer, RequestToAnswer, UnansweredRequest, origin_failure};
use crate::forwarding::{
    EditableHead, ForwardingFacts, HostReplacement, has_condition, remove_conditions,
    restore_client_host, write_ids_into_map, write_request, write_response,
};
use crate::robots::Authority;
use http::{HeaderMap, Method, StatusCode};

/// Writes the heads of a request that passes and of its response.
pub struct HeadWriter<'t> {
    pub(super) ticket: &'t Ticket,
    pub(super) connection: ConnectionFacts<'t>,
}

impl Ticket {
    /// The writer of the heads of this request and its response, for a client's connection.
    pub fn head_writer<'t>(&'t self, connection: ConnectionFacts<'t>) -> HeadWriter<'t> {
        HeadWriter {
            ticket: self,
            connection,
        }
    }
}

impl HeadWriter<'_> {
    /// Turns `head`, which has the client's fields, into the head for the origin. `origin_host` is
    /// the Host that the origin needs in place of the client's; with `None` the client's stays.
    pub fn write_request(&self, head: &mut impl EditableHead, origin_host: Option<&str>) {
        let request = self.ticket.request();
        let forwarded = ForwardingFacts {
            host: request.host(),
            peer: self.connection.peer,
            client: request.client,
            field: self.ticket.client_address(),
            forwarded: self.ticket.forwarded(),
            may_have_forwarding: request.may_have_forwarding(),
            origin_host,
            request_id: request.id(),
            has_malformed_trace: request.has_malformed_trace,
            needs_whole_page: self.needs_whole_page(head),
        };
        write_request(head, &forwarded);
    }

    /// For an origin in the same process: adds the id of the request, and removes conditions by
    /// which the origin would hide a change from a crawler.
    pub fn write_request_in_process(&self, head: &mut HeaderMap) {
        write_ids_into_map(
            head,
            self.ticket.request().id(),
            self.ticket.request().has_malformed_trace,
        );
        if self.needs_whole_page(head) {
            remove_conditions(head);
        }
    }

    /// Whether the request is conditional and a 304 would hide a change of the tags from its
    /// crawler.
    fn needs_whole_page(&self, head: &impl EditableHead) -> bool {
        let request = self.ticket.request();
        has_condition(head)
            && self
                .ticket
                .judgement()
                .needs_whole_page(request.host(), request.arrived_at())
    }

    /// Adds the fields of crawlgate and of the policy to a final response of the origin.
    /// `origin_host` is the Host that the origin needs: in the URLs of the head it is replaced by
    /// the client's, unless the site has that host itself.
    pub fn write_response(
        &self,
        head: &mut impl EditableHead,
        status: StatusCode,
        origin_host: Option<&str>,
    ) {
        if let Some(origin_host) = origin_host.filter(|host| !self.is_site_host(host)) {
            let peer = self.connection.peer;
            // A trusted proxy may speak TLS with the client, and clear text with crawlgate.
            let scheme = (!peer.is_trusted).then_some(if peer.is_tls { "https" } else { "http" });
            restore_client_host(
                head,
                &HostReplacement {
                    origin_host,
                    client_host: self.ticket.host(),
                    scheme,
                },
            );
        }
        write_response(head, status, self.connection.hsts, self.ticket.judged());
    }

    /// Whether this is a host of the site; false if the request was not judged. Its origin may
    /// redirect from other hosts to this one.
    fn is_site_host(&self, host: &str) -> bool {
        self.ticket.judged().is_some_and(|(_, entry)| {
            entry
                .site
                .policy
                .has_host(&Authority::parse(host.as_bytes()), b"")
        })
    }

    /// The answer in place of the origin's: 408, 413, 502, 504; 503 without
    /// [space](Ticket::lacks_buffer_space).
    pub fn failure_answer(&self, status: u16, headers: &HeaderMap) -> Answer {
        self.answer_unanswered(headers, |unanswered| origin_failure(status, unanswered))
    }

    /// An answer in place of the origin's, to the request with these header fields.
    pub(super) fn answer_unanswered(
        &self,
        headers: &HeaderMap,
        answer: impl FnOnce(&UnansweredRequest<'_>) -> Answer,
    ) -> Answer {
        let method = Method::from_bytes(self.ticket.method()).unwrap_or_default();
        self.connection.with_hsts(answer(&UnansweredRequest {
            request: &RequestToAnswer {
                method: &method,
                headers,
            },
            judged: self.ticket.judged(),
            request_id: self.ticket.request().id(),
        }))
    }
}
