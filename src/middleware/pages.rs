//! [`PageRewrite`] for the middleware: with the feature `html` that of `forwarding`, without it one
//! that rewrites nothing.

#[cfg(feature = "html")]
pub use crate::forwarding::PageRewrite;

#[cfg(not(feature = "html"))]
mod none {
    use crate::forwarding::Head;
    use crate::policy::Site;
    use crate::verdict::Decision;
    use bytes::Bytes;
    use http::StatusCode;

    /// No page is rewritten.
    #[derive(Default)]
    pub struct PageRewrite {}

    impl PageRewrite {
        pub fn ask(&mut self, _: &mut impl Head, _: &[u8], _: &[u8], _: &Site) {}

        pub fn frame(
            &mut self,
            _: &mut impl Head,
            _: StatusCode,
            _: &Decision,
            _: &Site,
        ) -> Option<&'static str> {
            None
        }

        pub fn has_own_length(&self) -> bool {
            false
        }

        pub fn begin(&mut self, _: &impl Head) {}

        pub fn write(&mut self, _: &mut Option<Bytes>, _: bool) -> Option<&'static str> {
            None
        }

        pub fn break_off(&mut self) -> (Bytes, Option<&'static str>) {
            (Bytes::new(), None)
        }
    }
}

#[cfg(not(feature = "html"))]
pub use none::PageRewrite;
