//! [`Page`]: the short explanation in a refusal or an error, as text, HTML or JSON. A page for
//! crawlers links robots.txt. Pages contain nothing secret, and every value in HTML is escaped.

use super::answer::Answer;
use super::field::Field;
use super::negotiate::Form;
use crate::policy::site::{PagePart, PageTemplate};
use askama::Template;
use bytes::Bytes;
use http::StatusCode;

/// The content of an answer's body.
pub struct Page<'a> {
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
    pub reader: Reader,
    /// The site's own page, in place of the HTML form.
    pub own: Option<&'a PageTemplate>,
}

/// The reader of a page. A page for a person does not mention the rules for crawlers.
#[derive(Debug, PartialEq, Eq)]
pub enum Reader {
    Crawler,
    Person,
}

impl Page<'_> {
    /// A page for a crawler, with nothing but these words. `error` is a fixed word for programs.
    pub fn new(
        status: StatusCode,
        error: &'static str,
        message: impl Into<String>,
    ) -> Page<'static> {
        Page {
            status,
            error,
            message: message.into(),
            crawler: None,
            rule: None,
            group: None,
            retry_after: None,
            request_id: None,
            reader: Reader::Crawler,
            own: None,
        }
    }

    /// The page as an answer that no cache keeps, with Retry-After if the page has one.
    pub fn answer(&self, form: Form) -> Answer {
        self.answer_with(form, self.render(form).into())
    }

    /// Like [`Page::answer`], with a body that the caller wrote in this form.
    pub fn answer_with(&self, form: Form, body: Bytes) -> Answer {
        let retry_after = self
            .retry_after
            .map(|seconds| (Field::RetryAfter, seconds.into()));
        Answer::uncached(self.status, form.content_type(), retry_after, body)
    }

    /// The body in this form. The site's own page, if there is one, replaces the HTML form alone.
    fn render(&self, form: Form) -> String {
        match form {
            Form::Text => TextPage { page: self }.to_string(),
            Form::Html => match self.own {
                Some(own) => self.fill(own),
                None => HtmlPage { page: self }.to_string(),
            },
            Form::Json => self.json(),
        }
    }

    /// The status with its words, `Refused` where it has none.
    fn title(&self) -> String {
        let words = self.status.canonical_reason().unwrap_or("Refused");
        format!("{} {words}", self.status.as_str())
    }

    /// The site's own page, with its variables replaced by escaped values.
    fn fill(&self, own: &PageTemplate) -> String {
        let parts = own.parts.iter().map(|part| match part {
            PagePart::Text(text) => text.clone(),
            PagePart::Status => escape(&self.title()),
            PagePart::Reason => escape(&self.message),
            PagePart::RequestId => escape(self.request_id.unwrap_or_default()),
        });
        parts.collect()
    }

    /// The page as a JSON object and a line's end. Values that the page has not are left out.
    fn json(&self) -> String {
        let mut json = serde_json::json!({
            "status": self.status.as_u16(), "error": self.error, "message": self.message,
        });
        if self.reader == Reader::Crawler {
            json["robots_txt"] = "/robots.txt".into();
        }
        let optional = [
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

/// The title and the message, then the rule with its group, the link to robots.txt for crawlers,
/// and the request's id, as far as the page has them.
#[derive(Template)]
#[template(path = "page.txt")]
struct TextPage<'p> {
    page: &'p Page<'p>,
}

/// The same parts as HTML; every value is escaped.
#[derive(Template)]
#[template(path = "page.html", escape = "none")]
struct HtmlPage<'p> {
    page: &'p Page<'p>,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_gets_into_html_unescaped() {
        let rule = "Disallow: /<script>alert(1)</script>&'\"";
        let page = Page {
            rule: Some(rule),
            group: Some("GPTBot, <b>"),
            ..Page::new(
                StatusCode::FORBIDDEN,
                "disallowed_by_robots_txt",
                "<i>No</i>",
            )
        };
        let html = page.render(Form::Html);
        assert!(
            !html.contains("<script>") && !html.contains("<b>") && !html.contains("<i>"),
            "{html}"
        );
        assert!(
            html.contains("&lt;script&gt;alert(1)&lt;/script&gt;&amp;&#39;&quot;"),
            "{html}"
        );
        assert!(page.render(Form::Text).contains(rule));
    }
}
