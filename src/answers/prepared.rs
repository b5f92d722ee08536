//! [`Answers`] turns a decision into an answer. It keeps the files of each site, pauses, and
//! refusals of requests against the rules. An answer is made when it is first needed. All kept
//! answers belong to one snapshot (all compiled sites at a moment). A request that was judged by a
//! newer snapshot replaces them.

use super::answer::Answer;
use super::conditional::{not_modified, same_entity};
use super::errors::{Rejection, rejection};
use super::field::Field;
use super::negotiate::{Form, form};
use super::refusal;
use super::ruling::{Asked, Ruling};
use super::served_file::FileAnswers;
use crate::crawlers::Claim;
use crate::locks::{read, write};
use crate::policy::Snapshot;
use crate::policy::site::{self, RobotsTxtAnswer, ServedFile, SiteEntry};
use crate::verdict::{Action, Kind};
use arc_swap::ArcSwap;
use http::Method;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock, RwLock, Weak};

/// The longest Retry-After while the origin's own file is awaited. Crawlers that get 503 stay away
/// and come again (RFC 9309 section 2.3.1.4).
const AWAITED_RETRY: u32 = 60;
/// The number of kept refusals. Beyond it, all of them are removed.
const MAX_REFUSALS: usize = 4_096;

/// See the top of this file. All listeners of a process share one.
#[derive(Default)]
pub struct Answers {
    prepared: ArcSwap<Prepared>,
}

#[derive(Default)]
struct Prepared {
    /// The snapshot that the answers belong to. A weak reference does not keep the snapshot in
    /// memory.
    snapshot: Weak<Snapshot>,
    sites: Box<[SiteFiles]>,
    refusals: RwLock<HashMap<RefusalKey, Answer, ahash::RandomState>>,
}

#[derive(Default)]
struct SiteFiles {
    robots_txt: OnceLock<FileAnswers>,
    tdmrep: OnceLock<FileAnswers>,
}

/// Everything that a refusal depends on: the place of the site in the snapshot, what is refused,
/// the claimant, and the form.
type RefusalKey = (usize, Refused, Claim, Form);

#[derive(PartialEq, Eq, Hash)]
enum Refused {
    /// A request against the rules: the place of the policy's answer, the rule, the kind, and the
    /// wait of a slow-down.
    Crawler {
        answer: u16,
        rule: Option<(u16, Option<u32>)>,
        kind: Kind,
        retry_after: Option<u32>,
    },
    /// Every request, for so many seconds.
    Paused { retry_after: u32 },
}

impl Answers {
    /// The complete answer that a decision asks for; `None` if the request passes, or the site has
    /// not what the decision names. It has the policy's tags, and no body for HEAD.
    pub fn answer(&self, ruling: &Ruling<'_>, asked: &Asked<'_>) -> Option<Answer> {
        let Ruling {
            entry, decision, ..
        } = *ruling;
        let answer = match decision.action {
            Action::Pass => return None,
            Action::RobotsTxt => self.robots_txt(ruling, asked),
            Action::Pause { retry_after } => self.paused(retry_after, ruling, form(asked.headers)),
            Action::License { status } => refusal::unlicensed(status, ruling, form(asked.headers)),
            Action::TdmRep => self.tdmrep(ruling, entry.site.signals.tdmrep()?, asked),
            Action::Block(answer) | Action::Slow { answer, .. } => {
                let place = answer;
                self.refused(
                    place,
                    entry.site.answers.get(usize::from(place))?,
                    ruling,
                    form(asked.headers),
                )
            }
        };
        Some(answer.with_tags(entry, decision).in_reply_to(asked.method))
    }

    /// The answer to a request for robots.txt: the site's file, or 304 if the client's copy is
    /// current. 405 for other methods than GET and HEAD. 503 while it must not be served
    /// (`is_silent`) or the origin's own file is awaited.
    fn robots_txt(&self, ruling: &Ruling<'_>, asked: &Asked<'_>) -> Answer {
        let Ruling { entry, now, .. } = *ruling;
        if !only_reads(asked.method) {
            return rejection(Rejection::ReadOnly, asked);
        }
        if ruling.is_silent {
            return refusal::awaited(AWAITED_RETRY, form(asked.headers));
        }
        let file = &entry.site.robots_txt;
        if entry.robots_txt == RobotsTxtAnswer::AwaitsOrigin {
            let seconds = file.awaits_origin(now).unwrap_or_default();
            let retry_after = u32::try_from(seconds)
                .unwrap_or(u32::MAX)
                .clamp(1, AWAITED_RETRY);
            return refusal::awaited(retry_after, form(asked.headers));
        }
        let date = ruling.may_confirm_by_date.then_some(entry.since);
        let is_fresh = not_modified(asked.headers, &file.etag, date);
        let prepared = self.prepared(ruling.snapshot);
        prepared.sites[ruling.decision.site]
            .robots_txt
            .get_or_init(|| robots_txt(entry))
            .answer(is_fresh)
    }

