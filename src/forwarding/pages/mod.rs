//! [`PageRewriteState`] writes robots metas (`<meta name="robots">`) into one HTML page on its way
//! to the client, if the policy wants that (section `html`). It asks the origin for a whole page
//! without compression, adapts the head of the response, and passes the body to `crate::html`. The
//! metas repeat the X-Robots-Tag of the response, so they are made after the head is complete.

use super::head::EditableHead;
use crate::heads::{
    X_ROBOTS_TAG, file_extension, has_media_type, join_lines, list_members, origin_form, path_of,
};
use crate::html::{self, PageRewriter, RewriteResult};
use crate::indexing::parse_lines;
use crate::policy::Site;
use crate::policy::model::OriginTagsMode;
use crate::policy::site::RobotsMetaPaths;
use crate::robots::TargetScratch;
use crate::verdict::{Decision, is_challenge};
use PageRewriteState::*;
use bytes::Bytes;
use http::{HeaderName, StatusCode, header};

const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// Fields about the bytes as the origin sent them (RFC 9530, RFC 9110 section 14.3).
const BYTE_FIELDS: [HeaderName; 5] = [
    header::ACCEPT_RANGES,
    HeaderName::from_static("content-md5"),
    HeaderName::from_static("digest"),
    HeaderName::from_static("content-digest"),
    HeaderName::from_static("repr-digest"),
];

/// Extensions of files that are not pages, one a line. Requests for them are not changed.
const NON_PAGE_EXTENSIONS: &str = include_str!("no_pages.txt");

/// The state of the rewriting. [`PageRewriteState::prepare_request`] moves it from `Off` to `Requested`,
/// [`PageRewriteState::adapt_head`] from there to `HeadAdapted` or `HeadOnly`, or back to `Off`, and
/// [`PageRewriteState::start`] from `HeadAdapted` to `Running` or `Off`. The end of the body moves it to
/// `Off`.
#[derive(Default)]
pub enum PageRewriteState {
    /// The page is not rewritten.
    #[default]
    Off,
    /// The origin is asked for a whole page without compression.
    Requested(Box<PageRequestFacts>),
    /// The page will be rewritten, and the head is adapted.
    HeadAdapted,
    /// Like `HeadAdapted`, but for a HEAD request: there is no body.
    HeadOnly,
    /// The body is being rewritten.
    Running(Box<PageRewriter>),
}

/// What is remembered of a request for a page.
pub struct PageRequestFacts {
    /// Whether the method is HEAD.
    is_head: bool,
    /// Whether the client asked for a part.
    has_range: bool,
    /// The lines of If-None-Match.
    validators: Vec<Vec<u8>>,
}

/// How the rewriting of a page ended, or why it did not start, as the label in metrics.
pub type RewriteLabel = &'static str;

impl PageRewriteState {
    /// Changes a request that may be for a page that the site rewrites, so that it asks for the
    /// whole page without compression. May be called again when another server is tried.
    pub fn prepare_request(
        &mut self,
        head: &mut impl EditableHead,
        method: &[u8],
        target: &[u8],
        site: &Site,
    ) {
        let Some(rules) = &site.html else { return };
        if !may_be_page(head, method, target, rules) {
            return;
        }
        *self = Requested(Box::new(PageRequestFacts {
            is_head: method == b"HEAD",
            has_range: head.has(header::RANGE),
            validators: head
                .lines(header::IF_NONE_MATCH)
                .map(<[u8]>::to_vec)
                .collect(),
        }));
        head.set("Accept-Encoding", b"identity");
        // Ranges of the original page do not fit the rewritten one.
        head.remove(&header::RANGE);
        head.remove(&header::IF_RANGE);
    }

