//! Changes the HTTP requests and responses that pass through crawlgate. [`write_request`] turns the
//! head of a client's request into the head for the origin. [`write_response`] adds the policy's
//! header fields to the head of a response. `PageRewriteState` writes robots metas (`<meta
//! name="robots">`) into HTML pages. Heads are changed through the trait [`EditableHead`], because
//! crawlgate's own forwarder, Pingora's proxy, and crawlgate inside an application each have their
//! own type of head.

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

pub use client::{ConnectionPeer, ForwardedElement, ResolvedClient, is_trusted};
pub use client_host::{HostReplacement, restore_client_host};
pub use head::{EditableHead, names_matching, valid_field_value};
pub use hop_by_hop::{is_dropped_from_response, is_hop_by_hop, remove_connection_named};
#[cfg(feature = "html")]
pub use pages::{PageRewriteState, RewriteLabel};
pub use request::{
    CDN_LOOP, ForwardingFacts, LOOP_NAME, has_condition, remove_conditions, write_ids_into_map,
    write_request,
};
pub use response::write_response;
pub use signals::TDM_RESERVATION;
