//! HTTP responses that turn a request away after the policy has judged it. [`rule_refusal`] answers
//! a request that breaks a rule or comes too fast. [`license_demand`] answers a request without a
//! licence. [`pause_answer`] is for a site that is paused, and [`robots_txt_unavailable`] for a
//! robots.txt that cannot be served yet. Each response names its reason, which is no secret,
//! because robots.txt makes the rules public.

use super::answer::Answer;
use super::context::AnswerContext;
use super::negotiate::BodyFormat;
use super::page::AnswerContent;
use crate::crawlers::Claim;
use crate::numbers::{duration, plural};
use crate::policy::site;
use crate::robots::format_seconds;
use crate::verdict::{Action, Decision, Kind, crawler_name};
use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};

use Kind::*;

/// The challenge for a request without a token (RFC 6750, RSL 1.0 section 6.3.4).
const LICENSE_CHALLENGE: HeaderValue = HeaderValue::from_static(
    "License error=\"invalid_request\", error_description=\"Access to this resource requires a valid license\"",
);

/// The error word for programs, and the message for people. `retry_after` is in seconds; only the
/// messages for `TooFast` and `Unverified` have it.
fn reason_text(kind: Kind, crawler: &str, retry_after: Option<u32>) -> (&'static str, String) {
    match kind {
        Ambiguous => (
            "disallowed_by_robots_txt",
            format!(
                "This URL resolves to a path that the rules of this site disallow for {crawler}."
            ),
        ),
        TooFast => (
            "too_fast",
            format!(
                "{crawler} fetches faster than the rules of this site allow. Try again in {}.",
                plural(retry_after.unwrap_or(1), "second")
            ),
        ),
        Impostor => ("impostor", format!("This address does not belong to {crawler}.")),
        Trapped => (
            "trapped",
            "This address requested a URL that robots.txt disallows for every crawler. Try again later."
                .to_owned(),
        ),
        Unverified => {
            let again = retry_after.map(|seconds| format!(" Try again in {}.", plural(seconds, "second"))).unwrap_or_default();
            ("unverified", format!("This site answers {crawler} only if it proves its identity.{again}"))
        }
        _ => ("disallowed_by_robots_txt", format!("The rules of this site disallow this URL for {crawler}.")),
    }
}

/// The kind that the answer names: that of the decision, but `TooFast` for every slow-down.
pub fn refusal_kind(decision: &Decision) -> Kind {
    if matches!(decision.action, Action::Slow { .. }) {
        TooFast
    } else {
        decision.kind
    }
}

/// The answer to a request against the rules, or to one that is too fast. It names the crawler and,
/// if a rule is the reason, the rule and its group. Retry-After is that of the slow-down, else
/// that of the policy's `answer`. A body of the policy replaces the page, as HTML if it begins with
/// a tag, else as text.
pub fn rule_refusal(
    answer: &site::RefusalAnswer,
    context: &AnswerContext<'_>,
    format: BodyFormat,
) -> Answer {
    let decision = &context.judged.decision;
    let entry = context.judged.entry();
    let crawler = crawler_name(context.registry, entry, decision.claim);
    let kind = refusal_kind(decision);
    let group = decision
        .rule
        .and_then(|rule| entry.site.document.groups.get(rule.group));
    let rule = decision.rule.and_then(|rule| group?.rules.get(rule.rule?));
    let rule = match kind {
        TooFast => group
            .and_then(|group| group.crawl_delay)
            .map(|delay| format!("Crawl-delay: {}", format_seconds(delay))),
        // No rule is the reason.
        Impostor | Unverified => None,
        Trapped => rule.filter(|rule| !rule.allow).map(ToString::to_string),
        _ => rule.map(ToString::to_string),
    };
    let agents = group
        .filter(|_| rule.is_some())
        .map(|group| group.agents.join(", "));
    let retry_after = decision.slow_retry_after().or(answer.retry_after);
    let (error, message) = reason_text(kind, &crawler, retry_after);
    let page = AnswerContent {
        crawler: Some(&crawler),
        rule: rule.as_deref(),
        group: agents.as_deref(),
        retry_after,
        own: entry.site.pages.refusal.as_ref(),
        ..AnswerContent::new(to_status_code(answer.status), error, message)
    };
    match &answer.body {
        Some(body) => {
            let format = if body.trim_start().starts_with('<') {
                BodyFormat::Html
            } else {
                BodyFormat::Text
            };
            page.to_answer_with_body(format, Bytes::copy_from_slice(body.as_bytes()))
        }
        None => page.to_answer(format),
    }
}

/// The answer during a pause of the site, for a visitor or for a crawler. The site's own page is
/// used, if it has one. `retry_after` is in seconds.
pub fn pause_answer(retry_after: u32, context: &AnswerContext<'_>, format: BodyFormat) -> Answer {
    let (links_robots_txt, message) = match context.judged.decision.claim {
        Claim::Visitor => {
            let message = format!(
                "This site is temporarily closed. Please come back in {}.",
                duration(retry_after.into())
            );
            (false, message)
        }
        _ => {
            let message = format!(
                "This site is temporarily closed to crawlers. Try again in {}.",
                plural(retry_after, "second")
            );
            (true, message)
        }
    };
    let page = AnswerContent::new(StatusCode::SERVICE_UNAVAILABLE, "paused", message);
    let own = context.judged.entry().site.pages.pause.as_ref();
    AnswerContent {
        retry_after: Some(retry_after),
        links_robots_txt,
        own,
        ..page
    }
    .to_answer(format)
}

/// The answer (503) while the site's robots.txt is not known, or must not be served. `retry_after`
/// is in seconds.
pub fn robots_txt_unavailable(retry_after: u32, format: BodyFormat) -> Answer {
    let message = format!(
        "The robots.txt of this site is not available yet. Try again in {}.",
        plural(retry_after, "second")
    );
    let page = AnswerContent::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "robots_txt_awaited",
        message,
    );
    AnswerContent {
        retry_after: Some(retry_after),
        links_robots_txt: false,
        ..page
    }
    .to_answer(format)
}

/// The answer to a request without a licence (RSL 1.0 section 6.3), with the status of the policy:
/// a challenge, and a Link to the licence for the path.
pub fn license_demand(status_code: u16, context: &AnswerContext<'_>, format: BodyFormat) -> Answer {
    let decision = &context.judged.decision;
    let entry = context.judged.entry();
    let license = decision.license(&entry.site);
    let crawler = crawler_name(context.registry, entry, decision.claim);
    let message = format!(
        "This site asks {crawler} for a licence: {}. Send the token of your licence in the field \
         Authorization: License TOKEN.",
        license.map_or("", |license| &license.url)
    );
    let page = AnswerContent::new(to_status_code(status_code), "license_required", message);
    let answer = AnswerContent {
        crawler: Some(&crawler),
        ..page
    }
    .to_answer(format)
    .with_field(header::WWW_AUTHENTICATE, LICENSE_CHALLENGE);
    match license.and_then(|license| HeaderValue::from_str(&license.link).ok()) {
        Some(link) => answer.with_field(header::LINK, link),
        None => answer,
    }
}

/// A status of the policy. It was checked when the policy was read, so it is never 500.
fn to_status_code(status: u16) -> StatusCode {
    StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}
