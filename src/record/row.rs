//! The fields of one finished request, chosen by the log or page that shows them. A [`RecordLine`]
//! borrows the values from the record and is written at once, as a line of a log. A [`RecordRow`]
//! owns the values. It is for recent events and samples in the history, which are kept after the
//! request has ended.

use super::{FieldValue, RecordField, RequestRecord};
use crate::settings::AddressDetail;
use crate::time::Timestamp;
use FieldValue::*;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::borrow::Cow;

/// The listed fields of a record. Serialized, it is an object with these fields in their order.
#[derive(Clone, Copy)]
pub struct RecordLine<'r> {
    /// The record.
    pub record: &'r RequestRecord,
    /// The fields.
    pub fields: &'r [RecordField],
    /// How much of the client's address is shown.
    pub addresses: AddressDetail,
}

impl<'r> RecordLine<'r> {
    /// The fields with their values, without optional fields that are empty.
    pub fn values(self) -> impl Iterator<Item = (RecordField, FieldValue<'r>)> {
        self.fields
            .iter()
            .map(move |field| (*field, field.value(self.record, self.addresses)))
            .filter(|(field, value)| !(field.is_optional() && value.is_empty()))
    }

    /// The fields as an owned row.
    pub fn to_row(self) -> RecordRow {
        self.values()
            .map(|(field, value)| (field, value.into_owned()))
            .collect()
    }
}

impl Serialize for RecordLine<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_fields(self.values(), serializer)
    }
}

/// Fields of one request: a recent event, or a sample of the history.
#[derive(Clone, Debug, Default)]
pub struct RecordRow(Vec<(RecordField, FieldValue<'static>)>);

impl RecordRow {
    /// A row with these texts, at this moment.
    #[cfg(any(test, feature = "internals"))]
    pub fn from_texts(time: Timestamp, texts: &[(RecordField, &str)]) -> RecordRow {
        let mut row = RecordRow(vec![(RecordField::Time, Moment(time))]);
        for (field, text) in texts {
            row.push(*field, FieldValue::from_string((*text).to_owned()));
        }
        row
    }

    /// When the request arrived; 1970 without a time.
    pub fn moment(&self) -> Timestamp {
        match self.get(RecordField::Time) {
            Some(Time(time)) => Timestamp::from(*time),
            Some(Moment(moment)) => *moment,
            _ => Timestamp(0),
        }
    }

    /// Adds a field at the end.
    pub fn push(&mut self, field: RecordField, value: FieldValue<'static>) {
        self.0.push((field, value));
    }

    /// Removes the query of the target.
    pub fn remove_query(&mut self) {
        for (field, value) in &mut self.0 {
            if let (RecordField::Target, Text(text)) = (field, value) {
                let path = text.split('?').next().unwrap_or_default();
                *text = path.to_owned().into();
            }
        }
    }

    /// The value of a field; `None` where the row has none.
    pub fn get(&self, field: RecordField) -> Option<&FieldValue<'static>> {
        let found = self.0.iter().find(|(known, _)| *known == field);
        found.map(|(_, value)| value)
    }

    /// The value of a field as text; empty where there is none.
    pub fn text(&self, field: RecordField) -> Cow<'_, str> {
        self.get(field).map(FieldValue::to_text).unwrap_or_default()
    }
}

impl FromIterator<(RecordField, FieldValue<'static>)> for RecordRow {
    fn from_iter<I: IntoIterator<Item = (RecordField, FieldValue<'static>)>>(
        fields: I,
    ) -> RecordRow {
        RecordRow(fields.into_iter().collect())
    }
}

impl Serialize for RecordRow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_fields(
            self.0.iter().map(|(field, value)| (*field, value)),
            serializer,
        )
    }
}

fn serialize_fields<S: Serializer>(
    fields: impl Iterator<Item = (RecordField, impl Serialize)>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut object = serializer.serialize_map(None)?;
    for (field, value) in fields {
        object.serialize_entry(field.name(), &value)?;
    }
    object.end()
}
