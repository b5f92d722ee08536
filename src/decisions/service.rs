//! [`DecisionService`] answers another reverse proxy that asks whether a request may pass. The
//! [`RequestPipeline`] judges the request. When the proxy has got the answer, the request of the
//! client is recorded in logs and metrics. A request that may pass is recorded without a status,
//! because crawlgate does not see the response that the proxy sends to its client.
//!
//! Health checks, malformed queries, and queries about crawlgate's own requests are not recorded.
//! Some proxies send two queries about a blocked request: one for the decision, one for the answer
//! to send. Only the first of them is recorded.

use super::query::{DecisionQuery, DecisionQueryError, QueryProtocol, ROBOTS_TXT, TDMREP};
use crate::answers::{
    Answer, DECISION, Rejection, RequestToAnswer, STATUS, allow_answer, envoy_refusal, healthy,
    loop_detected, malformed_query, nginx_refusal, not_found, redirect_to_file, rejection_answer,
};
use crate::heads::{likely_content_type, path_of};
use crate::policy::SiteEntry;
use crate::requests::{OutgoingAnswer, ReceivedRequest, RequestPipeline, Responder, ResponseEnd};
use crate::telemetry::RecentTraffic;
use crate::verdict::{Action, Decision};
use http::header;
use std::sync::{Arc, Once};

/// The decision service.
pub struct DecisionService {
    requests: Arc<RequestPipeline>,
    traffic: Arc<RecentTraffic>,
    /// The warning about a proxy that asks about a file.
    file_warning: Once,
}

impl DecisionService {
    /// The service. All its peers are trusted: the listener rejects others.
    pub fn new(requests: Arc<RequestPipeline>, traffic: Arc<RecentTraffic>) -> DecisionService {
        DecisionService {
            requests,
            traffic,
            file_warning: Once::new(),
        }
    }

    /// The answer to the proxy: `own`, crawlgate's own answer to the request, in the form of the
    /// protocol, or without one that the request passes (404 for a file, 503 for `/decide/answer`).
    /// A query about robots.txt or tdmrep.json, which a proxy is to fetch here, passes with a
    /// warning in the log; in another spelling it is redirected to the usual one. `judged` is the
    /// decision about the request, and the site; `action` the action on it.
    fn answer(
        &self,
        query: &DecisionQuery<'_>,
        request: &ReceivedRequest<'_>,
        judged: Option<(&Decision, &SiteEntry)>,
        action: Option<Action>,
        own: Option<Answer>,
    ) -> Answer {
        let file = action.and_then(served_file_path);
        if let (Some(ROBOTS_TXT), Some((_, entry))) = (file, judged)
            && query.asks_for_file(ROBOTS_TXT)
        {
            let is_fetched = query.protocol == QueryProtocol::File;
            self.traffic
                .update_robots_txt_bypass(&entry.site.name, is_fetched);
        }
        let own = match file.filter(|_| query.protocol != QueryProtocol::File) {
            // A proxy routes the one spelling. To a request in another one that passes, the origin
            // would show its file.
            Some(file) if !query.asks_for_file(file) => Some(redirect_to_file(
                query.location(request, file),
                request.method,
            )),
            Some(_) => {
                self.warn_about_file(query);
                return allow_answer(None, "");
            }
            None => own,
        };
        match (query.protocol, own) {
            (QueryProtocol::File, None) => not_found(
                "crawlgate has no policy for this host: serve the file of the origin",
                request.method,
            ),
            // The request was blocked a moment ago, and would pass now.
            (QueryProtocol::Answer, None) => rejection_answer(
                Rejection::Busy,
                &RequestToAnswer {
                    method: request.method,
                    headers: request.headers,
                },
            ),
            (QueryProtocol::Nginx, Some(own)) => nginx_refusal(&own),
            (QueryProtocol::Envoy, Some(own)) => envoy_refusal(own),
            (
                QueryProtocol::File | QueryProtocol::Answer | QueryProtocol::ForwardAuth,
                Some(own),
            ) => own,
            (_, None) => allow_answer(judged, likely_content_type(query.target)),
        }
    }

    /// Warns, once in the life of the process, that a proxy asks about a file that it should fetch.
    fn warn_about_file(&self, query: &DecisionQuery<'_>) {
        self.file_warning.call_once(|| {
            tracing::warn!(
                target = %String::from_utf8_lossy(query.target),
                "a proxy serves its origin's own file where crawlgate's belongs: route /robots.txt and \
                 /.well-known/tdmrep.json to the decision service, see behind-your-proxy.md in the documentation"
            );
        });
    }
}

impl Responder for DecisionService {
    /// Answers a query. The request is recorded with the status that the client gets, or with 0 if
    /// it passes. Not recorded: a health check, a malformed query, a file that crawlgate itself
    /// requests, and `/decide/answer`, whose request was recorded before.
    fn respond(&self, request: &ReceivedRequest<'_>) -> OutgoingAnswer {
        if path_of(request.target) == b"/healthz" {
            return healthy(request.method).into();
        }
        let query = match DecisionQuery::parse(request) {
            Ok(query) => query,
            Err(error) => {
                self.requests.metrics().count_rejected_request("question");
                let answer = if error == DecisionQueryError::Unknown {
                    not_found
                } else {
                    malformed_query
                };
                return answer(&error.to_string(), request.method).into();
            }
        };
        // `ORIGIN_USER_AGENT` of any version: during an upgrade, instances differ.
        if query.protocol == QueryProtocol::File
            && let Some(agent) = request.headers.get(header::USER_AGENT)
            && agent.as_bytes().starts_with(b"crawlgate/")
            && agent.as_bytes().ends_with(b" (origin)")
        {
            return loop_detected(request.method).into();
        }
        let head = query.head(request);
        let connection = DecisionQuery::connection(request);
        if query.protocol == QueryProtocol::Answer {
            // The request was recorded with the query before this one.
            let (own, action) = self.requests.preview(&head, &connection, request.arrival);
            return self.answer(&query, request, None, action, own).into();
        }
        let (ticket, own) = self.requests.receive(&head, &connection, request.arrival);
        let judged = ticket.judged();
        let action = judged.map(|(decision, _)| decision.action);
        let answer = self.answer(&query, request, judged, action, own);
        let client_status = answer
            .values(STATUS)
            .next()
            .and_then(|status| status.to_str().ok()?.parse().ok());
        let recorded = match (client_status, answer.values(DECISION).next()) {
            (Some(status), _) => (status, ResponseEnd::Complete),
            // The status of a request that passes is that of the proxy's origin.
            (None, Some(_)) => (0, ResponseEnd::Unknown),
            (None, None) => (answer.status().as_u16(), ResponseEnd::Complete),
        };
        OutgoingAnswer {
            answer,
            ticket: Some(ticket),
            recorded: Some(recorded),
        }
    }
}

/// The path of the file that a proxy has to fetch from crawlgate, if the action is that file.
fn served_file_path(action: Action) -> Option<&'static str> {
    match action {
        Action::RobotsTxt => Some(ROBOTS_TXT),
        Action::Tdmrep => Some(TDMREP),
        _ => None,
    }
}
