//! Facts as JSON, for other processes: the name of the table, and its columns.

use super::columns::{ColumnInfo, Value};
use super::{AnyFact, Fact, TABLES, TableInfo};
use crate::time::Timestamp;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value as Json, json};

/// A change as it is written.
#[derive(Serialize, Deserialize)]
struct Written {
    table: String,
    at: i64,
    #[serde(default)]
    is_removal: bool,
    columns: Vec<Json>,
}

impl Serialize for Fact {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let columns = self.fact.key().into_iter().chain(self.fact.values());
        let written = Written {
            table: self.fact.table().name.to_owned(),
            at: self.at.0,
            is_removal: self.is_removal,
            columns: columns.map(|value| to_json(value, |at| at.0)).collect(),
        };
        written.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Fact {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Fact, D::Error> {
        let written = Written::deserialize(deserializer)?;
        let fact = table_named(&written.table).and_then(|table| {
            let columns = table.key.iter().chain(table.values);
            let columns = columns
                .zip(written.columns)
                .map(|(column, json)| from_json(column, json, Timestamp));
            let columns: Vec<Value> = columns.collect::<Option<_>>()?;
            AnyFact::read(table, &mut columns.into_iter())
        });
        Ok(Fact {
            at: Timestamp(written.at),
            is_removal: written.is_removal,
            fact: fact.ok_or_else(|| D::Error::custom("a fact that cannot be read"))?,
        })
    }
}

/// The table with a name.
pub fn table_named(name: &str) -> Option<&'static TableInfo> {
    TABLES.iter().copied().find(|table| table.name == name)
}

/// A column as JSON. `seconds` converts moments.
pub fn to_json(value: Value, seconds: impl Fn(Timestamp) -> i64) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Integer(number) => json!(number),
        Value::Time(moment) => json!(seconds(moment)),
        Value::Text(text) => json!(text),
        Value::Bytes(bytes) => json!({ "base64": STANDARD.encode(bytes) }),
    }
}

/// The column of JSON that [`to_json`] made. `moment` converts moments. `None` if it is none.
pub fn from_json(
    column: &ColumnInfo,
    json: Json,
    moment: impl Fn(i64) -> Timestamp,
) -> Option<Value> {
    Some(match json {
        Json::Null => Value::Null,
        Json::Number(number) => match number.as_i64()? {
            seconds if column.is_time => Value::Time(moment(seconds)),
            number => Value::Integer(number),
        },
        Json::String(text) => Value::Text(text),
        json => {
            let text = json.get("base64")?.as_str()?;
            Value::Bytes(STANDARD.decode(text).ok()?.into())
        }
    })
}