    /// The answer to a request for the file of TDMRep: the file, or 304 if the client has it; 405
    /// for other methods than GET and HEAD. Like robots.txt, it is served to everybody.
    fn tdmrep(&self, ruling: &Ruling<'_>, file: &ServedFile, asked: &Asked<'_>) -> Answer {
        if !only_reads(asked.method) {
            return rejection(Rejection::ReadOnly, asked);
        }
        let is_fresh = same_entity(asked.headers, &file.etag);
        let prepared = self.prepared(ruling.snapshot);
        prepared.sites[ruling.decision.site]
            .tdmrep
            .get_or_init(|| tdmrep(file))
            .answer(is_fresh)
    }

    /// The refusal of a request against the rules, or of one that is too fast. `place` is the
    /// number of `answer` among the answers of the site's policy, for the key.
    fn refused(
        &self,
        place: u16,
        answer: &site::RefusalAnswer,
        ruling: &Ruling<'_>,
        form: Form,
    ) -> Answer {
        let rule = ruling.decision.rule;
        let what = Refused::Crawler {
            answer: place,
            rule: rule.map(|rule| (rule.group, rule.rule)),
            kind: refusal::kind(ruling.decision),
            retry_after: ruling.decision.slowed_for(),
        };
        self.kept(what, ruling, form, || {
            refusal::refused(answer, ruling, form)
        })
    }

    /// The answer to a request during a pause of the site.
    fn paused(&self, retry_after: u32, ruling: &Ruling<'_>, form: Form) -> Answer {
        self.kept(Refused::Paused { retry_after }, ruling, form, || {
            refusal::paused(retry_after, ruling, form)
        })
    }

    /// The kept answer for all that it depends on; `make` makes it if there is none. If
    /// `MAX_REFUSALS` are kept, all are dropped before one is added.
    fn kept(
        &self,
        what: Refused,
        ruling: &Ruling<'_>,
        form: Form,
        make: impl FnOnce() -> Answer,
    ) -> Answer {
        let key = (ruling.decision.site, what, ruling.decision.claim, form);
        let prepared = self.prepared(ruling.snapshot);
        if let Some(kept) = read(&prepared.refusals).get(&key) {
            return kept.clone();
        }
        let made = make();
        let mut refusals = write(&prepared.refusals);
        if refusals.len() >= MAX_REFUSALS {
            refusals.clear();
        }
        refusals.insert(key, made.clone());
        made
    }

    /// The kept answers of this snapshot. If those of another one are kept, they are dropped, and
    /// the result has none yet.
    fn prepared(&self, snapshot: &Arc<Snapshot>) -> Arc<Prepared> {
        let prepared = self.prepared.load();
        if Weak::as_ptr(&prepared.snapshot) == Arc::as_ptr(snapshot) {
            return Arc::clone(&prepared);
        }
        let sites = snapshot
            .sites()
            .iter()
            .map(|_| SiteFiles::default())
            .collect();
        let made = Arc::new(Prepared {
            snapshot: Arc::downgrade(snapshot),
            sites,
            refusals: RwLock::default(),
        });
        self.prepared.store(made.clone());
        made
    }
}

fn only_reads(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

/// The answers with the robots.txt of this site: ETag, Last-Modified and Cache-Control in each.
fn robots_txt(entry: &SiteEntry) -> FileAnswers {
    let file = &entry.site.robots_txt;
    let validators = [
        (Field::ETag, file.etag.as_str()),
        (Field::LastModified, &entry.since.to_http_date()),
        (Field::CacheControl, &file.cache_control),
    ];
    FileAnswers::new(&validators, Form::Text.content_type(), file.body.clone())
}

/// The answers with this file of TDMRep: ETag and Cache-Control in each, no date.
fn tdmrep(file: &ServedFile) -> FileAnswers {
    let validators = [
        (Field::ETag, file.etag.as_str()),
        (Field::CacheControl, file.cache_control.as_str()),
    ];
    FileAnswers::new(&validators, Form::Json.content_type(), file.body.clone())
}
