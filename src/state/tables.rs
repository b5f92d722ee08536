//! The tables of `state.db`, one for each kind of fact: their definitions, how a fact is written,
//! and how facts are read.

use crate::facts::{Column, ColumnInfo, Expiry, Source, TOLERANCE, Table, TableInfo, Value};
use crate::time::Timestamp;
use rusqlite::types::{FromSql, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, Result as SqlResult, Row};

impl ToSql for Timestamp {
    fn to_sql(&self) -> SqlResult<ToSqlOutput<'_>> {
        self.0.to_sql()
    }
}

impl FromSql for Timestamp {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Timestamp> {
        i64::column_result(value).map(Timestamp)
    }
}

impl ToSql for Value {
    fn to_sql(&self) -> SqlResult<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Value::Null => ValueRef::Null,
            Value::Integer(number) => ValueRef::Integer(*number),
            Value::Time(moment) => ValueRef::Integer(moment.0),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

/// A number that is a moment is read as a number: the field knows.
impl FromSql for Value {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Value> {
        Ok(match value {
            ValueRef::Null => Value::Null,
            ValueRef::Blob(bytes) => Value::Bytes(bytes.into()),
            ValueRef::Integer(number) => Value::Integer(number),
            value => Value::Text(value.as_str()?.to_owned()),
        })
    }
}

/// The names of these columns, separated by commas.
fn names<'c>(columns: impl IntoIterator<Item = &'c ColumnInfo>) -> String {
    columns
        .into_iter()
        .map(|column| column.name)
        .collect::<Vec<_>>()
        .join(", ")
}

/// The column with the moment at which facts of a table are over.
pub fn end_of(table: &TableInfo) -> Option<&'static str> {
    match table.expiry {
        Expiry::Never => None,
        Expiry::Until => Some("until"),
        Expiry::Unconfirmed => Some("changed"),
    }
}

/// The statements that make the table of a kind of fact, and the indexes that find by its time what
/// may be deleted.
pub fn definition_of(table: &TableInfo) -> String {
    let columns: String = table
        .key
        .iter()
        .chain(table.values)
        .map(|column| format!("  {} {},\n", column.name, column.definition))
        .collect();
    let name = table.name;
    let mut statements = format!(
        "CREATE TABLE IF NOT EXISTS {name} (\n{columns}  changed INTEGER NOT NULL,\n  removed INTEGER NOT NULL,\n  PRIMARY \
         KEY ({})\n) STRICT;",
        names(table.key)
    );
    if let Some(end) = end_of(table) {
        statements.push_str(&format!(
            "CREATE INDEX IF NOT EXISTS {name}_by_end ON {name} ({end});"
        ));
    }
    if table.is_of_clients {
        statements.push_str(&format!(
            "CREATE INDEX IF NOT EXISTS {name}_removed ON {name} (changed) WHERE removed = 1;"
        ));
    }
    statements
}

/// The statement that writes a fact unless a later change is stored. Its parameters are the key's
/// columns, the others, `changed`, `removed` and the moment of writing.
///
/// A change counts as later only if it is so by more than `TOLERANCE` seconds; within them the
/// order of writing decides, and the later time is kept. A stored time that lies ahead of the
/// moment of writing counts as that moment.
pub fn upsert_of(info: &TableInfo) -> String {
    let table = info.name;
    let columns = info.key.len() + info.values.len();
    let parameters = (1..=columns + 2)
        .map(|number| format!("?{number}"))
        .collect::<Vec<_>>()
        .join(", ");
    let now = columns + 3;
    let values: String = info
        .values
        .iter()
        .map(|column| format!("{0} = excluded.{0}, ", column.name))
        .collect();
    let all = names(info.key.iter().chain(info.values));
    format!(
        "INSERT INTO {table} ({all}, changed, removed) VALUES ({parameters}) ON CONFLICT ({key}) DO UPDATE SET \
         {values}changed = MAX(excluded.changed, MIN({table}.changed, ?{now})), removed = excluded.removed WHERE \
         excluded.changed + {TOLERANCE} >= MIN({table}.changed, ?{now})",
        key = names(info.key),
    )
}

/// The tables of a file, read at a moment.
pub struct Tables<'a> {
    pub connection: &'a Connection,
    /// Moments that lie ahead of it are read as `taken_as_past` says.
    pub now: Timestamp,
}

impl Source for Tables<'_> {
    type Error = rusqlite::Error;

    /// Facts in the order of insertion. Empty if the table is missing.
    fn read<T: Table>(&self) -> SqlResult<Vec<(Timestamp, T)>> {
        // A file of an older crawlgate that is only read stays as it is.
        if !self.connection.table_exists(None, T::INFO.name)? {
            return Ok(Vec::new());
        }
        let all = names(T::INFO.key.iter().chain(T::INFO.values));
        let mut statement = self.connection.prepare(&format!(
            "SELECT {all}, changed FROM {} WHERE removed = 0 ORDER BY rowid",
            T::INFO.name
        ))?;
        let count = T::INFO.key.len() + T::INFO.values.len();
        statement
            .query_map([], |row| read_row(row, count, self.now))?
            .collect()
    }
}

/// The fact of a row with so many columns, and the time of its last change.
fn read_row<T: Table>(row: &Row<'_>, count: usize, now: Timestamp) -> SqlResult<(Timestamp, T)> {
    let columns = (0..count).map(|column| row.get(column));
    let columns: Vec<Value> = columns.collect::<SqlResult<_>>()?;
    let mut changed: Timestamp = row.get(count)?;
    changed.clamp_to(now);
    let unreadable = || {
        rusqlite::Error::InvalidColumnType(0, T::INFO.name.to_owned(), rusqlite::types::Type::Null)
    };
    let fact = T::read(&mut columns.into_iter(), now).ok_or_else(unreadable)?;
    Ok((changed, fact))
}
