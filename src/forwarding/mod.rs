//! Changes to HTTP heads and HTML pages that pass through crawlgate. [`write_request`] turns the
//! head of a client's request into the head for the origin. [`write_response`] adds the policy's
//! header fields to a response, and `PageRewrite` rewrites pages. All work on any [`EditableHead`]:
//! of the forwarder, of Pingora's proxy, and of the middleware.

mod client;
mod client_host;
mod head;
mod hop_by_hop;
#[cfg(feature = "html")]
mod pages;
mod request;
mod response;
mod signals;
mod tags;

pub use client::{ForwardedElement, Peer, RequestClient, is_trusted};
pub use client_host::{HostReplacement, restore_client_host};
pub use head::{EditableHead, names_matching, valid_field_value};
pub use hop_by_hop::{is_dropped_from_response, is_hop_by_hop, remove_connection_named};
#[cfg(feature = "html")]
pub use pages::{PageRewrite, RewriteLabel};
pub use request::{
    ForwardingFacts, has_condition, remove_conditions, write_ids_into_map, write_request,
};
pub use response::write_response;
