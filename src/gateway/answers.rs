//! Answers of our own, apart from robots.txt: refusals, blocks, pauses, errors of the origin. Each says in a short body
//! what happened and where the rules are; nothing in it is secret, and nothing from outside gets into HTML unescaped.

use super::ctx::{Refusal, RequestContext};
use super::negotiate::{self, Form};
use crate::crawlers::Registry;
use crate::indexing::octets;
use crate::policy::SiteEntry;
use crate::policy::compiled::Answer;
use crate::robots::seconds;
use crate::verdict::{Action, Decision, Kind, crawler_name, rule_line};
use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use pingora_core::Result;
use pingora_http::{RequestHeader, ResponseHeader};

/// Who made the answer.
pub(super) const SERVER: &str = "crawlgate";

/// An answer, ready to be written.
pub(super) struct Reply {
    pub(super) header: ResponseHeader,
    pub(super) body: Bytes,
    /// Whether the connection ends with it.
    pub(super) close: bool,
}

/// Why a crawler is refused, in words that robots.txt itself makes public.
pub(super) struct Reason {
    crawler: String,
    rule: Option<String>,
    group: Option<String>,
    kind: Kind,
    /// In seconds, where it is not the policy that says it.
    retry_after: Option<u32>,
}

impl Reason {
    pub(super) fn new(registry: &Registry, entry: &SiteEntry, decision: &Decision) -> Reason {
        let group = decision.rule.and_then(|rule| entry.site.document.groups.get(usize::from(rule.group)));
        let rule = decision.rule.and_then(|rule| group?.rules.get(usize::try_from(rule.rule?).ok()?));
        // Also where nobody calls it a violation.
        let kind = if matches!(decision.action, Action::Slow { .. }) { Kind::TooFast } else { decision.kind };
        let written = match kind {
            Kind::TooFast => {
                group.and_then(|group| group.crawl_delay).map(|delay| format!("Crawl-delay: {}", seconds(delay)))
            }
            // No rule is the reason.
            Kind::Impostor | Kind::Unverified => None,
            Kind::Trapped => rule.filter(|rule| !rule.allow).map(rule_line),
            _ => rule.map(rule_line),
        };
        Reason {
            crawler: crawler_name(registry, entry, decision.claim),
            group: group.filter(|_| written.is_some()).map(|group| group.agents.join(", ")),
            rule: written,
            kind,
            retry_after: match decision.action {
                Action::Slow { retry_after, .. } => Some(retry_after),
                _ => None,
            },
        }
    }
}

/// What the body of an answer says.
struct Page<'a> {
    status: u16,
    /// A fixed word for programs.
    error: &'static str,
    message: String,
    crawler: Option<&'a str>,
    rule: Option<&'a str>,
    group: Option<&'a str>,
    retry_after: Option<u32>,
}

impl Page<'_> {
    fn new(status: u16, error: &'static str, message: impl Into<String>) -> Page<'static> {
        Page { status, error, message: message.into(), crawler: None, rule: None, group: None, retry_after: None }
    }

    fn title(&self) -> String {
        let reason = StatusCode::from_u16(self.status).ok().and_then(|status| status.canonical_reason());
        format!("{} {}", self.status, reason.unwrap_or("Refused"))
    }

    fn render(&self, form: Form) -> String {
        match form {
            Form::Text => self.text(),
            Form::Html => self.html(),
            Form::Json => self.json(),
        }
    }

    fn text(&self) -> String {
        let mut text = format!("{}\n\n{}\n", self.title(), self.message);
        if let Some(rule) = self.rule {
            text.push_str(&format!("\nRule:  {rule}\n"));
            if let Some(group) = self.group {
                text.push_str(&format!("Group: {group}\n"));
            }
        }
        text.push_str("\nThe rules of this site for crawlers: /robots.txt\n");
        text
    }

    fn html(&self) -> String {
        let title = escape(&self.title());
        let mut html = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
             content=\"width=device-width\">\n<title>{title}</title>\n<h1>{title}</h1>\n<p>{}</p>\n",
            escape(&self.message)
        );
        if let Some(rule) = self.rule {
            html.push_str(&format!("<p>Rule: <code>{}</code>", escape(rule)));
            if let Some(group) = self.group {
                html.push_str(&format!(" for <code>{}</code>", escape(group)));
            }
            html.push_str("</p>\n");
        }
        html.push_str("<p>The rules of this site for crawlers: <a href=\"/robots.txt\">/robots.txt</a></p>\n</html>\n");
        html
    }

    fn json(&self) -> String {
        let mut json = serde_json::json!({
            "status": self.status, "error": self.error, "message": self.message, "robots_txt": "/robots.txt",
        });
        let optional = [("crawler", self.crawler), ("rule", self.rule), ("group", self.group)];
        for (name, value) in optional {
            if let Some(value) = value {
                json[name] = value.into();
            }
        }
        if let Some(seconds) = self.retry_after {
            json["retry_after"] = seconds.into();
        }
        format!("{json}\n")
    }
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// The answer to what is no proper request.
pub(super) fn refusal(refusal: Refusal, request: &RequestHeader) -> Result<Reply> {
    let page = match refusal {
        Refusal::NoHost => Page::new(400, "no_host", "The request does not say which host it is for."),
        Refusal::TargetTooLong => Page::new(414, "target_too_long", "The URL is too long."),
        Refusal::HeadersTooLarge => Page::new(431, "headers_too_large", "The header fields are too large."),
        Refusal::Trace => return method_not_allowed("GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH", request),
    };
    let mut reply = explain(&page, request)?;
    reply.close = true;
    Ok(reply)
}

