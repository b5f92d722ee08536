//! [`PageRewrite`]: the rewriting of one page on its way to the client (`html` of a policy). It
//! asks the origin for a whole page without compression, adapts the head of the response, and
//! passes the body through `crate::html`.
//!
//! The head is adapted before the body is framed. The robots metas are made later: they repeat the
//! X-Robots-Tag that the client gets.

use super::head::Head;
use crate::heads::{X_ROBOTS_TAG, extension, is_media, joined, members, origin_form, path_of};
use crate::html::{self, Page, RewriteResult};
use crate::indexing::parse_lines;
use crate::policy::Site;
use crate::policy::model::OriginTags;
use crate::policy::site::HtmlRules;
use crate::robots::TargetScratch;
use crate::verdict::{Decision, is_challenge};
use bytes::Bytes;
use http::{HeaderName, StatusCode, header};

const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// Fields about the octets as the origin sent them (RFC 9530, RFC 9110 section 14.3).
const OF_THE_OCTETS: [HeaderName; 5] = [
    header::ACCEPT_RANGES,
    HeaderName::from_static("content-md5"),
    HeaderName::from_static("digest"),
    HeaderName::from_static("content-digest"),
    HeaderName::from_static("repr-digest"),
];

/// Extensions of files that are not pages, one a line. Requests for them keep their codings and ranges.
const NO_PAGES: &str = include_str!("no_pages.txt");

/// The states of the rewriting. It begins at `No`, and [`ask`](PageRewrite::ask) moves it to
/// `Asked`. [`frame`](PageRewrite::frame) moves it from there to `Framed` or `Head`, or back.
/// [`begin`](PageRewrite::begin) moves it from `Framed` to `Running`, or back. At the end of the
/// body it is `No` again.
#[derive(Default)]
pub enum PageRewrite {
    /// The body passes as it is.
    #[default]
    No,
    /// The origin is asked for a whole page without compression.
    Asked(Box<AskedPage>),
    /// The response can be rewritten, and its head is adapted.
    Framed,
    /// Like `Framed`, in reply to HEAD: the head is that of GET, and there is no body.
    Head,
    /// The body is being rewritten.
    Running(Box<Page>),
}

/// Facts about a request for a page.
pub struct AskedPage {
    is_head: bool,
    /// Whether the client asked for a part.
    has_range: bool,
    /// The lines of If-None-Match.
    validators: Vec<Vec<u8>>,
}

/// How the rewriting of a page ended, or why it did not begin: a word for metrics.
pub type RewriteEnd = &'static str;

impl PageRewrite {
    /// Makes the request ask for a whole page without compression, if it may be for a page that the
    /// site rewrites; otherwise changes nothing. `head` is the request as it came, on its way to
    /// the origin. May be called again when another server is tried.
    pub fn ask(&mut self, head: &mut impl Head, method: &[u8], target: &[u8], site: &Site) {
        let Some(rules) = &site.html else { return };
        if !may_be_page(head, method, target, rules) {
            return;
        }
        *self = PageRewrite::Asked(Box::new(AskedPage {
            is_head: method == b"HEAD",
            has_range: head.has(header::RANGE),
            validators: head
                .lines(header::IF_NONE_MATCH)
                .map(<[u8]>::to_vec)
                .collect(),
        }));
        head.set("Accept-Encoding", b"identity");
        // A part of the page as it was is no part of the page as it will be.
        head.remove(&header::RANGE);
        head.remove(&header::IF_RANGE);
    }

    /// Decides whether the response is rewritten, and removes the fields that would be false then:
    /// it is a whole page in HTML, and there are tags to write. Returns the reason for the metrics
    /// if such a page cannot be rewritten. A 304 gets a weak ETag if the client's copy has one.
    /// Informational responses change nothing.
    pub fn frame(
        &mut self,
        head: &mut impl Head,
        status: StatusCode,
        decision: &Decision,
        site: &Site,
    ) -> Option<RewriteEnd> {
        if status.is_informational() {
            return None;
        }
        let PageRewrite::Asked(asked) = std::mem::take(self) else {
            return None;
        };
        // A client that asked for a part and got the whole would ask for the next part in the same
        // way.
        if asked.has_range {
            head.remove(&header::ACCEPT_RANGES);
        }
        if status == StatusCode::NOT_MODIFIED {
            weaken_for_client(&asked.validators, head);
            return None;
        }
        if !is_whole_page(status, head) || !has_something_to_say(status, head, decision, site) {
            return None;
        }
        if let Some(why) = cannot_be_rewritten(head) {
            return Some(why);
        }
        head.remove(&header::CONTENT_LENGTH);
        for name in &OF_THE_OCTETS {
            head.remove(name);
        }
        if let Some(weak) = weakened(head) {
            head.set("ETag", &weak);
        }
        *self = if asked.is_head {
            PageRewrite::Head
        } else {
            PageRewrite::Framed
        };
        None
    }

