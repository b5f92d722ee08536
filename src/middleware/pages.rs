//! [`PageState`]: whether the page of a request is rewritten, and how far that is. Without the feature `html` no page is.

use crate::policy::SiteEntry;
use crate::verdict::Decision;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};

#[cfg(feature = "html")]
use crate::forwarding::{PageRequest, PageRewrite};
#[cfg(feature = "html")]
use http::Method;

/// What became of a page, as a word for metrics.
type RewriteEnd = &'static str;

/// What is known of a request for what may be a page.
#[derive(Clone, Copy)]
#[cfg_attr(not(feature = "html"), allow(dead_code))]
pub struct AskedPage<'a> {
    /// Its method.
    pub method: &'a [u8],
    /// Its target.
    pub target: &'a [u8],
    /// The decision about it.
    pub decision: &'a Decision,
    /// The site.
    pub entry: &'a SiteEntry,
}

/// Whether the page of a request is rewritten.
#[derive(Default)]
pub struct PageState {
    #[cfg(feature = "html")]
    rewrite: PageRewrite,
    /// The fields of the request as they came, where the page may be rewritten.
    #[cfg(feature = "html")]
    original: Option<Box<HeaderMap>>,
    /// Whether the answer to GET would be rewritten, and the request is HEAD: the length of the page is not known.
    #[cfg(feature = "html")]
    has_unknown_length: bool,
}

#[cfg(feature = "html")]
impl PageState {
    /// Asks the application for what can be rewritten.
    pub fn ask(&mut self, headers: &mut HeaderMap, page: &AskedPage<'_>) {
        if page.entry.site.html.is_none() {
            return;
        }
        let original = Box::new(headers.clone());
        self.rewrite.ask(headers, &request(&original, &method(page), page));
        self.original = Some(original);
    }

    /// Settles whether the response is rewritten, and takes away what would not be true of it then.
    pub fn frame(&mut self, headers: &mut HeaderMap, status: StatusCode, page: &AskedPage<'_>) -> Option<RewriteEnd> {
        let (original, method) = (self.original.as_deref()?, method(page));
        if method != Method::HEAD || !matches!(self.rewrite, PageRewrite::Asked) {
            return self.rewrite.frame(headers, status, &request(original, &method, page));
        }
        // Frameworks take the length of HEAD from the body, which they have not thrown away yet.
        let mut of_get = std::mem::take(&mut self.rewrite);
        let end = of_get.frame(headers, status, &request(original, &Method::GET, page));
        self.has_unknown_length = matches!(of_get, PageRewrite::Framed);
        end
    }

    /// Whether the length of the body is not that of the application's. Begins to rewrite it; called when the response has the X-Robots-Tag that the client gets.
    pub fn begin(&mut self, headers: &HeaderMap, entry: &SiteEntry) -> bool {
        self.rewrite.begin(headers, entry.site.html.as_ref());
        self.has_unknown_length || matches!(self.rewrite, PageRewrite::Running(_))
    }

    /// Rewrites a piece of the page; `None` is its end. Gives what can be sent by now.
    pub fn write(&mut self, mut piece: Option<Bytes>) -> (Option<Bytes>, Option<RewriteEnd>) {
        let is_end = piece.is_none();
        let end = self.rewrite.write(&mut piece, is_end);
        (piece, end)
    }

    /// The application broke off in the middle of a page: gives what is held of it.
    pub fn break_off(&mut self) -> (Bytes, Option<RewriteEnd>) {
        self.rewrite.break_off()
    }
}

#[cfg(feature = "html")]
fn method(page: &AskedPage<'_>) -> Method {
    Method::from_bytes(page.method).unwrap_or_default()
}

#[cfg(feature = "html")]
fn request<'a>(headers: &'a HeaderMap, method: &'a Method, page: &AskedPage<'a>) -> PageRequest<'a> {
    let AskedPage { target, decision, entry, .. } = *page;
    PageRequest { method, target, headers, decision, entry }
}

#[cfg(not(feature = "html"))]
impl PageState {
    pub fn ask(&mut self, _: &mut HeaderMap, _: &AskedPage<'_>) {}

    pub fn frame(&mut self, _: &mut HeaderMap, _: StatusCode, _: &AskedPage<'_>) -> Option<RewriteEnd> {
        None
    }

    pub fn begin(&mut self, _: &HeaderMap, _: &SiteEntry) -> bool {
        false
    }

    pub fn write(&mut self, piece: Option<Bytes>) -> (Option<Bytes>, Option<RewriteEnd>) {
        (piece, None)
    }

    pub fn break_off(&mut self) -> (Bytes, Option<RewriteEnd>) {
        (Bytes::new(), None)
    }
}
