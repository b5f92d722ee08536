//! [`SitemapLocation`]: the path or the URL of a sitemap. [`check_sitemap`] reads the sitemap and
//! checks its URLs. If the sitemap is an index, the sitemaps that it lists are checked instead. If
//! the index is a file, the listed sitemaps are read from the same directory. If the index is at a
//! URL, the listed sitemaps are fetched from the same host.

use super::findings::{FindingCollector, SitemapFinding, SitemapFindings};
use super::lints;
use super::parse::{MAX_BYTES, Sitemap, SitemapKind, SpanFinder, UnreadableSitemap};
use crate::download::{client_config, failure_reason, read_body};
use crate::files::parent_directory;
use crate::printable::{printable_path, truncate};
use crate::robots::{AbsoluteUrl, without_query};
use crate::sites::policy_directory::is_link_outside;
use crate::yaml::{Diagnostic, SourceFile, strip_http_scheme};
use SitemapLocation::{File, Url};
use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use ureq::Agent;

/// The most sitemaps of an index.
const MAX_CHILDREN: usize = 100;
/// The limit for a download, with its redirects.
const TIMEOUT: Duration = Duration::from_secs(30);
const MAX_REDIRECTS: u32 = 5;
/// The most bytes of a reason in a finding.
const MAX_REASON_BYTES: usize = 300;

/// Finds the mistakes in a sitemap of pages.
pub type PageCheck<'a> = dyn FnMut(&Sitemap) -> Vec<SitemapFinding> + 'a;

/// Where a sitemap is.
#[derive(PartialEq, Eq, Hash)]
pub enum SitemapLocation {
    /// A file.
    File(PathBuf),
    /// An http or https URL.
    Url(String),
}

impl SitemapLocation {
    /// The location that a person writes: a URL with its scheme, or a path.
    pub fn new(written: &str) -> SitemapLocation {
        if strip_http_scheme(written).is_some() {
            Url(written.to_owned())
        } else {
            File(written.into())
        }
    }

    /// Its name in findings.
    pub fn name(&self) -> String {
        match self {
            File(path) => printable_path(path),
            Url(url) => printable_path(url),
        }
    }

    /// Reads the file, or downloads the URL.
    ///
    /// # Errors
    /// The file cannot be opened, or the URL gives none.
    fn read(&self) -> io::Result<Result<Sitemap, UnreadableSitemap>> {
        let url = match self {
            File(path) => return Ok(Sitemap::parse(fs::File::open(path)?)),
            Url(url) => url,
        };
        let config = client_config(TIMEOUT).max_redirects(MAX_REDIRECTS);
        let response = Agent::new_with_config(config.build())
            .get(url)
            .call()
            .map_err(|error| io::Error::other(failure_reason(&error)))?;
        match response.status().as_u16() {
            200 => {
                let body = read_body(response.into_body(), MAX_BYTES as usize)?;
                Ok(Sitemap::parse(&*body))
            }
            status => Err(io::Error::other(format!("it answers {status}"))),
        }
    }

    /// The location of a sitemap that this one, an index, lists. A finding for a sitemap that is
    /// not beside the file, or on another host than the URL; its message follows the URL.
    fn child(&self, url: &str) -> Result<SitemapLocation, Box<Diagnostic>> {
        let Some(absolute) = AbsoluteUrl::parse(url.as_bytes()) else {
            return Err(lints::URL_RELATIVE
                .finding(None, "is not an absolute URL")
                .into());
        };
        match self {
            Url(own) => {
                if let Some(own) = AbsoluteUrl::parse(own.as_bytes())
                    && absolute.scheme.eq_ignore_ascii_case(own.scheme)
                    && absolute
                        .authority
                        .is_same_as(&own.authority, own.default_port().unwrap_or_default())
                {
                    return Ok(Url(url.to_owned()));
                }
                let text = "is on another host than its index";
                let help = "an index may only list sitemaps of its own host; crawlgate does not \
                            fetch this one";
                let finding = lints::URL_OTHER_HOST.finding(None, text);
                Err(finding.help(help).into())
            }
            File(own) => {
                let path = String::from_utf8_lossy(without_query(absolute.rest));
                let name = path.rsplit('/').next().unwrap_or_default();
                let file = parent_directory(own).join(name);
                if file.is_file() && !is_link_outside(&file) {
                    return Ok(File(file));
                }
                let text = "is not in the folder of the index";
                Err(lints::SITEMAP_UNREADABLE.finding(None, text).into())
            }
        }
    }
}

