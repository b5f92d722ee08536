//! [`Decisions`] answers a proxy that asks about a request. The request takes the steps of the
//! module `requests`, as every request does, and is recorded once the answer is sent to the proxy.
//! If it may pass, it is recorded without a status, because crawlgate cannot know what the proxy's
//! client gets.
//!
//! Not recorded are a malformed question, a question that crawlgate itself caused, and one that
//! only fetches the answer to a request that was refused before.

use super::question::{Protocol, Question, QuestionError, ROBOTS_TXT, TDMREP};
use crate::answers::{
    Answer, Asked, Field, Rejection, asked_in_a_loop, malformed_question, moved_to, not_served,
    passed, refused_for_nginx, rejection, retry_later,
};
use crate::heads::{OWN_AGENT, likely_type};
use crate::policy::SiteEntry;
use crate::requests::{EndedBy, Next, Received, Requests, Respond, Responded};
use crate::verdict::{Action, Decision};
use http::header;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The decision service.
pub struct Decisions {
    /// The sequence that every request goes through.
    requests: Arc<Requests>,
    /// Whether the log has the warning about a proxy that asks about a file in place of fetching it
    /// here.
    has_warned: AtomicBool,
}

impl Decisions {
    /// The service. All peers are trusted: others do not get this far.
    pub fn new(requests: Arc<Requests>) -> Decisions {
        Decisions {
            requests,
            has_warned: AtomicBool::new(false),
        }
    }

    /// The answer to the proxy: `own`, crawlgate's own answer to the request, in the form of the
    /// protocol, or without one that the request passes (404 for a file, 503 for `/decide/answer`).
    /// A question about robots.txt or tdmrep.json, which a proxy is to fetch here, passes with a
    /// warning in the log; in another spelling it is redirected to the usual one. `judged` is the
    /// decision about the request, and the site; `action` the action on it.
    fn answer(
        &self,
        question: &Question<'_>,
        request: &Received<'_>,
        judged: Option<(&Decision, &SiteEntry)>,
        action: Option<Action>,
        own: Option<Answer>,
    ) -> Answer {
        let file = action.and_then(file_of);
        let own = match file.filter(|_| question.protocol != Protocol::File) {
            // A proxy routes the one spelling. To a request in another one that passes, the origin
            // would show its file.
            Some(file) if !question.is_for(file) => {
                Some(moved_to(question.location(request, file), request.method))
            }
            Some(_) => {
                self.warn_of_file(question);
                return passed(None, "");
            }
            None => own,
        };
        match (question.protocol, own) {
            (Protocol::File, None) => not_served(
                "crawlgate has no policy for this host: serve the file of the origin",
                request.method,
            ),
            // The request was refused a moment ago, and would pass now.
            (Protocol::Answer, None) => rejection(
                Rejection::Busy,
                &Asked {
                    method: request.method,
                    headers: request.headers,
                },
            ),
            (Protocol::Nginx, Some(own)) => refused_for_nginx(&own),
            (Protocol::Envoy, Some(own)) => retry_later(own),
            (Protocol::File | Protocol::Answer | Protocol::ForwardAuth, Some(own)) => own,
            (_, None) => passed(judged, likely_type(question.target)),
        }
    }

    /// Warns, once in the life of the process, that a proxy asks about a file in place of fetching
    /// it.
    fn warn_of_file(&self, question: &Question<'_>) {
        if !self.has_warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                target = %String::from_utf8_lossy(question.target),
                "a proxy asks about a file that crawlgate serves, and passes its origin's file on: route /robots.txt and \
                 /.well-known/tdmrep.json to the decision service (docs/behind-your-proxy.md)"
            );
        }
    }
}

impl Respond for Decisions {
    /// Answers a question. It is recorded with the status that the client gets, or with 0 if the
    /// request passes. Not recorded: a malformed question, a file that crawlgate itself asks for,
    /// and `/decide/answer`, whose request was recorded before.
    fn respond(&self, request: &Received<'_>) -> Responded {
        let question = match Question::read(request) {
            Ok(question) => question,
            Err(error) => {
                self.requests.metrics().request_rejected("question");
                let answer = if error == QuestionError::Unknown {
                    not_served
                } else {
                    malformed_question
                };
                return answer(&error.to_string(), request.method).into();
            }
        };
        let agent = request.headers.get(header::USER_AGENT);
        if question.protocol == Protocol::File && agent.is_some_and(|agent| agent == OWN_AGENT) {
            return asked_in_a_loop(request.method).into();
        }
        let head = question.head(request);
        let connection = Question::connection(request);
        if question.protocol == Protocol::Answer {
            // The request was recorded with the question before this one.
            let (own, action) = self.requests.look(&head, &connection, request.arrival);
            return self.answer(&question, request, None, action, own).into();
        }
        let (ticket, next) = self.requests.receive(&head, &connection, request.arrival);
        let own = match next {
            Next::Answer(answer) => Some(answer),
            Next::Forward => None,
        };
        let judged = ticket.judged();
        let action = judged.map(|(decision, _)| decision.action);
        let answer = self.answer(&question, request, judged, action, own);
        let said = answer
            .values(Field::Status)
            .next()
            .and_then(|status| status.to_str().ok()?.parse().ok());
        let recorded = match (said, answer.values(Field::Decision).next()) {
            (Some(status), _) => (status, EndedBy::Complete),
            // The status of a request that passes is that of the proxy's origin.
            (None, Some(_)) => (0, EndedBy::Unknown),
            (None, None) => (answer.status().as_u16(), EndedBy::Complete),
        };
        Responded {
            answer,
            ticket: Some(ticket),
            recorded: Some(recorded),
        }
    }
}

/// The file that a proxy has to fetch from crawlgate, if that is the answer.
fn file_of(action: Action) -> Option<&'static str> {
    match action {
        Action::RobotsTxt => Some(ROBOTS_TXT),
        Action::TdmRep => Some(TDMREP),
        _ => None,
    }
}
