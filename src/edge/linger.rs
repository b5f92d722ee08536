//! [`linger`]: how a connection ends whose client may still be sending.

use super::connection::Connection;
use std::time::Duration;
use tokio::io::AsyncWriteExt;

/// What is read of a request that is answered without it, while the connection is being closed. A connection that is closed
/// while the client still sends is reset, and the client may lose the answer.
pub(super) const LINGERING: usize = 1024 * 1024;
/// How long that may take.
pub(super) const LINGER_LIMIT: Duration = Duration::from_secs(2);

/// Ends a connection to a client that may still be sending. Octets of a body are thrown away, and never read as a request.
pub(super) async fn linger(connection: &mut Connection, most: usize) {
    if connection.shutdown().await.is_err() {
        return;
    }
    connection.set_deadline(LINGER_LIMIT);
    let mut left = most;
    loop {
        let seen = connection.seen().len();
        connection.take(0..seen);
        match left.checked_sub(seen) {
            Some(rest) => left = rest,
            None => return,
        }
        if !matches!(connection.see().await, Ok(1..)) {
            return;
        }
    }
}
