//! [`AnswerCache`] turns the decision about a request into crawlgate's answer. It caches blocks.
//! All cached answers belong to one [`Snapshot`] (all policies as they were compiled at one time).
//! When a request is judged by a newer snapshot, the cache is cleared.

use super::answer::Answer;
use super::conditional::{is_not_modified, matches_etag};
use super::context::{AnswerContext, RequestToAnswer};
use super::errors::{Rejection, rejection_answer};
use super::negotiate::{BodyFormat, negotiate_format};
use super::refusal;
use super::served_file::file_answer;
use crate::crawlers::Claim;
use crate::locks::{read, write};
use crate::policy::Snapshot;
use crate::policy::site::{self, RobotsTxtAnswer, TdmRepFile};
use crate::verdict::{Action, Kind, RuleRef};
use arc_swap::ArcSwap;
use http::{Method, header};
use std::collections::HashMap;
use std::sync::{Arc, RwLock, Weak};

/// The longest Retry-After while the origin's own file is awaited. Crawlers that get 503 stay away
/// and come again (RFC 9309 section 2.3.1.4).
const MAX_AWAITED_RETRY: u32 = 60;
/// The most cached refusals. Beyond it, all of them are removed.
const MAX_REFUSALS: usize = 4_096;

/// The cached answers. All listeners of a process share them.
#[derive(Default)]
pub struct AnswerCache {
    prepared: ArcSwap<SnapshotAnswers>,
}

#[derive(Default)]
struct SnapshotAnswers {
    /// The snapshot of the answers. Weak, so that it does not keep the policies in memory.
    snapshot: Weak<Snapshot>,
    refusals: RwLock<HashMap<RefusalKey, Answer, ahash::RandomState>>,
}

/// Everything that a refusal depends on.
#[derive(PartialEq, Eq, Hash)]
struct RefusalKey {
    /// The index of the site in the snapshot.
    site: usize,
    claim: Claim,
    /// The index of the policy's answer.
    answer: u16,
    rule: Option<RuleRef>,
    kind: Kind,
    /// The Retry-After of a slow-down.
    retry_after: Option<u32>,
    format: BodyFormat,
}

impl AnswerCache {
    /// The complete answer for a decision; `None` if the request passes, or if the site does not
    /// have the file or answer of the decision. It has the policy's tags, and no body for HEAD.
    pub fn answer(
        &self,
        context: &AnswerContext<'_>,
        request: &RequestToAnswer<'_>,
    ) -> Option<Answer> {
        use Action::*;

        let decision = &context.judged.decision;
        let entry = context.judged.entry();
        let answer = match decision.action {
            Pass => return None,
            RobotsTxt => robots_txt_answer(context, request),
            Pause { retry_after } => {
                refusal::pause_answer(retry_after, context, negotiate_format(request.headers))
            }
            License { status } => {
                refusal::license_demand(status, context, negotiate_format(request.headers))
            }
            Tdmrep => tdmrep_answer(entry.site.signals.tdmrep.as_ref()?, request),
            Block(index) | Slow { answer: index, .. } => self.cached_refusal(
                index,
                entry.site.answers.get(usize::from(index))?,
                context,
                negotiate_format(request.headers),
            ),
        };
        Some(answer.with_tags(entry, decision).for_method(request.method))
    }

    /// The refusal of a request against the rules, or of one that is too fast. `index` is that of
    /// `answer` among the answers of the policy, for the key.
    fn cached_refusal(
        &self,
        index: u16,
        answer: &site::RefusalAnswer,
        context: &AnswerContext<'_>,
        format: BodyFormat,
    ) -> Answer {
        let decision = &context.judged.decision;
        let key = RefusalKey {
            site: decision.site,
            claim: decision.claim,
            answer: index,
            rule: decision.rule,
            kind: refusal::refusal_kind(decision),
            retry_after: decision.slow_retry_after(),
            format,
        };
        let prepared = self.snapshot_answers(&context.judged.snapshot);
        if let Some(kept) = read(&prepared.refusals).get(&key) {
            return kept.clone();
        }
        let made = refusal::rule_refusal(answer, context, format);
        let mut refusals = write(&prepared.refusals);
        if refusals.len() >= MAX_REFUSALS {
            refusals.clear();
        }
        refusals.insert(key, made.clone());
        made
    }

    /// The cached answers of this snapshot. If those of another one are cached, they are dropped.
    fn snapshot_answers(&self, snapshot: &Arc<Snapshot>) -> Arc<SnapshotAnswers> {
        let prepared = self.prepared.load();
        if Weak::as_ptr(&prepared.snapshot) == Arc::as_ptr(snapshot) {
            return Arc::clone(&prepared);
        }
        let made = Arc::new(SnapshotAnswers {
            snapshot: Arc::downgrade(snapshot),
            refusals: RwLock::default(),
        });
        self.prepared.store(made.clone());
        made
    }
}

/// The answer to a request for robots.txt: the site's file, or 304 if the client's copy is
/// current. 405 for other methods than GET and HEAD. 503 while it must not be served
/// (`withholds_robots_txt`) or the origin's own file is awaited.
fn robots_txt_answer(context: &AnswerContext<'_>, request: &RequestToAnswer<'_>) -> Answer {
    let entry = context.judged.entry();
    if !is_read_method(request.method) {
        return rejection_answer(Rejection::ReadOnly, request);
    }
    if context.judged.withholds_robots_txt {
        return refusal::robots_txt_unavailable(
            MAX_AWAITED_RETRY,
            negotiate_format(request.headers),
        );
    }
    let file = &entry.site.robots_txt;
    if entry.robots_txt == RobotsTxtAnswer::AwaitsOrigin {
        let retry_after = u32::try_from(file.origin_wait_seconds(context.now).unwrap_or_default())
            .unwrap_or(u32::MAX)
            .clamp(1, MAX_AWAITED_RETRY);
        return refusal::robots_txt_unavailable(retry_after, negotiate_format(request.headers));
    }
    let date = context.judged.may_confirm_by_date.then_some(entry.since);
    let is_fresh = is_not_modified(request.headers, &file.etag, date);
    let validators = [
        (header::ETAG, file.etag.as_str()),
        (header::LAST_MODIFIED, &entry.since.to_http_date()),
        (header::CACHE_CONTROL, &file.cache_control),
    ];
    file_answer(
        is_fresh,
        &validators,
        BodyFormat::Text.content_type(),
        file.body.clone(),
    )
}

/// The answer to a request for the file of TDMRep: the file, or 304 if the client has it; 405
/// for other methods than GET and HEAD. Like robots.txt, it is served to every client.
fn tdmrep_answer(file: &TdmRepFile, request: &RequestToAnswer<'_>) -> Answer {
    if !is_read_method(request.method) {
        return rejection_answer(Rejection::ReadOnly, request);
    }
    let is_fresh = matches_etag(request.headers, &file.etag);
    let validators = [
        (header::ETAG, file.etag.as_str()),
        (header::CACHE_CONTROL, &file.cache_control),
    ];
    file_answer(
        is_fresh,
        &validators,
        BodyFormat::Json.content_type(),
        file.body.clone(),
    )
}

fn is_read_method(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}
