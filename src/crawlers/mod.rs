//! The registry of known crawlers, and the identity that a user agent claims. [`Registry`] holds
//! the records and identifies user agents; [`Claim`] is the result. The module `identity` proves
//! claims.

mod address;
mod crawler;
mod declared;
pub(crate) mod identify;
mod network;
pub(crate) mod network_list;
mod octets;
mod people;
mod records;
mod registry;
mod shape;
mod shape_words;
mod words;

pub use crawler::{Binds, Crawler, CrawlerIndex, Purpose};
pub use registry::Registry;

pub(crate) use declared::{calls_itself, is_generic, product_name};
pub(crate) use identify::SiteMarkers;
pub(crate) use network::{is_public, read_network, read_networks, written_address};
pub(crate) use network_list::{ListError, MAX_LIST_BYTES, read_list};
pub(crate) use people::is_of_people;
#[cfg(test)]
pub(crate) use people::{people, words_of_people};

/// The crawler that a user agent claims to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Claim {
    /// A person's browser or app, or nothing that says it is a crawler.
    Nobody,
    /// A crawler or tool of the registry.
    Known(CrawlerIndex),
    /// A token that only the site's policy names, by its index among the site's.
    Token(u16),
    /// A program that is in no list and says that it is a bot.
    Other,
    /// A program that is in no list and does not say that it is a bot: it has the shape neither of
    /// a browser nor of an app that people use.
    Tool,
}

#[cfg(test)]
mod tests;
