//! [`Limits`]: bounds on the size, number and duration of requests and connections. The defaults are right for a public site.

use std::time::Duration;

/// Bounds on requests and connections.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Open connections of all clients.
    pub connections: usize,
    /// Open connections of one client: an IPv4 address, or a /64 of IPv6.
    pub connections_per_address: usize,
    /// How long a TLS handshake, and a header of the PROXY protocol, may take.
    pub handshake: Duration,
    /// How long the head of a request may take, from its first octet; 408 after that.
    pub head: Duration,
    /// How long a connection is kept without a request.
    pub idle: Duration,
    /// How long a client may take nothing of a response, or send nothing of a body.
    pub stall: Duration,
    /// Octets a second that a request body has to arrive with on average, once `stall` has passed; 408 below.
    pub body_rate: usize,
    /// Octets of a request body; 413 above. Without a limit, the origin decides.
    pub body: Option<u64>,
    /// Octets of a request target; 414 above.
    pub target: usize,
    /// Octets of all header fields; 431 above.
    pub headers: usize,
    /// Header fields; 431 above.
    pub fields: usize,
    /// Concurrent requests on an HTTP/2 connection.
    pub streams: u32,
    /// Octets of requests and responses that may wait in buffers, of all clients; 503 above.
    pub buffers: usize,
    /// Octets of requests and responses of one client that may wait in buffers; 503 above.
    pub buffers_per_address: usize,
    /// How long a graceful stop waits for the last request.
    pub drain: Duration,
}

impl Limits {
    /// The limits that hold unless the settings say otherwise.
    pub const DEFAULT: Limits = Limits {
        connections: 10_000,
        connections_per_address: 100,
        handshake: Duration::from_secs(10),
        head: Duration::from_secs(10),
        idle: Duration::from_secs(60),
        stall: Duration::from_secs(60),
        body_rate: 1024,
        body: None,
        target: 16 * 1024,
        headers: 64 * 1024,
        fields: 100,
        streams: 100,
        buffers: 512 * 1024 * 1024,
        buffers_per_address: 64 * 1024 * 1024,
        drain: Duration::from_secs(30),
    };
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::DEFAULT
    }
}
