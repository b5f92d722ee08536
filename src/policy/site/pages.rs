//! [`SiteAnswerPages`]: HTML pages of a site that replace crawlgate's own during pauses, when the
//! origin fails, and for blocked crawlers. A [`PageTemplate`] is one such page. It is split at the
//! points where the status, the reason and the request id are inserted.

use crate::policy::model::{AnswerPages, IncludedFile};

/// The pages of a site.
#[derive(Debug)]
pub struct SiteAnswerPages {
    /// During a pause.
    pub pause: Option<PageTemplate>,
    /// Where the origin does not answer.
    pub failure: Option<PageTemplate>,
    /// For a blocked crawler.
    pub refusal: Option<PageTemplate>,
}

/// One page.
#[derive(Debug)]
pub struct PageTemplate {
    /// Its parts, in the order of the file.
    pub parts: Vec<PageTemplatePart>,
}

/// A part of a page.
#[derive(Clone, Debug, PartialEq)]
pub enum PageTemplatePart {
    /// Text of the file.
    Text(String),
    /// The status code with its name: `{{status}}`.
    Status,
    /// A sentence that says what happened: `{{reason}}`.
    Reason,
    /// The id of the request, where the origin does not answer it: `{{request_id}}`.
    RequestId,
}

fn parse_page(page: &Option<IncludedFile>) -> Option<PageTemplate> {
    let bytes = page.as_ref()?.bytes.as_deref()?;
    let text = String::from_utf8_lossy(bytes);
    Some(PageTemplate::parse(&text))
}

impl SiteAnswerPages {
    /// Parses the pages that were found; bytes that are not UTF-8 are replaced.
    pub fn new(pages: &AnswerPages) -> SiteAnswerPages {
        SiteAnswerPages {
            pause: parse_page(&pages.pause),
            failure: parse_page(&pages.failure),
            refusal: parse_page(&pages.refusal),
        }
    }
}

impl PageTemplate {
    /// Splits a page at `{{status}}`, `{{reason}}` and `{{request_id}}`. Other text in double
    /// braces stays. No part is empty.
    pub fn parse(html: &str) -> PageTemplate {
        let variables = [
            ("{{status}}", PageTemplatePart::Status),
            ("{{reason}}", PageTemplatePart::Reason),
            ("{{request_id}}", PageTemplatePart::RequestId),
        ];
        let mut parts = Vec::new();
        let mut rest = html;
        while let Some((place, name, part)) = variables
            .iter()
            .filter_map(|(name, part)| Some((rest.find(name)?, name, part)))
            .min_by_key(|(place, ..)| *place)
        {
            parts.push(PageTemplatePart::Text(rest[..place].to_owned()));
            parts.push(part.clone());
            rest = &rest[place + name.len()..];
        }
        parts.push(PageTemplatePart::Text(rest.to_owned()));
        parts.retain(|part| *part != PageTemplatePart::Text(String::new()));
        PageTemplate { parts }
    }
}

#[cfg(test)]
mod tests {
    use super::PageTemplatePart::{Reason, RequestId, Status, Text};
    use super::*;

    #[test]
    fn page_is_split_at_its_variables() {
        let parts = |html: &str| PageTemplate::parse(html).parts;
        assert_eq!(
            parts("{{status}}: {{reason}}!"),
            [Status, Text(": ".into()), Reason, Text("!".into())]
        );
        assert_eq!(
            parts("{{reason}}{{reason}}{{request_id}}"),
            [Reason, Reason, RequestId]
        );
        assert_eq!(
            parts("{{other}} {{ status }}"),
            [Text("{{other}} {{ status }}".into())]
        );
        assert_eq!(parts(""), []);
    }
}
