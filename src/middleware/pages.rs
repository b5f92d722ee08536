//! [`PageRewriteState`] writes robots meta tags into the HTML pages of an application that uses
//! crawlgate as middleware. This needs the feature `html`. Without the feature, a stand-in with the
//! same name leaves every page as it is.

#[cfg(feature = "html")]
pub use crate::forwarding::PageRewriteState;

#[cfg(not(feature = "html"))]
mod none {
    use crate::forwarding::EditableHead;
    use crate::policy::Site;
    use crate::verdict::Decision;
    use bytes::Bytes;
    use http::StatusCode;

    /// No page is rewritten.
    #[derive(Default)]
    pub struct PageRewriteState {}

    impl PageRewriteState {
        pub fn prepare_request(&mut self, _: &mut impl EditableHead, _: &[u8], _: &[u8], _: &Site) {
        }

        pub fn adapt_head(
            &mut self,
            _: &mut impl EditableHead,
            _: StatusCode,
            _: &Decision,
            _: &Site,
        ) -> Option<&'static str> {
            None
        }

        pub fn may_change_length(&self) -> bool {
            false
        }

        pub fn start(&mut self, _: &impl EditableHead) {}

        pub fn rewrite_chunk(&mut self, _: &mut Option<Bytes>, _: bool) -> Option<&'static str> {
            None
        }

        pub fn abort(&mut self) -> (Bytes, Option<&'static str>) {
            (Bytes::new(), None)
        }
    }
}

#[cfg(not(feature = "html"))]
pub use none::PageRewriteState;
