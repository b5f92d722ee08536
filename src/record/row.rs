//! [`Line`]: the listed fields of a record, to be written at once. [`Row`]: the same, kept.

use super::{Field, RequestRecord, Value};
use crate::settings::AddressDetail;
use crate::time::Timestamp;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::borrow::Cow;

/// The listed fields of a record. Serialized, it is an object with these fields in their order.
#[derive(Clone, Copy)]
pub struct Line<'r> {
    /// The record.
    pub record: &'r RequestRecord,
    /// The fields.
    pub fields: &'r [Field],
    /// How much of the client's address is shown.
    pub addresses: AddressDetail,
}

impl<'r> Line<'r> {
    /// The values of the fields, without those that are left out because they say nothing.
    pub fn values(self) -> impl Iterator<Item = (Field, Value<'r>)> {
        self.fields
            .iter()
            .map(move |field| (*field, field.value(self.record, self.addresses)))
            .filter(|(field, value)| !(field.is_optional() && value.is_nothing()))
    }

    /// The row to keep.
    pub fn to_row(self) -> Row {
        self.values()
            .map(|(field, value)| (field, value.into_owned()))
            .collect()
    }
}

impl Serialize for Line<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        write(self.values(), serializer)
    }
}

/// The fields of one request that are kept: a recent event, a sample of the history.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row(Vec<(Field, Value<'static>)>);

impl Row {
    /// A row with these texts, at this moment.
    #[cfg(any(test, feature = "internals"))]
    pub fn of_texts(time: Timestamp, texts: &[(Field, &str)]) -> Row {
        let mut row = Row(vec![(Field::Time, Value::Moment(time))]);
        for (field, text) in texts {
            row.push(*field, Value::text_of((*text).to_owned()));
        }
        row
    }

    /// When the request arrived; 1970 without a time.
    pub fn moment(&self) -> Timestamp {
        match self.get(Field::Time) {
            Some(Value::Time(time)) => Timestamp::from(*time),
            Some(Value::Moment(moment)) => *moment,
            _ => Timestamp(0),
        }
    }

    /// Adds a field at the end.
    pub fn push(&mut self, field: Field, value: Value<'static>) {
        self.0.push((field, value));
    }

    /// The value of a field; `None` where the row has none.
    pub fn get(&self, field: Field) -> Option<&Value<'static>> {
        let found = self.0.iter().find(|(known, _)| *known == field);
        found.map(|(_, value)| value)
    }

    /// The value of a field as text; empty where there is none.
    pub fn text(&self, field: Field) -> Cow<'_, str> {
        self.get(field).map(Value::to_text).unwrap_or_default()
    }
}

impl FromIterator<(Field, Value<'static>)> for Row {
    fn from_iter<I: IntoIterator<Item = (Field, Value<'static>)>>(fields: I) -> Row {
        Row(fields.into_iter().collect())
    }
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        write(
            self.0.iter().map(|(field, value)| (*field, value)),
            serializer,
        )
    }
}

fn write<S: Serializer>(
    fields: impl Iterator<Item = (Field, impl Serialize)>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut object = serializer.serialize_map(None)?;
    for (field, value) in fields {
        object.serialize_entry(field.name(), &value)?;
    }
    object.end()
}
