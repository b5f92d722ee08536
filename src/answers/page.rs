//! [`Page`]: the short explanation in a refusal or an error, as text, HTML or JSON. A page for
//! crawlers links robots.txt. Pages contain nothing secret, and every value in HTML is escaped.

use super::answer::Answer;
use super::field::Field;
use super::negotiate::Form;
use crate::policy::site::{PagePart, PageTemplate};
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
            Form::Text => self.text(),
            Form::Html => self.own.map_or_else(|| self.html(), |own| self.fill(own)),
            Form::Json => self.json(),
        }
    }

    /// Writes the status with its words, `Refused` where it has none.
    fn write_title(&self, out: &mut String) {
        out.push_str(self.status.as_str());
        out.push(' ');
        out.push_str(self.status.canonical_reason().unwrap_or("Refused"));
    }

    /// The site's own page, with its variables replaced by escaped values.
    fn fill(&self, own: &PageTemplate) -> String {
        let mut title = String::with_capacity(32);
        self.write_title(&mut title);
        let parts = own.parts.iter().map(|part| match part {
            PagePart::Text(text) => text.clone(),
            PagePart::Status => escape(&title),
            PagePart::Reason => escape(&self.message),
            PagePart::RequestId => escape(self.request_id.unwrap_or_default()),
        });
        parts.collect()
    }

    /// The page as plain text: the title and the message, then the rule with its group, the link to
    /// robots.txt for crawlers, and the request's id, as far as the page has them.
    fn text(&self) -> String {
        let mut text = String::with_capacity(256 + self.message.len());
        self.write_title(&mut text);
        write(&mut text, &["\n\n", &self.message, "\n"]);
        if let Some(rule) = self.rule {
            write(&mut text, &["\nRule:  ", rule, "\n"]);
            if let Some(group) = self.group {
                write(&mut text, &["Group: ", group, "\n"]);
            }
        }
        if self.reader == Reader::Crawler {
            text.push_str("\nThe rules of this site for crawlers: /robots.txt\n");
        }
        if let Some(id) = self.request_id {
            write(&mut text, &["\nRequest: ", id, "\n"]);
        }
        text
    }

    /// The page as HTML, with the same parts as `Page::text`; every value is escaped.
    fn html(&self) -> String {
        let mut title = String::with_capacity(32);
        self.write_title(&mut title);
        let title = escape(&title);
        let mut html = String::with_capacity(512 + self.message.len());
        write(
            &mut html,
            &[
                "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
                 content=\"width=device-width\">\n<title>",
                &title,
                "</title>\n<h1>",
                &title,
                "</h1>\n<p>",
                &escape(&self.message),
                "</p>\n",
            ],
        );
        if let Some(rule) = self.rule {
            write(&mut html, &["<p>Rule: <code>", &escape(rule), "</code>"]);
            if let Some(group) = self.group {
                write(&mut html, &[" for <code>", &escape(group), "</code>"]);
            }
            html.push_str("</p>\n");
        }
        if self.reader == Reader::Crawler {
            html.push_str("<p>The rules of this site for crawlers: <a href=\"/robots.txt\">/robots.txt</a></p>\n");
        }
        if let Some(id) = self.request_id {
            write(
                &mut html,
                &["<p>Request: <code>", &escape(id), "</code></p>\n"],
            );
        }
        html.push_str("</html>\n");
        html
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

fn write(out: &mut String, parts: &[&str]) {
    for part in parts {
        out.push_str(part);
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
        let html = page.html();
        assert!(
            !html.contains("<script>") && !html.contains("<b>") && !html.contains("<i>"),
            "{html}"
        );
        assert!(
            html.contains("&lt;script&gt;alert(1)&lt;/script&gt;&amp;&#39;&quot;"),
            "{html}"
        );
        assert!(page.text().contains(rule));
    }
}
