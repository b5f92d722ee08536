//! The response header X-Robots-Tag: parsing of what origins send, merging, and rendering.
//! [`Directives`] is a set of directives; [`RobotsTags`] has one set for all crawlers, and one for
//! each named crawler.
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
pub(crate) mod documented_bots;
mod field;
mod member;
mod names;
mod tags;

pub use directive::{Directive, DirectiveError, Directives, Flag, ImagePreview};
pub use field::parse_lines;
pub use tags::{RobotsTags, TagScope};

pub(crate) use directive::is_directive_name;
pub(crate) use field::{line_order, parse_lines_complete};
pub(crate) use names::is_bot_name;
#[cfg(test)]
pub(crate) use names::known_bot_names;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod wild_tests;
