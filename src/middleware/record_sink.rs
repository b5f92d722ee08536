//! [`RecordSink`] passes the record of each finished request to a function of the application.

use crate::record::{RecordLine, RequestRecord, Sink};
use crate::settings::AddressDetail;
use crate::telemetry::ACCESS_FIELDS;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// A function of the application.
#[derive(Clone)]
pub struct RecordSink {
    pub call: Arc<dyn Fn(&Value) + Send + Sync>,
    /// How much of the client's address it gets.
    pub addresses: AddressDetail,
}

impl fmt::Debug for RecordSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordSink").finish_non_exhaustive()
    }
}

impl Sink for RecordSink {
    /// Calls the function with the fields of a line of the access log.
    fn record(&self, record: &RequestRecord) {
        let line = RecordLine {
            record,
            fields: ACCESS_FIELDS,
            addresses: self.addresses,
        };
        if let Ok(line) = serde_json::to_value(line) {
            (self.call)(&line);
        }
    }
}
