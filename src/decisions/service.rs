//! [`Decisions`]: a question in, an answer for the proxy out. The request is judged once; the judge records the decision when
//! the proxy has it. What the proxy's client gets afterwards, crawlgate cannot know: a request that may pass is recorded
//! without a status.

use super::question::{Protocol, Question, QuestionError, ROBOTS_TXT, TDMREP};
use crate::answers::{
    Answer, Answers, Asked, Field, Received, Rejection, Respond, Responded, Ruling, led_back, led_to, misasked,
    not_here, passed, referred, rejection, retry_later,
};
use crate::heads::{OWN_AGENT, likely_type};
use crate::judge::{Judge, Judgement, Outcome};
use crate::time::Timestamp;
use crate::verdict::Action;
use http::HeaderValue;
use ipnet::IpNet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The service.
pub struct Decisions {
    /// Judges requests, and records what became of them.
    judge: Arc<Judge>,
    /// The answers that crawlgate makes itself.
    answers: Arc<Answers>,
    /// Peers that speak for others.
    trusted: Vec<IpNet>,
    /// Whether the log says already that a proxy asks about a file that it should fetch here.
    has_warned: AtomicBool,
}

impl Decisions {
    /// Peers in `trusted` say for which client they speak.
    pub fn new(judge: Arc<Judge>, answers: Arc<Answers>, trusted: Vec<IpNet>) -> Decisions {
        Decisions { judge, answers, trusted, has_warned: AtomicBool::new(false) }
    }

    /// The judge, for its clock.
    pub(super) fn judge(&self) -> &Judge {
        &self.judge
    }

    fn answer(&self, question: &Question<'_>, judgement: &Judgement, request: &Received<'_>) -> Answer {
        let judged = judgement.judged();
        let own = judged.and_then(|judged| {
            let ruling = Ruling::new(judged, self.judge.registry(), Timestamp::from(request.arrived));
            // The body is framed by the proxy's own method.
            self.answers.answer(&ruling, &Asked { method: request.method, headers: request.headers })
        });
        let file = judged.and_then(|judged| file_of(judged.decision.action));
        let own = match file.filter(|_| question.protocol != Protocol::File) {
            // A proxy routes the one spelling. To a request in another one that passes, the origin would show its file.
            Some(file) if !question.is_for(file) => Some(led_to(question.location(request, file), request.method)),
            Some(_) => {
                self.warn_of_file(question);
                return passed(None, "");
            }
            None => own,
        };
        match (question.protocol, own) {
            (Protocol::File, Some(own)) => own,
            (Protocol::File, None) => {
                not_here("crawlgate has no policy for this host: serve the file of the origin", request.method)
            }
            (Protocol::Answer, Some(own)) => own,
            // What was refused a moment ago would pass now.
            (Protocol::Answer, None) => {
                rejection(Rejection::Busy, &Asked { method: request.method, headers: request.headers })
            }
            (Protocol::Nginx, Some(own)) => referred(&own),
            (Protocol::Envoy, Some(own)) => retry_later(own),
            (Protocol::ForwardAuth, Some(own)) => own,
            (_, None) => passed(judged.map(|judged| (&judged.decision, judged.entry())), likely_type(question.target)),
        }
    }

    fn warn_of_file(&self, question: &Question<'_>) {
        if !self.has_warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                target = %String::from_utf8_lossy(question.target),
                "a proxy asks about a file that crawlgate serves, and passes its origin's file on: route /robots.txt and \
                 /.well-known/tdmrep.json to the decision service (docs/behind-your-proxy.md)"
            );
        }
    }

    fn question<'a>(&self, request: &Received<'a>) -> Result<Question<'a>, QuestionError> {
        Question::read(request, &self.trusted)
    }
}

impl Respond for Decisions {
    fn respond(&self, request: &Received<'_>) -> Responded {
        let question = match self.question(request) {
            Ok(question) => question,
            Err(error) => {
                self.judge.recorder().metrics().request_rejected("question");
                let answer = match error {
                    QuestionError::Unknown => not_here(&error.to_string(), request.method),
                    QuestionError::Missing(_) | QuestionError::NoPath(_) | QuestionError::NoHost(_) => {
                        misasked(&error.to_string(), request.method)
                    }
                };
                return Responded { answer, judgement: None };
            }
        };
        let facts = question.facts(request);
        if question.protocol == Protocol::File && facts.user_agent == Some(OWN_AGENT.as_bytes()) {
            return Responded { answer: led_back(request.method), judgement: None };
        }
        let judgement = match question.protocol {
            Protocol::Answer => self.judge.look(&facts),
            _ => self.judge.judge(&facts),
        };
        let answer = self.answer(&question, &judgement, request);
        Responded { answer, judgement: Some(judgement) }
    }

    fn written(&self, request: &Received<'_>, responded: &Responded, is_whole: bool) {
        let (Some(judgement), Ok(question)) = (&responded.judgement, self.question(request)) else { return };
        if question.protocol == Protocol::Answer {
            // The question before this one was recorded.
            return;
        }
        let answer = &responded.answer;
        let status = match answer.field(Field::Status).and_then(|status| status.to_str().ok()?.parse().ok()) {
            Some(status) => status,
            None if answer.field(Field::Decision).is_some() => 0,
            None => answer.status().as_u16(),
        };
        let has_answered = status != 0;
        let tags = answer.fields().filter(|(field, _)| *field == Field::XRobotsTag);
        let outcome = Outcome {
            status: if is_whole { status } else { 0 },
            answered_whole: is_whole && has_answered,
            x_robots_tag: tags.map(|(_, value)| HeaderValue::as_bytes(value)).collect(),
            body_octets: if is_whole { answer.body().len() as u64 } else { 0 },
            elapsed: self.judge.recorder().elapsed(request.started),
            http: request.http,
            referer: request.headers.get(http::header::REFERER).map(HeaderValue::as_bytes),
            ..Outcome::default()
        };
        self.judge.record(&question.facts(request), judgement, &outcome);
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
