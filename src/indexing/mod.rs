//! X-Robots-Tag: directives, the grammar of the field as it is found in the wild, combination, emission.
//!
//! This room knows the field only: not which response it is for, nor where it came from.
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
mod emit;
pub mod engines;
mod field;
mod iso8601;
mod member;
mod names;
mod octets;
mod tags;

pub use directive::{Directive, DirectiveError, Directives, Flag, ImagePreview, is_directive_name};
pub use field::{parse_lines, parse_whole, place_of};
pub use names::is_bots_name;
#[cfg(test)]
pub use names::names_known;
pub use octets::octets;
pub use tags::{Scope, Tags};

#[cfg(test)]
mod tests;
#[cfg(test)]
mod wild_tests;
