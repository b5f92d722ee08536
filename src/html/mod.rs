//! [`Page`]: a page on its way to the client. The directives of its X-Robots-Tag field are written into its head as
//! robots metas, links get `rel`, elements `data-nosnippet`. It takes bytes in any pieces, in bounded memory, and
//! leaves all else byte for byte as it was.
//!
//! A page that cannot be read (its encoding, a tag larger than the memory) passes unchanged: the field still has the
//! directives.

mod charset;
mod head;
mod marks;
mod metas;
mod page;

pub use charset::is_readable;
pub use marks::Marks;
pub use page::{Page, RewriteResult};

#[cfg(test)]
mod tests;
