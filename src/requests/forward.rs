//! [`Forward`] writes the head of a request for the origin, the head of the origin's response for
//! the client, and the answer where the origin fails.

use super::connection::Connection;
use super::ticket::Ticket;
use crate::answers::{Answer, Asked, Unanswered, failure};
use crate::forwarding::{
    Authorities, ForwardedRequest, Head, give_client_authority, has_condition, remove_conditions,
    write_ids_in_map, write_request, write_response,
};
use crate::heads::{origin_form, path_of};
use crate::robots::Authority;
use http::{HeaderMap, StatusCode, Uri, header};

/// A request that passes.
pub struct Forward<'t> {
    pub(super) ticket: &'t Ticket,
    pub(super) connection: Connection<'t>,
}

impl Ticket {
    /// The writer of the heads of this request and its response.
    pub fn forward<'t>(&'t self, connection: Connection<'t>) -> Forward<'t> {
        Forward {
            ticket: self,
            connection,
        }
    }
}

impl Forward<'_> {
    /// Turns `head`, which has the fields as they came, into the head for the origin. `origin_host`
    /// is the Host that the origin wants in place of the client's; with `None` the client's stays.
    pub fn write_request(&self, head: &mut impl Head, origin_host: Option<&str>) {
        let request = self.ticket.request();
        let forwarded = ForwardedRequest {
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
        write_ids_in_map(
            head,
            self.ticket.request().id(),
            self.ticket.request().has_malformed_trace,
        );
        if self.needs_whole_page(head) {
            remove_conditions(head);
        }
    }

    /// Whether the request is conditional, and a 304 would hide a change of the tags from its
    /// crawler.
    fn needs_whole_page(&self, head: &impl Head) -> bool {
        let request = self.ticket.request();
        has_condition(head)
            && self
                .ticket
                .judgement()
                .needs_whole_page(request.host(), request.now())
    }

    /// Adds the fields of crawlgate and of the policy to a response of the origin, which is not an
    /// informational one. `origin_host` is the Host that the origin wants: in the URLs of the head
    /// it becomes the client's, unless the site has that host itself. A redirect is remembered if
    /// it is that of the front page.
    pub fn write_response(
        &self,
        head: &mut impl Head,
        status: StatusCode,
        origin_host: Option<&str>,
    ) {
        if let Some(origins) = origin_host.filter(|host| !self.is_public(host)) {
            let peer = self.connection.peer;
            // A trusted proxy may speak TLS with the client, and clear text with crawlgate.
            let scheme = (!peer.is_trusted).then_some(if peer.is_tls { "https" } else { "http" });
            give_client_authority(
                head,
                &Authorities {
                    origins,
                    clients: self.ticket.host(),
                    scheme,
                },
            );
        }
        if status.is_redirection() {
            self.follow_front_page(head);
        }
        write_response(head, status, self.connection.hsts, self.ticket.judged());
    }

    /// Reports to the site where this request is redirected to (Location), if that is on a host of
    /// the site. The site remembers it if the request was for the front page.
    fn follow_front_page(&self, head: &impl Head) {
        let Some((_, entry)) = self.ticket.judged() else {
            return;
        };
        let from = origin_form(self.ticket.request().target());
        let to = head
            .lines(header::LOCATION)
            .next()
            .and_then(|line| resolved(line, &from));
        let own = to.as_ref().filter(|to| {
            let host = to.authority().map(|host| host.as_str());
            host.is_none_or(|host| host.as_bytes() == self.ticket.host() || self.is_public(host))
        });
        if let Some(target) = own.and_then(Uri::path_and_query) {
            entry
                .site
                .front_page
                .redirects(&from, target.as_str().as_bytes());
        }
    }

    /// Whether the site has this host itself; false if the request was not judged. Its origin may
    /// redirect from its other hosts to that one.
    fn is_public(&self, host: &str) -> bool {
        self.ticket.judged().is_some_and(|(_, entry)| {
            entry
                .site
                .policy
                .has_host(&Authority::read(host.as_bytes()), b"")
        })
    }

    /// The answer in place of an origin that gave none: 408, 413, 502, 504; 503 without
    /// [space](Ticket::lacks_space).
    pub fn fail(&self, status: u16, asked: &Asked<'_>) -> Answer {
        self.connection
            .with_hsts(failure(status, &self.unanswered_as(asked)))
    }

    /// The facts for an answer in place of the origin's.
    pub(super) fn unanswered_as<'a>(&'a self, asked: &'a Asked<'a>) -> Unanswered<'a> {
        Unanswered {
            asked,
            judged: self.ticket.judged(),
            request_id: self.ticket.request().id(),
        }
    }
}

/// The URI that a Location means, which may be relative to the target of the request (RFC 3986
/// section 5.2). `None` if it is no URI. The scheme of one that begins with `//` is taken as http.
fn resolved(location: &[u8], target: &[u8]) -> Option<Uri> {
    let path = path_of(target);
    let directory = memchr::memrchr(b'/', path).map_or(0, |slash| slash + 1);
    let start: &[u8] = match location {
        [b'/', b'/', ..] => b"http:",
        [b'/', ..] => b"",
        _ if memchr::memmem::find(location, b"://").is_some() => b"",
        _ => &path[..directory],
    };
    Uri::try_from([start, location].concat()).ok()
}

#[cfg(test)]
mod tests {
    use super::resolved;

    #[test]
    fn relative_location_is_resolved_by_the_target() {
        for (location, uri) in [
            ("/en/", "/en/"),
            ("en/", "/shop/en/"),
            ("?lang=en", "/shop/?lang=en"),
            ("//shop.example/en/", "http://shop.example/en/"),
            ("https://shop.example/en/", "https://shop.example/en/"),
        ] {
            let found =
                resolved(location.as_bytes(), b"/shop/?from=https://a.example/b").expect("a URI");
            assert_eq!(found.to_string(), uri, "{location}");
        }
    }
}