    /// Whether the body may have another length than that of the origin: it is being rewritten, or
    /// would be for GET. Asked after `begin`.
    pub fn has_own_length(&self) -> bool {
        matches!(self, PageRewrite::Head | PageRewrite::Running(_))
    }

    /// Begins to rewrite, if `frame` has decided so. Called when the response has the X-Robots-Tag
    /// that the client gets. Without tags for pages, the body passes as it is.
    pub fn begin(&mut self, head: &impl Head) {
        if !matches!(self, PageRewrite::Framed) {
            return;
        }
        let page = Page::new(
            &parse_lines(head.lines(X_ROBOTS_TAG)),
            charset(content_type(head)),
        );
        *self = page.map_or(PageRewrite::No, |page| PageRewrite::Running(Box::new(page)));
    }

    /// Rewrites a piece of the body in place. It may become `None`, while a part of the page is
    /// held back. At the end of the body (`end_of_stream`), returns how the rewriting ended; `None`
    /// also if the page is not rewritten.
    pub fn write(&mut self, body: &mut Option<Bytes>, end_of_stream: bool) -> Option<RewriteEnd> {
        let PageRewrite::Running(page) = self else {
            return None;
        };
        if !page.is_passing() {
            let mut written = body
                .take()
                .map_or_else(Vec::new, |piece| page.write(&piece));
            if end_of_stream {
                written.extend(page.end());
            }
            // An empty piece could be taken for the end of the body.
            *body = (!written.is_empty()).then(|| Bytes::from(written));
        }
        end_of_stream.then(|| self.finish()).flatten()
    }

    /// Ends a page that the origin broke off in the middle. Returns what was still held of it, so
    /// that the client gets all that came, and how the rewriting ended.
    pub fn break_off(&mut self) -> (Bytes, Option<RewriteEnd>) {
        let PageRewrite::Running(page) = self else {
            return (Bytes::new(), None);
        };
        let held = page.end();
        (Bytes::from(held), self.finish())
    }

    /// Ends the rewriting, and returns how it ended; `None` if it was not running.
    fn finish(&mut self) -> Option<RewriteEnd> {
        match std::mem::take(self) {
            PageRewrite::Running(page) => Some(page.outcome().into()),
            PageRewrite::No | PageRewrite::Asked(_) | PageRewrite::Framed | PageRewrite::Head => {
                None
            }
        }
    }
}

/// Whether a request may be for a page that the site rewrites: GET or HEAD, no `no-transform`, no
/// challenge, no name or wish for something else, and a path to which the rules apply.
fn may_be_page(head: &impl Head, method: &[u8], target: &[u8], rules: &HtmlRules) -> bool {
    if !matches!(method, b"GET" | b"HEAD") || says(head, header::CACHE_CONTROL, NO_TRANSFORM) {
        return false;
    }
    let target = origin_form(target);
    // An authority compares the file of a challenge byte for byte, and some applications send it as
    // text/html.
    if is_challenge(method, &target) || has_other_name(&target) || asked_for_as_other(head) {
        return false;
    }
    !rules.asks_path() || rules.applies(TargetScratch::default().normalise(&target))
}

/// Whether the last segment of the path has one of the extensions in `NO_PAGES`.
fn has_other_name(target: &[u8]) -> bool {
    extension(path_of(target)).is_some_and(|extension| {
        NO_PAGES
            .lines()
            .any(|known| known.as_bytes().eq_ignore_ascii_case(extension))
    })
}

/// Whether the client wants something other than a page. Browsers say so in Sec-Fetch-Dest: a video
/// needs its ranges, whatever its name, and no crawler reads metas in the data of a script. Other
/// clients say in Accept that they want JSON, and nothing else.
fn asked_for_as_other(head: &impl Head) -> bool {
    let pages: [&[u8]; 6] = [
        b"document",
        b"iframe",
        b"frame",
        b"embed",
        b"object",
        b"fencedframe",
    ];
    let dest = head.lines(SEC_FETCH_DEST).next();
    let accept = head.lines(header::ACCEPT).next().unwrap_or_default();
    dest.is_some_and(|dest| !pages.contains(&dest))
        || accept
            .trim_ascii()
            .eq_ignore_ascii_case(b"application/json")
}