    /// Decides whether the page is rewritten, and then removes the fields that would be wrong: the
    /// response has to be a whole page in HTML, with tags to write. Returns the outcome if such a
    /// page cannot be rewritten. A 304 gets a weak ETag if the client's copy has one. An
    /// informational response changes nothing.
    pub fn adapt_head(
        &mut self,
        head: &mut impl EditableHead,
        status: StatusCode,
        decision: &Decision,
        site: &Site,
    ) -> Option<RewriteLabel> {
        if status.is_informational() {
            return None;
        }
        let Requested(asked) = std::mem::take(self) else {
            return None;
        };
        // Otherwise a client that asked for a part, and gets the whole page, would ask for more
        // parts.
        if asked.has_range {
            head.remove(&header::ACCEPT_RANGES);
        }
        if status == StatusCode::NOT_MODIFIED {
            weaken_etag_for_client(&asked.validators, head);
            return None;
        }
        if !is_whole_page(status, head) || !has_tags(status, head, decision, site) {
            return None;
        }
        if let Some(why) = rewrite_obstacle(head) {
            return Some(why);
        }
        head.remove(&header::CONTENT_LENGTH);
        for name in &BYTE_FIELDS {
            head.remove(name);
        }
        if let Some(weak) = weak_etag(head) {
            head.set("ETag", &weak);
        }
        *self = if asked.is_head { HeadOnly } else { HeadAdapted };
        None
    }

    /// Whether the body may have another length than the origin's. Called after `start`.
    pub fn may_change_length(&self) -> bool {
        matches!(self, HeadOnly | Running(_))
    }

    /// Starts to rewrite, if `adapt_head` has decided so. Called when the head has the X-Robots-Tag
    /// that the client gets.
    pub fn start(&mut self, head: &impl EditableHead) {
        if !matches!(self, HeadAdapted) {
            return;
        }
        let page = PageRewriter::new(
            &parse_lines(head.lines(X_ROBOTS_TAG)),
            charset_parameter(content_type(head)),
        );
        *self = page.map_or(Off, |page| Running(Box::new(page)));
    }

