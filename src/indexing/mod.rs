//! X-Robots-Tag: the field is read as origins send it, and its directives are combined and written.
//!
//! [`Directives`]: a set of directives. [`Tags`]: the directives of several lines, by the crawlers
//! that they are for.
//!
//! ```
//! use crawlgate::indexing::parse_lines;
//!
//! let tags = parse_lines([b"noarchive".as_slice(), b"googlebot: noindex, max-snippet: 20"]);
//! assert_eq!(tags.effective("bingbot").to_string(), "noarchive");
//! assert_eq!(tags.effective("googlebot").to_string(), "noindex, noarchive, max-snippet: 20");
//! ```

mod date;
mod directive;
pub(crate) mod engines;
mod field;
mod member;
mod names;
mod tags;

pub use directive::{Directive, DirectiveError, Directives, Flag, ImagePreview};
pub use field::parse_lines;
pub use tags::{Scope, Tags};

pub(crate) use directive::is_directive_name;
pub(crate) use field::{parse_whole, place_of};
pub(crate) use names::is_bots_name;
#[cfg(test)]
pub(crate) use names::names_known;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod wild_tests;
