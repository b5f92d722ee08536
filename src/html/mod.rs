//! Rewrites HTML pages on their way from the origin to the client ([`Page`]). The directives of a
//! page's X-Robots-Tag field are also written into its head as robots metas. [`Page`] takes bytes
//! in pieces of any size, uses bounded memory, and leaves everything else byte for byte as it was.
//!
//! A page that cannot be read (its encoding, a tag larger than the memory) passes unchanged: the
//! field still has the directives.

mod charset;
mod head;
mod metas;
mod page;

pub use charset::is_readable;
pub use page::{Page, RewriteResult};

#[cfg(test)]
mod tests;
