//! [`FactSubscribers`] notifies its subscribers of each fact (something to remember, such as a
//! served robots.txt) as soon as it happens in this process. The subscribers are the exchange with
//! other crawlgate instances and, during an upgrade, the next process.

use super::Fact;
use arc_swap::ArcSwap;
use std::sync::Arc;

/// An observer of facts. Must not block, because requests wait for it.
pub trait FactSubscriber: Send + Sync {
    /// Called when a fact happened in this process.
    fn notify(&self, fact: &Fact);
}

/// All subscribers. Clones share them.
#[derive(Clone, Default)]
pub struct FactSubscribers(Arc<ArcSwap<Vec<Arc<dyn FactSubscriber>>>>);

impl FactSubscribers {
    /// Adds a subscriber.
    pub fn add(&self, subscriber: Arc<dyn FactSubscriber>) {
        self.0.rcu(|known| {
            let mut all = Vec::clone(known);
            all.push(subscriber.clone());
            all
        });
    }

    /// Removes a subscriber.
    pub fn remove(&self, subscriber: &Arc<dyn FactSubscriber>) {
        self.0.rcu(|known| {
            let mut all = Vec::clone(known);
            all.retain(|other| !Arc::ptr_eq(other, subscriber));
            all
        });
    }

    /// Notifies all subscribers. `fact` is not called if there are none.
    pub fn notify(&self, fact: impl FnOnce() -> Fact) {
        let subscribers = self.0.load();
        if subscribers.is_empty() {
            return;
        }
        let fact = fact();
        for subscriber in subscribers.iter() {
            subscriber.notify(&fact);
        }
    }
}
