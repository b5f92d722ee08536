//! The refusals of judged requests: [`refused`] by the rules or as too fast, [`unlicensed`] without
//! a licence, [`paused`] during a pause, [`awaited`] for a robots.txt that cannot be served yet.
//! Each names its reason, which reveals nothing: robots.txt makes the rules public.

use super::answer::Answer;
use super::field::Field;
use super::negotiate::Form;
use super::page::{Page, Reader};
use super::ruling::Ruling;
use crate::crawlers::Claim;
use crate::policy::site;
use crate::robots::seconds;
use crate::verdict::{Action, Decision, Kind, crawler_name};
use bytes::Bytes;
use http::{HeaderValue, StatusCode};

/// RFC 6750's word for a request that lacks the token, which RSL 1.0 (section 6.3.4) takes over.
const CHALLENGE: HeaderValue = HeaderValue::from_static(
    "License error=\"invalid_request\", error_description=\"Access to this resource requires a valid license\"",
);

/// The word for programs, and the sentence for people. `retry_after` is in seconds, and is named in
/// the sentence for `TooFast` and `Unverified` only.
fn words(kind: Kind, crawler: &str, retry_after: Option<u32>) -> (&'static str, String) {
    match kind {
        Kind::Ambiguous => (
            "disallowed_by_robots_txt",
            format!("The rules of this site do not let {crawler} fetch the path that this URL resolves to."),
        ),
        Kind::TooFast => (
            "too_fast",
            format!(
                "{crawler} fetches faster than the rules of this site let it. Try again in {} seconds.",
                retry_after.unwrap_or(1)
            ),
        ),
        Kind::Impostor => ("impostor", format!("This address is not one of {crawler}.")),
        Kind::Trapped => (
            "trapped",
            "From this address a URL was asked for that robots.txt closes to every crawler. Try again later."
                .to_owned(),
        ),
        Kind::Unverified => {
            let again = retry_after.map(|seconds| format!(" Try again in {seconds} seconds.")).unwrap_or_default();
            ("unverified", format!("This site only answers {crawler} where it proves who it is.{again}"))
        }
        _ => ("disallowed_by_robots_txt", format!("The rules of this site do not let {crawler} fetch this URL.")),
    }
}

/// The kind that the answer names: that of the decision, but `TooFast` for every slow-down.
pub fn kind(decision: &Decision) -> Kind {
    if matches!(decision.action, Action::Slow { .. }) {
        Kind::TooFast
    } else {
        decision.kind
    }
}

/// The answer to a request against the rules, or to one that is too fast. It names the crawler and,
/// where a rule is the reason, the rule and its group. Retry-After is that of the slow-down, else
/// that of the policy's `answer`. A body of the policy replaces the page, as HTML if it begins with
/// a tag, else as text.
pub fn refused(answer: &site::RefusalAnswer, ruling: &Ruling<'_>, form: Form) -> Answer {
    let Ruling {
        registry,
        entry,
        decision,
        ..
    } = *ruling;
    let crawler = crawler_name(registry, entry, decision.claim);
    let kind = kind(decision);
    let group = decision
        .rule
        .and_then(|rule| entry.site.document.groups.get(usize::from(rule.group)));
    let rule = decision
        .rule
        .and_then(|rule| group?.rules.get(usize::try_from(rule.rule?).ok()?));
    let rule = match kind {
        Kind::TooFast => group
            .and_then(|group| group.crawl_delay)
            .map(|delay| format!("Crawl-delay: {}", seconds(delay))),
        // No rule is the reason.
        Kind::Impostor | Kind::Unverified => None,
        Kind::Trapped => rule.filter(|rule| !rule.allow).map(ToString::to_string),
        _ => rule.map(ToString::to_string),
    };
    let agents = group
        .filter(|_| rule.is_some())
        .map(|group| group.agents.join(", "));
    let retry_after = decision.slowed_for().or(answer.retry_after);
    let (error, message) = words(kind, &crawler, retry_after);
    let page = Page {
        crawler: Some(&crawler),
        rule: rule.as_deref(),
        group: agents.as_deref(),
        retry_after,
        own: entry.site.pages.refusal.as_deref(),
        ..Page::new(status(answer.status), error, message)
    };
    match &answer.body {
        Some(body) => {
            let form = if body.trim_start().starts_with('<') {
                Form::Html
            } else {
                Form::Text
            };
            page.answer_with(form, Bytes::copy_from_slice(body.as_bytes()))
        }
        None => page.answer(form),
    }
}

/// The answer during a pause of the site, in words for a person (`Claim::Nobody`) or for a crawler.
/// The site's own page is used, if it has one. `retry_after` is in seconds.
pub fn paused(retry_after: u32, ruling: &Ruling<'_>, form: Form) -> Answer {
    let (reader, message) = match ruling.decision.claim {
        Claim::Nobody => {
            let message = format!(
                "This site is closed for a while. Please come back in {}.",
                about(retry_after)
            );
            (Reader::Person, message)
        }
        _ => {
            let message = format!(
                "The site is not to be fetched for the moment. Try again in {retry_after} seconds."
            );
            (Reader::Crawler, message)
        }
    };
    let page = Page::new(StatusCode::SERVICE_UNAVAILABLE, "paused", message);
    let own = ruling.entry.site.pages.pause.as_deref();
    Page {
        retry_after: Some(retry_after),
        reader,
        own,
        ..page
    }
    .answer(form)
}

/// A time in rounded words: minutes up to 90 of them, then hours, rounded up.
fn about(seconds: u32) -> String {
    match seconds {
        0..=90 => "about a minute".to_owned(),
        91..=5_400 => format!("about {} minutes", seconds.div_ceil(60)),
        _ => format!("about {} hours", seconds.div_ceil(3_600)),
    }
}

/// The answer (503) while the site's robots.txt is not known, or must not be served. `retry_after`
/// is in seconds.
pub fn awaited(retry_after: u32, form: Form) -> Answer {
    let message =
        format!("The rules of this site are not known yet. Try again in {retry_after} seconds.");
    let page = Page::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "robots_txt_awaited",
        message,
    );
    Page {
        retry_after: Some(retry_after),
        ..page
    }
    .answer(form)
}

/// The answer without a licence (RSL 1.0 section 6.3), with the status of the policy: the
/// challenge, and a Link to the licence that is for the request.
pub fn unlicensed(status_code: u16, ruling: &Ruling<'_>, form: Form) -> Answer {
    let Ruling {
        registry,
        entry,
        decision,
        ..
    } = *ruling;
    let license = entry
        .site
        .signals
        .license(decision.signals, decision.rule.map(|rule| rule.group));
    let crawler = crawler_name(registry, entry, decision.claim);
    let message = format!(
        "This site asks {crawler} for a licence; a request with `Authorization: License TOKEN` is forwarded. \
         The terms: {}",
        license.map_or("", |license| &license.url)
    );
    let page = Page::new(status(status_code), "license_required", message);
    let answer = Page {
        crawler: Some(&crawler),
        ..page
    }
    .answer(form)
    .with(Field::WwwAuthenticate, CHALLENGE);
    match license.and_then(|license| HeaderValue::from_str(&license.link).ok()) {
        Some(link) => answer.with(Field::Link, link),
        None => answer,
    }
}

/// A status of the policy. It was checked when the policy was read, so that 500 does not happen.
fn status(status: u16) -> StatusCode {
    StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}
