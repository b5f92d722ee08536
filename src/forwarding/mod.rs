//! What is written into a request on its way to the origin and into a response on its way back: forwarding fields, the
//! policy's tags and signals, conditions that would hide a change, pages that are rewritten. Works on any [`Head`], so
//! that every door does the same. Must not know Pingora, nor how a request is judged.

mod client;
mod head;
#[cfg(feature = "html")]
mod pages;
mod request;
mod response;
mod signals;
mod tags;

pub use client::{client_address, is_forwarding_field, is_trusted, names_another_client};
pub use head::{Head, MappedHead, field_value, unwanted};
#[cfg(feature = "html")]
pub use pages::{PageRequest, PageRewrite, RewriteEnd};
pub use request::{ForwardedRequest, Peer, has_condition, remove_conditions, write_ids_in_map, write_request};
pub use response::{ForwardedResponse, remove_named_by_connection, write_response};
