//! Changes to heads that pass through crawlgate. [`write_request`] writes the head of a request for
//! the origin: forwarding fields, ids, and no condition (If-None-Match) by which a 304 would hide a
//! new tag. [`write_response`] adds the policy's tags and signals to a response. `PageRewrite`
//! rewrites pages. All of them work on any [`Head`]: that of the lane (`edge/lane`, which forwards
//! most requests), of Pingora's proxy, or of the middleware.

mod authority;
mod client;
mod head;
mod hops;
#[cfg(feature = "html")]
mod pages;
mod request;
mod response;
mod signals;
mod tags;

pub use authority::{Authorities, give_client_authority};
pub use client::{Client, Forwarded, Peer, is_trusted};
pub use head::{Head, field_value, unwanted};
pub use hops::{ends_here, is_of_one_hop, remove_named_by_connection};
#[cfg(feature = "html")]
pub use pages::{PageRewrite, RewriteEnd};
pub use request::{
    ForwardedRequest, has_condition, remove_conditions, write_ids_in_map, write_request,
};
pub use response::write_response;
