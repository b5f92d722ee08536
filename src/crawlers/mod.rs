//! Finds out which crawler a `User-Agent` claims to be. [`Registry`] has an entry for each known
//! crawler, and identifies user agents. The result is a [`Claim`], because anybody can send any
//! `User-Agent`. A claim is not verified.

mod address;
mod byte_search;
mod crawler;
pub(crate) mod identify;
mod marker_index;
mod network;
pub(crate) mod network_list;
mod program_kind;
mod program_words;
mod registry;
mod registry_file;
mod unlisted;
mod visitors;

pub use crawler::{Crawler, CrawlerIndex, Purpose, RobotsObedience};
pub use registry::Registry;

pub(crate) use byte_search::{ends_with_ignore_case, starts_with_ignore_case};
pub(crate) use identify::SiteMarkers;
pub(crate) use network::{
    decode_networks, is_internal_host, is_public_address, parse_address, parse_network,
};
pub(crate) use network_list::{MAX_LIST_BYTES, NetworkListError, parse_network_list};
pub(crate) use unlisted::{is_generic_bot_name, product_name, self_given_name};
pub(crate) use visitors::is_visitor_word;
#[cfg(test)]
pub(crate) use visitors::{visitor_user_agents, visitor_words};

/// The crawler that a user agent claims to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Claim {
    /// A person's browser or app.
    Visitor,
    /// A crawler or tool of the registry.
    Known(CrawlerIndex),
    /// A token that only the site's policy names, by its index in `SiteMarkers`.
    PolicyToken(u16),
    /// An unlisted program that says that it is a bot.
    UnknownBot,
    /// Any other unlisted program: neither a browser nor an app that people use.
    Tool,
}

#[cfg(test)]
mod tests;