/// Reads a sitemap and checks its URLs with `check`; of an index, those of at most 100 sitemaps.
/// Returns the findings of each file that was read.
///
/// # Errors
/// The file cannot be opened, or the URL gives none.
pub fn check_sitemap(
    location: &SitemapLocation,
    check: &mut PageCheck<'_>,
) -> io::Result<Vec<SitemapFindings>> {
    let sitemap = match location.read()? {
        Ok(sitemap) if sitemap.kind == SitemapKind::Index => sitemap,
        parsed => return Ok(vec![check_pages(location, parsed, check)]),
    };
    let mut findings = FindingCollector::default();
    let mut files = Vec::new();
    let mut places = SpanFinder::new(&sitemap.text);
    let mut read = HashSet::new();
    for listed in &sitemap.urls {
        let checked = match location.child(&listed.url) {
            // `a.xml?1` and `a.xml?2` are one file.
            Ok(child) if read.contains(&child) => continue,
            Ok(_) if read.len() == MAX_CHILDREN => {
                let message = format!(
                    "is not checked: crawlgate checks only {MAX_CHILDREN} sitemaps of an index"
                );
                Err(lints::SITEMAP_UNREADABLE.finding(None, message).into())
            }
            Ok(child) => {
                let checked = check_child(&child, check);
                read.insert(child);
                checked
            }
            Err(finding) => Err(finding),
        };
        match checked {
            Ok(checked) => files.push(checked),
            Err(finding) => {
                let span = Some(places.find(listed.range.clone()));
                findings.add(Diagnostic { span, ..*finding }, &listed.url, true);
            }
        }
    }
    files.insert(0, file_findings(location, findings.finish()));
    Ok(files)
}

/// Checks a sitemap of an index. A finding about its line in the index if it is no sitemap of pages
/// that can be opened.
fn check_child(
    location: &SitemapLocation,
    check: &mut PageCheck<'_>,
) -> Result<SitemapFindings, Box<Diagnostic>> {
    let reason = match location.read() {
        Err(error) => error.to_string(),
        Ok(Ok(sitemap)) if sitemap.kind == SitemapKind::Index => {
            "an index may not list an index".to_owned()
        }
        Ok(parsed) => return Ok(check_pages(location, parsed, check)),
    };
    let message = format!("cannot be checked: {reason}");
    Err(lints::SITEMAP_UNREADABLE.finding(None, message).into())
}

/// The findings of a sitemap of pages, or why it cannot be read.
fn check_pages(
    location: &SitemapLocation,
    parsed: Result<Sitemap, UnreadableSitemap>,
    check: &mut PageCheck<'_>,
) -> SitemapFindings {
    let findings = match parsed {
        Ok(sitemap) => check(&sitemap),
        Err(UnreadableSitemap { error, span }) => {
            let message = format!(
                "search engines cannot read this sitemap: {}",
                truncate(&error.to_string(), MAX_REASON_BYTES)
            );
            vec![SitemapFinding {
                diagnostic: lints::SITEMAP_UNREADABLE.finding(span, message),
                urls: Vec::new(),
            }]
        }
    };
    file_findings(location, findings)
}

fn file_findings(location: &SitemapLocation, findings: Vec<SitemapFinding>) -> SitemapFindings {
    SitemapFindings {
        source: SourceFile {
            name: location.name().into(),
            text: "".into(),
        },
        findings,
    }
}
