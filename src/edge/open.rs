//! [`Open`]: counts open connections and accept loops, so that a stop can wait for the last one.

use tokio::sync::watch;

/// The count: each open thing has a receiver of a channel that nothing is sent on.
#[derive(Default)]
pub struct Open(watch::Sender<()>);

/// An open connection or accept loop, until it is dropped.
pub type Counted = watch::Receiver<()>;

impl Open {
    /// Counts one more.
    pub fn count(&self) -> Counted {
        self.0.subscribe()
    }

    /// The number of open connections and accept loops.
    pub fn now(&self) -> usize {
        self.0.receiver_count()
    }

    /// Waits until none is open.
    pub async fn none(&self) {
        self.0.closed().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[tokio::test]
    async fn wait_ends_when_the_last_guard_is_dropped() {
        let open = Arc::new(Open::default());
        let (one, other) = (open.count(), open.count());
        let waiting = tokio::spawn({
            let open = open.clone();
            async move { open.none().await }
        });
        drop(one);
        assert_eq!(open.now(), 1);
        assert!(!waiting.is_finished());
        drop(other);
        waiting.await.unwrap();
    }
}
