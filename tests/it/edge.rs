//! The edge: what happens to a connection before a request is forwarded.

mod answers;
mod attacks;
mod heads;
mod limits;
mod paths;
mod proxy_protocol;
mod tls;
