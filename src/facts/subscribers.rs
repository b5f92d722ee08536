//! [`Subscribers`]: who learns of facts at the moment at which they happen here.

use super::Fact;
use arc_swap::ArcSwap;
use std::sync::Arc;

/// Somebody who learns of facts. Must not wait for anything: requests wait for it.
pub trait Subscriber: Send + Sync {
    /// A fact happened here.
    fn notify(&self, fact: &Fact);
}

/// All subscribers. Clones share them.
#[derive(Clone, Default)]
pub struct Subscribers(Arc<ArcSwap<Vec<Arc<dyn Subscriber>>>>);

impl Subscribers {
    /// From now on the subscriber learns of every fact.
    pub fn add(&self, subscriber: Arc<dyn Subscriber>) {
        self.0.rcu(|known| {
            let mut all = Vec::clone(known);
            all.push(subscriber.clone());
            all
        });
    }

    /// From now on the subscriber learns of nothing.
    pub fn remove(&self, subscriber: &Arc<dyn Subscriber>) {
        self.0.rcu(|known| {
            let mut all = Vec::clone(known);
            all.retain(|other| !Arc::ptr_eq(other, subscriber));
            all
        });
    }

    /// Notifies all of them of a fact, which is only made if there are any.
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
