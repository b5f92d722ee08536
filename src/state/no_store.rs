//! The [`StateStore`] of a build without the feature `state`. It stores nothing, and every write
//! succeeds at once. A fact (such as which robots.txt a crawler was served) is passed on to the
//! modules that subscribed to facts, and then forgotten. The history for the dashboard is not kept.
#![allow(
    missing_docs,
    reason = "the methods are those of the store with a database"
)]

use super::history::RequestHistoryBatch;
use super::{RestoredState, StateError, StoreHealth};
use crate::clock::Moment;
use crate::facts::{Fact, FactSubscribers};
use crate::record::DayPaths;
use crate::time::Timestamp;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The store; cheap to clone.
#[derive(Clone, Default)]
pub struct StateStore {
    /// The observers of facts that happen here.
    pub subscribers: FactSubscribers,
}

impl fmt::Debug for StateStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateStore").finish_non_exhaustive()
    }
}

impl StateStore {
    pub fn in_memory_only() -> (StateStore, RestoredState) {
        (StateStore::default(), RestoredState::default())
    }

    /// Like `in_memory_only`: no directory is opened.
    ///
    /// # Errors
    /// None.
    pub fn open(
        _directory: Option<&Path>,
        _now: Arc<dyn Fn() -> Moment + Send + Sync>,
    ) -> Result<(StateStore, RestoredState), StateError> {
        Ok(StateStore::in_memory_only())
    }

    /// # Errors
    /// None.
    pub fn begin(&self, _facts: Vec<Fact>) -> Result<(), StateError> {
        Ok(())
    }

    /// # Errors
    /// None.
    pub fn publish(&self, _facts: Vec<Fact>) -> Result<(), StateError> {
        Ok(())
    }

    pub fn commit_or_queue(&self, _facts: Vec<Fact>) {}

    pub fn put(&self, _facts: impl IntoIterator<Item = Fact>) {}

    pub fn put_history(&self, _batch: RequestHistoryBatch, _now: Timestamp) {}

    pub fn paths_of_day(&self, _now: Timestamp) -> Vec<DayPaths> {
        Vec::new()
    }

    pub fn flush_history(&self, _limit: Duration) {}

    pub fn prune(&self, _before: Timestamp) {}

    pub fn health(&self) -> StoreHealth {
        StoreHealth::NoDirectory
    }

    pub fn is_handed_over(&self) -> bool {
        false
    }

    /// # Errors
    /// None.
    pub fn close(&self) -> Result<(), StateError> {
        Ok(())
    }
}
