//! Serializes a fact (something that crawlgate remembers, such as a served robots.txt) as JSON: the
//! name of the fact's table, and the list of its columns. In an upgrade, the next process gets
//! facts in this form. The exchange between crawlgate instances has a format of its own, but uses
//! the functions for single columns ([`value_to_json`], [`value_from_json`]).

use super::columns::{ColumnSchema, ColumnValue};
use super::{AnyFact, Fact, SqlTableSchema, TABLES};
use crate::time::Timestamp;
use ColumnValue::*;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value as Json, json};

/// The JSON of a fact. `columns` has the key's columns and then the others.
#[derive(Serialize, Deserialize)]
struct FactJson {
    table: String,
    at: i64,
    #[serde(default)]
    is_removal: bool,
    columns: Vec<Json>,
}

impl Serialize for Fact {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let columns = self.fact.key().into_iter().chain(self.fact.values());
        let written = FactJson {
            table: self.fact.table().name.to_owned(),
            at: self.at.0,
            is_removal: self.is_removal,
            columns: columns
                .map(|value| value_to_json(value, |at| at.0))
                .collect(),
        };
        written.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Fact {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Fact, D::Error> {
        let written = FactJson::deserialize(deserializer)?;
        let fact = find_table(&written.table).and_then(|table| {
            let columns = table.key.iter().chain(table.values);
            let columns = columns
                .zip(written.columns)
                .map(|(column, json)| value_from_json(column, json, Timestamp));
            let columns: Vec<ColumnValue> = columns.collect::<Option<_>>()?;
            AnyFact::read(table, &mut columns.into_iter())
        });
        Ok(Fact {
            at: Timestamp(written.at),
            is_removal: written.is_removal,
            fact: fact.ok_or_else(|| D::Error::custom("a fact that cannot be read"))?,
        })
    }
}

/// Finds a table by its name.
pub fn find_table(name: &str) -> Option<&'static SqlTableSchema> {
    TABLES.iter().copied().find(|table| table.name == name)
}

/// Converts a column into JSON. `seconds` converts moments.
pub fn value_to_json(value: ColumnValue, seconds: impl Fn(Timestamp) -> i64) -> Json {
    match value {
        Null => Json::Null,
        Integer(number) => json!(number),
        Time(moment) => json!(seconds(moment)),
        Text(text) => json!(text),
        Bytes(bytes) => json!({ "base64": STANDARD.encode(bytes) }),
    }
}

/// Reads a column from the JSON of [`value_to_json`]. `moment` converts moments. `None` if the JSON
/// is no column.
pub fn value_from_json(
    column: &ColumnSchema,
    json: Json,
    moment: impl Fn(i64) -> Timestamp,
) -> Option<ColumnValue> {
    Some(match json {
        Json::Null => Null,
        Json::Number(number) => match number.as_i64()? {
            seconds if column.is_time => Time(moment(seconds)),
            number => Integer(number),
        },
        Json::String(text) => Text(text),
        json => {
            let text = json.get("base64")?.as_str()?;
            Bytes(STANDARD.decode(text).ok()?.into())
        }
    })
}
