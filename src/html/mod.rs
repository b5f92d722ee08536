//! A page on its way to the client ([`Page`]): what the X-Robots-Tag field says of it is written into its head as robots
//! metas, links get `rel`, elements `data-nosnippet`. Bytes in, bytes out, in whatever pieces they come, in bounded memory;
//! all else stays byte for byte what it was.
//!
//! A page that cannot be read (its encoding, a tag larger than the memory) passes as it is: the field still says it all.

mod charset;
mod head;
mod marks;
mod metas;
mod page;

pub use charset::is_readable;
pub use marks::Marks;
pub use page::{Outcome, Page};

#[cfg(test)]
mod tests;
