//! The edge: what happens to a connection before a request is forwarded.

mod answers;
mod attacks;
mod behind_proxies;
mod buffers;
mod certificates;
mod forwarder;
mod forwarder_bodies;
mod h2spec;
mod heads;
mod hops;
mod http2;
mod http2_log;
mod https;
mod limits;
mod openssl;
mod paths;
mod programs;
mod proxy_protocol;
mod proxy_protocol_of_haproxy;
pub mod streams;
mod tls;
