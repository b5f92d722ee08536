//! Evidence is the proxy's: in a build without the feature `proxy` this stands for the module, and
//! [`Evidence`] is always off. A [`Record`] is never made.

#[path = "canonical.rs"]
mod canonical;

pub use canonical::Hash;

use crate::finding::Finding;
use crate::settings::AddressDetail;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::SystemTime;

/// The handle of a log that is off.
#[derive(Clone, Default)]
pub struct Evidence;

#[allow(missing_docs)]
impl Evidence {
    pub fn off() -> Evidence {
        Evidence
    }

    pub fn is_on(&self) -> bool {
        false
    }

    pub fn addresses(&self) -> AddressDetail {
        AddressDetail::None
    }

    pub fn record(
        &self,
        _site: &str,
        _crawler: &str,
        _now: SystemTime,
        _make: impl FnOnce() -> Record,
    ) {
    }

    pub fn published(&self, _site: &str, _record: Record) {}

    pub fn problem(&self) -> Option<Finding> {
        None
    }

    pub fn entries(&self) -> u64 {
        0
    }

    pub fn lost(&self) -> u64 {
        0
    }
}

/// What an entry would be made of.
#[allow(missing_docs)]
#[derive(Default)]
pub struct Record {
    pub kind: &'static str,
    pub data: Map<String, Value>,
    pub personal: Vec<(&'static str, String)>,
    pub documents: Vec<Arc<[u8]>>,
    pub proof: Option<Box<Record>>,
}

#[allow(missing_docs)]
impl Record {
    pub fn of(kind: &'static str, _data: Value) -> Record {
        Record {
            kind,
            ..Record::default()
        }
    }
}

/// A moment as entries would write it.
pub fn time_text(time: SystemTime) -> String {
    chrono::DateTime::<chrono::Utc>::from(time).to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}