    /// Rewrites a chunk of the body in place. It may become `None`, while a part of the page is
    /// held back. Returns how the rewriting ended, if it did.
    pub fn rewrite_chunk(
        &mut self,
        body: &mut Option<Bytes>,
        end_of_stream: bool,
    ) -> Option<RewriteLabel> {
        let Running(page) = self else {
            return None;
        };
        if !page.passes_rest_unchanged() {
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

    /// Ends a page that the origin broke off. Returns what was held back of it, and how the
    /// rewriting ended.
    pub fn abort(&mut self) -> (Bytes, Option<RewriteLabel>) {
        let Running(page) = self else {
            return (Bytes::new(), None);
        };
        let rest = page.end();
        (Bytes::from(rest), self.finish())
    }

    /// Returns how the rewriting ended; `None` if it was not running.
    fn finish(&mut self) -> Option<RewriteLabel> {
        match std::mem::take(self) {
            Running(page) => Some(page.outcome().into()),
            _ => None,
        }
    }
}

/// Whether a request may be for a page that the site rewrites.
fn may_be_page(
    head: &impl EditableHead,
    method: &[u8],
    target: &[u8],
    rules: &RobotsMetaPaths,
) -> bool {
    if !matches!(method, b"GET" | b"HEAD")
        || has_directive(head, header::CACHE_CONTROL, NO_TRANSFORM)
    {
        return false;
    }
    let target = origin_form(target);
    // An authority compares the file of a challenge byte by byte, and some applications send it as
    // text/html.
    if is_challenge(method, &target) || has_non_page_extension(&target) || wants_non_page(head) {
        return false;
    }
    !rules.depends_on_path() || rules.applies_to(TargetScratch::default().normalise(&target))
}

/// Whether the last segment of the path has one of the extensions in `NON_PAGE_EXTENSIONS`.
fn has_non_page_extension(target: &[u8]) -> bool {
    file_extension(path_of(target)).is_some_and(|extension| {
        NON_PAGE_EXTENSIONS
            .lines()
            .any(|known| known.as_bytes().eq_ignore_ascii_case(extension))
    })
}

/// Whether the client wants something other than a page. Browsers say so in Sec-Fetch-Dest: a video
/// needs its ranges, and no crawler reads metas in the data of a script. Other clients accept only
/// JSON.
fn wants_non_page(head: &impl EditableHead) -> bool {
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

/// Whether the response is a whole, non-empty page in HTML. XHTML is not rewritten: a browser shows
/// only the error after a mistake in it.
fn is_whole_page(status: StatusCode, head: &impl EditableHead) -> bool {
    // Of several lines, each client uses another one.
    let mut types = head.lines(header::CONTENT_TYPE).peekable();
    status.is_success()
        && !matches!(status.as_u16(), 204..=206)
        && types.peek().is_some()
        && types.all(|line| has_media_type(line, b"text/html"))
        && !head.has(header::CONTENT_RANGE)
        && head
            .lines(header::CONTENT_LENGTH)
            .next()
            .is_none_or(|length| length.trim_ascii() != b"0")
}

/// Why a page cannot be rewritten; `None` if it can.
fn rewrite_obstacle(head: &impl EditableHead) -> Option<RewriteLabel> {
    let mut codings = head.lines(header::CONTENT_ENCODING).flat_map(list_members);
    if codings.any(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case(b"identity")) {
        Some("coded")
    } else if has_directive(head, header::CACHE_CONTROL, NO_TRANSFORM) {
        Some("no_transform")
    } else if !html::is_readable(charset_parameter(content_type(head))) {
        Some(RewriteResult::Encoding.into())
    } else {
        None
    }
}

fn content_type(head: &impl EditableHead) -> &[u8] {
    head.lines(header::CONTENT_TYPE).next().unwrap_or_default()
}

/// Whether there are tags to write: of the policy, or of the origin if the policy does not strip
/// them.
fn has_tags(
    status: StatusCode,
    head: &impl EditableHead,
    decision: &Decision,
    site: &Site,
) -> bool {
    let content_type = join_lines(head.lines(header::CONTENT_TYPE));
    let content_type = content_type.as_deref();
    let theirs = head.has(X_ROBOTS_TAG) && site.origin_tags != OriginTagsMode::Strip;
    theirs
        || site
            .tags
            .tags(&decision.path_rules, status.as_u16(), content_type)
            .is_some()
}

/// Makes the entity tag of a 304 weak, if the client's copy has been rewritten: such a copy has a
/// weak tag. So does the copy of a client without validators, which asks by the date (RFC 9110
/// section 15.4.5).
fn weaken_etag_for_client(validators: &[Vec<u8>], response: &mut impl EditableHead) {
    let Some(weak) = weak_etag(response) else {
        return;
    };
    let has_weak = validators
        .iter()
        .any(|line| memchr::memmem::find(line, &weak).is_some());
    if validators.is_empty() || has_weak {
        response.set("ETag", &weak);
    }
}

/// The weak form of a response's entity tag: other bytes, the same meaning (RFC 9110 section
/// 8.8.1). `None` if it has no tag, or a weak one.
fn weak_etag(response: &impl EditableHead) -> Option<Vec<u8>> {
    let etag = response.lines(header::ETAG).next()?.trim_ascii();
    etag.starts_with(b"\"")
        .then(|| [b"W/".as_slice(), etag].concat())
}

/// Whether this field has this directive, in any case.
fn has_directive(head: &impl EditableHead, name: HeaderName, directive: &[u8]) -> bool {
    let mut directives = head.lines(name).flat_map(list_members);
    directives.any(|own| own.eq_ignore_ascii_case(directive))
}

/// The `charset` parameter of a media type, without quotes.
fn charset_parameter(content_type: &[u8]) -> Option<&[u8]> {
    content_type
        .split(|byte| *byte == b';')
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
