//! [`AnswerContent`]: the body of crawlgate's block and error responses, as text, HTML or JSON. A
//! page for crawlers points to robots.txt. Every value in HTML is escaped.

use super::answer::Answer;
use super::negotiate::BodyFormat;
use crate::policy::site::{PageTemplate, PageTemplatePart};
use PageTemplatePart::*;
use bytes::Bytes;
use http::{StatusCode, header};

/// The content of an answer's body.
pub struct AnswerContent<'a> {
    pub status: StatusCode,
    /// A fixed word for programs.
    pub error: &'static str,
    pub message: String,
    pub crawler: Option<&'a str>,
    pub rule: Option<&'a str>,
    pub group: Option<&'a str>,
    pub retry_after: Option<u32>,
    /// The id of the request, by which the site's operator finds it in the logs.
    pub request_id: Option<&'a str>,
    /// Whether the page points to robots.txt. A page for a visitor does not, nor does an answer for
    /// robots.txt itself.
    pub links_robots_txt: bool,
    /// The site's own page, in place of the HTML format.
    pub own: Option<&'a PageTemplate>,
}

impl AnswerContent<'_> {
    /// A page for a crawler with a message. `error` is a fixed word for programs.
    pub fn new(
        status: StatusCode,
        error: &'static str,
        message: impl Into<String>,
    ) -> AnswerContent<'static> {
        AnswerContent {
            status,
            error,
            message: message.into(),
            crawler: None,
            rule: None,
            group: None,
            retry_after: None,
            request_id: None,
            links_robots_txt: true,
            own: None,
        }
    }

    /// The page as an answer that no cache stores, with Retry-After if the page has one.
    pub fn to_answer(&self, format: BodyFormat) -> Answer {
        self.to_answer_with_body(format, self.render(format).into())
    }

    /// Like [`AnswerContent::to_answer`], with this body in place of the page.
    pub fn to_answer_with_body(&self, format: BodyFormat, body: Bytes) -> Answer {
        let retry_after = self
            .retry_after
            .map(|seconds| (header::RETRY_AFTER, seconds.into()));
        Answer::uncacheable(self.status, format.content_type(), retry_after, body)
    }

    /// The body in a format. The site's own page, if there is one, replaces only the HTML.
    fn render(&self, format: BodyFormat) -> String {
        match format {
            BodyFormat::Text => self.render_text(),
            BodyFormat::Html => self
                .own
                .map_or_else(|| self.render_html(), |own| self.fill_template(own)),
            BodyFormat::Json => self.render_json(),
        }
    }

    /// The status with its reason phrase, or `Blocked` if it has none.
    fn title(&self) -> String {
        let reason = self.status.canonical_reason().unwrap_or("Blocked");
        format!("{} {reason}", self.status.as_str())
    }

    /// The site's own page, with its variables replaced by escaped values.
    fn fill_template(&self, own: &PageTemplate) -> String {
        let parts = own.parts.iter().map(|part| match part {
            Text(text) => text.clone(),
            Status => escape_html(&self.title()),
            Reason => escape_html(&self.message),
            RequestId => escape_html(self.request_id.unwrap_or_default()),
        });
        parts.collect()
    }

    /// The page as plain text: the title and the message, then the rule with its group, the link to
    /// robots.txt for crawlers, and the request's id, if the page has them.
    fn render_text(&self) -> String {
        let mut text = format!("{}\n\n{}\n", self.title(), self.message);
        if let Some(rule) = self.rule {
            text += &format!("\nRule:  {rule}\n");
            if let Some(group) = self.group {
                text += &format!("Group: {group}\n");
            }
        }
        if self.links_robots_txt {
            text += "\nThe rules of this site for crawlers: /robots.txt\n";
        }
        if let Some(id) = self.request_id {
            text += &format!("\nRequest: {id}\n");
        }
        text
    }

    /// The page as HTML, with the same parts as `AnswerContent::text`; every value is escaped.
    fn render_html(&self) -> String {
        let title = escape_html(&self.title());
        let message = escape_html(&self.message);
        let mut html = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
             content=\"width=device-width\">\n<title>{title}</title>\n<h1>{title}</h1>\n<p>{message}</p>\n"
        );
        if let Some(rule) = self.rule {
            html += &format!("<p>Rule: <code>{}</code>", escape_html(rule));
            if let Some(group) = self.group {
                html += &format!(" for <code>{}</code>", escape_html(group));
            }
            html += "</p>\n";
        }
        if self.links_robots_txt {
            html += "<p>The rules of this site for crawlers: <a href=\"/robots.txt\">/robots.txt</a></p>\n";
        }
        if let Some(id) = self.request_id {
            html += &format!("<p>Request: <code>{}</code></p>\n", escape_html(id));
        }
        html + "</html>\n"
    }

    /// The page as a JSON object and a line end. Values that the page does not have are left out.
    fn render_json(&self) -> String {
        let mut json = serde_json::json!({
            "status": self.status.as_u16(), "error": self.error, "message": self.message,
        });
        let optional = [
            ("robots_txt", self.links_robots_txt.then_some("/robots.txt")),
            ("crawler", self.crawler),
            ("rule", self.rule),
            ("group", self.group),
            ("request_id", self.request_id),
        ];
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

fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_in_html_are_escaped() {
        let rule = "Disallow: /<script>alert(1)</script>&'\"";
        let page = AnswerContent {
            rule: Some(rule),
            group: Some("GPTBot, <b>"),
            ..AnswerContent::new(
                StatusCode::FORBIDDEN,
                "disallowed_by_robots_txt",
                "<i>No</i>",
            )
        };
        let html = page.render_html();
        assert!(
            !html.contains("<script>") && !html.contains("<b>") && !html.contains("<i>"),
            "{html}"
        );
        assert!(
            html.contains("&lt;script&gt;alert(1)&lt;/script&gt;&amp;&#39;&quot;"),
            "{html}"
        );
        assert!(page.render_text().contains(rule));
    }
}
