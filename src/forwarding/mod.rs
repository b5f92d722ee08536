//! What is written into a request on its way to the origin and into a response on its way back: forwarding fields, the
//! policy's tags and signals, conditions that would hide a change, pages that are rewritten. Works on any [`Head`], so
//! that every door does the same.

mod client;
mod head;
mod hops;
#[cfg(feature = "html")]
mod pages;
mod request;
mod response;
mod signals;
mod tags;

pub use client::{client_address, is_forwarding_field, is_trusted};
pub use head::{Head, field_value, unwanted};
pub use hops::{ends_here, is_of_one_hop, remove_named_by_connection};
#[cfg(feature = "html")]
pub use pages::{PageRewrite, RewriteEnd};
pub use request::{ForwardedRequest, Peer, has_condition, remove_conditions, write_ids_in_map, write_request};
pub use response::write_response;
