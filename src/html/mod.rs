//! Rewrites HTML pages on their way from the origin to the client. [`PageRewriter`] writes the
//! directives of a page's X-Robots-Tag field into the page's head as robots metas (`<meta
//! name="robots">`). It takes the page in pieces of any size, uses bounded memory, and leaves
//! everything else byte for byte as it was.
//!
//! A page that cannot be read, because of its encoding or a tag that is too large, passes
//! unchanged. Its X-Robots-Tag field still has the directives.

mod charset;
mod head;
mod metas;
mod page;

pub use charset::is_readable;
pub use metas::read_metas;
pub use page::{PageRewriter, RewriteResult};

#[cfg(test)]
mod tests;