const NO_TRANSFORM: &[u8] = b"no-transform";

/// Whether the response is a whole page in HTML: 2xx but 204 to 206, every Content-Type
/// `text/html`, no part, not empty. XHTML is not rewritten: after one mistake in it, a browser
/// shows the mistake alone.
fn is_whole_page(status: StatusCode, head: &impl Head) -> bool {
    // Of several lines, each reader uses another one.
    let mut types = head.lines(header::CONTENT_TYPE).peekable();
    status.is_success()
        && !matches!(status.as_u16(), 204..=206)
        && types.peek().is_some()
        && types.all(|line| is_media(line, b"text/html"))
        && !head.has(header::CONTENT_RANGE)
        && head
            .lines(header::CONTENT_LENGTH)
            .next()
            .is_none_or(|length| length.trim_ascii() != b"0")
}

/// Why a page cannot be rewritten, as a word for metrics: its coding, `no-transform`, or an
/// encoding of characters that is not read. `None` if it can.
fn cannot_be_rewritten(head: &impl Head) -> Option<&'static str> {
    let mut codings = head.lines(header::CONTENT_ENCODING).flat_map(members);
    if codings.any(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case(b"identity")) {
        Some("coded")
    } else if says(head, header::CACHE_CONTROL, NO_TRANSFORM) {
        Some("no_transform")
    } else if !html::is_readable(charset(content_type(head))) {
        Some(RewriteResult::Encoding.into())
    } else {
        None
    }
}

fn content_type(head: &impl Head) -> &[u8] {
    head.lines(header::CONTENT_TYPE).next().unwrap_or_default()
}

/// Whether there are tags to be written: some of the policy, or lines of X-Robots-Tag of the origin
/// that the policy does not strip. A page without them keeps its length, too.
fn has_something_to_say(
    status: StatusCode,
    head: &impl Head,
    decision: &Decision,
    site: &Site,
) -> bool {
    let content_type = joined(head.lines(header::CONTENT_TYPE));
    let content_type = content_type.as_deref();
    let theirs = head.has(X_ROBOTS_TAG) && site.origin_tags != OriginTags::Strip;
    theirs
        || site
            .tags
            .tags(&decision.path_rules, status.as_u16(), content_type)
            .is_some()
}

/// Weakens the entity tag of a 304, if the client's copy has been rewritten: the tag of such a copy
/// is weak. A client that asks by the date alone does not say which copy it has. It gets the tag
/// that the page itself would have (RFC 9110 section 15.4.5).
fn weaken_for_client(validators: &[Vec<u8>], response: &mut impl Head) {
    let Some(weak) = weakened(response) else {
        return;
    };
    let has_weak = validators
        .iter()
        .any(|line| memchr::memmem::find(line, &weak).is_some());
    if validators.is_empty() || has_weak {
        response.set("ETag", &weak);
    }
}

/// The entity tag of a response made weak; `None` if it has none, or is weak already (RFC 9110
/// section 8.8.1: the octets are others, the meaning is the same).
fn weakened(response: &impl Head) -> Option<Vec<u8>> {
    let etag = response.lines(header::ETAG).next()?.trim_ascii();
    etag.starts_with(b"\"")
        .then(|| [b"W/".as_slice(), etag].concat())
}

/// Whether the lists of directives in this field hold this one, in any case.
fn says(head: &impl Head, name: HeaderName, directive: &[u8]) -> bool {
    let mut said = head.lines(name).flat_map(members);
    said.any(|said| said.eq_ignore_ascii_case(directive))
}

/// The `charset` parameter of a media type, without quotes.
fn charset(content_type: &[u8]) -> Option<&[u8]> {
    content_type
        .split(|octet| *octet == b';')
        .skip(1)
        .find_map(|parameter| {
            let equals = memchr::memchr(b'=', parameter)?;
            let name = parameter[..equals].trim_ascii();
            let value = parameter[equals + 1..].trim_ascii();
            let value = value
                .strip_prefix(b"\"")
                .map_or(value, |value| value.strip_suffix(b"\"").unwrap_or(value));
            name.eq_ignore_ascii_case(b"charset").then_some(value)
        })
}

#[cfg(test)]
mod tests;