/// 405 with the methods that would do.
pub(super) fn method_not_allowed(allow: &'static str, request: &RequestHeader) -> Result<Reply> {
    let message = format!("This cannot be done here. Methods that can: {allow}.");
    let mut reply = explain(&Page::new(405, "method_not_allowed", message), request)?;
    reply.header.insert_header(header::ALLOW, allow)?;
    Ok(reply)
}

/// A crawler is held to the rules it was given.
pub(super) fn block(answer: &Answer, reason: &Reason, request: &RequestHeader) -> Result<Reply> {
    let crawler = &reason.crawler;
    let retry_after = reason.retry_after.or(answer.retry_after);
    let (error, message) = match reason.kind {
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
        Kind::Unverified => ("unverified", format!("This site only answers {crawler} where it proves who it is.")),
        _ => ("disallowed_by_robots_txt", format!("The rules of this site do not let {crawler} fetch this URL.")),
    };
    let page = Page {
        crawler: Some(crawler),
        rule: reason.rule.as_deref(),
        group: reason.group.as_deref(),
        retry_after,
        ..Page::new(answer.status, error, message)
    };
    let Some(body) = &answer.body else { return explain(&page, request) };
    let content_type = if body.trim_start().starts_with('<') { Form::Html } else { Form::Text }.content_type();
    write(&page, content_type, body.to_string())
}

/// The site is paused.
pub(super) fn pause(retry_after: u32, request: &RequestHeader) -> Result<Reply> {
    let message = format!("The site is not to be fetched for the moment. Try again in {retry_after} seconds.");
    explain(&Page { retry_after: Some(retry_after), ..Page::new(503, "paused", message) }, request)
}

/// The policy asks for a licence; `signals.rs` adds the fields that say which.
pub(super) fn unlicensed(status: u16, crawler: &str, license: &str, request: &RequestHeader) -> Result<Reply> {
    let message = format!(
        "This site asks {crawler} for a licence; a request with `Authorization: License TOKEN` is forwarded. \
         The terms: {license}"
    );
    explain(&Page { crawler: Some(crawler), ..Page::new(status, "license_required", message) }, request)
}

/// The site's robots.txt is not known yet.
pub(super) fn awaited(retry_after: u32, request: &RequestHeader) -> Result<Reply> {
    let message = format!("The rules of this site are not known yet. Try again in {retry_after} seconds.");
    explain(&Page { retry_after: Some(retry_after), ..Page::new(503, "robots_txt_awaited", message) }, request)
}

/// The request could not be forwarded.
pub(super) fn failure(status: u16, request: &RequestHeader) -> Result<Reply> {
    let (error, message) = match status {
        400 => ("bad_request", "The request could not be understood."),
        502 => ("bad_gateway", "The server behind this one does not answer as it should."),
        504 => ("gateway_timeout", "The server behind this one did not answer in time."),
        _ => ("internal_error", "Something went wrong here."),
    };
    let mut reply = explain(&Page::new(status, error, message), request)?;
    reply.close = true;
    Ok(reply)
}

fn explain(page: &Page<'_>, request: &RequestHeader) -> Result<Reply> {
    let form = negotiate::form(&request.headers);
    write(page, form.content_type(), page.render(form))
}

fn write(page: &Page<'_>, content_type: &'static str, body: String) -> Result<Reply> {
    let mut header = ResponseHeader::build(page.status, Some(8))?;
    header.insert_header(header::SERVER, SERVER)?;
    header.insert_header(header::CONTENT_TYPE, content_type)?;
    header.insert_header(header::CONTENT_LENGTH, body.len())?;
    header.insert_header(header::CACHE_CONTROL, "no-store")?;
    if let Some(seconds) = page.retry_after {
        header.insert_header(header::RETRY_AFTER, seconds)?;
    }
    Ok(Reply { header, body: Bytes::from(body), close: false })
}

/// Adds the lines that the policy has for this status and type (also on answers of our own).
pub(super) fn attach_tags(header: &mut ResponseHeader, ctx: &RequestContext) -> Result<()> {
    let Some((decision, entry)) = ctx.judged() else { return Ok(()) };
    let content_type = header.headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    if let Some(tags) = entry.site.tags.tags(&decision.path_rules, header.status.as_u16(), content_type) {
        append_lines(header, &tags.lines)?;
    }
    Ok(())
}

/// One field line each, never folded into one: a scope would swallow what follows it.
pub(super) fn append_lines(header: &mut ResponseHeader, lines: &[String]) -> Result<()> {
    for line in lines {
        match HeaderValue::from_bytes(&octets(line)) {
            Ok(value) => {
                header.append_header("X-Robots-Tag", value)?;
            }
            Err(_) => tracing::warn!(%line, "a tag cannot be written as a field value and is left out"),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
