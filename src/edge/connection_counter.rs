//! [`ConnectionCounter`] counts open client connections, and loops that accept connections. So a
//! shutdown can wait until all of them have ended.

use tokio::sync::watch;

/// A channel that nothing is sent on: its receivers are counted.
#[derive(Default)]
pub struct ConnectionCounter(watch::Sender<()>);

/// An open connection or accept loop, until it is dropped.
pub type CountGuard = watch::Receiver<()>;

impl ConnectionCounter {
    /// Counts one more.
    pub fn count(&self) -> CountGuard {
        self.0.subscribe()
    }

    /// The number of open connections and accept loops.
    pub fn open_count(&self) -> usize {
        self.0.receiver_count()
    }

    /// Waits until none is open.
    pub async fn wait_until_none(&self) {
        self.0.closed().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[tokio::test]
    async fn wait_ends_when_the_last_guard_is_dropped() {
        let counter = Arc::new(ConnectionCounter::default());
        let one = counter.count();
        let other = counter.count();
        let waiting = tokio::spawn({
            let counter = counter.clone();
            async move { counter.wait_until_none().await }
        });
        drop(one);
        assert_eq!(counter.open_count(), 1);
        assert!(!waiting.is_finished());
        drop(other);
        waiting.await.unwrap();
    }
}
