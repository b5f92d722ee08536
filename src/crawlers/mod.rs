//! The registry of known crawlers, and the identity that a user agent claims. Proving a claim is another room's work.
//!
//! This room knows no policy and no request.

mod address;
mod browsers;
mod crawler;
mod declared;
mod identify;
mod network;
mod network_list;
mod octets;
mod records;
mod registry;
mod shape;
mod shape_words;
mod words;

pub use browsers::{browsers, lookalikes, stands_in_browsers};
pub use crawler::{Binds, Crawler, CrawlerIndex, Purpose};
pub use declared::{Reason, calls_itself};
pub use identify::SiteMarkers;
pub use network::{read_network, read_networks};
pub use network_list::{ListError, MAX_LIST_BYTES, read_list};
pub use registry::Registry;

/// Whom a user agent claims to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Claim {
    /// A person's browser or app, or nothing that says it is a crawler.
    Nobody,
    /// A crawler or tool of the registry.
    Known(CrawlerIndex),
    /// A token that only the site's policy names, by its index in the site's [`SiteMarkers`].
    Token(u16),
    /// Says that it is a bot, and is in no list.
    Other,
    /// A program that is in no list and does not say that it is a bot: it has the shape neither of a browser nor of an
    /// app that people use.
    Tool,
}

#[cfg(test)]
mod tests;
