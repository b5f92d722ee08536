//! [`Subscribers`]: who learns of facts at the moment at which they happen here.

use super::Fact;
use crate::locks::{read, write};
use std::sync::{Arc, RwLock, RwLockReadGuard};

/// Somebody who learns of facts. Must not wait for anything: requests wait for it.
pub trait Subscriber: Send + Sync {
    /// A fact happened here.
    fn notify(&self, fact: &Fact);
}

/// All subscribers. Clones share them.
#[derive(Clone, Default)]
pub struct Subscribers(Arc<RwLock<Vec<Arc<dyn Subscriber>>>>);

impl Subscribers {
    /// From now on the subscriber learns of every fact. Waits for those who hold the subscribers.
    pub fn add(&self, subscriber: Arc<dyn Subscriber>) {
        write(&self.0).push(subscriber);
    }

    /// From now on the subscriber learns of nothing.
    pub fn remove(&self, subscriber: &Arc<dyn Subscriber>) {
        write(&self.0).retain(|known| !Arc::ptr_eq(known, subscriber));
    }

    /// The subscribers as they are. While this is held, none is added.
    pub fn hold(&self) -> SubscribersGuard<'_> {
        SubscribersGuard(read(&self.0))
    }

    /// Notifies all of them of a fact, which is only made if there are any.
    pub fn notify(&self, fact: impl FnOnce() -> Fact) {
        self.hold().notify(fact);
    }
}

/// The subscribers, held.
pub struct SubscribersGuard<'a>(RwLockReadGuard<'a, Vec<Arc<dyn Subscriber>>>);

impl SubscribersGuard<'_> {
    /// See [`Subscribers::notify`].
    pub fn notify(&self, fact: impl FnOnce() -> Fact) {
        if self.0.is_empty() {
            return;
        }
        let fact = fact();
        for subscriber in self.0.iter() {
            subscriber.notify(&fact);
        }
    }
}
