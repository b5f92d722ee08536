//! [`AccessLog`]: the access log, in JSON or in the Combined format. It writes one [`AccessRecord`] for each request.

use super::access_record::AccessRecord;
use super::combined::{write_combined, write_vhost_combined};
use super::log_writer::LogWriter;
use crate::settings::{AccessFormat, LogDestination};
use std::ops::Deref;

/// The access log; cheap to clone.
#[derive(Clone)]
pub struct AccessLog {
    writer: LogWriter,
    format: AccessFormat,
}

impl AccessLog {
    /// Opens the destination and starts the writer.
    ///
    /// # Errors
    /// The file cannot be opened for appending, or no thread can be started.
    pub fn open(destination: &LogDestination, format: AccessFormat) -> std::io::Result<AccessLog> {
        LogWriter::open("access-log", destination).map(|writer| AccessLog { writer, format })
    }

    /// A log that is not written.
    pub fn off() -> AccessLog {
        AccessLog { writer: LogWriter::off(), format: AccessFormat::default() }
    }

    /// Takes the line of a request in.
    pub fn write(&self, record: &AccessRecord<'_>) {
        match self.format {
            AccessFormat::Json => self.writer.write(record),
            AccessFormat::Combined => self.writer.write_line(|line| write_combined(record, line).is_ok()),
            AccessFormat::VhostCombined => self.writer.write_line(|line| write_vhost_combined(record, line).is_ok()),
        }
    }
}

impl Deref for AccessLog {
    type Target = LogWriter;

    fn deref(&self) -> &LogWriter {
        &self.writer
    }
}
