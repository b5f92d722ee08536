//! [`SitemapFindings`]: what is wrong with the URLs of a sitemap. URLs with the same mistake by the
//! same rule are one [`SitemapFinding`], which lists them. So a rule that disallows 50,000 URLs is
//! one finding, and its text is kept once.

use super::parse::shown;
use crate::numbers::plural_thousands;
use crate::printable::{join, printable};
use crate::yaml::{Diagnostic, SourceFile};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::HashMap;

/// How many URLs the text of a finding names.
const MAX_EXAMPLES: usize = 3;

/// The findings about one file.
pub struct SitemapFindings {
    /// The file. Its text is not kept: it may have 50 MB, and findings name their URLs.
    pub source: SourceFile,
    /// Those about the most URLs first.
    pub findings: Vec<SitemapFinding>,
}

impl SitemapFindings {
    /// Each finding with the file and examples, in one line.
    pub fn problems(&self) -> impl Iterator<Item = String> {
        self.findings.iter().map(|found| {
            let message = &found.diagnostic.message;
            let examples = found.diagnostic.label.as_deref().unwrap_or_default();
            printable(
                format!("{}: {message} {examples}", self.source.name)
                    .trim_end()
                    .as_bytes(),
            )
        })
    }
}

/// A mistake, with the URLs that have it.
pub struct SitemapFinding {
    /// The mistake, at the first of the URLs. `more` counts URLs that are not listed.
    pub diagnostic: Diagnostic,
    /// The URLs in the order of the file. Empty if the mistake is one of the file.
    pub urls: Vec<AffectedUrl>,
}

/// A URL with a mistake.
#[derive(Serialize)]
pub struct AffectedUrl {
    url: Box<str>,
    line: u32,
    column: u32,
    /// Where it redirects.
    #[serde(skip_serializing_if = "Option::is_none")]
    redirects_to: Option<String>,
    /// Its canonical URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    canonical: Option<String>,
}

impl AffectedUrl {
    /// The URL, a text, and where it redirects or its canonical URL.
    fn describe(&self, text: &str) -> String {
        let target = self.redirects_to.as_ref().or(self.canonical.as_ref());
        let target = target.map(|target| format!(" to {}", shown(target)));
        format!("{}{text}{}", shown(&self.url), target.unwrap_or_default())
    }
}

impl SitemapFinding {
    /// Completes the message, which is the mistake alone, with the URLs.
    fn add_urls_to_message(&mut self) {
        let mistake = &self.diagnostic.message;
        if let [url] = &*self.urls {
            self.diagnostic.message = url.describe(&format!(" {mistake}"));
            return;
        }
        let number = plural_thousands(self.urls.len(), "URL");
        self.diagnostic.message = format!("each of {number} {mistake}");
        let examples = self.urls.iter().take(MAX_EXAMPLES);
        let examples = join(examples.map(|url| url.describe("")), ", ");
        self.diagnostic.label = Some(format!("for example {examples}"));
    }
}

/// Collects findings about URLs by their mistakes.
#[derive(Default)]
pub struct FindingCollector {
    findings: Vec<SitemapFinding>,
    /// The index of each finding by its id and message.
    indices: HashMap<(&'static str, String), usize>,
}

impl FindingCollector {
    /// Adds a finding about a URL. Its message is what follows the URL, and its label where the URL
    /// redirects, or its canonical URL. Without `is_listed` the URL is only counted, unless it is the first.
    pub fn add(&mut self, mut mistake: Diagnostic, url: &str, is_listed: bool) {
        let span = mistake.span.unwrap_or_default();
        let mut affected = AffectedUrl {
            url: url.into(),
            line: span.line,
            column: span.column,
            redirects_to: mistake.label.take(),
            canonical: None,
        };
        if mistake.id == super::lints::URL_CANONICAL.id {
            affected.canonical = affected.redirects_to.take();
        }
        let key = (mistake.id, mistake.message.clone());
        let index = *self.indices.entry(key).or_insert(self.findings.len());
        match self.findings.get_mut(index) {
            None => self.findings.push(SitemapFinding {
                diagnostic: mistake,
                urls: vec![affected],
            }),
            Some(finding) if is_listed => finding.urls.push(affected),
            Some(finding) => finding.diagnostic.more += 1,
        }
    }

    /// The findings, those about the most URLs first.
    pub fn finish(mut self) -> Vec<SitemapFinding> {
        for finding in &mut self.findings {
            finding.add_urls_to_message();
        }
        self.findings
            .sort_by_key(|finding| Reverse(finding.urls.len() + finding.diagnostic.more));
        self.findings
    }
}
